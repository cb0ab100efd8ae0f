//! The cache hierarchy: private L1 and optional L2 per core, a shared inclusive LLC with a MESI
//! directory.
//!
//! Every level includes the ones above it, so a line that is cached anywhere is in the LLC, whose slot
//! records which cores have it. A slot marked writable belongs to exactly one core (E or M); otherwise
//! the sharers hold it in S. State changes happen at once, the access is charged the sum of the
//! latencies of the levels it visits. Lines that leave are reported as [`Eviction`]s, which the
//! simulation hands to the design before anything else happens.

use crate::caches::arrivals::Arrivals;
use crate::caches::tags::{Cache, DESIGN_BITS, DIRTY, Marks, Slot, WRITABLE};
use crate::config::{CoreConfig, CoreModel, FlushOrder, L1Config, L2Config, LlcConfig};
use crate::stats::Counters;
use graven_base::bits::ones;
use graven_base::config::Config;
use graven_base::host;
use graven_base::memory::LineAddr;
use graven_base::time::Cycle;
use rustc_hash::FxHashMap;

/// Result of an access. An access that hits is counted where it does; one that no cache can answer
/// is counted by the caller that finds out whether the line is on its way already: as a miss, which
/// has it fetched ([`Hierarchy::count_miss`]), or as one that joins a fetch
/// ([`Hierarchy::count_join`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The line is in the core's L1 now; the access took so long.
    Hit(Cycle),
    /// No cache has it: memory must be asked, which the miss reaches after so long.
    Miss(Cycle),
}

/// Use of a cache's tag port by another user than the cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TagPortUse {
    /// Number of the cache.
    pub cache: usize,
    /// From this cycle on.
    pub from: Cycle,
    /// One past its last.
    pub until: Cycle,
    /// Interval, in cycles, at which it lets accesses in; 0: at once.
    pub grain: Cycle,
}

/// Why a line leaves a core's L1, or loses the right to be written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Another line takes its place, in the L1 or the L2.
    Replaced,
    /// The LLC, which includes the L1s, needs its place.
    Inclusion,
    /// Another core takes it, to store to it.
    Invalidated {
        /// Core that takes it.
        by: u32,
    },
    /// Another core reads it. The line stays, clean and no longer writable; its changes are in the LLC.
    Downgraded {
        /// Core that reads it.
        by: u32,
    },
}

/// A line that left a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Out of a core's L1, or downgraded there.
    L1 {
        /// Whose.
        core: u32,
        /// The line.
        line: LineAddr,
        /// True if the L1 held changes.
        dirty: bool,
        /// The design's tag of the line there.
        tag: u8,
        /// Reason.
        cause: Cause,
    },
    /// Out of the LLC, hence out of all caches.
    Llc {
        /// The line.
        line: LineAddr,
        /// True if any cache held changes that memory has not.
        dirty: bool,
        /// The design's tag of its newest copy.
        tag: u8,
    },
}

/// A line has left a core's L1, or was downgraded there, which knew this of it.
fn left_l1(core: u32, line: LineAddr, was: Marks, cause: Cause) -> Eviction {
    Eviction::L1 { core, line, dirty: was.is_dirty(), tag: was.tag, cause }
}

/// A line has left the LLC; all caches together knew this of it.
fn left_llc(line: LineAddr, was: Marks) -> Eviction {
    Eviction::Llc { line, dirty: was.is_dirty(), tag: was.tag }
}

/// The private caches of a core.
#[derive(Clone, Debug)]
struct Private {
    l1: Cache,
    l2: Option<Cache>,
}

/// Cores that have the line in each slot of the LLC, by the number of the slot: a bit for each
/// core.
#[derive(Clone, Debug)]
enum Sharers {
    /// For up to eight cores: most machines then take little of the host's caches.
    Few(Vec<u8>),
    Many(Vec<u64>),
}

impl Sharers {
    fn new(slots: usize, cores: u32) -> Self {
        match cores {
            0..=8 => Sharers::Few(vec![0; slots]),
            _ => Sharers::Many(vec![0; slots]),
        }
    }

    #[inline]
    fn of(&self, slot: usize) -> u64 {
        match self {
            Sharers::Few(cores) => cores[slot].into(),
            Sharers::Many(cores) => cores[slot],
        }
    }

    #[inline]
    fn set(&mut self, slot: usize, to: u64) {
        match self {
            Sharers::Few(cores) => cores[slot] = to as u8,
            Sharers::Many(cores) => cores[slot] = to,
        }
    }

    #[inline]
    fn prefetch(&self, slot: usize) {
        match self {
            Sharers::Few(cores) => host::prefetch(&cores[slot]),
            Sharers::Many(cores) => host::prefetch(&cores[slot]),
        }
    }
}

/// All caches of the machine.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    cores: Vec<Private>,
    llc: Cache,
    sharers: Sharers,
    l1_latency: Cycle,
    l2_latency: Cycle,
    llc_latency: Cycle,
    evictions: Vec<Eviction>,
    report_l1: bool,
    tag_port: TagPortUse,
    /// Lines on their way to each L1 of cores that do not wait for them: out-of-order ones.
    arrivals: Vec<Arrivals>,
}

