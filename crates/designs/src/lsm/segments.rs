//! Segments of the log: free, open to a thread, full, being collected.

use std::collections::VecDeque;

use super::log::Sequence;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Full,
    Collected,
    /// The segment will be free when no miss reads from it.
    Freed,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    state: State,
    /// Lines that hold transactions.
    used: u64,
    /// Misses that are reading lines of it.
    readers: u32,
    /// Number of times that it was opened.
    opened: u64,
    /// Sequence number of its first transaction, at least.
    since: Sequence,
}

/// All of them. Free ones are used in turn, which spreads the wear.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    segments: Vec<Segment>,
    free: VecDeque<usize>,
}

impl Segments {
    pub(super) fn new(count: usize) -> Segments {
        let segment = Segment { state: State::Free, used: 0, readers: 0, opened: 0, since: 0 };
        Segments { segments: vec![segment; count], free: (0..count).collect() }
    }

    /// Number of those that are not free.
    pub(super) fn taken(&self) -> usize {
        self.segments.len() - self.free.len()
    }

    /// Opens a free one, if there is one.
    pub(super) fn open(&mut self, since: Sequence) -> Option<usize> {
        let number = self.free.pop_front()?;
        let segment = &mut self.segments[number];
        assert_eq!(segment.state, State::Free, "the list has free segments only");
        let opened = segment.opened + 1;
        *segment = Segment { state: State::Open, used: 0, readers: 0, opened, since };
        Some(number)
    }

    /// Returns true if it was in use before.
    pub(super) fn is_reused(&self, number: usize) -> bool {
        self.segments[number].opened > 1
    }

    pub(super) fn used(&self, number: usize) -> u64 {
        self.segments[number].used
    }

    /// Takes lines of an open segment; returns the first.
    pub(super) fn take(&mut self, number: usize, lines: u64) -> u64 {
        let segment = &mut self.segments[number];
        assert_eq!(segment.state, State::Open, "threads append to open segments");
        segment.used += lines;
        segment.used - lines
    }

    /// An open one takes no more.
    pub(super) fn close(&mut self, number: usize) {
        assert_eq!(self.segments[number].state, State::Open, "it was open");
        self.segments[number].state = State::Full;
    }

    /// Takes all full ones for a collection, newest first.
    pub(super) fn take_full(&mut self) -> Vec<usize> {
        let full = |number: &usize| self.segments[*number].state == State::Full;
        let mut taken: Vec<usize> = (0..self.segments.len()).filter(full).collect();
        taken.sort_by_key(|&number| std::cmp::Reverse(self.segments[number].since));
        taken.iter().for_each(|&number| self.segments[number].state = State::Collected);
        taken
    }

    pub(super) fn is_collected(&self, number: usize) -> bool {
        self.segments[number].state == State::Collected
    }

    pub(super) fn begin_reading(&mut self, number: usize) {
        self.segments[number].readers += 1;
    }

    /// Returns whether the segment is free now.
    pub(super) fn end_reading(&mut self, number: usize) -> bool {
        let readers = &mut self.segments[number].readers;
        // Only a mutant uses a segment again while it is read.
        *readers = readers.saturating_sub(1);
        let free = *readers == 0 && self.segments[number].state == State::Freed;
        if free {
            self.put_back(number);
        }
        free
    }

    /// A collection is done with it. Returns whether it must stay for those who read from it.
    pub(super) fn release(&mut self, number: usize, whoever_reads: bool) -> bool {
        self.segments[number].state = State::Freed;
        let read = self.segments[number].readers > 0;
        if !read || whoever_reads {
            self.put_back(number);
        }
        read
    }

    fn put_back(&mut self, number: usize) {
        self.segments[number].state = State::Free;
        self.free.push_back(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_used_in_turn_and_not_while_they_are_read() {
        let mut segments = Segments::new(3);
        let [a, b] = [5, 9].map(|since| segments.open(since).expect("three are free"));
        assert_eq!((a, b), (0, 1));
        assert_eq!((segments.take(a, 4), segments.take(a, 2), segments.used(a)), (0, 4, 6));
        segments.close(a);
        segments.close(b);
        assert_eq!(segments.take_full(), [1, 0], "newest first");
        segments.begin_reading(b);
        assert!(!segments.release(a, false));
        assert!(segments.release(b, false), "it is being read");
        assert_eq!([10, 11, 12].map(|s| segments.open(s)), [Some(2), Some(0), None]);
        assert!(segments.is_reused(0) && !segments.is_reused(2));
        assert!(segments.end_reading(b));
        assert_eq!(segments.open(13), Some(1));
    }
}
