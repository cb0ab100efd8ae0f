//! Packet traces of gem5: `gem5`, then messages of Protocol Buffers, each behind its length (gem5 b1a44b8, `packet.proto`).
//!
//! | message | fields |
//! |---|---|
//! | the first, `PacketHeader` | 1: name of the object, 2: version, 3: ticks in a second |
//! | others, `Packet` | 1: tick, 2: command, 3: address, 4: bytes, 5: flags, 6: number, 7: address of the instruction |
//!
//! Fields 1 and 3 of the header and 1 to 4 of a packet must be there; others are passed over. A packet is a request to each
//! line that it touches, in the order of addresses. Packets have no data. Commands are numbers of `MemCmd` in `packet.hh` of
//! that version; older ones (before gem5 20.1) have other numbers above 5. Commands that do not read or write memory are
//! left out, and counted.

use std::io::{self, Read, Write};

use graven_base::memory::{Addr, LINE_BYTES, LineAddr};
use graven_capture::numbers::{leb128, read_leb128};

use super::error::{Place, TraceError};
use super::input::Input;
use super::{Content, Request};

/// The beginning of a trace.
pub const MAGIC: [u8; 4] = *b"gem5";
/// A longer message is none of gem5's packets.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;
/// The most bytes of a length.
const LENGTH_BYTES_MAX: usize = 10;
/// The most bytes of a packet.
const PACKET_BYTES_MAX: u64 = 1 << 16;

/// Requests that read: ReadReq, SoftPFReq, SoftPFExReq, HardPFReq, ReadExReq, ReadCleanReq, ReadSharedReq, LoadLockedReq,
/// LockedRMWReadReq.
const READS: [u64; 9] = [1, 11, 12, 13, 22, 24, 25, 26, 30];
/// Requests that write: WriteReq, WritebackDirty, WritebackClean, WriteClean, WriteLineReq, StoreCondReq, LockedRMWWriteReq.
const WRITES: [u64; 7] = [4, 7, 8, 9, 16, 27, 32];

/// Ticks in a second of a trace that is written.
pub const TICK_HZ: u64 = 1_000_000_000_000;
/// The command of a packet that is written for a read (ReadReq), and for a write (WriteReq).
const WRITTEN: [u64; 2] = [1, 4];

/// Begins a trace.
pub fn begin(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&MAGIC)?;
    let mut header = vec![1 << 3 | 2, 6];
    header.extend(b"graven");
    append(&mut header, 2, 0);
    append(&mut header, 3, TICK_HZ);
    write_message(out, &header)
}

/// Writes one request, whose cycle is a tick, as a packet.
pub fn write(out: &mut impl Write, request: &Request) -> io::Result<()> {
    let command = WRITTEN[usize::from(request.write)];
    let fields = [request.cycle, command, request.line.addr().0, LINE_BYTES];
    let mut packet = Vec::with_capacity(32);
    (1..).zip(fields).for_each(|(field, value)| append(&mut packet, field, value));
    write_message(out, &packet)
}

/// Appends a field that is a number.
fn append(message: &mut Vec<u8>, field: u8, value: u64) {
    message.push(field << 3);
    leb128(value, |byte| message.push(byte));
}

fn write_message(out: &mut impl Write, message: &[u8]) -> io::Result<()> {
    let mut length = Vec::with_capacity(LENGTH_BYTES_MAX);
    leb128(message.len() as u64, |byte| length.push(byte));
    out.write_all(&length)?;
    out.write_all(message)
}

/// Packets that were left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Number of packets.
    pub packets: u64,
    /// The byte at which the first of them begins.
    pub first_byte: u64,
    /// The command of the first.
    pub first_command: u64,
}

/// A packet trace as far as it has been read.
#[derive(Debug, Default)]
pub struct Gem5 {
    tick_hz: Option<u64>,
    /// The byte at which the message begins.
    offset: u64,
    /// The lines of the packet that are not handed out yet: the next, and the last.
    lines: Option<(u64, u64)>,
    tick: u64,
    write: bool,
    left_out: Option<LeftOut>,
}

impl Gem5 {
    /// The packet that was read last.
    pub fn place(&self) -> Place {
        Place::Byte(self.offset)
    }

    /// Ticks in a second, once the header was read.
    pub fn tick_hz(&self) -> Option<u64> {
        self.tick_hz
    }

    /// The packets that were left out so far.
    pub fn left_out(&self) -> Option<LeftOut> {
        self.left_out
    }

