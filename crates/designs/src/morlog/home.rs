//! Lines on their way home, and what becomes of their redo data (§III-B).
//!
//! When a line's content is durable at home, redo entries of its words in the redo buffer need not be logged
//! any more. But the undo+redo entry of such a word, in the log already, holds older redo data, which recovery
//! would write over the newer word: so a record is left that voids it, one for the words of a line, without data.

use super::buffers::{Place, Redo};
use super::line_state::Line;
use super::table::Holder;
use super::{Cover, DataWrite, Meaning, Morlog, Mutant};
use crate::force_write_back::Forced;
use graven_base::memory::{Addr, LineAddr, WordMask};
use graven_machine::machine::Machine;
use graven_machine::request::{OrderSeq, Token};

/// Whether a word is among those of a line.
fn is_among(addr: Addr, line: LineAddr, mask: WordMask) -> bool {
    addr.line() == line && mask >> addr.word_in_line() & 1 != 0
}

impl Morlog {
    /// What the write of a line, about to be sent, must wait for. Its undo+redo entries leave the buffer.
    pub(super) fn order_before(&mut self, m: &mut Machine, line: LineAddr) -> OrderSeq {
        if !self.ordered {
            return 0;
        }
        let stay = self.has(Mutant::EntriesStay);
        let ahead = if stay { 0 } else { self.undo_redo.ahead_of_line(line) };
        if ahead > 0 {
            m.cover(Cover::Hurried as usize);
            m.note(|| format!("{line} leaves the caches: {ahead} entries must leave the buffer"));
            m.count().log_entries_hurried += self.send_undo_redo(m, ahead) as u64;
        }
        let reached = m.memory.shared.durability.order.reached(self.last_undo);
        if reached || self.has(Mutant::DataDoesNotWait) { 0 } else { self.last_undo }
    }

    /// A line leaves its L1, and its states are lost with it.
    pub(super) fn line_leaves_l1(&mut self, m: &mut Machine, core: u32, line: LineAddr) {
        let Some(old) = self.states.remove(core, line) else { return };
        if old.ulog_words().next().is_none() {
            return;
        }
        m.cover(Cover::UlogLeftL1 as usize);
        if self.has(Mutant::EvictionLogsNothing) {
            self.give_up_redo(&old);
        } else {
            self.save_redo(m, &old);
        }
    }

    /// Redo data that only an L1 had is gone.
    fn give_up_redo(&mut self, old: &Line) {
        let words = old.ulog_words().count() as u32;
        let Some((tx, late)) = self.transaction_of(old.owner) else { return };
        self.logs.end(tx.thread).redo -= u64::from(words);
        if late {
            self.late_given_up(old.owner, words);
        } else if let Some(running) = &mut self.running[tx.thread as usize] {
            running.ulog -= words;
        }
    }

    /// Words of a line are about to be sent home; returns the token of the write. Their redo entries go
    /// with it.
    pub(super) fn data_leaves(
        &mut self,
        m: &mut Machine,
        line: LineAddr,
        mask: WordMask,
        forced: bool,
    ) -> Token {
        let epoch = self.data_writes.sent();
        let number = self.data_in_flight.insert(DataWrite { epoch, forced });
        if self.has(Mutant::DiscardLeavesNothing) {
            self.discard_silently(m, line, mask);
        }
        let sent =
            if self.has(Mutant::HomeWhenSent) { Place::Home } else { Place::Leaving(number) };
        let goes = |r: &&mut Redo| r.place == Place::Here && is_among(r.addr, line, mask);
        for redo in self.redo.iter_mut().filter(goes) {
            redo.place = sent;
        }
        Meaning::Data.token(number as u64)
    }

    /// As the paper says: the entries are just dropped.
    fn discard_silently(&mut self, m: &mut Machine, line: LineAddr, mask: WordMask) {
        let mut dropped = std::mem::take(&mut self.taken);
        self.redo.take(|r| is_among(r.addr, line, mask), &mut dropped);
        for redo in dropped.drain(..) {
            m.count().redo_discarded_at_home += 1;
            m.note(|| format!("the redo entry of {} is dropped", redo.addr));
            self.logs.end(redo.tx.thread).redo -= 1;
            if redo.late {
                self.late_given_up(redo.owner, 1);
            }
        }
        self.taken = dropped;
    }

    /// A line of data is durable.
    pub(super) fn data_durable(&mut self, m: &mut Machine, number: usize) {
        let DataWrite { epoch, forced } = self.data_in_flight.remove(number);
        for redo in self.redo.iter_mut().filter(|r| r.place == Place::Leaving(number)) {
            redo.place = Place::Home;
            m.count().redo_discarded_at_home += 1;
            m.cover(Cover::RedoAtHome as usize);
            m.note(|| format!("{} is at home: its redo data need not be logged", redo.addr));
        }
        self.last_seen = m.now();
        self.data_writes.durable(epoch);
        if forced {
            self.scanner.forced_durable();
        }
        if self.table.as_mut().is_some_and(|table| table.durable(number)) {
            self.table_moved(m);
        }
        self.try_to_truncate(m);
    }

    /// A scan forces a line home. Redo data of committed transactions that only an L1 has goes with it; that of
    /// running ones stays there.
    pub(super) fn force_write_back(&mut self, m: &mut Machine, Forced { line, .. }: Forced) {
        for core in 0..self.cores {
            let Some(states) = self.states.get(core, line).copied() else { continue };
            let is_late = self.transaction_of(states.owner).is_some_and(|(_, late)| late);
            if is_late && states.ulog_words().next().is_some() {
                m.cover(Cover::LateByScan as usize);
                self.states.remove(core, line);
                self.save_redo(m, &states);
            }
        }
        m.note(|| format!("scan forces {line} home"));
        if !self.write_line_back(m, line, true) {
            // It stays dirty; once its words go home, a scan finds it again.
            self.scanner.forced_durable();
        }
    }

    /// Writes a dirty line back that stays where it is. Returns whether there was anything to write.
    pub(super) fn write_line_back(
        &mut self,
        m: &mut Machine,
        line: LineAddr,
        forced: bool,
    ) -> bool {
        let after = self.order_before(m, line);
        let mask = !self.parking.mask(line);
        if mask == 0 {
            return false;
        }
        let token = self.data_leaves(m, line, mask, forced);
        self.cached_leaves(line, token);
        let was_dirty = m.write_back(line, |write| {
            (write.after, write.token, write.mask) = (after, token, mask);
        });
        assert!(was_dirty, "it has just been seen dirty");
        true
    }

    /// The transaction table hears that what caches have of a line leaves, in the write of this token.
    pub(super) fn cached_leaves(&mut self, line: LineAddr, token: Token) {
        if let Some(table) = &mut self.table {
            let number = Meaning::of(token).1 as usize;
            table.leaves(Holder::Cached(line), number);
            if self.mutants.has(Mutant::TableCountsSent) {
                table.durable(number);
            }
        }
    }
}
