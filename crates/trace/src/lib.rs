//! Traces: what was recorded once, and can be run again without what it was recorded from.
//!
//! | folder | what a trace holds | what it drives |
//! |---|---|---|
//! | `program` | what program threads do: operations with values, transactions and locks, and the memory they begin with | the whole machine, under any design |
//! | `capture` | what a plugin has written while a program ran, of which a program trace is made | the same as a program trace |
//! | `hygiene` | the lines of a captured program that are careless about persistence, by the history in its trace | a report |
//! | `champsim` | instructions with registers and addresses, for ChampSim | ChampSim |
//! | `imports` | what other tools recorded of programs, of which a program trace is made | the same as a program trace |
//! | `requests` | what reaches the memory controllers, as text of NVMain or DRAMsim3, or binary | controllers and device alone |
//!
//! All are read from and written to whatever the caller hands in; whose files they are is not known here.

pub mod capture;
pub mod champsim;
mod frames;
mod framing;
pub mod hygiene;
pub mod imports;
pub mod program;
pub mod requests;

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
