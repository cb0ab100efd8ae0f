//! Statistics of the machine: each declared once, with unit and description; plain counters on the hot path. What only
//! designs count is declared by them.

mod bank_loads;
pub mod conservation;
mod processor_energy;
mod recovery;
pub mod region;
mod timeline;
mod traffic_energy;

pub use bank_loads::BankLoads;
pub use processor_energy::{ProcessorEnergy, ProcessorEnergyConfig};
pub use recovery::{
    RECOVERY_DECLARATIONS, RECOVERY_TRANSACTIONS, RecoveryConfig, RecoveryTime, of_recoveries,
};
pub use region::{Region, RegionConfig};
pub use timeline::{Timeline, Work, WorkKind};
pub use traffic_energy::TrafficEnergy;

use graven_base::config::Section;
use graven_base::host;
use graven_base::memory::{LINE_BYTES, LineAddr, MEDIA_LINE_BYTES, WORD_BYTES};
use graven_base::stats::{
    CounterSet, Declaration, Distribution, Energy, Latency, Value, of_distribution, ratio,
};
use graven_base::time::Cycle;
use graven_base::{counters, declarations, section};

section! {
    /// Statistics that take host time or space, and are kept only if they are asked for.
    pub struct StatisticsConfig("statistics") {
        /// Follows every transactional store to the one before it of the same word in the same transaction.
        write_distances: bool = false, (), "";
        /// Length of the intervals of `graven run --bank-loads`.
        bank_load_interval_cycles: u32 = 10_000, 1..=1_000_000_000, "cycles";
    }
}

