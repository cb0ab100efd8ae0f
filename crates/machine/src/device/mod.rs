//! The PM device behind one channel: banks with row buffers, and the on-PM write-combining buffer.
//!
//! Writes from the controller go into a 256 B line of the on-PM buffer (Silo §III-E) and reach the
//! media when the buffer spills it: a read-modify-write if only part of the line was written, then one
//! programming of the media line. Cells whose bits do not change are not programmed (data-comparison
//! write), and a write that changes nothing is not a media write. What is in the buffer survives a
//! power failure on the device's own energy, whatever the controller's queues do. Row buffers are write-through: a
//! write programs the cells before its bank is free again. Without a buffer each write goes to the
//! media as the 64 B line that it is.

mod line_index;

pub use line_index::LineIndex;

use crate::config::{CoreConfig, DramConfig, PmConfig};
use crate::media::{Effort, PmCells, overlay};
use crate::request::{Place, Write, WriteClass};
use crate::stats::Stats;
use graven_base::codecs::Codings;
use graven_base::memory::{
    Image, LINE_BYTES, LineAddr, LineData, MEDIA_LINE_BYTES, WORDS_PER_LINE, WordMask,
};
use graven_base::stats::Energy;
use graven_base::time::Cycle;
use graven_base::time::cycles;

/// Cache lines of one media line.
pub const LINES_PER_MEDIA_LINE: usize = (MEDIA_LINE_BYTES / LINE_BYTES) as usize;

/// Timing of a memory device, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Reading from an open row.
    pub row_hit: Cycle,
    /// Reading with the row closed.
    pub read: Cycle,
    /// Closing another row first.
    pub precharge: Cycle,
    /// Write recovery of volatile cells; those of PM have the latency of their programming.
    pub write: Cycle,
    /// The data bus, per line.
    pub burst: Cycle,
    /// An access to the on-PM buffer.
    pub buffer: Cycle,
}

impl Timing {
    /// Of the PM.
    pub fn pm(pm: &PmConfig, core: &CoreConfig) -> Timing {
        let t = |ns| cycles(ns, core.frequency_mhz);
        Timing {
            row_hit: t(pm.row_hit_ns),
            read: t(pm.read_ns),
            precharge: t(pm.precharge_ns),
            write: 0,
            burst: t(pm.burst_ns).max(1),
            buffer: t(pm.buffer_ns),
        }
    }

    /// Of the DRAM.
    pub fn dram(dram: &DramConfig, core: &CoreConfig) -> Timing {
        let t = |ns| cycles(ns, core.frequency_mhz);
        Timing {
            row_hit: t(dram.row_hit_ns),
            read: t(dram.read_ns),
            precharge: t(dram.precharge_ns),
            write: t(dram.write_ns),
            burst: t(dram.burst_ns).max(1),
            buffer: 0,
        }
    }
}

/// Energy per bit of each kind of access.
#[derive(Clone, Copy, Debug)]
pub struct EnergyModel {
    row_read: Energy,
    row_write: Energy,
    array_read: Energy,
}

impl EnergyModel {
    /// The configured energies.
    pub fn new(pm: &PmConfig) -> Self {
        Self {
            row_read: Energy::per_bit(pm.row_read_pj_per_bit),
            row_write: Energy::per_bit(pm.row_write_pj_per_bit),
            array_read: Energy::per_bit(pm.array_read_pj_per_bit),
        }
    }
}

/// One bank: when it is free, and the row that its buffer holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bank {
    /// Busy until then.
    pub free_at: Cycle,
    /// The open row.
    pub open_row: Option<u64>,
}

