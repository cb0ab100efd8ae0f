//! A region as controllers leave it, without a machine: for tests and benchmarks of recovery.

use super::layout::{
    BlockState, Geometry, Header, Record, SLICE_WORDS, Sequence, Slice, SliceNumber, index_entry,
    slice_tx,
};
use graven_base::memory::{Addr, WordMask};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::DesignContext;

/// One controller's region, being written.
struct Writer {
    geometry: Geometry,
    /// The block in use, and what of it is used.
    block: u32,
    slices: u32,
    records: u32,
    sequence: Sequence,
}

impl Writer {
    /// The next slice; `None` if the region is full.
    fn slice(&mut self, surviving: &mut SurvivingImage) -> Option<SliceNumber> {
        if self.slices == self.geometry.data_slices() || self.records == self.geometry.records() {
            self.block += 1;
            (self.slices, self.records) = (0, 0);
        }
        if self.block == self.geometry.blocks {
            return None;
        }
        if self.slices == 0 {
            let start = self.geometry.block(self.block);
            let header = Header { number: self.block, next: 0, state: BlockState::InUse };
            surviving.store(start, header.word());
            surviving.store(start.plus(8), self.sequence.bits());
            surviving.store(self.geometry.index(self.block), index_entry(start));
        }
        self.slices += 1;
        Some(self.geometry.data_slice(self.block, self.slices - 1))
    }
}

/// Writes the slices and records of committed transactions, one after the other, into the regions of a context with one
/// controller, until there are no more or the region is full. Returns how many there are, and how many slices.
pub fn write_transactions(
    context: &DesignContext,
    surviving: &mut SurvivingImage,
    transactions: impl Iterator<Item = Vec<(Addr, u64)>>,
) -> (u64, u64) {
    let geometry = Geometry::of(context, 0);
    let mut writer =
        Writer { geometry, block: 0, slices: 0, records: 0, sequence: Sequence::of(0) };
    let mut counts = (0, 0);
    for (number, words) in transactions.enumerate() {
        let needed = words.len().div_ceil(SLICE_WORDS);
        let slices: Vec<SliceNumber> = (0..needed).map_while(|_| writer.slice(surviving)).collect();
        if slices.len() < needed {
            break;
        }
        for (i, words) in words.chunks(SLICE_WORDS).enumerate() {
            let next = slices.get(i + 1).map_or(0, |&next| geometry.distance(slices[i], next));
            let next = i32::try_from(next).expect("regions are smaller");
            let words = words.to_vec();
            let slice = Slice { tx: slice_tx(number as u64), first: i == 0, next, words };
            for (line, data) in geometry.slice_lines(slices[i]).into_iter().zip(slice.lines()) {
                surviving.store_line(line, WordMask::MAX, &data);
            }
        }
        let record = Record { start: slices[0], sequence: writer.sequence, committed: true };
        surviving.store(geometry.record(writer.block, writer.records), record.word());
        writer.records += 1;
        writer.sequence = writer.sequence.next();
        counts = (counts.0 + 1, counts.1 + needed as u64);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hoop::recover_measured;

    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64;
    use std::collections::BTreeMap;

    /// Claim `hoop-recovery-algorithm`: one thread or several, the same image.
    #[test]
    fn any_number_of_threads_recovers_the_newest_version_of_every_word() {
        let mut config = crate::testing::defaults();
        config.set("hoop.block_bytes", "16 KB").expect("a valid size");
        let log = Addr(1 << 30);
        let context = DesignContext::new(config, 1, log, log.plus(2 << 20));
        let mut random = Pcg64::seed_from_u64(1);
        let mut newest = BTreeMap::new();
        let mut images = Vec::new();
        let transactions: Vec<Vec<(Addr, u64)>> = (0..1500)
            .map(|_| {
                let words = random.random_range(1..30u64);
                let word = |n| (Addr(4096 + random.random_range(0..200_000) * 8), n + 1);
                let mut words: Vec<(Addr, u64)> = (0..words).map(word).collect();
                words.iter_mut().for_each(|w| w.1 = w.1 << 32 | w.0.0);
                words
            })
            .collect();
        transactions.iter().flatten().for_each(|&(addr, value)| _ = newest.insert(addr, value));
        for threads in [1, 2, 3, 7] {
            let mut surviving = SurvivingImage::default();
            let (written, slices) =
                write_transactions(&context, &mut surviving, transactions.iter().cloned());
            assert_eq!(written, 1500, "the region is large enough");
            let work = recover_measured(&context, &mut surviving, threads);
            assert_eq!((work.records, work.slices), (1500, slices));
            assert_eq!(work.words, newest.len() as u64);
            let wrong = newest.iter().find(|&(&addr, &value)| surviving.peek(addr) != value);
            assert_eq!(wrong, None, "{threads} threads");
            let again = recover_measured(&context, &mut surviving, threads);
            assert_eq!((again.records, again.words), (0, 0), "the region is empty");
            images.push(surviving.into_image());
        }
        for image in &images[1..] {
            assert_eq!(images[0].first_difference(image, Addr(0), log.plus(2 << 20)), None);
        }
    }
}
