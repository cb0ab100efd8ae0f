//! The persistence design `picl` for Graven.

mod design;

pub use design::INFO;

use graven::Registry;
use pyo3::prelude::*;

/// Registers the design.
pub fn register(registry: &mut Registry) {
    registry.design(&INFO);
}

/// The native module: all that ships with Graven, and what this crate registers.
#[pymodule]
fn graven_picl(module: &Bound<'_, PyModule>) -> PyResult<()> {
    graven_python::fill(module, || {
        let mut registry = graven::standard();
        register(&mut registry);
        registry
    })
}
