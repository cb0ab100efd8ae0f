//! LAD's undo log: records of two lines in each thread's circular area, and recovery from them.

use super::{LadConfig, RecoveryReport, Site, ThreadId};
use crate::crash::Medium;
use crate::memory::{Addr, LINE_BYTES, LineAddr, WORD_BYTES, WORDS_PER_LINE, WordMask};

pub(super) const SLOT_BYTES: u64 = 2 * LINE_BYTES;
pub(super) const KIND_UNDO: u64 = 1;

/// The second line of an undo record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) thread: ThreadId,
    pub(super) words: WordMask,
    pub(super) tx: u32,
    pub(super) home: LineAddr,
}

impl Header {
    pub(super) fn words(&self) -> [u64; 2] {
        let head = KIND_UNDO
            | u64::from(self.thread) << 8
            | u64::from(self.words) << 16
            | u64::from(self.tx) << 32;
        [head, self.home.addr().0]
    }

    pub(super) fn parse([head, home]: [u64; 2]) -> Option<Header> {
        (head & 0xff == KIND_UNDO).then_some(Header {
            thread: (head >> 8 & 0xff) as ThreadId,
            words: (head >> 16) as WordMask,
            tx: (head >> 32) as u32,
            home: Addr(home).line(),
        })
    }
}

/// One thread's log area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) start: Addr,
    pub(super) slots: u64,
}

impl Area {
    pub(super) fn of(site: &Site, thread: ThreadId) -> Area {
        let slots = site.config.get::<LadConfig>().log_bytes_per_thread.0 / SLOT_BYTES;
        Area { start: site.thread_area(thread, slots * SLOT_BYTES), slots }
    }

    pub(super) fn slot(&self, index: u64) -> LineAddr {
        self.start.plus(index % self.slots * SLOT_BYTES).line()
    }
}

pub(super) fn recover(site: &Site, registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for (thread, &uncommitted) in registers.iter().enumerate() {
        let area = Area::of(site, thread as ThreadId);
        report.records_scanned += area.slots;
        for slot in (0..area.slots).map(|i| area.slot(i).addr()) {
            let second = [0, WORD_BYTES].map(|i| medium.load(slot.plus(LINE_BYTES + i)));
            // Numbers only grow; those that wrote nothing left the register as it was.
            let open = |h: &Header| h.tx.wrapping_sub(uncommitted as u32) < 1 << 31;
            let Some(header) = Header::parse(second).filter(open) else { continue };
            for word in (0..WORDS_PER_LINE).filter(|w| header.words >> w & 1 != 0) {
                let old = medium.load(slot.plus(word as u64 * WORD_BYTES));
                medium.store(header.home.word(word), old);
                report.words_undone += 1;
            }
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_back_as_it_was_written() {
        let header = Header { thread: 127, words: 0b1010_0001, tx: u32::MAX, home: LineAddr(77) };
        assert_eq!(Header::parse(header.words()), Some(header));
        assert_eq!(Header::parse([0, 0]), None);
    }
}
