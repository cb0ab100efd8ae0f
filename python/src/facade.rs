//! The seam between Python and the engine: specifications from JSON, records and the catalogue to
//! JSON. All files are opened here, since the engine does no I/O.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use engine::config::{Config, ConfigError, Field, PRESETS, Section, Source};
use engine::{designs, sim, stats, workloads};

/// Everything that this crate uses of the engine.
mod engine {
    pub use graven_engine::{config, workloads};

    pub use crate::stub::{designs, sim, stats};
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

impl From<sim::SimError> for Failure {
    fn from(error: sim::SimError) -> Failure {
        match error {
            sim::SimError::Cancelled => Failure::Cancelled,
            sim::SimError::Trace(message) => Failure::Trace(message),
            failed => Failure::Simulation(failed.to_string()),
        }
    }
}

/// What a running task shares with other threads.
#[derive(Debug, Default)]
pub struct Watch {
    cancelled: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl Watch {
    /// Asks the task to stop.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Done, and in all (0 while that is not known).
    pub fn progress(&self) -> (u64, u64) {
        (self.done.load(Relaxed), self.total.load(Relaxed))
    }

    /// Takes the task's progress; tells whether to go on.
    fn observe(&self, done: u64) -> bool {
        self.done.store(done, Relaxed);
        !self.cancelled.load(Relaxed)
    }

    fn begin(&self, total: u64) -> Result<(), Failure> {
        self.total.store(total, Relaxed);
        if self.cancelled.load(Relaxed) { Err(Failure::Cancelled) } else { Ok(()) }
    }
}

/// Something that runs once and gives a record as JSON.
pub trait Task: Send {
    /// Runs to the end, or until the watch is cancelled.
    fn run(self: Box<Self>, watch: &Watch) -> Result<String, Failure>;
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SimulationSpec {
    design: String,
    workload: String,
    machine: MachineSpec,
    threads: Option<u32>,
    transactions: Option<u64>,
    seed: u64,
    set: Vec<(String, String)>,
    request_trace: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplaySpec {
    trace: String,
    machine: MachineSpec,
    set: Vec<(String, String)>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MachineSpec {
    Preset { preset: String },
    File { file: String, text: String },
}

impl MachineSpec {
    fn name(&self) -> &str {
        match self {
            MachineSpec::Preset { preset } => preset,
            MachineSpec::File { file, .. } => file,
        }
    }

    fn config(&self, set: &[(String, String)]) -> Result<Config, Failure> {
        let mut config = match self {
            MachineSpec::Preset { preset } => Config::from_preset(preset)?,
            MachineSpec::File { file, text } => Config::from_toml(text, file)?,
        };
        for (key, value) in set {
            config.set(key, value)?;
        }
        config.validate()?;
        Ok(config)
    }
}

fn parse<'a, T: Deserialize<'a>>(spec_json: &'a str) -> Result<T, Failure> {
    serde_json::from_str(spec_json)
        .map_err(|error| Failure::Config(format!("the specification is not as agreed: {error}")))
}

struct SimulationTask {
    simulation: sim::Simulation,
    design: String,
    workload: String,
    machine: String,
    seed: u64,
    request_trace: Option<String>,
}

/// A simulation from its specification; everything is checked here, nothing runs.
pub fn simulation(spec_json: &str) -> Result<Box<dyn Task>, Failure> {
    let spec: SimulationSpec = parse(spec_json)?;
    let config = spec.machine.config(&spec.set)?;
    let simulation = sim::Simulation::new(sim::Spec {
        design: spec.design.clone(),
        workload: spec.workload.clone(),
        config,
        threads: spec.threads,
        transactions: spec.transactions,
        seed: spec.seed,
    })?;
    Ok(Box::new(SimulationTask {
        simulation,
        design: spec.design,
        workload: spec.workload,
        machine: spec.machine.name().to_owned(),
        seed: spec.seed,
        request_trace: spec.request_trace,
    }))
}

impl Task for SimulationTask {
    fn run(self: Box<Self>, watch: &Watch) -> Result<String, Failure> {
        let SimulationTask { simulation, design, workload, machine, seed, request_trace } = *self;
        let (threads, transactions) = (simulation.threads(), simulation.transactions());
        let config = simulation.config().to_json();
        watch.begin(transactions)?;
        let mut trace = request_trace.map(TraceFile::create).transpose()?;
        let values = simulation.run(
            &mut |done| watch.observe(done),
            trace.as_mut().map(|trace| &mut trace.writer as &mut dyn Write),
        )?;
        if let Some(trace) = trace {
            trace.finish()?;
        }
        let safe = designs::REGISTRY.iter().any(|entry| entry.name == design && entry.safe);
        let record = json!({
            "design": design,
            "workload": workload,
            "machine": machine,
            "threads": threads,
            "transactions": transactions,
            "seed": seed,
            "safe": safe,
            "version": env!("CARGO_PKG_VERSION"),
            "config": config,
            "stats": stats_json(values),
        });
        Ok(record.to_string())
    }
}

/// A trace being written; a failure names the file.
struct TraceFile {
    path: String,
    writer: BufWriter<File>,
}

impl TraceFile {
    fn create(path: String) -> Result<TraceFile, Failure> {
        match File::create(&path) {
            Ok(file) => Ok(TraceFile { path, writer: BufWriter::with_capacity(1 << 20, file) }),
            Err(error) => Err(Failure::Simulation(format!("cannot write {path}: {error}"))),
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        let path = self.path;
        self.writer
            .flush()
            .and_then(|()| self.writer.get_ref().sync_all())
            .map_err(|error| Failure::Simulation(format!("cannot write {path}: {error}")))
    }
}

struct ReplayTask {
    replay: sim::MemoryReplay,
    machine: String,
    config: Json,
    trace: String,
}

/// A replay from its specification; the machine is checked and the trace opened, nothing runs.
pub fn memory_replay(spec_json: &str) -> Result<Box<dyn Task>, Failure> {
    let spec: ReplaySpec = parse(spec_json)?;
    let config = spec.machine.config(&spec.set)?;
    let replay = sim::MemoryReplay::new(&config)?;
    open(&spec.trace)?;
    Ok(Box::new(ReplayTask {
        replay,
        machine: spec.machine.name().to_owned(),
        config: config.to_json(),
        trace: spec.trace,
    }))
}

fn open(path: &str) -> Result<File, Failure> {
    File::open(path).map_err(|error| Failure::Trace(format!("{path}: {error}")))
}

impl Task for ReplayTask {
    fn run(self: Box<Self>, watch: &Watch) -> Result<String, Failure> {
        let mut reader = BufReader::with_capacity(1 << 20, open(&self.trace)?);
        watch.begin(0)?;
        let path = self.trace;
        let values =
            self.replay.run(&mut reader, &mut |done| watch.observe(done)).map_err(|error| {
                match Failure::from(error) {
                    Failure::Trace(message) => Failure::Trace(format!("{path}: {message}")),
                    other => other,
                }
            })?;
        let record =
            json!({"machine": self.machine, "config": self.config, "stats": stats_json(values)});
        Ok(record.to_string())
    }
}

fn stats_json(values: Vec<(String, stats::Value)>) -> Json {
    let number = |value| match value {
        stats::Value::Count(count) => Json::from(count),
        stats::Value::Number(number) => Json::from(number),
        stats::Value::Digest(digest) => Json::from(format!("{digest:016x}")),
    };
    values.into_iter().map(|(name, value)| (name, number(value))).collect::<Map<_, _>>().into()
}

/// Everything that can be named.
pub fn catalogue() -> Result<String, Failure> {
    let defaults = Config::defaults();
    let sections: Vec<Json> = defaults
        .sections()
        .map(|section| {
            json!({
                "name": section.name(),
                "doc": section.doc(),
                "parameters": parameters(section, ""),
            })
        })
        .collect();
    let designs: Vec<Json> = designs::REGISTRY.iter().map(|entry| design(entry)).collect();
    let machines = PRESETS.iter().map(machine).collect::<Result<Vec<Json>, Failure>>()?;
    let stats: Vec<Json> = stats::declarations()
        .map(|declaration| {
            json!({
                "name": declaration.name,
                "unit": declaration.unit,
                "kind": kind(declaration.kind),
                "description": declaration.description,
            })
        })
        .collect();
    let catalogue = json!({
        "designs": designs,
        "workloads": workloads(&defaults),
        "machines": machines,
        "stats": stats,
        "sections": sections,
    });
    Ok(catalogue.to_string())
}

/// The parameters of a section; `prefix` is put before each key.
fn parameters(section: &dyn Section, prefix: &str) -> Vec<Json> {
    let one = |field: Field| {
        json!({
            "key": format!("{prefix}{}", field.key),
            "doc": field.doc,
            "unit": field.unit,
            "allowed": field.allowed,
            "default": field.default,
        })
    };
    section.fields().into_iter().map(one).collect()
}

/// A literal reading of a paper is a variant (`silo-literal`), not one of those compared by default.
fn design(entry: &designs::Entry) -> Json {
    let own = entry.section.map(|make| make());
    let prefixed = own.map(|section| parameters(section.as_ref(), &format!("{}.", section.name())));
    json!({
        "name": entry.name,
        "summary": entry.summary,
        "paper": entry.paper,
        "safe": entry.safe,
        "default": !entry.name.ends_with("-literal"),
        "parameters": prefixed.unwrap_or_default(),
    })
}

fn workloads(defaults: &Config) -> Vec<Json> {
    let shared: Vec<Json> = defaults
        .sections()
        .filter(|section| section.name() == "workload")
        .flat_map(|section| parameters(section, "workload."))
        .collect();
    workloads::REGISTRY
        .iter()
        .map(|entry| {
            json!({
                "name": entry.name,
                "summary": entry.summary,
                "group": entry.group,
                "parameters": shared,
            })
        })
        .collect()
}

fn machine(preset: &engine::config::Preset) -> Result<Json, Failure> {
    let config = Config::from_preset(preset.name)?;
    let whole = config.to_json();
    let mut values = Vec::new();
    for section in config.sections() {
        for field in section.fields() {
            let key = format!("{}.{}", section.name(), field.key);
            let (source, assumed) = match config.source(&key) {
                Some(Source::Paper(text)) => (Some(text), None),
                Some(Source::Assumed(text)) => (None, Some(text)),
                // A value that the file leaves at Graven's default says nothing about the machine.
                Some(Source::User(_)) | None => continue,
            };
            values.push(json!({
                "key": key,
                "value": whole[section.name()][field.key],
                "unit": field.unit,
                "doc": field.doc,
                "source": source,
                "assumed": assumed,
            }));
        }
    }
    Ok(json!({
        "name": preset.name,
        "title": preset.title,
        "file": preset.file,
        "values": values,
    }))
}

fn kind(kind: stats::Kind) -> &'static str {
    match kind {
        stats::Kind::Count => "count",
        stats::Kind::Gauge => "gauge",
        stats::Kind::Ratio => "ratio",
        stats::Kind::Digest => "digest",
    }
}
