//! The design's state, what it does at a store, at the end of a transaction, when a line leaves or misses in the caches, and
//! when power fails; the victim area.

use std::collections::VecDeque;

use graven_base::config::ConfigError;
use graven_base::ids::Tx;
use graven_base::memory::{LineAddr, LineData};
use graven_base::surviving::SurvivingImage;
use graven_base::thread_set::ThreadSet;
use graven_machine::config::ControllerConfig;
use graven_machine::design::{
    self, AbsorbingDesign, Design, DesignContext, Fill, Miss, Stall, Store, Unused, Writeback,
    WritebackAction,
};

use super::event::Event;
use super::front::Message;
use super::headers::Adr;
use super::queue::LogQueue;
use super::record::{Area, SEQUENCE};
use super::transaction::{LogEntry, Phase, Transactions, TxId};
use super::{ReduConfig, Rules};
use crate::lalea::{BankTable, LaleaConfig, Lr};
use crate::mechanisms::victims::{Parked, Victim, VictimRules, Victims};

pub(super) type Port<'a> = design::Port<'a, Redu>;

/// Resources that a thread's store waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// A place in the log buffer, whose entries wait outside the log queue.
    Queue,
    /// Slots of the log area, or log blocks.
    Space,
    /// Places in the victim area for the lines that wait for one.
    Victims,
}

/// A thread, at its L1 and in the controller.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) area: Area,
    /// The torn bit of each of its slots.
    torn: Vec<bool>,
    /// Number of the oldest record whose slot may not be used again, and of the next record.
    pub(super) head: u64,
    pub(super) reserved: u64,
    /// The log buffer, oldest entry first.
    pub(super) buffer: VecDeque<LogEntry>,
    /// Number of its entries that wait outside the log queue.
    pub(super) outside: u32,
    /// The transaction with stores that has not committed.
    pub(super) current: Option<TxId>,
    /// Those that have, and are not at home, oldest first.
    pub(super) chain: VecDeque<TxId>,
    /// The non-volatile register.
    pub(super) lr: Lr,
    /// Resource that its oldest store was found to wait for, and whether it still does.
    pub(super) held: Option<Hold>,
    pub(super) asleep: bool,
}

impl Thread {
    fn new(area: Area) -> Thread {
        Thread {
            torn: vec![false; area.slots as usize],
            area,
            head: 0,
            reserved: 0,
            buffer: VecDeque::new(),
            outside: 0,
            current: None,
            chain: VecDeque::new(),
            lr: Lr::default(),
            held: None,
            asleep: false,
        }
    }

    /// The torn bit of the header that was written last to the slot of a record.
    pub(super) fn torn_bit(&self, record: u64) -> bool {
        self.torn[(record % self.area.slots) as usize]
    }

    /// The torn bit for another header in that slot.
    pub(super) fn turn_torn_bit(&mut self, record: u64) -> bool {
        let torn = &mut self.torn[(record % self.area.slots) as usize];
        *torn = !*torn;
        *torn
    }
}

/// Writes to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// A log entry, in a record of a transaction.
    Entry { id: TxId, record: usize },
    /// A line of the header of a record.
    Header { id: TxId, record: usize },
    /// A transaction's words in a line, in place.
    Update { id: TxId },
}

/// Purposes of timers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// The oldest message with a log entry reaches the controller.
    Arrival,
    /// The controller hears of the end of a thread's transaction.
    End { thread: usize },
    /// A thread's core hears of the commit.
    Acknowledgement { thread: usize },
}

/// The log buffers and the controller.
pub(super) struct Redu {
    pub(super) config: ReduConfig,
    pub(super) lalea: LaleaConfig,
    pub(super) rules: Rules,
    pub(super) threads: Vec<Thread>,
    pub(super) transactions: Transactions,
    /// Entries between L1 and controller, oldest first.
    pub(super) travelling: VecDeque<Message>,
    pub(super) queue: LogQueue,
    /// Free log blocks, if they are allocated by load.
    pub(super) blocks: Option<BankTable>,
    /// Blocks that stores have been guaranteed.
    pub(super) reserved_entries: usize,
    pub(super) reserved_headers: usize,
    pub(super) adr: Adr,
    /// Records whose headers found no ADR entry.
    pub(super) unbuffered: VecDeque<(TxId, usize)>,
    /// Transactions that have a commit sequence number and are not retired, in its order.
    pub(super) ordered: VecDeque<TxId>,
    /// The newest commit sequence number.
    pub(super) sequence: u64,
    /// Every transaction up to this one is at home: a non-volatile register, without LR.
    pub(super) retired: u64,
    pub(super) victims: Victims,
}

impl Redu {
    pub(super) fn new(context: &DesignContext) -> Result<Redu, ConfigError> {
        let config = context.config.get::<ReduConfig>().clone();
        let blocks = if config.load_aware_allocation {
            Some(BankTable::new(context)?)
        } else {
            context
                .check_thread_areas("redu.log_bytes_per_thread", config.log_bytes_per_thread.0)?;
            None
        };
        let threads = (0..context.threads).map(|t| Thread::new(Area::of(context, t)));
        Ok(Redu {
            lalea: context.config.get::<LaleaConfig>().clone(),
            rules: Rules::of(context),
            threads: threads.collect(),
            transactions: Transactions::default(),
            travelling: VecDeque::new(),
            queue: LogQueue::new(config.log_queue_entries),
            blocks,
            reserved_entries: 0,
            reserved_headers: 0,
            adr: Adr::new(context.config.get::<ControllerConfig>().adr_entries as usize),
            unbuffered: VecDeque::new(),
            ordered: VecDeque::new(),
            sequence: context.first_number(SEQUENCE),
            retired: context.first_number(SEQUENCE),
            victims: Victims::new(config.victim_lines),
            config,
        })
    }

