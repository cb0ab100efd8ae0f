//! What designs cost: every figure of the papers' tables is derived from configured parameters, or what it differs by is
//! said. How single designs count is tested where they say it.

use crate::common::find;
use crate::common::registry;
use std::collections::BTreeSet;

use graven::cost::{Place, Role, Sheet, Verdict};
use graven::design::DesignInfo;

use graven::quantities::parameter;

fn sheet_with(design: &str, machine: &str, settings: &[(&str, &str)]) -> Sheet {
    let mut config = registry().machine(machine).unwrap_or_else(|e| panic!("{e}"));
    for (key, value) in settings {
        config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    }
    let entry = find(design).unwrap_or_else(|e| panic!("{e}"));
    Sheet::of(registry(), entry, config).unwrap_or_else(|e| panic!("{design} on {machine}: {e}"))
}

/// On the machine of its own paper.
fn sheet(entry: &DesignInfo) -> Sheet {
    sheet_with(entry.name, entry.cost.machine, &[])
}

fn value(sheet: &Sheet, item: &str) -> f64 {
    sheet.item(item).unwrap_or_else(|| panic!("{}: no {item}", sheet.design)).value()
}

/// Claims about cost that a paper prints a number for, by design: those that its parameters give, and those that they do
/// not (`differs`).
const AGREES: &[(&str, &[&str])] = &[
    ("fwb", &["tab1-head-pointer", "tab1-tail-pointer", "bound-15-entries", "log-64k-4mb"]),
    (
        "morlog",
        &[
            "tab1-log-registers",
            "tab1-l1-extension",
            "tab1-undoredo-buffer",
            "tab1-redo-buffer",
            "ulog-counter-width",
            "dirty-flag-undoredo",
            "dirty-flag-redo",
            "dirty-flag-l1",
            "flag-bits-1p7",
            "tlc-mean-energy",
        ],
    ),
    (
        "silo",
        &[
            "entry-26b",
            "undo-entry-18b",
            "buffer-680b",
            "buffer-total-5440b",
            "batch-14",
            "tab1-comparators",
            "tab1-log-head-tail",
            "tab4-eadr-flush-size",
            "tab4-bbb-flush-size",
            "tab4-silo-flush-size",
            "tab4-bbb-energy",
            "tab4-eadr-energy",
            "tab4-eadr-cap-volume",
            "tab4-eadr-cap-area",
            "tab4-eadr-li-volume",
            "tab4-eadr-li-area",
            "tab4-bbb-cap-volume",
            "tab4-bbb-cap-area",
            "tab4-bbb-li-volume",
            "tab4-bbb-li-area",
            "tab4-silo-cap-volume",
            "tab4-silo-cap-area",
            "tab4-silo-li-volume",
            "tab4-silo-li-area",
            "battery-ratio-volume-bbb",
        ],
    ),
    (
        "hoop",
        &[
            "arith-next-slice-reach",
            "cfg-mapping-table",
            "cfg-oop-buffer",
            "cfg-eviction-buffer",
            "arith-slice-metadata",
            "arith-slice-total",
            "arith-home-1tb",
            "arith-slices-per-block",
            "arith-gc-hash-1mb",
        ],
    ),
    ("opt-redo", &["hoop-arith-redo-cache-lines"]),
    ("redu", &["lalea-lec-header", "lalea-metadata-12p5"]),
    (
        "lalea",
        &[
            "fle-fifo",
            "entry-address-bits",
            "lalea-header",
            "cfg-op-counter",
            "cfg-lr-register",
            "lec-header",
        ],
    ),
];

const DIFFERS: &[(&str, &[&str])] = &[
    ("fwb", &["tab1-txid-register", "txid-256", "tab1-log-buffer", "tab1-fwb-bits"]),
    ("morlog", &["tab1-ulog-counters"]),
    (
        "silo",
        &[
            "tab1-battery",
            "tab4-silo-energy",
            "battery-ratio-volume-eadr",
            "battery-ratio-area-eadr",
            "battery-ratio-area-bbb",
        ],
    ),
    (
        "hoop",
        &[
            "arith-slice-count-bits",
            "arith-pb-seven-units",
            "arith-block-index",
            "arith-block-header",
            "arith-mapping-table-cores",
            "arith-area-4p25",
        ],
    ),
    ("lalea", &["fh-fifo"]),
];

