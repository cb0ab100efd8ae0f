//! Work that recoveries of neighbouring power failures share.
//!
//! Two kinds of it are done once:
//!
//! - what a design does ahead of power failures ([`Simulation::settle_ahead`]): recovery finds a log that is shortened by its oldest
//!   records, and what they say written;
//! - recoveries that are cut off before they have written a word that they have read before. The next one finds all that it reads as
//!   the first one did, so that it does the same: it leaves what a recovery leaves that was not cut off, and that was judged.
//!
//! Neither changes what is found. A power failure after which something seems to be wrong is examined again by itself, and what is
//! told is of that. Some are recovered both ways ([`Sharing::Sampled`]), and must leave the same bytes.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::coverage::State;
use super::points::{CrashExplorer, Sharing, Tally, fail};
use crate::litmus::{CrashAt, Failure, FailureMode};
use graven_base::memory::{Addr, spread};
use graven_base::time::Cycle;
use graven_machine::controller::settled::Settled;
use graven_machine::design::RecoveryReport;
use graven_machine::sim::{Crash, Observer, Simulation};

/// Size of a recovery from which on it is worth doing some of it ahead ([`Shared::size`]).
const SIZE_MIN: u64 = 128;

/// The same where all recoveries are compared: short programs share, too.
const SIZE_MIN_COMPARED: u64 = 8;

/// Power failures between two that are recovered both ways, at least; later on a share of all.
const COMPARED_EVERY: u64 = 256;
const COMPARED_SHARE: u64 = 16;

/// The laboratory executes one in this number of the cuts that change nothing.
const CUTS_EXAMINED_EVERY: u64 = 64;

/// The end of an examination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The power failure was judged.
    Judged,
    /// The power failure cannot share what others do: it must be examined by itself.
    Apart,
    /// Something seems to be wrong, and it shares what others do: it must be examined by itself.
    Suspect,
}

/// Power failures that shared work with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sharers {
    /// Those that found a part of recovery done ahead.
    pub settled: u64,
    /// Those of them that were also recovered by themselves, and compared.
    pub compared: u64,
    /// Those in recovery that were not examined, since they changed nothing that the next recovery reads.
    pub cuts: u64,
}

/// The work that recoveries share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The last recovery.
    pub(super) report: RecoveryReport,
    /// The fewest records that a recovery of this run has looked at: as many as the design looks at in any case.
    fewest_records: Option<u64>,
    /// Size of the last recovery that has found what was done ahead, if anything was: the records that it has looked at beside
    /// those, or the words that it has redone, if they are more.
    size: u64,
    /// The size that it must have for more to be done ahead.
    worthwhile: u64,
    /// More was done ahead since the last recovery.
    is_settled: bool,
    /// True while what was done ahead is set aside.
    is_aside: bool,
    /// Stores that recovery leaves out in the power failure under examination, since they were made ahead.
    pub(super) ahead: u64,
    /// Power failures so far.
    pub(super) sharers: Sharers,
    /// The one that is recovered both ways next.
    next_compared: u64,
}

/// Counts to which a power failure adds.
struct Counted {
    tally: Tally,
    states: Vec<u64>,
    cover_points: Vec<u64>,
    violations: usize,
    recovered: u64,
    next_life_after: u64,
    sharers: Sharers,
}

