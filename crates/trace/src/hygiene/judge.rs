//! The history, followed entry by entry.

use std::io::{Read, Seek};

use graven_base::control::Control;
use graven_base::memory::{Addr, Image};
use graven_machine::program::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::classes::Class;
use super::findings::{Finding, Findings, Occurrence};
use super::memory::{Doer, LINE_BYTES, Line, Memory, PAGE_BYTES, bits, different};
use super::places::{Blamed, Deed, Places};
use crate::program::{
    Asked, Call, Fence, Flush, Happened, Happening, How, Place, Reader, TraceError,
};

/// Bytes that a call covers for each byte that was stored, from which on it covers far more.
const WIDE: u64 = 1000;
/// Fewer bytes are never too many.
const WIDE_BYTES: u64 = 64 * PAGE_BYTES;
/// Most dirty reads of a thread that are followed at a time.
const READS_MAX: usize = 256;
/// Most calls with MS_ASYNC that are followed at a time.
const ASYNC_MAX: usize = 256;
/// Functions of the C library that end a program.
const ENDS: [&str; 4] = ["exit", "_exit", "quick_exit", "__run_exit_handlers"];
/// Entries between two looks at whether the caller cancels.
const CANCEL_EVERY: u64 = 1 << 16;

/// The counts of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Words stored.
    pub stores: u64,
    /// Words stored non-temporally, of these.
    pub non_temporal: u64,
    /// Flushes of persistent memory.
    pub flushes: u64,
    /// Flushes whose address the capture could not tell.
    pub unknown_flushes: u64,
    /// Fences, without locked instructions.
    pub fences: u64,
    /// Locked instructions that had something to order.
    pub locked: u64,
    /// Calls that synchronised persistent memory.
    pub syncs: u64,
    /// Calls that sent something out.
    pub sends: u64,
    /// Words that are not durable at the end, and are locks or counters.
    pub locks: u64,
    /// Findings in data of the C library, which are left out.
    pub of_runtime: u64,
    /// Instructions of code that no file has.
    pub without_module: u64,
}

/// The result of a look at a history.
#[derive(Clone, Debug, Serialize)]
pub struct Hygiene {
    /// The findings: bugs first.
    pub findings: Vec<Finding>,
    /// The counts.
    pub totals: Totals,
}

/// A thread.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Fences that it has executed.
    epoch: u64,
    /// Since the last one: stores, flushes, non-temporal stores.
    stores: u64,
    flushes: u64,
    non_temporal: u64,
    /// The lines that it has flushed since, and those that it has stored to non-temporally.
    pending: Vec<u64>,
    uncached: Vec<u64>,
    /// The lines to which it has stored behind their flush, until its next fence that is no locked instruction.
    late: Vec<u64>,
    /// A flush or a non-temporal store has come since that fence.
    has_flushed: bool,
    /// Words that it has stored between flush and fence.
    suspects: Vec<Suspect>,
    reads: Vec<DirtyRead>,
    /// The entry with which its call began, if others have run meanwhile: what they have stored since, it need not have seen.
    calling: Option<u64>,
}

/// A word that was stored behind the flush of its line, and was not flushed when the fence came.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    line: u64,
    word: usize,
    store: Doer,
    flush: Doer,
}

/// A load of another thread's store that is not durable.
#[derive(Clone, Copy, Debug)]
struct DirtyRead {
    line: u64,
    word: usize,
    store: Doer,
    reader: Doer,
}

/// A call that has covered pages without waiting for them.
struct Async {
    call: Doer,
    lines: Vec<u64>,
}

struct Judge {
    before: Image,
    memory: Memory,
    threads: FxHashMap<u32, Thread>,
    findings: Findings,
    totals: Totals,
    /// First byte and the one behind the last of each region.
    regions: Vec<(u64, u64)>,
    /// The program has a single thread: no other sees in which order it stores.
    is_alone: bool,
    asyncs: Vec<Async>,
    /// Calls that made something durable.
    syncs: Vec<Doer>,
    /// Entries so far.
    number: u64,
    /// Locked instructions, by site and stack: whether the program is over then.
    ending: FxHashMap<(u32, u32), bool>,
    /// Loads, by site and stack: whether they are of a function that loads more than it was asked for.
    beyond: FxHashMap<(u32, u32), bool>,
    /// Stores that are findings already.
    told: FxHashSet<u64>,
}

