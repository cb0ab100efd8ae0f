//! Records sent, made durable, and read back.

use proptest::prelude::*;

use super::record::Metadata;
use super::{
    Counters, Event, Faults, Format, Kind, Log, Packer, Record, TORN, ULOG_MAX, dirty_bytes,
};
use graven_base::codecs::mask_of_bytes;
use graven_base::memory::{Addr, Image};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::{Design, DesignEvent, NoCover, Observation, Plugged, Unused, plug};
use graven_machine::machine::Machine;
use graven_machine::request::WriteOrder;

const START: Addr = Addr(1 << 20);

/// A design that is a packer and nothing else.
struct Sender(Packer);

/// Events of the sender.
struct SenderEvent(Event);

impl From<Event> for SenderEvent {
    fn from(event: Event) -> SenderEvent {
        SenderEvent(event)
    }
}

impl DesignEvent for SenderEvent {
    type Counters = Counters;
    type Cover = NoCover;

    fn observe(self, to: &mut Observation<'_, SenderEvent>) {
        self.0.observe(to);
    }
}

impl Design for Sender {
    type Write = WriteOrder;
    type Read = Unused;
    type Timer = Unused;
    type Event = SenderEvent;
}

fn sender(log: Log, slde: bool) -> Plugged<Sender> {
    plug(Sender(Packer::new(log, slde)))
}

/// Sends a batch; returns its first group and the next.
fn send(sender: &mut Plugged<Sender>, m: &mut Machine, batch: &[Record]) -> (u64, u64) {
    let (sender, mut port) = sender.parts(m);
    let sent = sender.0.send(&mut port, batch, WriteOrder::NONE, |order| order);
    (sent.group, sender.0.tail())
}

fn machine(codec: &str) -> Machine {
    let mut config = crate::testing::defaults();
    config.set("pm.codec", codec).expect("a codec");
    Machine::new(&config, Image::new())
}

/// Content of PM once everything has been accepted.
fn durable(m: &mut Machine) -> SurvivingImage {
    m.memory.run_until_idle();
    m.memory.flush_buffers();
    SurvivingImage::new(m.memory.shared.media.clone())
}

fn log(groups: u64) -> Log {
    log_in(Format::Packed, groups)
}

fn log_in(format: Format, groups: u64) -> Log {
    Log::new(START, 64 + groups * format.group_bytes(), format, Faults::default())
}

fn any_record() -> impl Strategy<Value = Record> {
    let kind = prop_oneof![
        4 => Just(Kind::UndoRedo),
        3 => Just(Kind::Redo),
        1 => Just(Kind::Commit),
        1 => Just(Kind::InPlace)
    ];
    let word = prop_oneof![any::<u64>(), 0u64..300, Just(0), Just(u64::MAX)];
    (kind, any::<u8>(), any::<u16>(), 0u64..1 << 45, word.clone(), any::<u8>(), word, any::<bool>())
        .prop_map(|(kind, thread, tx, addr, undo, dirty, new, late)| {
            let redo = undo & !mask_of_bytes(dirty) | new & mask_of_bytes(dirty);
            let ulog = if kind == Kind::Commit { new as u32 & ULOG_MAX } else { 0 };
            let (undo, redo) = match kind {
                Kind::UndoRedo => (undo, redo),
                Kind::Redo => (0, redo),
                Kind::Commit | Kind::InPlace => (0, 0),
            };
            let (thread, addr) = (thread.into(), Addr(addr * 8));
            Record { kind, thread, tx, addr, undo, redo, dirty, ulog, late, partial: false }
        })
}

