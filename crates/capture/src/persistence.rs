//! Persistence: what a captured program does so that its stores become durable, and what it tells others meanwhile.
//!
//! These records lie between the loads and stores of their thread, in program order. They are no events: their order among
//! threads is that of the accesses around them. Each has the *site* of its instruction ([`crate::Access::site`]), and the stack of
//! calls that the thread's last [`crate::Record::Stack`] leaves.
//!
//! | record | instructions, system calls |
//! |---|---|
//! | [`Persistence::Flush`] | x86-64: clwb, clflushopt, clflush; AArch64: DC CVAC, CVAP, CVADP, CIVAC |
//! | [`Persistence::Fence`] | sfence, mfence, locked instructions; DSB, DMB. A locked instruction without any store to persistent memory or flush since the thread's last fence orders nothing that is recorded, and is left out |
//! | [`Persistence::Call`] | msync, fsync, fdatasync, sync_file_range, sync, syncfs; writes to a file that is persistent memory, its munmap, ftruncate, fallocate; rename, unlink, creation of files; what is sent out: writes to pipes, sockets and terminals |

/// An instruction that writes a line back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flush {
    /// clwb.
    Clwb,
    /// clflushopt.
    Clflushopt,
    /// clflush.
    Clflush,
    /// DC CVAC: to the point of coherency.
    Cvac,
    /// DC CVAP: to the point of persistence.
    Cvap,
    /// DC CVADP: to the point of deep persistence.
    Cvadp,
    /// DC CIVAC: to the point of coherency, and out of the caches.
    Civac,
}

impl Flush {
    /// All, in the order of their numbers, from 0.
    pub const ALL: [Flush; 7] = [
        Flush::Clwb,
        Flush::Clflushopt,
        Flush::Clflush,
        Flush::Cvac,
        Flush::Cvap,
        Flush::Cvadp,
        Flush::Civac,
    ];

    /// The instruction's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Flush::Clwb => "clwb",
            Flush::Clflushopt => "clflushopt",
            Flush::Clflush => "clflush",
            Flush::Cvac => "dc cvac",
            Flush::Cvap => "dc cvap",
            Flush::Cvadp => "dc cvadp",
            Flush::Civac => "dc civac",
        }
    }
}

/// An instruction that orders stores, flushes or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fence {
    /// sfence.
    Sfence,
    /// mfence.
    Mfence,
    /// An instruction with the prefix lock, or xchg with memory.
    Locked,
    /// DSB of loads and stores.
    Dsb,
    /// DSB of stores (ST).
    DsbStores,
    /// DSB of loads (LD).
    DsbLoads,
    /// DMB of loads and stores.
    Dmb,
    /// DMB of stores (ST).
    DmbStores,
    /// DMB of loads (LD).
    DmbLoads,
}

impl Fence {
    /// All, in the order of their numbers, from 0.
    pub const ALL: [Fence; 9] = [
        Fence::Sfence,
        Fence::Mfence,
        Fence::Locked,
        Fence::Dsb,
        Fence::DsbStores,
        Fence::DsbLoads,
        Fence::Dmb,
        Fence::DmbStores,
        Fence::DmbLoads,
    ];

    /// The instruction's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fence::Sfence => "sfence",
            Fence::Mfence => "mfence",
            Fence::Locked => "locked instruction",
            Fence::Dsb => "dsb",
            Fence::DsbStores => "dsb st",
            Fence::DsbLoads => "dsb ld",
            Fence::Dmb => "dmb",
            Fence::DmbStores => "dmb st",
            Fence::DmbLoads => "dmb ld",
        }
    }
}

/// A system call that matters for persistence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asked {
    /// msync of persistent memory; `flags` are its third argument.
    Msync,
    /// fsync of any file.
    Fsync,
    /// fdatasync of any file.
    Fdatasync,
    /// sync_file_range of a file that is persistent memory; `flags` are its fourth argument.
    SyncFileRange,
    /// sync, or syncfs.
    Sync,
    /// A write to a file that is persistent memory, beside its mappings: write, pwrite and their kind. `flags` is 1 if the file
    /// was opened with O_DSYNC or O_SYNC.
    Write,
    /// munmap of persistent memory.
    Unmap,
    /// ftruncate of a file that is persistent memory; `bytes` is its new length.
    Truncate,
    /// fallocate of a file that is persistent memory; `flags` is its mode.
    Allocate,
    /// rename; `path` is the new name.
    Rename,
    /// unlink.
    Unlink,
    /// open with O_CREAT; `flags` are those of open.
    Create,
    /// Something leaves the process: a write to a pipe, socket or terminal. It may acknowledge what the program has stored.
    Send,
}

impl Asked {
    /// All, in the order of their numbers, from 0.
    pub const ALL: [Asked; 13] = [
        Asked::Msync,
        Asked::Fsync,
        Asked::Fdatasync,
        Asked::SyncFileRange,
        Asked::Sync,
        Asked::Write,
        Asked::Unmap,
        Asked::Truncate,
        Asked::Allocate,
        Asked::Rename,
        Asked::Unlink,
        Asked::Create,
        Asked::Send,
    ];

    /// The call's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Asked::Msync => "msync",
            Asked::Fsync => "fsync",
            Asked::Fdatasync => "fdatasync",
            Asked::SyncFileRange => "sync_file_range",
            Asked::Sync => "sync",
            Asked::Write => "write",
            Asked::Unmap => "munmap",
            Asked::Truncate => "ftruncate",
            Asked::Allocate => "fallocate",
            Asked::Rename => "rename",
            Asked::Unlink => "unlink",
            Asked::Create => "create",
            Asked::Send => "send",
        }
    }
}

/// A system call with its arguments and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The call.
    pub asked: Asked,
    /// State of the call: over, so that its result is known, or not. A call that waits in a program with threads has two records; a
    /// [`Asked::Send`] has the first one only, because others see it from then on.
    pub is_over: bool,
    /// First byte of persistent memory that it is about.
    pub place: Place,
    /// Bytes from there on, as the program asked for them.
    pub bytes: u64,
    /// Flags, as [`Asked`] says.
    pub flags: u64,
    /// Result; negative: the number of the error.
    pub result: i64,
    /// Path of the file, shortened to [`crate::PIECE_BYTES_MAX`] bytes; empty where none matters.
    pub path: String,
}

/// `MS_SYNC` of msync, and `SYNC_FILE_RANGE_WAIT_AFTER`: the call waits.
const WAITS: u64 = 4;

impl Call {
    /// Tells whether the call waits until what it covers is durable, or only begins that; none: it synchronises nothing.
    #[must_use]
    pub fn synchronises(&self) -> Option<bool> {
        match self.asked {
            Asked::Msync | Asked::SyncFileRange => Some(self.flags & WAITS != 0),
            Asked::Fsync | Asked::Fdatasync | Asked::Sync => Some(true),
            Asked::Write if self.flags != 0 => Some(true),
            _ => None,
        }
    }
}

/// A place that an instruction or a call names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The position of a byte of persistent memory.
    Persistent(u64),
    /// An address of other memory.
    Volatile(u64),
    /// No place, or one that the plugin could not compute.
    Unknown,
}

/// Something that a thread does for persistence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// Writes a line back.
    Flush(Flush, Place),
    /// Orders stores and flushes.
    Fence(Fence),
    /// Asks the kernel.
    Call(Call),
}
