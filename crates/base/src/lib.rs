//! The vocabulary of the simulator: what every other crate speaks, and nothing of machines, designs or programs.
//!
//! | module | what |
//! |---|---|
//! | `memory` | addresses, words, lines, byte images |
//! | `surviving` | the bytes that a power failure leaves, and what recovery writes to them |
//! | `recovery_steps` | what each thread of a recovery does, step by step |
//! | `time`, `ids`, `thread_set` | cycles; numbers of threads and transactions; sets of threads |
//! | `config` | typed sections of parameters, each declared once |
//! | `stats` | declarations of statistics, distributions, energies |
//! | `cost` | formulas and items of hardware cost |
//! | `codecs` | log data compression and cell expansion |
//! | `bits` | sets of small numbers |
//! | `control` | watching and cancelling what runs |
//! | `slots` | linked lists of slots by index |
//! | `host` | what happens when the host has no memory left |

pub mod bits;
pub mod codecs;
pub mod config;
pub mod control;
pub mod cost;
pub mod host;
pub mod ids;
pub mod memory;
pub mod recovery_steps;
pub mod slots;
pub mod stats;
pub mod surviving;
pub mod thread_set;
pub mod time;

/// The version of the simulator, part of every record.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
