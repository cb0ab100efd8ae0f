//! The history of a captured program: what it does for persistence, and by which instructions it stores, in the one order in which
//! its threads have done it. Blocks behind all others, from version 4 of the format on; no simulation asks for them.
//!
//! An entry stands *before* the operation of its thread whose number it has; that of a store or load is the operation itself. So the
//! order of all entries is the order of the program's stores and of its flushes, fences and system calls, across threads. Each has a
//! *site*, the instruction, and a *stack*, the calls that led to it. Threads that have no operations are numbered behind the others.
//!
//! | block | payload |
//! |---|---|
//! | `SITE` | a JSON array of sites ([`Site`]) |
//! | `STAC` | 8 bytes for each stack: the number of the stack of the calling function, from 1, or 0; the site of the call |
//! | `HIST` | entries as below; nothing of an earlier block is needed |
//!
//! | part of an entry | bytes |
//! |---|---|
//! | tag | bits 0 to 2: store (0), non-temporal store (1), store of a repeated string instruction (2), store of the kernel's (3), load (4), flush (5), fence (6), system call (7); bit 3: with the store before it is one instruction's, or the load is of a part of the word; bits 4 to 7: the next four parts follow |
//! | thread | LEB128; otherwise that of the entry before |
//! | stack | LEB128: 0, or the number of a stack from 1 on; otherwise that of the entry before |
//! | site | distance from that of the entry before, zigzag; otherwise the same |
//! | operation | distance from that of the entry before of this thread; otherwise 1 |
//! | load of a part | a bit for each byte of the word |
//! | flush | its number and 16 times the kind of its place (0 unknown, 1 persistent, 2 volatile); distance from the place before, zigzag, or the address |
//! | fence | its number |
//! | system call | its number, and 128 if it is over; kind of the place and place as of a flush; bytes, flags; result (zigzag); length and bytes of the path |
//!
//! Each block begins with everything "before" 0.

use std::io::{Read, Seek};

use graven_capture::numbers::{leb128, read_leb128, unzigzag, zigzag};
use graven_capture::{Asked, Call, Fence, Flush, Place};
use graven_machine::program::Op;
use serde::{Deserialize, Serialize};

use super::error::TraceError;
use super::layout::Kind;
use super::reader::{Reader, Stream};

/// Entries of a full block, sites or stacks.
pub(super) const BLOCK_ENTRIES: usize = 16_384;
/// Most bytes of a block.
pub(super) const RAW_BYTES_MAX: u32 = 64 << 20;
/// Bytes from which on a block of entries or sites is full.
const BLOCK_BYTES: usize = 256 << 10;
/// Bytes of a stack.
const STACK_BYTES: usize = 8;

const LOAD: u8 = 4;
const FLUSH: u8 = 5;
const FENCE: u8 = 6;
const CALL: u8 = 7;
const JOINED: u8 = 1 << 3;
const THREAD: u8 = 1 << 4;
const STACK: u8 = 1 << 5;
const SITE: u8 = 1 << 6;
const OPERATION: u8 = 1 << 7;
const OVER: u8 = 1 << 7;

/// The manner of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// An ordinary one.
    Plain,
    /// A non-temporal one.
    NonTemporal,
    /// One of a repeated string instruction, whose stores have no order among themselves.
    Repeated,
    /// The kernel's, for a system call.
    Kernel,
}

impl How {
    const ALL: [How; 4] = [How::Plain, How::NonTemporal, How::Repeated, How::Kernel];
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The operation is a store to persistent memory.
    Store {
        /// The manner.
        how: How,
        /// The store is a part of what one instruction stores, like the thread's store before it: of a vector, of a value over
        /// the edge of a word, of a string. Such parts have no order among themselves.
        is_joined: bool,
    },
    /// The operation is a load of persistent memory; of programs with several threads only.
    Load {
        /// The bytes of the word that are loaded: a bit each.
        bytes: u8,
    },
    /// A line is written back; the place is an address of the trace, or one in the program.
    Flush(Flush, Place),
    /// Stores and flushes are ordered.
    Fence(Fence),
    /// A system call; its place is an address of the trace.
    Call(Call),
}

