//! Captured programs: streams as a plugin writes them, made program traces.
//!
//! Bug class: a store or its order is lost on the way; what is wrong with a capture is not seen, or blamed on what is right.

use std::io::{self, Cursor};

use graven::control::Control;
use graven::memory::{Addr, Image};
use graven::program::{Op, Ptr};
use graven::trace::capture::{
    Accessor, Capture, CaptureError, Limits, Race, Report, Role, Sources,
};
use graven::trace::program::{Origin, Reader};
use graven_capture::{Accessed, Encoder, Event, Left, RECORD_BYTES_MAX, position};
use proptest::prelude::*;
use serde_json::json;

const BEGIN: u32 = 0;
const COMMIT: u32 = 1;
const ABORT: u32 = 2;
const LOCK: u32 = 3;
const UNLOCK: u32 = 4;

const ROLES: [Role; 5] =
    [Role::Begin { returns_zero: true }, Role::Commit, Role::Abort, Role::Lock, Role::Unlock];

/// Bytes of the region.
const REGION: usize = 4096;

/// Where the region's first byte lies in the trace.
const START: u64 = 2 << 20;

/// What a plugin would have written.
struct Tape {
    threads: Vec<(Encoder, Vec<u8>, u64)>,
    events: u64,
    before: Vec<u8>,
    now: Vec<u8>,
}

impl Tape {
    fn new(threads: usize) -> Tape {
        let before: Vec<u8> = (0..REGION).map(|at| (at / 64) as u8).collect();
        let threads = vec![(Encoder::default(), Vec::new(), 0); threads];
        Tape { threads, events: 0, now: before.clone(), before }
    }

    fn write(&mut self, thread: usize, put: impl FnOnce(&mut Encoder, &mut [u8], u64) -> usize) {
        let (encoder, stream, instructions) = &mut self.threads[thread];
        *instructions += 3;
        let mut window = [0; RECORD_BYTES_MAX];
        let length = put(encoder, &mut window, *instructions);
        stream.extend(&window[..length]);
    }

    fn store(&mut self, thread: usize, at: usize, bytes: &[u8]) {
        self.now[at..at + bytes.len()].copy_from_slice(bytes);
        self.write(thread, |encoder, out, now| {
            encoder.access(out, now, position(0, at as u64), bytes, Accessed::Stored)
        });
    }

    fn load(&mut self, thread: usize, at: usize, bytes: usize) {
        let found = self.now[at..at + bytes].to_vec();
        self.load_of(thread, at, &found);
    }

    fn load_of(&mut self, thread: usize, at: usize, found: &[u8]) {
        self.write(thread, |encoder, out, now| {
            encoder.access(out, now, position(0, at as u64), found, Accessed::Loaded)
        });
    }

    fn event(&mut self, thread: usize, event: &Event) {
        let number = self.events;
        self.events += 1;
        self.write(thread, |encoder, out, now| encoder.event(out, now, number, event));
    }

    fn enter(&mut self, thread: usize, function: u32, argument: u64) {
        self.event(thread, &Event::Entered { function, argument });
    }

    fn leave(&mut self, thread: usize, function: u32, result: u64) {
        self.event(thread, &Event::Left { function, result, how: Left::Returned });
    }

    fn call(&mut self, thread: usize, function: u32, argument: u64) {
        self.enter(thread, function, argument);
        self.leave(thread, function, 0);
    }

    fn kernel_writes(&mut self, thread: usize, at: usize, bytes: &[u8]) {
        self.now[at..at + bytes.len()].copy_from_slice(bytes);
        let position = position(0, at as u64);
        self.event(thread, &Event::KernelWrote { position, bytes: bytes.to_vec() });
    }

    fn capture(self, limits: Limits) -> Result<Capture<Tape>, CaptureError> {
        let mapped = Event::Mapped { position: position(0, 0), bytes: REGION as u64, address: 0 };
        let mut tape = self;
        tape.event(0, &mapped);
        Capture::new(tape, ROLES.to_vec(), limits)
    }
}

impl Sources for Tape {
    type File = Cursor<Vec<u8>>;

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn regions(&self) -> usize {
        1
    }

    fn stream(&self, thread: usize) -> io::Result<Self::File> {
        Ok(Cursor::new(self.threads[thread].1.clone()))
    }

