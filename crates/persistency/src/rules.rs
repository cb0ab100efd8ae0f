//! Preserved program order: which steps of a thread act in the order in which the program has them.
//!
//! A step *acts* when a store becomes visible to other threads, a load is answered, a flush reaches its line, a fence is passed.
//! A thread's steps act in any order that these rules allow. Each rule is a named function with its sentence and its source; a
//! model has a list of them, and a pair of steps that no rule of the list orders is free.
//!
//! Px86: Raad, Wickerson, Neiger, Vafeiadis, "Persistency semantics of the Intel-x86 architecture", POPL 2020. PArmv8: Cho, Lee,
//! Raad, Kang, "Revamping hardware persistency models", PLDI 2021. SDM: Intel's manual, volumes 2 (instructions) and 3 (memory
//! ordering). APM: AMD's manual 24594, volume 3. Arm ARM: DDI 0487.

use crate::happening::{Fence, Path};

/// A step of a thread, as far as order depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Act {
    /// The kind of the step.
    pub kind: Kind,
    /// The word that it loads or stores.
    pub word: Option<u8>,
    /// The line that it touches.
    pub line: Option<u8>,
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A store.
    Store(Path),
    /// A load.
    Load,
    /// A load before everything later (`LDAR`).
    LoadAcquire,
    /// A locked instruction that stores, or the taking of a lock.
    Exchange,
    /// `clwb` or `clflushopt`.
    WriteBack,
    /// `clflush`.
    Flush,
    /// `DC CVAC`, `DC CVAP`, `DC CVADP`.
    Clean,
    /// A fence.
    Fence(Fence),
    /// A system call that sends something out, where that drains the thread's buffers.
    Told,
}

/// A rule of preserved program order.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The name.
    pub name: &'static str,
    /// The rule in a sentence.
    pub sentence: &'static str,
    /// The publication, or the reason.
    pub source: &'static str,
    /// Decides for two steps of a thread, the first earlier in its program.
    pub orders: fn(&Act, &Act) -> bool,
}

/// Tells if some rule keeps two steps of a thread, the first earlier in its program, in this order.
pub fn ordered(rules: &[Rule], first: &Act, second: &Act) -> bool {
    rules.iter().any(|rule| (rule.orders)(first, second))
}

/// Rules of x86 whose `clflush` is ordered with stores, as Intel has it.
pub const INTEL: &[Rule] = &[
    Rule {
        name: "loads first",
        sentence: "A load acts before every later step.",
        source: "SDM 3, memory ordering; Px86",
        orders: loads_first,
    },
    Rule {
        name: "stores in order",
        sentence: "Stores become visible in program order.",
        source: "SDM 3, memory ordering (TSO); Px86",
        orders: stores_in_order,
    },
    Rule {
        name: "full fences",
        sentence: "mfence and locked instructions act after every earlier step and before every later one.",
        source: "SDM 3, memory ordering; Px86",
        orders: full_fences,
    },
    Rule {
        name: "store fences",
        sentence: "sfence acts after earlier stores, flushes and fences, and before later ones. Later loads do not wait for it.",
        source: "SDM 2, SFENCE; Px86",
        orders: store_fences,
    },
    Rule {
        name: "store before write-back",
        sentence: "A store acts before a later clwb or clflushopt of its line. A write-back is not ordered before later stores.",
        source: "SDM 2, CLWB and CLFLUSHOPT; Px86",
        orders: store_before_write_back,
    },
    Rule {
        name: "clflush and stores",
        sentence: "clflush is ordered with earlier and later stores of any line, and with other clflush.",
        source: "SDM 2, CLFLUSH; Px86",
        orders: clflush_and_stores,
    },
    Rule {
        name: "flushes of a line",
        sentence: "clflush and clwb or clflushopt of one line act in program order; of different lines they do not.",
        source: "SDM 2, CLFLUSHOPT; Px86",
        orders: flushes_of_a_line,
    },
    NON_TEMPORAL,
];

