//! Persistency models of processors: can these bytes be the ones that recovery finds if power fails at this instant?
//!
//! A program says with flushes and fences which of its stores must survive. A processor promises more or less of that: the order
//! in which stores become *visible* to other threads is one thing, the order in which they become *durable* another. A
//! [`model::Model`] has the rules of one platform as data, each with its sentence and its source.
//!
//! The predicate has two forms, with the same rules of durability ([`ranges`]):
//!
//! - **One order, given** ([`history`]): events of a real program arrive one by one. At every instant each line may hold any
//!   version from `at_least` to `at_most`, and lines are independent of each other. This takes time linear in the history.
//! - **All orders** ([`orders`]): the visibility orders of a litmus program of a few steps, each given to the same rules.
//!
//! An independent enumerator ([`enumerator`]) executes the same programs on a machine with store buffers and a persist queue for
//! each line. [`agreement`] compares the two on all small programs.
//!
//! | module | content |
//! |---|---|
//! | `cut` | promises of order: strict, epoch, strand, transactions, snapshots, and their judge |
//! | `happening` | events of a program, as a judge is told of them |
//! | `promise` | the types `Promise`, `Judge`, `Broken`: a guarantee, and a decision about an image |
//! | `model` | the models as data |
//! | `rules` | preserved program order: which steps of a thread act in their order |
//! | `ranges` | what makes a line's versions durable: the rules of flushes and fences |
//! | `history` | the judge of one given order, with contents |
//! | `tabulated` | the rules of durability as a table, which many programs share |
//! | `program` | small programs as data |
//! | `prefixes` | programs that share their first steps, explored together |
//! | `orders` | all visibility orders of a small program |
//! | `enumerator` | the independent machine of buffers and queues |
//! | `agreement` | all small programs, judged by both |
//!
//! Coarse: caches of one coherence domain; no self-modifying code, no memory types but write-back, no failing media.
//! The atomic unit is the aligned word of 8 bytes. Nothing here depends on the simulated machine.

pub mod agreement;
pub mod cut;
pub mod enumerator;
pub mod happening;
pub mod history;
pub mod model;
pub mod orders;
mod prefixes;
pub mod program;
pub mod promise;
pub mod ranges;
pub mod rules;
mod tabulated;

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
