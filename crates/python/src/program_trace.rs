//! Program traces' side of the seam: recording into a file, replays, what is in a trace, and traces of other tools.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::sync::Arc;

use graven::config::{Config, ConfigError};
use graven::control::Control;
use graven::sim::{Programs, Simulation, Spec};
use graven::trace::champsim::{self, Layout, Part};
use graven::trace::imports::{self, Format, How, Oddities};
use graven::trace::program::{Reader, Recorder, Replay, TraceError, UNREGISTERED};
use graven::workload::WorkloadInfo;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::seam::{Failure, MachineSpec, Task, parse, registry};
use crate::verification::{Asked, Verification};

/// Bytes that are read or written at a time.
const BUFFER_BYTES: usize = 1 << 18;

/// Returns the failure for an error of the trace at a path.
pub fn failure(path: &str, error: TraceError) -> Failure {
    match error {
        TraceError::Cancelled => Failure::Cancelled,
        TraceError::Config(error) => error.into(),
        TraceError::Simulation(error) => error.into(),
        outside @ TraceError::OutsideTransactions { .. } => {
            Failure::Simulation(outside.to_string())
        }
        other => Failure::Trace(format!("{path}: {other}")),
    }
}

fn unwritten(path: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Simulation(format!("cannot write {path}: {error}"))
}

/// A file to write.
///
/// # Errors
/// It cannot be created.
pub fn create(path: &str) -> Result<BufWriter<File>, Failure> {
    let file = File::create(path).map_err(|e| unwritten(path, e))?;
    Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
}

/// Puts a file on disk.
///
/// # Errors
/// It cannot be written.
pub fn keep(path: &str, file: BufWriter<File>) -> Result<(), Failure> {
    let file = file.into_inner().map_err(|e| unwritten(path, e))?;
    file.sync_all().map_err(|e| unwritten(path, e))
}

/// Opens a trace.
///
/// # Errors
/// It cannot be read, or is none.
pub fn open(path: &str) -> Result<Reader<File>, Failure> {
    let file = File::open(path).map_err(|e| Failure::Trace(format!("{path}: {e}")))?;
    // Without a buffer: blocks are read whole.
    Reader::open(file).map_err(|e| failure(path, e))
}

/// A simulation that is recorded into a file.
pub struct Recording {
    path: String,
    recorder: Recorder<BufWriter<File>>,
}

impl Recording {
    /// A simulation of a specification, and the recording of what its programs do.
    ///
    /// # Errors
    /// The file cannot be written; parameters that do not fit.
    pub fn begin(spec: &Spec, path: String) -> Result<(Recording, Simulation), Failure> {
        let recorder = Recorder::new(spec, create(&path)?).map_err(|e| unwritten(&path, e))?;
        let workload = recorder.workload(spec.build_workload()?);
        let simulation = Simulation::with_workload(spec, workload)?;
        Ok((Recording { path, recorder }, simulation))
    }

