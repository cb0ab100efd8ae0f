//! A transaction over so many lines, for arithmetic on what it costs.

use super::registry;
use super::{Statistics, statistics};
use graven::config::Config;
use graven::memory::Image;
use graven::program::{Load, Memory, Program, spawn};
use graven::workload::{BrokenInvariant, Request, Workload, WorkloadInfo};

use super::shared_lines::word;
use super::simulation;

/// One transaction that stores to `workload.operations_per_transaction` lines, one after the other, and
/// then to the first again if that is an odd number; all lines are in the L1 before.
static SWEEP: WorkloadInfo = WorkloadInfo {
    name: "sweep",
    group: "test",
    sections: &[],
    settings: &[],
    summary: "one transaction over a few lines",
    build: |request| Ok(Box::new(Sweep { request: request.clone() })),
};

struct Sweep {
    request: Request,
}

impl Workload for Sweep {
    fn populate(&self, image: &mut Image) {
        image.store(self.request.start, 1);
    }

    fn program(&self, _thread: u32) -> Box<dyn Program> {
        let start = self.request.start;
        let lines = u64::from(self.request.config.operations_per_transaction);
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
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// The only transaction of a design on Silo's machine with these settings; what it came to.
pub fn sweep(design: &str, lines: &str, settings: &[(&str, &str)]) -> (Config, Statistics) {
    let mut config = registry().machine("silo").expect("the preset loads");
    for (key, value) in [("workload.operations_per_transaction", lines)].iter().chain(settings) {
        config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    }
    let mut simulation = simulation(&config, design, &SWEEP, 1, 1, 0);
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    let stats = statistics(&simulation);
    (config, stats)
}
