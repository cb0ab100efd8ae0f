//! The back end: reads the records of committed transactions, combines them, updates their homes, and truncates
//! the log; a batch at a time, in commit order.

use std::collections::BTreeMap;

use super::event::Event;
use super::protocol::{Committed, Hold, OptRedo, Phase, Port, Read, Thread, Write};
use super::record::{Kind, Metadata};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_machine::media::overlay;
use graven_machine::request::{self, WriteClass};

/// A record that is being read.
#[derive(Clone, Copy, Debug)]
struct Fetched {
    /// Number of its transaction in the batch.
    of: usize,
    /// The data line; the metadata line follows.
    at: LineAddr,
    metadata: Option<Metadata>,
    data: LineData,
}

/// A line of the batch on its way home.
#[derive(Clone, Copy, Debug)]
struct Update {
    line: LineAddr,
    words: WordMask,
    data: LineData,
}

/// Batch of the back end.
#[derive(Debug, Default)]
pub(super) struct Batch {
    transactions: Vec<Committed>,
    records: Vec<Fetched>,
    /// Lines of records that were asked for, and that were read.
    asked: usize,
    read: usize,
    updates: Vec<Update>,
    /// Updates that were sent, and that are durable.
    sent: usize,
    durable: usize,
    /// Truncation words that are on their way.
    truncations: usize,
}

impl Batch {
    /// Number of its transactions.
    pub(super) fn transactions(&self) -> usize {
        self.transactions.len()
    }

    /// Two for each record.
    fn lines(&self) -> usize {
        2 * self.records.len()
    }

    /// The commit sequence number up to which everything is at home after it.
    fn newest(&self) -> u64 {
        self.transactions.last().expect("a batch is not empty").sequence
    }

    fn is_home(&self) -> bool {
        self.durable == self.updates.len()
    }

    /// The updates of each line, one over the other in the order of the records. Beside them: how many updates of
    /// words there were, and whether two transactions had updated one word.
    fn combined(&self, whole_lines: bool) -> (Vec<Update>, u64, bool) {
        let mut lines: BTreeMap<LineAddr, (usize, WordMask, LineData)> = BTreeMap::new();
        let (mut updated, mut shared) = (0, false);
        for record in &self.records {
            let kind = record.metadata.map(|metadata| metadata.kind);
            let Some(Kind::Update { home, words }) = kind else {
                // Only a mutant reads what is not there yet.
                continue;
            };
            let words = if whole_lines { WordMask::MAX } else { words };
            let first = (record.of, 0, record.data);
            let (of, mask, data) = lines.entry(home).or_insert(first);
            shared |= *of != record.of && *mask & words != 0;
            overlay(data, &record.data, words);
            (*of, *mask) = (record.of, *mask | words);
            updated += u64::from(words.count_ones());
        }
        let update = |(line, (_, words, data))| Update { line, words, data };
        (lines.into_iter().map(update).collect(), updated, shared)
    }
}

impl OptRedo {
    /// Returns true if transactions that have ended wait for the back end, or to be committed.
    pub(super) fn back_end_has_work(&self) -> bool {
        let ending = |t: &Thread| t.phase != Phase::Running;
        self.batch.is_some() || !self.committed.is_empty() || self.threads.iter().any(ending)
    }

    /// The batch that the back end is at.
    fn batch(&mut self) -> &mut Batch {
        self.batch.as_mut().expect("what was sent for a batch ends before it does")
    }

    // ---- reading -------------------------------------------------------------------------------

    /// Begins a batch if one is full, if a thread or a line waits for it, or if the oldest
    /// transaction has waited long enough.
    pub(super) fn begin_checkpoint_if_due(&mut self, port: &mut Port<'_>) {
        if self.batch.is_some() {
            return;
        }
        let early = !self.rules.checkpoint_follows_commit();
        let most = self.config.checkpoint_transactions as usize;
        // Those before a commit record that is not durable: they are the first in commit order.
        let ready = if early { self.committed.len() } else { self.durable }.min(most);
        let Some(oldest) = self.committed.front().filter(|_| ready > 0) else { return };
        let is_full = ready == most;
        let is_due = oldest.due.is_none_or(|due| due <= port.now());
        let is_waited_for = self.threads.iter().any(|t| t.held == Some(Hold::Area))
            || self.victims.has_waiting()
            || oldest.sequence <= self.requested;
        if is_full || is_due || is_waited_for {
            self.begin(port, ready, !is_full && !is_due);
        }
    }

    /// Those whose commit records are durable are the first as far as they follow each other.
    pub(super) fn count_durable(&mut self) {
        let later = self.committed.range(self.durable..);
        self.durable += later.take_while(|c| c.due.is_some()).count();
    }

    /// Begins with the oldest transactions, and reads their records.
    fn begin(&mut self, port: &mut Port<'_>, transactions: usize, pressed: bool) {
        // A mutant begins with others, too.
        self.durable = self.durable.saturating_sub(transactions);
        let transactions: Vec<Committed> = self.committed.drain(..transactions).collect();
        self.count_durable();
        let of_threads = transactions.iter().any(|c| c.thread != transactions[0].thread);
        let mut records = Vec::new();
        for (of, c) in transactions.iter().enumerate() {
            let area = self.threads[c.thread as usize].area;
            let numbers = c.first..c.first + c.updates;
            let fetched = |n| Fetched { of, at: area.data(n), metadata: None, data: [0; 8] };
            records.extend(numbers.map(fetched));
        }
        port.emit(Event::BatchBegins { records: records.len(), pressed, of_threads });
        self.batch = Some(Batch { transactions, records, ..Batch::default() });
        self.ask(port);
    }

