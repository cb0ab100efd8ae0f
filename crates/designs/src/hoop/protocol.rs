//! The controllers, what threads have at them, and what each hook of the design does.

use graven_base::config::ConfigError;
use graven_base::ids::Tx;
use graven_base::memory::{LineAddr, LineData};
use graven_base::time::{Cycle, cycles};
use graven_machine::config::CoreConfig;
use graven_machine::design::{
    self, AbsorbingDesign, Design, DesignContext, Fill, Stall, Store, Writeback, WritebackAction,
};
use slab::Slab;

use super::collect::{Collection, Reason};
use super::event::Event;
use super::eviction_buffer::EvictionBuffer;
use super::layout::{BLOCKS_MAX, Geometry, REGION_SLICES_MAX, SLICE_BYTES, Sequence, slice_tx};
use super::mapping::Mapping;
use super::miss::Miss;
use super::packing::{Buffer, Leaving, Thread};
use super::region::Region;
use super::waiting::Waiting;
use super::{HoopConfig, Rules};

/// The machine, as the design acts on it.
pub type Port<'a> = design::Port<'a, Hoop>;

/// Writes to memory.
#[derive(Clone, Copy, Debug)]
pub enum Write {
    /// One of the two lines of a slice that a thread has sent, by its key in [`Hoop::leaving`].
    Slice { leaving: usize },
    /// A thread's record, prepared or committed.
    Record { thread: usize, committed: bool },
    /// A line on its way home.
    Home { controller: usize, line: LineAddr },
    /// The last of the headers that void the records of a unit.
    Voided { controller: usize },
    /// Header and index entry of a free block.
    Freed { controller: usize, block: u32 },
}

/// Reads of memory.
#[derive(Clone, Copy, Debug)]
pub enum Read {
    /// The home of a line that a miss reads.
    MissHome { miss: usize },
    /// Line `line` of the slice that is part `part` of what a miss reads.
    MissSlice { miss: usize, part: usize, line: usize },
    /// A line of an address memory slice that a collection reads.
    Records { controller: usize, block: u32, first: u32 },
    /// A line of a slice that a collection reads.
    Chain { controller: usize, chain: usize, line: usize },
}

/// Purposes of timers.
#[derive(Clone, Copy, Debug)]
pub enum Timer {
    /// The time of a collection has come.
    Collection,
    /// The thread's commit message reaches the controllers.
    CommitMessage { thread: usize },
}

/// One memory controller.
pub struct Controller {
    pub region: Region,
    pub mapping: Mapping,
    pub evicted: EvictionBuffer,
    pub collection: Option<Collection>,
}

impl Controller {
    /// One whose region is as it was put to use, with its share of the tables.
    fn new(context: &DesignContext, number: u32) -> Result<Controller, ConfigError> {
        let config = context.config.get::<HoopConfig>();
        let geometry = Geometry::of(context, number);
        check(context, &geometry)?;
        let sequence = Sequence::of(context.first_transaction);
        Ok(Controller {
            region: Region::new(geometry, sequence, Rules::of(context)),
            mapping: Mapping::new(config.mapping_entries() as usize),
            evicted: EvictionBuffer::new(config.evicted_lines() as usize),
            collection: None,
        })
    }
}

/// The controllers, and the threads' transactions at them.
pub struct Hoop {
    pub(super) config: HoopConfig,
    pub(super) rules: Rules,
    gc_period: Cycle,
    pub(super) controllers: Vec<Controller>,
    pub(super) threads: Vec<Thread>,
    /// Number of the next transaction, over all threads.
    transactions: u64,
    /// Slices on their way to the region.
    pub(super) leaving: Slab<Leaving>,
    pub(super) misses: Slab<Miss>,
    pub(super) waiting: Waiting,
}

impl Hoop {
    /// Empty buffers and tables; refuses a region that cannot work.
    pub fn new(context: &DesignContext) -> Result<Hoop, ConfigError> {
        let config = context.config.get::<HoopConfig>().clone();
        let controllers = (0..config.controllers)
            .map(|number| Controller::new(context, number))
            .collect::<Result<Vec<_>, ConfigError>>()?;
        let slices = config.buffer_slices() as usize;
        let buffer = Buffer::new(slices, slices.min(config.held_slices as usize));
        let thread = |_| Thread::new(vec![buffer.clone(); controllers.len()]);
        let frequency = context.config.get::<CoreConfig>().frequency_mhz;
        Ok(Hoop {
            gc_period: cycles(f64::from(config.gc_period_us) * 1000.0, frequency),
            threads: (0..context.threads).map(thread).collect(),
            controllers,
            transactions: context.first_transaction,
            leaving: Slab::new(),
            misses: Slab::new(),
            waiting: Waiting::default(),
            rules: Rules::of(context),
            config,
        })
    }