impl CrashExplorer<'_> {
    /// Lets power fail, and shares what can be shared.
    pub(super) fn fails_shared(
        &mut self,
        simulation: &mut Simulation,
        failure: &Failure,
        step: Option<u32>,
        is_cut: bool,
    ) {
        if !simulation.is_settled() {
            let found = self.judge(simulation, failure, step, is_cut);
            assert_eq!(found, Found::Judged, "what shares nothing is judged");
            return;
        }
        let before = self.counted();
        let found = self.judge(simulation, failure, step, is_cut);
        if found == Found::Judged {
            self.shared.sharers.settled += 1;
            let failures = self.shared.sharers.settled;
            if failures >= self.shared.next_compared || self.how.sharing == Sharing::Compared {
                self.shared.next_compared = failures + COMPARED_EVERY + failures / COMPARED_SHARE;
                self.shared.sharers.compared += 1;
                compare(simulation, &failure.mode);
            }
            return;
        }
        self.take_back(&before);
        simulation.turn_settled();
        self.shared.is_aside = true;
        let again = self.judge(simulation, failure, step, is_cut);
        self.shared.is_aside = false;
        assert_eq!(again, Found::Judged, "what shares nothing is judged");
        let is_wrong = self.violations.len() > before.violations;
        assert!(
            found != Found::Suspect || is_wrong,
            "recovery leaves other bytes where the design has settled a part of it ahead: {failure}"
        );
        simulation.turn_settled();
    }

    /// Has the design do a part of recovery ahead, if recoveries have become long.
    pub(super) fn settle(&mut self, simulation: &mut Simulation) {
        let is_compared = self.how.sharing == Sharing::Compared;
        let least = if is_compared { SIZE_MIN_COMPARED } else { SIZE_MIN };
        let size = self.shared.size;
        let is_shared = self.how.sharing != Sharing::None && self.how.at == CrashAt::Everywhere;
        if !is_shared || self.known.is_some() || size < self.shared.worthwhile.max(least) {
            return;
        }
        self.shared.is_settled = simulation.settle_ahead();
        // If nothing can be done ahead, that may change as the log grows.
        self.shared.worthwhile = if is_compared { 0 } else { 2 * size };
    }

    /// A recovery has ended. `is_settled`: it found something done ahead.
    pub(super) fn learn(&mut self, report: RecoveryReport, is_settled: bool) {
        let shared = &mut self.shared;
        shared.report = report;
        if shared.is_aside {
            return;
        }
        let RecoveryReport { records_scanned, words_redone, .. } = report;
        let fewest = shared.fewest_records.map_or(records_scanned, |few| few.min(records_scanned));
        shared.fewest_records = Some(fewest);
        shared.size = (records_scanned - fewest).max(words_redone);
        if std::mem::take(&mut shared.is_settled) {
            // It may have been taken back since.
            shared.worthwhile = if is_settled { 2 * shared.size } else { 0 };
        }
    }

    fn counted(&self) -> Counted {
        Counted {
            tally: self.tally,
            states: self.coverage.counts().to_vec(),
            cover_points: self.cover_points.clone(),
            violations: self.violations.len(),
            recovered: self.recovered,
            next_life_after: self.next_life_after,
            sharers: self.shared.sharers,
        }
    }

    fn take_back(&mut self, before: &Counted) {
        self.tally = before.tally;
        self.coverage.take_back(&before.states);
        self.cover_points.clone_from(&before.cover_points);
        self.violations.truncate(before.violations);
        (self.recovered, self.next_life_after) = (before.recovered, before.next_life_after);
        self.shared.sharers = before.sharers;
    }

    /// Power fails again at each write that recovery makes (or at a share, if it makes many), and in the recoveries
    /// after that, at any of their writes; once, recovery has ended before it is repeated. `is_right`: what a recovery leaves that
    /// is not cut off.
    pub(super) fn cut_recovery(
        &mut self,
        crash: &mut Crash<'_>,
        (mode, is_right): (FailureMode, bool),
        cycle: Cycle,
    ) -> Found {
        if crash.settled().is_some_and(Settled::hides_records) {
            return Found::Apart;
        }
        let mut random = Pcg64::seed_from_u64(spread(self.seed, !self.tally.recoveries()));
        crash.unrecover();
        let shares = is_right && self.how.sharing != Sharing::None && crash.repeats_itself();
        let (mut report, redone) = (RecoveryReport::default(), redone_ahead(crash));
        let (writes, unchanged) = if shares {
            let uncut;
            (report, uncut) = crash.recover_uncut();
            let at_home = report.words_redone + report.words_undone;
            let depends = uncut.reads_settled || crash.has_left_settled();
            if crash.settled().is_some() && (depends || uncut.idempotent < at_home) {
                return Found::Apart;
            }
            let ahead = stores_ahead(crash, report);
            self.shared.ahead = ahead;
            (ahead + uncut.writes, Some(ahead + uncut.idempotent))
        } else {
            crash.recover();
            ((crash.image.written().len() - crash.saved()) as u64, None)
        };
        if writes == 0 {
            return Found::Judged;
        }
        let mut is_recovered = shares;
        let step = writes.div_ceil(self.how.recovery_cuts.max(1)).max(1);
        let mut cut = if step > 1 { random.random_range(0..step) } else { 0 };
        while cut <= writes && !self.stops() {
            let mut cuts = vec![cut];
            for _ in 1..self.how.recovery_depth {
                cuts.push(random.random_range(0..=writes));
            }
            let changes_nothing = unchanged.is_some_and(|last| cuts.iter().all(|&cut| cut <= last));
            let failure = Failure { mode, cuts };
            let found = if changes_nothing && !self.examines_cut() {
                self.shared.sharers.cuts += 1;
                self.count_cut();
                self.count_recovery(redone, report);
                if !std::mem::replace(&mut is_recovered, true) {
                    crash.unrecover();
                    crash.recover();
                }
                if self.goes_on() {
                    is_recovered = false;
                    self.lives_on(crash, &failure, cycle)
                } else {
                    Found::Judged
                }
            } else {
                is_recovered = false;
                crash.unrecover();
                self.recover(crash, &failure, cycle, None, None)
            };
            if found != Found::Judged {
                return found;
            }
            cut = if cut < writes { (cut + step).min(writes) } else { writes + 1 };
        }
        Found::Judged
    }

    /// Tells whether a cut is examined though it changes nothing.
    fn examines_cut(&self) -> bool {
        let is_due = self.tally.recovery.is_multiple_of(CUTS_EXAMINED_EVERY);
        is_due || self.how.sharing == Sharing::Compared
    }

    /// Power has failed in a recovery.
    pub(super) fn count_cut(&mut self) {
        self.tally.recovery += 1;
        self.coverage.count(State::RecoveryCut);
    }

    /// Counts the states that a recovery has reached; `ahead`: words that were redone ahead of it.
    pub(super) fn count_recovery(&mut self, ahead: u64, report: RecoveryReport) {
        let RecoveryReport { words_redone, words_undone, .. } = report;
        if words_redone + ahead > 0 {
            self.coverage.count(State::Redone);
        }
        if words_undone > 0 {
            self.coverage.count(State::Undone);
        }
    }
}

