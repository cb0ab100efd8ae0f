//! Which mutants of a design the adversary kills: `mutants DESIGN [SCHEDULES [MUTANT…]]`, one line for each.

use std::sync::Arc;

use graven::control::Control;
use graven::lab::adversary::Draws;
use graven::lab::mutants::{mutants_of, try_mutant};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, rest @ ..] = args.as_slice() else {
        panic!("usage: mutants DESIGN [SCHEDULES [MUTANT…]]")
    };
    let schedules = rest.first().map_or(2000, |n| n.parse().expect("a number of schedules"));
    let registry = graven::standard();
    let design = registry.find_design(name).unwrap_or_else(|e| panic!("{e}"));
    let control = Arc::new(Control::default());
    let all = mutants_of(&registry, design, &control).expect("nobody cancels");
    let wanted = rest.get(1..).unwrap_or_default();
    for mutant in all.into_iter().filter(|m| wanted.is_empty() || wanted.contains(&m.name)) {
        let trial =
            try_mutant(&registry, design, &mutant, Draws::default(), (1, schedules), &control);
        let trial = trial.unwrap_or_else(|e| panic!("{e}"));
        let class = mutant.class.as_deref().unwrap_or("own");
        let end = trial
            .kill
            .map_or("SURVIVED".to_owned(), |kill| format!("{} {}", kill.by.name(), kill.what));
        println!("{name}\t{class}\t{}\t{}\t{end}", mutant.name, trial.schedules);
    }
}
