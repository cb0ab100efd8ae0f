//! `lsm`: log-structured non-volatile main memory, LSNVMM (Hu et al., USENIX ATC'17), as HOOP (ISCA'20)
//! compares with it.
//!
//! "All the writes are appended into a log"; an index in DRAM maps home addresses to places in the log, and a
//! read takes "O(log N) memory accesses [...] where N is the number of log entries" (HOOP §II-B, Fig. 1c). HOOP's
//! comparison (§IV-A): "We implement its address mapping tree using skip list, and cache it in DRAM for fast index
//! lookup. For fair comparison, we conduct GC operations in LSNVMM at the same frequency as HOOP."
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters, mutants, state, hooks |
//! | `software` | what threads execute: lookups, the write set, the append, updates of the index |
//! | `append` | a transaction goes into the log |
//! | `fill` | a line is read, from where its newest words are |
//! | `collect` | garbage collection: the newest words go home |
//! | `segments` | segments of the log, free, open and full |
//! | `log` | bytes of the log |
//! | `index` | the skip list |
//! | `recovery` | recovery |
//! | `cost` | what the hardware costs |
//! | `cover` | states worth reaching |
//!
//! **Transactions.** Stores of a running transaction stay in its write set, a table in DRAM. At its end the
//! words are sorted by address and appended to the thread's open segment of the log, past the caches. When all of
//! it is durable, the commit record is written, with the next number of a sequence that all threads share;
//! when that is durable, the commit is acknowledged. Two barriers, no write at home.
//!
//! **The log** lies in the log region: a line for the head, then segments. A transaction lies in one segment, in
//! whole lines, one transaction behind the other.
//!
//! | where | word | bits | content |
//! |---|---|---|---|
//! | first line of the region | 0 | 0-63 | head: transactions with a lower sequence number have gone home |
//! | first line of a transaction | 0 | 0-19 | words of its entries |
//! | | 0 | 20-63 | commit sequence number, from 1 |
//! | its other lines | 0 | 0-63 | not written |
//! | each line | 1-7 | | entries, one after the other: |
//! | entry | 0 | 0-47 | home address of its first word |
//! | | 0 | 48-63 | number of words, n |
//! | | 1-n | 0-63 | new words |
//!
//! The first words of lines hold commit records or nothing, and never data. The record is one word, written when
//! everything before it is durable: it is there or it is not, and if it is, so is the transaction; no check sum is
//! needed. What an earlier use of the segment has left has a sequence number below the head, since a segment is used
//! again only when the head that passes it is durable. The system clears the first words before the log is put to use.
//!
//! **Reads.** Before each load of PM a thread looks its address up in the skip list (`index`); a transaction that
//! has stored something looks into its write set first. Nodes are DRAM, and go through the caches like all else.
//!
//! **Caches hold lines under their home addresses.** The addresses of the log, where LSNVMM's data is, are used below
//! the caches only. That favours the design where a word that was just committed is read again: its line need not be
//! fetched from the log. It is to its disadvantage where a store misses: its line is fetched, although
//! LSNVMM only puts the word into the write set. A dirty line that leaves the LLC is dropped: the write set or
//! the log has its words. A miss reads, in parallel, those lines of the log that hold words of the line, and its home if
//! some word is there only; words of running transactions come from the write sets' lines in DRAM.
//!
//! **Garbage collection**, every `gc_period_us` and whenever segments or nodes run out, migrates home, as HOOP's does
//! (LSNVMM itself copies live data within the log). It closes all segments, reads what they hold, writes the
//! newest version of each word home, then moves the head, then frees segments and nodes. Why all of them: a version
//! of a word in one thread's open segment may be older than the one that went home from another's full one, and
//! recovery must not bring it back. One word, the head, makes it obsolete with all others at once, so that no
//! power failure finds some of the versions gone and an older one there.
//! Collections run beside the threads, on a core of their own: only their traffic is felt. A segment of which
//! a miss is reading a line is not used again before that is done.
//!
//! **Recovery** reads the head and all segments, sorts the transactions that are not below the head by their numbers, writes
//! the newest version of each word home, and moves the head past the last. Until then it can start again.
//!
//! **Left open by the papers**, with what is assumed here: the layouts above; segments per thread (contention-free
//! appends); that threads look up at loads and not at stores, which go to the write set
//! (`lookups`); instructions of the software's steps (parameters); levels of the skip list (Pugh's p = 1/4); that
//! the index is updated on the critical path, which HOOP §IV-C says, and so at the transaction's end, before the
//! append. Every store to PM must be in a transaction, as LSNVMM's interface has it.

