//! State, requests and hooks. What the hooks bring about is in the other files of this folder.

mod append;
mod collect;
mod fill;
mod software;

use graven_base::config::{ConfigError, Size};
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LINE_BYTES, LineAddr, LineData};
use graven_base::time::{Cycle, cycles};
use graven_machine::config::{CoreConfig, DramConfig};
use graven_machine::design::{
    self, AbsorbingDesign, Code, Design, DesignContext, Fill, Miss, OpAction, SoftwareDesign,
    Stall, Store, WritebackAction,
};
use graven_machine::program::Op;

use super::event::Event;
use super::index::{Index, LEVELS_MAX};
use super::log::{Log, Run, SEQUENCE, Sequence};
use super::segments::Segments;
use super::{LsmConfig, Promotion, Rules};
use append::Append;
use collect::Collection;
use fill::Reading;

type Port<'a> = design::Port<'a, Lsm>;

/// Bytes of a slot of the write set: home address and word.
pub const SLOT_BYTES: u64 = 16;

/// Writes to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// A line of entries of this thread.
    Entries(ThreadId),
    /// The commit record of this thread.
    Record(ThreadId),
    /// A line that the collection writes home.
    Home,
    /// The head of the log.
    Head,
}

/// Purposes of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// A miss, by its slot among those that are being read.
    Fill(usize),
    /// The collection: a line of the log, by its number among those to be read.
    Collected(usize),
}

/// Purposes of timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// The next periodic collection.
    Collection,
    /// The message that all entries of a thread's transaction are durable, at its core.
    EntriesDurable(ThreadId),
}

/// One thread's software.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Words that the running transaction has stored, by address.
    words: Vec<(Addr, u64)>,
    /// The same as its software knows them: with those that are still in the store queue.
    named: Vec<Addr>,
    in_transaction: bool,
    /// The segment that it appends to.
    open: Option<usize>,
    /// The transaction that is on its way into the log.
    append: Option<Append>,
    /// Since when it waits for a collection.
    waits_since: Option<Cycle>,
    /// True until it is told that a collection is over.
    waits: bool,
}

/// The log, its index, and the software of all threads.
pub struct Lsm {
    config: LsmConfig,
    log: Log,
    index: Index,
    segments: Segments,
    threads: Vec<Thread>,
    /// Number of the next transaction that commits.
    next_sequence: Sequence,
    /// The head, as it is in PM.
    head: Sequence,
    readings: slab::Slab<Reading>,
    collection: Option<Collection>,
    period: Cycle,
    /// Address of the write sets, each in its place.
    write_sets: Addr,
    sequence_counter: Addr,
    /// Kept for their memory.
    runs: Vec<Run>,
    payload: Vec<u64>,
    rules: Rules,
}

impl Lsm {
    /// With an empty log, and an index without any range.
    ///
    /// # Errors
    /// The log has too few segments, or the DRAM no room for write sets and an index.
    pub fn new(context: &DesignContext) -> Result<Lsm, ConfigError> {
        let config = context.config.get::<LsmConfig>().clone();
        let log = Log::of(context);
        if log.segments < context.threads as usize {
            let why = format!(
                "{} threads need a segment of {} each, and the log has {}",
                context.threads, config.segment_bytes, log.segments
            );
            let keys = ["lsm.segment_bytes", "lsm.log_bytes", "pm.log_region_bytes"];
            return Err(context.config.inconsistent(&keys, why));
        }
        let before_index = before_index(&config, context.threads);
        let heap = heap_bytes(context);
        let levels_max = config.index_levels_max as usize;
        assert!(levels_max <= LEVELS_MAX, "the parameter's range says so");
        if before_index + 2 * Index::head_bytes(levels_max) > heap {
            let why = format!(
                "write sets of {} threads need {}, and the DRAM has {} for designs",
                context.threads,
                Size(before_index),
                Size(heap)
            );
            let keys = ["lsm.write_set_slots", "dram.capacity_bytes"];
            return Err(context.config.inconsistent(&keys, why));
        }
        let shift = match config.index_promotion {
            Promotion::Half => 1,
            Promotion::Quarter => 2,
        };
        let frequency = context.config.get::<CoreConfig>().frequency_mhz;
        Ok(Lsm {
            index: Index::new(levels_max, shift, index_bytes(context)),
            segments: Segments::new(log.segments),
            threads: vec![Thread::default(); context.threads as usize],
            next_sequence: 1 + context.first_number(SEQUENCE),
            head: 0,
            readings: slab::Slab::new(),
            collection: None,
            period: cycles(config.gc_period_us * 1000.0, frequency),
            write_sets: Addr(0),
            sequence_counter: Addr(0),
            runs: Vec::new(),
            payload: Vec::new(),
            rules: Rules::of(context),
            log,
            config,
        })
    }

