//! Configuration: typed sections, filled from a preset or a file, then from single settings.
//!
//! A file is TOML with one table per section. A value may be plain (`count = 8`) or name its
//! source: `count = { value = 8, source = "Silo Table II" }`; a choice that a paper leaves open is
//! `{ value = 15.0, assumed = "why" }`. Beside the tables a file may have a `title`, and `extends`:
//! the machine whose values hold where the file is silent (the reader of the file resolves it).
//! Tables that hold no parameters belong to others ([`OtherTable`]).
//!
//! Everything is checked before anything runs: unknown tables and keys, types and ranges here, and values that
//! do not fit each other by whoever declares them ([`Config::inconsistent`]).

mod annotation;
mod error;
mod param;

pub use annotation::{Annotation, Source};
pub use error::{ConfigError, suggestion};
pub use param::{Field, Param, Refusal, Section, Size};
pub use toml;

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::FxHashMap;
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

/// The whole configuration of one simulation. Copies share what they have in common.
#[derive(Clone, Debug)]
pub struct Config {
    /// Name of the preset or file that the machine came from.
    pub machine: String,
    values: Arc<Values>,
}

#[derive(Debug)]
struct Values {
    sections: Vec<Box<dyn Section>>,
    /// Places of the sections, by type.
    places: Arc<FxHashMap<TypeId, usize>>,
    settings: BTreeMap<String, Setting>,
    next_order: usize,
}

/// A table of a machine's file that holds no parameters.
#[derive(Clone, Copy, Debug)]
pub struct OtherTable {
    /// The table's name.
    pub name: &'static str,
    /// The table's keys, for messages.
    pub keys: &'static [&'static str],
}

impl Clone for Values {
    fn clone(&self) -> Self {
        Self {
            sections: self.sections.iter().map(|s| s.boxed_clone()).collect(),
            places: Arc::clone(&self.places),
            settings: self.settings.clone(),
            next_order: self.next_order,
        }
    }
}

impl Config {
    /// The defaults of these sections.
    pub fn of(sections: Vec<Box<dyn Section>>) -> Config {
        let mut places = FxHashMap::default();
        for (place, section) in sections.iter().enumerate() {
            places.entry(section.as_any().type_id()).or_insert(place);
        }
        let places = Arc::new(places);
        let values = Values { sections, places, settings: BTreeMap::new(), next_order: 0 };
        Config { machine: "defaults".into(), values: Arc::new(values) }
    }

    /// Takes over the sections of a configuration as [`Config::to_json`] writes it whose names are wanted. `origin` is
    /// where it is from, for messages. What it sets counts as set by the user.
    ///
    /// # Errors
    /// Unknown sections and keys, and values that are not allowed.
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

    /// Overlays the values with those of the tables of a file; `file` is its name, for messages,
    /// and `others` are tables that it may have beside those of parameters.
    ///
    /// # Errors
    /// Names the file, the key, the value and what is allowed.
    pub fn overlay(
        &mut self,
        table: &Table,
        file: &str,
        others: &[OtherTable],
    ) -> Result<(), ConfigError> {
        for (name, value) in table {
            match (name.as_str(), value) {
                ("extends", _) | ("title", Value::String(_)) => {}
                ("title", other) => {
                    return Err(ConfigError::value(file, "title", other, "a text"));
                }
                (other, Value::Table(_)) if others.iter().any(|o| o.name == other) => {}
                (section, Value::Table(values)) => {
                    // An empty table must be of a known section, too.
                    if self.section_index(file, section).is_err() {
                        let known: Vec<&str> = others.iter().map(|o| o.name).collect();
                        return Err(self.unknown_name(file, section, &known));
                    }
                    for (key, value) in values {
                        self.set_from_file(file, section, key, value)?;
                    }
                }
                (name, other) => return Err(self.stray_value(file, name, other, others)),
            }
        }
        Ok(())
    }

