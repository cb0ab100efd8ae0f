//! Recovery (§III-G), from the registers and the bytes of the log areas.

use super::Mutant;
use super::log_area::{Area, TUPLE, read_media_line};
use graven_base::memory::Addr;
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};

/// So many records need no second allocation.
const RECORDS_EXPECTED: usize = 128;

/// Reads each thread's records. A record whose transaction has an id tuple is redone if its flush-bit
/// is 0; one without a tuple is undone, newest first.
pub fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    let mut records = Vec::with_capacity(RECORDS_EXPECTED);
    let [mut redo, mut undo] = [(); 2].map(|()| Vec::with_capacity(RECORDS_EXPECTED));
    let mut tuples: Vec<u64> = Vec::new();
    for (thread, area) in Area::all(context).enumerate() {
        let [head, tail] = [0, 1].map(|i| registers[thread * 2 + i]);
        records.clear();
        (head..tail).for_each(|number| read_media_line(area.line(number), image, &mut records));
        report.records_scanned += records.len() as u64;
        image.work(Work::Record, records.len() as u64);
        // The tuple of each record's transaction is looked for.
        image.work(Work::Table, records.len() as u64);
        for record in &records {
            image.note(|| format!("log area {thread}: {}", record.describe()));
        }
        tuples.clear();
        tuples.extend(records.iter().filter(|r| r.addr == TUPLE).map(|r| r.tx));
        for record in records.iter().filter(|r| r.addr != TUPLE) {
            if !tuples.contains(&record.tx) {
                undo.push((record.addr, record.data));
            } else if !record.flush_bit {
                redo.push((record.addr, record.data));
            }
        }
    }
    for (addr, word) in redo {
        image.store(Addr(addr), word);
        report.words_redone += 1;
    }
    if !context.mutants().has(Mutant::UndoOldestFirst) {
        undo.reverse();
    }
    for (addr, word) in undo {
        image.store(Addr(addr), word);
        report.words_undone += 1;
    }
    report
}

#[cfg(test)]
mod tests {
    use super::super::log_area::{Record, media_line};
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