/// Words that were redone ahead of the recovery that is about to begin; none, if an earlier one has emptied the log.
pub(super) fn redone_ahead(crash: &Crash<'_>) -> u64 {
    let written = &crash.image.written()[crash.saved()..];
    let settled = crash.settled().filter(|settled| !written.iter().any(|w| settled.is_undone(w)));
    settled.map_or(0, Settled::stores)
}

/// Stores that a recovery, which has just ended, has left out since they were made ahead.
pub(super) fn stores_ahead(crash: &Crash<'_>, report: RecoveryReport) -> u64 {
    let own = &crash.image.written()[crash.saved()..];
    let redone = &own[..own.len().min(report.words_redone as usize)];
    crash.settled().map_or(0, |settled| settled.stores_beside(redone))
}

/// Recovers from a power failure with what was done ahead, and by itself: both must leave the same.
fn compare(simulation: &mut Simulation, mode: &FailureMode) {
    // Nothing may be on its way.
    let Some(mut crash) = fail(simulation, *mode) else { return };
    let report = crash.recover();
    let writes =
        stores_ahead(&crash, report) + (crash.image.written().len() - crash.saved()) as u64;
    let covered = crash.settled().map_or_else(Vec::new, |settled| settled.covered().collect());
    let written = crash.image.written().iter().map(|w| w.addr);
    let left: BTreeMap<Addr, u64> =
        covered.into_iter().chain(written).map(|addr| (addr, crash.image.peek(addr))).collect();
    drop(crash);
    simulation.turn_settled();
    let mut crash = fail(simulation, *mode).expect("power has failed like this before");
    crash.recover();
    let wrong = left.iter().find(|&(&addr, &value)| crash.image.peek(addr) != value);
    if let Some((addr, value)) = wrong {
        let alone = crash.image.peek(*addr);
        panic!(
            "recovery leaves {alone:#x} in word {addr}, and {value:#x} where the design has settled a part of it ahead"
        );
    }
    let own = &crash.image.written()[crash.saved()..];
    for w in own.iter().filter(|w| !left.contains_key(&w.addr)) {
        let is_as_before = crash.image.peek(w.addr) == w.old;
        assert!(
            is_as_before,
            "recovery writes word {}, and does not where the design has settled a part of it ahead",
            w.addr
        );
    }
    let alone = own.len() as u64;
    assert!(
        writes == alone,
        "recovery writes {alone} words, and {writes} where the design has settled a part of it ahead"
    );
    drop(crash);
    simulation.turn_settled();
}
