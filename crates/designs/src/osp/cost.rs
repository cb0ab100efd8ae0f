//! What shadow paging costs: bitmaps in TLBs and in the SSP cache of the controller, journal, table and shadow pages in PM.
//! HOOP gives none of the widths; they are those of the tables in [`super`].

use super::layout::ENTRY_BYTES;
use crate::fields::ADDR_BITS;
use graven_base::config::Config;
use graven_base::cost::{Costs, Formula, Item, Place, Unit};
use graven_machine::quantities::{bits, line, parameter};

pub(super) const COSTS: Costs = Costs::on("hoop", items).remarks(&[
    "HOOP gives no layout for OSP: widths are those that Graven keeps. What tells the words of transactions that share a \
     line apart is not counted.",
]);

/// Current, updated, committed.
const BITMAPS: u64 = 3;

fn items(config: &Config) -> Vec<Item> {
    let page = || parameter(config, "osp.page_bytes");
    let bitmaps = || Formula::constant("bitmaps", BITMAPS) * (page() / line());
    let pages = || parameter(config, "osp.shadow_pages");
    let entry = || Formula::constant("entry", ENTRY_BYTES);
    let item = |name, what, place, formula, unit| Item::new(name, what, place, formula, unit);
    vec![
        item(
            "tlb-extension",
            "bitmaps of the pages that a TLB holds: current, updated, committed",
            Place::Core,
            parameter(config, "osp.tlb_entries") * bitmaps() / 8,
            Unit::Bytes,
        )
        .per("core", parameter(config, "core.count")),
        item(
            "ssp-cache",
            "bitmaps and home address of each page that has a shadow page",
            Place::Controller,
            pages() * (bitmaps() + bits("home", ADDR_BITS)) / 8,
            Unit::Bytes,
        ),
        item("table", "an entry for each shadow page", Place::Pm, pages() * entry(), Unit::Bytes),
        item(
            "journal",
            "metadata journal",
            Place::Pm,
            parameter(config, "osp.journal_bytes"),
            Unit::Bytes,
        ),
        item(
            "shadow-pages",
            "second places of lines",
            Place::Pm,
            pages() * page() / 1024,
            Unit::Kilobytes,
        ),
    ]
}
