//! The part of a run that statistics are of.
//!
//! By default it is all of it, from empty caches to the end of the last thread. That is right for a
//! program that is over then, and wrong for one that stands for a system that runs for long: lines
//! that are dirty in the caches at the end are never counted, and what a design does from time to
//! time may not have happened once. A *region in steady state* is measured instead where
//! `region.kind = "steady"`:
//!
//! 1. **Fast-forward** ([`super::fast_forward`]): transactions without time. Structures have grown and caches are full.
//! 2. **Warm-up**: transactions with time that no statistic counts, until queues and logs are in use and the design's rounds
//!    ([`Rounds`]: scans, collections) have come round as often as it declares.
//! 3. **The region**: it is divided into windows of as many transactions each. It ends when the design's rounds have come round as
//!    often as it declares, and the confidence interval of each statistic that decides is narrow enough; or at a limit,
//!    and then it is marked. Its length is known in transactions, and nothing but the statistics ends with it: threads
//!    run until they hold no lock, and the run ends as any other.
//!
//! What is estimated from the windows, and with what confidence, is in [`crate::stats::region`].

use graven_base::memory::LINE_BYTES;
use graven_base::stats::{CounterSet, Counts};
use graven_base::time::Cycle;

mod description;

pub(super) use description::Description;

use self::description::{DECISIVE, declared_rounds, series};
use super::run::Simulation;
use crate::design::Rounds;
use crate::media::CellWear;
use crate::program::{Op, Program};
use crate::stats::Stats;
use crate::stats::conservation::{Books, Broken, Laws};
use crate::stats::region::RegionConfig;

/// Windows of a region, at most: when there are as many, two become one.
const WINDOWS_MAX: usize = 64;
/// Windows of a region, at least.
const WINDOWS_MIN: usize = WINDOWS_MAX / 2;
/// Windows of a region whose length is given.
const WINDOWS_GIVEN: u64 = 48;
/// Windows between looks at whether the region may end.
const WINDOWS_PER_LOOK: usize = 8;

/// State of the measurement of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// The number of committed transactions, as the statistics count them, at which there is something to do.
    pub next: u64,
    /// The piece of the region that is measured; none: all of it.
    pub piece: Option<u32>,
    phase: Phase,
    stretch: Stretch,
    window_transactions: u64,
    about: About,
    /// The books of the laws of conservation, opened when the region began.
    books: Books,
    /// The wear of cells at the end of a piece.
    cell_wear: CellWear,
    /// The statistics of the region when it is over, or the law of conservation that they break.
    finished: Option<Result<Box<Stats>, Broken>>,
}

/// Samples of what was simulated in one go.
#[derive(Clone, Debug, Default)]
struct Stretch {
    /// At its beginning.
    start: Sample,
    /// At the end of each window.
    windows: Vec<Sample>,
}

impl Stretch {
    /// Pairs of samples, at both ends of each window.
    fn pairs(&self) -> impl Iterator<Item = (&Sample, &Sample)> {
        [&self.start].into_iter().chain(&self.windows).zip(&self.windows)
    }

    /// Lines that are dirty in the caches at its end beyond those that were at its beginning.
    fn more_dirty(&self) -> f64 {
        self.windows.last().map_or(0.0, |last| last.dirty as f64 - self.start.dirty as f64)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Everything is measured.
    #[default]
    Whole,
    WarmUp,
    Region,
    Over,
}

/// Everything that was counted up to an instant.
#[derive(Clone, Debug, Default)]
struct Sample {
    at: Cycle,
    transactions: u64,
    /// Lines that are dirty in the caches.
    dirty: u64,
    counts: Vec<u64>,
}

/// Description of a region.
#[derive(Clone, Debug, Default)]
struct About {
    fast_forward: u64,
    warm_up: u64,
    began: Cycle,
    /// Rounds of the design before the region, and within it.
    rounds_before: Vec<u64>,
    rounds_within: Vec<u64>,
    /// Lines whose content PM does not hold, at both ends.
    pending: [u64; 2],
    /// Bytes of the lines that are not zero, at both ends.
    footprint: [u64; 2],
    /// The program has ended before the region was to.
    is_cut: bool,
}

impl Measured {
    /// Measurement of a whole run.
    pub fn whole() -> Measured {
        Measured { next: u64::MAX, ..Measured::default() }
    }

    /// Takes the statistics of a region that is over.
    ///
    /// # Errors
    /// They break a law of conservation.
    pub fn take_finished(&mut self) -> Result<Option<Stats>, Broken> {
        let finished = self.finished.take().transpose()?;
        Ok(finished.map(|stats| *stats))
    }

    /// Returns true if a region is under way, which the end of the program cuts off.
    pub fn is_under_way(&self) -> bool {
        matches!(self.phase, Phase::WarmUp | Phase::Region)
    }

    /// Number of transactions that have been committed, of which statistics count `counted`.
    pub fn committed(&self, counted: u64) -> u64 {
        counted
            + if matches!(self.phase, Phase::Region | Phase::Over) { self.about.warm_up } else { 0 }
    }

