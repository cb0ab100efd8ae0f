//! What `graven compare` runs on a machine where its options say nothing: the table `[comparison]` of a
//! machine's file.
//!
//! ```toml
//! [comparison]
//! designs = ["base", "fwb"]
//! workloads = ["micro"]
//! threads = [4, 8]
//! transactions = 100_000
//! baseline = "fwb"
//! vary = { "workload.element_bytes" = ["64 B", "4 KB"] }
//! metrics = ["throughput_tx_per_s", "ipc"]
//! ```
//!
//! Each key may be left out, and is inherited by itself. Everything is checked with the rest of the file:
//! names, keys, and that a parameter accepts every value. Whether values fit each other, and threads the
//! cores, shows when the simulations are prepared.

use toml::{Table, Value};

use super::{Config, ConfigError, error, read_text, split_key};
use crate::stats::{self, Kind};
use crate::{designs, workloads};

/// A parameter whose values are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// `section.key`.
    pub key: String,
    /// Its values as the parameter writes them: at least one, each once.
    pub values: Vec<Value>,
    /// The file or argument, for messages.
    pub origin: String,
}

/// What is compared; `None` where nothing is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Names of designs; `all` stands for every one.
    pub designs: Option<Vec<String>>,
    /// Names of workloads, or of their groups.
    pub workloads: Option<Vec<String>>,
    /// Numbers of program threads: at least one, each once.
    pub threads: Option<Vec<u64>>,
    /// Transactions of one simulation, over all its threads.
    pub transactions: Option<u64>,
    /// The design that the others are relative to; one of `designs` if those are given.
    pub baseline: Option<String>,
    /// Parameters that are varied, each key once.
    pub vary: Option<Vec<Variation>>,
    /// Names of the statistics that designs are compared by.
    pub metrics: Option<Vec<String>>,
}

/// The table's name.
pub(super) const TABLE: &str = "comparison";
/// The keys of the table.
pub(super) const KEYS: [&str; 7] =
    ["designs", "workloads", "threads", "transactions", "baseline", "vary", "metrics"];
/// The name that stands for every design or workload.
const ALL: &str = "all";

impl Config {
    /// What is compared on this machine where nothing else is asked for.
    pub fn comparison(&self) -> &Comparison {
        &self.comparison
    }

    /// The same, with `set` keys out of what is varied, or with `vary` in its place, as `--vary` gives it:
    /// keys, and texts as [`Config::set`] takes them.
    ///
    /// # Errors
    /// Unknown keys, values that a parameter does not accept, keys and values that are there twice. The
    /// origin is named as `--vary`.
    pub fn comparison_with(
        &self,
        set: &[(String, String)],
        vary: Option<&[(String, Vec<String>)]>,
    ) -> Result<Comparison, ConfigError> {
        let origin = "--vary";
        let is_set = |key: &str| set.iter().any(|(other, _)| other.trim() == key);
        let mut found = self.comparison.clone();
        let Some(vary) = vary else {
            found.vary.iter_mut().for_each(|all| all.retain(|v| !is_set(&v.key)));
            return Ok(found);
        };
        let mut variations = Vec::new();
        for (key, texts) in vary {
            let key = key.trim();
            if is_set(key) {
                return Err(ConfigError::Inconsistent {
                    origin: origin.into(),
                    key: key.into(),
                    value: texts.join(","),
                    why: "--set gives it one value".into(),
                });
            }
            let values: Vec<Value> = texts.iter().map(|text| read_text(text.trim())).collect();
            self.add_variation(&mut variations, origin, key, &values)?;
        }
        found.vary = Some(variations);
        Ok(found)
    }

