//! Places of header, journal, table and shadow pages in the log region, and their bits.

use std::ops::Range;

use super::OspConfig;
use crate::mechanisms::torn;
use graven_base::config::{ConfigError, Size};
use graven_base::memory::{Addr, Field, LINE_BYTES, LineAddr, WORD_BYTES};
use graven_machine::design::DesignContext;

/// Bytes of a journal entry and of a table entry: 128 bits.
pub(super) const ENTRY_BYTES: u64 = 16;
/// Number of either that a line holds.
pub(super) const ENTRIES_PER_LINE: u64 = LINE_BYTES / ENTRY_BYTES;

/// Numbers come round: a journal has fewer entries.
const NUMBER: Field = Field::new("number of the entry", 40, 0);
const PAGE: Field = NUMBER.then("shadow page", 20);
const FIRST: Field = PAGE.then("first", 1);
const LAST: Field = FIRST.then("last", 1);
const BITMAP_TOP: Field = LAST.then("bit 63 of the bitmap", 1);

/// Fields of the home word of a table entry.
const USED: Field = Field::new("used", 1, 0);
const HOME_LINE: Field = Field::new("home page in lines", 58, 6);

/// Most shadow pages that a journal entry can distinguish.
pub(super) const SHADOW_PAGES_MAX: u32 = 1 << PAGE.bits();

/// A number by which a shadow page is known, from 0: SSP's slot.
pub(super) type Slot = u32;

/// A line in the log region, or at home, as memory knows it: what is read and written. The caches know a
/// line by its home address.
pub(super) type Physical = LineAddr;

/// A journal entry: the committed bitmap of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalEntry {
    /// Entries are numbered from 0 over all passes.
    pub(super) number: u64,
    pub(super) slot: Slot,
    /// The record begins here.
    pub(super) first: bool,
    /// The record ends here.
    pub(super) last: bool,
    pub(super) committed: u64,
}

impl JournalEntry {
    pub(super) fn words(&self, torn: bool) -> [u64; 2] {
        let head = NUMBER.wrapped(self.number)
            | PAGE.put(self.slot.into())
            | FIRST.put(self.first.into())
            | LAST.put(self.last.into())
            | BITMAP_TOP.put(torn::top(self.committed));
        torn::mark([head, self.committed], torn)
    }

    /// Decodes two words, if they were written together.
    pub(super) fn parse(words: [u64; 2]) -> Option<JournalEntry> {
        let [head, bitmap] = torn::whole(words)?;
        Some(JournalEntry {
            number: NUMBER.get(head),
            slot: PAGE.get(head) as Slot,
            first: FIRST.is_set(head),
            last: LAST.is_set(head),
            committed: torn::with_top(bitmap, BITMAP_TOP.get(head)),
        })
    }

    /// Returns true for the entry of this number.
    pub(super) fn is(&self, number: u64) -> bool {
        NUMBER.wrapped(self.number) == NUMBER.wrapped(number)
    }

    /// The same, with the first word's torn bit taken for the second's.
    pub(super) fn parse_untorn(words: [u64; 2]) -> Option<JournalEntry> {
        Self::parse(torn::as_the_first(words))
    }
}

/// The log region: header, journal, table, shadow pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// Number of the oldest journal entry that is needed: the header's only word.
    pub(super) head: Addr,
    journal: Addr,
    /// Entries of the journal.
    pub(super) entries: u64,
    table: Addr,
    /// Entries of the table, one for each shadow page.
    pub(super) pages: u32,
    shadow: Addr,
    pub(super) page_bytes: u64,
}

impl Layout {
    pub(super) fn of(context: &DesignContext) -> Layout {
        let config = context.config.get::<OspConfig>();
        let (page_bytes, pages) = (config.page_bytes.0, config.shadow_pages);
        let entries = config.journal_bytes.0 / LINE_BYTES * ENTRIES_PER_LINE;
        let (head, journal) = (context.log_start, context.log_start.plus(LINE_BYTES));
        let table = journal.plus(entries * ENTRY_BYTES);
        let end = table.plus(u64::from(pages) * ENTRY_BYTES);
        let shadow = Addr(end.0.next_multiple_of(page_bytes));
        Layout { head, journal, entries, table, pages, shadow, page_bytes }
    }

