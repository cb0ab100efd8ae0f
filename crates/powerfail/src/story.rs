//! The story of a captured program: all that it did to persistent memory, in one order, as persistency models are told of it.

use std::io::{Read, Seek};

use graven_base::control::Control;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Image, LineAddr};
use graven_machine::program::Op;
use graven_persistency::happening::{Fence, Path, Persist, Point};
use graven_trace::hygiene::Deed;
use graven_trace::program::{
    self, Asked, Call, Flush, Happened, Happening, How, Place, Reader, Site, Stack, TraceError,
};
use rustc_hash::FxHashMap;

/// Entries between two looks at whether the caller cancels.
const CANCEL_EVERY: usize = 1 << 16;

/// Position of an event in its story.
pub type EventId = u32;

/// Something that the program did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The thread.
    pub thread: ThreadId,
    /// The instruction, by the number of its site.
    pub site: u32,
    /// The calls that led to it, by the number of the stack.
    pub stack: u32,
    /// The kernel has done it for a system call of the program's.
    pub by_kernel: bool,
    /// The deed.
    pub what: What,
}

impl Event {
    /// The manner of which a source line is blamed for it.
    pub fn deed(&self) -> Deed {
        match self.what {
            What::Store { .. } | What::Load { .. } if !self.by_kernel => Deed::Access,
            _ => Deed::Order,
        }
    }
}

/// The content of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A store to a word of persistent memory.
    Store {
        /// The address of the word.
        addr: Addr,
        /// The word before.
        old: u64,
        /// The word afterwards.
        new: u64,
        /// The path to memory.
        path: Path,
        /// One instruction has made this store and the thread's store before it.
        continues: bool,
    },
    /// A load that another thread's store may have answered.
    Load {
        /// The address of the word.
        addr: Addr,
    },
    /// A flush or a fence.
    Persist(Persist),
    /// A system call that sends something out.
    Told,
    /// A system call has made a range durable.
    Synced {
        /// The first byte.
        start: u64,
        /// One past the last byte.
        end: u64,
        /// Stores before this event are durable.
        before: EventId,
    },
    /// A file gets another length.
    Length {
        /// The number of the file.
        file: u32,
        /// The length before, in bytes.
        old: u64,
        /// The length afterwards.
        new: u64,
    },
    /// An operation of the program begins: a transaction of the trace.
    Begins,
    /// The operation is over.
    Ends,
}

/// A file of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoryFile {
    /// The first byte of it in the trace.
    pub start: u64,
    /// Bytes of it that the trace may have.
    pub bytes: u64,
    /// The length as the trace begins; none: it is not known.
    pub length: Option<u64>,
}

/// All that a program did to persistent memory.
#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The events, in the order of visibility.
    pub events: Vec<Event>,
    /// Files, by their numbers.
    pub files: Vec<StoryFile>,
    /// Threads of the trace.
    pub threads: u32,
    /// Instructions.
    pub sites: Vec<Site>,
    /// Stacks of calls.
    pub stacks: Vec<Stack>,
    /// Flushes whose addresses the capture could not tell, and which are left out.
    pub unknown_flushes: u64,
}

/// Something that stands before an operation of a thread, and is in no history.
#[derive(Clone, Copy, Debug)]
struct Extra {
    /// Twice the operation's number; one more if it stands behind it.
    place: u64,
    what: What,
}

/// Builds a story.
struct Teller<'a> {
    story: Story,
    visible: &'a mut Image,
    lengths: Vec<u64>,
    /// The rest of each thread, the next one last.
    extras: Vec<Vec<Extra>>,
    /// The event with which the call of a thread began.
    calling: FxHashMap<u32, EventId>,
}

