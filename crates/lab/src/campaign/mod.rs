//! Campaigns: a run that is crashed everywhere, or schedules of the adversary on several designs and host threads, with
//! what is to be reported of them.
//!
//! | file | what |
//! |---|---|
//! | `report` | what a run, or schedules one after the other, came to |
//! | `run` | a run that is crashed everywhere |
//! | `lives` | what the machine is used for after the recoveries of a run |
//! | `schedules` | schedules of the adversary one after the other: a chunk |
//! | `request` | what is asked of the adversary, and its chunks |
//! | `totals` | what is known of a design: plain data that is added up, written and read |
//! | `chunks` | a design's chunks, added up in order |
//! | `state` | the document from which a campaign continues |
//! | `events` | what a front end is told while chunks run |
//! | `scheduler` | chunks on several host threads |
//!
//! A front end hands over an [`AdversaryRequest`], has one thread [run](AdversaryCampaign::run) the campaign, and
//! [waits](AdversaryCampaign::wait) for events on another.

mod chunks;
mod events;
mod lives;
mod report;
mod request;
mod run;
mod scheduler;
mod schedules;
mod state;
mod totals;

pub use events::{DesignProgress, Events, Failure, Found, Progress};
pub use report::{
    Finding, Report, ViolationRecord, failure_text, guarantee_text, replayed_timeline,
};
pub use request::{AdversaryRequest, CHUNK_SCHEDULES, Chunk, RequestError};
pub use run::RunCampaign;
pub use scheduler::{AdversaryCampaign, CampaignError};
pub use schedules::{HOST_BYTES, Schedules};
pub use state::{STATE_FORMAT, StateError};
pub use totals::{AdversaryReport, Settings};
