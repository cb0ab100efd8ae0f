//! What a trace says of itself: a JSON object, with what a record of a result says, too.

use serde_json::{Map, Value, json};

use super::error::TraceError;
use super::layout::BEGINNING_BYTES;
use graven_base::config::{Config, Source};
use graven_machine::registry::Registry;
use graven_machine::sim::Spec;

/// What a trace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A simulation.
    Simulation,
    /// Traces of ChampSim.
    ChampSim,
    /// A program that was captured while it ran.
    Program,
}

impl Origin {
    /// As the header has it.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Simulation => "simulation",
            Origin::ChampSim => "champsim",
            Origin::Program => "program",
        }
    }
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Version of Graven that wrote it.
    pub version: String,
    /// What it comes from.
    pub origin: Origin,
    /// The design that it was recorded under; none if it was no simulation of Graven's, as with all that follows
    /// and may be missing.
    pub design: Option<String>,
    /// The workload.
    pub workload: Option<String>,
    /// The machine's name.
    pub machine: Option<String>,
    /// The whole configuration, as in records.
    pub config: Option<Value>,
    /// The keys that have their value from the design's name: they are no part of the machine.
    pub of_design: Vec<String>,
    /// Program threads.
    pub threads: u32,
    /// Transactions that were asked for, over all threads.
    pub transactions: Option<u64>,
    /// Seed of everything random.
    pub seed: u64,
    /// First byte of PM that programs may use.
    pub data_start: u64,
    /// One past the last such byte, on the machine that it was recorded on.
    pub data_end: Option<u64>,
    /// Of a program that was captured: its arguments, its files, and what the capture came to.
    pub capture: Option<Value>,
}

impl Header {
    /// Of a simulation that is about to run.
    pub fn of(spec: &Spec) -> Header {
        let (start, end) = spec.data_region();
        let name = Source::Name(spec.design.name);
        let keys = spec.config.annotations().into_iter().filter(|a| a.source == name);
        Header {
            version: graven_base::VERSION.into(),
            origin: Origin::Simulation,
            design: Some(spec.design.name.into()),
            workload: Some(spec.workload.name.into()),
            machine: Some(spec.config.machine.clone()),
            config: Some(spec.config.to_json()),
            of_design: keys.map(|a| a.key).collect(),
            threads: spec.threads,
            transactions: Some(spec.transactions),
            seed: spec.seed,
            data_start: start.0,
            data_end: Some(end.0),
            capture: None,
        }
    }

    /// As JSON, in a fixed order.
    pub fn to_json(&self) -> Value {
        let mut all = json!({
            "version": self.version,
            "origin": self.origin.name(),
            "design": self.design,
            "workload": self.workload,
            "machine": self.machine,
            "threads": self.threads,
            "transactions": self.transactions,
            "seed": self.seed,
            "data_start": self.data_start,
            "data_end": self.data_end,
            "of_design": self.of_design,
            "config": self.config,
        });
        if let Some(capture) = &self.capture {
            all["capture"] = capture.clone();
        }
        all
    }

    /// Reads the header's text.
    pub(super) fn parse(text: &[u8]) -> Result<Header, TraceError> {
        let value: Value = serde_json::from_slice(text).map_err(|e| {
            TraceError::malformed(BEGINNING_BYTES, "a header in JSON", e.to_string())
        })?;
        let Value::Object(map) = value else {
            return Err(TraceError::malformed(BEGINNING_BYTES, "a JSON object", "another value"));
        };
        Fields(map).header()
    }

    /// The configuration that it was recorded with, without what belongs to the name of another design than
    /// `design`.
    ///
    /// # Errors
    /// Keys or values that this version does not know; a trace that has no configuration.
    pub fn config(&self, registry: &Registry, design: &str) -> Result<Config, TraceError> {
        let (Some(config), Some(machine)) = (&self.config, &self.machine) else {
            let what =
                "the trace has no machine of its own, since no simulation was recorded: name one";
            return Err(TraceError::Unsupported(what.into()));
        };
        let mut config = config.clone();
        if self.design.as_deref() != Some(design) {
            for key in &self.of_design {
                if let Some((section, key)) = key.split_once('.')
                    && let Some(Value::Object(values)) = config.get_mut(section)
                {
                    values.shift_remove(key);
                }
            }
        }
        Ok(registry.from_json(&config, machine, "the trace")?)
    }
}

/// The fields of a header's text.
struct Fields(Map<String, Value>);

impl Fields {
    fn header(&mut self) -> Result<Header, TraceError> {
        let origin = match self.text("origin")?.as_deref() {
            Some("simulation") => Origin::Simulation,
            Some("champsim") => Origin::ChampSim,
            Some("program") => Origin::Program,
            _ => return Err(refused("origin", "`simulation`, `champsim` or `program`")),
        };
        let threads = self.number("threads")?.and_then(|n| u32::try_from(n).ok());
        let version = self.text("version")?;
        let of_design = match self.0.remove("of_design") {
            Some(Value::Array(keys)) => keys,
            _ => return Err(refused("of_design", "a list of keys")),
        };
        Ok(Header {
            version: version.ok_or_else(|| refused("version", "a text"))?,
            origin,
            design: self.text("design")?,
            workload: self.text("workload")?,
            machine: self.text("machine")?,
            config: self.0.remove("config").filter(|config| !config.is_null()),
            of_design: of_design
                .iter()
                .map(|key| key.as_str().map(str::to_owned))
                .collect::<Option<_>>()
                .ok_or_else(|| refused("of_design", "a list of keys"))?,
            threads: threads.filter(|&n| n > 0).ok_or_else(|| refused("threads", "1 or more"))?,
            transactions: self.number("transactions")?,
            seed: self.number("seed")?.ok_or_else(|| refused("seed", "a number"))?,
            data_start: self
                .number("data_start")?
                .ok_or_else(|| refused("data_start", "a number"))?,
            data_end: self.number("data_end")?,
            capture: self.0.remove("capture").filter(|capture| !capture.is_null()),
        })
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, TraceError> {
        match self.0.remove(key) {
            Some(Value::String(text)) => Ok(Some(text)),
            None | Some(Value::Null) => Ok(None),
            Some(_) => Err(refused(key, "a text")),
        }
    }

    fn number(&mut self, key: &str) -> Result<Option<u64>, TraceError> {
        match self.0.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| refused(key, "a whole number")),
        }
    }
}

fn refused(key: &str, expected: &str) -> TraceError {
    TraceError::malformed(BEGINNING_BYTES, format!("a header with `{key}`: {expected}"), "another")
}
