//! Simulations, replays, comparisons, costs and the catalogue: specifications from JSON, records to JSON. All files are
//! opened here, since the simulator does no I/O.

use std::fs;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use graven::catalogue::{self, Catalogue};
use graven::config::{ConfigError, validate};
use graven::cost::Sheet;
use graven::recovery;
use graven::sim::{Beginning, Others, Simulation, Spec, in_pieces};
use graven::trace::requests::replay::Replay;
use graven::trace::requests::{Assumptions, Reader, TraceError};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::program_trace::{Recording, spec_of};
use crate::request_trace::{self, RequestTrace};
use crate::seam::{Failure, MachineSpec, Task, TaskControl, parse, registry};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulationSpec {
    design: String,
    workload: String,
    machine: MachineSpec,
    threads: Option<u64>,
    transactions: Option<u64>,
    seed: u64,
    set: Vec<(String, String)>,
    /// Key, value and origin of what is varied.
    #[serde(default)]
    vary: Vec<(String, String, String)>,
    request_trace: Option<String>,
    /// The request trace is a binary one, not NVMain's text.
    #[serde(default)]
    binary_requests: bool,
    bank_loads: Option<String>,
    timeline: Option<TimelineSpec>,
    #[serde(default)]
    program_trace: Option<String>,
}

impl SimulationSpec {
    /// Files that follow a run from its beginning to its end.
    fn files(&self) -> impl Iterator<Item = &'static str> {
        let timeline = self.timeline.as_ref().map(|timeline| &timeline.file);
        let files = [
            ("request_trace", self.request_trace.as_ref()),
            ("bank_loads", self.bank_loads.as_ref()),
            ("timeline", timeline),
            ("program_trace", self.program_trace.as_ref()),
        ];
        files.into_iter().filter_map(|(name, file)| file.map(|_| name))
    }
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimelineSpec {
    file: String,
    /// Numbers of the first and of the last transaction, in the order in which those of all threads begin. None: some
    /// in the middle of the run.
    transactions: Option<(u64, u64)>,
}

/// Most transactions that a timeline may be about: their events are kept in memory.
const TIMELINE_MAX: u64 = 10_000;

/// Transactions of each thread that it is about if nothing else is asked for.
const TIMELINE_PER_THREAD: u64 = 2;

