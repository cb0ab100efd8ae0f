//! Requests to memory.

use crate::config::{ControllerConfig, Interleave, PmConfig};
use crate::gates::{GateNumber, Gates};
use graven_base::codecs::Codings;
use graven_base::config::Config;
use graven_base::memory::{
    Addr, LINE_BYTES, LineAddr, LineData, MEDIA_LINE_BYTES, WORD_BYTES, WORDS_PER_LINE, WordMask,
};
use graven_base::thread_set::ThreadSet;
use graven_base::time::Cycle;

/// Purpose of a write, by which statistics are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteClass {
    /// Evicted or written-back lines, in-place updates.
    Data,
    /// Log entries and records.
    Log,
    /// Headers, commit records, tables, pointers.
    Metadata,
    /// Garbage collection, checkpointing.
    Gc,
}

/// A number by which a design recognises its own request; 0: it does not want to hear of it.
pub type Token = u64;

/// Position in the machine's single order of writes that others may wait for; 0: none.
pub type OrderSeq = u64;

/// A place in the order of writes that others may wait for, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteOrder(OrderSeq);

impl WriteOrder {
    /// No place: what waits for it waits for nothing.
    pub const NONE: WriteOrder = WriteOrder(0);

    pub(crate) const fn from_number(number: OrderSeq) -> WriteOrder {
        WriteOrder(number)
    }

    pub(crate) const fn number(self) -> OrderSeq {
        self.0
    }

    /// Returns true if it stands for no place.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl std::fmt::Display for WriteOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A gate that a design opens, or none; writes wait behind it ([`Write::behind`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Gate(GateNumber);

impl Gate {
    /// No gate: what waits behind it waits for nothing.
    pub const NONE: Gate = Gate(0);

    pub(crate) const fn from_number(number: GateNumber) -> Gate {
        Gate(number)
    }

    pub(crate) const fn number(self) -> GateNumber {
        self.0
    }
}

/// A write of up to one line.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Class of the write.
    pub class: WriteClass,
    /// The line.
    pub line: LineAddr,
    /// Words that are written.
    pub mask: WordMask,
    /// Their new content; words outside the mask are ignored.
    pub data: LineData,
    /// Codings of log data, if the module knows DLDC.
    pub codings: Codings,
    /// Reported to the design's `on_durable` when the write is durable.
    pub(crate) token: Token,
    /// Place among ordered writes, from [`super::MemorySystem::order`]; 0 if none waits for it.
    pub(crate) order: OrderSeq,
    /// Ordered write up to which all must be durable before it may be; 0: none.
    pub(crate) after: OrderSeq,
    /// Gate that must be open before it may be durable; 0: none.
    pub(crate) gate: GateNumber,
    /// When it reached its controller, which notes it.
    pub(crate) arrived: Cycle,
    /// Threads whose fences wait for it; bit i is thread i.
    pub(crate) fences: ThreadSet,
}

impl Write {
    /// A whole line, unordered and unreported.
    #[inline]
    pub const fn line(class: WriteClass, line: LineAddr, data: LineData) -> Write {
        Write {
            class,
            line,
            mask: WordMask::MAX,
            data,
            codings: Codings::FPC,
            token: 0,
            order: 0,
            after: 0,
            gate: 0,
            arrived: 0,
            fences: 0,
        }
    }

    /// Restricts the write to these words.
    #[must_use]
    #[inline]
    pub const fn masked(mut self, mask: WordMask) -> Write {
        self.mask = mask;
        self
    }

    /// Returns the write, with log data to be coded in these ways.
    #[must_use]
    #[inline]
    pub const fn coded(mut self, codings: Codings) -> Write {
        self.codings = codings;
        self
    }

    /// Returns the write, with a place among the ordered writes.
    #[must_use]
    #[inline]
    pub const fn ordered(mut self, order: WriteOrder) -> Write {
        self.order = order.0;
        self
    }

    /// Returns the write, durable only after every ordered write up to this one.
    #[must_use]
    #[inline]
    pub const fn after(mut self, after: WriteOrder) -> Write {
        self.after = after.0;
        self
    }

    /// Returns the write, durable only after this gate is open.
    #[must_use]
    #[inline]
    pub const fn behind(mut self, gate: Gate) -> Write {
        self.gate = gate.0;
        self
    }

