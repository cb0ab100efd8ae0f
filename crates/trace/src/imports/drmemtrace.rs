//! Traces of DynamoRIO's drmemtrace: entries of 12 bytes, of one thread.
//!
//! | bytes | content |
//! |---|---|
//! | 0, 1 | type of the entry |
//! | 2, 3 | bytes of an access or instruction, number of instructions of a bundle, kind of a marker |
//! | 4 to 11 | address of an access or instruction, number of a thread or process, value of a marker |
//!
//! From `trace_entry.h` of DynamoRIO 05e3165, versions 1 to 7 of the format. A trace begins with a header and ends with a
//! footer. Entries of more than one thread in a file are refused: an import makes a thread of each file. Files of the
//! same process share its memory.

use std::io::{Read, Write};

use super::thread::{Bytes, Thread};
use super::{File, Oddities};
use crate::program::TraceError;
use graven_base::memory::WORD_BYTES;

const ENTRY_BYTES: usize = 12;
/// Entries that are read at a time.
const CHUNK_ENTRIES: usize = 16_384;

/// The versions that are read.
const VERSIONS: std::ops::RangeInclusive<u64> = 1..=7;

/// The kind of the marker with the bits of the file's type.
const FILE_TYPE: u16 = 9;
/// Bits of a file from which the tracer left out accesses or instructions.
const FILTERED: u64 = 0x1 | 0x4 | 0x80 | 0x100;

/// The entry of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Load,
    Store,
    Prefetch,
    Instruction,
    /// Instructions that access nothing, but for the last.
    Bundle,
    /// Another round of an instruction that repeats itself.
    Again,
    Flush,
    Thread,
    Process,
    Header,
    Footer,
    Marker,
    /// Says nothing of accesses: the end of a flush or thread, bytes of an instruction.
    Silent,
}

impl Kind {
    fn of(number: u16) -> Option<Kind> {
        Some(match number {
            0 => Kind::Load,
            1 => Kind::Store,
            2..=9 | 27 | 32..=46 => Kind::Prefetch,
            10..=16 | 31 | 48 | 49 => Kind::Instruction,
            17 => Kind::Bundle,
            18 | 20 => Kind::Flush,
            19 | 21 | 23 | 47 => Kind::Silent,
            22 => Kind::Thread,
            24 => Kind::Process,
            25 => Kind::Header,
            26 => Kind::Footer,
            28 => Kind::Marker,
            29 => Kind::Again,
            _ => return None,
        })
    }
}

struct Entry {
    kind: Kind,
    size: u16,
    value: u64,
}

/// The state of a file that is read.
struct Reading<'a, 'b, W> {
    file: File<'a>,
    thread: Thread<'b, W>,
    /// Processes of all files.
    processes: &'a mut Vec<u64>,
    oddities: &'a mut Oddities,
    /// The byte of the entry.
    offset: u64,
    /// The file's thread.
    number: Option<u64>,
    instructions: u64,
    has_ended: bool,
}

/// Takes a whole file; returns its instructions.
pub fn read<W: Write>(
    source: &mut impl Read,
    file: File,
    thread: Thread<W>,
    processes: &mut Vec<u64>,
    oddities: &mut Oddities,
) -> Result<u64, TraceError> {
    let mut reading = Reading {
        file,
        thread,
        processes,
        oddities,
        offset: 0,
        number: None,
        instructions: 0,
        has_ended: false,
    };
    let mut chunk = vec![0; CHUNK_ENTRIES * ENTRY_BYTES];
    let mut is_enough = false;
    while !is_enough {
        let bytes = super::champsim::fill(source, &mut chunk).map_err(|e| file.unread(&e))?;
        let entries = chunk[..bytes].chunks_exact(ENTRY_BYTES);
        let rest = entries.remainder().len();
        for entry in entries {
            is_enough = reading.entry(entry)?;
            if is_enough {
                break;
            }
            reading.offset += ENTRY_BYTES as u64;
        }
        file.report(reading.instructions)?;
        if is_enough {
            break;
        }
        if rest > 0 {
            let found = format!("{rest} bytes, then the end");
            return Err(file.malformed(reading.offset, "an entry of 12 bytes", &found));
        }
        if bytes < chunk.len() {
            break;
        }
    }
    if !is_enough && !reading.has_ended {
        return Err(file.malformed(reading.offset, "the footer of a trace", "the end of the file"));
    }
    reading.thread.end()?;
    Ok(reading.instructions)
}

