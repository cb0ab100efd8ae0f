//! Division of the log region into log entries and headers.
//!
//! In each bank: headers first, from a boundary of 128 B in the bank, then entries. Lines are adjacent in their bank
//! when no line of the bank has an address between theirs; with cache-line interleaving they are not adjacent in
//! address.

use super::LaleaConfig;
use graven_base::config::ConfigError;
use graven_base::memory::{Addr, LineAddr};
use graven_machine::design::DesignContext;
use graven_machine::request::Mapping;

/// Lines of a header.
const HEADER_LINES: u64 = 2;

/// A bank's part of the log region, in lines of the bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    channel: u32,
    bank: u32,
    /// First line of the first header.
    headers_at: u64,
    headers: u64,
    entries: u64,
}

/// The log regions of all banks, numbered from the first bank of the first channel on.
#[derive(Clone, Debug)]
pub struct Regions {
    mapping: Mapping,
    banks: Vec<Region>,
}

impl Regions {
    /// Those of a context.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] if some bank has no room for an entry and a header.
    pub fn new(context: &DesignContext) -> Result<Regions, ConfigError> {
        let regions = Regions::of(context);
        if regions.banks.iter().all(|bank| bank.headers > 0 && bank.entries > 0) {
            return Ok(regions);
        }
        let why = "the log region has no room for a log entry and a header in each bank".into();
        let keys = ["pm.log_region_bytes", "controller.channels", "pm.ranks", "pm.banks"];
        Err(context.config.inconsistent(&keys, why))
    }

    /// Those of a context that has them.
    pub fn of(context: &DesignContext) -> Regions {
        let mapping = Mapping::of(&context.config);
        let config = context.config.get::<LaleaConfig>();
        let channels = 0..mapping.channels as u32;
        let banks = channels.flat_map(|channel| {
            let of_bank = move |bank| Region::new(&mapping, config, context, channel, bank);
            (0..mapping.banks as u32).map(of_bank)
        });
        Regions { mapping, banks: banks.collect() }
    }

    /// Number of banks.
    pub fn banks(&self) -> usize {
        self.banks.len()
    }

    /// Number of the bank that a line is in.
    pub fn bank_of(&self, line: LineAddr) -> usize {
        let place = self.mapping.place(line);
        (u64::from(place.channel) * self.mapping.banks + u64::from(place.bank)) as usize
    }

    /// The log entries of a bank.
    pub fn entries(&self, bank: usize) -> impl Iterator<Item = LineAddr> {
        let region = self.banks[bank];
        let first = region.headers_at + region.headers * HEADER_LINES;
        (first..first + region.entries).map(move |number| self.line(&region, number))
    }

    /// The headers of a bank, each by its first line.
    pub fn headers(&self, bank: usize) -> impl Iterator<Item = LineAddr> {
        let region = self.banks[bank];
        let number = move |header| region.headers_at + header * HEADER_LINES;
        (0..region.headers).map(move |header| self.line(&region, number(header)))
    }

    /// Log entries of all banks.
    pub fn entries_max(&self) -> u64 {
        self.banks.iter().map(|region| region.entries).sum()
    }

    /// Headers of all banks.
    pub fn headers_max(&self) -> u64 {
        self.banks.iter().map(|region| region.headers).sum()
    }

    /// The second line of a header.
    pub fn second_line(&self, first: LineAddr) -> LineAddr {
        second_line(&self.mapping, first)
    }

    fn line(&self, region: &Region, number: u64) -> LineAddr {
        self.mapping.line_of_bank(region.channel, region.bank, number)
    }
}

/// The second line of a header of any bank.
pub fn second_line(mapping: &Mapping, first: LineAddr) -> LineAddr {
    let place = mapping.place(first);
    let number = mapping.number_in_bank(first) + 1;
    mapping.line_of_bank(place.channel, place.bank, number)
}

