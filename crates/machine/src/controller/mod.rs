//! Memory controllers. Those of PM are the files here, those of DRAM are in `dram`.
//!
//! | file | what |
//! |---|---|
//! | `memory_system` | all channels on one clock |
//! | `dram` | a channel of DRAM, command by command |
//! | `in_transit` | writes between their senders and their controllers |
//! | `channel` | one channel of PM: requests arrive, are scheduled, keep banks busy, and finish |
//! | `read_queue`, `write_queue` | requests that wait, and what a scheduler asks about them |
//! | `lists` | where the requests of a queue want to go, linked by what asks for them |
//! | `waiting_writes` | writes outside a write queue, for a place in it or for ordered writes |
//! | `scheduler` | which request is issued next: a file for each policy |
//! | `data_bus` | when lines move |
//! | `durability` | the boundary of the persistence domain |
//! | `accounts` | what is counted of a channel's requests |
//! | `shared` | what all channels share |
//! | `domain` | the durable bytes of the moment, for those who crash them |
//! | `cached` | words that survive in caches, for the same |
//! | `outside` | words that are stored to outside transactions, for the same |
//! | `settled` | what recoveries after neighbouring power failures have in common, for the same |
//! | `adversary` | seeded choices where the rules leave memory a choice |

mod accounts;
pub mod adversary;
pub mod cached;
pub mod channel;
mod data_bus;
pub mod domain;
pub mod dram;
pub mod durability;
mod in_transit;
mod lists;
mod memory_system;
pub mod outside;
mod read_queue;
mod scheduler;
pub mod settled;
pub mod shared;
mod waiting_writes;
mod write_queue;

pub use memory_system::{MemorySystem, Recorder, RequestRecord};
