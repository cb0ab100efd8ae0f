//! One simulation: threads of a workload on the machine, under one design.
//!
//! The loop always takes what is earliest: an event, or the thread whose next instruction issues
//! first (ties: events first, then the lower thread). Hooks of the design are called at the instant of
//! the action; notices of the memory are delivered before anything else happens.
//!
//! | file | what |
//! |---|---|
//! | `beginning` | what simulations that begin alike have in common |
//! | `spec`, `error` | what to simulate; why it ended without a result |
//! | `host_memory` | how much memory of the host one needs |
//! | `run` | the simulation, its loop, and what memory and design have to say |
//! | `threads`, `ready`, `locks` | the state of a hardware thread; when each resumes; locks |
//! | `hits` | runs of operations that stay in a core |
//! | `operations` | instructions, loads, transactions, locks |
//! | `restored` | programs that store each word of a transaction several times |
//! | `scaled` | programs with more or fewer instructions between their accesses |
//! | `region` | the part of a run that statistics are of |
//! | `pieces` | pieces of that part, simulated side by side |
//! | `fast_forward`, `aged` | transactions without time before it, and what they leave to simulations that begin alike |
//! | `capacities` | places that the design's structures have, and those that are taken |
//! | `choices` | choices among threads and evictions that are listed |
//! | `disturb` | what directed tests do to the machine |
//! | `stores` | the store queue |
//! | `persistence` | persistence instructions in it |
//! | `distances` | how far apart the stores of a transaction to the same word are |
//! | `fills` | misses and the check of what was read |
//! | `software` | code of a design among the operations of a program |
//! | `deadlock` | threads that can never proceed, and the cause |
//! | `ending`, `record` | the end of a run and its record |
//! | `crash` | power failures |
//! | `observer` | who looks on |

mod aged;
mod beginning;
mod capacities;
mod choices;
mod crash;
mod deadlock;
mod distances;
mod disturb;
mod ending;
mod error;
mod fast_forward;
mod fills;
mod hits;
mod host_memory;
mod locks;
mod observer;
mod operations;
mod persistence;
mod pieces;
mod ready;
mod record;
mod region;
mod restored;
mod run;
mod scaled;
mod software;
mod spec;
mod stores;
mod threads;

pub use beginning::Beginning;
pub use crash::{Crash, Fault, Recovered};
pub use deadlock::{Awaited, ProgramDeadlock, Wait};
pub use error::SimError;
pub use graven_base::control::Control;
pub use host_memory::{HostMemory, Others};
pub use observer::{NoObserver, Observer, TransactionObserver};
pub use pieces::{in_pieces, piece_of};
pub use record::{Results, value_to_json};
pub use run::Simulation;
pub use spec::{CrashOptions, Programs, Spec};
