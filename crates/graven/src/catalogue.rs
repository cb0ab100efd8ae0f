//! Catalogue of all choices, for front ends: designs, workloads, machines, statistics, parameters.

use serde::Serialize;
use serde_json::{Value, json};

use crate::comparison::{Comparison, MachineFile, Variation};
use graven_base::config::{self, Config, Source};
use graven_base::stats::{Declaration, Kind};
use graven_lab::adversary::{DRAW_RANGES, DrawRange};
use graven_lab::campaign::guarantee_text;
use graven_lab::explorer::STATES;
use graven_machine::design::{self, DesignInfo};
use graven_machine::registry::{Alias, PARTS, Preset, Registry};
use graven_machine::stats;
use graven_machine::workload::WorkloadInfo;
use graven_persistency::cut::{self, ORDERS};
use graven_persistency::model::{MODELS, Model};

/// Everything that can be named. What several have in common is described once, and they name it or are named with it.
#[derive(Serialize)]
pub struct Catalogue {
    designs: Vec<Design>,
    aliases: Vec<OtherName>,
    workloads: Vec<Workload>,
    machines: Vec<Machine>,
    /// Parts of DRAM that machines extend.
    parts: Vec<Part>,
    stats: Vec<Statistic>,
    sections: Vec<Section>,
    /// States of any design that a campaign should reach.
    states: Vec<Named>,
    draws: Vec<Draw>,
    models: Vec<PersistencyModel>,
    /// Orders of stores that designs may promise.
    orders: Vec<Order>,
}

#[derive(Serialize)]
struct Order {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
}

#[derive(Serialize)]
struct Design {
    name: &'static str,
    summary: &'static str,
    paper: &'static str,
    safe: bool,
    default: bool,
    guarantee: &'static str,
    settings: Vec<String>,
    mutants: Vec<Named>,
    cover_points: Vec<Named>,
    /// Names of those that it declares.
    statistics: Vec<&'static str>,
    parameters: Vec<Parameter>,
}

#[derive(Serialize)]
struct OtherName {
    name: &'static str,
    summary: &'static str,
    paper: &'static str,
    of: &'static [&'static str],
}

#[derive(Serialize)]
struct Workload {
    name: &'static str,
    summary: &'static str,
    group: &'static str,
    settings: Vec<String>,
    /// Parameters of its own, beside those of the section of all workloads.
    parameters: Vec<Parameter>,
}

#[derive(Serialize)]
struct Machine {
    name: &'static str,
    title: &'static str,
    file: &'static str,
    values: Vec<MachineValue>,
    comparison: Value,
}

/// A file that sets some parameters of a machine.
#[derive(Serialize)]
struct Part {
    name: &'static str,
    title: &'static str,
    file: &'static str,
    /// Those that it sets.
    values: Vec<MachineValue>,
}

/// A value of a parameter, with the table of a paper that it is from, or why it was assumed.
#[derive(Serialize)]
struct MachineValue {
    key: String,
    value: Value,
    source: Option<String>,
    assumed: Option<String>,
}

#[derive(Serialize)]
struct Statistic {
    name: &'static str,
    unit: &'static str,
    kind: &'static str,
    description: &'static str,
    /// The designs that have it; none: every simulation.
    designs: Vec<&'static str>,
}

#[derive(Serialize)]
struct Section {
    name: &'static str,
    doc: &'static str,
    parameters: Vec<Parameter>,
}

#[derive(Serialize)]
struct Parameter {
    key: String,
    doc: &'static str,
    unit: &'static str,
    allowed: String,
    default: String,
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
    summary: &'static str,
}

/// A persistency model of a processor.
#[derive(Serialize)]
struct PersistencyModel {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    /// Rules of the order in which a thread's steps act.
    rules: Vec<Rule>,
}

#[derive(Serialize)]
struct Rule {
    name: &'static str,
    sentence: &'static str,
    source: &'static str,
}

impl PersistencyModel {
    fn of(model: &Model) -> Self {
        let rule = |rule: &graven_persistency::rules::Rule| {
            let graven_persistency::rules::Rule { name, sentence, source, .. } = *rule;
            Rule { name, sentence, source }
        };
        let rules = model.order.iter().map(rule).collect();
        Self { name: model.name, summary: model.summary, source: model.source, rules }
    }
}

/// A bound of what the adversary draws.
#[derive(Serialize)]
struct Draw {
    name: &'static str,
    summary: &'static str,
    default: u64,
    least: u64,
    most: u64,
}

