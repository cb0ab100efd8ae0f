//! Binary request traces: what is written is read, and whatever is cut off or changed is an error that names its byte.

use proptest::prelude::*;

use crate::common::memory::quiet;
use graven::memory::{LineAddr, LineData};
use graven::trace::requests::replay::{Record, Replay};
use graven::trace::requests::{
    BLOCK_REQUESTS, BinaryWriter, Content, Reader, Request, TraceError, Writer,
};

const BEGINNING: usize = 16;
const HEAD: usize = 28;
const END: usize = 20;

fn read(bytes: &[u8]) -> Result<Vec<Request>, TraceError> {
    Reader::new(bytes).collect()
}

fn write(requests: &[Request]) -> Vec<u8> {
    let mut writer = BinaryWriter::new(Vec::new()).expect("memory takes everything");
    for &request in requests {
        writer.write(request).expect("a request that has a place");
    }
    writer.finish().expect("memory takes everything")
}

fn replay(trace: &[u8]) -> Result<Record, TraceError> {
    Replay::new(&quiet(&[])).run(&mut Reader::new(trace))
}

/// Requests to a few lines, with all kinds of content.
fn some(count: u64) -> Vec<Request> {
    let line = |number: u64| LineData::from([number, 0, 0, number << 40, 0, 1, u64::MAX, 0]);
    let content = |number: u64| match number % 4 {
        0 => Content::Unknown,
        1 => Content::New(line(number)),
        _ => Content::OldAndNew { old: line(number / 3), new: line(number) },
    };
    let request = |number: u64| Request {
        cycle: number * 100 / 7,
        line: LineAddr(64 + number * number % 1000),
        write: number.is_multiple_of(3),
        content: content(number),
        thread: (number / 5 % 3) as u32,
    };
    (0..count).map(request).collect()
}

/// A trace of one block with this payload, which its checksum agrees with.
fn with_payload(requests: u32, payload: &[u8]) -> Vec<u8> {
    let with_checksum = |mut part: Vec<u8>, payload: &[u8]| {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&part);
        hasher.update(payload);
        part.extend(hasher.finalize().to_le_bytes());
        part
    };
    let numbers = |mut part: Vec<u8>, numbers: &[u32]| {
        part.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        part
    };
    let mut trace = write(&[])[..BEGINNING].to_vec();
    let length = payload.len() as u32;
    let head = numbers(b"REQS".to_vec(), &[requests, length, length, 0, 0]);
    trace.extend(with_checksum(head, payload));
    trace.extend(payload);
    trace.extend(with_checksum(numbers(b"REND".to_vec(), &[1, requests, 0]), &[]));
    trace
}

#[test]
fn the_bytes_are_those_of_the_documentation() {
    let new = [0, 0, 0x0102, 0, 0, 0, 0, 7];
    let content = Content::OldAndNew { old: [0; 8], new };
    let first = Request { cycle: 300, line: LineAddr(65), write: true, content, thread: 0 };
    let second = Request {
        cycle: 299,
        line: LineAddr(64),
        write: false,
        content: Content::Unknown,
        thread: 2,
    };
    let trace = write(&[first, second]);
    let mut payload = Vec::new();
    payload.extend([3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0]);
    payload.extend([0b0101, 0b1000]);
    payload.extend([0xd8, 0x04, 1]); // 300 is 600 in zigzag; -1 is 1
    payload.extend([0x82, 0x01, 1]);
    payload.extend([2]);
    payload.extend([0b1000_0100, 0b1000_0100]);
    for word in [0x0102u64, 7, 0, 0] {
        payload.extend(word.to_le_bytes());
    }
    assert_eq!(read(&with_payload(2, &payload)).unwrap(), [first, second]);
    assert_eq!(trace[..8], *b"\x89GRVNR\r\n");
    assert_eq!(trace[8..12], [1, 0, 0, 0]);
    let raw = BEGINNING + 12;
    assert_eq!(trace[raw..raw + 4], (payload.len() as u32).to_le_bytes());
    assert_eq!(read(&trace).unwrap(), [first, second]);
}

#[test]
fn blocks_of_any_number_follow_each_other() {
    for count in [0, 1, BLOCK_REQUESTS - 1, BLOCK_REQUESTS, BLOCK_REQUESTS + 1, 3 * BLOCK_REQUESTS]
    {
        let requests = some(count as u64);
        assert!(read(&write(&requests)).unwrap() == requests, "{count} requests");
    }
    assert_eq!(replay(&write(&[])).unwrap_err(), TraceError::Empty);
}

#[test]
fn it_is_replayed_as_its_text_is() {
    let requests: Vec<Request> = some(10_000)
        .into_iter()
        .filter(|request| matches!(request.content, Content::OldAndNew { .. }))
        .collect();
    let mut text = Writer::new(Vec::new()).unwrap();
    requests.iter().for_each(|&request| text.write(request).unwrap());
    let text = text.finish().unwrap();
    let binary = write(&requests);
    assert!(binary.len() * 4 < text.len(), "{} of {}", binary.len(), text.len());
    assert_eq!(replay(&binary).unwrap().to_json(), replay(&text).unwrap().to_json());
}

