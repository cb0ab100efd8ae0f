//! Every crash point of a run.
//!
//! The durable state changes at discrete events: a write crosses the boundary of the persistence domain, a
//! battery-backed buffer or a non-volatile register of the design changes, a commit is acknowledged.
//! Between two of them every power failure is the same. So the laboratory looks on between any two
//! actions of a simulation, and after each such event lets power fail, recovers, and checks the result; then
//! everything is taken back, and the run goes on. A failure costs what batteries and recovery write, not
//! what the image holds.
//!
//! One action may make several writes durable; each is a crash point of its own, with the design as the
//! action leaves it: it has not heard of any of these writes yet, so it must bear that only the first so
//! many are there. For the same reason the newest write may be torn, and writes on their way may be
//! there: see [`FailureMode`].

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::coverage::{Coverage, State};
use crate::checker;
use crate::litmus::{CrashAt, FailureMode};
use graven_base::memory::{Addr, Image, WordMask, spread, words_in};
use graven_base::surviving::Written;
use graven_base::time::Cycle;
use graven_machine::controller::domain::Change;
use graven_machine::sim::{Crash, Observer, Simulation};
use graven_machine::trace_event::TraceEvent;

/// How thoroughly a run is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thoroughness {
    /// Where power fails.
    pub at: CrashAt,
    /// Of the crash points, every n-th is taken; 1: all.
    pub every: u64,
    /// Every n-th write of several words is also torn; 0: none.
    pub torn_every: u64,
    /// At every n-th crash point, writes on their way are also there; 0: never.
    pub in_flight_every: u64,
    /// At every n-th crash point, power also fails at each write of recovery; 0: never.
    pub recovery_every: u64,
    /// How often power fails in recovery then.
    pub recovery_depth: u32,
    /// At every n-th crash point, the workload's structures are also walked; 0: never.
    pub structures_every: u64,
    /// After so many violations the run stops.
    pub violations_max: usize,
}

impl Thoroughness {
    /// For long runs: every crash point, and a share of them in the more expensive modes.
    pub const LONG: Thoroughness = Thoroughness {
        at: CrashAt::Everywhere,
        every: 1,
        torn_every: 1,
        in_flight_every: 4,
        recovery_every: 256,
        recovery_depth: 2,
        structures_every: 1 << 16,
        violations_max: 1,
    };

    /// For short programs: every mode at every crash point.
    pub const SHORT: Thoroughness = Thoroughness {
        torn_every: 1,
        in_flight_every: 1,
        recovery_every: 8,
        structures_every: 0,
        ..Thoroughness::LONG
    };
}

/// A guarantee that was broken, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The crash point's number, from 0; of a run that failed without a crash, how many there were.
    pub point: u64,
    /// What power failure found there.
    pub mode: FailureMode,
    /// When.
    pub cycle: u64,
    /// Which guarantee.
    pub what: String,
    /// A word that shows it.
    pub addr: Option<Addr>,
    /// What followed the power failure.
    pub post_crash: PostCrashTrace,
}

/// What followed a power failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostCrashTrace {
    /// The design's non-volatile registers.
    pub registers: Vec<u64>,
    /// What landed, and what batteries saved.
    pub saved: Vec<Written>,
    /// What recovery wrote; where it was cut off and began again, all of it.
    pub recovered: Vec<Written>,
    /// What the design has to say, each with the number of writes before it.
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

/// How many power failures of each mode were checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Crash points that the run has.
    pub crash_points: u64,
    /// Power failures of the plain mode.
    pub plain: u64,
    /// With a torn write.
    pub torn: u64,
    /// With writes on their way.
    pub in_flight: u64,
    /// In recovery.
    pub recovery: u64,
    /// Walks of the workload's structures.
    pub structures: u64,
}

impl Tally {
    /// All power failures that were checked.
    pub fn recoveries(&self) -> u64 {
        self.plain + self.torn + self.in_flight + self.recovery
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Tally) {
        self.crash_points += other.crash_points;
        self.plain += other.plain;
        self.torn += other.torn;
        self.in_flight += other.in_flight;
        self.recovery += other.recovery;
        self.structures += other.structures;
    }
}

/// Looks on and lets power fail.
pub struct CrashExplorer<'a> {
    how: Thoroughness,
    seed: u64,
    /// Durable-state changes seen so far.
    seen: u64,
    /// What was found.
    pub violations: Vec<Violation>,
    /// What was done.
    pub tally: Tally,
    /// What was reached.
    pub coverage: Coverage,
    /// The run was cancelled: it stops here.
    pub cancelled: bool,
    /// Multi-word writes so far.
    wide_writes: u64,
    /// Asked at crash steps (with the step's number), and at all points with `None`.
    expectations: Option<&'a mut dyn Expect>,
    /// All trace events, if they are to be recorded.
    pub trace: Option<Vec<(Cycle, TraceEvent)>>,
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
        let changes = simulation.machine().memory.shared.durability.changes;
        if changes != self.seen || simulation.is_at_crash_step() {
            assert!(changes >= self.seen, "what has become durable stays counted");
            let events = changes - self.seen;
            self.seen = changes;
            self.examine(simulation, events);
        }
    }

    fn stops(&self) -> bool {
        self.cancelled || self.violations.len() >= self.how.violations_max
    }
}

