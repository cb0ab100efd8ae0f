//! State that all channels share: the clock, statistics, the cells, durability, and the notices to
//! the machine.

use std::collections::VecDeque;

use graven_base::memory::{Image, LineAddr, LineData, LineStore};
use graven_base::thread_set::ThreadSet;
use graven_base::time::Cycle;

use super::adversary::Adversary;
use super::durability::Durability;
use crate::clock::EventQueue;
use crate::device::Media;
use crate::media::PmCells;
use crate::request::{Place, Read, Token, Write, WriteClass};
use crate::stats::Stats;

/// A notice of the memory to the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A write that carried a token is durable.
    Persisted(Token),
    /// A write that fences of these threads wait for is durable.
    DurableForFences(ThreadSet),
    /// A read is complete.
    ReadDone(Read, Place),
}

/// Everything that channels share.
pub struct Shared {
    /// The current cycle.
    pub now: Cycle,
    /// Future events.
    pub events: EventQueue,
    /// Statistics.
    pub stats: Stats,
    /// Content of the PM cells.
    pub media: Image,
    /// Content of the PM cells in place of the image, which stays empty: for those who drive memory with requests that are far
    /// apart, and look at no image of it.
    pub lines: Option<LineStore>,
    /// The cells themselves.
    pub cells: PmCells,
    /// Notices still to be delivered to the machine, oldest first.
    pub notices: VecDeque<Notice>,
    /// Durability of writes.
    pub durability: Durability,
    /// Makes the choices that the rules leave open, if not the scheduler.
    pub adversary: Option<Adversary>,
}

impl Shared {
    /// State that the devices change.
    pub(super) fn media(&mut self) -> Media<'_> {
        Media {
            image: &mut self.media,
            lines: self.lines.as_mut(),
            cells: &mut self.cells,
            stats: &mut self.stats,
        }
    }

    /// The content of a line of PM cells.
    pub(super) fn cell_content(&self, line: LineAddr) -> LineData {
        self.lines
            .as_ref()
            .map_or_else(|| self.media.load_line(line), |lines| lines.load_line(line))
    }

    /// A write has become durable that arrived at its controller then.
    pub(super) fn durable(&mut self, write: &Write, arrived: Cycle) {
        if write.class == WriteClass::Log {
            self.stats.log_persist_latency.record(self.now - arrived);
        }
        if let Some(timeline) = &mut self.stats.timeline {
            timeline.durable(write.class, write.line, arrived, self.now);
        }
        if write.token != 0 {
            self.notices.push_back(Notice::Persisted(write.token));
        }
        if write.fences != 0 {
            self.notices.push_back(Notice::DurableForFences(write.fences));
        }
        self.durability.cross(write);
    }
}