impl TimelineSpec {
    /// The numbers of its transactions.
    fn range(&self, spec: &Spec) -> Result<Range<u64>, ConfigError> {
        let all = spec.transactions;
        let Some((first, last)) = self.transactions else {
            let first = all / 2;
            let count = (TIMELINE_PER_THREAD * u64::from(spec.threads)).min(all - first);
            return Ok(first..first + count);
        };
        if first > last || last >= all || last - first >= TIMELINE_MAX {
            let given = format!("{first}-{last}").into();
            let allowed = format!("FIRST-LAST, of 0 to {}, at most {TIMELINE_MAX}", all - 1);
            return Err(ConfigError::value("timeline", "transactions", &given, &allowed));
        }
        Ok(first..last + 1)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComparisonSpec {
    machine: MachineSpec,
    set: Vec<(String, String)>,
    vary: Option<Vec<(String, Vec<String>)>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CostSpec {
    design: String,
    /// None: that of the design's paper.
    machine: Option<MachineSpec>,
    set: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplaySpec {
    trace: String,
    /// Addresses of the trace are the DRAM's.
    #[serde(default)]
    dram: bool,
    machine: MachineSpec,
    set: Vec<(String, String)>,
    #[serde(default)]
    clock_hz: Option<u64>,
    #[serde(default)]
    levels: Vec<u64>,
    #[serde(default)]
    relative: bool,
}

/// A simulation from its specification; everything is checked here, nothing runs. The machine is built and populated only when
/// it runs, so that hundreds of tasks may wait without taking memory.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn simulation(spec_json: &str) -> Result<Task, Failure> {
    let mut given: SimulationSpec = parse(spec_json)?;
    let mut config = given.machine.config(&given.set)?;
    for (key, value, origin) in &given.vary {
        config.set_by(origin, key, value)?;
    }
    let (threads, transactions) = (given.threads, given.transactions);
    let spec = spec_of(config, &given.design, &given.workload, threads, transactions, given.seed)?;
    spec.check()?;
    if let (2.., Some(file)) = (spec.pieces(), given.files().next()) {
        let why = format!("{file} follows one run, and there is one for each piece");
        return Err(spec.config.inconsistent(&["region.pieces"], why).into());
    }
    let timeline = given.timeline.take().map(|timeline| {
        let range = timeline.range(&spec)?;
        Ok::<_, ConfigError>((timeline.file, range))
    });
    let timeline = timeline.transpose()?;
    let beginning = Beginning::of(&spec);
    // Weakly: whoever holds a beginning counts as one that begins alike.
    let (needed, held) = (spec.clone(), beginning.as_ref().map(Arc::downgrade));
    let task = Task::new(move |watch| match spec.pieces() {
        1 => simulate(&spec, beginning, given, timeline, watch),
        _ => simulate_pieces(&spec, beginning.as_ref(), watch),
    });
    Ok(task.needing(move |threads| {
        let at_a_time = threads.min(needed.pieces() as usize) as u64;
        let held = held.as_ref().is_some_and(|beginning| beginning.strong_count() > 1);
        let begin_alike = held || at_a_time > 1;
        let each = memory_bytes(&needed, Others { begin_alike, ..Others::default() });
        each.saturating_mul(at_a_time)
    }))
}

/// Runs a simulation. `beginning`: how it begins, together with others that wait and begin alike; `timeline`: a file for what
/// happens while some transactions run, and which.
fn simulate(
    spec: &Spec,
    beginning: Option<Arc<Beginning>>,
    given: SimulationSpec,
    timeline: Option<(String, Range<u64>)>,
    watch: &TaskControl,
) -> Result<Value, Failure> {
    let (recording, mut simulation) = match given.program_trace {
        None => (None, Simulation::begun(spec, beginning)?),
        Some(path) => {
            let (recording, simulation) = Recording::begin(spec, path)?;
            (Some(recording), simulation)
        }
    };
    watch.follow(simulation.control(), spec.expected_work())?;
    let create = |path| RequestTrace::create(path, given.binary_requests);
    let trace = given.request_trace.map(create).transpose()?;
    if let Some(trace) = &trace {
        simulation.machine_mut().memory.record_requests(trace.recorder());
    }
    if given.bank_loads.is_some() {
        simulation.keep_bank_loads();
    }
    if let Some((_, transactions)) = &timeline {
        simulation.keep_timeline(transactions.clone());
    }
    let digest = simulation.run()?;
    if let Some(path) = &given.bank_loads {
        write_file(path, |to| simulation.stats().bank_loads.write_series(to))?;
    }
    if let Some((path, _)) = &timeline {
        write_file(path, |to| simulation.write_timeline(to))?;
    }
    if let Some(trace) = trace {
        trace.finish()?;
    }
    if let Some(recording) = recording {
        recording.finish()?;
    }
    let mut record = simulation.record(digest);
    let again = || Simulation::new(spec).map_err(Failure::from);
    recovery::add_to_record(&mut record, &simulation, again, &simulation.control())?;
    Ok(record)
}

/// Runs a simulation in pieces.
fn simulate_pieces(
    spec: &Spec,
    beginning: Option<&Arc<Beginning>>,
    watch: &TaskControl,
) -> Result<Value, Failure> {
    let control = watch.begin(spec.expected_work())?;
    Ok(in_pieces::<Failure>(spec, beginning, watch.threads(), &control)?.record())
}

/// Writes a file whole.
fn write_file(
    path: &str,
    write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    write(&mut bytes)
        .and_then(|()| fs::write(path, &bytes))
        .map_err(|error| Failure::Simulation(format!("cannot write {path}: {error}")))
}

/// Memory of the host that a specification needs that was checked, at most, in bytes.
pub fn memory_bytes(spec: &Spec, others: Others) -> u64 {
    spec.host_memory(others).map_or(0, |memory| memory.total())
}

/// A replay from its specification; the machine is checked and the trace opened, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn memory_replay(spec_json: &str, file: Option<Py<PyAny>>) -> Result<Task, Failure> {
    let given: ReplaySpec = parse(spec_json)?;
    let config = given.machine.config(&given.set)?;
    validate(&config)?;
    let source = request_trace::source(&given.trace, file)?;
    let assumptions = Assumptions {
        clock_hz: given.clock_hz,
        levels: given.levels.clone(),
        are_relative: given.relative,
        ..Assumptions::default()
    };
    let assumptions = request_trace::assumptions(&config, assumptions);
    Ok(Task::new(move |watch| {
        let replay = if given.dram { Replay::of_dram(&config) } else { Replay::new(&config) };
        // How many requests there are is known only at the end.
        watch.follow(replay.control(), 0)?;
        let mut reader = Reader::assuming(source, assumptions);
        match replay.run(&mut reader) {
            Ok(record) => {
                let mut found = record.to_json();
                request_trace::note(&mut found, &reader);
                Ok(found)
            }
            Err(TraceError::Cancelled) => Err(Failure::Cancelled),
            Err(error) => Err(Failure::Trace(format!("{}: {error}", given.trace))),
        }
    }))
}

/// Returns the comparison that a machine's file asks for, or the default one, as JSON; checks settings and variations.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn comparison(spec_json: &str) -> Result<String, Failure> {
    let given: ComparisonSpec = parse(spec_json)?;
    let config = given.machine.config(&given.set)?;
    let found = given.machine.read()?.comparison;
    let found = found.with(&config, &given.set, given.vary.as_deref())?;
    Ok(catalogue::comparison(&found).to_string())
}

/// Returns the cost of a design's hardware on a machine, as JSON.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn cost(spec_json: &str) -> Result<String, Failure> {
    let given: CostSpec = parse(spec_json)?;
    let entry = registry().find_design(&given.design)?;
    let own = || MachineSpec::Preset { preset: entry.cost.machine.into() };
    let config = given.machine.unwrap_or_else(own).config(&given.set)?;
    Ok(Sheet::of(registry(), entry, config)?.to_json().to_string())
}

/// Everything that can be named, as JSON.
pub fn catalogue() -> String {
    serde_json::to_string(&Catalogue::of(registry()))
        .expect("names, texts and numbers can be written")
}
