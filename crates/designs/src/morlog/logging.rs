//! Stores into entries, entries into buffers, and out of them into the log (§III-B, Fig. 8).

use super::buffers::{Place, Redo, UndoRedo, Waiting};
use super::line_state::{Line, Owner, State};
use super::table::Holder;
use super::{Cover, DRAIN, InFlight, Meaning, Morlog, Mutant, Running};
use crate::packed_log::{Kind, RECORDS_PER_GROUP, Record, dirty_bytes};
use graven_base::ids::Tx;
use graven_base::memory::LineAddr;
use graven_base::time::{Cycle, NEVER};
use graven_machine::design::{Stall, Store};
use graven_machine::machine::Machine;
use graven_machine::request::OrderSeq;

/// Entries that leave a buffer together: as many as a metadata block holds.
const TOGETHER: usize = RECORDS_PER_GROUP;

impl Morlog {
    pub(super) fn log_store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        if self.dirty_flags && store.old == store.new {
            m.count().log_entries_ignored += 1;
            return Stall::None;
        }
        if self.parking.holds(store.tx, store.addr) {
            return self.park(m, store);
        }
        let (line, word) = (store.addr.line(), store.addr.word_in_line());
        let owner = self.owner(store.tx);
        self.take_over_line(m, store.core, line, owner);
        if self.merge(m, store) {
            return Stall::None;
        }
        let state = self.states.get(store.core, line).map_or(State::Clean, |l| l.states[word]);
        match state {
            State::ULog => self.update_in_l1(store, word),
            State::URLog => {
                if !self.has_space(store.tx, 1) {
                    return self.wait_for_space(m, store.tx.thread);
                }
                m.cover(Cover::Ulog as usize);
                m.note(|| format!("{} is ULog: its redo data stays in the L1", store.addr));
                self.logs.end(store.tx.thread).redo += 1;
                self.running_of(store).ulog += 1;
                self.update_in_l1(store, word);
            }
            State::Clean | State::Dirty => return self.new_entry(m, store),
        }
        Stall::None
    }

    /// The L1 word takes the redo data in place.
    fn update_in_l1(&mut self, store: &Store, word: usize) {
        let changed = self.changed(store.old, store.new);
        let replaces = self.has(Mutant::FlagOfLastStore);
        let line = self.states.get(store.core, store.addr.line()).expect("it has states");
        if line.states[word] == State::URLog || replaces {
            line.dirty[word] = 0;
        }
        line.states[word] = State::ULog;
        line.dirty[word] |= changed;
        self.touched(store.tx, Holder::Cached(store.addr.line()));
    }

    /// The dirty flag of a change; all bytes where there are no flags.
    fn changed(&self, old: u64, new: u64) -> u8 {
        if self.dirty_flags { dirty_bytes(old, new) } else { 0xff }
    }

    /// Puts a store into the undo+redo entry that its transaction has in the buffer for the word.
    fn merge(&mut self, m: &mut Machine, store: &Store) -> bool {
        let takes_undo = self.has(Mutant::MergeTakesUndo);
        let Some(entry) = self.undo_redo.find(store.addr, store.tx) else {
            return false;
        };
        let Waiting::Entry { undo, redo, .. } = &mut entry.what else { return false };
        *redo = store.new;
        if takes_undo {
            *undo = store.old;
        }
        self.touched(store.tx, Holder::Cached(store.addr.line()));
        m.count().log_entries_merged += 1;
        m.cover(Cover::Merged as usize);
        m.note(|| {
            format!("a store of {:#x} is merged into the entry of {}", store.new, store.addr)
        });
        true
    }

    /// The first store to a word, or the first since its states were lost: an undo+redo entry.
    fn new_entry(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let Store { tx, core, addr, old, new } = *store;
        if !self.has_space_for_first(tx) {
            return self.wait_for_space(m, tx.thread);
        }
        if !self.has_place(m, tx.thread) {
            return Stall::Retry;
        }
        let owes = self.discard_stored_again(m, store) && !self.has(Mutant::DebtIsForgotten);
        self.core_of[tx.thread as usize] = core;
        self.running_of(store);
        self.logs.end(tx.thread).undo_redo += 1;
        let (line, owner) = (addr.line(), self.owner(tx));
        if self.states.get(core, line).is_none() {
            self.states.add(core, line, owner);
            self.running_of(store).lines.push(line);
        }
        let states = self.states.get(core, line).expect("it has been added");
        states.states[addr.word_in_line()] = State::Dirty;
        self.touched(tx, Holder::Cached(line));
        m.note(|| format!("undo+redo entry of {addr}: {old:#x} -> {new:#x}"));
        self.undo_redo.push(tx, core, Waiting::Entry { addr, undo: old, redo: new, owes }, m.now());
        m.count().log_entries += 1;
        let max = &mut m.count().log_buffer_max;
        *max = (*max).max(self.undo_redo.len() as u64);
        self.drain(m);
        Stall::None
    }

    /// The store's transaction, which has records from now on.
    pub(super) fn running_of(&mut self, store: &Store) -> &mut Running {
        let Store { tx, core, .. } = *store;
        let log = self.logs.end(tx.thread);
        let first_group = log.packer.tail();
        let running = &mut self.running[tx.thread as usize];
        if running.is_none() {
            log.open += 1;
            if let Some(table) = &mut self.table {
                table.add(tx, first_group);
            }
        }
        running.get_or_insert_with(|| Running { tx, core, first_group, ulog: 0, lines: Vec::new() })
    }

    /// Redo data of the word in the redo buffer is superseded (§III-B). Returns whether there was any.
    pub(super) fn discard_stored_again(&mut self, m: &mut Machine, store: &Store) -> bool {
        if self.has(Mutant::RedoOutlivesStore) {
            return false;
        }
        let dropped = self.redo.discard(|r| r.tx == store.tx && r.addr == store.addr);
        if dropped > 0 {
            self.logs.end(store.tx.thread).redo -= dropped as u64;
            m.count().redo_discarded_stored_again += dropped as u64;
            m.cover(Cover::RedoStoredAgain as usize);
            m.note(|| format!("{} is stored to again: its redo entry is dropped", store.addr));
        }
        dropped > 0
    }

    /// A line's states belong to one transaction. If they are another's, they are void: but redo data
    /// that only the L1 has is saved first.
    fn take_over_line(&mut self, m: &mut Machine, core: u32, line: LineAddr, owner: Owner) {
        let Some(states) = self.states.get(core, line) else { return };
        if states.owner == owner || self.mutants.has(Mutant::OwnersAreNotCompared) {
            return;
        }
        let old = self.states.remove(core, line).expect("just seen");
        m.cover(Cover::OwnerChanged as usize);
        self.save_redo(m, &old);
    }

    /// Makes redo entries of the words that only the L1 has the redo data of; the states are gone.
    pub(super) fn save_redo(&mut self, m: &mut Machine, old: &Line) {
        for word in old.ulog_words() {
            let addr = old.line.word(word);
            let Some((tx, late)) = self.transaction_of(old.owner) else { continue };
            if !late {
                let running = self.running[tx.thread as usize].as_mut();
                running.expect("it is not late").ulog -= 1;
            }
            self.make_room_for_redo(m);
            let (value, dirty) = (m.load(addr), old.dirty[word]);
            m.note(|| format!("redo entry of {addr}: {value:#x}"));
            m.count().log_redo_entries += 1;
            let (owner, place) = (old.owner, Place::Here);
            self.redo.push(Redo { tx, owner, addr, value, dirty, late, place });
        }
    }

    /// The transaction that ids stand for, and whether it has committed.
    pub(super) fn transaction_of(&self, owner: Owner) -> Option<(Tx, bool)> {
        let running = self.running[owner.thread as usize].as_ref().map(|r| r.tx);
        if let Some(tx) = running.filter(|&tx| self.owner(tx) == owner) {
            return Some((tx, false));
        }
        self.ended.iter().rev().find(|e| e.owner == owner).map(|e| (e.tx, true))
    }

    /// Whether an entry finds a place in the undo+redo buffer; if not, the thread waits for one.
    pub(super) fn has_place(&mut self, m: &mut Machine, thread: u32) -> bool {
        if self.undo_redo.is_full() {
            m.cover(Cover::BufferFull as usize);
            self.drain(m);
        }
        let full = self.undo_redo.is_full();
        if full {
            self.waiting_for_buffer.push(thread);
        }
        !full
    }

    /// Sends what is due of the undo+redo buffer, as far as write queues have places, and sets the timer
    /// for the rest.
    pub(super) fn drain(&mut self, m: &mut Machine) {
        while let Some(due) = self.undo_redo.due() {
            if due > m.now() {
                return self.drain_by(m, due);
            }
            if !self.logs.ends.iter().all(|log| log.packer.has_room(m)) {
                // A place becomes free by some event, so it is enough to look after the next one.
                let next = m.memory.shared.events.next_at();
                let at = if next == NEVER { m.now() + 1 } else { next.max(m.now() + 1) };
                return self.drain_by(m, at);
            }
            self.send_undo_redo(m, TOGETHER);
        }
    }

    fn drain_by(&mut self, m: &mut Machine, at: Cycle) {
        if at < self.drain_at || self.drain_at <= m.now() {
            self.drain_at = at;
            m.set_timer(at, DRAIN);
        }
    }

    /// Sends the oldest so many of the undo+redo buffer, or as many as there are.
    pub(super) fn send_undo_redo(&mut self, m: &mut Machine, count: usize) -> usize {
        let count = count.min(self.undo_redo.len());
        let mut left = count;
        while left > 0 {
            left = self.pack_undo_redo(left);
            if left == 0 {
                self.fill_block();
            }
            self.send_batches(m);
        }
        count
    }

    /// The batch at hand takes along the undo+redo entries behind it that its last metadata block has room for.
    /// (With several logs they could be of another.)
    pub(super) fn fill_block(&mut self) {
        if let [batch] = &self.batches[..] {
            let room = batch.len().next_multiple_of(TOGETHER) - batch.len();
            self.pack_undo_redo(room.min(self.undo_redo.len()));
        }
    }

    /// Moves the oldest so many of the undo+redo buffer into the batches at hand; with several logs, up to
    /// the first commit record among them. Returns how many are left.
    pub(super) fn pack_undo_redo(&mut self, count: usize) -> usize {
        for left in (0..count).rev() {
            let UndoRedo { tx, core, what, .. } = self.undo_redo.pop().expect("so many are there");
            let owner = self.owner(tx);
            let blank = Record { thread: tx.thread as u8, tx: owner.id, ..Record::BLANK };
            let log = self.logs.of(tx.thread);
            match what {
                Waiting::Entry { addr, undo, redo, owes } => {
                    self.logs.ends[log].undo_redo -= 1;
                    let dirty = self.changed(undo, redo);
                    if dirty == 0 && !owes {
                        // The word has its old value again: nothing to undo, nothing to redo.
                        self.silent(core, owner, addr.line(), addr.word_in_line());
                        continue;
                    }
                    let record = Record { kind: Kind::UndoRedo, addr, undo, redo, dirty, ..blank };
                    self.batches[log].push(record);
                    self.in_flight.push_back(InFlight { order: 0, core, owner, addr });
                }
                Waiting::Commit { ulog, number } => {
                    self.pack_commit(tx, number, ulog);
                    if self.logs.ends.len() > 1 && !self.has(Mutant::RecordsPassCommits) {
                        return left;
                    }
                }
            }
        }
        0
    }

    /// An entry without a changed byte is dropped; its word is as if it had not been stored to.
    fn silent(&mut self, core: u32, owner: Owner, line: LineAddr, word: usize) {
        if let Some(states) = self.states.get(core, line)
            && states.owner == owner
            && states.states[word] == State::Dirty
        {
            states.states[word] = State::Clean;
        }
        self.silent_dropped += 1;
    }

    /// Sends the batches at hand.
    pub(super) fn send_batches(&mut self, m: &mut Machine) {
        let silent = std::mem::take(&mut self.silent_dropped);
        if silent > 0 {
            m.cover(Cover::Silent as usize);
            m.count().log_entries_ignored += silent;
        }
        let mut undo_order = 0;
        for log in 0..self.batches.len() {
            let mut batch = std::mem::take(&mut self.batches[log]);
            if !batch.is_empty() {
                let order = self.send_batch(m, log, &batch);
                if batch.iter().any(|r| r.kind == Kind::UndoRedo) {
                    undo_order = order;
                }
            }
            batch.clear();
            self.batches[log] = batch;
        }
        if undo_order != 0 {
            self.last_undo = undo_order;
            for sent in self.in_flight.iter_mut().rev().take_while(|sent| sent.order == 0) {
                sent.order = undo_order;
            }
        }
        for thread in self.waiting_for_buffer.drain(..) {
            m.release(thread);
        }
    }

    fn send_batch(&mut self, m: &mut Machine, log: usize, batch: &[Record]) -> OrderSeq {
        let head = self.logs.ends[log].head;
        let packer = &mut self.logs.ends[log].packer;
        let sent = packer.send(m, batch, |order| Meaning::Log.token(order));
        debug_assert!(packer.tail() - head <= packer.log().groups, "room was kept");
        if sent.group > 0 && sent.group.is_multiple_of(packer.log().groups) {
            m.cover(Cover::LogWrapped as usize);
        }
        for record in batch {
            m.note(|| format!("log {log}, group {}: {record}", sent.group));
            let owner = Owner { thread: record.thread.into(), id: record.tx };
            let words = match record.kind {
                Kind::Redo if record.late => 1,
                Kind::InPlace if record.late => record.dirty.count_ones(),
                Kind::Commit => {
                    self.commit_sent(owner, sent.order);
                    continue;
                }
                _ => continue,
            };
            m.cover(Cover::LateRedo as usize);
            self.late_sent(owner, words, sent.order);
        }
        sent.order
    }

    /// If the redo buffer is full, its oldest entries leave.
    pub(super) fn make_room_for_redo(&mut self, m: &mut Machine) {
        if !self.redo.is_full() {
            return;
        }
        m.cover(Cover::RedoBufferFull as usize);
        let mut taken = std::mem::take(&mut self.taken);
        self.redo.take_oldest(TOGETHER, &mut taken);
        self.send_redo(m, &mut taken);
        self.taken = taken;
    }

    /// Such entries leave the redo buffer for the log.
    pub(super) fn send_redo_where(&mut self, m: &mut Machine, which: impl Fn(&Redo) -> bool) {
        let mut taken = std::mem::take(&mut self.taken);
        self.redo.take(which, &mut taken);
        self.send_redo(m, &mut taken);
        self.taken = taken;
    }

    /// Sends redo entries that have been taken out of the buffer, and forgets them.
    pub(super) fn send_redo(&mut self, m: &mut Machine, taken: &mut Vec<Redo>) {
        // A late entry follows its commit record, which may still be in the undo+redo buffer.
        let ahead = taken.iter().filter(|r| r.late).map(|r| self.undo_redo.ahead_of(r.tx)).max();
        if let Some(ahead) = ahead.filter(|&ahead| ahead > 0) {
            self.send_undo_redo(m, ahead);
        }
        self.pack_redo(m, taken);
        self.send_batches(m);
    }

    /// Moves redo entries into the batches at hand. Those that are at home leave a record of that, one for
    /// the words of a line.
    pub(super) fn pack_redo(&mut self, m: &mut Machine, taken: &mut Vec<Redo>) {
        for redo in taken.drain(..) {
            let Redo { tx, owner, addr, value, dirty, late, place } = redo;
            let log = self.logs.of(tx.thread);
            self.logs.ends[log].redo -= 1;
            let of = Record { thread: tx.thread as u8, tx: owner.id, late, ..Record::BLANK };
            let batch = &mut self.batches[log];
            if place != Place::Home {
                batch.push(Record { kind: Kind::Redo, addr, redo: value, dirty, ..of });
                continue;
            }
            let home = Record { kind: Kind::InPlace, addr: addr.line().addr(), dirty: 0, ..of };
            let at = match batch.iter().position(|r| Record { dirty: 0, ..*r } == home) {
                Some(at) => at,
                None => {
                    m.count().redo_in_place_records += 1;
                    batch.push(home);
                    batch.len() - 1
                }
            };
            batch[at].dirty |= addr.word_mask();
        }
    }

    /// Records are durable: words whose entries are among them are URLog now, commits are acknowledged.
    pub(super) fn records_durable(&mut self, m: &mut Machine) {
        while let Some(sent) = self.in_flight.front()
            && m.memory.shared.durability.order.reached(sent.order)
            && sent.order != 0
        {
            let sent = self.in_flight.pop_front().expect("just seen");
            self.word_is_urlog(&sent);
        }
        self.retire(m);
    }

    fn word_is_urlog(&mut self, sent: &InFlight) {
        let word = sent.addr.word_in_line();
        if let Some(states) = self.states.get(sent.core, sent.addr.line())
            && states.owner == sent.owner
            && states.states[word] == State::Dirty
        {
            states.states[word] = State::URLog;
        }
    }

    /// Whether a transaction's log has room for an entry, and if it is the first, for what comes with that.
    pub(super) fn has_space_for_first(&self, tx: Tx) -> bool {
        match self.running[tx.thread as usize] {
            Some(_) => self.has_space(tx, 1),
            None => self.has_space(tx, 3) && self.has_table_entry(),
        }
    }

    /// Whether a transaction's log has room for so many groups more.
    pub(super) fn has_space(&self, tx: Tx, groups: u64) -> bool {
        self.logs.ends[self.logs.of(tx.thread)].free_groups() >= groups
    }
}
