//! The on-PM write-combining buffer of a channel.

use graven_base::codecs::Codings;
use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_base::time::{Cycle, NEVER};

use super::LINES_PER_MEDIA_LINE;
use super::banks::Banks;
use super::line_index::LineIndex;
use super::programming::{Block, Media};
use super::timing::EnergyModel;
use super::waiting_lines::WaitingLines;
use crate::media::{Effort, overlay};
use crate::request::{Place, Write, WriteClass};
use crate::stats::Stats;

/// One 256 B line of the on-PM buffer.
#[derive(Clone, Debug)]
struct BufferLine {
    /// Content.
    content: Content,
    place: Place,
    /// The number of the newest write.
    last_write: u64,
    /// Spill under way, if any.
    spilling: Option<Spill>,
    /// Words written since the spill began.
    again: [WordMask; LINES_PER_MEDIA_LINE],
}

/// Written parts of a media line.
#[derive(Clone, Debug)]
struct Content {
    /// Number of the media line (address / 256).
    media_line: u64,
    masks: [WordMask; LINES_PER_MEDIA_LINE],
    data: [LineData; LINES_PER_MEDIA_LINE],
    codings: [Codings; LINES_PER_MEDIA_LINE],
    class: WriteClass,
}

impl Content {
    /// Returns its lines.
    fn block(&self) -> Block<'_> {
        let first = LineAddr(self.media_line * LINES_PER_MEDIA_LINE as u64);
        let Content { masks, data, codings, class, .. } = self;
        Block { first, masks, data, codings, class: *class }
    }
}

/// A line is being spilled.
#[derive(Clone, Debug)]
struct Spill {
    /// Effort of programming the cells; `None` if it goes to the row buffer alone.
    effort: Option<Effort>,
    /// Content of the line when the spill began, if it has been written since.
    content: Option<Box<Content>>,
}

/// The on-PM write-combining buffer of one channel.
#[derive(Clone, Debug)]
pub struct PmBuffer {
    /// By slot. What a free slot has means nothing.
    lines: Vec<BufferLine>,
    /// Media line numbers by slot.
    index: LineIndex,
    free: FreeSlots,
    occupied: usize,
    /// Lines that are being spilled.
    spilling: usize,
    /// Lines that are not.
    waiting: WaitingLines,
    clean_target: usize,
    clock: u64,
}

impl PmBuffer {
    /// A buffer of `lines` lines that starts to spill above `spill_percent` of them, before `banks` banks.
    pub fn new(lines: u32, spill_percent: u32, banks: usize) -> Self {
        let n = lines as usize;
        let empty = BufferLine {
            content: Content {
                media_line: 0,
                masks: [0; LINES_PER_MEDIA_LINE],
                data: [[0; WORDS_PER_LINE]; LINES_PER_MEDIA_LINE],
                codings: [Codings::FPC; LINES_PER_MEDIA_LINE],
                class: WriteClass::Data,
            },
            place: Place { channel: 0, bank: 0, row: 0 },
            last_write: 0,
            spilling: None,
            again: [0; LINES_PER_MEDIA_LINE],
        };
        Self {
            lines: vec![empty; n],
            index: LineIndex::new(n),
            free: FreeSlots::new(n),
            occupied: 0,
            spilling: 0,
            waiting: WaitingLines::new(n, banks),
            clean_target: (n * spill_percent as usize / 100).min(n - 1),
            clock: 0,
        }
    }

    #[inline]
    fn find(&self, line: LineAddr) -> Option<usize> {
        let media_line = line.0 / LINES_PER_MEDIA_LINE as u64;
        self.index.oldest_first(media_line).next().map(|slot| slot as usize)
    }

    /// Returns true if the media line of a line has a slot: then a write to it is taken even when
    /// all are taken.
    #[inline]
    pub fn holds(&self, line: LineAddr) -> bool {
        self.find(line).is_some()
    }

