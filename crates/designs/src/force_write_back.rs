//! Force write-back (FWB §III-C, §IV-D, Fig. 5): scans of all tags that write back what has been dirty for two
//! of them. FWB and MorLog truncate their logs by it.
//!
//! A scan visits the tags of all caches, one set per cycle, inner levels before outer ones and the LLC
//! last. Dirty bits move outward only (an inner copy of a line that is dirty further out is clean), and
//! the fwb bit travels with them, so whatever was dirty when a scan began is seen by it wherever it has
//! gone meanwhile. A line that was dirty when a scan began is therefore flagged, or home, when that scan
//! ends, and on its way home when the next one ends.
//!
//! Hence, at the end of a scan: stores made before the *previous* scan began are home, or their lines'
//! writes are on their way ([`DataWrites`] reports when these are durable).

use std::collections::VecDeque;
use std::ops::Range;

use graven_base::choice;
use graven_base::config::{Config, Size};
use graven_base::counters;
use graven_base::memory::{LINE_BYTES, LineAddr, WORD_BYTES};
use graven_base::time::Cycle;
use graven_machine::caches::hierarchy::TagPortUse;
use graven_machine::caches::tags::DIRTY;
use graven_machine::config::{ControllerConfig, CoreConfig, L2Config, PmConfig};
use graven_machine::design::{Design, DesignEvent, Observation, Port, Rounds};
use graven_machine::device::LINES_PER_MEDIA_LINE;

/// Bytes that a transaction with stores takes in a log at least: an entry and a commit record, of two words each. So a log
/// that is truncated by scans bounds how many transactions are not durable yet.
pub const TRANSACTION_BYTES_MIN: u64 = 2 * 2 * WORD_BYTES;

/// The force-write-back bit of a line.
const FWB: u8 = 0x10;
/// Beside it, which level has set it: the innermost's, and one to the left per level outward.
const FLAGGED_BY_INNERMOST: u8 = 0x20;

/// Sets that a scan visits in one go.
const SETS_PER_STEP: usize = 64;

/// Cycles in which writes at full bandwidth fill one line of the log. A write programs a whole media
/// line where an on-PM buffer combines the log's lines to such, and a line by itself where there is none.
fn cycles_per_line(config: &Config) -> f64 {
    let (core, pm) = (config.get::<CoreConfig>(), config.get::<PmConfig>());
    let banks = config.get::<ControllerConfig>().channels * pm.ranks * pm.banks;
    let lines_per_write = if pm.buffer_lines > 0 { LINES_PER_MEDIA_LINE } else { 1 };
    let write_cycles = pm.write_ns * f64::from(core.frequency_mhz) / 1000.0;
    write_cycles / (f64::from(banks) * lines_per_write as f64)
}

/// Scan interval in cycles that a log of `lines` and the write bandwidth ask for (FWB §IV-D): half
/// of the time in which writes at full bandwidth go once round the log, since a line's write-back
/// takes two scans.
pub fn interval_for(lines: u64, config: &Config) -> Cycle {
    let lap = lines as f64 * cycles_per_line(config);
    ((lap / 2.0) as Cycle).max(1)
}

/// The same rule the other way round: the log that a scan interval asks for, in whole MB.
pub fn log_bytes_for(interval: Cycle, config: &Config) -> u64 {
    let lines = (2.0 * interval as f64 / cycles_per_line(config)).ceil() as u64;
    (lines * LINE_BYTES).next_multiple_of(Size::mb(1).0)
}

/// Log size where neither it nor the scan interval is configured (FWB §IV-C: 64 K entries, 4 MB).
const PAPERS_LOG: Size = Size::mb(4);

/// Bytes of a log, its header included: as configured, or what a configured scan interval asks for, at most the log region.
pub fn log_bytes(configured: Size, interval: Cycle, config: &Config) -> u64 {
    let wanted = match (configured.0, interval) {
        (0, 0) => PAPERS_LOG.0,
        (0, interval) => log_bytes_for(interval, config),
        (given, _) => return given,
    };
    wanted.min(config.get::<PmConfig>().log_region_bytes.0)
}

