//! What ReDU costs, as LALEA takes it for its baseline (§II, §IV, Table I), and with LALEA (§III-A) and BLOM (§III-B).
//! LALEA gives depths of buffers and no layout of them; widths are those that Graven keeps.

use super::ReduConfig;
use super::record::WORDS_MASK_BITS;
use crate::fields::ADDR_BITS;
use crate::lalea;
use crate::lalea::ENTRIES;
use graven_base::config::Config;
use graven_base::cost::{Costs, Formula, Item, LALEA, Place, Role, Unit};
use graven_base::memory::WORD_BYTES;
use graven_machine::quantities::{bits, hardware_threads, line, line_with, parameter};

pub(super) const COSTS: Costs = Costs::on("lalea", items).remarks(&[
    "LALEA gives the depths of log buffer, log queue and ADR buffer, and no layout of their entries: widths are those that \
     Graven keeps.",
]);

fn items(config: &Config) -> Vec<Item> {
    let redu = config.get::<ReduConfig>();
    let mut all = buffers(config);
    all.push(headers(config, redu.load_aware_allocation, redu.buffered_headers));
    all.extend(share(redu.load_aware_allocation));
    if redu.load_aware_allocation {
        all.extend(lalea::cost_items(config));
    } else {
        all.push(graven_machine::quantities::thread_areas(config, "redu.log_bytes_per_thread"));
        all.push(truncation());
    }
    all
}

fn home() -> Formula {
    bits("home", ADDR_BITS)
}

fn buffers(config: &Config) -> Vec<Item> {
    let entry = || line_with(home() + bits("words-mask", WORDS_MASK_BITS));
    vec![
        Item::new(
            "log-buffer",
            "lines that a transaction stores to, with home address and words",
            Place::L1,
            parameter(config, "redu.log_buffer_entries") * entry(),
            Unit::Bytes,
        )
        .per("thread", hardware_threads(config)),
        Item::new(
            "log-queue",
            "log requests on their way, with address",
            Place::Controller,
            parameter(config, "redu.log_queue_entries") * line_with(bits("address", ADDR_BITS)),
            Unit::Bytes,
        ),
        Item::new(
            "victim-area",
            "lines that left the LLC, with home address",
            Place::Dram,
            parameter(config, "redu.victim_lines") * line_with(home()),
            Unit::Bytes,
        )
        .note("Stands for the DRAM cache of ReDU's own paper; LALEA's Table I says nothing of it."),
    ]
}

/// Headers that are being collected: in registers, or with BLOM in the ADR buffer.
fn headers(config: &Config, is_load_aware: bool, is_buffered: bool) -> Item {
    if is_buffered {
        return Item::new(
            "adr-buffer",
            "lines of headers that a power failure writes to PM",
            Place::Controller,
            parameter(config, "controller.adr_entries") * line(),
            Unit::Bytes,
        )
        .note("The machine's ADR buffer (Table I: 16 entries); BLOM says what is in it, and adds none.")
        .role(Role::Derived);
    }
    let size = if is_load_aware { line() * 2 } else { line() };
    let what = "the header of the log record that is being filled";
    Item::new("header-register", what, Place::Controller, size, Unit::Bytes)
        .per("thread", hardware_threads(config))
        .note("Implied by log entry collation (§II-B); the paper does not say where headers are collected.")
}

/// §II-B: how much of the log is metadata if records are full.
fn share(is_load_aware: bool) -> Vec<Item> {
    let entries = || Formula::constant("entries", ENTRIES as u64);
    let word = || Formula::constant("word-bytes", WORD_BYTES);
    let header = Item::new(
        "header",
        "addresses of entries, and a word of other fields",
        Place::Pm,
        entries() * word() + word(),
        Unit::Bytes,
    )
    .role(Role::Derived)
    .printed(LALEA, "§II-B", "64", "lalea-lec-header");
    let lines = if is_load_aware { 2 } else { 1 };
    let formula = Formula::constant("header-lines", lines) * 100
        / (Formula::constant("header-lines", lines) + entries());
    let what = "metadata, of the log, if records are full";
    let share =
        Item::new("metadata-share", what, Place::Pm, formula, Unit::Of("%")).role(Role::Derived);
    let share = if is_load_aware {
        share
    } else {
        share.printed(LALEA, "§II-B", "12.5", "lalea-metadata-12p5")
    };
    vec![header, share]
}

fn truncation() -> Item {
    let what = "non-volatile: the commit up to which everything is at home";
    let formula = Formula::constant("register", WORD_BYTES);
    Item::new("truncation-register", what, Place::Controller, formula, Unit::Bytes)
        .note("Stands for the log management that LALEA calls conventional.")
}
