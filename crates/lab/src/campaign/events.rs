//! The events that a front end gets while chunks run.

use serde::Serialize;

use super::totals::AdversaryReport;

/// The progress of a campaign.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Schedules that need no more work, over all designs.
    pub schedules_done: u64,
    /// Schedules of chunks that run.
    pub schedules_partial: u64,
    /// Schedules in all.
    pub schedules: u64,
    /// Power failures checked in this process, also those of chunks that were not needed.
    pub failures_checked: u64,
    /// Chunks that run and have a violation whose program they minimise.
    pub minimising: usize,
    /// Designs with a chunk that runs.
    pub running: Vec<DesignProgress>,
}

/// The progress of one design.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DesignProgress {
    /// The design.
    pub design: String,
    /// Schedules of the design that are done, also those of chunks that run.
    pub schedules_done: u64,
    /// Schedules of the design in all.
    pub schedules: u64,
}

/// A violation as it is found. The report has the first ones by their seeds, of chunks that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The design.
    pub design: String,
    /// The violated guarantee, with the seed and the place.
    pub what: String,
}

/// A chunk that panicked: an invariant of the engine is broken. Of its design, the chunks before it count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The design.
    pub design: String,
    /// The message.
    pub message: String,
}

/// The events since the last call, and the present state.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Events {
    /// The progress.
    pub progress: Progress,
    /// Violations that were found, in that order, before their programs are minimised.
    pub found: Vec<Found>,
    /// Reports that have grown, as they are now.
    pub grown: Vec<AdversaryReport>,
    /// All failures so far, one of a design at most. Until the campaign has ended, it may give way to an earlier chunk's.
    pub failures: Vec<Failure>,
    /// Nothing more will happen.
    pub ended: bool,
}
