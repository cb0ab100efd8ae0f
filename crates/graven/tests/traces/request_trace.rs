//! Request traces: nothing is lost on the way in or out, errors name their line, and a replay is the
//! same memory that the trace was recorded from.

use std::io;
use std::sync::{Arc, Mutex};

use crate::common::ROUND_DRAM;
use crate::common::memory::{line_of, quiet};
use crate::common::{CELLS, simulation, tiny_config};
use graven::config::Config;
use graven::controller::RequestRecord;
use graven::memory::{LineAddr, LineData};
use graven::time::NEVER;
use graven::trace::requests::replay::{Record, Replay};
use graven::trace::requests::{
    Assumptions, Content, LeftOut, OtherWords, Reader, Request, TraceError, Writer,
};
use proptest::prelude::*;

fn read(text: &str) -> Result<Vec<Request>, TraceError> {
    Reader::new(text.as_bytes()).collect()
}

fn replay(config: &Config, text: &str) -> Result<Record, TraceError> {
    Replay::new(config).run(&mut Reader::new(text.as_bytes()))
}

fn write(requests: &[Request]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new()).expect("memory takes everything");
    for &request in requests {
        writer.write(request).expect("memory takes everything");
    }
    writer.finish().expect("memory takes everything")
}

fn zeros() -> String {
    "0".repeat(128)
}

// ---- formats ----------------------------------------------------------------------------------

#[test]
fn nvmain_with_and_without_old_data_and_without_its_first_line_as_nvmain_has_it() {
    let new = format!("01{}", "0".repeat(126));
    let old = format!("{}fF", "0".repeat(126));
    let data = [1, 0, 0, 0, 0, 0, 0, 0];
    let before = [0, 0, 0, 0, 0, 0, 0, 0xff << 56];
    let both = Content::OldAndNew { old: before, new: data };
    let line = LineAddr(0x41);
    let write = Request { cycle: 7, line, write: true, content: both, thread: 3 };
    let expected = [write, Request { cycle: 9, write: false, ..write }];
    let v1 = format!("7 W 0x1040 {new} {old} 3\n9 R 1078 {new} {old} 3");
    assert_eq!(read(&format!("NVMV1\n{v1}")).unwrap(), expected);
    assert_eq!(
        read(&format!("\n  NVMV1 \r\n\n{}\r\n\n", v1.replace('\n', "\r\n"))).unwrap(),
        expected
    );

    let expected = expected.map(|r| Request { content: Content::New(data), ..r });
    let v0 = format!("7 W 0x1040 {new} 3\n9 R 1040 {new} 3\n");
    assert_eq!(read(&format!("NVMV0\n{v0}")).unwrap(), expected);

    let mut headless = Reader::new(v0.as_bytes());
    assert_eq!(headless.by_ref().collect::<Result<Vec<_>, _>>().unwrap(), expected[1..]);
    assert!(headless.left_out_first());
    let error = read(&v1).unwrap_err().to_string();
    assert!(error.starts_with("line 1: expected a thread number (without `NVMV1` as"), "{error}");
}

#[test]
fn dramsim3() {
    let request =
        Request { cycle: 0, line: LineAddr(4), write: false, content: Content::Unknown, thread: 0 };
    let expected = [request, Request { cycle: 10, line: LineAddr(5), write: true, ..request }];
    assert_eq!(read("0x100 READ 0\n140\tWRITE  10").unwrap(), expected);
}

#[test]
fn words_of_dramsim3_are_writes_and_reads_as_there() {
    for word in ["WRITE", "write", "P_MEM_WR", "BOFF", "READ", "read"] {
        let text = format!("0x40 {word} 10\n");
        let mut reader = Reader::new(text.as_bytes());
        let request = reader.next().expect("one").unwrap();
        assert_eq!(request.write, !matches!(word, "READ" | "read"), "{word}");
        assert_eq!(reader.other_words(), None);
    }
    let text = "0x40 READ 1\n0x40 IFETCH 2\n0x40 Write 3\n0x40 WRITE 4\n";
    let mut reader = Reader::new(text.as_bytes());
    let writes: Vec<bool> = reader.by_ref().map(|r| r.unwrap().write).collect();
    assert_eq!(writes, [false, false, false, true]);
    let others = OtherWords { lines: 2, first_line: 2, first: "IFETCH".into() };
    assert_eq!(reader.other_words(), Some(&others));
}

/// Requests of a trace whose addresses have levels of these numbers.
fn read_with(text: &str, levels: &[u64]) -> Result<Vec<Request>, TraceError> {
    let assumptions = Assumptions { levels: levels.to_vec(), ..Assumptions::default() };
    Reader::assuming(text.as_bytes(), assumptions).collect()
}

