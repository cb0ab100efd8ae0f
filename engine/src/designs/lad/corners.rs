//! States worth reaching.

use crate::designs::Named;

/// States worth reaching, in the order of [`CORNERS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Corner {
    Overflow,
    OverflowWhileCommitting,
    SharedLineGathered,
    SharedLineLogged,
    LineCommittedInPart,
    PushInVain,
    OlderVersionDrains,
    WaitsForPlace,
    CommitWhileLogging,
    JoinsOlderContent,
    HomeAgain,
    PlacesGivenUp,
    LogWrapped,
}

pub(super) const CORNERS: &[Named] = &[
    Named { name: "overflow", summary: "a line was logged because it found no place" },
    Named {
        name: "overflow-while-committing",
        summary: "the pool overflowed while a commit message was on its way",
    },
    Named {
        name: "shared-line-gathered",
        summary: "a line of the pool had words of two open transactions",
    },
    Named {
        name: "shared-line-logged",
        summary: "words of two open transactions in one line were logged",
    },
    Named {
        name: "line-committed-in-part",
        summary: "words of another open transaction stayed when a line was committed",
    },
    Named { name: "push-in-vain", summary: "a line was stored to again after it had been pushed" },
    Named {
        name: "older-version-drains",
        summary: "a line found its place while an older version of it drained",
    },
    Named { name: "waits-for-place", summary: "a line waited for a place that was to be free" },
    Named {
        name: "commit-while-logging",
        summary: "a transaction committed while a line was being logged",
    },
    Named {
        name: "joins-older-content",
        summary: "a line left the caches while its older content was underway",
    },
    Named { name: "home-again", summary: "a line went home whose words had been logged before" },
    Named { name: "places-given-up", summary: "a transaction gave up its places to be logged" },
    Named { name: "log-wrapped", summary: "an undo record took the slot of an older one" },
];
