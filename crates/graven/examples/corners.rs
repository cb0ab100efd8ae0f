//! What simulations cost the host: reads `DESIGN WORKLOAD MACHINE THREADS TRANSACTIONS SECONDS` from each line of the
//! standard input, and answers with a line of JSON. `tests/campaigns/corners.py` asks for all combinations.
//!
//! The threads' programs run until they end or have taken so many seconds; building the simulation and the orderly
//! shutdown are not counted. Of a run that was cut, the numbers are those up to there.

mod measured;

use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use graven::Registry;
use graven::config::ConfigError;
use graven::sim::{Observer, SimError, Simulation};
use measured::Clock;
use serde_json::{Value, json};

/// How many actions pass between looks at the clock.
const ACTIONS_PER_LOOK: u64 = 16 * 1024;

/// Counts actions, and stops the run when it has taken too long.
struct Limit {
    clock: Clock,
    seconds: f64,
    actions: u64,
    over: bool,
}

impl Observer for Limit {
    fn after_action(&mut self, _: &mut Simulation) {
        self.actions += 1;
        if self.actions.is_multiple_of(ACTIONS_PER_LOOK) {
            self.over = self.clock.seconds() > self.seconds;
        }
    }

    fn stops(&self) -> bool {
        self.over
    }
}

/// A combination, as a line names it.
struct Combination<'a> {
    design: &'a str,
    workload: &'a str,
    machine: &'a str,
    threads: u64,
    transactions: u64,
    seconds: f64,
}

impl Combination<'_> {
    fn of(line: &str) -> Option<Combination<'_>> {
        let mut words = line.split_whitespace();
        Some(Combination {
            design: words.next()?,
            workload: words.next()?,
            machine: words.next()?,
            threads: words.next()?.parse().ok()?,
            transactions: words.next()?.parse().ok()?,
            seconds: words.next()?.parse().ok()?,
        })
    }

    fn simulation(&self, registry: &Registry) -> Result<Simulation, ConfigError> {
        let &Combination { design, workload, machine, threads, transactions, .. } = self;
        let config = registry.machine(machine)?;
        let (threads, transactions) = (Some(threads), Some(transactions));
        Simulation::new(&registry.spec(config, design, workload, threads, transactions, 1)?)
    }

    /// What it cost, or why it does not run.
    fn measured(&self, registry: &Registry) -> Value {
        let mut simulation = match self.simulation(registry) {
            Ok(simulation) => simulation,
            Err(why) => return json!({ "refused": why.to_string() }),
        };
        let mut limit =
            Limit { clock: Clock::start(), seconds: self.seconds, actions: 0, over: false };
        let ended = simulation.advance_observed(u64::MAX, &mut limit);
        let seconds = limit.clock.seconds();
        let counts = simulation.counts();
        let outcome = match ended {
            Ok(true) => "ended".into(),
            Ok(false) => "cut".into(),
            Err(SimError::Design { why, .. }) => return json!({ "refused": why }),
            Err(SimError::ReadCheck { .. }) => "violated".into(),
            Err(why) => why.to_string(),
        };
        json!({
            "outcome": outcome,
            "seconds": seconds,
            "actions": limit.actions,
            "operations": counts["loads"] + counts["stores"],
            "transactions": counts["committed_transactions"],
            "cycles": simulation.machine().now(),
        })
    }
}

fn main() -> io::Result<()> {
    let registry: &'static Registry = Box::leak(Box::new(graven::standard()));
    for line in io::stdin().lock().lines() {
        let line = line?;
        let combination = Combination::of(&line)
            .unwrap_or_else(|| panic!("a design, a workload, a machine and three numbers: {line}"));
        let measured = catch_unwind(AssertUnwindSafe(|| combination.measured(registry)));
        let answer = measured.unwrap_or_else(|_| json!({ "outcome": "panicked" }));
        println!("{answer}");
        io::stdout().flush()?;
    }
    Ok(())
}
