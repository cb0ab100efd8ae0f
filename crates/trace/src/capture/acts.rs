//! The meaning of the events of one thread by themselves: its transactions, its locks, the region of interest. The survey and the
//! assembly both go by this.

use graven_capture::{Event, Left, Mark};

use super::roles::{Role, Rules};

/// An action of a thread by an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// Begins a transaction, and had none.
    Begin,
    /// Ends the transaction.
    End,
    /// Aborts a transaction, or one within it.
    Abort,
    /// Ends or aborts one, and had none; nor has the thread just aborted one, which programs end nevertheless.
    EndOfNone,
    /// The thread is gone, and its transaction was not over; the end follows.
    Abandon,
    /// Acquires a lock that the thread does not hold.
    Lock(u64),
    /// Holds a lock no longer.
    Unlock(u64),
    /// The region of interest begins, if it has not begun.
    From,
    /// The region ends, if it has begun.
    Until,
}

/// A function that the thread is in.
#[derive(Debug)]
struct Inside {
    function: u32,
    argument: u64,
    /// The thread has begun a transaction, or one within another.
    has_begun: bool,
    /// The number of times that the lock of a waiting thread was held before.
    times: u32,
}

/// A lock that is held.
#[derive(Debug)]
struct Held {
    lock: u64,
    /// The number of times that it was acquired and not released.
    times: u32,
}

/// A thread, as far as its events say.
#[derive(Debug, Default)]
pub(super) struct Actor {
    inside: Vec<Inside>,
    /// Transactions that it has begun and not ended: they are one.
    depth: u32,
    /// The thread has aborted the last one that it had.
    has_aborted: bool,
    held: Vec<Held>,
    /// Functions that it is in that are left out, and that synchronise threads.
    left_out: u32,
    synchronising: u32,
}

impl Actor {
    /// Adds what it does by its next event.
    pub fn take(&mut self, rules: &Rules, event: &Event, acts: &mut Vec<Act>) {
        match *event {
            Event::Entered { function, argument } => self.enters(rules, function, argument, acts),
            Event::Left { function, result, how } => {
                let result = (how == Left::Returned).then_some(result);
                self.leaves(rules, function, result, acts);
            }
            Event::Marked(mark) => self.marks(rules, mark, acts),
            Event::Ended => self.ends(acts),
            _ => {}
        }
    }

    /// Tells whether it is in a function that has this role.
    pub fn is_inside(&self, rules: &Rules, role: Role) -> bool {
        self.inside.iter().any(|inside| rules.roles(inside.function).contains(&role))
    }

    /// Tells whether it is in a function that is left out.
    pub fn is_left_out(&self) -> bool {
        self.left_out > 0
    }

    /// Tells whether it is in a function that synchronises threads.
    pub fn is_synchronising(&self) -> bool {
        self.synchronising > 0
    }

    /// Tells whether it holds a lock.
    pub fn holds(&self, lock: u64) -> bool {
        self.times(lock) > 0
    }

    /// The argument with which it has entered a function that it is in.
    pub fn argument(&self, function: u32) -> Option<u64> {
        self.inside.iter().rev().find(|i| i.function == function).map(|i| i.argument)
    }

    /// The callees of a function that ends a transaction are part of that.
    fn is_ending(&self, rules: &Rules) -> bool {
        self.inside.iter().any(|inside| rules.roles(inside.function).iter().any(|r| r.ends()))
    }

    fn enters(&mut self, rules: &Rules, function: u32, argument: u64, acts: &mut Vec<Act>) {
        let roles = rules.roles(function);
        let has_begun = roles.iter().any(|role| role.begins()) && !self.is_ending(rules);
        let times = self.times(argument);
        self.inside.push(Inside { function, argument, has_begun, times });
        if has_begun {
            self.begin(acts);
        }
        for role in roles {
            self.synchronising += u32::from(role.synchronises());
            match role {
                Role::Unlock | Role::Wait => self.release(rules, argument, acts),
                Role::From => acts.push(Act::From),
                Role::LeftOut => self.left_out += 1,
                _ => {}
            }
        }
    }

