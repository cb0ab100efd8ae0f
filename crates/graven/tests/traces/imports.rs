//! Traces of lackey, drmemtrace and Ramulator made program traces: what becomes of each line or entry, and what is refused.
//!
//! Bug class: accesses lost or made up without a word, files cut short that are taken for whole ones.

use crate::common::traces::{all_operations, open, replay, small, told};
use graven::control::Control;
use graven::memory::{Addr, spread};
use graven::program::{Op, Ptr};
use graven::trace::imports::{self, Format, How, Imported, Oddities};
use graven::trace::program::TraceError;
use proptest::prelude::*;

fn imported(files: &[&[u8]], format: Format, how: How) -> Result<Imported<Vec<u8>>, TraceError> {
    let mut files = files.to_vec();
    imports::import(&mut files, format, how, Vec::new(), &Control::default())
}

fn refusal(bytes: &[u8], format: Format) -> String {
    imported(&[bytes], format, How::default()).expect_err("it is none").to_string()
}

/// Operations of a thread, told in short.
fn operations(made: &Imported<Vec<u8>>, thread: u32) -> String {
    told(&all_operations(&open(&made.out).unwrap(), thread))
}

fn load(addr: u64) -> Op {
    Op::Load { at: Ptr { addr: Addr(addr), origin: 0 } }
}

/// The store of this number of its thread.
fn store(addr: u64, number: u64) -> Op {
    Op::Store { at: Ptr { addr: Addr(addr), origin: 0 }, value: spread(addr, number) }
}

fn compute(instructions: u32) -> Op {
    Op::Compute { instructions }
}

const LACKEY: &str = "\
==26096== Lackey, an example Valgrind tool
--26096-- a message of -v
I  0401ab70,3
I  0401ab73,5
 S 1fff000758,8
I  04000009,4
 L 1fff000756,4
 M 1fff00100c,16
I  04000010,2
==26096== guest instrs:  4
";

#[test]
fn lines_of_lackey_access_all_words_of_their_bytes() {
    let made = imported(&[LACKEY.as_bytes()], Format::Lackey, How::default()).unwrap();
    let expected = [
        compute(1),
        store(0x1758, 1),
        load(0x1750),
        load(0x1758),
        load(0x2008),
        load(0x2010),
        load(0x2018),
        store(0x2008, 2),
        store(0x2010, 3),
        store(0x2018, 4),
        compute(1),
    ];
    assert_eq!(operations(&made, 0), told(&expected));
    assert_eq!((made.instructions, made.oddities), (4, Oddities::default()));
}

#[test]
fn what_is_no_line_of_lackey_is_refused_with_its_line() {
    let after = |line: &str| refusal(format!("I  0401ab70,3\n{line}").as_bytes(), Format::Lackey);
    for line in [
        "hello\n",
        " L 1fff000758\n",
        " L 1fff000758,\n",
        " L 1fff000758,0\n",
        " L 1fff000758,9999\n",
        " L ffffffffffffffff,2\n",
        " L 11fff000758fff000758,8\n",
        " L +1,8\n",
        " L 10,8 \u{fe}\n",
        " X 10,8\n",
        "L10,8\n",
        "==x== L\n",
    ] {
        let error = after(line);
        assert!(
            error.starts_with("line 2: expected in file 1: `I`, `L`, `S` or `M` with"),
            "{error}"
        );
        assert!(error.contains(line.trim().trim_end_matches('\u{fe}')), "{error}");
    }
    let cut = after(" L 1fff000758,8");
    assert!(cut.starts_with("line 2: expected in file 1: the end of a line"), "{cut}");
    let empty = refusal(b"==1== Lackey\n", Format::Lackey);
    assert!(empty.contains("expected in file 1: an instruction or an access"), "{empty}");
    let long = after(&"x".repeat(5000));
    assert!(long.contains("a line of at most 4095 bytes"), "{long}");
}

