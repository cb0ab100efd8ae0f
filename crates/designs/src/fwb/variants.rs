//! Parameter sets of `fwb`: what FWB compares itself with (§VI), and FWB as MorLog compares with it.
//!
//! FWB's own are its hardware logging without its scans. `hwl` logs both values and has software execute a `clwb` for each
//! line that a transaction has written; `hw-rlog` and `hw-ulog` log one value, and nothing is forced home: "an extremely
//! optimized performance of hardware undo or redo logging", "with no persistence guarantee". So their ends wait for
//! nothing, and their records are as short as they can be.
//!
//! MorLog's (ISCA 2020, §VI-A) all pack their logs, have ends that wait until they are durable, and scan every three
//! million cycles.

use super::{INFO, PACKING, RECORDS, cost};
use graven_machine::design::DesignInfo;

const OWN_PAPER: &str = "FWB (HPCA'18) §VI";
const PAPER: &str = "MorLog (ISCA'20) §VI-A";

/// Hardware logging with write-backs by instructions.
pub const HWL: DesignInfo = DesignInfo {
    name: "hwl",
    summary: "fwb with a clwb instruction per line that a transaction has written, instead of scans",
    paper: OWN_PAPER,
    default: false,
    settings: &[("fwb.write_back", "clwb"), ("fwb.log_values", "both")],
    stress: &[
        ("fwb.log_bytes", &["2 KB", "3 KB", "4 KB", "6 KB", "16 KB", "64 KB"]),
        ("fwb.record_format+fwb.slot_bytes", RECORDS),
        ("fwb.truncation_percent", &["0", "10", "50", "90"]),
        ("fwb.log_buffer_entries", &["0", "1", "4", "15"]),
        ("fwb.instant_commit", &["false", "true"]),
        ("pm.log_packing+fwb.dirty_flags", PACKING),
        ("fwb.transaction_id_bits", &["2", "8", "16"]),
    ],
    ..INFO
};

/// Parameters that an adversary draws for records of one value.
const ONE_VALUE_STRESS: &[(&str, &[&str])] = &[
    ("fwb.log_bytes", &["2 KB", "4 KB", "16 KB", "64 KB"]),
    ("fwb.slot_bytes", &["16", "32", "64"]),
    ("fwb.log_buffer_entries", &["0", "1", "4", "15"]),
];

/// Hardware redo logging.
pub const HW_RLOG: DesignInfo = DesignInfo {
    name: "hw-rlog",
    summary: "redo logging by fwb's hardware, nothing forced home (unsafe: loses data)",
    paper: OWN_PAPER,
    default: false,
    settings: &[
        ("fwb.log_values", "redo"),
        ("fwb.write_back", "none"),
        ("fwb.slot_bytes", "16"),
        ("fwb.dirty_flags", "false"),
        ("fwb.instant_commit", "true"),
    ],
    stress: ONE_VALUE_STRESS,
    ..INFO
};

/// Hardware undo logging.
pub const HW_ULOG: DesignInfo = DesignInfo {
    name: "hw-ulog",
    summary: "undo logging by fwb's hardware, nothing forced home (unsafe: loses data)",
    paper: OWN_PAPER,
    default: false,
    settings: &[
        ("fwb.log_values", "undo"),
        ("fwb.write_back", "none"),
        ("fwb.slot_bytes", "16"),
        ("fwb.dirty_flags", "false"),
        ("fwb.instant_commit", "true"),
    ],
    stress: ONE_VALUE_STRESS,
    ..INFO
};

/// Parameters that an adversary draws for MorLog's variants, beside their own settings.
const STRESS: &[(&str, &[&str])] = &[
    ("fwb.log_bytes", &["4 KB", "6 KB", "16 KB", "64 KB"]),
    ("fwb.log_buffer_entries", &["1", "4", "16"]),
    ("fwb.scan_interval_cycles", &["0", "200", "2000", "50000"]),
    ("fwb.transaction_id_bits", &["2", "8", "16"]),
    ("pm.cells", &["uniform", "tlc-rram"]),
];

/// Parameters for programs of a few stores, where records are packed.
const SCALED_DOWN: &[(&str, &str)] = &[
    ("fwb.log_bytes", "1088 B"),
    ("fwb.log_buffer_entries", "1"),
    ("fwb.scan_interval_cycles", "2000"),
    ("fwb.transaction_id_bits", "2"),
];

/// With the existing coding.
pub const CRADE: DesignInfo = DesignInfo {
    name: "fwb-crade",
    summary: "fwb with packed records, and memory modules that code by CRADE",
    paper: PAPER,
    default: false,
    settings: &[
        ("fwb.dirty_flags", "false"),
        ("fwb.log_buffer_entries", "16"),
        ("fwb.instant_commit", "false"),
        ("fwb.scan_interval_cycles", "3000000"),
        ("pm.codec", "crade"),
    ],
    stress: STRESS,
    scaled_down: SCALED_DOWN,
    cost: cost::IN_MORLOG,
    ..INFO
};

/// With a log buffer as large as both of MorLog's together: larger than the way through the caches is long.
pub const UNSAFE: DesignInfo = DesignInfo {
    name: "fwb-unsafe",
    summary: "fwb-crade with a log buffer that data overtakes (unsafe: loses data)",
    paper: PAPER,
    default: false,
    settings: &[
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
    scaled_down: &[
        ("fwb.log_bytes", "1088 B"),
        ("fwb.scan_interval_cycles", "2000"),
        ("fwb.transaction_id_bits", "2"),
    ],
    cost: cost::IN_MORLOG,
    ..INFO
};

/// With selective log data encoding.
pub const SLDE: DesignInfo = DesignInfo {
    name: "fwb-slde",
    summary: "fwb-crade with a dirty flag per entry, and log data coded by SLDE",
    paper: PAPER,
    default: false,
    settings: &[
        ("fwb.dirty_flags", "true"),
        ("fwb.log_buffer_entries", "16"),
        ("fwb.instant_commit", "false"),
        ("fwb.scan_interval_cycles", "3000000"),
        ("pm.codec", "slde"),
    ],
    stress: STRESS,
    scaled_down: SCALED_DOWN,
    cost: cost::IN_MORLOG,
    ..INFO
};
