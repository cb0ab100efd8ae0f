//! The adversary against one design: `adversary DESIGN [FIRST_SEED] [SEEDS] [SABOTAGE]`.

use std::time::Instant;

use graven_engine::crash::{Reached, STATES, Tally, Thoroughness, schedule, shrink, tell};
use graven_engine::designs;
use graven_engine::litmus::Case;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let design = designs::find(&args[0]).unwrap_or_else(|e| panic!("{e}"));
    let number =
        |i: usize, default: u64| args.get(i).map_or(default, |a| a.parse().expect("a number"));
    let (first, seeds) = (number(1, 1), number(2, 100));
    let began = Instant::now();
    let (mut tally, mut refused, mut reached) = (Tally::default(), 0, vec![0; STATES.len()]);
    let mut corners = vec![0; design.corners.len()];
    let _: Option<Reached> = None;
    for seed in first..first + seeds {
        let mut litmus = schedule(design, seed);
        litmus.sabotage = args.get(3).cloned();
        let case =
            Case::new(&litmus, design).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{litmus}"));
        let outcome = case.examined(Thoroughness::SHORT).run().unwrap_or_else(|e| panic!("{e}"));
        tally.add(&outcome.tally);
        refused += u64::from(outcome.refused.is_some());
        reached.iter_mut().zip(outcome.reached.counts()).for_each(|(sum, n)| *sum += n);
        corners.iter_mut().zip(&outcome.corners).for_each(|(sum, n)| *sum += n);
        if let Some(conviction) = outcome.convictions.first() {
            println!("seed {seed}: {} ({} crash points)", conviction.what, tally.crash_points);
            let Some(least) = shrink(&litmus, design) else {
                println!("it cannot be repeated:\n{litmus}");
                return;
            };
            println!("{}\n({} runs)", least.litmus, least.runs);
            let case = Case::new(&least.litmus, design).unwrap_or_else(|e| panic!("{e}"));
            let told = case.tell().unwrap_or_else(|e| panic!("{e}"));
            let name = |addr| case.layout().name(addr).map(str::to_owned);
            match told.convictions.first() {
                Some(conviction) => println!("{}", tell(&told.story, conviction, &name)),
                None => println!("the replay does not convict"),
            }
            return;
        }
    }
    println!("{tally:?}, {refused} refused, {:.1} s", began.elapsed().as_secs_f64());
    for (state, count) in STATES.iter().zip(reached).chain(design.corners.iter().zip(corners)) {
        println!("{count:>10} {}", state.name);
    }
}
