//! Program traces: a replay is the recorded run, byte for byte; what is broken is refused; nothing is lost on the way.

mod common;

use std::io::Cursor;
use std::sync::Arc;

use common::{CELLS, preset, tiny_config};
use graven_engine::config::Config;
use graven_engine::control::Control;
use graven_engine::crash::{Exhaustion, Thoroughness};
use graven_engine::designs;
use graven_engine::memory::{Addr, Image};
use graven_engine::program::{Op, Ptr};
use graven_engine::sim::{SimError, Simulation, Spec};
use graven_engine::trace::champsim::{self, How, Instruction, Part};
use graven_engine::trace::program::{
    BLOCK_OPERATIONS, Header, Origin, Reader, Recorder, Replay, TraceError, Writer,
};
use proptest::prelude::*;

type Bytes = Cursor<Vec<u8>>;

/// Runs a specification; the record as text, and the trace.
fn record(spec: &Spec) -> (String, Vec<u8>) {
    try_record(spec).unwrap_or_else(|e| panic!("{e}"))
}

fn try_record(spec: &Spec) -> Result<(String, Vec<u8>), SimError> {
    let recorder = Recorder::new(spec, Vec::new()).expect("memory takes everything");
    let workload = recorder.workload((spec.workload.build)(&request(spec)).expect("it fits"));
    let mut simulation = Simulation::with_workload(spec, workload).expect("it fits");
    let digest = simulation.run()?;
    let record = simulation.record(digest).to_string();
    Ok((record, recorder.finish().expect("all threads have ended")))
}

/// What the engine asks of a workload.
fn request(spec: &Spec) -> graven_engine::workloads::Request {
    let (start, end) = spec.data_region();
    graven_engine::workloads::Request {
        config: spec.config.get::<graven_engine::workloads::WorkloadConfig>().clone(),
        whole: spec.config.clone(),
        threads: spec.threads,
        transactions: spec.transactions,
        seed: spec.seed,
        start,
        end,
    }
}

fn open(trace: &[u8]) -> Result<Reader<Bytes>, TraceError> {
    Reader::open(Cursor::new(trace.to_vec()))
}

fn replay(
    trace: &[u8],
    design: Option<&str>,
    machine: Option<Config>,
    set: &[(String, String)],
) -> Result<String, TraceError> {
    let replay = Replay::new(open(trace)?, design, machine, set)?;
    Ok(replay.run(&Arc::default())?.to_string())
}

fn small(settings: &[(&str, &str)]) -> Config {
    let small = [("workload.footprint_bytes", "512 KB"), ("core.count", "3")];
    tiny_config(&[&small, settings].concat())
}

fn spec(config: Config, design: &str, workload: &str, transactions: u64) -> Spec {
    Spec::new(config, design, workload, None, Some(transactions), 7)
        .unwrap_or_else(|e| panic!("{e}"))
}

fn all_operations(reader: &Reader<Bytes>, thread: u32) -> Vec<Op> {
    let mut stream = reader.thread(thread);
    std::iter::from_fn(|| stream.next_operation().expect("it is whole")).collect()
}

// ---- replays ----------------------------------------------------------------------------------