/// The claims of a sheet that have a verdict.
fn claims(sheet: &Sheet, verdict: Verdict) -> BTreeSet<&'static str> {
    let items = sheet.items.iter().zip(&sheet.verdicts);
    items.filter(|(_, v)| **v == Some(verdict)).map(|(item, _)| item.claim).collect()
}

#[test]
fn every_table_of_a_paper_is_derived_or_its_difference_is_known() {
    for (expected, verdict) in [(AGREES, Verdict::Agrees), (DIFFERS, Verdict::Differs)] {
        for (design, names) in expected {
            let sheet = sheet(find(design).unwrap_or_else(|e| panic!("{e}")));
            let full =
                |name: &&str| claims(&sheet, verdict).into_iter().find(|c| c.ends_with(*name));
            let missing: Vec<_> = names.iter().filter(|name| full(name).is_none()).collect();
            assert!(missing.is_empty(), "{design}: {verdict:?} should hold for {missing:?}");
            assert_eq!(claims(&sheet, verdict).len(), names.len(), "{design}: {verdict:?}");
        }
    }
}

/// Claims for which no number is printed: `morlog-safe-n-bound`, `morlog-slde-energy-share` (below 0.1 %),
/// `hoop-arith-oop-buffer-slices`, `hoop-arith-next-slice-reach`.
#[test]
fn what_follows_without_being_printed() {
    let of = |design, item| value(&sheet(find(design).unwrap_or_else(|e| panic!("{e}"))), item);
    assert_eq!(of("morlog", "undo-redo-bound"), 44.0);
    assert!((of("morlog", "slde-energy-share") - 0.051).abs() < 0.001);
    assert_eq!(of("hoop", "oop-buffer-slices"), 8.0);
    assert_eq!(of("hoop", "next-reach"), 2.0);
}

/// `silo-battery-ratio-*` and `silo-tab1-battery`: Silo divides its own rounded cells.
#[test]
fn silos_ratios_are_those_of_its_rounded_cells() {
    let sheet = sheet(find("silo").unwrap_or_else(|e| panic!("{e}")));
    let printed = |item: &str| sheet.item(item).and_then(|i| i.printed).expect("it is printed");
    let by_cells = [
        ("eadr-volume-ratio", printed("eadr-capacitor-volume"), "capacitor-volume"),
        ("bbb-volume-ratio", printed("bbb-capacitor-volume"), "capacitor-volume"),
        ("eadr-area-ratio", printed("eadr-capacitor-area"), "capacitor-area"),
        ("bbb-area-ratio", printed("bbb-capacitor-area"), "capacitor-area"),
    ];
    for (ratio, above, below) in by_cells {
        let rounded = above.value() / printed(below).value();
        assert!(printed(ratio).agrees_with(rounded), "{ratio}: {rounded}");
    }
    assert!(printed("battery").agrees_with(printed("lithium-volume").value() / 8.0));
    // The energies of the others follow from 11.839 nJ for a byte of an L1, not from the printed 11.228.
    let per_byte = 11.228 / 1000.0;
    assert!(!printed("bbb-flush-energy").agrees_with(16_384.0 * per_byte));
    assert!(!printed("eadr-flush-energy").agrees_with(0.45 * 10_496.0 * 1024.0 * per_byte));
}

