//! Configuration: typed sections, filled from a preset or a file, then from single settings.
//!
//! A file is TOML with one table per section. A value may be plain (`count = 8`) or say where it is
//! from: `count = { value = 8, source = "Silo Table II" }`; what a paper leaves open is
//! `{ value = 15.0, assumed = "why" }`. Beside the tables a file may have a `title`, and `extends`: the
//! preset whose values hold where the file says nothing. The table `[comparison]` holds no parameters, but
//! what is compared on the machine ([`Comparison`]).
//!
//! Everything is checked before anything runs: unknown tables and keys, types, ranges, and values that
//! do not fit each other ([`Config::validate`]).

mod annotation;
mod comparison;
mod error;
mod param;
mod presets;
mod sections;
mod validate;

pub use annotation::{Annotation, Source};
pub use comparison::{Comparison, Variation};
pub use error::ConfigError;
pub use param::{Field, Param, Refusal, Section, Size};
pub use presets::{PRESETS, Preset, preset};
pub use sections::{
    CellKind, ControllerConfig, CoreConfig, CoreModel, DramConfig, Interleave, L1Config, L2Config,
    LlcConfig, PmConfig, TlcConfig,
};

use std::collections::BTreeMap;

use toml::{Table, Value};

/// That a value was set, and by what.
#[derive(Clone, Debug)]
struct Setting {
    source: Source,
    /// The file or argument, for messages.
    origin: String,
    /// Position among all settings: of two values that collide, the later one is to blame.
    order: usize,
}

/// The whole configuration of one simulation.
#[derive(Debug)]
pub struct Config {
    /// Name of the preset or file that the machine came from.
    pub machine: String,
    sections: Vec<Box<dyn Section>>,
    settings: BTreeMap<String, Setting>,
    next_order: usize,
    comparison: Comparison,
}

impl Clone for Config {
    fn clone(&self) -> Self {
        Self {
            machine: self.machine.clone(),
            sections: self.sections.iter().map(|s| s.boxed_clone()).collect(),
            settings: self.settings.clone(),
            next_order: self.next_order,
            comparison: self.comparison.clone(),
        }
    }
}

