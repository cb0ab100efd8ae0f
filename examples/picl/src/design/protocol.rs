//! The hooks: stores make undo entries, lines that leave the caches wait for theirs.

use graven::config::{ConfigError, ControllerConfig};
use graven::design::{
    self, Design, DesignContext, Mutants, PersistDesign, PlainStore, PlainStoreDesign, Stall,
    Store, TaggedDesign, Unused, Writeback,
};
use graven::ids::ThreadId;
use graven::memory::{Addr, LINE_BYTES, LineAddr, LineData};
use graven::program::Persist;
use graven::request::{self, WriteClass, WriteOrder};

use super::epochs::{Epochs, TAGS};
use super::event::{Cause, Event};
use super::log::{ENTRIES, Layout, Record, Superblocks};
use super::scan::Scan;
use super::undo_buffer::{Entry, UndoBuffer};
use super::{Mutant, PiclConfig};

pub(super) type Port<'a> = design::Port<'a, Picl>;

/// A write that is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// A line of the log.
    Log,
    /// A line of an epoch goes home; a scan has written it back, or it was evicted.
    Home { epoch: u64, scanned: bool },
    /// The number of the persisted epoch.
    Persisted,
}

/// A timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The next step of a scan.
    Scan,
}

/// The design's state.
pub(super) struct Picl {
    epoch_stores: u32,
    pub(super) mutants: Mutants<Mutant>,
    pub(super) layout: Layout,
    pub(super) epochs: Epochs,
    /// Stores in the epoch that all threads are in.
    stores: u32,
    pub(super) buffer: UndoBuffer,
    pub(super) superblocks: Superblocks,
    /// Place in the order of writes of the last line sent to the log.
    pub(super) log_end: WriteOrder,
    pub(super) scan: Scan,
    /// Lines that scans have written back and that are not durable, and how many there may be.
    pub(super) scanned_under_way: u32,
    pub(super) scanned_under_way_max: u32,
    /// Threads that wait for the end of a scan.
    pub(super) waiting: Vec<ThreadId>,
}

impl Picl {
    pub(super) fn new(context: &DesignContext) -> Result<Picl, ConfigError> {
        let config = context.config.get::<PiclConfig>();
        let layout = Layout::of(context);
        if layout.end() > context.log_end {
            let keys = ["picl.superblocks", "picl.superblock_records", "pm.log_region_bytes"];
            return Err(context.config.inconsistent(&keys, "the log does not fit".into()));
        }
        // At worst one superblock is in use whose newest entries recovery may need.
        let others = layout.records.saturating_sub(config.superblock_records.into());
        if others < u64::from(config.buffer_entries).div_ceil(ENTRIES as u64) {
            let keys = ["picl.superblocks", "picl.superblock_records", "picl.buffer_entries"];
            let why = "a superblock beside, the log has no room for the undo buffer".into();
            return Err(context.config.inconsistent(&keys, why));
        }
        let write_queue = context.config.get::<ControllerConfig>().write_queue_entries;
        Ok(Picl {
            epoch_stores: config.epoch_stores,
            mutants: context.mutants(),
            layout,
            epochs: Epochs::new(config.gap),
            stores: 0,
            buffer: UndoBuffer::new(config.buffer_entries, config.filter_bits),
            superblocks: Superblocks::new(&layout),
            log_end: WriteOrder::NONE,
            scan: Scan::None,
            scanned_under_way: 0,
            scanned_under_way_max: (write_queue / 2).max(1),
            waiting: Vec::new(),
        })
    }

    // ---- epochs --------------------------------------------------------------------------------

    fn end_epoch(&mut self, port: &mut Port<'_>) {
        let epoch = self.epochs.executing();
        port.emit(Event::Snapshot { epoch, round: epoch > TAGS });
        port.take_snapshot();
        self.epochs.end();
        self.stores = 0;
        self.start_scan(port);
    }

    /// The epoch has all its stores: the next one begins, or the thread waits for a scan.
    fn next_epoch(&mut self, port: &mut Port<'_>, thread: ThreadId) -> Stall {
        if !self.epochs.may_end() && !self.mutants.has(Mutant::EpochEndsTooEarly) {
            port.emit(Event::SnapshotWaits { thread });
            self.waiting.push(thread);
            return Stall::Retry;
        }
        self.end_epoch(port);
        Stall::None
    }

    // ---- undo entries --------------------------------------------------------------------------

    fn store(&mut self, port: &mut Port<'_>, thread: ThreadId, core: u32, addr: Addr) -> Stall {
        if self.stores >= self.epoch_stores && self.next_epoch(port, thread) == Stall::Retry {
            return Stall::Retry;
        }
        let line = addr.line();
        let tag = port.tag(line).expect("the L1 has the line");
        let dirty_since = (tag != 0).then(|| self.epochs.of_tag(tag));
        let is_logged = match dirty_since {
            Some(epoch) => epoch == self.epochs.executing() || self.mutants.has(Mutant::TagIgnored),
            None => self.mutants.has(Mutant::CleanLinesNotLogged),
        };
        if !is_logged && self.log_line(port, thread, line, dirty_since) == Stall::Retry {
            return Stall::Retry;
        }
        port.set_tag(core, line, self.epochs.tag());
        self.stores += 1;
        Stall::None
    }