counters! {
    /// Everything that the machine counts while a simulation runs.
    pub struct Counters {
    /// Simulated time until the last thread has finished; in a replay, until memory is idle.
    cycles: Gauge, "cycles";
    /// Instructions executed by all threads, memory operations included.
    instructions: Count, "instructions";
    /// Transactions whose commit was acknowledged.
    committed_transactions: Count, "transactions";
    /// Loads executed.
    loads: Count, "operations";
    /// Stores executed.
    stores: Count, "operations";
    /// Stores to PM inside a transaction.
    transactional_stores: Count, "operations";
    /// Transactional stores that left the word as it was.
    silent_stores: Count, "operations";
    /// Bytes of transactional stores that kept their value.
    transactional_bytes_clean: Count, "B";
    /// Bits of transactional stores that kept their value.
    transactional_bits_clean: Count, "bits";
    /// Followed transactional stores that were the first to their word in their transaction.
    write_distance_first: Count, "operations";
    /// Followed stores that came right after the one before to the same word.
    write_distance_0: Count, "operations";
    /// Followed stores with 1 store between them and the one before to the same word.
    write_distance_1: Count, "operations";
    /// Followed stores with 2 or 3 between.
    write_distance_2_3: Count, "operations";
    /// Followed stores with 4 to 7 between.
    write_distance_4_7: Count, "operations";
    /// Followed stores with 8 to 15 between.
    write_distance_8_15: Count, "operations";
    /// Followed stores with 16 to 31 between.
    write_distance_16_31: Count, "operations";
    /// Followed stores with more than 31 between.
    write_distance_over_31: Count, "operations";
    /// Different words that a followed transaction stored to, summed over transactions.
    words_written: Count, "words";
    /// Different words that a followed transaction stored to more than once.
    words_written_again: Count, "words";
    /// Transactional stores that bypassed the caches.
    non_temporal_stores: Count, "operations";
    /// Uncacheable stores executed, through a write-combining buffer.
    uncached_stores: Count, "operations";
    /// Lines that left a write-combining buffer because it had all their words.
    write_combining_flushes_full: Count, "lines";
    /// Lines that left it because another line needed their place.
    write_combining_flushes_evicted: Count, "lines";
    /// Lines that left it for a fence.
    write_combining_flushes_fence: Count, "lines";
    /// Lines that left it for an atomic operation: a lock was taken or released.
    write_combining_flushes_atomic: Count, "lines";
    /// Instructions executed that write a line back (clwb).
    clwb_instructions: Count, "instructions";
    /// Instructions that write a line back (clwb) and found it clean or not cached.
    clwb_of_clean_lines: Count, "instructions";
    /// Fences executed (sfence).
    fences: Count, "instructions";
    /// Loads served by a store still in the thread's own store queue.
    store_forwards: Count, "operations";
    /// Accesses that hit in the L1.
    l1_hits: Count, "accesses";
    /// Accesses that missed in the L1 and were sent to the next level.
    l1_misses: Count, "accesses";
    /// Accesses that missed in the L1 and joined a miss of their own core to the line: neither hits nor misses.
    l1_joins: Count, "accesses";
    /// L1 misses that hit in the L2.
    l2_hits: Count, "accesses";
    /// L1 misses that missed in the L2.
    l2_misses: Count, "accesses";
    /// Accesses that reached the LLC and hit.
    llc_hits: Count, "accesses";
    /// Accesses that reached the LLC and missed: one for each line that was fetched.
    llc_misses: Count, "accesses";
    /// Accesses that reached the LLC and joined a miss of another core to the line: neither hits nor misses.
    llc_joins: Count, "accesses";
    /// Stores that found their line shared and had to invalidate other copies.
    upgrades: Count, "accesses";
    /// Copies in other cores' caches that were probed.
    snoops: Count, "probes";
    /// Dirty PM lines that left the LLC, those that the design keeps included.
    llc_writebacks: Count, "lines";
    /// Lines that a design had written back without evicting them.
    forced_writebacks: Count, "lines";
    /// Lines whose content only the caches held when the run ended: data writes that are still to come.
    residual_dirty_lines: Gauge, "lines";
    /// Reads of PM that reached a controller.
    controller_read_requests: Count, "requests";
    /// Reads of PM served from a write queue.
    controller_reads_forwarded: Count, "requests";
    /// Writes accepted by PM controllers.
    controller_write_requests: Count, "requests";
    /// Writes accepted by PM controllers: evicted, written-back or in-place updated data.
    controller_write_requests_data: Count, "requests";
    /// Writes accepted by PM controllers: log entries and records with their data.
    controller_write_requests_log: Count, "requests";
    /// Writes accepted by PM controllers: headers, commit records, tables and pointers.
    controller_write_requests_metadata: Count, "requests";
    /// Writes accepted by PM controllers: garbage collection and checkpointing.
    controller_write_requests_gc: Count, "requests";
    /// Bytes of the words of accepted writes of data.
    written_bytes_data: Count, "B";
    /// Bytes of the words of accepted writes of log entries and records.
    written_bytes_log: Count, "B";
    /// Bytes of the words of accepted writes of headers, commit records, tables and pointers.
    written_bytes_metadata: Count, "B";
    /// Bytes of the words of accepted writes of garbage collection and checkpointing.
    written_bytes_gc: Count, "B";
    /// Accepted PM writes that merged with one already in the queue.
    write_queue_merges: Count, "requests";
    /// PM writes that left their queue: for the on-PM buffer, or when a bank was done with them.
    writes_served: Count, "requests";
    /// Largest occupancy of a PM read queue.
    read_queue_max: Gauge, "requests";
    /// Largest occupancy of a PM write queue.
    write_queue_max: Gauge, "requests";
    /// Writes that found no place in the write queue on arrival and waited.
    write_queue_full: Count, "requests";
    /// Cycles from the arrival of these writes to their acceptance, summed over writes.
    write_queue_full_cycles: Count, "cycles";
    /// Writes that would have found a place on arrival, but were held back for ordered writes.
    write_order_held: Count, "requests";
    /// Cycles from the arrival of these writes to their acceptance, summed over writes.
    write_order_held_cycles: Count, "cycles";
    /// Times a controller began to drain its write queue at the high watermark.
    write_drains: Count, "events";
    /// Cycles that served PM reads spent from arrival at the controller to data, summed.
    read_latency_cycles_sum: Count, "cycles";
    /// PM reads served.
    reads_served: Count, "requests";
    /// PM reads served by a bank that found their row open.
    row_hits: Count, "accesses";
    /// PM reads served by a bank that found no row open.
    row_closed: Count, "accesses";
    /// PM reads served by a bank that found another row open.
    row_conflicts: Count, "accesses";
    /// Writes by PM banks that found their row open.
    write_row_hits: Count, "accesses";
    /// Rows of PM that were opened, by reads and by writes.
    row_activations: Count, "rows";
    /// Rows whose cells were programmed because another row was opened (`pm.row_writes`).
    rows_written_back: Count, "rows";
    /// Reads of PM served by banks (row hits included), and fetches of read-modify-writes.
    media_reads: Count, "requests";
    /// Writes of the PM media that changed at least one bit.
    media_write_requests: Count, "requests";
    /// Writes of the PM media with data among their parts, whatever else.
    media_write_requests_data: Count, "requests";
    /// Writes of the PM media with log entries and no data.
    media_write_requests_log: Count, "requests";
    /// Writes of the PM media with metadata, and neither data nor log entries.
    media_write_requests_metadata: Count, "requests";
    /// Writes of the PM media of garbage collection and checkpointing only.
    media_write_requests_gc: Count, "requests";
    /// Writes of the media that changed no bit and so programmed nothing.
    media_writes_suppressed: Count, "requests";
    /// Bytes of the words that media writes carried.
    media_bytes_written: Count, "B";
    /// Bits whose cells were programmed (data-comparison write).
    media_bits_programmed: Count, "bits";
    /// Cells that were programmed; as many as bits, where a cell holds one.
    media_cells_programmed: Count, "cells";
    /// Most programmings of the cells of one group (`tlc.wear_group_cells`); 0 where cells have no states.
    peak_cell_wear: Gauge, "cells";
    /// Bits of log blocks as written to the media: after encoding, with its tags (MorLog Table VI).
    log_bits_coded: Count, "bits";
    /// Reads served from the on-PM buffer.
    pm_buffer_read_hits: Count, "requests";
    /// Writes that found their 256 B line in the on-PM buffer.
    pm_buffer_write_hits: Count, "requests";
    /// Lines that the on-PM buffer spilled to the media.
    pm_buffer_spills: Count, "lines";
    /// Spills of lines written in part, which fetch the rest first.
    pm_buffer_read_modify_writes: Count, "lines";
    /// Largest number of writes to one 256 B line of the media.
    peak_wear: Gauge, "writes";
    /// Bytes of log entries, records and metadata sent to PM.
    log_bytes_written: Count, "B";
    /// Accesses that waited for a cache whose tags a scan visited.
    tag_port_waits: Count, "accesses";
    /// Cycles that they waited.
    tag_port_wait_cycles: Count, "cycles";
    /// Cycles threads waited for loads.
    stall_load_cycles: Count, "cycles";
    /// Cycles threads waited for a place in the store queue, or for it to drain.
    stall_store_cycles: Count, "cycles";
    /// Cycles threads waited for a miss register.
    stall_mshr_cycles: Count, "cycles";
    /// Cycles threads waited because the reorder buffer or load queue was full.
    stall_window_cycles: Count, "cycles";
    /// Cycles threads waited at the end of a transaction for the design's acknowledgement.
    stall_commit_cycles: Count, "cycles";
    /// Cycles threads waited because the design held a store or the beginning of a transaction.
    stall_log_cycles: Count, "cycles";
    /// Cycles threads waited for locks.
    stall_lock_cycles: Count, "cycles";
    /// Cycles threads waited because the oldest in their store queue was a fence.
    stall_fence_cycles: Count, "cycles";
    /// Interrupts that the design sent to threads (TLB shootdowns).
    interrupts: Count, "interrupts";
    /// Cycles that threads spent in them.
    stall_interrupt_cycles: Count, "cycles";
    /// PM lines that missed in all caches and were asked for.
    fills: Count, "lines";
    /// Reads of memory, PM and DRAM, that serve them.
    fill_reads: Count, "requests";
    /// Lines that a buffer of the design's in the controller served.
    fills_from_buffer: Count, "lines";
    /// DRAM lines that missed in all caches and were asked for.
    dram_fills: Count, "lines";
    /// Reads of DRAM.
    dram_reads: Count, "requests";
    /// Writes of DRAM.
    dram_writes: Count, "requests";
    /// Requests to DRAM that found their row open.
    dram_row_hits: Count, "requests";
    /// Requests to DRAM for which a row was opened in a bank that had none open.
    dram_row_closed: Count, "requests";
    /// Requests to DRAM for which another row was closed first.
    dram_row_conflicts: Count, "requests";
    /// Refreshes of ranks of DRAM, up to the last request.
    dram_refreshes: Count, "refreshes";
    /// Fills of PM lines whose bytes were compared with architectural memory (all of them).
    reads_checked: Count, "lines";
}
}