    fn before(&self, _region: usize) -> io::Result<Self::File> {
        Ok(Cursor::new(self.before.clone()))
    }

    fn after(&self, _region: usize) -> io::Result<Option<Self::File>> {
        Ok(Some(Cursor::new(self.now.clone())))
    }
}

/// The trace of a tape, and what the report says.
fn trace_of(tape: Tape, limits: Limits) -> (Report, Reader<Cursor<Vec<u8>>>) {
    let capture = tape.capture(limits).unwrap_or_else(|e| panic!("{e}"));
    let control = Control::default();
    let report = capture.report(&control).unwrap_or_else(|e| panic!("{e}"));
    let mut trace = Vec::new();
    let description = json!({"arguments": ["program"]});
    let written = capture.write(&mut trace, description, &report, &control);
    written.unwrap_or_else(|e| panic!("{e}"));
    (report, Reader::open(Cursor::new(trace)).unwrap_or_else(|e| panic!("{e}")))
}

/// The trace of a tape: what the report says, the operations of each thread, and memory at the beginning.
fn traced(tape: Tape, limits: Limits) -> (Report, Vec<Vec<Op>>, Image) {
    let (report, reader) = trace_of(tape, limits);
    let header = &reader.contents().header;
    assert_eq!(header.origin, Origin::Program);
    let said = header.capture.as_ref().expect("a capture says what it is");
    assert_eq!(said["report"], report.to_json());
    let threads = header.threads;
    let all = (0..threads).map(|thread| {
        let mut stream = reader.thread(thread);
        let next = || stream.next_operation().unwrap_or_else(|e| panic!("{e}"));
        std::iter::from_fn(next).filter(|op| *op != Op::Done).collect()
    });
    let operations = all.collect();
    let mut image = Image::new();
    reader.populate(&mut image).unwrap_or_else(|e| panic!("{e}"));
    (report, operations, image)
}

/// Without the instructions between.
fn accesses(operations: &[Op]) -> Vec<Op> {
    operations.iter().copied().filter(|op| !matches!(op, Op::Compute { .. })).collect()
}

fn store_op(at: u64, value: u64) -> Op {
    Op::Store { at: Ptr::known(Addr(START + at)), value }
}

#[test]
fn stores_of_bytes_become_stores_of_the_words_that_they_leave() {
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    tape.store(0, 8, &[0xaa]);
    tape.store(0, 22, &[1, 2, 3, 4]);
    tape.load(0, 20, 8);
    tape.call(0, COMMIT, 0);
    let (report, operations, image) = traced(tape, Limits::default());
    assert_eq!(image.load(Addr(START + 64)), 0x0101_0101_0101_0101);
    let load = |at: u64| Op::Load { at: Ptr::known(Addr(START + at)) };
    let expected = [
        Op::TxBegin,
        store_op(8, 0xaa),
        store_op(16, 0x0201 << 48),
        store_op(24, 0x0403),
        load(16),
        load(24),
        Op::TxEnd,
    ];
    assert_eq!(accesses(&operations[0]), expected);
    assert_eq!((report.stores, report.words_stored, report.loads), (2, 3, 1));
    assert_eq!((report.bytes_unexplained, report.loads_unexplained), (0, 0));
    assert_eq!(report.bytes_compared, REGION as u64);
}