#[test]
fn requests_for_ramulator_come_one_in_each_cycle() {
    let of = |cycle, line, write| Request {
        cycle,
        line: LineAddr(line),
        write,
        content: Content::Unknown,
        thread: 0,
    };
    let dram = "0x12340 R\n\n12380 W\n0x123c0\n";
    let expected = [of(0, 0x48d, false), of(1, 0x48e, true), of(2, 0x48f, false)];
    assert_eq!(read(dram).unwrap(), expected);
    let load_store = "LD 0x12340\nST 74624\r\nLD 0X123c0";
    assert_eq!(read(load_store).unwrap(), expected);
    let vectors = "R 0,1,2,3\nW 1,0,0,127\nR 0,0,0,0\n";
    let line = |at: [u64; 4]| ((at[0] * 2 + at[1]) * 4 + at[2]) * 128 + at[3];
    let expected =
        [of(0, line([0, 1, 2, 3]), false), of(1, line([1, 0, 0, 127]), true), of(2, 0, false)];
    assert_eq!(read_with(vectors, &[2, 2, 4, 128]).unwrap(), expected);
    for text in [dram, load_store] {
        let mut reader = Reader::new(text.as_bytes());
        assert!(reader.by_ref().all(|request| request.is_ok()));
        assert!(reader.is_untimed());
    }
    let mut timed = Reader::new(&b"0x40 READ 10\n"[..]);
    assert!(timed.by_ref().all(|request| request.is_ok()) && !timed.is_untimed());
}