impl Counters {
    /// Bytes of the words of all accepted writes.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes_data
            + self.written_bytes_log
            + self.written_bytes_metadata
            + self.written_bytes_gc
    }

    /// Counts a transactional store that replaces `old` by `new`.
    #[inline]
    pub fn stored(&mut self, old: u64, new: u64) {
        let changed = old ^ new;
        // The lowest bit of each byte says whether any of its bits changed.
        let bytes = changed | changed >> 4;
        let bytes = bytes | bytes >> 2;
        let bytes = (bytes | bytes >> 1) & 0x0101_0101_0101_0101;
        self.transactional_stores += 1;
        self.silent_stores += u64::from(changed == 0);
        // Their sum comes out on top.
        let bytes = bytes.wrapping_mul(0x0101_0101_0101_0101) >> 56;
        self.transactional_bytes_clean += WORD_BYTES - bytes;
        self.transactional_bits_clean += u64::from(changed.count_zeros());
    }
}

/// The sections of parameters about statistics, with their defaults.
pub fn sections() -> Vec<Box<dyn Section>> {
    vec![
        Box::new(RegionConfig::default()),
        Box::new(StatisticsConfig::default()),
        Box::new(ProcessorEnergyConfig::default()),
        Box::new(RecoveryConfig::default()),
    ]
}

