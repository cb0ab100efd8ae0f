//! Every crash point of a run, in all its modes.
//!
//! | file | what |
//! |---|---|
//! | `assertion` | assertions that fail, as violations |
//! | `complete` | every power failure there is, and none twice |
//! | `points` | what happens at a crash point |
//! | `run` | a run that is crashed at all of them |
//! | `sharing` | work that recoveries of neighbouring failures share |
//! | `coverage` | which states worth reaching were reached |

mod assertion;
mod complete;
mod coverage;
mod points;
mod run;
mod sharing;

pub(crate) use assertion::caught;
pub use assertion::is_assertion;
pub use complete::Known;
pub(crate) use coverage::add_counts;
pub use coverage::{Coverage, STATES, State};
pub use points::{
    CrashExplorer, Expect, LivesAfter, NextLife, PostCrashTrace, Reports, Sharing, Tally,
    Thoroughness, Violation,
};
pub use run::{CrashRun, Deadlock, Outcome};
pub use sharing::Sharers;
