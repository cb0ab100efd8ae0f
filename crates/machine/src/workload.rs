//! The interface of workloads.
//!
//! A workload lays out and populates its structures in an image (no time passes), then gives each
//! thread a [`Program`] whose every operation is timed. Nodes, pointers and allocator metadata all
//! live in the image, so that [`Workload::check`] can walk any image, a recovered one included.

use graven_base::config::{Config, ConfigError, Section, Size};
use graven_base::memory::{Addr, Image};
use graven_base::{choice, section};

use crate::program::Program;

choice! {
    /// Distribution of keys.
    pub enum Distribution {
        /// All keys alike.
        Uniform = "uniform",
        /// Zipf: rank r with probability proportional to r^-theta.
        Zipf = "zipf",
    }
}

choice! {
    /// Data of threads: their own, or shared.
    pub enum Sharing {
        /// Each thread works on a structure of its own.
        Private = "private",
        /// All threads work on one structure, under locks.
        Shared = "shared",
    }
}

choice! {
    /// Content of elements.
    pub enum ElementKind {
        /// Identifiers, small numbers, letters and zeros.
        Record = "record",
        /// Text.
        String = "string",
        /// The same words in every element and every version (MorLog §VI-C of SPS: "the array entries are initialized with the same value").
        Equal = "equal",
    }
}

section! {
    /// Work of the programs; the same parameters for all workloads.
    pub struct WorkloadConfig("workload") {
        /// Size of one data element.
        element_bytes: Size = Size(64), Size(8)..=Size::kb(64), "B";
        /// Content of elements beyond their first word, which is an integer.
        element_kind: ElementKind = ElementKind::Record, (), "";
        /// Bytes of an element that an update stores, from its first on; all if it has no more.
        update_bytes: Size = Size::kb(64), Size(8)..=Size::kb(64), "B";
        /// Bytes of PM that the populated structures take, over all threads.
        footprint_bytes: Size = Size::mb(64), Size::kb(64)..=Size::gb(64), "B";
        /// Distribution of keys.
        distribution: Distribution = Distribution::Uniform, (), "";
        /// Skew of the Zipf distribution.
        zipf_theta: f64 = 0.99, 0.01..=5.0, "";
        /// Data of threads: their own, or shared.
        sharing: Sharing = Sharing::Private, (), "";
        /// Share of the transactions that insert (or enqueue).
        insert_percent: u32 = 100, 0..=100, "%";
        /// Share of the transactions that remove (or dequeue); what remains updates an element in place.
        remove_percent: u32 = 0, 0..=100, "%";
        /// Elementary operations per transaction.
        operations_per_transaction: u32 = 1, 1..=10_000, "operations";
        /// Times that a transaction stores each of its words; the last store has the program's value, those before it differ in its lowest bits.
        stores_per_word: u32 = 1, 1..=16, "stores";
        /// Stores of a transaction between two of one word, while it has them; what is left follows before its end.
        store_distance: u32 = 0, 0..=100_000, "stores";
        /// Times by which programs execute more instructions between their accesses to memory; those of designs in software stay as they are.
        compute_scale: f64 = 1.0, 0.01..=1000.0, "";
    }
}

/// Request for a workload: the parameters of a run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The shared parameters.
    pub config: WorkloadConfig,
    /// The whole configuration, for workloads with sections of their own ([`WorkloadInfo::sections`]), which are the only ones that
    /// they look at: simulations in which these are the same begin alike.
    pub whole: Config,
    /// Program threads.
    pub threads: u32,
    /// Transactions over all threads.
    pub transactions: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// First byte of PM that may be used (never 0).
    pub start: Addr,
    /// One past the last byte that may be used.
    pub end: Addr,
}

impl Request {
    /// Transactions of one thread: the total dealt out evenly, the first threads taking the rest.
    pub fn transactions_of(&self, thread: u32) -> u64 {
        let threads = u64::from(self.threads);
        self.transactions / threads + u64::from(u64::from(thread) < self.transactions % threads)
    }
}

/// An invariant that an image breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{structure}: {what}")]
pub struct BrokenInvariant {
    /// Name and place of the structure.
    pub structure: String,
    /// Description of the violation.
    pub what: String,
}

/// Result of a check of structures: the first violation that it meets.
pub type Checked<T = ()> = Result<T, BrokenInvariant>;

/// Amount of PM that a workload uses, from which the host memory of a simulation is estimated
/// before it runs ([`crate::sim::HostMemory`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes that populating writes to, apart from blocks.
    pub fixed_bytes: u64,
    /// Bytes laid out for blocks: those of the initial structures, and those that transactions may allocate.
    pub block_bytes: u64,
    /// Places from which blocks are handed out upwards.
    pub arenas: u64,
    /// Share of the blocks that transactions may allocate which they do allocate, at most, in
    /// percent.
    pub allocated_percent: u32,
    /// Bytes of an element that an operation stores, if transactions update elements and do nothing
    /// else; otherwise all of it may be stored.
    pub updated_bytes: Option<u64>,
}

/// A workload, ready to run.
pub trait Workload {
    /// Builds the initial structures in an image that is zero so far. Nothing else may depend on it: of simulations that
    /// begin alike only the first one may ask for it ([`crate::sim::Beginning`]).
    fn populate(&self, image: &mut Image);

    /// Program of thread `thread`. Called once per thread.
    fn program(&self, thread: u32) -> Box<dyn Program>;

    /// Walks the structures of an image and checks order, balance, counts, reachability and
    /// allocator metadata. Holds for every committed state.
    ///
    /// # Errors
    /// The first violation found.
    fn check(&self, image: &Image) -> Result<(), BrokenInvariant>;

    /// Returns true if its programs may begin again on structures that they have left in any
    /// committed state, and [`Workload::check`] holds after that, too: they know from PM alone what
    /// it holds.
    fn begins_again(&self) -> bool {
        true
    }

    /// Amount of PM that it uses, at most. `None`: unknown, and the configured footprint is taken
    /// for it.
    fn extent(&self) -> Option<Extent> {
        None
    }
}

/// A workload that users can name.
pub struct WorkloadInfo {
    /// Name for users.
    pub name: &'static str,
    /// `micro` or `macro`.
    pub group: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Parameters of its own, beside the shared ones; workloads may have a section in common.
    pub sections: &'static [fn() -> Box<dyn Section>],
    /// The parameter set that its name stands for: what it takes to be this one of several mixes of one program. A
    /// user's own setting goes before.
    pub settings: &'static [(&'static str, &'static str)],
    /// Makes one, or refuses parameters that do not fit it.
    pub build: fn(&Request) -> Result<Box<dyn Workload>, ConfigError>,
}
