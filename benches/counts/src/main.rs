//! Benchmarks whose host instructions are counted, under callgrind, by `python -m tests.counts`.
//!
//! `graven-counts` lists their names, `graven-counts NAME` runs one of them once, and says how many units it has done, in one
//! line, `400<tab>transaction`. One benchmark is executed per process, so that none depends on what another has left in the
//! allocator. Without callgrind nothing is counted.
//!
//! Everything is a function of the arguments: seeds are fixed, no time is looked at, and no hash function has a seed of the
//! host's.

mod case;
#[path = "../../benches/common/mod.rs"]
mod common;
mod crashes;
mod simulations;
mod traces;

use std::process::ExitCode;

use case::Case;

/// The five micro workloads that most papers have.
const WORKLOADS: [&str; 5] = ["array", "btree", "hash", "queue", "rbtree"];

/// A design of each paper.
const DESIGNS: [&str; 5] = ["fwb", "hoop", "lalea", "morlog-slde", "silo"];

fn cases() -> impl Iterator<Item = Case> {
    simulations::cases().chain(traces::cases()).chain(crashes::cases())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => cases().for_each(|case| println!("{}", case.name)),
        [name] => {
            let Some(case) = cases().find(|case| case.name == *name) else {
                eprintln!("there is no benchmark `{name}`; without an argument all are listed");
                return ExitCode::from(2);
            };
            println!("{}\t{}", (case.run)(), case.unit);
        }
        _ => {
            eprintln!("usage: graven-counts [NAME]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