impl Hierarchy {
    /// The caches of a configuration, empty.
    pub fn new(config: &Config) -> Self {
        let (l1, l2, llc) =
            (config.get::<L1Config>(), config.get::<L2Config>(), config.get::<LlcConfig>());
        let (cores, model) = (config.get::<CoreConfig>().count, config.get::<CoreConfig>().model);
        let going_on = if model == CoreModel::OutOfOrder { cores as usize } else { 0 };
        let private = || Private {
            l1: Cache::new(l1.bytes.0, l1.ways),
            l2: (l2.bytes.0 > 0).then(|| Cache::new(l2.bytes.0, l2.ways)),
        };
        let llc_cache = Cache::new(llc.bytes.0, llc.ways);
        Self {
            cores: (0..cores).map(|_| private()).collect(),
            sharers: Sharers::new(llc_cache.slots(), cores),
            llc: llc_cache,
            l1_latency: l1.latency_cycles.into(),
            l2_latency: if l2.bytes.0 > 0 { l2.latency_cycles.into() } else { 0 },
            llc_latency: llc.latency_cycles.into(),
            evictions: Vec::new(),
            report_l1: false,
            tag_port: TagPortUse::default(),
            arrivals: vec![Arrivals::default(); going_on],
        }
    }

    /// Sets the user of a cache's tag port, instead of any before.
    pub fn use_tag_port(&mut self, by: TagPortUse) {
        self.tag_port = by;
    }

    /// Cycles that an access of a core that begins now waits for tag ports on its way.
    #[inline]
    pub fn tag_port_wait(&self, core: u32, access: Access, now: Cycle) -> Cycle {
        if !self.is_tag_port_used(now) {
            return 0;
        }
        let (Access::Hit(latency) | Access::Miss(latency)) = access;
        let TagPortUse { cache, from, until, grain } = self.tag_port;
        let l1 = core as usize * self.levels();
        let asks_l2 = self.levels() == 2 && latency > self.l1_latency;
        let asks_llc = latency >= self.miss_path_cycles();
        let asks = cache == l1
            || (cache == l1 + 1 && asks_l2)
            || (cache == self.cache_count() - 1 && asks_llc);
        if !asks || grain == 0 || now < from {
            return 0;
        }
        (grain - (now - from) % grain).min(until - now)
    }

    /// Returns true if accesses that begin now may have to wait for a tag port.
    #[inline]
    pub fn is_tag_port_used(&self, now: Cycle) -> bool {
        now < self.tag_port.until
    }

    /// Turns reports of lines that leave an L1 on or off; off by default, for speed.
    pub fn report_l1_evictions(&mut self, on: bool) {
        self.report_l1 = on;
    }

    /// Time from a core through all levels: what a miss spends before it reaches memory, and the least
    /// that a store needs to fall through the hierarchy.
    pub fn miss_path_cycles(&self) -> Cycle {
        self.l1_latency + self.l2_latency + self.llc_latency
    }

    /// Ways of an L1.
    pub fn l1_ways(&self) -> usize {
        self.cores[0].l1.ways()
    }

    /// Sets of an L1.
    pub fn l1_sets(&self) -> usize {
        self.cores[0].l1.sets()
    }

    /// The set of a line in an L1.
    pub fn l1_set(&self, line: LineAddr) -> usize {
        self.cores[0].l1.set(line)
    }

    /// Latency of an L1 hit.
    pub fn l1_latency(&self) -> Cycle {
        self.l1_latency
    }

    /// The next line that left, oldest first.
    #[inline]
    pub fn take_eviction(&mut self) -> Option<Eviction> {
        if self.evictions.is_empty() { None } else { Some(self.evictions.remove(0)) }
    }

    /// Returns true if a line has left and was not taken ([`Hierarchy::take_eviction`]).
    #[inline]
    pub fn has_evictions(&self) -> bool {
        !self.evictions.is_empty()
    }

    /// Marks a line dirty that the core can write to.
    #[inline]
    pub fn mark_dirty(&mut self, core: u32, line: LineAddr) {
        let slot = self.cores[core as usize].l1.find(line).expect("a writable line is in the L1");
        self.mark_slot_dirty(core, line, slot);
    }

    /// The same of a line that is known to be in this slot of the core's L1.
    #[inline(always)]
    pub fn mark_slot_dirty(&mut self, core: u32, line: LineAddr, slot: Slot) {
        let l1 = &mut self.cores[core as usize].l1;
        assert!(l1.is_at(line, slot), "a writable line is in the L1");
        let state = l1.state_mut(slot);
        assert!(*state & WRITABLE != 0, "a store needs the line exclusively");
        *state |= DIRTY;
    }

    /// The slot of the core's L1 in which it could store to the line without asking anyone.
    #[inline]
    pub fn writable_slot(&self, core: u32, line: LineAddr) -> Option<Slot> {
        let l1 = &self.cores[core as usize].l1;
        l1.find(line).filter(|&slot| l1.state(slot) & WRITABLE != 0)
    }

