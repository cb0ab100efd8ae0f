//! An operator in force, or a profile being taken: what happens to writes, waits and stores on their way between a
//! design and the machine.

use std::fmt::Debug;

use super::profile::Writes;
use super::{Hook, Instructions, Operator, Profile, Site, low_bits};
use crate::controller::shared::Notice;
use crate::design::{Code, Instruction, Stall, Store};
use crate::gates::GateNumber;
use crate::machine::Machine;
use crate::program::Persist;
use crate::request::{OrderSeq, Token, Write};
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::words_in;
use graven_base::time::Cycle;

/// Stands between a design and the machine.
#[derive(Debug, Default)]
pub(crate) struct Interference {
    /// The operator in force; none: a profile is taken.
    pub(super) operator: Option<Operator>,
    pub(super) profile: Profile,
    /// A write that is to change places with the next one.
    held: Option<(Write, Cycle)>,
    /// Threads that were not made to wait, and will be released nevertheless.
    ignored_waits: Vec<ThreadId>,
}

impl Interference {
    /// With an operator in force.
    pub fn of(operator: Operator) -> Interference {
        Interference { operator: Some(operator), ..Interference::default() }
    }

    /// Returns the profile.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    fn is(&self, operator: impl FnOnce(&Operator) -> bool) -> bool {
        self.operator.as_ref().is_some_and(operator)
    }

    /// Changes a place in the order of writes that the writes of a site wait for.
    fn change_after(&mut self, site: &Site, after: u64) -> u64 {
        match &self.operator {
            None => self.profile.writes.entry(site.clone()).or_default().wait |= after > 0,
            Some(Operator::Unordered(of)) if of == site => return 0,
            Some(Operator::OneTooEarly(of)) if of == site => return after.saturating_sub(1),
            Some(_) => {}
        }
        after
    }

    /// Changes the gate that the writes of a site wait behind.
    fn change_gate(&mut self, site: &Site, gate: GateNumber) -> GateNumber {
        match &self.operator {
            None => self.profile.writes.entry(site.clone()).or_default().gate |= gate > 0,
            Some(Operator::Ungated(of)) if of == site => return 0,
            Some(_) => {}
        }
        gate
    }

    fn is_reported_early(&mut self, about: Option<&str>) -> bool {
        let Some(about) = about else { return false };
        self.is(|o| matches!(o, Operator::ReportedEarly(name) if name == about))
    }

    fn change_words(&mut self, site: &Site, write: &mut Write) {
        let words = || words_in(write.mask).enumerate();
        match &self.operator {
            None => {
                let seen: &mut Writes = self.profile.writes.entry(site.clone()).or_default();
                seen.ordered |= write.order > 0;
                seen.words = seen.words.max(write.mask.count_ones() as u8);
                for (place, word) in words() {
                    let bits = (64 - write.data[word].leading_zeros()) as u8;
                    seen.bits[place] = seen.bits[place].max(bits);
                }
            }
            Some(Operator::WithoutWord(of, which)) if of == site => {
                let count = words().count();
                let lost = words().filter(|&(place, _)| which.is(place, count));
                let lost = lost.fold(0, |mask, (_, word)| mask | 1 << word);
                if write.mask & !lost != 0 {
                    write.mask &= !lost;
                }
            }
            Some(Operator::Truncated(of, place, bits)) if of == site => {
                if let Some((_, word)) = words().nth(usize::from(*place)) {
                    write.data[word] = low_bits(write.data[word], *bits);
                }
            }
            Some(_) => {}
        }
    }
}

