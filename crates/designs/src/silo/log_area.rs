//! The log area in PM: records of 18 B in media lines, one circular area for each thread.

use super::SiloConfig;
use crate::fields::{ADDR_BITS, HOME, THREAD_BITS, TX_BITS};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, MEDIA_LINE_BYTES, WORD_BYTES};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::DesignContext;

/// Bytes of one record in the log area (§III-F: "each undo log entry is only 18B").
pub const RECORD_BYTES: u64 = (HEAD_BITS as u64).div_ceil(8) + WORD_BYTES;
/// Records that fit one media line (§III-F: N = ⌊S/18⌋).
pub const RECORDS_PER_BATCH: u64 = MEDIA_LINE_BYTES / RECORD_BYTES;
/// The address of an id tuple.
pub const TUPLE: u64 = HOME.max();

/// Bits of the flush-bit.
pub const FLUSH_BITS: u32 = 1;
const FLUSH: Field = Field::new("flush-bit", FLUSH_BITS, 0);
const THREAD: Field = FLUSH.then("thread", THREAD_BITS);
const TX: Field = THREAD.then("transaction", TX_BITS);
/// As much of the home address as the first word has room for; the rest begins the second.
const ADDR_LOW: Field = TX.then("low part of the home address", u64::BITS - TX.end());
const ADDR_HIGH: Field =
    Field::new("high part of the home address", ADDR_BITS - ADDR_LOW.bits(), 0);
/// Words of a media line.
const MEDIA_LINE_WORDS: usize = (MEDIA_LINE_BYTES / WORD_BYTES) as usize;
/// Bits before a record's word.
const HEAD_BITS: u32 = ADDR_LOW.end() + ADDR_HIGH.end();
const HEAD_BYTES: usize = HEAD_BITS.div_ceil(8) as usize;
/// Those of them that are the first word's.
const FIRST_BYTES: usize = WORD_BYTES as usize;
/// Bits of its second word before a record's data.
const DATA_BITS_BEFORE: u32 = (HEAD_BYTES - FIRST_BYTES) as u32 * u8::BITS;
/// Words that a record touches, wherever in a media line it begins.
const RECORD_WORDS: usize = RECORD_BYTES.div_ceil(WORD_BYTES) as usize;

// A record begins at an even byte of its media line, and so has no part of a fourth word.
const _: () = assert!(RECORD_BYTES.is_multiple_of(2) && RECORD_BYTES % WORD_BYTES <= 2);

/// One record of the log area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub flush_bit: bool,
    pub thread: ThreadId,
    /// The transaction's number; read back, what the record has of it.
    pub tx: u64,
    pub addr: u64,
    pub data: u64,
}

/// Bits of a transaction's number that a record has.
pub fn id_of(number: u64) -> u64 {
    TX.wrapped(number)
}

impl Record {
    pub fn bytes(&self) -> [u8; RECORD_BYTES as usize] {
        // Transaction numbers come round: of two with the same bits, the later one's store waits until the entries of the
        // earlier one are at home.
        let first = FLUSH.put(self.flush_bit.into())
            | THREAD.put(self.thread.into())
            | TX.wrapped(self.tx)
            | ADDR_LOW.wrapped(self.addr);
        let second = ADDR_HIGH.put(self.addr >> ADDR_LOW.bits());
        let mut bytes = [0; RECORD_BYTES as usize];
        bytes[..FIRST_BYTES].copy_from_slice(&first.to_le_bytes());
        bytes[FIRST_BYTES..HEAD_BYTES]
            .copy_from_slice(&second.to_le_bytes()[..HEAD_BYTES - FIRST_BYTES]);
        bytes[HEAD_BYTES..].copy_from_slice(&self.data.to_le_bytes());
        bytes
    }

    pub fn describe(&self) -> String {
        let Record { flush_bit, tx, addr, data, .. } = *self;
        match addr {
            TUPLE => format!("id tuple: transaction {tx} has committed"),
            _ => {
                format!(
                    "record of transaction {tx}, {addr:#x} = {data:#x}, flush-bit {}",
                    u8::from(flush_bit)
                )
            }
        }
    }

