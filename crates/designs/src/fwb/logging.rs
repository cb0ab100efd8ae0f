//! Hardware logging (HWL, §III-B, §III-D, §III-E): stores and ends of transactions into the buffer, records out
//! of it into the log, and what waits for them.

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::LineAddr;
use graven_base::time::{Cycle, NEVER};
use graven_machine::design::{Stall, Store};
use graven_machine::request::WriteOrder;

use super::event::Event;
use super::protocol::{Ended, Fwb, Port, Timer};
use crate::packed_log::{Kind, Record};

impl Fwb {
    // ---- into the buffer (§III-D, §III-E) ------------------------------------------------------

    /// A store makes an entry with the old and the new word, or is merged into one that is still in the buffer.
    pub fn log_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let Store { tx, addr, old, new, .. } = *store;
        if self.dirty_flags && old == new {
            port.emit(Event::Ignored { new });
            return Stall::None;
        }
        if self.buffer.merge(store) {
            port.emit(Event::Merged { addr, new });
            return Stall::None;
        }
        if let Some(entry) = self.buffer.entry_of_line(store) {
            return self.join(port, store, entry);
        }
        let thread = tx.thread as usize;
        let is_first = self.running[thread].is_none();
        let reserved = if self.rules.commit_records_have_room() {
            self.reserved + u64::from(is_first)
        } else {
            0
        };
        if self.free_places() < self.buffer.places_of(1) + reserved {
            return self.wait_for_space(port, tx.thread);
        }
        if !self.has_place(port, tx.thread) {
            return Stall::Retry;
        }
        let record = Record { kind: Kind::UndoRedo, addr, undo: old, redo: new, ..Record::BLANK };
        let place = self.append(port, record, tx);
        if is_first {
            self.running[thread] = Some(place);
            self.reserved += 1;
        }
        self.drain(port);
        Stall::None
    }

    /// A store's word joins its line's entry, which then may need another place (§III-E, step 6).
    fn join(&mut self, port: &mut Port<'_>, store: &Store, entry: (usize, u64)) -> Stall {
        let (_, places) = entry;
        let reserved = if self.rules.commit_records_have_room() { self.reserved } else { 0 };
        if places > 0 && self.free_places() < places + reserved {
            return self.wait_for_space(port, store.tx.thread);
        }
        self.buffer.join(entry, store);
        port.emit(Event::Joined { addr: store.addr, undo: store.old, redo: store.new });
        Stall::None
    }

    /// The commit record follows the transaction's entries. One without entries needs none; one whose entries
    /// are all dropped on their way has one.
    pub fn log_commit(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let Some(first_place) = self.running[tx.thread as usize] else { return Stall::None };
        if !self.has_place(port, tx.thread) {
            return Stall::Retry;
        }
        self.append(port, Record { kind: Kind::Commit, ..Record::BLANK }, tx);
        self.running[tx.thread as usize] = None;
        self.reserved -= 1;
        self.ended.push_back(Ended { thread: tx.thread, first_place, order: WriteOrder::NONE });
        if self.strict {
            self.buffer.hurry();
        }
        self.drain(port);
        if self.strict { Stall::UntilReleased } else { Stall::None }
    }

    /// Returns true if a record finds a place in the buffer; otherwise the thread waits for one.
    fn has_place(&mut self, port: &mut Port<'_>, thread: ThreadId) -> bool {
        if self.buffer.is_full() {
            port.emit(Event::BufferFull);
            self.drain(port);
        }
        let full = self.buffer.is_full();
        if full {
            self.waiting_for_buffer.push(thread);
        }
        !full
    }

    /// Puts a transaction's record into the buffer. Returns its place in the log, or one before that.
    fn append(&mut self, port: &mut Port<'_>, record: Record, tx: Tx) -> u64 {
        assert!(self.free_places() > 0 || !self.rules.all_hold(), "there was room");
        let place = self.end.place_behind(self.buffer.entries());
        // Ids come round (§IV-B).
        let id = self.id.wrapped(tx.number) as u16;
        let record = Record { thread: tx.thread, tx: id, ..record };
        self.buffer.push(record, port.now());
        port.emit(Event::Entered { record, occupied: self.buffer.entries() });
        place
    }

    // ---- out of the buffer, into the log (§IV-C) -----------------------------------------------

    /// The log buffer's timer; one that was set before another is void.
    pub fn drain_timer(&mut self, port: &mut Port<'_>) {
        if port.now() == self.drain_at {
            self.drain_at = NEVER;
            self.drain(port);
        }
    }

    /// Sends what is due, as far as write queues have places, and sets the timer for the rest. While they have none
    /// it is enough to look after the next change: a place becomes free by some event.
    fn drain(&mut self, port: &mut Port<'_>) {
        let now = port.now();
        while let Some(due) = self.buffer.due() {
            if due > now {
                return self.drain_by(port, due);
            }
            if !self.end.has_room(port) {
                return self.drain_by(port, port.next_change());
            }
            self.send_oldest(port);
        }
    }

    fn drain_by(&mut self, port: &mut Port<'_>, at: Cycle) {
        if at < self.drain_at || self.drain_at <= port.now() {
            self.drain_at = at;
            port.set_timer(at, Timer::Drain);
        }
    }

    /// The oldest records leave the buffer, as many as go together. Returns how many.
    fn send_oldest(&mut self, port: &mut Port<'_>) -> usize {
        let free = self.free_places();
        let mut batch = std::mem::take(&mut self.batch);
        let left = self.buffer.take(self.end.together(), port.now(), &mut batch).records;
        if batch.len() < left {
            port.emit(Event::Dropped { entries: left - batch.len() });
        }
        if !batch.is_empty() {
            self.send(port, &batch);
        }
        batch.clear();
        self.batch = batch;
        for thread in self.waiting_for_buffer.drain(..) {
            port.release_here(thread);
        }
        if self.free_places() > free && !self.waiting_for_space.is_empty() {
            port.emit(Event::RoomBySending);
            self.release_waiting_for_space(port);
        }
        left
    }

    /// Records that left the buffer together go to the end of the log.
    fn send(&mut self, port: &mut Port<'_>, batch: &[Record]) {
        let places = self.end.log().places();
        let sent = self.end.send(port, batch);
        self.last_order = sent.order;
        let commits = batch.iter().filter(|r| r.kind == Kind::Commit).count();
        let unsent = self.ended.iter_mut().filter(|e| e.order.is_none());
        unsent.take(commits).for_each(|ended| ended.order = sent.order);
        port.emit(Event::Sent {
            records: batch.len(),
            commits,
            place: sent.first,
            order: sent.order,
            wraps: sent.first > 0 && (sent.first - 1) / places < (sent.next - 1) / places,
        });
    }

    // ---- what waits for records (§III-B, §IV-C) ------------------------------------------------

    /// Undo before steal: what the write of a line, about to be sent, must wait for. Entries of the line leave the
    /// buffer.
    pub fn order_before(&mut self, port: &mut Port<'_>, line: LineAddr) -> WriteOrder {
        if !self.ordered {
            return WriteOrder::NONE;
        }
        if self.rules.entries_leave_before_line() {
            self.send_entries_of(port, line);
        }
        if port.is_durable(self.last_order) || !self.rules.data_waits() {
            return WriteOrder::NONE;
        }
        self.last_order
    }

    /// Entries of a line leave the buffer, with all records before them.
    fn send_entries_of(&mut self, port: &mut Port<'_>, line: LineAddr) {
        let mut ahead = self.buffer.ahead_of_line(line);
        if ahead > 0 {
            let is_late = self.buffer.is_late(port.now());
            port.emit(Event::LineLeaves { line, ahead, is_late });
        }
        while ahead > 0 {
            let records = self.send_oldest(port);
            port.emit(Event::Hurried { records });
            ahead = ahead.saturating_sub(records);
        }
    }

    /// An ordered write of records is durable: acknowledges the commits whose records are, and all before them.
    pub fn acknowledge_commits(&mut self, port: &mut Port<'_>, durable: WriteOrder) {
        while let Some(&Ended { thread, order, .. }) = self.ended.front() {
            let is_itself = order == durable && !self.rules.commit_waits_for_earlier();
            if order.is_none() || !(port.is_durable(order) || is_itself) {
                return;
            }
            port.emit(Event::CommitDurable { thread });
            if self.strict {
                port.release(thread);
            }
            self.ended.pop_front();
        }
    }
}