/// An entry of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// The thread; from the number of the trace's threads on: one without operations.
    pub thread: u32,
    /// The number of the thread's operation before which it happens; of a store or load, that operation.
    pub operation: u64,
    /// The instruction, by the number of its site.
    pub site: u32,
    /// The calls that led to it: 0, or the number of a stack from 1 on.
    pub stack: u32,
    /// The content.
    pub what: Happened,
}

/// A place in the source.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Line {
    /// The function, demangled; none: no symbol says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// An instruction of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The file that the code is of; none: code that no file has, such as that of a just-in-time compiler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Address of the instruction, as the module counts addresses; without a module, in the program.
    pub address: u64,
    /// The instruction loads and stores atomically.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_atomic: bool,
    /// The function of another file that the instruction calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<String>,
    /// The functions that it is part of, the innermost first: all but the last are inlined into the one behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_false(is: &bool) -> bool {
    !is
}

/// A stack of calls: a call, and the stack of the function that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The calling function's, by its number from 1 on; 0: none is known.
    pub caller: u32,
    /// The call, by the number of its site.
    pub site: u32,
}

/// Number of entries and payload of a block.
pub(super) type Block = (u32, Vec<u8>);

/// A history that grows.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The instructions, by their numbers.
    pub sites: Vec<Site>,
    /// The stacks, of which the first has number 1.
    pub stacks: Vec<Stack>,
    /// Full blocks of entries.
    full: Vec<Block>,
    block: Vec<u8>,
    count: u32,
    before: Before,
}

/// Values of the entry before, to which the next one is relative.
#[derive(Clone, Debug, Default)]
struct Before {
    thread: u32,
    stack: u32,
    site: u32,
    place: u64,
    /// By thread.
    operations: Vec<u64>,
}

impl Before {
    fn operation(&mut self, thread: u32) -> &mut u64 {
        let thread = thread as usize;
        if self.operations.len() <= thread {
            self.operations.resize(thread + 1, 0);
        }
        &mut self.operations[thread]
    }
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    leb128(number, |byte| out.push(byte));
}

impl History {
    /// Adds an entry.
    pub fn push(&mut self, happening: &Happening) {
        let &Happening { thread, operation, site, stack, ref what } = happening;
        let last = std::mem::replace(self.before.operation(thread), operation);
        let distance = operation.wrapping_sub(last);
        let mut tag = match what {
            Happened::Store { how, is_joined } => *how as u8 | if *is_joined { JOINED } else { 0 },
            Happened::Load { bytes: u8::MAX } => LOAD,
            Happened::Load { .. } => LOAD | JOINED,
            Happened::Flush(..) => FLUSH,
            Happened::Fence(_) => FENCE,
            Happened::Call(_) => CALL,
        };
        let Before { thread: of_thread, stack: of_stack, site: of_site, .. } = self.before;
        for (is_there, bit) in [
            (thread != of_thread, THREAD),
            (stack != of_stack, STACK),
            (site != of_site, SITE),
            (distance != 1, OPERATION),
        ] {
            tag |= if is_there { bit } else { 0 };
        }
        let out = &mut self.block;
        out.push(tag);
        if tag & THREAD != 0 {
            put_number(out, thread.into());
        }
        if tag & STACK != 0 {
            put_number(out, stack.into());
        }
        if tag & SITE != 0 {
            put_number(out, zigzag(i64::from(site) - i64::from(of_site)));
        }
        if tag & OPERATION != 0 {
            put_number(out, distance);
        }
        match what {
            Happened::Store { .. } | Happened::Load { bytes: u8::MAX } => {}
            Happened::Load { bytes } => out.push(*bytes),
            Happened::Flush(flush, place) => {
                put_place(out, *flush as u8, *place, &mut self.before.place);
            }
            Happened::Fence(fence) => out.push(*fence as u8),
            Happened::Call(call) => {
                out.push(call.asked as u8 | if call.is_over { OVER } else { 0 });
                put_place(out, 0, call.place, &mut self.before.place);
                put_number(out, call.bytes);
                put_number(out, call.flags);
                put_number(out, zigzag(call.result));
                put_number(out, call.path.len() as u64);
                out.extend(call.path.as_bytes());
            }
        }
        (self.before.thread, self.before.stack, self.before.site) = (thread, stack, site);
        self.count += 1;
        if self.count as usize >= BLOCK_ENTRIES || self.block.len() >= BLOCK_BYTES {
            self.full.push((self.count, std::mem::take(&mut self.block)));
            (self.count, self.before) = (0, Before::default());
        }
    }

