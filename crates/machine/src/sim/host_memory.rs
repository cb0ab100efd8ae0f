//! Estimate of the host memory that a simulation needs, from its configuration.
//!
//! | what | how much |
//! |---|---|
//! | images | PM as the workload populates it, in whole chunks, once for each image that comes to differ from it everywhere: the architectural one and that of the cells; what others that begin alike have of it, and of both after transactions without time; what is durable, where power may fail; the images of the machine on which recovery is timed |
//! | growth | blocks that transactions may allocate, in each of these images |
//! | log | what a design may write to the log region in the requested transactions, at most the region; the architectural image has little of it |
//! | cells | states and wear of the cells of all lines that are written, where `pm.cells` or `pm.codec` keep them |
//! | wear | 4 B for each media line |
//! | tags | tags, states and sharers of all caches |
//! | threads | stacks of programs |
//! | loads | what programs load in transactions without time, which others that begin alike are told |
//! | lists | an entry for each chunk of PM and DRAM, for each image |
//! | design | what the design declares ([`crate::design::DesignInfo::host_bytes`]) |
//! | rest | queues, statistics, the host's allocator |
//!
//! It is meant to be too large: no part knows that an operation stores less than it may, or to lines that were stored to
//! before. What is not in it: traces that are read or written, of which a few blocks are held at a time; series of the loads
//! of banks; the programs that the crash laboratory records of a violation.

use super::Spec;
use crate::config::{
    CellKind, CoreConfig, DramConfig, L1Config, L2Config, LlcConfig, PmConfig, TlcConfig,
};
use crate::program::STACK_BYTES;
use crate::stats::RecoveryConfig;
use crate::stats::region::RegionConfig;
use crate::workload::{Extent, Request, WorkloadConfig};
use graven_base::codecs::{BLOCK_CELLS, Block};
use graven_base::config::ConfigError;
use graven_base::memory::{Image, LINE_BYTES, MEDIA_LINE_BYTES};

/// Bytes that a design may write to its log in an operation of a transaction, besides copies of
/// what it stores of an element.
const LOG_BYTES: u64 = 2 << 10;

/// Copies of that which it may write there: old and new ones, each with addresses, in lines of their own.
const LOG_COPIES: u64 = 8;

/// Lines that an operation stores to, besides two elements.
const LINES_STORED: u64 = 16;

/// Bytes of a cache's tags for each line: tag, state, last use, and its share of what a set has.
const TAG_BYTES: u64 = 10;

/// Bytes for each line of the LLC besides: which cores have it.
const SHARERS_BYTES: u64 = 8;

/// Queues, events, histograms, code of the program that is not in memory yet.
const REST_BYTES: u64 = 10 << 20;

/// Share of the total that the host's allocator keeps besides what is in use, in percent.
const ALLOCATOR_PERCENT: u64 = 2;

/// Pages of DRAM that a thread takes: of locks, of a design's volatile data.
const DRAM_BYTES_PER_THREAD: u64 = 128 << 10;

/// Bytes of the host that a simulation needs, by what for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostMemory {
    /// PM as it is populated, in one image.
    pub populated: u64,
    /// Growth of it, in one image.
    pub growth: u64,
    /// Bytes written to the log region, in one image; every other has it, those of the cells.
    pub log: u64,
    /// Number of images of PM.
    pub images: u64,
    /// Cells and their wear.
    pub cells: u64,
    /// Caches, threads, lists, queues, statistics: what is there when the simulation begins.
    pub machine: u64,
    /// Bytes that the design keeps.
    pub design: u64,
}

impl HostMemory {
    /// All together, in bytes.
    pub fn total(&self) -> u64 {
        let image = self.populated.saturating_add(self.growth);
        let images = image.saturating_mul(self.images);
        let logs = self.log.saturating_mul(self.images.div_ceil(2));
        let parts = [images, logs, self.cells, self.machine, self.design];
        let sum = parts.into_iter().fold(0, u64::saturating_add);
        sum.saturating_add(sum / 100 * ALLOCATOR_PERCENT)
    }
}

/// Who else has images of PM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// Simulations that begin alike have the populated image, too.
    pub begin_alike: bool,
    /// True if durable content is followed, so that power may fail.
    pub crashes: bool,
    /// Number of power failures after which the workload begins again on what is left.
    pub lives: u32,
}

impl Spec {
    /// Estimates the host memory that a simulation of this specification needs, at most. The
    /// workload is built for it, and nothing is populated.
    ///
    /// # Errors
    /// Parameters that the workload cannot work with.
    pub fn host_memory(&self, others: Others) -> Result<HostMemory, ConfigError> {
        let config = &self.config;
        let (pm, recovery) = (config.get::<PmConfig>(), config.get::<RecoveryConfig>());
        let chunk = Image::chunk_bytes_of(pm.capacity_bytes.0);
        let extent = match self.build_workload()?.extent() {
            Some(extent) => extent,
            None => self.configured_extent(),
        };
        let (populated, growth) = self.pm_bytes(&extent, chunk)?;
        let element = config.get::<WorkloadConfig>().element_bytes.0;
        let stored = element.min(extent.updated_bytes.unwrap_or(element));
        let log = self.log_bytes(stored, chunk);
        // The simulation whose recovery is timed is another one; it has its durable bytes, and the machine that recovers has
        // what they were and what they become.
        let of_recovery = if recovery.is_wanted() { 4 } else { 0 };
        let each = 2 + u64::from(others.crashes);
        let region = config.get::<RegionConfig>();
        let shares_aged = others.begin_alike && region.is_steady();
        // The populated image; and two after transactions without time.
        let of_others = u64::from(others.begin_alike) + 2 * u64::from(shares_aged);
        let loads = if shares_aged { region.fast_forward_operations } else { 0 };
        let told = loads.saturating_mul(size_of::<u64>() as u64);
        let images = each * u64::from(1 + others.lives) + of_others + of_recovery;
        Ok(HostMemory {
            populated,
            growth,
            log,
            images,
            cells: self.cell_bytes(populated.saturating_add(growth).saturating_add(log)),
            machine: told.saturating_add(
                self.machine_bytes(images)
                    * (1 + u64::from(others.lives) + u64::from(recovery.is_wanted())),
            ),
            design: (self.design.host_bytes)(
                &self.context(),
                self.lines_stored(stored, populated.saturating_add(growth)),
            ),
        })
    }

