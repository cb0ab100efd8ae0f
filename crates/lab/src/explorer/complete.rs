//! Every power failure, and none twice.
//!
//! At each crash point power fails with what was accepted; at each durable write with any of its words; at the end of
//! each action with any set of the writes under way that their order allows. What a failure finds, its *state*, is the
//! bytes of PM as the batteries leave them, the non-volatile registers, and what the program has stored and may rely on.
//! Recovery is a function of bytes and registers, and so is every later life; the verdict is one of these and of what
//! the program may rely on. So each state is examined once:
//!
//! - recovery, and the verdict;
//! - what the system does before the next use, and the verdict;
//! - the next life, if one is to follow, unless it has begun on the same bytes and registers before;
//! - a power failure after each of the writes of all this, which leaves a state like any other. So recovery is cut off
//!   anywhere, and again, to any depth, until nothing new is found.

use rustc_hash::FxHashSet;

use super::coverage::State;
use super::points::{CrashExplorer, parts};
use crate::checker;
use crate::litmus::{Failure, FailureMode};
use graven_base::memory::{LineAddr, WORDS_PER_LINE, WordMask, spread};
use graven_base::surviving::Written;
use graven_base::time::Cycle;
use graven_machine::controller::domain::Change;
use graven_machine::sim::{Crash, Observer, Simulation};

/// If more writes than these are under way, the first of them are chosen from.
const LANDED_MAX: u32 = 8;

/// The states that were examined, of runs that begin alike. States are known by digests of 64 bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    states: FxHashSet<u64>,
    lives: FxHashSet<u64>,
    /// Crash points at which more writes were under way than are chosen from.
    pub crowded: u64,
    /// Nothing is remembered, and recovery is cut off so often at most.
    forgets_to_depth: Option<usize>,
}

impl Known {
    /// Knows nothing, however much it has seen, so that everything is examined anew; recovery is cut off so often at most.
    /// It is for comparing what is found.
    pub fn forgetful(recovery_depth: usize) -> Known {
        Known { forgets_to_depth: Some(recovery_depth), ..Known::default() }
    }

    /// Tells whether a state is new.
    fn is_new_state(&mut self, state: u64) -> bool {
        self.forgets_to_depth.is_some() || self.states.insert(state)
    }

    /// Tells whether a life is new.
    fn is_new_life(&mut self, life: u64) -> bool {
        self.forgets_to_depth.is_some() || self.lives.insert(life)
    }

    /// Tells whether a recovery that has been cut off so often is cut off again.
    fn cuts_again(&self, cuts: usize) -> bool {
        self.forgets_to_depth.is_none_or(|depth| cuts < depth)
    }
}

/// The states that a power failure finds, as digests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    /// The bytes of PM.
    bytes: u64,
    /// All else on which recovery and the verdict depend.
    rest: u64,
}

impl Found {
    fn of(crash: &Crash<'_>) -> Found {
        Found { bytes: crash.digest(), rest: checker::digest(crash) }
    }

    /// The same, with words of a write there that is not, which change the digest of the bytes by so much.
    fn with(self, change: u64) -> Found {
        Found { bytes: self.bytes.wrapping_add(change), ..self }
    }

    fn state(self) -> u64 {
        spread(self.bytes, self.rest)
    }
}

/// By what each word of a write changes the digest of the bytes.
fn words_of(change: &Change) -> [u64; WORDS_PER_LINE] {
    std::array::from_fn(|word| {
        let (addr, old, new) = (change.line.word(word), change.old[word], change.new[word]);
        Written { addr, old, new }.redigested(0)
    })
}

/// The same of each part of a write: of its last word, and of the part without that.
fn sums_of_parts(words: &[u64; WORDS_PER_LINE]) -> [u64; 1 << WORDS_PER_LINE] {
    let mut sums = [0; 1 << WORDS_PER_LINE];
    for part in 1..sums.len() {
        let word = part.ilog2() as usize;
        sums[part] = words[word].wrapping_add(sums[part & !(1 << word)]);
    }
    sums
}

