//! Operations of program traces per second of host time: recorded ones out of memory, through all checks.

mod common;

use std::io::Cursor;
use std::time::Duration;

use common::{read, recorded};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graven::memory::Image;
use graven::program::Op;
use graven::trace::program::{Contents, Reader, Writer};

fn operations(contents: &Contents) -> u64 {
    contents.threads.iter().map(|t| t.operations).sum()
}

fn traces(c: &mut Criterion) {
    for workload in ["btree", "hash"] {
        let trace = recorded(workload, 40_000, "16 MB");
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