    /// Reads the table of a file.
    pub(super) fn read_comparison(&mut self, file: &str, table: &Table) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{TABLE}.{name}");
            match name.as_str() {
                "designs" => {
                    self.comparison.designs = Some(names(file, &key, value, &DESIGNS)?);
                }
                "workloads" => {
                    self.comparison.workloads = Some(names(file, &key, value, &WORKLOADS)?);
                }
                "metrics" => {
                    self.comparison.metrics = Some(names(file, &key, value, &METRICS)?);
                }
                "threads" => self.comparison.threads = Some(counts(file, &key, value)?),
                "transactions" => self.comparison.transactions = Some(count_of(file, &key, value)?),
                "baseline" => {
                    self.comparison.baseline = Some(name_of(file, &key, value, &BASELINE)?);
                }
                "vary" => self.comparison.vary = Some(self.variations(file, &key, value)?),
                _ => {
                    return Err(ConfigError::UnknownKey {
                        origin: file.into(),
                        key,
                        allowed: error::suggestion(name, &KEYS),
                    });
                }
            }
        }
        Ok(())
    }

    /// Has the table, inherited or not, fit the rest of a file, all of which has been read.
    ///
    /// # Errors
    /// The baseline is not among the designs.
    pub(super) fn settle_comparison(
        &mut self,
        file: &str,
        text: &Table,
    ) -> Result<(), ConfigError> {
        let says = |table: &str, key: &str| text.get(table).is_some_and(|t| t.get(key).is_some());
        if !says(TABLE, "vary") {
            // What the file itself sets is not varied as in the machine that it extends.
            let is_set = |path: &str| path.split_once('.').is_some_and(|(s, k)| says(s, k));
            self.comparison.vary.iter_mut().for_each(|all| all.retain(|v| !is_set(&v.key)));
        }
        let (Some(designs), Some(baseline)) = (&self.comparison.designs, &self.comparison.baseline)
        else {
            return Ok(());
        };
        if designs.iter().any(|name| name == baseline || name == ALL) {
            return Ok(());
        }
        let list = format!(
            "[{}]",
            designs.iter().map(|d| format!("{d:?}")).collect::<Vec<_>>().join(", ")
        );
        let (key, value, why) = if says(TABLE, "baseline") {
            (
                "baseline",
                format!("{baseline:?}"),
                format!("it is not among {TABLE}.designs = {list}"),
            )
        } else {
            ("designs", list, format!("{TABLE}.baseline = {baseline:?} is not among them"))
        };
        Err(ConfigError::Inconsistent {
            origin: file.into(),
            key: format!("{TABLE}.{key}"),
            value,
            why,
        })
    }

    fn variations(
        &self,
        file: &str,
        key: &str,
        value: &Value,
    ) -> Result<Vec<Variation>, ConfigError> {
        let allowed = "a table from SECTION.KEY to the list of its values, as in \
                       { \"workload.element_bytes\" = [\"64 B\", \"4 KB\"] }";
        let Value::Table(table) = value else {
            return Err(ConfigError::value(file, key, value, allowed));
        };
        let origin = format!("{file}, [{TABLE}] vary");
        let mut found = Vec::new();
        for (path, value) in flat(table) {
            let Value::Array(values) = value else {
                return Err(ConfigError::value(&origin, &path, value, "a list of its values"));
            };
            self.add_variation(&mut found, &origin, &path, values)?;
        }
        Ok(found)
    }

    /// Adds a parameter's variation to others.
    fn add_variation(
        &self,
        variations: &mut Vec<Variation>,
        origin: &str,
        key: &str,
        given: &[Value],
    ) -> Result<(), ConfigError> {
        let (section, name) = split_key(origin, key)?;
        if given.is_empty() {
            let none = Value::Array(Vec::new());
            return Err(ConfigError::value(origin, key, &none, "a list of at least one value"));
        }
        if variations.iter().any(|v| v.key == key) {
            return Err(ConfigError::Inconsistent {
                origin: origin.into(),
                key: key.into(),
                value: Value::Array(given.to_vec()).to_string(),
                why: "the same key is there before".into(),
            });
        }
        let mut values = Vec::new();
        for value in given {
            let accepted = self.accepted(origin, section, name, value)?;
            if values.contains(&accepted) {
                let allowed =
                    format!("another value than those before it, and {accepted} is there");
                return Err(ConfigError::value(origin, key, value, &allowed));
            }
            values.push(accepted);
        }
        variations.push(Variation { key: key.into(), values, origin: origin.into() });
        Ok(())
    }
}

/// The entries of a table by `SECTION.KEY`; a key without quotation marks makes a table of its own.
fn flat(table: &Table) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                found.extend(inner.iter().map(|(name, value)| (format!("{key}.{name}"), value)));
            }
            value => found.push((key.clone(), value)),
        }
    }
    found
}

/// Names that a key takes.
struct Names {
    /// What one of them is.
    what: &'static str,
    known: fn() -> Vec<&'static str>,
}

const DESIGNS: Names = Names {
    what: "the name of a design",
    known: || BASELINE.known().into_iter().chain([ALL]).collect(),
};
const BASELINE: Names =
    Names { what: "the name of a design", known: || designs::names().collect() };
const METRICS: Names = Names {
    what: "the name of a statistic",
    known: || {
        let single = |d: &&stats::Declaration| d.kind != Kind::Digest && !d.name.contains('*');
        stats::declarations().filter(single).map(|d| d.name).collect()
    },
};
const WORKLOADS: Names = Names {
    what: "the name of a workload or of a group of them",
    known: || {
        let mut known: Vec<&str> = workloads::REGISTRY.iter().map(|entry| entry.name).collect();
        for group in workloads::REGISTRY.iter().map(|entry| entry.group).chain([ALL]) {
            if !known.contains(&group) {
                known.push(group);
            }
        }
        known
    },
};

