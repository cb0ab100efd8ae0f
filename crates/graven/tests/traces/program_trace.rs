//! Program traces: a replay is the recorded run, byte for byte; what is broken is refused; nothing is lost on the way.

use crate::common::registry;
use std::sync::Arc;

use crate::common::traces::{all_operations, open, record, replay, small, spec, told, try_record};
use crate::common::{CELLS, preset};
use graven::control::Control;
use graven::lab::explorer::{CrashRun, Thoroughness};
use graven::memory::{Addr, Image};
use graven::program::{Op, Ptr};
use graven::sim::{SimError, Simulation};
use graven::trace::program::{
    BLOCK_OPERATIONS, Header, LengthChange, Origin, Recorder, Replay, TraceError,
    VOLATILE_BYTES_MAX, VOLATILE_START, Writer, volatile_offset,
};
use proptest::prelude::*;

// ---- replays ----------------------------------------------------------------------------------

#[test]
fn a_replay_is_the_recorded_run_under_every_design() {
    let (_, of_base) = record(&spec(small(&[]), "base", "hash", 300));
    for design in registry().designs() {
        let again = |trace, name| replay(trace, name, None, &[]).map_err(|e| e.to_string());
        match try_record(&spec(small(&[]), design.name, "hash", 300)) {
            Ok((live, trace)) => assert_eq!(Ok(live), again(&trace, None), "{}", design.name),
            // A protocol as literally published may lose an update: then the replay does, too.
            Err(error) => assert_eq!(Err(error.to_string()), again(&of_base, Some(design.name))),
        }
    }
}

#[test]
fn a_replay_is_the_recorded_run_of_every_workload_in_order_and_out_of_order() {
    for workload in registry().workloads() {
        for model in ["in-order", "out-of-order"] {
            let config = small(&[("core.model", model)]);
            let (live, trace) = record(&spec(config, "fwb", workload.name, 200));
            let again = replay(&trace, None, None, &[]).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(live, again, "{} {model}", workload.name);
        }
    }
}

#[test]
fn shared_structures_with_locks_replay_too() {
    for (design, workload) in [("silo", "btree"), ("morlog", "hash"), ("base", "queue")] {
        for model in ["in-order", "out-of-order"] {
            let shared = [
                ("workload.sharing", "shared"),
                ("core.model", model),
                ("workload.insert_percent", "50"),
                ("workload.remove_percent", "50"),
            ];
            let (live, trace) = record(&spec(small(&shared), design, workload, 400));
            let locks: u64 = open(&trace).unwrap().contents().threads.iter().map(|t| t.locks).sum();
            assert!(locks >= 400, "{workload} takes {locks} locks");
            assert_eq!(
                live,
                replay(&trace, None, None, &[]).unwrap(),
                "{design} {workload} {model}"
            );
        }
    }
}

#[test]
fn a_recorded_run_is_no_other_than_an_unrecorded_one() {
    let spec = spec(small(&[]), "silo", "rbtree", 200);
    let mut plain = Simulation::new(&spec).unwrap();
    let digest = plain.run().unwrap();
    assert_eq!(plain.record(digest).to_string(), record(&spec).0);
}

#[test]
fn another_design_and_machine_do_the_same_transactions() {
    let (_, trace) = record(&spec(small(&[]), "silo", "btree", 300));
    // Private structures: the live run there is the replay there.
    let there = small(&[("pm.write_ns", "700"), ("core.model", "out-of-order")]);
    for design in ["base", "fwb", "hoop", "lad", "undo"] {
        if registry().find_design(design).is_err() {
            continue;
        }
        let live = record(&spec(there.clone(), design, "btree", 300)).0;
        assert_eq!(
            live,
            replay(&trace, Some(design), Some(there.clone()), &[]).unwrap(),
            "{design}"
        );
    }
    let set = [("pm.write_ns".to_owned(), "700".to_owned())];
    let live = record(&spec(small(&[("pm.write_ns", "700")]), "base", "btree", 300)).0;
    assert_eq!(live, replay(&trace, Some("base"), None, &set).unwrap());
}

