//! The states worth reaching that a campaign has reached. One that never got there says so, and claims nothing
//! about them.

use std::collections::BTreeMap;

use graven_base::ids::Tx;
use graven_base::memory::{Addr, LineAddr};
use graven_machine::design::Named;
use graven_machine::trace_event::TraceEvent;

macro_rules! states {
    ($($variant:ident = $name:literal, $summary:literal;)+) => {
        /// A state of any design worth reaching.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum State {
            $(#[doc = $summary] $variant,)+
        }

        /// All of them.
        pub const STATES: &[Named] = &[$(Named { name: $name, summary: $summary },)+];
    };
}

states! {
    CrashEnding = "crash-while-ending", "power failed between a transaction's end and its acknowledgement";
    CrashOpen = "crash-while-open", "power failed while a transaction had stored words";
    Stolen = "steal", "a line with words of an open transaction became durable";
    StoredAgain = "store-after-steal", "a word was stored again after its line had become durable";
    SharedLine = "shared-line", "two open transactions had stored to one line";
    HandedOver = "hand-over", "a thread stored to a word that another thread had stored before";
    BackToBack = "back-to-back", "a transaction began while work for finished ones was under way";
    Silent = "silent-store", "a store did not change its word";
    ReturnedValue = "returned-value", "a word took a value back that it had held before (ABA)";
    Large = "large-transaction", "a transaction stored to more than 64 words";
    IdWrap = "id-wrap", "the low 16 bits of a transaction's number wrapped around";
    Redone = "redone", "recovery redid words";
    Undone = "undone", "recovery undid words";
    Torn = "torn", "a write was half there";
    InFlight = "in-flight", "a write was there that had not been accepted";
    RecoveryCut = "recovery-cut", "power failed during recovery";
    NextLife = "next-life", "the machine was used again after a recovery";
}

/// Adds counts to others, place by place; there may be fewer of the others so far.
pub fn add_counts(sums: &mut Vec<u64>, counts: &[u64]) {
    sums.resize(sums.len().max(counts.len()), 0);
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// The history of a word.
#[derive(Clone, Debug)]
struct Word {
    /// Who stored it last.
    thread: u32,
    /// The open transaction that stored it, if any.
    open: Option<Tx>,
    /// The word's line became durable since.
    stolen: bool,
    /// The values before the last two changes.
    before: [u64; 2],
}

/// Counts states as they are reached.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    counts: [u64; STATES.len()],
    words: BTreeMap<Addr, Word>,
    /// Per thread, words of its open transaction.
    open: BTreeMap<u32, Vec<Addr>>,
}

impl Coverage {
    /// One more time.
    pub fn count(&mut self, state: State) {
        self.counts[state as usize] += 1;
    }

    /// Adds how often another has reached each.
    pub fn add(&mut self, other: &Coverage) {
        self.counts.iter_mut().zip(other.counts).for_each(|(sum, n)| *sum += n);
    }

    /// The frequency of each state, in the order of [`STATES`].
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// States were reached as often as these counts say, after all.
    pub fn take_back(&mut self, counts: &[u64]) {
        self.counts.copy_from_slice(counts);
    }

    /// Tells whether a transaction has stored anything and is not acknowledged.
    pub fn is_any_open(&self) -> bool {
        self.open.values().any(|words| !words.is_empty())
    }

    /// Learns what happened.
    pub fn follow(&mut self, event: &TraceEvent) {
        match *event {
            TraceEvent::Begin { tx, busy } => {
                if busy {
                    self.count(State::BackToBack);
                }
                if tx.number != 0 && tx.number as u16 == 0 {
                    self.count(State::IdWrap);
                }
                self.open.insert(tx.thread, Vec::new());
            }
            TraceEvent::Store { tx, addr, old, new } => self.store(tx, addr, old, new),
            TraceEvent::Acknowledged(tx) => {
                for addr in self.open.remove(&tx.thread).unwrap_or_default() {
                    if let Some(word) = self.words.get_mut(&addr) {
                        word.open = None;
                    }
                }
            }
            TraceEvent::Durable { line, mask, .. } => self.durable(line, mask),
            TraceEvent::StoreOutside { .. }
            | TraceEvent::Executed { .. }
            | TraceEvent::Snapshot
            | TraceEvent::Ending(_)
            | TraceEvent::Evicted(_)
            | TraceEvent::Note(_) => {}
        }
    }

    fn store(&mut self, tx: Tx, addr: Addr, old: u64, new: u64) {
        if old == new {
            self.count(State::Silent);
        }
        let line = addr.line();
        let of_line = self.words.range(line.addr()..line.addr().plus(64));
        if of_line.filter_map(|(_, word)| word.open).any(|open| open.thread != tx.thread) {
            self.count(State::SharedLine);
        }
        let known = self.words.get(&addr).cloned();
        if let Some(word) = &known {
            if word.thread != tx.thread {
                self.count(State::HandedOver);
            }
            if word.open == Some(tx) && word.stolen {
                self.count(State::StoredAgain);
            }
            if old != new && word.before.contains(&new) {
                self.count(State::ReturnedValue);
            }
        }
        let before = known.as_ref().map_or([old; 2], |word| [word.before[1], old]);
        if known.is_none_or(|word| word.open != Some(tx)) {
            let words = self.open.entry(tx.thread).or_default();
            words.push(addr);
            if words.len() == 65 {
                self.count(State::Large);
            }
        }
        let word = Word { thread: tx.thread, open: Some(tx), stolen: false, before };
        self.words.insert(addr, word);
    }

    fn durable(&mut self, line: LineAddr, mask: u8) {
        let mut stolen = false;
        for (addr, word) in self.words.range_mut(line.addr()..line.addr().plus(64)) {
            if mask >> addr.word_in_line() & 1 != 0 && word.open.is_some() {
                word.stolen = true;
                stolen = true;
            }
        }
        if stolen {
            self.count(State::Stolen);
        }
    }
}