    /// PM that is populated, in whole chunks, and what transactions add to it.
    fn pm_bytes(&self, extent: &Extent, chunk: u64) -> Result<(u64, u64), ConfigError> {
        let (start, end) = self.data_region();
        let region = (end.0 - start.0).next_multiple_of(chunk);
        let initial = match &self.programs {
            Some(_) => extent.block_bytes,
            // The same workload that is never run.
            None => self
                .initial_block_bytes()?
                .unwrap_or(extent.block_bytes / 2)
                .min(extent.block_bytes),
        };
        let growth =
            (extent.block_bytes - initial) / 100 * u64::from(extent.allocated_percent.min(100));
        let laid_out = extent.fixed_bytes.saturating_add(extent.block_bytes);
        // Blocks are handed out upwards: each arena has a chunk that is not full, and may begin in one of another.
        let rounding = (2 * extent.arenas + 2) * chunk;
        let populated = extent.fixed_bytes.saturating_add(initial).saturating_add(rounding);
        let populated = populated.min(laid_out.saturating_add(2 * chunk)).min(region);
        Ok((populated, growth.min(region)))
    }

    fn initial_block_bytes(&self) -> Result<Option<u64>, ConfigError> {
        let request = Request { transactions: 0, ..self.request(&self.context()) };
        Ok((self.workload.build)(&request)?.extent().map(|extent| extent.block_bytes))
    }

    /// Extent of a workload that does not declare one: its footprint, and as much again of what it
    /// may allocate.
    fn configured_extent(&self) -> Extent {
        let workload = self.config.get::<WorkloadConfig>();
        let fixed_bytes = workload.footprint_bytes.0;
        let each = workload.element_bytes.0.saturating_mul(2).saturating_add(2 * LINE_BYTES);
        let block_bytes = self.operations().saturating_mul(each).saturating_mul(2);
        Extent {
            fixed_bytes,
            block_bytes,
            arenas: self.threads.into(),
            allocated_percent: 100,
            updated_bytes: None,
        }
    }

    /// Elementary operations of all transactions.
    fn operations(&self) -> u64 {
        let each = self.config.get::<WorkloadConfig>().operations_per_transaction;
        self.transactions.saturating_mul(each.into())
    }

    /// Number of lines that programs store to, of `bytes` bytes of structures, if an operation
    /// stores `stored` bytes of an element.
    fn lines_stored(&self, stored: u64, bytes: u64) -> u64 {
        let each = LINES_STORED + 2 * stored.div_ceil(LINE_BYTES);
        self.operations().saturating_mul(each).min(bytes / LINE_BYTES)
    }

    fn log_bytes(&self, stored: u64, chunk: u64) -> u64 {
        let region = self.config.get::<PmConfig>().log_region_bytes.0;
        if self.crash_options.garbage.is_some() {
            return region.next_multiple_of(chunk);
        }
        let each = LOG_BYTES + LOG_COPIES * stored;
        self.operations().saturating_mul(each).min(region)
    }

    /// Wear of all media lines, and the states of cells, of so much of PM.
    fn cell_bytes(&self, written: u64) -> u64 {
        let (pm, tlc) = (self.config.get::<PmConfig>(), self.config.get::<TlcConfig>());
        let wear = written / MEDIA_LINE_BYTES * 4;
        let keeps_states = pm.cells == CellKind::TlcRram || pm.codec.compresses();
        let groups = u64::from(BLOCK_CELLS.div_ceil(tlc.wear_group_cells));
        let line = size_of::<Block>() as u64 + groups * 4 + 1;
        wear + if keeps_states { written / LINE_BYTES * line } else { 0 }
    }

    /// Memory that a simulation takes when it is built, whatever it does then.
    fn machine_bytes(&self, images: u64) -> u64 {
        let config = &self.config;
        let addresses =
            config.get::<PmConfig>().capacity_bytes.0 + config.get::<DramConfig>().capacity_bytes.0;
        let lists =
            images * Image::list_bytes_of(addresses) + addresses / (MEDIA_LINE_BYTES << 10) * 8;
        let each = STACK_BYTES as u64 + DRAM_BYTES_PER_THREAD;
        self.cache_bytes() + lists + u64::from(self.threads) * each + REST_BYTES
    }

    fn cache_bytes(&self) -> u64 {
        let config = &self.config;
        let (l1, l2) = (config.get::<L1Config>(), config.get::<L2Config>());
        let private = (l1.bytes.0 + l2.bytes.0) / LINE_BYTES * TAG_BYTES;
        let shared = config.get::<LlcConfig>().bytes.0 / LINE_BYTES * (TAG_BYTES + SHARERS_BYTES);
        u64::from(config.get::<CoreConfig>().count) * private + shared
    }
}
