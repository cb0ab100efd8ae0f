//! What Silo costs (§III-B, Table I; §VI-D, §VI-E, Table IV): log buffers with their comparators and batteries. Beside them,
//! for comparison as in Table IV, the batteries of eADR, which flushes dirty lines of all caches, and of BBB, which
//! flushes a buffer of 32 lines at each core.

use super::log_area::FLUSH_BITS;
use crate::fields::{ADDR_BITS, THREAD_BITS, TX_BITS};
use graven_base::config::Config;
use graven_base::cost::{Costs, Formula, Function, Item, Place, Role, SILO, Source, Supply, Unit};
use graven_base::memory::{MEDIA_LINE_BYTES, WORD_BYTES};
use graven_machine::quantities::{
    bits, bytes_behind_l1, cache_bytes, hardware_threads, line, log_head_and_tail, parameter,
    thread_areas, word,
};

pub(super) const COSTS: Costs = Costs::on("silo", items).remarks(&[
    "Table IV counts the bytes of whole log buffers. It leaves out what a failure writes besides, an id tuple for each \
     thread and the log registers; undo or redo records alone are shorter than entries.",
]);

const MM3: Unit = Unit::Of("mm³");
const MM2: Unit = Unit::Of("mm²");
const MICROJOULES: Unit = Unit::Of("µJ");

/// What entries and records say beside their words.
fn head() -> Formula {
    bits("flush-bit", FLUSH_BITS)
        + bits("tid", THREAD_BITS)
        + bits("txid", TX_BITS)
        + bits("addr", ADDR_BITS)
}

fn items(config: &Config) -> Vec<Item> {
    let mut all = buffers(config);
    let total = all[2].quantity();
    all.extend(registers(config));
    let own = battery_of_silo(&total);
    let eadr = battery_of_eadr(config);
    let bbb = battery_of_bbb(config);
    all.push(battery_of_one_buffer(config, &own));
    let ratios = ratios(&eadr, &bbb, &own);
    all.extend(own.into_iter().chain(eadr).chain(bbb).chain(ratios));
    all
}

fn buffers(config: &Config) -> Vec<Item> {
    let entry = Item::new(
        "log-entry",
        "undo+redo entry (Fig. 6)",
        Place::Controller,
        ((head() + word() * 2) / 8).ceil(),
        Unit::Bytes,
    )
    .role(Role::Derived)
    .printed(SILO, "§VI-D", "26", "silo-entry-26b");
    let entries = parameter(config, "silo.log_buffer_entries");
    let log_address = Formula::constant("log-address", WORD_BYTES);
    let buffer = Item::new(
        "log-buffer",
        "SRAM: entries, each with its address in the log region",
        Place::Controller,
        entries.clone() * (entry.quantity() + log_address),
        Unit::Bytes,
    )
    .per("thread", hardware_threads(config))
    .printed(SILO, "Table I", "680", "silo-buffer-680b");
    let all = Item::new(
        "log-buffers",
        "the log buffers together",
        Place::Controller,
        hardware_threads(config) * buffer.quantity(),
        Unit::Bytes,
    )
    .role(Role::Derived)
    .printed(SILO, "§VI-D", "5440", "silo-buffer-total-5440b");
    let comparators = Item::new(
        "comparators",
        "CMOS cells: 64-bit comparators, one for each entry of a log buffer",
        Place::Controller,
        entries,
        Unit::Of("comparators"),
    )
    .per("thread", hardware_threads(config))
    .printed(SILO, "Table I", "20", "silo-tab1-comparators")
    .note("Addresses have 48 bits; a comparator of 64 is wider than they are.");
    vec![entry, buffer, all, comparators]
}

