//! Places and bits of an OOP region (the tables are in the module's description).

use super::{HoopConfig, SliceOrder};
use graven_base::memory::{
    Addr, Field, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WORDS_PER_LINE,
};
use graven_machine::design::DesignContext;
use graven_machine::request::Mapping;

/// Bytes of a memory slice (§III-D).
pub const SLICE_BYTES: u64 = 128;
/// Words of data in a slice.
pub const SLICE_WORDS: usize = 8;
/// Commit records in an address memory slice.
pub const RECORDS_PER_SLICE: u32 = (SLICE_BYTES / WORD_BYTES) as u32;

/// Bits of a home address in a slice.
pub const HOME_BITS: u32 = 40;
const HOME: Field = Field::new("home address", HOME_BITS, 0);
/// Bits of the way to the next slice.
pub const NEXT_BITS: u32 = 24;
/// Bits of a transaction's number in a slice.
pub const SLICE_TX_BITS: u32 = 32;
/// Bits of the mark of a transaction's first slice.
pub const FIRST_BITS: u32 = 1;
/// Bits of the count of words, less one.
pub const COUNT_BITS: u32 = 3;
/// Bits of a slice's state.
pub const FLAG_BITS: u32 = 4;
const SLICE_TX: Field = Field::new("transaction", SLICE_TX_BITS, 0);
const FIRST: Field = SLICE_TX.then("first", FIRST_BITS);
const COUNT: Field = FIRST.then("words, less one", COUNT_BITS);
const FLAG: Field = COUNT.then("state of the slice", FLAG_BITS);
const NEXT: Field = FLAG.then("next slice", NEXT_BITS);
/// Most slices by which the next of a chain may lie further up, or further down.
pub const NEXT_MAX: i64 = (1 << (NEXT_BITS - 1)) - 1;
/// Bits of the next block's place in a block header.
pub const NEXT_SLICE_BITS: u32 = 34;
const FLAG_DATA: u64 = 1;

/// First slice, in a commit record.
const START: Field = Field::new("first slice", 29, 0);
const RECORD_SEQUENCE: Field = START.then("sequence number", SEQUENCE.bits());
const COMMITTED: Field = RECORD_SEQUENCE.then("committed", 1);
/// Slices that the start of a commit record can distinguish.
pub const REGION_SLICES_MAX: u64 = 1 << START.bits();

/// Sequence number, in the first word of a region.
const SEQUENCE: Field = Field::new("sequence number", 34, 0);
const SEQUENCE_PRESENT: Field = Field::new("present", 1, 63);

/// Start of the block, in an entry of the block index table.
const BLOCK_START: Field = Field::new("start of the block", 63, 0);
const INDEX_PRESENT: Field = BLOCK_START.then("present", 1);
/// Bits of a block's number in its header; the paper's 8 end at 512 MB.
pub const BLOCK_NUMBER_BITS: u32 = 16;
/// Blocks that a block header can distinguish.
pub const BLOCKS_MAX: u64 = 1 << BLOCK_NUMBER_BITS;
/// Bits of a block's state in its header.
pub const STATE_BITS: u32 = 2;
const BLOCK_NUMBER: Field = Field::new("number of the block", BLOCK_NUMBER_BITS, 0);
const NEXT_BLOCK: Field = BLOCK_NUMBER.then("slice of the next block", NEXT_SLICE_BITS);
const STATE: Field = NEXT_BLOCK.then("state of the block", STATE_BITS);

/// The number of a slice within a region, counted from the first block.
pub type SliceNumber = u32;

/// A place in commit order; it wraps around after 2^34 commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence(u64);

impl Sequence {
    /// Takes the low bits of a number.
    pub fn of(number: u64) -> Sequence {
        Sequence(SEQUENCE.wrapped(number))
    }

    /// As the first word of a region has it.
    pub fn word(self) -> u64 {
        SEQUENCE.put(self.0) | SEQUENCE_PRESENT.put(1)
    }

    /// That of the first word of a region, if a recovery has written one.
    pub fn of_word(word: u64) -> Option<Sequence> {
        SEQUENCE_PRESENT.is_set(word).then(|| Sequence::of(word))
    }

