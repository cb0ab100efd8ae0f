//! The persistence designs `bbb` and `bbb-undo` for Graven.

mod design;

pub use design::{INFO, UNDO};

use graven::Registry;
use pyo3::prelude::*;

/// Registers the designs.
pub fn register(registry: &mut Registry) {
    registry.design(&INFO);
    registry.design(&UNDO);
}

/// The native module: all that ships with Graven, and what this crate registers.
#[pymodule]
fn graven_bbb(module: &Bound<'_, PyModule>) -> PyResult<()> {
    graven_python::fill(module, || {
        let mut registry = graven::standard();
        register(&mut registry);
        registry
    })
}
