//! Captured programs: streams as a plugin writes them, made program traces.
//!
//! Bug class: a store or its order is lost on the way; what is wrong with a capture is not seen, or blamed on what is right.

use std::io::{self, Cursor};

use graven::control::Control;
use graven::memory::{Addr, Image};
use graven::program::{Op, Ptr};
use graven::trace::capture::{
    Accessor, Capture, CaptureError, Function, Limits, Race, Report, Role, Rules, Sources,
};
use graven::trace::program::{
    Happened, Happening, How, LengthChange, Origin, Reader, VOLATILE_START,
};
use graven_capture::{
    Accessed, Asked, Call, Encoder, Event, Fence, Flush, Left, Mark, Persistence, Place,
    RECORD_BYTES_MAX, SITE_ATOMIC, SITE_REPEATED, Volatile, position,
};
use proptest::prelude::*;
use serde_json::json;

const BEGIN: u32 = 0;
const COMMIT: u32 = 1;
const ABORT: u32 = 2;
const LOCK: u32 = 3;
const UNLOCK: u32 = 4;
const WAIT: u32 = 5;
const WORK: u32 = 6;
const REST: u32 = 7;

/// Functions in the order of their numbers.
fn functions(roles: &[(&str, &[Role])]) -> Vec<Function> {
    let function =
        |&(name, roles): &(&str, &[Role])| Function { name: name.into(), roles: roles.into() };
    roles.iter().map(function).collect()
}

/// Transactions are between functions.
fn transactions() -> Rules {
    let functions = functions(&[
        ("begin", &[Role::Begin { returns_zero: true }]),
        ("commit", &[Role::Commit]),
        ("abort", &[Role::Abort]),
        ("lock", &[Role::Lock]),
        ("unlock", &[Role::Unlock]),
    ]);
    Rules { functions, critical_sections: false }
}

/// Only locks are known; critical sections are transactions, or there are none.
fn locks(critical_sections: bool) -> Rules {
    let functions = functions(&[
        ("begin", &[]),
        ("commit", &[]),
        ("abort", &[]),
        ("lock", &[Role::Lock]),
        ("unlock", &[Role::Unlock]),
        ("wait", &[Role::Wait]),
    ]);
    Rules { functions, critical_sections }
}

/// The trace is from `work` to `rest`, or to either's end.
fn region(mut rules: Rules, work: &[Role], rest: &[Role]) -> Rules {
    rules.functions.resize(WAIT as usize + 1, Function { name: "other".into(), roles: vec![] });
    rules.functions.extend(functions(&[("work", work), ("rest", rest)]));
    rules
}

/// Bytes of the region.
const REGION: usize = 4096;

/// Where the region's first byte lies in the trace.
const START: u64 = 2 << 20;

