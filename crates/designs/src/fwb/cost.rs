//! What FWB costs (§IV-E, Table I): registers, the log buffer, a bit for each line of the caches.

use super::log::{is_packed, lines};
use super::record::{LogValues, SHORT_ID_BITS};
use super::{FwbConfig, WriteBack};
use crate::{force_write_back, packed_log};
use graven_base::config::Config;
use graven_base::cost::{Costs, FWB, Formula, Function, Item, Place, Role, Unit};
use graven_base::memory::WORD_BYTES;
use graven_machine::quantities::{bits, line, parameter, traversal_cycles};

const TWO_WIDTHS: &str = "§IV-B has ids of 8 bits in this register, §III-A 16 in records; fwb.transaction_id_bits is as wide as records.";

pub(super) const COSTS: Costs = Costs::on("fwb", items);

/// As MorLog compares with it.
pub(super) const IN_MORLOG: Costs = Costs::on("morlog", items);

fn items(config: &Config) -> Vec<Item> {
    let fwb = config.get::<FwbConfig>();
    let mut all = registers(config);
    all.push(log_buffer(config));
    all.push(bound(config));
    let flags = packed_log::dirty_flags("dirty-flags", config, "fwb.log_buffer_entries");
    all.push(flags.built_if(fwb.dirty_flags));
    all.push(
        force_write_back::fwb_bits(config)
            .built_if(fwb.write_back == WriteBack::Scan)
            .printed(FWB, "Table I", "768", "fwb-tab1-fwb-bits")
            .note(
                "768 B are the bits of 384 KB of cache. The data caches of Table II need 16,640 B; with instruction caches, \
                 which are not modelled, 16,896 B.",
            ),
    );
    all.push(log_region(config));
    all
}

fn registers(config: &Config) -> Vec<Item> {
    let (ids, note) = match config.get::<FwbConfig>().log_values {
        LogValues::Both => (parameter(config, "fwb.transaction_id_bits"), TWO_WIDTHS),
        LogValues::Redo | LogValues::Undo => (bits("short-transaction-id", SHORT_ID_BITS), ""),
    };
    let threads = graven_machine::quantities::hardware_threads(config);
    let id = Item::new(
        "transaction-id-register",
        "flip-flops: the running transaction's id",
        Place::Core,
        ids.clone() / 8,
        Unit::Bytes,
    )
    .per("thread", threads)
    .printed(FWB, "Table I", "1", "fwb-tab1-txid-register")
    .note(note);
    let active = Item::new(
        "active-transactions",
        "transactions that ids tell apart",
        Place::Core,
        ids.call(Function::PowerOfTwo),
        Unit::Of("transactions"),
    )
    .role(Role::Derived)
    .printed(FWB, "§IV-B", "256", "fwb-txid-256")
    .note(note);
    let pointer = |name, what, claim| {
        let formula = Formula::constant("register", WORD_BYTES);
        Item::new(name, what, Place::Controller, formula, Unit::Bytes)
            .printed(FWB, "Table I", "8", claim)
    };
    vec![
        id,
        active,
        pointer("log-head-register", "flip-flops: head of the log", "fwb-tab1-head-pointer"),
        pointer("log-tail-register", "flip-flops: tail of the log", "fwb-tab1-tail-pointer"),
    ]
}

/// §IV-E: "The size of the log buffer varies based on the size of the cache line"; with log packing, MorLog's entries.
fn log_buffer(config: &Config) -> Item {
    let entries = parameter(config, "fwb.log_buffer_entries");
    let buffer = |bytes| {
        let what = "SRAM: entries on their way to PM";
        Item::new("log-buffer", what, Place::Controller, bytes, Unit::Bytes)
    };
    if is_packed(config) {
        return buffer(entries * packed_log::entry_bits(2) / 8);
    }
    buffer(entries * line())
        .printed(FWB, "Table I", "964", "fwb-tab1-log-buffer")
        .note("15 lines are 960 B; the paper does not say what the other four bytes are.")
}

fn bound(config: &Config) -> Item {
    Item::new(
        "log-buffer-bound",
        "most entries of a log buffer that data cannot overtake: one leaves in a cycle",
        Place::Controller,
        traversal_cycles(config),
        Unit::Of("entries"),
    )
    .role(Role::Derived)
    .printed(FWB, "§VI-A", "15", "fwb-bound-15-entries")
}

fn log_region(config: &Config) -> Item {
    let bytes = Formula::constant("log-lines", lines(config)) * line();
    Item::new("log-region", "the circular log", Place::Pm, bytes / (1 << 20), Unit::Megabytes)
        .printed(FWB, "§III-F", "4", "fwb-log-64k-4mb")
}
