//! Every crash point of a run.
//!
//! The durable state changes at discrete events: a write crosses the boundary of the persistence domain, a
//! battery-backed buffer or a non-volatile register of the design changes, a commit is acknowledged.
//! Between two of them every power failure is the same. So the laboratory looks on between any two
//! actions of a simulation, and after each such event lets power fail, recovers, and checks the result; then
//! everything is taken back, and the run continues. A failure costs what batteries and recovery write, not
//! what the image holds.
//!
//! One action may make several writes durable; each is a crash point of its own, with the design as the
//! action leaves it: it has not heard of any of these writes yet, so it must bear that only the first of
//! them have landed. For the same reason the newest write may be torn, and writes on their way may have
//! landed: see [`FailureMode`].

use std::collections::BTreeSet;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::{Deserialize, Serialize};

use super::complete::Known;
use super::coverage::{Coverage, State, add_counts};
use super::run::{Deadlock, Outcome};
use super::sharing::{Found, Shared, redone_ahead, stores_ahead};
use crate::checker;
use crate::litmus::{CrashAt, Failure, FailureMode, Litmus};
use graven_base::memory::{Addr, Image, WordMask, spread, words_in};
use graven_base::surviving::Written;
use graven_base::time::Cycle;
use graven_machine::controller::domain::Change;
use graven_machine::controller::settled::Settled;
use graven_machine::design::DesignContext;
use graven_machine::sim::{Crash, Observer, Recovered, SimError, Simulation};
use graven_machine::trace_event::TraceEvent;

/// The thoroughness with which a run is examined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thoroughness {
    /// The points at which power fails.
    pub at: CrashAt,
    /// Every n-th of the crash points is taken; 1: all.
    pub every: u64,
    /// Every n-th write of several words is also torn; 0: none.
    pub torn_every: u64,
    /// In how many ways: all of them, if there are no more.
    pub torn_subsets: u32,
    /// At every n-th crash point, writes on their way are also there; 0: never.
    pub in_flight_every: u64,
    /// The number of tried choices of writes on their way that have landed.
    pub in_flight_draws: u32,
    /// At every n-th crash point, in all modes, power also fails at each write of recovery; 0: never.
    pub recovery_every: u64,
    /// The number of power failures in recovery then.
    pub recovery_depth: u32,
    /// The highest number of writes of a recovery at which power fails.
    pub recovery_cuts: u64,
    /// The recoveries that are followed by the next life, if there is one.
    pub lives_after: LivesAfter,
    /// At every n-th crash point, the workload's structures are also walked; 0: never.
    pub structures_every: u64,
    /// Power fails in every mode, and in every recovery after that, wherever it can; failures that find what an
    /// earlier one found are counted, and not examined again. The shares and draws of this type mean nothing then.
    pub is_complete: bool,
    /// The work that recoveries of neighbouring power failures share.
    pub sharing: Sharing,
    /// The number of the simulation's actions after which the run makes no progress any more; 0: there is no limit.
    pub actions_max: u64,
    /// Structures of the design are looked at after each action; if not, at each crash point.
    pub capacities_at_each_action: bool,
    /// The number of violations after which the run stops.
    pub violations_max: usize,
    /// Power failures in each life after which the run is given up, as if it had been cancelled.
    pub failures_max: u64,
}

/// Work that recoveries share: a part that the design does ahead of neighbouring power failures
/// ([`Simulation::settle_ahead`]), and recoveries that were cut off before they changed what the next one reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// Each recovery is done by itself.
    None,
    /// They do. Some are also done by themselves: each must leave the same bytes.
    Sampled,
    /// They do, and all are also done by themselves.
    Compared,
}

/// The recoveries that are followed by the next life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LivesAfter {
    /// None.
    None,
    /// A few, of short runs and long ones: each comes 4 to 32 times as late as the one before it.
    Some,
    /// All.
    All,
}

