//! The judge of one given order of events.
//!
//! A [`History`] is told of events in the order of visibility, and knows at every instant the versions that each line may hold
//! ([`crate::ranges`]) and the bytes of each version. An event takes constant time on average; versions that can no longer be
//! left are forgotten, so that memory is in proportion to the lines stored to, and to stores that are not durable yet.
//!
//! Most stores of a line are durable after all stores before them. The stores of one instruction have no order among themselves, nor
//! have stores of an Arm thread to one line with no barrier between them; stores to one word keep theirs. Each store knows the
//! number of the line's stores that it comes after, and a power failure leaves any set of stores that has, with each, those.
//!
//! Threads that are not synchronised might have acted in another order than the given one. A history says nothing about those
//! orders; whoever explores them gives each to a history of its own.

use std::collections::VecDeque;

use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LINE_BYTES, LineAddr, WORDS_PER_LINE};
use rustc_hash::FxHashMap;

use crate::happening::{Fence, Happening, Path, Persist, Seq};
use crate::model::Model;
use crate::promise::{Broken, Judge, Promise, Words};
use crate::ranges::{Given, Range, Ranges};

/// A store to a word of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The event.
    pub at: Seq,
    /// Number among the stores to the line, from 1: the first version of the line that has it.
    pub number: u32,
    /// The line's stores without which it cannot be left: those up to this number.
    pub after: u32,
    /// Index of the word in its line.
    pub word: u8,
    /// The word afterwards.
    pub value: u64,
}

/// A line that a power failure may leave in several versions.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    /// The line.
    pub line: LineAddr,
    /// Versions.
    pub range: Range,
    /// The stores after the oldest version, in order. A set of them may be left if it has, with each store, those up to its
    /// `after` and the earlier ones to its word.
    pub stores: &'a VecDeque<Written>,
}

/// The events that made a word's durable content so.
#[derive(Clone, Copy, Debug)]
struct Settled {
    store: Seq,
    fence: Seq,
}

/// The newest stores to a line, as long as they have no order among themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    thread: ThreadId,
    instruction: u64,
    barriers: u64,
    /// Stores before the run.
    after: u32,
}

/// The contents of a line.
#[derive(Clone, Debug)]
struct Line {
    line: LineAddr,
    /// The words of the oldest version that may be left.
    oldest: [u64; WORDS_PER_LINE],
    settled: [Option<Settled>; WORDS_PER_LINE],
    /// Words that were stored to. Nothing is known of others.
    stored: u8,
    /// Stores of later versions.
    later: VecDeque<Written>,
    run: Option<Run>,
    /// The place in the list of open lines.
    open_at: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    instruction: u64,
    barriers: u64,
    /// The last `mfence`.
    full_fence: Option<Seq>,
}

/// The judge of one given order of events under a persistency model.
#[derive(Clone, Debug)]
pub struct History {
    ranges: Ranges,
    /// Stores of one thread to a line need a barrier to be in order.
    is_weak: bool,
    numbers: FxHashMap<LineAddr, u32>,
    lines: Vec<Line>,
    open: Vec<u32>,
    threads: Vec<Thread>,
    settled: u64,
}

impl History {
    /// A judge of events as a trace has them, each thread's in program order.
    pub fn new(model: &Model) -> History {
        History {
            ranges: Ranges::new(model, Given::Program),
            is_weak: model.is_arm(),
            numbers: FxHashMap::default(),
            lines: Vec::new(),
            open: Vec::new(),
            threads: Vec::new(),
            settled: 0,
        }
    }

    /// Number of stores that have become durable so far. While it stays the same, a power failure may leave whatever it might
    /// have left before.
    pub fn settled(&self) -> u64 {
        self.settled
    }

    /// The versions of a line that a power failure may leave now.
    pub fn range(&self, line: LineAddr) -> Range {
        self.numbers.get(&line).map_or(Range::default(), |&number| self.ranges.line(number))
    }

