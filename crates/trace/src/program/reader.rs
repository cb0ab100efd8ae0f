//! Opens a trace, and reads the operations of each thread from wherever one likes.
//!
//! Opening reads beginning, index and trailer, and sees that the blocks lie one behind the other and have
//! everything. A block is read, and its checksum looked at, when it is needed. Nothing is allocated for a number that
//! the trace itself has not room for.

use std::cell::RefCell;
use std::io::{Read, Seek, SeekFrom};
use std::rc::Rc;

use serde::Serialize;

use super::decoder::{BATCH_OPERATIONS, Decoder};
use super::error::TraceError;
use super::header::Header;
use super::history::BLOCK_ENTRIES;
use super::layout::{
    BEGINNING_BYTES, BLOCK_OPERATIONS_MAX, BLOCK_WORDS, END, ENTRY_BYTES, Entry, FIRST_VERSION,
    FORMAT_VERSION, HEAD_BYTES, HEADER_BYTES_MAX, Head, Kind, MAGIC, TRAILER_BYTES, summary_bytes,
};
use super::lengths::BLOCK_LENGTHS;
use super::picture;
use super::volatile::volatile_offset;
use crate::framing::{Numbers, check_sum, checksum, shown, unpack};
use graven_base::memory::{Addr, Image};
use graven_machine::program::Op;

/// The operations of one thread, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ThreadSummary {
    /// Operations.
    pub operations: u64,
    /// Transactions begun.
    pub transactions: u64,
    /// Loads.
    pub loads: u64,
    /// Stores, non-temporal ones among them.
    pub stores: u64,
    /// Instructions that touch no memory.
    pub instructions: u64,
    /// Locks acquired.
    pub locks: u64,
    /// One past the last byte of persistent memory that it accesses; 0 if it accesses nothing.
    pub end: u64,
    /// The loads of volatile memory.
    pub volatile_loads: u64,
    /// The stores to volatile memory.
    pub volatile_stores: u64,
    /// One past the last byte of volatile memory that it accesses, from its beginning.
    pub volatile_end: u64,
}

impl ThreadSummary {
    /// Counts an operation.
    #[inline]
    pub(super) fn add(&mut self, op: &Op) {
        self.operations += 1;
        match op {
            Op::Load { at } => {
                self.loads += 1;
                self.volatile_loads += u64::from(self.reach(at.addr));
            }
            Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } => {
                self.stores += 1;
                self.volatile_stores += u64::from(self.reach(at.addr));
            }
            Op::Compute { instructions } => self.instructions += u64::from(*instructions),
            Op::TxBegin => self.transactions += 1,
            Op::Lock { .. } => self.locks += 1,
            _ => {}
        }
    }

    /// The thread accesses a word; returns whether that is in volatile memory.
    #[inline]
    fn reach(&mut self, addr: Addr) -> bool {
        let offset = volatile_offset(addr);
        let end = if offset.is_some() { &mut self.volatile_end } else { &mut self.end };
        *end = (*end).max(offset.unwrap_or(addr.0).saturating_add(8));
        offset.is_some()
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let Self { operations, transactions, loads, stores, instructions, locks, end, .. } = *self;
        let Self { volatile_loads, volatile_stores, volatile_end, .. } = *self;
        let first = [operations, transactions, loads, stores, instructions, locks, end];
        for number in first.into_iter().chain([volatile_loads, volatile_stores, volatile_end]) {
            out.extend(number.to_le_bytes());
        }
    }

    /// Reads a summary. In the first version of the format it ends before the numbers of volatile memory.
    fn parse(bytes: &[u8]) -> Self {
        let mut numbers = bytes.as_chunks().0.iter().map(|&number| u64::from_le_bytes(number));
        let mut next = || numbers.next().unwrap_or(0);
        Self {
            operations: next(),
            transactions: next(),
            loads: next(),
            stores: next(),
            instructions: next(),
            locks: next(),
            end: next(),
            volatile_loads: next(),
            volatile_stores: next(),
            volatile_end: next(),
        }
    }
}

/// The content of a trace, by its beginning and its index.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The version of its format.
    pub version: u32,
    /// The header.
    pub header: Header,
    /// Each thread.
    pub threads: Vec<ThreadSummary>,
    /// The length.
    pub bytes: u64,
    /// Bytes of them that the populated words take.
    pub picture_bytes: u64,
    /// Populated words.
    pub picture_words: u64,
    pub(super) picture: Vec<Entry>,
    pub(super) blocks: Vec<Vec<Entry>>,
    pub(super) lengths: Vec<Entry>,
    pub(super) history: Blocks,
}

