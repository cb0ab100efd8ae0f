//! Building a simulation, above all populating 64 MB of PM: alone, and as one of several that begin alike.

mod common;

use common::{machine, registry, spec};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graven::sim::{Beginning, Simulation};

const WORKLOADS: [&str; 5] = ["array", "btree", "hash", "queue", "rbtree"];

/// Bytes that structures have by default.
const FOOTPRINT_BYTES: u64 = 64 << 20;

/// Times `iterations` of building; each simulation is dropped in between, without the clock.
fn timed(iterations: u64, build: impl Fn() -> Simulation) -> Duration {
    let once = || {
        let start = Instant::now();
        let built = build();
        let elapsed = start.elapsed();
        drop(built);
        elapsed
    };
    (0..iterations).map(|_| once()).sum()
}

fn building(c: &mut Criterion) {
    let mut group = c.benchmark_group("populate");
    group.sample_size(10).throughput(Throughput::Bytes(FOOTPRINT_BYTES));
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
    for name in WORKLOADS {
        let workload = registry().find_workload(name).unwrap_or_else(|e| panic!("{e}"));
        let spec = spec(&machine("silo", &[]), "silo", workload, 8, 10_000);
        let alone = || Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"));
        group.bench_function(format!("alone/{name}"), |b| b.iter_custom(|n| timed(n, alone)));
        // Whoever holds this keeps the image.
        let _held = Beginning::of(&spec);
        let alike =
            || Simulation::begun(&spec, Beginning::of(&spec)).unwrap_or_else(|e| panic!("{e}"));
        group.bench_function(format!("alike/{name}"), |b| b.iter_custom(|n| timed(n, alike)));
    }
    group.finish();
}

criterion_group!(benches, building);
criterion_main!(benches);
