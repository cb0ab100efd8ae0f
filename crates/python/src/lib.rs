//! What the Python package asks of the simulator: text in, text out, everything JSON.
//!
//! A native module is three lines: its function, and [`fill`] with what there is to simulate. The module
//! `graven._engine` of the package has all that ships; a module of one's own has more designs or workloads.
//!
//! This file is about Python: classes, exceptions, and releasing the interpreter's lock while a
//! simulation runs. What the engine is asked, and how its answers are written, is in [`facade`].

mod facade;
mod laboratory;
mod paper_files;
mod program_trace;
mod request_trace;
mod seam;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use graven::Registry;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use seam::{Failure, Task, TaskControl};

create_exception!(
    _engine,
    ConfigError,
    PyValueError,
    "Input was refused; the message says what is allowed."
);
create_exception!(
    _engine,
    TraceError,
    PyValueError,
    "A trace cannot be read; the message names the line."
);
create_exception!(_engine, SimulationError, PyRuntimeError, "A simulation failed.");
create_exception!(_engine, Cancelled, PyRuntimeError, "A simulation was stopped by `cancel`.");

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Config(message) => ConfigError::new_err(message),
            Failure::Trace(message) => TraceError::new_err(message),
            Failure::Simulation(message) => SimulationError::new_err(message),
            Failure::Cancelled => Cancelled::new_err("cancelled"),
        }
    }
}

/// A task that runs once, watched and perhaps cancelled from other threads.
struct Runner {
    task: Mutex<Option<Box<dyn Task>>>,
    watch: TaskControl,
}

impl Runner {
    fn new(task: Box<dyn Task>) -> Runner {
        Runner { task: Mutex::new(Some(task)), watch: TaskControl::default() }
    }

    fn run(&self, py: Python<'_>) -> PyResult<String> {
        let taken = self.task.lock().expect("nothing panics while holding this lock").take();
        let Some(task) = taken else {
            return Err(SimulationError::new_err("it has run already; make a new one"));
        };
        // A panic is a broken invariant of the engine. The task is consumed, so nothing that it left
        // half done can be seen afterwards.
        let outcome = py.detach(|| catch_unwind(AssertUnwindSafe(|| task.run(&self.watch))));
        match outcome {
            Ok(result) => Ok(result?),
            Err(panic) => Err(SimulationError::new_err(format!(
                "internal error of the engine: {}",
                panic_text(panic.as_ref())
            ))),
        }
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

/// One simulation, checked when it is made.
#[pyclass(frozen, module = "graven._engine")]
struct Simulation(Runner);

#[pymethods]
impl Simulation {
    #[new]
    fn new(spec_json: &str) -> PyResult<Self> {
        Ok(Simulation(Runner::new(facade::simulation(spec_json)?)))
    }

    /// Runs to the end without holding the interpreter's lock; one record as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        self.0.run(py)
    }

    /// Makes `run`, now or later, raise `Cancelled`. Any thread may call it.
    fn cancel(&self) {
        self.0.watch.cancel();
    }

    /// Transactions committed so far, and in all.
    fn progress(&self) -> (u64, u64) {
        self.0.watch.progress()
    }
}

/// A request trace on the memory controller and device alone.
#[pyclass(frozen, module = "graven._engine")]
struct MemoryReplay(Runner);

#[pymethods]
impl MemoryReplay {
    #[new]
    fn new(spec_json: &str) -> PyResult<Self> {
        Ok(MemoryReplay(Runner::new(facade::memory_replay(spec_json)?)))
    }

    /// Runs to the end without holding the interpreter's lock; one record as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        self.0.run(py)
    }

    /// Makes `run`, now or later, raise `Cancelled`. Any thread may call it.
    fn cancel(&self) {
        self.0.watch.cancel();
    }

    /// Requests served so far, and in all.
    fn progress(&self) -> (u64, u64) {
        self.0.watch.progress()
    }
}

/// A campaign of the crash laboratory: `Campaign("run" | "adversary" | "litmus", spec_json)`.
#[pyclass(frozen, module = "graven._engine")]
struct Campaign(Runner);

#[pymethods]
impl Campaign {
    #[new]
    fn new(kind: &str, spec_json: &str) -> PyResult<Self> {
        let task = match kind {
            "run" => laboratory::run(spec_json)?,
            "adversary" => laboratory::adversary(spec_json)?,
            "litmus" => laboratory::litmus_program(spec_json)?,
            other => {
                let message = format!("`{other}` is no campaign; run, adversary and litmus are");
                return Err(ConfigError::new_err(message));
            }
        };
        Ok(Campaign(Runner::new(task)))
    }