/// Claim `morlog-entry-field-widths`: type 2, thread 8, transaction 16, address 48, torn 1 (twice: once in each
/// word, the largest unit that is whole or absent), encoding type 3, dirty flag 8.
#[test]
fn every_bit_lies_where_the_table_says() {
    let record = Record {
        kind: Kind::InPlace,
        thread: 0xa5,
        tx: 0xbeef,
        addr: Addr(0x1234_5678_9ab8),
        dirty: 0x81,
        ulog: 0x1001,
        late: true,
        ..Record::BLANK
    };
    let metadata = Metadata { record, encoding: 5, count: 3, continues: true };
    let first = 0x1234_5678_9ab8 | 3 << 48 | 0xa5 << 50 | 5 << 58 | 2 << 61;
    let second = 0xbeef | 0x81 << 16 | 0x1001 << 24 | 1 << 37 | 1 << 38;
    assert_eq!(metadata.words(0), [first, second]);
    assert_eq!(metadata.words(TORN), [first | TORN, second | TORN]);
    assert_eq!(Metadata::parse([first, second], 0), Some(metadata));
    assert_eq!(Metadata::parse([first | TORN, second], 0), None, "mixed torn bits");
    assert_eq!(Metadata::parse([first | TORN, second], TORN), None, "mixed torn bits");
}

/// Four records fill a metadata block; eight redo words one data block, four pairs another.
#[test]
fn a_batch_is_packed() {
    let redo = |i: u64| Record { kind: Kind::Redo, addr: Addr(i * 8), redo: i, ..Record::BLANK };
    let pair = |i: u64| Record { kind: Kind::UndoRedo, undo: !i, ..redo(i) };
    for (records, blocks) in [
        ((0..8).map(redo).collect::<Vec<_>>(), (2, 1)),
        ((0..4).map(pair).collect(), (1, 1)),
        ((0..5).map(pair).collect(), (2, 2)),
        (vec![Record { kind: Kind::Commit, ..redo(0) }], (1, 0)),
    ] {
        let mut m = machine("none");
        let (_, tail) = send(&mut sender(log(8), false), &mut m, &records);
        m.memory.run_until_idle();
        let c = &m.memory.shared.stats.counters;
        let sent = (c.controller_write_requests_metadata, c.controller_write_requests_log);
        assert_eq!(sent, blocks, "{} records", records.len());
        assert_eq!(tail, blocks.0);
    }
}

