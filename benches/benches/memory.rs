//! Requests per second of host time: reading traces, and replaying them on controller and device.

mod common;

use std::hint::black_box;
use std::time::Duration;

use common::{Pattern, machine, trace};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graven::trace::requests::Reader;
use graven::trace::requests::replay::Replay;

const REQUESTS: u64 = 100_000;

fn read(c: &mut Criterion) {
    let text = trace(REQUESTS, Pattern::Random, 10);
    let mut group = c.benchmark_group("trace");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    group.bench_function("read nvmain", |b| {
        b.iter(|| Reader::new(&text[..]).map(|r| r.expect("it was just written").cycle).max());
    });
    group.finish();
}

fn replay(c: &mut Criterion) {
    let mut group = c.benchmark_group("replay");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    // One request every 10 cycles is more than the device can take, one every 500 leaves it idle.
    for (load, gap) in [("saturated", 10), ("light", 500)] {
        for (name, pattern) in [("random", Pattern::Random), ("sequential", Pattern::Sequential)] {
            let text = trace(REQUESTS, pattern, gap);
            for preset in ["silo", "fwb"] {
                let config = machine(preset, &[]);
                group.bench_function(format!("{preset}/{name}/{load}"), |b| {
                    b.iter(|| {
                        let replay = Replay::new(&config);
                        black_box(replay.run(&mut Reader::new(&text[..])).expect("a good trace"))
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, read, replay);
criterion_main!(benches);
