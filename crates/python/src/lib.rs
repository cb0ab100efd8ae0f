//! Requests of the Python package to the simulator: text in, text out, everything JSON.
//!
//! A native module is three lines: its function, and [`fill`] with what there is to simulate. The module
//! `graven._engine` of the package has all that ships; a module of one's own has more designs or workloads.
//!
//! | file | what |
//! |---|---|
//! | `task` | Python's handle of what runs once |
//! | `adversary` | Python's handle of an adversary's campaign |
//! | `seam` | failures, tasks, machines and specifications as JSON |
//! | `facade` | simulations, comparisons, cost sheets, the catalogue: what the engine is asked, how answers are written |
//! | `laboratory` | the same for the crash laboratory |
//! | `program_trace`, `request_trace` | the same for traces |
//! | `history` | what is in the histories of such traces |
//! | `capture` | the same for programs that were captured |
//! | `powerfail`, `left_behind`, `runner`, `served` | what a power failure may leave of such programs; the commands and servers that judge it, run thousands of times |
//! | `verification`, `checker_command`, `image_files` | recovered files of such programs, held against the user's own checker; its command; files as an image holds them |
//! | `paper_files` | the files of the papers |
//!
//! This file has the module's exceptions, classes and functions.

mod adversary;
mod capture;
mod checker_command;
mod facade;
mod history;
mod image_files;
mod laboratory;
mod left_behind;
mod paper_files;
mod persistency;
mod powerfail;
mod program_trace;
mod request_trace;
mod runner;
mod seam;
mod served;
mod task;
mod verification;

use graven::Registry;
use graven::lab::minimise::RUNS as MINIMISING_RUNS;
use graven::stats::RECOVERY_TRANSACTIONS;
use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use adversary::AdversaryCampaign;
use seam::Failure;
use task::TaskHandle;

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

/// One simulation, checked when it is made. Its progress is in transactions committed, its result a record.
#[pyclass(frozen, extends = TaskHandle, module = "graven._engine")]
struct Simulation;

#[pymethods]
impl Simulation {
    #[new]
    fn new(spec_json: &str) -> PyResult<PyClassInitializer<Self>> {
        Ok(TaskHandle::of(Simulation, facade::simulation(spec_json)?))
    }
}

/// A request trace on the memory controller and device alone. Its progress is in requests served, its result a record.
#[pyclass(frozen, extends = TaskHandle, module = "graven._engine")]
struct MemoryReplay;

#[pymethods]
impl MemoryReplay {
    #[new]
    #[pyo3(signature = (spec_json, file = None))]
    fn new(spec_json: &str, file: Option<Py<PyAny>>) -> PyResult<PyClassInitializer<Self>> {
        Ok(TaskHandle::of(MemoryReplay, facade::memory_replay(spec_json, file)?))
    }
}

/// A campaign of the crash laboratory on one host thread: `Campaign(KIND, spec_json)`, KIND being run, trial, adversary,
/// litmus, mutants, mutant, programs, check, faults, agreement or powerfail. Its progress is in transactions, schedules, designs or programs, its result a report.
#[pyclass(frozen, extends = TaskHandle, module = "graven._engine")]
struct Campaign;

#[pymethods]
impl Campaign {
    #[new]
    fn new(kind: &str, spec_json: &str) -> PyResult<PyClassInitializer<Self>> {
        let task = match kind {
            "run" => laboratory::run(spec_json)?,
            "trial" => laboratory::trial(spec_json)?,
            "adversary" => laboratory::adversary(spec_json)?,
            "litmus" => laboratory::litmus_program(spec_json)?,
            "mutants" => laboratory::mutants(spec_json)?,
            "mutant" => laboratory::mutant(spec_json)?,
            "programs" => laboratory::programs(spec_json)?,
            "check" => laboratory::check(spec_json)?,
            "faults" => laboratory::faults(spec_json)?,
            "agreement" => persistency::agreement(spec_json)?,
            "powerfail" => powerfail::powerfail(spec_json)?,
            other => {
                let message = format!(
                    "`{other}` is no campaign; run, trial, adversary, litmus, mutants, mutant, programs, check, faults, agreement and powerfail are"
                );
                return Err(ConfigError::new_err(message));
            }
        };
        Ok(TaskHandle::of(Campaign, task))
    }

    /// Power failures checked so far.
    fn checked(campaign: PyRef<'_, Self>) -> u64 {
        campaign.as_super().control().checked()
    }

    /// Takes the violations that were found since the last call: each in a line, as soon as it is found.
    fn found(campaign: PyRef<'_, Self>) -> Vec<String> {
        campaign.as_super().control().found()
    }

    /// Returns true while the program of a violation is being minimised; a run that is cancelled then takes it as it is.
    fn minimising(campaign: PyRef<'_, Self>) -> bool {
        campaign.as_super().control().minimising()
    }
}

/// A program trace on the machine: `TraceReplay(spec_json)`. Its progress is in transactions committed, its result a
/// record.
#[pyclass(frozen, extends = TaskHandle, module = "graven._engine")]
struct TraceReplay;

#[pymethods]
impl TraceReplay {
    #[new]
    fn new(spec_json: &str) -> PyResult<PyClassInitializer<Self>> {
        Ok(TaskHandle::of(TraceReplay, program_trace::replay(spec_json)?))
    }
}

