//! Machines that ship with Graven: the papers', and the crash laboratory's.

use graven_machine::registry::{Preset, Registry};

/// Registers all of them.
pub fn register(registry: &mut Registry) {
    PRESETS.iter().for_each(|preset| registry.preset(preset));
}

macro_rules! presets {
    ($($folder:literal $name:literal, $title:literal;)*) => {
        /// All of them.
        const PRESETS: &[Preset] = &[$(Preset {
            name: $name,
            title: $title,
            file: concat!($folder, "/", $name, "/machine.toml"),
            text: include_str!(concat!("../", $folder, "/", $name, "/machine.toml")),
        },)*];
    };
}

presets! {
    "papers" "silo", "Silo, HPCA'23, Table II: 8 cores, 2 GHz, 16 GB PCM";
    "papers" "morlog", "MorLog, ISCA'20, Table III: 8 in-order cores, 3 GHz, 4 channels";
    "papers" "fwb", "FWB, HPCA'18, Table II: 4 out-of-order cores of 2 threads, 2.5 GHz, two cache levels, no ADR";
    "papers" "hoop", "HOOP, ISCA'20, Table II: 16 out-of-order cores, 2.5 GHz, 512 GB NVM";
    "papers" "lalea", "LALEA, Table I: 4 out-of-order cores, 2 GHz, 300 ns writes, 16 ADR entries";
    "machines" "cramped", "the crash laboratory's: Silo's with caches, queues and buffers as small as they can be";
    "machines" "miniature", "for graven check: the cramped one with two cores and little PM";
}
