//! The machine's own sections. Designs and workloads declare theirs in their own files.

use graven_base::codecs::Codec;
use graven_base::config::{Config, Size};
use graven_base::{choice, section};

choice! {
    /// Execution of a core.
    pub enum CoreModel {
        /// Loads block; stores retire through a store buffer.
        InOrder = "in-order",
        /// Loads overlap inside a reorder buffer.
        OutOfOrder = "out-of-order",
    }
}

choice! {
    /// Spread of consecutive addresses over channels and banks.
    pub enum Interleave {
        /// Consecutive lines go to different channels, then banks: of 64 B, or of 256 B before an on-PM buffer.
        Line = "line",
        /// Consecutive pages (`controller.page_bytes`) go to different channels, then banks.
        Page = "page",
    }
}

choice! {
    /// Time for which a request holds the data bus of its channel.
    pub enum DataBusHeld {
        /// For its burst from its issue on, whenever its line moves; the next request is issued when the bus is free.
        AtIssue = "at-issue",
        /// While its line moves; a request is issued in every cycle, so that rows are opened meanwhile.
        AtTransfer = "at-transfer",
    }
}

section! {
    /// Processor cores.
    pub struct CoreConfig("core") {
        /// Number of cores; each runs `threads_per_core` program threads.
        count: u32 = 8, 1..=64, "cores";
        /// Clock frequency: the base unit of simulated time is one cycle of it.
        frequency_mhz: u32 = 2000, 100..=10_000, "MHz";
        /// Execution of instructions.
        model: CoreModel = CoreModel::InOrder, (), "";
        /// Hardware threads that share one core's caches and issue slots.
        threads_per_core: u32 = 1, 1..=2, "threads";
        /// Instructions issued per cycle, shared by the threads of a core. Presets: 1 in-order, 4 out-of-order.
        issue_width: u32 = 1, 1..=16, "instructions/cycle";
        /// Reorder buffer per core (out-of-order only), split evenly between its threads.
        rob_entries: u32 = 192, 8..=1024, "instructions";
        /// Loads in flight per core (out-of-order only), split evenly between its threads.
        load_queue_entries: u32 = 72, 1..=256, "loads";
        /// Stores that have retired but not yet reached the L1, per core; split evenly between its threads.
        store_queue_entries: u32 = 48, 1..=256, "stores";
        /// Lines of a core's write-combining buffer, through which uncacheable stores go (FWB §II-B: four to six).
        write_combining_lines: u32 = 6, 1..=64, "lines";
        /// Lines that one core may be waiting for at a time.
        mshrs: u32 = 16, 1..=64, "lines";
    }
}

section! {
    /// Private first-level data cache.
    pub struct L1Config("l1") {
        /// Capacity.
        bytes: Size = Size::kb(32), Size(64)..=Size::mb(64), "B";
        /// Associativity.
        ways: u32 = 8, 1..=64, "ways";
        /// Time of one access.
        latency_cycles: u32 = 4, 1..=1000, "cycles";
    }
}

section! {
    /// Private second-level cache, inclusive of the L1. Size 0: there is none, and its other parameters have no effect.
    pub struct L2Config("l2") {
        /// Capacity; 0 for a hierarchy of two levels.
        bytes: Size = Size::kb(256), Size(0)..=Size::mb(64), "B";
        /// Associativity.
        ways: u32 = 8, 1..=64, "ways";
        /// Time of one access, on top of the L1's.
        latency_cycles: u32 = 12, 1..=1000, "cycles";
    }
}

section! {
    /// Shared last-level cache, inclusive of all private ones; holds the coherence directory.
    pub struct LlcConfig("llc") {
        /// Capacity.
        bytes: Size = Size::mb(8), Size(64)..=Size::gb(1), "B";
        /// Associativity.
        ways: u32 = 16, 1..=64, "ways";
        /// Time of one access, on top of the levels above.
        latency_cycles: u32 = 28, 1..=1000, "cycles";
    }
}

choice! {
    /// The request that a controller issues next. Of those whose bank is free, one whose row is open goes first, then the oldest.
    pub enum SchedulerKind {
        /// Reads before writes; writes when no read waits, and from the high watermark down to the low one.
        ReadsFirst = "reads-first",
        /// One queue of `write_queue_entries` for reads and writes alike (NVMain's FRFCFS).
        FrFcfs = "frfcfs",
        /// Only reads up to the high watermark, then only writes down to the low one; no write is accepted meanwhile (NVMain's FRFCFS-WQF).
        FrFcfsWqf = "frfcfs-wqf",
    }
}

