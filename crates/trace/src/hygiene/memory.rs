//! Words of persistent memory: which store each holds, and how far that store is from being durable.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

/// Bytes of a line.
pub(super) const LINE_BYTES: u64 = 64;
/// Bytes of a page.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Most stores of a line that are remembered though others have overwritten them.
const OVERWRITTEN_MAX: usize = 64;
/// Lines of a page.
const LINES: usize = (PAGE_BYTES / LINE_BYTES) as usize;

/// An instruction that did something: its site, the calls that led to it, its thread, and its place in the history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doer {
    pub site: u32,
    pub stack: u32,
    pub thread: u32,
    /// Number of the entry in the history, from 1; 0: none.
    pub number: u64,
}

/// A word.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Word {
    /// The value, and the one that is durable.
    pub value: u64,
    pub durable: u64,
    /// The last store.
    pub store: Doer,
    /// Bytes that its thread has changed, since another's store or since all were durable: a bit each.
    pub changed: u8,
}

impl Word {
    /// Bytes that are not as they are durable.
    pub fn undurable(&self) -> u8 {
        different(self.value, self.durable)
    }
}

/// Bytes in which two words differ: a bit each.
pub(super) fn different(a: u64, b: u64) -> u8 {
    let bytes = a.to_le_bytes().into_iter().zip(b.to_le_bytes()).enumerate();
    bytes.filter(|(_, (a, b))| a != b).fold(0, |mask, (at, _)| mask | 1 << at)
}

/// A line of eight words. Of each mask, a bit is a word.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    pub words: [Word; 8],
    /// Stored, and not written back.
    pub dirty: u8,
    /// Written back; the flushing thread has executed no fence since.
    pub flushed: u8,
    /// Stored non-temporally, without a fence since.
    pub non_temporal: u8,
    /// Stored behind a flush of the line, by the flushing thread, before its fence.
    pub late: u8,
    /// Covered by an msync with MS_ASYNC.
    pub is_async: u8,
    /// Accessed by atomic instructions.
    pub atomic: u8,
    /// Locks among them: what an atomic instruction has changed has become again what it was.
    pub locks: u8,
    /// Atomic words that an ordinary store has given a value that is new.
    data: u8,
    /// Words as they were before an atomic instruction has changed them last, and the bytes that it has changed.
    taken: Vec<(u8, u64, u8)>,
    /// The last flush, and how many fences its thread had executed.
    pub flush: Doer,
    pub epoch: u64,
    /// Some flush has covered the line.
    pub was_flushed: bool,
    /// Stores to dirty words that the word's last one has overwritten, by their words; no two of a word have one site.
    pub overwritten: Vec<(u8, Doer)>,
}

impl Line {
    /// Words that are not durable.
    pub fn undurable(&self) -> u8 {
        self.dirty | self.flushed | self.non_temporal
    }

    /// The dirty words are written back.
    pub fn is_flushed(&mut self) {
        self.flushed |= self.dirty;
        (self.dirty, self.late, self.was_flushed) = (0, 0, true);
        self.overwritten.clear();
    }

    /// A word is about to be stored to. Of the store that was last, nothing else is left where it is dirty.
    pub fn overwrites(&mut self, word: usize, by: Doer) {
        let last = self.words[word].store;
        let is_dirty = self.dirty >> word & 1 != 0;
        let is_known = |&(at, of): &(u8, Doer)| usize::from(at) == word && of.site == last.site;
        let is_new = last.site != by.site && !self.overwritten.iter().any(is_known);
        if is_dirty && is_new && self.overwritten.len() < OVERWRITTEN_MAX {
            self.overwritten.push((word as u8, last));
        }
    }

    /// A word is about to have another value. A lock is taken by an atomic instruction, and becomes free by whatever store.
    pub fn takes_or_frees(&mut self, word: usize, value: u64, is_atomic: bool) {
        let now = self.words[word].value;
        if now == value {
            return;
        }
        let bit = 1u8 << word;
        let taken = self.taken.iter().position(|&(at, ..)| usize::from(at) == word);
        if let Some(&(_, before, bytes)) = taken.and_then(|at| self.taken.get(at)) {
            let is_of_lock = different(now, value) & bytes != 0;
            let is_free = different(value, before) & bytes == 0;
            match (is_of_lock, is_free) {
                (true, true) => self.locks |= bit,
                // Nobody but an atomic instruction takes a lock.
                (true, false) if !is_atomic => self.data |= bit,
                _ => {}
            }
        }
        self.locks &= !self.data;
        if is_atomic {
            let of = (word as u8, now, different(now, value));
            match taken {
                Some(at) => self.taken[at] = of,
                None => self.taken.push(of),
            }
        }
    }