/// Writes of the media per 256 B line.
#[derive(Clone, Debug, Default)]
pub struct Wear {
    chunks: Vec<Option<Box<[u32; WEAR_CHUNK_LINES]>>>,
    peak: u32,
}

/// Counts of a chunk: a page of host memory, so that writes far apart take little of it.
const WEAR_CHUNK_LINES: usize = 1 << 10;

impl Wear {
    /// Counts one write of the media line that holds `line`.
    #[inline]
    pub fn record(&mut self, line: LineAddr) {
        let (chunk, slot) = Self::locate(line);
        if chunk >= self.chunks.len() {
            self.chunks.resize_with(chunk + 1, || None);
        }
        let counts = self.chunks[chunk].get_or_insert_with(|| Box::new([0; WEAR_CHUNK_LINES]));
        counts[slot] += 1;
        self.peak = self.peak.max(counts[slot]);
    }

    /// Adds the writes of another run.
    fn join(&mut self, other: &Wear) {
        if self.chunks.len() < other.chunks.len() {
            self.chunks.resize_with(other.chunks.len(), || None);
        }
        for (own, other) in self.chunks.iter_mut().zip(&other.chunks) {
            let Some(other) = other else { continue };
            let own = own.get_or_insert_with(|| Box::new([0; WEAR_CHUNK_LINES]));
            for (own, other) in own.iter_mut().zip(other.iter()) {
                *own += other;
                self.peak = self.peak.max(*own);
            }
        }
    }

    /// Brings the count of a line near, as far as the host is concerned, if there is one.
    #[inline]
    pub fn prefetch(&self, line: LineAddr) {
        let (chunk, slot) = Self::locate(line);
        if let Some(Some(counts)) = self.chunks.get(chunk) {
            host::prefetch(&counts[slot]);
        }
    }

    /// The chunk that counts writes of a line, and where in it.
    #[inline]
    const fn locate(line: LineAddr) -> (usize, usize) {
        let media_line = (line.0 / (MEDIA_LINE_BYTES / LINE_BYTES)) as usize;
        (media_line / WEAR_CHUNK_LINES, media_line % WEAR_CHUNK_LINES)
    }

    /// The largest count.
    pub fn peak(&self) -> u64 {
        u64::from(self.peak)
    }