/// The blocks of a history.
#[derive(Clone, Debug, Default)]
pub(super) struct Blocks {
    pub sites: Vec<Entry>,
    pub stacks: Vec<Entry>,
    pub entries: Vec<Entry>,
}

impl Blocks {
    fn is_empty(&self) -> bool {
        self.sites.is_empty() && self.stacks.is_empty() && self.entries.is_empty()
    }
}

/// The number behind the last one of some blocks.
fn behind(blocks: &[Entry]) -> u64 {
    blocks.last().map_or(0, |last| last.first + u64::from(last.count))
}

impl Contents {
    /// Blocks of operations, over all threads.
    pub fn blocks(&self) -> usize {
        self.blocks.iter().map(Vec::len).sum()
    }
}

struct Shared<R> {
    source: RefCell<R>,
    contents: Contents,
}

/// An open trace.
pub struct Reader<R> {
    shared: Rc<Shared<R>>,
}

impl<R> Clone for Reader<R> {
    fn clone(&self) -> Self {
        Reader { shared: Rc::clone(&self.shared) }
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Opens a trace.
    ///
    /// # Errors
    /// It is none, not whole, of another version, or broken: with the byte.
    pub fn open(mut source: R) -> Result<Self, TraceError> {
        let contents = read_contents(&mut source)?;
        Ok(Reader { shared: Rc::new(Shared { source: RefCell::new(source), contents }) })
    }

    /// The content.
    pub fn contents(&self) -> &Contents {
        &self.shared.contents
    }

    /// Hands out the words that PM holds before any thread runs, in the order of their addresses.
    ///
    /// # Errors
    /// A block that is broken.
    pub fn picture(&self, mut word: impl FnMut(u64, Addr, u64)) -> Result<(), TraceError> {
        self.each_block(&self.shared.contents.picture, |offset, payload, count| {
            picture::read(payload, count, |addr, value| word(offset, addr, value))
                .map_err(|expected| TraceError::malformed(offset, expected, "other bytes"))
        })
    }

    /// Hands out the payload of each of these blocks, with the block's place in the trace and the number of its entries.
    pub(super) fn each_block(
        &self,
        blocks: &[Entry],
        mut payload: impl FnMut(u64, &[u8], u32) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let (mut stored, mut raw) = (Vec::new(), Vec::new());
        for entry in blocks {
            let head = self.shared.read_block(entry, &mut stored, |bytes| {
                raw.resize(bytes, 0);
                &mut raw[..]
            })?;
            payload(entry.offset, &raw, head.count)?;
        }
        Ok(())
    }

    /// Stores those words in an image.
    ///
    /// # Errors
    /// A block that is broken.
    pub fn populate(&self, image: &mut Image) -> Result<(), TraceError> {
        self.picture(|_, addr, value| {
            image.store(addr, value);
        })
    }

    /// The operations of a thread, from its first on.
    ///
    /// # Panics
    /// If there is no such thread.
    pub fn thread(&self, thread: u32) -> Stream<R> {
        assert!((thread as usize) < self.shared.contents.blocks.len(), "no thread {thread}");
        Stream {
            shared: Rc::clone(&self.shared),
            thread,
            next_block: 0,
            offset: 0,
            left: 0,
            decoder: Decoder::new(self.shared.contents.version),
            stored: Vec::new(),
            batch: Box::new([Op::Done; BATCH_OPERATIONS]),
            batch_end: 0,
            next: 0,
        }
    }
}

impl<R: Read + Seek> Shared<R> {
    /// Reads a block into a buffer of the length that is asked for.
    fn read_block<'a>(
        &self,
        entry: &Entry,
        stored: &mut Vec<u8>,
        buffer: impl FnOnce(usize) -> &'a mut [u8],
    ) -> Result<Head, TraceError> {
        // Head and payload at once. The index has been found to lie behind as many bytes.
        stored.resize(HEAD_BYTES + entry.stored_bytes as usize, 0);
        read_at(&mut *self.source.borrow_mut(), entry.offset, stored)?;
        let (head, stored) = stored.split_first_chunk().expect("a block has a head");
        let (head, guaranteed) = Head::parse(head, entry.offset)?;
        if Entry::of(&head, entry.offset) != *entry {
            let expected = "a block as the index says";
            return Err(TraceError::malformed(entry.offset, expected, "another"));
        }
        let at = entry.offset + HEAD_BYTES as u64;
        let found = Numbers(&head.to_bytes(stored)[HEAD_BYTES - 4..]).u32();
        check_sum("a block", guaranteed, found).map_err(TraceError::at(entry.offset))?;
        unpack(stored, buffer(head.raw_bytes as usize)).map_err(TraceError::at(at))?;
        Ok(head)
    }
}