    /// Ends the trace and puts it on disk.
    ///
    /// # Errors
    /// The file could not be written, now or earlier.
    pub fn finish(self) -> Result<(), Failure> {
        let file = self.recorder.finish().map_err(|e| unwritten(&self.path, e))?;
        keep(&self.path, file)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TraceReplaySpec {
    trace: String,
    design: Option<String>,
    machine: Option<MachineSpec>,
    set: Vec<(String, String)>,
}

impl TraceReplaySpec {
    fn replay(&self) -> Result<Replay<File>, Failure> {
        let machine = self.machine.as_ref().map(|machine| machine.config(&[])).transpose()?;
        let (reader, design) = (open(&self.trace)?, self.design.as_deref());
        Replay::new(registry(), reader, design, machine, &self.set)
            .map_err(|e| failure(&self.trace, e))
    }
}

/// A replay from its specification; trace and machine are checked against each other, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn replay(spec_json: &str) -> Result<Task, Failure> {
    let given: TraceReplaySpec = parse(spec_json)?;
    given.replay()?;
    Ok(Task::new(move |watch| {
        let replay = given.replay()?;
        let control = watch.begin(replay.spec().transactions)?;
        replay.run(&control).map_err(|e| failure(&given.trace, e))
    }))
}

/// Ending of the names of program traces that stand for workloads.
const ENDING: &str = ".gvt";

/// Returns the specification of a simulation, of the workload with this name or, if the name ends as a trace's does, of the
/// trace's programs.
///
/// # Errors
/// Names what was refused and what is allowed; a trace that is broken, or does not fit the machine.
pub fn spec_of(
    config: Config,
    design: &str,
    workload: &str,
    threads: Option<u64>,
    transactions: Option<u64>,
    seed: u64,
) -> Result<Spec, Failure> {
    if !workload.ends_with(ENDING) {
        return Ok(registry().spec(config, design, workload, threads, transactions, seed)?);
    }
    for (name, given) in [("threads", threads), ("transactions", transactions)] {
        if let Some(value) = given {
            let message =
                format!("{name}: {value} is not allowed with {workload}: a trace has its own");
            return Err(Failure::Config(message));
        }
    }
    let of_trace = |error| failure(workload, error);
    let reader = open(workload)?;
    let replay =
        Replay::new(registry(), reader, Some(design), Some(config), &[]).map_err(of_trace)?;
    replay.verify(&Control::default()).map_err(of_trace)?;
    let name = Path::new(workload).file_stem().and_then(|stem| stem.to_str());
    let info = WorkloadInfo { name: leaked(name.unwrap_or("trace")), ..UNREGISTERED };
    let (path, design) = (workload.to_owned(), replay.spec().design.name);
    let config = replay.spec().config.clone();
    let programs = Programs::new(move || {
        let refused = |why: String| ConfigError::Inconsistent {
            origin: "a trace".into(),
            key: "workload".into(),
            value: path.clone(),
            why,
        };
        let reader = File::open(&path).map_err(|e| refused(e.to_string()))?;
        let reader = Reader::open(reader).map_err(|e| refused(e.to_string()))?;
        let replay = Replay::new(registry(), reader, Some(design), Some(config.clone()), &[]);
        let replay = replay.map_err(|e| refused(e.to_string()))?;
        replay.workload().map_err(|e| refused(e.to_string()))
    });
    let mut spec = Spec {
        workload: Box::leak(Box::new(info)),
        programs: Some(programs),
        ..replay.spec().clone()
    };
    spec.seed = seed;
    Ok(spec)
}

/// The same with a command that checks the recovered files of a captured program.
///
/// # Errors
/// It is no trace of a captured program; the command names no files; the machine has no room for the lengths of files.
pub fn verified(
    mut spec: Spec,
    workload: &str,
    asked: Asked,
) -> Result<(Spec, Arc<Verification>), Failure> {
    if !["{image}", "{folder}"].iter().any(|place| asked.command.contains(place)) {
        return Err(Failure::Config(format!(
            "verify: `{}` looks at no recovered file; allowed: a command with {{image}}, the first file, or {{folder}}, where \
             all are",
            asked.command
        )));
    }
    let no_files = || {
        let message = format!(
            "verify: {workload} has no files to verify; allowed: traces of captured programs (graven capture)"
        );
        Failure::Config(message)
    };
    let programs = spec.programs.take().ok_or_else(no_files)?;
    let reader = open(workload)?;
    let contents = reader.contents();
    let capture = contents.header.capture.as_ref().ok_or_else(no_files)?;
    let changes = reader.lengths().map_err(|e| failure(workload, e))?;
    let end = contents.threads.iter().map(|thread| thread.end).max().unwrap_or(0);
    let verification = Verification::of(asked, capture, changes, contents.header.threads, end);
    let verification = Arc::new(verification.ok_or_else(no_files)?);
    let room = spec.data_region().1;
    if verification.end() > room.0 {
        return Err(Failure::Config(format!(
            "verify: the lengths of the files of {workload} need PM up to {:#x}, and data lie below {room}; a larger \
             pm.capacity_bytes would do",
            verification.end()
        )));
    }
    spec.programs = Some(verification.of_programs(programs));
    Ok((spec, verification))
}

/// Returns true if a trace of a captured program has the lengths of its files.
///
/// # Errors
/// It is no whole trace.
pub fn knows_lengths(workload: &str) -> Result<bool, Failure> {
    let reader = open(workload)?;
    let capture = reader.contents().header.capture.as_ref();
    let regions = capture.and_then(|capture| capture["report"]["regions"].as_array());
    Ok(regions.is_some_and(|all| all.iter().all(|region| region["file_bytes"].is_u64())))
}

/// A name that lives as long as the process: there are as many as traces.
fn leaked(name: &str) -> &'static str {
    Box::leak(name.to_owned().into_boxed_str())
}

