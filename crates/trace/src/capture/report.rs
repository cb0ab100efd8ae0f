//! What was captured, what was left out, and what the capture cannot explain.

use serde_json::{Value, json};

/// Most places that are named of each kind.
pub(super) const NAMED_MAX: usize = 8;

/// Something in persistent memory that no recorded store explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The region, by its number.
    pub region: usize,
    /// Offset of the first byte.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
    /// Of a load that found something else: the thread, and its transactions before.
    pub load: Option<(u32, u64)>,
}

impl Mismatch {
    fn to_json(&self) -> Value {
        json!({
            "region": self.region,
            "offset": self.offset,
            "bytes": self.bytes,
            "thread": self.load.map(|(thread, _)| thread),
            "transaction": self.load.map(|(_, transaction)| transaction),
        })
    }
}

/// One of two accesses that race.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accessor {
    /// The thread, by its number in the trace.
    pub thread: Option<u32>,
    /// Its transaction; none: it is outside transactions.
    pub transaction: Option<u64>,
    /// The region, by its number.
    pub region: usize,
    /// Offset of the first byte.
    pub offset: u64,
    /// How many bytes; of the earlier access, those that are known of the word.
    pub bytes: u64,
    /// Whether it stores.
    pub is_store: bool,
}

impl Accessor {
    fn to_json(&self) -> Value {
        json!({
            "thread": self.thread,
            "transaction": self.transaction,
            "region": self.region,
            "offset": self.offset,
            "bytes": self.bytes,
            "access": if self.is_store { "store" } else { "load" },
        })
    }
}

/// Two accesses that race, in the order in which the trace has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The first.
    pub earlier: Accessor,
    /// The second.
    pub later: Accessor,
}

/// What a capture has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Threads of the program with accesses to persistent memory, or transactions.
    pub threads: u32,
    /// Threads of the program.
    pub all_threads: u32,
    /// Loads of persistent memory by instructions, all of the program's.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Bytes that the kernel wrote to persistent memory, for system calls.
    pub kernel_bytes: u64,
    /// Transactions in the trace.
    pub transactions: u64,
    /// Of these, those that store nothing.
    pub transactions_without_stores: u64,
    /// Those that store more than one word.
    pub transactions_of_several: u64,
    /// Those that the program has aborted.
    pub aborted: u64,
    /// Those that were not over when the program ended, or the trace.
    pub unfinished: u64,
    /// Ends of transactions on threads that had none, behind the trace's beginning.
    pub ends_of_none: u64,
    /// Transactions before the trace begins.
    pub skipped: u64,
    /// Critical sections of the program that do not touch persistent memory: they are no transactions.
    pub sections_untouched: u64,
    /// Stores of words in the trace, and those of them that are outside transactions.
    pub words_stored: u64,
    /// See there.
    pub words_stored_outside: u64,
    /// Loads and stores of words by functions that are left out: they are not in the trace.
    pub words_left_out: u64,
    /// Loads of words of volatile memory that are in the trace.
    pub volatile_loads: u64,
    /// Stores.
    pub volatile_stores: u64,
    /// Pages of volatile memory, of 4 KB, that they touch.
    pub volatile_pages: u64,
    /// Loads and stores of words in the trace whose address was loaded, not too long before.
    pub addresses_loaded: u64,
    /// Locks that were released in a transaction, which holds them to its end in the trace.
    pub unlocks_put_off: u64,
    /// Locks that are one lock with others in the trace, since threads acquire them in orders that contradict each other.
    pub locks_merged: u64,
    /// Processes that the program has made; what they did is not known.
    pub forks: u64,
    /// Programs that have replaced this one in a process.
    pub replaced: u64,
    /// Bytes of regions that were compared with those at the end; 0: the program did not come to its end, or its files were
    /// not there.
    pub bytes_compared: u64,
    /// Bytes at the end that no store explains.
    pub bytes_unexplained: u64,
    /// Where the first are.
    pub unexplained: Vec<Mismatch>,
    /// Loads that have found something else than what is there in the trace.
    pub loads_unexplained: u64,
    /// Where the first were.
    pub loads_astray: Vec<Mismatch>,
    /// Loads and stores that race with an earlier one of another thread.
    pub races: u64,
    /// Bytes of persistent memory that have a race.
    pub racing_bytes: u64,
    /// The first races, of different words.
    pub first_races: Vec<Race>,
    /// First byte and length of each region in the trace.
    pub regions: Vec<(u64, u64)>,
    /// The length of each region's file when the trace begins; 0 of that which is no file's.
    pub file_bytes: Vec<u64>,
    /// Changes of lengths of files in the trace.
    pub lengths_changed: u64,
    /// Functions that say what a transaction or the region is, or are left out, and that the program never entered.
    pub never_entered: Vec<String>,
}

impl Report {
    /// As a document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let places = |all: &[Mismatch]| all.iter().map(Mismatch::to_json).collect::<Vec<_>>();
        let races = self
            .first_races
            .iter()
            .map(|race| json!({"earlier": race.earlier.to_json(), "later": race.later.to_json()}));
        let regions = self.regions.iter().zip(&self.file_bytes).map(
            |(&(start, bytes), file)| json!({"start": start, "bytes": bytes, "file_bytes": file}),
        );
        json!({
            "threads": self.threads,
            "all_threads": self.all_threads,
            "loads": self.loads,
            "stores": self.stores,
            "kernel_bytes": self.kernel_bytes,
            "transactions": self.transactions,
            "transactions_without_stores": self.transactions_without_stores,
            "transactions_of_several": self.transactions_of_several,
            "aborted": self.aborted,
            "unfinished": self.unfinished,
            "ends_of_none": self.ends_of_none,
            "skipped": self.skipped,
            "sections_untouched": self.sections_untouched,
            "words_stored": self.words_stored,
            "words_stored_outside": self.words_stored_outside,
            "words_left_out": self.words_left_out,
            "volatile_loads": self.volatile_loads,
            "volatile_stores": self.volatile_stores,
            "volatile_pages": self.volatile_pages,
            "addresses_loaded": self.addresses_loaded,
            "unlocks_put_off": self.unlocks_put_off,
            "locks_merged": self.locks_merged,
            "forks": self.forks,
            "replaced": self.replaced,
            "bytes_compared": self.bytes_compared,
            "bytes_unexplained": self.bytes_unexplained,
            "unexplained": places(&self.unexplained),
            "loads_unexplained": self.loads_unexplained,
            "loads_astray": places(&self.loads_astray),
            "races": self.races,
            "racing_bytes": self.racing_bytes,
            "first_races": races.collect::<Vec<_>>(),
            "lengths_changed": self.lengths_changed,
            "never_entered": self.never_entered,
            "regions": regions.collect::<Vec<_>>(),
        })
    }
}
