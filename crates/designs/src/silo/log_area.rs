//! The log area in PM: records of 18 B in media lines, one circular area for each thread.

use super::SiloConfig;
use crate::fields::{ADDR_BITS, THREAD_BITS, TX_BITS};
use graven_base::memory::{Addr, MEDIA_LINE_BYTES, WORD_BYTES};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::DesignContext;

/// Bytes of one record in the log area (§III-F: "each undo log entry is only 18B").
pub const RECORD_BYTES: u64 = (HEAD_BITS as u64).div_ceil(8) + WORD_BYTES;
/// Records that fit one media line (§III-F: N = ⌊S/18⌋).
pub const RECORDS_PER_BATCH: u64 = MEDIA_LINE_BYTES / RECORD_BYTES;
/// The address of an id tuple.
pub const TUPLE: u64 = (1 << ADDR_BITS) - 1;

/// Bits of the flush-bit.
pub const FLUSH_BITS: u32 = 1;
const TX_SHIFT: u32 = FLUSH_BITS + THREAD_BITS;
const ADDR_SHIFT: u32 = TX_SHIFT + TX_BITS;
/// Bits before a record's word.
const HEAD_BITS: u32 = ADDR_SHIFT + ADDR_BITS;
const HEAD_BYTES: usize = HEAD_BITS.div_ceil(8) as usize;

/// One record of the log area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    pub flush_bit: bool,
    pub thread: u32,
    pub tx: u16,
    pub addr: u64,
    pub data: u64,
}

impl Record {
    pub fn bytes(&self) -> [u8; RECORD_BYTES as usize] {
        let head = u128::from(self.flush_bit)
            | u128::from(self.thread as u8) << FLUSH_BITS
            | u128::from(self.tx) << TX_SHIFT
            | u128::from(self.addr & TUPLE) << ADDR_SHIFT;
        let mut bytes = [0; RECORD_BYTES as usize];
        bytes[..HEAD_BYTES].copy_from_slice(&head.to_le_bytes()[..HEAD_BYTES]);
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

    pub fn parse(bytes: &[u8; RECORD_BYTES as usize]) -> Record {
        let mut head = [0; 16];
        head[..HEAD_BYTES].copy_from_slice(&bytes[..HEAD_BYTES]);
        let head = u128::from_le_bytes(head);
        let data = bytes[HEAD_BYTES..].try_into().expect("the rest is a word");
        Record {
            flush_bit: head & 1 != 0,
            thread: (head >> FLUSH_BITS) as u8 as u32,
            tx: (head >> TX_SHIFT) as u16,
            addr: (head >> ADDR_SHIFT) as u64 & TUPLE,
            data: u64::from_le_bytes(data),
        }
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

    /// Where a media line of the area is, counted over all laps.
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
pub fn read_media_line(at: Addr, image: &mut SurvivingImage, records: &mut Vec<Record>) {
    for i in 0..RECORDS_PER_BATCH {
        let mut bytes = [0; RECORD_BYTES as usize];
        image.read_bytes(at.plus(i * RECORD_BYTES), &mut bytes);
        let record = Record::parse(&bytes);
        if record.addr == 0 {
            return;
        }
        records.push(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use graven_base::cost::Item;
    use graven_base::memory::Image;
    use proptest::prelude::*;

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
            read_media_line(Addr(512), &mut image, &mut read);
            assert_eq!(read, records);
        }
    }

    proptest! {
        #[test]
        fn a_record_survives_its_bytes(flush_bit: bool, thread: u8, tx: u16, addr in 0..=TUPLE, data: u64) {
            let record = Record { flush_bit, thread: thread.into(), tx, addr, data };
            prop_assert_eq!(Record::parse(&record.bytes()), record);
        }
    }
}
