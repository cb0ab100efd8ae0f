//! Traces and images: replaying requests on memory alone, reading traces, populating.

use std::hint::black_box;
use std::io::Cursor;

use graven::memory::{Image, LINE_BYTES};
use graven::trace::program;
use graven::trace::requests::replay::Replay;
use graven::trace::requests::{Reader, Request};

use crate::WORKLOADS;
use crate::case::{Case, counted};
use crate::common::{Pattern, machine, read, recorded, registry, spec, trace};

/// Requests of a trace.
const REQUESTS: u64 = 5000;

/// Transactions of a recorded run.
const TRANSACTIONS: u64 = 2000;

/// Size of populated structures.
const FOOTPRINT: &str = "4 MB";

/// Replays and NVMain's traces, in requests; program traces, in operations; populating, in bytes of lines that are not zero
/// then.
pub fn cases() -> impl Iterator<Item = Case> {
    let read_nvmain = Case::new("trace/nvmain", "request", || {
        let text = trace(REQUESTS, Pattern::Random, 10);
        counted(|| requests(&text).map(black_box).count()) as u64
    });
    replays().chain([read_nvmain]).chain(programs()).chain(populating())
}

fn requests(text: &[u8]) -> impl Iterator<Item = Request> {
    Reader::new(text).map(|request| request.expect("it was just written"))
}

/// The engine of `graven memory`. One request every 10 cycles is more than the device can take, one every 500 leaves it idle.
fn replays() -> impl Iterator<Item = Case> {
    [
        ("silo", "random", Pattern::Random, "saturated", 10),
        ("silo", "random", Pattern::Random, "light", 500),
        ("silo", "sequential", Pattern::Sequential, "saturated", 10),
        ("fwb", "random", Pattern::Random, "saturated", 10),
    ]
    .into_iter()
    .map(|(preset, pattern_name, pattern, load, gap)| {
        let name = format!("memory/{preset}/{pattern_name}/{load}");
        Case::new(name, "request", move || {
            let requests: Vec<Request> = requests(&trace(REQUESTS, pattern, gap)).collect();
            let mut replay = Replay::new(&machine(preset, &[]));
            let record = counted(|| {
                requests.iter().for_each(|request| replay.offer(request));
                replay.finish()
            });
            record.requests
        })
    })
}

/// Operations of eight threads, out of memory, through all checks.
fn programs() -> impl Iterator<Item = Case> {
    ["btree", "hash"].into_iter().map(|workload| {
        Case::new(format!("trace/program/{workload}"), "operation", move || {
            let trace = recorded(workload, TRANSACTIONS, FOOTPRINT);
            let reader = program::Reader::open(Cursor::new(&trace[..]));
            let reader = reader.unwrap_or_else(|e| panic!("{e}"));
            counted(|| read(&reader)) as u64
        })
    })
}

/// Structures that workloads build, and those that a trace has.
fn populating() -> impl Iterator<Item = Case> {
    let built = WORKLOADS.into_iter().map(|workload| {
        Case::new(format!("populate/{workload}"), "byte", move || {
            let config = machine("silo", &[("workload.footprint_bytes", FOOTPRINT)]);
            let workload = registry().find_workload(workload).unwrap_or_else(|e| panic!("{e}"));
            let spec = spec(&config, "ideal", workload, 8, TRANSACTIONS);
            let workload = spec.build_workload().unwrap_or_else(|e| panic!("{e}"));
            bytes(counted(|| {
                let mut image = Image::new().to_be_populated();
                workload.populate(&mut image);
                image
            }))
        })
    });
    let from_trace = Case::new("populate/trace", "byte", || {
        let trace = recorded("btree", TRANSACTIONS, FOOTPRINT);
        let reader = program::Reader::open(Cursor::new(&trace[..]));
        let reader = reader.unwrap_or_else(|e| panic!("{e}"));
        bytes(counted(|| {
            let mut image = Image::new().to_be_populated();
            reader.populate(&mut image).expect("it is whole");
            image
        }))
    });
    built.chain([from_trace])
}

fn bytes(image: Image) -> u64 {
    image.nonzero_lines() * LINE_BYTES
}
