//! The interface of persistence designs.
//!
//! A design is the only part of the simulator that sees all levels of the machine. The machine calls it at
//! the hardware's own points of action ([`Design`]), and it acts through the [`Port`] that it is handed:
//! writes of given bytes, reads, write-backs, timers, stalls. All timing goes through the
//! machine; a design never invents a latency that is not a parameter.
//!
//! Recovery stands apart: a function of the surviving bytes and the design's non-volatile registers,
//! and of nothing else ([`DesignInfo::recover`]).
//!
//! | file | what |
//! |---|---|
//! | `interface` | the hooks, and what they answer |
//! | `port` | what a design may do to the machine |
//! | `acknowledgement` | what lies between the end of a transaction and its acknowledgement |
//! | `event` | what happens in a design, for those who count, cover and trace it |
//! | `capacity` | structures that have places for a limited number of entries |
//! | `info` | a design as users name it; what it is built for; what it guarantees |
//! | `mutants` | single-point changes for the worse, of a design's own |
//! | `operators` | changes for the worse that any design can be given at its boundary with the machine |
//! | `code` | instructions that designs put into threads |
//! | `layers` | software over hardware: two designs in one machine |
//! | `plug` | a design as the simulation sees it |

mod acknowledgement;
mod capacity;
mod code;
mod event;
mod info;
mod interface;
mod layers;
mod mutants;
pub mod operators;
mod plug;
mod port;

pub use graven_base::ids::{ThreadId, Tx};
pub use graven_persistency::cut::{Operation, Order};

pub use crate::caches::hierarchy::Cause;
pub use crate::controller::settled::{Settlement, Stores};
pub use crate::request::Gate;
pub use acknowledgement::{Acknowledgement, Prices, Step};
pub use capacity::{Capacity, Room, TakenBy};
pub use code::Code;
pub(crate) use code::Instruction;
pub use event::{CoverPoint, DesignEvent, NoCover, NoEvent, Observation};
pub use info::{
    Battery, DesignContext, DesignInfo, Guarantee, Leaves, Named, RecoveryReport, Reopening, Rounds,
};
pub use interface::{
    AbsorbingDesign, Departure, DepartureDesign, Design, Fill, LoadDesign, Miss, NonTemporalDesign,
    OpAction, PersistDesign, Place, PlainStore, PlainStoreDesign, SoftwareDesign, Stall, Store,
    TaggedDesign, Unused, Writeback, WritebackAction,
};
pub use layers::{Layers, joined};
pub use mutants::{MutantSet, Mutants};
pub(crate) use plug::{Plug, RawAction};
pub use plug::{Plugged, PluggedDesign, plug};
pub use port::Port;
