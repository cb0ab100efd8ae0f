//! `osp`: optimized shadow paging after SSP (Ni, Zhao, Litz, Bittman and Miller, MICRO'19 and HotStorage'18), as
//! HOOP compares with it (§II-B, §III-C with Fig. 4c, §IV-A to §IV-D).
//!
//! "Each virtual cache line is associated with two cache lines, and page consolidation scheme is used to
//! improve the spatial efficiency" (§IV-A): the line at home and, in a shadow page of the log region, another.
//! An update goes to the one that is not committed; a commit changes which of them is.
//!
//! - **Bitmaps.** A page of `page_bytes` has up to 64 lines. *Current*: where the newest version is;
//!   *committed*: where the committed one is; *updated*: the lines that running transactions have
//!   stored to, kept here as their write sets. They lie in the extended TLBs of the cores
//!   (`tlb_entries` each, least recently used leaves; a miss fetches the metadata in
//!   `metadata_cycles`) and in the controller's SSP cache, which has an entry for each shadow page. Both are volatile.
//! - **Store.** The first transactional store to a page gets it a shadow page. The first to a line flips its
//!   current bit (`flip_cycles`); nothing is copied, since the line is in the cache: only when it
//!   leaves it goes to the other place. A line that is missed is read from its current place.
//! - **Commit.** Every line of the transaction that is dirty in a cache is flushed to its place, one
//!   leaving the L1 every `flush_interval_cycles`; those that have left before are waited for. Then the core sends
//!   the commit to the controller, which appends a record to the metadata journal: for each
//!   page its new committed bitmap. When that is durable the commit is acknowledged.
//! - **TLB shootdown.** HOOP charges OSP for "frequent TLB shootdowns on multicore machines" (§IV-B); SSP itself
//!   proposes a broadcast by hardware. `shootdown`: at each commit for each of its pages (the default: other cores may
//!   not use a line before its transaction has ended, so that is soon enough and rarest), at each store that flips a bit, or
//!   never (SSP's broadcast, whose cost is `flip_cycles`). Each thread of another core that holds the
//!   translation is interrupted for `shootdown_cycles` and loses it; the one that changed the mapping waits
//!   `shootdown_wait_cycles` if there are any.
//! - **Consolidation.** A page that no TLB holds is inactive (`consolidation`: at once, or when shadow pages run out):
//!   the committed lines of its shadow page are read and written home, `copies_in_flight` at a time;
//!   when they are durable, a journal record with an empty bitmap follows; when that is, the shadow page is free. A
//!   store to the page stops it. SSP copies in the direction that needs fewer copies and lets the
//!   virtual page keep either physical one; here pages have no virtual address of their own, so that
//!   they stay at home. When no shadow page is free, a store waits, and the page not stored to for longest is consolidated.
//!
//! Physically, the log region holds a header, journal, table and shadow pages one after the other. The header is a line
//! of which word 0 is the number of the oldest journal entry that is needed. Journal and table have entries of 128 bits.
//!
//! | journal entry: word | bits | content |
//! |---|---|---|
//! | 0 | 0-39 | its number, from 0 over all passes (low 40 bits) |
//! | 0 | 40-59 | shadow page |
//! | 0 | 60 | the record begins here |
//! | 0 | 61 | it ends here: the commit marker |
//! | 0 | 62 | bit 63 of the bitmap |
//! | 1 | 0-62 | committed bitmap: bit `i` is line `i`; 0, it is at home; 1, in the shadow page |
//! | 0, 1 | 63 | torn bit: 1 in even passes over the journal, 0 in odd ones |
//!
//! | table entry: word | bits | content |
//! |---|---|---|
//! | 0 | 0 | used |
//! | 0 | 12-63 | address of the home page (from bit 7 on, if pages are smaller) |
//! | 1 | 0-63 | committed bitmap |
//!
//! A commit of several pages is one record of consecutive entries, which counts if all are there. Its last
//! line is sent when the others are durable: what waits for the record waits for that line. Records of one page are sent one after the other,
//! since each has the whole bitmap; those of different pages pass each other, and recovery skips what
//! is missing. The home word is written when the page gets its shadow page, and is durable before the
//! page's first record is sent. A checkpoint (`checkpoint_percent` of the journal used, or no room)
//! writes the bitmaps of the pages of the oldest durable records into the table; when they are durable, the header is
//! moved; when that is, the entries may be overwritten. A word of the table is whole or absent, and until the checkpoint
//! is durable the journal says the same.
//!
//! Recovery lays the journal's whole records over the table, from the header's number on, and copies every line that is
//! committed in a shadow page home. There are no non-volatile registers.
//!
//! **Words and lines.** Programs isolate words: two open transactions may share a line. SSP's two places
//! cannot hold both, so the controller knows the words of each transaction in a line (an extension, as for
//! `lad`). A commit of a shared line puts the line without the others' words into the current place: it reads
//! their committed words from the committed place (and the current line, if no cache holds it dirty). From then on the other place
//! is the current one, to which the line with the uncommitted words goes, now if it had left the caches,
//! later if not, and not before the record is durable. The same wait holds for every write to the other
//! place of a line whose commit is not recorded yet. `osp-literal` commits whole lines, as published, and
//! loses data there.
//!
//! Left open by the papers: all latencies of metadata and shootdowns (documented defaults); the SSP cache never misses
//! (it is as large as the pool); loads take no part in the TLBs, since no design pays for translation.
//!
//! | file | what |
//! |---|---|
//! | `mod` | parameters, state, hooks |
//! | `pages`, `tlb`, `write_set` | bitmaps and shadow pages; translations and shootdowns; updated lines |
//! | `commit` | flushes, shared lines |
//! | `journal` | records, checkpoints |
//! | `consolidation` | copies home, free pages |
//! | `layout`, `recovery` | the log region and its bits; recovery |
//! | `cost` | what the hardware costs |
//! | `cover` | states worth reaching |

