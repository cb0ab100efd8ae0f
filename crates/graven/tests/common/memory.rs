//! Memory system alone: requests at given cycles in, completion cycles out.

use super::machine;
use graven::config::Config;
use graven::config::validate;
use graven::controller::MemorySystem;
use graven::controller::shared::Notice;
use graven::memory::{Addr, LineAddr};
use graven::request::{ReadPurpose, Token, Write};
use graven::stats::{Counters, Stats};
use graven::time::Cycle;

/// Timings that are round and different from each other, with all clocks at 1 GHz, so that a nanosecond is a cycle; a PM
/// of 64 MB without an on-PM buffer.
pub const ROUND: [(&str, &str); 9] = [
    ("core.frequency_mhz", "1000"),
    ("pm.row_hit_ns", "10"),
    ("pm.read_ns", "50"),
    ("pm.precharge_ns", "20"),
    ("pm.write_ns", "200"),
    ("pm.burst_ns", "4"),
    ("pm.buffer_lines", "0"),
    ("pm.capacity_bytes", "64 MB"),
    ("pm.log_region_bytes", "4 MB"),
];

/// The silo machine with settings, checked; reads go first unless they say otherwise.
pub fn quiet(settings: &[(&str, &str)]) -> Config {
    let config = machine("silo", &[&[("controller.scheduler", "reads-first")], settings].concat());
    validate(&config).unwrap_or_else(|e| panic!("{e}"));
    config
}

/// The line in a column of a row of a bank: one channel, 8 banks, rows of 2 KB, 4 KB pages.
pub fn line_of(bank: u64, row: u64, column: u64) -> LineAddr {
    assert!(bank < 8 && column < 32);
    let within_bank = row * 2048 + column * 64;
    Addr((within_bank / 4096 * 8 + bank) * 4096 + within_bank % 4096).line()
}

/// A memory system and what it has reported.
pub struct Bench {
    /// It.
    pub system: MemorySystem,
    reads: Vec<(Token, Cycle)>,
    persisted: Vec<(Token, Cycle)>,
    programmed: Vec<Cycle>,
}

impl Bench {
    /// An idle one at cycle 0.
    pub fn new(config: &Config) -> Self {
        let system = MemorySystem::new(config);
        Self { system, reads: Vec::new(), persisted: Vec::new(), programmed: Vec::new() }
    }

    /// A read reaches the controller at a cycle.
    pub fn read(&mut self, at: Cycle, line: LineAddr, token: Token) {
        let delay = at.checked_sub(self.system.shared.now).expect("requests lie in the future");
        self.system.read(line, ReadPurpose::Design(token), delay);
    }

    /// A write reaches the controller at a cycle.
    pub fn write(&mut self, at: Cycle, write: Write, token: Token) {
        let delay = at.checked_sub(self.system.shared.now).expect("requests lie in the future");
        self.system.write_reported(write, token, delay);
    }

    /// Handles everything there is, noting when things are reported.
    pub fn run(&mut self) {
        self.settle();
        assert!(self.system.is_idle(), "without events there is no work");
    }

    /// Handles everything that happens without an end being announced.
    pub fn settle(&mut self) {
        self.collect();
        while let Some((at, event)) = self.system.shared.events.pop() {
            self.system.shared.now = at;
            self.system.handle(event);
            self.collect();
        }
    }

    /// Announces the end of the programs, and handles everything there is.
    pub fn end(&mut self) {
        self.settle();
        self.system.end();
        self.run();
    }

    fn collect(&mut self) {
        let now = self.system.shared.now;
        while let Some(notice) = self.system.take_notice() {
            match notice {
                Notice::Persisted(token) => self.persisted.push((token, now)),
                Notice::ReadDone(read, place) => {
                    let ReadPurpose::Design(token) = read.purpose else {
                        panic!("the bench reads as a design")
                    };
                    if self.system.is_pm(read.line.addr()) {
                        assert_eq!(place, self.system.place(read.line));
                    }
                    self.reads.push((token, now));
                }
                Notice::DurableForFences(_) => {}
            }
        }
        let media_writes = self.counters().media_write_requests as usize;
        self.programmed.resize(media_writes, now);
    }

    /// Reads in order of completion: token, cycle.
    pub fn reads(&self) -> Vec<(Token, Cycle)> {
        self.reads.clone()
    }

    /// Writes in order of durability: token, cycle.
    pub fn on_durable(&self) -> Vec<(Token, Cycle)> {
        self.persisted.clone()
    }

    /// When media writes were finished.
    pub fn programmed(&self) -> Vec<Cycle> {
        self.programmed.clone()
    }

    /// Statistics.
    pub fn stats(&self) -> &Stats {
        &self.system.shared.stats
    }

    /// Counters.
    pub fn counters(&self) -> &Counters {
        &self.system.shared.stats.counters
    }

    /// Largest number of writes of a media line.
    pub fn peak_wear(&self) -> u64 {
        self.stats().wear.peak()
    }
}
