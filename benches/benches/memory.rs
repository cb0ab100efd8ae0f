//! Requests per second of host time: reading traces, and replaying them on controller and device.

mod common;

use std::hint::black_box;
use std::time::Duration;

use common::{Pattern, machine, trace};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graven::trace::requests::replay::Replay;
use graven::trace::requests::{BinaryWriter, Reader};

/// So many that most are not the first to their page of the host's memory, even of 256 MB.
const REQUESTS: u64 = 1_000_000;

/// The same requests in the binary format.
fn binary(text: &[u8]) -> Vec<u8> {
    let mut writer = BinaryWriter::new(Vec::new()).expect("memory takes everything");
    for request in Reader::new(text) {
        writer.write(request.expect("it was just written")).expect("memory takes everything");
    }
    writer.finish().expect("memory takes everything")
}

fn read(c: &mut Criterion) {
    let text = trace(REQUESTS, Pattern::Random, 10);
    let binary = binary(&text);
    let mut group = c.benchmark_group("trace");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    for (name, trace) in [("read nvmain", &text), ("read binary", &binary)] {
        group.bench_function(name, |b| {
            b.iter(|| Reader::new(&trace[..]).map(|r| r.expect("it was just written").cycle).max());
        });
    }
    group.finish();
}

/// Replays requests that are read from text, and the same from the binary format.
fn replay(c: &mut Criterion) {
    replays(c, "replay", |text| text);
    replays(c, "replay binary", |text| binary(&text));
}

fn replays(c: &mut Criterion, name: &str, format: impl Fn(Vec<u8>) -> Vec<u8>) {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    // One request every 10 cycles is more than the device can take, one every 500 leaves it idle.
    for (load, gap) in [("saturated", 10), ("light", 500)] {
        for (name, pattern) in [("random", Pattern::Random), ("sequential", Pattern::Sequential)] {
            let requests = format(trace(REQUESTS, pattern, gap));
            for preset in ["silo", "fwb"] {
                let config = machine(preset, &[]);
                group.bench_function(format!("{preset}/{name}/{load}"), |b| {
                    b.iter(|| {
                        let replay = Replay::new(&config);
                        black_box(
                            replay.run(&mut Reader::new(&requests[..])).expect("a good trace"),
                        )
                    });
                });
            }
        }
    }
    group.finish();
}

criterion_group!(benches, read, replay);
criterion_main!(benches);