mod commit;
mod consolidation;
mod cost;
mod cover;
mod journal;
mod layout;
mod pages;
mod recovery;
mod tlb;
mod write_set;

use std::collections::VecDeque;

use commit::{Commit, Committed, Leaving};
use consolidation::Copying;
use cover::{COVER_POINTS, Cover};
use journal::{JOURNAL_BYTES_MIN, Journal, Of};
use layout::{Layout, SHADOW_PAGES_MAX, Slot};
use pages::Pages;
use recovery::{format, recover};
use tlb::Tlb;
use write_set::WriteSet;

use graven_base::config::{ConfigError, Size};
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{LineAddr, LineData};
use graven_base::time::Cycle;
use graven_base::{choice, section};
use graven_machine::config::CoreConfig;
use graven_machine::design::{
    DesignContext, DesignInfo, Fill, Guarantee, MutantSet, Plug, RawAction, Stall, Store,
};
use graven_machine::machine::Machine;
use graven_machine::mutants;
use graven_machine::request::{Token, Write, WriteClass};

choice! {
    /// When TLBs of other cores are shot down.
    pub enum Shootdown {
        /// At each commit, for each page that it changed (HOOP).
        Commit = "commit",
        /// At each store that flips a current bit (HOOP: "during transaction execution").
        Store = "store",
        /// Never: their entries are updated by a broadcast (SSP).
        Never = "never",
    }
}

choice! {
    /// When pages are consolidated.
    pub enum Consolidation {
        /// As soon as no TLB holds them, and when shadow pages run out.
        Inactive = "inactive",
        /// When shadow pages run out.
        Demand = "demand",
    }
}

