//! State of the cores and the controller, and the hooks of the design.

use std::collections::VecDeque;

use graven_base::config::ConfigError;
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{LineAddr, LineData};
use graven_base::time::Cycle;
use graven_machine::config::CoreConfig;
use graven_machine::design::{
    self, AbsorbingDesign, Design, DesignContext, Fill, Miss, Stall, Store, WritebackAction,
};
use slab::Slab;

use super::commit::{Commit, Committed, Leaving};
use super::consolidation::Copying;
use super::event::Event;
use super::journal::{Journal, Of};
use super::layout::{Layout, Physical, Slot};
use super::pages::{Page, Pages};
use super::tlb::Tlb;
use super::write_set::WriteSet;
use super::{OspConfig, Rules};

/// The machine, as the design acts on it.
pub(super) type Port<'a> = design::Port<'a, Osp>;

/// Writes to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write {
    /// A line of a commit.
    Flush { commit: usize },
    /// An uncommitted line, in one of its places.
    Leaving { place: Physical },
    /// A line of the journal record that begins with this entry.
    Journal { first: u64 },
    /// A line of the table, for a checkpoint.
    Checkpoint,
    /// The header.
    Head,
    /// The home word of a shadow page.
    HomeWord { slot: Slot },
    /// A line that is copied home, in this consolidation.
    Copied { generation: u64 },
}

/// Reads of memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Read {
    /// A line that was missed.
    Missed { line: LineAddr },
    /// A line that transactions share, for the commit of a thread.
    Shared { thread: usize },
    /// A line of a shadow page that is to be copied, in this consolidation.
    Copy { generation: u64, index: u64 },
}

/// Purposes of timers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// The controller hears of a commit.
    Record { commit: usize },
    /// The core hears that it is durable.
    Acknowledgement { thread: ThreadId },
}

/// Knowledge of the controller about a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    /// The core it runs on, once it has stored something.
    pub(super) core: Option<u32>,
    pub(super) writes: WriteSet,
    pub(super) in_transaction: bool,
    /// Reads that the commit waits for before it begins.
    pub(super) reads: u32,
    /// When its store began to wait for a shadow page.
    pub(super) waits_since: Cycle,
}

/// The TLBs of the cores, and the controller.
pub(super) struct Osp {
    pub(super) config: OspConfig,
    pub(super) rules: Rules,
    pub(super) threads: Vec<Thread>,
    pub(super) tlbs: Vec<Tlb>,
    pub(super) pages: Pages,
    /// Pages that got a shadow page so far.
    allotted: u64,
    /// Stores so far: the time by which pages are old.
    stores: u64,
    pub(super) commits: Slab<Commit>,
    /// Lists of lines of past commits, kept for their memory.
    pub(super) spare: Vec<Vec<Committed>>,
    pub(super) leaving: Leaving,
    pub(super) journal: Journal,
    pub(super) copying: Option<Copying>,
    /// Distinguishes the reads and writes of one consolidation from those of the previous one.
    pub(super) generation: u64,
    /// Pages to be consolidated.
    pub(super) queue: VecDeque<Slot>,
    /// Threads whose stores wait for a shadow page.
    pub(super) waiting: Vec<ThreadId>,
}

impl Osp {
    pub(super) fn new(context: &DesignContext) -> Result<Osp, ConfigError> {
        let layout = Layout::of(context);
        layout.check(context)?;
        let cores = context.config.get::<CoreConfig>().count as usize;
        Ok(Osp {
            config: context.config.get::<OspConfig>().clone(),
            rules: Rules::of(context),
            threads: vec![Thread::default(); context.threads as usize],
            tlbs: vec![Tlb::default(); cores],
            pages: Pages::new(layout),
            allotted: 0,
            stores: 0,
            commits: Slab::new(),
            spare: Vec::new(),
            leaving: Leaving::default(),
            journal: Journal::new(layout),
            copying: None,
            generation: 0,
            queue: VecDeque::new(),
            waiting: Vec::new(),
        })
    }

    /// The page of a line that is stored to gets a shadow page, if one is free.
    fn allot(&mut self, port: &mut Port<'_>, line: LineAddr) -> Option<Slot> {
        let slot = self.pages.allot(line)?;
        self.allotted += 1;
        let reused = self.allotted > self.config.shadow_pages.into();
        port.emit(Event::PageAllotted { in_use: self.pages.in_use(), reused });
        self.write_home_word(port, slot);
        Some(slot)
    }

