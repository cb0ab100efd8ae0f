//! Records into blocks, blocks into writes.

use super::event::Event;
use super::record::Metadata;
use super::slot::{self, SLOT_BYTES, SLOT_WORDS};
use super::{Format, Kind, Log, METADATA_WORDS, RECORDS_PER_GROUP, Record, TORN};
use graven_base::codecs::slde::{pair_flag, redo_flag};
use graven_base::codecs::{Coding, Codings, choose, choose_pair, kept, mask_of_bytes};
use graven_base::memory::{Addr, LINE_BYTES, LineData, WORDS_PER_LINE};
use graven_machine::design::{Design, Port};
use graven_machine::request::{Write, WriteClass, WriteOrder};

/// Place and order of a batch that was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The group that its first records are in.
    pub group: u64,
    /// Place of its last write among the ordered writes: once that is reached, all its records are
    /// durable.
    pub order: WriteOrder,
}

/// The end of a log at which records are appended.
#[derive(Debug)]
pub struct Packer {
    log: Log,
    /// True if the memory modules know DLDC.
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

    /// Returns true if the controllers have room for the blocks of one more group.
    pub fn has_room<D: Design>(&self, port: &Port<'_, D>) -> bool {
        let room = |at: Addr| port.has_room_for_write(at.line());
        room(self.log.metadata(self.tail))
            && (self.log.format == Format::Slots || room(self.log.data(self.tail)))
    }

    /// Records that the first block of the next batch, or the rest of the line in which it begins, has room for.
    pub fn together(&self) -> usize {
        match self.log.format {
            Format::Packed => RECORDS_PER_GROUP,
            Format::Slots => self.rest_of_line(self.tail),
        }
    }

    /// Number of records that the last block, or line, of a batch of `records` has room for behind
    /// them.
    pub fn room_behind(&self, records: usize) -> usize {
        let first = self.together();
        let behind = records.saturating_sub(first).next_multiple_of(self.log.format.together());
        if records == 0 { 0 } else { first + behind - records }
    }

    /// Slots from one on that share its line.
    fn rest_of_line(&self, slot: u64) -> usize {
        ((LINE_BYTES - self.log.metadata(slot).0 % LINE_BYTES) / SLOT_BYTES) as usize
    }

    /// Sends a batch, none of whose records is durable before `after` is. (Packed ones that have words wait for everything
    /// that was sent before them anyway, as their metadata waits for their words.) `report`: the value that the design receives for each of its writes when that is durable, from
    /// its order.
    pub fn send<D: Design>(
        &mut self,
        port: &mut Port<'_, D>,
        records: &[Record],
        after: WriteOrder,
        report: impl Fn(WriteOrder) -> D::Write,
    ) -> Sent
    where
        D::Event: From<Event>,
    {
        assert!(!records.is_empty());
        if self.log.format == Format::Slots {
            return self.send_slots(port, records, after, report);
        }
        let group = self.tail;
        let data = self.send_data(port, records, &report);
        let after = match data {
            _ if self.log.faults.metadata_first => WriteOrder::NONE,
            WriteOrder::NONE => after,
            data => data,
        };
        let mut order = WriteOrder::NONE;
        for block in self.metadata.chunks(RECORDS_PER_GROUP) {
            let torn = self.log.torn(self.tail);
            let mut line = [torn; WORDS_PER_LINE];
            for (metadata, words) in block.iter().zip(line.chunks_mut(METADATA_WORDS)) {
                words.copy_from_slice(&metadata.words(torn));
            }
            let at = self.log.metadata(self.tail).line();
            order = port.order();
            let write = Write::line(WriteClass::Metadata, at, line).ordered(order).after(after);
            port.write_reported(write, report(order), port.bypass_cycles());
            self.tail += 1;
        }
        Sent { group, order }
    }

