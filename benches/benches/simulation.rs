//! Simulated memory operations per second of host time, whole machine.

mod common;

use common::registry;
use std::time::{Duration, Instant};

use common::{FRIENDLY, MISSING, machine, simulation};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use graven::config::Config;
use graven::sim::Simulation;
use graven::time::NEVER;
use graven::workload::WorkloadInfo;

/// Times runs only: building the machine and populating PM is not simulated time.
fn timed(group: &mut BenchmarkGroup<'_, WallTime>, name: &str, make: impl Fn() -> Simulation) {
    let mut first = make();
    first.advance(NEVER).unwrap_or_else(|e| panic!("{name}: {e}"));
    let counters = &first.stats().counters;
    group.throughput(Throughput::Elements(counters.loads + counters.stores));
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            let mut total = Duration::ZERO;
            for _ in 0..iterations {
                let mut simulation = make();
                let start = Instant::now();
                simulation.advance(NEVER).expect("it ran before");
                total += start.elapsed();
            }
            total
        });
    });
}

fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.sample_size(10);
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
    group
}

fn streams(c: &mut Criterion) {
    let mut group = group(c, "stream");
    let cases: [(&str, &'static WorkloadInfo, u32, u64); 4] = [
        ("friendly/1", &FRIENDLY, 1, 4_000_000),
        ("friendly/8", &FRIENDLY, 8, 4_000_000),
        ("missing/1", &MISSING, 1, 100_000),
        ("missing/8", &MISSING, 8, 100_000),
    ];
    for (name, workload, threads, operations) in cases {
        let config = machine("silo", &[]);
        timed(&mut group, name, || simulation(&config, "ideal", workload, threads, operations));
    }
    group.finish();
}

fn workloads(c: &mut Criterion) {
    let mut group = group(c, "workload");
    let about_16_mb = [
        ("workload.footprint_bytes", "16 MB"),
        ("tpcc.items", "10000"),
        ("tpcc.customers_per_district", "300"),
        ("tpcc.orders_per_district", "300"),
    ];
    let config: Config = machine("silo", &about_16_mb);
    for workload in registry().programs() {
        for design in registry().designs() {
            let name = format!("{}/{}", workload.name, design.name);
            timed(&mut group, &name, || simulation(&config, design.name, workload, 8, 4000));
        }
    }
    group.finish();
}

criterion_group!(benches, streams, workloads);
criterion_main!(benches);