#[test]
fn every_difference_has_a_note_and_every_formula_its_parameters() {
    for entry in registry().designs() {
        let machine = registry().machine(entry.cost.machine).unwrap_or_else(|e| panic!("{e}"));
        let (sheet, config) = (sheet(entry), entry.configured(machine));
        let names: BTreeSet<&str> = sheet.items.iter().map(|item| item.name).collect();
        assert_eq!(names.len(), sheet.items.len(), "{}: names are unique", entry.name);
        for (item, verdict) in sheet.items.iter().zip(&sheet.verdicts) {
            let of = format!("{} of {}", item.name, entry.name);
            assert!(item.value() > 0.0 && item.count() >= 1.0, "{of}");
            assert!(*verdict != Some(Verdict::Differs) || !item.note.is_empty(), "{of}: why?");
            assert_eq!(verdict.is_some(), item.printed.is_some(), "{of}");
            let count = item.per.as_ref().map(|(_, count)| count.quantities()).unwrap_or_default();
            for (name, quantity) in item.formula.quantities().into_iter().chain(count) {
                if name.contains('.') {
                    assert_eq!(parameter(&config, name).value(), quantity, "{of}: {name}");
                }
            }
        }
    }
}

/// Formulas name other items by what those are.
#[test]
fn items_in_formulas_have_the_items_values() {
    for sheet in registry().designs().iter().map(|entry| sheet(entry)) {
        for item in &sheet.items {
            for (name, quantity) in item.formula.quantities() {
                if let Some(other) = sheet.item(name) {
                    assert_eq!(other.value(), quantity, "{}: {name}", sheet.design);
                }
            }
        }
    }
}

#[test]
fn only_software_and_references_add_nothing() {
    let programs =
        ["ideal", "redo-clwb", "undo-clwb", "undo-clwb-literal", "unsafe-redo", "unsafe-undo"];
    for sheet in registry().designs().iter().map(|entry| sheet(entry)) {
        let is_program = programs.contains(&sheet.design);
        assert_eq!(sheet.items.is_empty(), is_program, "{}", sheet.design);
        if is_program {
            assert!(sheet.remarks[0].starts_with("Nothing beside the machine"), "{}", sheet.design);
        }
    }
}

/// A design of one's own that says nothing of its hardware is not one without any.
#[test]
fn a_design_that_declares_no_cost_is_not_free() {
    let remark = DesignInfo::DEFAULT.cost.remarks[0];
    assert!(remark.contains("declares no cost"), "{remark}");
}

/// On every machine that ships, every design has a cost, and no item has a place twice.
#[test]
fn every_design_has_a_cost_on_every_machine() {
    for (entry, preset) in
        registry().designs().iter().flat_map(|e| registry().presets().iter().map(move |p| (e, p)))
    {
        let sheet = sheet_with(entry.name, preset.name, &[]);
        assert_eq!(sheet.items.len(), sheet.verdicts.len());
        assert!(sheet.items.iter().all(|item| item.total().is_finite()), "{}", entry.name);
    }
}

#[test]
fn cost_follows_the_parameters() {
    for (design, key, values, item) in [
        ("silo", "silo.log_buffer_entries", ["20", "40"], "log-buffer"),
        ("silo", "silo.log_buffer_entries", ["20", "40"], "flush-energy"),
        ("silo", "core.count", ["4", "8"], "log-buffers"),
        ("fwb", "fwb.log_buffer_entries", ["15", "30"], "log-buffer"),
        ("morlog", "morlog.redo_entries", ["16", "32"], "redo-buffer"),
        ("hoop", "hoop.mapping_table_bytes", ["1 MB", "2 MB"], "mapping-table"),
        ("hoop", "core.count", ["8", "16"], "mapping-table-by-cores"),
        ("lalea", "lalea.fle_entries", ["512", "1024"], "fle-fifo"),
        ("lad", "controller.adr_entries", ["16", "32"], "pool"),
        ("redu", "redu.log_queue_entries", ["16", "32"], "log-queue"),
        ("opt-redo", "opt-redo.victim_cache_lines", ["1024", "2048"], "victim-cache"),
        ("opt-undo", "l1.bytes", ["16 KB", "32 KB"], "l1-extension"),
        ("osp", "osp.shadow_pages", ["256", "512"], "ssp-cache"),
        ("lsm", "lsm.write_set_slots", ["512", "1024"], "write-set"),
        ("base", "base.log_bytes_per_thread", ["32 KB", "64 KB"], "log-area"),
    ] {
        let machine = find(design).unwrap_or_else(|e| panic!("{e}")).cost.machine;
        let total = |value| {
            let sheet = sheet_with(design, machine, &[(key, value)]);
            sheet.item(item).unwrap_or_else(|| panic!("{design}: no {item}")).total()
        };
        let [one, two] = values.map(total);
        assert_eq!(two, 2.0 * one, "{item} of {design} by {key}");
    }
}

