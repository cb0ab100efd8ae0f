//! Writes between their senders and their controllers.

use graven_base::memory::LineAddr;
use graven_base::time::Cycle;

use crate::device::LineSummary;
use crate::request::Write;

/// A write on its way.
#[derive(Clone, Copy, Debug)]
pub struct InTransit {
    /// True while it is under way.
    is_under_way: bool,
    /// The request.
    pub write: Write,
    /// When it reaches its controller.
    pub arrives: Cycle,
    /// Number of writes sent before it.
    pub sequence: u64,
}

/// All that are on their way.
#[derive(Debug, Default)]
pub struct WritesInTransit {
    /// By slot; of those that have arrived, what they were.
    writes: Vec<InTransit>,
    /// Slots of those that have arrived.
    free: Vec<u32>,
    /// Their lines.
    lines: LineSummary,
    sent: u64,
}

impl WritesInTransit {
    /// Returns true if no write is on its way.
    pub fn is_empty(&self) -> bool {
        self.writes.len() == self.free.len()
    }

    /// Sends a write, and returns its slot.
    pub fn send(&mut self, write: &Write, arrives: Cycle) -> u32 {
        self.sent += 1;
        self.lines.add(write.line.0);
        let sequence = self.sent;
        let transit = InTransit { is_under_way: true, write: *write, arrives, sequence };
        match self.free.pop() {
            Some(slot) => {
                self.writes[slot as usize] = transit;
                slot
            }
            None => {
                self.writes.push(transit);
                self.writes.len() as u32 - 1
            }
        }
    }

    /// A write arrives, and is in its slot until another is sent.
    pub fn arrive(&mut self, slot: u32) {
        let transit = &mut self.writes[slot as usize];
        assert!(transit.is_under_way, "a write arrives once");
        transit.is_under_way = false;
        self.free.push(slot);
        self.lines.remove(transit.write.line.0);
    }

    /// The write in a slot, on its way or arrived last of those that were in it.
    #[inline]
    pub fn get(&self, slot: u32) -> &Write {
        &self.writes[slot as usize].write
    }

    /// All, in no order.
    pub fn all(&self) -> impl Iterator<Item = &InTransit> {
        self.writes.iter().filter(|transit| transit.is_under_way)
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
        if !self.lines.may_have(line.0) {
            return None;
        }
        self.of_line(line).map(|transit| transit.arrives).max()
    }

    /// The newest of a line.
    pub fn newest_of_line_mut(&mut self, line: LineAddr) -> Option<&mut Write> {
        let is_meant = |t: &&mut InTransit| t.is_under_way && t.write.line == line;
        let of_line = self.writes.iter_mut().filter(is_meant);
        of_line.max_by_key(|transit| (transit.arrives, transit.sequence)).map(|t| &mut t.write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::WriteClass;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn those_on_their_way_are_those_of_a_list(
            steps in prop::collection::vec((any::<bool>(), 0..4u64, 0..9u64, any::<prop::sample::Index>()), 0..80),
        ) {
            let (mut transit, mut list) = (WritesInTransit::default(), Vec::<(u32, Write, Cycle)>::new());
            for (number, (is_sent, line, arrives, at)) in (1..).zip(steps) {
                if is_sent {
                    let write = Write::line(WriteClass::Data, LineAddr(line), [number; 8]);
                    let slot = transit.send(&write, arrives);
                    prop_assert!(list.iter().all(|&(other, ..)| other != slot));
                    list.push((slot, write, arrives));
                } else if !list.is_empty() {
                    let (slot, write, _) = list.remove(at.index(list.len()));
                    transit.arrive(slot);
                    prop_assert_eq!(transit.get(slot).data, write.data);
                }
                prop_assert_eq!(transit.is_empty(), list.is_empty());
                let sorted = |mut data: Vec<u64>| {
                    data.sort_unstable();
                    data
                };
                let all = sorted(transit.all().map(|t| t.write.data[0]).collect());
                prop_assert_eq!(all, sorted(list.iter().map(|(_, write, _)| write.data[0]).collect()));
                for line in (0..4).map(LineAddr) {
                    let of_line = list.iter().filter(|(_, write, _)| write.line == line);
                    let last = of_line.clone().map(|&(_, _, arrives)| arrives).max();
                    prop_assert_eq!(transit.last_of_line(line), last);
                    // Writes are numbered in the order in which they were sent.
                    let newest = of_line.max_by_key(|(_, write, arrives)| (*arrives, write.data[0]));
                    let found = transit.newest_of_line_mut(line).map(|write| write.data[0]);
                    prop_assert_eq!(found, newest.map(|(_, write, _)| write.data[0]));
                }
            }
        }
    }
}