    /// Checks that it is one, and fits.
    pub(super) fn check(&self, context: &DesignContext) -> Result<(), ConfigError> {
        if !self.page_bytes.is_power_of_two() {
            let why = "a page must be a power of two".into();
            return Err(context.config.inconsistent(&["osp.page_bytes"], why));
        }
        let end = self.shadow.0 + u64::from(self.pages) * self.page_bytes;
        if end <= context.log_end.0 {
            return Ok(());
        }
        let why = format!(
            "header, journal, table and {} shadow pages need {} of pm.log_region_bytes = {}",
            self.pages,
            Size(end - context.log_start.0),
            Size(context.log_bytes())
        );
        let keys =
            ["osp.shadow_pages", "osp.page_bytes", "osp.journal_bytes", "pm.log_region_bytes"];
        Err(context.config.inconsistent(&keys, why))
    }

    pub(super) fn lines_per_page(&self) -> u64 {
        self.page_bytes / LINE_BYTES
    }

    /// The first line of a line's page, at home.
    pub(super) fn home_page(&self, line: LineAddr) -> LineAddr {
        LineAddr(line.0 - line.0 % self.lines_per_page())
    }

    pub(super) fn shadow_page(&self, slot: Slot) -> Physical {
        self.shadow.plus(u64::from(slot) * self.page_bytes).line()
    }

    /// Address of a journal entry.
    pub(super) fn journal_entry(&self, number: u64) -> Addr {
        self.journal.plus(number % self.entries * ENTRY_BYTES)
    }

    /// The torn bit of a journal entry: 1 in even passes, 0 in odd ones.
    pub(super) fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.entries)
    }

    /// Address of the word of a page's table entry that names its home page.
    pub(super) fn table_home(&self, slot: Slot) -> Addr {
        self.table.plus(u64::from(slot) * ENTRY_BYTES)
    }

    /// Address of the word of it that tells what is committed in the shadow page.
    pub(super) fn table_bitmap(&self, slot: Slot) -> Addr {
        self.table_home(slot).plus(WORD_BYTES)
    }

    /// The lines of a page that a bitmap has.
    pub(super) fn lines_of(&self, bitmap: u64) -> impl Iterator<Item = u64> + use<> {
        (0..self.lines_per_page()).filter(move |index| bitmap >> index & 1 != 0)
    }

    /// The range of header, journal and table.
    pub(super) fn metadata(&self) -> Range<Addr> {
        let entries = self.entries + u64::from(self.pages);
        self.head..self.head.plus(LINE_BYTES + entries * ENTRY_BYTES)
    }

    /// All words of header, journal and table.
    pub(super) fn metadata_words(&self) -> impl Iterator<Item = Addr> {
        let Range { start, end } = self.metadata();
        (start.0..end.0).step_by(WORD_BYTES as usize).map(Addr)
    }
}

/// The home word of a table entry.
pub(super) fn home_word(home: LineAddr) -> u64 {
    HOME_LINE.put(home.0) | USED.put(1)
}

/// The home page that it names, if any.
pub(super) fn home_of(word: u64) -> Option<LineAddr> {
    USED.is_set(word).then(|| LineAddr(HOME_LINE.get(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_entry() -> impl Strategy<Value = JournalEntry> {
        let flags = (any::<bool>(), any::<bool>());
        (0..=NUMBER.max(), 0..SHADOW_PAGES_MAX, flags, any::<u64>()).prop_map(
            |(number, slot, (first, last), committed)| JournalEntry {
                number,
                slot,
                first,
                last,
                committed,
            },
        )
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let entry = JournalEntry {
            number: 0x12_3456_789a,
            slot: 0xa_bcde,
            first: false,
            last: true,
            committed: 1 << 63 | 5,
        };
        assert_eq!(entry.words(false), [0x6abc_de12_3456_789a, 5]);
        assert_eq!(entry.words(true), [0xeabc_de12_3456_789a, 1 << 63 | 5]);
        let first = JournalEntry { first: true, last: false, ..entry };
        assert_eq!(first.words(false)[0], 0x5abc_de12_3456_789a);
        assert_eq!(home_word(LineAddr(64)), 4097);
        assert_eq!((home_of(4097), home_of(4096)), (Some(LineAddr(64)), None));
    }

    proptest! {
        #[test]
        fn an_entry_comes_back_from_its_words(entry in any_entry(), torn: bool) {
            prop_assert_eq!(JournalEntry::parse(entry.words(torn)), Some(entry));
        }

        #[test]
        fn an_entry_that_is_half_written_is_none(
            new in any_entry(), old in any_entry(), torn: bool,
        ) {
            let (new, old) = (new.words(torn), old.words(!torn));
            prop_assert_eq!(JournalEntry::parse([new[0], old[1]]), None);
            prop_assert_eq!(JournalEntry::parse([old[0], new[1]]), None);
        }
    }
}