/// The operations of one thread.
pub struct Stream<R> {
    shared: Rc<Shared<R>>,
    thread: u32,
    next_block: usize,
    /// The beginning of the block that is being decoded.
    offset: u64,
    /// The operations that are not decoded yet.
    left: usize,
    decoder: Decoder,
    stored: Vec<u8>,
    batch: Box<[Op; BATCH_OPERATIONS]>,
    batch_end: usize,
    next: usize,
}

impl<R: Read + Seek> Stream<R> {
    /// The next operation; `None` at the end.
    ///
    /// # Errors
    /// A block that is broken.
    #[inline]
    pub fn next_operation(&mut self) -> Result<Option<Op>, TraceError> {
        if self.next == self.batch_end && !self.refill()? {
            return Ok(None);
        }
        let op = self.batch[self.next];
        self.next += 1;
        Ok(Some(op))
    }

    /// The next operations, as many as are at hand; none at the end. They count as read.
    ///
    /// # Errors
    /// A block that is broken.
    pub fn next_batch(&mut self) -> Result<&[Op], TraceError> {
        if self.next == self.batch_end {
            self.refill()?;
        }
        let from = std::mem::replace(&mut self.next, self.batch_end);
        Ok(&self.batch[from..self.batch_end])
    }

    /// The beginning of the block of the last operations.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Loads of the thread before what comes next, as far as 32 bits go.
    pub fn loads_before_next(&self) -> u32 {
        let ahead = &self.batch[self.next..self.batch_end];
        let loads = ahead.iter().filter(|op| matches!(op, Op::Load { .. })).count();
        self.decoder.loads().wrapping_sub(loads as u32)
    }

    /// Continues with the operation of a number, from 0; behind the last one there is nothing to read.
    ///
    /// # Errors
    /// A block that is broken.
    pub fn seek_operation(&mut self, number: u64) -> Result<(), TraceError> {
        let first = self.enter(|entry| entry.first <= number)?;
        for _ in first..number {
            if self.next_operation()?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Continues with the begin of the thread's transaction of a number, from 0.
    ///
    /// # Errors
    /// A block that is broken.
    pub fn seek_transaction(&mut self, number: u64) -> Result<(), TraceError> {
        self.enter(|entry| entry.first_transaction <= number)?;
        let mut begun = match self.next_block {
            0 => 0,
            block => self.shared.contents.blocks[self.thread as usize][block - 1].first_transaction,
        };
        while let Some(op) = self.next_operation()? {
            if op == Op::TxBegin {
                if begun == number {
                    self.next -= 1;
                    return Ok(());
                }
                begun += 1;
            }
        }
        Ok(())
    }

    /// Goes to the beginning of the last block for which `before` holds; returns its first operation.
    fn enter(&mut self, before: impl Fn(&Entry) -> bool) -> Result<u64, TraceError> {
        (self.next, self.batch_end, self.left) = (0, 0, 0);
        let blocks = &self.shared.contents.blocks[self.thread as usize];
        self.next_block = blocks.partition_point(before).saturating_sub(1);
        let first = blocks.get(self.next_block).map_or(0, |entry| entry.first);
        self.refill()?;
        Ok(first)
    }

    /// Decodes the next batch; returns whether there was one.
    #[cold]
    fn refill(&mut self) -> Result<bool, TraceError> {
        (self.next, self.batch_end) = (0, 0);
        if self.left == 0 {
            let shared = &self.shared;
            let blocks = &shared.contents.blocks[self.thread as usize];
            let Some(entry) = blocks.get(self.next_block) else { return Ok(false) };
            let decoder = &mut self.decoder;
            let head = shared.read_block(entry, &mut self.stored, |bytes| decoder.buffer(bytes))?;
            self.decoder
                .begin(head.count, head.first_load)
                .map_err(|broken| TraceError::malformed(entry.offset, broken.0, "other bytes"))?;
            self.next_block += 1;
            self.offset = entry.offset;
            self.left = head.count as usize;
        }
        let decoded = self
            .decoder
            .next_batch(&mut self.batch[..])
            .map_err(|broken| TraceError::malformed(self.offset, broken.0, "other bytes"))?;
        self.left -= decoded;
        self.batch_end = decoded;
        Ok(true)
    }
}

fn read_at(source: &mut (impl Read + Seek), at: u64, out: &mut [u8]) -> Result<(), TraceError> {
    source.seek(SeekFrom::Start(at))?;
    source.read_exact(out).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            TraceError::malformed(at, format!("{} bytes", out.len()), "the end of the trace")
        }
        _ => error.into(),
    })
}