    /// The slot of the core's L1 in which it could load from the line.
    #[inline]
    pub fn readable_slot(&self, core: u32, line: LineAddr) -> Option<Slot> {
        self.cores[core as usize].l1.find(line)
    }

    /// A core loads from a line in its L1, which is in this slot.
    #[inline]
    pub fn read_slot(&mut self, core: u32, line: LineAddr, slot: Slot, counters: &mut Counters) {
        self.cores[core as usize].l1.touch_slot(line, slot);
        counters.l1_hits += 1;
    }

    /// A core stores to a line in its L1, which it can write to in this slot. The caller counts the hit.
    #[inline]
    pub fn write_slot(&mut self, core: u32, line: LineAddr, slot: Slot) {
        let l1 = &mut self.cores[core as usize].l1;
        l1.touch_slot(line, slot);
        *l1.state_mut(slot) |= DIRTY;
    }

    /// One access of a core. A write leaves the line dirty in its L1.
    #[inline]
    pub fn access(
        &mut self,
        core: u32,
        line: LineAddr,
        write: bool,
        counters: &mut Counters,
    ) -> Access {
        let l1 = &mut self.cores[core as usize].l1;
        if let Some(slot) = l1.touch(line) {
            let state = l1.state_mut(slot);
            if !write || *state & WRITABLE != 0 {
                if write {
                    *state |= DIRTY;
                }
                counters.l1_hits += 1;
                return Access::Hit(self.l1_latency);
            }
            counters.l1_hits += 1;
            return self.upgrade(core, line, counters);
        }
        self.access_beyond_l1(core, line, write, counters)
    }

    /// The access of an operation that has been counted already, when it waited for the line before: what it does to copies
    /// in other caches is counted, and where it hits is not.
    pub fn access_again(
        &mut self,
        core: u32,
        line: LineAddr,
        write: bool,
        counters: &mut Counters,
    ) -> Access {
        let c = &*counters;
        let before = [c.l1_hits, c.l1_misses, c.l2_hits, c.l2_misses, c.llc_hits];
        let access = self.access(core, line, write, counters);
        let c = counters;
        [c.l1_hits, c.l1_misses, c.l2_hits, c.l2_misses, c.llc_hits] = before;
        access
    }

    /// When a line comes that an outer cache sends to a core's L1 now.
    #[inline]
    pub fn arrival(&self, core: u32, line: LineAddr, now: Cycle) -> Option<Cycle> {
        self.arrivals.get(core as usize)?.of(line, now)
    }

    /// A core has been told that a line comes to its L1 at a time.
    #[inline]
    pub fn expect(&mut self, core: u32, line: LineAddr, at: Cycle, now: Cycle) {
        if let Some(arrivals) = self.arrivals.get_mut(core as usize) {
            arrivals.put(line, at, now);
        }
    }

    /// Result of an access of a core to a line that is known to be in no cache.
    pub fn miss(&self) -> Access {
        Access::Miss(self.miss_path_cycles())
    }

    /// Counts an access of a core that has its line fetched.
    #[inline]
    pub fn count_miss(&self, counters: &mut Counters) {
        counters.l1_misses += 1;
        counters.l2_misses += u64::from(self.has_l2());
        counters.llc_misses += 1;
    }

    /// Counts an access of a core to a line that is being fetched. What its own core has asked for is found in the miss registers
    /// beside the L1; what another has asked for is found beside the LLC.
    pub fn count_join(&self, own: bool, counters: &mut Counters) {
        if own {
            counters.l1_joins += 1;
            return;
        }
        counters.l1_misses += 1;
        counters.l2_misses += u64::from(self.has_l2());
        counters.llc_joins += 1;
    }

    /// Returns true if there is a level between L1 and LLC.
    #[inline]
    pub fn has_l2(&self) -> bool {
        self.cores[0].l2.is_some()
    }

    fn upgrade(&mut self, core: u32, line: LineAddr, counters: &mut Counters) -> Access {
        counters.upgrades += 1;
        let slot = self.llc.touch(line).expect("the LLC includes every L1");
        let snoop = self.invalidate_others(slot, core, line, counters);
        self.own(slot, core);
        let private = &mut self.cores[core as usize];
        if let Some(l2) = &mut private.l2 {
            let at = l2.find(line).expect("the L2 includes the L1");
            *l2.state_mut(at) |= WRITABLE;
        }
        let at = private.l1.find(line).expect("it was just found");
        *private.l1.state_mut(at) |= WRITABLE | DIRTY;
        Access::Hit(self.miss_path_cycles() + snoop)
    }