section! {
    /// Memory controllers of the persistent memory, one per channel.
    pub struct ControllerConfig("controller") {
        /// Independent channels, each with its own queues and data bus.
        channels: u32 = 1, 1..=16, "channels";
        /// Reads that one channel holds.
        read_queue_entries: u32 = 64, 1..=1024, "requests";
        /// Writes that one channel holds (its write pending queue).
        write_queue_entries: u32 = 64, 1..=1024, "requests";
        /// The request that is issued next.
        scheduler: SchedulerKind = SchedulerKind::ReadsFirst, (), "";
        /// Accesses to an open row after which a request for another row of the bank goes first; 0: any number (NVMain: 4).
        row_hit_limit: u32 = 4, 0..=1_000_000, "accesses";
        /// Age from which on a request goes before all younger ones, whichever row is open and whether writes are drained or spilled; 0: none.
        age_limit_ns: f64 = 9600.0, 0.0..=1_000_000.0, "ns";
        /// Occupancy of the write queue at which writes are drained ahead of reads.
        drain_high_percent: u32 = 80, 1..=100, "%";
        /// Occupancy at which draining stops, below the high one.
        drain_low_percent: u32 = 50, 0..=99, "%";
        /// The write queue survives a power failure (ADR); if not, a write is durable in the on-PM buffer, or in the cells where there is none.
        adr: bool = true, (), "";
        /// Lines that the controllers together keep through a power failure beside their write queues, for designs that name what they put there (LAD's pool, BLOM's headers).
        adr_entries: u32 = 64, 1..=4096, "lines";
        /// Spread of addresses over channels and banks.
        interleave: Interleave = Interleave::Page, (), "";
        /// Unit of page interleaving.
        page_bytes: Size = Size::kb(4), Size::kb(1)..=Size::mb(2), "B";
        /// A write occupies the data bus only for the words that it writes; if not, for a line.
        short_bursts: bool = false, (), "";
        /// Time for which a request holds the data bus (of DRAM, too).
        data_bus: DataBusHeld = DataBusHeld::AtIssue, (), "";
        /// Time from the end of a read's hold of PM's data bus to the beginning of a write's at least: until the read's data have left the bus.
        turnaround_ns: f64 = 0.0, 0.0..=1_000.0, "ns";
        /// Time for a message between a core's L1 and the controller when it bypasses the caches.
        bypass_cycles: u32 = 8, 0..=1000, "cycles";
    }
}

choice! {
    /// Caches whose dirty lines survive a power failure.
    pub enum DurableCaches {
        /// None: a store is durable when what a cache wrote back is.
        None = "none",
        /// All: a store is durable when the L1 has performed it (eADR).
        All = "all",
    }
}

choice! {
    /// The order in which caches that survive are written to PM when power fails.
    pub enum FlushOrder {
        /// The L1s, then the L2s, then the LLC.
        InnerFirst = "inner-first",
        /// The LLC, then the L2s, then the L1s.
        OuterFirst = "outer-first",
    }
}

section! {
    /// The domain of persistence above the write queues: caches whose dirty lines are written to PM when power fails.
    pub struct DomainConfig("domain") {
        /// Caches that survive. With all, so do write queues, whatever `controller.adr` says; programs need no write-backs, and ordering fences wait for nothing.
        caches: DurableCaches = DurableCaches::None, (), "";
        /// Energy that is stored for it: lines that it does not suffice for are lost. 0: as much as all take.
        energy_uj: f64 = 0.0, 0.0..=1_000_000_000.0, "uJ";
        /// The order in which lines are written.
        flush_order: FlushOrder = FlushOrder::InnerFirst, (), "";
        /// Energy of writing a byte from an L1 to PM (the model that Silo §VI-E cites).
        l1_nj_per_byte: f64 = 11.839, 0.0..=1_000_000.0, "nJ/B";
        /// Energy of writing a byte from an L2 or the LLC to PM (Silo §VI-E).
        outer_nj_per_byte: f64 = 11.228, 0.0..=1_000_000.0, "nJ/B";
    }
}

impl DomainConfig {
    /// Returns true if caches survive a power failure.
    pub fn keeps_caches(&self) -> bool {
        self.caches == DurableCaches::All
    }

    /// Returns true if a machine's write queues survive one.
    pub fn keeps_write_queues(config: &Config) -> bool {
        config.get::<ControllerConfig>().adr || config.get::<DomainConfig>().keeps_caches()
    }
}

choice! {
    /// Cells of a PM.
    pub enum CellKind {
        /// One bit each; every change costs the same.
        Uniform = "uniform",
        /// Triple-level RRAM: three bits each, every state has its own latency and energy.
        TlcRram = "tlc-rram",
    }
}

