//! The blocks of the log, as structures with a limited number of places: those of all banks together, since a request waits only when
//! no bank has a free one.

use super::Regions;
use graven_machine::design::{Capacity, Named, Room};

/// Log entries of all banks.
pub const ENTRIES_FULL: Capacity = Capacity {
    full: Named { name: "log-entries-exactly-full", summary: "no bank had a free log entry" },
    // At least one: designs without load-aware allocation have none, and are never full of them.
    room: |context| Room::of_lines(Regions::of(context).entries_max().max(1)),
};

/// Headers of all banks: a transaction takes one at least.
pub const HEADERS_FULL: Capacity = Capacity {
    full: Named { name: "log-headers-exactly-full", summary: "no bank had a free header" },
    room: |context| Room::of_transactions(Regions::of(context).headers_max().max(1)),
};
