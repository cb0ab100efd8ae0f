//! Seeded schedules against one design: `adversary DESIGN [SEEDS] [mutant=NAME|all] [KEY=VALUE…]`. Prints the
//! first violation as a program with its timeline, or per mutant after how many schedules it fell.

use graven::design::DesignInfo;
use graven::lab::campaign::{Report, Schedules};

fn campaign(
    design: &'static DesignInfo,
    mutant: Option<&str>,
    settings: &[(String, String)],
    seeds: u64,
) -> Report {
    let mutant = mutant.map(str::to_owned);
    Schedules::new(registry(), design, mutant, settings.to_vec(), (1, seeds), 1)
        .unwrap_or_else(|e| panic!("{e}"))
        .run()
        .unwrap_or_else(|e| panic!("{e}"))
}

fn registry() -> &'static graven::Registry {
    static REGISTRY: std::sync::OnceLock<graven::Registry> = std::sync::OnceLock::new();
    REGISTRY.get_or_init(graven::standard)
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, rest @ ..] = args.as_slice() else {
        panic!("usage: adversary DESIGN [SEEDS] [mutant=NAME|all] [KEY=VALUE…]")
    };
    let design = registry().find_design(name).unwrap_or_else(|e| panic!("{e}"));
    let (mut seeds, mut mutant, mut settings) = (600, None, Vec::new());
    for argument in rest {
        match argument.split_once('=') {
            None => seeds = argument.parse().expect("a number of seeds"),
            Some(("mutant", value)) => mutant = Some(value.to_owned()),
            Some((key, value)) => settings.push((key.to_owned(), value.to_owned())),
        }
    }
    if mutant.as_deref() == Some("all") {
        for named in design.mutants {
            let report = campaign(design, Some(named.name), &settings, seeds);
            let what = report.findings.first().map(|f| f.violation.what.as_str());
            println!("{:28} {:5} schedules: {what:?}", named.name, report.runs);
        }
        return;
    }
    let report = campaign(design, mutant.as_deref(), &settings, seeds);
    if let Some(finding) = report.findings.first() {
        println!("{}\n{}", finding.replay.as_ref().expect("a program"), finding.timeline);
    }
    let missed: Vec<&str> = report.coverage.iter().filter(|s| s.2 == 0).map(|s| s.0).collect();
    println!(
        "{:?}\nrefused {} ({:?}), not reached {missed:?}",
        report.tally, report.refused, report.refusal
    );
}
