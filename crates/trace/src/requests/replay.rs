//! Replay: controller and device alone, driven by a trace.
//!
//! Each request is offered at its cycle, in the order of the trace. If its queue has no place it waits,
//! and all that follow with it; how late requests arrive is a statistic of its own and is not mixed
//! into the read latency, which counts from the arrival at the controller to the data. A request
//! whose cycle lies before its predecessor's is offered with that one. At the end all queues run empty, and buses and
//! banks finish what they have begun; what the on-PM buffer may keep, it keeps. The replay ends when that is done.
//!
//! **Data.** Writes are whole lines. Where the trace has old data, the cells of a line hold those of its
//! first write before anything happens, so that data-comparison write sees what the recorded machine
//! saw; old data of later writes should be what the trace wrote before, and are counted where they are
//! not. Where it has none, cells start as zero. Where it has no data at all (DRAMsim3), each write
//! carries pseudo-random words, a function of its address and its number in the trace alone: half the bits
//! change, as with data that resemble nothing. The data of reads are not used.
//!
//! **DRAM.** Addresses are of the PM, or of the DRAM, from its first byte on ([`Replay::of_dram`]). Of requests to DRAM only
//! times are known: the latencies of reads, how late requests arrive, and in which state they find rows.

use std::io::Read;
use std::sync::Arc;

use serde_json::json;

use super::batch::{Batch, Head, Written};
use super::{Reader, Request, TraceError, ahead};
use graven_base::config::Config;
use graven_base::control::Control;
use graven_base::memory::{Addr, LineAddr, LineData, LineStore, WORDS_PER_LINE};
use graven_base::stats::{CounterSet, Declaration, Kind, Latency, Value, of_distribution};
use graven_base::time::Cycle;
use graven_machine::config::{CoreConfig, DramConfig, PmConfig};
use graven_machine::controller::MemorySystem;
use graven_machine::controller::shared::Notice;
use graven_machine::request::{ReadPurpose, Write, WriteClass};
use graven_machine::sim::value_to_json;
use graven_machine::stats::conservation::{Books, Laws, UnderWay};
use graven_machine::stats::{READ_LATENCY, Stats};

/// The number of requests between two looks at [`Control`].
const REQUESTS_PER_LOOK: u64 = 4096;

/// The least number of requests before its turn at which the cells of a write are asked for, and the number of requests of
/// which they are asked for together.
const REQUESTS_AHEAD: usize = 8;

/// A replay in progress.
pub struct Replay {
    config: Config,
    memory: MemorySystem,
    /// The beginning of the addresses of the trace: that of the PM, or of the DRAM.
    start: Addr,
    /// The number of bytes it has.
    bytes: u64,
    control: Arc<Control>,
    reads: u64,
    writes: u64,
    late_requests: u64,
    old_data_mismatches: u64,
    lateness: Latency,
    acceptance: Latency,
}

impl Replay {
    /// The memory of a checked configuration, idle at cycle 0.
    pub fn new(config: &Config) -> Self {
        let mut memory = MemorySystem::new(config);
        memory.shared.lines = Some(LineStore::default());
        Self {
            memory,
            start: Addr(0),
            bytes: config.get::<PmConfig>().capacity_bytes.0,
            config: config.clone(),
            control: Arc::default(),
            reads: 0,
            writes: 0,
            late_requests: 0,
            old_data_mismatches: 0,
            lateness: Latency::default(),
            acceptance: Latency::default(),
        }
    }

    /// The same, driven by requests to the DRAM.
    pub fn of_dram(config: &Config) -> Self {
        let replay = Self::new(config);
        let start = replay.memory.dram_start();
        Self { start, bytes: config.get::<DramConfig>().capacity_bytes.0, ..replay }
    }

    /// For watching and cancelling from another thread.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// The memory, to look at.
    pub fn memory(&self) -> &MemorySystem {
        &self.memory
    }