choice! {
    /// Effect of a write on the row buffer of its bank.
    pub enum RowWrites {
        /// A write programs the cells, which takes `write_ns` whatever row is open; its row is open afterwards.
        Program = "program",
        /// A write programs the cells; a row that is not open is opened first, as NVMain does when rows are written through.
        Activate = "activate",
        /// A write changes the row buffer alone: `row_hit_ns` if its row is open, `write_ns` if not. The cells are programmed when another row is opened, in the time of that access (FWB Table II).
        HitOrConflict = "hit-or-conflict",
        /// A write changes the row buffer alone, after its row has been opened; the cells are programmed before another row is opened (Lee et al., ISCA 2009).
        WriteBack = "write-back",
    }
}

impl RowWrites {
    /// Returns true if what is written stays in the row buffer until another row is opened.
    pub fn stay_in_row(self) -> bool {
        matches!(self, RowWrites::HitOrConflict | RowWrites::WriteBack)
    }
}

choice! {
    /// Machines on which logs of word-sized entries are packed: what entries say about themselves in blocks of its own, their words in
    /// others (log packing, MorLog §II-C). One rule for every design with such a log.
    pub enum LogPacking {
        /// Those whose memory modules have a codec, which has to tell words from metadata: "the data are either log metadata
        /// or log data, since metadata and data are separated after log packing" (MorLog §IV-B). Elsewhere records lie in
        /// slots, whole, as FWB §III-A and MorLog §III-B (Fig. 7) describe them.
        WithCodec = "with-codec",
        /// On every machine.
        Always = "always",
        /// On none.
        Never = "never",
    }
}

choice! {
    /// In which banks the threads' log areas begin, under every design that has an area for each thread.
    pub enum LogAreas {
        /// In different banks: a page lies between one area and the next, so that threads that log in step write to
        /// different banks.
        Staggered = "staggered",
        /// All in one: "all prior designs prefer to allocate a well-known contiguous PM space for log entries", and
        /// "sequentially allocate free memory blocks in Bank0 to log requests L1, L2, and L3" (LALEA §III-A, Fig. 2a).
        OneBank = "one-bank",
    }
}

section! {
    /// The persistent memory device.
    pub struct PmConfig("pm") {
        /// Capacity; the PM's physical addresses run from 0 up to it.
        capacity_bytes: Size = Size::gb(16), Size::mb(1)..=Size::gb(1024), "B";
        /// Ranks per channel.
        ranks: u32 = 1, 1..=8, "ranks";
        /// Banks per rank.
        banks: u32 = 8, 1..=64, "banks";
        /// Bytes that one row buffer holds.
        row_bytes: Size = Size::kb(2), Size(256)..=Size::kb(64), "B";
        /// Reading a line that is in the row buffer.
        row_hit_ns: f64 = 15.0, 0.1..=10_000.0, "ns";
        /// From one read of an open row to the next in the same bank; where it is longer than `row_hit_ns`, that.
        column_ns: f64 = 5.0, 0.1..=10_000.0, "ns";
        /// Reading a line when its bank's row buffer is closed.
        read_ns: f64 = 50.0, 0.1..=10_000.0, "ns";
        /// Closing an open row before another can be read; what a conflict adds to `read_ns`.
        precharge_ns: f64 = 0.0, 0.0..=10_000.0, "ns";
        /// Programming one media line; the bank is busy meanwhile.
        write_ns: f64 = 150.0, 0.1..=100_000.0, "ns";
        /// Effect of a write on the row buffer of its bank.
        row_writes: RowWrites = RowWrites::Program, (), "";
        /// Occupancy of the data bus by one 64 B line.
        burst_ns: f64 = 5.0, 0.1..=1000.0, "ns";
        /// Lines of 256 B in the on-PM write-combining buffer; 0: none, writes go to the media as 64 B lines.
        buffer_lines: u32 = 64, 0..=65_536, "lines of 256 B";
        /// Share of the on-PM buffer that may be dirty before it starts to spill the oldest lines.
        buffer_spill_percent: u32 = 75, 1..=100, "%";
        /// Time of an access to the on-PM buffer.
        buffer_ns: f64 = 10.0, 0.1..=1000.0, "ns";
        /// Energy of reading one bit from the row buffer.
        row_read_pj_per_bit: f64 = 0.93, 0.0..=10_000.0, "pJ/bit";
        /// Energy of writing one bit into the row buffer or the on-PM buffer.
        row_write_pj_per_bit: f64 = 1.02, 0.0..=10_000.0, "pJ/bit";
        /// Energy of reading one bit from the cells; opening a row reads all of its bits.
        array_read_pj_per_bit: f64 = 2.47, 0.0..=10_000.0, "pJ/bit";
        /// Energy of programming one bit of the cells (only changed bits are programmed).
        array_write_pj_per_bit: f64 = 16.82, 0.0..=10_000.0, "pJ/bit";
        /// Times by which writes take longer than the cells' latencies say.
        write_scale: f64 = 1.0, 0.01..=1000.0, "";
        /// Programming of cells: all alike (`write_ns`, `array_write_pj_per_bit`), or triple-level cells by their states (section `tlc`).
        cells: CellKind = CellKind::Uniform, (), "";
        /// Codec of the memory modules: none; FPC and expansion coding (CRADE); or the same with DLDC for log data (SLDE).
        codec: Codec = Codec::Raw, (), "";
        /// Coded blocks use only the cheapest states of triple-level cells that hold them (expansion coding).
        expansion: bool = true, (), "";
        /// Bytes at the top of the PM that designs keep their logs in.
        log_region_bytes: Size = Size::mb(64), Size::kb(1)..=Size::gb(512), "B";
        /// Machines on which logs of word-sized entries have metadata and words in blocks of their own, whichever design writes them: with a codec, always, or never. Elsewhere their records lie in slots.
        log_packing: LogPacking = LogPacking::WithCodec, (), "";
        /// Banks in which the log areas of threads begin, under designs that have one for each: in different banks, or all in the same.
        log_areas: LogAreas = LogAreas::Staggered, (), "";
    }
}

