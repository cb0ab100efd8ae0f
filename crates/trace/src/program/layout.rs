//! The bytes around the data: beginning, block heads, index, trailer. All numbers are little endian.
//!
//! | part | bytes |
//! |---|---|
//! | beginning | `MAGIC` (8), format version (4), length of the header text (4), its CRC-32 with the 16 bytes before (4), the text |
//! | blocks | each a head of 52 bytes and its payload: first those of the populated words, then those of operations, of lengths of files, and of the history: sites, stacks, entries |
//! | index | an entry of 40 bytes for each block, a summary of 80 bytes for each thread |
//! | trailer | offset of the index (8), blocks (4), threads (4), CRC-32 of the index (4), `END` (8), CRC-32 of the 28 bytes before (4) |
//!
//! Parts follow each other without gaps, so that each byte is under one of the checksums.

use super::error::TraceError;
use crate::framing::{Numbers, checksum, shown};

/// The beginning of a trace; a transfer as text would break it.
pub const MAGIC: [u8; 8] = *b"\x89GRVNT\r\n";
/// The end, before the last checksum.
pub(super) const END: [u8; 8] = *b"GRVNTEND";
/// The format's version.
pub const FORMAT_VERSION: u32 = 4;
/// The first version, which is read, too: it has no volatile memory. The second one has no lengths of files, the third one no
/// history.
pub(super) const FIRST_VERSION: u32 = 1;
/// Operations of a full block.
pub const BLOCK_OPERATIONS: usize = 16_384;
/// Most operations that a block may have.
pub(super) const BLOCK_OPERATIONS_MAX: u32 = 65_536;
/// Populated words of a full block.
pub(super) const BLOCK_WORDS: usize = 8_192;
/// Longest header text.
pub(super) const HEADER_BYTES_MAX: u32 = 1 << 20;
/// Bytes before the header text.
pub(super) const BEGINNING_BYTES: u64 = 20;
/// Bytes of a block's head.
pub(super) const HEAD_BYTES: usize = 52;
/// Bytes of an index entry.
pub(super) const ENTRY_BYTES: usize = 40;
/// Bytes of a thread's summary, in a version.
pub(super) const fn summary_bytes(version: u32) -> usize {
    if version == FIRST_VERSION { 56 } else { 80 }
}
/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 32;

/// The content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Populated words.
    Picture,
    /// Operations of a thread.
    Operations,
    /// Changes of the lengths of files.
    Lengths,
    /// Places of instructions in the program.
    Sites,
    /// Stacks of calls.
    Stacks,
    /// Entries of the history.
    History,
}

impl Kind {
    const ALL: [Kind; 6] =
        [Kind::Picture, Kind::Operations, Kind::Lengths, Kind::Sites, Kind::Stacks, Kind::History];

    fn find(magic: &[u8]) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.magic() == magic)
    }

    fn magic(self) -> [u8; 4] {
        match self {
            Kind::Picture => *b"PICT",
            Kind::Operations => *b"OPER",
            Kind::Lengths => *b"LENG",
            Kind::Sites => *b"SITE",
            Kind::Stacks => *b"STAC",
            Kind::History => *b"HIST",
        }
    }

    /// Most bytes that a payload can have when it is not compressed.
    pub(super) fn raw_bytes_max(self) -> u32 {
        match self {
            Kind::Picture => super::picture::RAW_BYTES_MAX,
            Kind::Operations => super::columns::RAW_BYTES_MAX,
            Kind::Lengths => super::lengths::RAW_BYTES_MAX,
            Kind::Sites | Kind::Stacks | Kind::History => super::history::RAW_BYTES_MAX,
        }
    }
}

/// A block, as its head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub kind: Kind,
    /// The thread of operations; 0 for all else.
    pub thread: u32,
    /// Operations, words, changes of lengths, sites, stacks, or entries.
    pub count: u32,
    /// Bytes of the payload as it lies in the trace.
    pub stored_bytes: u32,
    /// The same when it is not compressed; equal if it is not.
    pub raw_bytes: u32,
    /// Number of the first operation in its thread, of the first word, change, site, stack or entry.
    pub first: u64,
    /// Transactions that the thread has begun before.
    pub first_transaction: u64,
    /// Loads that the thread has done before.
    pub first_load: u64,
}

