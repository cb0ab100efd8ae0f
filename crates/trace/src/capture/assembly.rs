//! From records to operations: the records of all threads, in one order, over the memory that they find.

use std::io::{self, Read, Write};

use graven_capture::{Access, Broken, Event, Record, Records, check, persistent, place};
use rustc_hash::FxHashMap;
use serde_json::Value;
use thiserror::Error;

use super::memory::{Layout, each_word, store, words};
use super::merge::{Order, each};
use super::races::{Party, Races};
use super::report::{Accessor, Mismatch, NAMED_MAX, Race, Report};
use super::roles::Role;
use crate::program::{Header, Origin, TraceError, Writer};
use graven_base::control::Control;
use graven_base::memory::{Addr, Image, WORD_BYTES};
use graven_machine::program::{Op, Ptr};

/// What a plugin has written.
pub trait Sources {
    /// A thread's stream, or a region's bytes.
    type File: Read;

    /// How many threads there were.
    fn threads(&self) -> usize;

    /// How many regions.
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

    /// A region as it is at the end, if that is known.
    ///
    /// # Errors
    /// It cannot be read.
    fn after(&self, region: usize) -> io::Result<Option<Self::File>>;
}

/// Which part of a program is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Transactions before the trace begins: what they store is there when it does.
    pub skip: u64,
    /// Transactions in it at most.
    pub most: Option<u64>,
}

/// A capture that gives no trace.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// A file of the capture.
    #[error("{what}: {error}")]
    Io {
        /// Which.
        what: String,
        /// Why.
        error: io::Error,
    },
    /// A stream is none.
    #[error("the stream of thread {thread}: {broken}")]
    Stream {
        /// Which.
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
    /// Somebody has cancelled it.
    #[error("cancelled")]
    Cancelled,
}

/// A program that was captured.
pub struct Capture<S> {
    sources: S,
    /// What the functions that were followed are for.
    roles: Vec<Role>,
    limits: Limits,
    /// What is known before the records are merged.
    survey: Survey,
}

/// What a first look at all streams finds.
#[derive(Default)]
struct Survey {
    order: Order,
    /// Threads that access persistent memory or have transactions, by their numbers in the trace.
    traced: Vec<Option<u32>>,
    layout: Layout,
    begins: u64,
}

impl<S: Sources> Capture<S> {
    /// Looks through all streams.
    ///
    /// # Errors
    /// Streams that are none; nothing in them that could be traced.
    pub fn new(sources: S, roles: Vec<Role>, limits: Limits) -> Result<Self, CaptureError> {
        let survey = survey(&sources, &roles)?;
        let has_transactions = roles.iter().any(|role| role.begins());
        if survey.traced.iter().all(Option::is_none) {
            let what = "no thread of the program touched persistent memory, or began a transaction";
            return Err(CaptureError::Nothing(what.into()));
        }
        if has_transactions && survey.begins <= limits.skip {
            return Err(all_skipped(survey.begins, limits.skip));
        }
        Ok(Capture { sources, roles, limits, survey })
    }