    fn access_beyond_l1(
        &mut self,
        core: u32,
        line: LineAddr,
        write: bool,
        counters: &mut Counters,
    ) -> Access {
        self.llc.prefetch(line);
        if let Some(l2) = &mut self.cores[core as usize].l2
            && let Some(slot) = l2.touch(line)
        {
            counters.l1_misses += 1;
            counters.l2_hits += 1;
            let marks = l2.marks(slot).inwards();
            let way = l2.way(line, slot);
            self.insert_l1(core, line, marks, way);
            if !write {
                return Access::Hit(self.l1_latency + self.l2_latency);
            }
            if marks.state == 0 {
                return self.upgrade(core, line, counters);
            }
            self.mark_dirty(core, line);
            return Access::Hit(self.l1_latency + self.l2_latency);
        }
        let Some(slot) = self.llc.touch(line) else { return self.miss() };
        counters.l1_misses += 1;
        counters.l2_misses += u64::from(self.has_l2());
        counters.llc_hits += 1;
        let snoop = if write {
            let snoop = self.invalidate_others(slot, core, line, counters);
            self.own(slot, core);
            snoop
        } else {
            self.share(slot, core, line, counters)
        };
        let marks = self.llc.marks(slot).inwards();
        self.insert_private(core, line, marks, slot);
        if write {
            self.mark_dirty(core, line);
        }
        Access::Hit(self.miss_path_cycles() + snoop)
    }

    /// Puts a line that memory has delivered into all levels for one core, exclusively.
    pub fn fill(&mut self, core: u32, line: LineAddr) {
        let fresh = Marks { state: WRITABLE, tag: 0 };
        let (slot, victim) = self.llc.insert(line, fresh, 0);
        if let Some(victim) = victim {
            let sharers = self.sharers(slot);
            let mut was = victim.was;
            for sharer in ones(sharers) {
                was = self.drop_private(sharer, victim.line, Cause::Inclusion).over(was);
            }
            assert!(victim.line != line, "a line does not displace itself");
            self.evictions.push(left_llc(victim.line, was));
        }
        self.set_sharers(slot, 1 << core);
        self.insert_private(core, line, fresh, slot);
    }

    /// The line that would leave the LLC if memory delivered another one for a core now; `None` if there is room. What is known of
    /// the line that leaves the core is brought near, as far as the host is concerned.
    #[inline]
    pub fn next_victim(&self, core: u32, line: LineAddr) -> Option<LineAddr> {
        let private = &self.cores[core as usize];
        if let Some((leaves, way)) = private.l2.as_ref().unwrap_or(&private.l1).next_victim(line) {
            let slot = self.llc.slot_in(leaves, way);
            self.llc.prefetch_slot(slot);
            self.sharers.prefetch(self.llc.number(slot));
        }
        let (leaves, _) = self.llc.next_victim(line)?;
        Some(leaves)
    }

    /// Returns true if any cache has the line.
    pub fn contains(&self, line: LineAddr) -> bool {
        self.llc.find(line).is_some()
    }

    /// Returns true if a core's L1 has the line.
    #[inline]
    pub fn in_l1(&self, core: u32, line: LineAddr) -> bool {
        self.cores[core as usize].l1.find(line).is_some()
    }

    /// Returns true if private caches of other cores have the line.
    pub fn in_others(&self, core: u32, line: LineAddr) -> bool {
        self.llc.find(line).is_some_and(|slot| self.sharers(slot) & !(1 << core) != 0)
    }

    /// The cores that have the line in a slot of the LLC.
    #[inline]
    fn sharers(&self, slot: Slot) -> u64 {
        self.sharers.of(self.llc.number(slot))
    }

    #[inline]
    fn set_sharers(&mut self, slot: Slot, cores: u64) {
        self.sharers.set(self.llc.number(slot), cores);
    }

    fn own(&mut self, slot: Slot, core: u32) {
        assert!(self.sharers(slot) & !(1 << core) == 0, "an owner is alone");
        self.set_sharers(slot, 1 << core);
        *self.llc.state_mut(slot) |= WRITABLE;
    }

    /// Checks an invariant of the directory: a line that may be written has exactly one owner.
    #[inline]
    fn check_owner(&self, slot: Slot) {
        let is_writable = self.llc.state(slot) & WRITABLE != 0;
        let owners = self.sharers(slot).count_ones();
        assert!(
            !is_writable || owners == 1,
            "{} is writable and has {owners} owners",
            self.llc.line_at(slot)
        );
    }

    /// Adds a reader; an owner elsewhere gives up its exclusive right and its changes.
    fn share(&mut self, slot: Slot, core: u32, line: LineAddr, counters: &mut Counters) -> Cycle {
        let others = self.sharers(slot) & !(1 << core);
        let mut snoop = 0;
        if others == 0 {
            *self.llc.state_mut(slot) |= WRITABLE;
        } else if self.llc.state(slot) & WRITABLE != 0 {
            let owner = others.trailing_zeros();
            counters.snoops += 1;
            snoop = self.l1_latency + self.l2_latency;
            let had = self.downgrade(owner, line, core);
            *self.llc.state_mut(slot) &= !WRITABLE;
            self.llc.take_in(slot, had);
        }
        self.set_sharers(slot, others | 1 << core);
        self.check_owner(slot);
        snoop
    }

    /// An owner keeps its copy but may no longer write it; returns what it had changed.
    fn downgrade(&mut self, core: u32, line: LineAddr, by: u32) -> Marks {
        let private = &mut self.cores[core as usize];
        let mut had = Marks::default();
        if self.report_l1
            && let Some(slot) = private.l1.find(line)
        {
            let cause = Cause::Downgraded { by };
            self.evictions.push(left_l1(core, line, private.l1.marks(slot), cause));
        }
        for cache in std::iter::once(&mut private.l1).chain(private.l2.as_mut()) {
            if let Some(slot) = cache.find(line) {
                if had.is_dirty() {
                    *cache.tag_mut(slot) = had.tag;
                }
                had = had.over(cache.marks(slot));
                *cache.state_mut(slot) &= !(WRITABLE | DIRTY | DESIGN_BITS);
            }
        }
        assert!(had.state & WRITABLE != 0, "only an owner is asked to give up its right to {line}");
        had
    }