    /// A value at the top level of a file, where only tables belong.
    fn stray_value(
        &self,
        file: &str,
        name: &str,
        value: &Value,
        others: &[OtherTable],
    ) -> ConfigError {
        let is_table = others.iter().any(|o| o.name == name);
        if is_table || self.sections().any(|s| s.name() == name) {
            return ConfigError::value(file, name, value, &format!("a table, [{name}]"));
        }
        let mut homes: Vec<String> = self
            .sections()
            .filter(|s| s.get(name).is_some())
            .map(|s| format!("[{}]", s.name()))
            .collect();
        let of_others = others.iter().filter(|o| o.keys.contains(&name));
        homes.extend(of_others.map(|o| format!("[{}]", o.name)));
        if homes.is_empty() {
            let tables = others.iter().map(|o| o.name);
            let known: Vec<&str> = ["extends", "title"].into_iter().chain(tables).collect();
            return self.unknown_name(file, name, &known);
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
    /// As [`Config::overlay`]; the origin is named as `--set`.
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
        let values = Arc::make_mut(&mut self.values);
        put(values.sections[index].as_mut(), origin, key, value)?;
        values.next_order += 1;
        let setting = Setting { source, origin: origin.into(), order: values.next_order };
        values.settings.insert(format!("{section}.{key}"), setting);
        Ok(())
    }

    /// A value as its parameter would write it, if that accepts it; nothing is set.
    ///
    /// # Errors
    /// There is no such parameter, or it does not accept the value.
    pub fn accepted(
        &self,
        origin: &str,
        section: &str,
        key: &str,
        value: &Value,
    ) -> Result<Value, ConfigError> {
        let mut copy = self.values.sections[self.section_index(origin, section)?].boxed_clone();
        put(copy.as_mut(), origin, key, value)?;
        Ok(copy.get(key).expect("a key that accepts a value has one"))
    }

    fn section_index(&self, origin: &str, name: &str) -> Result<usize, ConfigError> {
        let found = self.values.sections.iter().position(|s| s.name() == name);
        found.ok_or_else(|| self.unknown_name(origin, name, &[]))
    }

    /// A name that is no section, nor one of the `others` that may stand in its place.
    fn unknown_name(&self, origin: &str, name: &str, others: &[&str]) -> ConfigError {
        let sections = self.values.sections.iter().map(|s| s.name());
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
        let place = self.values.places.get(&TypeId::of::<S>());
        place
            .and_then(|&place| self.values.sections[place].as_any().downcast_ref())
            .expect("every section type in use is registered")
    }

    /// An error about values that are each in range but collide; the blame falls on the one of `keys`
    /// that was set last, and `why` names the others.
    ///
    /// # Panics
    /// If a key is not declared.
    pub fn inconsistent(&self, keys: &[&str], why: String) -> ConfigError {
        let order = |key: &str| self.values.settings.get(key).map_or(0, |s| s.order);
        let key = keys
            .iter()
            .copied()
            .reduce(|a, b| if order(b) > order(a) { b } else { a })
            .expect("a conflict names at least one key");
        let (section, name) = key.split_once('.').expect("keys are SECTION.KEY");
        let value = self
            .sections()
            .find(|s| s.name() == section)
            .and_then(|s| s.get(name))
            .expect("validation names declared keys");
        let origin = self.values.settings.get(key).map_or("default", |s| &s.origin);
        ConfigError::Inconsistent {
            origin: origin.into(),
            key: key.into(),
            value: value.to_string(),
            why,
        }
    }

    /// Every section, in order.
    pub fn sections(&self) -> impl Iterator<Item = &dyn Section> {
        self.values.sections.iter().map(AsRef::as_ref)
    }

    /// Returns the origin of the value of `section.key`; `None` if the key does not exist.
    pub fn source(&self, path: &str) -> Option<&Source> {
        let (section, key) = path.split_once('.')?;
        self.sections().find(|s| s.name() == section)?.get(key)?;
        Some(self.values.settings.get(path).map_or(&Source::Default, |setting| &setting.source))
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
///
/// # Errors
/// The text has no full stop.
pub fn split_key<'a>(origin: &str, key: &'a str) -> Result<(&'a str, &'a str), ConfigError> {
    key.split_once('.').ok_or_else(|| ConfigError::UnknownKey {
        origin: origin.into(),
        key: key.into(),
        allowed: "a key has the form SECTION.KEY, as in core.count".into(),
    })
}

/// A text as a TOML value, or as a bare word.
pub fn read_text(text: &str) -> Value {
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