    /// Merges everything, without writing it.
    ///
    /// # Errors
    /// Files that cannot be read; somebody cancels.
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
        let header = Header {
            version: graven_base::VERSION.into(),
            origin: Origin::Program,
            design: None,
            workload: None,
            machine: None,
            config: None,
            of_design: Vec::new(),
            threads: report.threads,
            transactions: None,
            seed: 0,
            data_start: Layout::of(&[0]).regions()[0].0,
            data_end: None,
            capture: Some(capture),
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
        let mut image = Image::new();
        for (region, &(start, _)) in layout.regions().iter().enumerate() {
            let what = || format!("region {region} as it was");
            let file = self.sources.before(region).map_err(|e| io_error(what(), e))?;
            each_word(file, |at, word| {
                image.store(Addr(start + at), word);
            })
            .map_err(|e| io_error(what(), e))?;
        }
        let has_transactions = self.roles.iter().any(|role| role.begins());
        let threads = traced.iter().map(|&number| Thread { number, ..Thread::default() });
        let report = Report {
            threads: traced.iter().flatten().count() as u32,
            all_threads: traced.len() as u32,
            regions: layout.regions().to_vec(),
            ..Report::default()
        };
        let may_race = report.threads > 1 && writer.is_none();
        let mut assembly = Assembly {
            races: may_race.then(|| Races::new(traced.len())),
            roles: &self.roles,
            limits: self.limits,
            layout,
            image,
            threads: threads.collect(),
            phase: Phase::Before,
            begun: 0,
            begins_left: self.survey.begins,
            locks: FxHashMap::default(),
            report,
            writer,
            failure: None,
            is_finishing: false,
        };
        if !has_transactions {
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

fn all_skipped(begun: u64, skipped: u64) -> CaptureError {
    CaptureError::Nothing(format!(
        "the program began {begun} transactions, of which {skipped} are skipped: there is none to trace"
    ))
}

fn io_error(what: String, error: io::Error) -> CaptureError {
    CaptureError::Io { what, error }
}

fn stream_error(thread: usize, broken: &Broken) -> CaptureError {
    CaptureError::Stream { thread, broken: broken.to_string() }
}

/// Looks through all streams.
fn survey<S: Sources>(sources: &S, roles: &[Role]) -> Result<Survey, CaptureError> {
    let mut survey = Survey::default();
    let mut lengths = vec![0u64; sources.regions()];
    let mut reach = |position: u64, bytes: u64| {
        let (region, offset) = place(position);
        if let Some(length) = lengths.get_mut(usize::from(region)) {
            *length = (*length).max(offset + bytes);
        }
    };
    let mut count = 0;
    for thread in 0..sources.threads() {
        let what = || format!("the stream of thread {thread}");
        let file = sources.stream(thread).map_err(|e| io_error(what(), e))?;
        let mut records = Records::new(file);
        let mut is_traced = false;
        while let Some((_, record)) =
            records.next_record().map_err(|broken| stream_error(thread, &broken))?
        {
            match record {
                Record::Access(_) => is_traced = true,
                Record::Event(number, event) => {
                    let added = survey.order.add(number, thread);
                    added
                        .map_err(|broken| CaptureError::Stream { thread, broken: broken.into() })?;
                    match event {
                        Event::Mapped { position, bytes, .. } => reach(position, bytes),
                        Event::KernelWrote { position, bytes } => {
                            is_traced = true;
                            reach(position, bytes.len() as u64);
                        }
                        Event::Entered { function, .. } => {
                            let role = roles.get(function as usize);
                            let begins = role.is_some_and(|role| role.begins());
                            survey.begins += u64::from(begins);
                            is_traced |= begins;
                        }
                        _ => {}
                    }
                }
            }
        }
        survey.traced.push(is_traced.then(|| {
            count += 1;
            count - 1
        }));
    }
    survey.layout = Layout::of(&lengths);
    Ok(survey)
}

/// Where the trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has not begun: what is stored is there when it does.
    Before,
    /// It has begun.
    In,
    /// It has ended; the rest is compared only.
    After,
}

/// What is known of a thread.
#[derive(Debug, Default)]
struct Thread {
    /// In the trace.
    number: Option<u32>,
    /// Instructions since its last operation.
    instructions: u64,
    /// Functions that it is in, with their first arguments.
    inside: Vec<Inside>,
    /// Transactions that it has begun and not ended: they are one.
    depth: u32,
    /// Whether one is open in the trace.
    is_open: bool,
    /// Transactions in the trace.
    transactions: u64,
    /// Words stored in the open one.
    stored: u64,
    held: Vec<Held>,
}

#[derive(Debug)]
struct Inside {
    function: u32,
    argument: u64,
    /// It has begun a transaction, or one within another.
    has_begun: bool,
}

/// A lock that is held.
#[derive(Debug)]
struct Held {
    lock: u64,
    /// How often.
    times: u32,
    /// It was released, and is held to the end of the transaction.
    is_released: bool,
}

struct Assembly<'a, W: Write> {
    roles: &'a [Role],
    limits: Limits,
    layout: &'a Layout,
    image: Image,
    threads: Vec<Thread>,
    /// None with one thread, and when races are known.
    races: Option<Races>,
    phase: Phase,
    /// Transactions that have begun, of all threads.
    begun: u64,
    /// Entries of functions that begin transactions that are still to come.
    begins_left: u64,
    /// Numbers of locks.
    locks: FxHashMap<u64, u32>,
    report: Report,
    writer: Option<Writer<W>>,
    /// What went wrong first.
    failure: Option<CaptureError>,
    /// The trace ends.
    is_finishing: bool,
}

impl<W: Write> Assembly<'_, W> {
    fn take(&mut self, thread: usize, since: u64, record: Record) {
        if self.failure.is_some() {
            return;
        }
        self.threads[thread].instructions += since;
        match record {
            Record::Access(access) => self.access(thread, &access),
            Record::Event(_, event) => self.event(thread, event),
        }
    }

    fn access(&mut self, thread: usize, access: &Access) {
        let bytes = u64::from(access.size);
        let Some(address) = self.layout.address(access.position, bytes) else { return };
        self.may_race(thread, address, bytes, access.is_store);
        // The instruction itself is one.
        let t = &mut self.threads[thread];
        t.instructions = t.instructions.saturating_sub(1);
        if access.is_store {
            self.report.stores += 1;
            self.stores(thread, address, access.stored(), access.is_non_temporal);
            return;
        }
        self.report.loads += 1;
        let mut found = [0; graven_capture::ACCESS_BYTES_MAX];
        let found = &mut found[..access.size.into()];
        self.image.read_bytes(Addr(address), found);
        if access.check.is_some_and(|of| check(found) != of) {
            self.astray(thread, address, bytes);
        }
        for word in words(address, bytes) {
            self.push(thread, Op::Load { at: Ptr::known(word) });
        }
    }

