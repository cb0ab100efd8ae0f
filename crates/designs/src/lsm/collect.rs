//! Garbage collection: the newest committed words of the log go home, then the head moves, then there is room.

use std::collections::BTreeMap;

use super::cover::Cover;
use super::log::{Logged, Sequence};
use super::{About, Lsm, Mutant};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr, LineData, WORDS_PER_LINE, WordMask, words_in};
use graven_machine::machine::Machine;
use graven_machine::request::{Write, WriteClass};

/// A collection under way.
#[derive(Clone, Debug)]
pub(super) struct Collection {
    stage: Stage,
    /// It collects transactions with lower numbers.
    limit: Sequence,
    /// Newest first, each with the lines that it uses.
    segments: Vec<(usize, u64)>,
    /// What was read of them, line by line.
    lines: Vec<LineData>,
    /// Lines to be read, in the order of `lines`.
    to_read: Vec<LineAddr>,
    /// Lines to be written home.
    homes: Vec<(LineAddr, WordMask, LineData)>,
    /// Requests sent in this stage, and those that have been answered.
    sent: usize,
    done: usize,
    transactions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Waits for transactions on their way into the log.
    Waiting,
    Reading,
    Writing,
    MovingHead,
}

impl Lsm {
    /// Begins a collection, unless one is under way or there is nothing to collect.
    pub(super) fn collect(&mut self, m: &mut Machine, on_demand: bool) {
        if self.collection.is_some() {
            return;
        }
        if !self.mutants.has(Mutant::OpenSegmentsLeftOut) {
            self.close_open_segments(m);
        }
        let segments: Vec<(usize, u64)> =
            self.segments.take_full().into_iter().map(|s| (s, self.segments.used(s))).collect();
        if segments.is_empty() {
            return;
        }
        let line = |&(segment, lines): &(usize, u64)| {
            let log = self.log;
            (0..lines).map(move |line| log.line(segment, line))
        };
        let to_read: Vec<LineAddr> = segments.iter().flat_map(line).collect();
        let c = m.count();
        c.gc_passes += 1;
        c.gc_on_demand += u64::from(on_demand);
        m.note(|| {
            let (segments, limit) = (segments.len(), self.next_sequence);
            format!("a collection of {segments} segments begins, up to transaction {limit}")
        });
        self.collection = Some(Collection {
            stage: Stage::Waiting,
            limit: self.next_sequence,
            lines: vec![[0; WORDS_PER_LINE]; to_read.len()],
            segments,
            to_read,
            homes: Vec::new(),
            sent: 0,
            done: 0,
            transactions: 0,
        });
        if self.is_appending_before(self.next_sequence) {
            m.cover(Cover::WaitsForAppends as usize);
        }
        self.appended(m);
    }

    /// Threads open new segments for what comes after.
    fn close_open_segments(&mut self, m: &mut Machine) {
        for thread in &mut self.threads {
            if let Some(segment) = thread.open.take() {
                self.segments.close(segment);
                m.cover(Cover::OpenSegmentCollected as usize);
            }
        }
    }

    /// A transaction has come into the log, or a collection has begun.
    pub(super) fn appended(&mut self, m: &mut Machine) {
        let Some(collection) = &self.collection else { return };
        let awaited = !self.mutants.has(Mutant::AppendsNotAwaited);
        let waits = awaited && self.is_appending_before(collection.limit);
        if collection.stage == Stage::Waiting && !waits {
            self.enter(Stage::Reading);
            self.send_reads(m);
        }
    }

    fn under_way(&mut self) -> &mut Collection {
        self.collection.as_mut().expect("its requests are those of a collection under way")
    }

    fn enter(&mut self, stage: Stage) {
        let collection = self.under_way();
        (collection.stage, collection.sent, collection.done) = (stage, 0, 0);
    }

    fn send_reads(&mut self, m: &mut Machine) {
        let window = self.config.gc_requests as usize;
        let collection = self.under_way();
        while collection.sent < collection.to_read.len()
            && collection.sent - collection.done < window
        {
            let token = About::Collected(collection.sent).token();
            m.read(collection.to_read[collection.sent], token, m.bypass_cycles());
            collection.sent += 1;
        }
    }

    /// A line of the log has been read.
    pub(super) fn collected(&mut self, m: &mut Machine, number: usize, content: &LineData) {
        let collection = self.under_way();
        collection.lines[number] = *content;
        collection.done += 1;
        if collection.done < collection.to_read.len() {
            return self.send_reads(m);
        }
        self.choose_newest(m);
        self.enter(Stage::Writing);
        self.send_homes(m);
    }

