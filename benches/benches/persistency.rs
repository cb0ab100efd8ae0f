//! Persistency models: events of a trace judged one by one, and all visibility orders of a litmus program.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graven::lab::persistency::parse;
use graven::memory::LineAddr;
use graven::persistency::enumerator::enumerate;
use graven::persistency::happening::{Fence, Happening, Path, Persist};
use graven::persistency::history::History;
use graven::persistency::model::Model;
use graven::persistency::orders::explore;
use graven::persistency::promise::Judge;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

const EVENTS: usize = 100_000;

/// Transactions of four threads: a few stores to lines of their own, write-backs, a fence; each kind as often as in libpmem's.
fn events() -> Vec<Happening> {
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let mut events = Vec::with_capacity(EVENTS);
    while events.len() < EVENTS {
        let thread = rng.random_range(0..4);
        let lines: Vec<LineAddr> = (0..4).map(|_| LineAddr(rng.random_range(0..4096))).collect();
        for line in &lines {
            for word in 0..4 {
                let (addr, path) = (line.word(word), Path::Cached);
                let new = events.len() as u64;
                events.push(Happening::Store { thread, addr, old: 0, new, path, continues: false });
            }
        }
        let flushes = lines.iter().map(|&line| Persist::WriteBack(line));
        for op in flushes.chain([Persist::Fence(Fence::Store)]) {
            events.push(Happening::Persist { thread, op });
        }
    }
    events.truncate(EVENTS);
    events
}

fn judged(c: &mut Criterion) {
    let mut group = c.benchmark_group("persistency");
    group.throughput(Throughput::Elements(EVENTS as u64)).sample_size(20);
    let events = events();
    for name in ["x86-adr", "x86-eadr", "arm-pop"] {
        let model = Model::find(name).expect("it exists");
        group.bench_function(format!("judge/{name}"), |b| {
            b.iter(|| {
                let mut history = History::new(model);
                for (at, event) in (0..).zip(&events) {
                    history.saw(at, black_box(event));
                }
                history.open().count()
            });
        });
    }
    group.finish();
}

fn explored(c: &mut Criterion) {
    let text = include_str!("../../litmus/persistency/33-flush-of-the-other.litmus");
    let litmus = parse(text).expect("it ships");
    let model = Model::find("x86-adr").expect("it exists");
    let mut group = c.benchmark_group("persistency");
    group.bench_function("explore", |b| b.iter(|| explore(model, black_box(&litmus.program))));
    group.bench_function("enumerate", |b| b.iter(|| enumerate(model, black_box(&litmus.program))));
    group.finish();
}

criterion_group!(benches, judged, explored);
criterion_main!(benches);