    /// Sends a batch into slots: those that share a line in one write.
    fn send_slots<D: Design>(
        &mut self,
        port: &mut Port<'_, D>,
        records: &[Record],
        after: WriteOrder,
        report: impl Fn(WriteOrder) -> D::Write,
    ) -> Sent {
        let (group, mut order, mut left) = (self.tail, WriteOrder::NONE, records);
        while !left.is_empty() {
            let (now, later) = left.split_at(self.rest_of_line(self.tail).min(left.len()));
            let at = self.log.metadata(self.tail);
            let mut words = [0; WORDS_PER_LINE];
            for (record, slot) in now.iter().zip(words.chunks_mut(SLOT_WORDS)) {
                let torn = self.log.torn(self.tail) == TORN;
                slot.copy_from_slice(&slot::words_of(record, torn));
                self.tail += 1;
            }
            let has_words = now.iter().any(|record| Record::data_words(record.kind) > 0);
            let class = if has_words { WriteClass::Log } else { WriteClass::Metadata };
            order = port.order();
            let write = Write::words(class, at, &words[..now.len() * SLOT_WORDS]).ordered(order);
            port.write_reported(write.after(after), report(order), port.bypass_cycles());
            left = later;
        }
        Sent { group, order }
    }

    /// Sends the data blocks of a batch; returns the last one's order, if there are any.
    fn send_data<D: Design>(
        &mut self,
        port: &mut Port<'_, D>,
        records: &[Record],
        report: impl Fn(WriteOrder) -> D::Write,
    ) -> WriteOrder
    where
        D::Event: From<Event>,
    {
        self.metadata.clear();
        let (mut group, mut order) = (self.tail, WriteOrder::NONE);
        let mut block = DataBlock::EMPTY;
        let mut flush = |port: &mut Port<'_, D>, block: &mut DataBlock| {
            let DataBlock { line, codings, .. } = std::mem::replace(block, DataBlock::EMPTY);
            order = port.order();
            let write = Write::line(WriteClass::Log, self.log.data(group).line(), line);
            let write = write.ordered(order).coded(codings);
            port.write_reported(write, report(order), port.bypass_cycles());
            group += 1;
        };
        for (i, &record) in records.iter().enumerate() {
            let place = i % RECORDS_PER_GROUP;
            let count = (records.len() - (i - place)).min(RECORDS_PER_GROUP);
            let (encoding, codings) = self.code(port, &record);
            let continues = place != i;
            self.metadata.push(Metadata { record, encoding, count, continues });
            let words = [(record.undo, codings.0), (record.redo, codings.1)];
            let is_differential = codings.0.is_dldc() || codings.1.is_dldc();
            for (word, coding) in words.into_iter().skip(2 - Record::data_words(record.kind)) {
                let mut word = kept(word, coding);
                if self.log.faults.both_differential && is_differential {
                    word &= mask_of_bytes(record.dirty);
                }
                block.push(word, coding);
                if block.is_full() {
                    flush(port, &mut block);
                }
            }
        }
        if !block.is_empty() {
            flush(port, &mut block);
        }
        order
    }

    /// Codes a record's words. Returns them with the encoding type flag.
    fn code<D: Design>(&self, port: &mut Port<'_, D>, record: &Record) -> (u8, (Coding, Coding))
    where
        D::Event: From<Event>,
    {
        let Record { kind, undo, redo, dirty, .. } = *record;
        let plain = (0, (Coding::Fpc, Coding::Fpc));
        if !self.slde {
            return plain;
        }
        let (flag, codings, undo) = match kind {
            Kind::UndoRedo => {
                let codings = choose_pair(undo, redo, dirty);
                (pair_flag(codings.0, codings.1), codings, Some(undo))
            }
            Kind::Redo => {
                let (coding, _) = choose(redo, dirty);
                (redo_flag(coding), (Coding::Fpc, coding), None)
            }
            Kind::Commit | Kind::InPlace => return plain,
        };
        let is_differential = codings.0.is_dldc() || codings.1.is_dldc();
        port.emit(Event::Coded { undo, redo, dirty, is_differential }.into());
        (flag, codings)
    }
}

/// A data block that is being filled.
struct DataBlock {
    line: LineData,
    codings: Codings,
    used: usize,
}

impl DataBlock {
    const EMPTY: DataBlock =
        DataBlock { line: [0; WORDS_PER_LINE], codings: Codings::FPC, used: 0 };

    fn is_empty(&self) -> bool {
        self.used == 0
    }

    fn is_full(&self) -> bool {
        self.used == WORDS_PER_LINE
    }

    fn push(&mut self, word: u64, coding: Coding) {
        self.line[self.used] = word;
        self.codings.set(self.used, coding);
        self.used += 1;
    }
}