    /// Decodes the record that begins `bytes_before` bytes into the first of these words; `None` if
    /// it is zero.
    #[inline]
    fn parse([first, second, third]: [u64; RECORD_WORDS], bytes_before: u64) -> Option<Record> {
        // The word so many bits into the first of two; fewer than a word has.
        let within =
            |low: u64, high: u64, bits: u32| low >> bits | high << 1 << (u64::BITS - 1 - bits);
        let before = bytes_before as u32 * u8::BITS;
        let (first, rest) = (within(first, second, before), within(second, third, before));
        let addr = ADDR_LOW.get(first) | ADDR_HIGH.get(rest) << ADDR_LOW.bits();
        if addr == 0 {
            return None;
        }
        let data_before = before + DATA_BITS_BEFORE;
        Some(Record {
            flush_bit: FLUSH.is_set(first),
            thread: THREAD.get(first) as ThreadId,
            tx: TX.get(first),
            addr,
            // Behind 6 bytes of another record, all of it is in the last word.
            data: match data_before < u64::BITS {
                true => within(second, third, data_before),
                false => third >> (data_before - u64::BITS),
            },
        })
    }
}

/// One thread's circular log area.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    pub start: Addr,
    pub media_lines: u64,
}

impl Area {
    pub fn of(context: &DesignContext, thread: u32) -> Area {
        let media_lines =
            context.config.get::<SiloConfig>().log_bytes_per_thread.0 / MEDIA_LINE_BYTES;
        let start = context.thread_area(thread, media_lines * MEDIA_LINE_BYTES);
        Area { start, media_lines }
    }

    /// Those of all threads, in their order.
    pub fn all(context: &DesignContext) -> impl Iterator<Item = Area> + use<> {
        let (first, second) = (context.log_start, Area::of(context, 1));
        let stride = second.start.0 - first.0;
        let start = move |thread: u32| first.plus(u64::from(thread) * stride);
        (0..context.threads).map(move |thread| Area { start: start(thread), ..second })
    }

    /// Address of a media line of the area, counted over all laps.
    pub fn line(&self, number: u64) -> Addr {
        self.start.plus(number % self.media_lines * MEDIA_LINE_BYTES)
    }
}

/// A media line of at most [`RECORDS_PER_BATCH`] records, and how many of its words matter.
pub fn media_line(records: &[Record]) -> ([u8; MEDIA_LINE_BYTES as usize], usize) {
    let mut bytes = [0; MEDIA_LINE_BYTES as usize];
    for (record, place) in records.iter().zip(bytes.chunks_exact_mut(RECORD_BYTES as usize)) {
        place.copy_from_slice(&record.bytes());
    }
    // Where there is room, a zero record ends the line.
    let end = ((records.len() as u64 + 1) * RECORD_BYTES).min(MEDIA_LINE_BYTES);
    (bytes, end.div_ceil(WORD_BYTES) as usize)
}