/// Looks through the history of a trace.
///
/// # Errors
/// The trace is broken, or has no history; the caller cancels.
pub fn judge<R: Read + Seek>(reader: &Reader<R>, control: &Control) -> Result<Hygiene, TraceError> {
    reader.require_history()?;
    let mut before = Image::new();
    reader.populate(&mut before)?;
    let (sites, stacks) = (reader.sites()?, reader.stacks()?);
    let (mut stores, mut threads) = (FxHashSet::default(), FxHashSet::default());
    reader.history(|happening| {
        threads.insert(happening.thread);
        if matches!(happening.what, Happened::Store { .. }) {
            stores.insert((happening.site, happening.stack));
        }
    })?;
    let without_module = sites.iter().filter(|site| site.module.is_none()).count() as u64;
    let mut judge = Judge {
        before,
        memory: Memory::default(),
        threads: FxHashMap::default(),
        findings: Findings::new(Places::new(sites, stacks, stores)),
        totals: Totals { without_module, ..Totals::default() },
        regions: regions(reader),
        is_alone: threads.len().max(all_threads(reader)) <= 1,
        asyncs: Vec::new(),
        syncs: Vec::new(),
        number: 0,
        ending: FxHashMap::default(),
        beyond: FxHashMap::default(),
        told: FxHashSet::default(),
    };
    reader.walk(|happening, op| {
        judge.follow(&happening, op);
        if judge.number.is_multiple_of(CANCEL_EVERY) && control.report(0) {
            return Err(TraceError::Cancelled);
        }
        Ok(())
    })?;
    judge.end();
    judge.totals.of_runtime = judge.findings.of_runtime;
    Ok(Hygiene { findings: judge.findings.all(), totals: judge.totals })
}

/// Number of threads of a captured program, with those that never touched persistent memory, by the report in the trace's header.
fn all_threads<R: Read + Seek>(reader: &Reader<R>) -> usize {
    let capture = reader.contents().header.capture.as_ref();
    let threads = capture.and_then(|capture| capture["report"]["all_threads"].as_u64());
    threads.unwrap_or_default() as usize
}

/// The regions of a captured program, by the report in the trace's header.
fn regions<R: Read + Seek>(reader: &Reader<R>) -> Vec<(u64, u64)> {
    let capture = reader.contents().header.capture.as_ref();
    let list = capture.and_then(|capture| capture["report"]["regions"].as_array());
    let region = |of: &serde_json::Value| {
        let start = of["start"].as_u64()?;
        Some((start, start + of["bytes"].as_u64()?))
    };
    list.into_iter().flatten().filter_map(region).collect()
}

fn line_of(address: u64) -> u64 {
    address / LINE_BYTES
}

fn word_of(address: u64) -> usize {
    (address % LINE_BYTES / 8) as usize
}

impl Judge {
    fn thread(&mut self, thread: u32) -> &mut Thread {
        self.threads.entry(thread).or_default()
    }

    /// Changes a line.
    fn change<T>(&mut self, line: u64, change: impl FnOnce(&mut Line) -> T) -> T {
        let before = &self.before;
        self.memory.change(line, |at| before.load(Addr(at)), change)
    }

    fn follow(&mut self, happening: &Happening, op: Option<Op>) {
        self.number += 1;
        let &Happening { thread, site, stack, ref what, .. } = happening;
        let by = Doer { site, stack, thread, number: self.number };
        match (what, op) {
            (
                Happened::Store { how, .. },
                Some(Op::Store { at, value } | Op::StoreNonTemporal { at, value }),
            ) => self.stores(by, *how, at.addr.0, value),
            (&Happened::Load { bytes }, Some(Op::Load { at })) => self.loads(by, at.addr.0, bytes),
            (Happened::Flush(flush, place), _) => self.flushes(by, *flush, *place),
            (Happened::Fence(fence), _) => self.fences(by, *fence),
            (Happened::Call(call), _) => self.calls(by, call),
            _ => {}
        }
    }

    fn is_atomic(&self, by: Doer) -> bool {
        self.findings.places.site(by.site).is_some_and(|site| site.is_atomic)
    }