/// Scan interval in cycles: as configured, or what a log of `lines` and the write bandwidth ask for (FWB §IV-D).
pub fn scan_interval(configured: Cycle, lines: u64, config: &Config) -> Cycle {
    if configured == 0 { interval_for(lines, config) } else { configured }
}

/// A region in steady state has as many scans before it and within it, at least. Scans make lines leave in bursts: what a scan
/// finds dirty leaves during the next ones, and while they are under way few lines become dirty. Bursts come every four scans.
pub const SCANS: Rounds = Rounds { counter: "scans", before: 4, within: 8 };

/// Action of a cache controller on a line that a scan visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Visit {
    /// State IDLE.
    Nothing,
    /// State FLAG: set the fwb bit.
    Flag,
    /// State FWB: write the line back, reset both bits.
    WriteBack,
}

fn visit(state: u8, fwb: u8) -> Visit {
    match (state & fwb != 0, state & DIRTY != 0) {
        (_, false) => Visit::Nothing,
        (false, true) => Visit::Flag,
        (true, true) => Visit::WriteBack,
    }
}

/// Single-point changes for the worse.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A line that moves outward leaves its fwb bit behind (literal, FWB §IV-D).
    pub bit_stays_behind: bool,
    /// A scan goes from the LLC to the L1s.
    pub from_outside: bool,
    /// Scans flag lines and write none back.
    pub nothing_is_forced: bool,
}

choice! {
    /// Waits of accesses to a cache while a scan visits its tags.
    pub enum ScanPort {
        /// Nothing: scans have a tag port of their own.
        Own = "own",
        /// They wait until the scan is done with the set that it visits.
        Set = "set",
        /// They wait until the scan has left the cache.
        Cache = "cache",
    }
}

/// Cost of visiting tags.
#[derive(Clone, Copy, Debug)]
pub struct TagVisits {
    pub port: ScanPort,
    /// Tags per cycle; 0: those of a set.
    pub tags_per_cycle: u32,
}

impl TagVisits {
    /// A set per cycle, through a port of the scan's own.
    pub const FREE: TagVisits = TagVisits { port: ScanPort::Own, tags_per_cycle: 0 };

    /// Cycles for visiting `sets` sets.
    fn cycles(self, sets: usize, ways: usize) -> Cycle {
        match self.tags_per_cycle {
            0 => sets as Cycle,
            tags => (sets as Cycle * ways as Cycle).div_ceil(tags.into()),
        }
    }
}

/// A line that a scan forces home.
#[derive(Clone, Copy, Debug)]
pub struct Forced {
    pub line: LineAddr,
    /// An inner cache had flagged it.
    pub came_along: bool,
}

/// State of a scan after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// With its next step.
    Goes,
    /// The scan is over, at this cycle.
    Ended(Cycle),
}

counters! {
    /// Counters of scans.
    pub struct Counters {
        /// Lines that a design's periodic scan visited and found dirty.
        scan_dirty_lines: Count, "lines";
        /// Complete scans of the caches.
        scans: Count, "scans";
    }
}

/// Events of a scan. A design's own event has them as a part, and forwards them to
/// [`Event::observe`].
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A dirty line is flagged, in the cache of this number.
    Flagged { line: LineAddr, cache: usize },
    /// A dirty line was flagged already: it is forced home.
    DirtyForLong,
    /// A scan has visited all tags.
    Ended,
}