    /// The first store of a transaction to a line flips its current bit, unless another open transaction has done so.
    /// Returns what it costs.
    fn updates(&mut self, port: &mut Port<'_>, store: &Store, slot: Slot) -> Cycle {
        let line = store.addr.line();
        self.stop_consolidation(port, slot);
        let page = self.pages.get_mut(slot);
        page.open += 1;
        if !page.consolidating.is_none() {
            port.emit(Event::StoreWhileRecorded);
        }
        if self.words_of_others(store.tx.thread as usize, line) != 0 {
            return 0;
        }
        let bit = self.pages.bit(slot, line);
        self.pages.get_mut(slot).current ^= bit;
        self.flipped(port, slot, store.core)
    }

    /// A thread's transaction has ended: stores that wait for a shadow page may wait in vain from now on.
    fn ended(&mut self, port: &mut Port<'_>, thread: usize) {
        self.threads[thread].in_transaction = false;
        self.consolidate_next(port);
    }
}

impl Design for Osp {
    type Write = Write;
    type Read = Read;
    type Timer = Timer;
    type Event = Event;

    fn on_tx_begin(&mut self, _port: &mut Port<'_>, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].in_transaction = true;
        Stall::None
    }

    /// The first store to a page gets it a shadow page; the first to a line flips its current bit. The core must have
    /// the page's translation.
    fn on_store(&mut self, port: &mut Port<'_>, store: &Store) -> Stall {
        let line = store.addr.line();
        let slot = self.pages.slot_of(line).or_else(|| self.allot(port, line));
        let Some(slot) = slot else { return self.wait_for_page(port, store.tx.thread) };
        let thread = &mut self.threads[store.tx.thread as usize];
        thread.core = Some(store.core);
        let mut cost = 0;
        if thread.writes.store(line, slot, store.addr.word_in_line()) {
            cost = self.updates(port, store, slot);
        }
        self.stores += 1;
        self.pages.get_mut(slot).stored = self.stores;
        cost += self.translate(port, store.core, slot);
        if cost == 0 { Stall::None } else { Stall::For(cost) }
    }

    fn on_tx_end(&mut self, port: &mut Port<'_>, tx: Tx) -> Stall {
        let thread = tx.thread as usize;
        if self.threads[thread].writes.lines.is_empty() {
            self.ended(port, thread);
            return Stall::None;
        }
        self.prepare(port, thread);
        Stall::UntilReleased
    }

    fn on_llc_miss(&mut self, port: &mut Port<'_>, miss: &Miss) -> Fill {
        let Miss { line, delay, .. } = *miss;
        self.miss(port, line, delay)
    }

    fn on_durable(&mut self, port: &mut Port<'_>, write: Write) {
        match write {
            Write::Flush { commit } => self.flushed(port, commit),
            Write::Leaving { place } => self.has_left(port, place),
            Write::Journal { first } => self.entries_durable(port, first),
            Write::Checkpoint => self.checkpoint_durable(port),
            Write::Head => self.head_durable(port),
            Write::HomeWord { slot } => self.home_word_durable(port, slot),
            Write::Copied { generation } => self.line_home(port, generation),
        }
    }

    fn on_read(&mut self, port: &mut Port<'_>, read: Read, place: LineAddr, content: &LineData) {
        match read {
            Read::Missed { line } => self.missed_read(port, line, place, content),
            Read::Shared { thread } => self.shared_read(port, thread),
            Read::Copy { generation, index } => self.line_read(port, generation, index, content),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_>, timer: Timer) {
        match timer {
            Timer::Record { commit } => {
                self.journal.wait(Of::Commit(commit));
                self.send_records(port);
            }
            Timer::Acknowledgement { thread } => {
                port.release_here(thread);
                self.ended(port, thread as usize);
            }
        }
    }

    fn start_maintenance(&mut self, port: &mut Port<'_>) {
        self.checkpoint(port, false);
        let inactive =
            |(slot, page): (Slot, &Page)| (page.cores == 0 && page.is_quiet()).then_some(slot);
        let inactive: Vec<Slot> = self.pages.iter().filter_map(inactive).collect();
        inactive.into_iter().for_each(|slot| self.queue_page(slot));
        self.consolidate_next(port);
    }

    fn is_idle(&self) -> bool {
        self.copying.is_none()
            && self.queue.is_empty()
            && self.commits.is_empty()
            && self.journal.is_idle()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure {
            0 => self.tlbs.iter().map(|tlb| tlb.len() as u64).max().unwrap_or(0),
            1 => self.pages.in_use() as u64,
            _ => self.journal.taken(),
        }
    }
}

impl AbsorbingDesign for Osp {
    /// A line goes to its current place: home, or the design sends it to the shadow page itself.
    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_>,
        line: LineAddr,
        content: &LineData,
    ) -> WritebackAction<Write> {
        self.evict(port, line, content)
    }
}
