//! All small programs, and all that may happen to them: what the laboratory knows of a design without any chance.
//!
//! | file | what |
//! |---|---|
//! | `bound` | how large programs may be, and how far their runs depart from the usual one |
//! | `programs` | the programs within a bound, up to symmetry |
//! | `schedules` | the runs of a program: every set of departures that is small enough |
//!
//! A statement that comes of it has three parts, each bounded by [`Bound`]: *programs* (threads, transactions, stores, words
//! and lines), *schedules* (evictions, writes that are late, threads that wait, other orders in memory: departures from the
//! usual run), and *failures*, which are bounded by nothing but
//! [what a run has](crate::explorer::Known): every crash point, any part of each write, any legal set of writes under way,
//! recovery cut off anywhere to any depth, and a second life after each state that is new.

mod bound;
mod programs;
mod schedules;

pub use bound::{Bound, BoundError, LifeBound};
pub use programs::Program;
pub use schedules::{Checked, Enumeration, EnumerationError, Scale};
