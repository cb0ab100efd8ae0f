//! The totals of a design after some of its schedules: plain data that are added up, written and read.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::report::{Report, ViolationRecord, guarantee_text};
use super::request::{AdversaryRequest, CHUNK_SCHEDULES, Chunk};
use crate::adversary::Draws;
use crate::explorer::Tally;
use graven_base::VERSION;
use graven_base::config::Config;
use graven_machine::design::DesignInfo;

/// Stands for the workload where programs are drawn.
const WORKLOAD: &str = "adversary";

/// Most that a state may say of anything it counts, so that sums fit 64 bits.
const COUNT_MAX: u64 = 1 << 56;

/// Configuration values by `SECTION.KEY`, in the order given. That order means nothing where they are compared; of a key that is
/// given more than once, the last value counts.
pub type Settings = IndexMap<String, String>;

/// Schedules of a design from `first_seed` up to before `next_seed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdversaryReport {
    /// The design.
    pub design: String,
    /// `adversary`: programs were drawn.
    pub workload: String,
    /// The guarantee of the design: `none`, `prefix` or `durable`.
    pub guarantee: String,
    /// The design guarantees something.
    pub safe: bool,
    /// The design guarantees something, and is not known to break it.
    pub sound: bool,
    /// Changes of the durable state.
    pub crash_points: u64,
    /// Power failures that were checked.
    pub recoveries: u64,
    /// The same by mode.
    pub failure_modes: Tally,
    /// Guarantees that were broken, lowest seeds first.
    pub violations: Vec<ViolationRecord>,
    /// The frequency of each state worth reaching, by name.
    pub covered: BTreeMap<String, u64>,
    /// Programs that were run.
    pub runs: u64,
    /// Those that could not be run, or that the design refused to continue with.
    pub refused: u64,
    /// The reason, the first time.
    pub refusal: Option<String>,
    /// The machine from which the adversary draws.
    pub machine: String,
    /// The mutant that was enabled, if any.
    pub mutant: Option<String>,
    /// Configuration on top of what was drawn.
    pub settings: Settings,
    /// Bounds of what was drawn.
    pub draws: Draws,
    /// Graven's.
    pub version: String,
    /// Seed of the first schedule.
    pub first_seed: u64,
    /// Schedules that were asked for.
    pub seeds: u64,
    /// The next seed.
    pub next_seed: u64,
    /// Host time over all host threads, written in seconds.
    #[serde(rename = "seconds", with = "seconds")]
    pub host_time_ms: u64,
}

/// Milliseconds, written as seconds.
mod seconds {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(milliseconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(*milliseconds as f64 / 1000.0)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        if !(0.0..1e12).contains(&seconds) {
            return Err(D::Error::custom(format!("{seconds} s is no host time")));
        }
        Ok((seconds * 1000.0).round() as u64)
    }
}

impl AdversaryReport {
    /// The report of no schedule.
    pub(super) fn new(
        design: &DesignInfo,
        config: &Config,
        request: &AdversaryRequest,
    ) -> AdversaryReport {
        let nothing = Report::new(design);
        AdversaryReport {
            design: design.name.into(),
            workload: WORKLOAD.into(),
            guarantee: guarantee_text(design.guarantee_in(config)).into(),
            safe: design.is_safe(config),
            sound: design.is_sound(config),
            crash_points: 0,
            recoveries: 0,
            failure_modes: Tally::default(),
            violations: Vec::new(),
            covered: nothing.coverage.iter().map(|state| (state.0.into(), state.2)).collect(),
            runs: 0,
            refused: 0,
            refusal: None,
            machine: config.machine.clone(),
            mutant: request.mutant.clone(),
            settings: request.settings.iter().cloned().collect(),
            draws: request.draws().expect("it was checked"),
            version: VERSION.into(),
            first_seed: request.first_seed,
            seeds: request.seeds,
            next_seed: request.first_seed,
            host_time_ms: 0,
        }
    }

    /// Schedules that were tried.
    pub fn schedules(&self) -> u64 {
        assert!(self.next_seed >= self.first_seed, "{} schedules backwards", self.design);
        self.next_seed - self.first_seed
    }