impl<'a> CrashExplorer<'a> {
    /// A laboratory; the seed decides which words are torn and what lands.
    pub fn new(how: Thoroughness, seed: u64) -> CrashExplorer<'a> {
        CrashExplorer {
            how,
            seed,
            seen: 0,
            violations: Vec::new(),
            tally: Tally::default(),
            coverage: Coverage::default(),
            cancelled: false,
            wide_writes: 0,
            expectations: None,
            trace: None,
        }
    }

    /// Also holds a run against these.
    pub fn expecting(mut self, expectations: &'a mut dyn Expect) -> CrashExplorer<'a> {
        self.expectations = Some(expectations);
        self
    }

    /// All threads are done.
    pub fn ended(&mut self, simulation: &Simulation) {
        let memory = simulation.machine().architectural();
        let wrong = self.expectations.as_mut().and_then(|expect| expect.ended(memory));
        if let Some(what) = wrong {
            self.run_failed(simulation.machine().now(), what);
        }
    }

    /// The run itself failed: what it read or left was wrong.
    pub fn run_failed(&mut self, cycle: u64, what: String) {
        let point = self.tally.crash_points;
        let (mode, post_crash) = (FailureMode::Plain, PostCrashTrace::default());
        self.violations.push(Violation { point, mode, cycle, what, addr: None, post_crash });
    }

    /// The action that is over has brought about so many events.
    fn examine(&mut self, simulation: &mut Simulation, events: u64) {
        for (cycle, event) in simulation.take_trace() {
            self.coverage.follow(&event);
            if let Some(trace) = &mut self.trace {
                trace.push((cycle, event));
            }
        }
        let step = simulation.take_crash_step();
        let control = simulation.control();
        control.checked(self.tally.recoveries());
        self.cancelled = control.is_cancelled();
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
    }

    /// The newest write is half there: as if power had failed while it crossed the boundary.
    fn torn(&mut self, simulation: &mut Simulation, change: &Change) {
        let wide = changed_words(change);
        if wide.count_ones() < 2 || self.how.at == CrashAt::Marked {
            return;
        }
        self.wide_writes += 1;
        let number = self.tally.crash_points;
        let due = self.how.torn_every > 0 && self.wide_writes.is_multiple_of(self.how.torn_every);
        let part = match self.how.at {
            CrashAt::Point { number: only, mode: FailureMode::Torn(mask) } if only == number => {
                mask
            }
            CrashAt::Point { .. } => return,
            _ if !due => return,
            _ => {
                let mut random = Pcg64::seed_from_u64(spread(self.seed, self.wide_writes));
                let first = 1 << nth_set(wide, random.random_range(0..wide.count_ones()));
                let others = random.random::<WordMask>() & wide;
                // Neither all nor none.
                let part = if others | first == wide { wide & !first } else { others | first };
                assert!(part != 0 && part != wide && part & !wide == 0, "a tear is a real part");
                part
            }
        };
        simulation.lay_words(change, part);
        self.check(simulation, FailureMode::Torn(part), None);
        simulation.lay_back(std::slice::from_ref(change));
    }

    /// One crash point, in all its other modes. `last`: of its action. (Before that, queues and order of
    /// writes are ahead of the durable bytes, so nothing of them may land.)
    fn point(&mut self, simulation: &mut Simulation, step: Option<u32>, last: bool) {
        let number = self.tally.crash_points;
        self.tally.crash_points += 1;
        let due = |every: u64| every > 0 && number.is_multiple_of(every);
        match self.how.at {
            CrashAt::Marked if step.is_none() => {}
            CrashAt::Marked => self.check(simulation, FailureMode::Plain, step),
            CrashAt::Point { number: only, mode } => {
                if only == number && !matches!(mode, FailureMode::Torn(_)) {
                    self.check(simulation, mode, step);
                }
            }
            CrashAt::Everywhere => {
                if step.is_some() || due(self.how.every) {
                    self.check(simulation, FailureMode::Plain, step);
                }
                if last && due(self.how.in_flight_every) {
                    self.check(simulation, FailureMode::InFlight(spread(self.seed, number)), None);
                }
                if due(self.how.recovery_every) {
                    self.cut_recovery(simulation);
                }
            }
        }
    }

    /// Lets power fail in one mode, recovers and checks the result.
    fn check(&mut self, simulation: &mut Simulation, mode: FailureMode, step: Option<u32>) {
        if self.stops() {
            return;
        }
        let cycle = simulation.machine().now();
        if simulation.is_any_ending() {
            self.coverage.count(State::CrashEnding);
        }
        if self.coverage.is_any_open() {
            self.coverage.count(State::CrashOpen);
        }
        let crash = match mode {
            FailureMode::InFlight(seed) => simulation.crash_in_flight(seed),
            _ => Some(simulation.crash()),
        };
        let Some(mut crash) = crash else { return };
        match mode {
            FailureMode::Plain => self.tally.plain += 1,
            FailureMode::Torn(_) => {
                self.tally.torn += 1;
                self.coverage.count(State::Torn);
            }
            FailureMode::InFlight(_) => {
                self.tally.in_flight += 1;
                self.coverage.count(State::InFlight);
            }
            FailureMode::Recovery(writes) => {
                self.tally.recovery += 1;
                crash.image.set_power(Some(writes));
                crash.recover();
                crash.image.set_power(None);
            }
        }
        let mut wrong = None;
        if let (Some(expect), Some(step)) = (&mut self.expectations, step) {
            wrong = expect.survives(step, &crash).map(|what| (what, None));
        }
        let report = crash.recover();
        if report.words_redone > 0 {
            self.coverage.count(State::Redone);
        }
        if report.words_undone > 0 {
            self.coverage.count(State::Undone);
        }
        if let Some(addr) = crash.image.out_of_bounds() {
            let what = format!(
                "recovery uses {addr}, which is no word of PM: it has taken noise for a record"
            );
            wrong = wrong.or(Some((what, None)));
        }
        if let Err(verdict) = checker::check(&crash) {
            wrong = wrong.or(Some((verdict.to_string(), Some(verdict.addr()))));
        }
        let walks = self.how.structures_every;
        let walk =
            walks > 0 && mode == FailureMode::Plain && self.tally.plain.is_multiple_of(walks);
        if walk && wrong.is_none() {
            self.tally.structures += 1;
            wrong = crash.check_structures().err().map(|violation| (violation.to_string(), None));
        }
        if let Some(expect) = &mut self.expectations {
            wrong = wrong.or_else(|| expect.recovered(step, &crash).map(|what| (what, None)));
        }
        let post_crash = wrong.as_ref().map(|_| PostCrashTrace::of(&crash));
        drop(crash);
        if let (Some((what, addr)), Some(post_crash)) = (wrong, post_crash) {
            self.add_violation(mode, cycle, what, addr, post_crash);
        }
    }

    fn add_violation(
        &mut self,
        mode: FailureMode,
        cycle: u64,
        what: String,
        addr: Option<Addr>,
        post_crash: PostCrashTrace,
    ) {
        // A torn write is examined before its crash point is counted, the other modes after.
        let point = match mode {
            FailureMode::Torn(_) => self.tally.crash_points,
            _ => {
                assert!(
                    self.tally.crash_points > 0,
                    "a crash point is counted before it is checked"
                );
                self.tally.crash_points - 1
            }
        };
        self.violations.push(Violation { point, mode, cycle, what, addr, post_crash });
    }

    /// Power fails again at each write that recovery makes (or at a share, if it makes many), and in the
    /// recovery after that; the last one must reach what an undisturbed one does.
    fn cut_recovery(&mut self, simulation: &mut Simulation) {
        const CUTS_MAX: usize = 64;
        let cycle = simulation.machine().now();
        let mut random = Pcg64::seed_from_u64(spread(self.seed, !self.tally.crash_points));
        let (start, end) = simulation.data_region();
        let mut crash = simulation.crash();
        crash.recover();
        let undisturbed = crash.image.newest(crash.saved());
        let cuts = crash.image.written().len() - crash.saved();
        let mut wrong = None;
        let step = cuts.div_ceil(CUTS_MAX).max(1);
        let mut cut = if step > 1 { random.random_range(0..step) } else { 0 };
        while cut < cuts && wrong.is_none() {
            crash.unrecover();
            let mut power = cut as u64;
            for _ in 0..self.how.recovery_depth {
                crash.image.set_power(Some(power));
                crash.recover();
                power = random.random_range(0..=power.max(1));
            }
            crash.image.set_power(None);
            crash.recover();
            self.tally.recovery += 1;
            self.coverage.count(State::RecoveryCut);
            let again = crash.image.newest(crash.saved());
            let of = |words: &BTreeMap<Addr, u64>, addr: Addr| {
                words.get(&addr).copied().unwrap_or_else(|| crash.image.peek(addr))
            };
            let differs = |&&addr: &&Addr| {
                (start..end).contains(&addr) && of(&undisturbed, addr) != of(&again, addr)
            };
            wrong = undisturbed.keys().chain(again.keys()).find(differs).map(|&addr| (cut, addr));
            cut += step;
        }
        let wrong = wrong.map(|(cut, addr)| (cut, addr, PostCrashTrace::of(&crash)));
        drop(crash);
        if let Some((cut, addr, post_crash)) = wrong {
            let what = format!(
                "recovery that is cut off after {cut} writes and starts again leaves another word {addr} than one that is not"
            );
            self.add_violation(
                FailureMode::Recovery(cut as u64),
                cycle,
                what,
                Some(addr),
                post_crash,
            );
        }
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
