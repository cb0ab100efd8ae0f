//! `lad`: logless atomic durability (LAD, as Silo §V and §VI-A and LALEA §II-C describe it).
//!
//! No log: the updated lines of a transaction gather in a protected pool in the memory controller and
//! become eligible for PM all at once.
//!
//! - **Pool.** `adr_entries` places of one line (Silo and HOOP: 64; LALEA: 16), over all threads and
//!   channels. An entry holds the whole line, as the papers have it, and for each of its words the thread
//!   whose open transaction stored it. (Those owners are an extension, 8 × 8 bits per entry for up to 256
//!   threads: programs isolate words, not lines, so that two open transactions may share a line.) The
//!   pool survives a power failure by itself, whatever `controller.adr` says of the write queue.
//! - **Prepare.** At the end of a transaction each of its lines that is dirty in a cache falls through
//!   the levels to the controller, one leaving the L1 every `push_interval_cycles`. The controller tells
//!   the core when it has all of them: one message.
//! - **Commit.** A message to the controller turns the words' ownership into "committed", for all entries
//!   and together with the thread's commit register: the single commit point. A third message
//!   acknowledges it. A transaction of one line that is dirty in the L1 takes the traversal of the
//!   caches and three messages; further lines follow at the push interval.
//! - **Drain.** Committed lines go to PM at once as ordinary data writes; the place is free when the write
//!   is durable. While a newer version of the line gathers, the older has a place of its own. If words
//!   of other open transactions stay in the entry, only the rest is written, and both share the place.
//! - **Proactive flushing** (Silo §VI-A: enabled). A core remembers the `recent_lines` lines that its
//!   transaction stored to last; the one that falls off that list is pushed. If it is stored to again,
//!   the push was in vain (counted), and it is pushed again.
//! - **Eviction** from the LLC puts a line with uncommitted words into the pool, too; misses on lines in
//!   the pool are served from it.
//! - **Overflow.** A line that finds no place waits if a committed one is about to leave. If uncommitted
//!   lines fill the pool, undo logging takes over (Silo §V): the controller reads the old line from PM,
//!   writes an undo record for each transaction with unlogged words in it, and when they are durable
//!   lets the new line go to PM. `overflow_log = "lines"`: for such lines only (Silo). `"transaction"`:
//!   for every line of their transactions from then on, and for those already in the pool, which give
//!   up their places (LALEA §II-C: "log blocks for all update requests"); entries shared with other open
//!   transactions stay. There is no choice of a victim: it is whoever brought the line.
//!   A commit waits until such lines are durable at home.
//!
//! Undo records go to a circular area of each thread, 128 B apart; the second line is written after the
//! first is durable, so that a record is there whole or not at all:
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0-7 | 0-63 | undo: the committed line |
//! | 8 | 0-7 | kind: 1 |
//! | 8 | 8-15 | thread id |
//! | 8 | 16-23 | which words of the line are the transaction's |
//! | 8 | 32-63 | transaction number (low 32 bits) |
//! | 9 | 0-63 | home address |
//!
//! Non-volatile registers: per thread, the number of its first transaction that has not committed
//! (8 B each). They make the pool's entries and the log's records commit at one instant and truncate the log:
//! a record of an older transaction is void. Within a transaction no word is logged twice, so records need
//! no order.
//!
//! At a power failure the committed lines of the pool (`adr_entries` at most) go to PM; the rest of it is
//! lost. Recovery writes back the undo words of the transactions that have not committed.
//!
//! Left out or open: the pool is separate from the write queue (Silo's *64-entry MC queue* may be
//! both), so what has committed is buffered twice; lines between the caches and a place in the pool are
//! not bounded, as nothing else on that way is; the undo data are taken from the values that the stores
//! replaced, as writes underway hide what PM holds from this model's reads: the read is issued for its
//! time and traffic.

mod pool;
mod undo_log;
mod write_set;

use pool::{
    ByLine, Coming, Draining, Gathered, Owners, Room, Stage, ThreadSet, threads_in, words_owned,
};
use undo_log::{Area, Header, recover};
use write_set::WriteSet;

