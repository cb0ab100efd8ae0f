//! The state of the controller, and what it does when: stores, ends of transactions, evictions and misses, answers of
//! memory, a power failure.

use graven_base::config::ConfigError;
use graven_base::ids::Tx;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::surviving::SurvivingImage;
use graven_base::time::Cycle;
use graven_machine::config::ControllerConfig;
use graven_machine::design::{
    self, AbsorbingDesign, Design, DesignContext, Fill, Miss, Stall, Store, Writeback,
    WritebackAction,
};
use graven_machine::media::overlay;

use super::event::Event;
use super::pool::{ByLine, Coming, Draining, Gathered, Stage};
use super::undo_log::UndoLog;
use super::write_set::WriteSet;
use super::{LadConfig, Rules};

pub(super) type Port<'a, L> = design::Port<'a, Lad<L>>;

/// Phases of a thread's transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Running,
    /// Waits for the controller to have all lines.
    Preparing,
    /// The commit message is on its way, or will be as soon as the controller's message arrives.
    Committing,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) writes: WriteSet,
    pub(super) phase: Phase,
    pub(super) tx: u64,
    /// Lines with words of this thread that are on their way into the pool or to PM.
    pub(super) underway: u32,
    /// When the core knows that the last of them was received.
    pub(super) received: Cycle,
    /// Lines of the transaction that was just committed that are not durable, where its end waits for them.
    pub(super) draining: u32,
    /// Every line of the transaction is logged.
    pub(super) logs_all: bool,
}

/// The controller, with an undo log.
pub(super) struct Lad<L> {
    pub(super) config: LadConfig,
    /// Places of the pool.
    pub(super) places: usize,
    /// Number of places in use, and the cycle since which it holds.
    pub(super) in_use: (u64, Cycle),
    pub(super) rules: Rules,
    pub(super) threads: Vec<Thread>,
    pub(super) coming: ByLine<Coming>,
    pub(super) gathered: ByLine<Gathered>,
    /// Oldest first.
    pub(super) draining: Vec<Draining>,
    pub(super) log: L,
    /// Counts what may decide anew, of lines that wait for a place, that they are logged or go home instead: a transaction
    /// ends, or has lines that are logged without asking. (Words that a transaction stores change nothing else.)
    pub(super) decided: u64,
    /// Lines that may go home; empty between two events, kept for its memory.
    pub(super) logged: Vec<LineAddr>,
}

/// Writes to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum Write<W> {
    /// One of the undo log's.
    Log(W),
    /// A line with undo records that goes home.
    Home(LineAddr),
    /// The oldest version of a line that drains.
    Drain(LineAddr),
}

/// A read of the content that PM has of a line, which is to be logged.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldLine;

/// Messages that arrive when a timer fires.
#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    /// A line that was pushed, at the controller.
    Line(LineAddr),
    /// The commit message of a thread, at the controller.
    Commit { thread: usize },
    /// The acknowledgement reaches the core.
    Acknowledgement { thread: usize },
}

impl<L: UndoLog> Lad<L> {
    pub(super) fn new(context: &DesignContext) -> Result<Lad<L>, ConfigError> {
        let config = context.config.get::<LadConfig>().clone();
        let thread = |_| Thread {
            writes: WriteSet::default(),
            phase: Phase::Running,
            tx: 0,
            underway: 0,
            received: 0,
            draining: 0,
            logs_all: false,
        };
        Ok(Lad {
            threads: (0..context.threads).map(thread).collect(),
            coming: ByLine::new(),
            gathered: ByLine::new(),
            draining: Vec::new(),
            log: L::new(context)?,
            decided: 1,
            logged: Vec::new(),
            rules: Rules::of(context),
            places: context.config.get::<ControllerConfig>().adr_entries as usize,
            in_use: (0, 0),
            config,
        })
    }
}

impl<L: UndoLog> Design for Lad<L> {
    type Write = Write<L::Write>;
    type Read = OldLine;
    type Timer = Timer;
    type Event = Event;

    fn on_tx_begin(&mut self, _port: &mut Port<'_, L>, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].tx = tx.number;
        Stall::None
    }

    /// The core keeps which lines are to be pushed; an early push may have been in vain.
    fn on_store(&mut self, port: &mut Port<'_, L>, store: &Store) -> Stall {
        let thread = store.tx.thread as usize;
        self.decided += u64::from(self.threads[thread].logs_all);
        let writes = &mut self.threads[thread].writes;
        let in_vain = writes.store(store);
        if in_vain {
            writes.lines[writes.last].pushed = !self.rules.early_push_is_repeated();
            port.emit(Event::PushedInVain);
        }
        if self.config.proactive_flush {
            self.push_early(port, thread);
        }
        Stall::None
    }