fn read_contents(source: &mut (impl Read + Seek)) -> Result<Contents, TraceError> {
    let bytes = source.seek(SeekFrom::End(0))?;
    let (version, header, header_end) = read_beginning(source, bytes)?;
    let (index_at, index, blocks) = read_index(source, bytes, version, header_end)?;
    let (entries, summaries) = index.split_at(blocks * ENTRY_BYTES);
    let summaries = summaries.chunks_exact(summary_bytes(version));
    let threads: Vec<_> = summaries.map(ThreadSummary::parse).collect();
    if threads.len() != header.threads as usize {
        let expected = format!("{} threads, as the header says", header.threads);
        return Err(TraceError::malformed(index_at, expected, threads.len().to_string()));
    }
    let mut contents = Contents {
        version,
        header,
        bytes,
        picture_bytes: 0,
        picture_words: 0,
        picture: Vec::new(),
        blocks: vec![Vec::new(); threads.len()],
        lengths: Vec::new(),
        history: Blocks::default(),
        threads,
    };
    let mut at = header_end;
    for (number, bytes) in entries.chunks_exact(ENTRY_BYTES).enumerate() {
        let place = index_at + (number * ENTRY_BYTES) as u64;
        let entry = Entry::parse(bytes, place)?;
        contents.add(entry, at, place)?;
        at = entry.end();
    }
    if at != index_at {
        return Err(TraceError::malformed(at, "the index behind the last block", "other bytes"));
    }
    contents.check_sums(index_at)?;
    Ok(contents)
}

impl Contents {
    /// Takes an entry of the index, if its block begins at `at` and follows those before.
    fn add(&mut self, entry: Entry, at: u64, place: u64) -> Result<(), TraceError> {
        let refuse =
            |expected: String, found: String| Err(TraceError::malformed(place, expected, found));
        if entry.offset != at || entry.end() < at {
            return refuse(format!("a block at byte {at}"), format!("one at {}", entry.offset));
        }
        let most = match entry.kind {
            Kind::Picture => BLOCK_WORDS as u32,
            Kind::Operations => BLOCK_OPERATIONS_MAX,
            Kind::Lengths => BLOCK_LENGTHS as u32,
            Kind::Sites | Kind::Stacks | Kind::History => BLOCK_ENTRIES as u32,
        };
        if entry.count == 0 || entry.count > most {
            return refuse(format!("a block of 1 to {most}"), entry.count.to_string());
        }
        let first = match entry.kind {
            Kind::Picture
                if self.blocks.iter().all(Vec::is_empty)
                    && self.lengths.is_empty()
                    && self.history.is_empty() =>
            {
                let first = self.picture_words;
                self.picture_words += u64::from(entry.count);
                self.picture_bytes += entry.end() - entry.offset;
                self.picture.push(entry);
                first
            }
            Kind::Picture => {
                return refuse("populated words before operations".into(), "not so".into());
            }
            Kind::Operations if !self.lengths.is_empty() => {
                return refuse("operations before lengths of files".into(), "not so".into());
            }
            Kind::Operations | Kind::Lengths if !self.history.is_empty() => {
                return refuse("operations and lengths before a history".into(), "not so".into());
            }
            Kind::Lengths => {
                let first = behind(&self.lengths);
                self.lengths.push(entry);
                first
            }
            Kind::Sites | Kind::Stacks | Kind::History => {
                let blocks = match entry.kind {
                    Kind::Sites => &mut self.history.sites,
                    Kind::Stacks => &mut self.history.stacks,
                    _ => &mut self.history.entries,
                };
                let first = behind(blocks);
                blocks.push(entry);
                first
            }
            Kind::Operations => {
                let threads = self.blocks.len();
                let Some(blocks) = self.blocks.get_mut(entry.thread as usize) else {
                    return refuse(format!("a thread below {threads}"), entry.thread.to_string());
                };
                let first = blocks.last().map_or(0, |last| last.first + u64::from(last.count));
                blocks.push(entry);
                first
            }
        };
        if entry.first != first {
            return refuse(
                format!("a block that begins with number {first}"),
                entry.first.to_string(),
            );
        }
        Ok(())
    }

