//! Layout of the structures of a workload in PM, and refusal of those that do not fit.
//!
//! Each structure takes a partition of its own, which begins on a page: its root, then its arenas.
//! An arena is sized for the population and for everything that the transactions could insert, so
//! that allocation never fails during a run. Threads that do not share each have a partition.
//!
//! How long a run is must not show in anything but its length. So no structure is shaped by what could be inserted, and
//! partitions and arenas begin a page further in the round of banks than the one before, however large they are: banks are met in
//! the same phases whatever room there is.

use super::structures::{Arena, Element};
use graven_base::config::ConfigError;
use graven_base::memory::{Addr, LINE_BYTES};
use graven_machine::workload::{Extent, Request, Sharing};

/// Partitions begin on a page, so that no two share a media line.
const PAGE_BYTES: u64 = 4096;

/// Addresses this far apart lie in the same bank, up to 64 banks over all channels.
const ROUND_BYTES: u64 = 64 * PAGE_BYTES;

/// Elements that each thread has at least: the fewest that can be swapped.
const POPULATION_MIN: u64 = 2;

/// By how much insertions may be ahead of removals, in percent of all operations.
const CHANCE_PERCENT: u32 = 5;

/// A workload's parameters, checked, and the population they amount to.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) workload: &'static str,
    pub(super) request: Request,
    pub(super) element: Element,
    /// Elements in the initial structures, per thread.
    pub(super) population: u64,
}

/// Partitions that have been laid out, and how much of PM they use.
pub(super) struct Placed<T> {
    pub(super) parts: Vec<T>,
    pub(super) extent: Extent,
}

/// Share of one partition.
#[derive(Clone, Debug)]
pub(super) struct Share {
    /// The threads that work on it.
    pub(super) threads: std::ops::Range<u32>,
    /// Elements that there are at first.
    pub(super) population: u64,
    /// Elements that there may be at most, by thread: the population and what the thread may
    /// insert.
    pub(super) elements_max: Vec<u64>,
}

impl Share {
    /// Elements that there may be at most.
    pub(super) fn total_max(&self) -> u64 {
        self.elements_max.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }
}

impl Plan {
    /// The plan of `workload`, one of whose elements adds `bytes_per_element(element)` to the
    /// footprint.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] if the shares of operations exceed 100 %, or the footprint
    /// does not hold two elements per thread.
    pub(super) fn new(
        workload: &'static str,
        request: &Request,
        bytes_per_element: impl Fn(Element) -> u64,
    ) -> Result<Plan, ConfigError> {
        assert!(request.threads > 0, "a request has a thread");
        let config = &request.config;
        if config.insert_percent + config.remove_percent > 100 {
            let why = format!(
                "with workload.insert_percent = {} it exceeds 100 %; at most {} would do",
                config.insert_percent,
                100 - config.insert_percent
            );
            let value = config.remove_percent.to_string();
            return Err(refusal(workload, "workload.remove_percent", value, why));
        }
        let element = Element::of_bytes(config.element_bytes.0)
            .updating(config.update_bytes.0)
            .of_kind(config.element_kind);
        let each = bytes_per_element(element);
        let population = config.footprint_bytes.0 / u64::from(request.threads) / each;
        if population < POPULATION_MIN {
            let enough = each * POPULATION_MIN * u64::from(request.threads);
            let why = format!(
                "an element of {} takes {each} B with its share of the structure, and each of {} threads needs {POPULATION_MIN}; \
                 at least {enough} B would do, or smaller workload.element_bytes, or fewer threads",
                config.element_bytes, request.threads
            );
            let value = config.footprint_bytes.to_string();
            return Err(refusal(workload, "workload.footprint_bytes", value, why));
        }
        Ok(Plan { workload, request: request.clone(), element, population })
    }

    /// Returns true if all threads work on one structure.
    pub(super) fn is_shared(&self) -> bool {
        self.request.config.sharing == Sharing::Shared
    }

    /// Index of the partition that `thread` works on.
    pub(super) fn part_of(&self, thread: u32) -> usize {
        if self.is_shared() { 0 } else { thread as usize }
    }

    /// Lays out every partition by `place`.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] if they take more than the request offers.
    pub(super) fn lay_out<T>(
        &self,
        place: impl FnMut(&mut Layout, &Share) -> T,
    ) -> Result<Placed<T>, ConfigError> {
        let threads = threads_of_parts(&self.request).into_iter();
        let shares: Vec<Share> = threads.map(|threads| self.share(threads)).collect();
        let placed = place_parts(&self.request, &shares, place);
        let allocated_percent = self.allocated_percent();
        let of_plan = |placed: Placed<T>| {
            let extent = Extent { allocated_percent, ..placed.extent };
            Placed { extent, ..placed }
        };
        placed.map(of_plan).map_err(|end| {
            let why = format!(
                "with room for what {} transactions may insert, the structures end at {end}, but PM for programs at {}; \
                 lower it, or workload.element_bytes, or the number of transactions, or raise pm.capacity_bytes",
                self.request.transactions, self.request.end
            );
            let value = self.request.config.footprint_bytes.to_string();
            refusal(self.workload, "workload.footprint_bytes", value, why)
        })
    }

    /// Share of the elements that transactions may insert by which their number grows, at most.
    /// Blocks of removed elements are used again; by chance insertions come first.
    fn allocated_percent(&self) -> u32 {
        let config = &self.request.config;
        match (config.insert_percent, config.remove_percent) {
            (inserted, 0) => inserted,
            (inserted, removed) => (inserted.saturating_sub(removed) + CHANCE_PERCENT).min(100),
        }
    }

