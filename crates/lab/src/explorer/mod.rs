//! Every crash point of a run, in all its forms.
//!
//! | file | what |
//! |---|---|
//! | `points` | what happens at a crash point |
//! | `run` | a run that is crashed at all of them |
//! | `reached` | which states worth reaching were reached |

mod points;
mod reached;
mod run;

pub use points::{Aftermath, Conviction, Expect, Laboratory, Tally, Thoroughness};
pub use reached::{Reached, STATES, State};
pub use run::{Exhaustion, Outcome};