#[test]
fn instructions_are_taken_up_to_a_number_with_their_accesses() {
    let how = How { instructions: Some(2), transaction_stores: Some(4) };
    let made = imported(&[LACKEY.as_bytes()], Format::Lackey, how).unwrap();
    let expected = [compute(1), Op::TxBegin, store(0x1758, 1), Op::TxEnd];
    assert_eq!(operations(&made, 0), told(&expected));
    assert_eq!(made.instructions, 2);
}

#[test]
fn lines_of_ramulator_have_bubbles_and_accesses() {
    let text = "3 20734016\n8 20841280 0x13e0340\n0 64 W\n2 0x80 R\n";
    let made = imported(&[text.as_bytes()], Format::Ramulator, How::default()).unwrap();
    // 20734016 is 0x13c6040.
    let expected = [
        compute(3),
        load(0x1040),
        compute(8),
        load(0x2340),
        store(0x2340, 1),
        store(0x3040, 2),
        compute(2),
        load(0x3080),
    ];
    assert_eq!(operations(&made, 0), told(&expected));
    assert_eq!(made.instructions, 3 + 1 + 8 + 2 + 1 + 2 + 1);
    for (most, loads, stores, instructions) in [(2, 0, 0, 2), (4, 1, 0, 3), (13, 2, 0, 11)] {
        let how = How { instructions: Some(most), ..How::default() };
        let made = imported(&[text.as_bytes()], Format::Ramulator, how).unwrap();
        let threads = open(&made.out).unwrap().contents().threads.clone();
        let found = (threads[0].loads, threads[0].stores, threads[0].instructions);
        assert_eq!(found, (loads, stores, instructions), "{most}");
        assert_eq!(made.instructions, most);
    }
}

#[test]
fn what_is_no_line_of_ramulator_is_refused_with_its_line() {
    let after = |line: &str| refusal(format!("3 64\n\n{line}").as_bytes(), Format::Ramulator);
    for line in [
        "3",
        "3 64 R W",
        "-3 64",
        "3 064",
        "3 0x",
        "3 64 X",
        "2147483648 64",
        "3 0x1ffffffffffffffff",
    ] {
        let error = after(line);
        assert!(error.starts_with("line 3: expected in file 1: `BUBBLES LOAD`"), "{error}");
        assert!(error.ends_with(&format!("found `{line}`")), "{error}");
    }
    assert!(refusal(b"\n\n", Format::Ramulator).contains("expected in file 1: an access"));
}

#[test]
fn lines_of_usimm_have_instructions_and_accesses() {
    let text = "12 R 0x12340 0x400abc\n3 W 12380\n";
    let made = imported(&[text.as_bytes()], Format::Usimm, How::default()).unwrap();
    let expected = [compute(12), load(0x1340), compute(3), store(0x1380, 1)];
    assert_eq!(operations(&made, 0), told(&expected));
    assert_eq!(made.instructions, 17);
    for line in ["3 R 0x40", "3 W 0x40 0x80", "3 X 0x40", "-3 W 0x40", "3 W 0x4g", "2147483648 W 0"]
    {
        let error = refusal(format!("{text}{line}").as_bytes(), Format::Usimm);
        assert!(
            error.starts_with("line 3: expected in file 1: `COUNT R ADDRESS PC` or"),
            "{error}"
        );
        assert!(error.ends_with(&format!("found `{line}`")), "{error}");
    }
}

const HEADER: u16 = 25;
const FOOTER: u16 = 26;
const THREAD: u16 = 22;
const PROCESS: u16 = 24;
const MARKER: u16 = 28;

/// Entries of drmemtrace: type, size, value.
fn entries(all: &[(u16, u16, u64)]) -> Vec<u8> {
    let entry = |&(kind, size, value): &(u16, u16, u64)| {
        let mut bytes = Vec::from(kind.to_le_bytes());
        bytes.extend(size.to_le_bytes());
        bytes.extend(value.to_le_bytes());
        bytes
    };
    all.iter().flat_map(entry).collect()
}