    /// Makes an undo entry of a line; `dirty_since`: the epoch that has last stored to it, if it is dirty.
    fn log_line(
        &mut self,
        port: &mut Port<'_>,
        thread: ThreadId,
        line: LineAddr,
        dirty_since: Option<u64>,
    ) -> Stall {
        if self.buffer.is_full() {
            if self.mutants.has(Mutant::FullBufferDrops) {
                self.buffer.drop_oldest();
            } else {
                self.burst(port, Cause::Full);
            }
        }
        if !self.superblocks.have_room(self.buffer.len() + 1) {
            port.emit(Event::LogFull { thread });
            self.waiting.push(thread);
            if matches!(self.scan, Scan::None) {
                self.end_epoch(port);
                self.epochs.want_all();
                self.start_scan(port);
            }
            return Stall::Retry;
        }
        let till = self.epochs.executing();
        let of_clean = if self.mutants.has(Mutant::CleanLineValidFromNow) {
            till - 1
        } else {
            self.epochs.persisted()
        };
        let from = if self.mutants.has(Mutant::ValidTooLate) {
            till
        } else {
            dirty_since.unwrap_or(of_clean)
        };
        let entry = Entry { line, from, till, old: port.cached_line(line) };
        let across = dirty_since.is_some();
        let scanned = matches!(self.scan, Scan::Visits { epoch, .. } if across && from <= epoch);
        port.emit(Event::Entry { entry, across, scanned });
        self.buffer.push(entry);
        Stall::None
    }

    /// Writes the undo buffer to the log, in records. A header waits for all that goes to the log before it: where it is found, all
    /// older entries of its lines are, too.
    pub(super) fn burst(&mut self, port: &mut Port<'_>, cause: Cause) {
        port.emit(Event::Burst { cause, entries: self.buffer.len() });
        for entries in self.buffer.take().chunks(ENTRIES) {
            let number = self.superblocks.next();
            let record = Record { number: number as u32, entries: entries.to_vec() };
            self.superblocks.take(record.newest());
            port.emit(Event::Record);
            let header = self.layout.header(number % self.layout.records);
            for (number, entry) in (1..).zip(&record.entries) {
                let line = header.addr().plus(number * LINE_BYTES).line();
                self.send_to_log(port, line, entry.old, WriteOrder::NONE);
            }
            let unordered = self.mutants.has(Mutant::HeaderUnordered);
            let after = if unordered { WriteOrder::NONE } else { self.log_end };
            self.send_to_log(port, header, record.header(), after);
            if self.mutants.has(Mutant::FreedWhenFull) {
                self.superblocks.free_up_to(u64::MAX);
            }
        }
    }

    fn send_to_log(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        content: LineData,
        after: WriteOrder,
    ) {
        self.log_end = port.order();
        let write = request::Write::line(WriteClass::Log, line, content);
        let write = write.ordered(self.log_end).after(after);
        port.write_reported(write, Write::Log, port.bypass_cycles());
    }

    // ---- lines that go home --------------------------------------------------------------------

    /// The place in the order of writes that a line's write waits for: its undo entry is in the log then.
    pub(super) fn before_home(&mut self, port: &mut Port<'_>, line: LineAddr) -> WriteOrder {
        if self.buffer.may_have(line) && !self.mutants.has(Mutant::FilterIgnored) {
            self.burst(port, Cause::Line { line, has_entry: self.buffer.has(line) });
        }
        self.log_end
    }
}

impl Design for Picl {
    type Write = Write;
    type Read = Unused;
    type Timer = Timer;
    type Event = Event;

    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        self.store(port, store.tx.thread, store.core, store.addr)
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Log => {}
            Write::Home { epoch, scanned } => {
                self.scanned_under_way -= u32::from(scanned);
                self.epochs.line_is_home(epoch);
            }
            Write::Persisted => return self.end_scan(port),
        }
        self.go_on_with_scan(port);
    }

    fn on_timer(&mut self, port: &mut Port<'_>, Timer::Scan: Timer) {
        self.step_scan(port);
    }

    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        if self.epochs.may_end() {
            self.end_epoch(port);
        }
    }

    fn is_idle(&self) -> bool {
        matches!(self.scan, Scan::None)
    }

    /// The last epoch ends, and a scan takes all of it home: no entry counts any more.
    fn on_shutdown(&mut self, port: &mut Port<'_>) {
        self.end_epoch(port);
        self.epochs.want_all();
        self.start_scan(port);
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure {
            0 => self.buffer.len() as u64,
            _ => self.superblocks.taken(),
        }
    }
}

impl PlainStoreDesign for Picl {
    fn on_plain_store(&mut self, port: &mut Port<'_>, store: &PlainStore) -> Stall {
        self.store(port, store.thread, store.core, store.addr)
    }
}

impl TaggedDesign for Picl {
    fn on_tagged_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
        tag: u8,
    ) -> Writeback<Write> {
        let epoch = self.epochs.of_tag(tag);
        let before = self.before_home(port, line);
        let unordered = self.mutants.has(Mutant::EvictionsUnordered);
        let after = Writeback::after(if unordered { WriteOrder::NONE } else { before });
        if self.mutants.has(Mutant::EvictionsNotAwaited) {
            return after;
        }
        self.epochs.line_leaves(epoch);
        after.reported(Write::Home { epoch, scanned: false })
    }
}

impl PersistDesign for Picl {
    /// Fences of order mean nothing: what survives is a snapshot. All else is the machine's.
    fn on_persist(
        &mut self,
        _port: &mut Port<'_>,
        _thread: ThreadId,
        _core: u32,
        what: Persist,
    ) -> Option<Stall> {
        matches!(what, Persist::Order(_)).then_some(Stall::None)
    }
}