/// Returns the contents of a trace, as JSON: its header, `bytes`, `blocks`, `populated_words`, `populated_bytes`, and numbers for
/// each of its `summaries`.
///
/// # Errors
/// It is no whole trace.
pub fn info(path: &str) -> Result<String, Failure> {
    Ok(contents(path)?.to_string())
}

fn contents(path: &str) -> Result<Value, Failure> {
    let reader = open(path)?;
    let contents = reader.contents();
    Ok(json!({
        "header": contents.header.to_json(),
        "bytes": contents.bytes,
        "blocks": contents.blocks(),
        "populated_words": contents.picture_words,
        "populated_bytes": contents.picture_bytes,
        "summaries": contents.threads,
    }))
}

/// A binary file of Python's to read from or write to: compressed files are Python's matter.
pub struct PythonFile(Py<PyAny>);

impl PythonFile {
    /// An open file.
    pub fn of(file: Py<PyAny>) -> PythonFile {
        PythonFile(file)
    }
}

impl Read for PythonFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let chunk = self.0.bind(py).call_method1("read", (out.len(),))?;
            let bytes = chunk.cast::<PyBytes>().map_err(PyErr::from)?.as_bytes();
            let taken = bytes.len().min(out.len());
            out[..taken].copy_from_slice(&bytes[..taken]);
            Ok(taken)
        })
        .map_err(said)
    }
}

impl Write for PythonFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            self.0.bind(py).call_method1("write", (PyBytes::new(py, bytes),))?;
            Ok(bytes.len())
        })
        .map_err(said)
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| self.0.bind(py).call_method0("flush").map(|_| ())).map_err(said)
    }
}

/// The message of an exception.
fn said(error: PyErr) -> io::Error {
    io::Error::other(Python::attach(|py| error.value(py).to_string()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportSpec {
    /// Names of the files in messages.
    names: Vec<String>,
    out: String,
    #[serde(default)]
    format: FormatSpec,
    transaction_stores: Option<u32>,
    instructions: Option<u64>,
    #[serde(default)]
    layout: Option<LayoutSpec>,
    /// The thread that is taken of each file of drmemtrace.
    #[serde(default)]
    threads: Vec<Option<u64>>,
}

/// A format of program traces of others as a specification names it.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormatSpec {
    #[default]
    ChampSim,
    Lackey,
    DrMemtrace,
    Ramulator,
    Usimm,
}

impl ImportSpec {
    fn format(&self) -> Format<'_> {
        match self.format {
            FormatSpec::ChampSim => Format::ChampSim(self.layout.map(Layout::from)),
            FormatSpec::Lackey => Format::Lackey,
            FormatSpec::DrMemtrace => Format::DrMemtrace(&self.threads),
            FormatSpec::Ramulator => Format::Ramulator,
            FormatSpec::Usimm => Format::Usimm,
        }
    }
}

/// A layout as a specification names it.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum LayoutSpec {
    ChampSim,
    CloudSuite,
}

