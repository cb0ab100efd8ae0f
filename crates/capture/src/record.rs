//! Records: written into a window of bytes, and read from all bytes of a stream.

use std::io::{self, Read};

use crate::event::{Event, Left, Mark, code};
use crate::numbers::{leb128, read_leb128, unzigzag, zigzag};
use crate::persistence::{Asked, Call, Fence, Flush, Persistence, Place};
use crate::{ACCESS_BYTES_MAX, ORIGIN_MAX, PIECE_BYTES_MAX, check};

/// Most bytes of a record.
pub const RECORD_BYTES_MAX: usize = PIECE_BYTES_MAX + 96;

/// Most calls that are entered with one [`Record::Stack`].
pub const CALLS_MAX: usize = 128;

const VOLATILE: u8 = 0;
const LOAD: u8 = 1;
const STORE: u8 = 2;
const EVENT: u8 = 3;
/// Bit for a store that is non-temporal; for a load that is an atomic instruction's, and has no check; for an access to volatile
/// memory that stores.
const SPECIAL: u8 = 1 << 5;
/// That the number of instructions follows.
const MANY: u8 = 3;
/// In the place of the logarithm of an access's bytes, that their number follows.
const ANY_SIZE: u8 = 7;
/// The tag of a record that is no access: one of volatile memory without a size.
const NO_ACCESS: u8 = VOLATILE | SPECIAL;

/// Kinds of records that are no access.
mod kind {
    pub const STACK: u8 = 0;
    pub const FLUSH: u8 = 1;
    pub const FENCE: u8 = 2;
    pub const CALL: u8 = 3;
    pub const AT: u8 = 4;
}

/// Kinds of places.
mod of_place {
    pub const UNKNOWN: u8 = 0;
    pub const PERSISTENT: u8 = 1;
    pub const VOLATILE: u8 = 2;
}

/// The bit of a call's number that says that it is over.
const OVER: u8 = 1 << 7;

/// A load or a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Position of the first byte.
    pub position: u64,
    /// Number of bytes. An instruction with one access takes a power of two; a repeated string instruction, whose elements are
    /// joined, takes any number up to [`ACCESS_BYTES_MAX`].
    pub size: u8,
    /// Number of loads since that of the address, 1 for the newest; 0: no load gave the address.
    pub origin: u16,
    /// The instruction's site: its number in the order in which instructions were translated.
    pub site: u32,
    /// Bytes that a store stored.
    pub bytes: [u8; ACCESS_BYTES_MAX],
    /// Check of the bytes that a load found; none for an atomic instruction's.
    pub check: Option<u8>,
    /// The access is a store.
    pub is_store: bool,
    /// The access is a non-temporal store.
    pub is_non_temporal: bool,
}

impl Access {
    /// Returns the bytes that a store stored.
    #[must_use]
    pub fn stored(&self) -> &[u8] {
        &self.bytes[..self.size.into()]
    }
}

/// A load or store of volatile memory, whose bytes are not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volatile {
    /// Address in the program.
    pub address: u64,
    /// Number of bytes: a power of two.
    pub size: u8,
    /// Number of loads since that of the address, 1 for the newest; 0: no load gave the address.
    pub origin: u16,
    /// The access is a store.
    pub is_store: bool,
}

/// Use that an instruction makes of the bytes that it accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accessed {
    /// Loads them.
    Loaded,
    /// Loads bytes that are not known, since it stores there at the same time.
    LoadedBefore,
    /// Stores them.
    Stored,
    /// Stores them non-temporally.
    StoredNonTemporally,
}

/// One entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// A load or store of persistent memory.
    Access(Access),
    /// One of volatile memory.
    Volatile(Volatile),
    /// Something else, and its place in the order of all events.
    Event(u64, Event),
    /// Something that the thread does for persistence, and the site of its instruction.
    Persistence(u32, Persistence),
    /// The thread's stack of calls is another than when it was last told.
    Stack {
        /// Calls that are left, the innermost first.
        left: u64,
        /// The sites of calls that are entered then, the outermost first; at most [`CALLS_MAX`].
        entered: Vec<u32>,
    },
    /// The site of a system call, whose events follow.
    At(u32),
}

