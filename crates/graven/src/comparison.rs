//! Defaults of `graven compare` on a machine, for options that are not given: the table `[comparison]` of the
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

use graven_base::config::toml::{Table, Value};
use graven_base::config::{Config, ConfigError, OtherTable, read_text, split_key, suggestion};
use graven_base::stats::{Declaration, Kind};
use graven_machine::registry::{Registry, parse_file};

/// A parameter whose values are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Variation {
    /// `section.key`.
    pub key: String,
    /// Values as the parameter writes them: at least one, each once.
    pub values: Vec<Value>,
    /// The file or argument, for messages.
    pub origin: String,
}

/// The table `[comparison]`, with `None` for keys that it leaves out.
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

/// The table, for the registry.
pub const TABLE: OtherTable = OtherTable {
    name: "comparison",
    keys: &["designs", "workloads", "threads", "transactions", "baseline", "vary", "metrics"],
};
/// The name that stands for every design or workload.
const ALL: &str = "all";

/// A machine's file: its parameters, and what is compared on it.
#[derive(Clone, Debug)]
pub struct MachineFile {
    /// Parameters; those that it does not set are those of the machine that it extends, or the defaults.
    pub config: Config,
    /// Defaults of a comparison on it.
    pub comparison: Comparison,
}

impl MachineFile {
    /// Reads the file of a machine that ships.
    ///
    /// # Errors
    /// If there is no such machine; the message lists those that exist.
    pub fn named(registry: &Registry, name: &str) -> Result<MachineFile, ConfigError> {
        let preset = registry.find_preset(name)?;
        let mut found = MachineFile::read(registry, preset.text, preset.file)?;
        found.config.machine = name.into();
        Ok(found)
    }

    /// From its text; `file` is its name, for messages.
    ///
    /// # Errors
    /// Names the file, the key, the value and what is allowed.
    pub fn read(registry: &Registry, text: &str, file: &str) -> Result<MachineFile, ConfigError> {
        let table = parse_file(text, file)?;
        let config = registry.machine_file(text, file)?;
        let mut comparison = match registry.extended(&table, file)?.machine {
            Some(base) => MachineFile::named(registry, base.name)?.comparison,
            None => Comparison::default(),
        };
        comparison.overlay(registry, &config, &table, file)?;
        Ok(MachineFile { config, comparison })
    }
}

impl Comparison {
    /// Replaces the keys that a file sets.
    fn overlay(
        &mut self,
        registry: &Registry,
        config: &Config,
        file: &Table,
        name: &str,
    ) -> Result<(), ConfigError> {
        if let Some(Value::Table(table)) = file.get(TABLE.name) {
            self.read(registry, config, name, table)?;
        }
        self.settle(name, file)
    }