#[test]
fn a_printed_value_says_nothing_of_other_parameters() {
    let verdict = |settings: &[(&str, &str)], item: &str| {
        let sheet = sheet_with("silo", "silo", settings);
        let at = sheet.items.iter().position(|i| i.name == item).expect("listed");
        sheet.verdicts[at]
    };
    assert_eq!(verdict(&[], "log-buffer"), Some(Verdict::Agrees));
    let twice = [("silo.log_buffer_entries", "40")];
    assert_eq!(verdict(&twice, "log-buffer"), Some(Verdict::OtherParameters));
    assert_eq!(verdict(&twice, "log-entry"), Some(Verdict::Agrees));
    assert_eq!(verdict(&twice, "id-registers"), None);
    assert_eq!(verdict(&twice, "flush-energy"), Some(Verdict::OtherParameters));
    assert_eq!(verdict(&[], "flush-energy"), Some(Verdict::Differs));
}

#[test]
fn totals_are_of_what_is_built_place_by_place() {
    let dp = sheet_with("morlog-dp", "morlog", &[]);
    let strict = sheet_with("morlog", "morlog", &[]);
    let of = |sheet: &Sheet, place| {
        sheet.totals().into_iter().find(|(p, _)| *p == place).map_or(0.0, |(_, bytes)| bytes)
    };
    // 40 bits for each line of eight L1s, and 64 more for its dirty flags.
    assert_eq!(of(&strict, Place::L1), 40.0 / 8.0 * 4096.0);
    assert_eq!(of(&dp, Place::L1), 104.0 / 8.0 * 4096.0);
    assert_eq!(of(&strict, Place::Controller), (16 + 404 + 552) as f64);
    assert_eq!(of(&dp, Place::Controller), (16 + 404 + 552 + 16 + 32) as f64);
    // 13 bits for each of eight threads; the printed 10 bits are not what the design has.
    assert_eq!((of(&strict, Place::Core), of(&dp, Place::Core)), (0.0, 13.0));
    let counted = dp.items.iter().filter(|item| item.role != Role::Built);
    assert!(counted.map(|item| item.bits_built()).all(|bits| bits == 0.0));
    let silo = sheet_with("silo", "silo", &[]);
    assert_eq!((of(&silo, Place::Controller), of(&silo, Place::Core)), (5440.0, 128.0));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let mut config = registry().machine("silo").unwrap_or_else(|e| panic!("{e}"));
    config.set("l2.bytes", "384 KB").unwrap_or_else(|e| panic!("{e}"));
    let entry = find("silo").unwrap_or_else(|e| panic!("{e}"));
    let error =
        Sheet::of(registry(), entry, config).map(|_| ()).expect_err("768 sets are no power of two");
    assert!(error.to_string().contains("l2.bytes"), "{error}");
}

mod fwb_items {
    use graven::cost::{Sheet, Verdict};

    use crate::common::{find, registry};

    fn sheet(design: &str, settings: &[(&str, &str)]) -> Sheet {
        let mut config = registry().machine("fwb").expect("the preset loads");
        for (key, value) in settings {
            config.set(key, value).expect("a valid setting");
        }
        Sheet::of(registry(), find(design).expect("registered"), config)
            .expect("a valid configuration")
    }