/// Traces of other tools made program traces, and those traces of ChampSim: `Conversion("import" | "export", spec_json, files)`;
/// traces of requests from one format to another: `Conversion("requests", spec_json, [])`, or with an open file to read from in
/// place of the path; the threads of a file of drmemtrace: `Conversion("threads", spec_json, [file])`. Its progress is in instructions, operations or requests, of 0: their number is known at the end.
#[pyclass(frozen, extends = TaskHandle, module = "graven._engine")]
struct Conversion;

#[pymethods]
impl Conversion {
    #[new]
    fn new(
        kind: &str,
        spec_json: &str,
        mut files: Vec<Py<PyAny>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let task = match (kind, files.pop()) {
            ("import", Some(last)) => {
                files.push(last);
                program_trace::import(spec_json, files)?
            }
            ("export", Some(out)) if files.is_empty() => program_trace::export(spec_json, out)?,
            ("threads", Some(file)) if files.is_empty() => program_trace::threads(spec_json, file)?,
            ("requests", file) if files.is_empty() => request_trace::conversion(spec_json, file)?,
            _ => {
                let message = "a conversion is an import of one or more files, an export to one, or of requests";
                return Err(ConfigError::new_err(message));
            }
        };
        Ok(TaskHandle::of(Conversion, task))
    }
}

/// Assembly of a program trace from the files of `graven capture`'s plugin: `CaptureAssembly(spec_json)`. Its progress is in
/// transactions, of 0; its result a report.
#[pyclass(frozen, extends = TaskHandle, module = "graven._engine")]
struct CaptureAssembly;

#[pymethods]
impl CaptureAssembly {
    #[new]
    fn new(spec_json: &str) -> PyResult<PyClassInitializer<Self>> {
        Ok(TaskHandle::of(CaptureAssembly, capture::assemble(spec_json)?))
    }
}

/// Returns the contents of a program trace, as JSON.
#[pyfunction]
fn trace_info(path: &str) -> PyResult<String> {
    Ok(program_trace::info(path)?)
}

/// Returns the properties of a trace's programs that papers give of theirs, as JSON. Reads all of the trace.
#[pyfunction]
fn trace_properties(py: Python<'_>, path: &str) -> PyResult<String> {
    Ok(py.detach(|| program_trace::properties(path))?)
}

/// Returns how often each kind of entry is in a trace's history, as JSON. Reads all of the history.
#[pyfunction]
fn trace_history_counts(py: Python<'_>, path: &str) -> PyResult<String> {
    Ok(py.detach(|| history::counts(path))?)
}

/// Returns entries of a trace's history, as JSON: `most` from the one of number `first` on, stores and loads only `with_accesses`.
#[pyfunction]
fn trace_history(
    py: Python<'_>,
    path: &str,
    first: u64,
    most: u64,
    with_accesses: bool,
) -> PyResult<String> {
    Ok(py.detach(|| history::entries(path, first, most, with_accesses))?)
}

/// Returns what is careless in a captured program's history, and counts, as JSON. Reads all of the trace.
#[pyfunction]
fn trace_hygiene(py: Python<'_>, path: &str) -> PyResult<String> {
    Ok(py.detach(|| history::hygiene(path))?)
}

/// Everything that can be named: designs, workloads, machines, statistics, parameters; as JSON.
#[pyfunction]
fn catalogue() -> String {
    facade::catalogue()
}

/// Returns the comparison that a machine's file asks for, or the default one; checks settings and variations.
#[pyfunction]
fn comparison(spec_json: &str) -> PyResult<String> {
    Ok(facade::comparison(spec_json)?)
}

/// The files of the papers' experiments and claims, by paper; as JSON.
#[pyfunction]
fn papers() -> String {
    paper_files::texts()
}

/// Returns a digest of the engine's sources, by which builds of the same version differ.
#[pyfunction]
fn build() -> &'static str {
    env!("GRAVEN_BUILD")
}

/// Returns the cost of a design's hardware on a machine: items with formulas, and the numbers that papers print; as JSON.
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
    module.add("RECOVERY_TRANSACTIONS", RECOVERY_TRANSACTIONS)?;
    module.add("MINIMISING_RUNS", MINIMISING_RUNS)?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("TraceError", py.get_type::<TraceError>())?;
    module.add("SimulationError", py.get_type::<SimulationError>())?;
    module.add("Cancelled", py.get_type::<Cancelled>())?;
    module.add_class::<TaskHandle>()?;
    module.add_class::<Simulation>()?;
    module.add_class::<MemoryReplay>()?;
    module.add_class::<Campaign>()?;
    module.add_class::<AdversaryCampaign>()?;
    module.add_class::<TraceReplay>()?;
    module.add_class::<Conversion>()?;
    module.add_class::<CaptureAssembly>()?;
    module.add_function(wrap_pyfunction!(trace_info, module)?)?;
    module.add_function(wrap_pyfunction!(trace_properties, module)?)?;
    module.add_function(wrap_pyfunction!(trace_history_counts, module)?)?;
    module.add_function(wrap_pyfunction!(trace_history, module)?)?;
    module.add_function(wrap_pyfunction!(trace_hygiene, module)?)?;
    module.add_function(wrap_pyfunction!(comparison, module)?)?;
    module.add_function(wrap_pyfunction!(papers, module)?)?;
    module.add_function(wrap_pyfunction!(build, module)?)?;
    module.add_function(wrap_pyfunction!(cost, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue, module)?)
}
