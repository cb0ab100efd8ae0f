//! From records to operations: the records of all threads, in one order, over the memory that they find.

use std::io::{self, Read, Write};

use graven_capture::{
    Access, Broken, Event, Left, Persistence, Record, Records, Volatile, check, persistent, place,
};
use rustc_hash::FxHashMap;
use serde_json::Value;
use thiserror::Error;

use super::acts::{Act, Actor};
use super::history::Recording;
use super::lines::{Instructions, Module};
use super::memory::{Layout, each_word, store, words};
use super::merge::each;
use super::origins::Origins;
use super::races::{Party, Races};
use super::report::{Accessor, Mismatch, NAMED_MAX, Race, Region, Report};
use super::roles::Rules;
use super::survey::{Limits, Stop, Survey, survey};
use crate::frames::Frames;
use crate::program::{Header, LengthChange, Origin, TraceError, VOLATILE_START, Writer};
use graven_base::control::Control;
use graven_base::memory::{Addr, Image, WORD_BYTES};
use graven_machine::program::{Op, Ptr};

/// The files of a plugin.
pub trait Sources {
    /// A thread's stream, or a region's bytes.
    type File: Read;

    /// The number of threads.
    fn threads(&self) -> usize;

    /// The number of regions.
    fn regions(&self) -> usize;

    /// A thread's stream, from its beginning.
    ///
    /// # Errors
    /// It cannot be read.
    fn stream(&self, thread: usize) -> io::Result<Self::File>;

    /// A region as it was when it was first mapped.
    ///
    /// # Errors
    /// It cannot be read.
    fn before(&self, region: usize) -> io::Result<Self::File>;

    /// The number of bytes it had then.
    ///
    /// # Errors
    /// It cannot be read.
    fn before_bytes(&self, region: usize) -> io::Result<u64>;

    /// A region as it is at the end, if that is known.
    ///
    /// # Errors
    /// It cannot be read.
    fn after(&self, region: usize) -> io::Result<Option<Self::File>>;

    /// The address of each site; none of a capture without them.
    ///
    /// # Errors
    /// They cannot be read.
    fn sites(&self) -> io::Result<Vec<u64>> {
        Ok(Vec::new())
    }

    /// The files that the program has mapped as code, in the order in which it has.
    ///
    /// # Errors
    /// Their list cannot be read.
    fn modules(&self) -> io::Result<Vec<Module>> {
        Ok(Vec::new())
    }

    /// The bytes of one of these files, by its path; none: it is not there any more.
    fn module(&self, _path: &str) -> Option<Vec<u8>> {
        None
    }

    /// The separate file of debugging information of a file with this build ID, if the system has it.
    fn debug(&self, _build_id: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// A capture that gives no trace.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// A file of the capture.
    #[error("{what}: {error}")]
    Io {
        /// The file.
        what: String,
        /// Why.
        error: io::Error,
    },
    /// A stream is none.
    #[error("the stream of thread {thread}: {broken}")]
    Stream {
        /// The thread.
        thread: usize,
        /// Why.
        broken: String,
    },
    /// Nothing to trace.
    #[error("{0}")]
    Nothing(String),
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The caller has cancelled it.
    #[error("cancelled")]
    Cancelled,
}

/// A program that was captured.
pub struct Capture<S> {
    sources: S,
    rules: Rules,
    /// The results of the first look, before the records are merged.
    survey: Survey,
}

impl<S: Sources> Capture<S> {
    /// Looks through all streams.
    ///
    /// # Errors
    /// Streams that are none; nothing in them that could be traced.
    pub fn new(sources: S, rules: Rules, limits: Limits) -> Result<Self, CaptureError> {
        let survey = survey(&sources, &rules, limits)?;
        Ok(Capture { sources, rules, survey })
    }

    /// Merges everything, without writing it.
    ///
    /// # Errors
    /// Files that cannot be read; the caller cancels.
    pub fn report(&self, control: &Control) -> Result<Report, CaptureError> {
        self.merge(None::<Writer<io::Sink>>, control)
    }

