//! Undo records of two lines in each thread's circular area, one after the other.
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0-7 | 0-63 | undo: the committed line |
//! | 8 | 0-7 | kind: 1; 0: no record |
//! | 8 | 8-15 | which words of the line are the transaction's |
//! | 8 | 16-62 | transaction number (low 47 bits) |
//! | 9 | 0-47 | home address |
//! | 8, 9 | 63 | torn bit: 1 in even passes over the area, 0 in odd ones |
//!
//! The second line is sent when the first is durable, and both its words carry a torn bit, so a record is
//! atomic. (The system clears the second lines before the log is put to use.)
//!
//! Non-volatile registers: per thread, the number of its first transaction that has not committed (8 B
//! each); those without stores do not count. A record of any other number is void.

use super::event::Event;
use super::protocol::{self, Port};
use super::undo_log::{Undo, UndoLog};
use super::{LadConfig, Rules};
use crate::fields::HOME;
use crate::mechanisms::torn;
use graven_base::config::ConfigError;
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, LINE_BYTES, LineAddr, WORD_BYTES, WordMask};
use graven_base::surviving::{SurvivingImage, Work};
use graven_machine::design::{DesignContext, RecoveryReport};
use graven_machine::request::{Write, WriteClass};

const SLOT_BYTES: u64 = 2 * LINE_BYTES;
const KIND: Field = Field::new("kind", 8, 0);
const KIND_UNDO: u64 = 1;
const WORDS: Field = KIND.then("words", WordMask::BITS);
/// Numbers come round after 2^47 transactions.
const TX: Field = WORDS.then("transaction", 47);

/// The second line of an undo record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) words: WordMask,
    /// Number of the transaction among the thread's that commit something.
    pub(super) tx: u64,
    pub(super) home: LineAddr,
}

impl Header {
    pub(super) fn words(&self, torn: bool) -> [u64; 2] {
        let head = KIND.put(KIND_UNDO) | WORDS.put(self.words.into()) | TX.wrapped(self.tx);
        torn::mark([head, HOME.put(self.home.addr().0)], torn)
    }

    /// The header, if it is one and was written whole.
    pub(super) fn parse(words: [u64; 2]) -> Option<Header> {
        let [head, home] = torn::whole(words)?;
        (KIND.get(head) == KIND_UNDO).then_some(Header {
            words: WORDS.get(head) as WordMask,
            tx: TX.get(head),
            home: Addr(HOME.get(home)).line(),
        })
    }

    fn is_of(&self, uncommitted: u64) -> bool {
        TX.wrapped(self.tx) == TX.wrapped(uncommitted)
    }
}

/// One thread's log area.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    start: Addr,
    pub(super) slots: u64,
}

impl Area {
    pub(super) fn of(context: &DesignContext, thread: ThreadId) -> Area {
        let slots = context.config.get::<LadConfig>().log_bytes_per_thread.0 / SLOT_BYTES;
        Area { start: context.thread_area(thread, slots * SLOT_BYTES), slots }
    }

    /// Line of a record; records are numbered from 0 over all passes.
    pub(super) fn slot(&self, number: u64) -> LineAddr {
        self.start.plus(number % self.slots * SLOT_BYTES).line()
    }

    pub(super) fn torn(&self, number: u64) -> bool {
        torn::of_pass(number, self.slots)
    }
}

/// One thread's part of the log.
#[derive(Clone, Copy, Debug)]
struct Thread {
    area: Area,
    /// The non-volatile register: the first transaction that has not committed.
    uncommitted: u64,
    /// Number of the next record.
    records: u64,
    records_of_tx: u64,
}

/// The number of a record among those of all threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordId(u64);

/// A record on its way.
#[derive(Clone, Copy, Debug)]
struct Coming {
    id: RecordId,
    home: LineAddr,
    header: Write,
    header_sent: bool,
}

/// The log of all threads.
pub(super) struct CircularLog {
    threads: Vec<Thread>,
    coming: Vec<Coming>,
    /// That of the next record.
    next: RecordId,
    rules: Rules,
}