    /// A function was left; `result`: what it returned, if it did.
    fn leaves(&mut self, rules: &Rules, function: u32, result: Option<u64>, acts: &mut Vec<Act>) {
        let Some(at) = self.inside.iter().rposition(|inside| inside.function == function) else {
            return;
        };
        let Inside { argument, has_begun, times, .. } = self.inside.remove(at);
        // Of an int, the upper half is anything.
        let has_succeeded = result.is_some_and(|result| result as u32 == 0);
        for &role in rules.roles(function) {
            self.synchronising -= u32::from(role.synchronises());
            match role {
                Role::Begin { returns_zero } if has_begun && returns_zero && !has_succeeded => {
                    self.end(acts);
                }
                Role::Call if has_begun => self.end(acts),
                Role::Commit if !self.is_ending(rules) => self.end(acts),
                Role::Abort if !self.is_ending(rules) => self.abort(acts),
                Role::Lock if result.is_some_and(Role::has_locked) => {
                    self.acquire(rules, argument, acts);
                }
                // It may have called what acquires it.
                Role::Wait if result.is_some() && self.times(argument) < times.max(1) => {
                    self.acquire(rules, argument, acts);
                }
                Role::LeftOut => self.left_out -= 1,
                Role::Until if !self.inside.iter().any(|i| i.function == function) => {
                    acts.push(Act::Until);
                }
                _ => {}
            }
        }
    }

    fn marks(&mut self, rules: &Rules, mark: Mark, acts: &mut Vec<Act>) {
        match mark {
            Mark::From => acts.push(Act::From),
            Mark::Until => acts.push(Act::Until),
            _ if self.is_ending(rules) => {}
            Mark::Begin => self.begin(acts),
            Mark::Commit => self.end(acts),
            Mark::Abort => self.abort(acts),
        }
    }

    /// The thread has ended, with whatever it had.
    fn ends(&mut self, acts: &mut Vec<Act>) {
        if std::mem::take(&mut self.depth) > 0 {
            acts.extend([Act::Abandon, Act::End]);
        }
        acts.extend(self.held.drain(..).map(|held| Act::Unlock(held.lock)));
    }

    fn begin(&mut self, acts: &mut Vec<Act>) {
        self.depth += 1;
        if self.depth == 1 {
            self.has_aborted = false;
            acts.push(Act::Begin);
        }
    }

    fn end(&mut self, acts: &mut Vec<Act>) {
        match self.depth {
            0 if self.has_aborted => {}
            0 => acts.push(Act::EndOfNone),
            1 => acts.push(Act::End),
            _ => {}
        }
        self.depth = self.depth.saturating_sub(1);
    }

    fn abort(&mut self, acts: &mut Vec<Act>) {
        acts.push(Act::Abort);
        let is_last = self.depth == 1;
        self.end(acts);
        self.has_aborted |= is_last;
    }

    fn times(&self, lock: u64) -> u32 {
        self.held.iter().find(|held| held.lock == lock).map_or(0, |held| held.times)
    }

    fn acquire(&mut self, rules: &Rules, lock: u64, acts: &mut Vec<Act>) {
        if let Some(held) = self.held.iter_mut().find(|held| held.lock == lock) {
            held.times += 1;
            return;
        }
        self.held.push(Held { lock, times: 1 });
        acts.push(Act::Lock(lock));
        if rules.critical_sections && self.held.len() == 1 {
            self.begin(acts);
        }
    }

    fn release(&mut self, rules: &Rules, lock: u64, acts: &mut Vec<Act>) {
        let Some(at) = self.held.iter().position(|held| held.lock == lock) else { return };
        self.held[at].times -= 1;
        if self.held[at].times > 0 {
            return;
        }
        self.held.remove(at);
        if rules.critical_sections && self.held.is_empty() {
            self.end(acts);
        }
        acts.push(Act::Unlock(lock));
    }
}