section! {
    /// Optimized shadow paging (SSP): two places for each line, and bitmaps that say which is committed.
    pub struct OspConfig("osp") {
        /// Page that gets a shadow page; its bitmaps have a bit for each line, 64 at most.
        page_bytes: Size = Size::kb(4), Size(128)..=Size::kb(4), "B";
        /// Shadow pages in the log region (default: as many as the TLBs of eight cores hold translations).
        shadow_pages: u32 = 512, 1..=SHADOW_PAGES_MAX, "pages";
        /// Circular metadata journal, of 16 B for each page and commit.
        journal_bytes: Size = Size::kb(64), Size(JOURNAL_BYTES_MIN)..=Size::mb(16), "B";
        /// Used share of the journal at which a checkpoint begins.
        checkpoint_percent: u32 = 50, 1..=100, "%";
        /// Translations that a core's extended TLB holds.
        tlb_entries: u32 = 64, 1..=4096, "pages";
        /// Time in which a TLB miss fetches a page's metadata from the SSP cache.
        metadata_cycles: u32 = 28, 0..=10_000, "cycles";
        /// Time of flipping a current bit, its broadcast included.
        flip_cycles: u32 = 1, 0..=10_000, "cycles";
        /// When TLBs of other cores are shot down.
        shootdown: Shootdown = Shootdown::Commit, (), "";
        /// Time that an interrupted thread spends on a shootdown.
        shootdown_cycles: u32 = 500, 0..=100_000, "cycles";
        /// Time that a thread waits for the cores whose translations it has shot down.
        shootdown_wait_cycles: u32 = 1000, 0..=100_000, "cycles";
        /// Time between two lines that leave an L1 at the end of a transaction.
        flush_interval_cycles: u32 = 1, 0..=1000, "cycles";
        /// When pages are consolidated.
        consolidation: Consolidation = Consolidation::Inactive, (), "";
        /// Lines of a page that are copied home at a time.
        copies_in_flight: u32 = 8, 1..=64, "lines";
    }
}

mutants! {
    /// A commit takes whole lines, whoever else has words in them.
    WholeLinesCommitted = "whole-lines-committed";
    /// The record of a commit is sent while its lines are on their way.
    FlushNotAwaited = "flush-not-awaited";
    /// It is sent while lines that were evicted before are on their way.
    EvictionNotAwaited = "eviction-not-awaited";
    /// A commit is acknowledged when its record is sent.
    RecordNotAwaited = "record-not-awaited";
    /// An uncommitted line goes to the place that is committed.
    EvictedOverCommitted = "evicted-over-committed";
    /// A line is evicted to its other place before the commit of the first is recorded.
    EvictionOvertakesRecord = "eviction-overtakes-record";
    /// A line is flushed to its other place before the commit of the first is recorded.
    FlushOvertakesRecord = "flush-overtakes-record";
    /// A shared line's uncommitted version goes to the other place before the commit is recorded.
    SharedLineOvertakesRecord = "shared-line-overtakes-record";
    /// Records of one page do not wait for each other.
    RecordsOfAPageTogether = "records-of-a-page-together";
    /// The last line of a record does not wait for the others.
    MarkerOvertakesRecord = "marker-overtakes-record";
    /// The first record of a page does not wait for the table to know its home.
    HomeWordNotAwaited = "home-word-not-awaited";
    /// Journal entries are overwritten while the checkpoint of them is on its way.
    CheckpointNotAwaited = "checkpoint-not-awaited";
    /// Journal entries are overwritten before the header says that they are not needed.
    HeadNotAwaited = "head-not-awaited";
    /// A checkpoint takes over what the journal does not say yet.
    CheckpointAhead = "checkpoint-ahead";
    /// The record of a consolidation is sent while copies are on their way.
    CopiesNotAwaited = "copies-not-awaited";
    /// A shadow page is free without a record of its consolidation.
    ConsolidationNotRecorded = "consolidation-not-recorded";
    /// A shadow page is free while the record of its consolidation is on its way.
    PageReusedEarly = "page-reused-early";
    /// A store to a page does not stop its consolidation.
    ConsolidationGoesOn = "consolidation-goes-on";
    /// The torn bits of journal entries are not looked at.
    TornBitsIgnored = "torn-bits-ignored";
    /// Recovery takes over records without their last entry.
    UnfinishedReplayed = "unfinished-replayed";
    /// Recovery takes over records without their first entry.
    BeheadedReplayed = "beheaded-replayed";
    /// Recovery reads the journal in the order of its places.
    ReplayedByPlace = "replayed-by-place";
    /// Recovery does not read the table's bitmaps.
    TableNotRead = "table-not-read";
    /// Journal and table are put to use as they are found.
    MetadataNotCleared = "metadata-not-cleared";
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "osp",
    summary: "two places for each line; a commit flips bits that say which is committed",
    paper: "SSP as in HOOP §II-B, §III-C, §IV-A (OSP)",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(OspConfig::default())),
    build: |context| Ok(Box::new(Osp::new(context)?)),
    format,
    recover,
    mutants: Mutant::NAMED,
    cover_points: COVER_POINTS,
    stress: &[
        ("osp.page_bytes", &["128 B", "256 B", "4 KB"]),
        ("osp.shadow_pages", &["2", "3", "4", "64"]),
        ("osp.journal_bytes", &["64 B", "128 B", "1 KB"]),
        ("osp.checkpoint_percent", &["10", "50", "100"]),
        ("osp.tlb_entries", &["1", "2", "64"]),
        ("osp.shootdown", &["commit", "store", "never"]),
        ("osp.shootdown_cycles", &["0", "40"]),
        ("osp.consolidation", &["inactive", "demand"]),
        ("osp.copies_in_flight", &["1", "8"]),
    ],
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with the papers' granularity.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "osp-literal",
    summary: "osp with whole lines committed, as published (loses data)",
    default: false,
    inherent: Mutant::all(&[Mutant::WholeLinesCommitted]),
    ..INFO
};