    /// *Prepare*; the thread continues when the commit is acknowledged.
    fn on_tx_end(&mut self, port: &mut Port<'_, L>, tx: Tx) -> Stall {
        let thread = tx.thread as usize;
        if self.threads[thread].writes.lines.is_empty() {
            return Stall::None;
        }
        self.prepare(port, thread);
        self.refuse_if_stuck(port);
        Stall::UntilReleased
    }

    /// Misses on lines in the pool, and on the way into it, are served from there.
    fn on_llc_miss(&mut self, _port: &mut Port<'_, L>, miss: &Miss) -> Fill {
        let line = miss.line;
        let coming = self.coming.get(line).map(|c| c.data);
        match coming.or_else(|| self.gathered.get(line).map(|g| g.data)) {
            Some(data) => Fill::Buffer(data, self.config.pool_read_cycles.into()),
            None => Fill::Home,
        }
    }

    fn on_read(
        &mut self,
        port: &mut Port<'_, L>,
        OldLine: OldLine,
        line: LineAddr,
        content: &LineData,
    ) {
        self.write_records(port, line, content);
    }

    fn on_durable(&mut self, port: &mut Port<'_, L>, write: Write<L::Write>) {
        match write {
            Write::Log(write) => self.log_written(port, write),
            Write::Home(line) => self.is_home(port, line),
            Write::Drain(line) => self.drained(port, line),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_, L>, timer: Timer) {
        match timer {
            Timer::Line(line) => {
                // A line may be received, by joining an older version, before its own time.
                if self.coming.get(line).is_some_and(|c| c.stage == Stage::Travelling) {
                    self.place(port, line);
                }
            }
            Timer::Commit { thread } => self.commit(port, thread),
            Timer::Acknowledgement { thread } => self.acknowledge(port, thread),
        }
    }

    /// Lines on their way or gathered belong to open transactions, if there are any.
    fn is_idle(&self) -> bool {
        let open = self.threads.iter().any(|t| !t.writes.lines.is_empty());
        let none_left = self.coming.lines.is_empty() && self.gathered.lines.is_empty();
        self.draining.is_empty() && (open || none_left)
    }

    /// The committed lines of the pool are saved, oldest first.
    fn on_power_failure(&self, image: &mut SurvivingImage) {
        let too_few = usize::from(!self.rules.all_draining_is_saved());
        let mut saved: Vec<&Draining> = self.draining.iter().collect();
        saved.truncate(saved.len().saturating_sub(too_few));
        if !self.rules.saved_oldest_first() {
            saved.reverse();
        }
        // A place holds one line, in which newer words are over older ones: it is saved once.
        let mut places: Vec<(LineAddr, WordMask, LineData)> = Vec::new();
        for drain in saved {
            match places.iter_mut().find(|(line, ..)| *line == drain.line) {
                None => places.push((drain.line, drain.mask, drain.data)),
                Some((_, mask, data)) => {
                    *mask |= drain.mask;
                    overlay(data, &drain.data, drain.mask);
                }
            }
        }
        for (line, mask, data) in places {
            image.note(|| format!("the pool: words {mask:#010b} of {}", line.addr()));
            image.store_line(line, mask, &data);
        }
        if !self.rules.only_committed_is_saved() {
            for (line, entry) in self.gathered.lines.iter().zip(&self.gathered.values) {
                image.store_line(*line, WordMask::MAX, &entry.data);
            }
        }
    }

    /// Those of the undo log, by which the pool's entries commit, too.
    fn registers(&self) -> Vec<u64> {
        self.log.registers()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure {
            0 => self.in_use.0,
            1 => self.threads.iter().map(|t| t.writes.recent.len() as u64).max().unwrap_or(0),
            _ => self.log.places_taken(structure - 2),
        }
    }
}

impl<L: UndoLog> AbsorbingDesign for Lad<L> {
    /// A line with uncommitted words goes into the pool, and so does newer content of a line that is there or on its
    /// way.
    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_, L>,
        line: LineAddr,
        content: &LineData,
    ) -> WritebackAction<Write<L::Write>> {
        let open = self.threads.iter().any(|t| t.writes.find(line).is_some());
        if !open && self.coming.get(line).is_none() && self.gathered.get(line).is_none() {
            return WritebackAction::Send(Writeback::FREE);
        }
        if self.leaves(port, line, content, port.now()) {
            self.place(port, line);
        }
        WritebackAction::Absorb
    }
}
