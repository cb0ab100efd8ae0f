//! Graven's engine: a deterministic simulator of hardware-assisted crash consistency in persistent
//! memory. See `docs/architecture.md` for the picture; the folders follow it:
//!
//! program (`workloads`, `trace`) → cores → caches → memory controller → PM device (`machine`),
//! with one persistence design (`designs`) beside them and recovery judged from bytes (`crash`).
//!
//! The engine does no I/O: no files, no terminal, no wall clock.

pub mod catalogue;
pub mod codecs;
pub mod config;
pub mod control;
pub mod cost;
pub mod crash;
pub mod designs;
pub mod litmus;
pub mod machine;
pub mod media;
pub mod memory;
pub mod program;
pub mod sim;
pub mod stats;
pub mod trace;
pub mod workloads;

/// The version of the engine, part of every record.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
