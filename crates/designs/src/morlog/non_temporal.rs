//! Non-temporal stores (§III-F): redo data only, and a small region of DRAM that keeps the words from home until
//! their transaction has committed.
//!
//! To make undo data of a store that bypasses the caches, its line would have to be read. So there is none, and
//! the word must not reach its home before the transaction has committed: it is parked in a line of DRAM. What is
//! read of its home line comes with the parked words; what leaves the caches of it leaves without them. All
//! bytes count as dirty, since the old ones are not known.
//!
//! Left open by the paper, and decided here: a line of the region belongs to one home line and one transaction. If
//! none is free, and always with delay-persistence, the store goes through the caches like any other (with
//! delay-persistence others may overwrite a word before its redo data is durable, and nothing could be rolled
//! back). A cached store to a parked word of its own transaction goes to the region, too.

use graven_base::config::Config;
use graven_base::memory::{
    Addr, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WORDS_PER_LINE, WordMask,
};
use graven_base::time::{Cycle, cycles};
use graven_machine::config::{CoreConfig, DramConfig, PmConfig};
use graven_machine::design::{Stall, Store};
use graven_machine::media::overlay;
use graven_machine::request::{self, WriteClass};

use super::buffers::{Place, Redo};
use super::event::Event;
use super::line_state::Owner;
use super::protocol::{Morlog, Port, Write};
use super::table::Holder;

/// A line of the region.
#[derive(Clone, Copy, Debug)]
pub struct Parked {
    owner: Owner,
    line: LineAddr,
    mask: WordMask,
    data: LineData,
}

/// The region.
#[derive(Debug)]
pub struct Parking {
    lines: Vec<Option<Parked>>,
    /// Number of them that belong to a transaction: mostly 0.
    used: usize,
    /// Cycles of reading a line of DRAM.
    read: Cycle,
    /// Cycles of reading a line of PM, for the words of it that are not parked.
    read_home: Cycle,
}

impl Parking {
    pub fn new(lines: u32, config: &Config) -> Parking {
        let mhz = config.get::<CoreConfig>().frequency_mhz;
        Parking {
            lines: vec![None; lines as usize],
            used: 0,
            read: cycles(config.get::<DramConfig>().closed_read_ns(), mhz),
            read_home: cycles(config.get::<PmConfig>().read_ns, mhz),
        }
    }

    /// Number of lines of the region that belong to a transaction.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The line of the region that is a transaction's for a home line.
    fn of(&self, owner: Owner, line: LineAddr) -> Option<usize> {
        if self.used == 0 {
            return None;
        }
        let is = |p: &Parked| p.owner == owner && p.line == line;
        self.lines.iter().position(|p| p.as_ref().is_some_and(is))
    }

    /// Parks a word of a transaction that can be; returns the offset of its place in the region.
    fn put(&mut self, owner: Owner, addr: Addr, value: u64) -> u64 {
        let (line, word) = (addr.line(), addr.word_in_line());
        let free = || self.lines.iter().position(Option::is_none);
        let at = self.of(owner, line).or_else(free).expect("it could be parked");
        self.used += usize::from(self.lines[at].is_none());
        let none = Parked { owner, line, mask: 0, data: [0; WORDS_PER_LINE] };
        let parked = self.lines[at].get_or_insert(none);
        parked.mask |= addr.word_mask();
        parked.data[word] = value;
        at as u64 * LINE_BYTES + word as u64 * WORD_BYTES
    }

    /// Returns true if a transaction has a word parked.
    pub fn holds(&self, owner: Owner, addr: Addr) -> bool {
        let word = addr.word_in_line();
        self.of(owner, addr.line()).is_some_and(|at| {
            self.lines[at].as_ref().is_some_and(|parked| parked.mask >> word & 1 != 0)
        })
    }

    /// The words of a line that are parked, whoever's they are.
    pub fn mask(&self, line: LineAddr) -> WordMask {
        if self.used == 0 {
            return 0;
        }
        let of_line = self.lines.iter().flatten().filter(|p| p.line == line);
        of_line.fold(0, |mask, parked| mask | parked.mask)
    }

    /// Lays the parked words of a line over what its home has.
    fn overlay(&self, line: LineAddr, content: &mut LineData) {
        for parked in self.lines.iter().flatten().filter(|p| p.line == line) {
            overlay(content, &parked.data, parked.mask);
        }
    }
}

impl Morlog {
    /// Returns true if a line of the region is, or could be, a transaction's for a home line.
    pub fn can_park(&self, owner: Owner, line: LineAddr) -> bool {
        let parking = &self.parking;
        !self.delay_persistence
            && (parking.of(owner, line).is_some() || parking.lines.iter().any(Option::is_none))
    }

    /// Parks a word, and makes its redo entry.
    pub fn park(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let Store { tx, addr, new, .. } = *store;
        if !self.has_space_for_first(tx) {
            return self.wait_for_space(port, tx.thread);
        }
        let owner = self.owner(tx);
        let place = port.dram_start().plus(self.parking.put(owner, addr, new));
        let write = request::Write::words(WriteClass::Data, place, &[new]);
        port.write(write, port.bypass_cycles());

        self.running_of(store);
        self.touched(owner, Holder::Parked(addr.line(), tx.thread));
        self.discard_stored_again(port, store);
        self.make_room_for_redo(port);
        self.logs.end(tx.thread).redo += 1;
        port.emit(Event::Parked { addr, value: new });
        let (dirty, place, late, value) = (0xff, Place::Here, false, new);
        self.redo.push(Redo { owner, addr, value, dirty, late, place });
        Stall::None
    }

    /// Reads a line of which words are parked. Returns its content, and the cycles that it takes.
    pub fn read_parked(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
    ) -> Option<(LineData, Cycle)> {
        let mask = self.parking.mask(line);
        if mask == 0 {
            return None;
        }
        let mut content = port.memory_line(line);
        self.parking.overlay(line, &mut content);
        port.emit(Event::ParkedRead);
        let whole = mask == WordMask::MAX;
        Some((content, self.parking.read.max(if whole { 0 } else { self.parking.read_home })))
    }

    /// The transaction has committed, durably: its parked words go home.
    pub fn send_parked_home(&mut self, port: &mut Port<'_>, owner: Owner) {
        for at in 0..self.parking.lines.len() {
            if self.parking.used == 0 {
                return;
            }
            let Some(parked) = self.parking.lines[at].filter(|p| p.owner == owner) else {
                continue;
            };
            let Parked { line, mask, data: content, .. } = parked;
            self.parking.lines[at] = None;
            self.parking.used -= 1;
            port.emit(Event::ParkedGoHome { line });
            let data = self.data_leaves(port, line, mask, false);
            if let Some(table) = &mut self.table {
                table.leaves(Holder::Parked(line, owner.thread), data.number);
            }
            let write = request::Write::line(WriteClass::Data, line, content);
            let write = write.masked(mask);
            port.write_reported(write, Write::Data(data), port.bypass_cycles());
        }
    }
}
