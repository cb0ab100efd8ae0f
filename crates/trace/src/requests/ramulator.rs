//! Request traces for Ramulator 1 and 2, which have no times: the controller is offered one request in each cycle.
//!
//! | line | of | meaning |
//! |---|---|---|
//! | `ADDRESS R`, `ADDRESS W`, `ADDRESS` | Ramulator 1 (DRAM) | a request; the address hexadecimal with or without `0x`, in the first line with it; a read if nothing follows |
//! | `LD ADDRESS`, `ST ADDRESS` | Ramulator 2 (`LoadStoreTrace`) | a request; the address decimal, or hexadecimal behind `0x` |
//! | `R A,B,…`, `W A,B,…` | Ramulator 2 (`ReadWriteTrace`) | a request; channel, rank and so on down to the column, decimal |
//!
//! A vector is a line only if it is known how many places each of its levels has: the last level, columns of a line each,
//! changes from one line to the next. No format has data.

use std::io;

use super::error::TraceError;
use super::fields::{Fields, decimal};
use super::{Content, Request, hex};
use graven_base::memory::{Addr, LineAddr};

/// One of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Ramulator 1's of DRAM.
    Dram,
    /// Ramulator 2's `LoadStoreTrace`.
    LoadStore,
    /// Ramulator 2's `ReadWriteTrace`.
    Vectors,
}

impl Layout {
    /// The format of a first line, if it is one of these.
    pub fn of(text: &[u8]) -> Option<Layout> {
        let mut fields = Fields::new(text, 0);
        let (first, second) = (fields.next()?, fields.next()?);
        fields.end().ok()?;
        match (first, second) {
            (b"LD" | b"ST", _) => Some(Layout::LoadStore),
            (b"R" | b"W", _) if second.contains(&b',') => Some(Layout::Vectors),
            // Without `0x` it may be the beginning of a line of NVMain's.
            (_, b"R" | b"W") if first.starts_with(b"0x") => Some(Layout::Dram),
            _ => None,
        }
    }
}

/// Reads one request, which has the number `cycle` in its trace.
pub fn parse(
    text: &[u8],
    line: u64,
    layout: Layout,
    cycle: u64,
    levels: &[u64],
) -> Result<Request, TraceError> {
    let mut fields = Fields::new(text, line);
    let (write, at) = match layout {
        Layout::Dram => {
            let expected = "an address of up to 16 hexadecimal digits";
            let addr = Addr(fields.expect(expected, hex::number)?);
            let write = match fields.next() {
                None | Some(b"R") => false,
                Some(b"W") => true,
                Some(other) => return Err(fields.malformed("`R`, `W` or nothing", other)),
            };
            (write, addr.line())
        }
        Layout::LoadStore => {
            let write = fields.expect("`LD` or `ST`", |field| either(field, b"LD", b"ST"))?;
            let expected = "an address, decimal, or hexadecimal behind 0x";
            (write, Addr(fields.expect(expected, number)?).line())
        }
        Layout::Vectors => {
            let write = fields.expect("`R` or `W`", |field| either(field, b"R", b"W"))?;
            let expected = "a vector of decimal numbers with commas, as many as levels are given and each below the \
                            number of its level (--levels)";
            (write, fields.expect(expected, |field| line_of(field, levels))?)
        }
    };
    fields.end()?;
    Ok(Request { cycle, line: at, write, content: Content::Unknown, thread: 0 })
}

/// Writes one request for Ramulator 1.
pub fn write(out: &mut impl io::Write, request: &Request) -> io::Result<()> {
    let letter = if request.write { 'W' } else { 'R' };
    writeln!(out, "{:#x} {letter}", request.line.addr().0)
}

/// Writes one request for Ramulator 2, as `LoadStoreTrace` reads it.
pub fn write_load_store(out: &mut impl io::Write, request: &Request) -> io::Result<()> {
    let word = if request.write { "ST" } else { "LD" };
    writeln!(out, "{word} {:#x}", request.line.addr().0)
}

/// True for the second of two words, false for the first.
fn either(field: &[u8], first: &[u8], second: &[u8]) -> Option<bool> {
    (field == first || field == second).then_some(field == second)
}

fn number(field: &[u8]) -> Option<u64> {
    let is_hexadecimal = field.starts_with(b"0x") || field.starts_with(b"0X");
    if is_hexadecimal { hex::number(field) } else { decimal(field) }
}

/// The line of a vector.
fn line_of(field: &[u8], levels: &[u64]) -> Option<LineAddr> {
    let mut places = field.split(|&byte| byte == b',');
    let mut line = 0u64;
    for &level in levels {
        let place = decimal(places.next()?).filter(|&place| place < level)?;
        line = line.checked_mul(level)?.checked_add(place)?;
    }
    // The address of the line has 64 bits.
    let is_whole = !levels.is_empty() && places.next().is_none() && line < 1 << 58;
    is_whole.then_some(LineAddr(line))
}