impl Thoroughness {
    /// For long runs: every crash point, and a share of them in the more expensive modes.
    pub const LONG: Thoroughness = Thoroughness {
        at: CrashAt::Everywhere,
        every: 1,
        torn_every: 1,
        torn_subsets: 1,
        in_flight_every: 4,
        in_flight_draws: 1,
        recovery_every: 256,
        recovery_depth: 2,
        recovery_cuts: 64,
        lives_after: LivesAfter::None,
        structures_every: 1 << 16,
        is_complete: false,
        sharing: Sharing::Sampled,
        actions_max: 0,
        capacities_at_each_action: false,
        violations_max: 1,
        failures_max: u64::MAX,
    };

    /// For programs that are drawn: some of their recoveries are followed by another life.
    pub const DRAWN: Thoroughness = Thoroughness {
        torn_subsets: 2,
        recovery_every: 32,
        recovery_cuts: 8,
        lives_after: LivesAfter::Some,
        ..Thoroughness::SHORT
    };

    /// For the smallest programs: everything.
    pub const COMPLETE: Thoroughness = Thoroughness {
        is_complete: true,
        torn_subsets: u32::MAX,
        actions_max: 100_000,
        ..Thoroughness::SHORT
    };

    /// For short programs: every mode at every crash point.
    pub const SHORT: Thoroughness = Thoroughness {
        torn_every: 1,
        torn_subsets: 3,
        in_flight_every: 1,
        in_flight_draws: 2,
        recovery_every: 16,
        recovery_cuts: 32,
        lives_after: LivesAfter::All,
        structures_every: 0,
        actions_max: 5_000_000,
        capacities_at_each_action: true,
        ..Thoroughness::LONG
    };
}

/// A guarantee that was broken, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violation {
    /// The crash point's number, from 0; of a run that failed without a crash, how many there were.
    pub point: u64,
    /// The state that the power failure found; none: the run itself failed, without a power failure.
    pub failure: Option<Failure>,
    /// The power failures with which the lives before this one ended, and their crash points.
    pub before: Vec<(u64, Failure)>,
    /// When.
    pub cycle: u64,
    /// The violated guarantee.
    pub what: String,
    /// A word that shows it.
    pub addr: Option<Addr>,
    /// All words are as they must be, and the workload's check of its structures fails: no litmus program shows that, which has
    /// words only.
    pub is_structural: bool,
    /// The events after the power failure.
    pub post_crash: PostCrashTrace,
}

impl Violation {
    /// Has a program fail as it did: in each life at the crash point with which that ended, and in no life after it.
    pub fn pin(&self, litmus: &mut Litmus) {
        let at = |number, failure: &Failure| CrashAt::Point { number, failure: failure.clone() };
        for (life, (point, failure)) in self.before.iter().enumerate() {
            litmus.lives[life].crash = at(*point, failure);
        }
        let failure = self.failure.clone().unwrap_or_default();
        litmus.lives.truncate(self.before.len() + 1);
        litmus.lives[self.before.len()].crash = at(self.point, &failure);
    }
}

/// The events after a power failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostCrashTrace {
    /// The design's non-volatile registers.
    pub registers: Vec<u64>,
    /// The writes that landed, and those that batteries saved.
    pub saved: Vec<Written>,
    /// The writes of recovery; where it was cut off and began again, all of them.
    pub recovered: Vec<Written>,
    /// The design's notes, each with the number of writes before it.
    pub notes: Vec<(usize, String)>,
}

impl PostCrashTrace {
    fn of(crash: &Crash<'_>) -> PostCrashTrace {
        let (saved, recovered) = crash.image.written().split_at(crash.saved());
        PostCrashTrace {
            registers: crash.registers.clone(),
            saved: saved.to_vec(),
            recovered: recovered.to_vec(),
            notes: crash.image.notes().to_vec(),
        }
    }
}

/// Numbers of power failures that were checked, by mode. As JSON these alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Crash points that the run has.
    #[serde(skip)]
    pub crash_points: u64,
    /// Power failures of the plain mode.
    pub plain: u64,
    /// With a torn write.
    pub torn: u64,
    /// With writes on their way.
    pub in_flight: u64,
    /// In recovery.
    pub recovery: u64,
    /// Walks of the workload's structures: no power failures of their own.
    pub structures: u64,
    /// Lives that began after a recovery: no power failures of their own.
    pub lives: u64,
    /// Power failures that found what an earlier one had found: those were examined.
    #[serde(skip)]
    pub equal: u64,
}