#[derive(Clone, Debug, Default)]
struct Thread {
    /// The core it runs on, once it has stored something.
    core: Option<u32>,
    writes: WriteSet,
    in_transaction: bool,
    /// Reads that the commit waits for before it begins.
    reads: u32,
    /// When its store began to wait for a shadow page.
    waits_since: Cycle,
}

/// What timers, reads and durable writes are about; the rest of the token is a line or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    /// A missed line was read.
    Fill = 1,
    /// A line that transactions share was read for the commit of a thread.
    Shared,
    /// A line of a commit is durable.
    Flush,
    /// An uncommitted line is durable in a place.
    Leaving,
    /// The controller hears of a commit.
    Record,
    /// The core hears that it is durable.
    Acknowledgement,
    /// A line of a journal record is durable.
    Journal,
    /// A line of the table is.
    Checkpoint,
    /// The header is.
    Head,
    /// The home word of a shadow page is.
    HomeWord,
    /// A line of a shadow page was read to be copied.
    Copy,
    /// It is durable at home.
    Copied,
}

const ABOUT_BITS: u32 = 4;

impl About {
    const ALL: [About; 12] = [
        About::Fill,
        About::Shared,
        About::Flush,
        About::Leaving,
        About::Record,
        About::Acknowledgement,
        About::Journal,
        About::Checkpoint,
        About::Head,
        About::HomeWord,
        About::Copy,
        About::Copied,
    ];

    fn line(self, line: LineAddr) -> Token {
        self.number(line.0)
    }

    fn number(self, number: u64) -> Token {
        number << ABOUT_BITS | self as u64
    }

    fn of(token: Token) -> (About, u64) {
        (About::ALL[(token as usize & ((1 << ABOUT_BITS) - 1)) - 1], token >> ABOUT_BITS)
    }
}

struct Osp {
    config: OspConfig,
    mutants: MutantSet,
    threads: Vec<Thread>,
    tlbs: Vec<Tlb>,
    pages: Pages,
    /// Pages that got a shadow page so far.
    allotted: u64,
    /// Stores so far: the time by which pages are old.
    stores: u64,
    commits: slab::Slab<Commit>,
    /// Lists of lines of past commits, kept for their memory.
    spare: Vec<Vec<Committed>>,
    leaving: Leaving,
    journal: Journal,
    copying: Option<Copying>,
    /// Tells the reads and writes of one consolidation from those of the one before.
    generation: u64,
    /// Pages to be consolidated.
    queue: VecDeque<Slot>,
    /// Threads whose stores wait for a shadow page.
    waiting: Vec<ThreadId>,
}

