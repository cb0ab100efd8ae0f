//! Entries of the buffers before a packed log (MorLog §III-B, Fig. 7; §IV-C), as FWB and MorLog have them there. The torn
//! bit is the image's alone.

use super::record::TYPE_BITS;
use crate::fields::{ADDR_BITS, THREAD_BITS, TX_BITS};
use graven_base::codecs::slde::DIRTY_FLAG_BITS;
use graven_base::cost::{Formula, Item, Place, Unit};
use graven_machine::quantities::{bits, parameter, word};

/// Bits of an entry with so many words.
pub fn entry_bits(words: u64) -> Formula {
    let head = bits("type", TYPE_BITS)
        + bits("tid", THREAD_BITS)
        + bits("txid", TX_BITS)
        + bits("addr", ADDR_BITS);
    if words == 1 { head + word() } else { head + word() * words }
}

/// Dirty flags of the entries of a buffer, whose size is a parameter (§IV-C: a bit for each byte of a word).
pub fn dirty_flags(
    name: &'static str,
    config: &graven_base::config::Config,
    entries: &str,
) -> Item {
    let formula = parameter(config, entries) * bits("dirty-flag", DIRTY_FLAG_BITS) / 8;
    let what = "SRAM: a dirty flag for each entry, of a bit for each byte";
    Item::new(name, what, Place::Controller, formula, Unit::Bytes)
}