/// The name of a variant, as it is printed for debugging.
pub fn variant(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn report_early(machine: &mut Machine, token: &mut Token) {
    let notice = Notice::Persisted(std::mem::take(token));
    machine.memory.shared.notices.push_back(notice);
}

/// Between the hooks of a design and the machine.
impl Interference {
    /// The design sends a write.
    #[cold]
    pub fn send(
        &mut self,
        machine: &mut Machine,
        about: Option<&str>,
        mut write: Write,
        delay: Cycle,
    ) {
        let site = match about {
            Some(name) => Site::Reported(name.to_owned()),
            None => Site::Unreported(write.class),
        };
        write.after = self.change_after(&site, write.after);
        write.gate = self.change_gate(&site, write.gate);
        self.change_words(&site, &mut write);
        if self.is_reported_early(about) {
            report_early(machine, &mut write.token);
        }
        let exchanged = self.is(|o| *o == Operator::Exchanged(site.clone()));
        if let Some((mut before, before_delay)) = self.held.take() {
            std::mem::swap(&mut before.order, &mut write.order);
            std::mem::swap(&mut before.after, &mut write.after);
            machine.write(&write, delay);
            machine.write(&before, before_delay);
        } else if exchanged && write.order > 0 {
            self.held = Some((write, delay));
        } else {
            machine.write(&write, delay);
        }
    }

    /// A dirty line leaves the caches, or is written back: the ordered write and the gate that it waits for, and the token with which
    /// it is reported.
    #[cold]
    pub fn evict(
        &mut self,
        machine: &mut Machine,
        about: Option<&str>,
        after: OrderSeq,
        gate: GateNumber,
        mut token: Token,
    ) -> (OrderSeq, GateNumber, Token) {
        let after = self.change_after(&Site::Eviction, after);
        let gate = self.change_gate(&Site::Eviction, gate);
        if self.operator.is_none()
            && let Some(about) = about
        {
            self.profile.writes.entry(Site::Reported(about.to_owned())).or_default();
        }
        if self.is_reported_early(about) {
            report_early(machine, &mut token);
        }
        (after, gate, token)
    }

    /// Nothing more is sent at this time: what was held for the next write goes without it.
    pub fn send_held(&mut self, machine: &mut Machine) {
        if let Some((write, delay)) = self.held.take() {
            machine.write(&write, delay);
        }
    }

    /// A hook has answered.
    #[cold]
    pub fn answer(&mut self, hook: Hook, thread: ThreadId, stall: Stall) -> Stall {
        if stall != Stall::UntilReleased {
            return stall;
        }
        match self.operator {
            None => drop(self.profile.waits.insert(hook)),
            Some(Operator::NoWait(of)) if of == hook => {
                self.ignored_waits.push(thread);
                return Stall::None;
            }
            Some(_) => {}
        }
        stall
    }

    /// The design releases a thread; returns whether it was made to wait.
    #[cold]
    pub fn waits(&mut self, thread: ThreadId) -> bool {
        let ignored = self.ignored_waits.iter().position(|&ignored| ignored == thread);
        ignored.map(|at| self.ignored_waits.swap_remove(at)).is_none()
    }

    /// Transaction as the design sees it.
    pub fn seen_transaction(&self, tx: Tx) -> Tx {
        match self.operator {
            Some(Operator::NumberBits(bits)) => Tx { number: low_bits(tx.number, bits), ..tx },
            _ => tx,
        }
    }

    /// Store as the design sees it.
    #[cold]
    pub fn seen_store(&mut self, store: &Store) -> Store {
        if self.operator.is_none() {
            self.profile.transactions = true;
        }
        let new = self.seen_value(store.old, store.new);
        Store { tx: self.seen_transaction(store.tx), new, ..*store }
    }

    /// The new value of a store as the design sees it.
    #[cold]
    pub fn seen_value(&mut self, old: u64, new: u64) -> u64 {
        match self.operator {
            None => self.profile.stores = true,
            Some(Operator::StaleByte(byte)) => {
                let mask = 0xff << (8 * byte);
                return new & !mask | old & mask;
            }
            Some(_) => {}
        }
        new
    }

    /// The tag that a line has after the design has set it.
    #[cold]
    pub fn seen_tag(&mut self, tag: u8) -> u8 {
        match self.operator {
            None => {
                self.profile.tag_bits = self.profile.tag_bits.max(8 - tag.leading_zeros() as u8)
            }
            Some(Operator::TagBits(bits)) => return low_bits(tag.into(), bits) as u8,
            Some(_) => {}
        }
        tag
    }

    /// Changes a piece of code that the design's software hands over.
    #[cold]
    pub fn change_code(&mut self, code: &mut Code) {
        let kind = |instruction: &Instruction| match instruction {
            Instruction::Persist(Persist::WriteBack(_)) => Some(Instructions::Flush),
            Instruction::Persist(Persist::Fence) => Some(Instructions::Fence),
            _ => None,
        };
        match self.operator {
            None => self.profile.instructions.extend(code.all().filter_map(kind)),
            Some(Operator::WithoutInstruction(what, which)) => {
                let is_meant = |i: &Instruction| kind(i) == Some(what);
                let count = code.all().filter(|i| is_meant(i)).count();
                let mut at = 0..;
                code.retain(|i| {
                    !is_meant(i) || !at.next().is_some_and(|at: usize| which.is(at, count))
                });
            }
            Some(_) => {}
        }
    }
}
