//! What the bank information table costs (LALEA §III-A).

use super::LaleaConfig;

/// Bits of a row address, as the paper assumes.
const ROW_BITS: u32 = 16;
/// Bits of a column address, as the paper assumes.
const COLUMN_BITS: u32 = 10;
/// Bits of a pending-operation counter.
const COUNTER_BITS: u64 = 8;

/// Sizes of the table, in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSize {
    /// A bank's FIFO of free log entries.
    pub fle_fifo: u64,
    /// A bank's FIFO of free headers.
    pub fh_fifo: u64,
    /// All banks, with their counters.
    pub table: u64,
}

impl TableSize {
    /// Bits of the address of a block in its bank: "a row address and a partial column address".
    pub const fn address_bits(block_bytes: u64) -> u32 {
        ROW_BITS + COLUMN_BITS - block_bytes.ilog2()
    }

    /// The table of so many banks.
    pub fn new(config: &LaleaConfig, banks: u64) -> TableSize {
        let fifo = |blocks: u32, block_bytes| {
            u64::from(blocks) * u64::from(TableSize::address_bits(block_bytes))
        };
        let (fle_fifo, fh_fifo) = (fifo(config.fle_entries, 64), fifo(config.fh_entries, 128));
        TableSize { fle_fifo, fh_fifo, table: banks * (fle_fifo + fh_fifo + COUNTER_BITS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: f64 = 8192.0;

    /// Claim `lalea-entry-address-bits`.
    #[test]
    fn addresses_of_free_blocks_have_20_and_19_bits() {
        assert_eq!([64, 128].map(TableSize::address_bits), [20, 19]);
    }

    /// Claims `lalea-fle-fifo` and `lalea-fh-fifo`: the FIFO of entries has 1,024 × 20 bit = 2.5 KB. That of headers is
    /// printed with 2.375 KB, which is right for 1,024 addresses; the 256 of the text have 608 B.
    #[test]
    fn the_fifos_have_the_printed_sizes_if_both_hold_1024() {
        let text = TableSize::new(&LaleaConfig::default(), 8);
        assert_eq!(text.fle_fifo as f64 / KB, 2.5);
        assert_eq!(text.fh_fifo / 8, 608);
        let printed = TableSize::new(&LaleaConfig { fh_entries: 1024, ..Default::default() }, 8);
        assert_eq!(printed.fh_fifo as f64 / KB, 2.375);
    }

    /// Claim `lalea-bank-table-total`: 39.0 KB as printed, and 8 B of counters; 24.75 KB with the text's 256.
    #[test]
    fn the_table_of_eight_banks() {
        let without_counters = |config| (TableSize::new(&config, 8).table - 64) as f64 / KB;
        assert_eq!(without_counters(LaleaConfig { fh_entries: 1024, ..Default::default() }), 39.0);
        assert_eq!(without_counters(LaleaConfig::default()), 24.75);
    }
}
