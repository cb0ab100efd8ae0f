//! Records into blocks, blocks into writes.

use super::record::Metadata;
use super::{Log, METADATA_WORDS, RECORDS_PER_GROUP, Record};
use crate::machine::{Machine, OrderSeq, Token, Write, WriteClass};
use crate::memory::{Addr, WORDS_PER_LINE};

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
    /// The next group.
    tail: u64,
    /// Metadata of the batch at hand; kept for its memory.
    metadata: Vec<Metadata>,
}

impl Packer {
    /// The beginning of an empty log.
    pub fn new(log: Log) -> Packer {
        Packer { log, tail: 0, metadata: Vec::new() }
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

    /// Sends a batch, whose records are durable only after the ordered writes up to `after`. `token`: what each
    /// of its writes is to be reported with, from its order.
    pub fn send(
        &mut self,
        m: &mut Machine,
        records: &[Record],
        after: OrderSeq,
        token: impl Fn(OrderSeq) -> Token,
    ) -> Sent {
        debug_assert!(!records.is_empty());
        let group = self.tail;
        let data = self.send_data(m, records, &token);
        let after = if self.log.faults.metadata_first { after } else { data.max(after) };
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
            m.write(write, m.path());
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
        let (mut line, mut used, mut group, mut order) = ([0; WORDS_PER_LINE], 0, self.tail, 0);
        let mut flush = |m: &mut Machine, line: &mut [u64; WORDS_PER_LINE], used: &mut usize| {
            let mut write = Write::line(WriteClass::Log, self.log.data(group).line(), *line);
            order = m.order();
            (write.order, write.token) = (order, token(order));
            m.write(write, m.path());
            (*line, *used, group) = ([0; WORDS_PER_LINE], 0, group + 1);
        };
        for (i, &record) in records.iter().enumerate() {
            let place = i % RECORDS_PER_GROUP;
            let count = (records.len() - (i - place)).min(RECORDS_PER_GROUP);
            let continues = place != i;
            self.metadata.push(Metadata { record, encoding: 0, count, continues });
            for word in
                [record.undo, record.redo].into_iter().skip(2 - Record::data_words(record.kind))
            {
                line[used] = word;
                used += 1;
                if used == WORDS_PER_LINE {
                    flush(m, &mut line, &mut used);
                }
            }
        }
        if used > 0 {
            flush(m, &mut line, &mut used);
        }
        order
    }
}