impl Tally {
    /// All power failures that were checked.
    pub fn recoveries(&self) -> u64 {
        self.plain + self.torn + self.in_flight + self.recovery
    }

    /// Returns what JSON has of it.
    pub fn failures(&self) -> Tally {
        Tally { crash_points: 0, equal: 0, ..*self }
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Tally) {
        self.crash_points += other.crash_points;
        self.plain += other.plain;
        self.torn += other.torn;
        self.in_flight += other.in_flight;
        self.recovery += other.recovery;
        self.structures += other.structures;
        self.lives += other.lives;
        self.equal += other.equal;
    }
}

/// Takes violations as they are found.
pub type Reports = Box<dyn Fn(&Violation)>;

/// The fault, and a word that shows it.
type Wrong = (String, Option<Addr>);

/// Looks on and lets power fail.
pub struct CrashExplorer<'a> {
    pub(super) how: Thoroughness,
    pub(super) seed: u64,
    /// Durable-state changes seen so far.
    seen: u64,
    /// The violations.
    pub violations: Vec<Violation>,
    /// The checks.
    pub tally: Tally,
    /// The states that were reached.
    pub coverage: Coverage,
    /// The run was cancelled: it stops here.
    pub cancelled: bool,
    /// Multi-word writes so far.
    wide_writes: u64,
    /// Actions of the simulation so far.
    actions: u64,
    /// Recoveries that have ended.
    pub(super) recovered: u64,
    /// The one after which the next life begins.
    pub(super) next_life_after: u64,
    /// The program broke its part of the contract.
    is_racy: bool,
    /// The reason why the design, or a later life, refused to continue.
    pub refused: Option<String>,
    /// Threads of the program wait for each other for ever, in this life or a later one.
    pub deadlock: Option<Deadlock>,
    /// The power failure that is being examined.
    pub(super) examining: Option<Failure>,
    /// Cover points of the design that later lives have reached.
    pub cover_points: Vec<u64>,
    /// The use of the machine after a recovery.
    pub(super) next_life: Option<&'a mut dyn NextLife>,
    /// Asked at crash steps (with the step's number), and at all points with `None`.
    pub(super) expectations: Option<&'a mut dyn Expect>,
    /// The states that were examined, if that is to be complete.
    pub known: Option<Known>,
    /// All trace events, if they are to be recorded.
    pub trace: Option<Vec<(Cycle, TraceEvent)>>,
    /// The number of the last events that are enough.
    pub trace_last: usize,
    /// Those before, which are no longer there.
    pub trace_dropped: usize,
    /// The fault is one of structures.
    is_structural: bool,
    /// A structure of the design holds more entries than it declares: this has been said.
    is_overfull: bool,
    /// The work that recoveries share.
    pub(super) shared: Shared,
    /// The writes of the recoveries that are being cut off, each after the one within which it began, with the digest of the
    /// bytes after each.
    pub(super) journals: Vec<(Written, u64)>,
    /// Takes violations as they are found.
    pub(super) reports: Option<Reports>,
}

/// The use of the machine after a recovery.
pub trait NextLife {
    /// The design's context in it.
    fn context(&self) -> DesignContext;

    /// Begins, with torn and landed writes drawn from a seed.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    fn begin(&mut self, recovered: Recovered, seed: u64) -> Result<Outcome, SimError>;
}

