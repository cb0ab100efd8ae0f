//! Writes a trace while its threads run: each has one block in memory, and the index grows by 40 bytes a block.

use std::io::Write;

use super::columns::Columns;
use super::error::TraceError;
use super::header::Header;
use super::history::History;
use super::layout::{
    BLOCK_OPERATIONS, BLOCK_WORDS, END, Entry, FORMAT_VERSION, HEAD_BYTES, HEADER_BYTES_MAX, Head,
    Kind, MAGIC,
};
use super::lengths::{BLOCK_LENGTHS, LengthChange};
use super::picture::Words;
use super::reader::ThreadSummary;
use crate::framing::{checksum, packed};
use graven_base::memory::Image;
use graven_machine::program::Op;

/// A trace that grows.
pub struct Writer<W> {
    out: W,
    offset: u64,
    index: Vec<u8>,
    blocks: u32,
    threads: Vec<Growing>,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

/// The operations of one thread so far.
#[derive(Clone, Debug, Default)]
struct Growing {
    columns: Columns,
    summary: ThreadSummary,
    /// The summary when the block began.
    before: ThreadSummary,
    ended: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// Those of `out`; a header of more than 1 MB.
    pub fn new(mut out: W, header: &Header) -> Result<Self, TraceError> {
        let text = header.to_json().to_string();
        let length = u32::try_from(text.len()).ok().filter(|&n| n <= HEADER_BYTES_MAX);
        let length = length.ok_or_else(|| TraceError::Unsupported("a header above 1 MB".into()))?;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT_VERSION.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        let check = checksum(&[&bytes, text.as_bytes()]);
        bytes.extend(check.to_le_bytes());
        bytes.extend(text.as_bytes());
        out.write_all(&bytes)?;
        let mut threads = vec![Growing::default(); header.threads as usize];
        threads.iter_mut().for_each(|t| t.columns.begin(0));
        let offset = bytes.len() as u64;
        Ok(Writer {
            out,
            offset,
            index: Vec::new(),
            blocks: 0,
            threads,
            raw: Vec::new(),
            stored: Vec::new(),
        })
    }

    /// Writes the words that PM holds before any thread runs. Call it once, before all operations.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn picture(&mut self, image: &Image) -> Result<(), TraceError> {
        assert_eq!(self.blocks, 0, "the populated words come first");
        let mut words = Words::default();
        let mut first = 0;
        for (addr, value) in image.nonzero_words() {
            words.push(addr, value);
            if words.len() == BLOCK_WORDS {
                first += self.write_picture(&mut words, first)?;
            }
        }
        if words.len() > 0 {
            self.write_picture(&mut words, first)?;
        }
        Ok(())
    }

    fn write_picture(&mut self, words: &mut Words, first: u64) -> Result<u64, TraceError> {
        let count = words.len() as u32;
        self.raw.clear();
        words.write(&mut self.raw);
        self.write_block(Head::new(Kind::Picture, count, first))?;
        Ok(count.into())
    }

    /// Adds what a thread does next. [`Op::Done`] is its end; nothing may come after it.
    ///
    /// # Errors
    /// Those of `out`; an operation that is not a program's.
    pub fn push(&mut self, thread: u32, op: Op) -> Result<(), TraceError> {
        let growing = &mut self.threads[thread as usize];
        assert!(!growing.ended, "thread {thread} goes on after its end");
        if op == Op::Done {
            growing.ended = true;
            return self.flush(thread);
        }
        growing.columns.push(op).map_err(|unfit| {
            let operation = growing.summary.operations;
            let what = unfit.0;
            TraceError::Unsupported(format!(
                "thread {thread}, operation {operation} cannot be recorded: {what}"
            ))
        })?;
        growing.summary.add(&op);
        if growing.columns.len() >= BLOCK_OPERATIONS { self.flush(thread) } else { Ok(()) }
    }

    /// Writes how the lengths of files changed, in the order in which they did. Call it when all threads have ended.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn lengths(&mut self, changes: &[LengthChange]) -> Result<(), TraceError> {
        assert!(self.threads.iter().all(|t| t.ended), "lengths come behind operations");
        for (number, block) in changes.chunks(BLOCK_LENGTHS).enumerate() {
            self.raw.clear();
            block.iter().for_each(|change| change.write(&mut self.raw));
            let first = (number * BLOCK_LENGTHS) as u64;
            self.write_block(Head::new(Kind::Lengths, block.len() as u32, first))?;
        }
        Ok(())
    }

    /// Writes a history. Call it behind lengths, once.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn history(&mut self, history: &History) -> Result<(), TraceError> {
        assert!(self.threads.iter().all(|t| t.ended), "a history comes behind operations");
        for (kind, blocks) in history.blocks() {
            let mut first = 0;
            for (count, payload) in blocks {
                self.raw.clear();
                self.raw.extend(payload);
                self.write_block(Head::new(kind, count, first))?;
                first += u64::from(count);
            }
        }
        Ok(())
    }

    /// Writes what a thread has in memory.
    fn flush(&mut self, thread: u32) -> Result<(), TraceError> {
        let growing = &mut self.threads[thread as usize];
        if growing.columns.len() == 0 {
            return Ok(());
        }
        let before = growing.before;
        let head = Head {
            thread,
            first_transaction: before.transactions,
            first_load: before.loads,
            ..Head::new(Kind::Operations, growing.columns.len() as u32, before.operations)
        };
        self.raw.clear();
        growing.columns.write(&mut self.raw);
        growing.before = growing.summary;
        growing.columns.begin(growing.summary.loads);
        self.write_block(head)
    }

    /// Writes a block whose payload is in `raw`, compressed if that makes it smaller.
    fn write_block(&mut self, mut head: Head) -> Result<(), TraceError> {
        let payload = packed(&self.raw, &mut self.stored);
        (head.stored_bytes, head.raw_bytes) = (payload.len() as u32, self.raw.len() as u32);
        self.out.write_all(&head.to_bytes(payload))?;
        self.out.write_all(payload)?;
        Entry::of(&head, self.offset).write(&mut self.index);
        self.offset += (HEAD_BYTES + payload.len()) as u64;
        self.blocks += 1;
        Ok(())
    }

    /// Writes index and trailer: only now is it a trace.
    ///
    /// # Errors
    /// Those of `out`; a thread whose end is missing.
    pub fn finish(mut self) -> Result<W, TraceError> {
        if let Some(thread) = self.threads.iter().position(|t| !t.ended) {
            let what = format!("thread {thread} has not come to its end: the trace is not whole");
            return Err(TraceError::Unsupported(what));
        }
        self.threads.iter().for_each(|t| t.summary.write(&mut self.index));
        let mut trailer = self.offset.to_le_bytes().to_vec();
        trailer.extend(self.blocks.to_le_bytes());
        trailer.extend((self.threads.len() as u32).to_le_bytes());
        trailer.extend(checksum(&[&self.index]).to_le_bytes());
        trailer.extend(END);
        trailer.extend(checksum(&[&trailer]).to_le_bytes());
        self.out.write_all(&self.index)?;
        self.out.write_all(&trailer)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