    /// The one after it.
    pub fn next(self) -> Sequence {
        Sequence::of(self.0 + 1)
    }

    /// The bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Number of commits by which it follows `first`; `None` if it is older: it lies in the half
    /// that came before.
    pub fn since(self, first: Sequence) -> Option<u64> {
        let distance = SEQUENCE.wrapped(self.0.wrapping_sub(first.0));
        (distance < 1 << (SEQUENCE.bits() - 1)).then_some(distance)
    }
}

/// A transaction's number as its slices have it: numbers come round after 2^32 transactions.
pub fn slice_tx(number: u64) -> u32 {
    SLICE_TX.wrapped(number) as u32
}

/// That of the slice whose metadata line has this word 5.
pub fn tx_of_head(head: u64) -> u32 {
    SLICE_TX.get(head) as u32
}

/// A data memory slice (Fig. 5b).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Low 32 bits of the transaction's number at the controller.
    pub tx: u32,
    /// True for the first slice of its transaction.
    pub first: bool,
    /// Slices from it to the next of its transaction, up or down, modulo the region; 0: it is the last.
    pub next: i32,
    /// One to eight words with their home addresses.
    pub words: Vec<(Addr, u64)>,
}

impl Slice {
    /// Encodes the slice in two lines: data, metadata.
    pub fn lines(&self) -> [LineData; 2] {
        assert!((1..=SLICE_WORDS).contains(&self.words.len()), "no slice is empty");
        assert!(i64::from(self.next).abs() <= NEXT_MAX, "the next slice is within reach");
        let (mut data, mut metadata) = ([0; WORDS_PER_LINE], [0; WORDS_PER_LINE]);
        for (i, &(home, word)) in self.words.iter().enumerate() {
            data[i] = word;
            let (at, shift) = home_place(i);
            let home = HOME.put(home.0);
            metadata[at] |= home << shift;
            if shift + HOME_BITS > 64 {
                metadata[at + 1] |= home >> (64 - shift);
            }
        }
        // The distance has its sign: what is within reach is distinguishable by its low bits.
        metadata[5] = SLICE_TX.put(self.tx.into())
            | FIRST.put(self.first.into())
            | COUNT.put(self.words.len() as u64 - 1)
            | FLAG.put(FLAG_DATA)
            | NEXT.wrapped(self.next as u64);
        [data, metadata]
    }

    /// The slice of two lines, if they are one.
    pub fn parse(data: &LineData, metadata: &LineData) -> Option<Slice> {
        let SliceHead { tx, first, next, count } = SliceHead::parse(metadata)?;
        let words = (0..count).map(|i| (home(metadata, i), data[i])).collect();
        Some(Slice { tx, first, next, words })
    }
}

/// Content of the metadata line of a slice, but for the home addresses of its words ([`home`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceHead {
    /// Low 32 bits of the transaction's number at the controller.
    pub tx: u32,
    /// True for the first slice of its transaction.
    pub first: bool,
    /// Slices from it to the next of its transaction, as in [`Slice`].
    pub next: i32,
    /// Number of its words.
    pub count: usize,
}

impl SliceHead {
    /// The head, if the line is the metadata line of a slice.
    #[inline]
    pub fn parse(metadata: &LineData) -> Option<SliceHead> {
        let head = metadata[5];
        (FLAG.get(head) == FLAG_DATA).then_some(SliceHead {
            tx: tx_of_head(head),
            first: FIRST.is_set(head),
            // With its sign.
            next: (NEXT.get(head) as i32) << (i32::BITS - NEXT_BITS) >> (i32::BITS - NEXT_BITS),
            count: COUNT.get(head) as usize + 1,
        })
    }
}

/// Home address `i` of a slice's metadata line.
#[inline]
pub fn home(metadata: &LineData, i: usize) -> Addr {
    let (at, shift) = home_place(i);
    let low = metadata[at] >> shift;
    let high = if shift + HOME_BITS > 64 { metadata[at + 1] << (64 - shift) } else { 0 };
    Addr(HOME.get(low | high))
}