mod append;
mod collect;
mod cost;
mod cover;
mod fill;
mod index;
mod log;
mod recovery;
mod segments;
mod software;

use graven_base::config::{ConfigError, Size};
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LINE_BYTES, LineAddr, LineData};
use graven_base::time::Cycle;
use graven_base::time::cycles;
use graven_base::{choice, section};
use graven_machine::config::{CoreConfig, DramConfig};
use graven_machine::design::{
    Code, DesignContext, DesignInfo, Fill, Guarantee, MutantSet, OpAction, Plug, RawAction, Stall,
    Store,
};
use graven_machine::machine::Machine;
use graven_machine::mutants;
use graven_machine::program::Op;
use graven_machine::request::Token;

use append::Append;
use collect::Collection;
use cover::COVER_POINTS;
use fill::Reading;
use index::{Index, LEVELS_MAX};
use log::{Log, Run, Sequence, format};
use recovery::recover;
use segments::Segments;

choice! {
    /// Accesses to PM before which a thread looks the address up.
    pub enum Lookups {
        /// Loads: stores go to the write set, wherever their words are.
        Loads = "loads",
        /// Loads and stores.
        All = "all",
    }
}

choice! {
    /// The probability that a node of the skip list has a further level.
    pub enum Promotion {
        /// One half.
        Half = "1/2",
        /// One quarter.
        Quarter = "1/4",
    }
}

section! {
    /// LSNVMM: a log in PM, an index in DRAM.
    pub struct LsmConfig("lsm") {
        /// The log; 0: the whole log region.
        log_bytes: Size = Size(0), Size(0)..=Size::gb(512), "B";
        /// Segment of the log; a transaction must fit.
        segment_bytes: Size = Size::kb(64), Size(256)..=Size::mb(8), "B";
        /// Most words of one log entry, hence of one range of the index.
        entry_words_max: u32 = 512, 1..=65_535, "words";
        /// Time between two periodic collections (HOOP §IV-A: 10 ms).
        gc_period_us: f64 = 10_000.0, 0.01..=1_000_000.0, "us";
        /// Reads or writes of a collection that are under way at a time.
        gc_requests: u32 = 16, 1..=1024, "requests";
        /// DRAM for nodes of the index, as far as the DRAM's second half has it.
        index_bytes: Size = Size::gb(1), Size::kb(4)..=Size::gb(64), "B";
        /// Most levels of a node.
        index_levels_max: u32 = 16, 1..=32, "levels";
        /// Probability of a further level.
        index_promotion: Promotion = Promotion::Quarter, (), "";
        /// Accesses to PM before which a thread looks the address up.
        lookups: Lookups = Lookups::Loads, (), "";
        /// Slots of a thread's write set, a hash table in DRAM; more words share slots.
        write_set_slots: u32 = 1024, 16..=65_536, "slots";
        /// Instructions of a lookup, beside those of its nodes.
        lookup_instructions: u32 = 10, 0..=10_000, "instructions";
        /// Instructions for each node visited, beside its load.
        node_instructions: u32 = 4, 0..=10_000, "instructions";
        /// Instructions of a search in the write set, or of an insertion.
        write_set_instructions: u32 = 8, 0..=10_000, "instructions";
        /// Instructions for each entry appended, beside one for each of its words.
        entry_instructions: u32 = 20, 0..=10_000, "instructions";
    }
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "lsm",
    summary: "log-structured memory: all data in a log, found through a skip list in DRAM",
    paper: "LSNVMM, ATC'17; HOOP §II-B, §IV-A",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(LsmConfig::default())),
    build: |context| Ok(Box::new(Lsm::new(context)?)),
    format,
    recover,
    mutants: Mutant::NAMED,
    cover_points: COVER_POINTS,
    stress: &[
        (
            "lsm.segment_bytes+lsm.log_bytes",
            &["1536+7 KB", "2 KB+9 KB", "2 KB+16 KB", "4 KB+64 KB"],
        ),
        ("lsm.entry_words_max", &["1", "2", "5", "512"]),
        ("lsm.gc_period_us", &["0.2", "1", "5"]),
        ("lsm.gc_requests", &["1", "2", "16"]),
        ("lsm.index_bytes", &["12 KB", "24 KB"]),
        ("lsm.index_promotion", &["1/2", "1/4"]),
        ("lsm.index_levels_max", &["1", "4", "16"]),
        ("lsm.lookups", &["loads", "all"]),
    ],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