fn registers(config: &Config) -> Vec<Item> {
    let record = Item::new(
        "undo-record",
        "a record in the log region: half an entry (§III-F)",
        Place::Pm,
        ((head() + word()) / 8).ceil(),
        Unit::Bytes,
    )
    .role(Role::Derived)
    .printed(SILO, "§III-F", "18", "silo-undo-entry-18b");
    let batch = Formula::constant("media-line", MEDIA_LINE_BYTES) / record.quantity();
    let ids = (bits("tid", THREAD_BITS) + bits("txid", TX_BITS)) / 8;
    vec![
        log_head_and_tail(Place::Core).per("thread", hardware_threads(config)).printed(
            SILO,
            "Table I",
            "16",
            "silo-tab1-log-head-tail",
        ),
        Item::new(
            "id-registers",
            "flip-flops: thread and transaction of the log generator (§III-B)",
            Place::L1,
            ids,
            Unit::Bytes,
        )
        .per("thread", hardware_threads(config))
        .note("Named in §III-B, and not in Table I."),
        record,
        Item::new(
            "overflow-batch",
            "undo records that overflow together: those of a media line",
            Place::Controller,
            batch.call(Function::Floor),
            Unit::Of("records"),
        )
        .role(Role::Derived)
        .printed(SILO, "§III-F", "14", "silo-batch-14"),
        thread_areas(config, "silo.log_bytes_per_thread"),
    ]
}

