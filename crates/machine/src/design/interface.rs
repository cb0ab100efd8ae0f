//! The hooks of a design, and what they answer.

use std::fmt::Debug;

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LineAddr, LineData};
use graven_base::surviving::SurvivingImage;
use graven_base::time::Cycle;

use super::{Cause, Code, DesignEvent, Port};
use crate::program::{Op, Persist};
use crate::request::{Gate, WriteOrder};

/// A transactional store to PM, about to be performed in the L1.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// The transaction.
    pub tx: Tx,
    /// The core whose L1 performs it.
    pub core: u32,
    /// Address of the word.
    pub addr: Addr,
    /// Content of the word.
    pub old: u64,
    /// New content of the word.
    pub new: u64,
}

/// A store to PM outside transactions, about to be performed in the L1.
#[derive(Clone, Copy, Debug)]
pub struct PlainStore {
    /// The thread.
    pub thread: ThreadId,
    /// The core whose L1 performs it.
    pub core: u32,
    /// Address of the word.
    pub addr: Addr,
    /// Content of the word.
    pub old: u64,
    /// New content of the word.
    pub new: u64,
}

/// Answer of a hook: the wait of the thread after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// The thread proceeds at once.
    None,
    /// The thread proceeds after this number of cycles, in which its core is busy with something of
    /// its own.
    For(Cycle),
    /// The thread asks the controller, which takes this number of cycles, and proceeds when it has
    /// the answer: after two messages and these cycles.
    Answered(Cycle),
    /// The operation took effect; the thread waits for [`Port::release`](super::Port::release).
    UntilReleased,
    /// The operation did not take effect; it is tried again after [`Port::release`](super::Port::release).
    Retry,
}

/// On which side of the way between an L1 and the controller something happens. What one side has done, the other learns by
/// a message of [`Port::bypass_cycles`], the machine's and so the same for every design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Cores, caches, and what lies beside them: all hooks, unless said otherwise.
    Processor,
    /// The memory controller, where writes become durable and reads are answered: [`Design::on_durable`],
    /// [`Design::on_read`], and timers that are set there.
    Controller,
}

/// Conditions of the write of a dirty line to its home address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writeback<W> {
    /// Ordered writes after which alone it may become durable: all up to this one.
    pub after: WriteOrder,
    /// Gate that must be open before it may become durable.
    pub gate: Gate,
    /// Handed to [`Design::on_durable`] when the line is durable, if anything.
    pub report: Option<W>,
}

impl<W> Writeback<W> {
    /// At any time, and unreported.
    pub const FREE: Writeback<W> =
        Writeback { after: WriteOrder::NONE, gate: Gate::NONE, report: None };

    /// After the ordered writes up to this one, and unreported.
    pub const fn after(after: WriteOrder) -> Writeback<W> {
        Writeback { after, ..Writeback::FREE }
    }

    /// Behind a gate, too.
    #[must_use]
    pub fn behind(self, gate: Gate) -> Writeback<W> {
        Writeback { gate, ..self }
    }

    /// With a report of its durability.
    #[must_use]
    pub fn reported(self, write: W) -> Writeback<W> {
        Writeback { report: Some(write), ..self }
    }
}

/// Treatment of a dirty line that leaves the LLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritebackAction<W> {
    /// Written to its home address.
    Send(Writeback<W>),
    /// Nothing is sent: the design has taken the bytes. It sends them itself, or returns them when the
    /// line is read ([`Design::on_llc_miss`]).
    Absorb,
}

/// Source of a line that missed in all caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// The line's home address.
    Home,
    /// A buffer of the design's in the controller, which delivers it after this number of cycles.
    Buffer(LineData, Cycle),
    /// The design reads it, from wherever its newest words are, and hands it over ([`Port::deliver`]).
    Design,
}

/// Treatment of an operation of the program when the design's code for it has been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpAction {
    /// Executed.
    Execute,
    /// The code has taken the place of a load, and found this value.
    Return(u64),
    /// The code has taken the place of a transactional store to PM, and will perform it, or a later one to the word,
    /// at the transaction's end ([`Code::end`]).
    Defer,
}

/// Type of requests or timers for a design that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {}

