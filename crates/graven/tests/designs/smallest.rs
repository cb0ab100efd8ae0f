//! The smallest design, in `examples/smallest.rs`: it keeps its guarantee at every crash point.
//!
//! Bug class: the first design that a reader sees loses data, or no longer compiles.

#[path = "../../../../examples/smallest.rs"]
mod design;

use crate::common::CELLS;
use crate::common::campaign::Campaign;
use crate::common::shared_lines::SHARED_LINES;
use graven::design::MutantSet;

#[test]
fn it_keeps_its_guarantee_where_caches_hold_next_to_nothing() {
    let settings = &[
        ("l1.bytes", "128 B"),
        ("l1.ways", "1"),
        ("l2.bytes", "256 B"),
        ("llc.bytes", "1 KB"),
        ("llc.ways", "2"),
    ];
    for workload in [&SHARED_LINES, &CELLS] {
        let campaign =
            Campaign { workload, settings, transactions: 56, first_transaction: 0, runs: 4 };
        let found = campaign.examine(&design::INFO, MutantSet::NONE);
        assert_eq!(found.what(), None, "{}", workload.name);
        assert!(found.tally.recoveries() > 5000, "{:?}", found.tally);
    }
}
