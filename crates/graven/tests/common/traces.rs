//! Program traces in tests: recorded, read and replayed in memory.

use super::registry;
use std::io::Cursor;
use std::sync::Arc;

use graven::config::Config;
use graven::program::Op;
use graven::sim::{SimError, Simulation, Spec};
use graven::trace::program::{Reader, Recorder, Replay, TraceError};

use super::tiny_config;

pub type Bytes = Cursor<Vec<u8>>;

/// Runs a specification; the record as text, and the trace.
pub fn record(spec: &Spec) -> (String, Vec<u8>) {
    try_record(spec).unwrap_or_else(|e| panic!("{e}"))
}

pub fn try_record(spec: &Spec) -> Result<(String, Vec<u8>), SimError> {
    let recorder = Recorder::new(spec, Vec::new()).expect("memory takes everything");
    let workload = recorder.workload((spec.workload.build)(&request(spec)).expect("it fits"));
    let mut simulation = Simulation::with_workload(spec, workload).expect("it fits");
    let digest = simulation.run()?;
    let record = simulation.record(digest).to_string();
    Ok((record, recorder.finish().expect("all threads have ended")))
}

/// What the engine asks of a workload.
pub fn request(spec: &Spec) -> graven::workload::Request {
    let (start, end) = spec.data_region();
    graven::workload::Request {
        config: spec.config.get::<graven::workload::WorkloadConfig>().clone(),
        whole: spec.config.clone(),
        threads: spec.threads,
        transactions: spec.transactions,
        seed: spec.seed,
        start,
        end,
    }
}

pub fn open(trace: &[u8]) -> Result<Reader<Bytes>, TraceError> {
    Reader::open(Cursor::new(trace.to_vec()))
}

pub fn replay(
    trace: &[u8],
    design: Option<&str>,
    machine: Option<Config>,
    set: &[(String, String)],
) -> Result<String, TraceError> {
    let replay = Replay::new(registry(), open(trace)?, design, machine, set)?;
    Ok(replay.run(&Arc::default())?.to_string())
}

pub fn small(settings: &[(&str, &str)]) -> Config {
    let small = [("workload.footprint_bytes", "512 KB"), ("core.count", "3")];
    tiny_config(&[&small, settings].concat())
}

pub fn spec(config: Config, design: &str, workload: &str, transactions: u64) -> Spec {
    registry()
        .spec(config, design, workload, None, Some(transactions), 7)
        .unwrap_or_else(|e| panic!("{e}"))
}

pub fn all_operations(reader: &Reader<Bytes>, thread: u32) -> Vec<Op> {
    let mut stream = reader.thread(thread);
    std::iter::from_fn(|| stream.next_operation().expect("it is whole")).collect()
}

/// Pointers are equal if their addresses are; here their origins must be, too.
pub fn told(operations: &[Op]) -> String {
    format!("{operations:?}")
}