/// Two records share a line. A batch begins where the last one has ended.
#[test]
fn a_batch_lies_in_slots() {
    let entry =
        |i: u64| Record { kind: Kind::UndoRedo, addr: Addr(i * 8), undo: i, ..Record::BLANK };
    let commit = Record { kind: Kind::Commit, ..Record::BLANK };
    let mut m = machine("none");
    let mut sender = sender(log_in(Format::Slots, 8), false);
    let packer = &sender.parts(&mut m).0.0;
    assert_eq!([0, 1, 2, 3, 4].map(|n| packer.room_behind(n)), [0, 1, 0, 1, 0]);
    assert_eq!(send(&mut sender, &mut m, &[entry(1), entry(2), entry(3)]), (0, 3));
    let packer = &sender.parts(&mut m).0.0;
    assert_eq!((packer.together(), [1, 2, 3].map(|n| packer.room_behind(n))), (1, [0, 1, 0]));
    assert_eq!(send(&mut sender, &mut m, &[commit]), (3, 4));
    m.memory.run_until_idle();
    let c = &m.memory.shared.stats.counters;
    let sent = (c.controller_write_requests_metadata, c.controller_write_requests_log);
    assert_eq!(sent, (1, 2), "a commit record has no words");
    let records = log_in(Format::Slots, 8).scan(&mut durable(&mut m)).records;
    assert_eq!(records, [(0, entry(1)), (1, entry(2)), (2, entry(3)), (3, commit)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Batches of any records, over several passes, with and without SLDE: what is read back says the same.
    /// A redo record that has lost its clean bytes says so.
    #[test]
    fn what_is_sent_is_read_back(
        batches in proptest::collection::vec(proptest::collection::vec(any_record(), 1..14), 1..12),
        slde: bool,
        garbage: Option<u64>,
        packed: bool,
    ) {
        // As many words of metadata and data for either.
        let (format, groups) = if packed { (Format::Packed, 9) } else { (Format::Slots, 36) };
        let (log, slde) = (log_in(format, groups), slde && packed);
        let mut m = machine(if slde { "slde" } else { "none" });
        if let Some(seed) = garbage {
            let mut region = SurvivingImage::new(std::mem::take(&mut m.memory.shared.media));
            (0..9 * 16 + 8).for_each(|i| region.store(START.plus(i * 8), (seed | 1).wrapping_mul(i | 1)));
            log.create(&mut region);
            m.memory.shared.media = region.into_image();
        }
        let (mut sender, mut tail) = (sender(log, slde), 0);
        let mut sent: Vec<(u64, Record)> = Vec::new();
        for batch in &batches {
            let needed = if packed { batch.len().div_ceil(4) } else { batch.len() } as u64;
            // The oldest batches make room, whole.
            let mut head = sent.first().map_or(tail, |(group, _)| *group);
            while tail + needed > head + groups {
                let first = sent[0].0;
                sent.retain(|(group, _)| *group != first);
                head = sent.first().map_or(tail, |(group, _)| *group);
            }
            m.memory.run_until_idle();
            m.memory.shared.media.store(log.head(), head);
            let (group, next) = send(&mut sender, &mut m, batch);
            tail = next;
            sent.extend(batch.iter().map(|&record| (group, record)));
        }
        let mut image = durable(&mut m);
        let scan = log.scan(&mut image);
        prop_assert_eq!(scan.end, tail);
        prop_assert_eq!(scan.records.len(), sent.len());
        for ((_, read), (_, sent)) in scan.records.iter().zip(&sent) {
            let mask = if read.partial { mask_of_bytes(sent.dirty) } else { u64::MAX };
            prop_assert_eq!(*read, Record { redo: sent.redo & mask, partial: read.partial, ..*sent });
            prop_assert!(slde || !read.partial);
        }
    }

    /// Power fails after any number of accepted writes, the last one in part: what is read is a beginning of
    /// what was sent, and every record of it is whole.
    #[test]
    fn what_is_cut_off_is_read_as_far_as_it_goes(
        batch in proptest::collection::vec(any_record(), 1..20),
        accepted in 0usize..16,
        torn: u8,
        packed: bool,
    ) {
        let log = log_in(if packed { Format::Packed } else { Format::Slots }, 36);
        let mut m = machine("none");
        m.memory.shared.durability.writes = Some(Vec::new());
        send(&mut sender(log, false), &mut m, &batch);
        m.memory.run_until_idle();
        let writes = m.memory.shared.durability.writes.take().expect("they are kept");
        let mut image = SurvivingImage::default();
        for (i, (line, mask, data)) in writes.into_iter().enumerate().take(accepted + 1) {
            image.store_line(line, if i < accepted { mask } else { mask & torn }, &data);
        }
        let scan = log.scan(&mut image);
        prop_assert!(scan.records.len() <= batch.len());
        for ((_, read), sent) in scan.records.iter().zip(&batch) {
            prop_assert_eq!(read, sent);
        }
    }
}

#[test]
fn a_dirty_flag_has_a_bit_per_changed_byte() {
    assert_eq!(dirty_bytes(0, 0), 0);
    assert_eq!(dirty_bytes(0x00aa_00bb_00cc_00dd, 0), 0x55, "the flag of Fig. 11");
    assert_eq!(dirty_bytes(0x0100, 0x0200), 0b10);
    assert_eq!(dirty_bytes(1 << 63, 0), 0x80);
}

#[test]
fn an_empty_log_and_zeroes_hold_nothing() {
    let scan = log(4).scan(&mut SurvivingImage::default());
    assert_eq!((scan.records.len(), scan.end, scan.blocks), (0, 0, 1));
}

#[test]
fn places_go_round_the_end_of_the_log() {
    let of = |from, to| {
        let ranges = super::bytes_of(Addr(0), (4, 32), (from, to));
        ranges.into_iter().map(|range| (range.start.0, range.end.0)).collect::<Vec<_>>()
    };
    assert_eq!(of(1, 3), [(0, 8), (96, 160)]);
    assert_eq!(of(2, 4), [(0, 8), (128, 192)]);
    assert_eq!(of(3, 5), [(0, 8), (160, 192), (64, 96)]);
    assert_eq!(of(3, 7), [(0, 8), (64, 192)]);
}