    /// The lines of which a power failure may leave several versions now. Each may be left in any of its versions, whatever is left
    /// of the others; all other lines hold what is visible.
    pub fn open(&self) -> impl ExactSizeIterator<Item = Open<'_>> {
        self.open.iter().map(|&number| {
            let line = &self.lines[number as usize];
            Open { line: line.line, range: self.ranges.line(number), stores: &line.later }
        })
    }

    /// The word of the oldest version that may be left, if it was ever stored to.
    pub fn oldest(&self, addr: Addr) -> Option<u64> {
        let line = &self.lines[*self.numbers.get(&addr.line())? as usize];
        (line.stored & addr.word_mask() != 0).then(|| line.oldest[addr.word_in_line()])
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let needed = thread as usize + 1;
        if self.threads.len() < needed {
            self.threads.resize(needed, Thread::default());
        }
        &mut self.threads[thread as usize]
    }

    fn number(&mut self, line: LineAddr) -> u32 {
        let next = self.lines.len() as u32;
        let number = *self.numbers.entry(line).or_insert(next);
        if number == next {
            self.lines.push(Line {
                line,
                oldest: [0; WORDS_PER_LINE],
                settled: [None; WORDS_PER_LINE],
                stored: 0,
                later: VecDeque::new(),
                run: None,
                open_at: None,
            });
        }
        number
    }

    fn store(&mut self, at: Seq, thread: ThreadId, stored: &Stored) {
        let is_weak = self.is_weak;
        let state = self.thread(thread);
        state.instruction += u64::from(!stored.continues);
        let Thread { instruction, barriers, .. } = *state;
        let number = self.number(stored.addr.line());
        let before = self.ranges.line(number).at_most;
        let line = &mut self.lines[number as usize];
        let goes_on = |run: &Run| {
            let in_any_order = run.instruction == instruction || is_weak;
            run.thread == thread && run.barriers == barriers && in_any_order
        };
        let run = line.run.filter(goes_on).unwrap_or(Run {
            thread,
            instruction,
            barriers,
            after: before,
        });
        line.run = Some(Run { instruction, ..run });
        let after = if stored.path == Path::Release { before } else { run.after };
        let word = stored.addr.word_in_line();
        if line.stored & stored.addr.word_mask() == 0 {
            line.stored |= stored.addr.word_mask();
            line.oldest[word] = stored.old;
        }
        let value = stored.new;
        line.later.push_back(Written { at, number: before + 1, after, word: word as u8, value });
        self.ranges.store(thread, number, stored.path);
        self.settle(number, at);
    }

    /// Forgets the versions of a line that can no longer be left.
    fn settle(&mut self, number: u32, fence: Seq) {
        let range = self.ranges.line(number);
        let line = &mut self.lines[number as usize];
        while let Some(first) = line.later.front().filter(|first| first.number <= range.at_least) {
            let word = usize::from(first.word);
            line.oldest[word] = first.value;
            line.settled[word] = Some(Settled { store: first.at, fence });
            line.later.pop_front();
            self.settled += 1;
        }
        match (line.open_at, range.is_open()) {
            (None, true) => {
                line.open_at = Some(self.open.len());
                self.open.push(number);
            }
            (Some(place), false) => {
                line.open_at = None;
                self.open.swap_remove(place);
                if let Some(&moved) = self.open.get(place) {
                    self.lines[moved as usize].open_at = Some(place);
                }
            }
            _ => {}
        }
    }

    /// The newest version of a line whose stores all came before an event.
    fn version_before(&self, number: u32, event: Seq) -> u32 {
        let range = self.ranges.line(number);
        let later = self.lines[number as usize].later.iter();
        later
            .take_while(|store| store.at < event)
            .map(|store| store.number)
            .last()
            .unwrap_or(range.at_least)
    }

    fn persist(&mut self, at: Seq, thread: ThreadId, op: Persist) {
        let mut raised = Vec::new();
        match op {
            Persist::WriteBack(line) => {
                let number = self.number(line);
                self.ranges.write_back(thread, number);
            }
            Persist::Flush(line) => {
                let number = self.number(line);
                let full_fence = self.thread(thread).full_fence;
                let version = match full_fence {
                    _ if !self.ranges.clflush_needs_full_fences() => {
                        self.ranges.line(number).at_most
                    }
                    Some(fence) => self.version_before(number, fence),
                    None => self.ranges.line(number).at_least,
                };
                self.ranges.before_store(thread, &mut |line| raised.push(line));
                self.ranges.flush(thread, number, version);
            }
            Persist::Clean(line, point) => {
                let number = self.number(line);
                // Later stores are after the clean, and so after the stores before it.
                self.lines[number as usize].run = None;
                self.ranges.clean(thread, number, point);
            }
            Persist::Fence(fence) => {
                let state = self.thread(thread);
                state.barriers += u64::from(fence != Fence::DmbLoad);
                if fence == Fence::Full {
                    state.full_fence = Some(at);
                }
                self.ranges.fence(thread, fence, &mut |line| raised.push(line));
            }
        }
        raised.iter().for_each(|&line| self.settle(line, at));
    }

    fn told(&mut self, at: Seq, thread: ThreadId) {
        let mut raised = Vec::new();
        if self.ranges.told_drains() {
            self.thread(thread).full_fence = Some(at);
        }
        self.ranges.told(thread, &mut |line| raised.push(line));
        raised.iter().for_each(|&line| self.settle(line, at));
    }

    /// A store through the caches begins.
    fn before_store(&mut self, at: Seq, thread: ThreadId) {
        let mut raised = Vec::new();
        self.ranges.before_store(thread, &mut |line| raised.push(line));
        raised.iter().for_each(|&line| self.settle(line, at));
    }

    fn load(&mut self, at: Seq, thread: ThreadId, line: LineAddr) {
        let Some(&number) = self.numbers.get(&line) else { return };
        let mut is_raised = false;
        self.ranges.seen(thread, number, &mut |_| is_raised = true);
        if is_raised {
            self.settle(number, at);
        }
    }

    fn synced(&mut self, at: Seq, start: u64, end: u64, before: Seq) {
        let is_in = |line: LineAddr| line.addr().0 + LINE_BYTES > start && line.addr().0 < end;
        let all = self.open.iter().copied();
        let covered: Vec<u32> =
            all.filter(|&number| is_in(self.lines[number as usize].line)).collect();
        for number in covered {
            let version = self.version_before(number, before);
            self.ranges.synced(number, version);
            self.settle(number, at);
        }
    }

    fn judge_line(&self, number: usize, found: &dyn Words) -> Result<(), Broken> {
        let line = &self.lines[number];
        let words: [u64; WORDS_PER_LINE] =
            std::array::from_fn(|word| found.word(line.line.word(word)));
        if line.may_hold(&words, self.ranges.line(number as u32)) {
            return Ok(());
        }
        Err(line.broken(&words, self.ranges.line(number as u32)))
    }
}