    /// Bytes of host memory taken so far.
    pub fn host_bytes(&self) -> u64 {
        let chunks = self.chunks.iter().flatten().count() * size_of::<[u32; WEAR_CHUNK_LINES]>();
        (size_of_val(&self.chunks[..]) + chunks) as u64
    }
}

/// All statistics of one simulation.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Plain counters.
    pub counters: Counters,
    /// From the issue of a transaction's end to its acknowledgement.
    pub commit_latency: Latency,
    /// From a transaction's begin to its acknowledgement: the critical path.
    pub transaction_latency: Latency,
    /// From the issue of a transaction's last instruction to its acknowledgement.
    pub last_issue_latency: Latency,
    /// Writes of log entries, from arrival at the controller until they are durable.
    pub log_persist_latency: Latency,
    /// Bytes of the different words that a transaction stored to, of those that stored at all, if they are followed.
    pub stored_bytes: Distribution,
    /// Pending requests of the PM's banks.
    pub bank_loads: BankLoads,
    /// Timeline of some transactions, if one is kept.
    pub timeline: Option<Box<Timeline>>,
    /// PM reads, from arrival at the controller to data.
    pub read_latency: Latency,
    /// Writes of the media per line.
    pub wear: Wear,
    /// Energy of PM reads.
    pub read_energy: Energy,
    /// Energy of PM writes.
    pub write_energy: Energy,
    /// Energies of PM traffic.
    pub traffic: TrafficEnergy,
    /// Energies of the processor's events.
    pub processor: ProcessorEnergy,
    /// Instructions of each core.
    pub core_instructions: Vec<u64>,
    /// Cycle at which each core finished its last operation.
    pub core_cycles: Vec<u64>,
}

/// Statistics of the latency of reads.
pub const READ_LATENCY: &[Declaration] = of_distribution!(
    "read_latency_cycles",
    "cycles",
    "PM reads from arrival at the controller to data"
);

/// Statistics of distributions, six of each.
const DISTRIBUTIONS: &[&[Declaration]] = &[
    of_distribution!(
        "commit_latency_cycles",
        "cycles",
        "From the end of a transaction's last instruction to its acknowledgement"
    ),
    of_distribution!(
        "transaction_latency_cycles",
        "cycles",
        "From the begin of a transaction to its acknowledgement (critical path)"
    ),
    of_distribution!(
        "last_issue_latency_cycles",
        "cycles",
        "From the issue of a transaction's last instruction to its acknowledgement (LALEA §IV-D)"
    ),
    of_distribution!(
        "log_persist_latency_cycles",
        "cycles",
        "Writes of log entries from arrival at the controller until they are durable (LALEA §IV-C)"
    ),
    of_distribution!(
        "stored_bytes_per_transaction",
        "B",
        "Bytes of the different words that a followed transaction stored to, of those that stored at all (Silo Fig. 4)"
    ),
    READ_LATENCY,
];

/// Other statistics that are derived when a record is made.
const DERIVED: &[Declaration] = declarations! {
    /// Instructions per cycle, summed over cores.
    "ipc": Ratio, "instructions/cycle";
    /// Instructions executed by one core.
    "core*.instructions": Ratio, "instructions";
    /// Instructions per cycle of one core.
    "core*.ipc": Ratio, "instructions/cycle";
    /// Committed transactions per second of simulated time.
    "throughput_tx_per_s": Ratio, "transactions/s";
    /// Bytes of the words of all accepted writes, over committed transactions (HOOP §IV-D).
    "written_bytes_per_transaction": Ratio, "B/transaction";
    /// Share of the accesses that reached the LLC that missed.
    "llc_miss_ratio": Ratio, "misses/access";
    /// Reads of memory per PM line that missed in all caches (HOOP §IV-C).
    "reads_per_fill": Ratio, "requests/line";
    /// Pending requests of a PM bank (queued, or being worked on), mean over banks and time.
    "bank_load_mean": Ratio, "requests";
    /// Pending requests of the PM bank that has most of them at the instant, mean over time.
    "bank_load_largest_mean": Ratio, "requests";
    /// Load of the most loaded PM bank over the mean of all: 1 if all banks always have the same.
    "bank_load_imbalance": Ratio, "";
    /// Pending requests of one PM bank, mean over time.
    "bank*.load_mean": Ratio, "requests";
    /// Energy of PM reads and of read-modify-write fetches, and of opening rows: row buffer and cells.
    "read_energy_pj": Ratio, "pJ";
    /// Energy of PM writes: row or on-PM buffer, and programmed cells.
    "write_energy_pj": Ratio, "pJ";
    /// Energy of PM reads and writes together.
    "pm_energy_pj": Ratio, "pJ";
    /// Energy of the PM by traffic alone: each line read and each word written at the energies of cells and row buffer (HOOP §IV-E).
    "pm_traffic_energy_pj": Ratio, "pJ";
    /// Dynamic energy of instructions and cache accesses, each at a documented price (`processor_energy`).
    "processor_energy_pj": Ratio, "pJ";
    /// Bytes of PM that the workload's structures occupy after population.
    "footprint_bytes": Ratio, "B";
    /// Digest of the PM data region after an orderly shutdown.
    "image_digest": Digest, "";
};