use super::{
    Design, Entry, Eviction, Fill, Flow, PLAIN, Promise, RecoveryReport, Site, Store, ThreadId, Tx,
};
use crate::config::{ConfigError, Size};
use crate::crash::Medium;
use crate::machine::{Cycle, Machine, Token, Write, WriteClass};
use crate::memory::{LINE_BYTES, LineAddr, LineData, WORDS_PER_LINE, WordMask};
use crate::{choice, section};

choice! {
    /// What is logged when the pool overflows.
    pub enum OverflowLog {
        /// The lines that found no place (Silo).
        Lines = "lines",
        /// All lines of their transactions (LALEA).
        Transaction = "transaction",
    }
}

section! {
    /// LAD: updated lines gather in the controller until their transaction commits.
    pub struct LadConfig("lad") {
        /// Lines that the controller's protected pool holds (LALEA: 16).
        adr_entries: u32 = 64, 1..=4096, "lines";
        /// Time between two lines that leave an L1 at the end of a transaction.
        push_interval_cycles: u32 = 1, 0..=1000, "cycles";
        /// Time of a read that the pool serves, once it has reached the controller.
        pool_read_cycles: u32 = 1, 0..=1000, "cycles";
        /// Whether lines are pushed before the end of their transaction.
        proactive_flush: bool = true, (), "";
        /// Lines that a transaction stored to last and that are not pushed yet.
        recent_lines: u32 = 4, 1..=64, "lines";
        /// What is logged when the pool overflows.
        overflow_log: OverflowLog = OverflowLog::Lines, (), "";
        /// Circular area of each thread for undo records, of 128 B per line.
        log_bytes_per_thread: Size = Size::kb(256), Size(128)..=Size::mb(64), "B";
    }
}

/// The design's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "lad",
    summary: "gathers a transaction's lines in the controller; undo logging when they do not fit",
    paper: "LAD as in Silo §V, §VI-A and LALEA §II-C",
    promise: |_| Promise::Durable,
    section: Some(|| Box::new(LadConfig::default())),
    build: |site| Ok(Box::new(Lad::new(site)?)),
    recover,
    ..PLAIN
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// Waits for the controller to have all lines.
    Preparing,
    /// The commit message is on its way, or will be as soon as the controller's message is there.
    Committing,
}

#[derive(Clone, Debug)]
struct Thread {
    writes: WriteSet,
    phase: Phase,
    tx: u64,
    /// Lines with words of this thread that are on their way into the pool or to PM.
    underway: u32,
    /// When the core knows that the last of them was received.
    received: Cycle,
    /// Every line of the transaction is logged.
    logs_all: bool,
    /// The non-volatile register: the first transaction that has not committed.
    uncommitted: u64,
    area: Area,
    records: u64,
    records_of_tx: u64,
}

/// What timers and durable writes are about; the rest of the token is a line or a thread.
#[derive(Clone, Copy, Debug)]
enum About {
    Arrival = 1,
    Commit,
    Acknowledgement,
    Record,
    Home,
    Drain,
}

impl About {
    fn line(self, line: LineAddr) -> Token {
        line.0 << 3 | self as u64
    }

    fn thread(self, thread: usize) -> Token {
        (thread as u64) << 3 | self as u64
    }
}

struct Lad {
    config: LadConfig,
    threads: Vec<Thread>,
    coming: ByLine<Coming>,
    gathered: ByLine<Gathered>,
    /// Oldest first.
    draining: Vec<Draining>,
}

impl Lad {
    fn new(site: &Site) -> Result<Lad, ConfigError> {
        let config = site.config.get::<LadConfig>().clone();
        site.check_thread_areas("lad.log_bytes_per_thread", config.log_bytes_per_thread.0)?;
        let thread = |t| Thread {
            writes: WriteSet::default(),
            phase: Phase::Running,
            tx: 0,
            underway: 0,
            received: 0,
            logs_all: false,
            uncommitted: 0,
            area: Area::of(site, t),
            records: 0,
            records_of_tx: 0,
        };
        Ok(Lad {
            threads: (0..site.threads).map(thread).collect(),
            coming: ByLine::new(),
            gathered: ByLine::new(),
            draining: Vec::new(),
            config,
        })
    }

