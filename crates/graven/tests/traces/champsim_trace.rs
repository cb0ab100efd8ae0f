//! Traces of ChampSim: read as program traces, run under every design, and written again.

use crate::common::registry;
use crate::common::traces::{Bytes, all_operations, open, record, replay, small, spec, told};
use graven::control::Control;
use graven::memory::Addr;
use graven::program::{Op, Ptr};
use graven::trace::champsim;
use graven::trace::champsim::{Instruction, Layout, Part};
use graven::trace::imports::{self, Format, How, Imported, Oddities};
use graven::trace::program::{Reader, TraceError};

fn imported(instructions: &[Instruction], how: How) -> Result<Vec<u8>, TraceError> {
    let bytes: Vec<u8> = instructions.iter().flat_map(|i| i.to_bytes()).collect();
    imported_bytes(&bytes, how).map(|made| made.out)
}

fn imported_bytes(bytes: &[u8], how: How) -> Result<Imported<Vec<u8>>, TraceError> {
    imported_as(bytes, None, how)
}

fn imported_as(
    bytes: &[u8],
    layout: Option<Layout>,
    how: How,
) -> Result<Imported<Vec<u8>>, TraceError> {
    let format = Format::ChampSim(layout);
    imports::import(&mut [bytes], format, how, Vec::new(), &Control::default())
}

fn imported_files(files: &mut [&[u8]], how: How) -> Result<Imported<Vec<u8>>, TraceError> {
    imports::import(files, Format::ChampSim(None), how, Vec::new(), &Control::default())
}

