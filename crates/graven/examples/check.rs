//! All programs within a bound on a design: `check DESIGN [FIELD=VALUE…]`, with the fields of the bound (`threads`,
//! `transactions`, `stores`, `words` as in `2,2`, `departures`, `life`), and `mutant`, `first`, `count` of programs.

use std::time::Instant;

use graven::lab::enumeration::{Bound, Enumeration};

fn main() {
    let registry = graven::standard();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [design, rest @ ..] = args.as_slice() else {
        panic!("usage: check DESIGN [FIELD=VALUE…]")
    };
    let (mut bound, mut mutant, mut first, mut count) = (Bound::default(), None, 0, usize::MAX);
    let mut settings = Vec::new();
    for arg in rest {
        let (key, value) = arg.split_once('=').expect("FIELD=VALUE");
        let number = || value.parse().expect("a number");
        match key {
            "threads" => bound.threads = number(),
            "transactions" => bound.transactions = number(),
            "stores" => bound.stores = number(),
            "departures" => bound.departures = number(),
            "life" => bound.life.transactions = number(),
            "words" => bound.words = value.split(',').map(|n| n.parse().expect("words")).collect(),
            "mutant" => mutant = Some(value.to_owned()),
            "first" => first = value.parse().expect("a number"),
            "count" => count = value.parse().expect("a number"),
            _ => settings.push((key.to_owned(), value.to_owned())),
        }
    }
    let design = registry.find_design(design).unwrap_or_else(|e| panic!("{e}"));
    let enumeration = Enumeration::new(&registry, design, mutant, settings, bound);
    let enumeration = enumeration.unwrap_or_else(|e| panic!("{e}"));
    let all = enumeration.program_count();
    let began = Instant::now();
    let range = first.min(all)..first.saturating_add(count).min(all);
    let checked = enumeration.run(range).unwrap_or_else(|e| panic!("{e}"));
    let seconds = began.elapsed().as_secs_f64();
    let per_second = checked.schedules as f64 / seconds;
    println!("{} of {all} programs, {seconds:.2} s, {per_second:.0} schedules/s", checked.programs);
    println!("{:?}", graven::lab::enumeration::Checked { findings: Vec::new(), ..checked.clone() });
    for finding in checked.findings {
        println!("{}\n{}", finding.replay.expect("a program"), finding.timeline);
    }
}
