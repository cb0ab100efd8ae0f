//! Classes of findings.

use serde::{Serialize, Serializer};

use super::places::Deed;

/// Weight of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A power failure may lose what the program has stored.
    Bug,
    /// The program does more than it needs.
    Waste,
}

/// The class of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A store that nothing ever makes durable.
    NeverFlushed,
    /// A store whose line is written back, and no fence follows.
    NeverFenced,
    /// A store between the flush of its line and the fence, which the flush need not have seen.
    StoredAfterFlush,
    /// A flush of memory that is not persistent, such as a pointer's own copy on the stack.
    FlushOfOtherMemory,
    /// A load of what another thread has stored and not made durable, and something that is durable or told because of it.
    DirtyRead,
    /// A call that was to make something durable, and failed.
    SyncFailed,
    /// A store that no call of msync or fsync covers, of a program that makes such calls.
    SyncMisses,
    /// An msync with MS_ASYNC, and something told to others before its pages were durable.
    AsyncAcknowledged,
    /// A flush of a line that was flushed before, with no store and no fence between.
    FlushedTwice,
    /// A flush of a line that holds nothing that is not durable.
    CleanFlush,
    /// A fence with nothing to order.
    IdleFence,
    /// An ordinary store to a line with non-temporal stores that no fence has completed.
    StoreAfterNonTemporal,
    /// A call that covers a thousand times as much as was stored.
    WideSync,
    /// A lock that is free, and durable as held.
    HeldLock,
}

impl Class {
    /// All, in the order in which they are reported.
    pub const ALL: [Class; 14] = [
        Class::NeverFlushed,
        Class::NeverFenced,
        Class::StoredAfterFlush,
        Class::FlushOfOtherMemory,
        Class::DirtyRead,
        Class::SyncFailed,
        Class::SyncMisses,
        Class::AsyncAcknowledged,
        Class::FlushedTwice,
        Class::CleanFlush,
        Class::IdleFence,
        Class::StoreAfterNonTemporal,
        Class::WideSync,
        Class::HeldLock,
    ];

    /// The name in reports and suppressions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::NeverFlushed => "never-flushed",
            Class::NeverFenced => "never-fenced",
            Class::StoredAfterFlush => "stored-after-flush",
            Class::FlushOfOtherMemory => "flush-of-other-memory",
            Class::DirtyRead => "dirty-read",
            Class::SyncFailed => "sync-failed",
            Class::SyncMisses => "sync-misses",
            Class::AsyncAcknowledged => "async-acknowledged",
            Class::FlushedTwice => "flushed-twice",
            Class::CleanFlush => "clean-flush",
            Class::IdleFence => "idle-fence",
            Class::StoreAfterNonTemporal => "store-after-non-temporal",
            Class::WideSync => "wide-sync",
            Class::HeldLock => "held-lock",
        }
    }

    /// The weight.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Class::FlushedTwice
            | Class::CleanFlush
            | Class::IdleFence
            | Class::StoreAfterNonTemporal
            | Class::WideSync
            | Class::HeldLock => Severity::Waste,
            _ => Severity::Bug,
        }
    }

    /// The kind of instruction that is blamed.
    pub(super) fn deed(self) -> Deed {
        match self {
            Class::NeverFlushed
            | Class::StoredAfterFlush
            | Class::DirtyRead
            | Class::SyncMisses
            | Class::StoreAfterNonTemporal
            | Class::HeldLock => Deed::Access,
            _ => Deed::Order,
        }
    }

    /// The problem in one sentence.
    #[must_use]
    pub fn problem(self) -> &'static str {
        match self {
            Class::NeverFlushed => "stores that nothing makes durable",
            Class::NeverFenced => "stores that are written back, with no fence behind the flush",
            Class::StoredAfterFlush => "stores between the flush of their line and the fence",
            Class::FlushOfOtherMemory => "flushes of memory that is not persistent",
            Class::DirtyRead => "loads of another thread's stores that are not durable yet",
            Class::SyncFailed => "calls that failed, so that nothing became durable",
            Class::SyncMisses => "stores to pages that no msync or fsync covers",
            Class::AsyncAcknowledged => "msync with MS_ASYNC, and an answer before it was durable",
            Class::FlushedTwice => "flushes of lines that were flushed just before",
            Class::CleanFlush => "flushes of lines with nothing to write back",
            Class::IdleFence => "fences with nothing to order",
            Class::StoreAfterNonTemporal => "ordinary stores to lines with non-temporal stores",
            Class::WideSync => "calls that cover far more than was stored",
            Class::HeldLock => "locks that are free, and durable as held",
        }
    }

    /// The change that mends it.
    #[must_use]
    pub fn repair(self) -> &'static str {
        match self {
            Class::NeverFlushed => {
                "flush the line behind the store, and order the flush by a fence"
            }
            Class::NeverFenced => "execute a fence behind the flush, before anything depends on it",
            Class::StoredAfterFlush => "store before the flush, or flush the line once more",
            Class::FlushOfOtherMemory => {
                "flush the address that was stored to, not that of the pointer's own copy"
            }
            Class::DirtyRead => {
                "make the store durable before others see it, or flush and fence it where it is read"
            }
            Class::SyncFailed => {
                "look at the result; the address given to msync is a multiple of the page size"
            }
            Class::SyncMisses => "let the range of the call cover the pages that were stored to",
            Class::AsyncAcknowledged => "use MS_SYNC, or fsync, before the answer",
            Class::FlushedTwice => "flush each line once, behind its last store",
            Class::CleanFlush => "leave the flush out where nothing was stored",
            Class::IdleFence => "leave the fence out where nothing was flushed",
            Class::StoreAfterNonTemporal => {
                "store to a line in one manner, or execute a fence between the two"
            }
            Class::WideSync => "synchronise the pages that were stored to",
            Class::HeldLock => "keep the lock in volatile memory, or let recovery set it free",
        }
    }
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
