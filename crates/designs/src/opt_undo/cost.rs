//! What Opt-Undo costs: an extension of the L1s, registers. HOOP and LALEA give no layout but that of headers.

use crate::fields::THREAD_BITS;
use graven_base::config::Config;
use graven_base::cost::{Costs, Item, Place, Unit};
use graven_base::memory::WORDS_PER_LINE;
use graven_machine::quantities::{
    bits, hardware_threads, l1_lines, line, thread_areas, thread_registers,
};

pub(super) const COSTS: Costs = Costs::on("hoop", items).remarks(&[
    "The papers that compare with ATOM give no widths but those of headers: the others are those that Graven keeps.",
]);

fn items(config: &Config) -> Vec<Item> {
    vec![
        Item::new(
            "l1-extension",
            "the thread that logged the line, and which words",
            Place::L1,
            bits("tid", THREAD_BITS) + bits("words-mask", WORDS_PER_LINE as u32),
            Unit::Bits,
        )
        .per("L1 line", l1_lines(config))
        .note("ATOM has one bit, which says that the line is logged; this one tells words of transactions apart."),
        Item::new(
            "header-register",
            "the header of the log record that is being filled",
            Place::Controller,
            line(),
            Unit::Bytes,
        )
        .per("thread", hardware_threads(config)),
        thread_registers(
            "commit-register",
            "non-volatile: the first transaction that has not committed",
            config,
        ),
        thread_areas(config, "opt-undo.log_bytes_per_thread"),
    ]
}