/// Writes records, each into bytes that have room for [`RECORD_BYTES_MAX`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Encoder {
    /// Position of the access before.
    position: u64,
    /// Address of the access before to volatile memory.
    address: u64,
    /// Site of the record before that has one.
    site: u64,
    /// Instructions up to the record before.
    instructions: u64,
}

impl Encoder {
    /// Instructions up to the record before.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.instructions
    }

    /// Instructions up to this one are no part of what follows.
    pub fn leave_out_to(&mut self, instructions: u64) {
        self.instructions = self.instructions.max(instructions);
    }

    /// Records a load or store of a thread that has executed `instructions` instructions. `bytes` are those loaded or stored,
    /// up to [`ACCESS_BYTES_MAX`]; `origin` counts the loads since that of its address; `site` is its instruction's. Returns the size of the record in bytes.
    #[inline]
    pub fn access(
        &mut self,
        out: &mut [u8],
        instructions: u64,
        position: u64,
        bytes: &[u8],
        how: Accessed,
        (origin, site): (u16, u32),
    ) -> usize {
        let size = match bytes.len().is_power_of_two() {
            true => bytes.len().trailing_zeros() as u8,
            false => ANY_SIZE,
        };
        let tag = size << 2
            | match how {
                Accessed::Loaded => LOAD,
                Accessed::LoadedBefore => LOAD | SPECIAL,
                Accessed::Stored => STORE,
                Accessed::StoredNonTemporally => STORE | SPECIAL,
            };
        let mut out = Window { bytes: out, at: 0 };
        self.tag(&mut out, tag, instructions);
        if size == ANY_SIZE {
            out.push(bytes.len() as u8);
        }
        out.distance(position, &mut self.position);
        out.number(origin.into());
        out.distance(site.into(), &mut self.site);
        match how {
            Accessed::Loaded => out.push(check(bytes)),
            Accessed::LoadedBefore => {}
            Accessed::Stored | Accessed::StoredNonTemporally => out.extend(bytes),
        }
        out.at
    }

    /// Records a load or store of volatile memory. Returns the size of the record in bytes.
    #[inline]
    pub fn volatile(&mut self, out: &mut [u8], instructions: u64, access: Volatile) -> usize {
        let size = access.size.trailing_zeros() as u8 + 1;
        let store = if access.is_store { SPECIAL } else { 0 };
        let mut out = Window { bytes: out, at: 0 };
        self.tag(&mut out, VOLATILE | size << 2 | store, instructions);
        out.distance(access.address, &mut self.address);
        out.number(access.origin.into());
        out.at
    }

    /// Records an event, the one of this number among those of all threads. Returns the size of the record in bytes.
    ///
    /// # Panics
    /// More than [`PIECE_BYTES_MAX`] bytes.
    pub fn event(
        &mut self,
        out: &mut [u8],
        instructions: u64,
        number: u64,
        event: &Event,
    ) -> usize {
        let mut out = Window { bytes: out, at: 0 };
        self.tag(&mut out, EVENT | event.code() << 2, instructions);
        out.number(number);
        let mut put = |numbers: &[u64]| numbers.iter().for_each(|&number| out.number(number));
        match event {
            Event::Entered { function, argument } => put(&[(*function).into(), *argument]),
            Event::Left { function, result, .. } => put(&[(*function).into(), *result]),
            Event::KernelWrote { position, bytes } | Event::Found { position, bytes } => {
                assert!(bytes.len() <= PIECE_BYTES_MAX, "a piece of what the kernel wrote");
                put(&[*position, bytes.len() as u64]);
                out.extend(bytes);
            }
            Event::Mapped { position, bytes, address } => put(&[*position, *bytes, *address]),
            Event::Zeroed { position, bytes } => put(&[*position, *bytes]),
            Event::Unmapped { address, bytes } => put(&[*address, *bytes]),
            Event::Resized { position } => put(&[*position]),
            Event::Marked(mark) => put(&[*mark as u64]),
            Event::Began { by } => put(&[by.map_or(0, |by| u64::from(by) + 1)]),
            Event::Synchronised { place, bytes, acquires, releases, is_atomic } => {
                let how = [is_atomic, acquires, releases];
                put(&[*place, how.into_iter().fold(*bytes, |n, &how| n << 1 | u64::from(how))]);
            }
            Event::Ended | Event::Ordered | Event::Forked | Event::Replaced => {}
        }
        out.at
    }

    /// Records what a thread does for persistence. Returns the size of the record in bytes.
    ///
    /// # Panics
    /// A path of more than [`PIECE_BYTES_MAX`] bytes.
    pub fn persistence(
        &mut self,
        out: &mut [u8],
        instructions: u64,
        site: u32,
        what: &Persistence,
    ) -> usize {
        let mut out = Window { bytes: out, at: 0 };
        self.tag(&mut out, NO_ACCESS, instructions);
        match what {
            Persistence::Flush(flush, place) => {
                out.push(kind::FLUSH);
                out.distance(site.into(), &mut self.site);
                out.push(*flush as u8 | kind_of(*place) << 4);
                out.place(*place, &mut self.position);
            }
            Persistence::Fence(fence) => {
                out.push(kind::FENCE);
                out.distance(site.into(), &mut self.site);
                out.push(*fence as u8);
            }
            Persistence::Call(call) => {
                assert!(call.path.len() <= PIECE_BYTES_MAX, "a path that was shortened");
                out.push(kind::CALL);
                out.distance(site.into(), &mut self.site);
                out.push(call.asked as u8 | if call.is_over { OVER } else { 0 });
                out.push(kind_of(call.place));
                out.place(call.place, &mut self.position);
                out.number(call.bytes);
                out.number(call.flags);
                out.number(zigzag(call.result));
                out.number(call.path.len() as u64);
                out.extend(call.path.as_bytes());
            }
        }
        out.at
    }

    /// Records that a thread has left `left` calls, and then entered others, at these sites. Returns the size of the record in
    /// bytes.
    ///
    /// # Panics
    /// More than [`CALLS_MAX`] sites.
    pub fn stack(
        &mut self,
        out: &mut [u8],
        instructions: u64,
        left: u64,
        entered: impl ExactSizeIterator<Item = u32>,
    ) -> usize {
        assert!(entered.len() <= CALLS_MAX, "a stack in pieces");
        let mut out = Window { bytes: out, at: 0 };
        self.tag(&mut out, NO_ACCESS, instructions);
        out.push(kind::STACK);
        out.number(left);
        out.number(entered.len() as u64);
        for site in entered {
            out.distance(site.into(), &mut self.site);
        }
        out.at
    }

    /// Records the site of a system call. Returns the size of the record in bytes.
    pub fn at(&mut self, out: &mut [u8], instructions: u64, site: u32) -> usize {
        let mut out = Window { bytes: out, at: 0 };
        self.tag(&mut out, NO_ACCESS, instructions);
        out.push(kind::AT);
        out.distance(site.into(), &mut self.site);
        out.at
    }

    #[inline]
    fn tag(&mut self, out: &mut Window<'_>, tag: u8, instructions: u64) {
        let since = instructions.saturating_sub(self.instructions);
        self.instructions += since;
        if since < MANY.into() {
            out.push(tag | (since as u8) << 6);
        } else {
            out.push(tag | MANY << 6);
            out.number(since);
        }
    }
}