    // ---- out of the caches --------------------------------------------------------------------

    /// Sends a dirty line from the caches, after `wait`.
    fn push(&mut self, m: &mut Machine, line: LineAddr, wait: Cycle) {
        let fall = m.caches.clean(line).expect("a line that was not pushed is dirty in some cache");
        m.count().forced_writebacks += 1;
        let content = m.line(line);
        let at = m.now() + wait + fall;
        self.leaves(line, &content, at);
        m.set_timer(at, About::Arrival.line(line));
    }

    /// The newest content of a line has left the caches and arrives at a time. Returns whether no older
    /// version was underway.
    fn leaves(&mut self, line: LineAddr, content: &LineData, arrives: Cycle) -> bool {
        let mut threads: ThreadSet = 0;
        for (t, thread) in self.threads.iter_mut().enumerate() {
            if let Some(at) = thread.writes.find(line) {
                thread.writes.lines[at].pushed = true;
                threads |= 1 << t;
            }
        }
        self.underway(line, content, arrives, threads)
    }

    /// A line is underway, or joins its older version; these threads' commits must wait for it.
    fn underway(
        &mut self,
        line: LineAddr,
        content: &LineData,
        arrives: Cycle,
        threads: ThreadSet,
    ) -> bool {
        let older = self.coming.get_mut(line);
        let (joins, known) = (older.is_some(), older.as_ref().map_or(0, |c| c.threads));
        for t in threads_in(threads & !known) {
            self.threads[t].underway += 1;
        }
        match older {
            Some(coming) => {
                coming.data = *content;
                coming.arrives = coming.arrives.max(arrives);
                coming.threads |= threads;
                coming.newer = true;
            }
            None => {
                let (data, stage) = (*content, Stage::Travelling);
                self.coming.insert(line, Coming { data, arrives, threads, stage, newer: false });
            }
        }
        !joins
    }

    /// Who has stored which words of a line, and which of these words have no undo record.
    fn owners(&self, line: LineAddr) -> (Owners, WordMask) {
        let (mut owners, mut unlogged) = ([None; WORDS_PER_LINE], 0);
        for (t, thread) in self.threads.iter().enumerate() {
            let Some(at) = thread.writes.find(line) else { continue };
            let written = &thread.writes.lines[at];
            unlogged |= written.words & !written.logged;
            for (word, owner) in owners.iter_mut().enumerate() {
                if written.words >> word & 1 != 0 {
                    *owner = Some(t as u8);
                }
            }
        }
        (owners, unlogged)
    }

    // ---- into the pool ------------------------------------------------------------------------

    fn free_places(&self) -> usize {
        let own = self.draining.iter().filter(|d| d.room == Room::Own).count();
        let used = self.gathered.lines.len() + own;
        (self.config.adr_entries as usize)
            .checked_sub(used)
            .expect("the pool holds at most adr_entries lines")
    }

    /// A line is at the controller: it finds a place, waits for one, or is logged and goes home.
    fn place(&mut self, m: &mut Machine, line: LineAddr) {
        let coming = self.coming.get_mut(line).expect("only a line underway is placed");
        if coming.arrives > m.now() {
            coming.stage = Stage::Travelling;
            return;
        }
        coming.newer = false;
        let data = coming.data;
        let (owners, unlogged) = self.owners(line);
        if self.gathered.get(line).is_some() {
            if !self.separate(line) {
                return self.stage(line, Stage::Waiting);
            }
            *self.gathered.get_mut(line).expect("it was just found") = Gathered { data, owners };
            self.gathered(m, line);
        } else if unlogged == 0 {
            self.stage(line, Stage::Writing);
            let token = About::Home.line(line);
            m.write(Write { token, ..Write::line(WriteClass::Data, line, data) }, 0);
        } else if self.log_without_asking(line) {
            self.log(m, line);
        } else if self.free_places() > 0 {
            self.gathered.insert(line, Gathered { data, owners });
            self.gathered(m, line);
        } else if self.draining.iter().any(|d| d.room == Room::Own) {
            self.stage(line, Stage::Waiting);
        } else {
            self.overflow(m, line);
        }
    }

