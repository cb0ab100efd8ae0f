//! Garbage collection: the newest committed words of the log go home, then the head moves, then there is room.

use std::collections::BTreeMap;

use super::super::event::Event;
use super::super::log::{Logged, Sequence};
use super::{Lsm, Port, Read, Write};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LineAddr, LineData, WORDS_PER_LINE, WordMask, words_in};
use graven_machine::request::{self, WriteClass};

/// A collection under way.
#[derive(Clone, Debug)]
pub(super) struct Collection {
    stage: Stage,
    /// Number below which transactions are collected.
    limit: Sequence,
    /// Newest first, each with the lines that it uses.
    segments: Vec<(usize, u64)>,
    /// Content of their lines, as far as it was read.
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

impl Collection {
    /// A word is to be written home; words come in the order of their addresses.
    fn add_home(&mut self, home: Addr, value: u64) {
        if self.homes.last().is_none_or(|&(line, ..)| line != home.line()) {
            self.homes.push((home.line(), 0, [0; WORDS_PER_LINE]));
        }
        let (_, mask, data) = self.homes.last_mut().expect("one was just pushed");
        *mask |= home.word_mask();
        data[home.word_in_line()] = value;
    }
}

impl Lsm {
    /// Begins a collection, unless one is under way or there is nothing to collect.
    pub(super) fn collect(&mut self, port: &mut Port<'_>, on_demand: bool) {
        if self.collection.is_some() {
            return;
        }
        if self.rules.open_segments_are_collected() {
            self.close_open_segments(port);
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
        let limit = self.next_sequence;
        let waits = self.is_appending_before(limit);
        port.emit(Event::CollectionBegins { segments: segments.len(), limit, on_demand, waits });
        self.collection = Some(Collection {
            stage: Stage::Waiting,
            limit,
            lines: vec![[0; WORDS_PER_LINE]; to_read.len()],
            segments,
            to_read,
            homes: Vec::new(),
            sent: 0,
            done: 0,
            transactions: 0,
        });
        self.appended(port);
    }

    /// Threads open new segments for what comes after.
    fn close_open_segments(&mut self, port: &mut Port<'_>) {
        for thread in &mut self.threads {
            if let Some(segment) = thread.open.take() {
                self.segments.close(segment);
                port.emit(Event::OpenSegmentClosed);
            }
        }
    }

    /// A transaction has come into the log, or a collection has begun.
    pub(super) fn appended(&mut self, port: &mut Port<'_>) {
        let Some(collection) = &self.collection else { return };
        let awaited = self.rules.appends_are_awaited();
        let waits = awaited && self.is_appending_before(collection.limit);
        if collection.stage == Stage::Waiting && !waits {
            self.enter(Stage::Reading);
            self.send_reads(port);
        }
    }

    /// The collection whose request has been answered.
    fn under_way(&mut self) -> &mut Collection {
        self.collection.as_mut().expect("its requests are those of a collection under way")
    }

    /// None of the requests of a stage has been sent when it begins.
    fn enter(&mut self, stage: Stage) {
        let collection = self.under_way();
        (collection.stage, collection.sent, collection.done) = (stage, 0, 0);
    }

    /// Reads lines of the segments, as many at a time as may be on their way.
    fn send_reads(&mut self, port: &mut Port<'_>) {
        let window = self.config.gc_requests as usize;
        let collection = self.under_way();
        while collection.sent < collection.to_read.len()
            && collection.sent - collection.done < window
        {
            // All but the first follow an answer, of which the collecting core has to hear.
            let messages = if collection.done == 0 { 1 } else { 2 };
            let (number, delay) = (collection.sent, messages * port.bypass_cycles());
            port.read(collection.to_read[number], Read::Collected(number), delay);
            collection.sent += 1;
        }
    }

    /// A line of the log has been read.
    pub(super) fn collected(&mut self, port: &mut Port<'_>, number: usize, content: &LineData) {
        let collection = self.under_way();
        collection.lines[number] = *content;
        collection.done += 1;
        if collection.done < collection.to_read.len() {
            return self.send_reads(port);
        }
        self.choose_newest(port);
        self.enter(Stage::Writing);
        self.send_homes(port);
    }

    /// Chooses what goes home: the newest version of each word, by home line.
    fn choose_newest(&mut self, port: &mut Port<'_>) {
        let newest = self.newest_versions(port);
        let collection = self.under_way();
        for Logged { home, value, .. } in newest.into_values() {
            collection.add_home(home, value);
        }
    }

    /// Finds the newest version of each word that was read.
    fn newest_versions(&mut self, port: &mut Port<'_>) -> BTreeMap<Addr, Logged> {
        let (log, head) = (self.log, self.head);
        let oldest = !self.rules.newest_is_migrated();
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
            assert!(
                read_lines == lines || !self.rules.all_hold(),
                "segment {segment} has {lines} lines of transactions, and {read_lines} were found"
            );
            collection.transactions += transactions;
            first += lines as usize;
        }
        port.emit(Event::NewestChosen { versions: found, words: newest.len() as u64 });
        newest
    }

