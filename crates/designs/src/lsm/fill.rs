//! Misses: the newest words of a line, from the log, the write sets and the line's home.

use super::cover::Cover;
use super::{About, Lsm, Mutant};
use graven_base::memory::{Addr, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WORDS_PER_LINE};
use graven_base::time::Cycle;
use graven_machine::design::Fill;
use graven_machine::machine::Machine;

/// Where the newest version of a word is.
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
    pub(super) fn fill(&mut self, m: &mut Machine, line: LineAddr, delay: Cycle) -> Fill {
        let sources = self.sources(line);
        if sources == [Source::Home; WORDS_PER_LINE] {
            return Fill::Home;
        }
        let mut of_log = 0;
        let mut reading = Reading { line, sources, content: [0; WORDS_PER_LINE], left: 0 };
        let token = About::Fill(self.readings.vacant_key()).token();
        for (word, source) in sources.iter().enumerate() {
            let from = reading.source_line(word);
            if (0..word).any(|before| reading.source_line(before) == from) {
                continue;
            }
            if let Source::Log(at) = *source {
                of_log += 1;
                self.segments.begin_reading(self.log.segment_at(at));
                if m.memory.has_unaccepted_write(from) {
                    m.cover(Cover::FillOfCommittingWords as usize);
                }
            }
            m.note(|| format!("{line} is read from {from}"));
            m.read(from, token, delay);
            reading.left += 1;
        }
        self.note_corners(m, of_log, &sources);
        let c = m.count();
        c.fill_reads += u64::from(reading.left);
        c.fills_parallel += u64::from(reading.left > 1 && sources.contains(&Source::Home));
        self.readings.insert(reading);
        Fill::Design
    }

    /// Where the words of a line are: with the transaction that has stored them, in the log, or at home.
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
        if self.mutants.has(Mutant::OpenWordsForgotten) {
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

    /// How many lines of the log are read, and what else.
    fn note_corners(&self, m: &mut Machine, of_log: u32, sources: &[Source; WORDS_PER_LINE]) {
        if sources.iter().any(|source| matches!(source, Source::Open(..))) {
            m.cover(Cover::FillOfOpenWords as usize);
        }
        if of_log > 0 && sources.contains(&Source::Home) {
            m.cover(Cover::FillFromHomeToo as usize);
        }
        if of_log > 1 {
            m.cover(Cover::FillFromSeveralLines as usize);
        }
    }

    /// One of the lines has come; with the last the missed line is whole.
    pub(super) fn filled(
        &mut self,
        m: &mut Machine,
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
            m.deliver(line, content, 0);
        }
        if let Some(at) = of_log
            && self.segments.end_reading(self.log.segment_at(at))
        {
            self.wake(m);
        }
    }
}