    /// Returns true if statistics are of a region, and not of the whole run.
    pub fn is_of_a_region(&self) -> bool {
        self.phase != Phase::Whole
    }

    /// Counts of the design when the region began, by position.
    pub fn design_start(&self, counts: usize) -> Option<&[u64]> {
        let all = &self.stretch.start.counts;
        self.is_of_a_region().then(|| &all[all.len() - counts..])
    }

    /// When it began.
    pub fn began(&self) -> Cycle {
        self.about.began
    }

    fn merge_windows(&mut self) {
        let mut number = 0;
        self.stretch.windows.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        self.window_transactions *= 2;
    }
}

impl Simulation {
    /// Transactions without time, and then the warm-up, if a region in steady state is to be measured.
    pub(super) fn begin_measurement(&mut self) -> Result<(), super::SimError> {
        let plan = self.spec.config.get::<RegionConfig>().clone();
        if !plan.is_steady() || self.spec.programs.is_some() || self.observer.is_some() {
            return Ok(());
        }
        if let Some(piece @ 1..) = self.measured.piece {
            self.pass_over(plan.before_piece(piece))?;
        }
        self.measured.about.fast_forward = self.age()?;
        self.measured.phase = Phase::WarmUp;
        self.measured.next = plan.warm_up_transactions;
        if self.is_warm() {
            self.begin_region();
        }
        Ok(())
    }

    /// As many transactions are committed as were waited for.
    #[cold]
    pub(super) fn measure(&mut self) {
        match self.measured.phase {
            Phase::WarmUp if self.is_warm() => self.begin_region(),
            Phase::WarmUp => self.measured.next += WARM_UP_STEP,
            Phase::Region => self.end_window(),
            Phase::Whole | Phase::Over => unreachable!("nothing was waited for"),
        }
    }

    /// Number of times that its rounds have come.
    fn rounds(&self) -> Vec<u64> {
        let counts = self.design.counts();
        let of = |rounds: &Rounds| counts.get(rounds.counter).unwrap_or(0);
        declared_rounds(&self.spec).iter().map(of).collect()
    }

    fn is_warm(&self) -> bool {
        let plan = self.spec.config.get::<RegionConfig>();
        let counters = &self.stats().counters;
        let committed = counters.committed_transactions;
        if committed < plan.warm_up_transactions {
            return false;
        }
        let operations = counters.loads + counters.stores;
        if committed >= plan.transactions_max || operations >= plan.operations_max {
            return true;
        }
        let mut came = declared_rounds(&self.spec).iter().zip(self.rounds());
        came.all(|(rounds, came)| came >= rounds.before)
    }

    fn sample(&self) -> Sample {
        let stats = self.stats();
        let mut counts = stats.counters.values();
        counts.extend(stats.sums().map(|(_, sum)| sum));
        counts.extend(self.design.counts().iter().map(|(_, value)| value));
        let transactions = stats.counters.committed_transactions;
        let dirty = self.machine.caches.dirty_count();
        Sample { at: self.machine.now(), transactions, dirty, counts }
    }

    fn begin_region(&mut self) {
        let now = self.machine.now();
        let counters = &self.stats().counters;
        let (warm_up, operations) =
            (counters.committed_transactions, counters.loads + counters.stores);
        let rounds = self.rounds();
        let pending = self.pending_lines();
        let footprint = self.machine.architectural().nonzero_lines() * LINE_BYTES;
        for t in &mut self.threads {
            t.instructions_before = t.pipeline.instructions;
        }
        self.machine.memory.shared.stats.begin_again(now);
        self.machine.memory.shared.cells.forget_wear();
        self.measured.books = Books::begun(self.under_way());
        let about = &mut self.measured.about;
        (about.warm_up, about.began) = (warm_up, now);
        about.pending[0] = pending;
        about.footprint[0] = footprint;
        about.rounds_before = rounds;
        self.measured.phase = Phase::Region;
        let plan = self.spec.config.get::<RegionConfig>();
        self.measured.window_transactions = match self.given() {
            None => plan.shortest(operations, warm_up) / WINDOWS_MIN as u64,
            Some((transactions, windows)) => transactions / windows,
        };
        self.measured.next = self.end_of_next_window();
        self.measured.stretch.start = self.sample();
    }

    /// Transactions and windows of a region whose length is given, or of the piece of it that is measured.
    fn given(&self) -> Option<(u64, u64)> {
        let plan = self.spec.config.get::<RegionConfig>();
        let (from, to, pieces) = match self.measured.piece {
            None => (0, plan.transactions, 1),
            Some(piece) => (plan.before_piece(piece), plan.before_piece(piece + 1), plan.pieces),
        };
        let transactions = to - from;
        let windows = WINDOWS_GIVEN.div_ceil(pieces.into()).min(transactions);
        (plan.transactions > 0).then_some((transactions, windows))
    }

    /// The number of transactions in the region at which its next window ends.
    fn end_of_next_window(&self) -> u64 {
        let over = self.measured.stretch.windows.len() as u64;
        match self.given() {
            None => {
                self.stats().counters.committed_transactions + self.measured.window_transactions
            }
            // Windows are equal, up to what does not divide evenly.
            Some((transactions, windows)) => transactions * (over + 1) / windows,
        }
    }

