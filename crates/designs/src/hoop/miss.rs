//! Misses (§III-C, §III-G): home and memory slices are read in parallel, and the line is unpacked from them.

use super::layout::{Slice, SliceNumber};
use super::{Cover, Hoop, Mutant, Pending};
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::time::Cycle;
use graven_machine::design::Fill;
use graven_machine::machine::Machine;
use graven_machine::media::overlay;

/// A slice with words of the line.
#[derive(Clone, Debug)]
struct Part {
    slice: SliceNumber,
    /// The words that are the line's newest.
    words: WordMask,
    /// Its two lines, as they come.
    lines: [Option<LineData>; 2],
}

/// A line that is being read.
#[derive(Clone, Debug)]
pub struct Miss {
    line: LineAddr,
    home: Option<LineData>,
    /// Words that buffers in the controller have.
    buffered: (WordMask, LineData),
    /// The slices with the others.
    parts: Vec<Part>,
    /// Lines that have not come.
    left: usize,
}

impl Hoop {
    /// A line is missed; the request reaches the controller after `delay`.
    pub(super) fn miss(&mut self, m: &mut Machine, line: LineAddr, delay: Cycle) -> Fill {
        let c = self.controller_of(line);
        let entries: Vec<_> = self.controllers[c].mapping.of(line).collect();
        let evicted = self.controllers[c].evicted.get(line);
        let evicted_first = self.mutants.has(Mutant::EvictionBufferFirst);
        if let Some((WordMask::MAX, data)) = evicted
            && (entries.is_empty() || evicted_first)
        {
            m.cover(Cover::EvictionBufferHit as usize);
            return Fill::Buffer(data, self.config.buffer_read_cycles.into());
        }
        if entries.is_empty() && evicted.is_none() {
            return Fill::Home;
        }
        let mut miss = Miss {
            line,
            home: None,
            buffered: evicted.unwrap_or((0, [0; 8])),
            parts: Vec::new(),
            left: 1,
        };
        for entry in entries {
            let held = self.threads.iter().find_map(|t| t.buffers[c].slice(entry.slice));
            if let Some(held) = held {
                m.cover(Cover::ReadFromDataBuffer as usize);
                take_words(&mut miss.buffered, line, entry.words, &held.words);
            } else {
                self.controllers[c].region.pin(entry.slice);
                miss.parts.push(Part { slice: entry.slice, words: entry.words, lines: [None; 2] });
                miss.left += 2;
            }
        }
        if miss.parts.len() > 1 {
            m.cover(Cover::SeveralSlicesRead as usize);
        }
        m.count().fill_reads += miss.left as u64;
        m.count().fills_parallel += u64::from(!miss.parts.is_empty());
        if self.mutants.has(Mutant::MappingDroppedOnRead) {
            self.controllers[c].mapping.remove_line(line);
        }
        self.read(m, c, miss, delay);
        Fill::Design
    }

    fn read(&mut self, m: &mut Machine, c: usize, miss: Miss, delay: Cycle) {
        let (line, slices) = (miss.line, miss.parts.iter().map(|p| p.slice).collect::<Vec<_>>());
        m.note(|| format!("{line} is read from home and slices {slices:?}"));
        let miss = self.misses.insert(miss);
        let token = self.token(Pending::MissHome { miss });
        m.read(line, token, delay);
        for (part, &slice) in slices.iter().enumerate() {
            let lines = self.controllers[c].region.geometry.slice_lines(slice);
            for (line, addr) in lines.into_iter().enumerate() {
                let token = self.token(Pending::MissSlice { miss, part, line });
                m.read(addr, token, delay);
            }
        }
    }

    /// A line has come: the home, or a line of a part.
    pub(super) fn miss_read(
        &mut self,
        m: &mut Machine,
        number: usize,
        of: Option<(usize, usize)>,
        content: &LineData,
    ) {
        let miss = &mut self.misses[number];
        match of {
            None => miss.home = Some(*content),
            Some((part, line)) => miss.parts[part].lines[line] = Some(*content),
        }
        miss.left -= 1;
        if miss.left > 0 {
            return;
        }
        let mut miss = self.misses.remove(number);
        let line = miss.line;
        let c = self.controller_of(line);
        for part in &miss.parts {
            let [data, metadata] = part.lines.map(|l| l.expect("all have come"));
            let words = Slice::parse(&data, &metadata).map(|s| s.words).unwrap_or_default();
            let all = self.mutants.has(Mutant::WordMaskIgnored);
            let mask = if all { WordMask::MAX } else { part.words };
            take_words(&mut miss.buffered, line, mask, &words);
            self.controllers[c].region.unpin(part.slice);
        }
        let mut content = miss.home.expect("all have come");
        overlay(&mut content, &miss.buffered.1, miss.buffered.0);
        let unpacking = if miss.parts.is_empty() { 0 } else { self.config.unpack_cycles };
        m.deliver(line, content, unpacking.into());
        self.free_unneeded(m, c);
    }
}

/// Lays the words of a line that a slice has, as far as they are wanted, over what is there.
fn take_words(
    (mask, data): &mut (WordMask, LineData),
    line: LineAddr,
    wanted: WordMask,
    words: &[(graven_base::memory::Addr, u64)],
) {
    for (addr, word) in words.iter().filter(|(addr, _)| addr.line() == line) {
        let at = addr.word_in_line();
        if wanted >> at & 1 != 0 {
            data[at] = *word;
            *mask |= 1 << at;
        }
    }
}
