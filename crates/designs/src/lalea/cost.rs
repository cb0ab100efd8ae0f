//! What load-aware allocation costs (LALEA §III-A): the bank information table, and a register for each thread.

use super::bank_table::COUNTER_BITS;
use super::links::ENTRIES;
use graven_base::config::Config;
use graven_base::cost::{Formula, Function, Item, LALEA, Place, Role, Unit};
use graven_base::memory::WORD_BYTES;
use graven_machine::quantities::{bits, line, parameter, pm_banks, thread_registers};

/// Bits of a row address, as the paper assumes.
const ROW_BITS: u32 = 16;
/// Bits of a column address, as the paper assumes.
const COLUMN_BITS: u32 = 10;

/// Its items, for designs that compose with it.
pub fn items(config: &Config) -> Vec<Item> {
    let (entry, fle) = fifo(config, &ENTRY_FIFO);
    let (header, fh) = fifo(config, &HEADER_FIFO);
    let counters = Item::new(
        "pending-counter",
        "pending operations of a bank",
        Place::Controller,
        bits("counter", COUNTER_BITS),
        Unit::Bits,
    )
    .per("bank", pm_banks(config))
    .printed(LALEA, "§III-A", "8", "lalea-cfg-op-counter");
    let of_bank = fle.quantity() + fh.quantity() + counters.quantity() / 8 / 1024;
    let table = Item::new(
        "bank-table",
        "the bank information table: counters and FIFOs of all banks",
        Place::Controller,
        pm_banks(config) * of_bank,
        Unit::Kilobytes,
    )
    .role(Role::Derived)
    .claim("lalea-bank-table-total")
    .note("8 banks with the printed sizes of the FIFOs have 39 KB, and 8 B of counters.");
    let lr = thread_registers("lr", "non-volatile: the log record register", config).printed(
        LALEA,
        "§III-A",
        "8",
        "lalea-cfg-lr-register",
    );
    let word = || Formula::constant("word-bytes", WORD_BYTES);
    let half = || Formula::constant("entries", ENTRIES as u64) * word() + word();
    let size = Item::new(
        "lalea-header",
        "a header: addresses and valid_cnt; addresses of blocks and next_ptr",
        Place::Pm,
        half() * 2,
        Unit::Bytes,
    )
    .role(Role::Derived)
    .printed(LALEA, "§III-A", "128", "lalea-lalea-header");
    let blocks = parameter(config, "lalea.fle_entries") * line()
        + parameter(config, "lalea.fh_entries") * size.quantity();
    let what = "log entries and headers that the FIFOs name";
    let blocks = Item::new("log-blocks", what, Place::Pm, blocks / 1024, Unit::Kilobytes)
        .per("bank", pm_banks(config));
    vec![entry, fle, header, fh, counters, table, lr, size, blocks]
}

struct Fifo {
    names: [&'static str; 2],
    whats: [&'static str; 2],
    depth: &'static str,
    /// Lines of a block.
    lines: u64,
    printed: [&'static str; 2],
    claim: &'static str,
    note: &'static str,
}

const ENTRY_FIFO: Fifo = Fifo {
    names: ["entry-address", "fle-fifo"],
    whats: ["a free log entry's address in its bank", "FIFO of free log entries"],
    depth: "lalea.fle_entries",
    lines: 1,
    printed: ["20", "2.5"],
    claim: "lalea-fle-fifo",
    note: "",
};

const HEADER_FIFO: Fifo = Fifo {
    names: ["header-address", "fh-fifo"],
    whats: ["a free header's address in its bank", "FIFO of free headers"],
    depth: "lalea.fh_entries",
    lines: 2,
    printed: ["19", "2.375"],
    claim: "lalea-fh-fifo",
    note: "The text has 256 addresses, which are 0.594 KB; 2.375 KB are 1,024 (lalea.fh_entries=1024).",
};

/// An address of a bank's free block, and the FIFO of them.
fn fifo(config: &Config, fifo: &Fifo) -> (Item, Item) {
    let block = if fifo.lines == 1 { line() } else { line() * fifo.lines };
    let offset = (block - 1).call(Function::BitsFor);
    let width = bits("row", ROW_BITS) + bits("column", COLUMN_BITS) - offset;
    let address = Item::new(fifo.names[0], fifo.whats[0], Place::Controller, width, Unit::Bits)
        .role(Role::Derived)
        .printed(LALEA, "§III-A", fifo.printed[0], "lalea-entry-address-bits")
        .note(
            "A row of 16 bits and a column of 10, in bytes: 64 MB of a bank, as the paper assumes.",
        );
    let size = parameter(config, fifo.depth) * address.quantity() / 8 / 1024;
    let item = Item::new(fifo.names[1], fifo.whats[1], Place::Controller, size, Unit::Kilobytes)
        .per("bank", pm_banks(config))
        .printed(LALEA, "§III-A", fifo.printed[1], fifo.claim)
        .note(fifo.note);
    (address, item)
}