    fn stores(&mut self, by: Doer, how: How, address: u64, value: u64) {
        let (line, word, is_atomic) = (line_of(address), word_of(address), self.is_atomic(by));
        let bit = 1u8 << word;
        self.totals.stores += 1;
        let is_non_temporal = how == How::NonTemporal;
        let thread = self.thread(by.thread);
        thread.stores += 1;
        let epoch = thread.epoch;
        if is_non_temporal {
            thread.has_flushed = true;
            thread.non_temporal += 1;
            if thread.uncached.last() != Some(&line) {
                thread.uncached.push(line);
            }
            self.totals.non_temporal += 1;
        }
        let (mixed, is_late) = self.change(line, |line| {
            let uncached = bits(line.non_temporal)
                .find(|&at| !is_non_temporal && line.words[at].store.thread == by.thread);
            let uncached = uncached.map(|at| line.words[at].store);
            line.overwrites(word, by);
            line.takes_or_frees(word, value, is_atomic);
            let is_undurable = line.undurable() & bit != 0;
            let of = &mut line.words[word];
            let before = if is_undurable && of.store.thread == by.thread { of.changed } else { 0 };
            of.changed = before | different(of.value, value);
            (of.value, of.store) = (value, by);
            let was_late = line.late != 0;
            line.is_async &= !bit;
            line.late &= !bit;
            for mask in [&mut line.dirty, &mut line.flushed, &mut line.non_temporal] {
                *mask &= !bit;
            }
            if is_non_temporal {
                line.non_temporal |= bit;
            } else {
                line.dirty |= bit;
                let is_late =
                    line.flush.number != 0 && line.flush.thread == by.thread && line.epoch == epoch;
                line.late |= if is_late { bit } else { 0 };
            }
            line.atomic |= if is_atomic { bit } else { 0 };
            (uncached, !was_late && line.late != 0)
        });
        if is_late {
            self.thread(by.thread).late.push(line);
        }
        if let Some(uncached) = mixed {
            self.findings.add(Occurrence {
                class: Class::StoreAfterNonTemporal,
                by,
                address: Some(address),
                partners: &[("store", uncached)],
                detail: None,
            });
        }
    }

    fn loads(&mut self, by: Doer, address: u64, bytes: u8) {
        let (number, word, is_atomic) = (line_of(address), word_of(address), self.is_atomic(by));
        let Some(line) = self.memory.line(number) else { return };
        let bit = 1u8 << word;
        if is_atomic {
            self.change(number, |line| line.atomic |= bit);
            return;
        }
        let of = line.words[word];
        let store = of.store;
        let is_dirty = line.undurable() & !line.atomic & bit != 0 && store.thread != by.thread;
        if !is_dirty || of.undurable() & of.changed & bytes == 0 || self.reads_beyond(by) {
            return;
        }
        let reads = &mut self.thread(by.thread).reads;
        let is_known = |read: &DirtyRead| read.store == store && read.word == word;
        if reads.len() < READS_MAX && !reads.iter().any(is_known) {
            reads.push(DirtyRead { line: number, word, store, reader: by });
        }
    }

    fn flushes(&mut self, by: Doer, flush: Flush, place: Place) {
        let address = match place {
            Place::Persistent(address) => address,
            Place::Unknown => {
                self.totals.unknown_flushes += 1;
                self.thread(by.thread).flushes += 1;
                return;
            }
            Place::Volatile(address) => {
                self.thread(by.thread).flushes += 1;
                self.findings.add(Occurrence {
                    class: Class::FlushOfOtherMemory,
                    by,
                    address: None,
                    partners: &[],
                    detail: Some(format!("{} of address {address:#x}", flush.name())),
                });
                return;
            }
        };
        self.totals.flushes += 1;
        let number = line_of(address);
        let thread = self.thread(by.thread);
        thread.flushes += 1;
        thread.has_flushed = true;
        let epoch = thread.epoch;
        if thread.pending.last() != Some(&number) {
            thread.pending.push(number);
        }
        let (useless, last) = self.change(number, |line| {
            let useless = match (line.dirty, line.flushed) {
                (0, 0) => Some(Class::CleanFlush),
                (0, _) => Some(Class::FlushedTwice),
                _ => None,
            };
            let last = line.flush;
            line.is_flushed();
            (line.flush, line.epoch) = (by, epoch);
            // Later stores are ordered behind it, as if it were done at once.
            if flush == Flush::Clflush {
                line.becomes_durable(line.flushed);
            }
            (useless, last)
        });
        if let Some(class) = useless {
            let partners = [("flush", last)];
            self.findings.add(Occurrence {
                class,
                by,
                address: Some(address / LINE_BYTES * LINE_BYTES),
                partners: if last.number == 0 { &[] } else { &partners },
                detail: Some(flush.name().into()),
            });
        }
    }

