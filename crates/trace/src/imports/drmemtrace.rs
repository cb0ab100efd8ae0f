//! Traces of DynamoRIO's drmemtrace: entries of 12 bytes, of one thread.
//!
//! | bytes | content |
//! |---|---|
//! | 0, 1 | type of the entry |
//! | 2, 3 | bytes of an access or instruction, number of instructions of a bundle, kind of a marker |
//! | 4 to 11 | address of an access or instruction, number of a thread or process, value of a marker |
//!
//! From `trace_entry.h` of DynamoRIO 05e3165, versions 1 to 7 of the format. A trace begins with a header and ends with a
//! footer. An import makes a thread of each file. Of a file with several, as the first version has them, one is taken, whose
//! number is given; without a number, entries of a second thread are refused. Files of the same process share its memory.

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

/// A place among the entries of a file, and what was before it.
struct Entries<'a> {
    file: File<'a>,
    /// The byte of the entry.
    offset: u64,
    has_ended: bool,
}

/// The state of a file that is read.
struct Reading<'a, 'b, W> {
    thread: Thread<'b, W>,
    /// The thread whose entries are taken; none: the file has no other.
    only: Option<u64>,
    /// Processes of all files.
    processes: &'a mut Vec<u64>,
    oddities: &'a mut Oddities,
    /// The thread of the entries.
    number: Option<u64>,
    instructions: u64,
}

/// Takes a thread of a whole file, or its only one; returns its instructions.
pub fn read<W: Write>(
    source: &mut impl Read,
    file: File,
    only: Option<u64>,
    thread: Thread<W>,
    processes: &mut Vec<u64>,
    oddities: &mut Oddities,
) -> Result<u64, TraceError> {
    let mut reading = Reading { thread, only, processes, oddities, number: None, instructions: 0 };
    each(source, file, |entries, entry| {
        let is_enough = reading.entry(entries, &entry)?;
        if entries.is_at_report() {
            file.report(reading.instructions)?;
        }
        Ok(is_enough)
    })?;
    file.report(reading.instructions)?;
    reading.thread.end()?;
    Ok(reading.instructions)
}

/// The threads of a file, in the order of their first entries.
pub fn threads(source: &mut impl Read, file: File) -> Result<Vec<u64>, TraceError> {
    let mut found = Vec::new();
    each(source, file, |entries, entry| {
        if entry.kind == Kind::Thread && !found.contains(&entry.value) {
            found.push(entry.value);
        }
        if entries.is_at_report() {
            file.report(0)?;
        }
        Ok(false)
    })?;
    Ok(found)
}

/// Calls `take` with all entries of a file, until it says that these are enough.
fn each(
    source: &mut impl Read,
    file: File,
    mut take: impl FnMut(&Entries, Entry) -> Result<bool, TraceError>,
) -> Result<(), TraceError> {
    let mut entries = Entries { file, offset: 0, has_ended: false };
    let mut chunk = vec![0; CHUNK_ENTRIES * ENTRY_BYTES];
    loop {
        let bytes = super::champsim::fill(source, &mut chunk).map_err(|e| file.unread(&e))?;
        let whole = chunk[..bytes].chunks_exact(ENTRY_BYTES);
        let rest = whole.remainder().len();
        for entry in whole {
            let entry = entries.parse(entry)?;
            if take(&entries, entry)? {
                return Ok(());
            }
            entries.offset += ENTRY_BYTES as u64;
        }
        if rest > 0 {
            let found = format!("{rest} bytes, then the end");
            return Err(entries.malformed("an entry of 12 bytes", &found));
        }
        if bytes < chunk.len() {
            break;
        }
    }
    if !entries.has_ended {
        return Err(entries.malformed("the footer of a trace", "the end of the file"));
    }
    Ok(())
}

impl Entries<'_> {
    /// Reads an entry, and checks that it may stand where it does.
    fn parse(&mut self, bytes: &[u8]) -> Result<Entry, TraceError> {
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
            let expected =
                "an entry of one trace (files of a core, which hold several, are not read)";
            return Err(self.malformed(expected, "the header of another"));
        }
        self.has_ended = kind == Kind::Footer;
        Ok(Entry { kind, size, value })
    }

    fn is_at_report(&self) -> bool {
        self.offset.is_multiple_of((CHUNK_ENTRIES * ENTRY_BYTES) as u64)
    }

    fn malformed(&self, expected: &str, found: &str) -> TraceError {
        self.file.malformed(self.offset, expected, found)
    }
}

impl<W: Write> Reading<'_, '_, W> {
    /// Takes an entry; returns whether no more are taken.
    fn entry(&mut self, entries: &Entries, entry: &Entry) -> Result<bool, TraceError> {
        match entry.kind {
            Kind::Thread => self.of_thread(entries, entry.value)?,
            Kind::Process => self.of_process(entry.value),
            Kind::Marker if entry.size == FILE_TYPE => {
                self.oddities.filtered_files += u64::from(entry.value & FILTERED != 0);
            }
            _ if self.only.is_some() && self.only != self.number => {}
            Kind::Instruction | Kind::Bundle if entries.file.is_enough(self.instructions) => {
                return Ok(true);
            }
            Kind::Instruction => self.instruction()?,
            Kind::Bundle => (0..entry.size).try_for_each(|_| self.instruction())?,
            Kind::Again => self.thread.end_instruction()?,
            Kind::Load => {
                let bytes = self.accessed(entries, entry)?;
                self.thread.load_all(bytes)?;
            }
            Kind::Store => {
                let bytes = self.accessed(entries, entry)?;
                self.thread.store_all(bytes)?;
            }
            Kind::Prefetch => self.oddities.prefetches += 1,
            Kind::Flush => self.oddities.flushes += 1,
            Kind::Footer | Kind::Marker | Kind::Header | Kind::Silent => {}
        }
        Ok(false)
    }

    fn instruction(&mut self) -> Result<(), TraceError> {
        self.instructions += 1;
        self.thread.instruction()
    }

    /// The bytes of an access; those of a word if it is not known how many.
    fn accessed(&mut self, entries: &Entries, entry: &Entry) -> Result<Bytes, TraceError> {
        self.oddities.unsized_accesses += u64::from(entry.size == 0);
        let (address, size) = match entry.size {
            0 => (entry.value / WORD_BYTES * WORD_BYTES, WORD_BYTES),
            size => (entry.value, size.into()),
        };
        Bytes::at(address, size).ok_or_else(|| {
            let found = format!("{size} bytes from {address:#x} on");
            entries.malformed("an access below address 2^64", &found)
        })
    }

    fn of_thread(&mut self, entries: &Entries, number: u64) -> Result<(), TraceError> {
        if let (None, Some(first)) = (self.only, self.number)
            && first != number
        {
            let expected = format!("an entry of thread {first}, the first of the file");
            return Err(entries.malformed(&expected, &format!("one of thread {number}")));
        }
        self.number = Some(number);
        Ok(())
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
