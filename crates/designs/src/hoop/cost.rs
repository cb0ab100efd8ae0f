//! What HOOP costs (§III-C, §III-H): the tables and buffers of the controller, a bit for each line of the caches; and what
//! the fields of its records reach (§III-D).

use super::HoopConfig;
use super::eviction_buffer::EVICTED_LINE_BYTES;
use super::layout::{
    BLOCK_NUMBER_BITS, COUNT_BITS, FIRST_BITS, FLAG_BITS, Geometry, HOME_BITS, NEXT_BITS,
    NEXT_SLICE_BITS, SLICE_BYTES, SLICE_TX_BITS, SLICE_WORDS, STATE_BITS,
};
use super::mapping::MAPPING_ENTRY_BYTES;
use graven_base::config::Config;
use graven_base::cost::{Costs, Formula, Function, HOOP, Item, Place, Role, Unit, whole};
use graven_base::memory::{Addr, WORD_BYTES};
use graven_machine::config::PmConfig;
use graven_machine::quantities::{bits, cache_lines, hardware_threads, line, parameter, word};

pub(super) const COSTS: Costs = Costs::on("hoop", items).remarks(&[
    "§III-H names the mapping table, the OOP data buffers, the eviction buffer and the persistent bits. What else the text \
     needs has a note.",
]);

const NOT_LISTED: &str = "Needed by the text, and not in §III-H's list.";

fn items(config: &Config) -> Vec<Item> {
    let mut all = tables(config);
    all.extend(small(config));
    all.extend(slice());
    all.extend(reach(config));
    all.push(area(config));
    all
}

fn kilobytes(config: &Config, key: &str) -> Formula {
    parameter(config, key) / 1024
}

fn tables(config: &Config) -> Vec<Item> {
    let megabyte = 1 << 20;
    let item = |name, what, formula, unit| Item::new(name, what, Place::Controller, formula, unit);
    let mapping = parameter(config, "hoop.mapping_table_bytes");
    let slices = parameter(config, "hoop.oop_buffer_bytes") / bytes_of_slice();
    let evicted = Formula::constant("evicted-line", EVICTED_LINE_BYTES);
    let entries = mapping.clone() / Formula::constant("mapping-entry", MAPPING_ENTRY_BYTES);
    let lines = parameter(config, "hoop.eviction_buffer_bytes") / evicted;
    vec![
        item("mapping-table", "of all controllers", mapping / megabyte, Unit::Megabytes).printed(
            HOOP,
            "§III-H",
            "2",
            "hoop-cfg-mapping-table",
        ),
        item("mapping-entries", "entries of the mapping table", entries, Unit::Of("entries"))
            .role(Role::Derived),
        item(
            "mapping-table-by-cores",
            "the mapping table by its rule, 256 KB for each core (§III-C)",
            parameter(config, "core.count") * Formula::named("mapping-per-core", 256.0) / 1024,
            Unit::Megabytes,
        )
        .role(Role::Derived)
        .printed(HOOP, "§III-C", "2", "hoop-arith-mapping-table-cores")
        .note("2 MB are those of 8 cores, as many as threads are run; Table II has 16."),
        item(
            "oop-data-buffer",
            "slices that are being filled",
            kilobytes(config, "hoop.oop_buffer_bytes"),
            Unit::Kilobytes,
        )
        .per("thread", hardware_threads(config))
        .printed(HOOP, "§III-H", "1", "hoop-cfg-oop-buffer"),
        item("oop-buffer-slices", "slices of an OOP data buffer", slices, Unit::Of("slices"))
            .role(Role::Derived)
            .claim("hoop-arith-oop-buffer-slices"),
        item(
            "eviction-buffer",
            "lines that collections have brought home, and their addresses; of all controllers",
            kilobytes(config, "hoop.eviction_buffer_bytes"),
            Unit::Kilobytes,
        )
        .printed(HOOP, "§III-H", "128", "hoop-cfg-eviction-buffer"),
        item(
            "eviction-buffer-lines",
            "lines of the eviction buffer",
            lines.call(Function::Floor),
            Unit::Of("lines"),
        )
        .role(Role::Derived),
    ]
}

