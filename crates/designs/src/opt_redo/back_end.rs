//! The back end: reads the records of committed transactions, combines them, updates their homes, and truncates
//! the log; a batch at a time, in commit order.

use std::collections::BTreeMap;

use super::cover::Cover;
use super::record::{Kind, Metadata};
use super::{About, Committed, Hold, Mutant, OptRedo, Phase, Thread};
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_machine::machine::Machine;
use graven_machine::media::overlay;
use graven_machine::request::{Write, WriteClass};

/// A record that is being read.
#[derive(Clone, Copy, Debug)]
struct Fetched {
    /// Which transaction of the batch.
    of: usize,
    /// Where its data line lies; the metadata line follows.
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

/// What the back end is at.
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

impl OptRedo {
    /// Whether transactions that have ended wait for the back end, or to be committed.
    pub(super) fn back_end_has_work(&self) -> bool {
        let ending = |t: &Thread| t.phase != Phase::Running;
        self.batch.is_some() || !self.committed.is_empty() || self.threads.iter().any(ending)
    }

    /// Begins a batch if one is full, if somebody waits for it, or if the oldest transaction has waited long enough.
    pub(super) fn begin_checkpoint_if_due(&mut self, m: &mut Machine) {
        if self.batch.is_some() {
            return;
        }
        let early = self.mutants.has(Mutant::CheckpointBeforeCommit);
        let most = self.config.checkpoint_transactions as usize;
        // Those before a commit record that is not durable: they are the first in commit order.
        let durable = self.committed.iter().take_while(|c| early || c.due.is_some());
        let ready = durable.take(most).count();
        let Some(oldest) = self.committed.front().filter(|_| ready > 0) else { return };
        let full = ready == most;
        let due = oldest.due.is_none_or(|due| due <= m.now());
        let waits = self.threads.iter().any(|t| t.held == Some(Hold::Area));
        let pressed = waits || self.victims.has_waiting() || oldest.sequence <= self.requested;
        if !(full || due || pressed) {
            return;
        }
        if !full && !due {
            m.cover(Cover::Pressed as usize);
        }
        let transactions: Vec<Committed> = self.committed.drain(..ready).collect();
        if transactions.iter().any(|c| c.thread != transactions[0].thread) {
            m.cover(Cover::BatchOfThreads as usize);
        }
        let mut records = Vec::new();
        for (of, c) in transactions.iter().enumerate() {
            let area = self.threads[c.thread as usize].area;
            let numbers = c.first..c.first + c.updates;
            let fetched = |n| Fetched { of, at: area.data(n), metadata: None, data: [0; 8] };
            records.extend(numbers.map(fetched));
        }
        m.count().checkpoints += 1;
        m.note(|| format!("the back end reads {} records", records.len()));
        self.batch = Some(Batch { transactions, records, ..Batch::default() });
        self.ask(m);
    }

    /// Asks for lines of records, as many as may be on their way.
    fn ask(&mut self, m: &mut Machine) {
        let batch = self.batch.as_mut().expect("it reads for a batch");
        let most = self.config.checkpoint_reads as usize;
        while batch.asked < 2 * batch.records.len() && batch.asked - batch.read < most {
            let (record, half) = (batch.asked / 2, batch.asked % 2);
            let line = LineAddr(batch.records[record].at.0 + half as u64);
            m.read(line, About::Read.of(batch.asked), 0);
            batch.asked += 1;
        }
    }

    pub(super) fn record_read(&mut self, m: &mut Machine, which: usize, content: &LineData) {
        let batch = self.batch.as_mut().expect("it reads for a batch");
        let record = &mut batch.records[which / 2];
        match which % 2 {
            0 => record.data = *content,
            _ => record.metadata = Metadata::of_line(content),
        }
        batch.read += 1;
        if batch.read < 2 * batch.records.len() {
            return self.ask(m);
        }
        self.combine(m);
        if self.mutants.has(Mutant::TruncatedAtSending) {
            self.truncate(m);
        }
        self.send_updates(m);
    }

