//! Events of a design, for its counters, cover points and traces.
//!
//! A design's protocol says what happened, in one line ([`Port::emit`](super::Port::emit)); what is counted of it, which
//! cover points it reaches and what a timeline says of it stands in one place, [`DesignEvent::observe`].

use graven_base::stats::{CounterSet, NoCounters};

use crate::machine::Machine;

/// A cover point of a design: a state worth reaching in a campaign.
pub trait CoverPoint: Copy {
    /// Place in [`DesignInfo::cover_points`](super::DesignInfo::cover_points).
    fn index(self) -> usize;
}

/// Something that happens in a design.
pub trait DesignEvent: Sized {
    /// Counters of the design ([`counters!`](graven_base::counters)).
    type Counters: CounterSet;

    /// The design's cover points.
    type Cover: CoverPoint;

    /// Counts it, says which cover points it reaches, and explains it.
    fn observe(self, to: &mut Observation<'_, Self>);
}

/// Receivers of an event of a design.
pub struct Observation<'a, E: DesignEvent> {
    machine: &'a mut Machine,
    counters: &'a mut E::Counters,
}

impl<'a, E: DesignEvent> Observation<'a, E> {
    pub(super) fn new(machine: &'a mut Machine, counters: &'a mut E::Counters) -> Self {
        Observation { machine, counters }
    }

    /// The design's counters, to be counted up.
    #[inline]
    pub fn count(&mut self) -> &mut E::Counters {
        self.counters
    }

    /// Counts `lines` lines that the design had written back by a path of its own, without evicting
    /// them.
    #[inline]
    pub fn count_forced_writebacks(&mut self, lines: u64) {
        self.machine.count().forced_writebacks += lines;
    }

    /// The design read DRAM by a path of its own.
    #[inline]
    pub fn count_dram_read(&mut self) {
        self.machine.count().dram_reads += 1;
    }

    /// A cover point was reached.
    #[inline]
    pub fn cover(&mut self, point: E::Cover) {
        self.machine.cover(point.index());
    }

    /// A cover point was reached if this holds.
    #[inline]
    pub fn cover_if(&mut self, holds: bool, point: E::Cover) {
        if holds {
            self.cover(point);
        }
    }

    /// Explains it, for timelines.
    #[inline]
    pub fn explain(&mut self, text: impl FnOnce() -> String) {
        if self.machine.keeps_notes() {
            self.explain_now(text);
        }
    }

    /// Adds the note to the trace: seldom, so that none of this code lies where events are counted.
    #[cold]
    #[inline(never)]
    fn explain_now(&mut self, text: impl FnOnce() -> String) {
        self.machine.note(text);
    }
}

/// A design without cover points.
#[derive(Clone, Copy, Debug)]
pub enum NoCover {}

impl CoverPoint for NoCover {
    fn index(self) -> usize {
        match self {}
    }
}

/// A design in which nothing happens.
#[derive(Clone, Copy, Debug)]
pub enum NoEvent {}

impl DesignEvent for NoEvent {
    type Counters = NoCounters;
    type Cover = NoCover;

    fn observe(self, _to: &mut Observation<'_, Self>) {
        match self {}
    }
}

/// Declares the states of a design that are worth reaching, in the order of `COVER_POINTS`, for
/// [`DesignInfo::cover_points`](crate::design::DesignInfo::cover_points).
#[macro_export]
macro_rules! cover_points {
    ($($variant:ident = $name:literal, $summary:literal;)+) => {
        /// A state worth reaching.
        #[derive(Clone, Copy, Debug)]
        pub enum Cover {
            $(#[doc = $summary] $variant,)+
        }

        /// All of them.
        pub const COVER_POINTS: &[$crate::design::Named] =
            &[$($crate::design::Named { name: $name, summary: $summary },)+];

        impl $crate::design::CoverPoint for Cover {
            fn index(self) -> usize {
                self as usize
            }
        }
    };
}
