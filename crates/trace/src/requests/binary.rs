//! The binary format: a beginning, blocks of requests, an end. All numbers are little endian.
//!
//! | part | bytes |
//! |---|---|
//! | beginning | `MAGIC` (8), version (4), CRC-32 of the 12 bytes before (4) |
//! | block | `REQS` (4), number of its requests (4), bytes of the payload as stored (4), bytes uncompressed (4), number of the first request, from 0 (8), CRC-32 of the 24 bytes before and of the payload (4), payload |
//! | end | `REND` (4), number of blocks (4), number of requests (8), CRC-32 of the 16 bytes before (4) |
//!
//! Parts follow each other without gaps, and nothing follows the end. A payload ([`super::packed`]) is one LZ4 block if that
//! makes it smaller. A trace is written and read from its beginning to its end, without going back.

use std::io::{self, Read, Write};

use super::Request;
use super::error::{Place, TraceError};
use super::input::Input;
use super::packed::{Columns, Rest, bytes_max};
use crate::framing::{Numbers, check_sum, checksum, packed, shown, unpack};

/// The beginning of a binary trace; a transfer as text would break it.
pub const MAGIC: [u8; 8] = *b"\x89GRVNR\r\n";
/// The format's version.
pub const FORMAT_VERSION: u32 = 1;
/// Requests of a full block.
pub const BLOCK_REQUESTS: usize = 4096;
/// Most requests that a block may have.
const BLOCK_REQUESTS_MAX: u32 = 65_536;

const BEGINNING_BYTES: usize = 16;
const BLOCK: [u8; 4] = *b"REQS";
const HEAD_BYTES: usize = 28;
const END: [u8; 4] = *b"REND";
const END_BYTES: usize = 20;

/// A part and the checksum behind it.
fn with_checksum(mut part: Vec<u8>, payload: &[u8]) -> Vec<u8> {
    let check = checksum(&[&part, payload]);
    part.extend(check.to_le_bytes());
    part
}

/// Writes requests in the binary format.
pub struct BinaryWriter<W> {
    out: W,
    columns: Columns,
    blocks: u32,
    /// In blocks that were written.
    requests: u64,
    raw: Vec<u8>,
    stored: Vec<u8>,
}

impl<W: Write> BinaryWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut beginning = MAGIC.to_vec();
        beginning.extend(FORMAT_VERSION.to_le_bytes());
        out.write_all(&with_checksum(beginning, &[]))?;
        let (raw, stored) = (Vec::new(), Vec::new());
        Ok(Self { out, columns: Columns::default(), blocks: 0, requests: 0, raw, stored })
    }

    /// Writes one request: a [`graven_machine::controller::RequestRecord`] by reference, or a [`Request`].
    ///
    /// # Errors
    /// Those of `out`; a cycle of 2^62 or more, or an address beyond 64 bits.
    pub fn write(&mut self, request: impl Into<Request>) -> io::Result<()> {
        self.columns.push(&request.into()).map_err(|what| {
            let number = self.requests + self.columns.len() as u64 + 1;
            io::Error::new(io::ErrorKind::InvalidInput, format!("request {number}: {what}"))
        })?;
        if self.columns.len() == BLOCK_REQUESTS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let requests = self.columns.len() as u32;
        self.raw.clear();
        self.columns.write(&mut self.raw);
        let payload = packed(&self.raw, &mut self.stored);
        let mut head = BLOCK.to_vec();
        for number in [requests, payload.len() as u32, self.raw.len() as u32] {
            head.extend(number.to_le_bytes());
        }
        head.extend(self.requests.to_le_bytes());
        self.out.write_all(&with_checksum(head, payload))?;
        self.out.write_all(payload)?;
        self.blocks += 1;
        self.requests += u64::from(requests);
        Ok(())
    }

    /// Ends the trace: only now is it one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        if self.columns.len() > 0 {
            self.flush()?;
        }
        let mut end = END.to_vec();
        end.extend(self.blocks.to_le_bytes());
        end.extend(self.requests.to_le_bytes());
        self.out.write_all(&with_checksum(end, &[]))?;
        self.out.flush()?;
        Ok(self.out)
    }
}

/// A binary trace as far as it has been read.
#[derive(Debug, Default)]
pub struct Binary {
    begun: bool,
    ended: bool,
    blocks: u32,
    /// In the blocks before this one, and in this one.
    requests: u64,
    /// Requests handed out.
    done: u64,
    /// The beginning of the block.
    offset: u64,
    payload: Vec<u8>,
    rest: Rest,
}

impl Binary {
    /// The request that was read last.
    pub fn place(&self) -> Place {
        Place::Request(self.done)
    }

    /// Reads the next request; returns false at the end.
    #[inline]
    pub fn request<R: Read>(
        &mut self,
        input: &mut Input<R>,
        request: &mut Request,
    ) -> Result<bool, TraceError> {
        if self.rest.is_empty() && !self.block(input)? {
            return Ok(false);
        }
        self.done += 1;
        let read = self.rest.next(&self.payload, request);
        read.map_err(|expected| self.damaged(expected))?;
        Ok(true)
    }

    /// The error of a request that the block does not have.
    #[cold]
    fn damaged(&self, expected: &str) -> TraceError {
        let expected = format!("in this block {expected} as request {}", self.done);
        TraceError::damaged(self.offset, expected, "something else")
    }