    /// Writes the trace. `description` is what its header says of the program, beside the report.
    ///
    /// # Errors
    /// As [`Capture::report`]; those of `out`.
    pub fn write(
        &self,
        out: impl Write,
        description: Value,
        report: &Report,
        control: &Control,
    ) -> Result<(), CaptureError> {
        let mut capture = description;
        capture["report"] = report.to_json();
        let data_start = Layout::of(&[0]).regions()[0].0;
        let header = Header {
            capture: Some(capture),
            ..Header::without_machine(Origin::Program, report.threads, data_start)
        };
        let again = self.merge(Some(Writer::new(out, &header)?), control)?;
        // Races are found once.
        let (races, racing_bytes) = (report.races, report.racing_bytes);
        let first_races = report.first_races.clone();
        let again = Report { races, racing_bytes, first_races, ..again };
        assert_eq!(again, *report, "the same records give the same trace");
        Ok(())
    }

    fn merge<W: Write>(
        &self,
        writer: Option<Writer<W>>,
        control: &Control,
    ) -> Result<Report, CaptureError> {
        let Survey { order, traced, layout, .. } = &self.survey;
        let (mut image, mut lengths) = (Image::new(), Vec::new());
        for (region, &(start, _)) in layout.regions().iter().enumerate() {
            let what = || format!("region {region} as it was");
            let file = self.sources.before(region).map_err(|e| io_error(what(), e))?;
            let length = each_word(file, |at, word| {
                image.store(Addr(start + at), word);
            })
            .map_err(|e| io_error(what(), e))?;
            lengths.push(length);
        }
        let threads = traced.iter().map(|&number| Thread { number, ..Thread::default() });
        let regions = layout.regions().iter();
        let regions = regions.map(|&(start, bytes)| Region { start, bytes, file_bytes: 0 });
        let report = Report {
            threads: traced.iter().flatten().count() as u32,
            all_threads: traced.len() as u32,
            skipped: self.survey.skipped,
            sections_untouched: self.survey.untouched,
            locks_merged: self.survey.circles.len() as u64,
            regions: regions.collect(),
            never_entered: self.survey.never_entered.clone(),
            ..Report::default()
        };
        let may_race = report.threads > 1 && writer.is_none();
        let history = match writer {
            Some(_) => Some(Recording::new(self.instructions()?, traced)),
            None => None,
        };
        let mut assembly = Assembly {
            races: may_race.then(|| Races::new(traced.len())),
            rules: &self.rules,
            survey: &self.survey,
            layout,
            image,
            frames: Frames::default(),
            threads: threads.collect(),
            phase: Phase::Before,
            begun: 0,
            acts: Vec::new(),
            lengths,
            changes: Vec::new(),
            history,
            locks: FxHashMap::default(),
            report,
            writer,
            failure: None,
        };
        if self.survey.start.is_none() {
            assembly.start();
        }
        let mut streams = Vec::new();
        for thread in 0..self.sources.threads() {
            let what = || format!("the stream of thread {thread}");
            let file = self.sources.stream(thread).map_err(|e| io_error(what(), e))?;
            streams.push(Records::new(file));
        }
        let mut count = 0u64;
        each(&mut streams, order, |thread, since, record| {
            count += 1;
            if count.is_multiple_of(1 << 16) && control.report(assembly.begun) {
                assembly.failure.get_or_insert(CaptureError::Cancelled);
            }
            assembly.take(thread, since, record);
        })
        .map_err(|broken| stream_error(0, &broken))?;
        assembly.end(&self.sources)
    }
}

impl<S: Sources> Capture<S> {
    fn instructions(&self) -> Result<Instructions, CaptureError> {
        let addresses = self.sources.sites();
        let addresses = addresses.map_err(|e| io_error("the sites of instructions".into(), e))?;
        let modules = self.sources.modules();
        let modules = modules.map_err(|e| io_error("the list of mapped code".into(), e))?;
        Ok(Instructions { addresses, modules })
    }
}

pub(super) fn io_error(what: String, error: io::Error) -> CaptureError {
    CaptureError::Io { what, error }
}

pub(super) fn stream_error(thread: usize, broken: &Broken) -> CaptureError {
    CaptureError::Stream { thread, broken: broken.to_string() }
}

/// A store of the kernel's, in place of the site of an instruction.
const KERNEL: (Option<u32>, bool) = (None, false);

/// The phase of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The trace has not begun: what is stored is there when it does.
    Before,
    /// The trace has begun.
    In,
    /// The trace has ended; the rest is compared only.
    After,
}

