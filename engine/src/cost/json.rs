//! A sheet for front ends.

use serde_json::{Value, json};

use super::{Item, Place, Sheet, Verdict};

impl Sheet {
    /// The sheet as one JSON object.
    pub fn to_json(&self) -> Value {
        let items = self.items.iter().zip(&self.verdicts);
        let items: Vec<Value> = items.map(|(item, verdict)| item_json(item, *verdict)).collect();
        // All places, so that front ends have them in order.
        let totals = Place::ALL
            .map(|place| json!({ "place": place.name(), "bytes": number(self.bytes_in(place)) }));
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
    let printed = item.printed.map(|p| {
        json!({
            "paper": p.paper.name, "at": p.at, "machine": p.paper.machine, "text": p.text,
            "value": number(p.value()),
            "verdict": verdict.map(Verdict::name),
        })
    });
    json!({
        "name": item.name, "what": item.what, "place": item.place.name(), "role": item.role.name(),
        "formula": if item.reported { "reported".into() } else { item.formula.names() },
        "numbers": item.formula.numbers(),
        "value": number(item.value()), "unit": item.unit.name(), "per": per,
        "total": number(item.total()), "printed": printed,
        "claim": (!item.claim.is_empty()).then_some(item.claim),
        "note": (!item.note.is_empty()).then_some(item.note),
    })
}

/// Whole numbers as such.
fn number(value: f64) -> Value {
    if value == value.trunc() && value.abs() < 1e15 { json!(value as i64) } else { json!(value) }
}