    /// The controller of a line.
    pub(super) fn controller_of(&self, line: LineAddr) -> usize {
        (line.0 % self.controllers.len() as u64) as usize
    }
}

/// Refuses a region in which no transaction finds room, or that the fields cannot address.
fn check(context: &DesignContext, geometry: &Geometry) -> Result<(), ConfigError> {
    let keys = ["hoop.block_bytes", "pm.log_region_bytes", "hoop.controllers"];
    let config = context.config.get::<HoopConfig>();
    if !config.block_bytes.0.is_multiple_of(SLICE_BYTES) {
        let why = format!("a block is made of slices of {SLICE_BYTES} B");
        return Err(context.config.inconsistent(&keys[..1], why));
    }
    let (blocks, slices) = (u64::from(geometry.blocks), geometry.slices());
    if blocks < 2 {
        let why = format!(
            "each controller's share of the log region holds {blocks} blocks of {}; one is in use while another is collected",
            config.block_bytes
        );
        return Err(context.config.inconsistent(&keys, why));
    }
    if blocks > BLOCKS_MAX || slices > REGION_SLICES_MAX {
        let why = format!(
            "a region of {blocks} blocks and {slices} slices is more than headers and records can address ({BLOCKS_MAX} and {REGION_SLICES_MAX})"
        );
        return Err(context.config.inconsistent(&keys, why));
    }
    Ok(())
}

impl Design for Hoop {
    type Write = Write;
    type Read = Read;
    type Timer = Timer;
    type Event = Event;

    /// Continues with the sequence number that a recovery has left in each region that has been in
    /// use.
    fn start(&mut self, port: &mut Port<'_>) {
        for Controller { region, .. } in &mut self.controllers {
            let at = region.geometry.sequence();
            let word = port.memory_line(at.line())[at.word_in_line()];
            if let Some(sequence) = Sequence::of_word(word) {
                region.go_on_from(sequence);
            }
        }
        port.set_timer(port.now() + self.gc_period, Timer::Collection);
    }

    fn on_tx_begin(&mut self, _port: &mut Port<'_>, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].begin(slice_tx(self.transactions));
        self.transactions += 1;
        Stall::None
    }

    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        self.pack(port, store)
    }

    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        self.end(port, tx.thread as usize)
    }

    fn on_llc_miss(&mut self, port: &mut Port<'_>, miss: &design::Miss) -> Fill {
        let design::Miss { line, delay, .. } = *miss;
        self.miss(port, line, delay)
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Slice { leaving } => self.slice_line_durable(port, leaving),
            Write::Record { thread, committed } => self.recorded(port, thread, committed),
            Write::Home { controller, line } => self.at_home(port, controller, line),
            Write::Voided { controller } => self.voided(port, controller),
            Write::Freed { controller, block } => self.freed(port, controller, block),
        }
    }

    fn on_read(&mut self, port: &mut Port<'_>, read: Read, _line: LineAddr, content: &LineData) {
        match read {
            Read::MissHome { miss } => self.miss_read(port, miss, None, content),
            Read::MissSlice { miss, part, line } => {
                self.miss_read(port, miss, Some((part, line)), content);
            }
            Read::Records { controller, block, first } => {
                self.records_read(port, controller, (block, first), content);
            }
            Read::Chain { controller, chain, line } => {
                self.chain_read(port, controller, (chain, line), content);
            }
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Collection => {
                self.start_maintenance(port);
                port.set_timer(port.now() + self.gc_period, timer);
            }
            Timer::CommitMessage { thread } => self.send_records(port, thread, true),
        }
    }

    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        for controller in 0..self.controllers.len() {
            self.collect(port, controller, Reason::Period);
        }
    }

    fn is_idle(&self) -> bool {
        !self.is_collecting()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        let of_fullest = |taken: fn(&Controller) -> u64| self.controllers.iter().map(taken).max();
        let taken = match structure {
            0 => self.threads.iter().map(Thread::slices_max).max(),
            1 => of_fullest(|controller| controller.mapping.len() as u64),
            2 => of_fullest(|controller| controller.evicted.len() as u64),
            _ => of_fullest(|controller| controller.region.blocks_taken().into()),
        };
        taken.unwrap_or(0)
    }
}

impl AbsorbingDesign for Hoop {
    const HAS_DIRTY_WORDS: bool = true;

    /// A line that leaves the caches is dropped: what transactions stored is in slices.
    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        _content: &LineData,
    ) -> WritebackAction<Write> {
        if !self.rules.evictions_are_dropped() {
            return WritebackAction::Send(Writeback::FREE);
        }
        let while_open = self.threads.iter().any(|thread| thread.has_words_of(line));
        port.emit(Event::Evicted { line, while_open });
        WritebackAction::Absorb
    }
}
