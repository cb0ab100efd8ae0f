//! Changes of a program that keep it legal: transactions that come again, go, or are drawn anew, other values, evictions
//! elsewhere, another machine, another order of things, other lives, other words that signals hand over.

use std::ops::Range;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::generator::Drawn;
use super::subject::Subject;
use super::transactions::transactions;
use crate::litmus::{Choices, Step};
use graven_base::memory::spread;

/// A change is followed by another in one of two cases, up to this number.
const CHANGES_MAX: u32 = 6;

/// Steps of a life at most: what is longer is not made longer.
const STEPS_MAX: usize = 4000;

/// A change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Disturb,
    RemoveStep,
    Value,
    StoreAgain,
    Condition,
    TransactionAgain,
    RemoveTransaction,
    NewTransaction,
    AllAgain,
    Setting,
    Order,
    FirstTransaction,
    Lives,
    Signals,
    Situation,
}

impl Change {
    const ALL: [Change; 15] = [
        Change::Disturb,
        Change::RemoveStep,
        Change::Value,
        Change::StoreAgain,
        Change::Condition,
        Change::TransactionAgain,
        Change::RemoveTransaction,
        Change::NewTransaction,
        Change::AllAgain,
        Change::Setting,
        Change::Order,
        Change::FirstTransaction,
        Change::Lives,
        Change::Signals,
        Change::Situation,
    ];
}

impl Drawn {
    /// The schedule of a seed: this one, changed.
    pub fn varied(&self, subject: &Subject<'_>, seed: u64) -> Drawn {
        let mut varied = self.clone();
        varied.generator.random = Pcg64::seed_from_u64(spread(seed, 0x7661));
        for _ in 0..CHANGES_MAX {
            let change = Change::ALL.choose(&mut varied.generator.random).expect("not empty");
            varied.change(*change, subject);
            if varied.generator.one_in(2) {
                break;
            }
        }
        varied.litmus.title = format!("schedule {seed} of the adversary");
        varied.set_cores(seed);
        varied.fit(subject, seed);
        varied
    }

    fn any(&mut self, below: usize) -> usize {
        self.generator.random.random_range(0..below)
    }

    fn change(&mut self, change: Change, subject: &Subject<'_>) {
        match change {
            Change::Setting => {
                let drawn = self.generator.any_setting(subject.design);
                let settings = &mut self.litmus.settings;
                settings.retain(|(key, _)| drawn.iter().all(|(of, _)| of != key));
                if !self.generator.one_in(4) {
                    settings.extend(drawn);
                }
            }
            Change::Order => {
                let order = (!self.generator.one_in(8))
                    .then(|| Choices::Drawn(self.generator.random.random()));
                self.litmus.lives[0].adversary = order;
            }
            Change::FirstTransaction => {
                self.litmus.lives[0].first_transaction = self.generator.first_transaction();
            }
            Change::Lives => self.change_lives(),
            Change::Signals => self.signals = self.generator.signals(),
            Change::Situation => {
                let steps = self.litmus.lives[0].threads.iter().map(Vec::len).sum::<usize>();
                if steps < STEPS_MAX {
                    let Drawn { litmus, variables, generator, .. } = self;
                    generator.add_any_situation(litmus, variables, subject);
                }
            }
            _ => {
                let life = self.any(self.litmus.lives.len());
                let thread = self.any(self.litmus.lives[life].threads.len());
                let threads = &mut self.litmus.lives[life].threads;
                let length = threads.iter().map(Vec::len).sum::<usize>();
                let mut steps = std::mem::take(&mut threads[thread]);
                self.change_thread(change, thread, &mut steps, length < STEPS_MAX);
                self.litmus.lives[life].threads[thread] = steps;
            }
        }
    }

    fn change_lives(&mut self) {
        let later = self.litmus.lives.len() - 1;
        let most = self.generator.draws.lives as usize;
        if later > 0 && self.generator.one_in(3) {
            let gone = 1 + self.any(later);
            self.litmus.lives.remove(gone);
        } else if later + 1 < most {
            let life = self.generator.life(&self.litmus, &self.variables);
            self.litmus.lives.push(life);
        } else if later > 0 {
            let at = 1 + self.any(later);
            self.litmus.lives[at] = self.generator.life(&self.litmus, &self.variables);
        }
    }

    /// Changes one thread of one life. A change that makes it longer is made if it may be.
    fn change_thread(
        &mut self,
        change: Change,
        thread: usize,
        steps: &mut Vec<Step>,
        may_grow: bool,
    ) {
        let transactions = transactions(steps);
        let most = self.generator.draws.transactions as usize;
        let is_store = Step::is_transactional_store;
        match change {
            Change::Disturb => {
                let mut drawn = Vec::new();
                self.generator.disturb(&self.variables, &mut drawn);
                let at = self.any(steps.len() + 1);
                steps.splice(at..at, drawn);
            }
            Change::RemoveStep => {
                let is_free = |step: &Step| {
                    !matches!(step, Step::Begin | Step::Commit | Step::Lock(_) | Step::Unlock(_))
                };
                if let Some(at) = self.position(steps, is_free) {
                    steps.remove(at);
                }
            }
            Change::Value => {
                if let Some(at) = self.position(steps, is_store)
                    && let Step::Store(word, value) | Step::StoreNonTemporal(word, value) =
                        &mut steps[at]
                {
                    *value = self.generator.value(word);
                }
            }
            Change::StoreAgain if may_grow => {
                if let Some(at) = self.position(steps, is_store) {
                    let end = steps[at..].iter().position(|step| *step == Step::Commit);
                    let end = at + end.expect("a store is in a transaction");
                    let to = self.generator.random.random_range(at + 1..=end);
                    steps.insert(to, steps[at].clone());
                }
            }
            Change::Condition => {
                if let Some(at) = self.position(steps, is_store) {
                    let step = steps[at].action().clone();
                    steps[at] = match &steps[at] {
                        Step::If(..) => step,
                        _ => self.generator.conditional(step, &self.variables),
                    };
                }
            }
            Change::TransactionAgain if may_grow && (1..most).contains(&transactions.len()) => {
                let again = transactions[self.any(transactions.len())].clone();
                let to = transactions[self.any(transactions.len())].start;
                let again = steps[again].to_vec();
                steps.splice(to..to, again);
            }
            Change::RemoveTransaction if transactions.len() > 1 => {
                steps.drain(transactions[self.any(transactions.len())].clone());
            }
            Change::NewTransaction if may_grow && transactions.len() < most => {
                let drawn = self.generator.thread(thread, &self.variables);
                let first = transactions_of(&drawn, 0);
                steps.extend_from_slice(&drawn[first]);
            }
            Change::AllAgain if may_grow && transactions.len() * 2 <= most => {
                steps.extend_from_within(..);
            }
            _ => {}
        }
    }

    /// Any step of a kind.
    fn position(&mut self, steps: &[Step], is_one: impl Fn(&Step) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..steps.len()).filter(|&at| is_one(&steps[at])).collect();
        all.choose(&mut self.generator.random).copied()
    }
}

/// One of them; nothing if there is none.
fn transactions_of(steps: &[Step], number: usize) -> Range<usize> {
    transactions(steps).into_iter().nth(number).unwrap_or(0..0)
}