    fn stage(&mut self, line: LineAddr, stage: Stage) {
        self.coming.get_mut(line).expect("the caller has it").stage = stage;
    }

    /// The versions of a line that drain from the place of the gathered one, oldest first.
    fn sharing_place_of(
        &mut self,
        line: LineAddr,
    ) -> impl DoubleEndedIterator<Item = &mut Draining> {
        self.draining.iter_mut().filter(move |d| d.line == line && d.room == Room::Gathered)
    }

    /// Gives the draining versions that share the place of a gathered line places of their own, before
    /// newer content goes there. Returns whether there were places.
    fn separate(&mut self, line: LineAddr) -> bool {
        let free = self.free_places();
        if self.sharing_place_of(line).count() > free {
            return false;
        }
        self.sharing_place_of(line).for_each(|d| d.room = Room::Own);
        true
    }

    fn gathered(&mut self, m: &mut Machine, line: LineAddr) {
        let used = u64::from(self.config.adr_entries) - self.free_places() as u64;
        let max = &mut m.count().log_buffer_max;
        *max = (*max).max(used);
        self.received(m, line);
    }

    /// The controller has a line where the commit of its transactions will find it.
    fn received(&mut self, m: &mut Machine, line: LineAddr) {
        let coming = self.coming.remove(line).expect("only a line underway is received");
        for t in threads_in(coming.threads) {
            let thread = &mut self.threads[t];
            thread.underway -= 1;
            thread.received = m.now() + m.path();
            self.commit_if_prepared(m, t);
        }
    }

    fn commit_if_prepared(&mut self, m: &mut Machine, t: usize) {
        let thread = &mut self.threads[t];
        if thread.phase == Phase::Preparing && thread.underway == 0 {
            thread.phase = Phase::Committing;
            let known = thread.received.max(m.now());
            m.set_timer(known + m.path(), About::Commit.thread(t));
        }
    }

    // ---- undo logging -------------------------------------------------------------------------

    /// Whether a transaction with words in the line has all its lines logged.
    fn log_without_asking(&self, line: LineAddr) -> bool {
        self.threads.iter().any(|t| t.logs_all && t.writes.find(line).is_some())
    }

    fn log(&mut self, m: &mut Machine, line: LineAddr) {
        self.stage(line, Stage::Reading);
        m.read(line, About::Record.line(line), 0);
    }

    fn overflow(&mut self, m: &mut Machine, line: LineAddr) {
        m.count().log_overflows += 1;
        if self.config.overflow_log == OverflowLog::Transaction {
            for t in 0..self.threads.len() {
                let thread = &mut self.threads[t];
                // What is committing has all its words in the pool or logged, and must stay there.
                if thread.phase != Phase::Committing && thread.writes.find(line).is_some() {
                    thread.logs_all = true;
                    self.give_up_places(m, t);
                }
            }
        }
        self.log(m, line);
    }

    /// The gathered lines of one transaction alone leave the pool and are logged.
    fn give_up_places(&mut self, m: &mut Machine, t: usize) {
        let mut i = 0;
        while i < self.gathered.lines.len() {
            let (line, Gathered { data, owners }) =
                (self.gathered.lines[i], self.gathered.values[i]);
            if owners.iter().flatten().any(|&owner| usize::from(owner) != t) {
                i += 1;
                continue;
            }
            self.gathered.remove(line);
            // What still drains from its place keeps it: the youngest version, the last to go.
            let mut sharing = self.sharing_place_of(line);
            if let Some(youngest) = sharing.next_back() {
                youngest.room = Room::Own;
            }
            sharing.for_each(|d| d.room = Room::Younger);
            if self.coming.get(line).is_none() {
                // Not the newest content: what was stored since is still in the caches.
                self.underway(line, &data, m.now(), 1 << t);
                self.log(m, line);
            }
        }
    }