/// Rules of x86 whose `clflush` is ordered by `mfence` alone, as AMD has it.
pub const AMD: &[Rule] = &[
    INTEL[0],
    INTEL[1],
    Rule {
        name: "full fences",
        sentence: "mfence acts after every earlier step and before every later one; so does a locked instruction, but that an earlier clflush may act after it.",
        source: "APM 3, MFENCE and CLFLUSH",
        orders: full_fences_amd,
    },
    Rule {
        name: "store fences",
        sentence: "sfence acts after earlier stores, clwb, clflushopt and fences, and before later ones; clflush passes it.",
        source: "APM 3, SFENCE and CLFLUSH",
        orders: store_fences_amd,
    },
    INTEL[4],
    Rule {
        name: "clflush",
        sentence: "mfence alone orders clflush: it may act before an earlier store of its own line, and after later stores.",
        source: "APM 3, CLFLUSH: \"weakly-ordered\"",
        orders: nothing,
    },
    NON_TEMPORAL_AMD,
];

const NON_TEMPORAL: Rule = Rule {
    name: "non-temporal stores",
    sentence: "A non-temporal store is ordered by fences; with stores, flushes and non-temporal stores of its line alone.",
    source: "SDM 3, memory ordering (exceptions); the part about its own line is an assumption",
    orders: non_temporal,
};

const NON_TEMPORAL_AMD: Rule = Rule { orders: non_temporal_amd, ..NON_TEMPORAL };

/// Rules of Armv8.
pub const ARM: &[Rule] = &[
    Rule {
        name: "coherence",
        sentence: "Accesses of a thread to one word act in program order, but for a load that its own earlier store answers.",
        source: "Arm ARM B2.3; PArmv8",
        orders: one_word,
    },
    Rule {
        name: "cleans of a line",
        sentence: "A clean acts in program order with loads and stores of its line.",
        source: "Arm ARM, data cache maintenance by address; PArmv8",
        orders: cleans_of_a_line,
    },
    Rule {
        name: "DMB",
        sentence: "DMB acts after every earlier load, store and clean, and before every later one. It completes no clean.",
        source: "Arm ARM B2.3; PArmv8",
        orders: dmb,
    },
    Rule {
        name: "DMB ST",
        sentence: "DMB ST orders earlier stores before later stores.",
        source: "Arm ARM B2.3",
        orders: dmb_store,
    },
    Rule {
        name: "DMB LD",
        sentence: "DMB LD orders earlier loads before later loads, stores and cleans.",
        source: "Arm ARM B2.3",
        orders: dmb_load,
    },
    Rule {
        name: "DSB",
        sentence: "DSB acts after every earlier step and before every later one.",
        source: "Arm ARM B2.3; PArmv8",
        orders: dsb,
    },
    Rule {
        name: "acquire",
        sentence: "LDAR acts before every later load and store. That it orders later cleans is not assumed.",
        source: "Arm ARM B2.3",
        orders: acquire,
    },
    Rule {
        name: "release",
        sentence: "STLR acts after every earlier load and store, and before a later LDAR.",
        source: "Arm ARM B2.3",
        orders: release,
    },
];

const fn is_fence(act: &Act) -> bool {
    matches!(act.kind, Kind::Fence(Fence::Full | Fence::Locked) | Kind::Exchange | Kind::Told)
}

fn is_store(act: &Act) -> bool {
    matches!(act.kind, Kind::Store(Path::Cached | Path::Release))
}

fn is_non_temporal(act: &Act) -> bool {
    act.kind == Kind::Store(Path::NonTemporal)
}

fn is_load(act: &Act) -> bool {
    matches!(act.kind, Kind::Load | Kind::LoadAcquire)
}

fn share_a_line(first: &Act, second: &Act) -> bool {
    first.line.is_some() && first.line == second.line
}

fn nothing(_: &Act, _: &Act) -> bool {
    false
}

fn loads_first(first: &Act, _: &Act) -> bool {
    is_load(first)
}

fn stores_in_order(first: &Act, second: &Act) -> bool {
    is_store(first) && is_store(second)
}

