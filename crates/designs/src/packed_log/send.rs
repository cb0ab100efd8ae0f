//! Records into blocks, blocks into writes.

use super::read::bytes_of;
use super::record::Metadata;
use super::{Kind, Log, METADATA_WORDS, RECORDS_PER_GROUP, Record};
use graven_base::codecs::slde::{pair_flag, redo_flag};
use graven_base::codecs::{Coding, Codings, choose, choose_pair, dldc, kept};
use graven_base::memory::{Addr, WORDS_PER_LINE};
use graven_machine::machine::Machine;
use graven_machine::request::{OrderSeq, Token, Write, WriteClass};

/// What came of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The group that its first records are in.
    pub group: u64,
    /// Its last write's place among the ordered writes: once that is reached, all its records are durable.
    pub order: OrderSeq,
}

/// The end of a log at which records are appended.
#[derive(Debug)]
pub struct Packer {
    log: Log,
    /// Whether the memory modules know DLDC.
    slde: bool,
    /// The next group.
    tail: u64,
    /// Metadata of the batch at hand; kept for its memory.
    metadata: Vec<Metadata>,
}

impl Packer {
    /// The beginning of an empty log. `slde`: whether its words may be coded by DLDC.
    pub fn new(log: Log, slde: bool) -> Packer {
        Packer { log, slde, tail: 0, metadata: Vec::new() }
    }

    /// The log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The next group.
    pub fn tail(&self) -> u64 {
        self.tail
    }

    /// Whether the controllers have room for the blocks of one more group.
    pub fn has_room(&self, m: &Machine) -> bool {
        let room = |at: Addr| m.memory.channel(at.line()).has_room_for_write();
        room(self.log.metadata(self.tail)) && room(self.log.data(self.tail))
    }

    /// Sends a batch. `token`: what each of its writes is to be reported with, from its order.
    pub fn send(
        &mut self,
        m: &mut Machine,
        records: &[Record],
        token: impl Fn(OrderSeq) -> Token,
    ) -> Sent {
        debug_assert!(!records.is_empty());
        let group = self.tail;
        let data = self.send_data(m, records, &token);
        let after = if self.log.faults.metadata_first { 0 } else { data };
        let mut order = 0;
        for block in self.metadata.chunks(RECORDS_PER_GROUP) {
            let torn = self.log.torn(self.tail);
            let mut line = [torn; WORDS_PER_LINE];
            for (metadata, words) in block.iter().zip(line.chunks_mut(METADATA_WORDS)) {
                words.copy_from_slice(&metadata.words(torn));
            }
            let at = self.log.metadata(self.tail).line();
            let mut write = Write::line(WriteClass::Metadata, at, line);
            order = m.order();
            (write.order, write.after, write.token) = (order, after, token(order));
            m.write(write, m.bypass_cycles());
            self.tail += 1;
        }
        Sent { group, order }
    }

    /// Sends the data blocks of a batch; returns the last one's order, 0 if there are none.
    fn send_data(
        &mut self,
        m: &mut Machine,
        records: &[Record],
        token: impl Fn(OrderSeq) -> Token,
    ) -> OrderSeq {
        self.metadata.clear();
        let mut block = DataBlock { line: [0; WORDS_PER_LINE], codings: Codings::FPC, used: 0 };
        let (mut group, mut order) = (self.tail, 0);
        let mut flush = |m: &mut Machine, block: &mut DataBlock| {
            let mut write = Write::line(WriteClass::Log, self.log.data(group).line(), block.line);
            order = m.order();
            (write.order, write.token, write.codings) = (order, token(order), block.codings);
            m.write(write, m.bypass_cycles());
            *block = DataBlock { line: [0; WORDS_PER_LINE], codings: Codings::FPC, used: 0 };
            group += 1;
        };
        for (i, &record) in records.iter().enumerate() {
            let place = i % RECORDS_PER_GROUP;
            let count = (records.len() - (i - place)).min(RECORDS_PER_GROUP);
            let (encoding, codings) = self.code(m, &record);
            let continues = place != i;
            self.metadata.push(Metadata { record, encoding, count, continues });
            let words = [(record.undo, codings.0), (record.redo, codings.1)];
            for (word, coding) in words.into_iter().skip(2 - Record::data_words(record.kind)) {
                block.line[block.used] = kept(word, coding);
                if self.log.faults.both_differential && (codings.0.is_dldc() || codings.1.is_dldc())
                {
                    block.line[block.used] &= bytes_of(record.dirty);
                }
                block.codings.set(block.used, coding);
                block.used += 1;
                if block.used == WORDS_PER_LINE {
                    flush(m, &mut block);
                }
            }
        }
        if block.used > 0 {
            flush(m, &mut block);
        }
        order
    }

    /// How a record's words are coded, and the encoding type flag that tells so.
    fn code(&self, m: &mut Machine, record: &Record) -> (u8, (Coding, Coding)) {
        let Record { kind, undo, redo, dirty, .. } = *record;
        if !self.slde {
            return (0, (Coding::Fpc, Coding::Fpc));
        }
        match kind {
            Kind::UndoRedo => {
                count(m, undo, dirty);
                count(m, redo, dirty);
                let codings = choose_pair(undo, redo, dirty);
                m.count().log_entries_differential +=
                    u64::from(codings.0.is_dldc() || codings.1.is_dldc());
                (pair_flag(codings.0, codings.1), codings)
            }
            Kind::Redo => {
                count(m, redo, dirty);
                let (coding, _) = choose(redo, dirty);
                m.count().log_entries_differential += u64::from(coding.is_dldc());
                (redo_flag(coding), (Coding::Fpc, coding))
            }
            Kind::Commit | Kind::InPlace => (0, (Coding::Fpc, Coding::Fpc)),
        }
    }
}

/// A data block that is being filled.
struct DataBlock {
    line: [u64; WORDS_PER_LINE],
    codings: Codings,
    used: usize,
}

/// Counts which pattern the dirty bytes of a log word have (Table II, last column).
fn count(m: &mut Machine, word: u64, dirty: u8) {
    let c = m.count();
    c.log_words += 1;
    let pattern = dldc::measure(word, dirty).0;
    *match pattern {
        Some(dldc::Pattern::Zero) => &mut c.dldc_pattern_000,
        Some(dldc::Pattern::TwoBitsEach) => &mut c.dldc_pattern_001,
        Some(dldc::Pattern::FourBitsEach) => &mut c.dldc_pattern_010,
        Some(dldc::Pattern::OneByte) => &mut c.dldc_pattern_011,
        Some(dldc::Pattern::TwoBytes) => &mut c.dldc_pattern_100,
        Some(dldc::Pattern::FourBytes) => &mut c.dldc_pattern_101,
        Some(dldc::Pattern::UpperHalves) => &mut c.dldc_pattern_110,
        Some(dldc::Pattern::LowByteZero) => &mut c.dldc_pattern_111,
        None => &mut c.dldc_pattern_none,
    } += 1;
}
