//! DRAMsim3's trace format: `0xADDRESS WORD CYCLE`, the address hexadecimal with or without `0x`, the cycle decimal. It
//! carries no data. `WRITE`, `write`, `P_MEM_WR` and `BOFF` are writes; DRAMsim3 takes every other word for a read, and so
//! does this, which counts those that are neither `READ` nor `read`.

use std::io;

use super::error::TraceError;
use super::fields::{Fields, cycle};
use super::{Content, Request, hex};
use graven_base::memory::Addr;

/// The words of writes.
const WRITES: [&[u8]; 4] = [b"WRITE", b"write", b"P_MEM_WR", b"BOFF"];

/// Words that are taken for reads though they say something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherWords {
    /// Number of lines with such a word.
    pub lines: u64,
    /// The first of these, from 1.
    pub first_line: u64,
    /// The word.
    pub first: String,
}

impl OtherWords {
    /// Counts a line.
    #[cold]
    fn count(found: &mut Option<OtherWords>, line: u64, word: &[u8]) {
        let first = || String::from_utf8_lossy(word).into_owned();
        found
            .get_or_insert_with(|| OtherWords { lines: 0, first_line: line, first: first() })
            .lines += 1;
    }
}

/// Recognises a request of this format, whatever its word.
pub fn is_request(text: &[u8]) -> bool {
    parse(text, 0, &mut None).is_ok()
}

/// Writes one request.
pub fn write(out: &mut impl io::Write, request: &Request) -> io::Result<()> {
    let word = if request.write { "WRITE" } else { "READ" };
    writeln!(out, "{:#x} {word} {}", request.line.addr().0, request.cycle)
}

/// Reads one request, and counts its word if it is another.
pub fn parse(
    text: &[u8],
    line: u64,
    others: &mut Option<OtherWords>,
) -> Result<Request, TraceError> {
    let mut fields = Fields::new(text, line);
    let addr = fields.expect("an address of up to 16 hexadecimal digits", hex::number)?;
    let word = fields.expect("`READ`, `WRITE` or another word", |field| {
        let is_word = field.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        (is_word && field.first()?.is_ascii_alphabetic()).then_some(field)
    })?;
    let at = fields.expect("a cycle, a decimal number below 2^62", cycle)?;
    fields.end()?;
    let write = WRITES.contains(&word);
    if !write && word != b"READ" && word != b"read" {
        OtherWords::count(others, line, word);
    }
    Ok(Request { cycle: at, line: Addr(addr).line(), write, content: Content::Unknown, thread: 0 })
}
