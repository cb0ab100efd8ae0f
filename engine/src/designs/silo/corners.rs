//! States worth reaching.

use crate::designs::Named;

#[derive(Clone, Copy, Debug)]
pub enum Corner {
    Overflow,
    MergeAfterFlush,
    MergeUnderLine,
    LineSettlesCommitted,
    TwinDropped,
    WaitsForCommitted,
    AreaWrapped,
    AgainAfterOverflow,
}

pub const CORNERS: &[Named] = &[
    Named {
        name: "overflow",
        summary: "undo records of an open transaction left for the log area",
    },
    Named {
        name: "merge-after-flush",
        summary: "a store was merged into an entry with the flush-bit set",
    },
    Named {
        name: "merge-under-line",
        summary: "a store was merged while its line was on its way home",
    },
    Named {
        name: "line-settles-committed",
        summary: "an evicted line settled an entry of a committed transaction",
    },
    Named { name: "twin-dropped", summary: "a new entry dropped a committed one of the same word" },
    Named {
        name: "waits-for-committed",
        summary: "a store waited for committed entries to go home",
    },
    Named { name: "area-wrapped", summary: "the log area came round" },
    Named {
        name: "again-after-overflow",
        summary: "a word was logged again by the transaction that had overflowed it",
    },
];
