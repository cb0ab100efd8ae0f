//! Force write-back (§III-C, §IV-D, Fig. 5) and what it is for: truncating the log.
//!
//! A scan visits the tags of all caches, one set per cycle, inner levels before outer ones and the LLC
//! last. Dirty bits move outward only (an inner copy of a line that is dirty further out is clean), and
//! the fwb bit travels with them, so whatever was dirty when a scan began is seen by it wherever it has
//! gone meanwhile. A line that was dirty when a scan began is therefore flagged, or home, when that scan
//! ends, and on its way home when the next one ends.
//!
//! Hence, at the end of a scan: stores logged before the *previous* scan began are home, or their lines'
//! writes are on their way. Once these are durable too, the head may pass the records; it stops at the
//! first record of the oldest transaction whose commit is not durable. The slots behind it are used
//! again when the new head itself is durable. (Entries that a scan's beginning finds in the log buffer
//! count as younger than it. That is more careful than need be: a line that leaves takes its entries out of
//! the buffer, so no store merges into them afterwards.)

use super::{Corner, Fwb, Meaning, Sabotage};
use crate::config::{Config, ControllerConfig, CoreConfig, L2Config, PmConfig, Size};
use crate::machine::cache::DIRTY;
use crate::machine::device::LINES_PER_MEDIA_LINE;
use crate::machine::{Cycle, Machine, Write, WriteClass};
use crate::memory::{LINE_BYTES, LineAddr};

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

/// The scan interval that log size and write bandwidth ask for (§IV-D): half of the time in which writes
/// at full bandwidth go once round the log, since a line's write-back takes two scans.
pub fn derived_interval(config: &Config) -> Cycle {
    let lap = super::log::lines(config) as f64 * cycles_per_line(config);
    ((lap / 2.0) as Cycle).max(1)
}

/// The same rule the other way round: the log that a scan interval asks for, in whole MB.
pub fn log_bytes_for(interval: Cycle, config: &Config) -> u64 {
    let lines = (2.0 * interval as f64 / cycles_per_line(config)).ceil() as u64;
    (lines * LINE_BYTES).next_multiple_of(Size::mb(1).0)
}

/// What a cache controller does with a line that a scan visits.
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

/// Progress of the scans.
#[derive(Debug)]
pub struct Scanner {
    interval: Cycle,
    /// When the next step is due.
    next_step: Cycle,
    began: Cycle,
    /// Cache and slot that the next step begins with, while a scan is under way.
    position: Option<(usize, usize)>,
    /// Where the log ended when the previous scan began, and this one.
    cuts: [u64; 2],
    /// Forced write-backs that are not durable, and how many there may be.
    pub under_way: usize,
    under_way_max: usize,
    has_l2: bool,
    /// Dirty lines of a step; kept for its memory.
    dirty: Vec<(usize, LineAddr)>,
}

impl Scanner {
    pub fn new(config: &Config, interval: Cycle) -> Self {
        let controller = config.get::<ControllerConfig>();
        Self {
            interval,
            next_step: interval,
            began: 0,
            position: None,
            cuts: [0; 2],
            under_way: 0,
            under_way_max: (controller.write_queue_entries as usize / 2).max(1),
            has_l2: config.get::<L2Config>().bytes.0 > 0,
            dirty: Vec::new(),
        }
    }

    /// How many levels lie inside a cache.
    fn level(&self, cache: usize, caches: usize) -> usize {
        match self.has_l2 {
            false => usize::from(cache == caches - 1),
            true if cache == caches - 1 => 2,
            true => cache % 2,
        }
    }

    /// When the first scan begins.
    pub fn first_at(&self) -> Cycle {
        self.next_step
    }
}

/// Writes of data that are not durable, by the scan during (or before) which they were sent.
#[derive(Debug, Default)]
pub struct DataWrites {
    /// The first epoch of `pending`.
    first: u64,
    /// Per epoch, writes not durable; the last is the present epoch's.
    pending: std::collections::VecDeque<u32>,
}

impl DataWrites {
    pub fn new() -> Self {
        Self { first: 0, pending: [0].into() }
    }

    /// A write is sent; returns its epoch.
    pub fn sent(&mut self) -> u64 {
        *self.pending.back_mut().expect("there is a present epoch") += 1;
        self.epoch()
    }

    fn epoch(&self) -> u64 {
        self.first + self.pending.len() as u64 - 1
    }

