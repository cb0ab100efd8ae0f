//! Threads that store to the same line at the same time.
//!
//! Bug class: cores take a line from each other before any of them has stored to it, for ever.

use crate::common::{programs, simulation, test_workload, tiny_config};
use graven::program::{Memory, Ptr, spawn};
use graven::workload::WorkloadInfo;

/// Every thread stores to a word of its own in one line, over and over, and computes nothing.
static ONE_LINE: WorkloadInfo =
    test_workload("one line", "all threads store to words of one line", |request| {
        programs(
            request,
            |request, image| _ = image.store(request.start, 0),
            |request, thread| {
                let own = Ptr::known(request.start).word(thread.into());
                spawn(move |memory| {
                    memory.tx_begin();
                    (1..=STORES).for_each(|value| memory.store(own, value));
                    memory.tx_end();
                })
            },
        )
    });

const STORES: u64 = 200;

#[test]
fn every_thread_gets_the_line_in_the_end() {
    for settings in [&[][..], &[("core.count", "2"), ("core.threads_per_core", "2")]] {
        let mut simulation = simulation(&tiny_config(settings), "ideal", &ONE_LINE, 4, 4, 0);
        let finished = simulation.advance(1_000_000).unwrap_or_else(|e| panic!("{e}"));
        assert!(finished, "{settings:?}: {} stores", simulation.stats().counters.stores);
        assert_eq!(simulation.stats().counters.transactional_stores, 4 * STORES);
    }
}