/// A name that stands for a parameter set brings it, and takes it away again.
#[test]
fn what_belongs_to_a_designs_name_stays_with_it() {
    let (_, trace) = record(&spec(small(&[]), "lalea-blom", "hash", 100));
    for design in ["redu", "lalea-blom"] {
        let live = record(&spec(small(&[]), design, "hash", 100)).0;
        let again = replay(&trace, Some(design), None, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(live, again, "{design}");
    }
}

#[test]
fn machines_without_room_are_refused() {
    let (_, trace) = record(&spec(small(&[]), "silo", "hash", 100));
    let refusal = |machine, set: &[(&str, &str)]| {
        let set: Vec<_> = set.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        replay(&trace, None, machine, &set).expect_err("it must be refused").to_string()
    };
    let threads = refusal(Some(small(&[("core.count", "2")])), &[]);
    assert!(threads.contains("threads") && threads.contains("core.count = 2"), "{threads}");
    let room = refusal(Some(small(&[("pm.capacity_bytes", "4288 KB")])), &[]);
    assert!(room.contains("pm.capacity_bytes") && room.contains("the trace uses"), "{room}");
    let workload = refusal(None, &[("workload.element_bytes", "128 B")]);
    assert!(
        workload.contains("workload.element_bytes") && workload.contains("recorded"),
        "{workload}"
    );
    let design = replay(&trace, Some("sillo"), None, &[]).expect_err("no such design").to_string();
    assert!(design.contains("unknown design `sillo`"), "{design}");
}

#[test]
fn power_fails_in_a_replay_as_it_does_in_the_run() {
    let spec = spec(small(&[]), "silo", "btree", 12);
    let (_, trace) = record(&spec);
    let how = Thoroughness { structures_every: 1, ..Thoroughness::LONG };
    let live = CrashRun::new(&spec, None, how.clone()).unwrap().run(None).unwrap();
    let replay = Replay::new(registry(), open(&trace).unwrap(), None, None, &[]).unwrap();
    assert!(replay.is_faithful());
    let workload = replay.workload().unwrap();
    let again = CrashRun::new(replay.spec(), Some(workload), how).unwrap().run(None).unwrap();
    replay.fault().unwrap();
    assert!(live.tally.structures > 0 && again.violations.is_empty(), "{:?}", again.violations);
    assert_eq!(format!("{:?}", live.tally), format!("{:?}", again.tally));
    assert_eq!(format!("{:?}", live.counts), format!("{:?}", again.counts));
}

#[test]
fn a_workload_that_is_not_registered_replays_as_trace() {
    let mut spec = spec(small(&[]), "silo", "hash", 100);
    spec.workload = &CELLS;
    let (live, trace) = record(&spec);
    let again = replay(&trace, None, None, &[]).unwrap();
    assert_eq!(live.replace("\"workload\":\"cells\"", "\"workload\":\"trace\""), again);
}

#[test]
fn a_replay_can_be_cancelled() {
    let (_, trace) = record(&spec(small(&[]), "silo", "hash", 100));
    let control = Arc::<Control>::default();
    control.cancel();
    let replay = Replay::new(registry(), open(&trace).unwrap(), None, None, &[]).unwrap();
    assert_eq!(replay.run(&control), Err(TraceError::Cancelled));
}

// ---- the format -------------------------------------------------------------------------------

fn header(threads: u32) -> Header {
    Header::without_machine(Origin::Simulation, threads, 4096)
}

fn write(image: &Image, threads: &[Vec<Op>]) -> Vec<u8> {
    write_with(image, threads, &[])
}

fn write_with(image: &Image, threads: &[Vec<Op>], lengths: &[LengthChange]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &header(threads.len() as u32)).unwrap();
    writer.picture(image).unwrap();
    let longest = threads.iter().map(Vec::len).max().unwrap_or(0);
    // In turns, as cores pull.
    for number in 0..=longest {
        for (thread, operations) in threads.iter().enumerate() {
            let op = match operations.get(number) {
                Some(&op) => op,
                None if number == operations.len() => Op::Done,
                None => continue,
            };
            writer.push(thread as u32, op).unwrap();
        }
    }
    writer.lengths(lengths).unwrap();
    writer.finish().unwrap()
}

