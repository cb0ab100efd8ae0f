//! Records and their bits (the table in [`super`]).

use super::{METADATA_WORDS, TORN};
use crate::fields::{HOME, THREAD_BITS, TX_BITS};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field};

/// Bits of a record's type (MorLog Fig. 7).
pub const TYPE_BITS: u32 = 2;
/// Bits of the ulog counter.
pub const ULOG_BITS: u32 = 13;
/// Largest ulog counter.
pub const ULOG_MAX: u32 = ULOG.max() as u32;

/// Fields of the first word, behind the home address.
const TYPE: Field = HOME.then("type", TYPE_BITS);
const THREAD: Field = TYPE.then("thread", THREAD_BITS);
const ENCODING: Field = THREAD.then("encoding type flag", 3);
const COUNT: Field = ENCODING.then("records of the block, less one", 2);

/// Fields of the second word.
const TX: Field = Field::new("transaction", TX_BITS, 0);
const DIRTY: Field = TX.then("dirty flag", 8);
const ULOG: Field = DIRTY.then("ulog counter", ULOG_BITS);
const CONTINUES: Field = ULOG.then("continues", 1);
pub(super) const LATE: Field = CONTINUES.then("late", 1);

/// Kinds of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A word was stored; its old and its new value.
    UndoRedo,
    /// A word was stored; its new value.
    Redo,
    /// The thread's transaction has ended.
    Commit,
    /// Words of a line are at home, as the transaction left them: what was logged for them before is void.
    InPlace,
}

/// A log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub kind: Kind,
    pub thread: ThreadId,
    /// Id of its transaction.
    pub tx: u16,
    /// Home address of the word, or line; of a commit record the number of the commit.
    pub addr: Addr,
    /// The old word.
    pub undo: u64,
    /// The new word. If `partial`, only the bytes of the dirty flag.
    pub redo: u64,
    /// The dirty flag: bytes of the word that changed; in place: words of the line.
    pub dirty: u8,
    /// Commit: words whose redo data is still to come.
    pub ulog: u32,
    /// True if it follows the commit record of its transaction.
    pub late: bool,
    /// Read back: the clean bytes of a redo record are not known.
    pub partial: bool,
}

impl Record {
    /// A record of nothing, to fill up others with.
    pub const BLANK: Record = Record {
        kind: Kind::Redo,
        thread: 0,
        tx: 0,
        addr: Addr(0),
        undo: 0,
        redo: 0,
        dirty: 0xff,
        ulog: 0,
        late: false,
        partial: false,
    };

    /// Words of data that belong to it.
    #[inline]
    pub fn data_words(kind: Kind) -> usize {
        match kind {
            Kind::UndoRedo => 2,
            Kind::Redo => 1,
            Kind::Commit | Kind::InPlace => 0,
        }
    }
}

/// Bytes in which two words differ, as a dirty flag names them: bit i is byte i.
#[inline]
pub fn dirty_bytes(undo: u64, redo: u64) -> u8 {
    let changed = undo ^ redo;
    (0..8).fold(0, |flag, i| flag | u8::from(changed >> (8 * i) & 0xff != 0) << i)
}

/// Metadata of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    /// Everything but the data words.
    pub record: Record,
    /// Encoding type flag.
    pub encoding: u8,
    /// Records in its block.
    pub count: usize,
    /// True if its block's words follow those of the block before.
    pub continues: bool,
}

impl Metadata {
    pub fn words(&self, torn: u64) -> [u64; METADATA_WORDS] {
        let Record { kind, thread, tx, addr, dirty, ulog, late, .. } = self.record;
        assert!(self.count > 0, "a block has records");
        let first = HOME.put(addr.0)
            | TYPE.put(kind as u64)
            | THREAD.put(thread.into())
            | ENCODING.put(self.encoding.into())
            | COUNT.put(self.count as u64 - 1);
        let second = TX.put(tx.into())
            | DIRTY.put(dirty.into())
            | ULOG.put(ulog.into())
            | CONTINUES.put(self.continues.into())
            | LATE.put(late.into());
        [first | torn, second | torn]
    }

    /// The metadata, if both words carry this torn bit.
    #[inline]
    pub fn parse([first, second]: [u64; METADATA_WORDS], torn: u64) -> Option<Metadata> {
        if first & TORN != torn || second & TORN != torn {
            return None;
        }
        let kind = match TYPE.get(first) {
            0 => Kind::UndoRedo,
            1 => Kind::Redo,
            2 => Kind::Commit,
            _ => Kind::InPlace,
        };
        let record = Record {
            kind,
            thread: THREAD.get(first) as ThreadId,
            tx: TX.get(second) as u16,
            addr: Addr(HOME.get(first)),
            undo: 0,
            redo: 0,
            dirty: DIRTY.get(second) as u8,
            ulog: ULOG.get(second) as u32,
            late: LATE.is_set(second),
            partial: false,
        };
        Some(Metadata {
            record,
            encoding: ENCODING.get(first) as u8,
            count: COUNT.get(first) as usize + 1,
            continues: CONTINUES.is_set(second),
        })
    }
}

impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Record { kind, thread, tx, addr, undo, redo, dirty, ulog, .. } = self;
        let late = if self.late { "late " } else { "" };
        match kind {
            Kind::UndoRedo => {
                write!(f, "transaction {tx} of thread {thread}, {addr}: {undo:#x} -> {redo:#x}")
            }
            Kind::Redo => {
                write!(f, "{late}redo of transaction {tx} of thread {thread}, {addr}: {redo:#x}")?;
                if self.partial { write!(f, " in bytes {dirty:#010b}") } else { Ok(()) }
            }
            Kind::Commit if *ulog > 0 => {
                write!(f, "commit of transaction {tx} of thread {thread}, {ulog} words to come")
            }
            Kind::Commit => write!(f, "commit of transaction {tx} of thread {thread}"),
            Kind::InPlace => write!(
                f,
                "{late}in place: words {dirty:#010b} of {} by transaction {tx} of thread {thread}",
                addr.line()
            ),
        }
    }
}