impl Story {
    /// Reads the story of a trace. `before` becomes the memory as the trace begins.
    ///
    /// # Errors
    /// The trace is broken, or none of a captured program's history; the caller cancels.
    pub fn read<R: Read + Seek>(
        reader: &Reader<R>,
        files: Vec<StoryFile>,
        before: &mut Image,
        control: &Control,
    ) -> Result<Story, TraceError> {
        reader.require_history()?;
        reader.populate(before)?;
        let mut visible = before.share();
        let story = Story {
            files,
            threads: reader.contents().threads.len() as u32,
            sites: reader.sites()?,
            stacks: reader.stacks()?,
            ..Story::default()
        };
        let mut teller = Teller {
            lengths: story.lengths(),
            story,
            visible: &mut visible,
            extras: extras(reader)?,
            calling: FxHashMap::default(),
        };
        reader.walk(|happening, op| {
            teller.take_in(&happening, op);
            if teller.story.events.len().is_multiple_of(CANCEL_EVERY) && control.is_cancelled() {
                return Err(TraceError::Cancelled);
            }
            Ok(())
        })?;
        Ok(teller.end())
    }

    /// Lengths of the files as the trace begins, in bytes.
    pub fn lengths(&self) -> Vec<u64> {
        self.files.iter().map(|file| file.length.unwrap_or(file.bytes)).collect()
    }

    /// Number of operations.
    pub fn operations(&self) -> usize {
        self.events.iter().filter(|event| event.what == What::Ends).count()
    }

    /// The address of what an event stores.
    pub fn address(&self, event: EventId) -> Option<Addr> {
        match self.events[event as usize].what {
            What::Store { addr, .. } => Some(addr),
            _ => None,
        }
    }
}

/// Beginnings and ends of operations and lengths of files, of each thread, the last one first.
fn extras<R: Read + Seek>(reader: &Reader<R>) -> Result<Vec<Vec<Extra>>, TraceError> {
    let threads = reader.contents().threads.len();
    let mut all = vec![Vec::new(); threads];
    for change in reader.lengths()? {
        let what = What::Length { file: change.file, old: 0, new: change.bytes };
        all[change.thread as usize].push(Extra { place: 2 * change.operation, what });
    }
    for (thread, extras) in all.iter_mut().enumerate() {
        let (mut stream, mut number) = (reader.thread(thread as u32), 0);
        loop {
            let batch = stream.next_batch()?;
            if batch.is_empty() {
                break;
            }
            for op in batch {
                let what = match op {
                    Op::TxBegin => Some(What::Begins),
                    Op::TxEnd => Some(What::Ends),
                    _ => None,
                };
                extras.extend(what.map(|what| Extra { place: 2 * number + 1, what }));
                number += 1;
            }
        }
        extras.sort_by_key(|extra| extra.place);
        extras.reverse();
    }
    Ok(all)
}