impl Bank {
    /// Cycles to bring a row's line out, and the row is open afterwards.
    fn open(&mut self, row: u64, timing: &Timing, stats: &mut Stats) -> (Cycle, bool) {
        let c = &mut stats.counters;
        let (latency, hit) = match self.open_row {
            Some(open) if open == row => {
                c.row_hits += 1;
                (timing.row_hit, true)
            }
            None => {
                c.row_closed += 1;
                (timing.read, false)
            }
            Some(_) => {
                c.row_conflicts += 1;
                (timing.precharge + timing.read, false)
            }
        };
        self.open_row = Some(row);
        (latency, hit)
    }

    /// Starts a read of a line; returns when the array has delivered it.
    pub fn read(
        &mut self,
        row: u64,
        now: Cycle,
        timing: &Timing,
        energy: &EnergyModel,
        stats: &mut Stats,
    ) -> Cycle {
        assert!(self.free_at <= now, "a busy bank is not given work");
        let (latency, hit) = self.open(row, timing, stats);
        stats.counters.media_reads += 1;
        if !hit {
            stats.read_energy.add_bits(energy.array_read, LINE_BYTES * 8);
        }
        stats.read_energy.add_bits(energy.row_read, LINE_BYTES * 8);
        self.free_at = now + latency;
        self.free_at
    }

    /// Counts the fetch of a media line of which a part is about to be written.
    fn count_fetch(&self, row: u64, energy: &EnergyModel, stats: &mut Stats) {
        stats.counters.media_reads += 1;
        if self.open_row != Some(row) {
            stats.read_energy.add_bits(energy.array_read, MEDIA_LINE_BYTES * 8);
        }
        stats.read_energy.add_bits(energy.row_read, MEDIA_LINE_BYTES * 8);
    }

    /// Starts programming. `fetch`: read the rest of the line first; `programming`: what that takes (if no
    /// cell changes, comparing is all there is to do). Returns when it is done.
    fn write(
        &mut self,
        row: u64,
        now: Cycle,
        fetch: bool,
        programming: Cycle,
        timing: &Timing,
    ) -> Cycle {
        assert!(self.free_at <= now, "a busy bank is not given work");
        let compare = match self.open_row {
            Some(open) if open == row => timing.row_hit,
            None => timing.read,
            Some(_) => timing.precharge + timing.read,
        };
        let latency = match (fetch, programming) {
            (_, 0) => compare,
            (true, _) => compare + programming,
            (false, _) => programming,
        };
        self.open_row = Some(row);
        self.free_at = now + latency;
        self.free_at
    }

    /// Starts a read of DRAM; returns when the array has delivered it.
    pub fn read_volatile(&mut self, row: u64, now: Cycle, timing: &Timing) -> Cycle {
        assert!(self.free_at <= now, "a busy bank is not given work");
        let latency = match self.open_row {
            Some(open) if open == row => timing.row_hit,
            None => timing.read,
            Some(_) => timing.precharge + timing.read,
        };
        self.open_row = Some(row);
        self.free_at = now + latency;
        self.free_at
    }

    /// Starts a write of DRAM, which has no cells to compare.
    pub fn write_volatile(&mut self, row: u64, now: Cycle, timing: &Timing) -> Cycle {
        let latency = match self.open_row {
            Some(open) if open == row => timing.write,
            None => timing.read.saturating_sub(timing.row_hit) + timing.write,
            Some(_) => timing.precharge + timing.read.saturating_sub(timing.row_hit) + timing.write,
        };
        self.open_row = Some(row);
        self.free_at = now + latency;
        self.free_at
    }
}

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
    class: WriteClass,
    effort: Effort,
}

/// What the scheduler looks at, apart from the data, so that it fits into few lines of the host's cache.
#[derive(Clone, Copy, Debug)]
struct Slot {
    bank: u32,
    /// Occupied, and no spill is under way.
    waits: bool,
    last_use: u64,
}

/// The on-PM write-combining buffer of one channel.
#[derive(Clone, Debug)]
pub struct PmBuffer {
    lines: Vec<Option<BufferLine>>,
    slots: Vec<Slot>,
    /// Media line numbers by slot.
    index: LineIndex,
    occupied: usize,
    /// Lines that are being spilled.
    spilling: usize,
    /// Per bank, the lines that are not.
    waiting: Vec<u32>,
    clean_target: usize,
    clock: u64,
}