    /// The slot of a home address in a thread's write set.
    fn slot(&self, thread: usize, home: Addr) -> Addr {
        let slots = u64::from(self.config.write_set_slots);
        let slot = thread as u64 * slots + home.0 / 8 % slots;
        self.write_sets.plus(slot * SLOT_BYTES)
    }
}

/// Bytes of the design's DRAM before the index: the sequence counter's line, and the write sets.
fn before_index(config: &LsmConfig, threads: u32) -> u64 {
    let write_set = u64::from(config.write_set_slots) * SLOT_BYTES;
    LINE_BYTES + u64::from(threads) * write_set
}

/// Bytes of the DRAM that designs have.
fn heap_bytes(context: &DesignContext) -> u64 {
    context.config.get::<DramConfig>().capacity_bytes.0 / 2
}

/// Bytes of the index, if the DRAM has room for one.
pub fn index_bytes(context: &DesignContext) -> u64 {
    let config = context.config.get::<LsmConfig>();
    let left = heap_bytes(context).saturating_sub(before_index(config, context.threads));
    config.index_bytes.0.min(left)
}

impl Design for Lsm {
    type Write = Write;
    type Read = Read;
    type Timer = Timer;
    type Event = Event;

    fn start(&mut self, port: &mut Port<'_>) {
        let heap = port.dram_heap();
        self.sequence_counter = heap;
        self.write_sets = heap.plus(LINE_BYTES);
        self.index.set_base(heap.plus(before_index(&self.config, self.threads.len() as u32)));
        port.set_timer(self.period, Timer::Collection);
    }

    /// A store of a running transaction goes to its write set.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let words = &mut self.threads[store.tx.thread as usize].words;
        match words.binary_search_by_key(&store.addr, |&(addr, _)| addr) {
            Ok(at) => {
                words[at].1 = store.new;
                port.emit(Event::Overwritten);
            }
            Err(at) => words.insert(at, (store.addr, store.new)),
        }
        Stall::None
    }

    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        self.end(port, tx)
    }

    fn on_llc_miss(&mut self, port: &mut Port<'_>, miss: &Miss) -> Fill {
        let Miss { line, delay, .. } = *miss;
        self.fill(port, line, delay)
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Entries(thread) => self.entries_durable(port, thread),
            Write::Record(thread) => self.record_durable(port, thread),
            Write::Home => self.home_durable(port),
            Write::Head => self.head_durable(port),
        }
    }

    fn on_read(&mut self, port: &mut Port<'_>, read: Read, line: LineAddr, content: &LineData) {
        match read {
            Read::Fill(slot) => self.filled(port, slot, line, content),
            Read::Collected(number) => self.collected(port, number, content),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Collection => {
                port.set_timer(port.now() + self.period, Timer::Collection);
                self.collect(port, false);
            }
            Timer::EntriesDurable(thread) => self.send_record(port, thread),
        }
    }

    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        self.collect(port, false);
    }

    fn is_idle(&self) -> bool {
        self.collection.is_none() && self.threads.iter().all(|t| t.append.is_none())
    }

    fn places_taken(&self, structure: usize) -> u64 {
        let lines_of_open = |thread: &Thread| thread.open.map(|open| self.segments.used(open));
        match structure {
            0 => self.index.lines_used(),
            1 => self.threads.iter().filter_map(lines_of_open).max().unwrap_or(0),
            _ => self.segments.taken() as u64,
        }
    }
}

/// The write set or the log has the words that are dirty.
impl AbsorbingDesign for Lsm {
    const HAS_DIRTY_WORDS: bool = true;

    fn on_dirty_eviction(
        &mut self,
        _port: &mut Port<'_>,
        _line: LineAddr,
        _content: &LineData,
    ) -> WritebackAction<Write> {
        WritebackAction::Absorb
    }
}

impl SoftwareDesign for Lsm {
    fn before_op(
        &mut self,
        port: &mut Port<'_>,
        thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        self.execute(port, thread as usize, op, code);
        OpAction::Execute
    }
}