/// The word of the metadata line, and the bit of it, where home address `i` begins.
fn home_place(i: usize) -> (usize, u32) {
    let bit = i as u32 * HOME_BITS;
    ((bit / 64) as usize, bit % 64)
}

/// A commit record: one word of an address memory slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The transaction's first slice.
    pub start: SliceNumber,
    /// Place in commit order.
    pub sequence: Sequence,
    /// True once it has committed; before, all its slices are in the regions, and the controllers
    /// decide together.
    pub committed: bool,
}

impl Record {
    /// Encodes the record.
    pub fn word(&self) -> u64 {
        START.put(self.start.into())
            | RECORD_SEQUENCE.put(self.sequence.0)
            | COMMITTED.put(self.committed.into())
    }

    /// The record, if the word is one. (Slice 0 is a header: nothing starts there.)
    pub fn parse(word: u64) -> Option<Record> {
        let start = START.get(word) as SliceNumber;
        (start != 0).then_some(Record {
            start,
            sequence: Sequence(RECORD_SEQUENCE.get(word)),
            committed: COMMITTED.is_set(word),
        })
    }
}

/// State of an OOP block (§III-D).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// Free.
    Unused,
    /// Slices and records are appended to it.
    InUse,
    /// The block has no room for another slice.
    Full,
    /// The block's records are void; slices in it may belong to younger ones.
    Gc,
}

/// An OOP block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The block's number.
    pub number: u32,
    /// The slice with which the block opened after it begins; 0: none has been yet.
    pub next: u64,
    pub state: BlockState,
}

impl Header {
    /// Encodes the first word of the header; the second is the sequence number with which the block
    /// was opened.
    pub fn word(&self) -> u64 {
        BLOCK_NUMBER.put(self.number.into())
            | NEXT_BLOCK.put(self.next)
            | STATE.put(self.state as u64)
    }

    /// The header of a first word.
    pub fn parse(word: u64) -> Header {
        let states = [BlockState::Unused, BlockState::InUse, BlockState::Full, BlockState::Gc];
        Header {
            number: BLOCK_NUMBER.get(word) as u32,
            next: NEXT_BLOCK.get(word),
            state: states[STATE.get(word) as usize],
        }
    }
}

/// The entry of a block in the block index table.
pub fn index_entry(block_start: Addr) -> u64 {
    BLOCK_START.put(block_start.0) | INDEX_PRESENT.put(1)
}

/// Returns true if a word of the block index table has an entry.
pub fn is_indexed(word: u64) -> bool {
    INDEX_PRESENT.is_set(word)
}

/// Geometry of one controller's OOP region.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    start: Addr,
    /// Number of blocks.
    pub blocks: u32,
    /// Slices of a block, all kinds.
    pub block_slices: u32,
    /// Number of address memory slices among them; they follow the header.
    pub address_slices: u32,
    /// Slices that lie together in a bank: they are not used one after the other, but in rounds over all such units.
    unit_slices: u32,
}

impl Geometry {
    /// The region of controller number `controller`: its share of the log region.
    pub fn of(context: &DesignContext, controller: u32) -> Geometry {
        let config = context.config.get::<HoopConfig>();
        let share = context.log_bytes() / u64::from(config.controllers) / SLICE_BYTES * SLICE_BYTES;
        let start = context.log_start.plus(u64::from(controller) * share);
        let unit = Mapping::of(&context.config).unit_bytes / SLICE_BYTES;
        let unit_slices = match config.slice_order {
            SliceOrder::Sequential => u32::MAX,
            // A unit that is no larger than a slice: the next slice lies in another bank as it is.
            SliceOrder::RoundRobin => (unit as u32).max(1),
        };
        Geometry { unit_slices, ..Geometry::within(start, share, config.block_bytes.0) }
    }

