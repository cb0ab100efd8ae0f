//! Power failures: what survives, recovery from it, and whether the promise held.
//!
//! The judge ([`Judge`]) knows only what the program was told. Nothing in it depends on a design.

//!
//! | file | what |
//! |---|---|
//! | `medium` | the bytes that a power failure leaves, and what is written to them |
//! | `judge` | the trusted base: were the promises kept? |
//! | `points` | every crash point of a run, in all its forms |
//! | `exhaust` | a run that is crashed at all of them |
//! | `adversary` | seeded programs, machines and schedules |
//! | `shrink` | the least that still convicts |
//! | `timeline` | the story of a conviction |
//! | `record` | a workload's run as a litmus program |
//! | `campaign` | many runs, and what is reported of them |
//! | `reached` | which states worth reaching were reached |

mod adversary;
mod campaign;
mod exhaust;
mod judge;
mod medium;
mod points;
mod reached;
mod record;
mod shrink;
mod timeline;

pub use crate::sim::Crash;
pub use adversary::schedule;
pub use campaign::{
    AdversaryCampaign, Finding, Report, RunCampaign, form_text, promise_text, story_of,
};
pub use exhaust::{Exhaustion, Outcome};
pub use judge::{Judge, Verdict};
pub use medium::{Medium, Reader, Written};
pub use points::{Aftermath, Conviction, Expect, Laboratory, Tally, Thoroughness};
pub use reached::{Reached, STATES, State};
pub use shrink::{Shrunk, shrink};
pub use timeline::{Row, Timeline, tell};
