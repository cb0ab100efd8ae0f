//! Traces of a core for USIMM: a line has the instructions before an access to memory, and the access.
//!
//! | line | meaning |
//! |---|---|
//! | `COUNT R ADDRESS PC` | `COUNT` instructions that touch no memory, and a load by the instruction at `PC` |
//! | `COUNT W ADDRESS` | and a line that is written back |
//!
//! Counts are decimal, addresses hexadecimal with or without `0x`. Sizes of accesses are not known; each is to the word that
//! its address lies in. A write counts as an instruction here.

use super::lines::{decimal, hexadecimal};
use super::ramulator::{BUBBLES_MAX, Line};

/// Reads a line.
///
/// # Errors
/// The expected text.
pub fn parse(line: &[u8]) -> Result<Line, &'static str> {
    parsed(line).ok_or("`COUNT R ADDRESS PC` or `COUNT W ADDRESS`, counts decimal and below 2^31, addresses hexadecimal")
}

fn parsed(line: &[u8]) -> Option<Line> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let bubbles = decimal(fields.next()?).filter(|&count| count <= BUBBLES_MAX)? as u32;
    let is_store = match fields.next()? {
        b"R" => false,
        b"W" => true,
        _ => return None,
    };
    let address = number(fields.next()?)?;
    if !is_store {
        number(fields.next()?)?;
    }
    fields.next().is_none().then_some(Line { bubbles, accesses: [Some((address, is_store)), None] })
}

fn number(text: &[u8]) -> Option<u64> {
    hexadecimal(text.strip_prefix(b"0x").unwrap_or(text))
}
