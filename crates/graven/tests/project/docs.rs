//! The documentation's tables say what the code says.
//!
//! Bug class: a statistic or an item of a cost sheet changes, and the documentation keeps the old words.

use crate::common::find;
use crate::common::registry;
use graven::cost::{Sheet, Verdict, number_text};

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

/// `graven list stats` and the site list the statistics of simulations, but not those of replays.
#[test]
fn every_statistic_of_a_replay_is_documented() {
    let text = include_str!("../../../../docs/explanation/statistics.md");
    let (_, section) = text.split_once("## Replay of request traces\n").expect("its section");
    let documented: Vec<&str> = rows(section).collect();
    // One sentence stands for all percentiles.
    let declared: Vec<String> = replay::declarations()
        .filter(|d| !d.name.starts_with("write_acceptance_cycles_p"))
        .map(|d| row([format!("`{}`", d.name).as_str(), d.unit, d.description]))
        .collect();
    let expected = declared.join("\n");
    assert!(
        documented == declared,
        "docs/explanation/statistics.md should have the rows:\n{expected}"
    );
}

/// Rows of items that differ from what their paper prints, on its machine.
fn differences() -> Vec<String> {
    let mut out = Vec::new();
    for design in ["fwb", "morlog", "silo", "hoop", "lalea"] {
        let entry = find(design).unwrap_or_else(|e| panic!("{e}"));
        let machine = registry().machine(entry.cost.machine).unwrap_or_else(|e| panic!("{e}"));
        let sheet = Sheet::of(registry(), entry, machine).unwrap_or_else(|e| panic!("{e}"));
        for (item, verdict) in sheet.items.iter().zip(&sheet.verdicts) {
            let Some(printed) = &item.printed else { continue };
            if *verdict != Some(Verdict::Differs) {
                continue;
            }
            let (name, value) = (format!("`{}`", item.name), number_text(item.value()));
            let place = format!("{} {}", printed.paper, printed.at);
            let note = item.note.as_deref().unwrap_or_default();
            out.push(row([&name, design, &item.unit, &value, &printed.text, &place, note]));
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
