//! What MorLog costs: morphable logging (§III-D, Table I), the dirty flags and flag bits of SLDE (§IV-C), and FWB's bits
//! for its scans (§III-F).

use super::{LogType, MorlogConfig, Truncate, logs};
use crate::fields::{ADDR_BITS, THREAD_BITS, TX_BITS};
use crate::{force_write_back, packed_log};
use graven_base::codecs::slde::{DIRTY_FLAG_BITS, PAIR_FLAG_BITS, REDO_FLAG_BITS};
use graven_base::config::Config;
use graven_base::cost::{Costs, Formula, Function, Item, MORLOG, Place, Printed, Role, Unit};
use graven_base::memory::WORDS_PER_LINE;
use graven_machine::quantities::{
    bits, hardware_threads, l1_lines, line, log_head_and_tail, parameter, traversal_cycles,
};

/// Bits of a word's state (§III-B: four states).
const STATE_BITS: u32 = 2;

pub(super) const COSTS: Costs = Costs::on("morlog", items).remarks(&[
    "Table I is for one undo+redo and one redo buffer, which all cores share. Gates, latency and energy of the SLDE encoder \
     are the paper's, from synthesis: reported, not derived.",
]);

fn items(config: &Config) -> Vec<Item> {
    let mut all = buffers(config);
    all.extend(l1(config));
    all.extend(ulog(config));
    all.extend(truncation(config));
    all.extend(shares());
    all.extend(encoder(config));
    all.push(log_region(config));
    all
}

fn buffers(config: &Config) -> Vec<Item> {
    let morlog = config.get::<MorlogConfig>();
    let buffer = |name, what, entries, words, printed, claim| {
        let bytes = parameter(config, entries) * packed_log::entry_bits(words) / 8;
        Item::new(name, what, Place::Controller, bytes, Unit::Bytes)
            .printed(MORLOG, "Table I", printed, claim)
    };
    let mut registers = log_head_and_tail(Place::Controller).printed(
        MORLOG,
        "Table I",
        "16",
        "morlog-tab1-log-registers",
    );
    if morlog.log_type == LogType::PerThread {
        registers = registers.per("thread", hardware_threads(config));
    }
    let flags =
        |name, entries| packed_log::dirty_flags(name, config, entries).built_if(morlog.dirty_flags);
    vec![
        registers,
        buffer(
            "undo-redo-buffer",
            "SRAM: undo+redo entries",
            "morlog.undo_redo_entries",
            2,
            "404",
            "morlog-tab1-undoredo-buffer",
        ),
        buffer(
            "redo-buffer",
            "SRAM: redo entries",
            "morlog.redo_entries",
            1,
            "552",
            "morlog-tab1-redo-buffer",
        ),
        flags("undo-redo-dirty-flags", "morlog.undo_redo_entries"),
        flags("redo-dirty-flags", "morlog.redo_entries"),
        Item::new(
            "undo-redo-bound",
            "an undo+redo buffer has fewer entries than this, or data overtakes them: one leaves in a cycle",
            Place::Controller,
            traversal_cycles(config),
            Unit::Of("entries"),
        )
        .role(Role::Derived)
        .claim("morlog-safe-n-bound"),
    ]
}

/// All logs together.
fn log_region(config: &Config) -> Item {
    let bytes = Formula::constant("log-bytes", logs::bytes(config)) / (1 << 20);
    Item::new("log-region", "the circular log, or the threads'", Place::Pm, bytes, Unit::Megabytes)
}

fn l1(config: &Config) -> Vec<Item> {
    let morlog = config.get::<MorlogConfig>();
    let states = Formula::constant("words", WORDS_PER_LINE as u64) * bits("state", STATE_BITS);
    let extension =
        bits("tid", THREAD_BITS) + parameter(config, "morlog.transaction_id_bits") + states;
    let flags =
        Formula::constant("words", WORDS_PER_LINE as u64) * bits("dirty-flag", DIRTY_FLAG_BITS);
    vec![
        Item::new(
            "l1-extension",
            "SRAM: thread, transaction and states of words",
            Place::L1,
            extension,
            Unit::Bits,
        )
        .per("L1 line", l1_lines(config))
        .printed(MORLOG, "Table I", "40", "morlog-tab1-l1-extension"),
        Item::new("l1-dirty-flags", "SRAM: dirty flags of words", Place::L1, flags, Unit::Bits)
            .per("L1 line", l1_lines(config))
            .built_if(morlog.dirty_flags),
    ]
}

/// The counters of delay-persistence: as printed, of L1 lines; and as they have to be, of words.
fn ulog(config: &Config) -> Vec<Item> {
    let delayed = config.get::<MorlogConfig>().delay_persistence;
    let lines_of_one = parameter(config, "l1.bytes") / line();
    let width = Item::new(
        "ulog-counter-width",
        "bits that count the lines of an L1 (§III-C)",
        Place::Core,
        lines_of_one.call(Function::BitsFor),
        Unit::Bits,
    )
    .role(Role::Derived)
    .printed(MORLOG, "§III-C", "10", "morlog-ulog-counter-width");
    let of_lines = Item::new(
        "ulog-counters-of-lines",
        "flip-flops: counters as printed",
        Place::Core,
        hardware_threads(config) * width.quantity() / 8,
        Unit::Bytes,
    )
    .role(Role::Derived)
    .printed(MORLOG, "Table I", "20", "morlog-tab1-ulog-counters")
    .note(
        "20 B are the counters of 16 threads; Table III has 8 cores, and no second thread on them.",
    );
    let of_words = Item::new(
        "ulog-counters",
        "flip-flops: counters of words, for delay-persistence",
        Place::Core,
        bits("ulog-counter", packed_log::ULOG_BITS) / 8,
        Unit::Bytes,
    )
    .per("thread", hardware_threads(config))
    .built_if(delayed)
    .note(
        "Redo entries that follow a commit are words, of an L1 and of the redo buffer; a counter of lines loses data \
         (`morlog-literal`).",
    );
    vec![width, of_lines, of_words]
}

