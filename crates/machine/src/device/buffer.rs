//! The on-PM write-combining buffer of a channel.

use graven_base::codecs::Codings;
use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_base::time::Cycle;

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
    /// Number of the media line (address / 256).
    media_line: u64,
    masks: [WordMask; LINES_PER_MEDIA_LINE],
    data: [LineData; LINES_PER_MEDIA_LINE],
    codings: [Codings; LINES_PER_MEDIA_LINE],
    class: WriteClass,
    place: Place,
    /// The number of the newest write.
    last_write: u64,
    /// What is being programmed, if a spill is under way.
    spilling: Option<Spill>,
    /// Words written since the spill began.
    again: [WordMask; LINES_PER_MEDIA_LINE],
}

/// A line that is being spilled.
#[derive(Clone, Debug)]
struct Spill {
    masks: [WordMask; LINES_PER_MEDIA_LINE],
    data: [LineData; LINES_PER_MEDIA_LINE],
    codings: [Codings; LINES_PER_MEDIA_LINE],
    class: WriteClass,
    effort: Option<Effort>,
}

impl Spill {
    /// The lines that are spilled, those of a media line.
    fn block(&self, media_line: u64) -> Block<'_> {
        let first = LineAddr(media_line * LINES_PER_MEDIA_LINE as u64);
        let Spill { masks, data, codings, class, .. } = self;
        Block { first, masks, data, codings, class: *class }
    }
}

/// The on-PM write-combining buffer of one channel.
#[derive(Clone, Debug)]
pub struct PmBuffer {
    lines: Vec<Option<BufferLine>>,
    /// Media line numbers by slot.
    index: LineIndex,
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
        Self {
            lines: vec![None; n],
            index: LineIndex::of_empty_places(n),
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
        self.index.position(media_line)
    }

    /// Whether the media line of a line has a slot: then a write to it is taken even when all are taken.
    pub fn holds(&self, line: LineAddr) -> bool {
        self.find(line).is_some()
    }