impl UndoLog for CircularLog {
    type Write = RecordId;

    fn new(context: &DesignContext) -> Result<CircularLog, ConfigError> {
        let bytes = context.config.get::<LadConfig>().log_bytes_per_thread.0;
        context.check_thread_areas("lad.log_bytes_per_thread", bytes)?;
        let thread = |thread| Thread {
            area: Area::of(context, thread),
            uncommitted: context.first_transaction,
            records: 0,
            records_of_tx: 0,
        };
        let threads = (0..context.threads).map(thread).collect();
        let (next, rules) = (RecordId(0), Rules::of(context));
        Ok(CircularLog { threads, coming: Vec::new(), next, rules })
    }

    /// Sends the data of a record to the thread's next slot; the header follows when it is durable.
    fn append(&mut self, port: &mut Port<'_, Self>, undo: &Undo) {
        let thread = &mut self.threads[undo.thread];
        let (slot, torn) = (thread.area.slot(thread.records), thread.area.torn(thread.records));
        if thread.records_of_tx == thread.area.slots {
            return port.fail(format!(
                "transaction {} of thread {} has more undo records than lad.log_bytes_per_thread holds ({})",
                undo.tx, undo.thread, thread.area.slots
            ));
        }
        port.emit(Event::SlotFilled { again: thread.records >= thread.area.slots });
        thread.records += 1;
        thread.records_of_tx += 1;
        let header = Header { words: undo.words, tx: thread.uncommitted, home: undo.home };
        let at = slot.addr().plus(LINE_BYTES);
        let header = Write::words(WriteClass::Metadata, at, &header.words(torn));
        let id = self.next;
        self.next = RecordId(id.0 + 1);
        let data = Write::line(WriteClass::Log, slot, undo.old);
        let header_sent = !self.rules.header_follows_data();
        let awaited = (!header_sent).then_some(protocol::Write::Log(id));
        port.write_maybe_reported(data, awaited, 0);
        if header_sent {
            port.write_reported(header, protocol::Write::Log(id), 0);
        }
        self.coming.push(Coming { id, home: undo.home, header, header_sent });
    }

    /// Takes note that the data of a record is durable, or its header, with which the record
    /// counts.
    fn on_durable(&mut self, port: &mut Port<'_, Self>, id: RecordId, logged: &mut Vec<LineAddr>) {
        let of_id = self.coming.iter().position(|record| record.id == id);
        let at = of_id.expect("a record is on its way until its header is durable");
        let record = &mut self.coming[at];
        let counts = record.header_sent || !self.rules.header_is_awaited();
        if !record.header_sent {
            record.header_sent = true;
            let awaited = (!counts).then_some(protocol::Write::Log(id));
            port.write_maybe_reported(record.header, awaited, 0);
        }
        if counts {
            logged.push(self.coming.remove(at).home);
        }
    }

    /// The register names the next transaction: records of this one are void.
    fn commit(&mut self, port: &mut Port<'_, Self>, thread: usize) {
        let thread = &mut self.threads[thread];
        thread.uncommitted += 1;
        port.emit(Event::Truncated { records: std::mem::take(&mut thread.records_of_tx) });
    }

    fn registers(&self) -> Vec<u64> {
        self.threads.iter().map(|thread| thread.uncommitted).collect()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure {
            0 => self.threads.iter().map(|thread| thread.records_of_tx).max().unwrap_or(0),
            _ => 0,
        }
    }
}

/// Addresses of the two words of a slot's header.
fn header_at(slot: LineAddr) -> [Addr; 2] {
    [0, WORD_BYTES].map(|at| slot.addr().plus(LINE_BYTES + at))
}