/// Every statistic of the machine, counters first, those of recovery last; designs add their own
/// ([`DesignInfo::statistics`](crate::design::DesignInfo::statistics)).
pub fn declarations() -> impl Iterator<Item = &'static Declaration> {
    let of_every_run =
        Counters::DECLARATIONS.iter().chain(DISTRIBUTIONS.iter().copied().flatten()).chain(DERIVED);
    of_every_run.chain(RECOVERY_DECLARATIONS)
}

impl Stats {
    /// Everything is counted from now on.
    pub fn begin_again(&mut self, now: Cycle) {
        let Stats { mut bank_loads, timeline, traffic, processor, .. } = std::mem::take(self);
        bank_loads.begin_again(now);
        *self = Stats { bank_loads, timeline, traffic, processor, ..Stats::default() };
    }

    /// Adds what a later run has measured. Counts and times add up; of values at the end, the later run's stay.
    pub fn join(&mut self, later: &Stats) {
        let Stats {
            counters,
            commit_latency,
            transaction_latency,
            last_issue_latency,
            log_persist_latency,
            stored_bytes,
            bank_loads,
            read_latency,
            wear,
            read_energy,
            write_energy,
            core_instructions,
            core_cycles,
            // Prices of events, which both have; and a timeline is of one run.
            traffic: _,
            processor: _,
            timeline: _,
        } = later;
        self.commit_latency.join(commit_latency);
        self.transaction_latency.join(transaction_latency);
        self.last_issue_latency.join(last_issue_latency);
        self.log_persist_latency.join(log_persist_latency);
        self.stored_bytes.join(stored_bytes);
        self.bank_loads.join(bank_loads);
        self.read_latency.join(read_latency);
        self.wear.join(wear);
        self.read_energy = self.read_energy.and(*read_energy);
        self.write_energy = self.write_energy.and(*write_energy);
        let add = |own: &mut [u64], later: &[u64]| {
            own.iter_mut().zip(later).for_each(|(own, later)| *own += later);
        };
        add(&mut self.core_instructions, core_instructions);
        add(&mut self.core_cycles, core_cycles);
        self.counters.join(counters);
        self.counters.residual_dirty_lines = counters.residual_dirty_lines;
        self.counters.peak_wear = self.wear.peak();
        self.counters.cycles = self.core_cycles.iter().copied().max().unwrap_or(0);
    }

    /// Sums beside the counters, by the names of the statistics that are in proportion to them.
    pub fn sums(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let energy = self.read_energy.and(self.write_energy);
        [
            ("transaction_latency_cycles_mean", self.transaction_latency.sum()),
            ("commit_latency_cycles_mean", self.commit_latency.sum()),
            ("read_energy_pj", self.read_energy.in_femtojoule()),
            ("write_energy_pj", self.write_energy.in_femtojoule()),
            ("pm_energy_pj", energy.in_femtojoule()),
            ("written_bytes_per_transaction", self.counters.written_bytes()),
        ]
        .into_iter()
    }

    /// Those of which six statistics are reported, in the order of `DISTRIBUTIONS`.
    fn distributions(&self) -> [&Distribution; 6] {
        [
            &self.commit_latency,
            &self.transaction_latency,
            &self.last_issue_latency,
            &self.log_persist_latency,
            &self.stored_bytes,
            &self.read_latency,
        ]
    }