/// The kind of a place, for its record.
fn kind_of(place: Place) -> u8 {
    match place {
        Place::Unknown => of_place::UNKNOWN,
        Place::Persistent(_) => of_place::PERSISTENT,
        Place::Volatile(_) => of_place::VOLATILE,
    }
}

/// The room that a record is written to, and how much of it the record takes so far.
struct Window<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Window<'_> {
    #[inline]
    fn push(&mut self, byte: u8) {
        self.bytes[self.at] = byte;
        self.at += 1;
    }

    #[inline]
    fn extend(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    #[inline]
    fn number(&mut self, number: u64) {
        leb128(number, |byte| self.push(byte));
    }

    /// Writes the distance of a place from the one before.
    #[inline]
    fn distance(&mut self, place: u64, before: &mut u64) {
        self.number(zigzag(place.wrapping_sub(*before) as i64));
        *before = place;
    }

    /// Writes a place, whose kind is written already.
    fn place(&mut self, place: Place, position: &mut u64) {
        match place {
            Place::Persistent(at) => self.distance(at, position),
            Place::Volatile(address) => self.number(address),
            Place::Unknown => {}
        }
    }
}

/// A stream that cannot be read on.
#[derive(Debug)]
pub enum Broken {
    /// The stream's file.
    Io(io::Error),
    /// A record that is none, at this byte.
    Record(u64),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Io(error)
    }
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Io(error) => error.fmt(f),
            Broken::Record(at) => write!(f, "no record at byte {at}"),
        }
    }
}

