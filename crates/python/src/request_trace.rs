//! The requests of a run, written to a file while it runs, and traces of requests made others of another format. The thread
//! of a recorded request is always 0: it is not known below the caches.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::sync::{Arc, Mutex};

use graven::config::{Config, CoreConfig};
use graven::control::Control;
use graven::controller::Recorder;
use graven::trace::requests::{
    Assumptions, BinaryWriter, Reader, Request, TraceError, Version, Writer,
};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::program_trace::PythonFile;
use crate::seam::{Failure, MachineSpec, Task, parse};

const BUFFER_BYTES: usize = 1 << 20;

/// Requests of a conversion between two checks for its cancellation.
const REQUESTS_PER_LOOK: u64 = 4096;

/// A file of either format.
enum Out {
    NvMain(Writer<BufWriter<File>>),
    Binary(Box<BinaryWriter<BufWriter<File>>>),
}

impl Out {
    /// Creates a file, or empties it: NVMain's text of a version, or a binary trace.
    fn create(path: &str, text: Option<Version>) -> io::Result<Out> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
        Ok(match text {
            Some(version) => Out::NvMain(Writer::of_version(file, version)?),
            None => Out::Binary(Box::new(BinaryWriter::new(file)?)),
        })
    }

    fn write(&mut self, request: impl Into<Request>) -> io::Result<()> {
        match self {
            Out::NvMain(writer) => writer.write(request),
            Out::Binary(writer) => writer.write(request),
        }
    }

    /// Puts everything on disk.
    fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Out::NvMain(writer) => writer.finish(),
            Out::Binary(writer) => writer.finish(),
        }?;
        file.flush().and_then(|()| file.get_ref().sync_all())
    }
}

/// A trace being written. The first error stops it, and is reported by [`RequestTrace::finish`].
pub struct RequestTrace {
    path: String,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Gone once the trace is finished.
    out: Option<Out>,
    outcome: io::Result<()>,
}

impl RequestTrace {
    /// Creates the file, or empties it: a binary trace, or NVMain's text.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: String, is_binary: bool) -> Result<RequestTrace, Failure> {
        let text = (!is_binary).then_some(Version::V1);
        let out = Out::create(&path, text).map_err(|error| failure(&path, &error))?;
        let state = State { out: Some(out), outcome: Ok(()) };
        Ok(RequestTrace { path, state: Arc::new(Mutex::new(state)) })
    }

    /// Takes the requests of a simulation.
    pub fn recorder(&self) -> Recorder {
        let state = Arc::clone(&self.state);
        Box::new(move |record| {
            let state = &mut *state.lock().expect("nothing panics while holding this lock");
            if let (Ok(()), Some(out)) = (&state.outcome, &mut state.out) {
                state.outcome = out.write(record);
            }
        })
    }

    /// Puts everything on disk.
    ///
    /// # Errors
    /// The file could not be written, now or earlier.
    pub fn finish(self) -> Result<(), Failure> {
        let state = &mut *self.state.lock().expect("nothing panics while holding this lock");
        let out = state.out.take().expect("a trace is finished once");
        std::mem::replace(&mut state.outcome, Ok(()))
            .and_then(|()| out.finish())
            .map_err(|error| failure(&self.path, &error))
    }
}