#[test]
fn properties_are_those_of_transactions_and_of_what_stores_change() {
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    // Word 8 holds zeros: two bytes change; then one of them again; then nothing. A word of another line changes in all bytes.
    tape.store(0, 8, &0x0101u64.to_le_bytes());
    tape.store(0, 8, &0x0201u64.to_le_bytes());
    tape.store(0, 8, &0x0201u64.to_le_bytes());
    tape.store(0, 64, &[9; 8]);
    tape.load(0, 128, 8);
    tape.call(0, COMMIT, 0);
    tape.call(0, BEGIN, 0);
    tape.call(0, COMMIT, 0);
    let (_, reader) = trace_of(tape, Limits::default());
    let found = reader.properties(&Control::default()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(found["transactions"]["count"], 2);
    let sizes = |of: &str| {
        (found["transactions"][of]["mean"].clone(), found["transactions"][of]["max"].clone())
    };
    assert_eq!(sizes("stores"), (json!(2.0), json!(4)));
    assert_eq!(sizes("words"), (json!(1.0), json!(2)));
    assert_eq!(sizes("lines"), (json!(1.0), json!(2)));
    assert_eq!(found["silent_share"], json!(0.25));
    assert_eq!(found["clean_share"], json!((6 + 7 + 8) as f64 / 32.0));
    assert_eq!(found["again_share"], json!(0.5));
    let lines = (found["lines_stored"].clone(), found["lines"].clone());
    assert_eq!(lines, (json!(2), json!(3)));
    assert_eq!((found["loads"].clone(), found["outside"].clone()), (json!(1), json!(0)));
}

#[test]
fn what_nothing_explains_is_counted_and_located() {
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    tape.store(0, 128, &[9; 8]);
    tape.load_of(0, 256, &[77; 4]);
    tape.call(0, COMMIT, 0);
    tape.now[300..310].fill(0xff);
    let (report, ..) = traced(tape, Limits::default());
    assert_eq!((report.bytes_unexplained, report.loads_unexplained), (10, 1));
    let place = &report.unexplained[0];
    assert_eq!((place.offset, place.bytes), (296, 16));
    assert_eq!(report.unexplained.len(), 1);
    assert_eq!((report.loads_astray[0].offset, report.loads_astray[0].load), (256, Some((0, 0))));
}

#[test]
fn transactions_within_another_are_part_of_it_and_failed_ones_are_none() {
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    tape.call(0, BEGIN, 0);
    tape.store(0, 0, &[1]);
    tape.call(0, COMMIT, 0);
    tape.store(0, 0, &[2]);
    // The end of a transaction calls another function that ends one.
    tape.enter(0, COMMIT, 0);
    tape.call(0, ABORT, 0);
    tape.store(0, 0, &[3]);
    tape.leave(0, COMMIT, 0);
    tape.enter(0, BEGIN, 0);
    tape.leave(0, BEGIN, 5);
    tape.store(0, 0, &[4]);
    tape.call(0, BEGIN, 0);
    tape.call(0, ABORT, 0);
    // Behind the last transaction: it is no part of the trace.
    tape.store(0, 0, &[5]);
    let (report, operations, _) = traced(tape, Limits::default());
    let ops = accesses(&operations[0]);
    let expected = [
        Op::TxBegin,
        store_op(0, 1),
        store_op(0, 2),
        store_op(0, 3),
        Op::TxEnd,
        Op::TxBegin,
        Op::TxEnd,
        store_op(0, 4),
        Op::TxBegin,
        Op::TxEnd,
    ];
    assert_eq!(ops, expected);
    assert_eq!((report.transactions, report.transactions_without_stores), (3, 2));
    assert_eq!((report.words_stored_outside, report.aborted), (1, 1));
    assert_eq!((report.stores, report.bytes_unexplained), (5, 0));
}

#[test]
fn locks_that_are_released_in_a_transaction_are_held_to_its_end() {
    let mut tape = Tape::new(2);
    for thread in [0, 1] {
        tape.call(thread, BEGIN, 0);
        tape.call(thread, LOCK, 0x7000);
        tape.store(thread, 8 * thread, &[1]);
        tape.call(thread, UNLOCK, 0x7000);
        tape.call(thread, COMMIT, 0);
        // One that was not acquired.
        tape.enter(thread, LOCK, 0x7008);
        tape.leave(thread, LOCK, 16);
    }
    let (report, operations, _) = traced(tape, Limits::default());
    for thread in [0, 1] {
        let ops = accesses(&operations[thread]);
        let store = store_op(8 * thread as u64, 1);
        let (lock, unlock) = (Op::Lock { lock: 0 }, Op::Unlock { lock: 0 });
        assert_eq!(ops, [Op::TxBegin, lock, store, Op::TxEnd, unlock]);
    }
    assert_eq!((report.unlocks_put_off, report.threads), (2, 2));
}

#[test]
fn a_part_of_a_program_begins_with_what_was_stored_before() {
    let tape = || {
        let mut tape = Tape::new(2);
        for number in 1..=6 {
            tape.call(0, BEGIN, 0);
            tape.store(0, 0, &[number]);
            tape.call(0, COMMIT, 0);
        }
        tape.kernel_writes(1, 512, &[8; 20]);
        tape
    };
    let (report, operations, image) = traced(tape(), Limits { skip: 2, most: Some(3) });
    assert_eq!(image.load(Addr(START)), 2);
    let stored = accesses(&operations[0]);
    let stored: Vec<&Op> = stored.iter().filter(|op| matches!(op, Op::Store { .. })).collect();
    assert_eq!(stored, [&store_op(0, 3), &store_op(0, 4), &store_op(0, 5)]);
    assert_eq!((report.skipped, report.transactions), (2, 3));
    // The rest is compared all the same.
    assert_eq!((report.bytes_unexplained, report.kernel_bytes), (0, 20));
    let refused = tape().capture(Limits { skip: 6, most: None }).err().expect("there are six");
    assert!(refused.to_string().contains("6 transactions, of which 6 are skipped"), "{refused}");
}

#[test]
fn a_program_that_was_killed_ends_its_transactions() {
    let mut tape = Tape::new(1);
    tape.call(0, LOCK, 0x7000);
    tape.call(0, BEGIN, 0);
    tape.store(0, 0, &[1]);
    let (report, operations, _) = traced(tape, Limits::default());
    let ops = accesses(&operations[0]);
    let (lock, unlock) = (Op::Lock { lock: 0 }, Op::Unlock { lock: 0 });
    assert_eq!(ops, [lock, Op::TxBegin, store_op(0, 1), Op::TxEnd, unlock]);
    assert_eq!((report.unfinished, report.transactions), (1, 1));
}

/// Two threads, of which neither has made the other.
fn racing(between: impl FnOnce(&mut Tape)) -> Report {
    let mut tape = Tape::new(3);
    tape.call(0, LOCK, 0x7000);
    tape.call(0, BEGIN, 0);
    tape.store(0, 8, &[1; 8]);
    tape.call(0, COMMIT, 0);
    tape.call(0, UNLOCK, 0x7000);
    between(&mut tape);
    tape.load(2, 12, 2);
    tape.event(2, &Event::Ordered);
    traced(tape, Limits::default()).0
}

#[test]
fn races_are_told_with_both_places() {
    let report = racing(|_| {});
    let accessor = |thread, transaction, offset, bytes, is_store| Accessor {
        thread: Some(thread),
        transaction,
        region: 0,
        offset,
        bytes,
        is_store,
    };
    let earlier = accessor(0, Some(0), 8, 8, true);
    let later = accessor(1, None, 12, 2, false);
    assert_eq!(report.first_races, [Race { earlier, later }]);
    assert_eq!((report.races, report.racing_bytes, report.loads_unexplained), (1, 2, 0));
    // That an event orders records is no synchronisation, nor is another lock.
    assert_eq!(racing(|tape| tape.event(0, &Event::Ordered)).races, 1);
    assert_eq!(racing(|tape| tape.call(2, LOCK, 0x7008)).races, 1);
    assert_eq!(racing(|tape| tape.kernel_writes(1, 12, &[3])).races, 2);
}

#[test]
fn what_synchronises_threads_keeps_them_from_racing() {
    let made = Event::Began { by: Some(0) };
    let synchronised =
        |acquires, releases| Event::Synchronised { place: 0x7100, bytes: 4, acquires, releases };
    assert_eq!(racing(|tape| tape.call(2, LOCK, 0x7000)).races, 0);
    assert_eq!(racing(|tape| tape.event(2, &made)).races, 0);
    assert_eq!(
        racing(|tape| {
            tape.event(0, &synchronised(false, true));
            tape.event(2, &synchronised(true, false));
        })
        .races,
        0
    );
    assert_eq!(
        racing(|tape| {
            tape.event(0, &synchronised(true, false));
            tape.event(2, &synchronised(false, true));
        })
        .races,
        1
    );
    // What lies in persistent memory and is accessed atomically has no races.
    let place = graven_capture::shared_place(position(0, 12));
    let atomic = Event::Synchronised { place, bytes: 4, acquires: true, releases: true };
    assert_eq!(racing(|tape| tape.event(1, &atomic)).races, 0);
    // What a function does that synchronises is not held against anything.
    assert_eq!(racing(|tape| tape.enter(2, LOCK, 0x7008)).races, 0);
}

#[test]
fn an_atomic_instruction_loads_what_is_there() {
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    tape.write(0, |encoder, out, now| {
        encoder.access(out, now, position(0, 0), &[9; 8], Accessed::LoadedBefore)
    });
    tape.store(0, 0, &[9; 8]);
    tape.call(0, COMMIT, 0);
    let (report, operations, _) = traced(tape, Limits::default());
    assert_eq!((report.loads, report.stores, report.loads_unexplained), (1, 1, 0));
    let load = Op::Load { at: Ptr::known(Addr(START)) };
    let store = store_op(0, u64::from_le_bytes([9; 8]));
    assert_eq!(accesses(&operations[0]), [Op::TxBegin, load, store, Op::TxEnd]);
}

#[test]
fn streams_that_hold_nothing_to_trace_are_refused() {
    let mut tape = Tape::new(1);
    tape.event(0, &Event::Began { by: None });
    let refused = tape.capture(Limits::default()).err().expect("nothing is there");
    assert!(refused.to_string().contains("touched persistent memory"), "{refused}");
    let mut tape = Tape::new(1);
    tape.threads[0].1.extend([0x3f; 40]);
    let refused = tape.capture(Limits::default()).err().expect("no stream");
    assert!(refused.to_string().contains("no record at byte 0"), "{refused}");
}

/// What a thread of a random program does under its lock.
#[derive(Clone, Debug)]
struct Section {
    thread: usize,
    accesses: Vec<(bool, usize, Vec<u8>)>,
}

fn section() -> impl Strategy<Value = Section> {
    let bytes = (0u32..4, any::<u64>()).prop_map(|(log, value)| {
        let mut bytes = value.to_le_bytes().to_vec();
        bytes.truncate(1 << log);
        bytes
    });
    let access = (any::<bool>(), 0usize..REGION - 8, bytes);
    (0usize..3, prop::collection::vec(access, 0..12))
        .prop_map(|(thread, accesses)| Section { thread, accesses })
}

proptest! {
    /// Stores and loads of several threads are in the order in which they happened, whatever their addresses, and the trace's
    /// stores give the memory that the program left.
    #[test]
    fn what_locks_keep_apart_stays_in_order(sections in prop::collection::vec(section(), 1..40)) {
        let mut tape = Tape::new(3);
        tape.load(0, 0, 1);
        // As when it creates the others.
        tape.event(0, &Event::Ordered);
        for Section { thread, accesses } in &sections {
            tape.call(*thread, LOCK, 0x7000);
            tape.call(*thread, BEGIN, 0);
            for (is_store, at, bytes) in accesses {
                if *is_store {
                    tape.store(*thread, *at, bytes);
                } else {
                    tape.load(*thread, *at, bytes.len());
                }
            }
            tape.call(*thread, COMMIT, 0);
            tape.call(*thread, UNLOCK, 0x7000);
        }
        let now = tape.now.clone();
        let (report, operations, mut image) = traced(tape, Limits::default());
        prop_assert_eq!(report.bytes_unexplained, 0);
        prop_assert_eq!(report.loads_unexplained, 0);
        prop_assert_eq!(report.transactions, sections.len() as u64);
        // Transaction by transaction, as the locks were taken.
        let threads = 3.min(operations.len());
        let mut rest: Vec<_> = operations.into_iter().map(|ops| ops.into_iter().peekable()).collect();
        // Threads that do nothing have no number in the trace; the first one has loaded something.
        let is_traced = |&thread: &usize| thread == 0 || sections.iter().any(|s| s.thread == thread);
        let traced: Vec<usize> = (0..3).filter(is_traced).collect();
        prop_assert_eq!(traced.len(), threads);
        for section in &sections {
            let number = traced.iter().position(|&thread| thread == section.thread);
            let ops = &mut rest[number.expect("it has a section")];
            for op in ops.by_ref() {
                match op {
                    Op::Store { at, value } => {
                        image.store(at.addr, value);
                    }
                    Op::TxEnd => break,
                    _ => {}
                }
            }
        }
        let mut found = vec![0; REGION];
        image.read_bytes(Addr(START), &mut found);
        prop_assert_eq!(found, now);
    }
}