#[test]
fn what_is_no_request_for_ramulator_is_refused_with_its_line() {
    for (text, levels, expected) in [
        ("40 R\n", &[][..], "line 1: expected an address of up to 16 hexadecimal digits (without"),
        ("0x40 R\n0x80 X\n", &[], "line 2: expected `R`, `W` or nothing, found `X`"),
        ("0x40 R\n0x80 W 3\n", &[], "line 2: expected the end of the line, found `3`"),
        ("0x40 R\nLD 0x80\n", &[], "line 2: expected an address of up to 16 hexadecimal digits"),
        ("LD 64\nLX 64\n", &[], "line 2: expected `LD` or `ST`, found `LX`"),
        ("LD 64\nLD 6f\n", &[], "line 2: expected an address, decimal, or hexadecimal behind 0x"),
        ("R 0,0\n", &[], "line 1: expected a vector of decimal numbers with commas, as many as"),
        ("R 0,0\nW 0,2\n", &[2, 2], "line 2: expected a vector"),
        ("R 0,0\nW 0,1,0\n", &[2, 2], "line 2: expected a vector"),
        ("R 0,0\nW 0\n", &[2, 2], "line 2: expected a vector"),
    ] {
        let error = read_with(text, levels).expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn cycles_of_another_clock_become_those_of_the_core() {
    let assumptions = Assumptions {
        core_hz: Some(2_000_000_000),
        clock_hz: Some(1_200_000_000),
        ..Assumptions::default()
    };
    let cycles = |text: &str| -> Result<Vec<u64>, TraceError> {
        let reader = Reader::assuming(text.as_bytes(), assumptions.clone());
        reader.map(|request| request.map(|request| request.cycle)).collect()
    };
    assert_eq!(cycles("0x40 READ 3\n0x40 WRITE 600\n").unwrap(), [5, 1000]);
    assert_eq!(cycles("LD 0\nLD 0\nLD 0\nLD 0\n").unwrap(), [0, 1, 3, 5]);
    let late = format!("0x40 READ 3\n0x40 READ {}\n", (1u64 << 62) - 1);
    let error = cycles(&late).unwrap_err().to_string();
    let expected = "line 2: expected a cycle of 1200000000 Hz that is below 2^62 at 2000000000 Hz";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn requests_of_dramsys_are_to_their_lines_at_their_cycles() {
    let data: String = (0..64).rev().map(|byte| format!("{byte:02x}")).collect();
    let text = format!(
        "# a comment\n\n0:\tread\t0x40\n10: (130) write 0x1080\n  12 write 20c0 0x{data}\n#0: read 0x0\n\
         20: (64) write 0x80 0xabcd\n"
    );
    let words: LineData = std::array::from_fn(|word| {
        u64::from_le_bytes(std::array::from_fn(|i| (8 * word + i) as u8))
    });
    let of = |cycle, line, content| Request {
        cycle,
        line: LineAddr(line),
        write: line > 1,
        content,
        thread: 0,
    };
    let expected = [
        of(0, 1, Content::Unknown),
        of(10, 0x42, Content::Unknown),
        of(10, 0x43, Content::Unknown),
        of(10, 0x44, Content::Unknown),
        of(12, 0x83, Content::New(words)),
        of(20, 2, Content::Unknown),
    ];
    let mut reader = Reader::new(text.as_bytes());
    assert_eq!(reader.by_ref().collect::<Result<Vec<_>, _>>().unwrap(), expected);
    assert_eq!(reader.data_left_out(), 1);
    let assumptions = Assumptions { are_relative: true, ..Assumptions::default() };
    let reader = Reader::assuming(text.as_bytes(), assumptions);
    let cycles: Vec<_> = reader.map(|request| request.unwrap().cycle).collect();
    assert_eq!(cycles, [0, 10, 10, 10, 22, 42]);
}

#[test]
fn what_is_no_request_of_dramsys_is_refused_with_its_line() {
    let after = |line: &str| {
        let text = format!("0: read 0x40\n{line}\n");
        let assumptions = Assumptions { are_relative: true, ..Assumptions::default() };
        let read: Result<Vec<_>, _> = Reader::assuming(text.as_bytes(), assumptions).collect();
        read.expect_err(line).to_string()
    };
    for (line, expected) in [
        ("x: read 0x40", "expected a cycle, a decimal number below 2^62, and a colon, found `x:`"),
        ("1: red 0x40", "expected `read` or `write`, found `red`"),
        ("1: (0) read 0x40", "expected (BYTES), 1 to 65536, found `(0)`"),
        ("1: (65537) read 0x40", "expected (BYTES), 1 to 65536, found `(65537)`"),
        ("1: (64 read 0x40", "expected (BYTES), 1 to 65536, found `(64`"),
        ("1: read 0x4g", "expected an address of up to 16 hexadecimal digits, found `0x4g`"),
        (
            "1: (64) read 0xffffffffffffffff",
            "expected bytes below address 2^64, found `64 bytes from",
        ),
        ("1: write 0x40 0xabc", "expected 0x and an even number of hexadecimal digits, found"),
        ("1: write 0x40 0xab 1", "expected the end of the line, found `1`"),
        (" # no comment", "expected a cycle, a decimal number below 2^62, and a colon, found `#`"),
    ] {
        let error = after(line);
        assert!(error.starts_with(&format!("line 2: {expected}")), "{error}");
    }
    let late = (1u64 << 62) - 1;
    let error = after(&format!("{late}: read 0x40\n1: read 0x40"));
    assert!(error.starts_with("line 3: expected a cycle that makes less than 2^62"), "{error}");
    for text in ["# c\n0x40 READ 1\n", "# c\nLD 0x40\n"] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with("line 1: expected a request: only traces of DRAMSys"), "{error}");
    }
}

/// A number of Protocol Buffers.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Messages of gem5, each of fields with numbers or texts.
fn gem5(messages: &[&[(u64, Result<u64, &str>)]]) -> Vec<u8> {
    let mut trace = b"gem5".to_vec();
    for fields in messages {
        let mut message = Vec::new();
        for (field, value) in *fields {
            let wire = if value.is_ok() { 0 } else { 2 };
            message.extend(varint(field << 3 | wire));
            match value {
                Ok(number) => message.extend(varint(*number)),
                Err(text) => {
                    message.extend(varint(text.len() as u64));
                    message.extend(text.bytes());
                }
            }
        }
        trace.extend(varint(message.len() as u64));
        trace.extend(message);
    }
    trace
}

const PACKETS: &[(u64, Result<u64, &str>)] = &[(1, Err("system")), (3, Ok(1_000_000_000_000))];

fn read_bytes(trace: &[u8]) -> Result<Vec<Request>, TraceError> {
    let assumptions = Assumptions { core_hz: Some(2_000_000_000), ..Assumptions::default() };
    Reader::assuming(trace, assumptions).collect()
}

#[test]
fn packets_of_gem5_are_requests_to_their_lines_at_their_ticks() {
    let packet = |tick, command, address, bytes| {
        [(1, Ok(tick)), (2, Ok(command)), (3, Ok(address)), (4, Ok(bytes)), (7, Ok(u64::MAX))]
    };
    let trace = gem5(&[
        PACKETS,
        &packet(1000, 1, 0x1040, 64),
        &packet(1499, 4, 0x107f, 2),
        &packet(2000, 2, 0x1040, 64),
        &packet(2500, 7, 0x8000_0000, 128),
        &packet(3000, 17, 0x1040, 64),
        &[(6, Ok(5)), (5, Err("unknown")), (4, Ok(1)), (3, Ok(0)), (2, Ok(25)), (1, Ok(4000))],
    ]);
    let expected = [(2, 0x41, false), (2, 0x41, true), (2, 0x42, true), (5, 0x200_0000, true)];
    let expected = expected.into_iter().chain([(5, 0x200_0001, true), (8, 0, false)]);
    let found = read_bytes(&trace).unwrap();
    let told: Vec<_> = found.iter().map(|r| (r.cycle, r.line.0, r.write)).collect();
    assert_eq!(told, Vec::from_iter(expected));
    let mut reader = Reader::new(&trace[..]);
    assert_eq!(reader.by_ref().flatten().last().unwrap().cycle, 4000, "ticks if nothing is known");
    let before = gem5(&[PACKETS, &packet(1000, 1, 0x1040, 64), &packet(1499, 4, 0x107f, 2)]);
    let first_byte = before.len() as u64;
    let left_out = LeftOut { packets: 2, first_byte, first_command: 2 };
    assert_eq!(reader.left_out(), Some(left_out));
    for cut in 1..trace.len() {
        // The trace ends behind a message, or is refused.
        match read_bytes(&trace[..cut]) {
            Ok(part) => assert_eq!(part, found[..part.len()]),
            Err(error) => assert!(matches!(error, TraceError::Malformed { .. }), "{error}"),
        }
    }
}

#[test]
fn what_is_no_packet_trace_of_gem5_is_refused_with_its_byte() {
    let sound = [(1, Ok(1)), (2, Ok(1)), (3, Ok(64)), (4, Ok(64))];
    let after = |message: &[(u64, Result<u64, &str>)]| gem5(&[PACKETS, &sound, message]);
    let at = gem5(&[PACKETS, &sound]).len();
    for (trace, byte, expected) in [
        (b"gem5".to_vec(), 4, "a header of packets with ticks in a second"),
        (gem5(&[&[(1, Err("x"))]]), 4, "a header of packets with ticks in a second"),
        (gem5(&[&[(3, Ok(0))]]), 4, "a header of packets with ticks in a second"),
        (after(&[(1, Ok(1)), (2, Ok(1)), (3, Ok(64))]), at, "a packet with tick, command, address"),
        (after(&[(1, Ok(1)), (2, Ok(1)), (3, Ok(64)), (4, Ok(0))]), at, "1 to 65536 bytes below"),
        (after(&[(1, Ok(1)), (2, Ok(1)), (3, Ok(u64::MAX)), (4, Ok(2))]), at, "1 to 65536 bytes"),
        (after(&[(1, Ok(1 << 62)), (2, Ok(4)), (3, Ok(0)), (4, Ok(2))]), at, "a tick below 2^62"),
        ([gem5(&[PACKETS, &sound]), vec![2, 8]].concat(), at, "a message of 3 bytes, found 2 and"),
        ([gem5(&[PACKETS, &sound]), vec![1, 3]].concat(), at, "a message of Protocol Buffers"),
        ([gem5(&[PACKETS, &sound]), vec![0xff; 9]].concat(), at, "the length of a message"),
    ] {
        let error = read_bytes(&trace).unwrap_err().to_string();
        assert!(error.starts_with(&format!("byte {byte}: expected {expected}")), "{error}");
    }
}

#[test]
fn errors_name_line_expectation_and_text() {
    let z = zeros();
    let message = |text: &str| read(text).expect_err("this is no trace").to_string();
    for (text, expected) in [
        (
            format!("NVMV1\n1 W 0x40 {z} {z} 0\n2 X 0x40 {z} {z} 0\n"),
            "line 3: expected `R` or `W`, found `X`",
        ),
        (
            format!("NVMV1\n1 W 0x4g {z} {z} 0"),
            "line 2: expected an address of up to 16 hexadecimal digits, found `0x4g`",
        ),
        (
            format!("NVMV1\n1 W 0x40 {z} 0\n"),
            "line 2: expected old data of 128 hexadecimal digits, found `0`",
        ),
        (format!("NVMV1\n1 W 0x40 {z} {z}\n"), "line 2: expected a thread number, found ``"),
        (
            format!("NVMV1\n1 W 0x40 {z} {z} 0 1\n"),
            "line 2: expected the end of the line, found `1`",
        ),
        (
            format!("NVMV1\n\n-1 R 0x40 {z} {z} 0\n"),
            "line 3: expected a cycle, a decimal number below 2^62, found `-1`",
        ),
        (
            format!("NVMV1\n1 W 0x40 {}g {z} 0", &z[1..]),
            "line 2: expected data of 128 hexadecimal digits, found `0000000000000000000000000000000000000000…`",
        ),
        ("NVMV2\n".into(), "line 1: expected `NVMV0` or `NVMV1`, found `NVMV2`"),
        (
            "0x40 READ 1\n0x40 10 2\n".into(),
            "line 2: expected `READ`, `WRITE` or another word, found `10`",
        ),
        ("0x40 READ\n".into(), "line 1: expected a cycle, a decimal number below 2^62, found ``"),
        (
            "0x40 READ 4611686018427387904\n".into(),
            "line 1: expected a cycle, a decimal number below 2^62, found `4611686018427387904`",
        ),
        (
            "hello\n".into(),
            "line 1: expected `NVMV1`, `CYCLE R|W ADDRESS DATA OLDDATA THREAD` (NVMain), `ADDRESS READ|WRITE CYCLE` (DRAMsim3), `ADDRESS R|W`, `LD|ST ADDRESS` or `R|W VECTOR` (Ramulator), or `CYCLE: read|write ADDRESS` (DRAMSys), found `hello`",
        ),
    ] {
        assert_eq!(message(&text), expected);
    }
    let endless = "x".repeat(100_000);
    assert!(
        message(&endless).starts_with("line 1: expected a line of at most 4095 bytes, found `xxx")
    );
}

#[test]
fn the_replay_refuses_what_the_machine_does_not_have() {
    let config = quiet(&[("pm.capacity_bytes", "128 MB")]);
    let error = replay(&config, "0x7ffffc0 READ 1\n0x8000000 READ 2\n").unwrap_err().to_string();
    assert_eq!(
        error,
        "line 2: address 0x8000000 lies beyond the PM, whose addresses end at 0x8000000; a larger pm.capacity_bytes would do"
    );
    assert_eq!(replay(&config, "").unwrap_err(), TraceError::Empty);
    assert_eq!(replay(&config, "NVMV1\n\n").unwrap_err(), TraceError::Empty);
}

#[test]
fn an_error_is_found_in_its_line_however_many_are_before_it() {
    let z = zeros();
    let good = format!("1 W 0x40 {z} {z} 0\n");
    let loose = format!("\n 1  W\t40 {z} {z} 0 \r\n");
    for lines in [1, 2047, 2048, 2049, 9000] {
        let text =
            format!("NVMV1\n{}{loose}{}1 W 0x40 {z} {z} 0x", good.repeat(lines), good.repeat(7));
        let mut reader = Reader::new(text.as_bytes());
        let requests = reader.by_ref().take_while(Result::is_ok).count();
        assert_eq!(requests, lines + 1 + 7);
        let expected = format!("line {}: expected a thread number, found `0x`", lines + 3 + 7 + 1);
        assert_eq!(read(&text).unwrap_err().to_string(), expected);
        assert_eq!(replay(&quiet(&[]), &text).unwrap_err().to_string(), expected);
        assert!(reader.next().is_none(), "after an error a trace ends");
    }
}

/// Gives a few bytes at a time, and an error behind them.
struct Dripping<'a>(&'a [u8], usize);