    /// All blocks: kind, and of each block its number of entries and its payload.
    pub(super) fn blocks(&self) -> [(Kind, Vec<Block>); 3] {
        let sites = self.sites.chunks(1024).map(|sites| {
            (sites.len() as u32, serde_json::to_vec(sites).expect("texts and numbers"))
        });
        let stacks = self.stacks.chunks(BLOCK_ENTRIES).map(|stacks| {
            let bytes = |stack: &Stack| [stack.caller.to_le_bytes(), stack.site.to_le_bytes()];
            (stacks.len() as u32, stacks.iter().flat_map(bytes).flatten().collect())
        });
        let last = (self.count > 0).then(|| (self.count, self.block.clone()));
        [
            (Kind::Sites, sites.collect()),
            (Kind::Stacks, stacks.collect()),
            (Kind::History, self.full.iter().cloned().chain(last).collect()),
        ]
    }
}

fn put_place(out: &mut Vec<u8>, number: u8, place: Place, before: &mut u64) {
    let kind = match place {
        Place::Unknown => 0,
        Place::Persistent(_) => 1,
        Place::Volatile(_) => 2,
    };
    out.push(number | kind << 4);
    match place {
        Place::Unknown => {}
        Place::Persistent(at) => {
            put_number(out, zigzag(at.wrapping_sub(*before) as i64));
            *before = at;
        }
        Place::Volatile(at) => put_number(out, at),
    }
}

/// Reads the entries of one block.
struct Entries<'a> {
    rest: &'a [u8],
    before: Before,
}

impl Entries<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn number(&mut self) -> Option<u64> {
        read_leb128(&mut self.rest)
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    fn entry(&mut self) -> Option<Happening> {
        let tag = self.byte()?;
        if tag & THREAD != 0 {
            self.before.thread = self.small().filter(|&thread| thread < 1 << 16)?;
        }
        if tag & STACK != 0 {
            self.before.stack = self.small()?;
        }
        if tag & SITE != 0 {
            let distance = unzigzag(self.number()?);
            let site = i64::from(self.before.site).checked_add(distance)?;
            self.before.site = site.try_into().ok()?;
        }
        let distance = if tag & OPERATION != 0 { self.number()? } else { 1 };
        let thread = self.before.thread;
        let operation = self.before.operation(thread);
        *operation = operation.checked_add(distance)?;
        let operation = *operation;
        let what = match tag & 7 {
            LOAD => {
                let bytes = if tag & JOINED != 0 { self.byte()? } else { u8::MAX };
                Happened::Load { bytes }
            }
            FLUSH => {
                let byte = self.byte()?;
                Happened::Flush(*Flush::ALL.get(usize::from(byte & 0xf))?, self.place(byte >> 4)?)
            }
            FENCE => Happened::Fence(*Fence::ALL.get(usize::from(self.byte()?))?),
            CALL => Happened::Call(self.call()?),
            how => {
                let (how, is_joined) = (How::ALL[usize::from(how)], tag & JOINED != 0);
                Happened::Store { how, is_joined }
            }
        };
        let Before { site, stack, .. } = self.before;
        Some(Happening { thread, operation, site, stack, what })
    }

    fn place(&mut self, kind: u8) -> Option<Place> {
        Some(match kind {
            0 => Place::Unknown,
            1 => {
                let distance = unzigzag(self.number()?) as u64;
                self.before.place = self.before.place.wrapping_add(distance);
                Place::Persistent(self.before.place)
            }
            2 => Place::Volatile(self.number()?),
            _ => return None,
        })
    }