    /// It is held against what other threads access; not what functions do that synchronise threads.
    fn may_race(&mut self, thread: usize, address: u64, bytes: u64, is_store: bool) {
        let Some(races) = &mut self.races else { return };
        let t = &self.threads[thread];
        let role = |inside: &Inside| self.roles.get(inside.function as usize);
        if bytes > 0 && !t.inside.iter().filter_map(role).any(|role| role.synchronises()) {
            let transaction = t.is_open.then_some(t.transactions);
            races.access(Party { thread, transaction, address, bytes, is_store });
        }
    }

    /// A load has found something else.
    fn astray(&mut self, thread: usize, address: u64, bytes: u64) {
        self.report.loads_unexplained += 1;
        let load = self.threads[thread].number.map(|n| (n, self.threads[thread].transactions));
        let (region, offset) = self.layout.place(address);
        let places = &mut self.report.loads_astray;
        if places.len() < NAMED_MAX {
            places.push(Mismatch { region, offset, bytes, load });
        }
    }

    fn stores(&mut self, thread: usize, address: u64, bytes: &[u8], is_non_temporal: bool) {
        store(&mut self.image, address, bytes);
        if self.phase != Phase::In || bytes.is_empty() {
            return;
        }
        for word in words(address, bytes.len() as u64) {
            let (at, value) = (Ptr::known(word), self.image.load(word));
            self.report.words_stored += 1;
            let t = &mut self.threads[thread];
            t.stored += 1;
            self.report.words_stored_outside += u64::from(!t.is_open);
            self.push(
                thread,
                match is_non_temporal {
                    true => Op::StoreNonTemporal { at, value },
                    false => Op::Store { at, value },
                },
            );
        }
    }

    fn event(&mut self, thread: usize, event: Event) {
        match event {
            Event::Entered { function, argument } => self.entered(thread, function, argument),
            Event::Left { function, result, how } => {
                let returned = how == graven_capture::Left::Returned;
                self.left(thread, function, returned.then_some(result));
            }
            Event::KernelWrote { position, bytes } => {
                let length = bytes.len() as u64;
                let Some(address) = self.layout.address(position, length) else { return };
                self.report.kernel_bytes += length;
                self.may_race(thread, address, length, true);
                self.stores(thread, address, &bytes, false);
            }
            Event::Began { by } => {
                if let (Some(races), Some(by)) = (&mut self.races, by) {
                    races.begins(thread, by);
                }
            }
            Event::Synchronised { place, bytes, acquires, releases } => {
                if let Some(races) = &mut self.races {
                    let address = persistent(place).and_then(|at| self.layout.address(at, bytes));
                    races.synchronises(thread, (place, bytes), address, (acquires, releases));
                }
            }
            Event::Forked => self.report.forks += 1,
            Event::Replaced => self.report.replaced += 1,
            Event::Mapped { .. } | Event::Unmapped { .. } | Event::Ended | Event::Ordered => {}
        }
    }

    fn role(&self, function: u32) -> Option<Role> {
        self.roles.get(function as usize).copied()
    }

    fn entered(&mut self, thread: usize, function: u32, argument: u64) {
        let role = self.role(function);
        let ends = |inside: &Inside| {
            matches!(self.role(inside.function), Some(Role::Commit | Role::Abort))
        };
        // What functions call that end a transaction is part of that.
        let is_ending = self.threads[thread].inside.iter().any(ends);
        let begins = role.is_some_and(Role::begins);
        self.begins_left -= u64::from(begins);
        if let (Some(role), true) = (role, self.races.is_some()) {
            let is_alone = self.holds(thread, argument);
            self.races.iter_mut().for_each(|r| r.entered(thread, role, argument, is_alone));
        }
        let has_begun = begins && !is_ending;
        self.threads[thread].inside.push(Inside { function, argument, has_begun });
        match role {
            Some(Role::Begin { .. } | Role::Call) if has_begun => {
                self.threads[thread].depth += 1;
                if self.threads[thread].depth == 1 {
                    self.begin(thread);
                }
            }
            Some(Role::Unlock | Role::Wait) => self.unlock(thread, argument),
            _ => {}
        }
    }