    /// `fwb-tab1-txid-register` and `fwb-txid-256` with §IV-B's width: a byte tells 256 transactions apart.
    #[test]
    fn ids_of_8_bits_are_a_byte() {
        for sheet in [sheet("fwb", &[("fwb.transaction_id_bits", "8")]), sheet("hw-rlog", &[])] {
            for name in ["transaction-id-register", "active-transactions"] {
                let at = sheet.items.iter().position(|item| item.name == name).expect("listed");
                assert_eq!(sheet.verdicts[at], Some(Verdict::Agrees), "{name} of {}", sheet.design);
            }
        }
    }

    #[test]
    fn only_scans_need_bits_and_only_slde_needs_flags() {
        let bits = |design: &str, name: &str| {
            sheet(design, &[]).item(name).map(|item| item.bits_built() / 8.0)
        };
        assert_eq!(bits("fwb", "fwb-bits"), Some(16_640.0));
        assert_eq!(bits("hwl", "fwb-bits"), Some(0.0));
        assert_eq!(bits("fwb", "dirty-flags"), Some(0.0));
        assert_eq!(bits("fwb-slde", "dirty-flags"), Some(16.0));
    }
}

mod lalea_items {
    use graven::cost::{Sheet, Verdict};

    use crate::common::{find, registry};

    fn sheet(fh_entries: &str) -> Sheet {
        let mut config = registry().machine("lalea").expect("the preset loads");
        config.set("lalea.fh_entries", fh_entries).expect("a valid setting");
        Sheet::of(registry(), find("lalea").expect("registered"), config)
            .expect("a valid configuration")
    }

    /// Claims `lalea-fh-fifo` and `lalea-bank-table-total`: 2.375 KB is right for 1,024 addresses; the 256 of the text have
    /// 608 B. So the table has 39.0 KB, or 24.75, and 8 B of counters.
    #[test]
    fn the_fifos_have_the_printed_sizes_if_both_hold_1024() {
        for (entries, kilobytes, table, verdict) in
            [("256", 0.59375, 24.75, Verdict::Differs), ("1024", 2.375, 39.0, Verdict::Agrees)]
        {
            let sheet = sheet(entries);
            let value = |name: &str| sheet.item(name).expect("listed").value();
            assert_eq!(value("fh-fifo"), kilobytes);
            assert_eq!(value("bank-table"), table + 8.0 / 1024.0);
            let at = sheet.items.iter().position(|i| i.name == "fh-fifo").expect("listed");
            assert_eq!(sheet.verdicts[at], Some(verdict));
        }
    }
}

mod quantities {
    use graven::config::{self, CoreConfig, L1Config, L2Config, LlcConfig};
    use graven::quantities::{
        bytes_behind_l1, cache_bytes, cache_lines, hardware_threads, pm_banks, traversal_cycles,
    };

    use crate::common::registry;

    #[test]
    fn the_caches_are_those_of_the_machine() {
        let config = registry().machine("silo").expect("the preset loads");
        let (core, l1, llc) =
            (config.get::<CoreConfig>(), config.get::<L1Config>(), config.get::<LlcConfig>());
        let l2 = config.get::<L2Config>();
        let bytes = u64::from(core.count) * (l1.bytes.0 + l2.bytes.0) + llc.bytes.0;
        assert_eq!(cache_bytes(&config).value(), bytes as f64);
        assert_eq!(bytes_behind_l1(&config).value(), (bytes - 8 * l1.bytes.0) as f64);
        assert_eq!(
            cache_lines(&config).names(),
            "(core.count × (l1.bytes + l2.bytes) + llc.bytes) / line"
        );
        let two_levels = registry().machine("fwb").expect("the preset loads");
        assert_eq!(cache_bytes(&two_levels).names(), "core.count × l1.bytes + llc.bytes");
        assert_eq!(
            traversal_cycles(&two_levels).value(),
            f64::from(config::traversal_cycles(&two_levels))
        );
        assert_eq!(hardware_threads(&two_levels).names(), "core.count × core.threads_per_core");
        assert_eq!(pm_banks(&registry().machine("morlog").expect("it loads")).value(), 32.0);
    }
}