    fn fences(&mut self, by: Doer, fence: Fence) {
        match fence {
            // The C library locks what it has when the program is over; that orders nothing for the program.
            Fence::Locked if self.is_ending(by) => return,
            Fence::Locked => self.totals.locked += 1,
            _ => self.totals.fences += 1,
        }
        let completes =
            !matches!(fence, Fence::DsbLoads | Fence::Dmb | Fence::DmbStores | Fence::DmbLoads);
        if !completes {
            return;
        }
        let is_alone = self.is_alone;
        let thread = self.thread(by.thread);
        let orders = thread.flushes > 0 || thread.non_temporal > 0;
        let is_idle = match fence {
            // x86-64 orders ordinary stores without it.
            Fence::Sfence => !orders,
            // Other threads see in which order stores become visible; power failures do not.
            Fence::Mfence | Fence::Dsb | Fence::DsbStores => {
                !orders && (thread.stores == 0 || is_alone)
            }
            _ => false,
        };
        let (pending, uncached) =
            (std::mem::take(&mut thread.pending), std::mem::take(&mut thread.uncached));
        (thread.stores, thread.flushes, thread.non_temporal) = (0, 0, 0);
        thread.epoch += 1;
        // The C library's copies end with one.
        if is_idle && !self.findings.places.is_of_runtime(by.site) {
            self.findings.add(Occurrence {
                class: Class::IdleFence,
                by,
                address: None,
                partners: &[],
                detail: Some(fence.name().into()),
            });
        }
        // Dirty reads have an effect if something that the thread has stored itself is durable now.
        let has_read = !self.thread(by.thread).reads.is_empty();
        let mut stored = Vec::new();
        for (lines, is_flush) in [(pending, true), (uncached, false)] {
            for number in lines {
                self.change(number, |line| {
                    let completed = if is_flush { line.flushed } else { line.non_temporal };
                    if has_read {
                        stored.extend(bits(completed).map(|at| line.words[at].store));
                    }
                    line.becomes_durable(completed);
                });
            }
        }
        if fence != Fence::Locked {
            self.look_for_suspects(by.thread);
        }
        stored.retain(|store| store.thread == by.thread && self.is_of_program(*store));
        let newest = stored.into_iter().max_by_key(|store| store.number);
        self.judge_reads(by.thread, newest.unwrap_or_default(), "effect");
    }

    /// Tells whether the program stores, and not a library for itself.
    fn is_of_program(&mut self, store: Doer) -> bool {
        let places = &mut self.findings.places;
        match places.blamed(store.site, store.stack, Deed::Access).0 {
            Blamed::Place(at) => !places.frames[at as usize].is_library(),
            Blamed::Runtime => false,
        }
    }

    /// A fence that the program asked for has come: words that were stored behind the flush of their line need another one.
    fn look_for_suspects(&mut self, thread: u32) {
        let mut suspects = Vec::new();
        for number in std::mem::take(&mut self.thread(thread).late) {
            self.change(number, |line| {
                for word in bits(line.late & line.dirty & !line.atomic) {
                    let (store, flush) = (line.words[word].store, line.flush);
                    suspects.push(Suspect { line: number, word, store, flush });
                }
                line.late = 0;
            });
        }
        if std::mem::take(&mut self.thread(thread).has_flushed) {
            self.judge_suspects(thread, suspects);
        }
    }

    /// Tells whether an instruction is of a function that loads more than it was asked for.
    fn reads_beyond(&mut self, by: Doer) -> bool {
        let Judge { beyond, findings, .. } = self;
        let is = || findings.places.reads_beyond(by.site, by.stack);
        *beyond.entry((by.site, by.stack)).or_insert_with(is)
    }

    /// Tells whether a thread does something since the program is over.
    fn is_ending(&mut self, by: Doer) -> bool {
        let Judge { ending, findings, .. } = self;
        let is = || findings.places.is_within(by.site, by.stack, &ENDS);
        *ending.entry((by.site, by.stack)).or_insert_with(is)
    }

