//! Log records: a header with the home addresses of up to seven lines, and these lines as they were.

use super::{OptUndoConfig, Rules};
use crate::fields::{HOME, WORDS};
use crate::mechanisms::torn;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, LINE_BYTES, LineAddr, LineData, WORDS_PER_LINE, WordMask};
use graven_machine::design::DesignContext;

/// Addresses that a header of one line has room for.
pub(super) const ENTRIES_MAX: usize = WORDS_PER_LINE - 1;

/// An area has at most 2^19 records.
const INDEX: Field = Field::new("index", 20, 0);
/// Numbers come round after 2^43 transactions.
const TX: Field = INDEX.then("transaction", 43);

/// An entry, as a header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Logged {
    pub(super) home: LineAddr,
    /// Words that the transaction stored to; 0: there is no entry.
    pub(super) words: WordMask,
}

/// The entries of a record, as its header has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Collected {
    entries: [Logged; ENTRIES_MAX],
}

impl Default for Collected {
    fn default() -> Self {
        Collected { entries: [Logged { home: LineAddr(0), words: 0 }; ENTRIES_MAX] }
    }
}

impl Collected {
    /// Those that there are, in their order.
    pub(super) fn entries(&self) -> &[Logged] {
        let count = self.entries.iter().position(|e| e.words == 0).unwrap_or(ENTRIES_MAX);
        &self.entries[..count]
    }

    /// Appends one and returns its place.
    pub(super) fn push(&mut self, logged: Logged) -> usize {
        let place = self.entries().len();
        self.entries[place] = logged;
        place
    }

    /// An entry's transaction has stored to more words.
    pub(super) fn join(&mut self, place: usize, words: WordMask) {
        self.entries[place].words |= words;
    }
}

/// The first line of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Place of the record among those of its transaction.
    pub(super) index: u64,
    /// Number of the transaction among the thread's that commit something (low 43 bits).
    pub(super) tx: u64,
    pub(super) collected: Collected,
}

impl Header {
    pub(super) fn words(&self, torn: bool) -> LineData {
        let mut line = [0; WORDS_PER_LINE];
        line[0] = INDEX.put(self.index) | TX.wrapped(self.tx);
        for (word, entry) in line[1..].iter_mut().zip(&self.collected.entries) {
            *word = HOME.put(entry.home.addr().0) | WORDS.put(entry.words.into());
        }
        torn::mark(line, torn)
    }

    /// The header, if it is one and was written whole.
    pub(super) fn parse(line: LineData) -> Option<Header> {
        let line = torn::whole(line)?;
        let mut collected = Collected::default();
        for (entry, word) in collected.entries.iter_mut().zip(&line[1..]) {
            let words = WORDS.get(*word) as WordMask;
            *entry = Logged { home: Addr(HOME.get(*word)).line(), words };
        }
        Some(Header { index: INDEX.get(line[0]), tx: TX.get(line[0]), collected })
    }

    pub(super) fn is_of(&self, uncommitted: u64) -> bool {
        TX.wrapped(self.tx) == TX.wrapped(uncommitted)
    }
}

/// One thread's log area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    start: Addr,
    record_bytes: u64,
    /// Records that it holds.
    pub(super) slots: u64,
    rules: Rules,
}

impl Area {
    pub(super) fn of(context: &DesignContext, thread: ThreadId) -> Area {
        let config = context.config.get::<OptUndoConfig>();
        let record_bytes = (1 + u64::from(config.entries_per_record)) * LINE_BYTES;
        let slots = config.log_bytes_per_thread.0 / record_bytes;
        let start = context.thread_area(thread, config.log_bytes_per_thread.0);
        Area { start, record_bytes, slots, rules: Rules::of(context) }
    }

    /// Line of the header of a record; records are numbered from 0 over all passes.
    pub(super) fn header(&self, number: u64) -> LineAddr {
        self.start.plus(number % self.slots * self.record_bytes).line()
    }