    /// A write of an epoch is durable.
    pub fn durable(&mut self, epoch: u64) {
        let count = &mut self.pending[(epoch - self.first) as usize];
        *count = count.checked_sub(1).expect("a write is durable once");
        self.forget();
    }

    /// Begins a new epoch and returns the one that ended.
    fn close(&mut self) -> u64 {
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

    /// Whether every write up to the end of an epoch is durable.
    fn all_durable(&self, epoch: u64) -> bool {
        self.first > epoch
    }
}

/// A move of the head that is waiting for data, or under way itself.
#[derive(Clone, Copy, Debug)]
pub struct Truncation {
    /// The new head.
    pub head: u64,
    /// Data writes up to the end of this epoch must be durable first.
    after_epoch: u64,
    sent: bool,
}

impl Fwb {
    /// A scan's timer: the next step, or the beginning of a scan.
    pub(super) fn scan_timer(&mut self, m: &mut Machine) {
        if m.now() != self.scanner.next_step {
            return;
        }
        if self.scanner.position.is_none() {
            self.begin_scan(m);
        }
        self.scan_step(m);
    }

    /// Begins a scan before its time if none is under way.
    pub(super) fn scan_now(&mut self, m: &mut Machine) {
        if self.scanner.position.is_none() {
            self.schedule_scan(m, m.now() + 1);
        }
    }

    fn schedule_scan(&mut self, m: &mut Machine, at: Cycle) {
        self.scanner.next_step = at;
        m.set_timer(at, super::SCAN);
    }

    fn begin_scan(&mut self, m: &mut Machine) {
        let cut = self.buffer.oldest().unwrap_or(self.tail);
        if self.running.iter().any(Option::is_some) {
            m.corner(Corner::ScanWhileOpen as usize);
        }
        m.note(|| format!("scan begins; the log ends before record {cut}"));
        self.scanner.cuts = [self.scanner.cuts[1], cut];
        self.scanner.position = Some((0, 0));
        self.scanner.began = m.now();
    }

    fn scan_step(&mut self, m: &mut Machine) {
        let (index, first) = self.scanner.position.expect("a scan is under way");
        let caches = m.caches.cache_count();
        let from_outside = self.sabotages.has(Sabotage::ScansFromOutside);
        let cache = if from_outside { caches - 1 - index } else { index };
        let ways = m.caches.cache(cache).ways();
        let full =
            m.memory.has_full_write_queue() || self.scanner.under_way >= self.scanner.under_way_max;
        if full {
            return self.schedule_scan(m, m.now() + SETS_PER_STEP as Cycle);
        }
        let slots = m.caches.cache(cache).slots();
        let end = slots.min((first / ways + SETS_PER_STEP) * ways);
        let mut dirty = std::mem::take(&mut self.scanner.dirty);
        dirty.clear();
        dirty.extend(m.caches.cache(cache).dirty_in(first..end));
        let mut next = end;
        let own = FLAGGED_BY_INNERMOST << self.scanner.level(cache, caches);
        let fwb = if self.sabotages.has(Sabotage::BitStaysBehind) { own } else { FWB };
        for &(slot, line) in &dirty {
            if !m.memory.is_pm(line.addr()) {
                continue;
            }
            let state = m.caches.cache_mut(cache).state_mut(slot);
            match visit(*state, fwb) {
                Visit::Nothing => unreachable!("only dirty lines are looked at"),
                Visit::Flag => {
                    *state |= FWB | own;
                    m.note(|| format!("scan flags {line} in cache {cache}"));
                }
                Visit::WriteBack if self.sabotages.has(Sabotage::NothingIsForced) => {}
                Visit::WriteBack if self.scanner.under_way < self.scanner.under_way_max => {
                    if *state & own == 0 {
                        m.corner(Corner::BitCameAlong as usize);
                    }
                    self.force_write_back(m, line);
                }
                Visit::WriteBack => {
                    next = slot;
                    break;
                }
            }
            m.count().scan_dirty_lines += 1;
        }
        self.scanner.dirty = dirty;
        let sets = (next - first).div_ceil(ways).max(1);
        self.scanner.position = Some((index, next));
        if next == slots {
            self.scanner.position = (index + 1 < caches).then_some((index + 1, 0));
        }
        match self.scanner.position {
            Some(_) => self.schedule_scan(m, m.now() + sets as Cycle),
            None => self.end_scan(m, sets as Cycle),
        }
    }

