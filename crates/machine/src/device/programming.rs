//! Writes that reach the cells: from the on-PM buffer, or, without one, as the lines that they are.

use graven_base::memory::{Image, LineAddr, LineData, WordMask};
use graven_base::time::Cycle;

use super::bank::Bank;
use super::timing::{EnergyModel, Timing};
use crate::media::{Effort, PmCells, overlay};
use crate::request::{Write, WriteClass};
use crate::stats::Stats;

/// Up to one media line has been programmed: the cells have the content, and what it took is counted.
pub(super) fn programmed(
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
