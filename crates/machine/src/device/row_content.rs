//! Content that writes have left in a row buffer, where the cells are programmed when another row
//! is opened.

use graven_base::codecs::Codings;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::time::Cycle;

use super::LINES_PER_MEDIA_LINE;
use super::programming::{Block, Media, programmed};
use crate::media::overlay;
use crate::request::WriteClass;

/// Neighbouring lines that were written together: one line, or a media line of the on-PM buffer.
#[derive(Clone, Debug)]
struct Written {
    first: LineAddr,
    masks: [WordMask; LINES_PER_MEDIA_LINE],
    data: [LineData; LINES_PER_MEDIA_LINE],
    codings: [Codings; LINES_PER_MEDIA_LINE],
    class: WriteClass,
}

/// The written parts of one open row.
#[derive(Clone, Debug, Default)]
pub(super) struct RowContent {
    written: Vec<Written>,
}

impl RowContent {
    /// Returns true if the row has content that its cells do not have.
    pub fn is_dirty(&self) -> bool {
        !self.written.is_empty()
    }

    /// Lays a write over the row.
    pub fn write(&mut self, block: &Block<'_>) {
        let at = self.written.iter().position(|w| w.first == block.first);
        let at = at.unwrap_or_else(|| {
            self.written.push(Written {
                first: block.first,
                masks: [0; LINES_PER_MEDIA_LINE],
                data: [[0; _]; LINES_PER_MEDIA_LINE],
                codings: [Codings::FPC; LINES_PER_MEDIA_LINE],
                class: block.class,
            });
            self.written.len() - 1
        });
        let written = &mut self.written[at];
        written.class = written.class.min(block.class);
        for (i, &mask) in block.masks.iter().enumerate() {
            overlay(&mut written.data[i], &block.data[i], mask);
            written.codings[i].overlay(&block.codings[i], mask);
            written.masks[i] |= mask;
        }
    }

    /// The row closes: programs its cells, and is clean afterwards. Returns how long the slowest of them takes.
    pub fn program(&mut self, media: &mut Media<'_>) -> Cycle {
        let mut latency = 0;
        for w in &self.written {
            let block = Block {
                first: w.first,
                masks: &w.masks,
                data: &w.data,
                codings: &w.codings,
                class: w.class,
            };
            let effort = block.program(media);
            latency = latency.max(effort.latency);
            programmed(&block, &effort, media);
        }
        self.written.clear();
        latency
    }

    /// Lays the written words of a line over `content`.
    pub fn overlay(&self, line: LineAddr, content: &mut LineData) {
        for (of, mask, data) in self.lines() {
            if of == line {
                overlay(content, data, mask);
            }
        }
    }

    /// Written lines, in the order of their first writes.
    pub fn lines(&self) -> impl Iterator<Item = (LineAddr, WordMask, &LineData)> {
        self.written.iter().flat_map(|w| {
            let lines =
                w.masks.iter().zip(&w.data).enumerate().filter(|(_, (mask, _))| **mask != 0);
            lines.map(|(i, (&mask, data))| (LineAddr(w.first.0 + i as u64), mask, data))
        })
    }
}
