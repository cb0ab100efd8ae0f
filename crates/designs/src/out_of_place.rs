//! Counters and statistics of designs with out-of-place data, which collect it, and keep a mapping: HOOP, LSM and OSP.

use graven_base::counters;
use graven_base::stats::{Derived, derived, ratio};

counters! {
    /// Counters of collections of out-of-place data.
    pub struct Counters {
        /// Collections of a design's out-of-place data.
        gc_passes: Count, "passes";
        /// Collections that began because something had run full.
        gc_on_demand: Count, "passes";
        /// Words that committed transactions had written and collections found.
        gc_words_found: Count, "words";
        /// Words found that collections wrote to their homes; the others had been overwritten by later ones.
        gc_words_migrated: Count, "words";
        /// Cycles threads waited because a table or region was full until a collection had made room.
        gc_stall_cycles: Count, "cycles";
        /// Largest number of entries in a design's mapping table.
        mapping_entries_max: Gauge, "entries";
    }
}

/// Statistics that are derived from the counters of collections.
pub const DATA_REDUCTION: Derived = Derived {
    declaration: derived(
        "gc_data_reduction",
        "",
        "Share of the words found by collections that were not written home (HOOP Table IV).",
    ),
    of: |c| {
        let found = c["gc_words_found"];
        ratio(found.saturating_sub(c["gc_words_migrated"]), found)
    },
};

/// For designs that read a line's home and another place in parallel.
pub const FILLS_PARALLEL_SHARE: Derived = Derived {
    declaration: derived(
        "fills_parallel_share",
        "",
        "Share of the fills that read a line's home and another place in parallel.",
    ),
    of: |c| c.ratio("fills_parallel", "fills"),
};