#[test]
fn wherever_it_is_cut_off_is_an_error() {
    let trace = write(&some(300));
    for length in 0..trace.len() {
        let cut = &trace[..length];
        let error = match replay(cut) {
            Err(error) => error,
            Ok(_) => panic!("{length} of {} bytes are no trace", trace.len()),
        };
        if length == 0 {
            assert_eq!(error, TraceError::Empty);
            continue;
        }
        let message = error.to_string();
        assert!(
            message.ends_with("and no more: the trace was cut off, or not finished"),
            "{length}: {message}"
        );
    }
    let at_end = read(&trace[..trace.len() - END]).unwrap_err().to_string();
    let expected = format!(
        "byte {}: expected a block, `REQS`, or the end, `REND`, found 0 and no more: the trace was cut off, or not \
         finished",
        trace.len() - END
    );
    assert_eq!(at_end, expected);
}

#[test]
fn whichever_bit_is_changed_is_an_error() {
    let trace = write(&some(40));
    for at in 0..trace.len() {
        for bit in [0, 3, 7] {
            let mut changed = trace.clone();
            changed[at] ^= 1 << bit;
            assert!(read(&changed).is_err(), "bit {bit} of byte {at}");
        }
    }
    let mut longer = trace.clone();
    longer.push(0);
    let message = read(&longer).unwrap_err().to_string();
    assert_eq!(
        message,
        format!("byte {}: expected nothing behind the end, found more", trace.len())
    );
}

#[test]
fn errors_say_what_was_expected() {
    let trace = write(&some(5000));
    let message = |trace: &[u8]| {
        let requests = read(trace).map(|requests| requests.len());
        requests.expect_err("this is no trace").to_string()
    };
    let changed = |at: usize, byte: u8| {
        let mut trace = trace.clone();
        trace[at] = byte;
        message(&trace)
    };
    assert_eq!(
        changed(1, b'X'),
        "byte 0: expected a binary request trace: the bytes 894752564e520d0a, found the bytes 895852564e520d0a"
    );
    assert!(changed(8, 2).starts_with("byte 0: expected a beginning with the checksum"));
    assert_eq!(
        changed(BEGINNING, b'X'),
        "byte 16: expected a block, `REQS`, or the end, `REND`, found the bytes 58455153"
    );
    assert!(
        changed(BEGINNING + HEAD, !trace[BEGINNING + HEAD])
            .starts_with("byte 16: expected a block with the checksum")
    );
    assert_eq!(changed(BEGINNING + 7, 1), "byte 20: expected 1 to 65536 requests, found 16781312");
    let payload = [&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0][..], &[0]].concat();
    assert_eq!(
        message(&with_payload(1, &payload)),
        "byte 44: expected columns within the payload, found something else"
    );
    // A cycle that goes on behind its column.
    let payload = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0];
    assert_eq!(
        message(&with_payload(1, &payload)),
        "byte 16: expected in this block a cycle in LEB128 as request 1, found something else"
    );
}

#[test]
fn addresses_beyond_the_memory_are_named_with_their_request() {
    let far = Request {
        cycle: 1,
        line: LineAddr(1 << 57),
        write: false,
        content: Content::Unknown,
        thread: 0,
    };
    let message = replay(&write(&[some(1)[0], far])).unwrap_err().to_string();
    assert!(
        message.starts_with(
            "request 2: address 0x8000000000000000 lies beyond the PM, whose addresses end at"
        ),
        "{message}"
    );
}

#[test]
fn what_has_no_place_in_a_trace_is_refused_when_it_is_written() {
    let mut writer = BinaryWriter::new(Vec::new()).unwrap();
    let request = some(1)[0];
    writer.write(request).unwrap();
    let late = writer.write(Request { cycle: 1 << 62, ..request }).unwrap_err().to_string();
    assert_eq!(late, "request 2: a cycle of 2^62 or more");
    let far = writer.write(Request { line: LineAddr(1 << 58), ..request }).unwrap_err().to_string();
    assert_eq!(far, "request 2: an address of 2^64 or more");
    assert_eq!(read(&writer.finish().unwrap()).unwrap(), [request]);
}

fn any_line() -> impl Strategy<Value = LineData> {
    let word = prop_oneof![Just(0), Just(1), any::<u64>()];
    proptest::array::uniform8(word)
}

fn any_request() -> impl Strategy<Value = Request> {
    let content = prop_oneof![
        Just(Content::Unknown),
        any_line().prop_map(Content::New),
        (any_line(), any_line()).prop_map(|(old, new)| Content::OldAndNew { old, new }),
        any_line().prop_map(|line| Content::OldAndNew { old: line, new: line }),
    ];
    let cycle = prop_oneof![0..1000u64, 0..1u64 << 62];
    let line = prop_oneof![0..1000u64, 0..1u64 << 58];
    let thread = prop_oneof![Just(0), any::<u32>()];
    (cycle, line, any::<bool>(), content, thread).prop_map(
        |(cycle, line, write, content, thread)| Request {
            cycle,
            line: LineAddr(line),
            write,
            content,
            thread,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(requests in proptest::collection::vec(any_request(), 0..100)) {
        prop_assert_eq!(read(&write(&requests)).unwrap(), requests);
    }

    #[test]
    fn no_payload_makes_the_reader_panic(
        requests in 1u32..20,
        payload in proptest::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..200),
    ) {
        let _ = read(&with_payload(requests, &payload));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let trace = [&write(&[])[..BEGINNING], &bytes].concat();
        let _ = read(&trace);
        let _ = read(&[&b"\x89"[..], &bytes].concat());
    }
}