/// A thread of the program.
#[derive(Debug, Default)]
struct Thread {
    /// In the trace.
    number: Option<u32>,
    /// Instructions since its last operation.
    instructions: u64,
    /// The meaning of its events.
    actor: Actor,
    /// A transaction is open in the trace.
    is_open: bool,
    /// The operations in the trace; counted where that is written.
    operations: u64,
    /// Transactions in the trace.
    transactions: u64,
    /// Words stored in the open one.
    stored: u64,
    held: Vec<Held>,
    origins: Origins,
}

/// A lock that is held in the trace.
#[derive(Debug)]
struct Held {
    lock: u64,
    /// The number of held locks of the program for which it stands.
    times: u32,
    /// The lock was released, and is held to the end of the transaction.
    is_released: bool,
}

struct Assembly<'a, W: Write> {
    rules: &'a Rules,
    survey: &'a Survey,
    layout: &'a Layout,
    image: Image,
    /// The places of pages of volatile memory in the trace.
    frames: Frames,
    threads: Vec<Thread>,
    /// None with one thread, and when races are known.
    races: Option<Races>,
    phase: Phase,
    /// Transactions that have begun, of all threads.
    begun: u64,
    /// The actions of the present event.
    acts: Vec<Act>,
    /// The length of each region's file now.
    lengths: Vec<u64>,
    /// The changes of that in the trace.
    changes: Vec<LengthChange>,
    /// The history, where the trace is written.
    history: Option<Recording>,
    /// Numbers of locks.
    locks: FxHashMap<u64, u32>,
    report: Report,
    writer: Option<Writer<W>>,
    /// The first failure.
    failure: Option<CaptureError>,
}