impl From<LayoutSpec> for Layout {
    fn from(spec: LayoutSpec) -> Layout {
        match spec {
            LayoutSpec::ChampSim => Layout::ChampSim,
            LayoutSpec::CloudSuite => Layout::CloudSuite,
        }
    }
}

/// Returns the properties of a trace's programs, as JSON.
///
/// # Errors
/// It is no whole trace.
pub fn properties(path: &str) -> Result<String, Failure> {
    let found = open(path)?.properties(&Control::default()).map_err(|e| failure(path, e))?;
    Ok(found.to_string())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportSpec {
    trace: String,
    thread: u32,
    first_transaction: u64,
    transactions: Option<u64>,
}

/// Traces of other tools made a program trace: `sources` are their files.
///
/// # Errors
/// The specification is not as agreed.
pub fn import(spec_json: &str, sources: Vec<Py<PyAny>>) -> Result<Task, Failure> {
    let given: ImportSpec = parse(spec_json)?;
    let mut sources: Vec<PythonFile> = sources.into_iter().map(PythonFile).collect();
    Ok(Task::new(move |watch| {
        let control = watch.begin(0)?;
        let ImportSpec { names, out, transaction_stores, instructions, .. } = &given;
        let how = How { transaction_stores: *transaction_stores, instructions: *instructions };
        let made = imports::import(&mut sources, given.format(), how, create(out)?, &control);
        let made = made.map_err(|e| failure(&names.join(", "), e))?;
        keep(out, made.out)?;
        let mut found = contents(out)?;
        found["source_instructions"] = json!(made.instructions);
        let notes = notes(made.oddities);
        if !notes.is_empty() {
            found["notes"] = json!(notes);
        }
        Ok(found)
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadsSpec {
    /// Name of the file in messages.
    name: String,
}

/// The threads of a file of drmemtrace.
///
/// # Errors
/// The specification is not as agreed.
pub fn threads(spec_json: &str, source: Py<PyAny>) -> Result<Task, Failure> {
    let ThreadsSpec { name } = parse(spec_json)?;
    let mut source = PythonFile(source);
    Ok(Task::new(move |watch| {
        let control = watch.begin(0)?;
        let found = imports::drmemtrace_threads(&mut source, &control);
        Ok(json!({ "threads": found.map_err(|e| failure(&name, e))? }))
    }))
}

/// A thread of a program trace made one of ChampSim's: `out` is its file.
///
/// # Errors
/// The specification is not as agreed, or the trace is none.
pub fn export(spec_json: &str, out: Py<PyAny>) -> Result<Task, Failure> {
    let given: ExportSpec = parse(spec_json)?;
    open(&given.trace)?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, PythonFile(out));
    Ok(Task::new(move |watch| {
        let control = watch.begin(0)?;
        let ExportSpec { trace, thread, first_transaction, transactions } = given;
        let part = Part { thread, first_transaction, transactions };
        let instructions = champsim::export(&open(&trace)?, part, &mut out, &control);
        let instructions = instructions.map_err(|e| failure(&trace, e))?;
        out.flush().map_err(|e| unwritten("the trace for ChampSim", e))?;
        Ok(json!({ "instructions": instructions }))
    }))
}

/// Sentences for the user about the sources of an import.
fn notes(oddities: Oddities) -> Vec<String> {
    let Oddities {
        register_stores,
        without_ip,
        prefetches,
        flushes,
        unsized_accesses,
        filtered_files,
    } = oddities;
    let counts = [
        (register_stores, "stores below address 256, which are numbers of registers, are left out"),
        (
            without_ip,
            "instructions have address 0, at which older versions of ChampSim end a trace",
        ),
        (prefetches, "prefetches are left out"),
        (flushes, "flushes of caches are left out"),
        (unsized_accesses, "accesses have no size, and are taken for one word each"),
        (filtered_files, "files lack accesses or instructions, which the tracer left out"),
    ];
    let odd = counts.into_iter().filter(|(count, _)| *count > 0);
    odd.map(|(count, what)| format!("{what}: {count}")).collect()
}