    /// The same, with `set` keys out of what is varied, or with `vary` in its place, as `--vary` gives it:
    /// keys, and texts as [`Config::set`] takes them. `config` is the machine's.
    ///
    /// # Errors
    /// Unknown keys, values that a parameter does not accept, keys and values that are there twice. The
    /// origin is named as `--vary`.
    pub fn with(
        &self,
        config: &Config,
        set: &[(String, String)],
        vary: Option<&[(String, Vec<String>)]>,
    ) -> Result<Comparison, ConfigError> {
        let origin = "--vary";
        let is_set = |key: &str| set.iter().any(|(other, _)| other.trim() == key);
        let mut found = self.clone();
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
            add_variation(config, &mut variations, origin, key, &values)?;
        }
        found.vary = Some(variations);
        Ok(found)
    }

    /// Reads the table of a file.
    fn read(
        &mut self,
        registry: &Registry,
        config: &Config,
        file: &str,
        table: &Table,
    ) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{}.{name}", TABLE.name);
            match name.as_str() {
                "designs" => {
                    self.designs = Some(names(file, &key, value, &designs(registry))?);
                }
                "workloads" => {
                    self.workloads = Some(names(file, &key, value, &workloads(registry))?);
                }
                "metrics" => {
                    self.metrics = Some(names(file, &key, value, &metrics(registry))?);
                }
                "threads" => self.threads = Some(counts(file, &key, value)?),
                "transactions" => self.transactions = Some(count_of(file, &key, value)?),
                "baseline" => {
                    self.baseline = Some(name_of(file, &key, value, &baselines(registry))?);
                }
                "vary" => self.vary = Some(variations(config, file, &key, value)?),
                _ => {
                    return Err(ConfigError::UnknownKey {
                        origin: file.into(),
                        key,
                        allowed: suggestion(name, TABLE.keys),
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
    fn settle(&mut self, file: &str, text: &Table) -> Result<(), ConfigError> {
        let says = |table: &str, key: &str| text.get(table).is_some_and(|t| t.get(key).is_some());
        if !says(TABLE.name, "vary") {
            // What the file itself sets is not varied as in the machine that it extends.
            let is_set = |path: &str| path.split_once('.').is_some_and(|(s, k)| says(s, k));
            self.vary.iter_mut().for_each(|all| all.retain(|v| !is_set(&v.key)));
        }
        let (Some(designs), Some(baseline)) = (&self.designs, &self.baseline) else {
            return Ok(());
        };
        if designs.iter().any(|name| name == baseline || name == ALL) {
            return Ok(());
        }
        let list = format!(
            "[{}]",
            designs.iter().map(|d| format!("{d:?}")).collect::<Vec<_>>().join(", ")
        );
        let (key, value, why) = if says(TABLE.name, "baseline") {
            (
                "baseline",
                format!("{baseline:?}"),
                format!("it is not among {}.designs = {list}", TABLE.name),
            )
        } else {
            ("designs", list, format!("{}.baseline = {baseline:?} is not among them", TABLE.name))
        };
        Err(ConfigError::Inconsistent {
            origin: file.into(),
            key: format!("{}.{key}", TABLE.name),
            value,
            why,
        })
    }
}

fn variations(
    config: &Config,
    file: &str,
    key: &str,
    value: &Value,
) -> Result<Vec<Variation>, ConfigError> {
    let allowed = "a table from SECTION.KEY to the list of its values, as in \
                   { \"workload.element_bytes\" = [\"64 B\", \"4 KB\"] }";
    let Value::Table(table) = value else {
        return Err(ConfigError::value(file, key, value, allowed));
    };
    let origin = format!("{file}, [{}] vary", TABLE.name);
    let mut found = Vec::new();
    for (path, value) in flat(table) {
        let Value::Array(values) = value else {
            return Err(ConfigError::value(&origin, &path, value, "a list of its values"));
        };
        add_variation(config, &mut found, &origin, &path, values)?;
    }
    Ok(found)
}

/// Adds a parameter's variation to others.
fn add_variation(
    config: &Config,
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
        let accepted = config.accepted(origin, section, name, value)?;
        if values.contains(&accepted) {
            let allowed = format!("another value than those before it, and {accepted} is there");
            return Err(ConfigError::value(origin, key, value, &allowed));
        }
        values.push(accepted);
    }
    variations.push(Variation { key: key.into(), values, origin: origin.into() });
    Ok(())
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
    /// Word for one of them, for messages.
    what: &'static str,
    known: Vec<&'static str>,
}

fn baselines(registry: &Registry) -> Names {
    Names { what: "the name of a design", known: registry.design_names().collect() }
}

fn designs(registry: &Registry) -> Names {
    Names { what: "the name of a design", known: registry.design_names().chain([ALL]).collect() }
}

fn metrics(registry: &Registry) -> Names {
    let single = |d: &&Declaration| d.kind != Kind::Digest && !d.name.contains('*');
    let all = registry.statistics();
    let known = all.iter().copied().filter(single).map(|d| d.name).collect();
    Names { what: "the name of a statistic", known }
}

fn workloads(registry: &Registry) -> Names {
    let mut known: Vec<&str> = registry.workloads().iter().map(|entry| entry.name).collect();
    for group in registry.workloads().iter().map(|entry| entry.group).chain([ALL]) {
        if !known.contains(&group) {
            known.push(group);
        }
    }
    Names { what: "the name of a workload or of a group of them", known }
}

fn name_of(file: &str, key: &str, value: &Value, names: &Names) -> Result<String, ConfigError> {
    let known = &names.known;
    match value.as_str() {
        Some(name) if known.contains(&name) => Ok(name.into()),
        other => {
            let hint = suggestion(other.unwrap_or_default(), known);
            Err(ConfigError::value(file, key, value, &format!("{}; {hint}", names.what)))
        }
    }
}

fn names(file: &str, key: &str, value: &Value, names: &Names) -> Result<Vec<String>, ConfigError> {
    list(file, key, value, names.what, "name", |value| name_of(file, key, value, names))
}

/// Allowed numbers of threads or transactions, for messages.
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
    fn extended(text: &str) -> Result<Comparison, ConfigError> {
        let whole = "[comparison]\ndesigns = [\"base\", \"fwb\"]\nworkloads = [\"queue\"]\nthreads = [2]\ntransactions = 9\nbaseline = \"fwb\"\n\
                     vary = { pm.write_ns = [150, 300], controller.adr = [true, false] }";
        let registry = crate::standard();
        let mut found = MachineFile::read(&registry, whole, "base.toml")?.comparison;
        let table = parse_file(text, "my.toml")?;
        let config = registry.machine_file(text, "my.toml")?;
        found.overlay(&registry, &config, &table, "my.toml")?;
        Ok(found)
    }

    fn varied(found: &Comparison) -> Vec<&str> {
        found.vary.iter().flatten().map(|v| v.key.as_str()).collect()
    }

    #[test]
    fn each_key_is_inherited_by_itself() {
        let found = extended("[comparison]\nworkloads = [\"btree\"]").unwrap();
        assert_eq!(found.workloads, Some(vec!["btree".into()]));
        assert_eq!(found.designs, Some(vec!["base".into(), "fwb".into()]));
        assert_eq!((found.threads.as_deref(), found.transactions), (Some(&[2][..]), Some(9)));
        assert_eq!(found.baseline.as_deref(), Some("fwb"));
        assert_eq!(varied(&found), ["pm.write_ns", "controller.adr"]);

        let nothing = extended("[comparison]\nvary = {}").unwrap();
        assert_eq!(nothing.vary, Some(vec![]));
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