impl PmConfig {
    /// Returns true if logs of word-sized entries are packed on this machine.
    pub fn packs_logs(&self) -> bool {
        match self.log_packing {
            LogPacking::WithCodec => self.codec.compresses(),
            LogPacking::Always => true,
            LogPacking::Never => false,
        }
    }
}

section! {
    /// Triple-level cells (RRAM): latency and energy of programming one, by the state that it gets. With effect where `pm.cells` says so.
    pub struct TlcConfig("tlc") {
        /// Programming a cell to state 000.
        latency_000_ns: f64 = 15.2, 0.1..=100_000.0, "ns";
        /// Programming a cell to state 001.
        latency_001_ns: f64 = 46.8, 0.1..=100_000.0, "ns";
        /// Programming a cell to state 010.
        latency_010_ns: f64 = 98.3, 0.1..=100_000.0, "ns";
        /// Programming a cell to state 011.
        latency_011_ns: f64 = 143.0, 0.1..=100_000.0, "ns";
        /// Programming a cell to state 100.
        latency_100_ns: f64 = 150.0, 0.1..=100_000.0, "ns";
        /// Programming a cell to state 101.
        latency_101_ns: f64 = 101.0, 0.1..=100_000.0, "ns";
        /// Programming a cell to state 110.
        latency_110_ns: f64 = 52.7, 0.1..=100_000.0, "ns";
        /// Programming a cell to state 111.
        latency_111_ns: f64 = 12.1, 0.1..=100_000.0, "ns";
        /// Programming a cell to state 000.
        energy_000_pj: f64 = 2.0, 0.0..=10_000.0, "pJ";
        /// Programming a cell to state 001.
        energy_001_pj: f64 = 6.7, 0.0..=10_000.0, "pJ";
        /// Programming a cell to state 010.
        energy_010_pj: f64 = 19.3, 0.0..=10_000.0, "pJ";
        /// Programming a cell to state 011.
        energy_011_pj: f64 = 35.1, 0.0..=10_000.0, "pJ";
        /// Programming a cell to state 100.
        energy_100_pj: f64 = 35.6, 0.0..=10_000.0, "pJ";
        /// Programming a cell to state 101.
        energy_101_pj: f64 = 19.6, 0.0..=10_000.0, "pJ";
        /// Programming a cell to state 110.
        energy_110_pj: f64 = 8.5, 0.0..=10_000.0, "pJ";
        /// Programming a cell to state 111.
        energy_111_pj: f64 = 1.5, 0.0..=10_000.0, "pJ";
        /// Cells that wear is counted by; a block of 64 B has 172.
        wear_group_cells: u32 = 22, 1..=172, "cells";
    }
}