    fn call(&mut self) -> Option<Call> {
        let byte = self.byte()?;
        let asked = *Asked::ALL.get(usize::from(byte & !OVER))?;
        let kind = self.byte()?;
        let place = self.place(kind >> 4)?;
        let (bytes, flags) = (self.number()?, self.number()?);
        let result = unzigzag(self.number()?);
        let length = usize::try_from(self.number()?).ok()?;
        let (path, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        let path = String::from_utf8_lossy(path).into_owned();
        Some(Call { asked, is_over: byte & OVER != 0, place, bytes, flags, result, path })
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Tells whether the trace has a history.
    pub fn has_history(&self) -> bool {
        !self.contents().history.entries.is_empty()
    }

    /// Refuses a trace that cannot have a history.
    ///
    /// # Errors
    /// The trace is not of a captured program, or its version kept no history.
    pub fn require_history(&self) -> Result<(), TraceError> {
        let what = if self.contents().header.capture.is_none() {
            "it is no trace of a captured program: only such have a history of persistence"
        } else if self.contents().version < 4 {
            "the trace was captured by a Graven that kept no history of persistence: \
             capture the program again"
        } else {
            return Ok(());
        };
        Err(TraceError::Unsupported(what.into()))
    }

    /// The instructions of the history, by their numbers.
    ///
    /// # Errors
    /// A block that is broken.
    pub fn sites(&self) -> Result<Vec<Site>, TraceError> {
        let mut all = Vec::new();
        self.each_block(&self.contents().history.sites, |offset, payload, count| {
            let refuse = |found: String| {
                let expected = format!("{count} sites in JSON");
                Err(TraceError::malformed(offset, expected, found))
            };
            match serde_json::from_slice::<Vec<Site>>(payload) {
                Ok(sites) if sites.len() == count as usize => all.extend(sites),
                Ok(sites) => return refuse(sites.len().to_string()),
                Err(error) => return refuse(error.to_string()),
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// The stacks of the history, of which the first has number 1.
    ///
    /// # Errors
    /// A block that is broken; a stack of a caller that comes later.
    pub fn stacks(&self) -> Result<Vec<Stack>, TraceError> {
        let mut all: Vec<Stack> = Vec::new();
        self.each_block(&self.contents().history.stacks, |offset, payload, count| {
            if payload.len() != count as usize * STACK_BYTES {
                let expected = format!("{count} stacks of {STACK_BYTES} bytes");
                return Err(TraceError::malformed(offset, expected, payload.len().to_string()));
            }
            for bytes in payload.as_chunks::<STACK_BYTES>().0 {
                let [caller, site] = [0, 4].map(|at| {
                    u32::from_le_bytes(*bytes[at..].first_chunk().expect("there are 8 bytes"))
                });
                if caller as usize > all.len() {
                    let expected = format!("a stack of at most {}", all.len());
                    return Err(TraceError::malformed(offset, expected, caller.to_string()));
                }
                all.push(Stack { caller, site });
            }
            Ok(())
        })?;
        Ok(all)
    }

    /// Hands out all entries of the history, in their order.
    ///
    /// # Errors
    /// A block that is broken; an operation that its thread has not.
    pub fn history(&self, mut each: impl FnMut(Happening)) -> Result<(), TraceError> {
        let threads = &self.contents().threads;
        self.each_block(&self.contents().history.entries, |offset, payload, count| {
            let mut entries = Entries { rest: payload, before: Before::default() };
            for number in 0..count {
                let Some(entry) = entries.entry() else {
                    let expected = format!("{count} entries of a history");
                    let found = format!("other bytes behind {number}");
                    return Err(TraceError::malformed(offset, expected, found));
                };
                let most = threads.get(entry.thread as usize).map_or(0, |t| t.operations);
                if entry.operation > most {
                    let expected = format!("one of {most} operations of thread {}", entry.thread);
                    return Err(TraceError::malformed(
                        offset,
                        expected,
                        entry.operation.to_string(),
                    ));
                }
                each(entry);
            }
            match entries.rest {
                [] => Ok(()),
                rest => {
                    let found = format!("{} bytes more", rest.len());
                    Err(TraceError::malformed(offset, format!("{count} entries"), found))
                }
            }
        })
    }

    /// Hands out all entries of the history, in their order, each with the operation that a store or load is.
    ///
    /// # Errors
    /// Those of [`Reader::history`]; a store or load that is another operation.
    pub fn walk(
        &self,
        mut each: impl FnMut(Happening, Option<Op>) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        let threads = self.contents().threads.len() as u32;
        let mut streams: Vec<_> = (0..threads).map(|thread| (self.thread(thread), 0)).collect();
        let mut failure = None;
        self.history(|happening| {
            if failure.is_none() {
                let done = step(&mut streams, &happening).and_then(|op| each(happening, op));
                failure = done.err();
            }
        })?;
        failure.map_or(Ok(()), Err)
    }
}

/// The operation that an entry is, if it is one.
fn step<R: Read + Seek>(
    streams: &mut [(Stream<R>, u64)],
    happening: &Happening,
) -> Result<Option<Op>, TraceError> {
    let is_store = match happening.what {
        Happened::Store { .. } => true,
        Happened::Load { .. } => false,
        _ => return Ok(None),
    };
    let Happening { thread, operation, .. } = *happening;
    let mut found = None;
    if let Some((stream, next)) = streams.get_mut(thread as usize) {
        while *next <= operation {
            found = stream.next_operation()?;
            *next += 1;
        }
    }
    let is_it = match found {
        Some(Op::Store { .. } | Op::StoreNonTemporal { .. }) => is_store,
        Some(Op::Load { .. }) => !is_store,
        _ => false,
    };
    if is_it {
        return Ok(found);
    }
    let what = format!("its history says that it is a {}", if is_store { "store" } else { "load" });
    let offset = streams.get(thread as usize).map_or(0, |(stream, _)| stream.offset());
    Err(TraceError::Operation { offset, thread, operation, what })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_happening() -> impl Strategy<Value = (u32, u64, u32, u32, Happened)> {
        let place = || {
            prop_oneof![
                Just(Place::Unknown),
                any::<u64>().prop_map(Place::Persistent),
                any::<u64>().prop_map(Place::Volatile),
            ]
        };
        let call = (
            (0..Asked::ALL.len(), any::<bool>(), place()),
            (any::<u64>(), any::<u64>(), any::<i64>()),
            "[a-zé/]{0,40}",
        );
        let what = prop_oneof![
            (0..4usize, any::<bool>())
                .prop_map(|(how, is_joined)| Happened::Store { how: How::ALL[how], is_joined }),
            any::<u8>().prop_map(|bytes| Happened::Load { bytes }),
            (0..Flush::ALL.len(), place()).prop_map(|(n, at)| Happened::Flush(Flush::ALL[n], at)),
            (0..Fence::ALL.len()).prop_map(|n| Happened::Fence(Fence::ALL[n])),
            call.prop_map(|((n, is_over, place), (bytes, flags, result), path)| {
                let asked = Asked::ALL[n];
                Happened::Call(Call { asked, is_over, place, bytes, flags, result, path })
            }),
        ];
        (0..5u32, prop_oneof![Just(1), 0..1u64 << 40], any::<u32>(), 0..4u32, what)
    }

    proptest! {
        #[test]
        fn entries_come_back(all in prop::collection::vec(any_happening(), 0..200)) {
            let (mut history, mut operations) = (History::default(), [0u64; 5]);
            let all: Vec<Happening> = all.into_iter().map(|(thread, since, site, stack, what)| {
                let operation = &mut operations[thread as usize];
                *operation += since;
                Happening { thread, operation: *operation, site, stack, what }
            }).collect();
            all.iter().for_each(|happening| history.push(happening));
            let mut found = Vec::new();
            for (count, payload) in &history.blocks()[2].1 {
                let mut entries = Entries { rest: payload, before: Before::default() };
                found.extend((0..*count).map(|_| entries.entry().expect("an entry")));
                prop_assert!(entries.rest.is_empty());
            }
            prop_assert_eq!(found, all);
        }

        #[test]
        fn whatever_is_read_ends(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut entries = Entries { rest: &bytes, before: Before::default() };
            while entries.entry().is_some() {}
        }
    }
}
