//! The persistence designs `atom`, `atom-base` and `atom-literal` for Graven.

mod design;

pub use design::{BASE, INFO, LITERAL};

use graven::Registry;
use pyo3::prelude::*;

/// Registers the designs.
pub fn register(registry: &mut Registry) {
    registry.design(&INFO);
    registry.design(&BASE);
    registry.design(&LITERAL);
}

/// The native module: all that ships with Graven, and what this crate registers.
#[pymodule]
fn graven_atom(module: &Bound<'_, PyModule>) -> PyResult<()> {
    graven_python::fill(module, || {
        let mut registry = graven::standard();
        register(&mut registry);
        registry
    })
}
