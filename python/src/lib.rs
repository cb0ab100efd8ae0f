//! The native module `graven._engine` with all designs, workloads and machines that ship.

use pyo3::prelude::*;

#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    graven_python::fill(module, graven::standard)
}