    /// Line of an entry, by its place in the record.
    pub(super) fn entry(&self, number: u64, place: usize) -> LineAddr {
        self.header(number).addr().plus((1 + place as u64) * LINE_BYTES).line()
    }

    pub(super) fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.slots) || !self.rules.torn_bit_turns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_header() -> impl Strategy<Value = Header> {
        let entry = (0..=HOME.max() / LINE_BYTES, 1..=WordMask::MAX);
        (0..=INDEX.max(), 0..=TX.max(), prop::collection::vec(entry, 0..=ENTRIES_MAX)).prop_map(
            |(index, tx, entries)| {
                let mut collected = Collected::default();
                for (home, words) in entries {
                    collected.push(Logged { home: LineAddr(home), words });
                }
                Header { index, tx, collected }
            },
        )
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let mut collected = Collected::default();
        assert_eq!(collected.push(Logged { home: LineAddr(0x12_3456_789a), words: 0xa0 }), 0);
        assert_eq!(collected.push(Logged { home: LineAddr(1), words: 1 }), 1);
        collected.join(0, 0x05);
        let header = Header { index: 0xa_bcde, tx: 0x7ed_cba9_8765, collected };
        let words =
            [0x7edc_ba98_765a_bcde, 0x00a5_048d_159e_2680, 0x0001_0000_0000_0040, 0, 0, 0, 0, 0];
        assert_eq!(header.words(false), words);
        assert_eq!(header.words(true), words.map(|word| word | 1 << 63));
        assert_eq!(header.collected.entries().len(), 2);
    }

    #[test]
    fn a_record_is_eight_lines_and_slots_come_round() {
        let rules = Rules::default();
        let area = Area { start: Addr(4096), record_bytes: 512, slots: 2, rules };
        let headers: Vec<(u64, bool)> =
            (0..5).map(|n| (area.header(n).addr().0, area.torn(n))).collect();
        let [a, b] = [4096, 4096 + 512];
        assert_eq!(headers, [(a, true), (b, true), (a, false), (b, false), (a, true)]);
        assert_eq!(area.entry(1, 0).addr().0, 4096 + 512 + 64);
        assert_eq!(area.entry(1, 6).addr().0 + 64, 4096 + 2 * 512);
    }

    #[test]
    fn a_record_is_of_the_transaction_that_the_register_names() {
        let of = |tx: u64| Header { index: 0, tx: tx & TX.max(), collected: Collected::default() };
        for tx in [0, 1, u64::from(u32::MAX), 1 << 43, u64::MAX] {
            assert!(of(tx).is_of(tx));
            assert!(!of(tx).is_of(tx.wrapping_add(1)) && !of(tx).is_of(tx.wrapping_sub(1 << 32)));
        }
    }

    proptest! {
        #[test]
        fn a_header_comes_back_from_its_words(header in any_header(), torn: bool) {
            prop_assert_eq!(Header::parse(header.words(torn)), Some(header));
        }

        #[test]
        fn a_header_that_is_partly_written_is_none(
            new in any_header(), old in any_header(), written in 1u8..255, torn: bool,
        ) {
            let (new, old) = (new.words(torn), old.words(!torn));
            let line = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { old[i] });
            prop_assert_eq!(Header::parse(line), None);
        }

        #[test]
        fn a_header_that_is_partly_written_over_zeroes_is_none(
            new in any_header(), written in 1u8..255,
        ) {
            let new = new.words(true);
            let line = std::array::from_fn(|i| if written >> i & 1 == 1 { new[i] } else { 0 });
            prop_assert_eq!(Header::parse(line), None);
        }
    }

    #[test]
    fn a_slot_that_was_cleared_has_no_entries() {
        let nothing = Header::parse([0; WORDS_PER_LINE]).expect("its torn bits are alike");
        assert!(nothing.collected.entries().is_empty());
    }
}