impl io::Read for Dripping<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Err(io::Error::other("the cable is out"));
        }
        let (now, later) = self.0.split_at(self.1.min(out.len()).min(self.0.len()));
        out[..now.len()].copy_from_slice(now);
        self.0 = later;
        Ok(now.len())
    }
}

#[test]
fn what_cannot_be_read_ends_a_trace_behind_what_can() {
    let z = zeros();
    let text = format!("NVMV0\n{}1 W 0x4", format!("1 W 0x40 {z} 0\n").repeat(5000));
    for piece in [1, 1000, 1 << 20] {
        let mut reader = Reader::new(Dripping(text.as_bytes(), piece));
        assert_eq!(reader.by_ref().take(5000).filter(Result::is_ok).count(), 5000);
        let error = reader.next().expect("an error").unwrap_err().to_string();
        assert_eq!(error, "line 5002: the cable is out");
        let replay =
            Replay::new(&quiet(&[])).run(&mut Reader::new(Dripping(text.as_bytes(), piece)));
        assert_eq!(replay.unwrap_err().to_string(), error);
    }
}

/// A request as a person may write it.
fn loosely(request: &Request, style: u8) -> String {
    let bit = |n: u8| style >> n & 1 == 1;
    let text = String::from_utf8(write(&[*request])).expect("text");
    let fields: Vec<&str> = text.lines().nth(1).expect("a request").split(' ').collect();
    let mut fields: Vec<String> = fields.into_iter().map(str::to_owned).collect();
    if bit(0) {
        fields[2] = fields[2].to_uppercase();
    }
    if bit(1) {
        fields[2] = fields[2][2..].to_owned();
    }
    if bit(2) {
        fields[0] = format!("0000{}", fields[0]);
        fields[5] = format!("0000{}", fields[5]);
    }
    if bit(3) {
        fields[3] = fields[3].to_uppercase();
    }
    let line = fields.join(if bit(4) { "\t " } else { " " });
    let begin = if bit(5) { "\n \n  " } else { "" };
    format!("{begin}{line}{}", ["\n", " \n", "\r\n", "\n\n"][usize::from(style >> 6)])
}