    fn end_window(&mut self) {
        let sample = self.sample();
        self.measured.stretch.windows.push(sample);
        let plan = self.spec.config.get::<RegionConfig>().clone();
        let count = self.measured.stretch.windows.len();
        let counters = &self.stats().counters;
        let (committed, operations) =
            (counters.committed_transactions, counters.loads + counters.stores);
        let given = self.given();
        let is_over = if let Some((transactions, _)) = given {
            committed >= transactions
        } else {
            let looks = count >= WINDOWS_MIN && count.is_multiple_of(WINDOWS_PER_LOOK);
            let is_long = committed >= plan.transactions_max || operations >= plan.operations_max;
            is_long || (looks && self.is_round() && self.is_precise(plan.precision_percent / 100.0))
        };
        if is_over {
            self.end_region();
            self.wind_down();
            return;
        }
        if count == WINDOWS_MAX && given.is_none() {
            self.measured.merge_windows();
        }
        self.measured.next = self.end_of_next_window();
    }

    /// Returns true if the design's rounds have come round in the region as often as it declares.
    fn is_round(&self) -> bool {
        let before = &self.measured.about.rounds_before;
        let within = self.rounds().into_iter().zip(before).map(|(now, before)| now - before);
        declared_rounds(&self.spec).iter().zip(within).all(|(rounds, came)| came >= rounds.within)
    }

    fn is_precise(&self, wanted: f64) -> bool {
        let series = series([&self.measured.stretch], self.stats(), &self.design.counts());
        let decisive = series.iter().filter(|series| DECISIVE.contains(&series.name));
        decisive
            .map(|series| series.half_width())
            .all(|half| half.is_none_or(|half| half <= wanted))
    }

    /// The region is over: its statistics are closed.
    pub(super) fn end_region(&mut self) {
        self.finish_stats();
        let books = Books::of(self.stats(), self.under_way());
        let checked = Laws::new(&self.spec.config).check_between(&self.measured.books, &books);
        let about = &mut self.measured.about;
        about.pending[1] = self.machine.memory.shared.stats.counters.residual_dirty_lines;
        about.footprint[1] = self.machine.architectural().nonzero_lines() * LINE_BYTES;
        if self.measured.piece.is_some() {
            self.measured.cell_wear = self.machine.memory.shared.cells.wear();
        }
        let (before, now) = (self.measured.about.rounds_before.clone(), self.rounds());
        self.measured.about.rounds_within =
            now.into_iter().zip(before).map(|(now, before)| now - before).collect();
        self.measured.phase = Phase::Over;
        self.measured.next = u64::MAX;
        self.measured.finished = Some(checked.map(|()| Box::new(self.stats().clone())));
    }

    /// The program has ended before the region has: what there is of it is measured.
    pub(super) fn cut_region(&mut self) {
        if self.measured.phase == Phase::WarmUp {
            self.begin_region();
        }
        self.measured.about.is_cut = true;
        self.end_region();
    }

    /// Threads end when they are in no transaction and hold no lock.
    fn wind_down(&mut self) {
        for t in &mut self.threads {
            let pending = t.op.or_else(|| t.software.as_ref()?.pending());
            let mut locks = self.locks.held_by(t.id);
            match pending {
                Some(Op::Lock { lock }) => locks += u32::from(!self.locks.is_held_by(lock, t.id)),
                Some(Op::Unlock { .. }) => locks -= 1,
                _ => {}
            }
            let in_transaction = t.running.is_some() || pending == Some(Op::TxBegin);
            let nothing: Box<dyn Program> = Box::new(Nothing);
            let program = std::mem::replace(&mut t.program, nothing);
            t.program = Box::new(WindingDown { program, in_transaction, locks });
        }
    }

    /// Counts of the design in the region, or in the whole run.
    pub(super) fn counted_in_region(&self, mut counts: Counts) -> Counts {
        let number = counts.iter().count();
        if let Some(start) = self.measured.design_start(number) {
            counts.subtract(start);
        }
        counts
    }
}

/// Transactions between looks at whether the warm-up is over.
const WARM_UP_STEP: u64 = 500;

/// A program whose thread ends as soon as it is in no transaction and holds no lock.
struct WindingDown {
    program: Box<dyn Program>,
    in_transaction: bool,
    locks: u32,
}

impl Program for WindingDown {
    fn next(&mut self, value: u64) -> Op {
        if !self.in_transaction && self.locks == 0 {
            return Op::Done;
        }
        let op = self.program.next(value);
        match op {
            Op::TxBegin => self.in_transaction = true,
            Op::TxEnd => self.in_transaction = false,
            Op::Lock { .. } => self.locks += 1,
            Op::Unlock { .. } => self.locks -= 1,
            _ => {}
        }
        op
    }
}

struct Nothing;

impl Program for Nothing {
    fn next(&mut self, _: u64) -> Op {
        Op::Done
    }
}
