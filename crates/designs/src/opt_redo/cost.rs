//! What Opt-Redo costs. HOOP gives its log lines (§IV-B) and no sizes of buffers; those are parameters.

use super::record::SLOT_BYTES;
use crate::fields::ADDR_BITS;
use graven_base::config::Config;
use graven_base::cost::{Costs, Formula, HOOP, Item, Place, Role, Unit};
use graven_machine::quantities::{
    bits, hardware_threads, line, line_with, parameter, thread_areas,
};

pub(super) const COSTS: Costs = Costs::on("hoop", items).remarks(&[
    "HOOP gives no sizes for Opt-Redo: the buffers are as large as HOOP's own. The back end's state is not counted.",
]);

fn items(config: &Config) -> Vec<Item> {
    let record = || Formula::constant("update-record", SLOT_BYTES);
    vec![
        Item::new(
            "log-buffer",
            "update records on their way: data and metadata",
            Place::Controller,
            parameter(config, "opt-redo.log_buffer_entries") * record(),
            Unit::Bytes,
        )
        .per("thread", hardware_threads(config)),
        Item::new(
            "lines-per-update",
            "lines of the log for an update",
            Place::Pm,
            record() / line(),
            Unit::Of("lines"),
        )
        .role(Role::Derived)
        .printed(HOOP, "§IV-B", "2", "hoop-arith-redo-cache-lines"),
        Item::new(
            "victim-cache",
            "lines that left the LLC, with home address",
            Place::Controller,
            parameter(config, "opt-redo.victim_cache_lines") * line_with(bits("home", ADDR_BITS)),
            Unit::Bytes,
        ),
        thread_areas(config, "opt-redo.log_bytes_per_thread"),
    ]
}
