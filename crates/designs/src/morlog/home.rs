//! Lines on their way home, and what becomes of their redo data (§III-B).
//!
//! When a line's content is durable at home, redo entries of its words in the redo buffer need not be logged
//! any more. But the undo+redo entry of such a word, in the log already, holds older redo data, which recovery
//! would write over the newer word: so a record is left that voids it, one for the words of a line, without data.

use graven_base::memory::{Addr, LineAddr, WordMask};
use graven_machine::request::WriteOrder;

use super::buffers::{Place, Redo};
use super::event::Event;
use super::line_state::Line;
use super::protocol::{DataWrite, Morlog, Port, Write};
use super::table::Holder;
use crate::force_write_back::Forced;

/// Returns true if a word is among those of a line.
fn is_among(addr: Addr, line: LineAddr, mask: WordMask) -> bool {
    addr.line() == line && mask >> addr.word_in_line() & 1 != 0
}

impl Morlog {
    /// Returns the order that the write of a line, about to be sent, must wait for. Its undo+redo
    /// entries leave the buffer.
    pub fn order_before(&mut self, port: &mut Port<'_>, line: LineAddr) -> WriteOrder {
        if !self.ordered {
            return WriteOrder::NONE;
        }
        let entries = self.undo_redo.ahead_of_line(line);
        if entries > 0 && self.rules.entries_leave_before_line() {
            port.emit(Event::Hurried { line, entries });
            self.send_undo_redo(port, entries);
        }
        if port.is_durable(self.last_undo) || !self.rules.data_waits() {
            return WriteOrder::NONE;
        }
        self.last_undo
    }

    /// A line leaves its L1, and its states are lost with it.
    pub fn line_leaves_l1(&mut self, port: &mut Port<'_>, core: u32, line: LineAddr) {
        let Some(old) = self.states.remove(core, line) else { return };
        if old.ulog_words().next().is_none() {
            return;
        }
        port.emit(Event::ULogLeftL1);
        if self.rules.eviction_logs_redo() {
            self.save_redo(port, &old);
        } else {
            self.give_up_redo(&old);
        }
    }

    /// Redo data that only an L1 had is gone.
    fn give_up_redo(&mut self, old: &Line) {
        let words = old.ulog_words().count() as u32;
        let Some(late) = self.is_late(old.owner) else { return };
        let thread = old.owner.thread;
        self.logs.end(thread).redo -= u64::from(words);
        if late {
            self.late_given_up(old.owner, words);
        } else if let Some(running) = &mut self.running[thread as usize] {
            running.ulog -= words;
        }
    }

    /// Notes that the caches' words of a line are about to be sent home, in the write that this
    /// returns, and tells the transaction table.
    pub fn cached_words_leave(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        mask: WordMask,
        forced: bool,
    ) -> DataWrite {
        let data = self.data_leaves(port, line, mask, forced);
        if let Some(table) = &mut self.table {
            table.leaves(Holder::Cached(line), data.number);
            if !self.rules.table_counts_durable() {
                table.durable(data.number);
            }
        }
        data
    }

    /// Words of a line are about to be sent home, in the write that this returns. Their redo entries go with it.
    pub fn data_leaves(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        mask: WordMask,
        forced: bool,
    ) -> DataWrite {
        self.data_writes_sent += 1;
        let number = self.data_writes_sent;
        let epoch = self.data_writes.sent();
        if !self.rules.discard_is_recorded() {
            self.discard_silently(port, line, mask);
        }
        let sent = match self.rules.home_when_durable() {
            true => Place::Leaving(number),
            false => Place::Home,
        };
        let goes = |r: &&mut Redo| r.place == Place::Here && is_among(r.addr, line, mask);
        for redo in self.redo.iter_mut().filter(goes) {
            redo.place = sent;
        }
        DataWrite { number, epoch, forced }
    }

    /// As the paper says: the entries are just dropped.
    fn discard_silently(&mut self, port: &mut Port<'_>, line: LineAddr, mask: WordMask) {
        let mut dropped = std::mem::take(&mut self.taken);
        self.redo.take(|r| is_among(r.addr, line, mask), &mut dropped);
        for redo in dropped.drain(..) {
            port.emit(Event::RedoDropped { addr: redo.addr });
            self.logs.end(redo.owner.thread).redo -= 1;
            if redo.late {
                self.late_given_up(redo.owner, 1);
            }
        }
        self.taken = dropped;
    }

    /// A line of data is durable.
    pub fn data_durable(&mut self, port: &mut Port<'_>, data: DataWrite) {
        let DataWrite { number, epoch, forced } = data;
        for redo in self.redo.iter_mut().filter(|r| r.place == Place::Leaving(number)) {
            redo.place = Place::Home;
            port.emit(Event::RedoAtHome { addr: redo.addr });
        }
        self.last_seen = port.now();
        self.data_writes.durable(epoch);
        if forced {
            self.scanner.forced_durable();
        }
        if self.table.as_mut().is_some_and(|table| table.durable(number)) {
            self.table_moved(port);
        }
        self.try_to_truncate(port);
    }

    /// A scan forces a line home. Redo data of committed transactions that only an L1 has goes with it; that of
    /// running ones stays there.
    pub fn force_write_back(&mut self, port: &mut Port<'_>, Forced { line, .. }: Forced) {
        for core in 0..self.cores {
            let Some(states) = self.states.get(core, line).copied() else { continue };
            let is_late = self.is_late(states.owner) == Some(true);
            if is_late && states.ulog_words().next().is_some() {
                port.emit(Event::LateByScan);
                self.states.remove(core, line);
                self.save_redo(port, &states);
            }
        }
        port.emit(Event::ForcedHome { line });
        if !self.write_line_back(port, line, true) {
            // It stays dirty; once its words go home, a scan finds it again.
            self.scanner.forced_durable();
        }
    }

    /// Writes a dirty line back that stays where it is. Returns whether there was anything to write.
    pub fn write_line_back(&mut self, port: &mut Port<'_>, line: LineAddr, forced: bool) -> bool {
        let after = self.order_before(port, line);
        let mask = !self.parking.mask(line);
        if mask == 0 {
            return false;
        }
        let data = self.cached_words_leave(port, line, mask, forced);
        let was_dirty = port.write_back_words(line, mask, after, Some(Write::Data(data)));
        assert!(was_dirty, "it has just been seen dirty");
        true
    }
}
