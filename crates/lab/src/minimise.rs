//! Minimisation: from a schedule that violates to the least that still does.
//!
//! Candidates are the program without a thread, without a transaction, without some steps, with a plainer
//! machine, with smaller numbers; each is run again in full and kept if it still violates, whatever the
//! verdict says. What is left is usually short enough to be read at a glance.
//!
//! A long program first loses whole runs of transactions while only the mode that violated it is
//! examined; the rest is done to what is left, in all modes.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::case::Case;
use crate::litmus::isolation::is_isolated;
use crate::litmus::{self, CrashAt, FailureMode, Litmus, Persist, Placement, Step, Word};
use graven_base::control::Control;
use graven_machine::design::{DesignInfo, Guarantee};

use crate::explorer::{LivesAfter, Thoroughness, Violation};
use graven_machine::registry::Registry;
use serde::{Deserialize, Serialize};

/// Most runs that minimising takes, if nothing else is asked for.
pub const RUNS: u32 = 4000;

/// Most power failures that it judges then: a program of hundreds of steps stays as long as it is by then. More runs may judge
/// as many more.
const FAILURES: u64 = 5_000_000;

/// A candidate is given up after as many failures, and four times as many as the best program needs until it violates.
const FAILURES_OF_A_RUN: u64 = 50_000;

/// A program that violates, and how.
#[derive(Clone, Debug)]
pub struct Minimised {
    /// The program; it replays the violation exactly.
    pub litmus: Litmus,
    /// The first violation.
    pub violation: Violation,
    /// The work that it took.
    pub effort: Effort,
}

/// The work that minimising has taken, and why it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// Runs.
    pub runs: u32,
    /// Power failures that were judged in them, and those of runs that were given up.
    pub failures: u64,
    /// The end.
    pub ended: End,
}

/// The end of minimising.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// Nothing that is tried makes the program smaller.
    Least,
    /// The limit was reached: the program is the smallest until then.
    Limit,
    /// A caller has cancelled it: the program is the smallest until then.
    Interrupted,
}

/// The least program that still violates; `None` if this one does not.
pub fn minimise(
    registry: &Registry,
    litmus: &Litmus,
    design: &'static DesignInfo,
) -> Option<Minimised> {
    let outcome = Case::new(registry, litmus, design).ok()?.run().ok()?;
    let (violation, control) = (outcome.violations.first()?, Arc::default());
    minimise_observed(registry, litmus, design, violation, 0, RUNS, &control)
}

/// The same for a program that is known to violate its guarantee in this way, with tears and landings drawn from a
/// seed, in `runs_max` runs. When it is cancelled, it is as far as it has come.
pub(crate) fn minimise_observed(
    registry: &Registry,
    litmus: &Litmus,
    design: &'static DesignInfo,
    violation: &Violation,
    seed: u64,
    runs_max: u32,
    control: &Arc<Control>,
) -> Option<Minimised> {
    let how = only(violation);
    let mut minimiser = Minimiser {
        registry,
        design,
        seed,
        how,
        control,
        runs_max,
        runs: 0,
        failures: 0,
        failures_of_a_run: u64::MAX,
        violation: None,
        guarantee: Case::new(registry, litmus, design).ok()?.guarantee(),
    };
    let mut best = litmus.clone();
    best.expectations.clear();
    if !violation.before.is_empty() {
        // The lives before the last one end as they did, as long as that one is long.
        violation.pin(&mut best);
        best.lives[violation.before.len()].crash = CrashAt::Everywhere;
        minimiser.still_violates(&best)?;
        minimiser.drop_transactions(&mut best);
        minimiser.drop_steps(&mut best);
    }
    let pinned = best.clone();
    best.lives.iter_mut().for_each(|life| life.crash = CrashAt::Everywhere);
    if minimiser.runs >= runs_max {
        best = pinned;
    } else if minimiser.still_violates(&best).is_none() {
        best = pinned;
        minimiser.still_violates(&best)?;
    }
    minimiser.drop_threads(&mut best);
    minimiser.drop_transactions(&mut best);
    minimiser.drop_unused(&mut best);
    minimiser.how = Thoroughness::SHORT;
    loop {
        let before = best.clone();
        minimiser.drop_threads(&mut best);
        minimiser.drop_transactions(&mut best);
        minimiser.drop_steps(&mut best);
        minimiser.drop_signals(&mut best);
        minimiser.make_plain(&mut best);
        minimiser.make_small(&mut best);
        if best == before || minimiser.is_spent() {
            break;
        }
    }
    let effort = minimiser.effort();
    let violation =
        minimiser.violation.expect("the program that is left violates, as the first did");
    violation.pin(&mut best);
    Some(Minimised { litmus: best, violation, effort })
}

/// Every crash point, in the plain mode and one other.
fn only(violation: &Violation) -> Thoroughness {
    let mut how = Thoroughness::SHORT;
    let failure = violation.failure.clone().unwrap_or_default();
    if !violation.before.is_empty() {
        return how;
    }
    how.lives_after = LivesAfter::None;
    if failure.cuts.is_empty() {
        how.recovery_every = 0;
    }
    if !matches!(failure.mode, FailureMode::Torn(_)) {
        how.torn_every = 0;
    }
    if !matches!(failure.mode, FailureMode::InFlight(_) | FailureMode::Landed(_)) {
        how.in_flight_every = 0;
    }
    how
}

