//! Misses (§III-C, §III-G): home and memory slices are read in parallel, and the line is unpacked from them.

use super::event::Event;
use super::layout::{Slice, SliceNumber};
use super::mapping::Entry;
use super::protocol::{Hoop, Port, Read};
use graven_base::memory::{Addr, LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_base::time::Cycle;
use graven_machine::design::Fill;
use graven_machine::media::overlay;

/// A slice with words of the line.
#[derive(Clone, Debug)]
struct Part {
    slice: SliceNumber,
    /// The words that are the line's newest.
    words: WordMask,
    /// The two lines of the slice, as they come.
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
    pub(super) fn miss(&mut self, port: &mut Port<'_>, line: LineAddr, delay: Cycle) -> Fill {
        let controller = self.controller_of(line);
        let entries: Vec<Entry> = self.controllers[controller].mapping.of(line).collect();
        let evicted = self.controllers[controller].evicted.get(line);
        if let Some((WordMask::MAX, data)) = evicted
            && (entries.is_empty() || !self.rules.mapping_is_asked_first())
        {
            port.emit(Event::EvictionBufferHit);
            return Fill::Buffer(data, self.config.buffer_read_cycles.into());
        }
        if entries.is_empty() && evicted.is_none() {
            return Fill::Home;
        }
        let buffered = evicted.unwrap_or((0, [0; WORDS_PER_LINE]));
        let mut miss = Miss { line, home: None, buffered, parts: Vec::new(), left: 1 };
        self.find_words(port, controller, entries, &mut miss);
        if !self.rules.mapping_outlives_reads() {
            self.controllers[controller].mapping.remove_line(line);
        }
        self.read(port, controller, miss, delay);
        Fill::Design
    }

    /// Words of a line that the mapping table knows come from the OOP data buffer, or else from slices that are to be
    /// read: their blocks stay until then.
    fn find_words(
        &mut self,
        port: &mut Port<'_>,
        controller: usize,
        entries: Vec<Entry>,
        miss: &mut Miss,
    ) {
        for Entry { slice, words } in entries {
            let held = self.threads.iter().find_map(|t| t.buffers[controller].slice(slice));
            if let Some(held) = held {
                port.emit(Event::ReadFromDataBuffer);
                take_words(&mut miss.buffered, miss.line, words, &held.words);
            } else {
                self.controllers[controller].region.pin(slice);
                miss.parts.push(Part { slice, words, lines: [None; 2] });
                miss.left += 2;
            }
        }
    }

    /// Reads a line's home and the slices with words of it, all at once.
    fn read(&mut self, port: &mut Port<'_>, controller: usize, miss: Miss, delay: Cycle) {
        let slices = miss.parts.iter().map(|part| part.slice).collect();
        port.emit(Event::Missed { line: miss.line, slices });
        let line = miss.line;
        let key = self.misses.insert(miss);
        port.read_for_miss(line, Read::MissHome { miss: key }, delay);
        let geometry = &self.controllers[controller].region.geometry;
        for (part, of) in self.misses[key].parts.iter().enumerate() {
            for (line, addr) in geometry.slice_lines(of.slice).into_iter().enumerate() {
                port.read_for_miss(addr, Read::MissSlice { miss: key, part, line }, delay);
            }
        }
    }

    /// A line has come: the home, or a line of a part.
    pub(super) fn miss_read(
        &mut self,
        port: &mut Port<'_>,
        key: usize,
        of: Option<(usize, usize)>,
        content: &LineData,
    ) {
        let miss = &mut self.misses[key];
        match of {
            None => miss.home = Some(*content),
            Some((part, line)) => miss.parts[part].lines[line] = Some(*content),
        }
        miss.left -= 1;
        if miss.left == 0 {
            let miss = self.misses.remove(key);
            self.unpack(port, miss);
        }
    }

    /// All has been read: the newest words are laid over the home, and the line is delivered.
    fn unpack(&mut self, port: &mut Port<'_>, mut miss: Miss) {
        let controller = self.controller_of(miss.line);
        for part in &miss.parts {
            let [data, metadata] = part.lines.map(|l| l.expect("all have come"));
            let words = Slice::parse(&data, &metadata).map(|s| s.words).unwrap_or_default();
            let wanted =
                if self.rules.only_newest_words_are_taken() { part.words } else { WordMask::MAX };
            take_words(&mut miss.buffered, miss.line, wanted, &words);
            self.controllers[controller].region.unpin(part.slice);
        }
        let mut content = miss.home.expect("all have come");
        overlay(&mut content, &miss.buffered.1, miss.buffered.0);
        let unpacking = if miss.parts.is_empty() { 0 } else { self.config.unpack_cycles };
        port.deliver(miss.line, content, unpacking.into());
        self.free_unneeded(port, controller);
    }
}

/// Lays the words of a line that a slice has, as far as they are wanted, over the line's content.
fn take_words(
    (mask, data): &mut (WordMask, LineData),
    line: LineAddr,
    wanted: WordMask,
    words: &[(Addr, u64)],
) {
    for (addr, word) in words.iter().filter(|(addr, _)| addr.line() == line) {
        let at = addr.word_in_line();
        if wanted >> at & 1 != 0 {
            data[at] = *word;
            *mask |= 1 << at;
        }
    }
}
