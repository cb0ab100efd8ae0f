//! Machines that ship with Graven: the papers', and the crash laboratory's.

use super::ConfigError;

/// A machine that ships with Graven.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// What users call it.
    pub name: &'static str,
    /// One line about it.
    pub title: &'static str,
    /// The file in the repository.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}

macro_rules! presets {
    ($($folder:literal $name:literal, $title:literal;)*) => {
        /// All presets.
        pub const PRESETS: &[Preset] = &[$(Preset {
            name: $name,
            title: $title,
            file: concat!($folder, "/", $name, "/machine.toml"),
            text: include_str!(concat!("../../../", $folder, "/", $name, "/machine.toml")),
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
}

/// The preset of a name.
///
/// # Errors
/// [`ConfigError::UnknownName`] with the names that exist.
pub fn preset(name: &str) -> Result<&'static Preset, ConfigError> {
    PRESETS.iter().find(|p| p.name == name).ok_or_else(|| {
        let known: Vec<&str> = PRESETS.iter().map(|p| p.name).collect();
        ConfigError::unknown_name("machine", name, &known)
    })
}