impl Region {
    fn new(
        mapping: &Mapping,
        config: &LaleaConfig,
        context: &DesignContext,
        channel: u32,
        bank: u32,
    ) -> Region {
        let from = |addr| first_line_from(mapping, channel, bank, addr);
        let headers_at = from(context.log_start).next_multiple_of(HEADER_LINES);
        let lines = from(context.log_end).saturating_sub(headers_at);
        let mut headers = u64::from(config.fh_entries);
        let mut entries = u64::from(config.fle_entries);
        let wanted = headers * HEADER_LINES + entries;
        if wanted > lines {
            headers = (lines * headers / wanted).max(1);
            entries = lines.saturating_sub(headers * HEADER_LINES);
        }
        Region { channel, bank, headers_at, headers, entries }
    }
}

/// The number in a bank of its first line at an address or after it.
fn first_line_from(mapping: &Mapping, channel: u32, bank: u32, addr: Addr) -> u64 {
    let (mut low, mut high) = (0, addr.line().0);
    while low < high {
        let middle = (low + high) / 2;
        if mapping.line_of_bank(channel, bank, middle).addr() < addr {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn context(settings: &[(&str, &str)], bytes: u64) -> DesignContext {
        let mut config = crate::testing::defaults();
        for (key, value) in settings {
            config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
        }
        DesignContext::new(config, 4, Addr(1 << 20), Addr((1 << 20) + bytes))
    }

    /// Claim `lalea-lalea-header`: "Two contiguous 64B data blocks of a LALEA header must be stored in the same bank"
    /// (§III-A), whatever the interleaving.
    #[test]
    fn blocks_lie_in_their_banks_and_share_no_line() {
        let mappings = [
            ("page", "1", "64"),
            ("page", "2", "64"),
            ("line", "1", "64"),
            ("line", "4", "0"),
            ("line", "2", "0"),
        ];
        for (interleave, channels, buffer) in mappings {
            let settings = [
                ("controller.interleave", interleave),
                ("controller.channels", channels),
                ("pm.buffer_lines", buffer),
            ];
            let context = context(&settings, 4 << 20);
            let regions = Regions::new(&context).expect("there is room");
            let mapping = Mapping::of(&context.config);
            let mut all = BTreeSet::new();
            for bank in 0..regions.banks() {
                for first in regions.headers(bank) {
                    let second = regions.second_line(first);
                    assert_eq!((regions.bank_of(first), regions.bank_of(second)), (bank, bank));
                    let number = mapping.number_in_bank(first);
                    assert_eq!(number % 2, 0, "a header is a block of 128 B of its bank");
                    assert_eq!(mapping.number_in_bank(second), number + 1);
                    assert!(all.insert(first) && all.insert(second));
                }
                for entry in regions.entries(bank) {
                    assert_eq!(regions.bank_of(entry), bank);
                    assert!(all.insert(entry));
                }
                assert_eq!(regions.headers(bank).count(), 256);
                assert_eq!(regions.entries(bank).count(), 1024);
            }
            let region = context.log_start.line()..context.log_end.line();
            assert!(all.iter().all(|line| region.contains(line)), "{interleave}");
        }
    }

    #[test]
    fn with_line_interleaving_a_header_is_contiguous_in_its_bank_and_not_in_address() {
        let line = [("controller.interleave", "line"), ("pm.buffer_lines", "0")];
        let regions = Regions::of(&context(&line, 4 << 20));
        let first = regions.headers(3).next().expect("there are some");
        assert_eq!(regions.second_line(first).0, first.0 + 8, "eight banks");
        let regions = Regions::of(&context(&[], 4 << 20));
        let first = regions.headers(3).next().expect("there are some");
        assert_eq!(regions.second_line(first).0, first.0 + 1);
    }

    #[test]
    fn a_small_log_region_has_fewer_blocks_in_the_same_proportion() {
        let regions = Regions::new(&context(&[], 192 << 10)).expect("there is room");
        // 384 lines per bank: a third of them for headers.
        let counts = (regions.headers(5).count(), regions.entries(5).count());
        assert_eq!(counts, (64, 256));
        let error = Regions::new(&context(&[], 16 << 10)).expect_err("four banks have no line");
        assert!(error.to_string().contains("a log entry and a header in each bank"), "{error}");
    }
}
