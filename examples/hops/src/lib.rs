//! The persistence designs `hops`, `hops-undo` and `hops-undo-buffered` for Graven.

mod design;

pub use design::{BUFFERED, INFO, UNDO};

use graven::Registry;
use pyo3::prelude::*;

/// Registers the designs.
pub fn register(registry: &mut Registry) {
    registry.design(&INFO);
    registry.design(&UNDO);
    registry.design(&BUFFERED);
}

/// The native module: all that ships with Graven, and what this crate registers.
#[pymodule]
fn graven_hops(module: &Bound<'_, PyModule>) -> PyResult<()> {
    graven_python::fill(module, || {
        let mut registry = graven::standard();
        register(&mut registry);
        registry
    })
}
