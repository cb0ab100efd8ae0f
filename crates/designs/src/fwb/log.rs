//! The circular log in either format: a slot for each record, or blocks that several records share
//! ([`crate::packed_log`]).
//!
//! A record begins with a *place*: a slot, or a group of blocks. Places are numbered from 0 over all passes, and
//! whatever the design keeps of the log (head, cuts, the first record of a transaction) is a place.

use std::ops::Range;

use super::record::LogValues;
use super::slots::{self, Layout, Slots};
use super::{FwbConfig, Rules};
use crate::packed_log::{Faults, Format, Record};
use crate::{force_write_back, packed_log};
use graven_base::config::Config;
use graven_base::memory::{Addr, LINE_BYTES};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::DesignContext;

/// The log of a context: a header line at the start of the log region, whose word 0 is the head,
/// then the places.
#[derive(Clone, Copy, Debug)]
pub enum Log {
    Slots(Slots),
    Packed(packed_log::Log),
}

/// Remains of a log.
#[derive(Debug)]
pub struct Remains {
    /// The records from the head to the first hole, each with its place.
    pub records: Vec<(u64, Record)>,
    /// The first place behind them.
    pub end: u64,
    /// Records and holes that were looked at.
    pub examined: u64,
}

impl Log {
    pub fn of(context: &DesignContext) -> Log {
        if !is_packed(&context.config) {
            return Log::Slots(Slots::of(context, lines(&context.config)));
        }
        let rules = Rules::of(context);
        let faults = Faults {
            torn_bit_stays: !rules.torn_bit_turns(),
            one_torn_bit: !rules.every_word_has_torn_bit(),
            not_cleared: !rules.log_is_cleared(),
            metadata_first: !rules.metadata_follows_data(),
            holes_are_skipped: !rules.holes_end_the_log(),
            both_differential: false,
        };
        let bytes = bytes(&context.config);
        Log::Packed(packed_log::Log::new(context.log_start, bytes, Format::Packed, faults))
    }

    /// Layout of its slots, if it has any.
    pub fn layout(&self) -> Option<Layout> {
        match self {
            Log::Slots(slots) => Some(slots.layout),
            Log::Packed(_) => None,
        }
    }

    /// Places of a record of `words` words of a line; of a commit record, of none.
    pub fn places_of(&self, words: usize) -> u64 {
        self.layout().map_or(1, |layout| layout.slots_of(words))
    }

    /// Number of its places.
    #[inline]
    pub fn places(&self) -> u64 {
        match self {
            Log::Slots(slots) => slots.count,
            Log::Packed(log) => log.groups,
        }
    }

    /// The same, in words.
    pub fn capacity(&self) -> String {
        match self {
            Log::Slots(slots) if slots.layout.is_by_line() => format!("{} slots", slots.count),
            Log::Slots(slots) => format!("{} records", slots.count),
            Log::Packed(log) => format!("{} groups of records", log.groups),
        }
    }

    /// Address of the head pointer: the number of the oldest place that matters.
    pub fn head(&self) -> Addr {
        match self {
            Log::Slots(slots) => slots.head(),
            Log::Packed(log) => log.head(),
        }
    }

    /// Makes an empty log of whatever the region holds (`log_create`, §IV-A).
    pub fn create(&self, image: &mut SurvivingImage) {
        match self {
            Log::Slots(slots) => slots.create(image),
            Log::Packed(log) => log.create(image),
        }
    }

    /// Reads the records that matter.
    pub fn scan(&self, image: &mut SurvivingImage) -> Remains {
        match self {
            Log::Slots(slots) => {
                let head = image.load(slots.head());
                let slots::Scan { records, end, examined } = slots.scan(image, head);
                Remains { records, end, examined }
            }
            Log::Packed(log) => {
                let scan = log.scan(image);
                let hole = u64::from(scan.blocks < log.groups);
                let examined = scan.records.len() as u64 + hole;
                Remains { records: scan.records, end: scan.end, examined }
            }
        }
    }

    /// Returns true if the log can begin with a place.
    pub fn can_begin(&self, image: &mut SurvivingImage, place: u64) -> bool {
        match self {
            Log::Slots(_) => true,
            Log::Packed(log) => log.can_begin(image, place),
        }
    }

    /// The head, and the bytes of the places from one to before another.
    pub fn bytes_of(&self, places: (u64, u64)) -> Vec<Range<Addr>> {
        match self {
            Log::Slots(log) => {
                packed_log::bytes_of(log.head(), (log.count, log.layout.bytes), places)
            }
            Log::Packed(log) => log.bytes_of(places),
        }
    }

    /// Leaves the log empty, with its head at the end of what was read.
    pub fn empty(&self, image: &mut SurvivingImage, end: u64) {
        if let Log::Packed(log) = self {
            log.seal(image, end);
        }
        image.store(self.head(), end);
    }
}

/// Returns true if the log is packed: if the machine's logs are. Records of one value lie in slots
/// on every machine.
pub fn is_packed(config: &Config) -> bool {
    Format::of(config) == Format::Packed && config.get::<FwbConfig>().log_values == LogValues::Both
}

/// Bytes of the log, its header line included: as configured, or what the scan interval asks for.
pub fn bytes(config: &Config) -> u64 {
    let fwb = config.get::<FwbConfig>();
    force_write_back::log_bytes(fwb.log_bytes, fwb.scan_interval_cycles, config)
}

/// Lines of the log, its header's included.
pub fn lines(config: &Config) -> u64 {
    bytes(config) / LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::config::Size;

    fn context(settings: &[(&str, &str)]) -> DesignContext {
        let mut config = crate::testing::machine("fwb");
        for (key, value) in settings {
            config.set(key, value).expect("a valid setting");
        }
        let (start, end) = (Addr(1 << 30), Addr((1 << 30) + Size::mb(4).0));
        DesignContext::new(config, 8, start, end)
    }

    /// `fwb-log-64k-4mb` (§III-F): 64 K places of 64 B, one of which the head takes.
    #[test]
    fn a_log_of_4_mb_has_64_k_places() {
        for settings in
            [&[("fwb.log_bytes", "4 MB")][..], &[("fwb.scan_interval_cycles", "0")], &[]]
        {
            let context = context(&[&[("fwb.slot_bytes", "64")], settings].concat());
            assert_eq!(bytes(&context.config), 4 << 20, "{settings:?}");
            assert_eq!(Log::of(&context).places() + 1, 65_536, "{settings:?}");
        }
        assert_eq!(Log::of(&context(&[])).places(), 2 * 65_535, "slots of 32 B");
    }

    /// `fwb-txid-256` (§IV-B), `fwb-tab1-txid-register` (Table I): 256 ids, 8 bits, a byte.
    #[test]
    fn ids_of_8_bits_are_256() {
        let ids = |bits: &str| {
            let context = context(&[("fwb.transaction_id_bits", bits)]);
            crate::fwb::Fwb::new(&context).id.max() + 1
        };
        assert_eq!((ids("8"), ids("16")), (256, 65_536));
    }

    /// `fwb-tab1-head-pointer`, `fwb-tab1-tail-pointer` (Table I): 8 B each. Numbers of records, over all passes;
    /// the tail is in the processor alone.
    #[test]
    fn head_and_tail_are_words() {
        let log = Log::of(&context(&[]));
        assert_eq!(size_of_val(&log.places()), 8);
        let mut image = SurvivingImage::default();
        image.store(log.head(), u64::MAX);
        assert_eq!(image.load(log.head()), u64::MAX, "the head has a word of the image");
    }
}