/// Expectations beyond the durability checker's: those of a litmus program.
pub trait Expect {
    /// Before recovery from a crash step; returns what is wrong.
    fn survives(&mut self, step: u32, crash: &Crash<'_>) -> Option<String>;
    /// After recovery, from a crash step or any point; returns what is wrong.
    fn recovered(&mut self, step: Option<u32>, crash: &Crash<'_>) -> Option<String>;
    /// When all threads are done; returns what is wrong with what programs see.
    fn ended(&mut self, memory: &Image) -> Option<String>;
}

impl Observer for CrashExplorer<'_> {
    #[inline]
    fn after_action(&mut self, simulation: &mut Simulation) {
        self.actions += 1;
        if self.actions == self.how.actions_max {
            self.makes_no_progress(simulation);
        }
        if simulation.machine().failure().is_some() || self.is_racy {
            // What comes of it is nobody's promise.
            return;
        }
        if self.how.capacities_at_each_action {
            self.look_at_capacities(simulation);
        }
        let changes = simulation.machine().memory.shared.durability.changes;
        if changes != self.seen || simulation.is_at_crash_step() {
            assert!(changes >= self.seen, "what has become durable stays counted");
            if !self.how.capacities_at_each_action {
                self.look_at_capacities(simulation);
            }
            let events = changes - self.seen;
            self.seen = changes;
            self.examine(simulation, events);
        }
    }

    fn stops(&self) -> bool {
        let ends = self.cancelled || self.is_racy || self.deadlock.is_some();
        ends || self.violations.len() >= self.how.violations_max
    }
}

impl<'a> CrashExplorer<'a> {
    /// A laboratory; the seed decides which words are torn and what lands.
    pub fn new(how: Thoroughness, seed: u64) -> CrashExplorer<'a> {
        let known = how.is_complete.then(Known::default);
        CrashExplorer {
            how,
            known,
            seed,
            seen: 0,
            violations: Vec::new(),
            tally: Tally::default(),
            coverage: Coverage::default(),
            cancelled: false,
            wide_writes: 0,
            actions: 0,
            recovered: 0,
            next_life_after: 1 + spread(seed, 0x6c69) % 16,
            is_racy: false,
            refused: None,
            deadlock: None,
            examining: None,
            cover_points: Vec::new(),
            next_life: None,
            expectations: None,
            trace: None,
            trace_last: usize::MAX,
            trace_dropped: 0,
            is_structural: false,
            is_overfull: false,
            shared: Shared::default(),
            journals: Vec::new(),
            reports: None,
        }
    }

    /// All threads are done.
    pub fn ended(&mut self, simulation: &Simulation) {
        if self.deadlock.is_some() {
            return;
        }
        let memory = simulation.machine().architectural();
        let wrong = self.expectations.as_mut().and_then(|expect| expect.ended(memory));
        if let Some(what) = wrong {
            self.run_failed(simulation.machine().now(), what);
        }
    }

    /// An assertion has failed, in the examination of a power failure or in the run itself.
    pub fn assertion_failed(&mut self, cycle: u64, what: String) {
        match self.examining.take() {
            None => self.run_failed(cycle, what),
            Some(failure) => self.found(Violation {
                point: self.point_of(&failure),
                failure: Some(failure),
                cycle,
                what,
                ..Violation::default()
            }),
        }
    }

    /// Keeps a violation, and reports it.
    fn found(&mut self, violation: Violation) {
        if let Some(reports) = &self.reports {
            reports(&violation);
        }
        self.violations.push(violation);
    }

    /// Holds the design to the places that it declares.
    fn look_at_capacities(&mut self, simulation: &mut Simulation) {
        if let Some(excess) = simulation.look_at_capacities()
            && !self.is_overfull
        {
            self.is_overfull = true;
            self.run_failed(simulation.machine().now(), excess);
        }
    }

    /// The run has gone on for so long that it never ends.
    #[cold]
    fn makes_no_progress(&mut self, simulation: &Simulation) {
        self.deadlock = simulation.program_deadlock().map(Deadlock::of);
        if self.deadlock.is_none() {
            let (actions, waiting) = (self.how.actions_max, simulation.waiting());
            let what = format!("it makes no progress: after {actions} actions {waiting}");
            self.run_failed(simulation.machine().now(), what);
        }
    }

    /// The run itself failed: what it read or left was wrong.
    pub fn run_failed(&mut self, cycle: u64, what: String) {
        let point = self.tally.crash_points;
        self.violations.push(Violation { point, cycle, what, ..Violation::default() });
    }