/// Bug class: what a program does wrong is put down to the design, or to something else that the trace has.
#[test]
fn threads_of_a_trace_that_wait_for_each_other_are_its_own_fault() {
    let at = Ptr::known(Addr(4096));
    let thread = |first, second| {
        vec![
            Op::Store { at, value: 1 },
            Op::Lock { lock: first },
            Op::Compute { instructions: 5000 },
            Op::Lock { lock: second },
            Op::Unlock { lock: second },
            Op::Unlock { lock: first },
        ]
    };
    let trace = write(&Image::new(), &[thread(0, 1), thread(1, 0)]);
    for design in ["ideal", "base"] {
        let error = replay(&trace, Some(design), Some(small(&[])), &[]).expect_err("it cannot end");
        let is_the_programs = matches!(error, TraceError::Simulation(SimError::ProgramDeadlock(_)));
        assert!(is_the_programs, "{design}: {error}");
        let replay =
            Replay::new(registry(), open(&trace).unwrap(), Some(design), Some(small(&[])), &[]);
        let replay = replay.unwrap();
        let run =
            CrashRun::new(replay.spec(), Some(replay.workload().unwrap()), Thoroughness::LONG);
        let outcome = run.unwrap().run(None).unwrap();
        assert!(outcome.violations.is_empty() && outcome.deadlock.is_some(), "{design}");
        assert!(outcome.refused.is_some_and(|why| why.contains("which thread 1 holds")));
    }
}

