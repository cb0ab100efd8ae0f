//! Description of a region, or of several pieces of one, for a record: its length, what was estimated in it, and in which respects it is
//! not in steady state.

use graven_base::stats::{CounterSet, Counts, Kind};
use serde_json::{Map, Value, json};

use super::{About, Measured, Phase, Sample, Stretch};
use crate::design::Rounds;
use crate::media::CellWear;
use crate::sim::spec::Spec;
use crate::stats::Stats;
use crate::stats::region::{RegionConfig, Series};

/// Statistics whose intervals decide on the end of a region whose length is not given.
pub(super) const DECISIVE: [&str; 4] =
    ["cycles", "transaction_latency_cycles_mean", "media_write_requests", "write_energy_pj"];

/// Share of the lines that became dirty within a region that may still be so at its end beyond
/// those that were at its beginning.
const PENDING_SHARE: f64 = 0.25;

/// Rounds that a design has to have come round in.
pub(super) fn declared_rounds(spec: &Spec) -> &'static [Rounds] {
    (spec.design.rounds)(&spec.config)
}

/// Values of each statistic in each window, per transaction; `own` are the counts of the design.
pub(super) fn series<'a>(
    stretches: impl IntoIterator<Item = &'a Stretch>,
    stats: &Stats,
    own: &Counts,
) -> Vec<Series> {
    let names = stats.counters.counts();
    let names = names.iter().map(|(declaration, _)| (declaration.name, declaration.kind));
    let sums = stats.sums().map(|(name, _)| (name, Kind::Count));
    let own = own.iter().map(|(declaration, _)| (declaration.name, declaration.kind));
    let all: Vec<_> = names.chain(sums).chain(own).collect();
    let pairs: Vec<(&Sample, &Sample)> = stretches.into_iter().flat_map(Stretch::pairs).collect();
    let per_transaction = |more: &dyn Fn(&Sample, &Sample) -> f64| -> Vec<f64> {
        let transactions = |a: &Sample, b: &Sample| (b.transactions - a.transactions) as f64;
        pairs.iter().map(|(a, b)| more(a, b) / transactions(a, b)).collect()
    };
    let more_dirty = per_transaction(&|a, b| b.dirty as f64 - a.dirty as f64);
    let time = per_transaction(&|a, b| (b.at - a.at) as f64);
    let time = Series::new("cycles", time, &more_dirty);
    let counted = all.iter().enumerate().filter(|(_, (_, kind))| *kind == Kind::Count);
    let counted = counted.map(|(at, &(name, _))| {
        let values = per_transaction(&|a, b| (b.counts[at] - a.counts[at]) as f64);
        Series::new(name, values, &more_dirty)
    });
    [time].into_iter().chain(counted).collect()
}

/// Description of what was measured, of one run or of several pieces of a region.
#[derive(Clone, Debug)]
pub struct Description {
    is_whole: bool,
    stretches: Vec<Stretch>,
    window_transactions: u64,
    about: About,
    cell_wear: CellWear,
}

impl Description {
    /// Description of a run that is over.
    pub fn of(measured: &Measured) -> Description {
        Description {
            is_whole: measured.phase == Phase::Whole,
            stretches: vec![measured.stretch.clone()],
            window_transactions: measured.window_transactions,
            about: measured.about.clone(),
            cell_wear: measured.cell_wear.clone(),
        }
    }

    /// Returns true if statistics are of a whole run, and not of a region.
    pub fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Continues with the next piece of the same region.
    pub fn join(&mut self, next: Description) {
        let (about, of_next) = (&mut self.about, next.about);
        about.warm_up += of_next.warm_up;
        let before = about.rounds_before.iter_mut().zip(of_next.rounds_before);
        before.for_each(|(least, before)| *least = before.min(*least));
        let within = about.rounds_within.iter_mut().zip(of_next.rounds_within);
        within.for_each(|(sum, within)| *sum += within);
        about.pending[1] = of_next.pending[1];
        about.footprint[1] = of_next.footprint[1];
        about.is_cut |= of_next.is_cut;
        self.stretches.extend(next.stretches);
        self.cell_wear.join(&next.cell_wear);
    }

    /// Cells programmed in the group that wears most, over all pieces.
    pub fn peak_cell_wear(&self) -> u64 {
        self.cell_wear.peak().into()
    }

    /// The same for a record. `stats` and `own` were counted in what is described, `own` by the design.
    pub fn to_json(&self, spec: &Spec, stats: &Stats, own: &Counts) -> Value {
        if self.is_whole {
            return json!({"kind": "whole"});
        }
        let about = &self.about;
        let all = series(&self.stretches, stats, own);
        let mut estimates = Map::new();
        for series in &all {
            if let Some(half) = series.half_width() {
                estimates.insert(series.name.to_owned(), json!([series.mean(), half]));
            }
        }
        let reasons = self.why_not_steady(spec, stats, &all);
        let drift = all[0].drift();
        let mut described = json!({
            "kind": "steady",
            "steady": reasons.is_empty(),
            "reasons": reasons,
            "fast_forward_transactions": about.fast_forward,
            "warm_up_transactions": about.warm_up,
            "windows": self.stretches.iter().map(|stretch| stretch.windows.len()).sum::<usize>(),
            "window_transactions": self.window_transactions,
            "from_cycle": about.began,
            "rounds": declared_rounds(spec).iter().zip(&about.rounds_within)
                .map(|(rounds, &came)| (rounds.counter.to_owned(), came.into())).collect::<Map<_, _>>(),
            "pending_lines": about.pending,
            "footprint_bytes": about.footprint,
            "cycles_drift": drift,
            "estimates": estimates,
        });
        if self.stretches.len() > 1 {
            described["pieces"] = self.stretches.len().into();
        }
        described
    }

    /// In which respects the region is not in steady state; none: it is.
    fn why_not_steady(&self, spec: &Spec, stats: &Stats, all: &[Series]) -> Vec<String> {
        let plan = spec.config.get::<RegionConfig>();
        let about = &self.about;
        let mut reasons = Vec::new();
        if about.is_cut {
            reasons.push("the program ended before the region did".to_owned());
        }
        let rounds = declared_rounds(spec).iter();
        for (rounds, (&before, &within)) in
            rounds.zip(about.rounds_before.iter().zip(&about.rounds_within))
        {
            if before < rounds.before || within < rounds.within {
                reasons.push(format!(
                    "{before} {} before the region and {within} within it; {} and {} are needed",
                    rounds.counter, rounds.before, rounds.within
                ));
            }
        }
        let wanted = plan.precision_percent / 100.0;
        for name in DECISIVE {
            let of = all.iter().find(|series| series.name == name);
            let half = of.and_then(Series::half_width);
            if let Some(half) = half.filter(|&half| half > wanted) {
                reasons.push(format!(
                    "{name} of a transaction is known within {:.1} % only",
                    half * 100.0
                ));
            }
        }
        let left = stats.counters.llc_writebacks + stats.counters.forced_writebacks;
        if let Some(last) = self.stretches.iter().rev().find_map(|stretch| stretch.windows.last()) {
            let more: f64 = self.stretches.iter().map(Stretch::more_dirty).sum();
            let allowed = PENDING_SHARE * (left as f64 + more).max(0.0);
            if more.abs() > allowed.max(last.dirty as f64 * wanted) {
                let words = if more > 0.0 { "more" } else { "fewer" };
                reasons.push(format!(
                    "{:.0} {words} lines are dirty in the caches than when the region began",
                    more.abs()
                ));
            }
        }
        reasons
    }
}