    /// Returns true if every slot is taken.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.occupied == self.lines.len()
    }

    /// Takes a write, which is durable from then on.
    pub fn write(&mut self, write: &Write, place: Place, energy: &EnergyModel, stats: &mut Stats) {
        let Write { line, mask, class, .. } = *write;
        stats.write_energy.add_bits(energy.row_write, u64::from(mask.count_ones()) * 64);
        self.clock += 1;
        let part = line.0 as usize % LINES_PER_MEDIA_LINE;
        let slot = match self.find(line) {
            Some(slot) => {
                stats.counters.pm_buffer_write_hits += 1;
                slot
            }
            None => self.take_slot(write, place),
        };
        let entry = &mut self.lines[slot];
        let content = &mut entry.content;
        match &mut entry.spilling {
            Some(spill) => {
                if spill.content.is_none() {
                    spill.content = Some(Box::new(content.clone()));
                    content.class = class;
                }
                entry.again[part] |= mask;
            }
            None => self.waiting.written(slot as u32, self.clock),
        }
        content.class = content.class.min(class);
        if mask == WordMask::MAX {
            content.data[part] = write.data;
            content.codings[part] = write.codings;
        } else {
            overlay(&mut content.data[part], &write.data, mask);
            content.codings[part].overlay(&write.codings, mask);
        }
        content.masks[part] |= mask;
        entry.last_write = self.clock;
    }

    /// Takes a slot for the media line of a write.
    fn take_slot(&mut self, write: &Write, place: Place) -> usize {
        let slot = self.free.take().expect("a full buffer is given what it holds");
        let media_line = write.line.0 / LINES_PER_MEDIA_LINE as u64;
        self.occupied += 1;
        self.waiting.add(slot as u32, place.bank, self.clock);
        self.index.insert(slot as u32, media_line);
        let entry = &mut self.lines[slot];
        entry.place = place;
        let content = &mut entry.content;
        content.media_line = media_line;
        content.masks = [0; LINES_PER_MEDIA_LINE];
        content.data = [[0; WORDS_PER_LINE]; LINES_PER_MEDIA_LINE];
        content.codings = [Codings::FPC; LINES_PER_MEDIA_LINE];
        content.class = write.class;
        slot
    }

    /// Lays the buffered words of a line over `content`; returns which words the buffer had.
    pub fn overlay(&self, line: LineAddr, content: &mut LineData) -> WordMask {
        let Some(slot) = self.find(line) else { return 0 };
        let Content { masks, data, .. } = &self.lines[slot].content;
        let part = line.0 as usize % LINES_PER_MEDIA_LINE;
        overlay(content, &data[part], masks[part]);
        masks[part]
    }

    /// Words of a line that the buffer has.
    #[inline]
    pub fn mask(&self, line: LineAddr) -> WordMask {
        let part = line.0 as usize % LINES_PER_MEDIA_LINE;
        self.find(line).map_or(0, |slot| self.lines[slot].content.masks[part])
    }

    /// The free banks of which a line may be spilled now, a bit for each: none while the buffer holds no more than it should.
    /// `avoid`: banks that reads wait for, in which no line is spilled before the buffer is full; `never`: those for which reads
    /// have waited as long as they may.
    #[inline]
    pub fn may_spill(&self, banks: &Banks, avoid: u64, never: u64) -> u64 {
        let may = if self.has_too_much() { self.waiting.waited_for() & banks.free() } else { 0 };
        may & !(if self.is_full() { never } else { avoid | never })
    }

    /// Starts to spill the least recently written line of some banks, of which each has one. Returns the slot and when it is
    /// done.
    pub fn spill(
        &mut self,
        of_banks: u64,
        now: Cycle,
        banks: &mut Banks,
        media: &mut Media<'_>,
    ) -> (u32, Cycle) {
        assert!(self.has_too_much(), "lines stay in the buffer as long as they may");
        let slot = self.waiting.oldest(of_banks).expect("a line waits for each of these banks");
        self.waiting.remove(slot);
        self.spilling += 1;
        let entry = &mut self.lines[slot as usize];
        let partial = entry.content.masks != [WordMask::MAX; LINES_PER_MEDIA_LINE];
        let stats = &mut media.stats.counters;
        stats.pm_buffer_spills += 1;
        stats.pm_buffer_read_modify_writes += u64::from(partial);
        let block = entry.content.block();
        let begun = banks.begin_write(entry.place, now, &block, partial, media);
        entry.spilling = Some(Spill { effort: begun.effort, content: None });
        (slot, begun.done)
    }

    /// The bank, and the first line, of what is in a slot.
    pub fn content_of(&self, slot: u32) -> (u32, LineAddr) {
        let entry = &self.lines[slot as usize];
        (entry.place.bank, entry.content.block().first)
    }

    /// When a bank that a spill waits for becomes free: the earliest, if the buffer has too much; [`NEVER`] otherwise.
    #[inline]
    pub fn spill_wake(&self, banks: &Banks) -> Cycle {
        if self.has_too_much() { banks.earliest(self.waiting.waited_for()) } else { NEVER }
    }

    /// Returns true if more lines wait than may stay.
    #[inline]
    fn has_too_much(&self) -> bool {
        self.occupied - self.spilling > self.clean_target
    }

    /// A spill has reached the cells, or the row buffer: frees the line, unless it was written
    /// again meanwhile. Returns the number of the media line.
    pub fn spill_done(&mut self, slot: u32, banks: &mut Banks, media: &mut Media<'_>) -> u64 {
        let entry = &mut self.lines[slot as usize];
        let Spill { effort, content: spilled } = entry.spilling.take().expect("it was under way");
        self.spilling -= 1;
        let block = spilled.as_deref().unwrap_or(&entry.content).block();
        banks.finish_write(entry.place.bank, &block, effort, media);
        let media_line = entry.content.media_line;
        if spilled.is_none() {
            self.index.remove(slot);
            self.free.give_back(slot as usize);
            self.occupied -= 1;
        } else {
            entry.content.masks = std::mem::take(&mut entry.again);
            self.waiting.add(slot, entry.place.bank, entry.last_write);
        }
        media_line
    }

    /// Everything in the buffer, in a fixed order: what a power failure finds there.
    pub fn contents(&self) -> impl Iterator<Item = (LineAddr, WordMask, &LineData)> {
        let occupied = (0..self.lines.len()).filter(|&slot| !self.free.has(slot));
        occupied.flat_map(|slot| {
            let Content { media_line, masks, data, .. } = &self.lines[slot].content;
            (0..LINES_PER_MEDIA_LINE).filter(|&i| masks[i] != 0).map(move |i| {
                let line = LineAddr(media_line * LINES_PER_MEDIA_LINE as u64 + i as u64);
                (line, masks[i], &data[i])
            })
        })
    }
}