    /// Adds the chunk that comes next. The first `violations_max` of the violations are kept.
    pub(super) fn add(&mut self, chunk: ChunkReport, violations_max: usize) {
        assert_eq!(chunk.first_seed, self.next_seed, "chunks are added in order");
        assert!(chunk.next_seed > chunk.first_seed, "a chunk has at least one schedule");
        self.crash_points += chunk.crash_points;
        self.recoveries += chunk.recoveries;
        self.failure_modes.add(&chunk.failure_modes);
        let room = violations_max - self.violations.len();
        self.violations.extend(chunk.violations.into_iter().take(room));
        for (name, count) in chunk.covered {
            *self.covered.get_mut(name).expect("chunks cover the states of their design") += count;
        }
        self.runs += chunk.runs;
        self.refused += chunk.refused;
        self.refusal = self.refusal.take().or(chunk.refusal);
        self.next_seed = chunk.next_seed;
        self.host_time_ms += chunk.host_time_ms;
        assert!(self.schedules() <= self.seeds, "{} schedules of {}", self.design, self.seeds);
    }

    /// Why this, which was read, cannot be what a campaign has found so far that begins with `nothing`.
    pub(super) fn contradiction(
        &self,
        nothing: &AdversaryReport,
        violations_max: usize,
    ) -> Option<String> {
        let design = &nothing.design;
        let names = |report: &AdversaryReport| report.covered.keys().cloned().collect::<Vec<_>>();
        let head = AdversaryReport {
            crash_points: 0,
            recoveries: 0,
            failure_modes: Tally::default(),
            violations: Vec::new(),
            covered: nothing.covered.clone(),
            runs: 0,
            refused: 0,
            refusal: None,
            next_seed: nothing.first_seed,
            host_time_ms: 0,
            ..self.clone()
        };
        if head != *nothing || names(self) != names(nothing) {
            return Some(format!("the report of {design} is of something else"));
        }
        let last = nothing.first_seed + nothing.seeds;
        if !(nothing.first_seed..=last).contains(&self.next_seed) {
            return Some(format!("{design} goes on at seed {}", self.next_seed));
        }
        let found = self.violations.len();
        let is_at_end = self.next_seed == last || self.schedules().is_multiple_of(CHUNK_SCHEDULES);
        if found > violations_max || (found < violations_max && !is_at_end) {
            return Some(format!("{design} has {found} violations at seed {}", self.next_seed));
        }
        let modes = &self.failure_modes;
        let counts = [self.crash_points, modes.plain, modes.torn, modes.in_flight, modes.recovery]
            .into_iter()
            .chain([modes.structures, self.runs, self.refused])
            .chain(self.covered.values().copied());
        if counts.into_iter().any(|count| count > COUNT_MAX) {
            return Some(format!("{design} has counts above {COUNT_MAX}"));
        }
        if self.recoveries != modes.recoveries() || self.runs.max(self.refused) > self.schedules() {
            return Some(format!("the counts of {design} do not add up"));
        }
        None
    }
}

/// The result of a chunk. It may wait for earlier ones: what is the same for all of a design is not in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ChunkReport {
    pub first_seed: u64,
    pub next_seed: u64,
    pub crash_points: u64,
    pub recoveries: u64,
    pub failure_modes: Tally,
    pub violations: Vec<ViolationRecord>,
    pub covered: Vec<(&'static str, u64)>,
    pub runs: u64,
    pub refused: u64,
    pub refusal: Option<String>,
    pub host_time_ms: u64,
}

impl ChunkReport {
    /// For a chunk that has run.
    pub fn new(chunk: Chunk, report: Report) -> ChunkReport {
        assert!(report.next_seed > chunk.first_seed && report.next_seed <= chunk.end_seed());
        ChunkReport {
            first_seed: chunk.first_seed,
            next_seed: report.next_seed,
            crash_points: report.tally.crash_points,
            recoveries: report.tally.recoveries(),
            failure_modes: report.tally.failures(),
            violations: report.findings.iter().map(super::Finding::record).collect(),
            covered: report.coverage.iter().map(|state| (state.0, state.2)).collect(),
            runs: report.runs,
            refused: report.refused,
            refusal: report.refusal,
            host_time_ms: 0,
        }
    }

    /// Schedules that were tried.
    pub fn schedules(&self) -> u64 {
        self.next_seed - self.first_seed
    }
}
