//! What Proteus costs. Log registers have 64 B; other widths are those of the fields that this crate keeps.

use graven::config::Config;
use graven::cost::{Costs, Formula, Item, Place, Supply, Unit};
use graven::memory::WORD_BYTES;
use graven::quantities::{bits, hardware_threads, parameter, thread_areas};

use super::log_area::{BLOCK_BYTES, BLOCK_WORDS, INDEX_BITS, SLOT_BYTES};

pub(super) const COSTS: Costs = Costs::on("silo", items).remarks(&[
    "No size of a table or queue was found in public text on the paper: these are this crate's parameters.",
    "A mask of the words of a block is part of the repair; blocks that are logged whole need none.",
]);

/// Bits of an address in PM.
const ADDR_BITS: u32 = 48;
/// Bits of a transaction's number, as entries in PM have it.
const NUMBER_BITS: u32 = 62;
/// Bits of the number of a thread.
const THREAD_BITS: u32 = 8;

fn address() -> Formula {
    bits("addr", ADDR_BITS)
}

fn block_address() -> Formula {
    bits("block-addr", ADDR_BITS - BLOCK_BYTES.trailing_zeros())
}

fn words() -> Formula {
    bits("words-mask", BLOCK_WORDS as u32)
}

fn index() -> Formula {
    bits("index", INDEX_BITS)
}

fn block() -> Formula {
    Formula::constant("block", 8 * BLOCK_BYTES)
}

fn items(config: &Config) -> Vec<Item> {
    let threads = || hardware_threads(config);
    let count = |key| parameter(config, key);
    let registers = Item::new(
        "log-registers",
        "a block, its address, and its address in the log",
        Place::Core,
        count("proteus.log_registers") * Formula::constant("register", SLOT_BYTES),
        Unit::Bytes,
    )
    .per("thread", threads());
    let queue = Item::new(
        "log-queue",
        "log-flushes: a block with its address, words and address in the log",
        Place::Core,
        count("proteus.logq_entries") * (block() + block_address() + words() + index() + address()),
        Unit::Bits,
    )
    .per("thread", threads());
    let table = Item::new(
        "log-lookup-table",
        "addresses of blocks, and which words are logged",
        Place::Core,
        count("proteus.llt_entries") * (block_address() + words()),
        Unit::Bits,
    )
    .per("thread", threads());
    let target = Item::new(
        "log-target-registers",
        "start, end and next slot of the log area",
        Place::Core,
        Formula::from(3) * Formula::constant("register", WORD_BYTES),
        Unit::Bytes,
    )
    .per("thread", threads());
    let transaction = bits("number", NUMBER_BITS) + bits("end", 1) + bits("thread", THREAD_BITS);
    let pending = Item::new(
        "log-pending-queue",
        "log entries with their addresses in the log; durable",
        Place::Controller,
        count("proteus.lpq_entries")
            * (block() + block_address() + words() + index() + address() + transaction),
        Unit::Bits,
    );
    let slot = Formula::constant("slot", SLOT_BYTES);
    let energy = Item::new(
        "flush-energy",
        "to move the entries of the log pending queue to PM when power fails",
        Place::Battery,
        count("proteus.lpq_entries") * slot * Supply::Controller.energy_per_byte() / 1000,
        Unit::Of("µJ"),
    )
    .role(graven::cost::Role::Derived);
    vec![
        registers,
        queue,
        table,
        target,
        pending,
        energy,
        thread_areas(config, "proteus.log_bytes_per_thread"),
    ]
}
