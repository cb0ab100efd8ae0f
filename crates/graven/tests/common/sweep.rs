//! A transaction over so many lines, for arithmetic on what it costs.

use super::{Statistics, finished, machine, programs, simulation, statistics, test_workload};
use graven::config::Config;
use graven::program::{Load, Memory, spawn};
use graven::workload::WorkloadInfo;

use super::shared_lines::word;

/// One transaction that stores to `workload.operations_per_transaction` lines, one after the other, and
/// then to the first again if that is an odd number; all lines are in the L1 before.
static SWEEP: WorkloadInfo =
    test_workload("sweep", "one transaction over a few lines", |request| {
        programs(
            request,
            |request, image| _ = image.store(request.start, 1),
            |request, _thread| {
                let start = request.start;
                let lines = u64::from(request.config.operations_per_transaction);
                spawn(move |memory| {
                    let mut sum = 0;
                    for line in 0..lines {
                        sum += memory.load(word(start, line, 0));
                    }
                    memory.compute(100_000);
                    memory.tx_begin();
                    for line in (0..lines).chain((lines % 2 == 1 && lines > 1).then_some(0)) {
                        memory.store(word(start, line, 0), sum + line);
                    }
                    memory.compute(1000);
                    memory.tx_end();
                })
            },
        )
    });

/// The only transaction of a design on Silo's machine with these settings; what it came to.
pub fn sweep(design: &str, lines: &str, settings: &[(&str, &str)]) -> (Config, Statistics) {
    let lines = ("workload.operations_per_transaction", lines);
    let config = machine("silo", &[&[lines], settings].concat());
    let simulation = finished(simulation(&config, design, &SWEEP, 1, 1, 0));
    let stats = statistics(&simulation);
    (config, stats)
}