/// Tells whether writes are those of a journal, but for those that change nothing.
fn change_the_same(writes: &[Written], journal: &[(Written, u64)]) -> bool {
    let changes = |w: &&Written| w.old != w.new;
    writes.iter().filter(changes).eq(journal.iter().map(|(written, _)| written).filter(changes))
}

/// The state that a power failure finds now, unless batteries read something or write to this line.
fn without(simulation: &mut Simulation, line: LineAddr) -> Option<Found> {
    let crash = simulation.crash();
    let is_apart = |written: &Written| written.addr.line() != line;
    let are_apart = crash.image.words_read() == 0 && crash.image.written().iter().all(is_apart);
    are_apart.then(|| Found::of(&crash))
}

impl CrashExplorer<'_> {
    /// Power fails at a crash point, in every mode but that of a torn write.
    pub(super) fn every_failure(&mut self, simulation: &mut Simulation, last: bool) {
        self.fails(simulation, FailureMode::Plain, None);
        let under_way = simulation.machine().memory.under_way_count();
        if !last || under_way == 0 {
            return;
        }
        let known = self.known.as_mut().expect("the caller has seen it");
        known.crowded += u64::from(under_way > LANDED_MAX);
        // Most sets break the order of writes; none of those is tried.
        for set in simulation.machine().memory.sets_that_may_land(LANDED_MAX) {
            self.fails(simulation, FailureMode::Landed(set), None);
        }
    }

    /// Power fails while a write is half there, which is not there yet, with every part of it.
    ///
    /// What a part leaves differs from what none of it leaves in its words alone, if batteries neither read nor write what
    /// is torn. So its digest is known before the part is made, and only parts that leave something new need to be.
    pub(super) fn every_tear(
        &mut self,
        simulation: &mut Simulation,
        change: &Change,
        wide: WordMask,
    ) {
        let none = if self.stops() { None } else { without(simulation, change.line) };
        let sums = sums_of_parts(&words_of(change));
        for part in parts(wide) {
            if self.stops() {
                return;
            }
            let with = |none: Found| none.with(sums[usize::from(part)]);
            let found = none.map(with);
            if found.is_some_and(|found| self.knows(found)) {
                self.tally.torn += 1;
                self.tally.equal += 1;
                self.coverage.count(State::Torn);
                continue;
            }
            simulation.lay_words(change, part);
            self.fails(simulation, FailureMode::Torn(part), found);
            simulation.lay_back(std::slice::from_ref(change));
        }
    }

    /// Tells whether what was examined is remembered.
    fn remembers(&self) -> bool {
        self.known.as_ref().expect("the caller has seen it").forgets_to_depth.is_none()
    }

    /// Tells whether what a failure finds has been examined.
    fn knows(&self, found: Found) -> bool {
        let known = self.known.as_ref().expect("the caller has seen it");
        known.states.contains(&found.state())
    }

    /// Power fails in a mode, if the order of writes allows it. `found`: what it finds, if that is known.
    fn fails(&mut self, simulation: &mut Simulation, mode: FailureMode, found: Option<Found>) {
        if self.stops() {
            return;
        }
        let cycle = simulation.machine().now();
        let crash = match mode {
            FailureMode::Landed(set) => simulation.crash_landed(set),
            _ => Some(simulation.crash()),
        };
        let Some(mut crash) = crash else { return };
        self.examining = Some(Failure::of(mode));
        match mode {
            FailureMode::Plain => self.tally.plain += 1,
            FailureMode::Torn(_) => self.tally.torn += 1,
            FailureMode::InFlight(_) | FailureMode::Landed(_) => self.tally.in_flight += 1,
        }
        self.coverage.count(match mode {
            FailureMode::Torn(_) => State::Torn,
            FailureMode::Landed(_) => State::InFlight,
            _ => State::CrashOpen,
        });
        let found = found.unwrap_or_else(|| Found::of(&crash));
        debug_assert_eq!(found, Found::of(&crash), "what a failure finds was foretold");
        self.examine_state(&mut crash, found, (&Failure::of(mode), None), cycle);
        self.examining = None;
    }

    /// Examines what a failure has found, unless that is known; the image is left as it was. `ahead`: if the failure has cut a
    /// recovery off, the place in [`CrashExplorer::journals`] of the writes that this recovery still had to do; the states after
    /// them are known.
    fn examine_state(
        &mut self,
        crash: &mut Crash<'_>,
        found: Found,
        (failure, ahead): (&Failure, Option<usize>),
        cycle: Cycle,
    ) {
        let known = self.known.as_mut().expect("the caller has seen it");
        if !known.is_new_state(found.state()) {
            self.tally.equal += 1;
            return;
        }
        let start = crash.image.written().len();
        if !failure.cuts.is_empty() {
            self.examining = Some(failure.clone());
        }
        self.recover_covered(crash);
        if let Some(wrong) = self.verdict(crash, failure, None) {
            self.add_violation(failure, cycle, wrong, crash);
        } else if self.next_life.is_some() {
            self.use_again(crash, failure, cycle);
        }
        let known = self.known.as_ref().expect("the caller has seen it");
        let writes = &crash.image.written()[start..];
        let goes_on = |ahead: usize| change_the_same(writes, &self.journals[ahead..]);
        if self.stops() || !known.cuts_again(failure.cuts.len()) {
            // Nothing more is to be found here.
        } else if self.remembers() && ahead.is_some_and(goes_on) {
            // It goes on where the one before it was cut off, as most do: each state on the way is known.
            self.tally.recovery += writes.len() as u64;
            self.tally.equal += writes.len() as u64;
        } else {
            self.cut_off(crash, found, (failure, start), cycle);
        }
        crash.image.rewind(start);
    }

    /// Cuts a recovery off after each of the writes from `start` on, the last one first.
    fn cut_off(
        &mut self,
        crash: &mut Crash<'_>,
        found: Found,
        (failure, start): (&Failure, usize),
        cycle: Cycle,
    ) {
        let first = self.journals.len();
        let mut bytes = found.bytes;
        self.journals.extend(crash.image.written()[start..].iter().map(|&written| {
            bytes = written.redigested(bytes);
            (written, bytes)
        }));
        let mut after = None;
        for cut in (1..=self.journals.len() - first).rev() {
            if self.stops() {
                break;
            }
            self.tally.recovery += 1;
            let ahead = first + cut;
            let found = Found { bytes: self.journals[ahead - 1].1, ..found };
            // It takes no search to know what a write has left that changes nothing.
            let is_as_after = after.replace(found.bytes) == Some(found.bytes);
            if is_as_after && self.remembers() || self.knows(found) {
                self.tally.equal += 1;
                continue;
            }
            self.coverage.count(State::RecoveryCut);
            crash.image.rewind(start + cut);
            let mut cuts = failure.cuts.clone();
            cuts.push(cut as u64);
            let failure = Failure { mode: failure.mode, cuts };
            self.examine_state(crash, found, (&failure, Some(ahead)), cycle);
        }
        self.journals.truncate(first);
    }

    /// After a recovery, the system prepares for the next use, and that begins.
    fn use_again(&mut self, crash: &mut Crash<'_>, failure: &Failure, cycle: Cycle) {
        let judged = crash.image.written().len();
        self.reopen(crash);
        if let Err(verdict) = checker::check_again(crash, judged) {
            let what = format!("when the log region is prepared for the next use, {verdict}");
            self.add_violation(failure, cycle, (what, verdict.addr()), crash);
            return;
        }
        let known = self.known.as_mut().expect("the caller has seen it");
        if known.is_new_life(spread(crash.digest(), crash.kept_registers())) {
            self.go_on(crash, failure, cycle);
        }
    }
}
