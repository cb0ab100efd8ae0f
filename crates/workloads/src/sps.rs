//! `sps`: random swaps of the entries of a vector that begin alike.
//!
//! Models SPS of FWB (Table III: "random swaps between entries in a 1 GB vector of values") and
//! MorLog (Table IV; 64 B, and 4 KB as the large data set), of which MorLog says that "the array
//! entries are initialized with the same value" (§VI-B): almost all that a swap stores is clean. If
//! the entries were quite the same, no check could see a torn swap, so one word of each is its key.
//!
//! It is [`array`](super::array), which has the table of the bytes, but for that: word 0 of an entry
//! is its key plus 1, and all others are the same in every entry. A swap of 64 B entries issues 16
//! loads and 16 stores, of which 2 change a word; one of 4 KB entries 1,024 of each, of which 2
//! change a word.

use super::array;
use graven_base::config::ConfigError;
use graven_machine::workload::{Request, Workload};

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    array::build_as("sps", 1, request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{populated, request, run};
    use graven_base::config::Size;
    use graven_machine::workload::WorkloadConfig;

    crate::testing::contract!(super::build);

    #[test]
    fn a_swap_of_large_entries_changes_one_word_of_each() {
        let config = WorkloadConfig { element_bytes: Size::kb(4), ..WorkloadConfig::default() };
        let request = request(config, 2, 20);
        let (workload, image) = populated(build, &request);
        let (_, counts) = run(workload.as_ref(), &request, image, |_, _, _| {});
        assert_eq!((counts.loads, counts.stores, counts.changes), (20 * 1024, 20 * 1024, 20 * 2));
    }
}