/// Slots that are free, a bit for each.
#[derive(Clone, Debug)]
struct FreeSlots {
    words: Vec<u64>,
    /// No word before this one has a free slot.
    first: usize,
}

impl FreeSlots {
    /// Makes a set of `slots` free slots.
    fn new(slots: usize) -> FreeSlots {
        let mut words = vec![u64::MAX; slots.div_ceil(64)];
        if let (Some(last), 1..) = (words.last_mut(), slots % 64) {
            *last = (1 << (slots % 64)) - 1;
        }
        FreeSlots { words, first: 0 }
    }

    /// Returns true if a slot is free.
    fn has(&self, slot: usize) -> bool {
        self.words[slot / 64] >> (slot % 64) & 1 == 1
    }

    /// Takes the first.
    #[inline]
    fn take(&mut self) -> Option<usize> {
        let word = (self.first..self.words.len()).find(|&word| self.words[word] != 0)?;
        self.first = word;
        let bit = self.words[word].trailing_zeros() as usize;
        self.words[word] &= self.words[word] - 1;
        Some(word * 64 + bit)
    }

    /// One is free again.
    #[inline]
    fn give_back(&mut self, slot: usize) {
        self.first = self.first.min(slot / 64);
        self.words[slot / 64] |= 1 << (slot % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CoreConfig, PmConfig, RowWrites, TlcConfig};
    use crate::device::{BankSpec, Timing};
    use crate::media::PmCells;
    use crate::registry::Registry;
    use graven_base::memory::Image;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_free_slot_is_taken(
            slots in 1..200usize,
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..400),
        ) {
            let (mut free, mut plain) = (FreeSlots::new(slots), vec![true; slots]);
            for (takes, at) in steps {
                let slot = at.index(slots);
                if takes {
                    let first = plain.iter().position(|&is_free| is_free);
                    prop_assert_eq!(free.take(), first);
                    first.inspect(|&first| plain[first] = false);
                } else if !plain[slot] {
                    free.give_back(slot);
                    plain[slot] = true;
                }
                prop_assert!((0..slots).all(|slot| free.has(slot) == plain[slot]));
            }
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write {
            line: u64,
            mask: WordMask,
        },
        /// A line begins to be spilled, if one may.
        Spill,
        /// The spill of one of those is done.
        Done(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..28u64, 1..=WordMask::MAX).prop_map(|(line, mask)| Step::Write { line, mask }),
            1 => (0..28u64).prop_map(|line| Step::Write { line, mask: WordMask::MAX }),
            2 => Just(Step::Spill),
            2 => any::<prop::sample::Index>().prop_map(Step::Done),
        ]
    }

    proptest! {
        /// Writes that come while a line is spilled are not part of the spill, and not lost.
        #[test]
        fn cells_get_what_a_line_had_when_its_spill_began(steps in prop::collection::vec(step(), 0..150)) {
            let config = Registry::new().defaults();
            let (pm, core) = (config.get::<PmConfig>(), config.get::<CoreConfig>());
            let (banks, energy) = (4, EnergyModel::new(pm));
            let (timing, row_writes) = (Timing::pm(pm, core), RowWrites::Program);
            let mut banks = Banks::new(BankSpec { banks, timing, energy, row_writes, buffered: true });
            let mut cells = PmCells::new(pm, config.get::<TlcConfig>(), core);
            let (mut image, mut stats) = (Image::new(), Stats::default());
            let mut buffer = PmBuffer::new(5, 40, 4);
            // What was written last to each line, and for each spill under way what its lines had.
            let mut newest = [[0; WORDS_PER_LINE]; 28];
            let mut spills: Vec<(u32, Cycle, u64, [LineData; LINES_PER_MEDIA_LINE])> = Vec::new();
            let mut now = 0;
            for (number, step) in (1..).zip(steps) {
                banks.advance(now);
                let mut media = Media { image: &mut image, lines: None, cells: &mut cells, stats: &mut stats };
                match step {
                    Step::Write { line, mask } if !buffer.is_full() || buffer.holds(LineAddr(line)) => {
                        let write = Write::line(WriteClass::Data, LineAddr(line), [number; 8]).masked(mask);
                        let place = Place { channel: 0, bank: (line / 4 % 4) as u32, row: 0 };
                        buffer.write(&write, place, &energy, media.stats);
                        overlay(&mut newest[line as usize], &write.data, mask);
                    }
                    Step::Spill if buffer.may_spill(&banks, 0, 0) != 0 => {
                        let may = buffer.may_spill(&banks, 0, 0);
                        let (slot, done) = buffer.spill(may, now, &mut banks, &mut media);
                        let media_line = buffer.lines[slot as usize].content.media_line;
                        let lines = std::array::from_fn(|i| newest[media_line as usize * 4 + i]);
                        spills.push((slot, done, media_line, lines));
                    }
                    Step::Done(at) if !spills.is_empty() => {
                        let (slot, done, media_line, lines) = spills.remove(at.index(spills.len()));
                        now = now.max(done);
                        prop_assert_eq!(buffer.spill_done(slot, &mut banks, &mut media), media_line);
                        for (line, held) in (media_line * 4..).map(LineAddr).zip(lines) {
                            prop_assert_eq!(image.load_line(line), held);
                        }
                    }
                    Step::Write { .. } | Step::Spill | Step::Done(_) => {}
                }
                for (line, newest) in (0..).map(LineAddr).zip(&newest) {
                    let mut content = image.load_line(line);
                    buffer.overlay(line, &mut content);
                    prop_assert_eq!(&content, newest);
                }
            }
        }
    }
}