section! {
    /// The volatile DRAM tier, with controllers of its own. Addresses follow the PM's. Times are those of a part, in clocks,
    /// by JEDEC's names (JESD79-4, JESD79-5); the parts `ddr4-2400`, `ddr4-3200` and `ddr5-4800` have them, which machines extend.
    pub struct DramConfig("dram") {
        /// Capacity.
        capacity_bytes: Size = Size::gb(4), Size::mb(1)..=Size::gb(1024), "B";
        /// Channels; a module of DDR5 has two, of half the width. Units of interleaving (`controller.interleave`) go round them.
        channels: u32 = 1, 1..=16, "channels";
        /// Ranks per channel.
        ranks: u32 = 1, 1..=8, "ranks";
        /// Groups of banks per rank.
        bank_groups: u32 = 4, 1..=16, "groups";
        /// Banks per rank, in all groups; neighbours are in different ones.
        banks: u32 = 16, 1..=64, "banks";
        /// Bytes that the row buffers of a bank hold, all devices of a rank together.
        row_bytes: Size = Size::kb(8), Size(256)..=Size::kb(64), "B";
        /// Clock of commands: half the rate of transfers.
        clock_mhz: f64 = 1200.0, 1.0..=10_000.0, "MHz";
        /// Occupancy of the data bus by one 64 B line: half the burst length.
        burst_clocks: u32 = 4, 1..=64, "clocks";
        /// tCL: from a read to its first data.
        cl_clocks: u32 = 17, 1..=500, "clocks";
        /// tCWL: from a write to its first data.
        cwl_clocks: u32 = 12, 1..=500, "clocks";
        /// tRCD: from opening a row to an access.
        rcd_clocks: u32 = 17, 1..=500, "clocks";
        /// tRP: from closing a row to opening another.
        rp_clocks: u32 = 17, 1..=500, "clocks";
        /// tRAS: a row stays open for so long at least.
        ras_clocks: u32 = 39, 1..=1000, "clocks";
        /// tCCD_S: between accesses in different groups of banks.
        ccd_s_clocks: u32 = 4, 1..=500, "clocks";
        /// tCCD_L: between accesses in one group.
        ccd_l_clocks: u32 = 6, 1..=500, "clocks";
        /// tCCD_L_WR: between writes in one group; DDR4 has no such distance beside tCCD_L.
        ccd_l_write_clocks: u32 = 6, 1..=500, "clocks";
        /// tRRD_S: between openings of rows in different groups of banks.
        rrd_s_clocks: u32 = 4, 1..=500, "clocks";
        /// tRRD_L: between openings in one group.
        rrd_l_clocks: u32 = 6, 1..=500, "clocks";
        /// tFAW: a rank opens four rows at most within it.
        faw_clocks: u32 = 26, 1..=1000, "clocks";
        /// tRTP: from a read to closing its row.
        rtp_clocks: u32 = 9, 1..=500, "clocks";
        /// tWR: from the last data of a write to closing its row.
        wr_clocks: u32 = 18, 1..=500, "clocks";
        /// tWTR_S: from the last data of a write to a read in another group of banks.
        wtr_s_clocks: u32 = 3, 0..=500, "clocks";
        /// tWTR_L: from the last data of a write to a read in its group.
        wtr_l_clocks: u32 = 9, 0..=500, "clocks";
        /// Clocks in which the data bus is turned from a read to a write.
        turn_clocks: u32 = 2, 0..=100, "clocks";
        /// tRTRS: clocks between the data of two ranks on the bus.
        rtrs_clocks: u32 = 2, 0..=100, "clocks";
        /// tRFC: duration of a refresh of a rank.
        rfc_clocks: u32 = 420, 1..=10_000, "clocks";
        /// tREFI: from one refresh of a rank to the next.
        refi_clocks: u32 = 9360, 100..=1_000_000_000, "clocks";
        /// Reads that the controller of a channel holds.
        read_queue_entries: u32 = 64, 1..=1024, "requests";
        /// Writes that the controller of a channel holds.
        write_queue_entries: u32 = 64, 1..=1024, "requests";
    }
}

impl DramConfig {
    /// From opening a row to the first data of a read, in ns.
    pub fn closed_read_ns(&self) -> f64 {
        f64::from(self.rcd_clocks + self.cl_clocks) * 1000.0 / self.clock_mhz
    }
}

/// The cycles that a store needs to fall through the caches. A log buffer that holds an entry for longer
/// lets it be overtaken by its data (FWB §IV-C; MorLog §II-B, §III-B).
pub fn traversal_cycles(config: &Config) -> u32 {
    let l2 = config.get::<L2Config>();
    let l2_latency = if l2.bytes.0 > 0 { l2.latency_cycles } else { 0 };
    config.get::<L1Config>().latency_cycles + l2_latency + config.get::<LlcConfig>().latency_cycles
}
