//! Writes between their senders and their controllers.

use graven_base::memory::LineAddr;
use graven_base::time::Cycle;

use crate::device::LineSummary;
use crate::request::Write;

/// A write on its way.
#[derive(Clone, Copy, Debug)]
pub struct InTransit {
    /// The request.
    pub write: Write,
    /// When it reaches its controller.
    pub arrives: Cycle,
    /// How many were sent before it.
    pub sequence: u64,
}

/// All that are on their way.
#[derive(Debug, Default)]
pub struct WritesInTransit {
    writes: slab::Slab<InTransit>,
    /// Their lines.
    lines: LineSummary,
    sent: u64,
}

impl WritesInTransit {
    /// Whether none is on its way.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Sends a write, and returns its slot.
    pub fn send(&mut self, write: &Write, arrives: Cycle) -> u32 {
        self.sent += 1;
        self.lines.add(write.line.0);
        self.writes.insert(InTransit { write: *write, arrives, sequence: self.sent }) as u32
    }

    /// Takes out a write that arrives.
    pub fn take(&mut self, slot: u32) -> Write {
        let write = self.writes.remove(slot as usize).write;
        self.lines.remove(write.line.0);
        write
    }

    /// All, in no order.
    pub fn all(&self) -> impl Iterator<Item = &InTransit> {
        self.writes.iter().map(|(_, transit)| transit)
    }

    /// Those of a line, in no order.
    #[inline]
    pub fn of_line(&self, line: LineAddr) -> impl Iterator<Item = &InTransit> {
        let may_have = self.lines.may_have(line.0);
        let all = may_have.then(|| self.all()).into_iter().flatten();
        all.filter(move |transit| transit.write.line == line)
    }

    /// When the last of a line arrives.
    #[inline]
    pub fn last_of_line(&self, line: LineAddr) -> Option<Cycle> {
        self.of_line(line).map(|transit| transit.arrives).max()
    }

    /// The newest of a line.
    pub fn newest_of_line_mut(&mut self, line: LineAddr) -> Option<&mut Write> {
        let all = self.writes.iter_mut().map(|(_, transit)| transit);
        let of_line = all.filter(|transit| transit.write.line == line);
        of_line.max_by_key(|transit| (transit.arrives, transit.sequence)).map(|t| &mut t.write)
    }
}
