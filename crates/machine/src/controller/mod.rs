//! Memory controllers.
//!
//! | file | what |
//! |---|---|
//! | `channel` | queues, FR-FCFS, write drain, ADR |
//! | `memory_system` | all channels on one clock |
//! | `domain` | the durable bytes of the moment, for those who crash them |
//! | `adversary` | seeded choices where the rules leave memory a choice |

pub mod adversary;
pub mod channel;
pub mod domain;
mod memory_system;

pub use memory_system::{MemorySystem, Recorder, RequestRecord};
