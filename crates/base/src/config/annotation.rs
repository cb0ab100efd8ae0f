//! Every parameter with its value and where the value is from, for people who must trust it.

use std::fmt;

use super::Config;

/// Origin of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A paper's table or section.
    Paper(String),
    /// Left open by the paper; the reason for the value chosen.
    Assumed(String),
    /// Never set: the default of the parameter's declaration.
    Default,
    /// The user: a file's name, or the argument that set it.
    User(String),
    /// The parameter set that the name of a design or workload stands for.
    Name(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Paper(place) => f.write_str(place),
            Source::Assumed(reason) => write!(f, "assumed: {reason}"),
            Source::Default => f.write_str("default"),
            Source::User(origin) => write!(f, "set by {origin}"),
            Source::Name(name) => write!(f, "part of what {name} is"),
        }
    }
}

/// One parameter of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// `section.key`.
    pub key: String,
    /// The value as a person would write it: no quotes around text.
    pub value: String,
    /// Unit of the value; empty for choices, switches and pure numbers. A size carries its own.
    pub unit: &'static str,
    /// Origin of the value.
    pub source: Source,
}

impl Config {
    /// Every parameter of every section, in the order of declaration.
    pub fn annotations(&self) -> Vec<Annotation> {
        self.sections()
            .flat_map(|section| section.fields().into_iter().map(move |field| (section, field)))
            .map(|(section, field)| {
                let key = format!("{}.{}", section.name(), field.key);
                let value = section.get(field.key).expect("a declared key has a value");
                let source = self.source(&key).expect("a declared key has a source").clone();
                let (value, unit) = match value {
                    // Sizes say "8 MB" themselves.
                    toml::Value::String(text) => (text, ""),
                    other => (other.to_string(), field.unit),
                };
                Annotation { key, value, unit, source }
            })
            .collect()
    }
}