    /// All values by name, in the order of [`declarations()`] with `core*` and `bank*` written out.
    pub fn record(
        &self,
        frequency_mhz: u32,
        footprint_bytes: u64,
        image_digest: u64,
    ) -> Vec<(String, Value)> {
        let c = &self.counters;
        let mut out: Vec<(String, Value)> =
            c.counts().iter().map(|(d, v)| (d.name.to_owned(), Value::Count(v))).collect();
        let mut push = |name: &str, value: Value| out.push((name.to_owned(), value));
        for (declared, distribution) in DISTRIBUTIONS.iter().zip(self.distributions()) {
            for (statistic, value) in declared.iter().zip(distribution.values()) {
                push(statistic.name, value);
            }
        }
        push("ipc", Value::Number(ratio(c.instructions, c.cycles)));
        for (core, (&instructions, &cycles)) in
            self.core_instructions.iter().zip(&self.core_cycles).enumerate()
        {
            push(&format!("core{core}.instructions"), Value::Count(instructions));
            push(&format!("core{core}.ipc"), Value::Number(ratio(instructions, cycles)));
        }
        let seconds = c.cycles as f64 / (f64::from(frequency_mhz) * 1e6);
        let rate = if c.cycles == 0 { 0.0 } else { c.committed_transactions as f64 / seconds };
        push("throughput_tx_per_s", Value::Number(rate));
        let per_transaction = ratio(c.written_bytes(), c.committed_transactions);
        push("written_bytes_per_transaction", Value::Number(per_transaction));
        let of_llc = c.llc_hits + c.llc_misses + c.llc_joins;
        push("llc_miss_ratio", Value::Number(ratio(c.llc_misses, of_llc)));
        push("reads_per_fill", Value::Number(ratio(c.fill_reads, c.fills)));
        let loads: Vec<f64> = self.bank_loads.means(c.cycles).collect();
        let load = loads.iter().sum::<f64>() / loads.len().max(1) as f64;
        let largest = self.bank_loads.largest_mean(c.cycles);
        push("bank_load_mean", Value::Number(load));
        push("bank_load_largest_mean", Value::Number(largest));
        let imbalance = if load > 0.0 { largest / load } else { 0.0 };
        push("bank_load_imbalance", Value::Number(imbalance));
        for (bank, load) in loads.into_iter().enumerate() {
            push(&format!("bank{bank}.load_mean"), Value::Number(load));
        }
        push("read_energy_pj", Value::Number(self.read_energy.pj()));
        push("write_energy_pj", Value::Number(self.write_energy.pj()));
        push("pm_energy_pj", Value::Number(self.read_energy.and(self.write_energy).pj()));
        push("pm_traffic_energy_pj", Value::Number(self.traffic.of(c).pj()));
        push("processor_energy_pj", Value::Number(self.processor.of(c).pj()));
        push("footprint_bytes", Value::Count(footprint_bytes));
        push("image_digest", Value::Digest(image_digest));
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_of_two_runs_is_that_of_one_with_the_writes_of_both() {
        let of = |lines: &[u64]| {
            let mut wear = Wear::default();
            lines.iter().for_each(|&line| wear.record(LineAddr(line)));
            wear
        };
        let mut joined = of(&[0, 1, 5_000]);
        joined.join(&of(&[2, 900_000, 900_001]));
        assert_eq!(joined.peak(), of(&[0, 1, 2]).peak(), "they are of one media line");
        assert_eq!(joined.peak(), 3);
    }

    #[test]
    fn wear_takes_host_memory_for_what_was_written_not_for_what_lies_between() {
        let mut wear = Wear::default();
        const LINES: u64 = 16 * 1024;
        (0..LINES).for_each(|n| wear.record(LineAddr(n * (4 << 20) / LINE_BYTES)));
        wear.record(LineAddr(0));
        assert_eq!(wear.peak(), 2);
        let each = wear.host_bytes() / LINES;
        assert!(each <= 5 * 1024, "{each} bytes for each line of 64 GB");
    }
}
