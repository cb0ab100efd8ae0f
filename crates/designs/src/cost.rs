//! Cost sheets of designs: each is a `cost.toml` in the design's folder, read with widths and sizes from its code.

use graven_base::config::Config;
use graven_base::cost::Item;
use graven_base::memory::WORDS_PER_LINE;
use graven_machine::quantities;

use crate::fields::{ADDR_BITS, THREAD_BITS, TX_BITS};

/// Fields that records of several designs have, by the names in the sheets.
const FIELDS: [(&str, u64); 9] = [
    ("tid", THREAD_BITS as u64),
    ("owner", THREAD_BITS as u64),
    ("txid", TX_BITS as u64),
    ("addr", ADDR_BITS as u64),
    ("address", ADDR_BITS as u64),
    ("home", ADDR_BITS as u64),
    ("log-address", graven_base::memory::WORD_BYTES),
    ("words", WORDS_PER_LINE as u64),
    ("words-mask", WORDS_PER_LINE as u64),
];

/// Reads a sheet, which may name `constants` of its design and the common fields.
pub fn items(sheet: &str, config: &Config, constants: &[(&str, u64)]) -> Vec<Item> {
    quantities::items(sheet, config, &[constants, &FIELDS].concat())
}