    /// Reads the next request, at a tick; returns false at the end.
    pub fn request<R: Read>(
        &mut self,
        input: &mut Input<R>,
        request: &mut Request,
    ) -> Result<bool, TraceError> {
        if self.tick_hz.is_none() {
            self.header(input)?;
        }
        loop {
            if let Some((line, last)) = self.lines {
                self.lines = (line < last).then_some((line + 1, last));
                *request = Request {
                    cycle: self.tick,
                    line: LineAddr(line),
                    write: self.write,
                    content: Content::Unknown,
                    thread: 0,
                };
                return Ok(true);
            }
            let Some(fields) = self.fields(input)? else { return Ok(false) };
            self.packet(fields)?;
        }
    }

    fn header<R: Read>(&mut self, input: &mut Input<R>) -> Result<(), TraceError> {
        input.take(MAGIC.len());
        self.offset = input.offset();
        let found = self.fields(input)?;
        let Some([_, _, Some(tick_hz), _]) = found.filter(|fields| fields[2] != Some(0)) else {
            return Err(self.malformed("a header of packets with ticks in a second", "none"));
        };
        self.tick_hz = Some(tick_hz);
        Ok(())
    }

    /// Takes the four fields that a packet must have.
    fn packet(&mut self, fields: [Option<u64>; 4]) -> Result<(), TraceError> {
        let [Some(tick), Some(command), Some(address), Some(bytes)] = fields else {
            return Err(self.malformed("a packet with tick, command, address and bytes", "fewer"));
        };
        let (is_read, write) = (READS.contains(&command), WRITES.contains(&command));
        if !is_read && !write {
            let first = LeftOut { packets: 0, first_byte: self.offset, first_command: command };
            self.left_out.get_or_insert(first).packets += 1;
            return Ok(());
        }
        let last = bytes.checked_sub(1).and_then(|more| address.checked_add(more));
        let Some(last) = last.filter(|_| bytes <= PACKET_BYTES_MAX) else {
            let found = format!("{bytes} from {address:#x} on");
            return Err(self.malformed("1 to 65536 bytes below address 2^64", &found));
        };
        if tick >= 1 << 62 {
            return Err(self.malformed("a tick below 2^62", &tick.to_string()));
        }
        (self.tick, self.write) = (tick, write);
        self.lines = Some((Addr(address).line().0, Addr(last).line().0));
        Ok(())
    }

    /// The numbers that fields 1 to 4 of the next message have; none at the end of the trace.
    fn fields<R: Read>(
        &mut self,
        input: &mut Input<R>,
    ) -> Result<Option<[Option<u64>; 4]>, TraceError> {
        self.offset = input.offset();
        let there = input.peek(LENGTH_BYTES_MAX);
        if there.is_empty() {
            input.check(self.place())?;
            return Ok(None);
        }
        let mut rest = &there[..there.len().min(LENGTH_BYTES_MAX)];
        let before = rest.len();
        let length = read_leb128(&mut rest).filter(|&length| length <= MESSAGE_BYTES_MAX);
        let Some(length) = length else {
            input.check(self.place())?;
            return Err(self.malformed("the length of a message, at most 2^20", "something else"));
        };
        let begin = before - rest.len();
        let end = begin + length as usize;
        let left = input.peek(end).len();
        if left < end {
            input.check(self.place())?;
            let found = format!("{left} and no more: the trace was cut off");
            return Err(self.malformed(&format!("a message of {end} bytes"), &found));
        }
        numbers(&input.take(end)[begin..]).map(Some).ok_or_else(|| {
            self.malformed("a message of Protocol Buffers with numbers in fields 1 to 4", "another")
        })
    }

    fn malformed(&self, expected: &str, found: &str) -> TraceError {
        TraceError::damaged(self.offset, expected.to_owned(), found)
    }
}

/// The numbers in fields 1 to 4 of a message: the last ones, if there are several; none if the bytes are no message. A field of
/// text has none.
fn numbers(mut message: &[u8]) -> Option<[Option<u64>; 4]> {
    let mut found = [None; 4];
    while !message.is_empty() {
        let key = read_leb128(&mut message)?;
        let field = key >> 3;
        if field == 0 {
            return None;
        }
        let skipped = match key & 7 {
            0 => {
                let number = read_leb128(&mut message)?;
                if let Some(place) = usize::try_from(field - 1).ok().and_then(|i| found.get_mut(i))
                {
                    *place = Some(number);
                }
                0
            }
            1 => 8,
            2 => read_leb128(&mut message)?,
            5 => 4,
            _ => return None,
        };
        message = message.get(usize::try_from(skipped).ok()?..)?;
    }
    Some(found)
}
