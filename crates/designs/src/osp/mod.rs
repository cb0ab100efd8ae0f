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
//! A commit of several pages is one record of consecutive entries, which counts if all are durable. Its last
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
//! | `mod` | parameters |
//! | `rules` | the rules of the protocol, and the mutants that break them |
//! | `protocol` | state, and what each hook of the design does |
//! | `event` | what happens, counted and traced; cover points |
//! | `pages`, `tlb`, `write_set` | bitmaps and shadow pages; translations and shootdowns; updated lines |
//! | `places` | lines that leave the caches, lines that are missed |
//! | `commit` | flushes, shared lines |
//! | `journal` | records, checkpoints |
//! | `consolidation` | copies home, free pages |
//! | `layout`, `recovery` | the log region and its bits; recovery |
//! | `cost` | what the hardware costs |

mod commit;
mod consolidation;
mod cost;
mod event;
mod journal;
mod layout;
mod pages;
mod places;
mod protocol;
mod recovery;
mod rules;
mod tlb;
mod write_set;

use crate::out_of_place::DATA_REDUCTION;
use crate::rules::named;
use event::{COVER_POINTS, Counters};
use journal::JOURNAL_BYTES_MIN;
use layout::{Layout, SHADOW_PAGES_MAX};
use protocol::Osp;
use recovery::{format, recover, settle};
use rules::Rules;

use graven_base::config::Size;
use graven_base::stats::CounterSet;
use graven_base::{choice, section};
use graven_machine::design::{
    Acknowledgement, Capacity, DesignContext, DesignInfo, Guarantee, Leaves, Named, Room, Step,
    TakenBy, plug,
};

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
        page_bytes: Size = Size::kb(4), Size(64)..=Size::kb(4), "B";
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

/// Structures with a limited number of places: for a page each, or, in the journal, for a page in a commit.
const CAPACITIES: &[Capacity] = &[
    Capacity {
        full: Named {
            name: "tlb-exactly-full",
            summary: "all places of a core's extended TLB were taken",
        },
        room: |context| pages(context, context.config.get::<OspConfig>().tlb_entries.into()),
    },
    Capacity {
        full: Named { name: "shadow-pages-exactly-full", summary: "no shadow page was free" },
        room: |context| pages(context, context.config.get::<OspConfig>().shadow_pages.into()),
    },
    Capacity {
        full: Named {
            name: "journal-exactly-full",
            summary: "all entries of the journal were taken",
        },
        room: |context| pages(context, Layout::of(context).entries),
    },
];

/// Places for pages.
fn pages(context: &DesignContext, places: u64) -> Room {
    Room { places, taken_by: TakenBy::Piece(context.config.get::<OspConfig>().page_bytes.0) }
}

/// The design's entry in the registry.
pub const INFO: DesignInfo = DesignInfo {
    name: "osp",
    summary: "two places for each line; a commit flips bits that say which is committed",
    paper: "SSP as in HOOP §II-B, §III-C, §IV-A (OSP)",
    guarantee: |_| Guarantee::Durable,
    section: Some(|| Box::new(OspConfig::default())),
    acknowledgement: Acknowledgement {
        source: "SSP as in HOOP §IV-A: lines are flushed to their other places; the core hears of it and sends the commit to the \
                 controller, which appends its record to the metadata journal, and answers",
        steps: |_| {
            let flush = [Step::Fall, Step::Write, Step::Message];
            flush.into_iter().chain([Step::Message, Step::Write, Step::Message]).collect()
        },
    },
    build: |context| Ok(plug(Osp::new(context)?).absorbing().into()),
    format,
    recover,
    settle,
    mutants: Rules::MUTANTS,
    counters: Counters::declarations,
    derived: &[DATA_REDUCTION],
    cover_points: COVER_POINTS,
    capacities: CAPACITIES,
    stress: &[
        ("osp.page_bytes", &["128 B", "256 B", "4 KB"]),
        ("osp.shadow_pages", &["2", "3", "4", "64"]),
        ("osp.journal_bytes", &["64 B", "128 B", "1 KB", "16 KB"]),
        ("osp.checkpoint_percent", &["10", "50", "100"]),
        ("osp.tlb_entries", &["1", "2", "64"]),
        ("osp.shootdown", &["commit", "store", "never"]),
        ("osp.shootdown_cycles", &["0", "40"]),
        ("osp.consolidation", &["inactive", "demand"]),
        ("osp.copies_in_flight", &["1", "8"]),
    ],
    scaled_down: &[
        ("osp.page_bytes", "64 B"),
        ("osp.shadow_pages", "2"),
        ("osp.journal_bytes", "64 B"),
        ("osp.tlb_entries", "1"),
    ],
    leaves: |_| Leaves::Clean,
    cost: cost::COSTS,
    ..DesignInfo::DEFAULT
};

/// The same with the papers' granularity.
pub const LITERAL: DesignInfo = DesignInfo {
    name: "osp-literal",
    summary: "osp with whole lines committed, as published (loses data)",
    default: false,
    inherent: named(Rules::MUTANTS, &["whole-lines-committed"]),
    ..INFO
};