fn truncation(config: &Config) -> Vec<Item> {
    let by_table = config.get::<MorlogConfig>().truncation == Truncate::Table;
    let entry = bits("tid", THREAD_BITS)
        + bits("txid", TX_BITS)
        + bits("first-address", ADDR_BITS)
        + bits("last-address", ADDR_BITS)
        + l1_lines(config).call(Function::BitsFor);
    vec![
        force_write_back::fwb_bits(config).built_if(!by_table),
        Item::new(
            "transaction-table",
            "thread, transaction, two log addresses and a counter of lines (§III-F)",
            Place::Controller,
            parameter(config, "morlog.transaction_table_entries") * entry / 8,
            Unit::Bytes,
        )
        .built_if(by_table)
        .note(
            "§III-F gives the fields and no widths; the counter here counts the lines of all L1s.",
        ),
    ]
}

/// §IV-C: what flags take of what they belong to.
fn shares() -> Vec<Item> {
    let flag = || bits("dirty-flag", DIRTY_FLAG_BITS);
    let line_bits = || line() * 8;
    let share = |name, what, place, formula, unit, printed, claim| {
        Item::new(name, what, place, formula, Unit::Of(unit))
            .role(Role::Derived)
            .printed(MORLOG, "§IV-C", printed, claim)
    };
    let words = Formula::constant("words", WORDS_PER_LINE as u64);
    let pair = bits("encoding-type-pair", PAIR_FLAG_BITS) / packed_log::entry_bits(2);
    let redo = bits("encoding-type-redo", REDO_FLAG_BITS) / packed_log::entry_bits(1);
    let largest = Formula::Call(Function::Max, vec![pair, redo]);
    let flag_bits = (Formula::from(1) / line_bits() + largest) * 100;
    vec![
        share(
            "undo-redo-flag-share",
            "a dirty flag, of an undo+redo entry",
            Place::Controller,
            flag() / packed_log::entry_bits(2),
            "of it",
            "4/101",
            "morlog-dirty-flag-undoredo",
        ),
        share(
            "redo-flag-share",
            "a dirty flag, of a redo entry",
            Place::Controller,
            flag() / packed_log::entry_bits(1),
            "of it",
            "4/69",
            "morlog-dirty-flag-redo",
        ),
        share(
            "l1-flag-share",
            "dirty flags, of an L1 line",
            Place::L1,
            words * flag() / line_bits(),
            "of it",
            "1/8",
            "morlog-dirty-flag-l1",
        ),
        share(
            "log-flag-share",
            "in PM: a bit for each block, an encoding type flag for each entry; at most",
            Place::Module,
            flag_bits,
            "%",
            "1.7",
            "morlog-flag-bits-1p7",
        ),
    ]
}

/// The SLDE encoder, and what its energy is beside that of a write to cells of TLC RRAM.
fn encoder(config: &Config) -> Vec<Item> {
    let reported = |name, what, text, unit, claim| {
        let printed = Printed { paper: MORLOG, at: "§IV-C", text };
        Item::reported(name, what, Place::Module, printed, Unit::Of(unit), claim)
    };
    let gates = reported(
        "slde-gates",
        "logic of encoder and decoder",
        "4200",
        "gates",
        "morlog-slde-gates",
    );
    let latency = reported(
        "slde-latency",
        "encoding, or decoding; less than",
        "1",
        "ns",
        "morlog-slde-codec-latency",
    );
    let encoding =
        reported("slde-encoding-energy", "of a block", "1.4", "pJ", "morlog-slde-codec-energy");
    let decoding =
        reported("slde-decoding-energy", "of a block", "1.3", "pJ", "morlog-slde-codec-energy");
    let states = ["000", "001", "010", "011", "100", "101", "110", "111"];
    let energies = states.map(|state| parameter(config, &format!("tlc.energy_{state}_pj")));
    let mean = Item::new(
        "cell-energy",
        "mean over the states of a cell",
        Place::Module,
        Formula::Sum(energies.to_vec()) / states.len() as u64,
        Unit::Of("pJ"),
    )
    .role(Role::Derived)
    .printed(MORLOG, "§IV-C", "16.0", "morlog-tlc-mean-energy");
    let cells = (line() * 8 / 3).ceil();
    let share = Item::new(
        "slde-energy-share",
        "encoding, of a write to all cells of a line",
        Place::Module,
        encoding.quantity() * 100 / (cells * mean.quantity()),
        Unit::Of("%"),
    )
    .role(Role::Derived)
    .claim("morlog-slde-energy-share")
    .note("The paper says less than 0.1 %. Where only changed cells are written it is more.");
    vec![gates, latency, encoding, decoding, mean, share]
}
