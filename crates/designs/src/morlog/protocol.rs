//! The state of the design, and what it does when the machine calls: the algorithm's steps are in `logging`, `commit`,
//! `home`, `non_temporal`, `truncation` and `table`.

use std::collections::VecDeque;

use graven_base::config::{Config, ConfigError};
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, Field, LINE_BYTES, LineAddr, LineData, WordMask};
use graven_base::time::{Cycle, NEVER};
use graven_machine::config::{CoreConfig, L1Config, traversal_cycles};
use graven_machine::design::{
    self, AbsorbingDesign, Cause, Departure, DepartureDesign, Design, DesignContext, Fill, Miss,
    NonTemporalDesign, Stall, Store, Unused, Writeback, WritebackAction,
};
use graven_machine::request::{self, WriteClass, WriteOrder};

use super::buffers::{Redo, RedoBuffer, UndoRedoBuffer};
use super::commit::Ended;
use super::event::Event;
use super::line_state::{LineStates, Owner};
use super::logs::{self, LogEnd, Logs};
use super::non_temporal::Parking;
use super::table::TransactionTable;
use super::truncation::{Cut, Truncation};
use super::{MorlogConfig, Rules, Truncate, check};
use crate::force_write_back::{self, DataWrites, Scanner, TagVisits};
use crate::packed_log::Record;

pub type Port<'a> = design::Port<'a, Morlog>;

/// Writes to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Records of a log, or the horizon: a write with a place in the order.
    Log,
    /// The head of a log.
    Head { log: usize },
    /// Words of a line that go home.
    Data(DataWrite),
}

/// Words of a line that go home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataWrite {
    pub number: DataWriteNumber,
    /// Epoch of [`DataWrites`].
    pub epoch: u64,
    /// A scan forces the line home.
    pub forced: bool,
}

/// Distinguishes writes of data from each other.
pub type DataWriteNumber = u64;

/// Purposes of timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The oldest entry of the undo+redo buffer is to leave.
    Drain,
    /// A scan continues, or begins.
    Scan,
    /// The tags of the L1 have been looked through, for the end of this thread's transaction.
    WalkEnds(ThreadId),
}

/// A transaction that runs and has records.
#[derive(Debug)]
pub struct Running {
    pub owner: Owner,
    pub core: u32,
    /// No record of it lies before this group.
    pub first_group: u64,
    /// Number of its words in state ULog: the ulog counter.
    pub ulog: u32,
    /// Lines whose extension is, or was, its own.
    pub lines: Vec<LineAddr>,
}

/// An undo+redo record on its way to the log.
#[derive(Clone, Copy, Debug)]
pub struct InFlight {
    /// None: it is in a batch that has not been sent.
    pub order: WriteOrder,
    pub core: u32,
    pub owner: Owner,
    pub addr: Addr,
}

/// The design.
pub struct Morlog {
    /// By which records know a transaction: its number, modulo.
    pub id: Field,
    pub delay_persistence: bool,
    pub dirty_flags: bool,
    /// True if data waits for its undo data; not with an unsafe buffer.
    pub ordered: bool,
    /// Cycles of a strict end's walk through the L1; 0: there is none.
    pub walk_cycles: Cycle,
    pub states: LineStates,
    pub undo_redo: UndoRedoBuffer,
    pub redo: RedoBuffer,
    pub logs: Logs,
    /// Per thread, its transaction once that has a record.
    pub running: Vec<Option<Running>>,
    /// In the order of their commits.
    pub ended: VecDeque<Ended>,
    pub in_flight: VecDeque<InFlight>,
    /// Order of the last undo+redo records sent.
    pub last_undo: WriteOrder,
    /// Order of the last commit record sent, where others wait for it.
    pub last_commit: WriteOrder,
    /// When the timer of the undo+redo buffer fires.
    pub drain_at: Cycle,
    pub parking: Parking,
    pub waiting_for_buffer: Vec<ThreadId>,
    pub waiting_for_id: Vec<ThreadId>,
    pub waiting_for_space: Vec<ThreadId>,
    /// When the program last did anything that this design sees, or data came home.
    pub last_seen: Cycle,
    pub scanner: Scanner<Morlog>,
    /// Ends of the logs when the last two scans began, the earlier one first.
    pub cuts: [Cut; 2],
    pub data_writes: DataWrites,
    /// Writes of data so far.
    pub data_writes_sent: DataWriteNumber,
    pub truncation: Option<Truncation>,
    pub table: Option<TransactionTable>,
    pub rules: Rules,
    pub cores: u32,
    /// Per thread, the core on which it was last seen to store.
    pub core_of: Vec<u32>,
    /// Batches at hand, by log, and entries taken out of the redo buffer; kept for their memory.
    pub batches: Vec<Vec<Record>>,
    pub taken: Vec<Redo>,
    /// Entries dropped since the last batch because no byte had changed.
    pub silent_dropped: u64,
}