    /// Runs to the end without holding the interpreter's lock; a report as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        self.0.run(py)
    }

    /// Makes `run`, now or later, raise `Cancelled`. Any thread may call it.
    fn cancel(&self) {
        self.0.watch.cancel();
    }

    /// Transactions, schedules or designs so far, and in all.
    fn progress(&self) -> (u64, u64) {
        self.0.watch.progress()
    }

    /// Power failures checked so far.
    fn judged(&self) -> u64 {
        self.0.watch.judged()
    }

    /// Whether there is a violation, and its program is being minimised; to cancel is then to take it as
    /// it is.
    fn minimising(&self) -> bool {
        self.0.watch.minimising()
    }
}

/// A program trace on the machine: `TraceReplay(spec_json)`.
#[pyclass(frozen, module = "graven._engine")]
struct TraceReplay(Runner);

#[pymethods]
impl TraceReplay {
    #[new]
    fn new(spec_json: &str) -> PyResult<Self> {
        Ok(TraceReplay(Runner::new(program_trace::replay(spec_json)?)))
    }

    /// Runs to the end without holding the interpreter's lock; one record as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        self.0.run(py)
    }

    /// Makes `run`, now or later, raise `Cancelled`. Any thread may call it.
    fn cancel(&self) {
        self.0.watch.cancel();
    }

    /// Transactions committed so far, and in all.
    fn progress(&self) -> (u64, u64) {
        self.0.watch.progress()
    }
}

/// Traces of ChampSim from and to program traces: `Conversion("import" | "export", spec_json, files)`.
#[pyclass(frozen, module = "graven._engine")]
struct Conversion(Runner);

#[pymethods]
impl Conversion {
    #[new]
    fn new(kind: &str, spec_json: &str, mut files: Vec<Py<PyAny>>) -> PyResult<Self> {
        let task = match (kind, files.pop()) {
            ("import", Some(last)) => {
                files.push(last);
                program_trace::import(spec_json, files)?
            }
            ("export", Some(out)) if files.is_empty() => program_trace::export(spec_json, out)?,
            _ => {
                let message = "a conversion is an import of one or more files, or an export to one";
                return Err(ConfigError::new_err(message));
            }
        };
        Ok(Conversion(Runner::new(task)))
    }

    /// Runs to the end; what has come of it as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        self.0.run(py)
    }

    /// Makes `run`, now or later, raise `Cancelled`. Any thread may call it.
    fn cancel(&self) {
        self.0.watch.cancel();
    }

    /// Instructions or operations so far, and 0: how many there are is known at the end.
    fn progress(&self) -> (u64, u64) {
        self.0.watch.progress()
    }
}

/// What is in a program trace, as JSON.
#[pyfunction]
fn trace_info(path: &str) -> PyResult<String> {
    Ok(program_trace::info(path)?)
}

/// Everything that can be named: designs, workloads, machines, statistics, parameters; as JSON.
#[pyfunction]
fn catalogue() -> String {
    facade::catalogue()
}

/// What is compared on a machine where nothing else is asked for; settings and variations are checked.
#[pyfunction]
fn comparison(spec_json: &str) -> PyResult<String> {
    Ok(facade::comparison(spec_json)?)
}

/// The files of the papers' experiments and claims, by paper; as JSON.
#[pyfunction]
fn papers() -> String {
    paper_files::texts()
}

/// What distinguishes this build from others of the same version: a digest of the engine's sources.
#[pyfunction]
fn build() -> &'static str {
    env!("GRAVEN_BUILD")
}

/// What a design's hardware costs on a machine: items with formulas, and what papers print; as JSON.
#[pyfunction]
fn cost(spec_json: &str) -> PyResult<String> {
    Ok(facade::cost(spec_json)?)
}

/// Puts everything into a native module; `make` says what there is to simulate.
///
/// # Errors
/// Python's.
pub fn fill(module: &Bound<'_, PyModule>, make: impl FnOnce() -> Registry) -> PyResult<()> {
    seam::set_registry(make);
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("TraceError", py.get_type::<TraceError>())?;
    module.add("SimulationError", py.get_type::<SimulationError>())?;
    module.add("Cancelled", py.get_type::<Cancelled>())?;
    module.add_class::<Simulation>()?;
    module.add_class::<MemoryReplay>()?;
    module.add_class::<Campaign>()?;
    module.add_class::<TraceReplay>()?;
    module.add_class::<Conversion>()?;
    module.add_function(wrap_pyfunction!(trace_info, module)?)?;
    module.add_function(wrap_pyfunction!(comparison, module)?)?;
    module.add_function(wrap_pyfunction!(papers, module)?)?;
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add_function(wrap_pyfunction!(cost, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue, module)?)
}
