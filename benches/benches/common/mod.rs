//! Machines, traces, workloads and runs that several benchmarks share.

#![allow(dead_code)]

use std::hint::black_box;
use std::io::Cursor;
use std::sync::OnceLock;

use graven::Registry;
use graven::config::validate;
use graven::config::{Config, ConfigError};
use graven::lab::explorer::Thoroughness;
use graven::memory::{Addr, Image, LineAddr, LineData};
use graven::program::{Op, Program, Ptr};
use graven::sim::{Simulation, Spec};
use graven::trace::program::{Reader, Recorder};
use graven::trace::requests::{Content, Request, Writer};
use graven::workload::{BrokenInvariant, Workload, WorkloadInfo};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// All that ships.
pub fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(graven::standard)
}

/// A preset with settings.
pub fn machine(preset: &str, settings: &[(&str, &str)]) -> Config {
    let mut config = registry().machine(preset).expect("a preset");
    for (key, value) in settings {
        config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    }
    validate(&config).unwrap_or_else(|e| panic!("{e}"));
    config
}

/// Places of a trace's lines.
#[derive(Clone, Copy)]
pub enum Pattern {
    /// One after the other.
    Sequential,
    /// Anywhere in 256 MB.
    Random,
}

/// A trace of half reads and half writes, one each `gap` cycles, in NVMain's format. A write changes two
/// words of what its line held.
pub fn trace(requests: u64, pattern: Pattern, gap: u64) -> Vec<u8> {
    let mut random = Pcg64::seed_from_u64(1);
    let mut content = Image::new();
    let text = Vec::with_capacity(requests as usize * 300);
    let mut writer = Writer::new(text).expect("memory takes everything");
    for number in 0..requests {
        let line = LineAddr(match pattern {
            Pattern::Sequential => 64 + number,
            Pattern::Random => random.random_range(64..4 << 20),
        });
        let write = random.random_range(0..2) == 1;
        let old: LineData = content.load_line(line);
        let mut new = old;
        if write {
            new[random.random_range(0..8)] = random.random();
            new[random.random_range(0..8)] = random.random();
            content.store_line(line, &new);
        }
        let content = Content::OldAndNew { old, new };
        let request = Request { cycle: number * gap, line, write, content, thread: 0 };
        writer.write(request).expect("memory takes everything");
    }
    writer.finish().expect("memory takes everything")
}

/// Each thread goes through 16 KB of its own, in 70% loads and 30% stores: all L1 hits.
pub static FRIENDLY: WorkloadInfo = WorkloadInfo {
    name: "friendly",
    group: "bench",
    sections: &[],
    settings: &[],
    summary: "16 KB per thread, 70% loads",
    build: |request| stream(request.threads, request.transactions, 16 << 10),
};

/// Each thread goes through 64 MB of its own, a line at a time: all misses.
pub static MISSING: WorkloadInfo = WorkloadInfo {
    name: "missing",
    group: "bench",
    sections: &[],
    settings: &[],
    summary: "64 MB per thread, a line at a time",
    build: |request| stream(request.threads, request.transactions, 64 << 20),
};

fn stream(threads: u32, operations: u64, bytes: u64) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(Stream { operations: operations / u64::from(threads), bytes }))
}

/// One transaction counts as one memory operation here; there is none.
struct Stream {
    operations: u64,
    bytes: u64,
}

struct Walk {
    left: u64,
    base: u64,
    step: u64,
    at: u64,
    bytes: u64,
}

impl Program for Walk {
    #[inline]
    fn next(&mut self, _value: u64) -> Op {
        if self.left == 0 {
            return Op::Done;
        }
        self.left -= 1;
        self.at = (self.at + self.step) % self.bytes;
        let at = Ptr::known(Addr(self.base + self.at));
        if self.left % 10 < 7 { Op::Load { at } } else { Op::Store { at, value: self.left } }
    }
}

impl Workload for Stream {
    fn populate(&self, _image: &mut Image) {}

    fn program(&self, thread: u32) -> Box<dyn Program> {
        // A prime number of words or lines, so that loads and stores take turns everywhere.
        let step = if self.bytes > 1 << 20 { 1021 * 64 } else { 8 };
        let base = (1 << 20) + u64::from(thread) * (self.bytes + 4096);
        Box::new(Walk { left: self.operations, base, step, at: 0, bytes: self.bytes })
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// A specification of any design and workload.
pub fn spec(
    config: &Config,
    design: &str,
    workload: &'static WorkloadInfo,
    threads: u32,
    transactions: u64,
) -> Spec {
    let design = registry().find_design(design).unwrap_or_else(|e| panic!("{e}"));
    let config = design.configured(config.clone());
    Spec::checked(config, design, workload, Some(threads.into()), transactions, 1)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// A simulation, ready to run.
pub fn simulation(
    config: &Config,
    design: &str,
    workload: &'static WorkloadInfo,
    threads: u32,
    transactions: u64,
) -> Simulation {
    let spec = spec(config, design, workload, threads, transactions);
    Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}"))
}

/// A program trace of eight threads, whose structures have about `footprint_bytes`.
pub fn recorded(workload: &str, transactions: u64, footprint_bytes: &str) -> Vec<u8> {
    let config = machine("silo", &[("workload.footprint_bytes", footprint_bytes)]);
    let spec = registry().spec(config, "ideal", workload, None, Some(transactions), 1);
    let spec = spec.unwrap_or_else(|e| panic!("{e}"));
    let recorder = Recorder::new(&spec, Vec::new()).unwrap_or_else(|e| panic!("{e}"));
    let workload = recorder.workload(spec.build_workload().unwrap_or_else(|e| panic!("{e}")));
    let simulation = Simulation::with_workload(&spec, workload);
    simulation.unwrap_or_else(|e| panic!("{e}")).run().unwrap_or_else(|e| panic!("{e}"));
    recorder.finish().unwrap_or_else(|e| panic!("{e}"))
}

/// Reads all operations of a program trace's threads, in batches; returns their number.
pub fn read(reader: &Reader<Cursor<&[u8]>>) -> usize {
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

/// Power failures without more than the plain mode of each: nothing is torn, nothing in flight lands, recovery is not cut
/// off, and no structures are walked.
pub const PLAIN: Thoroughness = Thoroughness {
    torn_every: 0,
    in_flight_every: 0,
    recovery_every: 0,
    structures_every: 0,
    ..Thoroughness::LONG
};

/// Settings of runs that are crashed everywhere. Recovery costs what it reads and writes, so designs whose recovery reads a
/// large log are given a small one, as in exhaustive campaigns.
pub const CRASHED: [(&str, &str); 4] = [
    ("workload.footprint_bytes", "1 MB"),
    ("base.log_bytes_per_thread", "4 KB"),
    ("fwb.log_bytes", "64 KB"),
    ("lad.log_bytes_per_thread", "32 KB"),
];
