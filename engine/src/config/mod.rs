//! Configuration: typed sections, filled from a preset or a file, then from single settings.
//!
//! A file is TOML with one table per section. A value may be plain (`count = 8`) or say where it is
//! from: `count = { value = 8, source = "Silo Table II" }`; what a paper leaves open is
//! `{ value = 15.0, assumed = "why" }`. Everything is checked before anything runs: unknown tables and
//! keys, types, ranges, and sizes that do not fit each other.

mod error;
mod param;
mod presets;
mod sections;
mod validate;

pub use error::ConfigError;
pub use param::{Field, Param, Refusal, Section, Size};
pub use presets::{PRESETS, Preset, preset};
pub use sections::{
    ControllerConfig, CoreConfig, CoreModel, DramConfig, Interleave, L1Config, L2Config, LlcConfig,
    PmConfig,
};

use std::collections::BTreeMap;

use toml::{Table, Value};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A paper's table or section.
    Paper(String),
    /// Left open by the paper; the reason for the value chosen.
    Assumed(String),
    /// The user: a file's name, or the argument that set it.
    User(String),
}

/// The whole configuration of one simulation.
#[derive(Debug)]
pub struct Config {
    /// Name of the preset or file that the machine came from.
    pub machine: String,
    sections: Vec<Box<dyn Section>>,
    sources: BTreeMap<String, Source>,
}

impl Clone for Config {
    fn clone(&self) -> Self {
        Self {
            machine: self.machine.clone(),
            sections: self.sections.iter().map(|s| s.boxed_clone()).collect(),
            sources: self.sources.clone(),
        }
    }
}

impl Config {
    /// All defaults: the machine's sections, then those of designs and workloads.
    pub fn defaults() -> Config {
        let mut sections: Vec<Box<dyn Section>> = vec![
            Box::new(CoreConfig::default()),
            Box::new(L1Config::default()),
            Box::new(L2Config::default()),
            Box::new(LlcConfig::default()),
            Box::new(ControllerConfig::default()),
            Box::new(PmConfig::default()),
            Box::new(DramConfig::default()),
        ];
        sections.extend(crate::workloads::sections());
        sections.extend(crate::designs::sections());
        Config { machine: "defaults".into(), sections, sources: BTreeMap::new() }
    }

    /// The configuration of a named preset.
    ///
    /// # Errors
    /// If there is no such preset; the message lists those that exist.
    pub fn from_preset(name: &str) -> Result<Config, ConfigError> {
        let preset = preset(name)?;
        let mut config = Config::from_toml(preset.text, preset.file)?;
        config.machine = name.into();
        Ok(config)
    }

    /// Defaults overlaid with the text of a TOML file; `file` is its name, for messages.
    ///
    /// A top-level `base = "preset"` starts from that preset instead of the defaults.
    ///
    /// # Errors
    /// Names the file, the key, the value and what is allowed.
    pub fn from_toml(text: &str, file: &str) -> Result<Config, ConfigError> {
        let table: Table = text.parse().map_err(|e: toml::de::Error| ConfigError::Syntax {
            file: file.into(),
            message: e.to_string(),
        })?;
        let mut config = match table.get("base") {
            None => Config::defaults(),
            Some(Value::String(name)) => Config::from_preset(name)?,
            Some(other) => {
                return Err(ConfigError::value(file, "base", other, "the name of a preset"));
            }
        };
        config.machine = file.into();
        for (name, value) in &table {
            if matches!(name.as_str(), "base" | "title") {
                continue;
            }
            let Value::Table(values) = value else {
                return Err(config.unknown_section(file, name));
            };
            for (key, value) in values {
                config.set_from_file(file, name, key, value)?;
            }
        }
        Ok(config)
    }