    /// These words are durable.
    pub fn becomes_durable(&mut self, words: u8) {
        self.overwritten.retain(|&(word, _)| words >> word & 1 == 0);
        for at in bits(words & self.undurable()) {
            self.words[at].durable = self.words[at].value;
        }
        for mask in [
            &mut self.dirty,
            &mut self.flushed,
            &mut self.non_temporal,
            &mut self.late,
            &mut self.is_async,
        ] {
            *mask &= !words;
        }
    }
}

/// The numbers of the bits of a mask.
pub(super) fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..8).filter(move |at| mask >> at & 1 != 0)
}

/// A page, and how many of its lines have words that are not durable.
struct Page {
    lines: [Option<Box<Line>>; LINES],
    undurable: u32,
}

/// All lines that were accessed.
#[derive(Default)]
pub(super) struct Memory {
    pages: FxHashMap<u64, Box<Page>>,
    /// Pages with words that are not durable.
    undurable: BTreeSet<u64>,
}

impl Memory {
    /// The line of this number, if it was accessed.
    pub fn line(&self, line: u64) -> Option<&Line> {
        let page = self.pages.get(&(line / LINES as u64))?;
        page.lines[(line % LINES as u64) as usize].as_deref()
    }

    /// Changes a line. `before` says what each of its words is as the trace begins.
    pub fn change<T>(
        &mut self,
        line: u64,
        before: impl Fn(u64) -> u64,
        change: impl FnOnce(&mut Line) -> T,
    ) -> T {
        let number = line / LINES as u64;
        let page = self
            .pages
            .entry(number)
            .or_insert_with(|| Box::new(Page { lines: [const { None }; LINES], undurable: 0 }));
        let line_at = &mut page.lines[(line % LINES as u64) as usize];
        let line = line_at.get_or_insert_with(|| {
            let mut new = Line::default();
            for (word, at) in new.words.iter_mut().zip((line * LINE_BYTES..).step_by(8)) {
                (word.value, word.durable) = (before(at), before(at));
            }
            Box::new(new)
        });
        let was_durable = line.undurable() == 0;
        let result = change(line);
        match (was_durable, line.undurable() == 0) {
            (true, false) => page.undurable += 1,
            (false, true) => page.undurable -= 1,
            _ => return result,
        }
        match page.undurable {
            0 => self.undurable.remove(&number),
            1 => self.undurable.insert(number),
            _ => false,
        };
        result
    }

    /// The lines from `start` to before `end` with words that are not durable, by their numbers.
    pub fn undurable(&self, start: u64, end: u64) -> Vec<u64> {
        let pages = self.undurable.range(start / PAGE_BYTES..end.div_ceil(PAGE_BYTES));
        let mut all = Vec::new();
        for number in pages {
            for (at, line) in self.pages[number].lines.iter().enumerate() {
                let line_number = number * LINES as u64 + at as u64;
                let address = line_number * LINE_BYTES;
                let is_in = address + LINE_BYTES > start && address < end;
                if is_in && line.as_ref().is_some_and(|line| line.undurable() != 0) {
                    all.push(line_number);
                }
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_listed_while_they_are_not_durable() {
        let mut memory = Memory::default();
        for line in [1, 70, 3] {
            memory.change(line, |_| 5, |line| line.dirty |= 1);
        }
        assert_eq!(memory.undurable(0, u64::MAX), [1, 3, 70]);
        assert_eq!(memory.undurable(128, 4096), [3]);
        memory.change(3, |_| 0, |line| line.becomes_durable(1));
        assert_eq!(memory.undurable(0, 4096), [1]);
        assert_eq!(memory.line(3).map(|line| line.words[2].durable), Some(5));
        memory.change(1, |_| 0, |line| line.becomes_durable(u8::MAX));
        assert_eq!(memory.undurable(0, u64::MAX), [70]);
    }
}
