//! The papers' machines, from `papers/*/machine.toml`.

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
    ($($name:literal, $title:literal;)*) => {
        /// All presets.
        pub const PRESETS: &[Preset] = &[$(Preset {
            name: $name,
            title: $title,
            file: concat!("papers/", $name, "/machine.toml"),
            text: include_str!(concat!("../../../papers/", $name, "/machine.toml")),
        },)*];
    };
}

presets! {
    "silo", "Silo, HPCA'23, Table II: 8 cores, 2 GHz, 16 GB PCM";
    "morlog", "MorLog, ISCA'20, Table III: 8 in-order cores, 3 GHz, 4 channels";
    "fwb", "FWB, HPCA'18, Table II: 4 out-of-order cores of 2 threads, 2.5 GHz, two cache levels, no ADR";
    "hoop", "HOOP, ISCA'20, Table II: 16 out-of-order cores, 2.5 GHz, 512 GB NVM";
    "lalea", "LALEA, Table I: 4 out-of-order cores, 2 GHz, 300 ns writes, 16 ADR entries";
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
