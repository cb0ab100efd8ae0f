//! The documentation's tables say what the code says.
//!
//! Bug class: a statistic or a preset changes, and the documentation keeps the old words.

use crate::common::find;
use crate::common::registry;
use std::collections::BTreeSet;

use graven::config::{Annotation, Source};
use graven::cost::{Sheet, Verdict, number_text};

use graven::Preset;
use graven::trace::requests::replay;

/// A row of a Markdown table.
fn row<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let mut row = String::from("|");
    for cell in cells {
        if !cell.is_empty() {
            row.push(' ');
            row.push_str(cell);
        }
        row.push_str(" |");
    }
    row
}

/// The rows that begin with a name in code type.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with("| `"))
}

/// The presets that are papers' machines.
fn papers() -> impl Iterator<Item = &'static Preset> {
    registry().presets().iter().copied().filter(|preset| preset.file.starts_with("papers/"))
}

#[test]
fn every_statistic_is_documented_and_nothing_else() {
    let text = include_str!("../../../../docs/explanation/statistics.md");
    let documented: Vec<String> = rows(text).map(str::to_owned).collect();
    let declared: Vec<String> = registry()
        .statistics()
        .into_iter()
        .chain(replay::declarations())
        .map(|d| row([format!("`{}`", d.name).as_str(), d.unit, d.description]))
        .collect();
    let missing: Vec<_> = declared.iter().filter(|r| !documented.contains(r)).collect();
    let surplus: Vec<_> = documented.iter().filter(|r| !declared.contains(r)).collect();
    assert!(
        missing.is_empty(),
        "docs/explanation/statistics.md lacks rows: {missing:#?}; has: {surplus:#?}"
    );
    assert!(
        surplus.is_empty(),
        "docs/explanation/statistics.md has rows of no statistic: {surplus:#?}"
    );
    assert_eq!(documented.len(), declared.len(), "no statistic is documented twice");
}

/// The papers' tables of their machines: sources that the page names once.
const TABLES: [&str; 5] =
    ["Silo Table II", "MorLog Table III", "FWB Table II", "HOOP Table II", "LALEA Table I"];

/// What the papers' machines set, in the order of declaration: per parameter that any of them sets, its
/// annotation on each machine that does.
fn parameters() -> Vec<Vec<Option<Annotation>>> {
    let load = |p: &Preset| registry().machine(p.name).unwrap_or_else(|e| panic!("{e}"));
    let machines: Vec<Vec<Annotation>> = papers().map(|p| load(p).annotations()).collect();
    let is_set = |a: &Annotation| matches!(a.source, Source::Paper(_) | Source::Assumed(_));
    let of = |i: usize| machines.iter().map(|m| Some(m[i].clone()).filter(is_set)).collect();
    let all = (0..machines[0].len()).map(of);
    all.filter(|of: &Vec<Option<Annotation>>| of.iter().any(Option::is_some)).collect()
}

fn key(of: &[Option<Annotation>]) -> &Annotation {
    of.iter().flatten().next().expect("some machine sets it")
}

/// One row per parameter: the values of all machines, those that were assumed in italics, nothing for those
/// that leave the default.
fn values() -> Vec<String> {
    let value = |a: &Option<Annotation>| match a {
        None => String::new(),
        Some(a) if matches!(a.source, Source::Assumed(_)) => format!("*{}*", a.value),
        Some(a) => a.value.clone(),
    };
    let line = |of: &Vec<Option<Annotation>>| {
        let mut cells = vec![format!("`{}`", key(of).key), key(of).unit.to_owned()];
        cells.extend(of.iter().map(value));
        row(cells.iter().map(String::as_str))
    };
    parameters().iter().map(line).collect()
}

/// Rows of key, machines and words, for each different text; `pick` selects it.
fn texts(pick: impl Fn(&Source) -> Option<&str>) -> Vec<String> {
    let mut out = Vec::new();
    for parameter in parameters() {
        let of = |m: usize| parameter[m].as_ref().and_then(|a| pick(&a.source));
        let different: BTreeSet<&str> = (0..parameter.len()).filter_map(of).collect();
        for text in different {
            let said = papers().enumerate().filter(|&(m, _)| of(m) == Some(text));
            let said: Vec<&str> = said.map(|(_, p)| p.name).collect();
            let (key, said) = (format!("`{}`", key(&parameter).key), said.join(", "));
            out.push(row([key.as_str(), said.as_str(), text]));
        }
    }
    out
}

#[test]
fn the_machines_are_documented_as_their_presets_are() {
    let text = include_str!("../../../../docs/guides/machines.md");
    let mut expected = values();
    expected.extend(texts(|source| match source {
        Source::Paper(text) => Some(text.as_str()).filter(|text| !TABLES.contains(text)),
        _ => None,
    }));
    expected.extend(texts(|source| match source {
        Source::Assumed(text) => Some(text),
        _ => None,
    }));
    let documented: Vec<&str> = rows(text).collect();
    let expected_text = expected.join("\n");
    assert!(
        documented == expected,
        "docs/guides/machines.md should have the rows:\n{expected_text}"
    );
    assert!(text.trim_end().ends_with('|'), "docs/guides/machines.md ends with its last table");
}

/// Rows of items that differ from what their paper prints, on its machine.
fn differences() -> Vec<String> {
    let mut out = Vec::new();
    for design in ["fwb", "morlog", "silo", "hoop", "lalea"] {
        let entry = find(design).unwrap_or_else(|e| panic!("{e}"));
        let machine = registry().machine(entry.cost.machine).unwrap_or_else(|e| panic!("{e}"));
        let sheet = Sheet::of(registry(), entry, machine).unwrap_or_else(|e| panic!("{e}"));
        for (item, verdict) in sheet.items.iter().zip(&sheet.verdicts) {
            let Some(printed) = item.printed.filter(|_| *verdict == Some(Verdict::Differs)) else {
                continue;
            };
            let (name, value) = (format!("`{}`", item.name), number_text(item.value()));
            let place = format!("{} {}", printed.paper.name, printed.at);
            let unit = item.unit.name();
            out.push(row([&name, design, unit, &value, printed.text, &place, item.note]));
        }
    }
    out
}

#[test]
fn figures_that_differ_from_papers_are_documented() {
    let documented: Vec<&str> =
        rows(include_str!("../../../../docs/explanation/cost.md")).collect();
    let expected = differences();
    let expected_text = expected.join("\n");
    assert!(
        documented == expected,
        "docs/explanation/cost.md should have the rows:\n{expected_text}"
    );
}

#[test]
fn the_workload_that_is_shown_is_the_one_that_runs() {
    let text = include_str!("../../../../docs/explanation/workloads.md");
    let (_, rest) = text
        .split_once("<!-- excerpt: crates/graven/tests/common/mod.rs -->\n```rust\n")
        .expect("the excerpt begins");
    let (excerpt, _) = rest.split_once("```\n<!-- end of excerpt -->").expect("the excerpt ends");
    assert!(
        include_str!("../common/mod.rs").contains(excerpt),
        "it is not in crates/graven/tests/common"
    );
}

#[test]
fn what_one_transaction_does_is_documented_as_it_is() {
    let text = include_str!("../../../../docs/explanation/acknowledgements.md");
    let table = graven::acknowledgement::table(registry()).unwrap_or_else(|why| panic!("{why}"));
    assert!(
        text.contains(&table),
        "docs/explanation/acknowledgements.md should have the table:\n{table}"
    );
}