    /// As many blocks as fit; slices are used as they lie.
    pub fn within(start: Addr, bytes: u64, block_bytes: u64) -> Geometry {
        let slices = block_bytes / SLICE_BYTES;
        // As many records as slices of data.
        let address_slices = (slices - 1).div_ceil(u64::from(RECORDS_PER_SLICE) + 1);
        let mut blocks = bytes / block_bytes;
        while blocks > 0 && index_bytes(blocks) + blocks * block_bytes > bytes {
            blocks -= 1;
        }
        Geometry {
            start,
            blocks: blocks as u32,
            block_slices: slices as u32,
            address_slices: address_slices as u32,
            unit_slices: u32::MAX,
        }
    }

    /// Data memory slices of a block.
    pub fn data_slices(&self) -> u32 {
        self.block_slices - 1 - self.address_slices
    }

    /// Commit records of a block.
    pub fn records(&self) -> u32 {
        self.address_slices * RECORDS_PER_SLICE
    }

    /// Slices of the region.
    pub fn slices(&self) -> u64 {
        u64::from(self.blocks) * u64::from(self.block_slices)
    }

    /// Address of the sequence number with which the region continues after a recovery.
    pub fn sequence(&self) -> Addr {
        self.start
    }

    /// Address of a block's entry in the block index table.
    pub fn index(&self, block: u32) -> Addr {
        self.start.plus((u64::from(block) + 1) * WORD_BYTES)
    }

    /// The slice with which a block begins: its header.
    pub fn slice_of_block(&self, block: u32) -> SliceNumber {
        block * self.block_slices
    }

    /// Address of a block, which begins with its header.
    pub fn block(&self, block: u32) -> Addr {
        self.slice(self.slice_of_block(block))
    }

    /// Bytes from a block to the next.
    pub fn block_bytes(&self) -> u64 {
        u64::from(self.block_slices) * SLICE_BYTES
    }

    /// Address of a slice.
    pub fn slice(&self, slice: SliceNumber) -> Addr {
        let blocks = self.start.plus(index_bytes(self.blocks.into()));
        blocks.plus(u64::from(slice) * SLICE_BYTES)
    }

    /// A slice's two lines: data, metadata.
    pub fn slice_lines(&self, slice: SliceNumber) -> [LineAddr; 2] {
        let data = self.slice(slice);
        [data.line(), data.plus(LINE_BYTES).line()]
    }

    /// Number of the block that a slice lies in.
    pub fn block_of(&self, slice: SliceNumber) -> u32 {
        slice / self.block_slices
    }

    /// The first data memory slice of a block.
    pub fn first_data_slice(&self, block: u32) -> SliceNumber {
        block * self.block_slices + 1 + self.address_slices
    }

    /// The data memory slice of a block that is the `nth` to be used.
    pub fn data_slice(&self, block: u32, nth: u32) -> SliceNumber {
        let units = self.data_slices() / self.unit_slices;
        let at = if nth < units * self.unit_slices {
            nth % units * self.unit_slices + nth / units
        } else {
            nth
        };
        self.first_data_slice(block) + at
    }

    /// Address of a block's commit record, by its place among them.
    pub fn record(&self, block: u32, place: u32) -> Addr {
        self.block(block).plus(SLICE_BYTES + u64::from(place) * WORD_BYTES)
    }

    /// The lines in which the records of a block lie, a place after the other.
    pub fn record_lines(&self, block: u32) -> impl Iterator<Item = LineAddr> {
        let lines = self.records() / WORDS_PER_LINE as u32;
        (0..lines).map(move |line| self.record(block, line * WORDS_PER_LINE as u32).line())
    }

    /// Distance from a slice to the next of its transaction, the shorter way round.
    pub fn distance(&self, from: SliceNumber, to: SliceNumber) -> i64 {
        let slices = self.slices() as i64;
        let up = (i64::from(to) - i64::from(from)).rem_euclid(slices);
        if up > slices / 2 { up - slices } else { up }
    }

    /// The slice that far away.
    pub fn next(&self, from: SliceNumber, distance: i32) -> SliceNumber {
        (i64::from(from) + i64::from(distance)).rem_euclid(self.slices() as i64) as SliceNumber
    }
}