impl std::error::Error for Broken {}

/// The records of a stream, in their order, each with the instructions since the one before.
pub struct Records<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of the buffer that is not read yet.
    at: usize,
    filled: usize,
    /// Bytes before the buffer.
    before: u64,
    places: Places,
}

/// Places from which the next distances count.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    position: u64,
    address: u64,
    site: u64,
}

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 16;

impl<R: Read> Records<R> {
    /// Begins to read a stream.
    pub fn new(input: R) -> Records<R> {
        let buffer = vec![0; BUFFER_BYTES];
        Records { input, buffer, at: 0, filled: 0, before: 0, places: Places::default() }
    }

    /// The next one, and the instructions since the one before; none at the end.
    ///
    /// # Errors
    /// Those of the input; what is no record.
    #[inline]
    pub fn next_record(&mut self) -> Result<Option<(u64, Record)>, Broken> {
        if self.filled - self.at < RECORD_BYTES_MAX {
            self.fill()?;
        }
        let bytes = &self.buffer[self.at..self.filled];
        match bytes.first() {
            None | Some(0) => Ok(None),
            Some(_) => match read(bytes, &mut self.places) {
                Some((record, length)) => {
                    self.at += length;
                    Ok(Some(record))
                }
                None => Err(Broken::Record(self.before + self.at as u64)),
            },
        }
    }