impl Osp {
    fn new(context: &DesignContext) -> Result<Osp, ConfigError> {
        let layout = Layout::of(context);
        layout.check(context)?;
        let cores = context.config.get::<CoreConfig>().count as usize;
        Ok(Osp {
            config: context.config.get::<OspConfig>().clone(),
            mutants: context.mutants,
            threads: vec![Thread::default(); context.threads as usize],
            tlbs: vec![Tlb::default(); cores],
            pages: Pages::new(layout),
            allotted: 0,
            stores: 0,
            commits: slab::Slab::new(),
            spare: Vec::new(),
            leaving: Leaving::default(),
            journal: Journal::new(layout),
            copying: None,
            generation: 0,
            queue: VecDeque::new(),
            waiting: Vec::new(),
        })
    }

    /// The page of a line that is stored to gets a shadow page, if one is free.
    fn allot(&mut self, m: &mut Machine, line: LineAddr) -> Option<Slot> {
        let slot = self.pages.allot(line)?;
        self.allotted += 1;
        if self.allotted > self.config.shadow_pages.into() {
            m.cover(Cover::ShadowPageReused as usize);
        }
        let max = &mut m.count().mapping_entries_max;
        *max = (*max).max(self.pages.in_use() as u64);
        self.write_home_word(m, slot);
        Some(slot)
    }

    /// A thread's transaction has ended: stores that wait for a shadow page may wait in vain from now on.
    fn ended(&mut self, m: &mut Machine, thread: usize) {
        self.threads[thread].in_transaction = false;
        self.consolidate_next(m);
    }

    /// The first store of a transaction to a line. Returns what it costs.
    fn updates(&mut self, m: &mut Machine, store: &Store, slot: Slot) -> Cycle {
        let line = store.addr.line();
        self.stop_consolidation(m, slot);
        let page = self.pages.get_mut(slot);
        page.open += 1;
        if page.consolidating != 0 {
            m.cover(Cover::StoreWhileRecorded as usize);
        }
        if self.words_of_others(store.tx.thread as usize, line) != 0 {
            return 0;
        }
        let bit = self.pages.bit(slot, line);
        self.pages.get_mut(slot).current ^= bit;
        self.flipped(m, slot, store.core)
    }
}

impl Plug for Osp {
    fn tx_begin(&mut self, _m: &mut Machine, tx: Tx) -> Stall {
        self.threads[tx.thread as usize].in_transaction = true;
        Stall::None
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let line = store.addr.line();
        let slot = self.pages.slot_of(line).or_else(|| self.allot(m, line));
        let Some(slot) = slot else { return self.wait_for_page(m, store.tx.thread) };
        let thread = &mut self.threads[store.tx.thread as usize];
        thread.core = Some(store.core);
        let mut cost = 0;
        if thread.writes.store(line, slot, store.addr.word_in_line()) {
            cost = self.updates(m, store, slot);
        }
        self.stores += 1;
        self.pages.get_mut(slot).stored = self.stores;
        cost += self.translate(m, store.core, slot);
        if cost == 0 { Stall::None } else { Stall::For(cost) }
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        let t = tx.thread as usize;
        if self.threads[t].writes.lines.is_empty() {
            self.ended(m, t);
            return Stall::None;
        }
        self.prepare(m, t);
        Stall::UntilReleased
    }