/// A whole trace of a thread of a process.
fn drmemtrace(thread: u64, process: u64, inside: &[(u16, u16, u64)]) -> Vec<u8> {
    let begin = [(HEADER, 0, 7), (THREAD, 4, thread), (PROCESS, 4, process)];
    entries(&[&begin[..], inside, &[(23, 4, thread), (FOOTER, 0, 0)]].concat())
}

#[test]
fn entries_of_drmemtrace_become_operations() {
    let inside = [
        (MARKER, 9, 0xe40),
        (47, 8, 0x90_9090),
        (10, 3, 0x40_0000),
        (17, 2, 0x0504),
        (0, 8, 0x7000_0000_1004),
        (48, 2, 0x40_0010),
        (10, 4, 0x40_0012),
        (0, 4, 0x7000_0000_1010),
        (1, 4, 0x7000_0000_1010),
        (29, 2, 0x40_0012),
        (1, 8, 0x7000_0000_1018),
        (4, 8, 0x7000_0000_1020),
        (46, 64, 0x7000_0000_1020),
        (20, 64, 0x7000_0000_1020),
        (21, 0, 0x7000_0000_1060),
        (0, 0, 0x7000_0000_102c),
        (31, 2, 0x40_0016),
    ];
    let made =
        imported(&[&drmemtrace(7, 7, &inside)], Format::DrMemtrace(&[]), How::default()).unwrap();
    let expected = [
        compute(2),
        load(0x1000),
        load(0x1008),
        compute(1),
        load(0x1010),
        store(0x1010, 1),
        store(0x1018, 2),
        load(0x1028),
        compute(1),
    ];
    assert_eq!(operations(&made, 0), told(&expected));
    assert_eq!(made.instructions, 6);
    let oddities =
        Oddities { prefetches: 2, flushes: 1, unsized_accesses: 1, ..Oddities::default() };
    assert_eq!(made.oddities, oddities);
    let filtered = drmemtrace(7, 7, &[(MARKER, 9, 0xe40 | 0x100), (10, 1, 4)]);
    let made = imported(&[&filtered], Format::DrMemtrace(&[]), How::default()).unwrap();
    assert_eq!(made.oddities, Oddities { filtered_files: 1, ..Oddities::default() });
}

#[test]
fn threads_of_a_process_share_its_memory_and_processes_share_none() {
    let at = |address| [(10, 1, 0x40_0000), (0, 8, address)];
    let files = [
        drmemtrace(1, 1, &at(0x5000)),
        drmemtrace(2, 1, &at(0x5008)),
        drmemtrace(9, 9, &at(0x5010)),
        drmemtrace(3, 1, &at(0x7000)),
    ];
    let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let made = imported(&files, Format::DrMemtrace(&[]), How::default()).unwrap();
    let places = [0x1000, 0x1008, 0x2010, 0x3000];
    for (thread, place) in (0..).zip(places) {
        assert_eq!(operations(&made, thread), told(&[load(place)]), "{thread}");
    }
    // Lackey says of no two files that they are of the same process.
    let line = b" L 5000,8\n";
    let made = imported(&[line, line], Format::Lackey, How::default()).unwrap();
    assert_eq!(operations(&made, 0), told(&[load(0x1000)]));
    assert_eq!(operations(&made, 1), told(&[load(0x2000)]));
}

#[test]
fn threads_of_one_file_are_taken_by_their_numbers() {
    let at = |thread, ip, address| [(THREAD, 4, thread), (10, 1, ip), (0, 8, address)];
    let inside = [at(7, 1, 0x5000), at(8, 2, 0x6000), at(7, 3, 0x5008), at(9, 4, 0x7000)].concat();
    let file = &drmemtrace(7, 7, &inside)[..];
    let threads = imports::drmemtrace_threads(&mut &file[..], &Control::default());
    assert_eq!(threads.unwrap(), [7, 8, 9]);
    let numbers = [Some(7), Some(9)];
    let made = imported(&[file, file], Format::DrMemtrace(&numbers), How::default()).unwrap();
    assert_eq!(operations(&made, 0), told(&[load(0x1000), load(0x1008)]));
    assert_eq!(operations(&made, 1), told(&[load(0x2000)]));
    assert_eq!(made.instructions, 3);
    let error = refusal(file, Format::DrMemtrace(&[]));
    assert!(error.contains("an entry of thread 7, the first of the file, found one of thread 8"));
    let cut = imports::drmemtrace_threads(&mut &file[..40], &Control::default()).unwrap_err();
    assert!(cut.to_string().starts_with("byte 36: expected in file 1: an entry of 12 bytes"));
}