    fn invalidate_others(
        &mut self,
        slot: Slot,
        core: u32,
        line: LineAddr,
        counters: &mut Counters,
    ) -> Cycle {
        let sharers = self.sharers(slot);
        let others = sharers & !(1 << core);
        if others == 0 {
            return 0;
        }
        for other in ones(others) {
            counters.snoops += 1;
            let had = self.drop_private(other, line, Cause::Invalidated { by: core });
            self.llc.take_in(slot, had);
        }
        self.set_sharers(slot, sharers & 1 << core);
        self.l1_latency + self.l2_latency
    }

    /// Takes a line out of a core's private caches and returns what they knew of it.
    fn drop_private(&mut self, core: u32, line: LineAddr, cause: Cause) -> Marks {
        let private = &mut self.cores[core as usize];
        let (mut had, mut was_there) = (Marks::default(), false);
        if let Some(was) = private.l1.remove(line) {
            (had, was_there) = (was, true);
            if self.report_l1 {
                self.evictions.push(left_l1(core, line, was, cause));
            }
        }
        if let Some(l2) = &mut private.l2 {
            let in_l2 = l2.remove(line);
            assert!(in_l2.is_some() || !was_there, "the L2 of core {core} includes its L1");
            (had, was_there) = (had.over(in_l2.unwrap_or_default()), in_l2.is_some());
        }
        assert!(was_there, "the directory says that core {core} has {line}");
        had
    }

    /// Puts a line that is in this slot of the LLC into a core's caches.
    fn insert_private(&mut self, core: u32, line: LineAddr, marks: Marks, slot: Slot) {
        let way = self.llc.way(line, slot);
        let private = &mut self.cores[core as usize];
        let Some(l2) = &mut private.l2 else { return self.insert_l1(core, line, marks, way) };
        let (slot, victim) = l2.insert(line, marks, way);
        let way = l2.way(line, slot);
        if let Some(victim) = victim {
            let mut had = victim.was;
            if let Some(in_l1) = private.l1.remove(victim.line) {
                had = in_l1.over(had);
                if self.report_l1 {
                    self.evictions.push(left_l1(core, victim.line, in_l1, Cause::Replaced));
                }
            }
            let in_llc = self.llc.slot_in(victim.line, victim.below);
            self.leave_core(core, victim.line, had, in_llc);
        }
        self.insert_l1(core, line, marks, way);
    }

    /// Puts a line into a core's L1 that is in this way of the next cache.
    fn insert_l1(&mut self, core: u32, line: LineAddr, marks: Marks, way: u8) {
        let private = &mut self.cores[core as usize];
        let (_, Some(victim)) = private.l1.insert(line, marks, way) else { return };
        if self.report_l1 {
            self.evictions.push(left_l1(core, victim.line, victim.was, Cause::Replaced));
        }
        match &mut private.l2 {
            Some(l2) => {
                let slot = l2.slot_in(victim.line, victim.below);
                assert!(l2.is_at(victim.line, slot), "the L2 includes the L1");
                l2.take_in(slot, victim.was);
            }
            None => {
                let slot = self.llc.slot_in(victim.line, victim.below);
                self.leave_core(core, victim.line, victim.was, slot);
            }
        }
    }

    /// A core has no copy of a line any more that is in this slot of the LLC; its changes go there.
    fn leave_core(&mut self, core: u32, line: LineAddr, had: Marks, slot: Slot) {
        assert!(self.llc.is_at(line, slot), "the LLC includes the private caches");
        let sharers = self.sharers(slot);
        assert!(sharers >> core & 1 == 1, "core {core} is known to have {line}");
        self.set_sharers(slot, sharers & !(1 << core));
        self.llc.take_in(slot, had);
        if had.state & WRITABLE != 0 {
            *self.llc.state_mut(slot) &= !WRITABLE;
        }
        self.check_owner(slot);
    }

    /// Evicts a line from a level and those inside it: 1 the L1s, 2 the L2s, 3 the LLC. Returns
    /// true if it was cached.
    pub fn evict(&mut self, line: LineAddr, level: u8) -> bool {
        let Some(slot) = self.llc.find(line) else { return false };
        for core in ones(self.sharers(slot)) {
            if level > 1 || self.cores[core as usize].l2.is_none() {
                let had = self.drop_private(core, line, Cause::Replaced);
                self.leave_core(core, line, had, slot);
                continue;
            }
            let private = &mut self.cores[core as usize];
            let Some(had) = private.l1.remove(line) else { continue };
            let l2 = private.l2.as_mut().expect("just seen");
            let at = l2.find(line).expect("the L2 includes the L1");
            l2.take_in(at, had);
            if self.report_l1 {
                self.evictions.push(left_l1(core, line, had, Cause::Replaced));
            }
        }
        if level > 2 {
            assert!(self.sharers(slot) == 0, "no core has a line that leaves the LLC");
            let was = self.llc.remove(line).expect("it was just found");
            self.evictions.push(left_llc(line, was));
        }
        true
    }