    #[cold]
    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.at..self.filled, 0);
        self.before += self.at as u64;
        self.filled -= self.at;
        self.at = 0;
        while self.filled < self.buffer.len() {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(0) => break,
                Ok(n) => self.filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads what begins the bytes; returns it and its length.
fn read(bytes: &[u8], places: &mut Places) -> Option<((u64, Record), usize)> {
    let tag = bytes[0];
    let mut rest = &bytes[1..];
    let since = match tag >> 6 {
        MANY => read_leb128(&mut rest)?,
        few => few.into(),
    };
    let record = match tag & 3 {
        EVENT => {
            let number = read_leb128(&mut rest)?;
            Record::Event(number, read_event(tag >> 2 & 0xf, &mut rest)?)
        }
        _ if tag & !(MANY << 6) == NO_ACCESS => read_no_access(&mut rest, places)?,
        VOLATILE => Record::Volatile(read_volatile(tag, &mut rest, &mut places.address)?),
        _ => Record::Access(read_access(tag, &mut rest, places)?),
    };
    Some(((since, record), bytes.len() - rest.len()))
}

fn read_volatile(tag: u8, rest: &mut &[u8], address: &mut u64) -> Option<Volatile> {
    let size = 1u8 << (tag >> 2 & 7).checked_sub(1)?;
    read_distance(rest, address)?;
    let origin = read_origin(rest)?;
    Some(Volatile { address: *address, size, origin, is_store: tag & SPECIAL != 0 })
}

#[inline]
fn read_distance(rest: &mut &[u8], place: &mut u64) -> Option<()> {
    *place = place.wrapping_add(unzigzag(read_leb128(rest)?) as u64);
    Some(())
}

fn read_origin(rest: &mut &[u8]) -> Option<u16> {
    read_leb128(rest)?.try_into().ok().filter(|&origin| origin <= ORIGIN_MAX)
}

fn read_site(rest: &mut &[u8], places: &mut Places) -> Option<u32> {
    read_distance(rest, &mut places.site)?;
    places.site.try_into().ok()
}

fn read_byte(rest: &mut &[u8]) -> Option<u8> {
    let (&byte, behind) = rest.split_first()?;
    *rest = behind;
    Some(byte)
}

fn read_place(kind: u8, rest: &mut &[u8], places: &mut Places) -> Option<Place> {
    Some(match kind {
        of_place::UNKNOWN => Place::Unknown,
        of_place::PERSISTENT => {
            read_distance(rest, &mut places.position)?;
            Place::Persistent(places.position)
        }
        of_place::VOLATILE => Place::Volatile(read_leb128(rest)?),
        _ => return None,
    })
}

/// Reads a record that is no access, behind its tag.
fn read_no_access(rest: &mut &[u8], places: &mut Places) -> Option<Record> {
    let kind = read_byte(rest)?;
    if kind == kind::STACK {
        let (left, count) = (read_leb128(rest)?, read_leb128(rest)?);
        let count = usize::try_from(count).ok().filter(|&count| count <= CALLS_MAX)?;
        let entered = (0..count).map(|_| read_site(rest, places)).collect::<Option<_>>()?;
        return Some(Record::Stack { left, entered });
    }
    let site = read_site(rest, places)?;
    let what = match kind {
        kind::AT => return Some(Record::At(site)),
        kind::FLUSH => {
            let byte = read_byte(rest)?;
            let flush = *Flush::ALL.get(usize::from(byte & 0xf))?;
            Persistence::Flush(flush, read_place(byte >> 4, rest, places)?)
        }
        kind::FENCE => Persistence::Fence(*Fence::ALL.get(usize::from(read_byte(rest)?))?),
        kind::CALL => Persistence::Call(read_call(rest, places)?),
        _ => return None,
    };
    Some(Record::Persistence(site, what))
}

fn read_call(rest: &mut &[u8], places: &mut Places) -> Option<Call> {
    let byte = read_byte(rest)?;
    let asked = *Asked::ALL.get(usize::from(byte & !OVER))?;
    let kind = read_byte(rest)?;
    let place = read_place(kind, rest, places)?;
    let (bytes, flags) = (read_leb128(rest)?, read_leb128(rest)?);
    let result = unzigzag(read_leb128(rest)?);
    let length = usize::try_from(read_leb128(rest)?).ok().filter(|&n| n <= PIECE_BYTES_MAX)?;
    let (path, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    let path = String::from_utf8_lossy(path).into_owned();
    Some(Call { asked, is_over: byte & OVER != 0, place, bytes, flags, result, path })
}

fn read_access(tag: u8, rest: &mut &[u8], places: &mut Places) -> Option<Access> {
    let size = match tag >> 2 & 7 {
        ANY_SIZE => {
            let (&size, behind) = rest.split_first()?;
            *rest = behind;
            size
        }
        log => 1 << log,
    };
    if size == 0 || usize::from(size) > ACCESS_BYTES_MAX {
        return None;
    }
    read_distance(rest, &mut places.position)?;
    let mut access = Access {
        position: places.position,
        size,
        origin: read_origin(rest)?,
        site: read_site(rest, places)?,
        bytes: [0; ACCESS_BYTES_MAX],
        check: None,
        is_store: tag & 3 == STORE,
        is_non_temporal: tag & 3 == STORE && tag & SPECIAL != 0,
    };
    if access.is_store {
        let (stored, behind) = rest.split_at_checked(size.into())?;
        access.bytes[..size.into()].copy_from_slice(stored);
        *rest = behind;
    } else if tag & SPECIAL == 0 {
        let (&check, behind) = rest.split_first()?;
        access.check = Some(check);
        *rest = behind;
    }
    Some(access)
}

fn read_event(code: u8, rest: &mut &[u8]) -> Option<Event> {
    let mut number = || read_leb128(rest);
    Some(match code {
        code::ENTERED => {
            Event::Entered { function: number()?.try_into().ok()?, argument: number()? }
        }
        code::RETURNED | code::UNWOUND => Event::Left {
            function: number()?.try_into().ok()?,
            result: number()?,
            how: if code == code::RETURNED { Left::Returned } else { Left::Unwound },
        },
        code::KERNEL_WROTE | code::FOUND => {
            let (position, length) = (number()?, number()?);
            let length = usize::try_from(length).ok().filter(|&n| n <= PIECE_BYTES_MAX)?;
            let (bytes, behind) = rest.split_at_checked(length)?;
            let bytes = bytes.to_vec();
            *rest = behind;
            match code {
                code::FOUND => Event::Found { position, bytes },
                _ => Event::KernelWrote { position, bytes },
            }
        }
        code::ZEROED => Event::Zeroed { position: number()?, bytes: number()? },
        code::MAPPED => Event::Mapped { position: number()?, bytes: number()?, address: number()? },
        code::UNMAPPED => Event::Unmapped { address: number()?, bytes: number()? },
        code::RESIZED => Event::Resized { position: number()? },
        code::MARKED => Event::Marked(Mark::find(number()?)?),
        code::BEGAN => {
            Event::Began { by: number()?.checked_sub(1).map(u32::try_from).transpose().ok()? }
        }
        code::ENDED => Event::Ended,
        code::FORKED => Event::Forked,
        code::REPLACED => Event::Replaced,
        code::ORDERED => Event::Ordered,
        code::SYNCHRONISED => {
            let (place, how) = (number()?, number()?);
            Event::Synchronised {
                place,
                bytes: how >> 3,
                is_atomic: how & 4 != 0,
                acquires: how & 2 != 0,
                releases: how & 1 != 0,
            }
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A record, and the instructions before it.
    fn any_record() -> impl Strategy<Value = (u64, Record)> {
        let since = prop_oneof![0u64..4, 0u64..1 << 40];
        let origins = prop_oneof![Just(0), 0..=ORIGIN_MAX];
        let access = (
            any::<u64>(),
            1..=ACCESS_BYTES_MAX as u8,
            any::<[u8; 32]>(),
            any::<[bool; 2]>(),
            (origins.clone(), any::<u32>()),
        )
            .prop_map(|(position, size, content, [is_store, special], (origin, site))| {
                let mut bytes = [0; ACCESS_BYTES_MAX];
                bytes[..32].copy_from_slice(&content);
                bytes[size.into()..].fill(0);
                let has_check = !is_store && !special;
                let check = has_check.then(|| check(&bytes[..size.into()]));
                if !is_store {
                    bytes.fill(0);
                }
                let is_non_temporal = is_store && special;
                Record::Access(Access {
                    position,
                    size,
                    origin,
                    site,
                    bytes,
                    check,
                    is_store,
                    is_non_temporal,
                })
            });
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>());
        let bytes = prop::collection::vec(any::<u8>(), 0..PIECE_BYTES_MAX);
        let event = (0..16, numbers, bytes).prop_map(|(which, (number, a, b, function), bytes)| {
            let event = match which {
                0 => Event::Entered { function, argument: a },
                1 => Event::Left { function, result: a, how: Left::Returned },
                2 => Event::Left { function, result: a, how: Left::Unwound },
                3 => Event::KernelWrote { position: a, bytes },
                4 => Event::Mapped { position: a, bytes: b, address: number },
                5 => Event::Unmapped { address: a, bytes: b },
                6 => Event::Began { by: (function != 0).then_some(function - 1) },
                7 => Event::Ended,
                8 => Event::Forked,
                9 => Event::Ordered,
                10 => Event::Found { position: a, bytes },
                11 => Event::Zeroed { position: a, bytes: b },
                12 => Event::Marked(Mark::ALL[(a % Mark::ALL.len() as u64) as usize]),
                13 => Event::Synchronised {
                    place: a,
                    bytes: b >> 3,
                    acquires: b & 1 != 0,
                    releases: b & 2 != 0,
                    is_atomic: b & 4 != 0,
                },
                14 => Event::Resized { position: a },
                _ => Event::Replaced,
            };
            Record::Event(number, event)
        });
        let volatile = (any::<u64>(), 0u32..7, origins, any::<bool>());
        let volatile = volatile.prop_map(|(address, log, origin, is_store)| {
            Record::Volatile(Volatile { address, size: 1u8 << log, origin, is_store })
        });
        let stack = (any::<u64>(), prop::collection::vec(any::<u32>(), 0..CALLS_MAX));
        let stack = stack.prop_map(|(left, entered)| Record::Stack { left, entered });
        let said = (any::<u32>(), any_persistence());
        let said = said.prop_map(|(site, what)| Record::Persistence(site, what));
        let at = any::<u32>().prop_map(Record::At);
        (since, prop_oneof![4 => access, 2 => volatile, 1 => event, 1 => stack, 2 => said, 1 => at])
    }

    fn any_persistence() -> impl Strategy<Value = Persistence> {
        let place = || {
            prop_oneof![
                Just(Place::Unknown),
                any::<u64>().prop_map(Place::Persistent),
                any::<u64>().prop_map(Place::Volatile),
            ]
        };
        let flush = (0..Flush::ALL.len(), place());
        let call = (
            (0..Asked::ALL.len(), any::<bool>(), place()),
            (any::<u64>(), any::<u64>(), any::<i64>()),
            "[a-zé/]{0,200}",
        );
        prop_oneof![
            flush.prop_map(|(number, place)| Persistence::Flush(Flush::ALL[number], place)),
            (0..Fence::ALL.len()).prop_map(|number| Persistence::Fence(Fence::ALL[number])),
            call.prop_map(|((number, is_over, place), (bytes, flags, result), path)| {
                let asked = Asked::ALL[number];
                Persistence::Call(Call { asked, is_over, place, bytes, flags, result, path })
            }),
        ]
    }

    fn written(records: &[(u64, Record)]) -> Vec<u8> {
        let (mut encoder, mut all, mut instructions) = (Encoder::default(), Vec::new(), 0u64);
        let mut window = [0; RECORD_BYTES_MAX];
        for (since, record) in records {
            instructions += since;
            let length = match record {
                Record::Event(number, event) => {
                    encoder.event(&mut window, instructions, *number, event)
                }
                Record::Volatile(access) => encoder.volatile(&mut window, instructions, *access),
                Record::Persistence(site, what) => {
                    encoder.persistence(&mut window, instructions, *site, what)
                }
                Record::Stack { left, entered } => {
                    encoder.stack(&mut window, instructions, *left, entered.iter().copied())
                }
                Record::At(site) => encoder.at(&mut window, instructions, *site),
                Record::Access(a) if a.is_store => {
                    let how = match a.is_non_temporal {
                        true => Accessed::StoredNonTemporally,
                        false => Accessed::Stored,
                    };
                    let from = (a.origin, a.site);
                    encoder.access(&mut window, instructions, a.position, a.stored(), how, from)
                }
                // Of a load there are only bytes with that check.
                Record::Access(a) => {
                    let mut bytes = [0; ACCESS_BYTES_MAX];
                    let bytes = &mut bytes[..a.size.into()];
                    let found = (0..=u16::MAX).find(|&n| {
                        let n = n.to_le_bytes();
                        let most = bytes.len().min(2);
                        bytes[..most].copy_from_slice(&n[..most]);
                        a.check.is_none_or(|of| check(bytes) == of)
                    });
                    assert!(found.is_some(), "checks take every value");
                    let how = match a.check {
                        Some(_) => Accessed::Loaded,
                        None => Accessed::LoadedBefore,
                    };
                    let from = (a.origin, a.site);
                    encoder.access(&mut window, instructions, a.position, bytes, how, from)
                }
            };
            all.extend(&window[..length]);
        }
        all
    }

    fn read_all(bytes: &[u8]) -> Result<Vec<(u64, Record)>, Broken> {
        let mut records = Records::new(bytes);
        let mut all = Vec::new();
        while let Some(record) = records.next_record()? {
            all.push(record);
        }
        Ok(all)
    }

    proptest! {
        #[test]
        fn records_come_back_and_zeros_end_them(
            records in prop::collection::vec(any_record(), 0..200), zeros in 0usize..5000,
        ) {
            let mut bytes = written(&records);
            bytes.resize(bytes.len() + zeros, 0);
            prop_assert_eq!(read_all(&bytes).expect("records"), records);
        }

        #[test]
        fn whatever_is_read_ends(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = read_all(&bytes);
        }
    }
}