    /// Threads whose transactions have stores and have not committed.
    fn open_threads(&self) -> ThreadSet {
        let open = self.threads.iter().enumerate().filter(|(_, t)| t.current.is_some());
        open.fold(0, |set, (t, _)| set | 1 << t)
    }

    /// Returns true if some transaction has ended and is not at home: it will be, without further
    /// stores.
    pub(super) fn finishes_something(&self) -> bool {
        self.transactions.iter().any(|(_, transaction)| transaction.phase != Phase::Running)
    }

    /// Only transactions that have ended make room.
    pub(super) fn fail_if_victims_wait_for_ever(&self, port: &mut Port<'_>) {
        if self.victims.has_waiting() && !self.finishes_something() {
            port.fail(format!(
                "transactions in progress have more lines outside the caches than redu.victim_lines = {} holds",
                self.config.victim_lines
            ));
        }
    }
}

impl Design for Redu {
    type Write = Write;
    type Read = Unused;
    type Timer = Timer;
    type Event = Event;

    /// A store goes into the entry of its line, or makes one, or waits until it can.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        if self.merge(port, store) {
            return Stall::None;
        }
        let t = store.tx.thread as usize;
        let Some(hold) = self.must_wait(port, store.tx) else {
            self.threads[t].held = None;
            self.log(port, store);
            return Stall::None;
        };
        let thread = &mut self.threads[t];
        thread.asleep = true;
        if thread.held.replace(hold) != Some(hold) {
            port.emit(Event::StoreWaits { hold });
        }
        Stall::Retry
    }

    /// The log buffer sends all that it has, and then the message of the end.
    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let t = tx.thread as usize;
        let Some(id) = self.threads[t].current else { return Stall::None };
        let transaction = &mut self.transactions[id];
        if !self.rules.last_entry_is_sent() && transaction.made > 1 {
            transaction.made -= 1;
            self.threads[t].buffer.pop_back();
        }
        while !self.threads[t].buffer.is_empty() {
            self.send_oldest(port, t);
        }
        port.send_to_controller(0, Timer::End { thread: t });
        Stall::UntilReleased
    }

    fn on_llc_miss(&mut self, port: &mut Port<'_>, miss: &Miss) -> Fill {
        let line = miss.line;
        self.victims.fill(port, line, self.config.victim_read_cycles)
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Entry { id, record } => self.entry_durable(port, id, record),
            Write::Header { id, record } => self.header_durable(port, id, record),
            Write::Update { id } => self.update_durable(port, id),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Arrival => self.arrives(port),
            Timer::End { thread } => self.ended(port, thread),
            Timer::Acknowledgement { thread } => self.acknowledge(port, thread),
        }
    }

    fn is_idle(&self) -> bool {
        !self.finishes_something()
    }

    fn on_power_failure(&self, image: &mut SurvivingImage) {
        self.save_headers(image);
    }

    /// Per thread LR; without load-aware allocation, the commit sequence number up to which everything is at home.
    fn registers(&self) -> Vec<u64> {
        if self.blocks.is_some() {
            return self.threads.iter().map(|thread| thread.lr.bits()).collect();
        }
        vec![self.retired]
    }

    fn places_taken(&self, structure: usize) -> u64 {
        let of_fullest = |taken: fn(&Thread) -> u64| self.threads.iter().map(taken).max();
        match (structure, &self.blocks) {
            (0, _) => of_fullest(|thread| thread.buffer.len() as u64).unwrap_or(0),
            (1, _) => self.queue.used() as u64,
            (2, _) => self.victims.len() as u64,
            (3, _) => self.adr.used() as u64,
            (4, None) => of_fullest(|thread| thread.reserved - thread.head).unwrap_or(0),
            (5, Some(blocks)) => blocks.entries_taken(),
            (6, Some(blocks)) => blocks.headers_taken(),
            (7, Some(_)) => of_fullest(|thread| thread.chain.len() as u64).unwrap_or(0),
            _ => 0,
        }
    }
}

impl AbsorbingDesign for Redu {
    const DROPS_LINES: bool = true;

    /// A line waits for those that are open and for those that are not at home; if there are none, it goes home.
    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        content: &LineData,
    ) -> WritebackAction<Write> {
        let open = self.open_threads();
        let newest = if self.rules.held_for_committed_too() { self.sequence } else { self.retired };
        let rules = VictimRules {
            lines_are_kept: self.rules.evictions_are_held(),
            newer_replaces: self.rules.newer_victim_replaces(),
            overflow_waits: self.rules.overflow_waits(),
        };
        let victim = Victim { data: *content, open, newest };
        let Some(parked) = self.victims.take_in(port, line, victim, self.retired, rules) else {
            return WritebackAction::Send(Writeback::FREE);
        };
        if parked == Parked::Waits {
            self.fail_if_victims_wait_for_ever(port);
        }
        WritebackAction::Absorb
    }
}
