//! Writes that reach the cells: from the on-PM buffer, from a row buffer, or as the lines that they are.

use graven_base::codecs::Codings;
use graven_base::memory::{Image, LineAddr, LineData, LineStore, WordMask, words_in};

use crate::media::{Effort, PmCells, overlay};
use crate::request::{Write, WriteClass};
use crate::stats::Stats;

/// State that a PM device changes: the content of its cells, their states, and statistics.
pub struct Media<'a> {
    /// Content of the cells.
    pub image: &'a mut Image,
    /// Content of the cells in place of the image, if it is kept line by line.
    pub lines: Option<&'a mut LineStore>,
    /// The cells themselves.
    pub cells: &'a mut PmCells,
    /// Statistics.
    pub stats: &'a mut Stats,
}

impl Media<'_> {
    /// The content of a line's cells before a write to them: the host brings the page to be written, not first a page of zeros.
    #[inline]
    fn content_before_write(&mut self, line: LineAddr) -> LineData {
        match &self.lines {
            None => self.image.written_line_mut(line).copied().unwrap_or_default(),
            Some(lines) => lines.load_line(line),
        }
    }

    /// Lays words over what a line's cells hold.
    #[inline]
    fn lay(&mut self, line: LineAddr, mask: WordMask, data: &LineData) {
        let written = match &mut self.lines {
            None => self.image.written_line_mut(line),
            Some(lines) => lines.written_line_mut(line),
        };
        match written {
            Some(held) => overlay(held, data, mask),
            // What stays zero takes no host memory.
            None if words_in(mask).all(|word| data[word] == 0) => {}
            None => overlay(self.line_mut(line), data, mask),
        }
    }

    fn line_mut(&mut self, line: LineAddr) -> &mut LineData {
        match &mut self.lines {
            None => self.image.line_mut(line),
            Some(lines) => lines.line_mut(line),
        }
    }
}

/// Neighbouring lines that are written at once: one line, or up to a media line.
pub struct Block<'a> {
    /// The first line.
    pub first: LineAddr,
    /// The written words of each line.
    pub masks: &'a [WordMask],
    /// Their content.
    pub data: &'a [LineData],
    /// Codings of the lines.
    pub codings: &'a [Codings],
    /// Class of the write.
    pub class: WriteClass,
}

impl<'a> Block<'a> {
    /// Makes a block of one line.
    pub fn of(write: &'a Write) -> Block<'a> {
        use std::slice::from_ref;
        Block {
            first: write.line,
            masks: from_ref(&write.mask),
            data: from_ref(&write.data),
            codings: from_ref(&write.codings),
            class: write.class,
        }
    }

    /// Begins to program the cells, and returns what that takes.
    pub(super) fn program(&self, media: &mut Media<'_>) -> Effort {
        // It will be counted when it is done.
        media.stats.wear.prefetch(self.first);
        // Lines that nobody wrote are not looked at: they would only be fetched into the host's caches.
        let mut effort = Effort::default();
        for (i, &mask) in self.masks.iter().enumerate().filter(|(_, mask)| **mask != 0) {
            let line = LineAddr(self.first.0 + i as u64);
            let (data, codings) = (&self.data[i], &self.codings[i]);
            let old = media.content_before_write(line);
            effort = effort.and(media.cells.program(&old, line, mask, data, codings));
        }
        effort
    }

    /// Words that are written.
    pub(super) fn words(&self) -> u64 {
        self.masks.iter().map(|mask| u64::from(mask.count_ones())).sum()
    }
}

/// A block has been programmed: the cells have the content, and what it took is counted.
pub(super) fn programmed(block: &Block<'_>, effort: &Effort, media: &mut Media<'_>) {
    for (i, (&mask, data)) in block.masks.iter().zip(block.data).enumerate() {
        if mask == 0 {
            continue;
        }
        let line = LineAddr(block.first.0 + i as u64);
        media.lay(line, mask, data);
    }
    let stats = &mut *media.stats;
    let c = &mut stats.counters;
    if effort.cells == 0 {
        c.media_writes_suppressed += 1;
        return;
    }
    c.media_write_requests += 1;
    match block.class {
        WriteClass::Data => c.media_write_requests_data += 1,
        WriteClass::Log => c.media_write_requests_log += 1,
        WriteClass::Metadata => c.media_write_requests_metadata += 1,
        WriteClass::Gc => c.media_write_requests_gc += 1,
    }
    if matches!(block.class, WriteClass::Log | WriteClass::Metadata) {
        c.log_bits_coded += effort.coded_bits;
    }
    c.media_bytes_written += block.words() * 8;
    c.media_bits_programmed += effort.bits;
    c.media_cells_programmed += effort.cells;
    stats.write_energy = stats.write_energy.and(effort.energy);
    stats.wear.record(block.first);
}
