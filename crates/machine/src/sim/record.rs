//! The record of a finished simulation: everything needed to repeat it, and what came out.

use std::io;

use serde_json::{Map, Value};

use super::run::Simulation;
use crate::config::CoreConfig;
use crate::request::Mapping;
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
        let mut record = self.identity();
        record.insert("measured".into(), self.region_json());
        record.insert("safe".into(), spec.design.is_sound(&spec.config).into());
        record.insert("version".into(), graven_base::VERSION.into());
        record.insert("config".into(), spec.config.to_json());
        record.insert("stats".into(), values.into());
        record.into()
    }

    /// Transactions of what was measured.
    fn measured_transactions(&self) -> u64 {
        if self.measured.is_of_a_region() {
            self.stats().counters.committed_transactions
        } else {
            self.spec().transactions
        }
    }

    /// Identity of the run.
    fn identity(&self) -> Map<String, Value> {
        let spec = self.spec();
        [
            ("design", spec.design.name.into()),
            ("workload", spec.workload.name.into()),
            ("machine", spec.config.machine.clone().into()),
            ("threads", spec.threads.into()),
            ("transactions", self.measured_transactions().into()),
            ("seed", spec.seed.into()),
        ]
        .map(|(name, value): (&str, Value)| (name.to_owned(), value))
        .into_iter()
        .collect()
    }

    /// Writes the timeline that was kept, with the run that it is of.
    ///
    /// # Errors
    /// Those of the writer.
    ///
    /// # Panics
    /// None was kept.
    pub fn write_timeline(&self, to: &mut impl io::Write) -> io::Result<()> {
        let timeline = self.stats().timeline.as_ref().expect("a timeline was kept");
        let spec = self.spec();
        let mut about = self.identity();
        about.insert("version".into(), graven_base::VERSION.into());
        let mapping = Mapping::of(&spec.config);
        let name = |channel: u64, bank: u64| match mapping.channels {
            1 => format!("bank {bank}"),
            _ => format!("channel {channel}, bank {bank}"),
        };
        let banks: Vec<String> = (0..mapping.channels)
            .flat_map(|channel| (0..mapping.banks).map(move |bank| (channel, bank)))
            .map(|(channel, bank)| name(channel, bank))
            .collect();
        let frequency_mhz = spec.config.get::<CoreConfig>().frequency_mhz;
        timeline.write(to, about.into(), frequency_mhz, &banks)
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
