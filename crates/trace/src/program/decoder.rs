//! The operations of a block, out of their columns and in batches.
//!
//! Numbers of any length are read as eight bytes and cut to theirs: no branch depends on the length. The columns lie
//! one after the other in one buffer with eight bytes behind it, so such a read stays inside; that each column has
//! been used up, and no more, is looked at when the block ends.

use super::columns::{
    ADDRESSES, AddressCode, COLUMNS, COMPUTE, FAR, LENGTHS_BYTES, LOAD, LOCK, NUMBER_MAX, NUMBERS,
    ORIGIN_LISTED, ORIGIN_NEWEST, ORIGIN_SAME, ORIGINS, STORE, STORE_NON_TEMPORAL, TOKENS,
    TX_BEGIN, TX_END, UNLOCK, VALUE_TOKENS, VALUES,
};
use super::volatile::VOLATILE_START;
use graven_base::memory::Addr;
use graven_capture::numbers::unzigzag;
use graven_machine::program::{Op, Ptr};

/// Operations that are decoded at a time: 32 B each, so that a batch stays in the host's L1.
pub const BATCH_OPERATIONS: usize = 512;

/// Bytes behind the columns.
const SPARE_BYTES: usize = 8;

/// A column whose content is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken(pub &'static str);

/// Reads one block after the other.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    code: AddressCode,
    /// The columns and the spare bytes.
    raw: Vec<u8>,
    ends: [usize; COLUMNS],
    place: Place,
}

/// A place in all columns, and what the next operations are relative to.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    at: [usize; COLUMNS],
    loads: u32,
    words: [u64; 2],
    origin: u32,
    value: u64,
}

#[inline(always)]
fn mask(holds: bool) -> u32 {
    u32::from(holds).wrapping_neg()
}

/// Cuts a number of eight bytes to `0..=8`.
const MASKS: [u64; 16] = {
    let mut masks = [u64::MAX; 16];
    let mut bytes = 0;
    while bytes < 8 {
        masks[bytes] = (1 << (8 * bytes)) - 1;
        bytes += 1;
    }
    masks
};

impl Decoder {
    /// A decoder of blocks of a version of the format.
    pub fn new(version: u32) -> Decoder {
        let (code, place) = (AddressCode::of(version), Place::default());
        Decoder { code, raw: Vec::new(), ends: [0; COLUMNS], place }
    }

    /// The place of a payload: `raw_bytes`, and the spare ones.
    pub fn buffer(&mut self, raw_bytes: usize) -> &mut [u8] {
        self.raw.clear();
        self.raw.resize(raw_bytes + SPARE_BYTES, 0);
        &mut self.raw[..raw_bytes]
    }

    /// Begins with the payload that is in the buffer.
    pub fn begin(&mut self, operations: u32, loads: u64) -> Result<(), Broken> {
        let columns = self.raw.len() - SPARE_BYTES;
        if columns < LENGTHS_BYTES {
            return Err(Broken("the lengths of six columns"));
        }
        self.place = Place { loads: loads as u32, ..Place::default() };
        let mut at = LENGTHS_BYTES;
        for column in 0..COLUMNS {
            let length = self.raw[4 * column..].first_chunk().expect("measured");
            self.place.at[column] = at;
            at = at.saturating_add(u32::from_le_bytes(*length) as usize);
            self.ends[column] = at;
        }
        if at != columns {
            return Err(Broken("columns that fill the block"));
        }
        if self.ends[TOKENS] - self.place.at[TOKENS] != operations as usize {
            return Err(Broken("a token for each operation"));
        }
        Ok(())
    }

    /// Decodes the next operations, as many as `out` has room for or the block has left; returns how many.
    // A function of its own: whoever calls it between batches is cold.
    #[inline(never)]
    pub fn next_batch(&mut self, out: &mut [Op]) -> Result<usize, Broken> {
        let first = self.place.at[TOKENS];
        let count = out.len().min(self.ends[TOKENS] - first);
        let mut cursor = Cursor { code: self.code, raw: &self.raw, place: self.place };
        for (slot, &token) in out.iter_mut().zip(&self.raw[first..first + count]) {
            if cursor.operation(token, slot).is_none() {
                return Err(Broken("tokens that have their columns"));
            }
        }
        self.place = cursor.place;
        let at = &mut self.place.at;
        at[TOKENS] = first + count;
        if at[TOKENS] == self.ends[TOKENS] && *at != self.ends {
            return Err(Broken("columns that are used up with the tokens"));
        }
        Ok(count)
    }