    /// Replays a trace to its end. It is read ahead on a thread of its own where the host has more than one core.
    ///
    /// # Errors
    /// See [`TraceError`]; what was replayed until then is lost.
    pub fn run<R: Read + Send>(mut self, trace: &mut Reader<R>) -> Result<Record, TraceError> {
        let (start, bytes) = (self.start, self.bytes);
        let to_memory = |request: &mut Request, place| {
            let addr = request.line.addr().0;
            if addr >= bytes {
                let memory = if start == Addr(0) { "PM" } else { "DRAM" };
                return Err(TraceError::BeyondMemory { place, addr, end: bytes, memory });
            }
            request.line = start.plus(addr).line();
            Ok(())
        };
        ahead::read(trace, to_memory, |batch| self.offer_all(batch))?;
        if self.requests() == 0 {
            return Err(TraceError::Empty);
        }
        let (record, under_way) = self.finish_with_rest();
        // Reads of DRAM are counted among those served.
        if start == Addr(0) {
            let end = Books::of(&record.stats, under_way);
            Laws::new(&record.config).check_memory_of_run(&end)?;
        }
        Ok(record)
    }

    /// Offers requests one after the other.
    fn offer_all(&mut self, requests: &Batch) -> Result<(), TraceError> {
        let heads = requests.heads();
        for (number, (cycle, line, written)) in requests.iter().enumerate() {
            if number % REQUESTS_AHEAD == 0 {
                self.prefetch(heads, number);
            }
            self.offer_one(cycle, line, written);
            let done = self.requests();
            if done.is_multiple_of(REQUESTS_PER_LOOK) && self.control.report(done) {
                return Err(TraceError::Cancelled);
            }
        }
        Ok(())
    }

    /// Has the host bring near what later writes take, of several requests together: their addresses are far apart, and it
    /// finds several of them at a time.
    #[inline]
    fn prefetch(&self, heads: &[Head], number: usize) {
        let later = |ahead: usize| heads.iter().skip(number + ahead).take(REQUESTS_AHEAD);
        let Some(lines) = &self.memory.shared.lines else { return };
        later(2 * REQUESTS_AHEAD)
            .filter(|head| head.is_write())
            .for_each(|head| lines.prefetch_place(head.line));
        for head in later(REQUESTS_AHEAD).filter(|head| head.is_write()) {
            lines.prefetch(head.line);
            self.memory.shared.stats.wear.prefetch(head.line);
        }
    }

    /// Offers one request; it and all before it have been taken afterwards.
    ///
    /// # Panics
    /// If its address lies beyond the memory.
    pub fn offer(&mut self, request: &Request) {
        let written = request.write.then(|| Written::of(&request.content));
        self.offer_one(request.cycle, request.line, written);
    }

    /// The same of a write with what is written, or of a read.
    fn offer_one(&mut self, cycle: Cycle, line: LineAddr, written: Option<Written<'_>>) {
        let end = self.start.0 + self.bytes;
        assert!(line.addr().0 < end, "the caller checks the address");
        let due = cycle.max(self.memory.shared.now);
        self.advance(due);
        while !self.has_place(line, written.is_some()) {
            self.handle_next();
        }
        let late = self.memory.shared.now - cycle.min(self.memory.shared.now);
        self.late_requests += u64::from(late > 0);
        self.lateness.record(late);
        if let Some(written) = written {
            self.writes += 1;
            self.acceptance.record(late);
            let data = self.data(line, written);
            self.memory.write(&Write::line(WriteClass::Data, line, data), 0);
            self.memory.shared.notices.clear();
        } else {
            self.reads += 1;
            let is_pm = self.memory.is_pm(line.addr());
            let purpose = if is_pm { ReadPurpose::Trace } else { ReadPurpose::Design(0) };
            self.memory.read(line, purpose, 0);
        }
    }

    /// Lets all queues run empty and sums up.
    pub fn finish(self) -> Record {
        self.finish_with_rest().0
    }

