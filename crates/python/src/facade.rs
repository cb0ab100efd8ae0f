//! Simulations, replays, comparisons, costs and the catalogue: specifications from JSON, records to JSON. All files are
//! opened here, since the simulator does no I/O.

use std::fs::{self, File};
use std::sync::Arc;

use graven::config::{Config, validate};
use graven::cost::Sheet;
use graven::recovery;
use graven::sim::{Beginning, Others, Simulation, Spec};
use graven::trace::requests::replay::Replay;
use graven::trace::requests::{Reader, TraceError};
use serde::Deserialize;

use crate::program_trace::{Recording, spec_of};
use crate::request_trace::RequestTrace;
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
    /// Whether that is a binary trace, or NVMain's text.
    #[serde(default)]
    binary_requests: bool,
    bank_loads: Option<String>,
    #[serde(default)]
    program_trace: Option<String>,
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
    /// Whether its addresses are the DRAM's.
    #[serde(default)]
    dram: bool,
    machine: MachineSpec,
    set: Vec<(String, String)>,
}

/// A checked specification. The machine is built and populated only when it runs, so that hundreds of
/// tasks may wait without taking memory.
struct SimulationTask {
    spec: Spec,
    /// How it begins, and others that wait and begin alike.
    beginning: Option<Arc<Beginning>>,
    request_trace: Option<String>,
    binary_requests: bool,
    /// A file for the banks' loads over time.
    bank_loads: Option<String>,
    /// A file for what the programs do.
    program_trace: Option<String>,
}

/// A simulation from its specification; everything is checked here, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn simulation(spec_json: &str) -> Result<Box<dyn Task>, Failure> {
    let given: SimulationSpec = parse(spec_json)?;
    let mut config = given.machine.config(&given.set)?;
    for (key, value, origin) in &given.vary {
        config.set_by(origin, key, value)?;
    }
    let spec = spec_of(
        config,
        &given.design,
        &given.workload,
        given.threads,
        given.transactions,
        given.seed,
    )?;
    spec.check()?;
    Ok(Box::new(SimulationTask {
        beginning: Beginning::of(&spec),
        spec,
        request_trace: given.request_trace,
        binary_requests: given.binary_requests,
        bank_loads: given.bank_loads,
        program_trace: given.program_trace,
    }))
}

impl Task for SimulationTask {
    fn run(self: Box<Self>, watch: &TaskControl) -> Result<String, Failure> {
        let (recording, mut simulation) = match self.program_trace {
            None => (None, Simulation::begun(&self.spec, self.beginning)?),
            Some(path) => {
                let (recording, simulation) = Recording::begin(&self.spec, path)?;
                (Some(recording), simulation)
            }
        };
        watch.follow(simulation.control(), self.spec.transactions)?;
        let is_binary = self.binary_requests;
        let create = |path| RequestTrace::create(path, is_binary);
        let trace = self.request_trace.map(create).transpose()?;
        if let Some(trace) = &trace {
            simulation.machine_mut().memory.record_requests(trace.recorder());
        }
        if self.bank_loads.is_some() {
            simulation.keep_bank_loads();
        }
        let digest = simulation.run()?;
        if let Some(path) = &self.bank_loads {
            let mut text = Vec::new();
            let written = simulation.stats().bank_loads.write_series(&mut text);
            written
                .and_then(|()| fs::write(path, &text))
                .map_err(|error| Failure::Simulation(format!("cannot write {path}: {error}")))?;
        }
        if let Some(trace) = trace {
            trace.finish()?;
        }
        if let Some(recording) = recording {
            recording.finish()?;
        }
        let mut record = simulation.record(digest);
        let again = || Simulation::new(&self.spec).map_err(Failure::from);
        recovery::add_to_record(&mut record, &simulation, again, &simulation.control())?;
        Ok(record.to_string())
    }

    fn memory_bytes(&self) -> u64 {
        let begin_alike = self.beginning.as_ref().is_some_and(Beginning::is_shared);
        memory_bytes(&self.spec, Others { begin_alike, ..Others::default() })
    }
}

/// Memory of the host that a specification needs that was checked, at most, in bytes.
pub fn memory_bytes(spec: &Spec, others: Others) -> u64 {
    spec.host_memory(others).map_or(0, |memory| memory.total())
}

/// A trace that has been opened, and the machine that it will drive.
struct ReplayTask {
    config: Config,
    trace: String,
    dram: bool,
    file: File,
}

/// A replay from its specification; the machine is checked and the trace opened, nothing runs.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn memory_replay(spec_json: &str) -> Result<Box<dyn Task>, Failure> {
    let given: ReplaySpec = parse(spec_json)?;
    let config = given.machine.config(&given.set)?;
    validate(&config)?;
    let file =
        File::open(&given.trace).map_err(|e| Failure::Trace(format!("{}: {e}", given.trace)))?;
    Ok(Box::new(ReplayTask { config, trace: given.trace, dram: given.dram, file }))
}

impl Task for ReplayTask {
    fn run(self: Box<Self>, watch: &TaskControl) -> Result<String, Failure> {
        let of = if self.dram { Replay::of_dram } else { Replay::new };
        let replay = of(&self.config);
        // How many requests there are is known only at the end.
        watch.follow(replay.control(), 0)?;
        let mut reader = Reader::new(self.file);
        match replay.run(&mut reader) {
            Ok(record) => Ok(record.to_json().to_string()),
            Err(TraceError::Cancelled) => Err(Failure::Cancelled),
            Err(error) => Err(Failure::Trace(format!("{}: {error}", self.trace))),
        }
    }
}

/// What is compared on a machine where nothing else is asked for, as JSON; what is set and varied is
/// checked.
///
/// # Errors
/// Names what was refused and what is allowed.
pub fn comparison(spec_json: &str) -> Result<String, Failure> {
    let given: ComparisonSpec = parse(spec_json)?;
    let config = given.machine.config(&given.set)?;
    let found = given.machine.read()?.comparison;
    let found = found.with(&config, &given.set, given.vary.as_deref())?;
    Ok(graven::catalogue::comparison(&found).to_string())
}

/// What a design's hardware costs on a machine, as JSON.
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
    graven::catalogue::catalogue(registry()).to_string()
}