/// Cycles of a strict end's walk through an L1 in a configuration.
pub fn walk_cycles_of(config: &Config) -> Cycle {
    let l1 = config.get::<L1Config>();
    let sets = l1.bytes.0 / (u64::from(l1.ways) * LINE_BYTES);
    walk_cycles(sets, config.get::<MorlogConfig>().walk_sets_per_cycle.into())
}

/// Cycles of a walk through an L1, with `sets_per_cycle` sets in a cycle; 0 of them: there is none.
fn walk_cycles(sets: u64, sets_per_cycle: u64) -> Cycle {
    if sets_per_cycle == 0 { 0 } else { sets.div_ceil(sets_per_cycle) }
}

impl Morlog {
    pub fn new(context: &DesignContext) -> Result<Morlog, ConfigError> {
        check(context)?;
        let config = &context.config;
        let morlog = config.get::<MorlogConfig>();
        let (given, lines) = (morlog.scan_interval_cycles, logs::lines(config));
        let interval = force_write_back::scan_interval(given, lines, config);
        let rules = Rules::of(context);
        let faults = force_write_back::Faults {
            nothing_is_forced: !rules.old_lines_are_forced(),
            ..Default::default()
        };
        let cores = config.get::<CoreConfig>().count;
        let states = LineStates::new(config, cores);
        let logs = Logs::new(context);
        let cut = Cut::first(&logs);
        let table = (morlog.truncation == Truncate::Table).then(|| {
            let in_order = logs.ends.len() > 1 && rules.table_in_order();
            TransactionTable::new(morlog.transaction_table_entries, in_order)
        });
        Ok(Morlog {
            id: Field::new("transaction id", morlog.transaction_id_bits, 0),
            delay_persistence: morlog.delay_persistence,
            dirty_flags: morlog.dirty_flags,
            ordered: morlog.undo_redo_entries < traversal_cycles(config),
            walk_cycles: walk_cycles(states.sets() as u64, morlog.walk_sets_per_cycle.into()),
            states,
            undo_redo: UndoRedoBuffer::new(morlog.undo_redo_entries),
            redo: RedoBuffer::new(morlog.redo_entries),
            batches: vec![Vec::new(); logs.ends.len()],
            logs,
            running: (0..context.threads).map(|_| None).collect(),
            ended: VecDeque::new(),
            in_flight: VecDeque::new(),
            last_undo: WriteOrder::NONE,
            last_commit: WriteOrder::NONE,
            drain_at: NEVER,
            parking: Parking::new(morlog.dram_lines, config),
            waiting_for_buffer: Vec::new(),
            waiting_for_id: Vec::new(),
            waiting_for_space: Vec::new(),
            last_seen: 0,
            scanner: Scanner::new(config, interval, Timer::Scan, TagVisits::FREE, faults),
            cuts: [cut.clone(), cut],
            data_writes: DataWrites::new(),
            data_writes_sent: 0,
            truncation: None,
            table,
            rules,
            cores,
            core_of: vec![0; context.threads as usize],
            taken: Vec::new(),
            silent_dropped: 0,
        })
    }