impl Catalogue {
    /// All that a registry has.
    ///
    /// # Panics
    /// If a preset that ships with Graven does not load: the build is broken then.
    pub fn of(registry: &Registry) -> Self {
        let defaults = registry.defaults();
        let designs = Vec::from_iter(registry.designs().iter().map(|d| Design::of(d, &defaults)));
        let stats_of_designs = registry.design_statistics().iter().map(|d| {
            let with = designs.iter().filter(|design| design.statistics.contains(&d.name));
            Statistic::of(d, with.map(|design| design.name).collect())
        });
        let stats = stats::declarations().map(|d| Statistic::of(d, Vec::new()));
        let stats = stats.chain(stats_of_designs).collect();
        Self {
            designs,
            aliases: registry.aliases().iter().map(OtherName::of).collect(),
            workloads: registry.workloads().iter().map(Workload::of).collect(),
            machines: registry.presets().iter().map(|p| Machine::of(registry, p)).collect(),
            parts: PARTS.iter().map(|part| Part::of(registry, part)).collect(),
            stats,
            sections: defaults.sections().map(Section::of).collect(),
            states: named(STATES),
            draws: DRAW_RANGES.iter().map(Draw::of).collect(),
            models: MODELS.iter().map(PersistencyModel::of).collect(),
            orders: ORDERS
                .iter()
                .map(|&cut::Order { name, summary, source, .. }| Order { name, summary, source })
                .collect(),
        }
    }
}
/// Writes a `[comparison]` table as JSON, with `null` for keys that it leaves out. Values are texts, as `--set` takes them.
pub fn comparison(comparison: &Comparison) -> Value {
    let text = |value: &toml::Value| match config::to_json(value) {
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

impl Design {
    fn of(info: &&'static DesignInfo, defaults: &Config) -> Self {
        Self {
            name: info.name,
            summary: info.summary,
            paper: info.paper,
            safe: info.is_sound(defaults),
            default: info.default,
            guarantee: guarantee_text(info.guarantee_in(defaults)),
            settings: texts(info.settings),
            mutants: named(info.mutants),
            cover_points: named(info.covered()),
            statistics: info.statistics().map(|d| d.name).collect(),
            parameters: info.section.map(|make| parameters(make().as_ref())).unwrap_or_default(),
        }
    }
}

impl OtherName {
    fn of(alias: &&'static Alias) -> Self {
        Self { name: alias.name, summary: alias.summary, paper: alias.paper, of: alias.of }
    }
}

impl Workload {
    fn of(info: &&'static WorkloadInfo) -> Self {
        Self {
            name: info.name,
            summary: info.summary,
            group: info.group,
            settings: texts(info.settings),
            parameters: info.sections.iter().flat_map(|make| parameters(make().as_ref())).collect(),
        }
    }
}

impl Machine {
    fn of(registry: &Registry, preset: &Preset) -> Self {
        let file = MachineFile::named(registry, preset.name).expect("machines are tested");
        Self {
            name: preset.name,
            title: preset.title,
            file: preset.file,
            values: values(&file.config),
            comparison: comparison(&file.comparison),
        }
    }
}

impl Part {
    fn of(registry: &Registry, part: &Preset) -> Self {
        let config = registry.machine_file(part.text, part.file).expect("parts are tested");
        let mut values = values(&config);
        values.retain(|value| value.source.is_some() || value.assumed.is_some());
        Self { name: part.name, title: part.title, file: part.file, values }
    }
}

fn values(config: &Config) -> Vec<MachineValue> {
    let mut out = Vec::new();
    for section in config.sections() {
        for field in section.fields() {
            let key = format!("{}.{}", section.name(), field.key);
            let value = section.get(field.key).expect("a declared key has a value");
            let (source, assumed) = match config.source(&key) {
                Some(Source::Paper(table)) => (Some(table.clone()), None),
                Some(Source::Assumed(why)) => (None, Some(why.clone())),
                Some(Source::User(origin)) => (Some(origin.clone()), None),
                Some(Source::Name(name)) => (Some((*name).to_owned()), None),
                Some(Source::Default) | None => (None, None),
            };
            out.push(MachineValue { key, value: config::to_json(&value), source, assumed });
        }
    }
    out
}

impl Statistic {
    fn of(declaration: &'static Declaration, designs: Vec<&'static str>) -> Self {
        let kind = match declaration.kind {
            Kind::Count => "count",
            Kind::Gauge => "gauge",
            Kind::Ratio => "ratio",
            Kind::Digest => "digest",
        };
        let Declaration { name, unit, description, .. } = *declaration;
        Self { name, unit, kind, description, designs }
    }
}

impl Section {
    fn of(section: &dyn config::Section) -> Self {
        Self { name: section.name(), doc: section.doc(), parameters: parameters(section) }
    }
}

impl Draw {
    fn of(range: &DrawRange) -> Self {
        let (least, most) = range.allowed;
        Self { name: range.name, summary: range.summary, default: range.default, least, most }
    }
}

/// A parameter set, as `--set` takes it.
fn texts(settings: &[(&str, &str)]) -> Vec<String> {
    settings.iter().map(|(key, value)| format!("{key}={value}")).collect()
}

fn named<'a>(all: impl IntoIterator<Item = &'a design::Named>) -> Vec<Named> {
    all.into_iter().map(|n| Named { name: n.name, summary: n.summary.trim() }).collect()
}

fn parameters(section: &dyn config::Section) -> Vec<Parameter> {
    let of = |field: config::Field| Parameter {
        key: format!("{}.{}", section.name(), field.key),
        doc: field.doc,
        unit: field.unit,
        allowed: field.allowed,
        default: field.default,
    };
    section.fields().into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_lists_what_the_registries_hold() {
        let registry = crate::standard();
        let all = Catalogue::of(&registry);
        assert_eq!(all.designs.len(), registry.designs().len());
        assert_eq!(all.machines.len(), registry.presets().len());
        let [silo, ..] = &all.machines[..] else { panic!("there is no machine") };
        assert_eq!(silo.name, "silo");
        let sourced = silo.values.iter().filter(|v| v.source.is_some());
        assert!(sourced.count() >= 10, "the preset names its tables");
    }

    /// Bug class: a word is declared once and used nowhere, and front ends show an empty unit.
    #[test]
    fn what_is_named_is_declared() {
        let registry = crate::standard();
        let all = Catalogue::of(&registry);
        let parameters: Vec<&str> =
            all.sections.iter().flat_map(|s| &s.parameters).map(|p| p.key.as_str()).collect();
        for machine in &all.machines {
            for value in &machine.values {
                let key = value.key.as_str();
                assert!(parameters.contains(&key), "{}: {key} is not declared", machine.name);
            }
        }
        for design in &all.designs {
            for name in &design.statistics {
                let declared = all.stats.iter().find(|s| s.name == *name);
                let designs = declared.map(|s| &s.designs[..]).unwrap_or_default();
                assert!(designs.contains(&design.name), "{name} is not {}'s", design.name);
            }
        }
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