fn any_request() -> impl Strategy<Value = Request> {
    let line = any::<LineData>;
    (0..1u64 << 62, 0..1u64 << 58, any::<bool>(), line(), line(), any::<u32>()).prop_map(
        |(cycle, at, write, old, new, thread)| {
            let content = Content::OldAndNew { old, new };
            Request { cycle, line: LineAddr(at), write, content, thread }
        },
    )
}

/// Text that is nearly a trace: what random bytes never reach.
fn nearly_a_trace() -> impl Strategy<Value = Vec<u8>> {
    let field = prop_oneof![
        Just("NVMV1\n".to_owned()),
        Just("\n".to_owned()),
        Just("R".to_owned()),
        Just("W".to_owned()),
        Just("READ".to_owned()),
        Just("0x".to_owned()),
        Just(zeros()),
        Just("f".repeat(127)),
        "[0-9]{1,25}",
        "0x[0-9a-fA-F]{0,18}",
        "\\PC{0,4}",
    ];
    proptest::collection::vec(field, 0..40).prop_map(|fields| fields.join(" ").into_bytes())
}

proptest! {
    #[test]
    fn what_is_written_is_read(requests in proptest::collection::vec(any_request(), 1..20)) {
        let text = write(&requests);
        let back: Result<Vec<Request>, _> = Reader::new(&text[..]).collect();
        prop_assert_eq!(back.unwrap(), requests);
    }

    #[test]
    fn however_a_request_is_written_it_is_the_same(
        requests in proptest::collection::vec((any_request(), any::<u8>()), 1..20),
        piece in 1usize..5000,
    ) {
        let lines: String =
            requests.iter().map(|(request, style)| loosely(request, *style)).collect();
        let text = format!("NVMV1\n{lines}");
        let requests: Vec<Request> = requests.into_iter().map(|(request, _)| request).collect();
        prop_assert_eq!(&read(&text).unwrap(), &requests);
        let dripping: Vec<_> = Reader::new(Dripping(text.as_bytes(), piece)).collect();
        let (error, read) = dripping.split_last().expect("an error at the end");
        prop_assert!(error.is_err());
        let read: Result<Vec<Request>, _> = read.iter().cloned().collect();
        prop_assert_eq!(read.unwrap(), requests);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..400),
        nearly_a_trace(),
    ]) {
        let mut requests = 0;
        for request in Reader::new(&bytes[..]) {
            requests += u64::from(request.is_ok());
        }
        prop_assert!(requests <= bytes.len() as u64);
        let config = quiet(&[("pm.capacity_bytes", "128 MB")]);
        let _ = Replay::new(&config).run(&mut Reader::new(&bytes[..]));
    }

    #[test]
    fn half_a_line_is_refused_or_is_a_whole_one(request in any_request(), cut in 0usize..300) {
        let text = write(&[request]);
        let text = &text[..cut.min(text.len() - 1)];
        if let Some(Ok(read)) = Reader::new(text).next() {
            // Only the thread's digits can be cut off unnoticed.
            prop_assert_eq!(Request { thread: 0, ..read }, Request { thread: 0, ..request });
        }
    }
}