    /// Whether every slot is taken.
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
            None => {
                let slot = self.index.empty_position();
                let slot = slot.expect("a full buffer is given what it holds");
                let media_line = line.0 / LINES_PER_MEDIA_LINE as u64;
                self.occupied += 1;
                self.waiting.add(slot as u32, place.bank, self.clock);
                self.index.set(slot, media_line);
                self.lines[slot] = Some(BufferLine {
                    media_line,
                    masks: [0; LINES_PER_MEDIA_LINE],
                    data: [[0; WORDS_PER_LINE]; LINES_PER_MEDIA_LINE],
                    codings: [Codings::FPC; LINES_PER_MEDIA_LINE],
                    class,
                    place,
                    last_write: self.clock,
                    spilling: None,
                    again: [0; LINES_PER_MEDIA_LINE],
                });
                slot
            }
        };
        let entry = self.lines[slot].as_mut().expect("an indexed slot is occupied");
        overlay(&mut entry.data[part], &write.data, mask);
        entry.codings[part].overlay(&write.codings, mask);
        entry.masks[part] |= mask;
        let spills = entry.spilling.is_some();
        if spills && entry.again.iter().all(|&m| m == 0) {
            entry.class = class;
        } else {
            entry.class = entry.class.min(class);
        }
        if spills {
            entry.again[part] |= mask;
        }
        entry.last_write = self.clock;
        if !spills {
            self.waiting.written(slot as u32, self.clock);
        }
    }

    /// Lays the buffered words of a line over `content`; returns which words the buffer had.
    pub fn overlay(&self, line: LineAddr, content: &mut LineData) -> WordMask {
        let Some(slot) = self.find(line) else { return 0 };
        let entry = self.lines[slot].as_ref().expect("an indexed slot is occupied");
        let part = line.0 as usize % LINES_PER_MEDIA_LINE;
        overlay(content, &entry.data[part], entry.masks[part]);
        entry.masks[part]
    }

    /// Which words of a line the buffer has.
    pub fn mask(&self, line: LineAddr) -> WordMask {
        self.find(line).map_or(0, |slot| {
            let entry = self.lines[slot].as_ref().expect("an indexed slot is occupied");
            entry.masks[line.0 as usize % LINES_PER_MEDIA_LINE]
        })
    }

    /// Starts to spill the least recently written line whose bank is free, if the buffer holds more
    /// than it should. `avoid(bank)`: a read waits for that bank. Returns the slot and when it is done.
    pub fn spill(
        &mut self,
        now: Cycle,
        banks: &mut Banks,
        avoid: impl Fn(u32) -> bool,
        media: &mut Media<'_>,
    ) -> Option<(u32, Cycle)> {
        if !self.has_too_much() {
            return None;
        }
        let urgent = self.is_full();
        let may = |bank: u32| banks.all()[bank as usize].free_at <= now && (urgent || !avoid(bank));
        let waiting = (0..banks.all().len()).filter(|&bank| may(bank as u32));
        let (_, slot) = waiting.filter_map(|bank| self.waiting.oldest(bank)).min()?;
        self.waiting.remove(slot);
        let slot = slot as usize;
        self.spilling += 1;
        let entry = self.lines[slot].as_mut().expect("a waiting slot is occupied");
        let partial = entry.masks.iter().any(|&m| m != WordMask::MAX);
        let stats = &mut media.stats.counters;
        stats.pm_buffer_spills += 1;
        stats.pm_buffer_read_modify_writes += u64::from(partial);
        let (masks, data, codings, class) = (entry.masks, entry.data, entry.codings, entry.class);
        let mut spill = Spill { masks, data, codings, class, effort: None };
        let block = spill.block(entry.media_line);
        let begun = banks.begin_write(entry.place, now, &block, partial, media);
        spill.effort = begun.effort;
        entry.spilling = Some(spill);
        Some((slot as u32, begun.done))
    }

    /// When a bank that a spill waits for becomes free: the earliest, if the buffer has too much.
    pub fn spill_wake(&self, banks: &Banks) -> Option<Cycle> {
        if !self.has_too_much() {
            return None;
        }
        let waited_for = banks.all().iter().zip(self.waiting.by_bank()).filter(|&(_, waits)| waits);
        waited_for.map(|(bank, _)| bank.free_at).min()
    }

    /// Whether more lines wait than may stay.
    fn has_too_much(&self) -> bool {
        self.occupied - self.spilling > self.clean_target
    }

    /// A spill has reached the cells, or the row buffer: frees the line, unless it was written
    /// again meanwhile. Returns the number of the media line.
    pub fn spill_done(&mut self, slot: u32, banks: &mut Banks, media: &mut Media<'_>) -> u64 {
        let entry = self.lines[slot as usize].as_mut().expect("a spilling slot is occupied");
        let media_line = entry.media_line;
        let spill = entry.spilling.take().expect("it was under way");
        banks.finish_write(entry.place.bank, &spill.block(media_line), spill.effort, media);
        self.spilling -= 1;
        if entry.again.iter().all(|&m| m == 0) {
            self.lines[slot as usize] = None;
            self.index.set(slot as usize, LineIndex::EMPTY);
            self.occupied -= 1;
        } else {
            entry.masks = std::mem::take(&mut entry.again);
            self.waiting.add(slot, entry.place.bank, entry.last_write);
        }
        media_line
    }

    /// Everything in the buffer, in a fixed order: what a power failure finds there.
    pub fn contents(&self) -> impl Iterator<Item = (LineAddr, WordMask, &LineData)> {
        self.lines.iter().flatten().flat_map(|entry| {
            (0..LINES_PER_MEDIA_LINE).filter(|&i| entry.masks[i] != 0).map(|i| {
                let line = LineAddr(entry.media_line * LINES_PER_MEDIA_LINE as u64 + i as u64);
                (line, entry.masks[i], &entry.data[i])
            })
        })
    }
}