struct Minimiser<'a> {
    registry: &'a Registry,
    design: &'static DesignInfo,
    seed: u64,
    how: Thoroughness,
    control: &'a Arc<Control>,
    runs_max: u32,
    runs: u32,
    failures: u64,
    /// After which a candidate is given up.
    failures_of_a_run: u64,
    /// The violation of the best program.
    violation: Option<Violation>,
    /// The guarantee that it violates.
    guarantee: Guarantee,
}

impl Minimiser<'_> {
    /// Tells whether it violates its guarantee; then it is the best program.
    fn still_violates(&mut self, candidate: &Litmus) -> Option<()> {
        self.runs += 1;
        // What is not a valid program any more (a lock without its unlock) is read as such.
        let candidate = litmus::parse(&candidate.to_string()).ok()?;
        if !is_isolated(&candidate) {
            return None;
        }
        let how = Thoroughness { failures_max: self.failures_of_a_run, ..self.how.clone() };
        let case = Case::new(self.registry, &candidate, self.design).ok()?.examined(how);
        if case.guarantee() != self.guarantee {
            return None;
        }
        let Ok(outcome) = case.drawing(self.seed).under(self.control).run() else {
            self.failures = self.failures.saturating_add(self.failures_of_a_run);
            return None;
        };
        let judged = outcome.tally.recoveries();
        self.failures += judged;
        self.violation = Some(outcome.violations.into_iter().next()?);
        self.failures_of_a_run = FAILURES_OF_A_RUN + 4 * judged;
        Some(())
    }

    fn is_spent(&self) -> bool {
        let failures_max = FAILURES * u64::from(self.runs_max.max(RUNS)) / u64::from(RUNS);
        self.runs >= self.runs_max || self.failures >= failures_max
    }

    /// The work until now, as the end.
    fn effort(&self) -> Effort {
        let ended = if self.control.is_cancelled() {
            End::Interrupted
        } else if self.is_spent() {
            End::Limit
        } else {
            End::Least
        };
        Effort { runs: self.runs, failures: self.failures, ended }
    }

    fn try_it(&mut self, best: &mut Litmus, change: impl FnOnce(&mut Litmus)) -> bool {
        if self.is_spent() || self.control.is_cancelled() {
            return false;
        }
        let mut candidate = best.clone();
        change(&mut candidate);
        let kept = candidate != *best && self.still_violates(&candidate).is_some();
        if kept {
            *best = candidate;
        }
        kept
    }

    fn drop_threads(&mut self, best: &mut Litmus) {
        while best.lives.len() > 1 && self.try_it(best, |l| drop(l.lives.pop())) {}
        for life in 0..best.lives.len() {
            let mut thread = 0;
            while thread < best.lives[life].threads.len() && best.lives[life].threads.len() > 1 {
                if !self.try_it(best, |l| drop(l.lives[life].threads.remove(thread))) {
                    thread += 1;
                }
            }
        }
    }

    /// Every thread of every life.
    fn each_thread(
        &mut self,
        best: &mut Litmus,
        change: impl Fn(&mut Self, &mut Litmus, (usize, usize)),
    ) {
        for life in 0..best.lives.len() {
            for thread in 0..best.lives[life].threads.len() {
                change(self, best, (life, thread));
            }
        }
    }

    /// Runs of transactions, halving their length down to one; each goes from a begin (and the locks
    /// before it) to the next.
    fn drop_transactions(&mut self, best: &mut Litmus) {
        self.each_thread(best, |this, best, place| this.drop_runs(best, place, heads));
    }

    /// Drops runs of what begins at some steps of a thread, halving their length down to one.
    fn drop_runs(
        &mut self,
        best: &mut Litmus,
        (life, thread): (usize, usize),
        starts: fn(&[Step]) -> Vec<usize>,
    ) {
        let mut length = starts(&best.lives[life].threads[thread]).len().next_power_of_two();
        while length > 0 {
            let mut nth = 0;
            loop {
                let steps = &best.lives[life].threads[thread];
                let starts = starts(steps);
                let Some(&from) = starts.get(nth) else { break };
                let to = starts.get(nth + length).copied().unwrap_or(steps.len());
                if !self.try_it(best, |l| drop(l.lives[life].threads[thread].drain(from..to))) {
                    nth += length;
                }
            }
            length /= 2;
        }
    }

    /// Runs of steps, halving their length down to one; a lock goes with its unlock.
    fn drop_steps(&mut self, best: &mut Litmus) {
        self.each_thread(best, |this, best, (life, thread)| {
            this.drop_runs(best, (life, thread), |steps| (0..steps.len()).collect());
            let mut at = 0;
            while at < best.lives[life].threads[thread].len() {
                let steps = &best.lives[life].threads[thread];
                let Step::Lock(name) = &steps[at] else {
                    at += 1;
                    continue;
                };
                let unlock = Step::Unlock(name.clone());
                let unlock = steps[at..].iter().position(|step| *step == unlock).map(|n| at + n);
                let kept = unlock.is_some_and(|unlock| {
                    this.try_it(best, |l| {
                        l.lives[life].threads[thread].remove(unlock);
                        l.lives[life].threads[thread].remove(at);
                    })
                });
                at += usize::from(!kept);
            }
        });
    }

    /// Signals, each with those who await it.
    fn drop_signals(&mut self, best: &mut Litmus) {
        for life in 0..best.lives.len() {
            let steps = best.lives[life].threads.iter().flatten();
            let names: BTreeSet<String> = steps.filter_map(signal_of).map(str::to_owned).collect();
            for name in names {
                self.try_it(best, |l| {
                    for steps in &mut l.lives[life].threads {
                        steps.retain(|step| signal_of(step) != Some(&name));
                    }
                });
            }
        }
    }

    /// The machine as it is by default, where that suffices.
    fn make_plain(&mut self, best: &mut Litmus) {
        self.try_it(best, |l| l.settings.clear());
        let mut at = 0;
        while at < best.settings.len() {
            if !self.try_it(best, |l| drop(l.settings.remove(at))) {
                at += 1;
            }
        }
        for life in 0..best.lives.len() {
            self.try_it(best, |l| l.lives[life].adversary = None);
            if life == 0 {
                self.try_it(best, |l| l.garbage = None);
            }
            self.try_it(best, |l| l.lives[life].first_transaction = 0);
        }
        self.drop_unused(best);
        for at in (0..best.variables.len()).rev() {
            self.try_it(best, |l| l.variables[at].place = Placement::OwnLine);
        }
    }

    /// Variables that no step names: all at once, or else one by one.
    fn drop_unused(&mut self, best: &mut Litmus) {
        let unused = |l: &Litmus| {
            let words = l.steps().flat_map(words_of);
            let beside = l.variables.iter().filter_map(|v| match &v.place {
                Placement::With(name) => Some(name),
                _ => None,
            });
            let used: BTreeSet<&String> = words.map(|word| &word.name).chain(beside).collect();
            let unused = |&at: &usize| !used.contains(&l.variables[at].name);
            (0..l.variables.len()).filter(unused).collect::<Vec<usize>>()
        };
        let without = |l: &mut Litmus, gone: &[usize]| {
            let mut at = 0..;
            l.variables.retain(|_| at.next().is_some_and(|at| gone.binary_search(&at).is_err()));
        };
        let all = unused(best);
        if !all.is_empty() && !self.try_it(best, |l| without(l, &all)) {
            for at in all.into_iter().rev() {
                self.try_it(best, |l| drop(l.variables.remove(at)));
            }
        }
    }

    /// Smaller numbers.
    fn make_small(&mut self, best: &mut Litmus) {
        self.each_thread(best, |this, best, (life, thread)| {
            for at in 0..best.lives[life].threads[thread].len() {
                if let Step::Compute(n) = best.lives[life].threads[thread][at]
                    && n > 1
                {
                    let less = Step::Compute(n / 4 + 1);
                    this.try_it(best, |l| l.lives[life].threads[thread][at] = less);
                }
                if let Step::If(_, _, then) = &best.lives[life].threads[thread][at] {
                    let always = Step::clone(then);
                    this.try_it(best, |l| l.lives[life].threads[thread][at] = always);
                }
            }
        });
        for at in 0..best.variables.len() {
            self.try_it(best, |l| l.variables[at].initial = 0);
            let name = best.variables[at].name.clone();
            let steps = || best.steps().flat_map(words_of);
            let highest = steps().filter(|w| w.name == name).filter_map(|w| w.index).max();
            if let (Some(_), Some(highest)) = (best.variables[at].words, highest) {
                self.try_it(best, |l| l.variables[at].words = Some(highest + 1));
            }
        }
    }
}

/// The beginnings of transactions; steps before the first belong to none.
fn heads(steps: &[Step]) -> Vec<usize> {
    let is_head = |i: usize| matches!(steps[i], Step::Lock(_) | Step::Begin);
    (0..steps.len()).filter(|&i| i == 0 || is_head(i) && !is_head(i - 1)).collect()
}

/// The signal that a step gives or awaits.
fn signal_of(step: &Step) -> Option<&str> {
    match step {
        Step::Signal(name) | Step::Await(name) => Some(name),
        _ => None,
    }
}

fn words_of(step: &Step) -> impl Iterator<Item = &Word> {
    let tested = if let Step::If(word, ..) = step { Some(word) } else { None };
    let touched = match step.action() {
        Step::Store(word, _)
        | Step::StoreNonTemporal(word, _)
        | Step::Load(word)
        | Step::Evict(word, _)
        | Step::WriteBack(word)
        | Step::Persist(Persist::WriteBack(word)) => Some(word),
        _ => None,
    };
    tested.into_iter().chain(touched)
}
