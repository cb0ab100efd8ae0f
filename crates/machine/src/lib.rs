//! The simulated machine, the two interfaces that plug into it, and the simulation of a program on it.
//!
//! | module | what |
//! |---|---|
//! | `design` | the interface of persistence designs |
//! | `workload`, `program` | the interface of workloads; operations of programs |
//! | `registry` | designs, workloads and machines by name |
//! | `config`, `stats`, `quantities` | parameters, statistics and quantities of the machine |
//! | `cores` | instruction timing, write-combining buffers |
//! | `caches` | tag arrays; levels, inclusion, MESI directory |
//! | `request` | reads, writes, address mapping, the order of writes |
//! | `gates` | what writes wait behind until a design opens it |
//! | `controller` | queues, scheduling, durability |
//! | `device`, `media` | banks and buffers of a device; its cells |
//! | `clock` | what happens later |
//! | `machine` | all of it, and the handle through which designs act |
//! | `sim` | a simulation: threads of a workload on the machine, under one design |
//! | `script` | a workload that is a list of operations, for tests |
//! | `recovery` | recovery in simulated time: its steps as programs on the machine |
//! | `trace_event` | trace events: what happened in a run, for timelines |

pub mod caches;
pub mod clock;
pub mod config;
pub mod controller;
pub mod cores;
pub mod design;
pub mod device;
pub(crate) mod gates;
pub mod machine;
pub mod media;
pub mod program;
pub mod quantities;
pub mod recovery;
pub mod registry;
pub mod request;
pub mod script;
pub mod sim;
pub mod stats;
pub mod trace_event;
pub mod workload;

pub use machine::Machine;

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