// ---- replay -----------------------------------------------------------------------------------

#[test]
fn first_and_last_request_are_replayed_at_their_cycles() {
    let config = quiet(&[]);
    let record = replay(&config, "0x1000 READ 100\n0x2000 READ 100000\n").unwrap();
    assert_eq!((record.requests, record.reads, record.late_requests), (2, 2, 0));
    // 2 GHz: a closed row takes 100 cycles and the burst 10.
    assert_eq!(record.stats.read_latency.mean(), 110.0);
    assert_eq!(record.stats.counters.cycles, 100_110);
    let at = record.values().iter().position(|(name, _)| *name == "requests_per_s");
    assert!(at.is_some());
}

/// Bug class: a replay ends when the last request has left its queue, whatever bus and banks are still at.
#[test]
fn a_trace_that_ends_with_writes_ends_when_memory_is_idle() {
    let timing = [
        ("core.frequency_mhz", "1000"),
        ("pm.burst_ns", "4"),
        ("pm.read_ns", "50"),
        ("pm.write_ns", "200"),
        ("pm.row_hit_ns", "10"),
    ];
    let cycles = |settings: &[(&str, &str)], text: &str| {
        let config = quiet(&[&timing, settings].concat());
        let record = replay(&config, text).unwrap_or_else(|e| panic!("{e}"));
        (record.stats.counters.cycles, record.stats.counters.media_write_requests)
    };
    let (one, two) = ("0x0 WRITE 0\n", "0x0 WRITE 0\n0x100 WRITE 0\n");
    for held in ["at-issue", "at-transfer"] {
        let bus = ("controller.data_bus", held);
        // Into the on-PM buffer: the line moves there.
        assert_eq!(cycles(&[bus], one), (4, 0), "{held}");
        assert_eq!(cycles(&[bus], two), (8, 0), "{held}");
        // The first of two lines is spilled as soon as the second has come: the rest of its media line is read from
        // the closed row, and all of it is programmed.
        let small = [bus, ("pm.buffer_lines", "2"), ("pm.buffer_spill_percent", "50")];
        let (spilled, writes) = cycles(&small, two);
        assert_eq!(writes, 1, "{held}");
        // The second is issued when the bus is free, or in the next cycle.
        let begun = if held == "at-issue" { 4 } else { 1 };
        assert_eq!(spilled, begun + 50 + 200, "{held}");
        // Without a buffer the bank programs it.
        assert_eq!(cycles(&[bus, ("pm.buffer_lines", "0")], one), (200, 1), "{held}");
    }
    // A read one cycle after a write that ends the trace: the bus is busy until 4.
    let read = cycles(&[], "0x0 WRITE 0\n0x8000 READ 1\n").0;
    assert_eq!(read, 4 + 50 + 4);
}