    /// The same, with what is left in the queues: nothing.
    fn finish_with_rest(mut self) -> (Record, UnderWay) {
        self.memory.end();
        while !self.memory.is_idle() {
            self.handle_next();
        }
        self.let_devices_finish();
        self.control.report(self.requests());
        let under_way = self.memory.requests_under_way();
        let requests = self.requests();
        let now = self.memory.shared.now;
        let mut stats = std::mem::take(&mut self.memory.shared.stats);
        stats.counters.cycles = now;
        stats.bank_loads.finish(now);
        stats.counters.peak_wear = stats.wear.peak();
        stats.counters.peak_cell_wear = self.memory.shared.cells.peak_wear();
        let record = Record {
            config: self.config,
            requests,
            reads: self.reads,
            writes: self.writes,
            late_requests: self.late_requests,
            old_data_mismatches: self.old_data_mismatches,
            lateness: self.lateness,
            acceptance: self.acceptance,
            stats,
        };
        (record, under_way)
    }

    /// Lines that have left the queues may still move, or be programmed, and the on-PM buffer may spill more lines after those.
    fn let_devices_finish(&mut self) {
        let mut idle_at = 0;
        while idle_at < self.memory.idle_at() {
            idle_at = self.memory.idle_at();
            while self.memory.shared.events.next_at() <= idle_at {
                self.handle_next();
            }
        }
        self.memory.shared.now = self.memory.shared.now.max(idle_at);
    }

    fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    fn has_place(&self, line: LineAddr, is_write: bool) -> bool {
        if is_write {
            self.memory.has_room_for_write(line)
        } else {
            self.memory.has_room_for_read(line)
        }
    }

    /// Everything that happens before a cycle. What happens in it comes after the requests of that
    /// cycle, as in a run, where most requests were sent long before.
    fn advance(&mut self, to: Cycle) {
        while self.memory.shared.events.next_at() < to {
            self.handle_next();
        }
        self.memory.shared.now = to;
    }

    fn handle_next(&mut self) {
        let (at, event) =
            self.memory.shared.events.pop().expect("a busy memory has something scheduled");
        self.memory.shared.now = at;
        self.memory.handle(event);
        let shared = &mut self.memory.shared;
        if shared.notices.is_empty() {
            return;
        }
        // Of DRAM; those of PM are counted where they are served.
        for notice in shared.notices.drain(..) {
            if let Notice::ReadDone(read, _) = notice {
                let latency = at - read.arrived;
                shared.stats.counters.reads_served += 1;
                shared.stats.counters.read_latency_cycles_sum += latency;
                shared.stats.read_latency.record(latency);
            }
        }
    }

    /// The data of a write. Sees to the cells, and looks at the old data.
    fn data(&mut self, line: LineAddr, written: Written<'_>) -> LineData {
        // The DRAM has no cells.
        if self.start == Addr(0) {
            let old = if let Written::OldAndNew { old, .. } = written { Some(old) } else { None };
            let lines = self.memory.shared.lines.as_mut().expect("a replay keeps lines");
            let is_first = lines.begin_line(line, old.unwrap_or(&[0; WORDS_PER_LINE]));
            if let Some(old) = old
                && !is_first
                && self.memory.content(line) != *old
            {
                self.old_data_mismatches += 1;
            }
        }
        match written {
            Written::New(new) | Written::OldAndNew { new, .. } => *new,
            Written::Unknown => filler(line, self.requests()),
        }
    }
}

/// The words of a write whose trace carries none.
fn filler(line: LineAddr, number: u64) -> LineData {
    std::array::from_fn(|word| {
        // SplitMix64 over address and number.
        let mut x = line.word(word).0 ^ number.rotate_left(32);
        x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    })
}

/// The result of a replay.
#[derive(Clone, Debug)]
pub struct Record {
    /// The machine.
    pub config: Config,
    /// Requests of the trace.
    pub requests: u64,
    /// The number of reads.
    pub reads: u64,
    /// The number of writes.
    pub writes: u64,
    /// Requests that arrived later than their cycle, because queues were full.
    pub late_requests: u64,
    /// Writes whose old data are not what the trace had written there before.
    pub old_data_mismatches: u64,
    /// The lateness of all requests.
    pub lateness: Latency,
    /// The time for which writes waited until a queue accepted them.
    pub acceptance: Latency,
    /// The counts of the memory.
    pub stats: Stats,
}

/// Statistics of a replay beside those of every run ([`COUNTERS`], latencies of reads, energies).
pub fn declarations() -> impl Iterator<Item = &'static Declaration> {
    DECLARATIONS.iter().chain(ACCEPTANCE)
}