/// The records of one media line, up to its zero record.
#[inline]
pub fn read_media_line(at: Addr, image: &mut SurvivingImage, mut each: impl FnMut(Record)) {
    // Of each record the first word, and how many of its bytes belong to the record before.
    let start = |i| ((i * RECORD_BYTES / WORD_BYTES) as usize, i * RECORD_BYTES % WORD_BYTES);
    if let Some(line) = image.unwatched::<MEDIA_LINE_WORDS>(at) {
        let mut read = RECORD_WORDS as u64;
        // Most lines have one record, which begins with a word.
        let Some(first) = Record::parse([line[0], line[1], line[2]], 0) else {
            image.count_loads(read);
            return;
        };
        each(first);
        for (word, bytes_before) in (1..RECORDS_PER_BATCH).map(start) {
            read += RECORD_WORDS as u64;
            let words = line[word..].first_chunk().expect("a record lies in its media line");
            match Record::parse(*words, bytes_before) {
                Some(record) => each(record),
                None => break,
            }
        }
        image.count_loads(read);
        return;
    }
    for (word, bytes_before) in (0..RECORDS_PER_BATCH).map(start) {
        let words = [0, 1, 2].map(|i| image.load(at.plus((word + i) as u64 * WORD_BYTES)));
        match Record::parse(words, bytes_before) {
            Some(record) => each(record),
            None => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use graven_base::cost::Item;
    use graven_base::memory::Image;
    use proptest::prelude::*;

    /// A record from its bytes, with others before and after them.
    fn read_back(record: &Record, bytes_before: usize) -> Option<Record> {
        let mut bytes = [0xff; RECORD_WORDS * WORD_BYTES as usize];
        bytes[bytes_before..][..RECORD_BYTES as usize].copy_from_slice(&record.bytes());
        let (words, _) = bytes.as_chunks();
        let words = std::array::from_fn(|i| u64::from_le_bytes(words[i]));
        Record::parse(words, bytes_before as u64)
    }

    #[test]
    fn areas_lie_where_each_threads_does() {
        let context =
            DesignContext::new(crate::testing::defaults(), 5, Addr(1 << 20), Addr(1 << 30));
        let each = (0..5).map(|thread| Area::of(&context, thread).start);
        assert!(Area::all(&context).map(|area| area.start).eq(each));
    }

    #[test]
    fn sizes_are_the_papers() {
        assert_eq!(RECORD_BYTES, 18, "§III-F");
        assert_eq!(RECORDS_PER_BATCH, 14, "§III-F: S = 256");
        let items = (crate::silo::INFO.cost.items)(&crate::testing::defaults());
        let cost = |name| items.iter().find(|item| item.name == name).map(Item::value);
        assert_eq!(cost("undo-record"), Some(RECORD_BYTES as f64));
        assert_eq!(cost("overflow-batch"), Some(RECORDS_PER_BATCH as f64));
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let (tx, addr) = (0x5_beef, 0x9234_5678_9ab8);
        let record = Record { flush_bit: true, thread: 0xa5, tx, addr, data: 7 };
        let head = |addr: u64| 1 | 0xa5 << 1 | 0xbeef << 9 | u128::from(addr) << 25;
        let bytes = |addr: u64| (head(addr) | 7 << 80).to_le_bytes();
        assert_eq!(record.bytes()[..16], bytes(addr));
        assert_eq!(Record { addr: TUPLE, ..record }.bytes()[..16], bytes(u64::MAX >> 16));
        assert_eq!(read_back(&record, 0), Some(Record { tx: 0xbeef, ..record }));
    }

    #[test]
    fn full_and_partial_lines_are_read_back_from_bytes() {
        let record = |i: u64| Record {
            flush_bit: i.is_multiple_of(2),
            thread: 7,
            tx: 65_535,
            addr: 8 * i + 8,
            data: !i,
        };
        for count in 0..=RECORDS_PER_BATCH {
            let records: Vec<Record> = (0..count).map(record).collect();
            let mut cells = Image::new();
            // What an earlier lap left behind must not be read.
            cells.write_bytes(Addr(512), &media_line(&(0..14).map(record).collect::<Vec<_>>()).0);
            let mut image = SurvivingImage::new(cells);
            let (bytes, words) = media_line(&records);
            image.write_bytes(Addr(512), &bytes[..words * 8]);
            let mut read = Vec::new();
            read_media_line(Addr(512), &mut image, |record| read.push(record));
            assert_eq!(read, records);
            // Each record is three words, the one that ends the line included; and so it is where somebody watches.
            let words_read = RECORD_WORDS as u64 * RECORDS_PER_BATCH.min(count + 1);
            assert_eq!(image.words_read(), words_read);
            image.keep_steps();
            let mut watched = Vec::new();
            read_media_line(Addr(512), &mut image, |record| watched.push(record));
            assert_eq!((watched, image.words_read()), (records, 2 * words_read));
        }
    }

    proptest! {
        #[test]
        fn a_record_survives_its_bytes(flush_bit: bool, thread: u8, tx: u16, addr in 0..=TUPLE, data: u64) {
            let record = Record { flush_bit, thread: thread.into(), tx: tx.into(), addr, data };
            for bytes_before in [0, 2, 4, 6] {
                prop_assert_eq!(read_back(&record, bytes_before), (addr != 0).then_some(record));
            }
        }
    }
}
