//! The adversary: seeded programs, machines and schedules that are legal and as unpleasant as can be.
//!
//! A schedule is a litmus program: threads that store to a few lines, share words under locks and lines without, repeat
//! values, store what is there already, fill buffers, and have lines evicted between any two steps and in the midst of
//! them; on a machine and with parameters of the design drawn from small values; with delays and orders in memory drawn,
//! too; and with lives that follow a power failure. So whatever is found is a text that replays it.
//!
//! Some schedules are drawn from nothing; others vary an earlier one that has reached something new ([`Adversary`]). A
//! seed's schedule depends on the seed, the design, its mutant and the bounds, and on nothing else.
//!
//! | file | what |
//! |---|---|
//! | `draws` | bounds of what is drawn, by name |
//! | `generator` | programs from nothing, and parts of them |
//! | `variation` | changes of a program that keep it legal |
//! | `situations` | what chance seldom brings about |
//! | `subject` | the design and the machine that programs are drawn for |
//! | `transactions` | where the transactions of a drawn thread are |
//! | `guidance` | families of schedules: which of them is varied, and what is new |

mod draws;
mod generator;
mod guidance;
mod situations;
mod subject;
mod transactions;
mod variation;

pub use draws::{DRAW_RANGES, DrawRange, Draws, DrawsError};
pub use generator::schedule;
pub use guidance::{Adversary, FAMILY_SCHEDULES};
