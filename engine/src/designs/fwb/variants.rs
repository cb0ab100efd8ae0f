//! FWB as MorLog compares with it (MorLog, ISCA 2020, §VI-A): parameter sets of `fwb`. All pack their logs, have
//! ends that wait until they are durable, and scan every three million cycles.

use super::ENTRY;
use crate::designs::Entry;

const PAPER: &str = "MorLog (ISCA'20) §VI-A";

/// What an adversary draws beside what makes them what they are.
const STRESS: &[(&str, &[&str])] = &[
    ("fwb.log_bytes", &["4 KB", "6 KB", "16 KB", "64 KB"]),
    ("fwb.log_buffer_entries", &["1", "4", "16"]),
    ("fwb.scan_interval_cycles", &["0", "200", "2000", "50000"]),
    ("fwb.transaction_id_bits", &["2", "8", "16"]),
    ("pm.cells", &["uniform", "tlc-rram"]),
];

/// With the existing coding.
pub const CRADE: Entry = Entry {
    name: "fwb-crade",
    summary: "fwb with packed records, and memory modules that code by CRADE",
    paper: PAPER,
    default: false,
    settings: &[
        ("fwb.log_packing", "true"),
        ("fwb.dirty_flags", "false"),
        ("fwb.log_buffer_entries", "16"),
        ("fwb.instant_commit", "false"),
        ("fwb.scan_interval_cycles", "3000000"),
        ("pm.codec", "crade"),
    ],
    stress: STRESS,
    ..ENTRY
};

/// With a log buffer as large as both of MorLog's together: larger than the way through the caches is long.
pub const UNSAFE: Entry = Entry {
    name: "fwb-unsafe",
    summary: "fwb-crade with a log buffer that data overtakes (unsafe: loses data)",
    paper: PAPER,
    default: false,
    settings: &[
        ("fwb.log_packing", "true"),
        ("fwb.dirty_flags", "false"),
        ("fwb.log_buffer_entries", "48"),
        ("fwb.allow_unsafe_buffer", "true"),
        ("fwb.instant_commit", "false"),
        ("fwb.scan_interval_cycles", "3000000"),
        ("pm.codec", "crade"),
    ],
    stress: &[
        ("fwb.log_bytes", &["16 KB", "64 KB"]),
        ("fwb.scan_interval_cycles", &["0", "200", "2000", "50000"]),
        ("fwb.transaction_id_bits", &["2", "8", "16"]),
        ("pm.cells", &["uniform", "tlc-rram"]),
    ],
    ..ENTRY
};

/// With selective log data encoding.
pub const SLDE: Entry = Entry {
    name: "fwb-slde",
    summary: "fwb-crade with a dirty flag per entry, and log data coded by SLDE",
    paper: PAPER,
    default: false,
    settings: &[
        ("fwb.log_packing", "true"),
        ("fwb.dirty_flags", "true"),
        ("fwb.log_buffer_entries", "16"),
        ("fwb.instant_commit", "false"),
        ("fwb.scan_interval_cycles", "3000000"),
        ("pm.codec", "slde"),
    ],
    stress: STRESS,
    ..ENTRY
};
