//! What there is to choose from, for front ends: designs, workloads, machines, statistics, parameters.

use serde_json::{Value, json};

use crate::comparison::{Comparison, MachineFile, Variation};
use graven_base::config::{Config, Field, Section, Source};
use graven_base::stats::{Declaration, Kind};
use graven_lab::adversary::{DRAW_RANGES, DrawRange};
use graven_lab::campaign::guarantee_text;
use graven_lab::explorer::STATES;
use graven_machine::design::{DesignInfo, Named};
use graven_machine::registry::Registry;
use graven_machine::stats;
use graven_machine::workload::WorkloadConfig;

/// The whole catalogue as one JSON object.
///
/// # Panics
/// If a preset that ships with Graven does not load: the build is broken then.
pub fn catalogue(registry: &Registry) -> Value {
    let defaults = registry.defaults();
    let designs: Vec<Value> = registry.designs()
        .iter()
        .map(|d| {
            json!({
                "name": d.name, "summary": d.summary, "paper": d.paper, "safe": d.is_sound(&defaults), "default": d.default,
                "guarantee": guarantee_text(d.guarantee_in(&defaults)), "sound": d.is_sound(&defaults),
                "settings": texts(d.settings),
                "mutants": named(d.mutants), "cover_points": named(d.cover_points),
                "statistics": d.statistics().map(statistic).collect::<Vec<_>>(),
                "parameters": d.section.map(|make| parameters(make().as_ref())).unwrap_or_default(),
            })
        })
        .collect();
    let aliases: Vec<Value> = registry
        .aliases()
        .iter()
        .map(|a| json!({ "name": a.name, "summary": a.summary, "paper": a.paper, "of": a.of }))
        .collect();
    let shared = parameters(&WorkloadConfig::default());
    let workloads: Vec<Value> = registry.workloads()
        .iter()
        .map(|w| {
            let own = w.sections.iter().flat_map(|make| parameters(make().as_ref()));
            let all: Vec<Value> = shared.iter().cloned().chain(own).collect();
            json!({
                "name": w.name, "summary": w.summary, "group": w.group, "settings": texts(w.settings),
                "parameters": all,
            })
        })
        .collect();
    let of_machine = stats::declarations().map(statistic);
    let of_designs = registry.design_statistics().iter().map(|d| {
        let has = |entry: &&&DesignInfo| entry.statistics().any(|own| own.name == d.name);
        let designs: Vec<&str> = registry.designs().iter().filter(has).map(|e| e.name).collect();
        let mut entry = statistic(d);
        entry["designs"] = designs.into();
        entry
    });
    let stats: Vec<Value> = of_machine.chain(of_designs).collect();
    let sections: Vec<Value> = defaults
        .sections()
        .map(|s| json!({ "name": s.name(), "doc": s.doc(), "parameters": parameters(s) }))
        .collect();
    let machines: Vec<Value> = registry
        .presets()
        .iter()
        .map(|p| {
            let file = MachineFile::named(registry, p.name).expect("machines are tested");
            json!({
                "name": p.name, "title": p.title, "file": p.file, "values": values(&file.config),
                "comparison": comparison(&file.comparison),
            })
        })
        .collect();
    json!({
        "designs": designs, "aliases": aliases, "workloads": workloads, "machines": machines, "stats": stats, "sections": sections,
        "states": named(STATES), "draws": draws(),
    })
}

/// The values of a configuration with where they are from.
pub fn values(config: &Config) -> Vec<Value> {
    let mut out = Vec::new();
    for section in config.sections() {
        for field in section.fields() {
            let key = format!("{}.{}", section.name(), field.key);
            let value = section.get(field.key).expect("a declared key has a value");
            let (source, assumed) = match config.source(&key) {
                Some(Source::Paper(table)) => (Some(table.as_str()), None),
                Some(Source::Assumed(why)) => (None, Some(why.as_str())),
                Some(Source::User(origin)) => (Some(origin.as_str()), None),
                Some(Source::Name(name)) => (Some(*name), None),
                Some(Source::Default) | None => (None, None),
            };
            out.push(json!({
                "key": key, "value": graven_base::config::to_json(&value), "unit": field.unit, "doc": field.doc,
                "source": source, "assumed": assumed,
            }));
        }
    }
    out
}

/// What is compared; `null` where nothing is said. Values are texts, as `--set` takes them.
pub fn comparison(comparison: &Comparison) -> Value {
    let text = |value: &toml::Value| match graven_base::config::to_json(value) {
        Value::String(text) => text,
        other => other.to_string(),
    };
    let vary = comparison.vary.as_ref().map(|all| {
        let one = |v: &Variation| {
            let values: Vec<String> = v.values.iter().map(text).collect();
            json!({ "key": v.key, "values": values, "origin": v.origin })
        };
        all.iter().map(one).collect::<Vec<_>>()
    });
    json!({
        "designs": comparison.designs, "workloads": comparison.workloads,
        "threads": comparison.threads, "transactions": comparison.transactions,
        "baseline": comparison.baseline, "vary": vary, "metrics": comparison.metrics,
    })
}

/// A parameter set, as `--set` takes it.
fn texts(settings: &[(&str, &str)]) -> Vec<String> {
    settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

fn named(all: &[Named]) -> Vec<Value> {
    all.iter().map(|n| json!({ "name": n.name, "summary": n.summary.trim() })).collect()
}

/// Bounds of what the adversary draws.
fn draws() -> Vec<Value> {
    let entry = |range: &DrawRange| {
        json!({
            "name": range.name, "summary": range.summary, "default": range.default,
            "least": range.allowed.0, "most": range.allowed.1,
        })
    };
    DRAW_RANGES.iter().map(entry).collect()
}

fn parameters(section: &dyn Section) -> Vec<Value> {
    let entry = |f: Field| {
        json!({
            "key": format!("{}.{}", section.name(), f.key), "doc": f.doc, "unit": f.unit,
            "allowed": f.allowed, "default": f.default,
        })
    };
    section.fields().into_iter().map(entry).collect()
}

fn statistic(d: &Declaration) -> Value {
    json!({ "name": d.name, "unit": d.unit, "kind": kind(d.kind), "description": d.description })
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Count => "count",
        Kind::Gauge => "gauge",
        Kind::Ratio => "ratio",
        Kind::Digest => "digest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_lists_what_the_registries_hold() {
        let registry = crate::standard();
        let all = catalogue(&registry);
        assert_eq!(all["designs"].as_array().map(Vec::len), Some(registry.designs().len()));
        assert_eq!(all["machines"].as_array().map(Vec::len), Some(registry.presets().len()));
        let silo = &all["machines"][0];
        assert_eq!(silo["name"], "silo");
        let sourced =
            silo["values"].as_array().into_iter().flatten().filter(|v| !v["source"].is_null());
        assert!(sourced.count() >= 10, "the preset names its tables");
    }

    #[test]
    fn every_recorded_statistic_is_declared() {
        let declared: Vec<&str> = stats::declarations().map(|d| d.name).collect();
        let stats = stats::Stats {
            core_instructions: vec![1],
            core_cycles: vec![1],
            bank_loads: stats::BankLoads::new(1),
            ..Default::default()
        };
        for (name, _) in stats.record(1000, 0, 0) {
            let name = name.replace("core0", "core*").replace("bank0", "bank*");
            assert!(declared.contains(&name.as_str()), "{name} is not declared");
        }
    }
}
