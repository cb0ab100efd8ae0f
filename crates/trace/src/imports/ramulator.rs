//! Traces of a core for Ramulator: a line has the instructions before an access, and the access.
//!
//! | line | meaning |
//! |---|---|
//! | `BUBBLES LOAD` | `BUBBLES` instructions that touch no memory, and a load of an address |
//! | `BUBBLES LOAD STORE` | and a store to another: in Ramulator a line that the caches before it write back |
//! | `BUBBLES ADDRESS R`, `BUBBLES ADDRESS W` | a load or a store (Ramulator 1, without caches) |
//!
//! Numbers are decimal, or hexadecimal behind `0x`. Ramulator 2 takes decimal ones alone, and Ramulator 1 takes one that
//! begins with 0 for octal: those are refused, as it cannot be known what was meant. Sizes of accesses are not known; each
//! is to the word that its address lies in. A store counts as an instruction here, and in Ramulator as none.

use std::io::{Read, Write};

use super::File;
use super::lines::{Lines, decimal, hexadecimal};
use super::thread::Thread;
use crate::program::TraceError;

/// The largest number of bubbles: that of Ramulator 2, which keeps it in 32 bits with a sign.
pub const BUBBLES_MAX: u64 = (1 << 31) - 1;

/// Lines between two reports.
const LINES_PER_REPORT: u64 = 4096;

/// Takes a whole file whose lines `parse` reads; returns its instructions.
pub fn read<R: Read, W: Write>(
    mut lines: Lines<R>,
    file: File,
    parse: impl Fn(&[u8]) -> Result<Line, &'static str>,
    mut thread: Thread<W>,
) -> Result<u64, TraceError> {
    let mut taken = 0;
    while !file.is_enough(taken)
        && let Some(line) = lines.next(&file)?
    {
        if line.is_empty() {
            continue;
        }
        let parsed = match parse(line) {
            Ok(parsed) => parsed,
            Err(expected) => {
                let (line, number) = (line.to_vec(), lines.number());
                return Err(file.malformed_line(number, expected, &line));
            }
        };
        let left = file.most.map_or(u64::MAX, |most| most - taken);
        thread.compute(u64::from(parsed.bubbles).min(left) as u32)?;
        taken += u64::from(parsed.bubbles).min(left);
        for (address, is_store) in parsed.accesses.into_iter().flatten() {
            if file.is_enough(taken) {
                break;
            }
            match is_store {
                true => thread.store(address, 0)?,
                false => thread.load(address, 0)?,
            }
            taken += 1;
        }
        if lines.number().is_multiple_of(LINES_PER_REPORT) {
            file.report(taken)?;
        }
    }
    if taken == 0 {
        return Err(file.malformed_line(lines.number(), "an access", b""));
    }
    file.report(taken)?;
    thread.end()?;
    Ok(taken)
}

/// A line of a trace.
pub struct Line {
    /// Instructions before the accesses that touch no memory.
    pub bubbles: u32,
    /// Addresses, each with whether it is stored to.
    pub accesses: [Option<(u64, bool)>; 2],
}

/// Reads a line.
///
/// # Errors
/// The expected text.
pub fn parse(line: &[u8]) -> Result<Line, &'static str> {
    parsed(line).ok_or(
        "`BUBBLES LOAD`, `BUBBLES LOAD STORE` or `BUBBLES ADDRESS R|W`, numbers decimal (without a 0 in front) or \
         hexadecimal with 0x, bubbles below 2^31",
    )
}

fn parsed(line: &[u8]) -> Option<Line> {
    let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
    let bubbles = number(fields.next()?).filter(|&bubbles| bubbles <= BUBBLES_MAX)? as u32;
    let first = number(fields.next()?)?;
    let accesses = match fields.next() {
        None | Some(b"R") => [Some((first, false)), None],
        Some(b"W") => [Some((first, true)), None],
        Some(second) => [Some((first, false)), Some((number(second)?, true))],
    };
    fields.next().is_none().then_some(Line { bubbles, accesses })
}

fn number(text: &[u8]) -> Option<u64> {
    match text.strip_prefix(b"0x") {
        Some(digits) => hexadecimal(digits),
        None if text.len() > 1 && text[0] == b'0' => None,
        None => decimal(text),
    }
}