    /// Of each word the newest version, by home line.
    fn choose_newest(&mut self, m: &mut Machine) {
        let (log, head) = (self.log, self.head);
        let oldest = self.mutants.has(Mutant::OldestMigrated);
        let collection = self.collection.as_mut().expect("the caller has it");
        let mut newest: BTreeMap<Addr, Logged> = BTreeMap::new();
        let (mut found, mut first) = (0, 0);
        for &(segment, lines) in &collection.segments {
            let of_segment = &collection.lines[first..][..lines as usize];
            let read = |line: u64, word: usize| {
                of_segment.get(line as usize).map_or(0, |of: &LineData| of[word])
            };
            let visit = |logged: Logged| {
                found += 1;
                let kept = newest.entry(logged.home).or_insert(logged);
                if (logged.sequence > kept.sequence) != oldest {
                    *kept = logged;
                }
            };
            let (transactions, read_lines) = log.read_segment(head, read, visit);
            debug_assert!(
                read_lines == lines || self.mutants != graven_machine::design::MutantSet::NONE,
                "segment {segment} has {lines} lines of transactions, and {read_lines} were found"
            );
            collection.transactions += transactions;
            first += lines as usize;
        }
        if found > newest.len() as u64 {
            m.cover(Cover::OlderVersionFound as usize);
        }
        let c = m.count();
        c.gc_words_found += found;
        c.gc_words_migrated += newest.len() as u64;
        for Logged { home, value, .. } in newest.into_values() {
            if collection.homes.last().is_none_or(|&(line, ..)| line != home.line()) {
                collection.homes.push((home.line(), 0, [0; WORDS_PER_LINE]));
            }
            let (_, mask, data) = collection.homes.last_mut().expect("one was just pushed");
            *mask |= home.word_mask();
            data[home.word_in_line()] = value;
        }
    }

    fn send_homes(&mut self, m: &mut Machine) {
        let awaited = !self.mutants.has(Mutant::HomesNotAwaited);
        let window = if awaited { self.config.gc_requests as usize } else { usize::MAX };
        let token = if awaited { About::Home.token() } else { 0 };
        let collection = self.under_way();
        while collection.sent < collection.homes.len() && collection.sent - collection.done < window
        {
            let (line, mask, data) = collection.homes[collection.sent];
            m.note(|| format!("words {mask:#010b} of {line} go home"));
            let write = Write::line(WriteClass::Gc, line, data);
            m.write(Write { mask, token, ..write }, m.bypass_cycles());
            collection.sent += 1;
        }
        if !awaited || collection.homes.is_empty() {
            self.move_head(m);
        }
    }

    pub(super) fn home_durable(&mut self, m: &mut Machine) {
        let collection = self.under_way();
        collection.done += 1;
        if collection.done < collection.homes.len() {
            self.send_homes(m);
        } else {
            self.move_head(m);
        }
    }

    /// All that was collected is at home: it becomes obsolete at once.
    fn move_head(&mut self, m: &mut Machine) {
        self.enter(Stage::MovingHead);
        let limit = self.under_way().limit;
        if self.mutants.has(Mutant::HeadStays) {
            return self.head_durable(m);
        }
        m.note(|| format!("the head moves to transaction {limit}"));
        let token = About::Head.token();
        let write = Write::words(WriteClass::Metadata, self.log.head(), &[limit]);
        m.write(Write { token, ..write }, m.bypass_cycles());
        if self.mutants.has(Mutant::FreedBeforeHead) {
            self.free_segments(m);
        }
    }

    pub(super) fn head_durable(&mut self, m: &mut Machine) {
        self.free_segments(m);
        let collection = self.collection.take().expect("its head was moving");
        self.head = collection.limit;
        m.count().log_records_truncated += collection.transactions;
        m.note(|| "the collection is over".to_owned());
        self.wake(m);
    }

    /// What pointed into the collected segments is at home.
    fn free_segments(&mut self, m: &mut Machine) {
        let (log, segments) = (self.log, &self.segments);
        let emptied = self.mutants.has(Mutant::IndexEmptied);
        if !self.mutants.has(Mutant::IndexStays) {
            let stays = |position| !emptied && !segments.is_collected(log.segment_of(position));
            self.index.retain(stays);
        }
        let collection = self.collection.as_mut().expect("the caller has it");
        let newer = |&(line, mask, _): &(LineAddr, WordMask, LineData)| {
            words_in(mask)
                .map(|w| line.word(w))
                .any(|addr| self.index.search(addr, |_| {}).is_some())
        };
        if self.index.len() > 0 && collection.homes.iter().any(newer) {
            m.cover(Cover::NewerVersionStays as usize);
        }
        let whoever_reads = self.mutants.has(Mutant::ReadsNotAwaited);
        for (segment, _) in collection.segments.drain(..) {
            if self.segments.release(segment, whoever_reads) {
                m.cover(Cover::FreedWhileRead as usize);
            }
        }
    }

    /// There may be room for those who wait for it.
    pub(super) fn wake(&mut self, m: &mut Machine) {
        for (id, thread) in self.threads.iter_mut().enumerate() {
            if std::mem::take(&mut thread.waits) {
                m.release(id as ThreadId);
            }
        }
    }
}