    /// The design's tag of a line's newest copy: the innermost one of the core that may write to it, or the LLC's.
    pub fn tag(&self, line: LineAddr) -> Option<u8> {
        let slot = self.llc.find(line)?;
        if self.llc.state(slot) & WRITABLE == 0 {
            return Some(self.llc.tag(slot));
        }
        let private = &self.cores[self.sharers(slot).trailing_zeros() as usize];
        let innermost = |cache: &Cache| cache.find(line).map(|at| cache.tag(at));
        innermost(&private.l1).or_else(|| private.l2.as_ref().and_then(innermost))
    }

    /// Sets the design's tag of a line in a core's L1, which has it.
    pub fn set_tag(&mut self, core: u32, line: LineAddr, tag: u8) {
        let l1 = &mut self.cores[core as usize].l1;
        let slot = l1.find(line);
        let slot = slot.unwrap_or_else(|| {
            panic!("the L1 of core {core} does not have {line}, whose tag is to be set")
        });
        *l1.tag_mut(slot) = tag;
    }

    /// Returns true if some cache holds changes of a line.
    pub fn is_dirty(&self, line: LineAddr) -> bool {
        let dirty = |cache: &Cache| cache.find(line).is_some_and(|at| cache.state(at) & DIRTY != 0);
        let Some(slot) = self.llc.find(line) else { return false };
        let private = |core: u32| {
            let private = &self.cores[core as usize];
            dirty(&private.l1) || private.l2.as_ref().is_some_and(dirty)
        };
        dirty(&self.llc) || ones(self.sharers(slot)).any(private)
    }

    /// Marks a line clean in all caches, as a write-back without eviction does (clwb). Returns how long
    /// its content takes from the innermost dirty copy to memory; `None` if no copy was dirty.
    pub fn clean(&mut self, line: LineAddr) -> Option<Cycle> {
        let slot = self.llc.find(line)?;
        let mut delay = None;
        if self.llc.state(slot) & DIRTY != 0 {
            delay = Some(self.llc_latency);
        }
        for core in ones(self.sharers(slot)) {
            let private = &mut self.cores[core as usize];
            let mut had = Marks::default();
            if let Some(at) = private.l1.find(line) {
                had = private.l1.marks(at);
                if had.is_dirty() {
                    delay = Some(self.llc_latency + self.l2_latency + self.l1_latency);
                }
                private.l1.wash(at);
            }
            if let Some(l2) = &mut private.l2
                && let Some(at) = l2.find(line)
            {
                if l2.state(at) & DIRTY != 0 {
                    delay = delay.max(Some(self.llc_latency + self.l2_latency));
                }
                l2.take_in(at, had);
                had = l2.marks(at);
                l2.wash(at);
            }
            self.llc.take_in(slot, had);
        }
        self.llc.wash(slot);
        delay
    }

    /// Number of caches, for scans: each core's L1 and L2, the LLC last.
    pub fn cache_count(&self) -> usize {
        self.cores.len() * self.levels() + 1
    }

    fn levels(&self) -> usize {
        1 + usize::from(self.cores[0].l2.is_some())
    }

    /// Cache number `index` (0..[`Self::cache_count`]).
    pub fn cache(&self, index: usize) -> &Cache {
        let (core, level) = (index / self.levels(), index % self.levels());
        match self.cores.get(core) {
            None => &self.llc,
            Some(private) if level == 0 => &private.l1,
            Some(private) => {
                private.l2.as_ref().expect("levels counts the L2 only if there is one")
            }
        }
    }

    /// The same, to change design bits.
    pub fn cache_mut(&mut self, index: usize) -> &mut Cache {
        let (core, level) = (index / self.levels(), index % self.levels());
        match self.cores.get_mut(core) {
            None => &mut self.llc,
            Some(private) if level == 0 => &mut private.l1,
            Some(private) => {
                private.l2.as_mut().expect("levels counts the L2 only if there is one")
            }
        }
    }

    /// Number of lines of which some cache holds changes.
    pub fn dirty_count(&self) -> u64 {
        let is_dirty_in = |cache: &Cache, line| {
            cache.find(line).is_some_and(|slot| cache.state(slot) & DIRTY != 0)
        };
        let in_llc = self.llc.dirty_in(0..self.llc.slots()).count();
        let further_in = self.cores.iter().map(|private| {
            let l2 = private.l2.as_ref();
            let in_l2 = l2.map_or(0, |l2| {
                let dirty = l2.dirty_in(0..l2.slots());
                dirty.filter(|&(_, line)| !is_dirty_in(&self.llc, line)).count()
            });
            let dirty = private.l1.dirty_in(0..private.l1.slots());
            let further_out =
                |line| is_dirty_in(&self.llc, line) || l2.is_some_and(|l2| is_dirty_in(l2, line));
            in_l2 + dirty.filter(|&(_, line)| !further_out(line)).count()
        });
        (in_llc + further_in.sum::<usize>()) as u64
    }

