//! Operations of program traces per second of host time: recorded ones out of memory, through all checks.

mod common;

use common::registry;
use std::hint::black_box;
use std::io::Cursor;
use std::time::Duration;

use common::machine;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graven::memory::Image;
use graven::program::Op;
use graven::sim::Simulation;
use graven::trace::program::{Contents, Reader, Recorder, Writer};

/// A trace of eight threads.
fn recorded(workload: &str) -> Vec<u8> {
    let config = machine("silo", &[("workload.footprint_bytes", "16 MB")]);
    let spec = registry().spec(config, "ideal", workload, None, Some(40_000), 1);
    let spec = spec.unwrap_or_else(|e| panic!("{e}"));
    let recorder = Recorder::new(&spec, Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    let workload = recorder.workload(spec.build_workload().unwrap_or_else(|e| panic!("{e}")));
    let simulation = Simulation::with_workload(&spec, workload);
    simulation.unwrap_or_else(|e| panic!("{e}")).run().unwrap_or_else(|e| panic!("{e}"));
    recorder.finish().unwrap_or_else(|e| panic!("{e}"))
}

fn operations(contents: &Contents) -> u64 {
    contents.threads.iter().map(|t| t.operations).sum()
}

/// Everything that threads do, in batches; returns how many operations they are.
fn read(reader: &Reader<Cursor<&[u8]>>) -> usize {
    let mut count = 0;
    for thread in 0..reader.contents().threads.len() {
        let mut stream = reader.thread(thread as u32);
        loop {
            let batch = stream.next_batch().expect("it is whole");
            if batch.is_empty() {
                break;
            }
            count += black_box(batch).len();
        }
    }
    count
}

fn traces(c: &mut Criterion) {
    for workload in ["btree", "hash"] {
        let trace = recorded(workload);
        let reader = Reader::open(Cursor::new(&trace[..])).unwrap_or_else(|e| panic!("{e}"));
        let contents = reader.contents();
        let count = operations(contents);
        let bytes = contents.bytes - contents.picture_bytes;
        println!(
            "{workload}: {count} operations in {bytes} B, {:.2} B each; {} populated words in {} B",
            bytes as f64 / count as f64,
            contents.picture_words,
            contents.picture_bytes
        );
        let mut group = c.benchmark_group("program-trace");
        group.sample_size(20);
        group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(300));
        group.throughput(Throughput::Elements(count));
        group.bench_function(format!("read/{workload}"), |b| b.iter(|| read(&reader)));
        group.bench_function(format!("write/{workload}"), |b| {
            let mut threads = Vec::new();
            for thread in 0..contents.threads.len() {
                let mut stream = reader.thread(thread as u32);
                let next = || stream.next_operation().expect("it is whole");
                threads.push(std::iter::from_fn(next).collect::<Vec<Op>>());
            }
            b.iter(|| {
                let mut writer = Writer::new(Vec::new(), &contents.header).expect("it was before");
                for (thread, operations) in threads.iter().enumerate() {
                    for &op in operations.iter().chain(&[Op::Done]) {
                        writer.push(thread as u32, op).expect("it was before");
                    }
                }
                writer.finish().expect("all have ended").len()
            });
        });
        group.throughput(Throughput::Bytes(contents.picture_words * 8));
        group.bench_function(format!("populate/{workload}"), |b| {
            b.iter(|| {
                let mut image = Image::new();
                reader.populate(&mut image).expect("it is whole");
                image.host_bytes()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, traces);
criterion_main!(benches);
