//! The seam between Python and the engine: specifications from JSON, records to JSON. All files are
//! opened here, since the engine does no I/O.

use std::fs::{self, File};
use std::io::BufReader;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use graven::Registry;
use graven::comparison::MachineFile;
use graven::config::{Config, ConfigError, validate};
use graven::control::Control;
use graven::cost::Sheet;
use graven::sim::{SimError, Simulation, Spec};
use graven::trace::requests::replay::Replay;
use graven::trace::requests::{Reader, TraceError};
use serde::Deserialize;

use crate::program_trace::Recording;
use crate::request_trace::RequestTrace;

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Sets what there is to simulate, once for a process.
pub fn set_registry(make: impl FnOnce() -> Registry) {
    REGISTRY.get_or_init(make);
}

/// What there is to simulate.
///
/// # Panics
/// Before it is set: by the module, before any of its functions can be called.
pub fn registry() -> &'static Registry {
    REGISTRY.get().expect("a module sets what there is to simulate when it is made")
}

/// Why a call failed; each becomes one Python exception.
#[derive(Debug)]
pub enum Failure {
    /// The specification was refused.
    Config(String),
    /// A trace cannot be read.
    Trace(String),
    /// The simulation failed.
    Simulation(String),
    /// It was cancelled.
    Cancelled,
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::Config(error.to_string())
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        match error {
            SimError::Cancelled => Failure::Cancelled,
            failed => Failure::Simulation(failed.to_string()),
        }
    }
}

/// What a task shares with the threads that watch it.
#[derive(Debug, Default)]
pub struct Watch {
    cancelled: AtomicBool,
    control: OnceLock<Arc<Control>>,
    total: AtomicU64,
}

impl Watch {
    /// Asks the task to stop, whether it runs already or not.
    pub fn cancel(&self) {
        self.cancelled.store(true, SeqCst);
        if let Some(control) = self.control.get() {
            control.cancel();
        }
    }

    /// Done, and in all (0 while that is not known).
    pub fn progress(&self) -> (u64, u64) {
        let done = self.control.get().map_or(0, |control| control.committed());
        (done, self.total.load(SeqCst))
    }

    /// Power failures judged so far, by campaigns.
    pub fn judged(&self) -> u64 {
        self.control.get().map_or(0, |control| control.failures_judged())
    }

    /// Whether a campaign has violated, and is minimising the program.
    pub fn minimising(&self) -> bool {
        self.control.get().is_some_and(|control| control.is_minimising())
    }

    /// Follows a simulation that is about to run, unless it has been cancelled before.
    pub fn follow(&self, control: Arc<Control>, total: u64) -> Result<(), Failure> {
        self.total.store(total, SeqCst);
        self.control.set(control).expect("a task runs once");
        if self.cancelled.load(SeqCst) { Err(Failure::Cancelled) } else { Ok(()) }
    }
}

/// Something that runs once and gives a record as JSON.
pub trait Task: Send {
    /// Runs to the end, or until the watch is cancelled.
    ///
    /// # Errors
    /// The simulation failed or was cancelled.
    fn run(self: Box<Self>, watch: &Watch) -> Result<String, Failure>;
}

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
    machine: MachineSpec,
    set: Vec<(String, String)>,
}

/// A machine as a specification names it.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum MachineSpec {
    /// One that ships with Graven.
    Preset {
        /// Its name.
        preset: String,
    },
    /// A user's file.
    File {
        /// Its name.
        file: String,
        /// Its text.
        text: String,
    },
}

impl MachineSpec {
    /// Its configuration, with values set on top.
    ///
    /// # Errors
    /// Names what was refused and what is allowed.
    pub fn config(&self, set: &[(String, String)]) -> Result<Config, Failure> {
        // All of a file is checked, whatever it is used for.
        let mut config = self.read()?.config;
        for (key, value) in set {
            config.set(key, value)?;
        }
        Ok(config)
    }

    /// Its parameters, and what is compared on it.
    ///
    /// # Errors
    /// Names what was refused and what is allowed.
    pub fn read(&self) -> Result<MachineFile, Failure> {
        Ok(match self {
            MachineSpec::Preset { preset } => MachineFile::named(registry(), preset)?,
            MachineSpec::File { file, text } => MachineFile::read(registry(), text, file)?,
        })
    }
}

/// A specification.
///
/// # Errors
/// It is not as agreed.
pub fn parse<'a, T: Deserialize<'a>>(spec_json: &'a str) -> Result<T, Failure> {
    serde_json::from_str(spec_json)
        .map_err(|error| Failure::Config(format!("the specification is not as agreed: {error}")))
}

/// A checked specification. The machine is built and populated only when it runs, so that hundreds of
/// tasks may wait without taking memory.
struct SimulationTask {
    spec: Spec,
    request_trace: Option<String>,
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
    let spec = registry().spec(
        config,
        &given.design,
        &given.workload,
        given.threads,
        given.transactions,
        given.seed,
    )?;
    spec.check()?;
    Ok(Box::new(SimulationTask {
        spec,
        request_trace: given.request_trace,
        bank_loads: given.bank_loads,
        program_trace: given.program_trace,
    }))
}

impl Task for SimulationTask {
    fn run(self: Box<Self>, watch: &Watch) -> Result<String, Failure> {
        let (recording, mut simulation) = match self.program_trace {
            None => (None, Simulation::new(&self.spec)?),
            Some(path) => {
                let (recording, simulation) = Recording::begin(&self.spec, path)?;
                (Some(recording), simulation)
            }
        };
        watch.follow(simulation.control(), self.spec.transactions)?;
        let trace = self.request_trace.map(RequestTrace::create).transpose()?;
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
        Ok(simulation.record(digest).to_string())
    }
}

/// A trace that has been opened, and the machine that it will drive.
struct ReplayTask {
    config: Config,
    trace: String,
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
    Ok(Box::new(ReplayTask { config, trace: given.trace, file }))
}

impl Task for ReplayTask {
    fn run(self: Box<Self>, watch: &Watch) -> Result<String, Failure> {
        let replay = Replay::new(&self.config);
        // How many requests there are is known only at the end.
        watch.follow(replay.control(), 0)?;
        let mut reader = Reader::new(BufReader::with_capacity(1 << 20, self.file));
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