    /// A fence behind flushes has come: what was stored before the last one, and is not flushed yet, was forgotten.
    fn judge_suspects(&mut self, thread: u32, new: Vec<Suspect>) {
        let old = std::mem::replace(&mut self.thread(thread).suspects, new);
        for suspect in old {
            self.judge_suspect(suspect);
        }
    }

    fn judge_suspect(&mut self, suspect: Suspect) {
        let Suspect { line, word, store, flush } = suspect;
        let is_dirty = self.memory.line(line).is_some_and(|line| {
            line.dirty >> word & 1 != 0
                && line.words[word].store == store
                && line.words[word].value != line.words[word].durable
        });
        if is_dirty && self.told.insert(store.number) {
            self.findings.add(Occurrence {
                class: Class::StoredAfterFlush,
                by: store,
                address: Some(line * LINE_BYTES + 8 * word as u64),
                partners: &[("flush", flush)],
                detail: None,
            });
        }
    }

    /// Something of the thread is durable or told from now on: what it has read before, and is not durable, is lost with a failure.
    fn judge_reads(&mut self, thread: u32, effect: Doer, is: &'static str) {
        let reads = std::mem::take(&mut self.thread(thread).reads);
        let mut left = Vec::new();
        for read in reads {
            let DirtyRead { line, word, store, reader } = read;
            let is_dirty = self.memory.line(line).is_some_and(|line| {
                (line.undurable() & !line.atomic) >> word & 1 != 0
                    && line.words[word].store == store
            });
            if !is_dirty {
                continue;
            }
            if effect.number <= reader.number {
                left.push(read);
                continue;
            }
            self.findings.add(Occurrence {
                class: Class::DirtyRead,
                by: reader,
                address: Some(line * LINE_BYTES + 8 * word as u64),
                partners: &[("store", store), (is, effect)],
                detail: None,
            });
        }
        self.thread(thread).reads = left;
    }

    fn calls(&mut self, by: Doer, call: &Call) {
        match call.asked {
            Asked::Send => {
                self.totals.sends += 1;
                self.judge_reads(by.thread, by, "told");
                self.judge_asyncs(by);
            }
            _ if !call.is_over => self.thread(by.thread).calling = Some(by.number),
            _ => {
                if let Some(waits) = call.synchronises() {
                    self.synchronises(by, call, waits);
                }
            }
        }
    }

    /// The addresses that a call is about.
    fn range(&self, call: &Call) -> Option<(u64, u64)> {
        if call.asked == Asked::Sync {
            return Some((0, u64::MAX));
        }
        let Place::Persistent(start) = call.place else { return None };
        let has = |&&(from, to): &&(u64, u64)| (from..to).contains(&start);
        let end = self.regions.iter().find(has).map_or(u64::MAX, |&(_, end)| end);
        Some((start, start.saturating_add(call.bytes).min(end)))
    }

    fn synchronises(&mut self, by: Doer, call: &Call, waits: bool) {
        let Some((start, end)) = self.range(call) else { return };
        if call.result < 0 {
            self.findings.add(Occurrence {
                class: Class::SyncFailed,
                by,
                address: Some(start),
                partners: &[],
                detail: Some(format!(
                    "{} has failed with error {}",
                    call.asked.name(),
                    -call.result
                )),
            });
            return;
        }
        self.totals.syncs += 1;
        let seen = self.thread(by.thread).calling.take().unwrap_or(by.number);
        let lines = self.memory.undurable(start, end);
        if !waits {
            for &number in &lines {
                self.change(number, |line| line.is_async |= line.undurable());
            }
            if self.asyncs.len() < ASYNC_MAX && !lines.is_empty() {
                self.asyncs.push(Async { call: by, lines });
            }
            return;
        }
        let mut stored = 0;
        for number in lines {
            stored += 8 * u64::from(self.change(number, |line| {
                let is_seen = |&at: &usize| line.words[at].store.number < seen;
                let words = bits(line.undurable()).filter(is_seen).fold(0, |all, at| all | 1 << at);
                line.becomes_durable(words);
                words.count_ones()
            }));
        }
        self.syncs.push(Doer { number: seen, ..by });
        let covered = end - start;
        let is_wide = call.asked == Asked::Msync && covered >= WIDE_BYTES.max(stored * WIDE);
        if is_wide && stored > 0 {
            self.findings.add(Occurrence {
                class: Class::WideSync,
                by,
                address: Some(start),
                partners: &[],
                detail: Some(format!("{covered} B for {stored} B that were stored")),
            });
        }
    }

