//! The record of a finished simulation: everything needed to repeat it, and what came out.

use serde_json::{Map, Value, json};

use super::run::Simulation;
use crate::config::CoreConfig;
use graven_base::stats;

impl Simulation {
    /// The record of a finished run, `{design, workload, machine, threads, transactions, seed, safe,
    /// version, config, stats}`. `image_digest` is what [`Simulation::run`] returned.
    pub fn record(&self, image_digest: u64) -> Value {
        let spec = self.spec();
        let frequency = spec.config.get::<CoreConfig>().frequency_mhz;
        let mut values = Map::new();
        for (name, value) in self.stats().record(frequency, self.footprint_bytes(), image_digest) {
            values.insert(name, value_to_json(value));
        }
        let counts = self.counts();
        for (declaration, value) in self.design_counts().iter() {
            values.insert(declaration.name.to_owned(), value.into());
        }
        for derived in spec.design.derived {
            values.insert(derived.declaration.name.to_owned(), (derived.of)(&counts).into());
        }
        json!({
            "design": spec.design.name,
            "workload": spec.workload.name,
            "machine": spec.config.machine,
            "threads": spec.threads,
            "transactions": spec.transactions,
            "seed": spec.seed,
            "safe": spec.design.is_sound(&spec.config),
            "version": graven_base::VERSION,
            "config": spec.config.to_json(),
            "stats": values,
        })
    }
}

/// A statistic's value as JSON: numbers, and digests as 16 hexadecimal digits.
pub fn value_to_json(value: stats::Value) -> Value {
    match value {
        stats::Value::Count(n) => n.into(),
        stats::Value::Number(x) => x.into(),
        stats::Value::Digest(d) => format!("{d:016x}").into(),
    }
}
