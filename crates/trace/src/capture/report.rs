//! The captured operations, those left out, and those that the capture cannot explain.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Most places that are named of each kind.
pub(super) const NAMED_MAX: usize = 8;

/// Something in persistent memory that no recorded store explains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mismatch {
    /// The region, by its number.
    pub region: usize,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The thread of a load that found something else.
    pub thread: Option<u32>,
    /// The transactions of the thread before that load.
    pub transaction: Option<u64>,
}

/// One of two accesses that race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Accessor {
    /// The thread, by its number in the trace.
    pub thread: Option<u32>,
    /// The transaction; none: the access is outside transactions.
    pub transaction: Option<u64>,
    /// The region, by its number.
    pub region: usize,
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes; of the earlier access, those that are known of the word.
    pub bytes: u64,
    /// The access is a store.
    #[serde(rename = "access", serialize_with = "access")]
    pub is_store: bool,
}

/// Writes how memory is accessed.
fn access<S: Serializer>(is_store: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(if *is_store { "store" } else { "load" })
}

/// Two accesses that race, in the order in which the trace has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Race {
    /// The first.
    pub earlier: Accessor,
    /// The second.
    pub later: Accessor,
}

/// A region of persistent memory in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Region {
    /// First byte.
    pub start: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Length of the region's file when the trace begins, in bytes; 0 of memory that is no file's.
    pub file_bytes: u64,
}

/// The counts of a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
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
    /// Those that store nothing.
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
    /// Words stored outside transactions.
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
    /// The places of the first.
    pub unexplained: Vec<Mismatch>,
    /// Loads that have found something else than what is there in the trace.
    pub loads_unexplained: u64,
    /// The places of the first.
    pub loads_astray: Vec<Mismatch>,
    /// Loads and stores that race with an earlier one of another thread.
    pub races: u64,
    /// Bytes of persistent memory that have a race.
    pub racing_bytes: u64,
    /// The first races, of different words.
    pub first_races: Vec<Race>,
    /// Changes of lengths of files in the trace.
    pub lengths_changed: u64,
    /// Functions that say what a transaction or the region is, or are left out, and that the program never entered.
    pub never_entered: Vec<String>,
    /// The regions of persistent memory.
    pub regions: Vec<Region>,
}

impl Report {
    /// Returns the report as a document.
    #[must_use]
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("texts and numbers can be written")
    }
}