    /// Reports that the run itself failed, if it did, once it is known that its program is not at fault.
    pub(super) fn report_failed_run(&self) {
        let Some(reports) = &self.reports else { return };
        let is_of_run = |v: &&Violation| v.failure.is_none() && v.before.is_empty();
        self.violations.iter().filter(is_of_run).for_each(reports);
    }

    /// The action that is over has brought about `events`.
    fn examine(&mut self, simulation: &mut Simulation, events: u64) {
        for (cycle, event) in simulation.take_trace() {
            self.coverage.follow(&event);
            if let Some(trace) = &mut self.trace {
                trace.push((cycle, event));
                if trace.len() >= self.trace_last.saturating_mul(2) {
                    let old = trace.len() - self.trace_last;
                    trace.drain(..old);
                    self.trace_dropped += old;
                }
            }
        }
        if let Some(race) = checker::race(simulation) {
            self.is_racy = true;
            self.refused = Some(race.to_string());
            return;
        }
        let step = simulation.take_crash_step();
        let control = simulation.control();
        control.checked(self.tally.recoveries());
        self.cancelled = control.is_cancelled() || self.is_spent();
        let changes = simulation.durable_changes();
        assert!(events >= changes.len() as u64, "each durable write is an event");
        let different = simulation.different_words();
        simulation.lay_back(&changes);
        if !changes.is_empty() && events > changes.len() as u64 {
            // Something of the design's own has changed, too: it may be the first to be there.
            self.point(simulation, None, false);
        }
        for (i, change) in changes.iter().enumerate() {
            self.torn(simulation, change);
            simulation.lay_words(change, change.mask);
            if i + 1 < changes.len() {
                self.point(simulation, None, false);
            }
        }
        assert_eq!(simulation.different_words(), different, "all was taken back, and done again");
        self.point(simulation, step, true);
        self.settle(simulation);
    }

    /// The newest write is half there: as if power had failed while it crossed the boundary.
    fn torn(&mut self, simulation: &mut Simulation, change: &Change) {
        let wide = changed_words(change);
        if wide.count_ones() < 2 || self.how.at == CrashAt::Marked {
            return;
        }
        self.wide_writes += 1;
        let number = self.tally.crash_points;
        if let CrashAt::Point { number: only, failure } = &self.how.at {
            if *only == number
                && let FailureMode::Torn(part) = failure.mode
            {
                let failure = failure.clone();
                simulation.lay_words(change, part);
                self.power_fails(simulation, &failure, None, false);
                simulation.lay_back(std::slice::from_ref(change));
            }
            return;
        }
        let every = self.how.torn_every;
        if every == 0 || !self.wide_writes.is_multiple_of(every) {
            return;
        }
        if self.known.is_some() {
            self.every_tear(simulation, change, wide);
            return;
        }
        let cuts = self.how.recovery_every;
        let is_cut = cuts > 0 && self.wide_writes.is_multiple_of(cuts);
        for part in self.tears(wide) {
            assert!(part != 0 && part != wide && part & !wide == 0, "a tear is a real part");
            simulation.lay_words(change, part);
            self.power_fails(simulation, &Failure::of(FailureMode::Torn(part)), None, is_cut);
            simulation.lay_back(std::slice::from_ref(change));
        }
    }