    /// That the blocks have as many operations as the summaries say.
    fn check_sums(&self, index_at: u64) -> Result<(), TraceError> {
        for (thread, (summary, blocks)) in self.threads.iter().zip(&self.blocks).enumerate() {
            let found: u64 = blocks.iter().map(|entry| u64::from(entry.count)).sum();
            if found != summary.operations {
                let expected = format!("{} operations of thread {thread}", summary.operations);
                return Err(TraceError::malformed(index_at, expected, found.to_string()));
            }
        }
        Ok(())
    }
}

/// Reads what comes before the blocks; the version, the header, and where they begin.
fn read_beginning(
    source: &mut (impl Read + Seek),
    length: u64,
) -> Result<(u32, Header, u64), TraceError> {
    let mut bytes = [0; BEGINNING_BYTES as usize];
    let available = length.min(8) as usize;
    read_at(source, 0, &mut bytes[..available])?;
    if bytes[..8] != MAGIC {
        let found = shown(&bytes[..available]);
        return Err(TraceError::malformed(0, "a program trace of Graven: `\\x89GRVNT`", found));
    }
    read_at(source, 0, &mut bytes)?;
    let mut numbers = Numbers(&bytes[8..]);
    let [version, text_bytes, guaranteed] = std::array::from_fn(|_| numbers.u32());
    if !(FIRST_VERSION..=FORMAT_VERSION).contains(&version) {
        let expected = format!("format version {FIRST_VERSION} to {FORMAT_VERSION}");
        return Err(TraceError::malformed(8, expected, version.to_string()));
    }
    let most = length.saturating_sub(BEGINNING_BYTES).min(HEADER_BYTES_MAX.into());
    if u64::from(text_bytes) > most {
        let expected = format!("a header of at most {most} bytes");
        return Err(TraceError::malformed(12, expected, text_bytes.to_string()));
    }
    let mut text = vec![0; text_bytes as usize];
    read_at(source, BEGINNING_BYTES, &mut text)?;
    let found = checksum(&[&bytes[..16], &text]);
    check_sum("a header", guaranteed, found).map_err(TraceError::at(16))?;
    Ok((version, Header::parse(&text)?, BEGINNING_BYTES + u64::from(text_bytes)))
}

/// Reads the trailer and the index; where that begins, its bytes, and how many blocks it lists.
fn read_index(
    source: &mut (impl Read + Seek),
    length: u64,
    version: u32,
    header_end: u64,
) -> Result<(u64, Vec<u8>, usize), TraceError> {
    let incomplete = |offset, found: String| {
        let expected =
            "the trailer of a whole trace: `GRVNTEND` (a recording that was not finished has none)";
        Err(TraceError::malformed(offset, expected, found))
    };
    let Some(trailer_at) = length.checked_sub(TRAILER_BYTES as u64).filter(|&at| at >= header_end)
    else {
        return incomplete(length, "the end of the trace".into());
    };
    let mut trailer = [0; TRAILER_BYTES];
    read_at(source, trailer_at, &mut trailer)?;
    if trailer[20..28] != END {
        return incomplete(trailer_at + 20, shown(&trailer[20..28]));
    }
    let mut numbers = Numbers(&trailer);
    let index_at = numbers.u64();
    let [blocks, threads, guaranteed] = std::array::from_fn(|_| numbers.u32());
    let trailer_check = Numbers(&trailer[28..]).u32();
    let found = checksum(&[&trailer[..28]]);
    check_sum("a trailer", trailer_check, found).map_err(TraceError::at(trailer_at))?;
    let summaries = u64::from(threads) * summary_bytes(version) as u64;
    let entries = u64::from(blocks) * ENTRY_BYTES as u64;
    let between = trailer_at.checked_sub(index_at).filter(|_| index_at >= header_end);
    if between != Some(entries + summaries) {
        let expected = format!("an index of {blocks} blocks and {threads} threads before it");
        return Err(TraceError::malformed(trailer_at, expected, format!("one at byte {index_at}")));
    }
    let mut index = vec![0; (entries + summaries) as usize];
    read_at(source, index_at, &mut index)?;
    check_sum("an index", guaranteed, checksum(&[&index])).map_err(TraceError::at(index_at))?;
    Ok((index_at, index, blocks as usize))
}
