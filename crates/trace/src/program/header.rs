//! The header of a trace: a JSON object, with the content of a record of a result, too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::TraceError;
use super::layout::BEGINNING_BYTES;
use graven_base::config::{Config, Source};
use graven_machine::registry::Registry;
use graven_machine::sim::Spec;

/// The origin of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A simulation.
    Simulation,
    /// Traces of ChampSim.
    ChampSim,
    /// Traces of valgrind's lackey.
    Lackey,
    /// Traces of DynamoRIO's drmemtrace.
    DrMemtrace,
    /// Traces of a core for Ramulator.
    Ramulator,
    /// Traces of a core for USIMM.
    Usimm,
    /// A program that was captured while it ran.
    Program,
}

/// The description of the recorded run: the header's text, a JSON object with the fields in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of Graven that wrote it.
    pub version: String,
    /// The origin.
    pub origin: Origin,
    /// The design that it was recorded under; none if it was no simulation of Graven's, as with all that follows
    /// and may be missing.
    pub design: Option<String>,
    /// The workload.
    pub workload: Option<String>,
    /// The machine's name.
    pub machine: Option<String>,
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
    /// The keys that have their value from the design's name: they are no part of the machine.
    pub of_design: Vec<String>,
    /// The whole configuration, as in records.
    pub config: Option<Value>,
    /// A captured program's arguments, its files, and the report of the capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture: Option<Value>,
}

impl Header {
    /// Describes a trace of so many threads that no simulation on a machine was recorded for; `data_start` is the first byte of
    /// PM that it uses.
    pub fn without_machine(origin: Origin, threads: u32, data_start: u64) -> Header {
        Header {
            version: graven_base::VERSION.into(),
            origin,
            design: None,
            workload: None,
            machine: None,
            threads,
            transactions: None,
            seed: 0,
            data_start,
            data_end: None,
            of_design: Vec::new(),
            config: None,
            capture: None,
        }
    }

    /// Describes the recording of a simulation that is about to run.
    pub fn of(spec: &Spec) -> Header {
        let (start, end) = spec.data_region();
        let name = Source::Name(spec.design.name);
        let keys = spec.config.annotations().into_iter().filter(|a| a.source == name);
        Header {
            design: Some(spec.design.name.into()),
            workload: Some(spec.workload.name.into()),
            machine: Some(spec.config.machine.clone()),
            config: Some(spec.config.to_json()),
            of_design: keys.map(|a| a.key).collect(),
            transactions: Some(spec.transactions),
            seed: spec.seed,
            data_end: Some(end.0),
            ..Header::without_machine(Origin::Simulation, spec.threads, start.0)
        }
    }

    /// Returns the header as JSON.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("texts and numbers can be written")
    }

    /// Reads the header's text.
    pub(super) fn parse(text: &[u8]) -> Result<Header, TraceError> {
        let refuse = |expected: &str, found: String| {
            TraceError::malformed(BEGINNING_BYTES, format!("a header in JSON{expected}"), found)
        };
        let header: Header = serde_json::from_slice(text).map_err(|e| refuse("", e.to_string()))?;
        match header.threads {
            0 => Err(refuse(" with `threads`: 1 or more", "0".into())),
            _ => Ok(header),
        }
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