    /// Asks for lines of records, as many as may be on their way.
    fn ask(&mut self, port: &mut Port<'_>) {
        let most = self.config.checkpoint_reads as usize;
        let batch = self.batch();
        while batch.asked < batch.lines() && batch.asked - batch.read < most {
            let (record, half) = (batch.asked / 2, batch.asked % 2);
            let data = batch.records[record].at;
            match half {
                0 => port.read(data, Read::Data { record }, 0),
                _ => port.read(LineAddr(data.0 + 1), Read::Metadata { record }, 0),
            }
            batch.asked += 1;
        }
    }

    /// A line of a record has been read; when all have been, the updates are known.
    pub(super) fn record_read(&mut self, port: &mut Port<'_>, read: Read, content: &LineData) {
        let batch = self.batch();
        match read {
            Read::Data { record } => batch.records[record].data = *content,
            Read::Metadata { record } => {
                batch.records[record].metadata = Metadata::of_line(content);
            }
        }
        batch.read += 1;
        if batch.read < batch.lines() {
            return self.ask(port);
        }
        self.combine(port);
        if !self.rules.truncated_when_durable() {
            self.truncate(port);
        }
        self.send_updates(port);
    }

    // ---- updates in place ----------------------------------------------------------------------

    /// Combines the records, which have all been read: the newest update of each word goes home.
    fn combine(&mut self, port: &mut Port<'_>) {
        let rules = self.rules;
        let batch = self.batch();
        if !rules.newest_update_wins() {
            batch.records.reverse();
        }
        let (updates, updated, shared) = batch.combined(!rules.only_own_words_are_checkpointed());
        let words: u64 = updates.iter().map(|u| u64::from(u.words.count_ones())).sum();
        let stores_to = |line| self.threads.iter().any(|t| t.updates > 0 && t.last == Some(line));
        let open_line = updates.iter().any(|u| stores_to(u.line));
        port.emit(Event::Combined { words, superseded: updated - words, shared, open_line });
        self.batch().updates = updates;
    }

    /// Sends lines home, as many as may be on their way.
    fn send_updates(&mut self, port: &mut Port<'_>) {
        let most = self.config.checkpoint_writes as usize;
        let batch = self.batch();
        while batch.sent < batch.updates.len() && batch.sent - batch.durable < most {
            let Update { line, words, data } = batch.updates[batch.sent];
            port.emit(Event::UpdateSent { line, words });
            let write = request::Write::line(WriteClass::Gc, line, data);
            port.write_reported(write.masked(words), Write::Update, 0);
            batch.sent += 1;
        }
        if batch.is_home() {
            self.batch_home(port);
        }
    }

    /// A line is durable in its place.
    pub(super) fn update_durable(&mut self, port: &mut Port<'_>) {
        self.batch().durable += 1;
        self.send_updates(port);
    }

    /// All updates of the batch are durable: its lines need not be kept, and the log is truncated.
    fn batch_home(&mut self, port: &mut Port<'_>) {
        let batch = self.batch();
        let (newest, truncations) = (batch.newest(), batch.truncations);
        self.retired = newest;
        port.emit(Event::BatchHome);
        self.victims.retired(newest);
        if self.rules.truncated_when_durable() {
            self.truncate(port);
        } else if truncations == 0 {
            self.finish(port);
        }
    }

    // ---- truncation ----------------------------------------------------------------------------

    /// Everything up to the batch's last transaction is at home, says one word, for the areas of all threads.
    fn truncate(&mut self, port: &mut Port<'_>) {
        let by_thread = !self.rules.truncated_together();
        let batch = self.batch();
        let newest = batch.newest();
        let mut threads: Vec<ThreadId> = vec![0];
        if by_thread {
            threads = batch.transactions.iter().map(|c| c.thread).collect();
            threads.sort_unstable();
            threads.dedup();
        }
        batch.truncations = threads.len();
        for thread in threads {
            port.emit(Event::TruncationSent { newest });
            let header = self.threads[thread as usize].area.header();
            let write = request::Write::words(WriteClass::Metadata, header, &[newest]);
            port.write_reported(write, Write::Truncation, 0);
        }
        if !self.rules.slots_free_when_durable() {
            self.free_slots(port);
        }
    }

    /// A truncation word is durable.
    pub(super) fn truncation_durable(&mut self, port: &mut Port<'_>) {
        let batch = self.batch();
        batch.truncations -= 1;
        if batch.truncations == 0 && batch.is_home() {
            self.finish(port);
        }
    }

    /// The slots of the batch's records can be used again.
    fn free_slots(&mut self, port: &mut Port<'_>) {
        let batch = self.batch.as_ref().expect("it truncates for a batch");
        for c in &batch.transactions {
            // Its commit record lies behind its updates.
            let head = c.first + c.updates + 1;
            let thread = &mut self.threads[c.thread as usize];
            thread.head = thread.head.max(head);
        }
        self.release_held(port);
    }

    /// The batch is over; others may begin.
    fn finish(&mut self, port: &mut Port<'_>) {
        self.free_slots(port);
        let batch = self.batch.take().expect("it was at one");
        let records = batch.records.len() + batch.transactions.len();
        port.emit(Event::Truncated { records });
        self.begin_checkpoint_if_due(port);
        self.fail_if_victims_wait_for_ever(port);
    }

    /// Threads that wait for the back end look again.
    fn release_held(&mut self, port: &mut Port<'_>) {
        for (t, thread) in self.threads.iter_mut().enumerate() {
            if matches!(thread.held, Some(Hold::Area | Hold::Victims)) {
                thread.held = None;
                port.release(t as ThreadId);
            }
        }
    }
}
