//! Recovery (§III-G), from the registers and the bytes of the log areas.

use super::Rules;
use super::log_area::{Area, Record, TUPLE, read_media_line};
use graven_base::memory::Addr;
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};

/// Records for which memory is allocated at once.
const RECORDS_EXPECTED: usize = 128;

/// Fates of the word of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Redone,
    Undone,
    /// The word is at home, or the record is a tuple.
    Left,
}

/// Reads each thread's records. A record whose transaction has an id tuple is redone if its flush-bit
/// is 0; one without a tuple is undone, newest first.
pub fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    let mut records: Vec<(Record, Fate)> = Vec::with_capacity(RECORDS_EXPECTED);
    let mut tuples: Vec<u64> = Vec::new();
    for (thread, area) in Area::all(context).enumerate() {
        let [head, tail] = [0, 1].map(|i| registers[thread * 2 + i]);
        let first = records.len();
        tuples.clear();
        for number in head..tail {
            read_media_line(area.line(number), image, |record| {
                if record.addr == TUPLE {
                    tuples.push(record.tx);
                }
                records.push((record, Fate::Left));
            });
        }
        let records = &mut records[first..];
        report.records_scanned += records.len() as u64;
        image.work(Work::Record, records.len() as u64);
        // The tuple of each record's transaction is looked for.
        image.work(Work::Table, records.len() as u64);
        for (record, _) in &*records {
            image.note(|| format!("log area {thread}: {}", record.describe()));
        }
        // Of a transaction the records lie one after the other, for the most part.
        let mut known = None;
        for (record, fate) in records.iter_mut().filter(|(record, _)| record.addr != TUPLE) {
            let has_tuple = match known {
                Some((tx, has_tuple)) if tx == record.tx => has_tuple,
                _ => tuples.contains(&record.tx),
            };
            known = Some((record.tx, has_tuple));
            if !has_tuple {
                *fate = Fate::Undone;
                report.words_undone += 1;
            } else if !record.flush_bit {
                *fate = Fate::Redone;
                report.words_redone += 1;
            }
        }
    }
    let of = |is: Fate| {
        let of_it = records.iter().filter(move |(_, fate)| *fate == is);
        of_it.map(|(record, _)| (Addr(record.addr), record.data))
    };
    image.store_all(of(Fate::Redone));
    if Rules::of(context).undo_newest_first() {
        image.store_all(of(Fate::Undone).rev());
    } else {
        image.store_all(of(Fate::Undone));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::super::log_area::media_line;
    use super::*;
    use graven_base::memory::Image;

    /// `silo-overflow-flush-bit` (§III-F, §III-G): a committed word, an open one that had overflowed before, and a committed
    /// one that was at home.
    #[test]
    fn tuples_decide_and_undo_goes_newest_first() {
        let mut config = crate::testing::defaults();
        config.set("silo.log_bytes_per_thread", "4 KB").expect("a valid size");
        let context = DesignContext::new(config, 1, Addr(1 << 20), Addr(2 << 20));
        let record = |flush_bit, tx, addr, data| Record { flush_bit, thread: 0, tx, addr, data };
        let overflowed = [record(true, 6, 64, 100)];
        let added = [
            record(false, 5, 8, 51),
            record(true, 5, 16, 52),
            record(false, 5, TUPLE, 0),
            record(false, 6, 64, 101),
        ];
        let area = Area::of(&context, 0);
        // The area's last line and its first: the records wrap.
        let last = area.media_lines - 1;
        let mut cells = Image::new();
        cells.write_bytes(area.line(last), &media_line(&overflowed).0);
        cells.write_bytes(area.line(last + 1), &media_line(&added).0);
        let mut image = SurvivingImage::new(cells);
        let report = recover(&context, &[last, last + 2], &mut image);
        assert_eq!((report.records_scanned, report.words_redone, report.words_undone), (5, 1, 2));
        assert_eq!([8, 16, 64].map(|addr| image.peek(Addr(addr))), [51, 0, 100]);
    }
}