fn full_fences(first: &Act, second: &Act) -> bool {
    is_fence(first) || is_fence(second)
}

fn full_fences_amd(first: &Act, second: &Act) -> bool {
    // A locked instruction loads: what is later in the program is executed after that.
    let is_full = |act: &Act| matches!(act.kind, Kind::Fence(Fence::Full) | Kind::Told);
    is_fence(first) || is_full(second) || is_fence(second) && first.kind != Kind::Flush
}

fn store_fences(first: &Act, second: &Act) -> bool {
    let fence = Kind::Fence(Fence::Store);
    second.kind == fence || first.kind == fence && !is_load(second)
}

fn store_fences_amd(first: &Act, second: &Act) -> bool {
    let touches_clflush = first.kind == Kind::Flush || second.kind == Kind::Flush;
    store_fences(first, second) && !touches_clflush
}

fn store_before_write_back(first: &Act, second: &Act) -> bool {
    is_store(first) && second.kind == Kind::WriteBack && share_a_line(first, second)
}

fn clflush_and_stores(first: &Act, second: &Act) -> bool {
    let belongs = |act: &Act| is_store(act) || act.kind == Kind::Flush;
    let flushes = first.kind == Kind::Flush || second.kind == Kind::Flush;
    flushes && belongs(first) && belongs(second)
}

fn flushes_of_a_line(first: &Act, second: &Act) -> bool {
    let kinds = (first.kind, second.kind);
    let differ = matches!(kinds, (Kind::Flush, Kind::WriteBack) | (Kind::WriteBack, Kind::Flush));
    differ && share_a_line(first, second)
}

fn non_temporal(first: &Act, second: &Act) -> bool {
    let belongs = |act: &Act| matches!(act.kind, Kind::Store(_) | Kind::Flush | Kind::WriteBack);
    let has_one = is_non_temporal(first) || is_non_temporal(second);
    // A write-back is not ordered before later stores, of whatever kind.
    let passes = first.kind == Kind::WriteBack;
    has_one && !passes && belongs(first) && belongs(second) && share_a_line(first, second)
}

fn non_temporal_amd(first: &Act, second: &Act) -> bool {
    let touches_clflush = first.kind == Kind::Flush || second.kind == Kind::Flush;
    non_temporal(first, second) && !touches_clflush
}

fn one_word(first: &Act, second: &Act) -> bool {
    let accesses = |act: &Act| is_load(act) || matches!(act.kind, Kind::Store(_));
    let is_forwarded = !is_load(first) && is_load(second);
    accesses(first) && accesses(second) && first.word == second.word && !is_forwarded
}

fn cleans_of_a_line(first: &Act, second: &Act) -> bool {
    let cleans = (first.kind == Kind::Clean) != (second.kind == Kind::Clean);
    cleans && share_a_line(first, second)
}

fn dmb(first: &Act, second: &Act) -> bool {
    [first, second].iter().any(|act| act.kind == Kind::Fence(Fence::Dmb))
}

fn dmb_store(first: &Act, second: &Act) -> bool {
    let fence = Kind::Fence(Fence::DmbStore);
    is_store(first) && second.kind == fence || first.kind == fence && is_store(second)
}

fn dmb_load(first: &Act, second: &Act) -> bool {
    let fence = Kind::Fence(Fence::DmbLoad);
    is_load(first) && second.kind == fence || first.kind == fence
}

fn dsb(first: &Act, second: &Act) -> bool {
    [first, second].iter().any(|act| matches!(act.kind, Kind::Fence(Fence::Dsb) | Kind::Told))
}

fn acquire(first: &Act, second: &Act) -> bool {
    let takes = matches!(first.kind, Kind::LoadAcquire | Kind::Exchange);
    takes && second.kind != Kind::Clean
}

fn release(first: &Act, second: &Act) -> bool {
    let releases = |act: &Act| act.kind == Kind::Store(Path::Release);
    let waits = releases(second) && first.kind != Kind::Clean;
    waits || releases(first) && second.kind == Kind::LoadAcquire
}