fn read_header(
    context: &DesignContext,
    slot: LineAddr,
    image: &mut SurvivingImage,
) -> Option<Header> {
    let [head, home] = header_at(slot);
    let head = image.load(head);
    image.work(Work::Record, 1);
    if KIND.get(head) != KIND_UNDO {
        return None;
    }
    let mut words = [head, image.load(home)];
    if !Rules::of(context).torn_bits_are_checked() {
        words = torn::as_the_first(words);
    }
    Header::parse(words)
}

/// Clears the headers of all slots, so that the first headers written there are distinguishable from earlier content.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if !Rules::of(context).log_is_cleared() {
        return;
    }
    for area in (0..context.threads).map(|thread| Area::of(context, thread)) {
        for slot in (0..area.slots).map(|number| area.slot(number)) {
            header_at(slot).into_iter().for_each(|word| image.store(word, 0));
        }
    }
}

/// Writes back the words of all records that the registers do not say to be void.
pub(super) fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    let mut report = RecoveryReport::default();
    for (thread, &uncommitted) in registers.iter().enumerate() {
        let area = Area::of(context, thread as ThreadId);
        report.records_scanned += area.slots;
        for slot in (0..area.slots).map(|number| area.slot(number)) {
            let open = |h: &Header| {
                h.is_of(uncommitted) || !Rules::of(context).only_uncommitted_is_undone()
            };
            let header = read_header(context, slot, image).filter(open);
            let Some(Header { mut words, home, .. }) = header else { continue };
            if !Rules::of(context).only_own_words_are_undone() {
                words = WordMask::MAX;
            }
            image.note(|| format!("log area {thread}: words {words:#010b} of {}", home.addr()));
            report.words_undone += image.copy_words(slot, home, words);
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_header() -> impl Strategy<Value = Header> {
        (any::<WordMask>(), 0..=TX.max(), 0..=HOME.max() / LINE_BYTES)
            .prop_map(|(words, tx, home)| Header { words, tx, home: LineAddr(home) })
    }

    #[test]
    fn every_bit_lies_where_the_table_says() {
        let header = Header { words: 0xa5, tx: 0x7edc_ba98_7654, home: LineAddr(0x12_3456_789a) };
        let words = [0x7edc_ba98_7654_a501, 0x048d_159e_2680];
        assert_eq!(header.words(false), words);
        assert_eq!(header.words(true), words.map(|word| word | 1 << 63));
    }

    proptest! {
        #[test]
        fn a_header_comes_back_from_its_words(header in any_header(), torn: bool) {
            prop_assert_eq!(Header::parse(header.words(torn)), Some(header));
        }

        #[test]
        fn a_header_that_is_half_written_is_none(
            new in any_header(), old in any_header(), torn: bool,
        ) {
            let (new, old) = (new.words(torn), old.words(!torn));
            prop_assert_eq!(Header::parse([new[0], old[1]]), None);
            prop_assert_eq!(Header::parse([old[0], new[1]]), None);
        }

        #[test]
        fn a_header_that_is_half_written_over_zeroes_is_none(header in any_header()) {
            let [head, home] = header.words(true);
            prop_assert_eq!(Header::parse([head, 0]), None);
            prop_assert_eq!(Header::parse([0, home]), None);
            prop_assert_eq!(Header::parse([0, 0]), None);
        }

        #[test]
        fn flipping_any_used_bit_changes_the_header(header in any_header(), bit in 0usize..128) {
            let mut words = header.words(true);
            words[bit / 64] ^= 1 << (bit % 64);
            let unused = matches!(bit, 64..70 | 112..127);
            prop_assert_eq!(Header::parse(words) == Some(header), unused);
        }
    }

    #[test]
    fn a_record_is_of_the_transaction_that_the_register_names() {
        let of = |tx: u64| Header { words: 1, tx: tx & TX.max(), home: LineAddr(1) };
        for tx in [0, 1, u64::from(u32::MAX), 1 << 32, u64::MAX] {
            assert!(of(tx).is_of(tx));
            assert!(!of(tx).is_of(tx.wrapping_add(1)) && !of(tx).is_of(tx.wrapping_sub(1 << 32)));
        }
    }
}