fn small(config: &Config) -> Vec<Item> {
    let words = block_slices(config) * Formula::constant("words", SLICE_WORDS as u64);
    let addresses = Item::new(
        "block-addresses",
        "words that a collection may find in a block",
        Place::Pm,
        words,
        Unit::Of("addresses"),
    )
    .role(Role::Derived)
    .printed(HOOP, "§III-E", "131072", "hoop-arith-slices-per-block")
    .note("Every slice counts as one of data; header and commit records take some.");
    let map = addresses.quantity() * Formula::constant("word-bytes", WORD_BYTES) / (1 << 20);
    vec![
        Item::new(
            "persistent-bits",
            "SRAM: the persistent bit of each line",
            Place::Caches,
            cache_lines(config) / 8,
            Unit::Bytes,
        ),
        Item::new(
            "transaction-bit",
            "the transaction status in the core's status register (§III-G)",
            Place::Core,
            1.into(),
            Unit::Bits,
        )
        .per("thread", hardware_threads(config))
        .note(NOT_LISTED),
        Item::new(
            "transaction-counter",
            "numbers transactions (§III-D)",
            Place::Controller,
            bits("slice-tx", SLICE_TX_BITS),
            Unit::Bits,
        )
        .per("controller", parameter(config, "hoop.controllers"))
        .note(NOT_LISTED),
        Item::new(
            "block-index",
            "the block index table, cached (§III-D); of all controllers",
            Place::Controller,
            blocks(config) * Formula::constant("word-bytes", WORD_BYTES) / 1024,
            Unit::Kilobytes,
        )
        .note(NOT_LISTED),
        Item::new("gc-map", "words of a block that is collected", Place::Controller, map, Unit::Megabytes)
            .per("controller", parameter(config, "hoop.controllers"))
            .printed(HOOP, "§III-E", "1", "hoop-arith-gc-hash-1mb")
            .note(
                "The words alone: with an address of 40 bits and a transaction of 32, an entry takes 17 B. Not in §III-H's list.",
            ),
        addresses,
        Item::new(
            "oop-region",
            "the log region",
            Place::Pm,
            parameter(config, "pm.log_region_bytes") / (1 << 20),
            Unit::Megabytes,
        ),
    ]
}

fn bytes_of_slice() -> Formula {
    Formula::constant("slice", SLICE_BYTES)
}

fn block_slices(config: &Config) -> Formula {
    parameter(config, "hoop.block_bytes") / bytes_of_slice()
}

/// Blocks of the region, which is divided evenly between controllers.
fn blocks(config: &Config) -> Formula {
    let hoop = config.get::<HoopConfig>();
    let controllers = u64::from(hoop.controllers);
    let share = config.get::<PmConfig>().log_region_bytes.0 / controllers;
    let geometry = Geometry::within(Addr(0), share, hoop.block_bytes.0);
    Formula::constant("blocks", u64::from(geometry.blocks) * controllers)
}

/// Fields of a slice beside its words and their addresses.
fn other_fields() -> Formula {
    bits("slice-tx", SLICE_TX_BITS)
        + bits("first", FIRST_BITS)
        + bits("count", COUNT_BITS)
        + bits("flag", FLAG_BITS)
        + bits("next", NEXT_BITS)
}

