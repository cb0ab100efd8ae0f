//! The end of a transaction: its last slices, its records, one phase or two.
//!
//! With one controller: slices, then the commit record, then the acknowledgement. With several that have
//! slices of the transaction (§III-I): each writes a *prepared* record when its slices are durable, and says so;
//! when the core has heard of all, it sends the commit message, upon which each turns its record into a
//! *committed* one; when all are durable, the thread goes on. One committed record anywhere is the decision: all
//! slices are there then. (The paper has the slices flushed after the commit message, upon which a
//! failure could find them at one controller only.)

use super::layout::Record;
use super::packing::Phase;
use super::{Alarm, Cover, Hoop, Mutant, Pending, Reason};
use graven_base::time::Cycle;
use graven_machine::design::Stall;
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

impl Hoop {
    /// A thread's transaction ends.
    pub(super) fn end(&mut self, m: &mut Machine, t: usize) -> Stall {
        let participants = self.participants(t);
        if participants.is_empty() {
            self.threads[t].phase = Phase::Outside;
            return Stall::None;
        }
        for &c in &participants {
            if !self.controllers[c].region.can_reserve() {
                return self.wait_for_collection(m, c, t, Reason::RegionFull);
            }
        }
        for &c in &participants {
            let reserved = self.controllers[c].region.reserve(m);
            self.threads[t].buffers[c].reserved = Some(reserved);
            if self.threads[t].buffers[c].open.is_some() {
                if self.mutants.has(Mutant::LastSliceNotFlushed) {
                    self.threads[t].buffers[c].open = None;
                } else {
                    self.send_slice(m, t, c, 0, m.bypass_cycles());
                }
            }
        }
        self.threads[t].phase = Phase::Flushing;
        self.record_if_flushed(m, t);
        Stall::UntilReleased
    }

    /// The controllers that have slices of a thread's transaction.
    fn participants(&self, t: usize) -> Vec<usize> {
        let buffers = self.threads[t].buffers.iter().enumerate();
        buffers.filter(|(_, b)| b.first.is_some()).map(|(c, _)| c).collect()
    }

    /// Sends the records of a transaction that has ended when its slices are durable.
    pub(super) fn record_if_flushed(&mut self, m: &mut Machine, t: usize) {
        let thread = &self.threads[t];
        let flushed = thread.buffers.iter().all(|b| b.sent.is_empty())
            || self.mutants.has(Mutant::SlicesNotAwaited);
        if thread.phase != Phase::Flushing || !flushed {
            return;
        }
        self.threads[t].phase = Phase::Recording;
        let alone = self.participants(t).len() == 1;
        if !alone {
            m.cover(Cover::TwoPhases as usize);
        }
        let at_once = alone || self.mutants.has(Mutant::CommitBeforePrepared);
        self.send_records(m, t, at_once);
    }

    fn send_records(&mut self, m: &mut Machine, t: usize, committed: bool) {
        let awaited = !(committed && self.mutants.has(Mutant::RecordNotAwaited));
        for c in self.participants(t) {
            let buffer = &self.threads[t].buffers[c];
            let reserved = buffer.reserved.expect("its place was reserved at the end");
            let start = buffer.first.expect("it has slices here");
            let record = Record { start, sequence: reserved.sequence, committed };
            m.note(|| format!("thread {t}: record {:#x} goes to {}", record.word(), reserved.addr));
            let mut write = Write::words(WriteClass::Metadata, reserved.addr, &[record.word()]);
            write.after = reserved.after;
            if awaited {
                self.threads[t].records += 1;
                write.token = self.token(Pending::Record { thread: t, committed });
            }
            m.write(write, 0);
        }
        if !awaited {
            self.finish(m, t);
        }
    }

    /// A record is durable.
    pub(super) fn recorded(&mut self, m: &mut Machine, t: usize, committed: bool) {
        self.threads[t].records -= 1;
        if self.threads[t].records > 0 {
            return;
        }
        if committed {
            return self.finish(m, t);
        }
        // The controllers' acknowledgements, and the commit message.
        let there_and_back: Cycle = 2 * m.bypass_cycles();
        m.set_timer(m.now() + there_and_back, Alarm::Commit(t).token());
    }

    /// The commit message reaches the controllers.
    pub(super) fn commit_message(&mut self, m: &mut Machine, t: usize) {
        self.send_records(m, t, true);
    }

    /// The transaction has committed, and the thread is told.
    fn finish(&mut self, m: &mut Machine, t: usize) {
        for c in self.participants(t) {
            let buffer = &mut self.threads[t].buffers[c];
            let reserved = buffer.reserved.take().expect("its place was reserved at the end");
            buffer.first = None;
            self.controllers[c].region.complete(reserved.block);
        }
        self.threads[t].phase = Phase::Outside;
        m.set_timer(m.now() + m.bypass_cycles(), Alarm::Acknowledge(t).token());
        self.look_after_waiting(m);
    }
}
