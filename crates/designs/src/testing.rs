//! Machines for the tests of designs.

use graven_base::config::{Config, OtherTable};
use graven_machine::registry::{Preset, Registry};

macro_rules! machines {
    ($($name:literal)*) => {
        /// The papers' machines.
        const MACHINES: &[Preset] = &[$(Preset {
            name: $name,
            title: $name,
            file: concat!("papers/", $name, "/machine.toml"),
            text: include_str!(concat!("../../../papers/", $name, "/machine.toml")),
        },)*];
    };
}

machines! { "silo" "morlog" "fwb" "hoop" "lalea" }

/// Tables of machines' files about workloads and comparisons.
const OTHER_TABLES: [&str; 4] = ["comparison", "smallbank", "tatp", "tpcc"];

fn registry() -> Registry {
    let mut registry = Registry::new();
    crate::register(&mut registry);
    MACHINES.iter().for_each(|machine| registry.preset(machine));
    OTHER_TABLES.iter().for_each(|name| registry.other_table(OtherTable { name, keys: &[] }));
    registry
}

/// All defaults.
pub fn defaults() -> Config {
    registry().defaults()
}

/// A paper's machine.
pub fn machine(name: &str) -> Config {
    registry().machine(name).expect("machines that ship are valid")
}