    /// Consecutive words within one line, unordered and unreported.
    ///
    /// # Panics
    /// If the address is not that of a word, or the words cross the end of the line.
    #[inline]
    pub fn words(class: WriteClass, addr: Addr, words: &[u64]) -> Write {
        let first = addr.word_in_line();
        assert!(
            addr.0.is_multiple_of(WORD_BYTES) && first + words.len() <= WORDS_PER_LINE,
            "a write of {} words at {addr}: words have addresses that are multiples of {WORD_BYTES}, and a write ends with its \
             line of {WORDS_PER_LINE} words",
            words.len()
        );
        let mut data = [0; WORDS_PER_LINE];
        data[first..first + words.len()].copy_from_slice(words);
        let mask = (((1u16 << words.len()) - 1) << first) as WordMask;
        Write::line(class, addr.line(), data).masked(mask)
    }
}

/// Who reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPurpose {
    /// A cache miss: the fill with this slot.
    Fill(u32),
    /// The design, by its token.
    Design(Token),
    /// A request trace.
    Trace,
}

/// A read of one line, on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The line.
    pub line: LineAddr,
    /// Who wants it.
    pub purpose: ReadPurpose,
    /// When it arrived at the controller.
    pub arrived: Cycle,
}

/// Place of a line in the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the channel.
    pub channel: u32,
    /// Number of the bank in its channel, over all ranks.
    pub bank: u32,
    /// Row of the bank.
    pub row: u64,
}

/// Mapping of addresses to channels and banks.
#[derive(Clone, Copy, Debug)]
pub struct Mapping {
    /// Consecutive bytes that stay together.
    pub unit_bytes: u64,
    /// Number of channels.
    pub channels: u64,
    /// Banks per channel.
    pub banks: u64,
    /// Bytes of a row.
    pub row_bytes: u64,
}

impl Mapping {
    /// Mapping of a configuration's PM.
    pub fn of(config: &Config) -> Mapping {
        let (controller, pm) = (config.get::<ControllerConfig>(), config.get::<PmConfig>());
        Mapping {
            unit_bytes: Mapping::unit(controller, pm.buffer_lines > 0),
            channels: controller.channels.into(),
            banks: u64::from(pm.ranks) * u64::from(pm.banks),
            row_bytes: pm.row_bytes.0,
        }
    }

    /// Smallest unit of interleaving: a media line where the device has an on-PM buffer of such
    /// lines, a cache line otherwise.
    pub const fn line_unit(buffered: bool) -> u64 {
        if buffered { MEDIA_LINE_BYTES } else { LINE_BYTES }
    }

    /// Consecutive bytes that stay together in a device with or without a buffer.
    pub fn unit(controller: &ControllerConfig, buffered: bool) -> u64 {
        match controller.interleave {
            Interleave::Page => controller.page_bytes.0,
            Interleave::Line => Mapping::line_unit(buffered),
        }
    }

    /// The line with this number among those of a bank, counted in the order of their addresses.
    pub fn line_of_bank(&self, channel: u32, bank: u32, number: u64) -> LineAddr {
        let lines = self.unit_bytes / LINE_BYTES;
        let (unit, line) = (number / lines, number % lines);
        let unit = (unit * self.banks + u64::from(bank)) * self.channels + u64::from(channel);
        LineAddr(unit * lines + line)
    }

    /// A line's number among those of its bank.
    pub fn number_in_bank(&self, line: LineAddr) -> u64 {
        let lines = self.unit_bytes / LINE_BYTES;
        line.0 / lines / self.channels / self.banks * lines + line.0 % lines
    }

    /// Channel of a line: units go round the channels.
    #[inline]
    pub fn channel(&self, line: LineAddr) -> usize {
        match self.channels {
            1 => 0,
            channels => divide(divide(line.addr().0, self.unit_bytes).0, channels).1 as usize,
        }
    }

    /// Place of a line: units go round the channels, then round the banks of a channel.
    #[inline]
    pub fn place(&self, line: LineAddr) -> Place {
        let bytes = line.addr().0;
        let (unit, within_unit) = divide(bytes, self.unit_bytes);
        let (unit, channel) = divide(unit, self.channels);
        let (unit, bank) = divide(unit, self.banks);
        let row = divide(unit * self.unit_bytes + within_unit, self.row_bytes).0;
        Place { channel: channel as u32, bank: bank as u32, row }
    }
}