mutants! {
    /// The commit record is sent with the entries.
    RecordOvertakesEntries = "record-overtakes-entries";
    /// A commit is acknowledged when its record is sent.
    RecordNotAwaited = "record-not-awaited";
    /// A commit leaves no record.
    CommitRecordMissing = "commit-record-missing";
    /// The head moves when the words are on their way home.
    HomesNotAwaited = "homes-not-awaited";
    /// A collection writes the oldest version of a word home.
    OldestMigrated = "oldest-migrated";
    /// A collection leaves segments that are not full alone, but the head passes them.
    OpenSegmentsLeftOut = "open-segments-left-out";
    /// A collection does not wait for transactions on their way into the log.
    AppendsNotAwaited = "appends-not-awaited";
    /// Segments are free when the head is on its way.
    FreedBeforeHead = "freed-before-head";
    /// Segments are free, and the head stays.
    HeadStays = "head-stays";
    /// A segment is used again while a line of it is being read.
    ReadsNotAwaited = "reads-not-awaited";
    /// A collection empties the index, newer versions included.
    IndexEmptied = "index-emptied";
    /// A collection leaves the index as it is.
    IndexStays = "index-stays";
    /// A miss does not find the words of running transactions.
    OpenWordsForgotten = "open-words-forgotten";
    /// Recovery takes transactions in the order in which they lie in the log.
    RecoveryByPlace = "recovery-by-place";
    /// Recovery moves the head first.
    RecoveryMovesHeadFirst = "recovery-moves-head-first";
    /// Recovery reads transactions below the head, too.
    HeadIgnored = "head-ignored";
    /// The log is put to use as it is found.
    LogNotCleared = "log-not-cleared";
}

/// Tokens: what a request was for, in the low bits; then a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// A line of entries of this thread.
    Entries(ThreadId),
    /// The commit record of this thread.
    Record(ThreadId),
    /// A line that a miss reads, by the miss.
    Fill(usize),
    /// A line that the collection reads, by its number.
    Collected(usize),
    /// A line that the collection writes home.
    Home,
    /// The head of the log.
    Head,
}

impl About {
    fn token(self) -> Token {
        let (kind, number) = match self {
            About::Entries(thread) => (1, thread.into()),
            About::Record(thread) => (2, thread.into()),
            About::Fill(slot) => (3, slot as u64),
            About::Collected(number) => (4, number as u64),
            About::Home => (5, 0),
            About::Head => (6, 0),
        };
        number << 3 | kind
    }

    fn parse(token: Token) -> About {
        let number = token >> 3;
        match token & 7 {
            1 => About::Entries(number as ThreadId),
            2 => About::Record(number as ThreadId),
            3 => About::Fill(number as usize),
            4 => About::Collected(number as usize),
            5 => About::Home,
            _ => About::Head,
        }
    }
}

/// The only timer.
const PERIOD: u64 = 0;

/// One thread's software.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Words that the running transaction has stored, by address.
    words: Vec<(Addr, u64)>,
    /// The same as its software knows them: with those that are still in the store queue.
    named: Vec<Addr>,
    in_transaction: bool,
    /// The segment that it appends to.
    open: Option<usize>,
    /// Its transaction that is on its way into the log.
    append: Option<Append>,
    /// Since when it waits for a collection.
    waits_since: Option<Cycle>,
    /// It has not been told yet that one is over.
    waits: bool,
}

struct Lsm {
    config: LsmConfig,
    log: Log,
    index: Index,
    segments: Segments,
    threads: Vec<Thread>,
    /// Of the next transaction that commits.
    next_sequence: Sequence,
    /// The head, as it is in PM.
    head: Sequence,
    readings: slab::Slab<Reading>,
    collection: Option<Collection>,
    period: Cycle,
    /// Where the write sets lie, each in its place.
    write_sets: Addr,
    sequence_counter: Addr,
    /// Kept for their memory.
    runs: Vec<Run>,
    payload: Vec<u64>,
    mutants: MutantSet,
}

/// Bytes of a slot of the write set: home address and word.
const SLOT_BYTES: u64 = 16;