impl<W: Write> Assembly<'_, W> {
    fn take(&mut self, thread: usize, since: u64, record: Record) {
        if self.failure.is_some() {
            return;
        }
        if !self.threads[thread].actor.is_left_out() {
            self.threads[thread].instructions += since;
        }
        if let Some(history) = &mut self.history {
            history.executed(thread, since);
        }
        match record {
            Record::Stack { left, entered } => {
                self.history.iter_mut().for_each(|h| h.calls(thread, left, &entered));
            }
            Record::At(site) => self.history.iter_mut().for_each(|h| h.at(thread, site)),
            Record::Persistence(site, what) => self.persists(thread, site, what),
            Record::Access(access) => self.access(thread, &access),
            Record::Volatile(access) => self.volatile(thread, access),
            Record::Event(number, event) => {
                if self.survey.start == Some(number) {
                    self.start();
                }
                if self.survey.stop == Stop::Before(number) {
                    self.finish();
                }
                self.event(thread, number, &event);
                if self.survey.stop == Stop::After(number) {
                    self.finish();
                }
            }
        }
    }

    /// A thread does something for persistence, which is no operation.
    fn persists(&mut self, thread: usize, site: u32, what: Persistence) {
        let t = &self.threads[thread];
        if self.phase != Phase::In || t.actor.is_left_out() {
            return;
        }
        if let Some(history) = &mut self.history {
            history.persists(thread, t.operations, site, what, self.layout);
        }
    }

    fn access(&mut self, thread: usize, access: &Access) {
        let bytes = u64::from(access.size);
        let Some(address) = self.layout.address(access.position, bytes) else {
            if !access.is_store {
                self.threads[thread].origins.recorded(0);
            }
            return;
        };
        self.may_race(thread, address, bytes, access.is_store);
        // The instruction itself is one.
        let t = &mut self.threads[thread];
        t.instructions = t.instructions.saturating_sub(1);
        if access.is_store {
            self.report.stores += 1;
            let origin = self.threads[thread].origins.of(access.origin);
            let by = (Some(access.site), access.is_non_temporal);
            self.stores(thread, address, access.stored(), by, origin);
            return;
        }
        self.report.loads += 1;
        let mut found = [0; graven_capture::ACCESS_BYTES_MAX];
        let found = &mut found[..access.size.into()];
        self.image.read_bytes(Addr(address), found);
        if access.check.is_some_and(|of| check(found) != of) {
            self.astray(thread, address, bytes);
        }
        let is_left_out = self.is_left_out(thread, address, bytes);
        let to_trace = words(address, bytes).filter(|_| !is_left_out);
        self.loads(thread, access.origin, to_trace, Some((access.site, address, bytes)));
    }

    /// A recorded load, for which the trace has these words; its address was loaded `ago` recorded loads before. The history has those
    /// of an instruction (`of`: site, address, bytes) where the trace has several threads. Returns the number of words.
    fn loads(
        &mut self,
        thread: usize,
        ago: u16,
        words: impl Iterator<Item = Addr>,
        of: Option<(u32, u64, u64)>,
    ) -> u32 {
        let of = of.filter(|_| self.report.threads > 1);
        let origins = &self.threads[thread].origins;
        let (origin, before) = (origins.of(ago), origins.count());
        for addr in words {
            let operation = self.push(thread, Op::Load { at: Ptr { addr, origin } });
            if let (Some(history), Some(operation), Some((site, address, bytes))) =
                (&mut self.history, operation, of)
            {
                let is_loaded = |at: &u64| (address..address + bytes).contains(&(addr.0 + at));
                let mask = (0..8).filter(is_loaded).fold(0, |mask, at| mask | 1 << at);
                history.loads(thread, operation, site, mask);
            }
        }
        let origins = &mut self.threads[thread].origins;
        let loads = origins.count().wrapping_sub(before);
        origins.recorded(loads);
        loads
    }

    /// A load or store of volatile memory. What functions do with it that synchronise threads, the trace's locks stand for.
    fn volatile(&mut self, thread: usize, access: Volatile) {
        let actor = &self.threads[thread].actor;
        let is_traced = self.phase == Phase::In && self.threads[thread].number.is_some();
        if !is_traced || actor.is_left_out() || actor.is_synchronising() {
            if !access.is_store {
                self.threads[thread].origins.recorded(0);
            }
            return;
        }
        let t = &mut self.threads[thread];
        t.instructions = t.instructions.saturating_sub(1);
        let words = words(access.address, access.size.into());
        let mut frames = std::mem::take(&mut self.frames);
        let places = words.map(|word| VOLATILE_START.plus(frames.place(word.0)));
        if access.is_store {
            let origin = self.threads[thread].origins.of(access.origin);
            for addr in places {
                self.report.volatile_stores += 1;
                self.push(thread, Op::Store { at: Ptr { addr, origin }, value: 0 });
            }
        } else {
            self.report.volatile_loads +=
                u64::from(self.loads(thread, access.origin, places, None));
        }
        self.frames = frames;
    }

    /// Compares an access with those of other threads; not accesses of functions that synchronise threads.
    fn may_race(&mut self, thread: usize, address: u64, bytes: u64, is_store: bool) {
        let Some(races) = &mut self.races else { return };
        let t = &self.threads[thread];
        if bytes > 0 && !t.actor.is_synchronising() {
            let transaction = t.is_open.then_some(t.transactions);
            races.access(Party { thread, transaction, address, bytes, is_store });
        }
    }

    /// Tells whether an access is by a function that is left out of the trace.
    fn is_left_out(&mut self, thread: usize, address: u64, bytes: u64) -> bool {
        let is = self.threads[thread].actor.is_left_out();
        if is && self.phase == Phase::In {
            self.report.words_left_out += words(address, bytes).count() as u64;
        }
        is
    }

    /// A load has found something else.
    fn astray(&mut self, thread: usize, address: u64, bytes: u64) {
        self.report.loads_unexplained += 1;
        let by = &self.threads[thread];
        let (thread, transaction) = (by.number, by.number.map(|_| by.transactions));
        let (region, offset) = self.layout.place(address);
        let places = &mut self.report.loads_astray;
        if places.len() < NAMED_MAX {
            places.push(Mismatch { region, offset, bytes, thread, transaction });
        }
    }

    fn stores(
        &mut self,
        thread: usize,
        address: u64,
        bytes: &[u8],
        (site, is_non_temporal): (Option<u32>, bool),
        origin: u32,
    ) {
        store(&mut self.image, address, bytes);
        if self.phase != Phase::In || bytes.is_empty() {
            return;
        }
        if self.is_left_out(thread, address, bytes.len() as u64) {
            return;
        }
        for word in words(address, bytes.len() as u64) {
            let (at, value) = (Ptr { addr: word, origin }, self.image.load(word));
            self.report.words_stored += 1;
            let t = &mut self.threads[thread];
            t.stored += 1;
            self.report.words_stored_outside += u64::from(!t.is_open);
            let op = match is_non_temporal {
                true => Op::StoreNonTemporal { at, value },
                false => Op::Store { at, value },
            };
            let operation = self.push(thread, op);
            if let (Some(history), Some(operation)) = (&mut self.history, operation) {
                history.stores(thread, operation, site, is_non_temporal);
            }
        }
    }

    fn event(&mut self, thread: usize, number: u64, event: &Event) {
        match event {
            Event::KernelWrote { position, bytes } => {
                let length = bytes.len() as u64;
                let Some(address) = self.layout.address(*position, length) else { return };
                self.report.kernel_bytes += length;
                self.may_race(thread, address, length, true);
                self.stores(thread, address, bytes, KERNEL, 0);
            }
            Event::Began { by: Some(by) } => {
                self.races.iter_mut().for_each(|races| races.begins(thread, *by));
            }
            Event::Synchronised { place, bytes, acquires, releases, is_atomic } => {
                if let Some(races) = &mut self.races {
                    let position = persistent(*place).filter(|_| *is_atomic);
                    let address = position.and_then(|at| self.layout.address(at, *bytes));
                    races.synchronises(thread, (*place, *bytes), address, (*acquires, *releases));
                }
            }
            Event::Found { position, bytes } => self.found(thread, *position, bytes),
            Event::Zeroed { position, bytes } => self.zeroed(thread, *position, *bytes),
            Event::Resized { position } => self.resized(thread, *position),
            Event::Forked => self.report.forks += 1,
            Event::Replaced => self.report.replaced += 1,
            _ => {}
        }
        self.tell_races(thread, event);
        let mut acts = std::mem::take(&mut self.acts);
        self.threads[thread].actor.take(self.rules, event, &mut acts);
        for act in acts.drain(..) {
            self.act(thread, number, act);
        }
        self.acts = acts;
    }

    /// Tells of functions that synchronise threads.
    fn tell_races(&mut self, thread: usize, event: &Event) {
        let (Some(races), actor) = (&mut self.races, &self.threads[thread].actor) else { return };
        match *event {
            Event::Entered { function, argument } => {
                let is_alone = actor.holds(argument);
                for &role in self.rules.roles(function) {
                    races.entered(thread, role, argument, is_alone);
                }
            }
            Event::Left { function, result, how: Left::Returned } => {
                let Some(argument) = actor.argument(function) else { return };
                for &role in self.rules.roles(function) {
                    races.returned(thread, role, argument, result);
                }
            }
            _ => {}
        }
    }

    /// The kernel may have written these bytes: it has written what is not there yet.
    fn found(&mut self, thread: usize, position: u64, bytes: &[u8]) {
        let Some(address) = self.layout.address(position, bytes.len() as u64) else { return };
        for word in words(address, bytes.len() as u64) {
            let from = word.0.max(address);
            let to = (word.0 + WORD_BYTES).min(address + bytes.len() as u64);
            let of_word = &bytes[(from - address) as usize..(to - address) as usize];
            let mut there = [0; WORD_BYTES as usize];
            self.image.read_bytes(Addr(from), &mut there[..of_word.len()]);
            if there[..of_word.len()] != *of_word {
                self.report.kernel_bytes += of_word.len() as u64;
                self.may_race(thread, from, to - from, true);
                self.stores(thread, from, of_word, KERNEL, 0);
            }
        }
    }

    /// The kernel has made bytes zero: words that are so already are not written.
    fn zeroed(&mut self, thread: usize, position: u64, bytes: u64) {
        let Some((start, end)) = self.layout.clipped(position, bytes) else { return };
        // Who gets the memory next does not race with who had it.
        self.races.iter_mut().for_each(|races| races.forget(start, end));
        let nothing = Image::new();
        let first = Addr(start / WORD_BYTES * WORD_BYTES);
        let different = self.image.differences(&nothing, first, Addr(end));
        let words: Vec<Addr> = different.map(|(word, ..)| word).collect();
        for word in words {
            let (from, to) = (word.0.max(start), (word.0 + WORD_BYTES).min(end));
            self.report.kernel_bytes += to - from;
            let zeros = &[0; WORD_BYTES as usize][..(to - from) as usize];
            self.stores(thread, from, zeros, KERNEL, 0);
        }
    }

    /// A file has another length. That a thread makes which is not in the trace comes where the first one is that is.
    fn resized(&mut self, thread: usize, position: u64) {
        let (region, bytes) = place(position);
        let Some(length) = self.lengths.get_mut(usize::from(region)) else { return };
        *length = bytes;
        if self.phase != Phase::In {
            return;
        }
        self.report.lengths_changed += 1;
        let is_traced = |t: &&Thread| t.number.is_some();
        let by = Some(&self.threads[thread]).filter(is_traced);
        let Some(by) = by.or_else(|| self.threads.iter().find(is_traced)) else { return };
        if let Some(thread) = by.number {
            let (file, operation) = (region.into(), by.operations);
            self.changes.push(LengthChange { thread, file, operation, bytes });
        }
    }

    fn act(&mut self, thread: usize, number: u64, act: Act) {
        let is_open = self.threads[thread].is_open;
        match act {
            Act::Begin if self.survey.begins_at(number) => self.begin(thread),
            Act::End => self.end_transaction(thread),
            Act::Abort => self.report.aborted += u64::from(is_open),
            Act::Abandon => self.report.unfinished += u64::from(is_open),
            Act::EndOfNone => self.report.ends_of_none += u64::from(self.phase == Phase::In),
            Act::Lock(lock) => self.lock(thread, lock),
            Act::Unlock(lock) => self.unlock(thread, lock),
            // The survey has found where the trace begins and ends.
            Act::Begin | Act::From | Act::Until => {}
        }
    }

    /// The trace begins.
    fn start(&mut self) {
        self.phase = Phase::In;
        for (region, &bytes) in self.report.regions.iter_mut().zip(&self.lengths) {
            region.file_bytes = bytes;
        }
        if let Some(writer) = &mut self.writer
            && let Err(error) = writer.picture(&self.image)
        {
            self.failure.get_or_insert(error.into());
        }
        for thread in 0..self.threads.len() {
            self.threads[thread].instructions = 0;
            for at in 0..self.threads[thread].held.len() {
                let lock = self.number_of(self.threads[thread].held[at].lock);
                self.push(thread, Op::Lock { lock });
            }
        }
    }

    fn begin(&mut self, thread: usize) {
        self.begun += 1;
        if self.phase == Phase::In {
            self.push(thread, Op::TxBegin);
            let t = &mut self.threads[thread];
            (t.is_open, t.stored) = (true, 0);
        }
    }

    fn end_transaction(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        if t.is_open {
            t.is_open = false;
            t.transactions += 1;
            let stored = t.stored;
            self.report.transactions += 1;
            self.report.transactions_without_stores += u64::from(stored == 0);
            self.report.transactions_of_several += u64::from(stored > 1);
            self.push(thread, Op::TxEnd);
        }
        let released: Vec<u64> =
            self.threads[thread].held.extract_if(.., |h| h.is_released).map(|h| h.lock).collect();
        for lock in released {
            let lock = self.number_of(lock);
            self.push(thread, Op::Unlock { lock });
        }
    }

    fn number_of(&mut self, lock: u64) -> u32 {
        let next = self.locks.len() as u32;
        *self.locks.entry(lock).or_insert(next)
    }

    /// The lock that stands for one of the program's.
    fn standing_for(&self, lock: u64) -> u64 {
        self.survey.circles.get(&lock).copied().unwrap_or(lock)
    }

    fn lock(&mut self, thread: usize, lock: u64) {
        let lock = self.standing_for(lock);
        let held = &mut self.threads[thread].held;
        if let Some(held) = held.iter_mut().find(|held| held.lock == lock) {
            held.times += 1;
            held.is_released = false;
            return;
        }
        held.push(Held { lock, times: 1, is_released: false });
        let lock = self.number_of(lock);
        self.push(thread, Op::Lock { lock });
    }

    fn unlock(&mut self, thread: usize, lock: u64) {
        let lock = self.standing_for(lock);
        let t = &mut self.threads[thread];
        let Some(at) = t.held.iter().position(|held| held.lock == lock) else { return };
        t.held[at].times -= 1;
        if t.held[at].times > 0 {
            return;
        }
        if t.is_open {
            t.held[at].is_released = true;
            self.report.unlocks_put_off += 1;
            return;
        }
        t.held.remove(at);
        let lock = self.number_of(lock);
        self.push(thread, Op::Unlock { lock });
    }

    /// A thread's next operation, behind the instructions before it; returns its number, where the trace is written.
    fn push(&mut self, thread: usize, op: Op) -> Option<u64> {
        if self.phase != Phase::In {
            return None;
        }
        let t = &mut self.threads[thread];
        let number = t.number?;
        if let Op::Load { at } | Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } = op {
            self.report.addresses_loaded += u64::from(at.origin != 0);
        }
        if let Op::Load { .. } = op {
            t.origins.traced();
        }
        let mut instructions = std::mem::take(&mut t.instructions);
        let writer = self.writer.as_mut()?;
        let mut written = Ok(());
        while instructions > 0 && written.is_ok() {
            let some = instructions.min(1 << 30);
            instructions -= some;
            written = writer.push(number, Op::Compute { instructions: some as u32 });
            t.operations += 1;
        }
        let operation = t.operations;
        t.operations += u64::from(op != Op::Done);
        if let Err(error) = written.and_then(|()| writer.push(number, op)) {
            self.failure.get_or_insert(error.into());
        }
        Some(operation)
    }

    /// The trace ends.
    fn finish(&mut self) {
        for thread in 0..self.threads.len() {
            if self.threads[thread].is_open {
                self.report.unfinished += 1;
                self.threads[thread].held.iter_mut().for_each(|held| held.is_released = true);
                self.end_transaction(thread);
            }
            for held in std::mem::take(&mut self.threads[thread].held) {
                let lock = self.number_of(held.lock);
                self.push(thread, Op::Unlock { lock });
            }
            self.push(thread, Op::Done);
        }
        self.phase = Phase::After;
    }

    fn found_races(&mut self, races: &Races) {
        let accessor = |party: &Party| {
            let (region, offset) = self.layout.place(party.address);
            let thread = self.threads[party.thread].number;
            let &Party { transaction, bytes, is_store, .. } = party;
            Accessor { thread, transaction, region, offset, bytes, is_store }
        };
        let race = |(a, b): &(Party, Party)| Race { earlier: accessor(a), later: accessor(b) };
        self.report.first_races = races.first.iter().map(race).collect();
        (self.report.races, self.report.racing_bytes) = (races.accesses, races.bytes());
    }

    /// All records are taken: compares, and puts the trace together.
    fn end<S: Sources>(mut self, sources: &S) -> Result<Report, CaptureError> {
        if self.phase == Phase::In {
            self.finish();
        }
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        if let Some(races) = self.races.take() {
            self.found_races(&races);
        }
        for region in 0..sources.regions() {
            let what = || format!("region {region} as it is at the end");
            let Some(file) = sources.after(region).map_err(|e| io_error(what(), e))? else {
                continue;
            };
            let (start, length) = self.layout.regions()[region];
            let mut after = Image::new();
            let bytes = each_word(file, |at, word| {
                after.store(Addr(start + at), word);
            })
            .map_err(|e| io_error(what(), e))?;
            compare(&mut self.report, &self.image, &after, region, start, bytes.min(length));
        }
        self.report.volatile_pages = self.frames.end();
        if let Some(mut writer) = self.writer {
            writer.lengths(&self.changes)?;
            if let Some(history) = self.history {
                let read = |path: &str| sources.module(path);
                writer.history(&history.end(read, |id| sources.debug(id)))?;
            }
            writer.finish()?;
        }
        Ok(self.report)
    }
}

/// Compares what stores have left in a region with what is there at the end.
fn compare(
    report: &mut Report,
    image: &Image,
    after: &Image,
    region: usize,
    start: u64,
    bytes: u64,
) {
    report.bytes_compared += bytes;
    let end = Addr(start + bytes.next_multiple_of(WORD_BYTES));
    for (addr, ours, theirs) in image.differences(after, Addr(start), end) {
        let pairs = ours.to_le_bytes().into_iter().zip(theirs.to_le_bytes());
        let different = pairs.filter(|(ours, theirs)| ours != theirs).count() as u64;
        report.bytes_unexplained += different;
        let offset = addr.0 - start;
        let places = &mut report.unexplained;
        let last = places.last_mut().filter(|p| p.region == region && p.offset + p.bytes == offset);
        if let Some(last) = last {
            last.bytes += WORD_BYTES;
        } else if places.len() < NAMED_MAX {
            let (thread, transaction) = (None, None);
            places.push(Mismatch { region, offset, bytes: WORD_BYTES, thread, transaction });
        }
    }
}
