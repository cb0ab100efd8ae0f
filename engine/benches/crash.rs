//! Crash points per second of host time: power failure, recovery, verdict.

mod common;

use std::hint::black_box;
use std::time::Duration;

use common::{machine, simulation};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graven_engine::designs::REGISTRY;
use graven_engine::workloads;

fn crash(c: &mut Criterion) {
    let mut group = c.benchmark_group("crash");
    group.throughput(Throughput::Elements(1)).sample_size(10);
    group.measurement_time(Duration::from_secs(1)).warm_up_time(Duration::from_millis(300));
    let config = machine("silo", &[("workload.footprint_bytes", "1 MB")]);
    let Some(workload) = workloads::REGISTRY.first() else { return };
    for design in REGISTRY {
        let mut simulation = simulation(&config, design.name, workload, 8, 20_000);
        simulation.follow_transactions();
        // Somewhere in the middle of the run.
        let finished = simulation.advance(200_000).unwrap_or_else(|e| panic!("{e}"));
        assert!(!finished, "{}: nothing is under way any more", design.name);
        group.bench_function(design.name, |b| {
            b.iter(|| {
                let mut crash = simulation.crash();
                black_box(crash.recover());
                black_box(crash.judge().is_ok())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, crash);
criterion_main!(benches);