impl Event {
    /// Counts it, and explains it.
    pub fn observe<E>(self, to: &mut Observation<'_, E>)
    where
        E: DesignEvent,
        E::Counters: AsMut<Counters>,
    {
        match self {
            Event::Flagged { line, cache } => {
                to.count().as_mut().scan_dirty_lines += 1;
                to.explain(|| format!("scan flags {line} in cache {cache}"));
            }
            Event::DirtyForLong => to.count().as_mut().scan_dirty_lines += 1,
            Event::Ended => to.count().as_mut().scans += 1,
        }
    }
}

/// Progress of the scans of a design.
pub struct Scanner<D: Design> {
    interval: Cycle,
    /// The design's timer that steps it.
    timer: D::Timer,
    /// When the next step is due.
    next_step: Cycle,
    began: Cycle,
    /// Cache and slot that the next step begins with, while a scan is under way.
    position: Option<(usize, usize)>,
    /// Forced write-backs that are not durable, and how many there may be.
    under_way: usize,
    under_way_max: usize,
    has_l2: bool,
    visits: TagVisits,
    faults: Faults,
    /// Dirty lines of a step; kept for its memory.
    dirty: Vec<(usize, LineAddr)>,
    /// Lines that the last step forces home.
    pub forced: VecDeque<Forced>,
}

impl<D: Design> Scanner<D>
where
    D::Event: From<Event>,
{
    /// Scans that begin `interval` after each other; this timer of the design steps them.
    pub fn new(
        config: &Config,
        interval: Cycle,
        timer: D::Timer,
        visits: TagVisits,
        faults: Faults,
    ) -> Self {
        let controller = config.get::<ControllerConfig>();
        Self {
            interval,
            timer,
            next_step: interval,
            began: 0,
            position: None,
            under_way: 0,
            under_way_max: (controller.write_queue_entries as usize / 2).max(1),
            has_l2: config.get::<L2Config>().bytes.0 > 0,
            visits,
            faults,
            dirty: Vec::new(),
            forced: VecDeque::new(),
        }
    }

    // ---- when ----------------------------------------------------------------------------------

    /// Sets the timer of the first scan.
    pub fn start(&self, port: &mut Port<'_, D>) {
        port.set_timer(self.next_step, self.timer);
    }

    /// Returns true if a timer that fires now is the one of the next step (earlier ones are void).
    pub fn is_due(&self, port: &Port<'_, D>) -> bool {
        port.now() == self.next_step
    }

    /// Returns true if a scan has begun and has not ended.
    pub fn is_under_way(&self) -> bool {
        self.position.is_some()
    }

    /// Begins a scan; [`Scanner::step`] follows.
    pub fn begin(&mut self, port: &Port<'_, D>) {
        self.position = Some((0, 0));
        self.began = port.now();
    }

    /// Makes the next scan begin as soon as can be, if none is under way.
    pub fn hasten(&mut self, port: &mut Port<'_, D>) {
        if self.position.is_none() {
            self.schedule(port, port.now() + 1);
        }
    }

    fn schedule(&mut self, port: &mut Port<'_, D>, at: Cycle) {
        self.next_step = at;
        port.set_timer(at, self.timer);
    }

    /// Schedules the scan after one that ended at `end`: at its time, or at once.
    pub fn schedule_next(&mut self, port: &mut Port<'_, D>, end: Cycle, at_once: bool) {
        let regular = end.max(self.began + self.interval);
        self.schedule(port, if at_once { end } else { regular });
    }

    /// A forced write-back is durable.
    pub fn forced_durable(&mut self) {
        self.under_way -= 1;
    }

    // ---- a scan --------------------------------------------------------------------------------

    /// Visits some sets: flags lines, and leaves those to be written back in `forced`. The caller does that
    /// at once, and schedules the next scan when this one has ended.
    pub fn step(&mut self, port: &mut Port<'_, D>) -> Progress {
        let (index, first) = self.position.expect("a scan is under way");
        let caches = port.cache_count();
        let cache = if self.faults.from_outside { caches - 1 - index } else { index };
        if port.has_full_write_queue() || self.under_way >= self.under_way_max {
            port.use_tag_port(TagPortUse::default());
            self.schedule(port, port.now() + SETS_PER_STEP as Cycle);
            return Progress::Goes;
        }
        let (slots, ways) = (port.cache(cache).slots(), port.cache(cache).ways());
        let end = slots.min((first / ways + SETS_PER_STEP) * ways);
        let next = self.visit_slots(port, cache, first..end);
        let sets = (next - first).div_ceil(ways).max(1);
        let cycles = self.visits.cycles(sets, ways);
        self.use_tag_port(port, cache, sets, (slots - first).div_ceil(ways));
        self.position = match next == slots {
            false => Some((index, next)),
            true => (index + 1 < caches).then_some((index + 1, 0)),
        };
        if self.position.is_some() {
            self.schedule(port, port.now() + cycles);
            return Progress::Goes;
        }
        port.emit(Event::Ended.into());
        Progress::Ended(port.now() + cycles)
    }

    /// Visits the dirty lines in these slots of a cache. Returns the slot that the next step begins with: one of
    /// these, if no more lines can be forced home now.
    fn visit_slots(&mut self, port: &mut Port<'_, D>, cache: usize, slots: Range<usize>) -> usize {
        let mut next = slots.end;
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.clear();
        dirty.extend(port.cache(cache).dirty_in(slots));
        for &(slot, line) in &dirty {
            if port.is_pm(line.addr()) && !self.visit_line(port, cache, slot, line) {
                next = slot;
                break;
            }
        }
        self.dirty = dirty;
        next
    }

    /// Visits a dirty line of PM, as Fig. 5 says. Returns false if it must be forced home and
    /// cannot be now.
    fn visit_line(
        &mut self,
        port: &mut Port<'_, D>,
        cache: usize,
        slot: usize,
        line: LineAddr,
    ) -> bool {
        let own = FLAGGED_BY_INNERMOST << self.level(cache, port.cache_count());
        let fwb = if self.faults.bit_stays_behind { own } else { FWB };
        let state = port.line_state(cache, slot);
        match visit(*state, fwb) {
            Visit::Nothing => unreachable!("only dirty lines are looked at"),
            Visit::Flag => {
                *state |= FWB | own;
                port.emit(Event::Flagged { line, cache }.into());
                return true;
            }
            Visit::WriteBack if self.faults.nothing_is_forced => {}
            Visit::WriteBack if self.under_way < self.under_way_max => {
                self.forced.push_back(Forced { line, came_along: *state & own == 0 });
                self.under_way += 1;
            }
            Visit::WriteBack => return false,
        }
        port.emit(Event::DirtyForLong.into());
        true
    }

    /// Number of levels inside a cache.
    fn level(&self, cache: usize, caches: usize) -> usize {
        match self.has_l2 {
            false => usize::from(cache == caches - 1),
            true if cache == caches - 1 => 2,
            true => cache % 2,
        }
    }

    /// Occupies the tag port of a cache of which this step visits `sets` sets, and `left` remain,
    /// these included.
    fn use_tag_port(&self, port: &mut Port<'_, D>, cache: usize, sets: usize, left: usize) {
        let (from, ways) = (port.now(), port.cache(cache).ways());
        let (sets, grain) = match self.visits.port {
            ScanPort::Own => return,
            ScanPort::Set => (sets, self.visits.cycles(1, ways)),
            ScanPort::Cache => (left, self.visits.cycles(left, ways)),
        };
        let until = from + self.visits.cycles(sets, ways);
        port.use_tag_port(TagPortUse { cache, from, until, grain });
    }
}

/// The number of an epoch of data writes: what lies between two calls of [`DataWrites::close`].
pub type Epoch = u64;

/// Writes of data that are not durable, by the scan during (or before) which they were sent.
#[derive(Debug, Default)]
pub struct DataWrites {
    /// The first epoch of `pending`.
    first: Epoch,
    /// Per epoch, writes not durable; the last is the present epoch's.
    pending: std::collections::VecDeque<u32>,
}

impl DataWrites {
    pub fn new() -> Self {
        Self { first: 0, pending: [0].into() }
    }