/// A store, without its thread.
struct Stored {
    addr: Addr,
    old: u64,
    new: u64,
    path: Path,
    continues: bool,
}

impl Line {
    fn stored_words(&self) -> impl Iterator<Item = usize> + '_ {
        (0..WORDS_PER_LINE).filter(|word| self.stored >> word & 1 != 0)
    }

    /// Tells if a power failure may leave these words.
    ///
    /// Up to some number all stores are left, and of later ones those that come after no more than these.
    fn may_hold(&self, words: &[u64; WORDS_PER_LINE], range: Range) -> bool {
        let holds = |word: usize, whole: u32| {
            let mut value = self.oldest[word];
            let mut stores =
                self.later.iter().filter(|store| usize::from(store.word) == word).peekable();
            while let Some(store) = stores.next_if(|store| store.number <= whole) {
                value = store.value;
            }
            let more = stores.take_while(|store| store.after <= whole).map(|store| store.value);
            std::iter::once(value).chain(more).any(|value| value == words[word])
        };
        (range.at_least..=range.at_most)
            .any(|whole| self.stored_words().all(|word| holds(word, whole)))
    }

    /// The contradiction between these words and the versions.
    fn broken(&self, words: &[u64; WORDS_PER_LINE], range: Range) -> Broken {
        let values = |word: usize| {
            let later = self.later.iter().filter(move |store| usize::from(store.word) == word);
            std::iter::once(self.oldest[word]).chain(later.map(|store| store.value))
        };
        let wrong =
            self.stored_words().find(|&word| values(word).all(|value| value != words[word]));
        let Some(word) = wrong else {
            let (line, Range { at_least, at_most }) = (self.line.addr(), range);
            let what = format!(
                "the line at {line} holds words of different versions; it may hold one from {at_least} to {at_most}"
            );
            return Broken { what, addr: Some(line), edge: None };
        };
        let addr = self.line.word(word);
        let edge = self.settled[word].map(|settled| (settled.store, settled.fence));
        let since = match edge {
            Some((store, fence)) => {
                format!(
                    "; event {store} stored {:#x}, durable since event {fence}",
                    self.oldest[word]
                )
            }
            None => String::new(),
        };
        let what =
            format!("the word at {addr} holds {:#x}, which it cannot hold now{since}", words[word]);
        Broken { what, addr: Some(addr), edge }
    }
}

impl Judge for History {
    fn saw(&mut self, at: Seq, happening: &Happening) {
        match *happening {
            Happening::Store { thread, addr, old, new, path, continues } => {
                if !continues && path != Path::NonTemporal {
                    self.before_store(at, thread);
                }
                self.store(at, thread, &Stored { addr, old, new, path, continues });
            }
            Happening::Load { thread, addr } => self.load(at, thread, addr.line()),
            Happening::Persist { thread, op } => self.persist(at, thread, op),
            Happening::Told { thread } => self.told(at, thread),
            Happening::Synced { start, end, before } => self.synced(at, start, end, before),
        }
    }

    fn judge(&self, found: &dyn Words) -> Result<(), Broken> {
        (0..self.lines.len()).try_for_each(|number| self.judge_line(number, found))
    }
}

impl Promise for Model {
    fn name(&self) -> &'static str {
        self.name
    }

    fn judge(&self) -> Box<dyn Judge> {
        Box::new(History::new(self))
    }
}

#[cfg(test)]
mod tests;