impl Config {
    /// All defaults: the machine's sections, then those of workloads, designs and statistics.
    pub fn defaults() -> Config {
        let mut sections: Vec<Box<dyn Section>> = vec![
            Box::new(CoreConfig::default()),
            Box::new(L1Config::default()),
            Box::new(L2Config::default()),
            Box::new(LlcConfig::default()),
            Box::new(ControllerConfig::default()),
            Box::new(PmConfig::default()),
            Box::new(TlcConfig::default()),
            Box::new(DramConfig::default()),
        ];
        sections.extend(crate::workloads::sections());
        sections.extend(crate::designs::sections());
        sections.push(Box::new(crate::stats::StatisticsConfig::default()));
        sections.push(Box::new(crate::stats::ProcessorEnergyConfig::default()));
        Config {
            machine: "defaults".into(),
            sections,
            settings: BTreeMap::new(),
            next_order: 0,
            comparison: Comparison::default(),
        }
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
    /// A top-level `extends = "preset"` starts from that preset instead of the defaults.
    ///
    /// # Errors
    /// Names the file, the key, the value and what is allowed.
    pub fn from_toml(text: &str, file: &str) -> Result<Config, ConfigError> {
        let table: Table = text.parse().map_err(|e: toml::de::Error| ConfigError::Syntax {
            file: file.into(),
            message: e.to_string().trim_end().into(),
        })?;
        let mut config = match table.get("extends") {
            None => Config::defaults(),
            Some(base) => Config::from_preset(base_name(file, base)?)?,
        };
        config.machine = file.into();
        config.overlay(&table, file)?;
        Ok(config)
    }

    /// Defaults overlaid with a configuration as [`Config::to_json`] writes it. `machine` is the machine's name,
    /// `origin` where the configuration is from, for messages. It counts as set by the user.
    ///
    /// # Errors
    /// As [`Config::from_toml`].
    pub fn from_json(
        json: &serde_json::Value,
        machine: &str,
        origin: &str,
    ) -> Result<Config, ConfigError> {
        let mut config = Config::defaults();
        config.machine = machine.into();
        config.overlay_json(json, origin, |_| true)?;
        Ok(config)
    }

    /// Takes over the sections of such a configuration whose names are wanted.
    ///
    /// # Errors
    /// As [`Config::from_toml`].
    pub fn overlay_json(
        &mut self,
        json: &serde_json::Value,
        origin: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<(), ConfigError> {
        let tables = json.as_object().into_iter().flatten();
        for (section, values) in tables.filter(|(section, _)| wanted(section)) {
            let source = Source::User(origin.into());
            for (key, value) in values.as_object().into_iter().flatten() {
                self.set_value(origin, section, key, &from_json(value), source.clone())?;
            }
        }
        Ok(())
    }

    /// Takes what the tables of a file say over what is there.
    fn overlay(&mut self, table: &Table, file: &str) -> Result<(), ConfigError> {
        for (name, value) in table {
            match (name.as_str(), value) {
                ("extends", _) | ("title", Value::String(_)) => {}
                ("title", other) => {
                    return Err(ConfigError::value(file, "title", other, "a text"));
                }
                (comparison::TABLE, Value::Table(values)) => self.read_comparison(file, values)?,
                (section, Value::Table(values)) => {
                    // An empty table must be of a known section, too.
                    if self.section_index(file, section).is_err() {
                        return Err(self.unknown_name(file, section, &[comparison::TABLE]));
                    }
                    for (key, value) in values {
                        self.set_from_file(file, section, key, value)?;
                    }
                }
                (name, other) => return Err(self.stray_value(file, name, other)),
            }
        }
        self.settle_comparison(file, table)
    }

    /// A value at the top level of a file, where only tables belong.
    fn stray_value(&self, file: &str, name: &str, value: &Value) -> ConfigError {
        if name == comparison::TABLE || self.sections().any(|s| s.name() == name) {
            return ConfigError::value(file, name, value, &format!("a table, [{name}]"));
        }
        let mut homes: Vec<String> = self
            .sections()
            .filter(|s| s.get(name).is_some())
            .map(|s| format!("[{}]", s.name()))
            .collect();
        if comparison::KEYS.contains(&name) {
            homes.push(format!("[{}]", comparison::TABLE));
        }
        if homes.is_empty() {
            return self.unknown_name(file, name, &["extends", "title", comparison::TABLE]);
        }
        ConfigError::UnknownKey {
            origin: file.into(),
            key: name.into(),
            allowed: format!("it belongs in a table: {}", homes.join(" or ")),
        }
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
    /// value, or taken as a bare word. White space around the key and the text is ignored.
    ///
    /// # Errors
    /// As [`Config::from_toml`]; the origin is named as `--set`.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), ConfigError> {
        self.set_by("--set", key, text)
    }

    /// As [`Config::set`], for another origin than `--set`.
    ///
    /// # Errors
    /// As [`Config::set`].
    pub fn set_by(&mut self, origin: &str, key: &str, text: &str) -> Result<(), ConfigError> {
        let (key, text) = (key.trim(), text.trim());
        let (section, name) = split_key(origin, key)?;
        let source = Source::User(format!("{origin} {key}={text}"));
        self.set_value(origin, section, name, &read_text(text), source)
    }

    /// Takes over the parameter set that the name of a design or workload stands for, but for what the user has set.
    ///
    /// # Panics
    /// On a key or value that does not exist: a broken registry, not a broken input.
    pub fn adopt(&mut self, name: &'static str, settings: &[(&str, &str)]) {
        for &(key, text) in settings {
            if matches!(self.source(key), Some(Source::User(_))) {
                continue;
            }
            let (section, parameter) = split_key(name, key).expect("keys are SECTION.KEY");
            self.set_value(name, section, parameter, &read_text(text), Source::Name(name))
                .expect("a parameter set is declared and in range");
        }
    }

    fn set_value(
        &mut self,
        origin: &str,
        section: &str,
        key: &str,
        value: &Value,
        source: Source,
    ) -> Result<(), ConfigError> {
        let index = self.section_index(origin, section)?;
        put(self.sections[index].as_mut(), origin, key, value)?;
        self.next_order += 1;
        let setting = Setting { source, origin: origin.into(), order: self.next_order };
        self.settings.insert(format!("{section}.{key}"), setting);
        Ok(())
    }

    /// A value as its parameter would write it, if that accepts it; nothing is set.
    fn accepted(
        &self,
        origin: &str,
        section: &str,
        key: &str,
        value: &Value,
    ) -> Result<Value, ConfigError> {
        let mut copy = self.sections[self.section_index(origin, section)?].boxed_clone();
        put(copy.as_mut(), origin, key, value)?;
        Ok(copy.get(key).expect("a key that accepts a value has one"))
    }

    fn section_index(&self, origin: &str, name: &str) -> Result<usize, ConfigError> {
        let found = self.sections.iter().position(|s| s.name() == name);
        found.ok_or_else(|| self.unknown_name(origin, name, &[]))
    }

    /// A name that is no section, nor one of the `others` that may stand in its place.
    fn unknown_name(&self, origin: &str, name: &str, others: &[&str]) -> ConfigError {
        let sections = self.sections.iter().map(|s| s.name());
        let known: Vec<&str> = others.iter().copied().chain(sections).collect();
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

    /// Where the value of `section.key` is from; `None` if there is no such key.
    pub fn source(&self, path: &str) -> Option<&Source> {
        let (section, key) = path.split_once('.')?;
        self.sections().find(|s| s.name() == section)?.get(key)?;
        Some(self.settings.get(path).map_or(&Source::Default, |setting| &setting.source))
    }

    /// The whole configuration as `{section: {key: value}}`, for the record of a result.
    pub fn to_json(&self) -> serde_json::Value {
        let mut all = serde_json::Map::new();
        for section in self.sections() {
            let mut values = serde_json::Map::new();
            for field in section.fields() {
                let value = section.get(field.key).expect("a declared key has a value");
                values.insert(field.key.into(), to_json(&value));
            }
            all.insert(section.name().into(), values.into());
        }
        all.into()
    }
}

/// Section and key of `SECTION.KEY`.
fn split_key<'a>(origin: &str, key: &'a str) -> Result<(&'a str, &'a str), ConfigError> {
    key.split_once('.').ok_or_else(|| ConfigError::UnknownKey {
        origin: origin.into(),
        key: key.into(),
        allowed: "a key has the form SECTION.KEY, as in core.count".into(),
    })
}

/// A text as a TOML value, or as a bare word.
fn read_text(text: &str) -> Value {
    // More than one key: the text was not one value but several lines.
    format!("v = {text}")
        .parse::<Table>()
        .ok()
        .filter(|t| t.len() == 1)
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| Value::String(text.into()))
}

/// Replaces a value of a section, or says why not.
fn put(
    section: &mut dyn Section,
    origin: &str,
    key: &str,
    value: &Value,
) -> Result<(), ConfigError> {
    let path = format!("{}.{key}", section.name());
    section.set(key, value).map_err(|refusal| match refusal {
        Refusal::UnknownKey(known) => ConfigError::UnknownKey {
            origin: origin.into(),
            key: path,
            allowed: error::suggestion(key, &known),
        },
        Refusal::NotAllowed(allowed) => ConfigError::value(origin, &path, value, &allowed),
    })
}

/// The preset that a file names as its base.
fn base_name<'a>(file: &str, base: &'a Value) -> Result<&'a str, ConfigError> {
    let known: Vec<&str> = PRESETS.iter().map(|p| p.name).collect();
    match base.as_str() {
        Some(name) if known.contains(&name) => Ok(name),
        other => {
            let hint = error::suggestion(other.unwrap_or_default(), &known);
            Err(ConfigError::value(
                file,
                "extends",
                base,
                &format!("the name of a machine; {hint}"),
            ))
        }
    }
}

/// `{ value = …, source = … }` or `{ value = …, assumed = … }`.
fn annotated(table: &Table) -> Option<(Value, Source)> {
    let value = table.get("value")?.clone();
    if table.len() != 2 {
        return None;
    }
    let text = |key: &str| {
        table.get(key).and_then(Value::as_str).filter(|t| !t.trim().is_empty()).map(str::to_owned)
    };
    let source =
        text("source").map(Source::Paper).or_else(|| text("assumed").map(Source::Assumed))?;
    Some((value, source))
}

/// The reverse of [`to_json`]; what no parameter can be is text that none accepts.
fn from_json(value: &serde_json::Value) -> Value {
    match value {
        serde_json::Value::Bool(b) => (*b).into(),
        serde_json::Value::String(s) => s.clone().into(),
        serde_json::Value::Number(n) => match (n.as_i64(), n.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(float)) => float.into(),
            (None, None) => n.to_string().into(),
        },
        other => other.to_string().into(),
    }
}

/// A parameter's value as JSON.
pub fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Integer(i) => (*i).into(),
        Value::Float(f) => (*f).into(),
        Value::Boolean(b) => (*b).into(),
        Value::String(s) => s.clone().into(),
        other => other.to_string().into(),
    }
}
