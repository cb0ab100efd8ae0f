//! The output of `valgrind --tool=lackey --trace-mem=yes` (3.19): an instruction or an access in each line.
//!
//! | line | meaning |
//! |---|---|
//! | `I  ADDRESS,SIZE` | an instruction, whose accesses follow |
//! | ` L ADDRESS,SIZE` | a load |
//! | ` S ADDRESS,SIZE` | a store |
//! | ` M ADDRESS,SIZE` | a load and a store of the same bytes |
//! | `==PID== TEXT` | a message of valgrind's |
//!
//! Addresses are hexadecimal, sizes are decimal numbers of bytes. Threads are not told from each other: all lines are one
//! thread's. Anything else is an error, since a line of the trace may lie within it.

use std::io::{Read, Write};

use super::File;
use super::lines::{Lines, decimal, hexadecimal};
use super::thread::{Bytes, Thread};
use crate::program::TraceError;

/// The largest access. The largest that an x86 instruction makes, of FXSAVE or XSAVE, has less.
const ACCESS_BYTES_MAX: u64 = 4096;

/// Lines between two reports.
const LINES_PER_REPORT: u64 = 4096;

/// Takes a whole file; returns its instructions.
pub fn read<R: Read, W: Write>(
    mut lines: Lines<R>,
    file: File,
    mut thread: Thread<W>,
) -> Result<u64, TraceError> {
    let (mut taken, mut accesses) = (0, 0u64);
    while let Some(line) = lines.next(&file)? {
        match parse(line) {
            Some(Line::Message) => {}
            Some(Line::Instruction) if file.is_enough(taken) => break,
            Some(Line::Instruction) => {
                thread.instruction()?;
                taken += 1;
            }
            Some(Line::Access { bytes, loads, stores }) => {
                if loads {
                    thread.load_all(bytes)?;
                }
                if stores {
                    thread.store_all(bytes)?;
                }
                accesses += 1;
            }
            None => {
                let (line, number) = (line.to_vec(), lines.number());
                let expected = "`I`, `L`, `S` or `M` with `ADDRESS,SIZE`, or valgrind's `==PID== MESSAGE` (its \
                                option --log-file keeps apart what the program prints)";
                return Err(file.malformed_line(number, expected, &line));
            }
        }
        if !lines.is_ended() {
            let expected = "the end of a line";
            return Err(file.malformed_line(lines.number(), expected, b""));
        }
        if lines.number().is_multiple_of(LINES_PER_REPORT) {
            file.report(taken)?;
        }
    }
    if taken == 0 && accesses == 0 {
        return Err(file.malformed_line(lines.number(), "an instruction or an access", b""));
    }
    file.report(taken)?;
    thread.end()?;
    Ok(taken)
}

enum Line {
    Message,
    Instruction,
    Access { bytes: Bytes, loads: bool, stores: bool },
}

fn parse(line: &[u8]) -> Option<Line> {
    if line.is_empty() || is_message(line) {
        return Some(Line::Message);
    }
    let (&kind, rest) = line.split_first()?;
    let rest = rest.strip_prefix(b" ")?.trim_ascii_start();
    let comma = rest.iter().position(|&byte| byte == b',')?;
    let address = hexadecimal(&rest[..comma])?;
    let size = decimal(&rest[comma + 1..]).filter(|&size| size <= ACCESS_BYTES_MAX)?;
    let bytes = Bytes::at(address, size)?;
    let (loads, stores) = match kind {
        b'I' => return Some(Line::Instruction),
        b'L' => (true, false),
        b'S' => (false, true),
        b'M' => (true, true),
        _ => return None,
    };
    Some(Line::Access { bytes, loads, stores })
}

/// Recognises `==PID==`, and `--PID--` and `**PID**` of more urgent or more detailed messages.
fn is_message(line: &[u8]) -> bool {
    let marks = [b"==", b"--", b"**"];
    marks.into_iter().filter_map(|mark| Some((mark, line.strip_prefix(mark)?))).any(
        |(mark, rest)| {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            digits > 0 && rest[digits..].starts_with(mark)
        },
    )
}
