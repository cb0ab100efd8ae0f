//! Cost sheets of designs on machines, item by item, beside the figures that papers print.

pub use graven_base::cost::*;

use graven_base::config::{Config, ConfigError};
use graven_machine::config::validate;
use graven_machine::design::DesignInfo;
use graven_machine::registry::Registry;
use serde_json::{Value, json};

/// Cost of a design on a machine.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Name of the design.
    pub design: &'static str,
    /// Name of the machine.
    pub machine: String,
    /// Items, as they stand in the design's sheet.
    pub items: Vec<Item>,
    /// Verdict about each item that has a printed value.
    pub verdicts: Vec<Option<Verdict>>,
    /// Remarks about the whole.
    pub remarks: &'static [&'static str],
}

impl Sheet {
    /// Derives the sheet of a design in a configuration.
    ///
    /// # Errors
    /// [`ConfigError`] where values of the configuration do not go together, or a paper's preset does not load.
    pub fn of(
        registry: &Registry,
        entry: &DesignInfo,
        config: Config,
    ) -> Result<Sheet, ConfigError> {
        let config = entry.configured(config);
        validate(&config)?;
        let items = (entry.cost.items)(&config);
        let verdicts =
            items.iter().map(|item| verdict(registry, entry, item)).collect::<Result<_, _>>()?;
        let remarks = entry.cost.remarks;
        Ok(Sheet { design: entry.name, machine: config.machine, items, verdicts, remarks })
    }

    /// Returns the bytes that the design adds in each place where it adds any, from the core outwards.
    pub fn totals(&self) -> Vec<(Place, f64)> {
        let all = Place::ALL.map(|place| (place, self.bytes_in(place)));
        all.into_iter().filter(|&(_, bytes)| bytes > 0.0).collect()
    }

    /// Returns the bytes that the design adds in a place.
    pub fn bytes_in(&self, place: Place) -> f64 {
        let items = self.items.iter().filter(|item| item.place == place);
        items.map(Item::bits_built).sum::<f64>() / 8.0
    }

    /// Finds the item of a name.
    pub fn item(&self, name: &str) -> Option<&Item> {
        self.items.iter().find(|item| item.name == name)
    }
}

/// Compares an item with its printed value. The two differ if the item has the same value on the machine for which
/// the other is printed; otherwise the printed value is for other parameters.
fn verdict(
    registry: &Registry,
    entry: &DesignInfo,
    item: &Item,
) -> Result<Option<Verdict>, ConfigError> {
    let Some(printed) = &item.printed else { return Ok(None) };
    if item.reported {
        return Ok(Some(Verdict::Reported));
    }
    if printed.agrees_with(item.value()) {
        return Ok(Some(Verdict::Agrees));
    }
    let theirs = entry.configured(registry.machine(&printed.machine())?);
    let items = (entry.cost.items)(&theirs);
    let is_same = |other: &Item| other.name == item.name && other.value() == item.value();
    let same = items.iter().any(is_same);
    Ok(Some(if same { Verdict::Differs } else { Verdict::OtherParameters }))
}

impl Sheet {
    /// Writes the sheet as one JSON object.
    pub fn to_json(&self) -> Value {
        let items = self.items.iter().zip(&self.verdicts);
        let items: Vec<Value> = items.map(|(item, verdict)| item_json(item, *verdict)).collect();
        // All places, so that front ends have them in order.
        let totals = Place::ALL
            .map(|place| json!({ "place": place, "bytes": number(self.bytes_in(place)) }));
        json!({
            "design": self.design, "machine": self.machine, "items": items, "totals": totals,
            "remarks": self.remarks,
        })
    }
}

fn item_json(item: &Item, verdict: Option<Verdict>) -> Value {
    let per = item.per.as_ref().map(|(each, count)| {
        json!({
            "each": each, "formula": count.names(), "numbers": count.numbers(),
            "count": number(count.value()),
        })
    });
    let printed = item.printed.as_ref().map(|p| {
        json!({
            "paper": p.paper, "at": p.at, "machine": p.machine(), "text": p.text,
            "value": number(p.value()), "verdict": verdict,
        })
    });
    json!({
        "name": item.name, "what": item.what, "place": item.place, "role": item.role,
        "formula": if item.reported { "reported".into() } else { item.formula.names() },
        "numbers": item.formula.numbers(),
        "value": number(item.value()), "unit": item.unit, "per": per,
        "total": number(item.total()), "printed": printed,
        "claim": item.claim, "note": item.note,
    })
}

/// Writes whole numbers as integers.
fn number(value: f64) -> Value {
    if value == value.trunc() && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}