impl PmBuffer {
    /// A buffer of `lines` lines that starts to spill above `spill_percent` of them, before `banks` banks.
    pub fn new(lines: u32, spill_percent: u32, banks: usize) -> Self {
        let n = lines as usize;
        Self {
            lines: vec![None; n],
            slots: vec![Slot { bank: 0, waits: false, last_use: 0 }; n],
            index: LineIndex::of_empty_places(n),
            occupied: 0,
            spilling: 0,
            waiting: vec![0; banks],
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
                self.waiting[place.bank as usize] += 1;
                self.slots[slot] = Slot { bank: place.bank, waits: true, last_use: 0 };
                self.index.set(slot, media_line);
                self.lines[slot] = Some(BufferLine {
                    media_line,
                    masks: [0; LINES_PER_MEDIA_LINE],
                    data: [[0; WORDS_PER_LINE]; LINES_PER_MEDIA_LINE],
                    codings: [Codings::FPC; LINES_PER_MEDIA_LINE],
                    class,
                    place,
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
        self.slots[slot].last_use = self.clock;
        if entry.spilling.is_some() && entry.again.iter().all(|&m| m == 0) {
            entry.class = class;
        } else {
            entry.class = entry.class.min(class);
        }
        if entry.spilling.is_some() {
            entry.again[part] |= mask;
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
        banks: &mut [Bank],
        avoid: impl Fn(u32) -> bool,
        (media, cells): (&Image, &mut PmCells),
        (timing, energy): (&Timing, &EnergyModel),
        stats: &mut Stats,
    ) -> Option<(u32, Cycle)> {
        if !self.has_too_much() {
            return None;
        }
        let urgent = self.is_full();
        let may = |bank: u32| banks[bank as usize].free_at <= now && (urgent || !avoid(bank));
        let some = |(bank, &lines): (usize, &u32)| lines > 0 && may(bank as u32);
        if !self.waiting.iter().enumerate().any(some) {
            return None;
        }
        let (slot, _) = self
            .slots
            .iter()
            .enumerate()
            .filter(|(_, s)| s.waits && may(s.bank))
            .min_by_key(|(_, s)| s.last_use)?;
        self.slots[slot].waits = false;
        self.waiting[self.slots[slot].bank as usize] -= 1;
        self.spilling += 1;
        let entry = self.lines[slot].as_mut().expect("a waiting slot is occupied");
        let first = LineAddr(entry.media_line * LINES_PER_MEDIA_LINE as u64);
        let partial = entry.masks.iter().any(|&m| m != WordMask::MAX);
        // Lines that nobody wrote are not looked at: they would only be fetched into the host's caches.
        let written = (0..LINES_PER_MEDIA_LINE).filter(|&i| entry.masks[i] != 0);
        let program = |i: usize| {
            let line = LineAddr(first.0 + i as u64);
            cells.program(media, line, entry.masks[i], &entry.data[i], &entry.codings[i])
        };
        let effort = written.map(program).fold(Effort::default(), Effort::and);
        let (masks, data, class) = (entry.masks, entry.data, entry.class);
        entry.spilling = Some(Spill { masks, data, class, effort });
        stats.counters.pm_buffer_spills += 1;
        let bank = &mut banks[entry.place.bank as usize];
        if partial {
            stats.counters.pm_buffer_read_modify_writes += 1;
            bank.count_fetch(entry.place.row, energy, stats);
        }
        let done = bank.write(entry.place.row, now, partial, effort.latency, timing);
        Some((slot as u32, done))
    }

    /// When a bank that a spill waits for becomes free: the earliest, if the buffer has too much.
    pub fn spill_wake(&self, banks: &[Bank]) -> Option<Cycle> {
        if !self.has_too_much() {
            return None;
        }
        let waited_for = banks.iter().zip(&self.waiting).filter(|(_, lines)| **lines > 0);
        waited_for.map(|(bank, _)| bank.free_at).min()
    }

    /// Whether more lines wait than may stay.
    fn has_too_much(&self) -> bool {
        self.occupied - self.spilling > self.clean_target
    }

    /// A spill has reached the cells: updates the media and frees the line, unless it was written
    /// again meanwhile. Returns the number of the media line.
    pub fn spill_done(&mut self, slot: u32, media: &mut Image, stats: &mut Stats) -> u64 {
        let entry = self.lines[slot as usize].as_mut().expect("a spilling slot is occupied");
        let media_line = entry.media_line;
        let first = media_line * LINES_PER_MEDIA_LINE as u64;
        let Spill { masks, data, class, effort } = entry.spilling.take().expect("it was under way");
        programmed(media, LineAddr(first), (&masks, &data), class, &effort, stats);
        self.spilling -= 1;
        if entry.again.iter().all(|&m| m == 0) {
            self.lines[slot as usize] = None;
            self.index.set(slot as usize, LineIndex::EMPTY);
            self.occupied -= 1;
        } else {
            entry.masks = std::mem::take(&mut entry.again);
            let slot = &mut self.slots[slot as usize];
            slot.waits = true;
            self.waiting[slot.bank as usize] += 1;
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

/// Up to one media line has been programmed: the cells have the content, and what it took is counted.
fn programmed(
    media: &mut Image,
    first: LineAddr,
    (masks, data): (&[WordMask], &[LineData]),
    class: WriteClass,
    effort: &Effort,
    stats: &mut Stats,
) {
    let mut words = 0;
    for (i, (&mask, data)) in masks.iter().zip(data).enumerate().filter(|(_, (m, _))| **m != 0) {
        words += u64::from(mask.count_ones());
        let line = LineAddr(first.0 + i as u64);
        let mut content = media.load_line(line);
        let old = content;
        overlay(&mut content, data, mask);
        if content != old {
            media.store_line(line, &content);
        }
    }
    let c = &mut stats.counters;
    if effort.cells == 0 {
        c.media_writes_suppressed += 1;
        return;
    }
    c.media_write_requests += 1;
    match class {
        WriteClass::Data => c.media_write_requests_data += 1,
        WriteClass::Log => c.media_write_requests_log += 1,
        WriteClass::Metadata => c.media_write_requests_metadata += 1,
        WriteClass::Gc => c.media_write_requests_gc += 1,
    }
    if matches!(class, WriteClass::Log | WriteClass::Metadata) {
        c.log_bits_coded += effort.coded_bits;
    }
    c.media_bytes_written += words * 8;
    c.media_bits_programmed += effort.bits;
    c.media_cells_programmed += effort.cells;
    stats.write_energy = stats.write_energy.and(effort.energy);
    stats.wear.record(first);
}

/// Starts an unbuffered write of one line; returns when the cells have it, and what that takes.
pub fn start_direct_write(
    bank: &mut Bank,
    row: u64,
    now: Cycle,
    write: &Write,
    (media, cells): (&Image, &mut PmCells),
    timing: &Timing,
) -> (Cycle, Effort) {
    let effort = cells.program(media, write.line, write.mask, &write.data, &write.codings);
    (bank.write(row, now, false, effort.latency, timing), effort)
}

/// An unbuffered write has reached the cells.
pub fn finish_direct_write(
    media: &mut Image,
    write: &Write,
    effort: &Effort,
    energy: &EnergyModel,
    stats: &mut Stats,
) {
    let Write { line, mask, class, .. } = *write;
    stats.write_energy.add_bits(energy.row_write, u64::from(mask.count_ones()) * 64);
    programmed(media, line, (&[mask], std::slice::from_ref(&write.data)), class, effort, stats);
}
