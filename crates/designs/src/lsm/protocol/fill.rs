//! Misses: the newest words of a line, from the log, the write sets and the line's home.

use super::super::event::Event;
use super::{Lsm, Port, Read};
use graven_base::memory::{Addr, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WORDS_PER_LINE};
use graven_base::time::Cycle;
use graven_machine::design::Fill;

/// Sources of the newest version of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Home,
    /// This word of the log.
    Log(Addr),
    /// This slot of a write set, which has this.
    Open(Addr, u64),
}

/// A miss that is being read.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    line: LineAddr,
    sources: [Source; WORDS_PER_LINE],
    content: LineData,
    /// Lines that have not come.
    left: u32,
}

impl Reading {
    /// The line that has the newest version of a word.
    fn source_line(&self, word: usize) -> LineAddr {
        match self.sources[word] {
            Source::Home => self.line,
            Source::Log(at) | Source::Open(at, _) => at.line(),
        }
    }
}

impl Lsm {
    /// Sends reads of all lines that hold newest words of a line.
    pub(super) fn fill(&mut self, port: &mut Port<'_>, line: LineAddr, delay: Cycle) -> Fill {
        let sources = self.sources(line);
        if sources == [Source::Home; WORDS_PER_LINE] {
            return Fill::Home;
        }
        let mut of_log = 0;
        let mut reading = Reading { line, sources, content: [0; WORDS_PER_LINE], left: 0 };
        let about = Read::Fill(self.readings.vacant_key());
        for (word, source) in sources.iter().enumerate() {
            let from = reading.source_line(word);
            if (0..word).any(|before| reading.source_line(before) == from) {
                continue;
            }
            let mut committing = false;
            if let Source::Log(at) = *source {
                of_log += 1;
                self.segments.begin_reading(self.log.segment_at(at));
                committing = port.has_unaccepted_write(from);
            }
            port.emit(Event::ReadForMiss { missed: line, from, committing });
            port.read_for_miss(from, about, delay);
            reading.left += 1;
        }
        let at_home = sources.contains(&Source::Home);
        let open = sources.iter().any(|source| matches!(source, Source::Open(..)));
        port.emit(Event::MissSent { lines: reading.left, of_log, at_home, open });
        self.readings.insert(reading);
        Fill::Design
    }

    /// Finds the sources of the words of a line: the transaction that has stored them, the log, or
    /// home.
    fn sources(&self, line: LineAddr) -> [Source; WORDS_PER_LINE] {
        let mut sources = [Source::Home; WORDS_PER_LINE];
        let (start, end) = (line.addr(), line.addr().plus(LINE_BYTES));
        for range in self.index.overlapping(start, end) {
            for (word, source) in sources.iter_mut().enumerate() {
                let addr = line.word(word);
                if range.start <= addr && addr < range.end {
                    let position = range.position + (addr.0 - range.start.0) / WORD_BYTES;
                    *source = Source::Log(self.log.place(position));
                }
            }
        }
        if !self.rules.open_words_are_found() {
            return sources;
        }
        for (thread, t) in self.threads.iter().enumerate() {
            let from = t.words.partition_point(|&(addr, _)| addr < start);
            for &(addr, value) in t.words[from..].iter().take_while(|&&(addr, _)| addr < end) {
                sources[addr.word_in_line()] = Source::Open(self.slot(thread, addr), value);
            }
        }
        sources
    }

    /// One of the lines has come; with the last the missed line is whole.
    pub(super) fn filled(
        &mut self,
        port: &mut Port<'_>,
        slot: usize,
        from: LineAddr,
        bytes: &LineData,
    ) {
        let reading = &mut self.readings[slot];
        let mut of_log = None;
        for word in 0..WORDS_PER_LINE {
            if reading.source_line(word) != from {
                continue;
            }
            reading.content[word] = match reading.sources[word] {
                Source::Home => bytes[word],
                Source::Log(at) => {
                    of_log = Some(at);
                    bytes[at.word_in_line()]
                }
                Source::Open(_, value) => value,
            };
        }
        reading.left -= 1;
        if reading.left == 0 {
            let Reading { line, content, .. } = self.readings.remove(slot);
            port.deliver(line, content, 0);
        }
        if let Some(at) = of_log
            && self.segments.end_reading(self.log.segment_at(at))
        {
            self.wake(port);
        }
    }
}
