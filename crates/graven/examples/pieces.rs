//! Speed of a region in pieces: `pieces DESIGN WORKLOAD TRANSACTIONS [KEY=VALUE…]`.
//!
//! The region is simulated in one go, and then in 2, 4, 8 and 16 pieces, one after another on this thread. From the processor time of each
//! piece follows how long as many host threads as pieces would take, and 2 threads; and from the results, how many of the estimates
//! lie apart by more than both half intervals.

use std::error::Error;
use std::sync::Arc;

use graven::sim::{Beginning, Control, Results, Spec, piece_of};
use serde_json::Value;

type Failure = Box<dyn Error + Send + Sync>;

fn registry() -> &'static graven::Registry {
    static REGISTRY: std::sync::OnceLock<graven::Registry> = std::sync::OnceLock::new();
    REGISTRY.get_or_init(graven::standard)
}

/// Processor time of this thread, in seconds.
fn seconds() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanoseconds / 1e9)
}

/// Time of `threads` threads, each of which takes the next piece when it is free.
fn together(pieces: &[f64], threads: usize) -> f64 {
    let mut free = vec![0.0_f64; threads];
    for piece in pieces {
        free.sort_by(f64::total_cmp);
        free[0] += piece;
    }
    free.into_iter().fold(0.0, f64::max)
}

/// Number of estimates of both, and of those that lie apart by more than their intervals.
fn apart(one: &Value, other: &Value) -> (usize, usize) {
    let estimates = |record: &Value| record["measured"]["estimates"].as_object().cloned();
    let (Some(one), Some(other)) = (estimates(one), estimates(other)) else { return (0, 0) };
    let number = |value: &Value, at: usize| value[at].as_f64().unwrap_or_default();
    let both: Vec<_> = one.iter().filter_map(|(name, a)| Some((a, other.get(name)?))).collect();
    let is_apart = |(a, b): &&(&Value, &Value)| {
        let allowed = number(a, 0) * number(a, 1) + number(b, 0) * number(b, 1);
        (number(a, 0) - number(b, 0)).abs() > allowed
    };
    (both.len(), both.iter().filter(is_apart).count())
}

fn main() -> Result<(), Failure> {
    let mut args = std::env::args().skip(1);
    let design = args.next().ok_or("a design")?;
    let workload = args.next().ok_or("a workload")?;
    let transactions = args.next().ok_or("transactions of the region")?.parse()?;
    let settings: Vec<String> = args.collect();
    let mut in_one_go: Option<(f64, Value)> = None;
    for pieces in [1, 2, 4, 8, 16] {
        let mut config = registry().machine("silo")?;
        for setting in &settings {
            let (key, value) = setting.split_once('=').ok_or("KEY=VALUE")?;
            config.set(key, value)?;
        }
        config.set("region.kind", "steady")?;
        config.set("region.pieces", &pieces.to_string())?;
        let spec = registry().spec(config, &design, &workload, None, Some(transactions), 1)?;
        let (times, record) = run(&spec, pieces)?;
        let all: f64 = times.iter().sum();
        match &in_one_go {
            None => {
                println!("{design} {workload}: {all:.1} s in one go");
                in_one_go = Some((all, record));
            }
            Some((alone, whole)) => {
                let (both, apart) = apart(whole, &record);
                println!(
                    "{pieces} pieces: {all:.1} s together; {:.2} times as fast on {pieces} threads, {:.2} on 2; {apart} of {both} estimates apart",
                    alone / together(&times, pieces as usize),
                    alone / together(&times, 2),
                );
            }
        }
    }
    Ok(())
}

/// Simulates all pieces; returns the processor time of each, and the record.
fn run(spec: &Spec, pieces: u32) -> Result<(Vec<f64>, Value), Failure> {
    let beginning = Beginning::of(spec);
    let control = Arc::<Control>::default();
    let mut times = Vec::new();
    let mut whole: Option<Results> = None;
    for piece in 0..pieces {
        let begun = seconds()?;
        let results = piece_of::<Failure>(spec, beginning.as_ref(), piece, &control)?;
        times.push(seconds()? - begun);
        match &mut whole {
            None => whole = Some(results),
            Some(whole) => whole.join(results),
        }
    }
    Ok((times, whole.ok_or("a region has a piece")?.record()))
}