#[test]
fn a_replay_is_the_recorded_run_under_every_design() {
    let (_, of_base) = record(&spec(small(&[]), "base", "hash", 300));
    for design in designs::REGISTRY {
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
    for workload in graven_engine::workloads::REGISTRY {
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
        if designs::find(design).is_err() {
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
    let live = Exhaustion::new(&spec, None, how).unwrap().run(None).unwrap();
    let replay = Replay::new(open(&trace).unwrap(), None, None, &[]).unwrap();
    assert!(replay.is_faithful());
    let workload = replay.workload().unwrap();
    let again = Exhaustion::new(replay.spec(), Some(workload), how).unwrap().run(None).unwrap();
    replay.fault().unwrap();
    assert!(live.tally.structures > 0 && again.convictions.is_empty(), "{:?}", again.convictions);
    assert_eq!(format!("{:?}", live.tally), format!("{:?}", again.tally));
    assert_eq!(live.digest, again.digest);
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
    let replay = Replay::new(open(&trace).unwrap(), None, None, &[]).unwrap();
    assert_eq!(replay.run(&control), Err(TraceError::Cancelled));
}

// ---- the format -------------------------------------------------------------------------------

fn header(threads: u32) -> Header {
    Header {
        version: "test".into(),
        origin: Origin::Simulation,
        design: None,
        workload: None,
        machine: None,
        config: None,
        of_design: Vec::new(),
        threads,
        transactions: None,
        seed: 0,
        data_start: 4096,
        data_end: None,
    }
}

fn write(image: &Image, threads: &[Vec<Op>]) -> Vec<u8> {
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
    writer.finish().unwrap()
}

fn any_operation() -> impl Strategy<Value = Op> {
    let number = prop_oneof![0..40u32, 0..300u32, any::<u32>()];
    let addr =
        prop_oneof![0..1u64 << 12, 0..1u64 << 30, any::<u64>()].prop_map(|a| Addr(a / 8 * 8));
    let at = (addr, prop_oneof![Just(0), 0..20u32, any::<u32>()])
        .prop_map(|(addr, origin)| Ptr { addr, origin });
    let value = prop_oneof![Just(0), 0..1000u64, any::<u64>()];
    prop_oneof![
        at.clone().prop_map(|at| Op::Load { at }),
        (at.clone(), value.clone()).prop_map(|(at, value)| Op::Store { at, value }),
        (at, value).prop_map(|(at, value)| Op::StoreNonTemporal { at, value }),
        number.clone().prop_map(|instructions| Op::Compute { instructions }),
        number.clone().prop_map(|lock| Op::Lock { lock }),
        number.prop_map(|lock| Op::Unlock { lock }),
        Just(Op::TxBegin),
        Just(Op::TxEnd),
    ]
}

/// Pointers are equal if their addresses are; here their origins must be, too.
fn told(operations: &[Op]) -> String {
    format!("{operations:?}")
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
    let odd = Op::Load { at: Ptr::known(Addr(4)) };
    assert!(writer.push(0, odd).expect_err("odd").to_string().contains("multiple of 8"));
    let refusal = writer.finish().expect_err("the thread has not ended").to_string();
    assert!(refusal.contains("not come to its end"), "{refusal}");
}

// ---- what is broken ---------------------------------------------------------------------------

/// A trace that a machine with one core can replay.
fn sound() -> Vec<u8> {
    let at = |n: u64| Ptr { addr: Addr(4096 + n * 8), origin: (n % 3) as u32 };
    let known = |n: u64| Ptr::known(Addr(4096 + n * 8));
    let mut operations = vec![Op::Load { at: known(0) }, Op::Load { at: known(9) }, Op::TxBegin];
    operations.extend((0..60).map(|n| Op::Store { at: at(n * n % 90), value: n << (n % 50) }));
    operations.extend([Op::Compute { instructions: 4000 }, Op::TxEnd, Op::Lock { lock: 3 }]);
    operations.extend([Op::Load { at: known(3) }, Op::Unlock { lock: 3 }]);
    let mut image = Image::new();
    (0..50).for_each(|n| {
        image.store(Addr(4096 + n * 24), n * 0x0101_0101);
    });
    write(&image, &[operations])
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
    let cases: [(&[Op], &str); 10] = [
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
    newer[8] = 2;
    assert!(error(&newer).contains("byte 8: expected format version 1, found 2"));
    let trace = sound();
    let cut = error(&trace[..trace.len() - 1]);
    assert!(cut.contains("a recording that was not finished has none"), "{cut}");
}

#[test]
fn a_machine_must_be_named_where_none_was_recorded() {
    let error = replay(&sound(), Some("base"), None, &[]).expect_err("no machine").to_string();
    assert!(error.contains("no machine of its own"), "{error}");
    let config = preset("silo", &[]);
    let error = replay(&sound(), None, Some(config), &[]).expect_err("no design").to_string();
    assert!(error.contains("no design of its own"), "{error}");
}

// ---- ChampSim ---------------------------------------------------------------------------------

fn imported(instructions: &[Instruction], how: How) -> Result<Vec<u8>, TraceError> {
    let bytes: Vec<u8> = instructions.iter().flat_map(|i| i.to_bytes()).collect();
    champsim::import(&mut [&bytes[..]], how, Vec::new(), &Control::default())
}

fn exported(trace: &[u8], part: Part) -> Vec<Instruction> {
    let mut out = Vec::new();
    let count =
        champsim::export(&open(trace).unwrap(), part, &mut out, &Control::default()).unwrap();
    let (whole, rest) = out.as_chunks::<{ champsim::INSTRUCTION_BYTES }>();
    assert_eq!((whole.len() as u64, rest.len()), (count, 0));
    whole.iter().map(|bytes| Instruction::parse(bytes).expect("it was written")).collect()
}

const WHOLE: Part = Part { thread: 0, first_transaction: 0, transactions: None };

/// A chase through a register, with an addition between, a push and a pop, and a page that is far away.
fn chase() -> Vec<Instruction> {
    let none = Instruction::default();
    let load = |from: u8, to: u8, at: u64| Instruction {
        source_registers: [from, 0, 0, 0],
        destination_registers: [to, 0],
        source_memory: [at, 0, 0, 0],
        ..none
    };
    vec![
        load(3, 10, 0x7000_0000_1010),
        Instruction { source_registers: [10, 25, 0, 0], destination_registers: [11, 25], ..none },
        none,
        load(11, 12, 0x7000_0000_1ffd),
        load(6, 6, 0x10_0000),
        Instruction {
            source_registers: [6, 12, 0, 0],
            destination_registers: [6, 0],
            destination_memory: [0x10_0008, 0],
            ..none
        },
        load(6, 13, 0x10_0008),
    ]
}

#[test]
fn instructions_of_champsim_become_operations() {
    let reader = open(&imported(&chase(), How::default()).unwrap()).unwrap();
    let operations = all_operations(&reader, 0);
    let load = |addr, origin| Op::Load { at: Ptr { addr: Addr(addr), origin } };
    let store = Op::Store {
        at: Ptr { addr: Addr(0x2008), origin: 2 },
        value: graven_engine::memory::spread(0x2008, 1),
    };
    let expected = [
        load(0x1010, 0),
        Op::Compute { instructions: 2 },
        load(0x1ff8, 1),
        load(0x2000, 0),
        store,
        load(0x2008, 0),
    ];
    assert_eq!(told(&operations), told(&expected));
}

#[test]
fn transactions_are_made_of_stores_when_asked_for() {
    let none = Instruction::default();
    let store =
        |at| Instruction { destination_memory: [at, at + 8], source_memory: [at, 0, 0, 0], ..none };
    let how = How { transaction_stores: Some(3), ..How::default() };
    let reader = open(&imported(&[store(64), none, store(128)], how).unwrap()).unwrap();
    let kinds: String = all_operations(&reader, 0)
        .iter()
        .map(|op| match op {
            Op::Load { .. } => 'l',
            Op::Store { .. } => 's',
            Op::Compute { .. } => 'c',
            Op::TxBegin => '(',
            Op::TxEnd => ')',
            _ => '?',
        })
        .collect();
    assert_eq!(kinds, "l(sscls)(s)");
}

#[test]
fn traces_of_champsim_run_under_every_design_with_transactions_and_without() {
    let loop_of = |n: u64| Instruction {
        source_registers: [30, 0, 0, 0],
        destination_registers: [30, 0],
        source_memory: [0x50_0000 + n % 13 * 4096 + n % 61 * 8, 0, 0, 0],
        destination_memory: [
            if n.is_multiple_of(3) { 0x90_0000 + n % 17 * 4096 + n % 50 * 8 } else { 0 },
            0,
        ],
        ..Instruction::default()
    };
    let file: Vec<u8> = (0..2000).flat_map(|n| loop_of(n).to_bytes()).collect();
    let mut refusing = std::collections::BTreeSet::new();
    for transaction_stores in [None, Some(5)] {
        let how = How { transaction_stores, ..How::default() };
        let mut files = [&file[..], &file[64 * 500..]];
        let trace = champsim::import(&mut files, how, Vec::new(), &Control::default()).unwrap();
        for design in designs::REGISTRY.iter().filter(|d| !d.name.contains("literal")) {
            for model in ["in-order", "out-of-order"] {
                let machine = small(&[("core.model", model)]);
                let record = match replay(&trace, Some(design.name), Some(machine), &[]) {
                    Ok(record) => record,
                    Err(error @ TraceError::OutsideTransactions { .. }) => {
                        assert!(error.to_string().contains("--transaction-stores"), "{error}");
                        assert_eq!(transaction_stores, None, "{}: {error}", design.name);
                        refusing.insert(design.name);
                        continue;
                    }
                    Err(error) => panic!("{} {model}: {error}", design.name),
                };
                let record: serde_json::Value = serde_json::from_str(&record).unwrap();
                let expected = transaction_stores.map_or(0, |_| 134 + 100);
                assert_eq!(record["stats"]["committed_transactions"], expected, "{}", design.name);
                assert_eq!(record["workload"], "trace");
                assert!(record["stats"]["loads"].as_u64() >= Some(3500), "{}", design.name);
            }
        }
    }
    // What docs/traces.md says.
    assert_eq!(Vec::from_iter(refusing), ["hoop", "lsm", "redo-clwb", "unsafe-redo"]);
}

#[test]
fn what_goes_to_champsim_comes_back() {
    let (_, trace) = record(&spec(small(&[]), "base", "btree", 60));
    let reader = open(&trace).unwrap();
    let again = exported(&trace, WHOLE);
    let back = open(&imported(&again, How::default()).unwrap()).unwrap();
    let kinds_and_origins = |reader: &Reader<Bytes>| -> Vec<(bool, u32)> {
        let accesses = all_operations(reader, 0).into_iter().filter_map(|op| match op {
            Op::Load { at } => Some((true, at.origin)),
            Op::Store { at, .. } => Some((false, at.origin)),
            _ => None,
        });
        accesses.collect()
    };
    let (ours, theirs) = (kinds_and_origins(&reader), kinds_and_origins(&back));
    assert_eq!(ours.len(), theirs.len());
    let mut loads = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let remembered = loads - ours.1 < 192;
        assert_eq!((ours.0, if remembered { ours.1 } else { 0 }), *theirs);
        loads += u32::from(ours.0);
    }
    let (before, after) = (reader.contents().threads[0], back.contents().threads[0]);
    assert_eq!((before.loads, before.stores), (after.loads, after.stores));
    assert_eq!(before.instructions + 2 * before.transactions, after.instructions);
}

#[test]
fn a_part_of_a_thread_is_what_it_is_in_the_whole() {
    let (_, trace) = record(&spec(small(&[]), "base", "hash", 60));
    let whole = exported(&trace, WHOLE);
    let part = |first_transaction, transactions| {
        exported(&trace, Part { thread: 0, first_transaction, transactions })
    };
    let (head, middle, tail) = (part(0, Some(5)), part(5, Some(7)), part(12, None));
    assert_eq!([head, middle, tail].concat(), whole);
    let beyond = Part { thread: 0, first_transaction: 20, transactions: None };
    let mut out = Vec::new();
    let error = champsim::export(&open(&trace).unwrap(), beyond, &mut out, &Control::default());
    assert!(
        error.expect_err("20 of 60").to_string().contains("no transaction 20: thread 0 has 20")
    );
}

#[test]
fn files_that_are_none_of_champsims_are_refused_with_their_byte() {
    let refusal = |bytes: &[u8]| {
        let sound = chase()[0].to_bytes();
        let mut files = [&sound[..], bytes];
        let made = champsim::import(&mut files, How::default(), Vec::new(), &Control::default());
        made.expect_err("it is none").to_string()
    };
    assert!(refusal(&[]).contains("byte 0: expected in file 2: an instruction"));
    assert!(refusal(&[0; 100]).contains("byte 64: expected in file 2: an instruction of 64 bytes"));
    let mut odd = [0; 128];
    odd[64 + 8] = 7;
    assert!(refusal(&odd).contains("byte 72: expected in file 2: 0 or 1"));
}