    /// A write is sent; returns its epoch.
    pub fn sent(&mut self) -> Epoch {
        *self.pending.back_mut().expect("there is a present epoch") += 1;
        self.epoch()
    }

    fn epoch(&self) -> Epoch {
        self.first + self.pending.len() as u64 - 1
    }

    /// A write of an epoch is durable.
    pub fn durable(&mut self, epoch: Epoch) {
        let count = &mut self.pending[(epoch - self.first) as usize];
        *count = count.checked_sub(1).expect("a write is durable once");
        self.forget();
    }

    /// Begins a new epoch and returns the one that ended.
    pub fn close(&mut self) -> Epoch {
        let ended = self.epoch();
        self.pending.push_back(0);
        self.forget();
        ended
    }

    fn forget(&mut self) {
        while self.pending.len() > 1 && self.pending[0] == 0 {
            self.pending.pop_front();
            self.first += 1;
        }
    }

    /// Returns true if every write up to the end of an epoch is durable.
    pub fn all_durable(&self, epoch: Epoch) -> bool {
        self.first > epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `fwb-fsm` (FWB §IV-D, Fig. 5).
    #[test]
    fn the_state_machine_of_figure_5() {
        assert_eq!(visit(0, FWB), Visit::Nothing);
        assert_eq!(visit(DIRTY, FWB), Visit::Flag);
        assert_eq!(visit(DIRTY | FWB, FWB), Visit::WriteBack);
        assert_eq!(visit(FWB, FWB), Visit::Nothing, "a lost dirty bit resets the state");
    }

    /// `fwb-freq-3m-cycles` (FWB §VI-A).
    #[test]
    fn the_fwb_machine_scans_every_three_million_cycles() {
        let config = crate::testing::machine("fwb");
        // 65,536 lines × 300 ns / 8 banks × 2.5 GHz / 2 scans (§VI-A: "three million").
        assert_eq!(interval_for(65_536, &config), 3_072_000);
        assert_eq!(log_bytes_for(3_000_000, &config), 4 << 20, "and that asks for a log of 4 MB");
        let mut silo = crate::testing::machine("silo");
        // 3,000,000 cycles × 2 scans / (150 ns × 2 GHz) × 8 banks × 4 lines × 64 B = 39.06 MB.
        assert_eq!(log_bytes_for(3_000_000, &silo), 40 << 20);
        assert_eq!(interval_for(65_536, &silo), 307_200, "150 ns, 2 GHz, four lines a write");
        silo.set("pm.buffer_lines", "0").expect("a valid number");
        assert_eq!(interval_for(65_536, &silo), 1_228_800, "without an on-PM buffer");
        assert_eq!(interval_for(131_072, &silo), 2_457_600, "twice the log, half as often");
    }

    /// `fwb-freq-trend` (FWB §IV-D, Fig. 11(b)): the interval grows with the log and shrinks with the bandwidth.
    #[test]
    fn the_interval_is_proportional_to_the_log_and_to_the_time_of_a_write() {
        let mut config = crate::testing::machine("fwb");
        let mb = |n: u64| (n << 20) / LINE_BYTES;
        for n in [1, 2, 4, 8, 16, 32] {
            assert_eq!(interval_for(mb(n), &config), 768_000 * n, "a log of {n} MB");
        }
        for (key, value, interval) in [
            ("pm.write_ns", "600.0", 2 * 3_072_000),
            ("pm.banks", "16", 3_072_000),
            ("controller.channels", "4", 3_072_000 / 4),
            ("pm.ranks", "2", 3_072_000 / 8),
        ] {
            config.set(key, value).expect("a valid setting");
            assert_eq!(interval_for(mb(4), &config), interval, "{key} = {value}");
        }
    }

    /// `fwb-log-lifetime-15-days` (FWB §III-F): 64 K entries, 200 ns each one after the other, 10^8 writes to a cell.
    #[test]
    fn a_log_lasts_fifteen_days() {
        let mut config = crate::testing::machine("fwb");
        let mut lifetime_days = |write_ns: &str| {
            for (key, value) in [("pm.write_ns", write_ns), ("pm.banks", "1")] {
                config.set(key, value).expect("a valid setting");
            }
            let lap_seconds = 2.0 * interval_for(65_536, &config) as f64 / 2.5e9;
            lap_seconds * 1e8 / 86_400.0
        };
        assert_eq!(lifetime_days("200.0").floor(), 15.0);
        assert_eq!(lifetime_days("300.0").floor(), 22.0, "with the latency of Table II");
    }

    #[test]
    fn an_epoch_is_over_when_its_writes_and_all_before_are_durable() {
        let mut writes = DataWrites::new();
        let first = [writes.sent(), writes.sent()];
        let ended = writes.close();
        assert_eq!(first, [ended; 2]);
        let second = writes.sent();
        assert_eq!(writes.close(), second);
        writes.durable(second);
        writes.durable(ended);
        assert!(!writes.all_durable(ended));
        writes.durable(ended);
        assert!(writes.all_durable(ended) && writes.all_durable(second));
        assert!(!writes.all_durable(second + 1), "the present epoch");
    }
}