/// Names and figures of a column of Table IV.
struct Column {
    role: Role,
    /// Size, energy; volume and area of a supercapacitor, and of lithium thin film.
    names: [&'static str; 6],
    whats: [&'static str; 2],
    printed: [&'static str; 6],
    claims: [&'static str; 6],
    energy_note: &'static str,
}

impl Column {
    /// The rows, for what is flushed, in KB, and the energy for that, in µJ.
    fn rows(&self, size: Formula, energy: impl FnOnce(Formula) -> Formula) -> Vec<Item> {
        let row =
            |i: usize, what, formula, unit| {
                Item::new(self.names[i], what, Place::Battery, formula, unit)
                    .role(self.role)
                    .printed(SILO, "Table IV", self.printed[i], self.claims[i])
            };
        let size = row(0, self.whats[0], size, Unit::Kilobytes);
        let energy =
            row(1, self.whats[1], energy(size.quantity()), MICROJOULES).note(self.energy_note);
        let mut rows = vec![size, energy];
        for (i, source, names) in [
            (2, Source::Capacitor, ["supercapacitor", "a cube of it"]),
            (4, Source::Lithium, ["lithium thin-film battery", "a cube of it"]),
        ] {
            let volume = row(i, names[0], source.volume(rows[1].quantity()), MM3);
            let area = row(i + 1, names[1], Source::area(volume.quantity()), MM2);
            rows.extend([volume, area]);
        }
        rows
    }
}

fn battery_of_silo(buffers: &Formula) -> Vec<Item> {
    let column = Column {
        role: Role::Derived,
        names: [
            "flush-size",
            "flush-energy",
            "capacitor-volume",
            "capacitor-area",
            "lithium-volume",
            "lithium-area",
        ],
        whats: ["what the battery moves to PM", "to move it"],
        printed: ["5.3125", "62", "0.17", "0.31", "0.0017", "0.014"],
        claims: [
            "silo-tab4-silo-flush-size",
            "silo-tab4-silo-energy",
            "silo-tab4-silo-cap-volume",
            "silo-tab4-silo-cap-area",
            "silo-tab4-silo-li-volume",
            "silo-tab4-silo-li-area",
        ],
        energy_note: "5,440 B × 11.228 nJ are 61.08 µJ; the paper rounds up.",
    };
    let energy = |size: Formula| size * 1024 * Supply::Controller.energy_per_byte() / 1000;
    column.rows(buffers.clone() / 1024, energy)
}

/// eADR: 45 % of the lines in all data caches are dirty (§VI-E).
fn battery_of_eadr(config: &Config) -> Vec<Item> {
    let column = Column {
        role: Role::Reference,
        names: [
            "eadr-flush-size",
            "eadr-flush-energy",
            "eadr-capacitor-volume",
            "eadr-capacitor-area",
            "eadr-lithium-volume",
            "eadr-lithium-area",
        ],
        whats: ["eADR: data caches of all levels", "to move the dirty 45 % of them"],
        printed: ["10496", "54377", "151", "28.4", "1.51", "1.32"],
        claims: [
            "silo-tab4-eadr-flush-size",
            "silo-tab4-eadr-energy",
            "silo-tab4-eadr-cap-volume",
            "silo-tab4-eadr-cap-area",
            "silo-tab4-eadr-li-volume",
            "silo-tab4-eadr-li-area",
        ],
        energy_note: "With 11.839 nJ for a byte of an L1, which the paper does not print; 11.228 nJ for all gives 54,305 µJ.",
    };
    let l1 = parameter(config, "core.count") * parameter(config, "l1.bytes");
    let moved = l1 * Supply::L1.energy_per_byte()
        + bytes_behind_l1(config) * Supply::Controller.energy_per_byte();
    let energy = Formula::named("dirty-share", 0.45) * moved / 1000;
    column.rows(cache_bytes(config) / 1024, |_| energy)
}

/// BBB: a battery-backed buffer of 32 lines beside each L1 (§VI-E).
fn battery_of_bbb(config: &Config) -> Vec<Item> {
    let column = Column {
        role: Role::Reference,
        names: [
            "bbb-flush-size",
            "bbb-flush-energy",
            "bbb-capacitor-volume",
            "bbb-capacitor-area",
            "bbb-lithium-volume",
            "bbb-lithium-area",
        ],
        whats: ["BBB: 32 lines beside each L1", "to move them"],
        printed: ["16", "194", "0.54", "0.66", "0.0054", "0.031"],
        claims: [
            "silo-tab4-bbb-flush-size",
            "silo-tab4-bbb-energy",
            "silo-tab4-bbb-cap-volume",
            "silo-tab4-bbb-cap-area",
            "silo-tab4-bbb-li-volume",
            "silo-tab4-bbb-li-area",
        ],
        energy_note: "With 11.839 nJ for a byte beside an L1, which the paper does not print; its 11.228 nJ gives 184 µJ.",
    };
    let lines = Formula::named("bbb-lines", 32.0) * line();
    let size = parameter(config, "core.count") * lines / 1024;
    column.rows(size, |size| size * 1024 * Supply::L1.energy_per_byte() / 1000)
}

fn battery_of_one_buffer(config: &Config, own: &[Item]) -> Item {
    Item::new(
        "battery",
        "lithium thin-film battery of a log buffer",
        Place::Battery,
        own[4].quantity() / hardware_threads(config),
        MM3,
    )
    .per("thread", hardware_threads(config))
    .printed(SILO, "Table I", "2.125e-4", "silo-tab1-battery")
    .note("The paper divides its rounded 0.0017 mm³ by 8.")
}

/// §VI-E: how much larger the supercapacitors of the others are.
fn ratios(eadr: &[Item], bbb: &[Item], own: &[Item]) -> Vec<Item> {
    let ratio = |name, what, other: &[Item], row: usize, printed, claim| {
        let formula = other[row].quantity() / own[row].quantity();
        Item::new(name, what, Place::Battery, formula, Unit::Of("×"))
            .role(Role::Reference)
            .printed(SILO, "§VI-E", printed, claim)
            .note("The paper divides rounded cells of Table IV.")
    };
    let (volume, area) = ("supercapacitor, by volume", "supercapacitor, by area");
    vec![
        ratio("eadr-volume-ratio", volume, eadr, 2, "888.2", "silo-battery-ratio-volume-eadr"),
        ratio("bbb-volume-ratio", volume, bbb, 2, "3.2", "silo-battery-ratio-volume-bbb"),
        ratio("eadr-area-ratio", area, eadr, 3, "91.6", "silo-battery-ratio-area-eadr"),
        ratio("bbb-area-ratio", area, bbb, 3, "2.1", "silo-battery-ratio-area-bbb"),
    ]
}