    /// A function was left; `result`: what it returned, if it did.
    fn left(&mut self, thread: usize, function: u32, result: Option<u64>) {
        let t = &mut self.threads[thread];
        let Some(at) = t.inside.iter().rposition(|inside| inside.function == function) else {
            return;
        };
        let Inside { argument, has_begun, .. } = t.inside.remove(at);
        if let (Some(races), Some(result)) = (&mut self.races, result)
            && let Some(&role) = self.roles.get(function as usize)
        {
            races.returned(thread, role, argument, result);
        }
        let ends = |inside: &Inside| {
            matches!(self.roles[inside.function as usize], Role::Commit | Role::Abort)
        };
        let is_ending = t.inside.iter().any(ends);
        match self.role(function) {
            Some(Role::Begin { returns_zero }) if has_begun => {
                // Of an int, the upper half is anything.
                let has_failed = returns_zero && result.is_none_or(|result| result as u32 != 0);
                if has_failed {
                    self.end_one(thread);
                }
            }
            Some(Role::Call) if has_begun => self.end_one(thread),
            Some(role @ (Role::Commit | Role::Abort)) if !is_ending => {
                if role == Role::Abort && self.threads[thread].is_open {
                    self.report.aborted += 1;
                }
                self.end_one(thread);
            }
            Some(Role::Lock) if result.is_some_and(Role::has_locked) => self.lock(thread, argument),
            // It may have called what acquires it.
            Some(Role::Wait) if result.is_some() && !self.holds(thread, argument) => {
                self.lock(thread, argument);
            }
            _ => {}
        }
    }

    /// The trace begins.
    fn start(&mut self) {
        self.phase = Phase::In;
        self.report.skipped = self.begun.saturating_sub(1);
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
        if self.phase == Phase::Before && self.begun > self.limits.skip {
            self.start();
        }
        // Those that other threads have begun and not ended count.
        let begun = self.begun.saturating_sub(self.limits.skip);
        let are_enough = self.limits.most.is_some_and(|most| begun > most);
        if self.phase == Phase::In && are_enough {
            self.finish();
        }
        if self.phase == Phase::In {
            self.push(thread, Op::TxBegin);
            let t = &mut self.threads[thread];
            (t.is_open, t.stored) = (true, 0);
        }
    }

    /// One of a thread's transactions, which are one, ends.
    fn end_one(&mut self, thread: usize) {
        let t = &mut self.threads[thread];
        t.depth = t.depth.saturating_sub(1);
        if t.depth == 0 {
            self.end_transaction(thread);
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
        let is_last = self.begins_left == 0 && self.threads.iter().all(|t| t.depth == 0);
        if self.phase == Phase::In && is_last && !self.is_finishing {
            self.finish();
        }
    }

    fn number_of(&mut self, lock: u64) -> u32 {
        let next = self.locks.len() as u32;
        *self.locks.entry(lock).or_insert(next)
    }

    fn holds(&self, thread: usize, lock: u64) -> bool {
        self.threads[thread].held.iter().any(|held| held.lock == lock && !held.is_released)
    }

    fn lock(&mut self, thread: usize, lock: u64) {
        let held = self.threads[thread].held.iter_mut().find(|held| held.lock == lock);
        match held {
            Some(held) if held.is_released => (held.is_released, held.times) = (false, 1),
            Some(held) => held.times += 1,
            None => {
                self.threads[thread].held.push(Held { lock, times: 1, is_released: false });
                let lock = self.number_of(lock);
                self.push(thread, Op::Lock { lock });
            }
        }
    }

    fn unlock(&mut self, thread: usize, lock: u64) {
        let t = &mut self.threads[thread];
        let Some(at) = t.held.iter().position(|h| h.lock == lock && !h.is_released) else { return };
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

    /// A thread's next operation, behind the instructions before it.
    fn push(&mut self, thread: usize, op: Op) {
        if self.phase != Phase::In {
            return;
        }
        let t = &mut self.threads[thread];
        let Some(number) = t.number else { return };
        let mut instructions = std::mem::take(&mut t.instructions);
        let Some(writer) = &mut self.writer else { return };
        let mut written = Ok(());
        while instructions > 0 && written.is_ok() {
            let some = instructions.min(1 << 30);
            instructions -= some;
            written = writer.push(number, Op::Compute { instructions: some as u32 });
        }
        if let Err(error) = written.and_then(|()| writer.push(number, op)) {
            self.failure.get_or_insert(error.into());
        }
    }

    /// The trace ends: of a program with transactions, with the last of them.
    fn finish(&mut self) {
        self.is_finishing = true;
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

    fn found(&mut self, races: &Races) {
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
        if self.phase == Phase::Before {
            return Err(all_skipped(self.begun, self.limits.skip));
        }
        if let Some(races) = self.races.take() {
            self.found(&races);
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
        if let Some(writer) = self.writer {
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
            places.push(Mismatch { region, offset, bytes: WORD_BYTES, load: None });
        }
    }
}