    /// All records are there: the newest update of each word is what goes home.
    fn combine(&mut self, m: &mut Machine) {
        let batch = self.batch.as_mut().expect("it has read a batch");
        if self.mutants.has(Mutant::OldestUpdateWins) {
            batch.records.reverse();
        }
        let mut lines: BTreeMap<LineAddr, (usize, WordMask, LineData)> = BTreeMap::new();
        let (mut updated, mut shared) = (0, false);
        for record in &batch.records {
            let kind = record.metadata.map(|metadata| metadata.kind);
            let Some(Kind::Update { home, mut words }) = kind else {
                // Only a mutant reads what is not there yet.
                continue;
            };
            if self.mutants.has(Mutant::WholeLinesCheckpointed) {
                words = WordMask::MAX;
            }
            let first = (record.of, 0, record.data);
            let (of, mask, data) = lines.entry(home).or_insert(first);
            shared |= *of != record.of && *mask & words != 0;
            overlay(data, &record.data, words);
            (*of, *mask) = (record.of, *mask | words);
            updated += u64::from(words.count_ones());
        }
        if shared {
            m.cover(Cover::Combined as usize);
        }
        let update = |(line, (_, words, data))| Update { line, words, data };
        batch.updates = lines.into_iter().map(update).collect();
        let words: u64 = batch.updates.iter().map(|u| u64::from(u.words.count_ones())).sum();
        m.count().in_place_updates += words;
        m.count().log_words_combined += updated - words;
        let stores_to = |line| self.threads.iter().any(|t| t.updates > 0 && t.last == Some(line));
        if batch.updates.iter().any(|u| stores_to(u.line)) {
            m.cover(Cover::OpenLineUpdated as usize);
        }
    }

    /// Sends lines home, as many as may be on their way.
    fn send_updates(&mut self, m: &mut Machine) {
        let batch = self.batch.as_mut().expect("it updates for a batch");
        let most = self.config.checkpoint_writes as usize;
        while batch.sent < batch.updates.len() && batch.sent - batch.durable < most {
            let Update { line, words, data } = batch.updates[batch.sent];
            m.note(|| format!("the back end updates words {words:#010b} of {}", line.addr()));
            let write = Write::line(WriteClass::Gc, line, data);
            m.write(Write { mask: words, token: About::Home.of(0), ..write }, 0);
            batch.sent += 1;
        }
        if batch.durable == batch.updates.len() {
            self.is_home(m);
        }
    }

    pub(super) fn update_durable(&mut self, m: &mut Machine) {
        self.batch.as_mut().expect("it updates for a batch").durable += 1;
        self.send_updates(m);
    }

    /// All updates of the batch are durable: its lines need not be kept, and the log is truncated.
    fn is_home(&mut self, m: &mut Machine) {
        let batch = self.batch.as_mut().expect("it updates for a batch");
        let newest = batch.transactions.last().expect("a batch is not empty").sequence;
        self.retired = newest;
        m.count().ordering_points += 1;
        self.victims.retired(newest);
        if self.mutants.has(Mutant::TruncatedAtSending) {
            if batch.truncations == 0 {
                self.finish(m);
            }
        } else {
            self.truncate(m);
        }
    }

    /// Everything up to the batch's last transaction is at home, says one word, for the areas of all threads.
    fn truncate(&mut self, m: &mut Machine) {
        let batch = self.batch.as_mut().expect("it truncates for a batch");
        let newest = batch.transactions.last().expect("a batch is not empty").sequence;
        let mut threads: Vec<ThreadId> = vec![0];
        if self.mutants.has(Mutant::TruncatedThreadByThread) {
            threads = batch.transactions.iter().map(|c| c.thread).collect();
            threads.sort_unstable();
            threads.dedup();
        }
        batch.truncations = threads.len();
        for thread in threads {
            m.note(|| format!("the log is truncated: commits up to {newest} are at home"));
            let header = self.threads[thread as usize].area.header();
            let write = Write::words(WriteClass::Metadata, header, &[newest]);
            m.write(Write { token: About::Truncation.of(0), ..write }, 0);
        }
        if self.mutants.has(Mutant::SlotsFreedEarly) {
            self.free_slots(m);
        }
    }

    pub(super) fn truncation_durable(&mut self, m: &mut Machine) {
        let batch = self.batch.as_mut().expect("it truncates for a batch");
        batch.truncations -= 1;
        if batch.truncations == 0 && batch.durable == batch.updates.len() {
            self.finish(m);
        }
    }

    /// The slots of the batch's records can be used again.
    fn free_slots(&mut self, m: &mut Machine) {
        let batch = self.batch.as_ref().expect("it truncates for a batch");
        for c in &batch.transactions {
            // Its commit record lies behind its updates.
            let head = c.first + c.updates + 1;
            let thread = &mut self.threads[c.thread as usize];
            thread.head = thread.head.max(head);
        }
        self.release_held(m);
    }

    fn finish(&mut self, m: &mut Machine) {
        self.free_slots(m);
        let batch = self.batch.take().expect("it was at one");
        let records = batch.records.len() + batch.transactions.len();
        m.count().log_records_truncated += records as u64;
        self.begin_checkpoint_if_due(m);
        self.fail_if_victims_wait_for_ever(m);
    }

    /// Threads that wait for the back end look again.
    fn release_held(&mut self, m: &mut Machine) {
        for (t, thread) in self.threads.iter_mut().enumerate() {
            if matches!(thread.held, Some(Hold::Area | Hold::Victims)) {
                thread.held = None;
                m.release(t as ThreadId);
            }
        }
    }
}