#[test]
fn a_request_that_finds_no_place_is_late_and_so_are_those_behind_it() {
    let config = quiet(&[
        ("core.frequency_mhz", "1000"),
        ("pm.buffer_lines", "0"),
        ("pm.write_ns", "200"),
        ("controller.write_queue_entries", "4"),
    ]);
    let at = |row: u64| line_of(0, row, 0).addr().0;
    let mut text: String = (0..4).map(|row| format!("{:#x} WRITE 0\n", at(row))).collect();
    text.push_str(&format!("{:#x} WRITE 10\n{:#x} READ 20\n", at(4), line_of(1, 0, 0).addr().0));
    let record = replay(&config, &text).unwrap();
    assert_eq!(record.late_requests, 2);
    assert_eq!((record.acceptance.max(), record.acceptance.count()), (190, 5));
    assert_eq!(record.lateness.mean(), (190.0 + 180.0) / 6.0);
    // The read's latency counts from its arrival: one burst after a write that goes first.
    assert!(record.stats.read_latency.max() < 100);
}

#[test]
fn old_data_are_in_the_cells_before_and_are_compared_later() {
    let config = quiet(&[("pm.buffer_lines", "0"), ("controller.adr", "false")]);
    let line = |words: LineData| Content::OldAndNew { old: words, new: [0xf; 8] };
    let request =
        Request { cycle: 0, line: LineAddr(64), write: true, content: line([7; 8]), thread: 0 };
    let text = write(&[
        request,
        Request { cycle: 1000, content: line([0xf; 8]), ..request },
        Request { cycle: 1001, content: line([1; 8]), ..request },
        Request { cycle: 2000, write: false, content: line([0x77; 8]), ..request },
    ]);
    let record = Replay::new(&config).run(&mut Reader::new(&text[..])).unwrap();
    assert_eq!(record.old_data_mismatches, 1);
    let c = &record.stats.counters;
    assert_eq!(c.media_bits_programmed, 8, "from 7 to 15 is one bit a word");
    assert_eq!((c.media_write_requests, c.media_writes_suppressed), (1, 2));
}

#[test]
fn writes_without_data_change_half_the_bits_and_always_the_same_ones() {
    let config = quiet(&[("pm.buffer_lines", "0"), ("controller.adr", "false")]);
    let text: String =
        (0..1000).map(|n| format!("{:#x} WRITE {}\n", 4096 + n % 50 * 64, n * 1000)).collect();
    let record = replay(&config, &text).unwrap();
    let bits = record.stats.counters.media_bits_programmed as f64 / 1000.0;
    assert!((250.0..262.0).contains(&bits), "{bits} of 512 bits per write");
    assert_eq!(replay(&config, &text).unwrap().to_json(), record.to_json());
}

#[test]
fn a_trace_may_be_of_the_dram_and_has_its_times() {
    let settings = [("core.frequency_mhz", "1000"), ("dram.capacity_bytes", "1 MB")];
    let config = quiet(&[&settings[..], &ROUND_DRAM].concat());
    let of_dram = |text: &str| Replay::of_dram(&config).run(&mut Reader::new(text.as_bytes()));
    let record = of_dram("0x0 READ 0\n0x40 READ 100\n0x80 WRITE 200\n").unwrap();
    let (c, latency) = (&record.stats.counters, &record.stats.read_latency);
    assert_eq!((c.dram_reads, c.dram_writes, c.controller_read_requests), (2, 1, 0));
    assert_eq!((latency.count(), latency.max()), (2, 28 + 3));
    assert_eq!((c.reads_served, c.read_latency_cycles_sum), (2, 28 + 3 + 14 + 3));
    assert_eq!((c.dram_row_hits, c.dram_row_closed, c.dram_row_conflicts), (2, 1, 0));
    let error = of_dram("0x100000 READ 0\n").unwrap_err().to_string();
    let expected = "line 1: address 0x100000 lies beyond the DRAM, whose addresses end at 0x100000; a larger \
        dram.capacity_bytes would do";
    assert_eq!(error, expected);
}