#[test]
fn what_is_no_trace_of_drmemtrace_is_refused_with_its_byte() {
    let refused = |bytes: &[u8]| refusal(bytes, Format::DrMemtrace(&[]));
    let sound = drmemtrace(7, 7, &[(10, 1, 0x40_0000)]);
    assert!(imported(&[&sound], Format::DrMemtrace(&[]), How::default()).is_ok());
    for (bytes, expected) in [
        (
            entries(&[(HEADER, 0, 8)]),
            "byte 0: expected in file 1: a header (type 25) of version 1 to 7",
        ),
        (entries(&[(10, 1, 4)]), "byte 0: expected in file 1: a header"),
        (
            Vec::new(),
            "byte 0: expected in file 1: the footer of a trace, found the end of the file",
        ),
        (sound[..sound.len() - 12].to_vec(), "byte 60: expected in file 1: the footer of a trace"),
        (
            sound[..sound.len() - 1].to_vec(),
            "byte 60: expected in file 1: an entry of 12 bytes, found 11",
        ),
        (
            [sound.clone(), sound.clone()].concat(),
            "byte 72: expected in file 1: the end of the trace, behind its footer",
        ),
        (
            drmemtrace(7, 7, &[(50, 0, 0)]),
            "byte 36: expected in file 1: an entry of type 0 to 29, 31 to 49",
        ),
        (drmemtrace(7, 7, &[(HEADER, 0, 7)]), "byte 36: expected in file 1: an entry of one trace"),
        (drmemtrace(7, 7, &[(THREAD, 4, 8)]), "an entry of thread 7, the first of the file"),
        (
            drmemtrace(7, 7, &[(0, 2, u64::MAX)]),
            "byte 36: expected in file 1: an access below address 2^64",
        ),
    ] {
        let error = refused(&bytes);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_number_of_instructions_needs_no_footer() {
    let trace =
        drmemtrace(7, 7, &[(10, 1, 4), (0, 8, 0x1000), (10, 1, 5), (0, 8, 0x1008), (10, 1, 6)]);
    let how = How { instructions: Some(2), ..How::default() };
    let made = imported(&[&trace[..trace.len() - 12]], Format::DrMemtrace(&[]), how).unwrap();
    assert_eq!(operations(&made, 0), told(&[load(0x1000), load(0x1008)]));
}

#[test]
fn imported_traces_run() {
    let inside: Vec<_> = (0..200)
        .flat_map(|n| {
            [(10, 3, 0x40_0000), ((n % 2) as u16, 8, 0x5000 + n * 24), (10, 3, 0x40_0004)]
        })
        .collect();
    let file = drmemtrace(7, 7, &inside);
    let how = How { transaction_stores: Some(4), ..How::default() };
    let made = imported(&[&file, &file], Format::DrMemtrace(&[]), how).unwrap();
    let record = replay(&made.out, Some("silo"), Some(small(&[])), &[]).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["stats"]["committed_transactions"], 2 * 25);
}

proptest! {
    #[test]
    fn no_bytes_make_an_import_panic(
        text in "([ILSM=0-9a-fx, W]{0,20}\n){0,8}",
        kinds in prop::collection::vec((0u16..60, any::<u16>(), any::<u64>()), 0..20),
        cut in 0usize..300,
    ) {
        for format in [Format::Lackey, Format::Ramulator] {
            let _ = imported(&[text.as_bytes()], format, How::default());
        }
        let trace = drmemtrace(7, 7, &kinds);
        let _ = imported(&[&trace[..cut.min(trace.len())]], Format::DrMemtrace(&[]), How::default());
    }
}
