//! Every crash point of a run, in all its modes.
//!
//! | file | what |
//! |---|---|
//! | `points` | what happens at a crash point |
//! | `run` | a run that is crashed at all of them |
//! | `reached` | which states worth reaching were reached |

mod coverage;
mod points;
mod run;

pub use coverage::{Coverage, STATES, State};
pub use points::{
    CrashExplorer, Expect, LivesAfter, NextLife, PostCrashTrace, Tally, Thoroughness, Violation,
};
pub use run::{CrashRun, Outcome};