fn any_operation() -> impl Strategy<Value = Op> {
    let number = prop_oneof![0..40u32, 0..300u32, any::<u32>()];
    let word = |n: u64| n / 8 * 8;
    let persistent = prop_oneof![0..1u64 << 12, 0..1u64 << 30, 0..1u64 << 49];
    let volatile = prop_oneof![0..1u64 << 12, 0..VOLATILE_BYTES_MAX];
    let addr = prop_oneof![
        3 => persistent.prop_map(move |n| Addr(word(n))),
        1 => volatile.prop_map(move |n| VOLATILE_START.plus(word(n))),
    ];
    let at = (addr, prop_oneof![Just(0), 0..20u32, any::<u32>()])
        .prop_map(|(addr, origin)| Ptr { addr, origin });
    let value = prop_oneof![Just(0), 0..1000u64, any::<u64>()];
    // What is stored to volatile memory is not kept.
    let kept = |at: Ptr, value| if volatile_offset(at.addr).is_some() { 0 } else { value };
    prop_oneof![
        at.clone().prop_map(|at| Op::Load { at }),
        (at.clone(), value.clone())
            .prop_map(move |(at, value)| Op::Store { at, value: kept(at, value) }),
        (at, value)
            .prop_map(move |(at, value)| Op::StoreNonTemporal { at, value: kept(at, value) }),
        number.clone().prop_map(|instructions| Op::Compute { instructions }),
        number.clone().prop_map(|lock| Op::Lock { lock }),
        number.prop_map(|lock| Op::Unlock { lock }),
        Just(Op::TxBegin),
        Just(Op::TxEnd),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_written_is_read(
        threads in prop::collection::vec(prop::collection::vec(any_operation(), 0..400), 1..4),
        words in prop::collection::vec((0..1u64 << 20, any::<u64>()), 0..100),
    ) {
        let mut image = Image::new();
        for (word, value) in words {
            image.store(Addr(word * 8), value);
        }
        let reader = open(&write(&image, &threads)).unwrap();
        for (thread, operations) in threads.iter().enumerate() {
            prop_assert_eq!(told(&all_operations(&reader, thread as u32)), told(operations));
        }
        let mut again = Image::new();
        reader.populate(&mut again).unwrap();
        prop_assert_eq!(again.first_difference(&image, Addr(0), Addr(1 << 24)), None);
    }
}

#[test]
fn volatile_memory_costs_a_token_and_a_distance() {
    let operations: Vec<Op> = (0..1000)
        .flat_map(|n| {
            let at = Ptr::known(VOLATILE_START.plus(n % 7 * 8));
            let persistent = Ptr::known(Addr((1 << 40) + n % 5 * 8));
            [Op::Store { at, value: 0 }, Op::Load { at: persistent }, Op::Load { at }]
        })
        .collect();
    let reader = open(&write(&Image::new(), std::slice::from_ref(&operations))).unwrap();
    assert_eq!(all_operations(&reader, 0), operations);
    let summary = reader.contents().threads[0];
    assert_eq!((summary.loads, summary.volatile_loads), (2000, 1000));
    assert_eq!((summary.stores, summary.volatile_stores), (1000, 1000));
    assert_eq!((summary.end, summary.volatile_end), ((1 << 40) + 5 * 8, 7 * 8));
    assert!(reader.contents().bytes < 3000 * 2 + 1000, "{} B", reader.contents().bytes);
}

#[test]
fn one_may_begin_anywhere() {
    let length = 2 * BLOCK_OPERATIONS + 777;
    let operations: Vec<Op> = (0..length as u64)
        .map(|n| match n % 7 {
            0 => Op::TxBegin,
            6 => Op::TxEnd,
            3 => Op::Load { at: Ptr { addr: Addr(n * 8), origin: (n / 9) as u32 } },
            _ => Op::Store { at: Ptr::known(Addr(n * 8)), value: n },
        })
        .collect();
    let reader = open(&write(&Image::new(), &[Vec::new(), operations.clone()])).unwrap();
    assert_eq!(reader.contents().blocks(), 3);
    let mut stream = reader.thread(1);
    for number in [0, 1, 511, 512, BLOCK_OPERATIONS, length - 1, 5, 2 * BLOCK_OPERATIONS + 600] {
        stream.seek_operation(number as u64).unwrap();
        let next = stream.next_operation().unwrap().expect("it is there");
        assert_eq!(told(&[next]), told(&[operations[number]]), "operation {number}");
    }
    for transaction in [0, 1, 2340, 2341, 4000, length as u64 / 7 - 1, 3] {
        stream.seek_transaction(transaction).unwrap();
        assert_eq!(stream.next_operation().unwrap(), Some(Op::TxBegin));
        let next = stream.next_operation().unwrap().expect("it is there");
        let expected = operations[transaction as usize * 7 + 1];
        assert_eq!(told(&[next]), told(&[expected]), "transaction {transaction}");
    }
    stream.seek_operation(length as u64 + 5).unwrap();
    assert_eq!(stream.next_operation().unwrap(), None);
    stream.seek_transaction(1 << 40).unwrap();
    assert_eq!(stream.next_operation().unwrap(), None);
    assert_eq!(reader.thread(0).next_operation().unwrap(), None);
}

#[test]
fn what_no_program_does_is_not_recorded() {
    let mut writer = Writer::new(Vec::new(), &header(1)).unwrap();
    let refusal = writer.push(0, Op::Ending).expect_err("it is no program's").to_string();
    assert!(refusal.contains("operation 0 cannot be recorded"), "{refusal}");
    let mut refused = |addr| {
        let refusal = writer.push(0, Op::Load { at: Ptr::known(addr) });
        refusal.expect_err("no program's").to_string()
    };
    assert!(refused(Addr(4)).contains("multiple of 8"));
    assert!(refused(Addr(1 << 55)).contains("more than 2^50 bytes"));
    let beyond = VOLATILE_START.plus(VOLATILE_BYTES_MAX);
    assert!(refused(beyond).contains("volatile memory above 16 GB"));
    let refusal = writer.finish().expect_err("the thread has not ended").to_string();
    assert!(refusal.contains("not come to its end"), "{refusal}");
}

// ---- what is broken ---------------------------------------------------------------------------

/// A trace that a machine with one core can replay.
fn sound() -> Vec<u8> {
    let at = |n: u64| Ptr { addr: Addr(4096 + n * 8), origin: (n % 3) as u32 };
    let known = |n: u64| Ptr::known(Addr(4096 + n * 8));
    let volatile = |n: u64| Ptr::known(VOLATILE_START.plus(n * 8));
    let mut operations = vec![Op::Load { at: known(0) }, Op::Load { at: known(9) }, Op::TxBegin];
    operations.extend([Op::Store { at: volatile(3), value: 0 }, Op::Load { at: volatile(900) }]);
    operations.extend((0..60).map(|n| Op::Store { at: at(n * n % 90), value: n << (n % 50) }));
    operations.extend([Op::Compute { instructions: 4000 }, Op::TxEnd, Op::Lock { lock: 3 }]);
    operations.extend([Op::Load { at: known(3) }, Op::Unlock { lock: 3 }]);
    let mut image = Image::new();
    (0..50).for_each(|n| {
        image.store(Addr(4096 + n * 24), n * 0x0101_0101);
    });
    let length =
        |operation, bytes| LengthChange { thread: 0, file: operation as u32 % 3, operation, bytes };
    write_with(&image, &[operations], &[length(2, 4096), length(2, 8000), length(60, 1 << 40)])
}

fn replay_sound(trace: &[u8]) -> Result<String, TraceError> {
    replay(trace, Some("base"), Some(small(&[("core.count", "1")])), &[])
}

#[test]
fn a_flipped_or_missing_byte_is_refused_or_changes_nothing() {
    let trace = sound();
    let whole = replay_sound(&trace).unwrap();
    for at in 0..trace.len() {
        for flip in [1, 0x80, 0xff] {
            let mut broken = trace.clone();
            broken[at] ^= flip;
            match replay_sound(&broken) {
                Ok(found) => assert_eq!(found, whole, "byte {at} ^ {flip:#x}"),
                Err(error) => assert!(error.to_string().contains("byte"), "{error}"),
            }
        }
        let Err(error) = open(&trace[..at]) else { panic!("cut at {at} of {}", trace.len()) };
        assert!(matches!(error, TraceError::Malformed { .. }), "cut at {at}: {error}");
        let mut missing = trace.clone();
        missing.remove(at);
        assert!(open(&missing).is_err(), "without byte {at}");
    }
    let mut longer = trace;
    longer.push(0);
    assert!(open(&longer).is_err(), "a byte more");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whoever makes checksums right can still write nonsense: it is refused, or it is some program.
    #[test]
    fn nonsense_under_right_checksums_does_no_harm(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut trace = sound();
        let length = trace.len();
        for (at, byte) in flips {
            trace[at.index(length)] ^= byte;
        }
        mend(&mut trace);
        let _ = replay_sound(&trace);
    }
}

/// Makes all checksums right, as far as the places of blocks and index are.
fn mend(trace: &mut [u8]) {
    let number = |trace: &[u8], at: usize| {
        trace.get(at..at + 4).map_or(0, |b| u32::from_le_bytes(b.try_into().unwrap()) as usize)
    };
    let check = |trace: &mut [u8], from: usize, to: usize, place: usize, more: (usize, usize)| {
        let (Some(first), Some(second)) = (trace.get(from..to), trace.get(more.0..more.1)) else {
            return;
        };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(first);
        hasher.update(second);
        let sum = hasher.finalize().to_le_bytes();
        if let Some(place) = trace.get_mut(place..place + 4) {
            place.copy_from_slice(&sum);
        }
    };
    let header = number(trace, 12);
    check(trace, 0, 16, 16, (20, 20 + header));
    let end = trace.len();
    let index = number(trace, end - 32);
    let mut at = 20 + header;
    while at + 52 <= index {
        let stored = number(trace, at + 12);
        check(trace, at, at + 48, at + 48, (at + 52, at + 52 + stored));
        at += 52 + stored;
    }
    check(trace, index, end - 32, end - 16, (0, 0));
    check(trace, end - 32, end - 4, end - 4, (0, 0));
}

#[test]
fn operations_that_no_program_may_have_are_refused_with_their_place() {
    let at = Ptr::known(Addr(4096));
    let store = Op::Store { at, value: 1 };
    let below = Op::Load { at: Ptr::known(Addr(8)) };
    let beyond = Op::Load { at: Ptr::known(Addr(1 << 40)) };
    let future = Op::Load { at: Ptr { addr: Addr(4096), origin: 1 } };
    let stack = Ptr::known(VOLATILE_START);
    let deep = Op::Load { at: Ptr::known(VOLATILE_START.plus(2 << 30)) };
    let cases: [(&[Op], &str); 12] = [
        (&[Op::TxBegin, Op::TxBegin], "operation 1: a transaction begins inside another"),
        (&[store, Op::TxEnd], "operation 1: a transaction ends that has not begun"),
        (&[Op::TxBegin, store], "operation 2: the thread ends inside a transaction"),
        (&[Op::Unlock { lock: 5 }], "operation 0: it releases lock 5, which it does not hold"),
        (
            &[Op::Lock { lock: 5 }, Op::Lock { lock: 5 }],
            "operation 1: it takes lock 5, which it holds",
        ),
        (&[Op::Lock { lock: u32::MAX }], "operation 0: lock 4294967295; the machine has room for"),
        (&[below], "operation 0: no word of the data is at 0x8"),
        (&[store, beyond], "the trace uses addresses up to 0x10000000008"),
        (&[future], "operation 0: its address comes from load 1, which comes later"),
        (&[Op::Load { at }, future], ""),
        (&[Op::Load { at: stack }, future, Op::Store { at: stack, value: 0 }], ""),
        (&[deep], "the trace uses 2147483656 B of volatile memory"),
    ];
    for (operations, expected) in cases {
        let trace = write(&Image::new(), &[operations.to_vec()]);
        match replay_sound(&trace) {
            Err(error) => assert!(error.to_string().contains(expected), "{error}"),
            Ok(_) => assert_eq!(expected, "", "{operations:?} was accepted"),
        }
    }
}

#[test]
fn lengths_of_files_are_read_and_their_places_looked_at() {
    let change = |thread, operation, bytes| LengthChange { thread, file: 1, operation, bytes };
    let load = Op::Load { at: Ptr::known(Addr(4096)) };
    let threads = [vec![load; 3], vec![load]];
    // More than a block.
    let many: Vec<LengthChange> = (0..10_000).map(|n| change(0, n / 5000, n)).collect();
    let read = |changes: &[LengthChange]| {
        open(&write_with(&Image::new(), &threads, changes)).unwrap().lengths()
    };
    assert_eq!(read(&many).unwrap(), many);
    assert_eq!(read(&[]).unwrap(), []);
    // Behind the last operation, too.
    let last = [change(1, 1, 5), change(0, 3, 0), change(1, 1, 6)];
    assert_eq!(read(&last).unwrap(), last);
    for (changes, expected) in [
        (vec![change(2, 0, 5)], "expected a thread below 2, found 2"),
        (vec![change(1, 2, 5)], "expected a length before operation 0 to 1 of thread 1, found 2"),
        (
            vec![change(0, 2, 5), change(0, 1, 6)],
            "expected a length before operation 2 to 3 of thread 0, found 1",
        ),
    ] {
        let error = read(&changes).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A captured program's trace of the format's second version, which was written when it was the newest.
const OF_VERSION_2: &[u8] = include_bytes!("version-2.gvt");

#[test]
fn traces_of_the_second_version_are_read() {
    let reader = open(OF_VERSION_2).unwrap();
    assert_eq!(reader.contents().version, 2);
    assert_eq!(reader.contents().threads[0].transactions, 5);
    assert_eq!(reader.lengths().unwrap(), []);
    replay(OF_VERSION_2, Some("silo"), Some(small(&[])), &[]).unwrap();
}

/// The same of the third version: a capture of a program that flushes.
const OF_VERSION_3: &[u8] = include_bytes!("version-3.gvt");

#[test]
fn traces_of_the_third_version_are_read_and_have_no_history() {
    let reader = open(OF_VERSION_3).unwrap();
    assert_eq!(reader.contents().version, 3);
    assert_eq!(reader.contents().threads[0].transactions, 1);
    assert!(!reader.has_history() && reader.sites().unwrap().is_empty());
    replay(OF_VERSION_3, Some("silo"), Some(small(&[])), &[]).unwrap();
}

#[test]
fn populated_words_beyond_the_machine_are_refused() {
    let mut image = Image::new();
    image.store(Addr(62 << 20), 1);
    let error = replay_sound(&write(&image, &[Vec::new()])).expect_err("in the design's region");
    assert!(error.to_string().contains("expected populated words from 0x1000 to"), "{error}");
}

#[test]
fn other_files_are_told_from_traces() {
    let error = |bytes: &[u8]| open(bytes).err().expect("it is none").to_string();
    assert!(error(b"NVMV1\n1 W 0x40").contains("byte 0: expected a program trace of Graven"));
    assert!(error(b"").contains("byte 0: expected a program trace"));
    let mut newer = sound();
    newer[8] = 5;
    assert!(error(&newer).contains("byte 8: expected format version 1 to 4, found 5"));
    let trace = sound();
    let cut = error(&trace[..trace.len() - 1]);
    assert!(cut.contains("a recording that was not finished has none"), "{cut}");
}

/// Words of the heap and the stack, in a transaction and behind it.
fn with_stack() -> Vec<u8> {
    let operations = (0..400).flat_map(|n: u64| {
        let at = Ptr::known(Addr(8192 + n * 5 % 64 * 8));
        let stack = Ptr::known(VOLATILE_START.plus(n * 7 % 300 * 512));
        let (store, spill) = (Op::Store { at, value: n }, Op::Store { at: stack, value: 0 });
        [Op::TxBegin, Op::Load { at: stack }, store, spill, Op::TxEnd, spill]
    });
    write(&Image::new(), &[operations.collect()])
}

#[test]
fn volatile_memory_is_dram_under_every_design() {
    let trace = with_stack();
    for design in registry().designs() {
        let replay = |keys: &[(&str, &str)]| {
            let keys = [&[("core.count", "1")], keys].concat();
            replay(&trace, Some(design.name), Some(small(&keys)), &[]).unwrap()
        };
        let record: serde_json::Value = serde_json::from_str(&replay(&[])).unwrap();
        let counter = |name: &str| record["stats"][name].as_u64().unwrap();
        assert!(counter("dram_reads") >= 300, "{}: {}", design.name, counter("dram_reads"));
        let slow: serde_json::Value =
            serde_json::from_str(&replay(&[("dram.cl_clocks", "500")])).unwrap();
        let cycles = |of: &serde_json::Value| of["stats"]["cycles"].as_u64().unwrap();
        assert!(cycles(&slow) > cycles(&record) + 100_000, "{}: DRAM takes time", design.name);
    }
}

#[test]
fn a_recorded_replay_has_its_volatile_memory() {
    let trace = with_stack();
    let config = || small(&[("core.count", "1")]);
    let of_trace =
        Replay::new(registry(), open(&trace).unwrap(), Some("silo"), Some(config()), &[]).unwrap();
    let recorder = Recorder::new(of_trace.spec(), Vec::new()).unwrap();
    let workload = recorder.workload(of_trace.workload().unwrap());
    Simulation::with_workload(of_trace.spec(), workload).unwrap().run().unwrap();
    let again = recorder.finish().unwrap();
    let operations = |trace: &[u8]| all_operations(&open(trace).unwrap(), 0);
    assert_eq!(operations(&again), operations(&trace));
}

#[test]
fn a_machine_must_be_named_where_none_was_recorded() {
    let error = replay(&sound(), Some("base"), None, &[]).expect_err("no machine").to_string();
    assert!(error.contains("no machine of its own"), "{error}");
    let config = preset("silo", &[]);
    let error = replay(&sound(), None, Some(config), &[]).expect_err("no design").to_string();
    assert!(error.contains("no design of its own"), "{error}");
}