impl<W: Write> Reading<'_, '_, W> {
    /// Takes an entry; returns whether no more are taken.
    fn entry(&mut self, bytes: &[u8]) -> Result<bool, TraceError> {
        let entry = self.parse(bytes)?;
        match entry.kind {
            Kind::Instruction | Kind::Bundle if self.file.is_enough(self.instructions) => {
                return Ok(true);
            }
            Kind::Instruction => self.instruction()?,
            Kind::Bundle => (0..entry.size).try_for_each(|_| self.instruction())?,
            Kind::Again => self.thread.end_instruction()?,
            Kind::Load => {
                let bytes = self.accessed(&entry)?;
                self.thread.load_all(bytes)?;
            }
            Kind::Store => {
                let bytes = self.accessed(&entry)?;
                self.thread.store_all(bytes)?;
            }
            Kind::Prefetch => self.oddities.prefetches += 1,
            Kind::Flush => self.oddities.flushes += 1,
            Kind::Thread => self.of_thread(entry.value)?,
            Kind::Process => self.of_process(entry.value),
            Kind::Footer => self.has_ended = true,
            Kind::Marker if entry.size == FILE_TYPE => {
                self.oddities.filtered_files += u64::from(entry.value & FILTERED != 0);
            }
            Kind::Marker | Kind::Header | Kind::Silent => {}
        }
        Ok(false)
    }

    /// Reads an entry, and checks that it may stand where it does.
    fn parse(&self, bytes: &[u8]) -> Result<Entry, TraceError> {
        let short = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let value = u64::from_le_bytes(bytes[4..].try_into().expect("8 bytes"));
        let (number, size) = (short(0), short(2));
        let kind = Kind::of(number);
        if self.offset == 0 && !(kind == Some(Kind::Header) && VERSIONS.contains(&value)) {
            let found = format!("an entry of type {number} with value {value}");
            return Err(self.malformed("a header (type 25) of version 1 to 7", &found));
        }
        if self.has_ended {
            let found = format!("an entry of type {number}");
            return Err(self.malformed("the end of the trace, behind its footer", &found));
        }
        let Some(kind) = kind else {
            return Err(self.malformed("an entry of type 0 to 29, 31 to 49", &number.to_string()));
        };
        if kind == Kind::Header && self.offset > 0 {
            return Err(self.malformed("an entry of one trace", "the header of another"));
        }
        Ok(Entry { kind, size, value })
    }

    fn malformed(&self, expected: &str, found: &str) -> TraceError {
        self.file.malformed(self.offset, expected, found)
    }

    fn instruction(&mut self) -> Result<(), TraceError> {
        self.instructions += 1;
        self.thread.instruction()
    }

    /// The bytes of an access; those of a word if it is not known how many.
    fn accessed(&mut self, entry: &Entry) -> Result<Bytes, TraceError> {
        self.oddities.unsized_accesses += u64::from(entry.size == 0);
        let (address, size) = match entry.size {
            0 => (entry.value / WORD_BYTES * WORD_BYTES, WORD_BYTES),
            size => (entry.value, size.into()),
        };
        Bytes::at(address, size).ok_or_else(|| {
            let found = format!("{size} bytes from {address:#x} on");
            self.malformed("an access below address 2^64", &found)
        })
    }

    fn of_thread(&mut self, number: u64) -> Result<(), TraceError> {
        match self.number {
            Some(first) if first != number => {
                let found = format!("one of thread {number}");
                let expected = format!(
                    "an entry of thread {first}, the first of the file (files with several threads are not read)"
                );
                Err(self.malformed(&expected, &found))
            }
            _ => {
                self.number = Some(number);
                Ok(())
            }
        }
    }

    fn of_process(&mut self, process: u64) {
        let known = self.processes.iter().position(|&other| other == process);
        let space = known.unwrap_or_else(|| {
            self.processes.push(process);
            self.processes.len() - 1
        });
        self.thread.enter(space as u32);
    }
}
