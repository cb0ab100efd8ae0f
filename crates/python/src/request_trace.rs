//! The requests of a run, written to a file while it runs, and traces of requests made others of another format. The thread
//! of a recorded request is always 0: it is not known below the caches.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::sync::{Arc, Mutex};

use graven::config::{Config, CoreConfig};
use graven::control::Control;
use graven::controller::Recorder;
use graven::trace::requests::{
    Assumptions, Clock, Exporter, Format, Lost, Reader, TraceError, Version,
};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::program_trace::PythonFile;
use crate::seam::{Failure, MachineSpec, Task, parse};

const BUFFER_BYTES: usize = 1 << 20;

/// Requests of a conversion between two checks for its cancellation.
const REQUESTS_PER_LOOK: u64 = 4096;

/// A file that is written.
type Sink = BufWriter<File>;

/// Creates a file, or empties it.
fn create(path: &str) -> io::Result<Sink> {
    Ok(BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?))
}

/// Puts everything on disk.
fn on_disk(mut file: Sink) -> io::Result<()> {
    file.flush().and_then(|()| file.get_ref().sync_all())
}

/// A trace being written. The first error stops it, and is reported by [`RequestTrace::finish`].
pub struct RequestTrace {
    path: String,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Gone once the trace is finished.
    out: Option<Exporter<Sink>>,
    outcome: io::Result<()>,
}

impl RequestTrace {
    /// Creates the file, or empties it: a binary trace, or NVMain's text.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: String, is_binary: bool) -> Result<RequestTrace, Failure> {
        let format = if is_binary { Format::Binary } else { Format::NvMain };
        // All requests of a run have old and new data.
        let out = create(&path).and_then(|file| Exporter::new(file, format, Version::V1, None));
        let out = out.map_err(|error| failure(&path, &error))?;
        let state = State { out: Some(out), outcome: Ok(()) };
        Ok(RequestTrace { path, state: Arc::new(Mutex::new(state)) })
    }

    /// Takes the requests of a simulation.
    pub fn recorder(&self) -> Recorder {
        let state = Arc::clone(&self.state);
        Box::new(move |record| {
            let state = &mut *state.lock().expect("nothing panics while holding this lock");
            if let (Ok(()), Some(out)) = (&state.outcome, &mut state.out) {
                state.outcome = out.write(record.into()).map(drop);
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
            .and_then(on_disk)
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
    /// Name of the format that is written.
    format: String,
    /// The machine whose core's clock the trace's cycles are converted to.
    machine: MachineSpec,
    #[serde(default)]
    clock_hz: Option<u64>,
    /// The clock of the cycles that are written; the core's if not given.
    #[serde(default)]
    to_clock_hz: Option<u64>,
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
    put_notes(found, notes(reader));
}

fn put_notes(found: &mut Value, notes: Vec<String>) {
    if !notes.is_empty() {
        found["notes"] = json!(notes);
    }
}

/// Remarks on a trace that was read.
fn notes<R: Read>(reader: &Reader<R>) -> Vec<String> {
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
    notes
}

/// A trace of requests made one of another format.
///
/// # Errors
/// The specification is not as agreed, or there is no such trace.
pub fn conversion(spec_json: &str, file: Option<Py<PyAny>>) -> Result<Task, Failure> {
    let given: ConversionSpec = parse(spec_json)?;
    let format = Format::named(&given.format).ok_or_else(|| {
        let names = Format::ALL.map(|(name, _)| name).join(", ");
        Failure::Config(format!("format: {} is none of {names}", given.format))
    })?;
    if given.to_clock_hz.is_some() && (format.clock_hz().is_some() || !format.has_times()) {
        let why = if format.has_times() { "has ticks of its own" } else { "has no times" };
        return Err(Failure::Config(format!("to_clock: the format {} {why}", given.format)));
    }
    let source = source(&given.trace, file)?;
    let assumed = Assumptions {
        clock_hz: given.clock_hz,
        levels: given.levels.clone(),
        are_relative: given.relative,
        ..Assumptions::default()
    };
    let assumptions = assumptions(&given.machine.config(&[])?, assumed);
    let trace_hz = format.clock_hz().or(given.to_clock_hz);
    let clock = trace_hz.zip(assumptions.core_hz);
    let clock = clock.map(|(trace_hz, core_hz)| Clock { trace_hz, core_hz });
    Ok(Task::new(move |watch| {
        let control = watch.begin(0)?;
        convert(&given, format, clock, Reader::assuming(source, assumptions), &control)
    }))
}

fn refused(path: &str, error: impl std::fmt::Display) -> Failure {
    Failure::Trace(format!("{path}: {error}"))
}

fn convert(
    given: &ConversionSpec,
    format: Format,
    clock: Option<Clock>,
    mut reader: Reader<Source>,
    control: &Control,
) -> Result<Value, Failure> {
    let ConversionSpec { trace, out: path, .. } = given;
    let mut next = || reader.next().transpose().map_err(|error| refused(trace, error));
    let unwritten = |error: io::Error| failure(path, &error);
    let first = next()?.ok_or_else(|| refused(trace, TraceError::Empty))?;
    // As much data as the first request has.
    let version = Version::of_content(&first.content).unwrap_or(Version::V0);
    let file = create(path).map_err(unwritten)?;
    let mut out = Exporter::new(file, format, version, clock).map_err(unwritten)?;
    let mut requests = 0u64;
    let mut request = Some(first);
    while let Some(this) = request {
        requests += 1;
        if !out.write(this).map_err(unwritten)? {
            let why = "its cycle is 2^62 or later by the clock of the other format";
            return Err(refused(trace, format!("request {requests}: {why}")));
        }
        if requests.is_multiple_of(REQUESTS_PER_LOOK) && control.report(requests) {
            return Err(Failure::Cancelled);
        }
        request = next()?;
    }
    let lost = out.lost();
    out.finish().and_then(on_disk).map_err(unwritten)?;
    let mut found = json!({ "requests": requests });
    let mut notes = notes(&reader);
    notes.extend(notes_of_lost(lost, format));
    put_notes(&mut found, notes);
    Ok(found)
}

/// Remarks on what the format of a trace that was written cannot say.
fn notes_of_lost(lost: Lost, format: Format) -> impl Iterator<Item = String> {
    let times = (!format.has_times()).then(|| "times are left out: the format has none".to_owned());
    let counted = [
        (lost.data, "data that the format cannot say are left out: of"),
        (lost.zeros, "data that are not known are written as zeros: of"),
        (lost.threads, "threads are left out: of"),
    ];
    let counted = counted.into_iter().filter(|(requests, _)| *requests > 0);
    times.into_iter().chain(counted.map(|(requests, text)| format!("{text} {requests} requests")))
}