/// Quotient and remainder. Divisors of a mapping are mostly powers of two, which need none of the host's divisions: these
/// take it several times as long.
#[inline]
const fn divide(number: u64, divisor: u64) -> (u64, u64) {
    if divisor.is_power_of_two() {
        (number >> divisor.trailing_zeros(), number & (divisor - 1))
    } else {
        (number / divisor, number % divisor)
    }
}

/// Tracks which ordered writes are durable, and which gates are open.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Every ordered write up to this one is durable.
    prefix: OrderSeq,
    /// Flags of the writes after the prefix: true for a durable one.
    beyond: std::collections::VecDeque<bool>,
    /// The gates.
    pub gates: Gates,
}

impl Order {
    /// The next place.
    pub fn allot(&mut self) -> OrderSeq {
        self.beyond.push_back(false);
        self.prefix + self.beyond.len() as u64
    }

    /// The last place given out.
    pub fn last(&self) -> OrderSeq {
        self.prefix + self.beyond.len() as u64
    }

    /// Marks one durable; returns whether the prefix moved.
    pub fn durable(&mut self, seq: OrderSeq) -> bool {
        let index = seq.checked_sub(self.prefix + 1).expect("an ordered write is durable once");
        self.beyond[index as usize] = true;
        let before = self.prefix;
        while self.beyond.front() == Some(&true) {
            self.beyond.pop_front();
            self.prefix += 1;
        }
        self.prefix > before
    }

    /// Returns true if everything up to `seq` is durable.
    #[inline]
    pub fn reached(&self, seq: OrderSeq) -> bool {
        self.prefix >= seq
    }

    /// Returns true if a write may be durable: the ordered writes that it waits for are, and its gate is open.
    #[inline]
    pub fn allows(&self, write: &Write) -> bool {
        self.reached(write.after) && self.gates.is_open(write.gate)
    }

    /// The places up to `seq` whose writes are not durable.
    pub fn missing(&self, seq: OrderSeq) -> impl Iterator<Item = OrderSeq> {
        let beyond = (self.prefix + 1..=seq).zip(&self.beyond);
        beyond.filter(|(_, is_durable)| !**is_durable).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_moves_when_the_gap_closes() {
        let mut order = Order::default();
        let (a, b, c) = (order.allot(), order.allot(), order.allot());
        assert_eq!((a, b, c), (1, 2, 3));
        let missing = |order: &Order, seq| order.missing(seq).collect::<Vec<_>>();
        assert!(!order.durable(b));
        assert!(!order.reached(a) && order.reached(0));
        assert_eq!(
            [0, a, b, c].map(|seq| missing(&order, seq)),
            [vec![], vec![a], vec![a], vec![a, c]]
        );
        assert!(order.durable(a));
        assert!(order.reached(b) && !order.reached(c));
        assert_eq!([b, c].map(|seq| missing(&order, seq)), [vec![], vec![c]]);
    }

    #[test]
    fn pages_go_round_channels_then_banks() {
        let map = Mapping { unit_bytes: 4096, channels: 2, banks: 8, row_bytes: 2048 };
        let at =
            |page: u64, byte: u64| map.place(graven_base::memory::Addr(page * 4096 + byte).line());
        assert_eq!(at(0, 0), Place { channel: 0, bank: 0, row: 0 });
        assert_eq!(at(1, 0), Place { channel: 1, bank: 0, row: 0 });
        assert_eq!(at(2, 2048), Place { channel: 0, bank: 1, row: 1 });
        assert_eq!(at(16, 0), Place { channel: 0, bank: 0, row: 2 });
    }

    #[test]
    fn lines_of_a_bank_are_numbered_in_the_order_of_their_addresses() {
        for unit_bytes in [64, 256, 4096] {
            let map = Mapping { unit_bytes, channels: 2, banks: 3, row_bytes: 2048 };
            let mut next = [[0; 3]; 2];
            for line in (0..2000).map(LineAddr) {
                let Place { channel, bank, .. } = map.place(line);
                let number = &mut next[channel as usize][bank as usize];
                assert_eq!(map.number_in_bank(line), *number);
                assert_eq!(map.line_of_bank(channel, bank, *number), line);
                *number += 1;
            }
        }
    }
}