    fn set_from_file(
        &mut self,
        file: &str,
        section: &str,
        key: &str,
        value: &Value,
    ) -> Result<(), ConfigError> {
        let (value, source) = match value {
            Value::Table(t) => annotated(t).ok_or_else(|| {
                ConfigError::value(
                    file,
                    &format!("{section}.{key}"),
                    value,
                    "a plain value, or { value = …, source = \"…\" }, or { value = …, assumed = \"…\" }",
                )
            })?,
            plain => (plain.clone(), Source::User(file.into())),
        };
        self.set_value(file, section, key, &value, source)
    }

    /// Sets one parameter from text, as `--set SECTION.KEY=VALUE` does. The text is read as a TOML
    /// value, or taken as a bare word.
    ///
    /// # Errors
    /// As [`Config::from_toml`]; the origin is named as `--set`.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), ConfigError> {
        let origin = "--set";
        let value = format!("v = {text}")
            .parse::<Table>()
            .ok()
            .and_then(|mut t| t.remove("v"))
            .unwrap_or_else(|| Value::String(text.into()));
        let Some((section, name)) = key.split_once('.') else {
            return Err(ConfigError::value(origin, key, &value, "a key of the form SECTION.KEY"));
        };
        self.set_value(
            origin,
            section,
            name,
            &value,
            Source::User(format!("{origin} {key}={text}")),
        )
    }

    fn set_value(
        &mut self,
        origin: &str,
        section: &str,
        key: &str,
        value: &Value,
        source: Source,
    ) -> Result<(), ConfigError> {
        let Some(found) = self.sections.iter_mut().find(|s| s.name() == section) else {
            return Err(self.unknown_section(origin, section));
        };
        let path = format!("{section}.{key}");
        found.set(key, value).map_err(|refusal| match refusal {
            Refusal::UnknownKey(known) => ConfigError::UnknownKey {
                origin: origin.into(),
                key: path.clone(),
                allowed: error::suggestion(key, &known),
            },
            Refusal::NotAllowed(allowed) => ConfigError::value(origin, &path, value, &allowed),
        })?;
        self.sources.insert(path, source);
        Ok(())
    }

    fn unknown_section(&self, origin: &str, name: &str) -> ConfigError {
        let known: Vec<&str> = self.sections.iter().map(|s| s.name()).collect();
        ConfigError::UnknownKey {
            origin: origin.into(),
            key: name.into(),
            allowed: error::suggestion(name, &known),
        }
    }

    /// The section of a type.
    ///
    /// # Panics
    /// If that section is not registered: a broken invariant of the build, not of the input.
    pub fn get<S: Section>(&self) -> &S {
        self.sections
            .iter()
            .find_map(|s| s.as_any().downcast_ref::<S>())
            .expect("every section type is registered in Config::defaults")
    }

    /// Every section, in order.
    pub fn sections(&self) -> impl Iterator<Item = &dyn Section> {
        self.sections.iter().map(AsRef::as_ref)
    }

    /// Where the value of `section.key` is from; `None` for a default.
    pub fn source(&self, path: &str) -> Option<&Source> {
        self.sources.get(path)
    }

    /// The whole configuration as `{section: {key: value}}`, for the record of a result.
    pub fn to_json(&self) -> serde_json::Value {
        let mut all = serde_json::Map::new();
        for section in self.sections() {
            let mut values = serde_json::Map::new();
            for field in section.fields() {
                let value = section.get(field.key).expect("a declared key has a value");
                values.insert(field.key.into(), json(&value));
            }
            all.insert(section.name().into(), values.into());
        }
        all.into()
    }
}

/// `{ value = …, source = … }` or `{ value = …, assumed = … }`.
fn annotated(table: &Table) -> Option<(Value, Source)> {
    let value = table.get("value")?.clone();
    if table.len() != 2 {
        return None;
    }
    let text = |key: &str| table.get(key).and_then(Value::as_str).map(str::to_owned);
    let source =
        text("source").map(Source::Paper).or_else(|| text("assumed").map(Source::Assumed))?;
    Some((value, source))
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Integer(i) => (*i).into(),
        Value::Float(f) => (*f).into(),
        Value::Boolean(b) => (*b).into(),
        Value::String(s) => s.clone().into(),
        other => other.to_string().into(),
    }
}