    /// In which ways a write of these words is torn.
    fn tears(&self, wide: WordMask) -> Vec<WordMask> {
        let subsets = (1 << wide.count_ones()) - 2;
        if self.how.torn_subsets >= subsets {
            return parts(wide).collect();
        }
        let tear = |number| {
            let mut random = Pcg64::seed_from_u64(spread(self.seed, number));
            let first = 1 << nth_set(wide, random.random_range(0..wide.count_ones()));
            let others = random.random::<WordMask>() & wide;
            // Neither all nor none.
            if others | first == wide { wide & !first } else { others | first }
        };
        let draws = u64::from(self.how.torn_subsets);
        let numbers = (0..draws).map(|draw| self.wide_writes * draws + draw);
        numbers.map(tear).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// One crash point, in all its other modes. `last`: of its action. (Before that, queues and order of
    /// writes are ahead of the durable bytes, so nothing of them may land.)
    fn point(&mut self, simulation: &mut Simulation, step: Option<u32>, last: bool) {
        let number = self.tally.crash_points;
        self.tally.crash_points += 1;
        let due = |every: u64| every > 0 && number.is_multiple_of(every);
        let plain = Failure::default();
        match &self.how.at {
            CrashAt::Marked if step.is_none() => {}
            CrashAt::Marked => self.power_fails(simulation, &plain, step, false),
            CrashAt::Point { number: only, failure } => {
                if *only == number && !matches!(failure.mode, FailureMode::Torn(_)) {
                    let failure = failure.clone();
                    self.power_fails(simulation, &failure, step, false);
                }
            }
            CrashAt::Everywhere if self.known.is_some() => self.every_failure(simulation, last),
            CrashAt::Everywhere => {
                let is_cut = due(self.how.recovery_every);
                if step.is_some() || due(self.how.every) {
                    self.power_fails(simulation, &plain, step, is_cut);
                }
                if last && due(self.how.in_flight_every) {
                    for draw in 0..u64::from(self.how.in_flight_draws) {
                        let seed = spread(spread(self.seed, number), draw);
                        let failure = Failure::of(FailureMode::InFlight(seed));
                        self.power_fails(simulation, &failure, None, is_cut);
                    }
                }
            }
        }
    }

    /// Lets power fail, recovers and checks the result. `is_cut`: power fails at the writes of this recovery, too.
    fn power_fails(
        &mut self,
        simulation: &mut Simulation,
        failure: &Failure,
        step: Option<u32>,
        is_cut: bool,
    ) {
        if self.stops() {
            return;
        }
        self.examining = Some(failure.clone());
        if simulation.is_any_ending() {
            self.coverage.count(State::CrashEnding);
        }
        if self.coverage.is_any_open() {
            self.coverage.count(State::CrashOpen);
        }
        self.fails_shared(simulation, failure, step, is_cut);
        self.examining = None;
    }

    /// The same, once, with the bytes that power failures find now.
    pub(super) fn judge(
        &mut self,
        simulation: &mut Simulation,
        failure: &Failure,
        step: Option<u32>,
        is_cut: bool,
    ) -> Found {
        let cycle = simulation.machine().now();
        self.shared.ahead = 0;
        let Some(mut crash) = fail(simulation, failure.mode) else { return Found::Judged };
        if crash.unsettles() {
            return Found::Apart;
        }
        match failure.mode {
            _ if !failure.cuts.is_empty() => {}
            FailureMode::Plain => self.tally.plain += 1,
            FailureMode::Torn(_) => {
                self.tally.torn += 1;
                self.coverage.count(State::Torn);
            }
            FailureMode::InFlight(_) | FailureMode::Landed(_) => {
                self.tally.in_flight += 1;
                self.coverage.count(State::InFlight);
            }
        }
        let survives = match (&mut self.expectations, step) {
            (Some(expect), Some(step)) => expect.survives(step, &crash).map(|what| (what, None)),
            _ => None,
        };
        let violations = self.violations.len();
        let found = self.recover(&mut crash, failure, cycle, step, survives);
        if found == Found::Judged && is_cut && failure.cuts.is_empty() && !self.stops() {
            let is_right = self.violations.len() == violations;
            return self.cut_recovery(&mut crash, (failure.mode, is_right), cycle);
        }
        found
    }

    /// Recovers, cut off as the failure says, checks the result, and has the next life begin if it is its turn.
    pub(super) fn recover(
        &mut self,
        crash: &mut Crash<'_>,
        failure: &Failure,
        cycle: Cycle,
        step: Option<u32>,
        wrong: Option<Wrong>,
    ) -> Found {
        let wrong = wrong.or_else(|| self.recovers(crash, failure, step));
        if crash.has_left_settled() {
            return Found::Apart;
        }
        if let Some(wrong) = wrong {
            return self.add_violation(failure, cycle, wrong, crash);
        }
        if self.goes_on() { self.lives_on(crash, failure, cycle) } else { Found::Judged }
    }

    /// The machine is used again after a recovery.
    pub(super) fn lives_on(
        &mut self,
        crash: &mut Crash<'_>,
        failure: &Failure,
        cycle: Cycle,
    ) -> Found {
        if crash.settled().is_some_and(Settled::hides_records) {
            return Found::Apart;
        }
        let mut failure = failure.clone();
        let before = crash.image.written().len();
        if failure.cuts.is_empty() {
            self.shared.ahead = stores_ahead(crash, self.shared.report);
        }
        self.reopen(crash);
        let writes = (crash.image.written().len() - before) as u64;
        let mut random = Pcg64::seed_from_u64(spread(self.seed, self.recovered));
        let is_cut = self.how.at == CrashAt::Everywhere && failure.cuts.is_empty();
        if is_cut && writes > 0 && random.random() {
            // Power fails in what the system does; everything begins again.
            let ahead = self.shared.ahead + (before - crash.saved()) as u64;
            failure.cuts.push(ahead + random.random_range(1..=writes));
            crash.unrecover();
            let wrong = self.recovers(crash, &failure, None);
            if crash.has_left_settled() {
                return Found::Apart;
            }
            if let Some(wrong) = wrong {
                return self.add_violation(&failure, cycle, wrong, crash);
            }
            self.reopen(crash);
        }
        if let Err(verdict) = checker::check(crash) {
            let what = format!("when the log region is prepared for the next use, {verdict}");
            return self.add_violation(&failure, cycle, (what, verdict.addr()), crash);
        }
        self.go_on(crash, &failure, cycle);
        Found::Judged
    }

    /// Has the system prepare for the next life; where there is none, for one like this.
    pub(super) fn reopen(&self, crash: &mut Crash<'_>) {
        let context = match &self.next_life {
            Some(next_life) => next_life.context(),
            None => crash.simulation().spec().context(),
        };
        crash.reopen(&context);
    }

    /// Recovers, cut off as the failure says, and checks the result.
    fn recovers(
        &mut self,
        crash: &mut Crash<'_>,
        failure: &Failure,
        step: Option<u32>,
    ) -> Option<Wrong> {
        if !failure.cuts.is_empty() {
            self.examining = Some(failure.clone());
        }
        for &cut in &failure.cuts {
            crash.image.set_power(Some(cut.saturating_sub(self.shared.ahead)));
            crash.recover();
            if crash.image.power() != Some(0) {
                self.reopen(crash);
            }
            crash.image.set_power(None);
        }
        if !failure.cuts.is_empty() {
            self.count_cut();
        }
        self.recover_covered(crash);
        self.verdict(crash, failure, step)
    }

    /// Recovers, and counts the states that this reaches.
    pub(super) fn recover_covered(&mut self, crash: &mut Crash<'_>) {
        let ahead = redone_ahead(crash);
        let report = crash.recover();
        self.learn(report, crash.settled().is_some());
        self.count_recovery(ahead, report);
    }

    /// The fault after a recovery, if there is one.
    pub(super) fn verdict(
        &mut self,
        crash: &Crash<'_>,
        failure: &Failure,
        step: Option<u32>,
    ) -> Option<Wrong> {
        if let Some(what) = crash.exceeded() {
            return Some((what.to_owned(), None));
        }
        if let Some(addr) = crash.image.out_of_bounds() {
            let what = format!(
                "recovery uses {addr}, which is no word of PM: it has taken noise for a record"
            );
            return Some((what, None));
        }
        if let Err(verdict) = checker::check(crash) {
            return Some((verdict.to_string(), verdict.addr()));
        }
        let walks = self.how.structures_every;
        if walks > 0 && *failure == Failure::default() && self.tally.plain.is_multiple_of(walks) {
            self.tally.structures += 1;
            if let Err(violation) = crash.check_structures() {
                self.is_structural = true;
                return Some((violation.to_string(), None));
            }
        }
        let expect = self.expectations.as_mut()?;
        expect.recovered(step, crash).map(|what| (what, None))
    }

    pub(super) fn add_violation(
        &mut self,
        failure: &Failure,
        cycle: u64,
        (what, addr): Wrong,
        crash: &mut Crash<'_>,
    ) -> Found {
        if crash.settled().is_some() {
            return Found::Suspect;
        }
        let is_structural = std::mem::take(&mut self.is_structural);
        self.found(Violation {
            point: self.point_of(failure),
            failure: Some(failure.clone()),
            cycle,
            what,
            addr,
            is_structural,
            post_crash: PostCrashTrace::of(crash),
            ..Violation::default()
        });
        Found::Judged
    }

    /// The number of the present crash point. A torn write is examined before its crash point is counted, the other modes
    /// after.
    fn point_of(&self, failure: &Failure) -> u64 {
        let counted = self.tally.crash_points;
        match failure.mode {
            FailureMode::Torn(_) => counted,
            _ => counted.checked_sub(1).expect("a crash point is counted before it is checked"),
        }
    }

    /// Tells whether more was judged than is wanted.
    fn is_spent(&self) -> bool {
        self.tally.recoveries() > self.how.failures_max
    }

    /// Tells whether the next life begins after the recovery that has just ended.
    pub(super) fn goes_on(&mut self) -> bool {
        if self.next_life.is_none() {
            return false;
        }
        self.recovered += 1;
        match (&self.how.at, self.how.lives_after) {
            (CrashAt::Point { .. }, _) | (_, LivesAfter::All) => true,
            (_, LivesAfter::None) => false,
            (_, LivesAfter::Some) => {
                let is_due = self.recovered >= self.next_life_after;
                if is_due {
                    let mut random = Pcg64::seed_from_u64(spread(self.seed, !self.recovered));
                    self.next_life_after = self.recovered * random.random_range(4..=32);
                }
                is_due
            }
        }
    }

    /// The next life.
    pub(super) fn go_on(&mut self, crash: &Crash<'_>, failure: &Failure, cycle: Cycle) {
        let point = self.point_of(failure);
        if self.is_spent() {
            self.cancelled = true;
            return;
        }
        let Some(next) = &mut self.next_life else { return };
        self.tally.lives += 1;
        self.coverage.count(State::NextLife);
        let seed = spread(self.seed, !self.recovered);
        let Ok(outcome) = next.begin(crash.recovered(), seed) else {
            self.cancelled = true;
            return;
        };
        // Crash points are numbered within a life.
        self.tally.add(&Tally { crash_points: 0, ..outcome.tally });
        self.coverage.add(&outcome.coverage);
        add_counts(&mut self.cover_points, &outcome.cover_points);
        if let Some(why) = outcome.refused {
            self.refused.get_or_insert(why);
        }
        self.deadlock = self.deadlock.take().or_else(|| outcome.deadlock.map(Deadlock::before));
        if let Some(trace) = &mut self.trace
            && !outcome.violations.is_empty()
        {
            let what = format!(
                "power fails (crash point {point}, {failure}), recovery ends, and the machine is used again"
            );
            trace.push((cycle, TraceEvent::Note(what)));
            trace.extend(outcome.trace);
        }
        for mut violation in outcome.violations {
            violation.before.insert(0, (point, failure.clone()));
            self.found(violation);
        }
    }
}

/// Every part of a write of these words, but none and all of them.
pub(super) fn parts(wide: WordMask) -> impl Iterator<Item = WordMask> {
    (1..wide).filter(move |part| part & !wide == 0)
}

/// Lets power fail in a mode; nothing if it does not apply.
pub(super) fn fail(simulation: &mut Simulation, mode: FailureMode) -> Option<Crash<'_>> {
    match mode {
        FailureMode::InFlight(seed) => simulation.crash_in_flight(seed),
        FailureMode::Landed(set) => simulation.crash_landed(set),
        FailureMode::Plain | FailureMode::Torn(_) => Some(simulation.crash()),
    }
}

fn changed_words(change: &Change) -> WordMask {
    words_in(change.mask)
        .filter(|&w| change.old[w] != change.new[w])
        .fold(0, |mask, w| mask | 1 << w)
}

fn nth_set(mask: WordMask, n: u32) -> u32 {
    words_in(mask).nth(n as usize).map_or(0, |word| word as u32)
}
