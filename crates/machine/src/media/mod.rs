//! Cell technology: what the cells of a PM device hold, and what it costs to change them.
//!
//! | file | what | source |
//! |---|---|---|
//! | `tlc` | TLC RRAM: latency and energy by state, data-comparison writes | MorLog §IV-C, Table III |
//! | `cells` | the blocks of an array and their wear | MorLog §VI-C |
//! | `pm` | the cells of a PM device: what a write programs | MorLog §IV-B |
//!
//! Blocks come from [`graven_base::codecs`]. When a write is programmed, and what waits for it, is the machine's
//! business.

mod cells;
mod pm;
#[cfg(test)]
mod testing;
mod tlc;

pub use cells::{CellArray, CellWear, WEAR_GROUP_CELLS};
pub use pm::{Effort, PmCells, overlay};
pub use tlc::{Programming, STATES, TlcTable, changed, program};