    fn llc_evict(&mut self, m: &mut Machine, line: LineAddr, content: &LineData) -> RawAction {
        let Some(slot) = self.pages.slot_of(line) else {
            return RawAction::Send { after: 0, token: 0 };
        };
        self.stop_consolidation(m, slot);
        let (mut after, mut token) = (self.barrier(line, slot), 0);
        let mut in_shadow = self.pages.is_current_in_shadow(slot, line);
        if self.mutants.has(Mutant::EvictedOverCommitted) {
            in_shadow = self.pages.is_committed_in_shadow(slot, line);
        }
        if after != 0 {
            m.cover(Cover::EvictionHeld as usize);
        }
        if self.mutants.has(Mutant::EvictionOvertakesRecord) {
            after = 0;
        }
        let place = self.pages.place(slot, line, in_shadow);
        if self.threads.iter().any(|thread| thread.writes.find(line).is_some()) {
            m.cover(Cover::EvictedBeforeCommit as usize);
            self.leaving.add(place);
            token = About::Leaving.line(place);
        }
        if !in_shadow {
            return RawAction::Send { after, token };
        }
        m.note(|| format!("line {} goes to shadow page {slot}", line.addr()));
        let write = Write::line(WriteClass::Data, place, *content);
        m.write(Write { after, token, ..write }, 0);
        RawAction::Absorb
    }

    fn llc_fill(&mut self, m: &mut Machine, line: LineAddr, delay: Cycle) -> Fill {
        let Some(slot) = self.pages.slot_of(line) else { return Fill::Home };
        let in_shadow = self.pages.is_current_in_shadow(slot, line);
        // A line that is at home and has no uncommitted words stays there while it is read.
        if !in_shadow && self.pages.get(slot).open == 0 {
            return Fill::Home;
        }
        if in_shadow {
            m.cover(Cover::ReadFromShadow as usize);
        }
        m.count().fill_reads += 1;
        m.read(self.pages.place(slot, line, in_shadow), About::Fill.line(line), delay);
        Fill::Design
    }

    fn read_done(&mut self, m: &mut Machine, token: Token, place: LineAddr, content: &LineData) {
        let (about, number) = About::of(token);
        match about {
            About::Fill => {
                let line = LineAddr(number);
                let current = self.pages.current_place(line);
                if current == place {
                    return m.deliver(line, *content, 0);
                }
                m.cover(Cover::ReadAgain as usize);
                m.count().fill_reads += 1;
                m.read(current, token, 0);
            }
            About::Shared => {
                let thread = number as usize;
                self.threads[thread].reads -= 1;
                if self.threads[thread].reads == 0 {
                    self.prepare(m, thread);
                }
            }
            About::Copy => self.line_read(m, number, content),
            _ => unreachable!("nothing else is read"),
        }
    }

    fn on_durable(&mut self, m: &mut Machine, token: Token) {
        let (about, number) = About::of(token);
        match about {
            About::Flush => self.flushed(m, number as usize),
            About::Leaving => self.has_left(m, LineAddr(number)),
            About::Journal => self.entries_durable(m, number),
            About::Checkpoint => self.checkpoint_durable(m),
            About::Head => self.head_durable(m),
            About::HomeWord => self.home_word_durable(m, number as Slot),
            About::Copied => self.line_home(m, number),
            _ => unreachable!("nothing else is written"),
        }
    }

    fn start_maintenance(&mut self, m: &mut Machine) {
        self.checkpoint(m, false);
        let inactive = |(slot, page): (Slot, &pages::Page)| {
            (page.cores == 0 && page.is_quiet()).then_some(slot)
        };
        let inactive: Vec<Slot> = self.pages.iter().filter_map(inactive).collect();
        inactive.into_iter().for_each(|slot| self.queue_page(slot));
        self.consolidate_next(m);
    }

    fn timer(&mut self, m: &mut Machine, token: u64) {
        let (about, number) = About::of(token);
        if about == About::Record {
            self.journal.wait(Of::Commit(number as usize));
            return self.send_records(m);
        }
        m.release(number as ThreadId);
        self.ended(m, number as usize);
    }

    fn is_idle(&self) -> bool {
        self.copying.is_none()
            && self.queue.is_empty()
            && self.commits.is_empty()
            && self.journal.is_idle()
    }
}