fn exported(trace: &[u8], part: Part) -> Vec<Instruction> {
    let mut out = Vec::new();
    let count =
        champsim::export(&open(trace).unwrap(), part, &mut out, &Control::default()).unwrap();
    let (whole, rest) = out.as_chunks::<{ champsim::INSTRUCTION_BYTES }>();
    assert_eq!((whole.len() as u64, rest.len()), (count, 0));
    whole.iter().map(Instruction::parse).collect()
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

/// A trace of the format's first version, which was written when it was the newest.
const OF_VERSION_1: &[u8] = include_bytes!("version-1.gvt");

#[test]
fn traces_of_the_first_version_are_read() {
    let reader = open(OF_VERSION_1).unwrap();
    assert_eq!(reader.contents().version, 1);
    let instructions: Vec<Instruction> = (0..300u64)
        .map(|n| {
            let mut instruction = Instruction { ip: 4 * n, ..Instruction::default() };
            if n % 3 == 0 {
                instruction.source_memory[0] = 0x7f00_0000_0000 + n * n % 97 * 4096 + n * 8;
                instruction.destination_registers[0] = 64 + (n % 5) as u8;
            }
            if n % 5 == 0 {
                instruction.destination_memory[0] = 0x10000 + n * n % 211 * 64;
                instruction.source_registers[0] = 64 + (n % 4) as u8;
            }
            instruction
        })
        .collect();
    let how = How { transaction_stores: Some(3), ..How::default() };
    let now = open(&imported(&instructions, how).unwrap()).unwrap();
    assert_eq!(now.contents().version, 4);
    assert_eq!(all_operations(&reader, 0), all_operations(&now, 0));
    assert_eq!(reader.contents().threads, now.contents().threads);
}

#[test]
fn instructions_of_champsim_become_operations() {
    let reader = open(&imported(&chase(), How::default()).unwrap()).unwrap();
    let operations = all_operations(&reader, 0);
    let load = |addr, origin| Op::Load { at: Ptr { addr: Addr(addr), origin } };
    let store = Op::Store {
        at: Ptr { addr: Addr(0x2008), origin: 2 },
        value: graven::memory::spread(0x2008, 1),
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
    let reader = open(&imported(&[store(640), none, store(1280)], how).unwrap()).unwrap();
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
        let trace = imported_files(&mut files, how).unwrap().out;
        for design in registry().designs().iter().filter(|d| !d.name.contains("literal")) {
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
    // What docs/guides/traces.md says.
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
        let made = imported_files(&mut files, How::default());
        made.expect_err("it is none").to_string()
    };
    assert!(refusal(&[]).contains("byte 0: expected in file 2: an instruction"));
    assert!(refusal(&[0; 100]).contains("byte 64: expected in file 2: an instruction of 64 bytes"));
    let mut odd = [0; 128];
    odd[64 + 7] = 7;
    let expected = "byte 64: expected in file 2: the address of an instruction, found 0x700000000000000, which";
    assert!(refusal(&odd).contains(expected));
}

#[test]
fn any_byte_but_0_says_that_an_instruction_is_a_branch() {
    for byte in [0, 1, 2, 0x80, 0xff] {
        let mut bytes = Instruction { ip: 0x40_0000, ..Instruction::default() }.to_bytes();
        (bytes[8], bytes[9]) = (byte, byte);
        let read = Instruction::parse(&bytes);
        assert_eq!((read.is_branch, read.branch_taken), (byte != 0, byte != 0));
        assert!(imported_bytes(&bytes, How::default()).is_ok());
    }
}

#[test]
fn stores_to_numbers_of_registers_are_left_out_and_counted_as_are_instructions_without_address() {
    let at = |ip, stores| {
        Instruction { ip, destination_memory: stores, ..Instruction::default() }.to_bytes()
    };
    let bytes = [at(4, [0xe, 0x1000]), at(0, [0xff, 1]), at(8, [0x100, 0])].concat();
    let made = imported_bytes(&bytes, How::default()).unwrap();
    assert_eq!(
        made.oddities,
        Oddities { register_stores: 3, without_ip: 1, ..Oddities::default() }
    );
    let trace = open(&made.out).unwrap();
    let threads = &trace.contents().threads;
    assert_eq!((threads[0].stores, threads[0].instructions), (2, 1));
}

/// Records of CloudSuite's layout: a load and a store each, and in every `again`th two of them.
fn of_cloudsuite(records: u64, again: u64) -> Vec<u8> {
    let record = |n: u64| {
        let mut record = [0; 96];
        record[..8].copy_from_slice(&(0x40_0000 + 4 * n).to_le_bytes());
        record[10] = 7;
        record[14] = 8;
        for at in
            [24, 56].into_iter().chain([32, 64].into_iter().filter(|_| n.is_multiple_of(again)))
        {
            record[at..at + 8].copy_from_slice(&(0x10_0000 * at as u64 + 64 * n).to_le_bytes());
        }
        record
    };
    (0..records).flat_map(record).collect()
}

#[test]
fn records_of_cloudsuite_are_read_when_asked_for_and_named_when_not() {
    for (records, again) in [(2, 9), (8, 3), (9, 2), (6000, 2)] {
        let bytes = of_cloudsuite(records, again);
        let error = imported_bytes(&bytes, How::default()).unwrap_err().to_string();
        assert!(error.contains("expected in file 1: an instruction of 64 bytes"), "{error}");
        assert!(error.contains("--layout cloudsuite"), "{error}");
        let layout = Some(Layout::CloudSuite);
        let made = imported_as(&bytes, layout, How::default()).unwrap();
        let accesses = records + records.div_ceil(again);
        let trace = open(&made.out).unwrap();
        let threads = &trace.contents().threads;
        assert_eq!((threads[0].loads, threads[0].stores), (accesses, accesses));
        assert_eq!(made.oddities, Oddities::default());
        let cut =
            imported_as(&bytes[..bytes.len() - 1], layout, How::default()).unwrap_err().to_string();
        assert!(cut.contains("an instruction of 96 bytes, found 95 bytes, then the end"), "{cut}");
    }
}

#[test]
fn records_of_champsim_are_taken_for_no_others() {
    let load = |n: u64| Instruction {
        ip: 0x40_0000 + 4 * n,
        source_memory: [0x7000_0000 + 64 * n, 0, 0, 0],
        ..Instruction::default()
    };
    for count in [1, 2, 3, 6, 5000] {
        let loads: Vec<u8> = (0..count).flat_map(|n| load(n).to_bytes()).collect();
        let (_, trace) = record(&spec(small(&[]), "base", "btree", 10));
        let ours: Vec<u8> = exported(&trace, WHOLE).iter().flat_map(|i| i.to_bytes()).collect();
        for bytes in [loads, ours] {
            assert!(imported_bytes(&bytes, How::default()).is_ok());
        }
    }
}
