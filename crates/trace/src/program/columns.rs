//! The operations of a block, in columns.
//!
//! The payload is six lengths of 4 bytes, then the columns in that order. Each begins anew with a block: nothing
//! of an earlier one is needed.
//!
//! | column | what |
//! |---|---|
//! | tokens | a byte for each operation: the kind in bits 0 to 2; the rest as below |
//! | addresses | of loads and stores: how many words further than the access before of the same memory, persistent or volatile, as a zigzag number |
//! | origins | of those whose token says so: how many loads ago the address was loaded, a byte; 255: 4 bytes follow |
//! | value tokens | a byte for each store to persistent memory: bytes of the value in bits 0 to 3, what it is the distance from in bits 4 and 5 |
//! | values | zigzag numbers of 0 to 8 bytes: the value less 0, the value stored before, or its own address |
//! | numbers | of instructions and locks, if the token does not hold them |
//!
//! | kind | operation | bits 3 to 7 of the token |
//! |---|---|---|
//! | 0, 1, 2 | load, store, non-temporal store | 3 to 5: bytes of the address, and which memory ([`AddressCode`]); 6 and 7: origin: 0 none, 1 the newest load, 2 that of the access before that had one, 3 in its column |
//! | 3, 6, 7 | instructions, lock, unlock | a number up to 28; 29, 30, 31: it has 1, 2, 4 bytes in its column |
//! | 4, 5 | begin, end of a transaction | 0 |

use super::layout::FIRST_VERSION;
use super::volatile::{VOLATILE_BYTES_MAX, volatile_offset};
use graven_capture::numbers::zigzag;
use graven_machine::program::{Op, Ptr};

/// Columns of a block.
pub(super) const COLUMNS: usize = 6;
/// Bytes before the columns.
pub(super) const LENGTHS_BYTES: usize = 4 * COLUMNS;
/// Most bytes of a block.
pub(super) const RAW_BYTES_MAX: u32 =
    LENGTHS_BYTES as u32 + super::layout::BLOCK_OPERATIONS_MAX * (1 + 8 + 5 + 1 + 8);

pub(super) const LOAD: u8 = 0;
pub(super) const STORE: u8 = 1;
pub(super) const STORE_NON_TEMPORAL: u8 = 2;
pub(super) const COMPUTE: u8 = 3;
pub(super) const TX_BEGIN: u8 = 4;
pub(super) const TX_END: u8 = 5;
pub(super) const LOCK: u8 = 6;
pub(super) const UNLOCK: u8 = 7;

pub(super) const ORIGIN_NONE: u8 = 0;
pub(super) const ORIGIN_NEWEST: u8 = 1;
pub(super) const ORIGIN_SAME: u8 = 2;
pub(super) const ORIGIN_LISTED: u8 = 3;

/// The meaning of the code of an address in a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressCode {
    /// Bytes of the distance, by the code.
    pub bytes: [u8; 8],
    /// From this code on it is an address in volatile memory.
    pub volatile_from: u8,
}

impl AddressCode {
    /// In the format's first version all memory is persistent.
    const FIRST: AddressCode = AddressCode { bytes: [1, 2, 3, 4, 5, 6, 7, 8], volatile_from: 8 };

    /// Today's.
    const NOW: AddressCode = AddressCode { bytes: [1, 2, 3, 4, 5, 6, 1, 4], volatile_from: 6 };

    /// That of a version.
    pub fn of(version: u32) -> AddressCode {
        if version == FIRST_VERSION { AddressCode::FIRST } else { AddressCode::NOW }
    }

    /// The code of a distance, and how many of its bytes are written.
    fn find(self, distance: u64, is_volatile: bool) -> Option<(u8, usize)> {
        let (from, to) =
            if is_volatile { (self.volatile_from, 8) } else { (0, self.volatile_from) };
        let needed = bytes_of(distance);
        let fits = |&code: &u8| usize::from(self.bytes[usize::from(code)]) >= needed;
        let code = (from..to).find(fits)?;
        Some((code, self.bytes[usize::from(code)].into()))
    }
}

/// Largest number that a token holds itself.
pub(super) const NUMBER_MAX: u32 = 28;
/// A distance that does not fit a byte.
pub(super) const FAR: u8 = 255;

pub(super) const TOKENS: usize = 0;
pub(super) const ADDRESSES: usize = 1;
pub(super) const ORIGINS: usize = 2;
pub(super) const VALUE_TOKENS: usize = 3;
pub(super) const VALUES: usize = 4;
pub(super) const NUMBERS: usize = 5;

/// Why an operation has no place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfit(pub &'static str);

/// Collects the operations of one thread's block.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    columns: [Vec<u8>; COLUMNS],
    loads: u32,
    /// The word accessed last, in persistent and in volatile memory.
    words: [u64; 2],
    origin: u32,
    value: u64,
}

/// Bytes that a number needs; none for zero.
fn bytes_of(n: u64) -> usize {
    (u64::BITS - n.leading_zeros()).div_ceil(8) as usize
}