    fn force_write_back(&mut self, m: &mut Machine, line: LineAddr) {
        let after = self.order_before(m, line);
        if after != 0 {
            m.corner(Corner::ForcedLineWaits as usize);
        }
        m.note(|| match after {
            0 => format!("scan forces {line} home"),
            after => format!("scan forces {line} home, after ordered write {after}"),
        });
        let token = Meaning::Forced.token(self.data_writes.sent());
        let was_dirty = m.write_back(line, |write| {
            write.after = after;
            write.token = token;
        });
        assert!(was_dirty, "the scan has just seen it dirty");
        self.scanner.under_way += 1;
    }

    fn end_scan(&mut self, m: &mut Machine, last_step: Cycle) {
        m.count().scans += 1;
        let after_epoch = self.data_writes.close();
        let cut = self.scanner.cuts[usize::from(self.sabotages.has(Sabotage::OneScanIsEnough))];
        let head = cut.min(self.oldest_unfinished().unwrap_or(u64::MAX));
        m.note(|| format!("scan ends; the head may move to record {head}"));
        if self.truncation.is_none() && head > self.head {
            self.truncation = Some(Truncation { head, after_epoch, sent: false });
            self.try_to_truncate(m);
        }
        let next = m.now() + last_step;
        if self.waiting_for_space.is_empty() {
            self.schedule_scan(m, next.max(self.scanner.began + self.scanner.interval));
        } else {
            self.give_up_if_stuck(m);
            self.schedule_scan(m, next);
        }
    }

    /// Sends the new head if nothing is in its way any more.
    pub(super) fn try_to_truncate(&mut self, m: &mut Machine) {
        let Some(truncation) = &mut self.truncation else { return };
        if truncation.sent {
            return;
        }
        if !self.data_writes.all_durable(truncation.after_epoch)
            && !self.sabotages.has(Sabotage::HeadDoesNotWait)
        {
            m.corner(Corner::TruncationWaits as usize);
            m.note(|| format!("the head waits for data before it moves to {}", truncation.head));
            return;
        }
        truncation.sent = true;
        let head = truncation.head;
        if self.sabotages.has(Sabotage::SlotsFreeEarly) {
            self.free_before(m, head);
        }
        m.note(|| format!("the head, {head}, is sent"));
        let mut write = Write::words(WriteClass::Metadata, self.log.head(), &[head]);
        write.token = Meaning::Head.token(0);
        m.write(write, m.path());
    }

    /// The new head is durable: the slots before it are free.
    pub(super) fn head_durable(&mut self, m: &mut Machine) {
        let truncation = self.truncation.take().expect("a head was on its way");
        m.corner(Corner::HeadMoved as usize);
        m.note(|| format!("the head has moved to record {}", truncation.head));
        self.free_before(m, truncation.head);
    }

    fn free_before(&mut self, m: &mut Machine, head: u64) {
        m.count().log_records_truncated += head - self.head;
        self.head = head;
        for thread in self.waiting_for_space.drain(..) {
            m.release(thread);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_machine_of_figure_5() {
        assert_eq!(visit(0, FWB), Visit::Nothing);
        assert_eq!(visit(DIRTY, FWB), Visit::Flag);
        assert_eq!(visit(DIRTY | FWB, FWB), Visit::WriteBack);
        assert_eq!(visit(FWB, FWB), Visit::Nothing, "a lost dirty bit resets the state");
    }

    #[test]
    fn the_fwb_machine_scans_every_three_million_cycles() {
        let config = Config::from_preset("fwb").expect("the preset loads");
        // 65,536 lines × 300 ns / 8 banks × 2.5 GHz / 2 scans (§VI-A: "three million").
        assert_eq!(derived_interval(&config), 3_072_000);
        assert_eq!(super::super::log::bytes(&config), 4 << 20, "and that asks for a log of 4 MB");
        let mut silo = Config::from_preset("silo").expect("the preset loads");
        // 3,000,000 cycles × 2 scans / (150 ns × 2 GHz) × 8 banks × 4 lines × 64 B = 39.06 MB.
        assert_eq!(super::super::log::bytes(&silo), 40 << 20);
        silo.set("fwb.log_bytes", "4 MB").expect("a valid size");
        assert_eq!(derived_interval(&silo), 307_200, "150 ns, 2 GHz, four lines a write");
        silo.set("pm.buffer_lines", "0").expect("a valid number");
        assert_eq!(derived_interval(&silo), 1_228_800, "without an on-PM buffer");
        silo.set("fwb.log_bytes", "8 MB").expect("a valid size");
        assert_eq!(derived_interval(&silo), 2_457_600, "twice the log, half as often");
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