    /// The old line was read: each transaction with unlogged words in it gets an undo record.
    fn write_records(&mut self, m: &mut Machine, line: LineAddr) {
        let mut old = self.coming.get(line).expect("it waits for its old content").data;
        for thread in &self.threads {
            let Some(at) = thread.writes.find(line) else { continue };
            let written = &thread.writes.lines[at];
            for (word, old) in old.iter_mut().enumerate() {
                if written.words >> word & 1 != 0 {
                    *old = written.before[word];
                }
            }
        }
        let mut records = 0;
        for t in 0..self.threads.len() {
            let Some(at) = self.threads[t].writes.find(line) else { continue };
            let written = &mut self.threads[t].writes.lines[at];
            let words = written.words & !written.logged;
            if words != 0 {
                written.logged |= words;
                self.write_record(m, t, line, words, &old);
                records += 1;
            }
        }
        assert!(records > 0, "a line is logged because of a word that is not");
        self.stage(line, Stage::Logging(records));
    }

    fn write_record(
        &mut self,
        m: &mut Machine,
        t: usize,
        home: LineAddr,
        words: WordMask,
        old: &LineData,
    ) {
        let thread = &mut self.threads[t];
        let slot = thread.area.slot(thread.records);
        thread.records += 1;
        thread.records_of_tx += 1;
        if thread.records_of_tx > thread.area.slots {
            m.fail(format!(
                "transaction {} of thread {t} has more undo records than lad.log_bytes_per_thread holds ({})",
                thread.tx, thread.area.slots
            ));
        }
        let header = Header { thread: t as ThreadId, words, tx: thread.tx as u32, home };
        let mut data = Write::line(WriteClass::Log, slot, *old);
        data.order = m.order();
        let second = slot.addr().plus(LINE_BYTES);
        let mut head = Write::words(WriteClass::Metadata, second, &header.words());
        (head.order, head.after, head.token) = (m.order(), data.order, About::Record.line(home));
        m.count().log_entries += 1;
        m.write(data, 0);
        m.write(head, 0);
    }

    fn record_durable(&mut self, m: &mut Machine, line: LineAddr) {
        let coming = self.coming.get_mut(line).expect("it waits for its records");
        let Stage::Logging(records) = &mut coming.stage else {
            unreachable!("records are durable while their line waits for them")
        };
        *records -= 1;
        if *records == 0 {
            self.place(m, line);
        }
    }

    // ---- commit and drain ---------------------------------------------------------------------

    /// The commit message has reached the controller: the commit point.
    fn commit(&mut self, m: &mut Machine, t: usize) {
        m.durable_state_changed();
        let thread = &mut self.threads[t];
        thread.phase = Phase::Running;
        thread.uncommitted = thread.tx + 1;
        thread.logs_all = false;
        m.count().log_records_truncated += std::mem::take(&mut thread.records_of_tx);
        for at in 0..self.threads[t].writes.lines.len() {
            let line = self.threads[t].writes.lines[at].line;
            self.commit_line(m, t, line);
        }
        self.threads[t].writes.clear();
        m.set_timer(m.now() + m.path(), About::Acknowledgement.thread(t));
    }

    fn commit_line(&mut self, m: &mut Machine, t: usize, line: LineAddr) {
        let Some(entry) = self.gathered.get_mut(line) else { return };
        let mine = |owner: u8| usize::from(owner) == t;
        if words_owned(&entry.owners, mine) == 0 {
            return;
        }
        entry.owners.iter_mut().filter(|o| o.is_some_and(mine)).for_each(|o| *o = None);
        let mask = !words_owned(&entry.owners, |_| true);
        let data = entry.data;
        let mut room = Room::Gathered;
        if mask == WordMask::MAX {
            room = Room::Own;
            self.gathered.remove(line);
            self.sharing_place_of(line).for_each(|d| d.room = Room::Younger);
        }
        self.draining.push(Draining { line, mask, data, room });
        let write = Write::line(WriteClass::Data, line, data);
        m.write(Write { mask, token: About::Drain.line(line), ..write }, 0);
    }

    /// The oldest draining version of a line is durable: its place is free.
    fn drained(&mut self, m: &mut Machine, line: LineAddr) {
        let at = self.draining.iter().position(|d| d.line == line);
        self.draining.remove(at.expect("a drain ends once"));
        let mut i = 0;
        while let Some(&line) = self.coming.lines.get(i) {
            if self.coming.values[i].stage == Stage::Waiting {
                self.place(m, line);
            }
            i += usize::from(self.coming.lines.get(i) == Some(&line));
        }
    }
}