impl Teller<'_> {
    fn push(&mut self, happening: &Happening, what: What) {
        let &Happening { thread, site, stack, what: ref happened, .. } = happening;
        let by_kernel = matches!(happened, Happened::Store { how: How::Kernel, .. });
        self.story.events.push(Event { thread, site, stack, by_kernel, what });
    }

    fn take_in(&mut self, happening: &Happening, op: Option<Op>) {
        self.push_extras(happening);
        match (&happening.what, op) {
            (
                Happened::Store { how, is_joined },
                Some(Op::Store { at, value } | Op::StoreNonTemporal { at, value }),
            ) => self.stores(happening, *how, *is_joined, (at.addr, value)),
            (Happened::Load { .. }, Some(Op::Load { at })) => {
                self.push(happening, What::Load { addr: at.addr });
            }
            (Happened::Flush(flush, Place::Persistent(address)), _) => {
                let line = LineAddr(address / graven_base::memory::LINE_BYTES);
                let op = match flush {
                    Flush::Clwb | Flush::Clflushopt => Persist::WriteBack(line),
                    Flush::Clflush => Persist::Flush(line),
                    Flush::Cvac | Flush::Civac => Persist::Clean(line, Point::Coherence),
                    Flush::Cvap => Persist::Clean(line, Point::Persistence),
                    Flush::Cvadp => Persist::Clean(line, Point::DeepPersistence),
                };
                self.push(happening, What::Persist(op));
            }
            (Happened::Flush(_, Place::Unknown), _) => self.story.unknown_flushes += 1,
            (Happened::Fence(fence), _) => {
                self.push(happening, What::Persist(Persist::Fence(fence_of(*fence))));
            }
            (Happened::Call(call), _) => self.calls(happening, call),
            _ => {}
        }
    }

    fn stores(&mut self, by: &Happening, how: How, continues: bool, (addr, new): (Addr, u64)) {
        let old = self.visible.store(addr, new);
        let path = if how == How::NonTemporal { Path::NonTemporal } else { Path::Cached };
        let is_locked = self.story.sites.get(by.site as usize).is_some_and(|site| site.is_atomic);
        let fence = What::Persist(Persist::Fence(Fence::Locked));
        if is_locked {
            self.push(by, fence);
        }
        self.push(by, What::Store { addr, old, new, path, continues });
        if is_locked {
            self.push(by, fence);
        }
    }

    fn calls(&mut self, by: &Happening, call: &Call) {
        let now = self.story.events.len() as EventId;
        match call.asked {
            Asked::Send => return self.push(by, What::Told),
            _ if !call.is_over => {
                self.calling.insert(by.thread, now);
                return;
            }
            _ => {}
        }
        let before = self.calling.remove(&by.thread).unwrap_or(now);
        if call.synchronises() != Some(true) || call.result < 0 {
            return;
        }
        if call.asked == Asked::Sync {
            return self.push(by, What::Synced { start: 0, end: u64::MAX, before });
        }
        let Place::Persistent(start) = call.place else { return };
        let has = |file: &&StoryFile| (file.start..file.start + file.bytes).contains(&start);
        let file_end = self.story.files.iter().find(has).map_or(u64::MAX, |f| f.start + f.bytes);
        let end = start.saturating_add(call.bytes).min(file_end);
        self.push(by, What::Synced { start, end, before });
    }

    /// Beginnings, ends and lengths of a thread that come before an entry. A length is that entry's if it is a call, and otherwise
    /// comes before the operation that it stands before.
    fn push_extras(&mut self, next: &Happening) {
        let &Happening { thread, operation, site, stack, ref what } = next;
        let is_call = matches!(what, Happened::Call(_));
        let place = if is_call { 2 * operation } else { (2 * operation).saturating_sub(1) };
        self.push_due(thread, place, (site, stack));
    }

    fn push_due(&mut self, thread: ThreadId, place: u64, (site, stack): (u32, u32)) {
        let Some(extras) = self.extras.get_mut(thread as usize) else { return };
        let mut due = Vec::new();
        while let Some(extra) = extras.pop_if(|extra| extra.place <= place) {
            due.push(extra.what);
        }
        for mut what in due {
            if let What::Length { file, old, new } = &mut what {
                let Some(length) = self.lengths.get_mut(*file as usize) else { continue };
                *old = std::mem::replace(length, *new);
            }
            self.story.events.push(Event { thread, site, stack, by_kernel: false, what });
        }
    }

    fn end(mut self) -> Story {
        for thread in 0..self.extras.len() as u32 {
            let last = self.story.events.iter().rfind(|event| event.thread == thread);
            let by = last.map_or((0, 0), |event| (event.site, event.stack));
            self.push_due(thread, u64::MAX, by);
        }
        self.story
    }
}

fn fence_of(fence: program::Fence) -> Fence {
    match fence {
        program::Fence::Sfence => Fence::Store,
        program::Fence::Mfence => Fence::Full,
        program::Fence::Locked => Fence::Locked,
        program::Fence::Dsb | program::Fence::DsbStores => Fence::Dsb,
        program::Fence::Dmb => Fence::Dmb,
        program::Fence::DmbStores => Fence::DmbStore,
        program::Fence::DsbLoads | program::Fence::DmbLoads => Fence::DmbLoad,
    }
}
