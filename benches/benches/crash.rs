//! Crash points per second of host time: a run of a workload, crashed at every one of them, recovered and
//! checked, with nothing but the plain mode of each. The run itself is part of the time. Elements are crash points.

mod common;

use common::registry;
use std::time::Duration;

use common::{CRASHED, PLAIN, machine, spec};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};

use graven::lab::explorer::CrashRun;

fn crash(c: &mut Criterion) {
    let mut group = c.benchmark_group("crash");
    group.sample_size(10).measurement_time(Duration::from_secs(2));
    group.warm_up_time(Duration::from_millis(300));
    let config = machine("silo", &CRASHED);
    for design in registry().designs().iter().filter(|d| d.is_sound(&config)) {
        let workload = registry().find_workload("btree").expect("registered");
        let spec = spec(&config, design.name, workload, 8, 200);
        let new = || CrashRun::new(&spec, None, PLAIN).unwrap_or_else(|e| panic!("{e}"));
        let outcome = new().run(None).unwrap_or_else(|e| panic!("{e}"));
        let violated = outcome.violations.first().map(|c| &c.what);
        assert_eq!(violated, None, "{}", design.name);
        assert!(outcome.refused.is_none(), "{}: {:?}", design.name, outcome.refused);
        group.throughput(Throughput::Elements(outcome.tally.plain));
        group.bench_function(design.name, |b| {
            b.iter_batched(new, |run| run.run(None).map(|o| o.tally), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, crash);
criterion_main!(benches);