    /// Loads of the thread so far, as far as 32 bits go.
    pub fn loads(&self) -> u32 {
        self.place.loads
    }
}

/// A decoder while a batch is decoded: its place is in registers.
struct Cursor<'a> {
    code: AddressCode,
    raw: &'a [u8],
    place: Place,
}

impl Cursor<'_> {
    #[inline(always)]
    fn operation(&mut self, token: u8, slot: &mut Op) -> Option<()> {
        match token & 7 {
            LOAD => {
                let (at, _) = self.access(token)?;
                self.place.loads = self.place.loads.wrapping_add(1);
                *slot = Op::Load { at };
            }
            STORE => {
                let (at, is_volatile) = self.access(token)?;
                let value = if is_volatile { 0 } else { self.stored(at)? };
                *slot = Op::Store { at, value };
            }
            STORE_NON_TEMPORAL => {
                let (at, is_volatile) = self.access(token)?;
                let value = if is_volatile { 0 } else { self.stored(at)? };
                *slot = Op::StoreNonTemporal { at, value };
            }
            COMPUTE => *slot = Op::Compute { instructions: self.number(token)? },
            LOCK => *slot = Op::Lock { lock: self.number(token)? },
            UNLOCK => *slot = Op::Unlock { lock: self.number(token)? },
            TX_BEGIN if token >> 3 == 0 => *slot = Op::TxBegin,
            TX_END if token >> 3 == 0 => *slot = Op::TxEnd,
            _ => return None,
        }
        Some(())
    }

    /// The next number of a column, of this number of bytes.
    #[inline(always)]
    fn take(&mut self, column: usize, bytes: usize) -> Option<u64> {
        let at = self.place.at[column];
        let eight = self.raw.get(at..at + 8)?.first_chunk()?;
        self.place.at[column] = at + bytes;
        Some(u64::from_le_bytes(*eight) & MASKS[bytes & 15])
    }

    /// An address, and whether it is in volatile memory.
    #[inline(always)]
    fn access(&mut self, token: u8) -> Option<(Ptr, bool)> {
        let code = token >> 3 & 7;
        let is_volatile = code >= self.code.volatile_from;
        let step = self.take(ADDRESSES, self.code.bytes[usize::from(code)].into())?;
        let word = &mut self.place.words[usize::from(is_volatile)];
        *word = word.wrapping_add(unzigzag(step) as u64);
        let start = VOLATILE_START.0 & u64::from(is_volatile).wrapping_neg();
        let addr = Addr((*word << 3).wrapping_add(start));
        let code = token >> 6;
        // Masks instead of branches: programs change between these all the time.
        let mut origin = self.place.loads & mask(code == ORIGIN_NEWEST)
            | self.place.origin & mask(code == ORIGIN_SAME);
        if code == ORIGIN_LISTED {
            origin = self.listed_origin()?;
        }
        self.place.origin = origin | self.place.origin & mask(origin == 0);
        Some((Ptr { addr, origin }, is_volatile))
    }

    #[inline(always)]
    fn listed_origin(&mut self) -> Option<u32> {
        let distance = match self.take(ORIGINS, 1)? {
            n if n == u64::from(FAR) => self.take(ORIGINS, 4)?,
            n => n,
        };
        Some(self.place.loads.wrapping_sub(distance as u32))
    }

    #[inline(always)]
    fn stored(&mut self, at: Ptr) -> Option<u64> {
        let token = *self.raw.get(self.place.at[VALUE_TOKENS])?;
        self.place.at[VALUE_TOKENS] += 1;
        let (bytes, base) = (usize::from(token & 15), usize::from(token >> 4));
        if bytes > 8 || base > 2 {
            return None;
        }
        let distance = unzigzag(self.take(VALUES, bytes)?) as u64;
        self.place.value = [0, self.place.value, at.addr.0][base].wrapping_add(distance);
        Some(self.place.value)
    }

    #[inline(always)]
    fn number(&mut self, token: u8) -> Option<u32> {
        let code = u32::from(token >> 3);
        if code <= NUMBER_MAX {
            return Some(code);
        }
        Some(self.take(NUMBERS, 1 << (code - NUMBER_MAX - 1))? as u32)
    }
}

const _: () = assert!(ORIGIN_NEWEST == 1 && ORIGIN_SAME == 2);
