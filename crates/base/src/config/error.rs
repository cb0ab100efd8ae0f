//! Errors in a configuration, with the remedy.

use thiserror::Error;
use toml::Value;

/// A configuration was refused. Every message names where, what, and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The file is not TOML.
    #[error("{file}: not valid TOML: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// The parser's message, with line and column.
        message: String,
    },
    /// No such section or key.
    #[error("{origin}: unknown key `{key}`; {allowed}")]
    UnknownKey {
        /// The file or argument.
        origin: String,
        /// The key as given.
        key: String,
        /// A suggestion and the known keys.
        allowed: String,
    },
    /// Wrong type or out of range.
    #[error("{origin}: `{key}` = {value} is not allowed; it must be {allowed}")]
    Value {
        /// The file or argument.
        origin: String,
        /// The key.
        key: String,
        /// The value as given.
        value: String,
        /// Accepted values.
        allowed: String,
    },
    /// Values that are each in range but do not fit each other.
    #[error("{origin}: `{key}` = {value} does not fit: {why}")]
    Inconsistent {
        /// Origin of the value.
        origin: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// With what it collides, and what would do.
        why: String,
    },
    /// A name that is not in a registry.
    #[error("unknown {kind} `{name}`; {allowed}")]
    UnknownName {
        /// design, workload or machine.
        kind: &'static str,
        /// As given.
        name: String,
        /// A suggestion and the known names.
        allowed: String,
    },
    /// A name that stands for several members of a registry where one is needed.
    #[error("{kind} `{name}` stands for the better of {of} in comparisons; name one of them here")]
    Ambiguous {
        /// design.
        kind: &'static str,
        /// As given.
        name: String,
        /// Those that it stands for.
        of: String,
    },
}

impl ConfigError {
    /// A value that is not allowed.
    pub fn value(origin: &str, key: &str, value: &Value, allowed: &str) -> Self {
        ConfigError::Value {
            origin: origin.into(),
            key: key.into(),
            value: one_line(value),
            allowed: allowed.into(),
        }
    }

    /// A name that stands for several.
    pub fn ambiguous(kind: &'static str, name: &str, of: &[&str]) -> Self {
        ConfigError::Ambiguous { kind, name: name.into(), of: of.join(" and ") }
    }

    /// An unknown name of a registry.
    pub fn unknown_name(kind: &'static str, name: &str, known: &[&str]) -> Self {
        ConfigError::UnknownName { kind, name: name.into(), allowed: suggestion(name, known) }
    }
}

/// A value as in a file, on one line.
pub fn one_line(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

/// "did you mean `x`? known are a, b, c".
pub fn suggestion(given: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return "there are none".into();
    }
    let close = known
        .iter()
        .map(|k| (strsim::damerau_levenshtein(given, k), *k))
        .filter(|(distance, k)| *distance <= 1 + k.len() / 4)
        .min();
    let list = format!("known are {}", known.join(", "));
    match close {
        Some((_, k)) => format!("did you mean `{k}`? {list}"),
        None => list,
    }
}