impl Columns {
    /// Operations so far.
    pub fn len(&self) -> usize {
        self.columns[TOKENS].len()
    }

    /// Begins a block of a thread that has done `loads`.
    pub fn begin(&mut self, loads: u64) {
        self.columns.iter_mut().for_each(Vec::clear);
        // The engine numbers loads with 32 bits, wrapping.
        *self = Columns {
            columns: std::mem::take(&mut self.columns),
            loads: loads as u32,
            ..Columns::default()
        };
    }

    /// Adds an operation.
    pub fn push(&mut self, op: Op) -> Result<(), Unfit> {
        match op {
            Op::Load { at } => {
                self.access(LOAD, at)?;
                self.loads = self.loads.wrapping_add(1);
            }
            Op::Store { at, value } => self.store(STORE, at, value)?,
            Op::StoreNonTemporal { at, value } => self.store(STORE_NON_TEMPORAL, at, value)?,
            Op::Compute { instructions } => self.number(COMPUTE, instructions),
            Op::TxBegin => self.columns[TOKENS].push(TX_BEGIN),
            Op::TxEnd => self.columns[TOKENS].push(TX_END),
            Op::Lock { lock } => self.number(LOCK, lock),
            Op::Unlock { lock } => self.number(UNLOCK, lock),
            Op::Persist(_) | Op::Ending => {
                return Err(Unfit("persistence instructions are the design's, not the program's"));
            }
            Op::Disturb(_) => {
                return Err(Unfit("disturbances of directed tests are kept as litmus programs"));
            }
            Op::Done => return Err(Unfit("the end of a thread is the end of its blocks")),
        }
        Ok(())
    }

    /// Returns whether it is an access to volatile memory.
    fn access(&mut self, kind: u8, at: Ptr) -> Result<bool, Unfit> {
        if !at.addr.is_word_aligned() {
            return Err(Unfit("an address that is no multiple of 8"));
        }
        let offset = volatile_offset(at.addr);
        if offset.is_some_and(|offset| offset >= VOLATILE_BYTES_MAX) {
            return Err(Unfit("an address in volatile memory above 16 GB"));
        }
        let word = offset.unwrap_or(at.addr.0) / 8;
        let last = &mut self.words[usize::from(offset.is_some())];
        let step = zigzag(word.wrapping_sub(*last) as i64);
        let (code, bytes) = AddressCode::NOW
            .find(step, offset.is_some())
            .ok_or(Unfit("an address more than 2^50 bytes from the one before"))?;
        *last = word;
        self.columns[ADDRESSES].extend(&step.to_le_bytes()[..bytes]);
        let origin = self.origin(at.origin);
        self.columns[TOKENS].push(kind | code << 3 | origin << 6);
        Ok(offset.is_some())
    }

    fn origin(&mut self, origin: u32) -> u8 {
        if origin == 0 {
            return ORIGIN_NONE;
        }
        let same = origin == self.origin;
        self.origin = origin;
        if origin == self.loads {
            return ORIGIN_NEWEST;
        }
        if same {
            return ORIGIN_SAME;
        }
        let distance = self.loads.wrapping_sub(origin);
        match u8::try_from(distance) {
            Ok(near) if near != FAR => self.columns[ORIGINS].push(near),
            _ => {
                self.columns[ORIGINS].push(FAR);
                self.columns[ORIGINS].extend(distance.to_le_bytes());
            }
        }
        ORIGIN_LISTED
    }

    fn store(&mut self, kind: u8, at: Ptr, value: u64) -> Result<(), Unfit> {
        if self.access(kind, at)? {
            return Ok(());
        }
        let from = [0, self.value, at.addr.0];
        let distances = from.map(|from| zigzag(value.wrapping_sub(from) as i64));
        let (base, distance) =
            distances.into_iter().enumerate().min_by_key(|&(_, d)| bytes_of(d)).expect("three");
        let bytes = bytes_of(distance);
        self.columns[VALUES].extend(&distance.to_le_bytes()[..bytes]);
        self.columns[VALUE_TOKENS].push(bytes as u8 | (base as u8) << 4);
        self.value = value;
        Ok(())
    }

    fn number(&mut self, kind: u8, number: u32) {
        let bytes = number.to_le_bytes();
        let (code, listed) = match number {
            0..=NUMBER_MAX => (number as u8, 0),
            29..=0xff => (29, 1),
            0x100..=0xffff => (30, 2),
            _ => (31, 4),
        };
        self.columns[TOKENS].push(kind | code << 3);
        self.columns[NUMBERS].extend(&bytes[..listed]);
    }

    /// The payload of the block, after what `out` holds.
    pub fn write(&self, out: &mut Vec<u8>) {
        for column in &self.columns {
            out.extend((column.len() as u32).to_le_bytes());
        }
        self.columns.iter().for_each(|column| out.extend(column));
    }
}