impl Lsm {
    fn new(context: &DesignContext) -> Result<Lsm, ConfigError> {
        let config = context.config.get::<LsmConfig>().clone();
        let log = Log::of(context);
        if log.segments < context.threads as usize {
            let why = format!(
                "{} threads need a segment of {} each, and the log has {}",
                context.threads, config.segment_bytes, log.segments
            );
            let keys = ["lsm.segment_bytes", "lsm.log_bytes", "pm.log_region_bytes"];
            return Err(context.config.inconsistent(&keys, why));
        }
        let before_index = before_index(&config, context.threads);
        let heap = context.config.get::<DramConfig>().capacity_bytes.0 / 2;
        let levels_max = config.index_levels_max as usize;
        assert!(levels_max <= LEVELS_MAX, "the parameter's range says so");
        if before_index + 2 * Index::head_bytes(levels_max) > heap {
            let why = format!(
                "write sets of {} threads need {}, and the DRAM has {} for designs",
                context.threads,
                Size(before_index),
                Size(heap)
            );
            let keys = ["lsm.write_set_slots", "dram.capacity_bytes"];
            return Err(context.config.inconsistent(&keys, why));
        }
        let shift = match config.index_promotion {
            Promotion::Half => 1,
            Promotion::Quarter => 2,
        };
        let bytes = config.index_bytes.0.min(heap - before_index);
        let frequency = context.config.get::<CoreConfig>().frequency_mhz;
        Ok(Lsm {
            index: Index::new(levels_max, shift, bytes),
            segments: Segments::new(log.segments),
            threads: vec![Thread::default(); context.threads as usize],
            next_sequence: 1,
            head: 0,
            readings: slab::Slab::new(),
            collection: None,
            period: cycles(config.gc_period_us * 1000.0, frequency),
            write_sets: Addr(0),
            sequence_counter: Addr(0),
            runs: Vec::new(),
            payload: Vec::new(),
            mutants: context.mutants,
            log,
            config,
        })
    }

    /// The slot of a home address in a thread's write set.
    fn slot(&self, thread: usize, home: Addr) -> Addr {
        let slots = u64::from(self.config.write_set_slots);
        let slot = thread as u64 * slots + home.0 / 8 % slots;
        self.write_sets.plus(slot * SLOT_BYTES)
    }
}

/// Bytes of the design's DRAM before the index: the sequence counter's line, and the write sets.
fn before_index(config: &LsmConfig, threads: u32) -> u64 {
    let write_set = u64::from(config.write_set_slots) * SLOT_BYTES;
    LINE_BYTES + u64::from(threads) * write_set
}

impl Plug for Lsm {
    fn start(&mut self, m: &mut Machine) {
        let heap = m.memory.dram_heap();
        self.sequence_counter = heap;
        self.write_sets = heap.plus(LINE_BYTES);
        self.index.set_base(heap.plus(before_index(&self.config, self.threads.len() as u32)));
        m.set_timer(self.period, PERIOD);
    }

    fn has_software(&self) -> bool {
        true
    }

    fn software(
        &mut self,
        m: &mut Machine,
        thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        self.execute(m, thread as usize, op, code);
        OpAction::Execute
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let words = &mut self.threads[store.tx.thread as usize].words;
        match words.binary_search_by_key(&store.addr, |&(addr, _)| addr) {
            Ok(at) => {
                words[at].1 = store.new;
                m.count().log_entries_merged += 1;
            }
            Err(at) => words.insert(at, (store.addr, store.new)),
        }
        Stall::None
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        self.end(m, tx)
    }

    /// The write set or the log has the words that are dirty.
    fn llc_evict(&mut self, _m: &mut Machine, _line: LineAddr, _content: &LineData) -> RawAction {
        RawAction::Absorb
    }

    fn llc_fill(&mut self, m: &mut Machine, line: LineAddr, delay: Cycle) -> Fill {
        self.fill(m, line, delay)
    }

    fn on_durable(&mut self, m: &mut Machine, token: Token) {
        match About::parse(token) {
            About::Entries(thread) => self.entries_durable(m, thread),
            About::Record(thread) => self.record_durable(m, thread),
            About::Home => self.home_durable(m),
            About::Head => self.head_durable(m),
            about => unreachable!("{about:?} is a read"),
        }
    }

    fn read_done(&mut self, m: &mut Machine, token: Token, line: LineAddr, content: &LineData) {
        match About::parse(token) {
            About::Fill(slot) => self.filled(m, slot, line, content),
            About::Collected(number) => self.collected(m, number, content),
            about => unreachable!("{about:?} is a write"),
        }
    }

    fn start_maintenance(&mut self, m: &mut Machine) {
        self.collect(m, false);
    }

    fn timer(&mut self, m: &mut Machine, _token: u64) {
        m.set_timer(m.now() + self.period, PERIOD);
        self.collect(m, false);
    }

    fn has_dirty_words(&self) -> bool {
        true
    }

    fn is_idle(&self) -> bool {
        self.collection.is_none() && self.threads.iter().all(|t| t.append.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_never_zero_and_come_back() {
        let all = [
            About::Entries(0),
            About::Record(127),
            About::Fill(0),
            About::Collected(1 << 40),
            About::Home,
            About::Head,
        ];
        for about in all {
            assert_ne!(about.token(), 0);
            assert_eq!(About::parse(about.token()), about);
        }
    }
}
