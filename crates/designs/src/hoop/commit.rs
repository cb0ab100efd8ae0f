//! The end of a transaction: its last slices, its records, one phase or two.
//!
//! With one controller: slices, then the commit record, then the acknowledgement. With several that have
//! slices of the transaction (§III-I): each writes a *prepared* record when its slices are durable, and says so;
//! when the core has heard of all, it sends the commit message, upon which each turns its record into a
//! *committed* one; when all are durable, the thread continues. One committed record anywhere is the decision: all
//! slices are there then. (The paper has the slices flushed after the commit message, upon which a
//! failure could find them at one controller only.)

use super::collect::Reason;
use super::event::Event;
use super::layout::Record;
use super::packing::{Phase, Thread};
use super::protocol::{Hoop, Port, Timer, Write};
use super::region::Reserved;
use graven_base::ids::ThreadId;
use graven_machine::design::Stall;
use graven_machine::request::{self, WriteClass};

impl Hoop {
    /// A thread's transaction ends: its records get their places, and its last slices leave.
    pub(super) fn end(&mut self, port: &mut Port<'_>, thread: usize) -> Stall {
        let participants = self.participants(thread);
        if participants.is_empty() {
            self.threads[thread].phase = Phase::Outside;
            self.look_after_waiting(port);
            return Stall::None;
        }
        let is_full = |&controller: &usize| !self.controllers[controller].region.can_reserve();
        if let Some(full) = participants.iter().copied().find(is_full) {
            return self.wait_for_collection(port, full, thread, Reason::RegionFull);
        }
        for controller in participants {
            let reserved = self.controllers[controller].region.reserve(port);
            self.threads[thread].buffers[controller].reserved = Some(reserved);
            self.flush(port, thread, controller);
        }
        self.threads[thread].phase = Phase::Flushing;
        self.record_if_flushed(port, thread);
        Stall::UntilReleased
    }

    /// The controllers that have slices of a thread's transaction.
    fn participants(&self, thread: usize) -> Vec<usize> {
        let buffers = self.threads[thread].buffers.iter().enumerate();
        buffers.filter(|(_, b)| b.first.is_some()).map(|(controller, _)| controller).collect()
    }

    /// Sends the records of a transaction that has ended when its slices are durable: *prepared* ones if there are
    /// several, which makes two phases.
    pub(super) fn record_if_flushed(&mut self, port: &mut Port<'_>, thread: usize) {
        let Thread { phase, buffers, .. } = &mut self.threads[thread];
        let is_flushed =
            buffers.iter().all(|b| b.sent.is_empty()) || !self.rules.slices_are_awaited();
        if *phase != Phase::Flushing || !is_flushed {
            return;
        }
        *phase = Phase::Recording;
        let is_alone = self.participants(thread).len() == 1;
        if !is_alone {
            port.emit(Event::TwoPhases);
        }
        let at_once = is_alone || !self.rules.commit_follows_prepared();
        self.send_records(port, thread, at_once);
    }

    /// Sends a record to each controller that takes part. The *committed* ones follow the commit message.
    pub(super) fn send_records(&mut self, port: &mut Port<'_>, thread: usize, committed: bool) {
        let is_awaited = !committed || self.rules.record_is_awaited();
        for controller in self.participants(thread) {
            let buffer = &self.threads[thread].buffers[controller];
            let Reserved { addr, sequence, after, .. } =
                buffer.reserved.expect("its place was reserved at the end");
            let start = buffer.first.expect("it has slices here");
            let record = Record { start, sequence, committed };
            port.emit(Event::RecordSent { thread, record, addr });
            let write = request::Write::words(WriteClass::Metadata, addr, &[record.word()]);
            let about = is_awaited.then_some(Write::Record { thread, committed });
            self.threads[thread].records += u32::from(is_awaited);
            port.write_maybe_reported(write.after(after), about, 0);
        }
        if !is_awaited {
            self.finish(port, thread);
        }
    }

    /// A record is durable. When all are, the transaction has committed; or it is prepared: the controllers
    /// acknowledge that, and the commit message follows.
    pub(super) fn recorded(&mut self, port: &mut Port<'_>, thread: usize, committed: bool) {
        self.threads[thread].records -= 1;
        if self.threads[thread].records > 0 {
            return;
        }
        if committed {
            return self.finish(port, thread);
        }
        let there_and_back = 2 * port.bypass_cycles();
        port.set_timer(port.now() + there_and_back, Timer::CommitMessage { thread });
    }

    /// The transaction has committed, and the thread is notified.
    fn finish(&mut self, port: &mut Port<'_>, thread: usize) {
        for controller in self.participants(thread) {
            let buffer = &mut self.threads[thread].buffers[controller];
            let reserved = buffer.reserved.take().expect("its place was reserved at the end");
            buffer.first = None;
            self.controllers[controller].region.complete(reserved.block);
        }
        self.threads[thread].phase = Phase::Outside;
        port.release(thread as ThreadId);
        self.look_after_waiting(port);
    }
}