/// A persistence design. Every hook has a default that does nothing.
pub trait Design: Sized + 'static {
    /// Purpose of a write: handed back when it is durable.
    type Write: Copy + Debug + 'static;
    /// Purpose of a read: handed back with the line.
    type Read: Copy + Debug + 'static;
    /// Purpose of a timer.
    type Timer: Copy + Debug + 'static;
    /// Events of the design that are counted, covered and traced.
    type Event: DesignEvent;

    /// Power is back and recovery has ended: the non-volatile registers hold these values, of as many threads as there were
    /// before. Called before [`Design::start`] if registers keep their values ([`super::Reopening::AsRecovered`]), and not
    /// in a machine that is switched on for the first time.
    fn resume(&mut self, _registers: &[u64]) {}

    /// Called once, when the machine is ready and populated.
    fn start(&mut self, _port: &mut Port<'_, Self>) {}

    /// A transaction begins.
    fn on_tx_begin(&mut self, _port: &mut Port<'_, Self>, _tx: Tx) -> Stall {
        Stall::None
    }

    /// A transactional store reaches the L1. Architectural memory changes right after this returns
    /// (unless it returns [`Stall::Retry`]).
    fn on_store(&mut self, _port: &mut Port<'_, Self>, _store: &Store) -> Stall {
        Stall::None
    }

    /// A transaction ends; all its stores have been performed. The commit is acknowledged when this
    /// releases the thread. ([`Stall::Retry`] is allowed, too.)
    fn on_tx_end(&mut self, _port: &mut Port<'_, Self>, _tx: Tx) -> Stall {
        Stall::None
    }

    /// A dirty PM line has left the LLC, with this content; or stays, clean, as a clwb instruction writes it back.
    fn on_llc_eviction(
        &mut self,
        _port: &mut Port<'_, Self>,
        _line: LineAddr,
        _content: &LineData,
    ) -> Writeback<Self::Write> {
        Writeback::FREE
    }

    /// A PM line is about to be read into the caches.
    fn on_llc_miss(&mut self, _port: &mut Port<'_, Self>, _miss: &Miss) -> Fill {
        Fill::Home
    }

    /// A write that was sent with this is durable.
    fn on_durable(&mut self, _port: &mut Port<'_, Self>, _write: Self::Write) {}

    /// A read that was sent with this has delivered a line.
    fn on_read(
        &mut self,
        _port: &mut Port<'_, Self>,
        _read: Self::Read,
        _line: LineAddr,
        _content: &LineData,
    ) {
    }

    /// A timer that was set with this fires.
    fn on_timer(&mut self, _port: &mut Port<'_, Self>, _timer: Self::Timer) {}

    /// The design's periodic work (a scan, a collection), if it has any, is to begin now, as if its time
    /// had come.
    fn start_maintenance(&mut self, _port: &mut Port<'_, Self>) {}

    /// Returns true if no background work of finished transactions is left to be done.
    fn is_idle(&self) -> bool {
        true
    }

    /// The system shuts down in order: what committed transactions still owe the log goes there now.
    fn on_shutdown(&mut self, _port: &mut Port<'_, Self>) {}

    /// Power fails. What batteries or ADR save beyond the machine's own domain is written to the
    /// image here, bounded by the capacity that the design claims; the rest is lost.
    fn on_power_failure(&self, _image: &mut SurvivingImage) {}

    /// Returns how many places are taken in the fullest instance of the structure with this number in
    /// [`DesignInfo::capacities`](super::DesignInfo::capacities).
    ///
    /// # Panics
    /// The design declares no such structure.
    fn places_taken(&self, structure: usize) -> u64 {
        panic!("the design declares no structure {structure}")
    }

    /// The design's non-volatile registers, as power leaves them.
    fn registers(&self) -> Vec<u64> {
        Vec::new()
    }
}

/// A PM line that has left a core's L1, or may no longer be written there. Its content is the architectural one
/// ([`Port::cached_line`](super::Port::cached_line)).
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The core.
    pub core: u32,
    /// The line.
    pub line: LineAddr,
    /// True if the L1 held changes.
    pub dirty: bool,
    /// The design's tag of the line there ([`Port::set_tag`](super::Port::set_tag)).
    pub tag: u8,
    /// Reason, and the core that takes or reads the line.
    pub cause: Cause,
}

/// A PM line that no cache has, and that memory is about to be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Miss {
    /// The line.
    pub line: LineAddr,
    /// The core whose access misses.
    pub core: u32,
    /// True if a store needs the line, at its turn or ahead of it.
    pub writes: bool,
    /// Cycles after which the request reaches the controller.
    pub delay: Cycle,
}

/// A design that sees lines leave the L1 caches ([`Plugged::with_departures`](super::Plugged::with_departures)).
pub trait DepartureDesign: Design {
    /// A line has left an L1 or was downgraded; nothing can be done about it.
    fn on_departure(&mut self, port: &mut Port<'_, Self>, departure: &Departure);
}

/// A design that is told of the tags of lines that leave the caches ([`Plugged::with_tags`](super::Plugged::with_tags)).
///
/// Each cached line has a byte for the design: its tag. A line that memory delivers has tag 0 in all caches, and so has one that is
/// written back (clwb, or by the design). A cache that gets the line from an outer one gets the tag, too. A cache whose copy leaves or
/// loses the right to be written gives its tag outwards together with its changes. What a clean copy's tag was is lost with the copy.
/// So a tag other than 0 that is set at stores alone says of a line that it is dirty since then ([`Port::is_dirty`] counts the store
/// that a hook is told of).
pub trait TaggedDesign: Design {
    /// Takes the place of [`Design::on_llc_eviction`]. `tag`: that of the line's newest copy.
    fn on_tagged_eviction(
        &mut self,
        port: &mut Port<'_, Self>,
        line: LineAddr,
        content: &LineData,
        tag: u8,
    ) -> Writeback<Self::Write>;
}

/// A design that sees stores to PM outside transactions
/// ([`Plugged::with_plain_stores`](super::Plugged::with_plain_stores)).
pub trait PlainStoreDesign: Design {
    /// A store outside transactions reaches the L1. Architectural memory changes right after this returns
    /// (unless it returns [`Stall::Retry`]).
    fn on_plain_store(&mut self, port: &mut Port<'_, Self>, store: &PlainStore) -> Stall;
}

/// A design that executes instructions for persistence and order itself
/// ([`Plugged::with_persists`](super::Plugged::with_persists)).
pub trait PersistDesign: Design {
    /// An instruction is the oldest in the thread's store queue: all stores before it have been performed, and those after it wait.
    /// None: the machine executes it, as it does under any other design; [`Persist::Order`] it has no way to execute, and the
    /// program is refused. With [`Stall::UntilReleased`] the instruction has been executed when the thread is released, with
    /// [`Stall::Retry`] this is called again then. [`Persist::StoreUncached`] does not come here.
    fn on_persist(
        &mut self,
        port: &mut Port<'_, Self>,
        thread: ThreadId,
        core: u32,
        what: Persist,
    ) -> Option<Stall>;
}

/// A design that sees loads of PM ([`Plugged::with_loads`](super::Plugged::with_loads)).
pub trait LoadDesign: Design {
    /// A load reads a word from the caches, or from the line that has just come. A load that is answered by the thread's own store
    /// queue is not seen. The thread is not delayed.
    fn on_load(&mut self, port: &mut Port<'_, Self>, thread: ThreadId, core: u32, addr: Addr);
}

/// A design that may keep dirty lines from memory ([`Plugged::absorbing`](super::Plugged::absorbing)). It has no
/// clwb executed: a line that stays in the caches cannot be absorbed.
pub trait AbsorbingDesign: Design {
    /// True if the design has the content of all dirty lines, so that they are dropped when they
    /// leave the caches.
    const HAS_DIRTY_WORDS: bool = false;

    /// True if the design drops lines that it has taken when what transactions stored to them is at
    /// home. Content that was stored to them outside transactions would be lost, so a program that
    /// has both is refused.
    const DROPS_LINES: bool = Self::HAS_DIRTY_WORDS;

    /// Takes the place of [`Design::on_llc_eviction`].
    fn on_dirty_eviction(
        &mut self,
        port: &mut Port<'_, Self>,
        line: LineAddr,
        content: &LineData,
    ) -> WritebackAction<Self::Write>;
}

/// A design that takes non-temporal stores ([`Plugged::with_non_temporal_stores`](super::Plugged::with_non_temporal_stores)).
pub trait NonTemporalDesign: Design {
    /// Returns true if a non-temporal store of a transaction to a line may bypass the caches now.
    /// If not, it is treated like any other store.
    fn accepts_non_temporal(&mut self, port: &mut Port<'_, Self>, tx: Tx, line: LineAddr) -> bool;

    /// A non-temporal store bypasses the caches, none of which has its line. Architectural memory
    /// changes right after this returns (unless it returns [`Stall::Retry`]), and the design
    /// answers for what is read of the line.
    fn on_non_temporal_store(&mut self, port: &mut Port<'_, Self>, store: &Store) -> Stall;
}

/// A design that is partly software ([`Plugged::with_software`](super::Plugged::with_software)): lookups, appends,
/// updates of an index in DRAM ([`Port::dram_heap`]).
pub trait SoftwareDesign: Design {
    /// Adds the code that the design has its thread execute before an operation of the program. The
    /// code may take the operation's place.
    fn before_op(
        &mut self,
        port: &mut Port<'_, Self>,
        thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction;
}