impl Design for Lad {
    fn tx_begin(&mut self, _m: &mut Machine, tx: Tx) -> Flow {
        self.threads[tx.thread as usize].tx = tx.number;
        Flow::Continue
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Flow {
        let writes = &mut self.threads[store.tx.thread as usize].writes;
        let in_vain = writes.store(store);
        if self.config.proactive_flush {
            m.count().forced_writebacks_in_vain += u64::from(in_vain);
            let off = writes.touch(self.config.recent_lines as usize);
            if let Some(written) = off.map(|at| &mut writes.lines[at]).filter(|w| !w.pushed) {
                written.early = true;
                let line = written.line;
                self.push(m, line, 0);
            }
        }
        Flow::Continue
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Flow {
        let t = tx.thread as usize;
        if self.threads[t].writes.lines.is_empty() {
            return Flow::Continue;
        }
        let mut wait = 0;
        for at in 0..self.threads[t].writes.lines.len() {
            let written = &self.threads[t].writes.lines[at];
            if !written.pushed {
                let line = written.line;
                self.push(m, line, wait);
                wait += Cycle::from(self.config.push_interval_cycles);
            }
        }
        self.threads[t].phase = Phase::Preparing;
        self.commit_if_prepared(m, t);
        Flow::Wait
    }

    fn llc_evict(&mut self, m: &mut Machine, line: LineAddr, content: &LineData) -> Eviction {
        let open = self.threads.iter().any(|t| t.writes.find(line).is_some());
        if !open && self.coming.get(line).is_none() && self.gathered.get(line).is_none() {
            return Eviction::WriteBack { after: 0, token: 0 };
        }
        if self.leaves(line, content, m.now()) {
            self.place(m, line);
        }
        Eviction::Keep
    }

    fn llc_fill(&mut self, _m: &mut Machine, line: LineAddr) -> Fill {
        let coming = self.coming.get(line).map(|c| c.data);
        match coming.or_else(|| self.gathered.get(line).map(|g| g.data)) {
            Some(data) => Fill::Buffer(data, self.config.pool_read_cycles.into()),
            None => Fill::Home,
        }
    }

    fn read_done(&mut self, m: &mut Machine, _token: Token, line: LineAddr, _content: &LineData) {
        self.write_records(m, line);
    }

    fn persisted(&mut self, m: &mut Machine, token: Token) {
        let line = LineAddr(token >> 3);
        match token & 7 {
            t if t == About::Record as u64 => self.record_durable(m, line),
            t if t == About::Drain as u64 => self.drained(m, line),
            t if t == About::Home as u64 => {
                if self.coming.get(line).is_some_and(|c| c.newer) {
                    self.place(m, line);
                } else {
                    self.received(m, line);
                }
            }
            other => unreachable!("no write carries token {other}"),
        }
    }

    fn timer(&mut self, m: &mut Machine, token: u64) {
        let (line, thread) = (LineAddr(token >> 3), (token >> 3) as usize);
        match token & 7 {
            t if t == About::Commit as u64 => self.commit(m, thread),
            t if t == About::Acknowledgement as u64 => m.release(thread as ThreadId),
            t if t == About::Arrival as u64 => {
                // A line may be received, by joining an older version, before its own time.
                if self.coming.get(line).is_some_and(|c| c.stage == Stage::Travelling) {
                    self.place(m, line);
                }
            }
            other => unreachable!("no timer carries token {other}"),
        }
    }

    fn is_idle(&self) -> bool {
        self.coming.lines.is_empty() && self.gathered.lines.is_empty() && self.draining.is_empty()
    }

    fn power_failure(&self, medium: &mut Medium) {
        for drain in &self.draining {
            medium.store_line(drain.line, drain.mask, &drain.data);
        }
    }

    fn registers(&self) -> Vec<u64> {
        self.threads.iter().map(|t| t.uncommitted).collect()
    }
}