#[test]
fn a_replay_can_be_cancelled() {
    let replay = Replay::new(&quiet(&[]));
    replay.control().cancel();
    let text = "0x1000 READ 1\n".repeat(10_000);
    assert_eq!(replay.run(&mut Reader::new(text.as_bytes())).unwrap_err(), TraceError::Cancelled);
}

/// Runs a simulation and returns what it sent, with the statistics of its memory when all is quiet.
fn record(config: &Config, design: &str) -> (Vec<RequestRecord>, graven::stats::Stats) {
    let mut simulation = simulation(config, design, &CELLS, 4, 200, 1);
    let sent = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&sent);
    simulation.machine_mut().memory.record_requests(Box::new(move |record| {
        sink.lock().expect("nothing panics while it is held").push(*record);
    }));
    assert!(simulation.advance(NEVER).unwrap_or_else(|e| panic!("{e}")));
    simulation.machine_mut().memory.stop_recording();
    simulation.machine_mut().memory.run_until_idle();
    let stats = simulation.stats().clone();
    let sent = sent.lock().expect("nothing panics while it is held").clone();
    (sent, stats)
}

fn differing_bits(sent: &[RequestRecord]) -> u64 {
    let differ = |r: &RequestRecord| -> u32 {
        r.old.iter().zip(r.data).map(|(old, new)| (old ^ new).count_ones()).sum()
    };
    sent.iter().filter(|r| r.write).map(|r| u64::from(differ(r))).sum()
}

#[test]
fn a_recorded_run_is_read_back_as_it_was_and_replays_the_same_cells() {
    // Each write reaches the cells by itself: what is programmed cannot depend on who meets whom.
    let config = tiny_config(&[("controller.adr", "false"), ("pm.buffer_lines", "0")]);
    let (sent, stats) = record(&config, "ideal");
    assert!(sent.len() > 1000, "only {} requests", sent.len());
    let mut writer = Writer::new(Vec::new()).unwrap();
    for request in &sent {
        writer.write(request).unwrap();
    }
    let text = writer.finish().unwrap();
    let back: Vec<Request> = Reader::new(&text[..]).collect::<Result<_, _>>().unwrap();
    let expected: Vec<Request> = sent.iter().map(Request::from).collect();
    assert_eq!(back, expected);

    let replayed = Replay::new(&config).run(&mut Reader::new(&text[..])).unwrap();
    let (ours, theirs) = (&replayed.stats.counters, &stats.counters);
    assert_eq!(replayed.old_data_mismatches, 0);
    assert_eq!(replayed.reads, theirs.controller_read_requests);
    assert_eq!(replayed.writes, theirs.controller_write_requests);
    assert_eq!(ours.reads_served, theirs.reads_served);
    assert_eq!(ours.media_bits_programmed, differing_bits(&sent));
    assert_eq!(ours.media_bits_programmed, theirs.media_bits_programmed);
    assert_eq!(ours.media_write_requests, theirs.media_write_requests);
    assert_eq!(replayed.stats.write_energy, stats.write_energy);
    assert_eq!(replayed.stats.wear.peak(), stats.wear.peak());
}

#[test]
fn a_recorded_run_takes_as_long_in_replay() {
    // Far from saturation, where a replay, whose requests wait for nobody, is as good as the run.
    let fast = ("pm.write_ns", "20");
    for (name, config) in [
        ("ADR and buffer", tiny_config(&[fast])),
        ("no buffer", tiny_config(&[fast, ("pm.buffer_lines", "0")])),
        ("no ADR", tiny_config(&[fast, ("controller.adr", "false")])),
    ] {
        let (sent, stats) = record(&config, "ideal");
        let requests: Vec<Request> = sent.iter().map(Request::from).collect();
        let text = write(&requests);
        let replayed = Replay::new(&config).run(&mut Reader::new(&text[..])).unwrap();
        assert_eq!(replayed.late_requests, 0, "{name}");
        let close = |ours: f64, theirs: f64, what: &str| {
            // Requests and events of one cycle may come in another order.
            let off = (ours / theirs - 1.0).abs();
            assert!(off < 0.01, "{name}: {what}: {ours}, recorded {theirs}");
        };
        close(replayed.stats.read_latency.mean(), stats.read_latency.mean(), "read latency");
        let (ours, theirs) = (&replayed.stats.counters, &stats.counters);
        for (ours, theirs, what) in [
            (ours.row_hits, theirs.row_hits, "row hits"),
            (ours.media_reads, theirs.media_reads, "media reads"),
            (ours.media_write_requests, theirs.media_write_requests, "media writes"),
            (ours.media_bits_programmed, theirs.media_bits_programmed, "bits"),
        ] {
            close(ours as f64, theirs as f64, what);
        }
    }
}