/// §III-D, Fig. 5b.
fn slice() -> Vec<Item> {
    let words = || Formula::constant("words", SLICE_WORDS as u64);
    let item = |name, what, formula, unit| {
        Item::new(name, what, Place::Pm, formula, unit).role(Role::Derived)
    };
    let fields = words() * bits("home", HOME_BITS) + other_fields();
    let pad = line() * 8 - fields.clone();
    let metadata = item(
        "slice-metadata",
        "metadata of a data slice",
        (fields + Formula::named("pad", pad.value())) / 8,
        Unit::Bytes,
    )
    .printed(HOOP, "§III-D", "64", "hoop-arith-slice-metadata");
    let slice = words() * word() / 8 + metadata.quantity();
    let slice = item("slice", "a data slice", slice, Unit::Bytes).printed(
        HOOP,
        "§III-D",
        "128",
        "hoop-arith-slice-total",
    );
    let count = item(
        "slice-count-bits",
        "bits that count up to as many words as a slice has",
        words().call(Function::BitsFor),
        Unit::Bits,
    )
    .printed(HOOP, "§III-D", "3", "hoop-arith-slice-count-bits")
    .note("3 bits end at 7: the field has the count less one, since no slice is empty.");
    let room = line() * 8 - other_fields();
    let fit = room / Formula::named("petabyte-address", 50.0);
    let fit = Formula::Call(Function::Min, vec![words(), fit.call(Function::Floor)]);
    let fit = item(
        "words-at-a-petabyte",
        "words of a slice whose home addresses have 50 bits",
        fit,
        Unit::Of("words"),
    )
    .printed(HOOP, "§III-C", "7", "hoop-arith-pb-seven-units")
    .note("8 × 50 bits and the other fields take 464 of 512 bits: nothing forces seven.");
    vec![metadata, slice, count, fit]
}

/// How far fields reach.
fn reach(config: &Config) -> Vec<Item> {
    let item = |name, what, formula, unit| {
        Item::new(name, what, Place::Pm, formula, unit).role(Role::Derived)
    };
    let reach_of = |name, width| bits(name, width).call(Function::PowerOfTwo);
    let terabyte = Formula::from(40).call(Function::PowerOfTwo);
    let slices = reach_of("next", NEXT_BITS) * bytes_of_slice() / (1 << 30);
    let header = bits("block-number", BLOCK_NUMBER_BITS)
        + bits("next-block", NEXT_SLICE_BITS)
        + bits("state", STATE_BITS);
    vec![
        item(
            "home-reach",
            "what home addresses reach",
            reach_of("home", HOME_BITS) / terabyte,
            Unit::Of("TB"),
        )
        .printed(HOOP, "§III-C", "1", "hoop-arith-home-1tb"),
        item("next-reach", "how far the next slice may be, all round", slices, Unit::Of("GB")),
        item(
            "next-bits-for-2gb",
            "bits of an offset that reaches every slice of 2 GB",
            (Formula::from(2 << 30) / bytes_of_slice() - 1).call(Function::BitsFor),
            Unit::Bits,
        )
        .printed(HOOP, "§III-D", "24", "hoop-arith-next-slice-reach"),
        item(
            "block-number-bits",
            "bits that tell the blocks of the region apart",
            (blocks(config) - 1).call(Function::BitsFor),
            Unit::Bits,
        )
        .printed(HOOP, "§III-D", "8", "hoop-arith-block-index")
        .note("8 bits end at 256 blocks of 2 MB, 512 MB; a tenth of 512 GB has 26,213."),
        item("block-header", "fields of a block's header", header, Unit::Bits)
            .printed(HOOP, "§III-D", "44", "hoop-arith-block-header")
            .note("With the 8 more bits that the blocks' numbers need."),
    ]
}

/// The storage that §III-H adds, of the package that it takes for comparison.
fn area(config: &Config) -> Item {
    let added = parameter(config, "hoop.mapping_table_bytes")
        + Formula::named("package-cores", 8.0) * parameter(config, "hoop.oop_buffer_bytes")
        + parameter(config, "hoop.eviction_buffer_bytes");
    let per_core = Formula::named("package-l1", 65_536.0) + Formula::named("package-l2", 262_144.0);
    let package = Formula::named("package-cores", 8.0) * per_core
        + Formula::named("package-llc", 20.0 * whole(1 << 20));
    Item::new(
        "added-storage",
        "buffers of §III-H, of the caches of a Sandy Bridge package",
        Place::Controller,
        added * 100 / package,
        Unit::Of("%"),
    )
    .role(Role::Reference)
    .printed(HOOP, "§III-H", "4.25", "hoop-arith-area-4p25")
    .note(
        "The paper's figure is area of the whole package, by CACTI 6.5; storage does not give it.",
    )
}
