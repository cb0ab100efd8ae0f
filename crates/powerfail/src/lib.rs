//! Power failures of captured programs: may these bytes be left, and does the program cope with them?
//!
//! A trace of a captured program has all that it stored, flushed, fenced and synchronised, in one order. Under the rules of a
//! processor's persistency model, or of the page cache, this says at each instant which stores may be missing after a power
//! failure. The explorer makes images of that, asks a [`judge::Judge`] whether the program copes, and shortens each
//! refusal to the store that is missing, the one that is left, and the repair that keeps them in order.
//!
//! | module | content |
//! |---|---|
//! | `story` | all that a program did, read from its trace |
//! | `frontier` | what may be missing at an instant: lines, sectors, lengths |
//! | `points` | the instants at which that changes |
//! | `candidate` | an image: an instant, and what is left |
//! | `choice` | which images are tried |
//! | `judge` | who says whether the program copes |
//! | `panel` | the judges side by side |
//! | `explore` | the exploration |
//! | `shrink` | the shortest story of a violation |
//! | `mend` | what would mend it, tried |
//! | `told` | the outcome, with source lines |
//!
//! There is no I/O here: judges that run commands are the caller's. Coarse: the order of visibility is that of the trace; threads
//! that nothing synchronises might have stored in another one.

pub mod candidate;
pub mod choice;
pub mod explore;
pub mod frontier;
pub mod judge;
pub mod mend;
pub mod panel;
pub mod points;
pub mod shrink;
pub mod story;
pub mod told;

#[cfg(test)]
mod tests;

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
