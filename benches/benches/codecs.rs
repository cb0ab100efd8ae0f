//! Bytes of log words per second of host time: choosing their coding, encoding them into blocks of TLC
//! cells, reading them back, and programming the cells.
//!
//! The words are what undo and redo data look like: counters and small numbers, pointers, text, floating
//! point numbers, few of their bytes dirty, none of them zero.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use graven::codecs::{Block, Coding, Codings, choose, choose_pair, decode, encode};
use graven::media::{CellArray, TlcTable, program};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

const LINES: usize = 4096;

/// Undo and redo word, and which bytes differ.
type Entry = (u64, u64, u8);

fn entry(rng: &mut Pcg64) -> Entry {
    let bits = rng.random_range(4..40);
    let undo = match rng.random_range(0..10) {
        0..3 => rng.random_range(1..1u64 << bits),
        3..6 => 0x7f00_0000_0000 + (rng.random_range(0..1u64 << 34) & !7),
        6..8 => u64::from_le_bytes(std::array::from_fn(|_| rng.random_range(b'a'..=b'z'))),
        8 => rng.random_range(0.1..1e6f64).to_bits(),
        _ => rng.random::<i32>() as u64 | 1,
    };
    let redo = match rng.random_range(0..10) {
        0..5 => undo.wrapping_add(rng.random_range(1..200)),
        5..8 => undo ^ rng.random_range(1..1 << 20),
        _ => rng.random_range(1..=u64::MAX),
    };
    let differ = (undo ^ redo).to_le_bytes();
    let dirty = (0..8).fold(0, |flag, i| flag | u8::from(differ[i] != 0) << i);
    (undo, redo, dirty)
}

/// A line of four undo+redo entries' data.
type Line = [Entry; 4];

fn lines() -> Vec<Line> {
    let mut rng = Pcg64::seed_from_u64(7);
    (0..LINES).map(|_| std::array::from_fn(|_| entry(&mut rng))).collect()
}

fn words(line: &Line) -> [u64; 8] {
    std::array::from_fn(|i| if i % 2 == 0 { line[i / 2].0 } else { line[i / 2].1 })
}

/// The choice for undo+redo entries.
fn paired(line: &Line) -> Codings {
    let mut codings = Codings::default();
    for (i, &(undo, redo, dirty)) in line.iter().enumerate() {
        let (u, r) = choose_pair(undo, redo, dirty);
        codings.set(2 * i, u);
        codings.set(2 * i + 1, r);
    }
    codings
}

/// The choice if each word is that of a redo entry.
fn single(line: &Line) -> Codings {
    let mut codings = Codings::default();
    for (i, &(undo, redo, dirty)) in line.iter().enumerate() {
        codings.set(2 * i, choose(undo, dirty).0);
        codings.set(2 * i + 1, choose(redo, dirty).0);
    }
    codings
}

fn encoded(lines: &[Line]) -> Vec<(Block, Codings)> {
    let one = |line: &Line| {
        let codings = paired(line);
        (encode(&words(line), &codings, true, true).0, codings)
    };
    lines.iter().map(one).collect()
}

/// Prints the mix, which the figures depend on.
fn describe(lines: &[Line]) {
    let (mut dldc, mut levels, mut bits) = (0, [0; 6], 0);
    for line in lines {
        let codings = paired(line);
        dldc += (0..8).filter(|&i| codings.get(i) != Coding::Fpc).count();
        let (_, size) = encode(&words(line), &codings, true, true);
        levels[if size.is_raw() { 5 } else { size.level as usize }] += 1;
        bits += size.bits;
    }
    let (words, lines) = (8 * lines.len(), lines.len() as u32);
    println!("{dldc} of {words} words by DLDC, {} bits a line on average", bits / lines);
    println!("lines by level (2, 3, 4, 6, 8 states, raw): {levels:?}");
}

fn codecs(c: &mut Criterion) {
    let lines = lines();
    describe(&lines);
    let mut group = c.benchmark_group("codecs");
    group.throughput(Throughput::Bytes(64 * LINES as u64)).sample_size(20);
    group.measurement_time(Duration::from_secs(2)).warm_up_time(Duration::from_millis(500));
    for (name, choice) in [("pairs", paired as fn(&Line) -> Codings), ("redo words", single)] {
        group.bench_function(format!("choose {name}"), |b| {
            b.iter(|| lines.iter().for_each(|line| _ = black_box(choice(black_box(line)))));
        });
        group.bench_function(format!("choose {name} and encode"), |b| {
            b.iter(|| {
                for line in black_box(&lines) {
                    black_box(encode(&words(line), &choice(line), true, true));
                }
            });
        });
    }
    group.bench_function("encode, FPC only", |b| {
        let none = Codings::default();
        b.iter(|| {
            for line in black_box(&lines) {
                black_box(encode(&words(line), &none, true, true));
            }
        });
    });
    group.bench_function("encode, raw", |b| {
        let none = Codings::default();
        b.iter(|| {
            for line in black_box(&lines) {
                black_box(encode(&words(line), &none, false, false));
            }
        });
    });
    let blocks = encoded(&lines);
    group.bench_function("decode", |b| {
        b.iter(|| {
            for (block, codings) in black_box(&blocks) {
                black_box(decode(block, codings));
            }
        });
    });
    group.bench_function("program", |b| {
        b.iter(|| {
            for pair in black_box(&blocks).windows(2) {
                black_box(program(&pair[0].0, &pair[1].0, &TlcTable::MORLOG));
            }
        });
    });
    group.bench_function("program an array", |b| {
        let mut array = CellArray::default();
        b.iter(|| {
            for (line, (block, _)) in black_box(&blocks).iter().enumerate() {
                black_box(array.program(line as u64 / 4, block, &TlcTable::MORLOG));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, codecs);
criterion_main!(benches);