/// What a plugin would have written.
#[derive(Clone)]
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
            encoder.access(out, now, position(0, at as u64), bytes, Accessed::Stored, (0, 7))
        });
    }

    /// Stores by the instruction of a site, `since` instructions after the record before.
    fn store_at(&mut self, thread: usize, (site, since): (u32, u64), at: usize, bytes: &[u8]) {
        self.now[at..at + bytes.len()].copy_from_slice(bytes);
        let (encoder, stream, instructions) = &mut self.threads[thread];
        *instructions += since;
        let (mut window, place) = ([0; RECORD_BYTES_MAX], position(0, at as u64));
        let length =
            encoder.access(&mut window, *instructions, place, bytes, Accessed::Stored, (0, site));
        stream.extend(&window[..length]);
    }

    fn persists(&mut self, thread: usize, site: u32, what: &Persistence) {
        self.write(thread, |encoder, out, now| encoder.persistence(out, now, site, what));
    }

    fn stack(&mut self, thread: usize, left: u64, entered: &[u32]) {
        self.write(thread, |encoder, out, now| {
            encoder.stack(out, now, left, entered.iter().copied())
        });
    }

    fn load(&mut self, thread: usize, at: usize, bytes: usize) {
        let found = self.now[at..at + bytes].to_vec();
        self.load_of(thread, at, &found);
    }

    fn load_of(&mut self, thread: usize, at: usize, found: &[u8]) {
        self.write(thread, |encoder, out, now| {
            encoder.access(out, now, position(0, at as u64), found, Accessed::Loaded, (0, 7))
        });
    }

    fn volatile(&mut self, thread: usize, address: u64, size: u8, is_store: bool) {
        let access = Volatile { address, size, origin: 0, is_store };
        self.write(thread, |encoder, out, now| encoder.volatile(out, now, access));
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

    /// A thread does this, step by step:
    ///
    /// | step | what |
    /// |---|---|
    /// | `0` to `9` | it stores to the word of this number |
    /// | `(`, `)`, `!` | it calls the function that begins, commits or aborts a transaction |
    /// | `{`, `}` | it enters, and leaves, the one that commits |
    /// | `[`, `]`, `~` | it executes the marker for the beginning, commit or abort of a transaction |
    /// | `<`, `>` | it executes the marker for the beginning or end of the region |
    /// | `F`, `f`, `U`, `u` | it enters, and leaves, `work`; `rest` |
    /// | `A` to `E`, `a` to `e` | it acquires, and releases, a lock |
    /// | `?`, `w` | it fails to acquire lock `A` (`EBUSY`); it waits with it |
    /// | `l` | it loads word 0 |
    /// | `.` | it ends |
    fn play(&mut self, thread: usize, steps: &str) {
        for step in steps.bytes() {
            match step {
                b'(' => self.call(thread, BEGIN, 0),
                b')' => self.call(thread, COMMIT, 0),
                b'!' => self.call(thread, ABORT, 0),
                b'{' => self.enter(thread, COMMIT, 0),
                b'}' => self.leave(thread, COMMIT, 0),
                b'[' => self.event(thread, &Event::Marked(Mark::Begin)),
                b']' => self.event(thread, &Event::Marked(Mark::Commit)),
                b'~' => self.event(thread, &Event::Marked(Mark::Abort)),
                b'<' => self.event(thread, &Event::Marked(Mark::From)),
                b'>' => self.event(thread, &Event::Marked(Mark::Until)),
                b'F' => self.enter(thread, WORK, 0),
                b'f' => self.leave(thread, WORK, 0),
                b'U' => self.enter(thread, REST, 0),
                b'u' => self.leave(thread, REST, 0),
                b'A'..=b'E' => self.call(thread, LOCK, u64::from(step)),
                b'a'..=b'e' => self.call(thread, UNLOCK, u64::from(step.to_ascii_uppercase())),
                b'?' => {
                    self.enter(thread, LOCK, u64::from(b'A'));
                    self.leave(thread, LOCK, 16);
                }
                b'w' => self.call(thread, WAIT, u64::from(b'A')),
                b'l' => self.load(thread, 0, 8),
                b'.' => self.event(thread, &Event::Ended),
                at => self.store(thread, 8 * usize::from(at - b'0'), &[1; 8]),
            }
        }
    }

    fn capture(self, limits: Limits) -> Result<Capture<Tape>, CaptureError> {
        self.capture_by(transactions(), limits)
    }

    fn capture_by(self, rules: Rules, limits: Limits) -> Result<Capture<Tape>, CaptureError> {
        let mapped = Event::Mapped { position: position(0, 0), bytes: REGION as u64, address: 0 };
        let mut tape = self;
        tape.event(0, &mapped);
        Capture::new(tape, rules, limits)
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

    fn before_bytes(&self, _region: usize) -> io::Result<u64> {
        Ok(self.before.len() as u64)
    }

    fn after(&self, _region: usize) -> io::Result<Option<Self::File>> {
        Ok(Some(Cursor::new(self.now.clone())))
    }

    /// Site n is at n times 16; every tenth is of an atomic instruction, every one behind that of a repeated one.
    fn sites(&self) -> io::Result<Vec<u64>> {
        let site = |site: u64| match site % 10 {
            0 => (16 * site) | SITE_ATOMIC,
            1 => (16 * site) | SITE_REPEATED,
            _ => 16 * site,
        };
        Ok((0..100).map(site).collect())
    }
}

/// The trace of a tape, and what the report says.
fn trace_of(tape: Tape, limits: Limits) -> (Report, Reader<Cursor<Vec<u8>>>) {
    trace_by(transactions(), tape, limits)
}

fn trace_by(rules: Rules, tape: Tape, limits: Limits) -> (Report, Reader<Cursor<Vec<u8>>>) {
    let capture = tape.capture_by(rules, limits).unwrap_or_else(|e| panic!("{e}"));
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
    traced_by(transactions(), tape, limits)
}

fn traced_by(rules: Rules, tape: Tape, limits: Limits) -> (Report, Vec<Vec<Op>>, Image) {
    let (report, reader) = trace_by(rules, tape, limits);
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

/// A string that is stored word by word has parts of words at its ends.
#[test]
fn a_part_of_a_word_is_one_store_of_any_number_of_bytes() {
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    tape.store(0, 1, &[1, 2, 3, 4, 5, 6, 7]);
    tape.store(0, 8, &[8; 8]);
    tape.store(0, 16, &[9; 5]);
    tape.load(0, 1, 7);
    tape.load(0, 16, 3);
    tape.call(0, COMMIT, 0);
    let (report, operations, _) = traced(tape, Limits::default());
    let load = |at: u64| Op::Load { at: Ptr::known(Addr(START + at)) };
    let expected = [
        Op::TxBegin,
        store_op(0, 0x0706_0504_0302_0100),
        store_op(8, 0x0808_0808_0808_0808),
        store_op(16, 0x0009_0909_0909),
        load(0),
        load(16),
        Op::TxEnd,
    ];
    assert_eq!(accesses(&operations[0]), expected);
    assert_eq!((report.stores, report.words_stored, report.loads), (3, 3, 2));
    assert_eq!((report.bytes_unexplained, report.loads_unexplained), (0, 0));
}

#[test]
fn lengths_of_files_change_where_the_program_has_changed_them() {
    let resized = |bytes: u64| Event::Resized { position: position(0, bytes) };
    let mut tape = Tape::new(2);
    tape.event(0, &resized(1000));
    tape.call(0, BEGIN, 0);
    tape.store(0, 8, &[1; 8]);
    tape.event(0, &resized(2000));
    tape.store(0, 16, &[1; 8]);
    tape.call(0, COMMIT, 0);
    // A thread that does nothing else is not in the trace.
    tape.event(1, &resized(500));
    tape.call(0, BEGIN, 0);
    tape.event(0, &resized(REGION as u64 + 1));
    tape.call(0, COMMIT, 0);
    tape.event(0, &resized(3000));
    let (report, reader) = trace_of(tape, Limits::default());
    assert_eq!((report.threads, report.lengths_changed), (1, 3));
    assert_eq!(report.regions[0].file_bytes, 1000);
    let mut stream = reader.thread(0);
    let all: Vec<Op> = std::iter::from_fn(|| stream.next_operation().unwrap()).collect();
    let place = |number: usize| {
        let is_it =
            |&(_, op): &(usize, &Op)| matches!(op, Op::TxBegin | Op::TxEnd | Op::Store { .. });
        all.iter().enumerate().filter(is_it).nth(number).unwrap().0 as u64
    };
    // Begin, a store, a change of the length, a store, end; begin, a change, end. Instructions come with what follows them.
    let behind = |number| place(number) + 1;
    let change = |operation, bytes| LengthChange { thread: 0, file: 0, operation, bytes };
    let expected =
        [change(behind(1), 2000), change(behind(3), 500), change(behind(4), REGION as u64 + 1)];
    assert_eq!(reader.lengths().unwrap(), expected);
}

#[test]
fn more_of_a_file_than_is_mapped_has_its_place_in_the_trace() {
    let mut tape = Tape::new(1);
    tape.before = vec![7; 3 * REGION];
    tape.now.clone_from(&tape.before);
    tape.play(0, "(1)");
    let (report, ..) = traced(tape, Limits::default());
    let bytes = 3 * REGION as u64;
    let region = report.regions[0];
    assert_eq!((region.bytes, region.file_bytes), (bytes, bytes));
    assert_eq!((report.bytes_compared, report.bytes_unexplained), (bytes, 0));
}

#[test]
fn functions_that_were_named_and_never_entered_are_told() {
    let mut tape = Tape::new(1);
    tape.store(0, 8, &[1; 8]);
    let refused = tape.clone().capture(Limits::default()).err().unwrap().to_string();
    let expected = "there is none to trace. Among the symbols, and never entered: begin. What";
    assert!(refused.contains(expected), "{refused}");
    tape.call(0, BEGIN, 0);
    let (report, ..) = traced(tape, Limits::default());
    // An abort is something that most programs do not do.
    assert_eq!(report.never_entered, ["commit"]);
}

#[test]
fn volatile_memory_is_in_the_trace_from_its_beginning_to_its_end() {
    const STACK: u64 = 0x7fff_ff00_0000;
    let mut tape = Tape::new(2);
    tape.volatile(0, STACK, 8, true);
    // A thread that touches nothing else is not in the trace.
    tape.volatile(1, STACK + 0x10_0000, 8, true);
    tape.call(0, BEGIN, 0);
    tape.store(0, 8, &[0xaa]);
    tape.volatile(0, STACK + 4096 + 4, 8, false);
    tape.volatile(0, STACK + 24, 16, true);
    tape.enter(0, LOCK, 7);
    tape.volatile(0, 0x5000_0000, 4, true);
    tape.leave(0, LOCK, 0);
    tape.call(0, COMMIT, 0);
    tape.volatile(0, STACK, 8, false);
    let (report, operations, _) = traced(tape, Limits::default());
    let at = |offset| Ptr::known(VOLATILE_START.plus(offset));
    let expected = [
        Op::TxBegin,
        store_op(8, 0xaa),
        Op::Load { at: at(0) },
        Op::Load { at: at(8) },
        Op::Store { at: at(4096 + 24), value: 0 },
        Op::Store { at: at(4096 + 32), value: 0 },
        Op::Lock { lock: 0 },
        Op::TxEnd,
        Op::Unlock { lock: 0 },
    ];
    let [first] = &operations[..] else { panic!("one thread") };
    assert_eq!(accesses(first), expected);
    assert_eq!((report.volatile_loads, report.volatile_stores, report.volatile_pages), (2, 2, 2));
    assert_eq!((report.stores, report.words_stored_outside), (1, 0));
}

#[test]
fn addresses_come_from_the_loads_of_the_trace() {
    let mut tape = Tape::new(1);
    let chase = |tape: &mut Tape, at: usize, bytes: usize, origin| {
        let found = tape.now[at..at + bytes].to_vec();
        tape.write(0, |encoder, out, now| {
            encoder.access(out, now, position(0, at as u64), &found, Accessed::Loaded, (origin, 7))
        });
    };
    let stack = |tape: &mut Tape, is_store, origin| {
        let access = Volatile { address: 0x7000, size: 8, origin, is_store };
        tape.write(0, |encoder, out, now| encoder.volatile(out, now, access));
    };
    // Before the trace begins: in it there is no such load.
    chase(&mut tape, 0, 8, 0);
    tape.call(0, BEGIN, 0);
    chase(&mut tape, 64, 8, 1);
    chase(&mut tape, 128, 16, 1);
    // The load of 16 B is two in the trace: it is there with the second.
    stack(&mut tape, false, 1);
    stack(&mut tape, true, 3);
    chase(&mut tape, 256, 8, 4);
    tape.write(0, |encoder, out, now| {
        encoder.access(out, now, position(0, 8), &[7; 8], Accessed::Stored, (2, 7))
    });
    tape.now[8..16].fill(7);
    tape.call(0, COMMIT, 0);
    let (report, operations, _) = traced(tape, Limits::default());
    let at = |at: u64, origin| Ptr { addr: Addr(START + at), origin };
    let volatile = |origin| Ptr { addr: VOLATILE_START, origin };
    let expected = [
        Op::TxBegin,
        Op::Load { at: at(64, 0) },
        Op::Load { at: at(128, 1) },
        Op::Load { at: at(136, 1) },
        Op::Load { at: volatile(3) },
        Op::Store { at: volatile(1), value: 0 },
        Op::Load { at: at(256, 0) },
        Op::Store { at: at(8, 4), value: u64::from_le_bytes([7; 8]) },
        Op::TxEnd,
    ];
    let told = |operations: &[Op]| format!("{operations:?}");
    assert_eq!(told(&accesses(&operations[0])), told(&expected));
    assert_eq!(report.addresses_loaded, 5);
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
    let load = &report.loads_astray[0];
    assert_eq!((load.offset, load.thread, load.transaction), (256, Some(0), Some(0)));
}

#[test]
fn transactions_within_another_are_part_of_it_and_failed_ones_are_none() {
    let mut tape = Tape::new(1);
    // The end of a transaction calls another function that ends one.
    tape.play(0, "((0)1{!2}");
    tape.enter(0, BEGIN, 0);
    tape.leave(0, BEGIN, 5);
    // Behind the last transaction: it is no part of the trace.
    tape.play(0, "3(!4");
    let (report, operations, _) = traced(tape, Limits::default());
    assert_eq!(written(&operations[0]), "(012)()3()");
    assert_eq!((report.transactions, report.transactions_without_stores), (3, 2));
    assert_eq!((report.words_stored_outside, report.aborted), (1, 1));
    assert_eq!((report.stores, report.bytes_unexplained), (5, 0));
}

#[test]
fn locks_that_are_released_in_a_transaction_are_held_to_its_end() {
    let mut tape = Tape::new(2);
    tape.play(0, "(A0a)?");
    tape.play(1, "(A1a)?");
    let (report, operations, _) = traced(tape, Limits::default());
    assert_eq!(operations.iter().map(|ops| written(ops)).collect::<Vec<_>>(), ["(A0)a", "(A1)a"]);
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
    tape.play(0, "A(0");
    let (report, operations, _) = traced(tape, Limits::default());
    assert_eq!(written(&operations[0]), "A(0)a");
    assert_eq!((report.unfinished, report.transactions), (1, 1));
}

#[test]
fn an_end_on_a_thread_that_has_no_transaction_is_counted() {
    // The first transaction goes on in another thread, as a goroutine may.
    let mut tape = Tape::new(2);
    tape.play(0, "(0");
    tape.play(1, "1)(2)");
    tape.play(0, ".");
    let (report, operations, _) = traced(tape, Limits::default());
    assert_eq!((report.transactions, report.unfinished, report.ends_of_none), (2, 1, 1));
    assert_eq!(written(&operations[1]), "1(2)");
    // Programs end what they have aborted, once more or as often as they like; and begin with an end.
    let mut tape = Tape::new(1);
    tape.play(0, ")(0!)!(0)");
    assert_eq!(traced(tape, Limits::default()).0.ends_of_none, 0);
}

/// Two threads, of which neither has made the other.
fn racing(between: impl FnOnce(&mut Tape)) -> Report {
    let mut tape = Tape::new(3);
    tape.play(0, "A(1)a");
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
    assert_eq!(racing(|tape| tape.play(2, "B")).races, 1);
    assert_eq!(racing(|tape| tape.kernel_writes(1, 12, &[3])).races, 2);
}

#[test]
fn what_synchronises_threads_keeps_them_from_racing() {
    let made = Event::Began { by: Some(0) };
    let synchronised = |acquires, releases| Event::Synchronised {
        place: 0x7100,
        bytes: 4,
        acquires,
        releases,
        is_atomic: false,
    };
    assert_eq!(racing(|tape| tape.play(2, "A")).races, 0);
    assert_eq!(racing(|tape| tape.event(2, &made)).races, 0);
    for (releases, races) in [(true, 0), (false, 1)] {
        let report = racing(|tape| {
            tape.event(0, &synchronised(!releases, releases));
            tape.event(2, &synchronised(releases, !releases));
        });
        assert_eq!(report.races, races);
    }
    // What lies in persistent memory and is accessed atomically has no races.
    let place = graven_capture::shared_place(position(0, 12));
    let atomic =
        Event::Synchronised { place, bytes: 4, acquires: true, releases: true, is_atomic: true };
    assert_eq!(racing(|tape| tape.event(1, &atomic)).races, 0);
    // What a function does that synchronises is not held against anything.
    assert_eq!(racing(|tape| tape.enter(2, LOCK, 0x7008)).races, 0);
}

#[test]
fn an_atomic_instruction_loads_what_is_there() {
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    tape.write(0, |encoder, out, now| {
        encoder.access(out, now, position(0, 0), &[9; 8], Accessed::LoadedBefore, (0, 7))
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
    tape.threads[0].1.extend([0xff; 40]);
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

/// A thread whose critical sections are transactions.
fn sections_of(steps: &str) -> (Report, String) {
    let mut tape = Tape::new(1);
    tape.play(0, steps);
    let (report, operations, _) = traced_by(locks(true), tape, Limits::default());
    assert_eq!((report.bytes_unexplained, report.loads_unexplained), (0, 0));
    (report, written(&operations[0]))
}

/// Operations, without the instructions between, by the letters of [`Tape::play`].
fn written(operations: &[Op]) -> String {
    let letter = |op: &Op| match *op {
        Op::Lock { lock } => char::from(b'A' + lock as u8),
        Op::Unlock { lock } => char::from(b'a' + lock as u8),
        Op::TxBegin => '(',
        Op::TxEnd => ')',
        Op::Store { at, .. } => char::from(b'0' + ((at.addr.0 - START) / 8) as u8),
        _ => '!',
    };
    accesses(operations).iter().map(letter).collect()
}

#[test]
fn critical_sections_are_from_the_first_lock_to_the_release_of_the_last() {
    let cases = [
        ("A1a2B3b", "A(1)a2B(3)b"),
        // Locks within are part of it; what is released before its end is held to that.
        ("A1B2b3a", "A(1B23)ba"),
        // Hand over hand, one section.
        ("A1Ba2Cb3c", "A(1B2C3)abc"),
        // A lock that is acquired again, and one that is released although it is not held.
        ("A1A2a3ab4", "A(123)a"),
        ("A1Bb2B3ba", "A(1B23)ba"),
        // Attempts that fail are none.
        ("?1A2a?", "A(2)a"),
        ("A1?2a", "A(12)a"),
        // A wait ends it, and begins another.
        ("A1w2a", "A(1)aA(2)a"),
        // With another lock it goes on.
        ("BA1w2ab", "A(B12)ba"),
        // The lock was acquired twice: nothing is released by a wait.
        ("A1A2w3a4a", "A(1234)a"),
        // It touches no persistent memory: it is none.
        ("A1aBbA2a", "A(1)aBbA(2)a"),
        ("BbA1a", "B(1)b"),
    ];
    for (steps, expected) in cases {
        let (report, operations) = sections_of(steps);
        assert_eq!(operations, expected, "{steps}");
        let count = expected.matches('(').count() as u64;
        assert_eq!((report.transactions, report.unfinished), (count, 0), "{steps}");
    }
    assert_eq!(sections_of("BbA1aBb").0.sections_untouched, 2);
}

#[test]
fn a_thread_that_ends_with_a_lock_ends_its_section() {
    for (steps, expected) in [("A1B2b.", "A(1B2)ba"), ("A1", "A(1)a")] {
        let (report, operations) = sections_of(steps);
        assert_eq!(operations, expected, "{steps}");
        assert_eq!((report.transactions, report.unfinished), (1, 1), "{steps}");
    }
    // Others go on, and the trace ends with the last of their sections.
    let mut tape = Tape::new(2);
    tape.play(0, "A0.");
    tape.play(1, "B1b2.");
    let (report, operations, _) = traced_by(locks(true), tape, Limits::default());
    assert_eq!((report.transactions, report.unfinished), (2, 1));
    assert_eq!(report.words_stored_outside, 0);
    assert_eq!(written(&operations[1]), "B(1)b");
}

#[test]
fn sections_are_skipped_and_counted_as_transactions_are() {
    let mut tape = Tape::new(1);
    for number in 1..=6 {
        tape.call(0, LOCK, 0x7000);
        tape.store(0, 0, &[number]);
        tape.call(0, UNLOCK, 0x7000);
        tape.call(0, LOCK, 0x7008);
        tape.call(0, UNLOCK, 0x7008);
    }
    let limits = Limits { skip: 2, most: Some(3) };
    let (report, operations, image) = traced_by(locks(true), tape, limits);
    assert_eq!(image.load(Addr(START)), 2);
    assert_eq!((report.skipped, report.transactions, report.sections_untouched), (2, 3, 6));
    let stored = accesses(&operations[0]);
    let stored: Vec<&Op> = stored.iter().filter(|op| matches!(op, Op::Store { .. })).collect();
    assert_eq!(stored, [&store_op(0, 3), &store_op(0, 4), &store_op(0, 5)]);
}

#[test]
fn locks_in_a_circle_of_several_threads_are_one_lock() {
    // Hand over hand, in opposite directions: each thread waits for nothing that the other holds.
    let mut tape = Tape::new(2);
    tape.play(0, "A1B2aC3bc");
    tape.play(1, "C3D4cA1da");
    tape.play(0, "A1B2aC3bc");
    // Another lock, which is in no circle.
    tape.play(1, "E5e");
    let (report, operations, _) = traced_by(locks(true), tape, Limits::default());
    assert_eq!(written(&operations[0]), "A(123)aA(123)a");
    assert_eq!(written(&operations[1]), "A(341)aB(5)b");
    assert_eq!((report.locks_merged, report.transactions), (4, 4));
    // One behind the other, each within a section that holds them longer: unless it is none, or there are no sections.
    for (is_touched, critical_sections, merged) in
        [(true, true, 2), (false, true, 0), (true, false, 0)]
    {
        let mut tape = Tape::new(2);
        tape.play(0, if is_touched { "lCAaBb0c" } else { "lCAaBbc" });
        tape.play(1, if is_touched { "DBbAa1d" } else { "DBbAad" });
        tape.play(0, "Ele");
        let (report, ..) = traced_by(locks(critical_sections), tape, Limits::default());
        assert_eq!(report.locks_merged, merged, "{is_touched} {critical_sections}");
    }
}

#[test]
fn markers_are_transactions_beside_functions() {
    let mut tape = Tape::new(1);
    // What a function does that ends a transaction is part of that.
    tape.play(0, "][0[~1()]({[2]}");
    let (report, operations, _) = traced(tape, Limits::default());
    assert_eq!(written(&operations[0]), "(01)(2)");
    assert_eq!((report.transactions, report.aborted, report.unfinished), (2, 1, 0));
    // They need no function that is known.
    let mut tape = Tape::new(1);
    tape.play(0, "0[1][2][3][4]");
    let limits = Limits { skip: 1, most: Some(2) };
    let (report, operations, _) = traced_by(locks(false), tape, limits);
    assert_eq!(written(&operations[0]), "(2)(3)");
    assert_eq!(report.skipped, 1);
}

/// The operations of the trace of a thread's part.
fn part_of(rules: Rules, limits: Limits, steps: &str) -> Result<(Report, String), CaptureError> {
    let mut tape = Tape::new(1);
    tape.play(0, steps);
    tape.clone().capture_by(rules.clone(), limits)?;
    let (report, operations, image) = traced_by(rules, tape, limits);
    assert_eq!(report.bytes_unexplained, 0);
    // What was stored before is there when the trace begins.
    let operations = written(&operations[0]);
    let first = operations.chars().find(char::is_ascii_digit).expect("a store");
    let (before, _) = steps.split_once(first).expect("the thread's");
    for at in before.bytes().filter(u8::is_ascii_digit) {
        assert_eq!(image.load(Addr(START + 8 * u64::from(at - b'0'))) & 0xff, 1, "{steps}");
    }
    Ok((report, operations))
}

const ALL: Limits = Limits { skip: 0, most: None };

#[test]
fn a_region_is_from_the_entry_of_one_function_to_the_return_of_another() {
    let (from, until) = (&[Role::From], &[Role::Until]);
    let both = &[Role::From, Role::Until];
    let cases: [(Rules, &str, &str); 13] = [
        (region(transactions(), from, until), "1F2(3)4f5U6u7", "2(3)456"),
        // Without the one it begins with the first transaction; without the other it ends with the last.
        (region(transactions(), from, &[]), "1F2(3)4f5", "2(3)"),
        (region(transactions(), &[], until), "1(2)3U4u5(6)", "(2)34"),
        (region(locks(false), from, &[]), "1F2f3", "23"),
        // The first entry, and of calls within others the outermost.
        (region(locks(false), from, until), "1F2F3UU4u5u6Uu7", "2345"),
        (region(locks(false), both, &[]), "1F2f3F4f", "2"),
        (region(locks(false), both, &[]), "1F2F3f4f5", "234"),
        // A call that was over before is none; one that is not over is one.
        (region(locks(false), from, until), "1Uu2F3Uu4", "3"),
        (region(locks(false), from, until), "1U2F3u4", "3"),
        (region(locks(false), from, until), "F1U2", "12"),
        // A transaction that has begun before is no part of it, one that is not over ends with it.
        (region(transactions(), from, until), "(1F2)3(4)5Uu", "23(4)5"),
        (region(transactions(), from, until), "F(1Uu2)3", "(1)"),
        (transactions(), "1<2(3)4>5<6(7)8>", "2(3)4"),
    ];
    for (rules, steps, expected) in cases {
        let (_, found) = part_of(rules, ALL, steps).unwrap_or_else(|e| panic!("{steps}: {e}"));
        assert_eq!(found, expected, "{steps}");
    }
}

#[test]
fn transactions_are_counted_from_the_beginning_of_the_region() {
    let rules = region(transactions(), &[Role::From], &[Role::Until]);
    for (skip, most, skipped, expected) in [
        (0, None, 1, "2(3)4(5)6(7)8"),
        (0, Some(1), 1, "2(3)4"),
        (1, Some(1), 2, "(5)6"),
        (1, Some(2), 2, "(5)6(7)8"),
        (2, Some(9), 3, "(7)8"),
    ] {
        let limits = Limits { skip, most };
        let found = part_of(rules.clone(), limits, "(1)F2(3)4(5)6(7)8Uu(9)");
        let (report, found) = found.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((found.as_str(), report.skipped), (expected, skipped));
    }
}

#[test]
fn parts_that_are_not_there_are_refused() {
    let both = |rules| region(rules, &[Role::From], &[Role::Until]);
    let skipped = Limits { skip: 3, most: None };
    let cases = [
        (
            both(transactions()),
            ALL,
            "1(2)Uu",
            "never called work, with which the trace was to begin",
        ),
        (both(transactions()), ALL, "1F(2)f", "never called rest after the trace had begun"),
        (both(transactions()), ALL, "UuF(2)f", "never called rest after the trace had begun"),
        (region(locks(false), &[], &[Role::Until]), ALL, "1", "never called rest, with which"),
        (both(transactions()), ALL, "(1)F2Uu(3)", "began no transaction in this part"),
        (
            both(transactions()),
            skipped,
            "F(1)(2)(3)Uu(4)",
            "3 transactions in this part, of which 3",
        ),
        (locks(false), skipped, "1", "no transactions that could be counted"),
        (locks(false), Limits { skip: 0, most: Some(1) }, "1", "no transactions that could be"),
        (locks(true), ALL, "1", "began no transaction: there is none"),
    ];
    for (rules, limits, steps, expected) in cases {
        let refused = part_of(rules, limits, steps).err().unwrap_or_else(|| panic!("{steps}"));
        assert!(refused.to_string().contains(expected), "{steps}: {refused}");
    }
}

/// The entries of a history: thread, operation, the address of the site, those of the calls, what.
fn history(reader: &Reader<Cursor<Vec<u8>>>) -> Vec<(u32, u64, u64, Vec<u64>, Happened)> {
    let sites = reader.sites().expect("sites");
    let stacks = reader.stacks().expect("stacks");
    let mut all = Vec::new();
    let take = |happening: Happening| {
        let (mut calls, mut stack) = (Vec::new(), happening.stack);
        while let Some(at) = stack.checked_sub(1) {
            calls.push(sites[stacks[at as usize].site as usize].address);
            stack = stacks[at as usize].caller;
        }
        let Happening { thread, operation, site, what, .. } = happening;
        all.push((thread, operation, sites[site as usize].address, calls, what));
    };
    reader.history(take).expect("a history");
    all
}

fn stored(how: How, is_joined: bool) -> Happened {
    Happened::Store { how, is_joined }
}

#[test]
fn a_history_has_what_a_program_does_for_persistence_and_is_no_operation() {
    let mut tape = Tape::new(1);
    tape.stack(0, 0, &[2, 3]);
    tape.call(0, BEGIN, 0);
    tape.store_at(0, (4, 3), 8, &[1; 8]);
    tape.persists(0, 5, &Persistence::Flush(Flush::Clwb, Place::Persistent(position(0, 8))));
    tape.persists(0, 6, &Persistence::Flush(Flush::Clflush, Place::Volatile(0x7000)));
    tape.stack(0, 1, &[7]);
    tape.persists(0, 8, &Persistence::Fence(Fence::Sfence));
    let call = Call {
        asked: Asked::Msync,
        is_over: true,
        place: Place::Persistent(position(0, 64)),
        bytes: 4096,
        flags: 4,
        result: -22,
        path: String::new(),
    };
    tape.persists(0, 9, &Persistence::Call(call.clone()));
    tape.call(0, COMMIT, 0);
    let (report, reader) = trace_of(tape.clone(), Limits::default());
    let in_trace = Call { place: Place::Persistent(START + 64), ..call };
    let flushed = Happened::Flush(Flush::Clwb, Place::Persistent(START + 8));
    let expected = [
        (0, 2, 64, vec![48, 32], stored(How::Plain, false)),
        (0, 3, 80, vec![48, 32], flushed),
        (0, 3, 96, vec![48, 32], Happened::Flush(Flush::Clflush, Place::Volatile(0x7000))),
        (0, 3, 128, vec![112, 32], Happened::Fence(Fence::Sfence)),
        (0, 3, 144, vec![112, 32], Happened::Call(in_trace)),
    ];
    assert_eq!(history(&reader), expected);
    // The operations are those of a program that does nothing for persistence.
    let (same, operations, _) = traced(tape, Limits::default());
    assert_eq!(same, report);
    assert_eq!(
        accesses(&operations[0]),
        [Op::TxBegin, store_op(8, 0x0101_0101_0101_0101), Op::TxEnd]
    );
}

#[test]
fn parts_of_one_instruction_are_joined() {
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    // A vector; a value over the edge of a word; the same instruction once more.
    tape.store_at(0, (4, 3), 64, &[1; 8]);
    tape.store_at(0, (4, 0), 72, &[1; 8]);
    tape.store_at(0, (5, 1), 84, &[2; 8]);
    tape.store_at(0, (5, 2), 96, &[2; 8]);
    // A string, which stores with each of its instructions; an atomic instruction.
    tape.store_at(0, (11, 3), 104, &[3; 8]);
    tape.store_at(0, (11, 1), 112, &[3; 8]);
    tape.store_at(0, (10, 1), 120, &[4; 8]);
    tape.call(0, COMMIT, 0);
    let (_, reader) = trace_of(tape, Limits::default());
    let how: Vec<_> = history(&reader).into_iter().map(|entry| (entry.2, entry.4)).collect();
    let expected = [
        (64, stored(How::Plain, false)),
        (64, stored(How::Plain, true)),
        (80, stored(How::Plain, false)),
        (80, stored(How::Plain, true)),
        (80, stored(How::Plain, false)),
        (176, stored(How::Repeated, false)),
        (176, stored(How::Repeated, true)),
        (160, stored(How::Plain, false)),
    ];
    assert_eq!(how, expected);
    let sites = reader.sites().expect("sites");
    assert!(sites.iter().all(|site| site.is_atomic == (site.address == 160)));
}

#[test]
fn a_history_has_the_order_of_threads_and_starts_with_the_trace() {
    let mut tape = Tape::new(3);
    let fence = Persistence::Fence(Fence::Mfence);
    // Before the trace; a thread without operations.
    tape.persists(0, 9, &fence);
    tape.call(0, BEGIN, 0);
    tape.store_at(0, (4, 3), 8, &[1; 8]);
    tape.event(0, &Event::Ordered);
    tape.persists(2, 5, &Persistence::Flush(Flush::Clwb, Place::Persistent(position(0, 8))));
    tape.event(2, &Event::Ordered);
    tape.write(1, |encoder, out, now| {
        encoder.access(out, now, position(0, 8), &[1; 8], Accessed::Loaded, (0, 6))
    });
    // Over the edge of two words.
    tape.write(1, |encoder, out, now| {
        let found = [1, 1, 1, 0, 0];
        encoder.access(out, now, position(0, 13), &found, Accessed::Loaded, (0, 6))
    });
    tape.kernel_writes(1, 16, &[5; 8]);
    tape.call(0, COMMIT, 0);
    let (report, reader) = trace_of(tape, Limits::default());
    assert_eq!((report.threads, report.all_threads), (2, 3));
    let order: Vec<_> = history(&reader).into_iter().map(|entry| (entry.0, entry.4)).collect();
    let flush = Happened::Flush(Flush::Clwb, Place::Persistent(START + 8));
    let expected = [
        (0, stored(How::Plain, false)),
        (2, flush),
        (1, Happened::Load { bytes: 0xff }),
        (1, Happened::Load { bytes: 0xe0 }),
        (1, Happened::Load { bytes: 0x03 }),
        (1, stored(How::Kernel, false)),
    ];
    assert_eq!(order, expected);
}

#[test]
fn a_function_that_is_left_out_has_no_history() {
    let mut rules = transactions();
    rules.functions[LOCK as usize].roles = vec![Role::LeftOut];
    let mut tape = Tape::new(1);
    tape.call(0, BEGIN, 0);
    tape.enter(0, LOCK, 0);
    tape.store(0, 8, &[1; 8]);
    tape.persists(0, 8, &Persistence::Fence(Fence::Sfence));
    tape.leave(0, LOCK, 0);
    tape.store(0, 16, &[1; 8]);
    tape.call(0, COMMIT, 0);
    let (_, reader) = trace_by(rules, tape, Limits::default());
    assert_eq!(history(&reader).len(), 1);
}