const ACCEPTANCE: &[Declaration] = of_distribution!(
    "write_acceptance_cycles",
    "cycles",
    "From a write's cycle in the trace to its acceptance by a write queue"
);

const DECLARATIONS: &[Declaration] = &[
    Declaration::new("requests", "requests", Kind::Count, "Requests of the trace."),
    Declaration::new("reads", "requests", Kind::Count, "Reads of the trace."),
    Declaration::new("writes", "requests", Kind::Count, "Writes of the trace."),
    Declaration::new(
        "late_requests",
        "requests",
        Kind::Count,
        "Requests that found their queue full and arrived later than the trace says.",
    ),
    Declaration::new(
        "old_data_mismatches",
        "requests",
        Kind::Count,
        "Writes whose old data are not what the trace had written there before.",
    ),
    Declaration::new(
        "requests_per_s",
        "requests/s",
        Kind::Ratio,
        "Requests served per second of simulated time.",
    ),
    Declaration::new(
        "lateness_cycles_mean",
        "cycles",
        Kind::Ratio,
        "How late requests arrived, mean.",
    ),
    Declaration::new(
        "lateness_cycles_max",
        "cycles",
        Kind::Ratio,
        "How late requests arrived, largest.",
    ),
];

/// The counters of [`Counters`](graven_machine::stats::Counters) that a replay moves.
pub const COUNTERS: &[&str] = &[
    "cycles",
    "controller_reads_forwarded",
    "write_queue_merges",
    "read_queue_max",
    "write_queue_max",
    "write_drains",
    "row_hits",
    "write_row_hits",
    "row_closed",
    "row_conflicts",
    "dram_row_hits",
    "dram_row_closed",
    "dram_row_conflicts",
    "dram_refreshes",
    "media_reads",
    "media_write_requests",
    "media_writes_suppressed",
    "media_bytes_written",
    "media_bits_programmed",
    "media_cells_programmed",
    "pm_buffer_read_hits",
    "pm_buffer_write_hits",
    "pm_buffer_spills",
    "pm_buffer_read_modify_writes",
    "peak_wear",
    "peak_cell_wear",
];

impl Record {
    /// All values by name.
    pub fn values(&self) -> Vec<(&'static str, Value)> {
        let counts = [
            ("requests", self.requests),
            ("reads", self.reads),
            ("writes", self.writes),
            ("late_requests", self.late_requests),
            ("old_data_mismatches", self.old_data_mismatches),
        ];
        let mut out: Vec<_> = counts.map(|(name, n)| (name, Value::Count(n))).into();
        for (declaration, value) in self.stats.counters.counts().iter() {
            if COUNTERS.contains(&declaration.name) {
                out.push((declaration.name, Value::Count(value)));
            }
        }
        let frequency_hz = f64::from(self.config.get::<CoreConfig>().frequency_mhz) * 1e6;
        let seconds = self.stats.counters.cycles.max(1) as f64 / frequency_hz;
        out.extend([
            ("requests_per_s", Value::Number(self.requests as f64 / seconds)),
            ("lateness_cycles_mean", Value::Number(self.lateness.mean())),
            ("lateness_cycles_max", Value::Count(self.lateness.max())),
        ]);
        let distributions =
            [(READ_LATENCY, &self.stats.read_latency), (ACCEPTANCE, &self.acceptance)];
        for (declared, of) in distributions {
            out.extend(declared.iter().map(|statistic| statistic.name).zip(of.values()));
        }
        out.extend([
            ("read_energy_pj", Value::Number(self.stats.read_energy.pj())),
            ("write_energy_pj", Value::Number(self.stats.write_energy.pj())),
        ]);
        out
    }

    /// The record as `{machine, version, config, stats}`.
    pub fn to_json(&self) -> serde_json::Value {
        let values = self.values().into_iter().map(|(n, v)| (n.to_owned(), value_to_json(v)));
        json!({
            "machine": self.config.machine,
            "version": graven_base::VERSION,
            "config": self.config.to_json(),
            "stats": values.collect::<serde_json::Map<_, _>>(),
        })
    }
}