    /// Reads the next block; whether there is one.
    fn block<R: Read>(&mut self, input: &mut Input<R>) -> Result<bool, TraceError> {
        if self.ended {
            return Ok(false);
        }
        if !self.begun {
            beginning(input)?;
            self.begun = true;
        }
        let offset = input.offset();
        self.offset = offset;
        match *part::<4, _>(input, "a block, `REQS`, or the end, `REND`")? {
            BLOCK => {}
            END => return self.end(input).map(|()| false),
            ref other => {
                let expected = "a block, `REQS`, or the end, `REND`";
                return Err(TraceError::damaged(offset, expected, shown(other)));
            }
        }
        let head = *part::<HEAD_BYTES, _>(input, "the head of a block, of 28 bytes")?;
        let mut numbers = Numbers(&head[4..]);
        let [requests, stored, raw] = [numbers.u32(), numbers.u32(), numbers.u32()];
        let (first, check) = (numbers.u64(), numbers.u32());
        if requests == 0 || requests > BLOCK_REQUESTS_MAX {
            let expected = format!("1 to {BLOCK_REQUESTS_MAX} requests");
            return Err(TraceError::damaged(offset + 4, expected, requests.to_string()));
        }
        if stored > raw || raw > bytes_max(requests) {
            let most = bytes_max(requests);
            let expected = format!("at most {most} bytes, compressed not more");
            return Err(TraceError::damaged(offset + 8, expected, format!("{stored} for {raw}")));
        }
        let bytes = HEAD_BYTES + stored as usize;
        let there = input.peek(bytes).len();
        if there < bytes {
            return Err(cut_off(input, format!("a block of {bytes} bytes"))?);
        }
        let (head, stored) = input.take(bytes).split_at(HEAD_BYTES);
        let found = checksum(&[&head[..HEAD_BYTES - 4], stored]);
        check_sum("a block", check, found).map_err(TraceError::at(offset))?;
        if first != self.requests {
            let expected = format!("{}, the number of requests before", self.requests);
            return Err(TraceError::damaged(offset + 16, expected, first.to_string()));
        }
        self.payload.resize(raw as usize, 0);
        let at = offset + HEAD_BYTES as u64;
        unpack(stored, &mut self.payload).map_err(TraceError::at(at))?;
        self.rest = Rest::of(&self.payload, requests)
            .map_err(|expected| TraceError::damaged(at, expected, "something else"))?;
        self.blocks = self.blocks.wrapping_add(1);
        self.requests += u64::from(requests);
        Ok(true)
    }

    fn end<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), TraceError> {
        let offset = input.offset();
        let end = *part::<END_BYTES, _>(input, "the end, of 20 bytes")?;
        let mut numbers = Numbers(&end[4..]);
        let (blocks, requests, check) = (numbers.u32(), numbers.u64(), numbers.u32());
        let found = checksum(&[&end[..END_BYTES - 4]]);
        check_sum("an end", check, found).map_err(TraceError::at(offset))?;
        if (blocks, requests) != (self.blocks, self.requests) {
            let expected = format!("{} blocks, {} requests", self.blocks, self.requests);
            let found = format!("{blocks}, {requests}");
            return Err(TraceError::damaged(offset + 4, expected, found));
        }
        input.take(END_BYTES);
        if !input.peek(1).is_empty() {
            return Err(TraceError::damaged(input.offset(), "nothing behind the end", "more"));
        }
        input.check(Place::Byte(input.offset()))?;
        self.ended = true;
        Ok(())
    }
}

fn beginning<R: Read>(input: &mut Input<R>) -> Result<(), TraceError> {
    let beginning = *part::<BEGINNING_BYTES, _>(input, "the beginning of a trace, of 16 bytes")?;
    let (magic, rest) = beginning.split_at(MAGIC.len());
    if magic != MAGIC {
        let expected = "a binary request trace: the bytes 894752564e520d0a";
        return Err(TraceError::damaged(0, expected, shown(magic)));
    }
    let mut numbers = Numbers(rest);
    let (version, check) = (numbers.u32(), numbers.u32());
    let found = checksum(&[&beginning[..BEGINNING_BYTES - 4]]);
    check_sum("a beginning", check, found).map_err(TraceError::at(0))?;
    if version != FORMAT_VERSION {
        let expected = format!("version {FORMAT_VERSION}");
        return Err(TraceError::damaged(8, expected, version.to_string()));
    }
    input.take(BEGINNING_BYTES);
    Ok(())
}

/// The next bytes, which are not taken.
fn part<'a, const BYTES: usize, R: Read>(
    input: &'a mut Input<R>,
    what: &'static str,
) -> Result<&'a [u8; BYTES], TraceError> {
    if input.peek(BYTES).len() < BYTES {
        return Err(cut_off(input, what)?);
    }
    Ok(input.peek(BYTES).first_chunk().expect("they are there"))
}

/// The error of a part that is not whole; the error of reading, if that is why.
fn cut_off<R: Read>(
    input: &mut Input<R>,
    expected: impl Into<std::borrow::Cow<'static, str>>,
) -> Result<TraceError, TraceError> {
    let left = input.peek(0).len() as u64;
    input.check(Place::Byte(input.offset() + left))?;
    let found = format!("{left} and no more: the trace was cut off, or not finished");
    Ok(TraceError::damaged(input.offset(), expected, found))
}
