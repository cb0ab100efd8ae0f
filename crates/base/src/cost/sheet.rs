//! Cost sheets as TOML: `[[item]]` tables with formulas, `[values]` and `[shorthands]` that formulas name besides.
//!
//! ```toml
//! paper = "Silo"                        # whose figures `printed` are; its preset has the name in lower case
//!
//! [values]
//! energy-per-byte = "11.228"            # a formula, shown by its name and its value
//!
//! [shorthands]
//! entry = "tid + addr + word"           # a formula that stands in place of its name
//!
//! [[item]]
//! name = "log-buffer"
//! what = "SRAM: entries, each with its address in the log region"
//! place = "controller"
//! unit = "B"
//! formula = "silo.log_buffer_entries * (log-entry + log-address)"   # without one, the printed number is reported
//! per = ["thread", "hardware-threads"]  # one for each, and their number
//! role = "derived"                      # built by default
//! built-if = "silo.key = value"         # optional unless this holds
//! when = "silo.key != value"            # left out unless this holds; conditions may be joined by `and`
//! printed = "680"
//! at = "Table I"
//! claim = "silo-buffer-680b"
//! note = "…"
//! ```
//!
//! A name in a formula is a parameter (`SECTION.KEY`), another item of the sheet, one of its values, or one of the
//! [`Quantities`] that the reader of the sheet adds.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Value;

use super::{Formula, Item, Place, Printed, Role, whole};
use crate::config::{Config, Param, Size};

/// Quantities that formulas of a sheet may name, beside the sheet's own.
#[derive(Clone, Debug)]
pub struct Quantities<'a> {
    /// Configuration that has the parameters.
    pub config: &'a Config,
    /// Numbers from code, such as widths of fields: shown by name and value.
    pub constants: Vec<(&'a str, u64)>,
    /// Formulas that stand in place of their names.
    pub shorthands: Vec<(&'a str, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sheet {
    #[serde(default)]
    paper: String,
    #[serde(default)]
    values: BTreeMap<String, String>,
    #[serde(default)]
    shorthands: BTreeMap<String, String>,
    item: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Row {
    name: String,
    what: String,
    place: Place,
    unit: String,
    formula: Option<String>,
    per: Option<(String, String)>,
    #[serde(default)]
    role: Role,
    built_if: Option<String>,
    when: Option<String>,
    printed: Option<String>,
    at: Option<String>,
    claim: Option<String>,
    note: Option<String>,
}

struct Reader<'a> {
    sheet: &'a Sheet,
    quantities: &'a Quantities<'a>,
}

/// Reads the items of a sheet that apply to the configuration, in the order in which they stand.
///
/// # Panics
/// If the sheet has another form, or names a quantity that does not exist: sheets are part of a design's source.
pub fn read(text: &str, quantities: &Quantities) -> Vec<Item> {
    let sheet: Sheet = toml::from_str(text).unwrap_or_else(|error| panic!("cost sheet: {error}"));
    let reader = Reader { sheet: &sheet, quantities };
    reader.rows().map(|row| reader.item(row)).collect()
}

impl<'a> Reader<'a> {
    fn rows(&self) -> impl Iterator<Item = &'a Row> {
        let rows = self.sheet.item.iter();
        rows.filter(|row| row.when.as_ref().is_none_or(|when| self.quantities.fulfil(when)))
    }

    fn item(&self, row: &Row) -> Item {
        let is_built = row.built_if.as_ref().is_none_or(|when| self.quantities.fulfil(when));
        let printed = row.printed.as_ref().map(|text| Printed {
            paper: self.sheet.paper.clone(),
            at: row.at.clone().unwrap_or_else(|| panic!("{}: no place in the paper", row.name)),
            text: text.clone(),
        });
        Item {
            name: row.name.clone(),
            what: row.what.clone(),
            place: row.place,
            role: if is_built { row.role } else { Role::Optional },
            formula: self.formula_of(row),
            unit: row.unit.clone(),
            per: row.per.as_ref().map(|(each, count)| (each.clone(), self.formula(count))),
            reported: row.formula.is_none(),
            printed,
            claim: row.claim.clone(),
            note: row.note.clone(),
        }
    }

    fn formula_of(&self, row: &Row) -> Formula {
        match (&row.formula, &row.printed) {
            (Some(text), _) => self.formula(text),
            (None, Some(printed)) => self.formula(printed),
            (None, None) => panic!("{}: neither formula nor printed number", row.name),
        }
    }

    fn formula(&self, text: &str) -> Formula {
        Formula::parse(text, &|name| self.find(name))
    }

    fn find(&self, name: &str) -> Option<Formula> {
        let Quantities { config, shorthands, .. } = self.quantities;
        let named = |value| Some(Formula::Named(name.into(), value));
        if name.contains('.') {
            return named(parameter(config, name));
        }
        if let Some(row) = self.rows().find(|row| row.name == name) {
            return named(self.formula_of(row).value());
        }
        if let Some(text) = self.sheet.values.get(name) {
            return named(self.formula(text).value());
        }
        if let Some(value) = self.quantities.constant(name) {
            return named(whole(value));
        }
        let of_reader =
            || shorthands.iter().find(|(known, _)| *known == name).map(|(_, text)| text);
        self.sheet.shorthands.get(name).or_else(of_reader).map(|text| self.formula(text))
    }
}

fn configured(config: &Config, key: &str) -> Value {
    let (section, name) = key.split_once('.').expect("a key is SECTION.KEY");
    let value = config.sections().find(|s| s.name() == section).and_then(|s| s.get(name));
    value.unwrap_or_else(|| panic!("{key} is not declared"))
}

/// Returns the number that a parameter has.
///
/// # Panics
/// If there is no parameter of that key, or it is no number.
pub fn parameter(config: &Config, key: &str) -> f64 {
    match configured(config, key) {
        Value::Float(number) => number,
        other => {
            let size = Size::accept(&other, &(Size(0)..=Size(u64::MAX)));
            whole(size.unwrap_or_else(|| panic!("{key} is no number")).0)
        }
    }
}

impl Quantities<'_> {
    fn constant(&self, name: &str) -> Option<u64> {
        self.constants.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Evaluates `NAME = VALUE` and `NAME != VALUE`, joined by `and`; a name is that of a parameter or of a constant.
    fn fulfil(&self, condition: &str) -> bool {
        condition.split(" and ").all(|part| {
            let (part, is_wanted) = match part.split_once(" != ") {
                Some(negated) => (negated, false),
                None => (part.split_once(" = ").expect("a condition has = or !="), true),
            };
            let (name, value) = part;
            let is = match self.constant(name) {
                Some(constant) => constant.to_string(),
                None => match configured(self.config, name) {
                    Value::String(word) => word,
                    other => other.to_string(),
                },
            };
            (is == value) == is_wanted
        })
    }
}
