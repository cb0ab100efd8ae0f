//! Quantities of the machine that several designs count by.

use crate::config::{ControllerConfig, CoreConfig, L2Config, PmConfig};
use graven_base::config::{Config, Param, Size};
use graven_base::cost::{Formula, Item, Place, Unit, whole};
use graven_base::memory::{LINE_BYTES, WORD_BYTES};

/// A parameter, by its key.
///
/// # Panics
/// If there is none of that key, or it is no number: a broken registry, not a broken input.
pub fn parameter(config: &Config, key: &str) -> Formula {
    let (section, name) = key.split_once('.').expect("a key is SECTION.KEY");
    let value = config.sections().find(|s| s.name() == section).and_then(|s| s.get(name));
    let value = value.unwrap_or_else(|| panic!("{key} is declared"));
    let number = match &value {
        toml::Value::Float(number) => Some(*number),
        other => Size::accept(other, &(Size(0)..=Size(u64::MAX))).map(|size| whole(size.0)),
    };
    Formula::named(key, number.unwrap_or_else(|| panic!("{key} is a number")))
}

/// Threads that the machine runs at a time.
pub fn hardware_threads(config: &Config) -> Formula {
    let core = config.get::<CoreConfig>();
    let cores = parameter(config, "core.count");
    // A factor of one says nothing.
    if core.threads_per_core == 1 {
        cores
    } else {
        cores * parameter(config, "core.threads_per_core")
    }
}

/// Lines of all L1 data caches.
pub fn l1_lines(config: &Config) -> Formula {
    lines(parameter(config, "core.count") * parameter(config, "l1.bytes"))
}

/// Lines of the caches of all levels.
pub fn cache_lines(config: &Config) -> Formula {
    lines(cache_bytes(config))
}

fn lines(bytes: Formula) -> Formula {
    bytes / line()
}

/// Bytes of the caches of all levels.
pub fn cache_bytes(config: &Config) -> Formula {
    let l1 = parameter(config, "l1.bytes");
    let private = if has_l2(config) { l1 + parameter(config, "l2.bytes") } else { l1 };
    parameter(config, "core.count") * private + parameter(config, "llc.bytes")
}

/// Bytes of the caches behind the L1s.
pub fn bytes_behind_l1(config: &Config) -> Formula {
    let llc = parameter(config, "llc.bytes");
    if !has_l2(config) {
        return llc;
    }
    parameter(config, "core.count") * parameter(config, "l2.bytes") + llc
}

/// Cycles in which a line passes through the caches of all levels.
pub fn traversal_cycles(config: &Config) -> Formula {
    let l1 = parameter(config, "l1.latency_cycles");
    let private = if has_l2(config) { l1 + parameter(config, "l2.latency_cycles") } else { l1 };
    private + parameter(config, "llc.latency_cycles")
}

fn has_l2(config: &Config) -> bool {
    config.get::<L2Config>().bytes.0 > 0
}

/// Width of a field of `width` bits.
pub fn bits(name: &str, width: u32) -> Formula {
    Formula::constant(name, width.into())
}

/// Bytes of a line.
pub fn line() -> Formula {
    Formula::constant("line", LINE_BYTES)
}

/// Banks of the persistent memory.
pub fn pm_banks(config: &Config) -> Formula {
    let keys = [
        ("controller.channels", config.get::<ControllerConfig>().channels),
        ("pm.ranks", config.get::<PmConfig>().ranks),
        ("pm.banks", config.get::<PmConfig>().banks),
    ];
    let several =
        keys.iter().filter(|(_, count)| *count > 1).map(|(key, _)| parameter(config, key));
    several.reduce(|banks, more| banks * more).unwrap_or_else(|| parameter(config, "pm.banks"))
}

/// Bits of a word.
pub fn word() -> Formula {
    Formula::constant("word", 8 * WORD_BYTES)
}

/// The registers that say where a log begins and ends: two of a word.
pub fn log_head_and_tail(place: Place) -> Item {
    let formula = Formula::from(2) * Formula::constant("register", WORD_BYTES);
    Item::new("log-registers", "head and tail of the log", place, formula, Unit::Bytes)
}

/// Bytes of a line and what else is kept with it, in bits.
pub fn line_with(others: Formula) -> Formula {
    (line() * 8 + others) / 8
}

/// Non-volatile registers of a word in the controller, one for each thread.
pub fn thread_registers(name: &'static str, what: &'static str, config: &Config) -> Item {
    let formula = Formula::constant("register", WORD_BYTES);
    Item::new(name, what, Place::Controller, formula, Unit::Bytes)
        .per("thread", hardware_threads(config))
}

/// The log area of each thread, of the size that parameter `key` gives.
pub fn thread_areas(config: &Config, key: &str) -> Item {
    let formula = parameter(config, key) / 1024;
    Item::new(
        "log-area",
        "the thread's part of the log region",
        Place::Pm,
        formula,
        Unit::Kilobytes,
    )
    .per("thread", hardware_threads(config))
}