/// Bytes of the sequence word and the block index table, in whole slices.
fn index_bytes(blocks: u64) -> u64 {
    ((blocks + 1) * WORD_BYTES).next_multiple_of(SLICE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_slice() -> impl Strategy<Value = Slice> {
        let word = (0..1u64 << (HOME_BITS - 3), any::<u64>()).prop_map(|(w, v)| (Addr(w * 8), v));
        let words = proptest::collection::vec(word, 1..=SLICE_WORDS);
        (any::<u32>(), any::<bool>(), -NEXT_MAX as i32..=NEXT_MAX as i32, words)
            .prop_map(|(tx, first, next, words)| Slice { tx, first, next, words })
    }

    fn end(geometry: &Geometry) -> Addr {
        geometry.slice(geometry.slice_of_block(geometry.blocks))
    }

    /// Claims `hoop-arith-slice-metadata`, `hoop-arith-slice-total`, `hoop-cfg-slice-size`, `hoop-arith-slice-count-bits`.
    #[test]
    fn every_bit_of_a_slice_lies_where_figure_5b_says() {
        let words = (0..8).map(|i| (Addr(0xab_cdef_0120 + i * 8), 100 + i)).collect();
        let slice = Slice { tx: 0x1234_5678, first: true, next: 0x7e_dcba, words };
        let [data, metadata] = slice.lines();
        assert_eq!(data, [100, 101, 102, 103, 104, 105, 106, 107]);
        // Eight addresses of 40 bits in 320, from bit 0 on.
        assert_eq!(metadata[0], 0xab_cdef_0120 | (0xab_cdef_0128 & 0xff_ffff) << 40);
        assert_eq!(metadata[1] & 0xffff, 0xab_cdef_0128 >> 24);
        assert_eq!(metadata[4] >> 24, 0xab_cdef_0158);
        // Transaction 32, first 1, count 3 (eight words are 7), flag 4, next slice 24; the rest pads.
        assert_eq!(metadata[5], 0x1234_5678 | 1 << 32 | 7 << 33 | 1 << 36 | 0x7e_dcba << 40);
        assert_eq!(metadata[6..], [0, 0]);
        assert_eq!(size_of_val(&data) + size_of_val(&metadata), SLICE_BYTES as usize);
    }

    /// Claims hoop-arith-home-1tb, hoop-arith-next-slice-reach and hoop-arith-block-header are
    /// checked in `cost`.
    #[test]
    fn fields_fill_their_words() {
        assert_eq!(NEXT.end(), 64);
        assert_eq!(STATE.end(), 44 + 8, "8 bits more of number than the paper's");
        assert_eq!(COMMITTED.end(), 64);
        assert_eq!(REGION_SLICES_MAX * SLICE_BYTES, 64 << 30);
    }

    /// Claims `hoop-cfg-block-size`, `hoop-cfg-oop-region`, `hoop-arith-block-index`, `hoop-arith-slices-per-block`.
    #[test]
    fn a_block_of_two_megabytes_has_16384_slices() {
        let bytes = 52428 << 20;
        let geometry = Geometry::within(Addr(1 << 30), bytes, 2 << 20);
        assert_eq!(geometry.block_slices, 16_384);
        assert_eq!(geometry.block_slices * SLICE_WORDS as u32, 128 << 10, "128 K addresses");
        assert_eq!((geometry.address_slices, geometry.data_slices()), (964, 15_419));
        assert!(geometry.records() >= geometry.data_slices());
        assert_eq!(geometry.blocks, 26_213, "a tenth of 512 GB less the index: 15 bits, not 8");
        assert!(end(&geometry).0 <= (1 << 30) + bytes);
        assert!(geometry.slices() <= REGION_SLICES_MAX);
    }

    #[test]
    fn nothing_in_a_region_overlaps() {
        let geometry = Geometry::within(Addr(4096), 10 << 10, 1 << 10);
        assert_eq!((geometry.blocks, geometry.address_slices, geometry.data_slices()), (9, 1, 6));
        assert_eq!(geometry.index(0), Addr(4096 + 8));
        assert_eq!(geometry.block(0), Addr(4096 + 128));
        assert_eq!(geometry.record(0, 15), Addr(4096 + 128 + 128 + 120));
        assert_eq!(geometry.slice(geometry.data_slice(0, 0)), Addr(4096 + 128 + 256));
        assert_eq!(geometry.slice(geometry.data_slice(8, 5)).plus(SLICE_BYTES), end(&geometry));
        assert_eq!(geometry.block_of(geometry.data_slice(3, 5)), 3);
        let (last, first) = (geometry.data_slice(8, 5), geometry.data_slice(0, 0));
        assert_eq!(geometry.distance(last, first), 3);
        assert_eq!(geometry.next(last, 3), first);
        assert_eq!(geometry.next(first, -3), last);
    }

    #[test]
    fn in_rounds_each_slice_of_a_block_is_used_once() {
        let mut geometry = Geometry::within(Addr(0), 64 << 10, 16 << 10);
        geometry.unit_slices = 32;
        let slices: Vec<u32> =
            (0..geometry.data_slices()).map(|n| geometry.data_slice(1, n)).collect();
        let first = geometry.first_data_slice(1);
        assert_eq!(slices[..5], [0, 32, 64, 1, 33].map(|at| first + at));
        let mut sorted = slices.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(first..first + geometry.data_slices()));
    }

    /// Class of bug: an order of use that follows the size of a page where lines are interleaved.
    #[test]
    fn consecutive_slices_begin_in_different_banks() {
        let settings = [
            ("page", "4096", "0", "1"),
            ("page", "2048", "0", "1"),
            ("page", "4096", "64", "4"),
            ("line", "4096", "0", "1"),
            ("line", "4096", "64", "1"),
            ("line", "4096", "0", "4"),
            ("line", "4096", "64", "4"),
        ];
        for (interleave, page_bytes, buffer_lines, channels) in settings {
            let mut config = crate::testing::defaults();
            for (key, value) in [
                ("controller.interleave", interleave),
                ("controller.page_bytes", page_bytes),
                ("controller.channels", channels),
                ("pm.buffer_lines", buffer_lines),
            ] {
                config.set(key, value).expect("a value that is allowed");
            }
            let mapping = Mapping::of(&config);
            let context = DesignContext::new(config, 1, Addr(1 << 30), Addr(2 << 30));
            let geometry = Geometry::of(&context, 0);
            let bank = |nth| {
                let [first, _] = geometry.slice_lines(geometry.data_slice(1, nth));
                let place = mapping.place(first);
                (place.channel, place.bank)
            };
            let slices = geometry.data_slices();
            let equal = (1..slices).filter(|&nth| bank(nth - 1) == bank(nth)).count();
            assert!(
                equal <= slices as usize / 50,
                "{interleave}, {page_bytes} B, {buffer_lines} lines, {channels} channels: \
                 {equal} of {slices} slices begin in the bank of the one before"
            );
        }
    }

    #[test]
    fn records_and_headers_have_the_bits_of_the_tables() {
        let sequence = Sequence::of(0x2_0000_0003);
        let record = Record { start: 0x1234_5678, sequence, committed: true };
        assert_eq!(record.word(), 1 << 63 | 0x2_0000_0003 << 29 | 0x1234_5678);
        assert_eq!(Record::parse(record.word()), Some(record));
        assert_eq!(Record::parse(1 << 63), None, "nothing starts in a header");
        let header = Header { number: 0x1234, next: 0x3_0000_0001, state: BlockState::Gc };
        assert_eq!(header.word(), 0x1234 | 0x3_0000_0001 << 16 | 3 << 50);
        assert_eq!(Header::parse(header.word()), header);
    }

    #[test]
    fn sequence_numbers_come_round() {
        let (first, last) = (Sequence::of(0), Sequence::of(SEQUENCE.max()));
        assert_eq!(last.next(), first);
        assert_eq!(first.since(last), Some(1));
        assert_eq!(last.since(first), None);
        assert_eq!(Sequence::of(7).since(Sequence::of(7)), Some(0));
    }

    proptest! {
        #[test]
        fn a_slice_comes_back_from_its_bytes(slice in any_slice()) {
            let [data, metadata] = slice.lines();
            prop_assert_eq!(Slice::parse(&data, &metadata), Some(slice));
        }
    }
}