    /// Something is told: pages that were only begun to be written may be lost.
    fn judge_asyncs(&mut self, told: Doer) {
        for Async { call, lines } in std::mem::take(&mut self.asyncs) {
            let waits = |&&number: &&u64| self.memory.line(number).is_some_and(|l| l.is_async != 0);
            if let Some(&line) = lines.iter().find(waits) {
                self.findings.add(Occurrence {
                    class: Class::AsyncAcknowledged,
                    by: call,
                    address: Some(line * LINE_BYTES),
                    partners: &[("told", told)],
                    detail: None,
                });
            }
        }
    }

    /// The program has ended.
    fn end(&mut self) {
        let Totals { flushes, unknown_flushes, non_temporal, syncs, .. } = self.totals;
        if flushes + unknown_flushes + non_temporal + syncs == 0 {
            return;
        }
        let suspects: Vec<Suspect> =
            self.threads.values_mut().flat_map(|t| std::mem::take(&mut t.suspects)).collect();
        for suspect in suspects {
            self.judge_suspect(suspect);
        }
        for number in self.memory.undurable(0, u64::MAX) {
            let Some(line) = self.memory.line(number).cloned() else { continue };
            for word in bits(line.undurable()) {
                self.judge_last(number, &line, word);
            }
        }
    }

    /// A word is not durable at the end.
    fn judge_last(&mut self, number: u64, line: &Line, word: usize) {
        let (bit, of) = (1u8 << word, line.words[word]);
        if of.value == of.durable || self.told.contains(&of.store.number) {
            return;
        }
        // What stands beside other data that is not durable is part of it.
        let is_alone = line.undurable() & !line.atomic == 0;
        if line.atomic & bit != 0 && !line.was_flushed && (is_alone || line.locks & bit != 0) {
            self.totals.locks += 1;
            return;
        }
        let address = Some(number * LINE_BYTES + 8 * word as u64);
        let mut add = |class, by, partners: &[(&'static str, Doer)], detail: Option<&str>| {
            let detail = detail.map(Into::into);
            self.findings.add(Occurrence { class, by, address, partners, detail });
        };
        if line.locks & bit != 0 {
            add(Class::HeldLock, of.store, &[("flush", line.flush)], None);
        } else if line.non_temporal & bit != 0 {
            let detail = Some("the stores are non-temporal");
            add(Class::NeverFenced, of.store, &[], detail);
        } else if line.flushed & bit != 0 {
            add(Class::NeverFenced, line.flush, &[("store", of.store)], None);
        } else if line.late & bit != 0 {
            add(Class::StoredAfterFlush, of.store, &[("flush", line.flush)], None);
        } else if line.is_async & bit != 0 {
            add(Class::NeverFlushed, of.store, &[], Some("only msync with MS_ASYNC covers them"));
        } else {
            // Who flushes does not need calls.
            let behind = self.syncs.partition_point(|sync| sync.number < of.store.number);
            let sync = self.syncs.get(behind).filter(|_| self.totals.flushes == 0).copied();
            match sync {
                Some(sync) => add(Class::SyncMisses, of.store, &[("call", sync)], None),
                None => {
                    add(Class::NeverFlushed, of.store, &[], None);
                    self.judge_overwritten(line, word, address);
                }
            }
        }
    }

    /// A word is never flushed: each place that has stored to it since it was durable is blamed once.
    fn judge_overwritten(&mut self, line: &Line, word: usize, address: Option<u64>) {
        let place = |judge: &mut Judge, by: Doer| {
            judge.findings.places.blamed(by.site, by.stack, Class::NeverFlushed.deed()).0
        };
        let mut told = vec![place(self, line.words[word].store)];
        for &(_, by) in line.overwritten.iter().filter(|&&(at, _)| usize::from(at) == word) {
            let at = place(self, by);
            if told.contains(&at) {
                continue;
            }
            told.push(at);
            let detail = Some("later stores have overwritten them".into());
            let class = Class::NeverFlushed;
            self.findings.add(Occurrence { class, by, address, partners: &[], detail });
        }
    }
}

#[cfg(test)]
mod tests;