impl Head {
    /// Returns the head of a block before its payload is known, of the first thread and of one that has done nothing before.
    pub fn new(kind: Kind, count: u32, first: u64) -> Head {
        let (stored_bytes, raw_bytes, first_transaction, first_load) = (0, 0, 0, 0);
        Head {
            kind,
            thread: 0,
            count,
            stored_bytes,
            raw_bytes,
            first,
            first_transaction,
            first_load,
        }
    }

    /// The head's bytes, with the checksum over it and the payload.
    pub fn to_bytes(self, payload: &[u8]) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        let mut at = 0;
        let mut put = |part: &[u8]| {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        };
        put(&self.kind.magic());
        for number in [self.thread, self.count, self.stored_bytes, self.raw_bytes, 0] {
            put(&number.to_le_bytes());
        }
        for number in [self.first, self.first_transaction, self.first_load] {
            put(&number.to_le_bytes());
        }
        let check = checksum(&[&bytes[..HEAD_BYTES - 4], payload]);
        bytes[HEAD_BYTES - 4..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Reads a head; returns the checksum that it guarantees, too.
    pub fn parse(bytes: &[u8; HEAD_BYTES], offset: u64) -> Result<(Head, u32), TraceError> {
        let magic = &bytes[..4];
        let kind = Kind::find(magic).ok_or_else(|| {
            TraceError::malformed(
                offset,
                "a block: `PICT`, `OPER`, `LENG`, `SITE`, `STAC` or `HIST`",
                shown(magic),
            )
        })?;
        let mut numbers = Numbers(&bytes[4..]);
        let [thread, count, stored_bytes, raw_bytes, zero] = std::array::from_fn(|_| numbers.u32());
        let [first, first_transaction, first_load] = std::array::from_fn(|_| numbers.u64());
        if zero != 0 {
            return Err(TraceError::malformed(offset + 20, "0", zero.to_string()));
        }
        if stored_bytes > raw_bytes || raw_bytes > kind.raw_bytes_max() {
            let expected = format!("at most {} bytes, compressed fewer", kind.raw_bytes_max());
            let found = format!("{stored_bytes} for {raw_bytes}");
            return Err(TraceError::malformed(offset + 12, expected, found));
        }
        let head = Head {
            kind,
            thread,
            count,
            stored_bytes,
            raw_bytes,
            first,
            first_transaction,
            first_load,
        };
        Ok((head, numbers.u32()))
    }
}

/// A block, as the index says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub kind: Kind,
    pub thread: u32,
    /// The beginning of its head.
    pub offset: u64,
    pub first: u64,
    pub first_transaction: u64,
    pub count: u32,
    pub stored_bytes: u32,
}

impl Entry {
    pub fn of(head: &Head, offset: u64) -> Entry {
        Entry {
            kind: head.kind,
            thread: head.thread,
            offset,
            first: head.first,
            first_transaction: head.first_transaction,
            count: head.count,
            stored_bytes: head.stored_bytes,
        }
    }

    /// The beginning of the next block, or of the index.
    pub fn end(&self) -> u64 {
        self.offset + HEAD_BYTES as u64 + u64::from(self.stored_bytes)
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.kind.magic());
        out.extend(self.thread.to_le_bytes());
        for number in [self.offset, self.first, self.first_transaction] {
            out.extend(number.to_le_bytes());
        }
        out.extend(self.count.to_le_bytes());
        out.extend(self.stored_bytes.to_le_bytes());
    }

    /// Reads an entry at `offset` of the trace.
    pub fn parse(bytes: &[u8], offset: u64) -> Result<Entry, TraceError> {
        let magic = &bytes[..4];
        let kind = Kind::find(magic).ok_or_else(|| {
            TraceError::malformed(
                offset,
                "`PICT`, `OPER`, `LENG`, `SITE`, `STAC` or `HIST`",
                shown(magic),
            )
        })?;
        let mut numbers = Numbers(&bytes[4..]);
        let thread = numbers.u32();
        let [at, first, first_transaction] = std::array::from_fn(|_| numbers.u64());
        let (count, stored_bytes) = (numbers.u32(), numbers.u32());
        Ok(Entry { kind, thread, offset: at, first, first_transaction, count, stored_bytes })
    }
}
