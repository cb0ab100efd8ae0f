//! The workload `skip-list` for Graven.

mod list;
mod slabs;
mod workload;

pub use workload::INFO;

use graven::Registry;
use pyo3::prelude::*;

/// Registers the workload.
pub fn register(registry: &mut Registry) {
    registry.workload(&INFO);
}

/// The native module: all that ships with Graven, and what this crate registers.
#[pymodule]
fn graven_skip_list(module: &Bound<'_, PyModule>) -> PyResult<()> {
    graven_python::fill(module, || {
        let mut registry = graven::standard();
        register(&mut registry);
        registry
    })
}
