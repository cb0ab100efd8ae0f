//! Stores into entries, entries into buffers, and out of them into the log (§III-B, Fig. 8).

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LineAddr};
use graven_base::time::{Cycle, NEVER};
use graven_machine::design::{Stall, Store};
use graven_machine::request::WriteOrder;

use super::buffers::{Place, Redo, UndoRedo, Waiting};
use super::event::Event;
use super::line_state::{Line, Owner, State};
use super::protocol::{InFlight, Morlog, Port, Running, Timer, Write};
use super::table::Holder;
use crate::packed_log::{Kind, Record, dirty_bytes};

impl Morlog {
    // ---- stores (Fig. 8) -----------------------------------------------------------------------

    /// A store goes where the state of its word says: into the entry in the buffer, into the L1 only, or into a new
    /// entry.
    pub fn log_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        if self.dirty_flags && store.old == store.new {
            port.emit(Event::Ignored);
            return Stall::None;
        }
        let owner = self.owner(store.tx);
        if self.parking.holds(owner, store.addr) {
            return self.park(port, store);
        }
        let (line, word) = (store.addr.line(), store.addr.word_in_line());
        self.take_over_line(port, store.core, line, owner);
        if self.merge(port, store) {
            return Stall::None;
        }
        match self.states.get(store.core, line).map_or(State::Clean, |l| l.states[word]) {
            State::ULog => {
                self.update_in_l1(store, word);
                Stall::None
            }
            State::URLog => self.becomes_ulog(port, store, word),
            State::Clean | State::Dirty => self.new_entry(port, store),
        }
    }

    /// URLog → ULog: the undo+redo entry is durable, and redo data stays in the L1 from now on.
    fn becomes_ulog(&mut self, port: &mut Port<'_>, store: &Store, word: usize) -> Stall {
        if !self.has_space(store.tx, 1) {
            return self.wait_for_space(port, store.tx.thread);
        }
        port.emit(Event::BecomesULog { addr: store.addr });
        self.logs.end(store.tx.thread).redo += 1;
        self.running_of(store).ulog += 1;
        self.update_in_l1(store, word);
        Stall::None
    }

    /// The L1 word takes the redo data in place.
    fn update_in_l1(&mut self, store: &Store, word: usize) {
        let (owner, changed) = (self.owner(store.tx), self.changed(store.old, store.new));
        let line = self.states.get(store.core, store.addr.line()).expect("it has states");
        if line.states[word] == State::URLog || !self.rules.flags_add_up() {
            line.dirty[word] = 0;
        }
        line.states[word] = State::ULog;
        line.dirty[word] |= changed;
        self.touched(owner, Holder::Cached(store.addr.line()));
    }

    /// The dirty flag of a change; all bytes where there are no flags.
    fn changed(&self, old: u64, new: u64) -> u8 {
        if self.dirty_flags { dirty_bytes(old, new) } else { 0xff }
    }

    /// Puts a store into the undo+redo entry that its transaction has in the buffer for the word.
    fn merge(&mut self, port: &mut Port<'_>, store: &Store) -> bool {
        let owner = self.owner(store.tx);
        let Some(entry) = self.undo_redo.find(store.addr, owner) else {
            return false;
        };
        let Waiting::Entry { undo, redo, .. } = &mut entry.what else { return false };
        *redo = store.new;
        if !self.rules.merge_keeps_undo() {
            *undo = store.old;
        }
        self.touched(owner, Holder::Cached(store.addr.line()));
        port.emit(Event::Merged { addr: store.addr, value: store.new });
        true
    }

    /// The first store to a word, or the first since its states were lost: an undo+redo entry.
    fn new_entry(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let Store { tx, core, addr, old, new } = *store;
        if !self.has_space_for_first(tx) {
            return self.wait_for_space(port, tx.thread);
        }
        if !self.has_place(port, tx.thread) {
            return Stall::Retry;
        }
        let owes = self.discard_stored_again(port, store) && self.rules.debt_is_kept();
        self.core_of[tx.thread as usize] = core;
        self.running_of(store);
        self.logs.end(tx.thread).undo_redo += 1;
        self.becomes_dirty(store);
        let owner = self.owner(tx);
        self.touched(owner, Holder::Cached(addr.line()));
        let what = Waiting::Entry { addr, undo: old, redo: new, owes };
        self.undo_redo.push(owner, core, what, port.now());
        let occupied = self.undo_redo.len();
        port.emit(Event::UndoRedoEntry { addr, undo: old, redo: new, occupied });
        self.drain(port);
        Stall::None
    }

    /// Clean → Dirty: the word's undo+redo entry is not durable. Its line has an extension from now on.
    fn becomes_dirty(&mut self, store: &Store) {
        let Store { tx, core, addr, .. } = *store;
        let (line, owner) = (addr.line(), self.owner(tx));
        if self.states.get(core, line).is_none() {
            self.states.add(core, line, owner);
            self.running_of(store).lines.push(line);
        }
        let states = self.states.get(core, line).expect("it has been added");
        states.states[addr.word_in_line()] = State::Dirty;
    }

    /// The store's transaction, which has records from now on.
    pub fn running_of(&mut self, store: &Store) -> &mut Running {
        let Store { tx, core, .. } = *store;
        let owner = self.owner(tx);
        let log = self.logs.end(tx.thread);
        let first_group = log.packer.tail();
        let running = &mut self.running[tx.thread as usize];
        if running.is_none() {
            log.open += 1;
            if let Some(table) = &mut self.table {
                table.add(owner, first_group);
            }
        }
        running.get_or_insert_with(|| Running {
            owner,
            core,
            first_group,
            ulog: 0,
            lines: Vec::new(),
        })
    }

    /// Redo data of the word in the redo buffer is superseded (§III-B). Returns whether there was any.
    pub fn discard_stored_again(&mut self, port: &mut Port<'_>, store: &Store) -> bool {
        if !self.rules.store_discards_redo() {
            return false;
        }
        let owner = self.owner(store.tx);
        let of_word = |r: &Redo| r.owner == owner && !r.late && r.addr == store.addr;
        let entries = self.redo.discard(of_word);
        if entries > 0 {
            self.logs.end(store.tx.thread).redo -= entries as u64;
            port.emit(Event::RedoStoredAgain { addr: store.addr, entries });
        }
        entries > 0
    }

    // ---- states and redo data that leave an L1 -------------------------------------------------

    /// A line's states belong to one transaction. If they are another's, they are void: but redo data
    /// that only the L1 has is saved first.
    fn take_over_line(&mut self, port: &mut Port<'_>, core: u32, line: LineAddr, owner: Owner) {
        let Some(states) = self.states.get(core, line) else { return };
        if states.owner == owner || !self.rules.owners_are_compared() {
            return;
        }
        let old = self.states.remove(core, line).expect("just seen");
        port.emit(Event::OwnerChanged);
        self.save_redo(port, &old);
    }

    /// Makes redo entries of the words that only the L1 has the redo data of; the states are gone.
    pub fn save_redo(&mut self, port: &mut Port<'_>, old: &Line) {
        for word in old.ulog_words() {
            let addr = old.line.word(word);
            let Some(late) = self.is_late(old.owner) else { continue };
            if !late {
                let running = self.running[old.owner.thread as usize].as_mut();
                running.expect("it is not late").ulog -= 1;
            }
            self.make_room_for_redo(port);
            let (value, dirty) = (port.cached_word(addr), old.dirty[word]);
            port.emit(Event::RedoEntry { addr, value });
            let (owner, place) = (old.owner, Place::Here);
            self.redo.push(Redo { owner, addr, value, dirty, late, place });
        }
    }

    /// Returns true if the transaction that ids stand for has committed; `None` if it has left.
    pub fn is_late(&self, owner: Owner) -> Option<bool> {
        let running = self.running[owner.thread as usize].as_ref();
        if running.is_some_and(|running| running.owner == owner) {
            return Some(false);
        }
        self.ended.iter().any(|ended| ended.owner == owner).then_some(true)
    }

    // ---- out of the undo+redo buffer -----------------------------------------------------------

    /// Returns true if an entry finds a place in the undo+redo buffer; otherwise the thread waits
    /// for one.
    pub fn has_place(&mut self, port: &mut Port<'_>, thread: ThreadId) -> bool {
        if self.undo_redo.is_full() {
            port.emit(Event::BufferFull);
            self.drain(port);
        }
        let full = self.undo_redo.is_full();
        if full {
            self.waiting_for_buffer.push(thread);
        }
        !full
    }

    /// Sends what is due of the undo+redo buffer, as far as write queues have places, and sets the timer
    /// for the rest.
    pub fn drain(&mut self, port: &mut Port<'_>) {
        while let Some(due) = self.undo_redo.due() {
            if due > port.now() {
                return self.drain_by(port, due);
            }
            if !self.logs.ends.iter().all(|log| log.packer.has_room(port)) {
                // A place becomes free by some event, so it is enough to look after the next one.
                return self.drain_by(port, port.next_change());
            }
            self.send_undo_redo(port, self.logs.together());
        }
    }

    /// Has the timer of the undo+redo buffer fire at this cycle, or earlier.
    fn drain_by(&mut self, port: &mut Port<'_>, at: Cycle) {
        if at < self.drain_at || self.drain_at <= port.now() {
            self.drain_at = at;
            port.set_timer(at, Timer::Drain);
        }
    }

    /// The timer of the undo+redo buffer. Earlier ones than the last one set are void.
    pub fn drain_timer(&mut self, port: &mut Port<'_>) {
        if port.now() == self.drain_at {
            self.drain_at = NEVER;
            self.drain(port);
        }
    }

    /// Sends the oldest entries of the undo+redo buffer, at most `count`.
    pub fn send_undo_redo(&mut self, port: &mut Port<'_>, count: usize) {
        let mut left = count.min(self.undo_redo.len());
        while left > 0 {
            left = self.pack_undo_redo(left);
            if left == 0 {
                self.fill_block();
            }
            self.send_batches(port);
        }
    }

    /// The batch at hand takes along the undo+redo entries behind it that its last metadata block, or line, has room for.
    /// (With several logs they could be of another.)
    pub fn fill_block(&mut self) {
        if let [batch] = &self.batches[..] {
            let room = self.logs.ends[0].packer.room_behind(batch.len());
            self.pack_undo_redo(room.min(self.undo_redo.len()));
        }
    }

    /// Moves `count` of the oldest entries of the undo+redo buffer into the batches at hand; with
    /// several logs, up to the first commit record among them. Returns how many are left.
    pub fn pack_undo_redo(&mut self, count: usize) -> usize {
        for left in (0..count).rev() {
            let UndoRedo { owner, core, what, .. } =
                self.undo_redo.pop().expect("so many are there");
            match what {
                Waiting::Entry { addr, undo, redo, owes } => {
                    self.pack_entry(owner, core, addr, [undo, redo], owes);
                }
                Waiting::Commit { ulog, number } => {
                    self.pack_commit(owner, number, ulog);
                    if self.logs.ends.len() > 1 && self.rules.records_follow_commits() {
                        return left;
                    }
                }
            }
        }
        0
    }

    /// Moves an undo+redo entry into the batches at hand. One without a changed byte is dropped: the word has its old
    /// value again, there is nothing to undo and nothing to redo, and it is as if it had not been stored to.
    fn pack_entry(
        &mut self,
        owner: Owner,
        core: u32,
        addr: Addr,
        [undo, redo]: [u64; 2],
        owes: bool,
    ) {
        let log = self.logs.of(owner.thread);
        self.logs.ends[log].undo_redo -= 1;
        let dirty = self.changed(undo, redo);
        if dirty == 0 && !owes {
            self.leaves_dirty(core, owner, addr, State::Clean);
            self.silent_dropped += 1;
            return;
        }
        let record = Record { kind: Kind::UndoRedo, addr, undo, redo, dirty, ..owner.record() };
        self.batches[log].push(record);
        self.in_flight.push_back(InFlight { order: WriteOrder::NONE, core, owner, addr });
    }

    /// A word whose undo+redo entry is dropped or durable goes from Dirty to another state, if its line's states are
    /// still those of the transaction.
    fn leaves_dirty(&mut self, core: u32, owner: Owner, addr: Addr, to: State) {
        let word = addr.word_in_line();
        if let Some(states) = self.states.get(core, addr.line())
            && states.owner == owner
            && states.states[word] == State::Dirty
        {
            states.states[word] = to;
        }
    }

    // ---- into the log --------------------------------------------------------------------------

    /// Sends the batches at hand.
    pub fn send_batches(&mut self, port: &mut Port<'_>) {
        let entries = std::mem::take(&mut self.silent_dropped);
        if entries > 0 {
            port.emit(Event::SilentDropped { entries });
        }
        let mut undo_order = WriteOrder::NONE;
        for log in 0..self.batches.len() {
            let mut batch = std::mem::take(&mut self.batches[log]);
            if !batch.is_empty() {
                let order = self.send_batch(port, log, &batch);
                if batch.iter().any(|r| r.kind == Kind::UndoRedo) {
                    undo_order = order;
                }
            }
            batch.clear();
            self.batches[log] = batch;
        }
        if !undo_order.is_none() {
            self.last_undo = undo_order;
            for sent in self.in_flight.iter_mut().rev().take_while(|sent| sent.order.is_none()) {
                sent.order = undo_order;
            }
        }
        for thread in self.waiting_for_buffer.drain(..) {
            port.release_here(thread);
        }
    }

    /// Sends a batch to a log. Commits, and transactions with late redo data, learn what they have to wait for.
    fn send_batch(&mut self, port: &mut Port<'_>, log: usize, batch: &[Record]) -> WriteOrder {
        let head = self.logs.ends[log].head;
        let ordered = self.delay_persistence
            && self.logs.ends.len() > 1
            && self.rules.records_follow_commits();
        let packer = &mut self.logs.ends[log].packer;
        let after = self.last_commit;
        let sent = packer.send(port, batch, after, |_| Write::Log);
        // With delay-persistence and several logs, no record passes a commit record that was sent before it.
        if ordered && batch.iter().any(|r| r.kind == Kind::Commit) {
            self.last_commit = sent.order;
        }
        assert!(packer.tail() - head <= packer.log().groups, "room was kept");
        let groups = packer.log().groups;
        if sent.group > 0 && (sent.group - 1) / groups < (packer.tail() - 1) / groups {
            port.emit(Event::LogWrapped);
        }
        for &record in batch {
            port.emit(Event::RecordSent { log, group: sent.group, record });
            let owner = Owner { thread: record.thread, id: record.tx };
            match record.kind {
                Kind::Redo if record.late => self.late_sent(owner, 1, sent.order),
                Kind::InPlace if record.late => {
                    self.late_sent(owner, record.dirty.count_ones(), sent.order);
                }
                Kind::Commit => self.commit_sent(owner, sent.order),
                Kind::UndoRedo | Kind::Redo | Kind::InPlace => {}
            }
        }
        sent.order
    }

    // ---- out of the redo buffer ----------------------------------------------------------------

    /// If the redo buffer is full, its oldest entries leave.
    pub fn make_room_for_redo(&mut self, port: &mut Port<'_>) {
        if !self.redo.is_full() {
            return;
        }
        port.emit(Event::RedoBufferFull);
        let mut taken = std::mem::take(&mut self.taken);
        self.redo.take_oldest(self.logs.together(), &mut taken);
        self.send_redo(port, &mut taken);
        self.taken = taken;
    }

    /// Entries that are wanted leave the redo buffer for the log.
    pub fn send_redo_where(&mut self, port: &mut Port<'_>, which: impl Fn(&Redo) -> bool) {
        let mut taken = std::mem::take(&mut self.taken);
        self.redo.take(which, &mut taken);
        self.send_redo(port, &mut taken);
        self.taken = taken;
    }

    /// Sends redo entries that have been taken out of the buffer, and forgets them.
    pub fn send_redo(&mut self, port: &mut Port<'_>, taken: &mut Vec<Redo>) {
        // A late entry follows its commit record, which may still be in the undo+redo buffer.
        let ahead = taken.iter().filter(|r| r.late).map(|r| self.undo_redo.ahead_of(r.owner)).max();
        if let Some(ahead) = ahead.filter(|&ahead| ahead > 0) {
            self.send_undo_redo(port, ahead);
        }
        self.pack_redo(port, taken);
        self.send_batches(port);
    }

    /// Moves redo entries into the batches at hand. Those that are at home leave a record of that, one for
    /// the words of a line.
    pub fn pack_redo(&mut self, port: &mut Port<'_>, taken: &mut Vec<Redo>) {
        for redo in taken.drain(..) {
            let Redo { owner, addr, value, dirty, late, place } = redo;
            let log = self.logs.of(owner.thread);
            self.logs.ends[log].redo -= 1;
            let of = Record { late, ..owner.record() };
            let batch = &mut self.batches[log];
            if place != Place::Home {
                batch.push(Record { kind: Kind::Redo, addr, redo: value, dirty, ..of });
                continue;
            }
            let home = Record { kind: Kind::InPlace, addr: addr.line().addr(), dirty: 0, ..of };
            let at = match batch.iter().position(|r| Record { dirty: 0, ..*r } == home) {
                Some(at) => at,
                None => {
                    port.emit(Event::InPlaceRecord);
                    batch.push(home);
                    batch.len() - 1
                }
            };
            batch[at].dirty |= addr.word_mask();
        }
    }

    // ---- durable records, and room -------------------------------------------------------------

    /// Records are durable: words whose entries are among them are URLog now, commits are acknowledged.
    pub fn records_durable(&mut self, port: &mut Port<'_>) {
        while let Some(sent) = self.in_flight.front()
            && !sent.order.is_none()
            && port.is_durable(sent.order)
        {
            let InFlight { core, owner, addr, .. } = *sent;
            self.in_flight.pop_front();
            self.leaves_dirty(core, owner, addr, State::URLog);
        }
        self.retire(port);
    }

    /// Returns true if a transaction's log has room for an entry, and if it is the first, for what
    /// comes with that.
    pub fn has_space_for_first(&self, tx: Tx) -> bool {
        match self.running[tx.thread as usize] {
            Some(_) => self.has_space(tx, 1),
            None => self.has_space(tx, 3) && self.has_table_entry(),
        }
    }

    /// Returns true if a transaction's log has room for `groups` groups more.
    pub fn has_space(&self, tx: Tx, groups: u64) -> bool {
        self.logs.ends[self.logs.of(tx.thread)].free_groups() >= groups
    }
}
