//! The crash laboratory: a power failure at every point of a run, recovery from the surviving bytes alone, and whether
//! the guarantee held.
//!
//! | module | what |
//! |---|---|
//! | `checker` | the trusted base: were the guarantees kept? It knows only the program's stores and acknowledgements, and no design |
//! | `litmus` | directed tests as text: the program, its syntax, its variables in memory |
//! | `explorer` | every crash point of a run, in all its modes |
//! | `case` | a litmus program on a design |
//! | `ordered` | programs for designs that promise an order instead of transactions |
//! | `recording` | a workload's run as a litmus program |
//! | `adversary` | seeded programs, machines and schedules |
//! | `faults` | what becomes of a design when its machine does not work as it should |
//! | `mutants` | which of a design's mutants the adversary kills: the measure of the laboratory |
//! | `enumeration` | all small programs, all their schedules, all power failures |
//! | `minimise` | the least program that still breaks the guarantee |
//! | `persistency` | litmus programs for persistency models of processors |
//! | `timeline` | the events that led to a violation, in rows |
//! | `campaign` | a run crashed everywhere, or schedules of the adversary on several host threads, and what is reported |

pub mod adversary;
pub mod campaign;
pub mod case;
pub mod checker;
pub mod enumeration;
pub mod explorer;
pub mod faults;
pub mod litmus;
pub mod minimise;
pub mod mutants;
mod ordered;
pub mod persistency;
mod recording;
pub mod timeline;

pub use graven_machine::sim::Crash;

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
