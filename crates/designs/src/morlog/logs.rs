//! The logs (§III-A, §III-F): one for all threads, or one per thread with the number of the commit in each
//! commit record.
//!
//! **Per thread.** The logs lie one after the other, each with its head. The order of commits is given by
//! their numbers, 1, 2, …. Heads do not move at the same instant, so there is one word for all logs, the
//! *horizon* (word 1 of the first log's header line): what committed up to this number is at home,
//! and must not be redone, whatever is left of it in its log. It moves before the heads do. A second such
//! word, the *void* flag (word 2), is for recovery: once it is set, all logs are empty.

use super::{LogType, MorlogConfig, Rules};
use crate::force_write_back;
use crate::packed_log::{Faults, Format, Log, Packer};
use graven_base::config::{Config, ConfigError, Size};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, LINE_BYTES, MEDIA_LINE_BYTES, WORD_BYTES};
use graven_machine::config::PmConfig;
use graven_machine::design::DesignContext;

/// Fewest groups per thread for which a log is worth its name.
const GROUPS_PER_THREAD_MIN: u64 = 4;

/// Places of the logs of a context.
#[derive(Clone, Debug)]
pub struct Places {
    pub logs: Vec<Log>,
    /// The commit number up to which everything is at home.
    pub horizon: Addr,
    /// Address of the void flag: if it is set, all logs are empty, whatever they hold.
    pub void: Addr,
}

/// Bytes of all logs: as configured, or what the scan interval asks for.
pub fn bytes(config: &Config) -> u64 {
    let morlog = config.get::<MorlogConfig>();
    force_write_back::log_bytes(morlog.log_bytes, morlog.scan_interval_cycles, config)
}

/// Lines of all logs.
pub fn lines(config: &Config) -> u64 {
    bytes(config) / LINE_BYTES
}

/// The mutants of the log itself.
fn faults(context: &DesignContext) -> Faults {
    let rules = Rules::of(context);
    Faults {
        torn_bit_stays: !rules.torn_bit_turns(),
        one_torn_bit: !rules.every_word_has_torn_bit(),
        not_cleared: !rules.log_is_cleared(),
        metadata_first: !rules.metadata_follows_data(),
        holes_are_skipped: !rules.holes_end_the_log(),
        both_differential: !rules.one_word_stays_whole(),
    }
}

impl Places {
    pub fn of(context: &DesignContext) -> Places {
        let (start, bytes) = (context.log_start, bytes(&context.config));
        let format = Format::of(&context.config);
        let logs = match context.config.get::<MorlogConfig>().log_type {
            LogType::Centralised => vec![Log::new(start, bytes, format, faults(context))],
            LogType::PerThread => {
                let share = per_thread(bytes, context);
                let area = |thread| {
                    let start = context.thread_area(thread, share);
                    Log::new(start, share, format, faults(context))
                };
                (0..context.threads).map(area).collect()
            }
        };
        Places { logs, horizon: start.plus(WORD_BYTES), void: start.plus(2 * WORD_BYTES) }
    }
}

/// Share of each thread in `bytes` bytes for all. (If the size is derived, the gaps between the
/// logs are taken off it.)
fn per_thread(bytes: u64, context: &DesignContext) -> u64 {
    let is_derived = context.config.get::<MorlogConfig>().log_bytes.0 == 0;
    let gap = context.thread_area(1, 0).0 - context.log_start.0 + MEDIA_LINE_BYTES;
    let share = bytes / u64::from(context.threads);
    let share = if is_derived { share.saturating_sub(gap) } else { share };
    share / LINE_BYTES * LINE_BYTES
}

/// Refuses logs that do not fit, or hold too little.
pub fn check(context: &DesignContext) -> Result<(), ConfigError> {
    let (config, bytes) = (&context.config, bytes(&context.config));
    if config.get::<MorlogConfig>().log_type == LogType::PerThread {
        context.check_thread_areas("morlog.log_bytes", per_thread(bytes, context))?;
    } else if bytes > context.log_bytes() {
        let region = Size(context.log_bytes());
        let why = format!("morlog.log_bytes must fit into pm.log_region_bytes = {region}");
        return Err(config.inconsistent(&["morlog.log_bytes", "pm.log_region_bytes"], why));
    }
    let places = Places::of(context);
    let threads_per_log = u64::from(context.threads) / places.logs.len() as u64;
    let (needed, groups) = (GROUPS_PER_THREAD_MIN * threads_per_log, places.logs[0].groups);
    if groups < needed {
        let bytes = places.logs[0].format.group_bytes();
        let why = format!(
            "a log holds {groups} groups of {bytes} B for {threads_per_log} threads, which need at least {needed}"
        );
        return Err(config.inconsistent(&["morlog.log_bytes", "morlog.log_type"], why));
    }
    Ok(())
}

/// One log: its end, and what of it may be written.
#[derive(Debug)]
pub struct LogEnd {
    pub packer: Packer,
    /// The first group that must be kept; durable.
    pub head: u64,
    /// Records of this log that may still have to be written: entries of the undo+redo buffer,
    pub undo_redo: u64,
    /// words of redo data, in the redo buffer or in L1s,
    pub redo: u64,
    /// and commit records of open transactions.
    pub open: u64,
}

impl LogEnd {
    pub fn new(log: Log, slde: bool) -> LogEnd {
        LogEnd { packer: Packer::new(log, slde), head: 0, undo_redo: 0, redo: 0, open: 0 }
    }

    /// Groups that are in use, from the head on, or spoken for. Any entry may leave by itself: an undo+redo entry by its
    /// age, a redo entry out of a small buffer, or late redo data at the end of a scan.
    pub fn taken(&self) -> u64 {
        let used = self.packer.tail() - self.head;
        used + self.undo_redo + self.redo + 2 * self.open
    }

    /// Groups that may be written and are not spoken for.
    pub fn free_groups(&self) -> u64 {
        self.packer.log().groups.saturating_sub(self.taken())
    }
}

/// All logs.
#[derive(Debug)]
pub struct Logs {
    pub ends: Vec<LogEnd>,
    pub horizon: Addr,
    /// Commits so far.
    pub commits: u64,
}

impl Logs {
    pub fn new(context: &DesignContext) -> Logs {
        let places = Places::of(context);
        let slde = context.config.get::<PmConfig>().codec.has_dldc();
        let ends = places.logs.into_iter().map(|log| LogEnd::new(log, slde)).collect();
        Logs { ends, horizon: places.horizon, commits: 0 }
    }

    /// Entries that leave a buffer together: as many as fill a block, or what is left of a line.
    #[inline]
    pub fn together(&self) -> usize {
        match &self.ends[..] {
            [end] => end.packer.together(),
            ends => ends[0].packer.log().format.together(),
        }
    }

    /// Number of the log that a thread's records go to.
    #[inline]
    pub fn of(&self, thread: ThreadId) -> usize {
        if self.ends.len() == 1 { 0 } else { thread as usize }
    }

    pub fn end(&mut self, thread: ThreadId) -> &mut LogEnd {
        let log = self.of(thread);
        &mut self.ends[log]
    }

    /// Ends of the logs now.
    pub fn tails(&self) -> Vec<u64> {
        self.ends.iter().map(|end| end.packer.tail()).collect()
    }
}