    /// Lines of which some cache holds changes, each once, in the order in which the caches are written when power fails; true
    /// beside those whose content comes from an L1.
    pub fn dirty_in_flush_order(&self, order: FlushOrder) -> Vec<(LineAddr, bool)> {
        let levels = self.levels();
        // The LLC is the outermost, and the last by number.
        let level =
            |index: usize| if index == self.cache_count() - 1 { levels } else { index % levels };
        let mut innermost = FxHashMap::default();
        for index in 0..self.cache_count() {
            for (_, line) in self.cache(index).dirty_in(0..self.cache(index).slots()) {
                let at = (level(index), index);
                innermost.entry(line).and_modify(|old| *old = at.min(*old)).or_insert(at);
            }
        }
        let mut lines: Vec<_> = innermost.into_iter().map(|(line, at)| (at, line)).collect();
        lines.sort_unstable();
        if order == FlushOrder::OuterFirst {
            lines.sort_by_key(|&((level, _), _)| std::cmp::Reverse(level));
        }
        lines.into_iter().map(|((level, _), line)| (line, level == 0)).collect()
    }

    /// Every line of which some cache holds changes, each once, in a fixed order.
    pub fn dirty_lines(&self) -> Vec<LineAddr> {
        let mut lines: Vec<LineAddr> = (0..self.cache_count())
            .flat_map(|i| self.cache(i).dirty_in(0..self.cache(i).slots()).map(|(_, line)| line))
            .collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(settings: &[(&str, &str)]) -> Hierarchy {
        let mut config = crate::registry::Registry::new().defaults();
        for (key, value) in settings {
            config.set(key, value).expect("a valid setting");
        }
        crate::config::validate(&config).expect("a valid configuration");
        Hierarchy::new(&config)
    }

    const LINE: LineAddr = LineAddr(5);

    #[test]
    fn accesses_wait_for_a_tag_port_on_their_way() {
        let mut caches = hierarchy(&[]);
        let (hit, llc_hit, miss) = (Access::Hit(4), Access::Hit(44), Access::Miss(44));
        let waits = |caches: &Hierarchy, access, now| caches.tag_port_wait(1, access, now);
        assert_eq!(waits(&caches, miss, 100), 0, "nobody uses one");
        let llc = caches.cache_count() - 1;
        caches.use_tag_port(TagPortUse { cache: llc, from: 100, until: 164, grain: 16 });
        assert_eq!(
            [99, 100, 107, 116, 163, 164].map(|at| waits(&caches, miss, at)),
            [0, 16, 9, 16, 1, 0]
        );
        assert_eq!((waits(&caches, llc_hit, 107), waits(&caches, hit, 107)), (9, 0));
        caches.use_tag_port(TagPortUse { cache: 2, from: 100, until: 150, grain: 64 });
        assert_eq!([hit, miss].map(|access| waits(&caches, access, 120)), [30, 30], "core 1's L1");
        assert_eq!(caches.tag_port_wait(0, hit, 120), 0, "another core's");
        caches.use_tag_port(TagPortUse { cache: 3, from: 100, until: 150, grain: 1 });
        assert_eq!([hit, Access::Hit(16)].map(|access| waits(&caches, access, 120)), [0, 1]);
    }

    #[test]
    fn each_level_adds_its_latency() {
        let mut caches = hierarchy(&[]);
        let mut c = Counters::default();
        assert_eq!(caches.access(0, LINE, false, &mut c), Access::Miss(4 + 12 + 28));
        caches.fill(0, LINE);
        assert_eq!(caches.access(0, LINE, false, &mut c), Access::Hit(4));
        for i in 1..=8 {
            let other = LineAddr(5 + i * 64);
            caches.access(0, other, false, &mut c);
            caches.fill(0, other);
        }
        assert_eq!(
            caches.access(0, LINE, false, &mut c),
            Access::Hit(4 + 12),
            "evicted from the L1 only"
        );
        assert_eq!((c.l1_hits, c.l1_misses, c.l2_hits, c.llc_misses), (1, 1, 1, 0));
    }

    #[test]
    fn a_store_takes_the_line_from_others_and_its_changes_are_not_lost() {
        let mut caches = hierarchy(&[]);
        let mut c = Counters::default();
        caches.fill(0, LINE);
        assert_eq!(caches.access(0, LINE, true, &mut c), Access::Hit(4), "exclusive after a fill");
        assert_eq!(caches.access(1, LINE, false, &mut c), Access::Hit(44 + 16), "probes the owner");
        assert_eq!([0, 1].map(|core| caches.writable_slot(core, LINE)), [None, None]);
        assert_eq!(
            caches.access(2, LINE, false, &mut c),
            Access::Hit(44),
            "shared already: no probe"
        );
        assert_eq!(
            caches.access(1, LINE, true, &mut c),
            Access::Hit(44 + 16),
            "invalidates two copies"
        );
        assert!(caches.writable_slot(1, LINE).is_some());
        assert_eq!(caches.access(0, LINE, false, &mut c), Access::Hit(44 + 16));
        assert_eq!(caches.dirty_lines(), [LINE]);
        assert_eq!(caches.clean(LINE), Some(28), "the changes had come down to the LLC");
        assert_eq!(caches.clean(LINE), None);
    }

    #[test]
    fn an_evicted_line_takes_the_private_copies_and_their_changes_along() {
        let tiny = [
            ("core.count", "2"),
            ("l1.bytes", "128"),
            ("l1.ways", "2"),
            ("l2.bytes", "128"),
            ("l2.ways", "2"),
            ("llc.bytes", "256"),
            ("llc.ways", "4"),
        ];
        let mut caches = hierarchy(&tiny);
        caches.report_l1_evictions(true);
        let mut c = Counters::default();
        caches.fill(0, LINE);
        caches.access(0, LINE, true, &mut c);
        for i in 0..4 {
            let expected = (i == 3).then_some(LINE);
            assert_eq!(
                caches.next_victim(1, LineAddr(100 + i)),
                expected,
                "there is room for three more"
            );
            caches.fill(1, LineAddr(100 + i));
        }
        let mut left = Vec::new();
        while let Some(eviction) = caches.take_eviction() {
            left.push(eviction);
        }
        assert!(
            left.contains(&Eviction::L1 {
                core: 0,
                line: LINE,
                dirty: true,
                tag: 0,
                cause: Cause::Inclusion
            }),
            "{left:?}"
        );
        assert!(left.contains(&Eviction::Llc { line: LINE, dirty: true, tag: 0 }), "{left:?}");
        assert!(!caches.contains(LINE));
    }

    #[test]
    fn tags_travel_inwards_with_lines_and_outwards_with_changes() {
        for l2 in ["256 KB", "0"] {
            let mut caches = hierarchy(&[("l2.bytes", l2)]);
            caches.report_l1_evictions(true);
            let mut c = Counters::default();
            let mut access = |caches: &mut Hierarchy, core, write| {
                _ = caches.access(core, LINE, write, &mut c);
            };
            let llc = caches.cache_count() - 1;
            let in_llc = |caches: &Hierarchy| {
                let llc = caches.cache(llc);
                llc.find(LINE).map(|slot| llc.tag(slot))
            };
            assert_eq!(caches.tag(LINE), None);
            caches.fill(0, LINE);
            assert_eq!(caches.tag(LINE), Some(0), "memory has no tags");
            access(&mut caches, 0, true);
            caches.set_tag(0, LINE, 7);
            assert_eq!((caches.tag(LINE), in_llc(&caches)), (Some(7), Some(0)));

            access(&mut caches, 1, false);
            let left = caches.take_eviction();
            assert!(
                matches!(left, Some(Eviction::L1 { core: 0, tag: 7, dirty: true, .. })),
                "{left:?}"
            );
            assert_eq!(in_llc(&caches), Some(7), "a downgrade hands the changes over");
            access(&mut caches, 1, true);
            assert_eq!(caches.tag(LINE), Some(7), "the reader had it with the line");
            caches.set_tag(1, LINE, 9);
            access(&mut caches, 0, true);
            assert_eq!((caches.tag(LINE), in_llc(&caches)), (Some(9), Some(9)), "taken by a store");

            caches.set_tag(0, LINE, 11);
            caches.evict(LINE, 1);
            assert_eq!(caches.tag(LINE), Some(11), "out of the L1 alone");
            access(&mut caches, 0, false);
            assert_eq!(caches.tag(LINE), Some(11), "and back");
            assert!(caches.clean(LINE).is_some());
            let tags = (caches.tag(LINE), in_llc(&caches));
            assert_eq!(tags, (Some(0), Some(0)), "what is written back is as memory has it");
            access(&mut caches, 0, true);
            caches.set_tag(0, LINE, 13);
            while caches.take_eviction().is_some() {}
            caches.evict(LINE, 3);
            let left: Vec<Eviction> = std::iter::from_fn(|| caches.take_eviction()).collect();
            assert_eq!(left.last(), Some(&Eviction::Llc { line: LINE, dirty: true, tag: 13 }));
        }
    }

    #[test]
    fn the_tag_of_a_clean_copy_is_lost_with_it() {
        let mut caches = hierarchy(&[]);
        caches.fill(0, LINE);
        caches.set_tag(0, LINE, 7);
        caches.evict(LINE, 2);
        assert_eq!(caches.tag(LINE), Some(0));
    }

    #[test]
    fn two_levels_work_without_an_l2() {
        let mut caches = hierarchy(&[("l2.bytes", "0"), ("l1.bytes", "128"), ("l1.ways", "2")]);
        let mut c = Counters::default();
        caches.fill(0, LINE);
        caches.access(0, LINE, true, &mut c);
        caches.fill(0, LineAddr(6));
        caches.fill(0, LineAddr(7));
        assert_eq!(caches.access(0, LINE, false, &mut c), Access::Hit(4 + 28));
        assert_eq!(caches.dirty_lines(), [LINE], "the L1's changes went to the LLC");
        assert_eq!(caches.cache_count(), 8 + 1);
    }
}
