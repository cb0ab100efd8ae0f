//! What designs cost: every figure of the papers' tables is derived from configured parameters, or what it differs by is
//! said. How single designs count is tested where they say it.

use crate::common::find;
use crate::common::registry;
use std::collections::BTreeSet;

use graven::config::traversal_cycles;
use graven::cost::{Place, Role, Sheet, Verdict};
use graven::design::DesignInfo;
use graven::quantities::items;

fn sheet_with(design: &str, machine: &str, settings: &[(&str, &str)]) -> Sheet {
    let config = crate::common::machine(machine, settings);
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
    let printed =
        |item: &str| sheet.item(item).and_then(|i| i.printed.as_ref()).expect("it is printed");
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
fn every_difference_has_a_note() {
    for entry in registry().designs() {
        let sheet = sheet(entry);
        let names: BTreeSet<&str> = sheet.items.iter().map(|item| item.name.as_str()).collect();
        assert_eq!(names.len(), sheet.items.len(), "{}: names are unique", entry.name);
        for (item, verdict) in sheet.items.iter().zip(&sheet.verdicts) {
            let of = format!("{} of {}", item.name, entry.name);
            assert!(item.value() > 0.0 && item.count() >= 1.0, "{of}");
            assert!(*verdict != Some(Verdict::Differs) || item.note.is_some(), "{of}: why?");
            assert_eq!(verdict.is_some(), item.printed.is_some(), "{of}");
        }
    }
}

#[test]
fn only_software_and_references_add_nothing() {
    // The battery of caches that survive is the machine's.
    let programs = [
        "ideal",
        "redo-clwb",
        "undo-clwb",
        "undo-clwb-literal",
        "unsafe-redo",
        "unsafe-undo",
        "undo-eadr",
    ];
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

/// What a setting changes: the verdict about an item, and how much storage of it is built.
#[test]
fn settings_decide_verdicts_and_storage() {
    use Verdict::{Agrees, Differs, OtherParameters};
    let (ids, fh) = ("fwb.transaction_id_bits", "lalea.fh_entries");
    let entries = "silo.log_buffer_entries";
    for (design, machine, settings, item, verdict, bytes) in [
        // `fwb-tab1-txid-register`, `fwb-txid-256` with §IV-B's width: a byte tells 256 transactions apart.
        ("fwb", "fwb", &[(ids, "8")][..], "transaction-id-register", Some(Agrees), 8.0),
        ("fwb", "fwb", &[(ids, "8")], "active-transactions", Some(Agrees), 0.0),
        ("hw-rlog", "fwb", &[], "transaction-id-register", Some(Agrees), 8.0),
        ("hw-rlog", "fwb", &[], "active-transactions", Some(Agrees), 0.0),
        // Only scans need bits, and only SLDE needs flags.
        ("fwb", "fwb", &[], "fwb-bits", Some(Differs), 16_640.0),
        ("hwl", "fwb", &[], "fwb-bits", Some(Differs), 0.0),
        ("fwb", "fwb", &[], "dirty-flags", None, 0.0),
        ("fwb-slde", "fwb", &[], "dirty-flags", None, 16.0),
        // `lalea-fh-fifo`: 2.375 KB are right for 1,024 addresses; the 256 of the text have 608 B, for each of 8 banks.
        ("lalea", "lalea", &[(fh, "256")], "fh-fifo", Some(Differs), 8.0 * 608.0),
        ("lalea", "lalea", &[(fh, "1024")], "fh-fifo", Some(Agrees), 8.0 * 2432.0),
        // A printed value says nothing of other parameters.
        ("silo", "silo", &[], "log-buffer", Some(Agrees), 5440.0),
        ("silo", "silo", &[(entries, "40")], "log-buffer", Some(OtherParameters), 10_880.0),
        ("silo", "silo", &[(entries, "40")], "log-entry", Some(Agrees), 0.0),
        ("silo", "silo", &[(entries, "40")], "id-registers", None, 24.0),
        ("silo", "silo", &[(entries, "40")], "flush-energy", Some(OtherParameters), 0.0),
        ("silo", "silo", &[], "flush-energy", Some(Differs), 0.0),
    ] {
        let sheet = sheet_with(design, machine, settings);
        let at = sheet.items.iter().position(|listed| listed.name == item).expect(item);
        let found = (sheet.verdicts[at], sheet.items[at].bits_built() / 8.0);
        assert_eq!(found, (verdict, bytes), "{item} of {design} with {settings:?}");
    }
}

/// `lalea-bank-table-total`: 39 KB with 1,024 addresses of headers, 24.75 with 256, and 8 B of counters.
#[test]
fn the_bank_table_has_the_printed_size_if_both_fifos_hold_1024() {
    for (entries, kilobytes) in [("256", 24.75), ("1024", 39.0)] {
        let sheet = sheet_with("lalea", "lalea", &[("lalea.fh_entries", entries)]);
        assert_eq!(value(&sheet, "bank-table"), kilobytes + 8.0 / 1024.0, "{entries}");
    }
}

/// Sheets show the caches and threads that the machine has, and no others.
#[test]
fn quantities_of_the_machine_are_those_that_it_has() {
    let sheet = "[[item]]\nname = \"x\"\nwhat = \"\"\nplace = \"caches\"\nunit = \"B\"\nformula = ";
    for (machine, quantity, names, value) in [
        ("silo", "cache-bytes", "core.count × (l1.bytes + l2.bytes) + llc.bytes", 10_747_904.0),
        ("silo", "bytes-behind-l1", "core.count × l2.bytes + llc.bytes", 10_485_760.0),
        (
            "silo",
            "cache-lines",
            "(core.count × (l1.bytes + l2.bytes) + llc.bytes) / line",
            167_936.0,
        ),
        ("silo", "hardware-threads", "core.count", 8.0),
        ("fwb", "cache-bytes", "core.count × l1.bytes + llc.bytes", 8_519_680.0),
        ("fwb", "bytes-behind-l1", "llc.bytes", 8_388_608.0),
        ("fwb", "traversal-cycles", "l1.latency_cycles + llc.latency_cycles", 15.0),
        ("fwb", "hardware-threads", "core.count × core.threads_per_core", 8.0),
        ("morlog", "pm-banks", "controller.channels × pm.banks", 32.0),
    ] {
        let config = registry().machine(machine).unwrap_or_else(|e| panic!("{e}"));
        let items = items(&format!("{sheet}\"{quantity}\""), &config, &[]);
        let (formula, of) = (&items[0].formula, format!("{quantity} of {machine}"));
        assert_eq!((formula.names().as_str(), formula.value()), (names, value), "{of}");
        let cycles = f64::from(traversal_cycles(&config));
        assert!(quantity != "traversal-cycles" || cycles == value, "{of}: {cycles}");
    }
}