    /// Writes the newest words home, as many lines at a time as may be on their way. The collecting
    /// core does so when it hears of what was read, or is durable.
    fn send_homes(&mut self, port: &mut Port<'_>) {
        let awaited = self.rules.homes_are_awaited();
        let window = if awaited { self.config.gc_requests as usize } else { usize::MAX };
        let about = awaited.then_some(Write::Home);
        let collection = self.under_way();
        while collection.sent < collection.homes.len() && collection.sent - collection.done < window
        {
            let (line, mask, data) = collection.homes[collection.sent];
            port.emit(Event::WordsGoHome { line, mask });
            let write = request::Write::line(WriteClass::Gc, line, data).masked(mask);
            port.write_maybe_reported(write, about, 2 * port.bypass_cycles());
            collection.sent += 1;
        }
        if !awaited || collection.homes.is_empty() {
            self.move_head(port);
        }
    }

    /// A line is home; with the last the head moves.
    pub(super) fn home_durable(&mut self, port: &mut Port<'_>) {
        let collection = self.under_way();
        collection.done += 1;
        if collection.done < collection.homes.len() {
            self.send_homes(port);
        } else {
            self.move_head(port);
        }
    }

    /// All that was collected is at home: it becomes obsolete at once.
    fn move_head(&mut self, port: &mut Port<'_>) {
        self.enter(Stage::MovingHead);
        let limit = self.under_way().limit;
        if !self.rules.head_moves() {
            return self.head_durable(port);
        }
        port.emit(Event::HeadMoves { to: limit });
        let write = request::Write::words(WriteClass::Metadata, self.log.head(), &[limit]);
        port.write_reported(write, Write::Head, 2 * port.bypass_cycles());
        if !self.rules.freed_after_head() {
            self.free_segments(port);
        }
    }

    /// The collected segments can be used again.
    pub(super) fn head_durable(&mut self, port: &mut Port<'_>) {
        self.free_segments(port);
        let collection = self.collection.take().expect("its head was moving");
        self.head = collection.limit;
        port.emit(Event::CollectionOver { transactions: collection.transactions });
        self.wake(port);
    }

    /// Frees the collected segments: all that pointed into them is at home.
    fn free_segments(&mut self, port: &mut Port<'_>) {
        let (log, segments) = (self.log, &self.segments);
        let emptied = !self.rules.newer_versions_stay_indexed();
        if self.rules.index_is_updated() {
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
            port.emit(Event::NewerVersionStays);
        }
        let whoever_reads = !self.rules.reads_are_awaited();
        for (segment, _) in collection.segments.drain(..) {
            if self.segments.release(segment, whoever_reads) {
                port.emit(Event::FreedWhileRead);
            }
        }
    }

    /// There may be room for those who wait for it.
    pub(super) fn wake(&mut self, port: &mut Port<'_>) {
        for (id, thread) in self.threads.iter_mut().enumerate() {
            if std::mem::take(&mut thread.waits) {
                port.release(id as ThreadId);
            }
        }
    }
}
