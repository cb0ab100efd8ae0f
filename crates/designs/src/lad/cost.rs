//! What LAD costs: the pool in ADR, registers, and with LALEA under its undo log the bank information table. Silo, HOOP and
//! LALEA compare with LAD and give the entries of the pool; widths are those that Graven keeps.

use super::LadConfig;
use crate::fields::{ADDR_BITS, THREAD_BITS};
use crate::lalea;
use graven_base::config::Config;
use graven_base::cost::{Costs, Item, Place, Unit};
use graven_base::memory::WORDS_PER_LINE;
use graven_machine::quantities::{
    bits, hardware_threads, line_with, parameter, thread_areas, thread_registers,
};

pub(super) const COSTS: Costs = Costs::on("silo", items).remarks(WIDTHS);

/// With LALEA's allocator.
pub(super) const WITH_LALEA: Costs = Costs::on("lalea", items).remarks(WIDTHS);

const WIDTHS: &[&str] = &[
    "The papers that compare with LAD give the entries of its pool and no layout: widths are those that Graven keeps.",
];

fn items(config: &Config) -> Vec<Item> {
    let lad = config.get::<LadConfig>();
    let home = || bits("home", ADDR_BITS);
    let owners = bits("words", WORDS_PER_LINE as u32) * bits("owner", THREAD_BITS);
    let entries = || parameter(config, "controller.adr_entries");
    let what = "in ADR: lines that gather until their transaction commits, with home address";
    let mut all = vec![
        Item::new("pool", what, Place::Controller, entries() * line_with(home()), Unit::Bytes),
        Item::new(
            "owners",
            "in ADR: of each word in the pool, the thread whose transaction stored it",
            Place::Controller,
            entries() * owners / 8,
            Unit::Bytes,
        )
        .note("Not the papers', which know lines only: what keeps transactions apart that share a line."),
        thread_registers("commit-register", "non-volatile: the transaction that has committed", config),
        Item::new(
            "recent-lines",
            "addresses of lines stored to last, for proactive flushing",
            Place::L1,
            parameter(config, "lad.recent_lines") * home() / 8,
            Unit::Bytes,
        )
        .per("thread", hardware_threads(config))
        .built_if(lad.proactive_flush),
    ];
    if lad.load_aware_log {
        all.extend(lalea::cost_items(config));
    } else {
        all.push(thread_areas(config, "lad.log_bytes_per_thread"));
    }
    all
}