    /// A transaction as hardware knows it. Ids come round: state of the transaction that had the id before is gone by then.
    pub fn owner(&self, tx: Tx) -> Owner {
        Owner { thread: tx.thread, id: self.id.wrapped(tx.number) as u16 }
    }
}

impl Design for Morlog {
    type Write = Write;
    type Read = Unused;
    type Timer = Timer;
    type Event = Event;

    fn start(&mut self, port: &mut Port<'_>) {
        if self.table.is_none() {
            self.scanner.start(port);
        }
    }

    /// Lets running transactions go first where a log is almost full: they may need room to end.
    fn on_tx_begin(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        self.last_seen = port.now();
        self.clear_states_if_ids_come_round(port, tx);
        if self.waits_for_id(port, tx) {
            return Stall::Retry;
        }
        let log = &self.logs.ends[self.logs.of(tx.thread)];
        if self.waiting_for_space.is_empty() && log.free_groups() > log.packer.log().groups / 8 {
            return Stall::None;
        }
        self.wait_for_space(port, tx.thread)
    }

    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        self.last_seen = port.now();
        self.log_store(port, store)
    }

    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        self.last_seen = port.now();
        if self.delay_persistence {
            self.commit_at_once(port, tx)
        } else {
            self.begin_commit(port, tx)
        }
    }

    /// A line of which words are parked in DRAM comes with these.
    fn on_llc_miss(&mut self, port: &mut Port<'_>, miss: &Miss) -> Fill {
        let line = miss.line;
        match self.read_parked(port, line) {
            Some((content, latency)) => Fill::Buffer(content, latency),
            None => Fill::Home,
        }
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Log => self.records_durable(port),
            Write::Head { log } => self.head_durable(port, log),
            Write::Data(data) => self.data_durable(port, data),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Drain => self.drain_timer(port),
            Timer::Scan => self.scan_timer(port),
            Timer::WalkEnds(thread) => self.end_walk(port, thread),
        }
    }

    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        match self.table {
            Some(_) => self.press(port),
            None => self.scanner.hasten(port),
        }
    }

    /// Undo+redo records on their way must arrive. Redo data of committed transactions, scans and truncations
    /// are never urgent.
    fn is_idle(&self) -> bool {
        self.undo_redo.len() == 0
    }

    fn on_shutdown(&mut self, port: &mut Port<'_>) {
        self.send_all_redo(port);
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure {
            0 => self.undo_redo.len() as u64,
            1 => self.redo.len() as u64,
            2 => self.parking.used() as u64,
            3 => self.table.as_ref().map_or(0, |table| table.taken() as u64),
            _ => self.logs.ends.iter().map(LogEnd::taken).max().unwrap_or(0),
        }
    }
}

impl DepartureDesign for Morlog {
    fn on_departure(&mut self, port: &mut Port<'_>, departure: &Departure) {
        // A line that is downgraded stays, with its states.
        if !matches!(departure.cause, Cause::Downgraded { .. }) {
            self.line_leaves_l1(port, departure.core, departure.line);
        }
    }
}

impl AbsorbingDesign for Morlog {
    /// A line goes home after its undo+redo records, and without the words of it that are parked.
    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        content: &LineData,
    ) -> WritebackAction<Write> {
        let after = self.order_before(port, line);
        let mask = !self.parking.mask(line);
        if mask == 0 {
            return WritebackAction::Absorb;
        }
        let data = self.cached_words_leave(port, line, mask, false);
        if mask != WordMask::MAX && self.rules.parked_words_stay() {
            let write = request::Write::line(WriteClass::Data, line, *content);
            let write = write.masked(mask).after(after);
            port.write_reported(write, Write::Data(data), 0);
            return WritebackAction::Absorb;
        }
        WritebackAction::Send(Writeback::after(after).reported(Write::Data(data)))
    }
}

impl NonTemporalDesign for Morlog {
    fn accepts_non_temporal(&mut self, _port: &mut Port<'_>, tx: Tx, line: LineAddr) -> bool {
        self.can_park(self.owner(tx), line)
    }

    fn on_non_temporal_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        self.last_seen = port.now();
        self.park(port, store)
    }
}