fn failure(path: &str, error: &io::Error) -> Failure {
    Failure::Simulation(format!("cannot write {path}: {error}"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConversionSpec {
    trace: String,
    out: String,
    is_binary: bool,
    /// The machine whose core's clock cycles are converted to.
    #[serde(default)]
    machine: Option<MachineSpec>,
    #[serde(default)]
    clock_hz: Option<u64>,
    #[serde(default)]
    levels: Vec<u64>,
    #[serde(default)]
    relative: bool,
}

/// Assumptions about a trace whose requests a machine gets.
pub fn assumptions(config: &Config, assumptions: Assumptions) -> Assumptions {
    let core_hz = u64::from(config.get::<CoreConfig>().frequency_mhz) * 1_000_000;
    Assumptions { core_hz: Some(core_hz), ..assumptions }
}

/// The bytes of a trace.
pub type Source = Box<dyn Read + Send>;

/// A trace to be read: an open file of Python's if there is one, as of what is compressed; otherwise the file of the path.
///
/// # Errors
/// There is no such file.
pub fn source(path: &str, file: Option<Py<PyAny>>) -> Result<Source, Failure> {
    Ok(match file {
        Some(file) => Box::new(PythonFile::of(file)),
        None => Box::new(File::open(path).map_err(|error| refused(path, error))?),
    })
}

/// Puts into a result what a user should know of the trace that was read, if there is anything.
pub fn note<R: Read>(found: &mut Value, reader: &Reader<R>) {
    let mut notes = Vec::new();
    if reader.is_untimed() {
        notes.push("requests have no times: one is offered in each cycle".to_owned());
    }
    if reader.data_left_out() > 0 {
        let count = reader.data_left_out();
        notes.push(format!("data of writes that are not a whole line are left out: {count}"));
    }
    if let Some(out) = reader.left_out() {
        notes.push(format!(
            "packets that neither read nor write memory are left out: {}, the first at byte {} (command {})",
            out.packets, out.first_byte, out.first_command
        ));
    }
    if reader.left_out_first() {
        notes.push(
            "without a first line NVMV0 or NVMV1 the first request is left out, as by NVMain"
                .to_owned(),
        );
    }
    if let Some(words) = reader.other_words() {
        notes.push(format!(
            "requests that are neither READ nor WRITE are taken for reads, as by DRAMsim3: {}, the first in line {} ({})",
            words.lines, words.first_line, words.first
        ));
    }
    if !notes.is_empty() {
        found["notes"] = json!(notes);
    }
}

/// A trace of requests made one of another format: binary, or NVMain's text.
///
/// # Errors
/// The specification is not as agreed, or there is no such trace.
pub fn conversion(spec_json: &str, file: Option<Py<PyAny>>) -> Result<Task, Failure> {
    let given: ConversionSpec = parse(spec_json)?;
    let source = source(&given.trace, file)?;
    let assumed = Assumptions {
        clock_hz: given.clock_hz,
        levels: given.levels.clone(),
        are_relative: given.relative,
        ..Assumptions::default()
    };
    let assumptions = match &given.machine {
        Some(machine) => assumptions(&machine.config(&[])?, assumed),
        None => assumed,
    };
    Ok(Task::new(move |watch| {
        let control = watch.begin(0)?;
        convert(&given, Reader::assuming(source, assumptions), &control)
    }))
}

fn refused(path: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Trace(format!("{path}: {error}"))
}

fn convert(
    given: &ConversionSpec,
    mut reader: Reader<Source>,
    control: &Control,
) -> Result<Value, Failure> {
    let ConversionSpec { trace, out: path, is_binary, .. } = given;
    let mut next = || reader.next().transpose().map_err(|error| refused(trace, error));
    let unwritten = |error: io::Error| failure(path, &error);
    let first = next()?.ok_or_else(|| refused(trace, TraceError::Empty))?;
    let version = Version::of_content(&first.content);
    if !is_binary && version.is_none() {
        return Err(refused(trace, NO_CONTENT));
    }
    let text = if *is_binary { None } else { version };
    let mut out = Out::create(path, text).map_err(unwritten)?;
    let mut requests = 0u64;
    let mut request = Some(first);
    while let Some(this) = request {
        if !is_binary && Version::of_content(&this.content) != version {
            let place = requests + 1;
            return Err(refused(trace, format!("request {place}: {OTHER_CONTENT}")));
        }
        out.write(this).map_err(unwritten)?;
        requests += 1;
        if requests.is_multiple_of(REQUESTS_PER_LOOK) && control.report(requests) {
            return Err(Failure::Cancelled);
        }
        request = next()?;
    }
    out.finish().map_err(unwritten)?;
    let mut found = json!({ "requests": requests });
    note(&mut found, &reader);
    Ok(found)
}

/// Why a trace cannot be NVMain's.
const NO_CONTENT: &str = "its requests have no data, which NVMain's format must have";
/// Why a trace cannot be NVMain's whose requests differ.
const OTHER_CONTENT: &str =
    "it has other data, old or new, than the first; in NVMain's format all have the same";
