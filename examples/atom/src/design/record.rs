//! Records and registers, bit by bit, and where records lie.

use graven::design::DesignContext;
use graven::memory::{Addr, Field, LINE_BYTES, LineAddr, LineData, WORDS_PER_LINE, WordMask};

use super::AtomConfig;

/// Addresses that a header of one line has room for.
pub(super) const ENTRIES_MAX: usize = WORDS_PER_LINE - 1;
/// A register has a bit for each bucket.
pub(super) const BUCKETS_MAX: u32 = u64::BITS;

const INDEX: Field = Field::new("index", 20, 0);
/// Bits of a home address.
pub(super) const HOME: Field = Field::new("home address", 48, 0);
const WORDS: Field = HOME.then("words", WordMask::BITS);

/// The bucket that a log ends in.
pub(super) const END_BUCKET: Field = Field::new("bucket", 6, 0);
/// Records in it.
pub(super) const END_RECORDS: Field = END_BUCKET.then("records", 20);

/// A log entry, as a header describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) home: LineAddr,
    /// Words that the transaction has stored to.
    pub(super) words: WordMask,
}

/// The first line of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Place of the record among those of its transaction.
    pub(super) index: u64,
    pub(super) entries: Vec<Entry>,
}

impl Header {
    pub(super) fn encode(&self) -> LineData {
        assert!(self.entries.len() <= ENTRIES_MAX, "a header has {ENTRIES_MAX} addresses");
        let mut line = [0; WORDS_PER_LINE];
        line[0] = INDEX.put(self.index);
        for (word, entry) in line[1..].iter_mut().zip(&self.entries) {
            *word = HOME.put(entry.home.addr().0) | WORDS.put(entry.words.into());
        }
        line
    }

    /// The header that a line is. Entries without words stand for none.
    pub(super) fn parse(line: LineData) -> Header {
        let entry = |word: &u64| Entry {
            home: Addr(HOME.get(*word)).line(),
            words: WORDS.get(*word) as WordMask,
        };
        Header { index: INDEX.get(line[0]), entries: line[1..].iter().map(entry).collect() }
    }
}

/// A place for a record: a bucket, and a place in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) bucket: u32,
    pub(super) place: u32,
}

/// The two non-volatile registers of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) buckets: u64,
    pub(super) end: u64,
}

impl Registers {
    /// The end of the log moves over a record.
    pub(super) fn move_over(&mut self, slot: Slot) {
        self.buckets |= 1 << slot.bucket;
        self.end = END_BUCKET.put(slot.bucket.into()) | END_RECORDS.put(u64::from(slot.place) + 1);
    }

    /// The records that count, bucket by bucket.
    pub(super) fn slots(self, records: u32) -> impl Iterator<Item = Slot> {
        let last = END_BUCKET.get(self.end) as u32;
        let in_last = END_RECORDS.get(self.end) as u32;
        (0..BUCKETS_MAX).filter(move |bucket| self.buckets >> bucket & 1 == 1).flat_map(
            move |bucket| {
                let count = if bucket == last { in_last } else { records };
                (0..count).map(move |place| Slot { bucket, place })
            },
        )
    }
}

/// The buckets of the log region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buckets {
    start: Addr,
    bucket_bytes: u64,
    record_bytes: u64,
    /// Number of them.
    pub(super) count: u32,
    /// Records that one holds.
    pub(super) records: u32,
}

impl Buckets {
    pub(super) fn of(context: &DesignContext) -> Buckets {
        let config = context.config.get::<AtomConfig>();
        let record_bytes = (1 + u64::from(config.entries_per_record)) * LINE_BYTES;
        let bucket_bytes = config.bucket_bytes.0 / LINE_BYTES * LINE_BYTES;
        Buckets {
            start: context.log_start,
            bucket_bytes,
            record_bytes,
            count: config.buckets,
            records: (bucket_bytes / record_bytes) as u32,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.count) * self.bucket_bytes
    }

    /// Line of a header.
    pub(super) fn header(&self, slot: Slot) -> LineAddr {
        let in_bucket = u64::from(slot.place) * self.record_bytes;
        self.start.plus(u64::from(slot.bucket) * self.bucket_bytes + in_bucket).line()
    }

    /// Line of an entry of a record.
    pub(super) fn entry(&self, slot: Slot, entry: usize) -> LineAddr {
        self.header(slot).addr().plus((1 + entry as u64) * LINE_BYTES).line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let entry = |home, words| Entry { home: LineAddr(home), words };
        Header { index: 0xa_bcde, entries: vec![entry(0x12_3456_789a, 0xa5), entry(1, 0)] }
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let words = [0xa_bcde, 0x00a5_048d_159e_2680, 0x40, 0, 0, 0, 0, 0];
        assert_eq!(header().encode(), words);
        let mut registers = Registers::default();
        registers.move_over(Slot { bucket: 63, place: 0x1_2345 });
        assert_eq!((registers.buckets, registers.end), (1 << 63, 0x1_2346 << 6 | 63));
    }

    #[test]
    fn a_header_comes_back_from_its_words() {
        let read = Header::parse(header().encode());
        assert_eq!((read.index, &read.entries[..2]), (0xa_bcde, &header().entries[..]));
        assert!(
            read.entries.len() == ENTRIES_MAX && read.entries[2..].iter().all(|e| e.words == 0)
        );
    }

    #[test]
    fn the_last_bucket_ends_at_the_end_and_all_others_are_full() {
        let mut registers = Registers::default();
        assert_eq!(registers.slots(2).count(), 0);
        for (bucket, place) in [(5, 0), (5, 1), (2, 0)] {
            registers.move_over(Slot { bucket, place });
        }
        let slots: Vec<_> = registers.slots(2).map(|slot| (slot.bucket, slot.place)).collect();
        assert_eq!(slots, [(2, 0), (5, 0), (5, 1)]);
    }

    #[test]
    fn buckets_and_their_records_lie_one_behind_the_other() {
        let buckets = Buckets {
            start: Addr(1 << 20),
            bucket_bytes: 1024,
            record_bytes: 512,
            count: 4,
            records: 2,
        };
        let at = |bucket, place| buckets.header(Slot { bucket, place }).addr().0 - (1 << 20);
        assert_eq!([at(0, 0), at(0, 1), at(3, 0)], [0, 512, 3 * 1024]);
        let last = buckets.entry(Slot { bucket: 3, place: 1 }, 6).addr().0 + LINE_BYTES;
        assert_eq!(last - (1 << 20), buckets.bytes());
    }
}
