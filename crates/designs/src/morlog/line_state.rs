//! The extension of the L1 caches (§III-B, Fig. 7, Fig. 8): per line the thread and the transaction that
//! updated it, per word its log state and, for SLDE, its dirty flag.

use graven_base::config::Config;
use graven_base::ids::ThreadId;
use graven_base::memory::{LINE_BYTES, LineAddr, WORDS_PER_LINE};
use graven_machine::config::L1Config;

use crate::packed_log::Record;

/// State of a word (Fig. 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not updated by a transaction.
    #[default]
    Clean,
    /// Updated by a transaction; the undo+redo entry is not durable.
    Dirty,
    /// The undo+redo entry is durable.
    URLog,
    /// The oldest undo data is durable, the newest redo data is in the L1 only.
    ULog,
}

/// A transaction as hardware knows it: thread id and the low bits of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub thread: ThreadId,
    pub id: u16,
}

impl Owner {
    /// A record of the transaction, to be filled in.
    pub fn record(self) -> Record {
        Record { thread: self.thread, tx: self.id, ..Record::BLANK }
    }
}

/// A line's extension.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub line: LineAddr,
    pub owner: Owner,
    pub states: [State; WORDS_PER_LINE],
    /// Bytes changed since the undo+redo entry of the word, in states `ULog`.
    pub dirty: [u8; WORDS_PER_LINE],
}

impl Line {
    fn new(line: LineAddr, owner: Owner) -> Line {
        Line { line, owner, states: Default::default(), dirty: [0; WORDS_PER_LINE] }
    }

    /// Words in state `ULog`.
    pub fn ulog_words(&self) -> impl Iterator<Item = usize> {
        let states = self.states;
        (0..WORDS_PER_LINE).filter(move |&word| states[word] == State::ULog)
    }
}

/// The extensions of all L1s. A line has one from its first transactional store until it leaves its L1.
#[derive(Debug)]
pub struct LineStates {
    set_mask: u64,
    sets: usize,
    ways: usize,
    lines: Vec<Option<Line>>,
}

impl LineStates {
    /// Makes the states of the L1s of `cores` cores.
    pub fn new(config: &Config, cores: u32) -> Self {
        let l1 = config.get::<L1Config>();
        let ways = l1.ways as usize;
        let sets = (l1.bytes.0 / LINE_BYTES) as usize / ways;
        let lines = vec![None; cores as usize * sets * ways];
        Self { set_mask: sets as u64 - 1, sets, ways, lines }
    }

    /// Sets of one L1.
    pub fn sets(&self) -> usize {
        self.sets
    }

    fn set(&mut self, core: u32, line: LineAddr) -> &mut [Option<Line>] {
        let set = (line.0 & self.set_mask) as usize;
        let first = (core as usize * self.sets + set) * self.ways;
        &mut self.lines[first..first + self.ways]
    }

    /// A line's extension, if it has one.
    #[inline]
    pub fn get(&mut self, core: u32, line: LineAddr) -> Option<&mut Line> {
        self.set(core, line).iter_mut().flatten().find(|l| l.line == line)
    }

    /// A line that has none gets one. Every line of the L1 has room for its own.
    pub fn add(&mut self, core: u32, line: LineAddr, owner: Owner) -> &mut Line {
        let free = self.set(core, line).iter_mut().find(|l| l.is_none());
        let free = free.expect("a line that leaves the L1 takes its extension along");
        free.insert(Line::new(line, owner))
    }

    /// Takes a line's extension out.
    pub fn remove(&mut self, core: u32, line: LineAddr) -> Option<Line> {
        self.set(core, line).iter_mut().find(|l| l.is_some_and(|l| l.line == line))?.take()
    }

    /// Lines of a core that a thread owns.
    pub fn owned_by(&self, core: u32, thread: ThreadId) -> Vec<LineAddr> {
        let first = core as usize * self.sets * self.ways;
        let of_core = self.lines[first..first + self.sets * self.ways].iter().flatten();
        of_core.filter(|l| l.owner.thread == thread).map(|l| l.line).collect()
    }
}
