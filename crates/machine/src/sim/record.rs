//! The record of a finished simulation: everything needed to repeat it, and what came out.

use std::io;

use serde_json::{Map, Value};

use super::region::Description;
use super::run::Simulation;
use super::spec::Spec;
use crate::config::CoreConfig;
use crate::request::Mapping;
use crate::stats::Stats;
use graven_base::stats::{self, CounterSet, Counts};

/// Everything that a finished run has measured, or that several pieces of a region have.
#[derive(Clone)]
pub struct Results {
    spec: Spec,
    stats: Stats,
    /// Counts of the design.
    counts: Counts,
    description: Description,
    footprint_bytes: u64,
    image_digest: u64,
}

impl Results {
    /// Continues with what was measured of the next piece of the same region.
    pub fn join(&mut self, next: Results) {
        self.stats.join(&next.stats);
        self.counts.join(&next.counts);
        self.description.join(next.description);
        self.stats.counters.peak_cell_wear = self.description.peak_cell_wear();
        self.image_digest = next.image_digest;
    }

    /// The record, `{design, workload, machine, threads, transactions, seed, measured, safe, version, config, stats}`.
    pub fn record(&self) -> Value {
        let Results { spec, stats, .. } = self;
        let frequency = spec.config.get::<CoreConfig>().frequency_mhz;
        let mut values = Map::new();
        for (name, value) in stats.record(frequency, self.footprint_bytes, self.image_digest) {
            values.insert(name, value_to_json(value));
        }
        for (declaration, value) in self.counts.iter() {
            values.insert(declaration.name.to_owned(), value.into());
        }
        let mut counts = stats.counters.counts();
        counts.extend(self.counts.clone());
        for derived in spec.design.derived {
            values.insert(derived.declaration.name.to_owned(), (derived.of)(&counts).into());
        }
        let mut record = self.identity();
        let described = self.description.to_json(spec, stats, &self.counts);
        record.insert("measured".into(), described);
        record.insert("safe".into(), spec.design.is_sound(&spec.config).into());
        record.insert("version".into(), graven_base::VERSION.into());
        record.insert("config".into(), spec.config.to_json());
        record.insert("stats".into(), values.into());
        record.into()
    }

    /// Identity of the run.
    fn identity(&self) -> Map<String, Value> {
        let spec = &self.spec;
        let transactions = if self.description.is_whole() {
            spec.transactions
        } else {
            self.stats.counters.committed_transactions
        };
        [
            ("design", spec.design.name.into()),
            ("workload", spec.workload.name.into()),
            ("machine", spec.config.machine.clone().into()),
            ("threads", spec.threads.into()),
            ("transactions", transactions.into()),
            ("seed", spec.seed.into()),
        ]
        .map(|(name, value): (&str, Value)| (name.to_owned(), value))
        .into_iter()
        .collect()
    }
}

impl Simulation {
    /// Everything that a finished run has measured. `image_digest` is what [`Simulation::run`] returned.
    pub fn results(&self, image_digest: u64) -> Results {
        Results {
            spec: self.spec().clone(),
            stats: self.stats().clone(),
            counts: self.design_counts(),
            description: Description::of(&self.measured),
            footprint_bytes: self.footprint_bytes(),
            image_digest,
        }
    }

    /// The record of a finished run ([`Results::record`]). `image_digest` is what [`Simulation::run`] returned.
    pub fn record(&self, image_digest: u64) -> Value {
        self.results(image_digest).record()
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
        let mut about = self.results(0).identity();
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