impl Names {
    fn known(&self) -> Vec<&'static str> {
        (self.known)()
    }
}

fn name_of(file: &str, key: &str, value: &Value, names: &Names) -> Result<String, ConfigError> {
    let known = names.known();
    match value.as_str() {
        Some(name) if known.contains(&name) => Ok(name.into()),
        other => {
            let hint = error::suggestion(other.unwrap_or_default(), &known);
            Err(ConfigError::value(file, key, value, &format!("{}; {hint}", names.what)))
        }
    }
}

fn names(file: &str, key: &str, value: &Value, names: &Names) -> Result<Vec<String>, ConfigError> {
    list(file, key, value, names.what, "name", |value| name_of(file, key, value, names))
}

/// What a number of threads or transactions is.
const COUNT: &str = "a whole number from 1 on";

fn count_of(file: &str, key: &str, value: &Value) -> Result<u64, ConfigError> {
    match value.as_integer().and_then(|count| u64::try_from(count).ok()) {
        Some(count) if count > 0 => Ok(count),
        _ => Err(ConfigError::value(file, key, value, COUNT)),
    }
}

fn counts(file: &str, key: &str, value: &Value) -> Result<Vec<u64>, ConfigError> {
    list(file, key, value, COUNT, "number", |value| count_of(file, key, value))
}

/// A list of at least one member, each once; `read` takes a member, which is `what`, a `kind`.
fn list<T: PartialEq>(
    file: &str,
    key: &str,
    value: &Value,
    what: &str,
    kind: &str,
    read: impl Fn(&Value) -> Result<T, ConfigError>,
) -> Result<Vec<T>, ConfigError> {
    let list = value.as_array().filter(|list| !list.is_empty()).ok_or_else(|| {
        let allowed = format!("a list, each {what}");
        ConfigError::value(file, key, value, &allowed)
    })?;
    let mut found = Vec::new();
    for value in list {
        let member = read(value)?;
        if found.contains(&member) {
            let allowed = format!("another {kind} than those before it");
            return Err(ConfigError::value(file, key, value, &allowed));
        }
        found.push(member);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file's text on top of a machine that has the whole table. No preset needs to have one for this.
    fn extended(text: &str) -> Result<Config, ConfigError> {
        let whole = "[comparison]\ndesigns = [\"base\", \"fwb\"]\nworkloads = [\"queue\"]\nthreads = [2]\ntransactions = 9\nbaseline = \"fwb\"\n\
                     vary = { pm.write_ns = [150, 300], controller.adr = [true, false] }";
        let mut config = Config::from_toml(whole, "base.toml")?;
        let table: Table = text.parse().expect("the tests' files are TOML");
        config.overlay(&table, "my.toml")?;
        Ok(config)
    }

    fn varied(config: &Config) -> Vec<&str> {
        config.comparison().vary.iter().flatten().map(|v| v.key.as_str()).collect()
    }

    #[test]
    fn each_key_is_inherited_by_itself() {
        let config = extended("[comparison]\nworkloads = [\"btree\"]").unwrap();
        let found = config.comparison();
        assert_eq!(found.workloads, Some(vec!["btree".into()]));
        assert_eq!(found.designs, Some(vec!["base".into(), "fwb".into()]));
        assert_eq!((found.threads.as_deref(), found.transactions), (Some(&[2][..]), Some(9)));
        assert_eq!(found.baseline.as_deref(), Some("fwb"));
        assert_eq!(varied(&config), ["pm.write_ns", "controller.adr"]);

        let nothing = extended("[comparison]\nvary = {}").unwrap();
        assert_eq!(nothing.comparison().vary, Some(vec![]));
    }

    #[test]
    fn an_inherited_baseline_must_be_among_the_designs_too() {
        assert_eq!(
            extended("[comparison]\ndesigns = [\"base\", \"silo\"]").unwrap_err().to_string(),
            "my.toml: `comparison.designs` = [\"base\", \"silo\"] does not fit: \
             comparison.baseline = \"fwb\" is not among them"
        );
    }

    #[test]
    fn what_a_file_sets_is_not_varied_as_in_its_base() {
        let set = extended("[pm]\nwrite_ns = 200").unwrap();
        assert_eq!(varied(&set), ["controller.adr"]);
        // What it varies itself is varied, whatever it sets.
        let both = "[pm]\nwrite_ns = 200\n[comparison]\nvary = { pm.write_ns = [200, 400] }";
        assert_eq!(varied(&extended(both).unwrap()), ["pm.write_ns"]);
    }
}
