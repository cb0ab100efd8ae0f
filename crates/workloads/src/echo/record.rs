//! Commit records: what a thread merges into the master, in PM before it does.
//!
//! | word | content |
//! |---|---|
//! | 0 | 0: never used; 1: the merge is under way; 2: it is done |
//! | 1 | commits of the thread so far, this one included |
//! | 2 | timestamp of the one before |
//! | 3 | timestamp of this one |
//! | 4 | puts |
//! | 8 + 2 i | key of put i |
//! | 9 + 2 i | address of its value, or 0 if it deletes |
//!
//! There is one per thread, for its last commit. Echo keeps them all in a list, and versions point at them.

use std::collections::BTreeMap;

use crate::costs;
use crate::structures::versions::{Commit, Version};
use graven_base::memory::{Addr, Image, WORD_BYTES};
use graven_machine::program::{Memory, Ptr};

const STATE: u64 = 0;
const NUMBER: u64 = 1;
const BEGIN: u64 = 2;
const END: u64 = 3;
const PUTS: u64 = 4;
const FIRST: u64 = 8;
const PUT_WORDS: u64 = 2;

const MERGING: u64 = 1;
const DONE: u64 = 2;

/// The handle of a thread's commit record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    at: Addr,
    thread: u32,
}

impl Record {
    /// The record of `thread` at `at`, where PM is zero.
    pub(super) fn new(at: Addr, thread: u32) -> Self {
        Self { at, thread }
    }

    /// Bytes of a record of `puts` puts.
    pub(super) fn bytes(puts: u64) -> u64 {
        (FIRST + PUT_WORDS * puts) * WORD_BYTES
    }

    /// Word `word` of it.
    pub(super) fn word(&self, word: u64) -> Ptr {
        Ptr::known(self.at).word(word)
    }

    fn put(&self, index: u64) -> Ptr {
        self.word(FIRST + PUT_WORDS * index)
    }

    /// Begins the next commit; returns which it is, and the timestamp of the one before.
    pub(super) fn begin<M: Memory>(&self, m: &mut M) -> (Commit, u64) {
        let number = m.load(self.word(NUMBER)) + 1;
        let begin = m.load(self.word(END));
        m.store(self.word(STATE), MERGING);
        m.store(self.word(NUMBER), number);
        m.store(self.word(BEGIN), begin);
        (Commit { thread: self.thread, number }, begin)
    }

    /// Writes put `index`.
    pub(super) fn write<M: Memory>(&self, m: &mut M, index: u64, key: u64, value: Ptr) {
        m.compute(costs::WORD * PUT_WORDS as u32);
        m.store(self.put(index), key);
        m.store_ptr(self.put(index).word(1), value);
    }

    /// The record has all its puts.
    pub(super) fn complete<M: Memory>(&self, m: &mut M, puts: u64) {
        m.store(self.word(PUTS), puts);
    }

    /// The value of put `index`.
    pub(super) fn value<M: Memory>(&self, m: &mut M, index: u64) -> Ptr {
        m.load_ptr(self.put(index).word(1))
    }

    /// All puts are in the master.
    pub(super) fn end<M: Memory>(&self, m: &mut M, timestamp: u64) {
        m.store(self.word(END), timestamp);
        m.store(self.word(STATE), DONE);
    }
}

/// The last commit of one thread, as its record has it.
struct Last {
    number: u64,
    end: u64,
    /// The value of each key that it put and that was not yet met in the master.
    values: BTreeMap<u64, Addr>,
}

/// The last commits of all threads, to be compared with the versions in the master.
pub(super) struct LastCommits {
    threads: Vec<Last>,
    /// Oldest timestamp that is left of each key.
    oldest: BTreeMap<u64, u64>,
}

impl LastCommits {
    /// Reads records of up to `puts_max` puts.
    ///
    /// # Errors
    /// A record that no commit leaves.
    pub(super) fn load(
        image: &Image,
        records: &[Record],
        puts_max: u32,
    ) -> Result<LastCommits, String> {
        let threads = records.iter().map(|record| {
            let word = |word| image.load(record.word(word).addr);
            let [state, number, begin, end, puts] = [STATE, NUMBER, BEGIN, END, PUTS].map(word);
            let what = |what: String| format!("commit record of thread {}: {what}", record.thread);
            let never = (state, number, begin, end, puts) == (0, 0, 0, 0, 0);
            if !never && (state != DONE || begin >= end || puts == 0 || puts > puts_max.into()) {
                return Err(what(format!(
                    "state {state}, from {begin} to {end}, {puts} puts of {puts_max} at most"
                )));
            }
            let words = (0..puts).map(|i| record.put(i));
            let values: BTreeMap<u64, Addr> =
                words.map(|at| (image.load(at.addr), Addr(image.load(at.word(1).addr)))).collect();
            if values.len() as u64 != puts {
                return Err(what(format!("{puts} puts, but {} keys", values.len())));
            }
            Ok(Last { number, end, values })
        });
        Ok(LastCommits { threads: threads.collect::<Result<_, _>>()?, oldest: BTreeMap::new() })
    }

    /// A version is in the master.
    ///
    /// # Errors
    /// It is from no commit that there was, or not what its commit's record says.
    pub(super) fn meet(&mut self, key: u64, version: Version) -> Result<(), String> {
        let Commit { thread, number } = version.commit;
        let oldest = self.oldest.entry(key).or_insert(version.timestamp);
        *oldest = version.timestamp.min(*oldest);
        let last = self.threads.get_mut(thread as usize);
        let last = last.ok_or_else(|| format!("there is no thread {thread}"))?;
        let (is_last, is_later) = (number == last.number, number > last.number);
        let fits =
            if is_last { version.timestamp == last.end } else { version.timestamp < last.end };
        if number == 0 || is_later || !fits {
            return Err(format!(
                "{:?} of timestamp {}, but the last is number {} of timestamp {}",
                version.commit, version.timestamp, last.number, last.end
            ));
        }
        let recorded = is_last.then(|| last.values.remove(&key));
        match recorded {
            Some(found) if found != Some(version.value.addr) => {
                Err(format!("value {}, but {:?} has {found:?}", version.value.addr, version.commit))
            }
            _ => Ok(()),
        }
    }

    /// All versions have been met: what was not has been overwritten by younger ones.
    ///
    /// # Errors
    /// A put that is not in the master and was not overwritten.
    pub(super) fn finish(&self) -> Result<(), String> {
        for (thread, last) in self.threads.iter().enumerate() {
            let missing = |&&key: &&u64| self.oldest.get(&key).is_none_or(|&t| t <= last.end);
            if let Some(key) = last.values.keys().find(missing) {
                return Err(format!(
                    "the last commit of thread {thread} put key {key}, but there is no such version"
                ));
            }
        }
        Ok(())
    }
}