    /// Bytes of an element that are stored where keys are updated and none is inserted or removed.
    pub(super) fn updated_bytes(&self) -> Option<u64> {
        let config = &self.request.config;
        let only_updates = config.insert_percent == 0 && config.remove_percent == 0;
        only_updates.then_some(self.element.updated_bytes())
    }

    fn share(&self, threads: std::ops::Range<u32>) -> Share {
        let operations = u64::from(self.request.config.operations_per_transaction);
        let elements_max = threads
            .clone()
            .map(|t| self.request.transactions_of(t).saturating_mul(operations))
            // A thread whose keys are all removed inserts one, whatever the shares of operations.
            .map(|inserts| self.population.saturating_add(inserts).saturating_add(1))
            .collect();
        let population = self.population.saturating_mul(threads.len() as u64);
        Share { threads, population, elements_max }
    }
}

/// The threads of each partition: all of them in one if they share, else each in its own.
pub(super) fn threads_of_parts(request: &Request) -> Vec<std::ops::Range<u32>> {
    let together = match request.config.sharing {
        Sharing::Shared => request.threads,
        Sharing::Private => 1,
    };
    let firsts = (0..request.threads).step_by(together as usize);
    firsts.map(|first| first..first + together).collect()
}

/// Places one partition for each of `shares`, each from a page on.
///
/// # Errors
/// Where they would end, if that is beyond what the request offers.
pub(super) fn place_parts<S, T>(
    request: &Request,
    shares: &[S],
    mut place: impl FnMut(&mut Layout, &S) -> T,
) -> Result<Placed<T>, Addr> {
    let mut layout = Layout::from(request.start);
    let parts = shares
        .iter()
        .map(|share| {
            layout.align(PAGE_BYTES);
            let start = layout.next;
            let part = place(&mut layout, share);
            layout.pass_by(start);
            part
        })
        .collect();
    if layout.next > request.end.0 {
        Err(Addr(layout.next))
    } else {
        Ok(Placed { parts, extent: layout.extent() })
    }
}

/// A refusal of `value` for `key` by `workload`.
pub(super) fn refusal(workload: &str, key: &str, value: String, why: String) -> ConfigError {
    ConfigError::Inconsistent {
        origin: format!("workload {workload}"),
        key: key.into(),
        value,
        why,
    }
}

/// Hands out addresses, upwards. Sizes saturate, so that what is too large to address is refused as
/// what is too large to fit.
pub(super) struct Layout {
    first: u64,
    next: u64,
    /// Bytes of arenas, and how many there are.
    block_bytes: u64,
    arenas: u64,
}

impl Layout {
    /// From `start` on (or 1: no structure lies at address 0).
    pub(super) fn from(start: Addr) -> Self {
        let first = start.0.max(1);
        Layout { first, next: first, block_bytes: 0, arenas: 0 }
    }

    /// Extent of what was handed out. All blocks are allocated, as far as the layout knows.
    pub(super) fn extent(&self) -> Extent {
        Extent {
            fixed_bytes: (self.next - self.first).saturating_sub(self.block_bytes),
            block_bytes: self.block_bytes,
            arenas: self.arenas,
            allocated_percent: 100,
            updated_bytes: None,
        }
    }

    /// One past the last byte that was handed out.
    pub(super) fn end(&self) -> Addr {
        Addr(self.next)
    }

    /// A partition or arena that began there has ended: the next one begins a page further in the round of banks. Those that are
    /// smaller than a round follow each other.
    fn pass_by(&mut self, start: u64) {
        let bytes = self.next.saturating_sub(start);
        if bytes >= ROUND_BYTES {
            let rounds = bytes.div_ceil(ROUND_BYTES);
            self.next = start.saturating_add(rounds.saturating_mul(ROUND_BYTES) + PAGE_BYTES);
        }
    }

    fn align(&mut self, bytes: u64) {
        self.next = self.next.checked_next_multiple_of(bytes).unwrap_or(u64::MAX);
    }

    /// The next `bytes` bytes, from a line on.
    pub(super) fn take(&mut self, bytes: u64) -> Addr {
        self.align(LINE_BYTES);
        let at = Addr(self.next);
        self.next = self.next.saturating_add(bytes);
        at
    }

    /// The same, for elements that are appended.
    pub(super) fn take_growing(&mut self, bytes: u64) -> Addr {
        self.grows_by(bytes);
        self.take(bytes)
    }

    fn grows_by(&mut self, bytes: u64) {
        self.block_bytes = self.block_bytes.saturating_add(bytes);
        self.arenas += 1;
    }

    /// An arena for as many blocks of each size: `(bytes, blocks)`.
    pub(super) fn arena<const N: usize>(&mut self, classes: [(u64, u64); N]) -> Arena {
        let header = self.take(Arena::HEADER_BYTES);
        let bytes = classes
            .iter()
            .fold(0u64, |sum, &(bytes, blocks)| sum.saturating_add(bytes.saturating_mul(blocks)));
        let start = self.take(0);
        self.next = self.next.saturating_add(bytes);
        self.grows_by(bytes);
        // A layout that ran out of addresses is refused as a whole; its arenas are never used.
        let start = Addr(start.0 / LINE_BYTES * LINE_BYTES);
        let end = Addr(self.next.max(start.0));
        self.pass_by(header.0);
        Arena::new(header, start, end, classes.map(|(bytes, _)| bytes))
    }
}
