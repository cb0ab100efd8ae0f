//! NVMain's trace format.
//!
//! | line | meaning |
//! |---|---|
//! | `NVMV1` | first line: requests carry old data |
//! | `NVMV0` | first line: requests carry no old data |
//! | `CYCLE R\|W ADDRESS DATA OLDDATA THREAD` | a request |
//! | `CYCLE R\|W ADDRESS DATA THREAD` | a request without old data |
//!
//! `CYCLE` and `THREAD` are decimal, the cycle one of the processor's; `ADDRESS` is hexadecimal, with or
//! without `0x`; data are a line of 64 B as 128 hexadecimal digits, the byte at the lowest address
//! first. A trace without either of these first lines is of version 0, and NVMain throws its first line away; so
//! does this, if the line is a request at all. Its own reader of version 1 loses the first access; here none is lost.

use std::io::{self, Write};

use super::error::TraceError;
use super::fields::{Fields, cycle, decimal};
use super::{Content, Request, hex};
use graven_base::memory::{Addr, LineData};

/// The versions: without old data in the file, and with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// No.
    V0,
    /// Yes.
    V1,
}

impl Version {
    /// The version of a first line, if it is a header.
    pub fn of_header(text: &[u8], line: u64) -> Option<Result<Version, TraceError>> {
        let text = text.trim_ascii();
        text.starts_with(b"NVMV").then(|| match text {
            b"NVMV0" => Ok(Version::V0),
            b"NVMV1" => Ok(Version::V1),
            _ => Err(TraceError::malformed(line, "`NVMV0` or `NVMV1`", text)),
        })
    }

    /// The version for requests with such content; `None` if they have none.
    pub fn of_content(content: &Content) -> Option<Version> {
        match content {
            Content::Unknown => None,
            Content::New(_) => Some(Version::V0),
            Content::OldAndNew { .. } => Some(Version::V1),
        }
    }
}

/// Reads one request.
pub fn parse(text: &[u8], line: u64, version: Version) -> Result<Request, TraceError> {
    let mut fields = Fields::new(text, line);
    let at = fields.expect("a cycle, a decimal number below 2^62", cycle)?;
    let write = fields.expect("`R` or `W`", |field| match field {
        b"R" => Some(false),
        b"W" => Some(true),
        _ => None,
    })?;
    let addr = fields.expect("an address of up to 16 hexadecimal digits", hex::number)?;
    let new = fields.expect("data of 128 hexadecimal digits", data)?;
    let content = match version {
        Version::V0 => Content::New(new),
        Version::V1 => Content::OldAndNew {
            old: fields.expect("old data of 128 hexadecimal digits", data)?,
            new,
        },
    };
    let thread =
        fields.expect("a thread number", |f| decimal(f).and_then(|t| u32::try_from(t).ok()))?;
    fields.end()?;
    Ok(Request { cycle: at, line: Addr(addr).line(), write, content, thread })
}

fn data(field: &[u8]) -> Option<LineData> {
    hex::line(field.try_into().ok()?)
}

/// Reads the request at the beginning of a text, and returns the length of its line, if it stands there as [`Writer`] writes: one space between
/// fields, `0x`, the end of the line right behind the thread. What does not is [`parse`]'s, which says the same of whatever
/// this takes.
#[inline]
pub fn written(text: &[u8], version: Version, request: &mut Request) -> Option<usize> {
    // Numbers of fewer digits than may be there need no checks of their size.
    let (cycle, rest) = plain::<18>(text, b' ')?;
    let (operation, rest) = rest.split_first_chunk::<4>()?;
    let write = match operation {
        b"R 0x" => false,
        b"W 0x" => true,
        _ => return None,
    };
    let (addr, rest) = address(rest)?;
    let (new, rest) = field(rest)?;
    let (content, rest) = match version {
        Version::V0 => (Content::New(new), rest),
        Version::V1 => {
            let (old, rest) = field(rest)?;
            (Content::OldAndNew { old, new }, rest)
        }
    };
    let (thread, rest) = plain::<9>(rest, b'\n')?;
    let line = Addr(addr).line();
    *request = Request { cycle, line, write, content, thread: thread as u32 };
    Some(text.len() - rest.len())
}

/// A decimal number of up to `MAX` digits, and what is behind the byte that ends it.
#[inline]
fn plain<const MAX: usize>(text: &[u8], end: u8) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, &byte) in text.iter().enumerate().take(MAX + 1) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return (byte == end && at > 0).then(|| (value, &text[at + 1..]));
        }
        value = value * 10 + u64::from(digit);
    }
    None
}

/// A hexadecimal number of up to 16 digits, and what is behind the space that ends it.
#[inline]
fn address(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, &byte) in text.iter().enumerate().take(17) {
        let Some(digit) = hex::digit(byte) else {
            return (byte == b' ' && at > 0).then(|| (value, &text[at + 1..]));
        };
        value = value << 4 | digit;
    }
    None
}

/// Data, and what is behind the space that ends them.
#[inline]
fn field(text: &[u8]) -> Option<(LineData, &[u8])> {
    let (digits, rest) = text.split_first_chunk()?;
    let (b' ', rest) = rest.split_first()? else { return None };
    Some((hex::line(digits)?, rest))
}

/// Writes requests as text.
pub struct Writer<W> {
    out: W,
    version: Version,
}

impl<W: Write> Writer<W> {
    /// Begins a trace with old and new data.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W) -> io::Result<Self> {
        Self::of_version(out, Version::V1)
    }

    /// Begins a trace of a version with its first line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn of_version(mut out: W, version: Version) -> io::Result<Self> {
        out.write_all(match version {
            Version::V0 => b"NVMV0\n",
            Version::V1 => b"NVMV1\n",
        })?;
        Ok(Self { out, version })
    }

    /// Writes one request: a [`graven_machine::controller::RequestRecord`] by reference, or a [`Request`]. Content
    /// that is not known is written as zeros.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&mut self, request: impl Into<Request>) -> io::Result<()> {
        let request = request.into();
        let (old, new) = match request.content {
            Content::Unknown => Default::default(),
            Content::New(new) => (LineData::default(), new),
            Content::OldAndNew { old, new } => (old, new),
        };
        let operation = if request.write { 'W' } else { 'R' };
        write!(self.out, "{} {operation} {:#x} ", request.cycle, request.line.addr().0)?;
        self.out.write_all(&hex::digits(&new))?;
        if self.version == Version::V1 {
            self.out.write_all(b" ")?;
            self.out.write_all(&hex::digits(&old))?;
        }
        writeln!(self.out, " {}", request.thread)
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
