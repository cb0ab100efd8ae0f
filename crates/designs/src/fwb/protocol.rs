//! The state of the log controller, and what it does when (§III, §IV).

use std::collections::VecDeque;

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Field, LineAddr, LineData};
use graven_base::time::{Cycle, NEVER};
use graven_machine::config::{PmConfig, traversal_cycles};
use graven_machine::design::{self, Design, DesignContext, Stall, Store, Unused, Writeback};
use graven_machine::request::WriteOrder;

use super::buffer::LogBuffer;
use super::clwb::OpenTransaction;
use super::end::LogEnd;
use super::event::Event;
use super::log::{self, Log};
use super::record::{self, LogValues};
use super::scan::Truncation;
use super::{FwbConfig, Rules, WriteBack};
use crate::force_write_back::{self, DataWrites, Epoch, Faults, Scanner, TagVisits};
use crate::packed_log::Record;

pub type Port<'a> = design::Port<'a, Fwb>;

/// Writes to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// Records, at this place among the ordered writes.
    Records(WriteOrder),
    /// The head pointer.
    Head,
    /// An evicted line.
    Evicted(Epoch),
    /// A line that a scan forces home.
    Forced(Epoch),
}

/// Purposes of timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The oldest record of the log buffer is due.
    Drain,
    /// A step of a scan is due.
    Scan,
}

/// A transaction that has ended and whose commit record is not known to be durable.
#[derive(Clone, Copy, Debug)]
pub struct Ended {
    pub thread: ThreadId,
    /// Place of its first record, or one before.
    pub first_place: u64,
    /// Order of its commit record; none: still in the buffer.
    pub order: WriteOrder,
}

/// The log controller.
pub struct Fwb {
    pub buffer: LogBuffer,
    pub end: LogEnd,
    /// True if stores that change nothing make no entry.
    pub dirty_flags: bool,
    /// True if a transaction's end waits until its commit record is durable.
    pub strict: bool,
    /// True if data waits for its records; not with an unsafe buffer, nor with records of one
    /// value.
    pub ordered: bool,
    /// By which records know a transaction: its number, modulo.
    pub id: Field,
    /// Per thread, the place of its running transaction's first record (or one before), once there is one.
    pub running: Vec<Option<u64>>,
    /// Commit records that must still find room.
    pub reserved: u64,
    /// In the order of their commit records.
    pub ended: VecDeque<Ended>,
    /// Order of the last records sent.
    pub last_order: WriteOrder,
    /// When the log buffer's timer fires.
    pub drain_at: Cycle,
    pub waiting_for_buffer: Vec<ThreadId>,
    pub waiting_for_space: Vec<ThreadId>,
    /// When the program last did anything that this design sees, or data came home.
    pub last_seen: Cycle,
    pub write_back: WriteBack,
    pub scanner: Scanner<Fwb>,
    /// With clwb instructions, per thread.
    pub open: Vec<OpenTransaction>,
    /// With clwb instructions: how much of the log is in use when its head is moved, in percent.
    pub truncation_percent: u64,
    /// Records that are being sent; kept for its memory.
    pub batch: Vec<Record>,
    /// Ends of the log when the previous scan began, and this one.
    pub cuts: [u64; 2],
    pub data_writes: DataWrites,
    pub truncation: Option<Truncation>,
    pub rules: Rules,
}

impl Fwb {
    /// The controller of an empty log, in a configuration that has been checked.
    pub fn new(context: &DesignContext) -> Fwb {
        let (config, fwb) = (&context.config, context.config.get::<FwbConfig>());
        let rules = Rules::of(context);
        let id_bits = match fwb.log_values {
            LogValues::Both => fwb.transaction_id_bits,
            _ => fwb.transaction_id_bits.min(record::SHORT_ID_BITS),
        };
        let log = Log::of(context);
        let (entries, layout) = (fwb.log_buffer_entries, log.layout());
        Fwb {
            buffer: LogBuffer::new(entries, fwb.dirty_flags, layout, rules),
            end: LogEnd::new(log, config.get::<PmConfig>().codec.has_dldc()),
            dirty_flags: fwb.dirty_flags,
            strict: !fwb.instant_commit && rules.commit_waits(),
            ordered: fwb.log_buffer_entries <= traversal_cycles(config)
                && fwb.log_values == LogValues::Both,
            id: Field::new("transaction id", id_bits, 0),
            running: vec![None; context.threads as usize],
            reserved: 0,
            ended: VecDeque::new(),
            last_order: WriteOrder::NONE,
            drain_at: NEVER,
            waiting_for_buffer: Vec::new(),
            waiting_for_space: Vec::new(),
            last_seen: 0,
            write_back: fwb.write_back,
            scanner: scanner(context),
            open: vec![OpenTransaction::default(); context.threads as usize],
            truncation_percent: fwb.truncation_percent.into(),
            batch: Vec::new(),
            cuts: [0; 2],
            data_writes: DataWrites::new(),
            truncation: None,
            rules,
        }
    }

    /// A line of data is durable: the head may have waited for it.
    fn data_durable(&mut self, port: &mut Port<'_>, epoch: Epoch) {
        self.last_seen = port.now();
        self.data_writes.durable(epoch);
        self.try_to_truncate(port);
    }
}

/// Scans as often as configured, or as log size and write bandwidth ask for (§IV-D).
fn scanner(context: &DesignContext) -> Scanner<Fwb> {
    let (config, fwb) = (&context.config, context.config.get::<FwbConfig>());
    let rules = Rules::of(context);
    let interval =
        force_write_back::scan_interval(fwb.scan_interval_cycles, log::lines(config), config);
    let visits = TagVisits { port: fwb.scan_port, tags_per_cycle: fwb.scan_tags_per_cycle };
    let faults = Faults {
        bit_stays_behind: !rules.bit_travels_outward(),
        from_outside: !rules.scans_from_inside(),
        nothing_is_forced: !rules.old_lines_are_forced(),
    };
    Scanner::new(config, interval, Timer::Scan, visits, faults)
}

impl Design for Fwb {
    type Write = Write;
    type Read = Unused;
    type Timer = Timer;
    type Event = Event;

    fn start(&mut self, port: &mut Port<'_>) {
        if self.write_back == WriteBack::Scan {
            self.scanner.start(port);
        }
    }

    /// Lets running transactions go first: they may need room to end.
    fn on_tx_begin(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        self.last_seen = port.now();
        if self.waiting_for_space.is_empty() && self.free_places() > self.end.log().places() / 8 {
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
        self.log_commit(port, tx)
    }

    /// Steal: lines leave as they like, behind the records of their stores.
    fn on_llc_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
    ) -> Writeback<Write> {
        let writeback = Writeback::after(self.order_before(port, line));
        if !self.rules.head_waits_for_evictions() {
            return writeback;
        }
        writeback.reported(Write::Evicted(self.data_writes.sent()))
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Records(order) => {
                self.acknowledge_commits(port, order);
                self.truncate_behind_clwbs(port);
            }
            Write::Head => self.head_durable(port),
            Write::Evicted(epoch) => self.data_durable(port, epoch),
            Write::Forced(epoch) => {
                self.scanner.forced_durable();
                self.data_durable(port, epoch);
            }
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Drain => self.drain_timer(port),
            Timer::Scan => self.scan_timer(port),
        }
    }

    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        self.make_room(port);
    }

    /// Records on their way must arrive. Scans and truncations are never urgent.
    fn is_idle(&self) -> bool {
        self.buffer.is_empty()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure {
            0 => self.buffer.entries() as u64,
            _ => self.places_of_log_taken(),
        }
    }
}
