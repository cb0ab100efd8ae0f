//! Which request goes next under each scheduler, worked out by hand. All clocks run at 1 GHz.
//!
//! Bug class: requests that pass each other where a scheduler does not let them, or a queue that waits for ever.

use crate::common::memory::{Bench, ROUND, line_of, quiet};
use graven::memory::LineAddr;
use graven::request::{Write, WriteClass};
use graven::time::Cycle;
use graven::trace::requests::Reader;
use graven::trace::requests::replay::Replay;

const READ: Cycle = 50;
const WRITE: Cycle = 200;
const BURST: Cycle = 4;

/// One channel with 8 banks, a queue of ten, drained from eight down to five.
fn bench(scheduler: &str, settings: &[(&str, &str)]) -> Bench {
    let own = [
        ("controller.scheduler", scheduler),
        ("controller.read_queue_entries", "10"),
        ("controller.write_queue_entries", "10"),
        ("controller.drain_high_percent", "80"),
        ("controller.drain_low_percent", "50"),
        ("pm.column_ns", "10"),
    ];
    let settings: Vec<_> = ROUND.iter().chain(&own).chain(settings).copied().collect();
    Bench::new(&quiet(&settings))
}

fn write(b: &mut Bench, at: Cycle, line: LineAddr, token: u64) {
    b.write(at, Write::line(WriteClass::Data, line, [token; 8]), token);
}

#[test]
fn one_queue_serves_an_older_write_before_a_younger_read() {
    for (scheduler, expected) in
        [("reads-first", 1 + READ + BURST), ("frfcfs", WRITE + 20 + READ + BURST)]
    {
        let mut b = bench(scheduler, &[]);
        // The bank is busy with row 2 until both have arrived.
        b.read(0, line_of(0, 2, 0), 1);
        write(&mut b, 10, line_of(0, 0, 0), 2);
        b.read(11, line_of(0, 1, 0), 3);
        b.end();
        let third = b.reads()[1];
        let read =
            if scheduler == "reads-first" { READ + 20 + READ + BURST } else { READ + expected };
        assert_eq!(third, (3, read), "{scheduler}");
    }
}

#[test]
fn one_queue_serves_an_open_row_before_what_is_older() {
    let mut b = bench("frfcfs", &[]);
    b.read(0, line_of(0, 0, 0), 1);
    b.read(10, line_of(0, 1, 0), 2);
    write(&mut b, 11, line_of(0, 0, 1), 3);
    b.read(12, line_of(0, 0, 2), 4);
    b.end();
    // The open row's write and read, then the other row, which was asked for first.
    let order: Vec<u64> = b.reads().iter().map(|&(token, _)| token).collect();
    assert_eq!(order, [1, 4, 2]);
    assert_eq!(b.reads()[1].1, READ + WRITE + 10 + BURST);
}

#[test]
fn one_queue_is_full_of_reads_and_writes_together() {
    let mut b = bench("frfcfs", &[]);
    (0..10).for_each(|i| b.read(0, line_of(0, i, 0), i + 1));
    // The first read has left the queue when the write arrives, and a younger read has its place.
    b.read(1, line_of(0, 10, 0), 11);
    write(&mut b, 2, line_of(1, 0, 0), 12);
    b.end();
    let second_starts = READ;
    assert_eq!(b.on_durable(), [(12, second_starts)], "accepted when the second read leaves");
    assert_eq!(b.counters().write_queue_full, 1);
}

#[test]
fn with_drains_alone_writes_wait_for_the_watermark_and_reads_for_the_end_of_the_drain() {
    let mut b = bench("frfcfs-wqf", &[]);
    (0..7).for_each(|i| write(&mut b, 0, line_of(i, 0, 0), i + 1));
    b.settle();
    assert_eq!(
        b.counters().media_write_requests,
        0,
        "seven of ten: no write is issued, though none waits"
    );
    // The eighth begins the drain, which ends with five left. A write that arrives meanwhile is not accepted, and a
    // read is not served.
    write(&mut b, 1000, line_of(7, 0, 0), 8);
    write(&mut b, 1001, line_of(0, 1, 0), 9);
    b.read(1002, line_of(5, 1, 0), 10);
    b.settle();
    let ends = 1000 + WRITE + 2 * BURST;
    let accepted = b.on_durable().iter().find(|&&(token, _)| token == 9).copied();
    assert_eq!(accepted, Some((9, ends)));
    assert_eq!(b.counters().write_drains, 1);
    assert!(b.reads()[0].1 > 1000 + WRITE, "{:?}", b.reads());
    b.end();
    assert_eq!(b.counters().media_write_requests, 9, "nothing stays in the queue at the end");
}

#[test]
fn without_adr_writes_go_while_no_read_waits() {
    let mut b = bench("frfcfs-wqf", &[("controller.adr", "false")]);
    write(&mut b, 0, line_of(0, 0, 0), 1);
    b.run();
    assert_eq!(b.on_durable(), [(1, WRITE)]);
}

#[test]
fn a_row_that_has_been_hit_often_enough_gives_way() {
    for (limit, expected) in [("0", [1, 3, 4, 5, 6, 2]), ("2", [1, 3, 4, 2, 5, 6])] {
        for scheduler in ["reads-first", "frfcfs", "frfcfs-wqf"] {
            let mut b = bench(scheduler, &[("controller.row_hit_limit", limit)]);
            b.read(0, line_of(0, 0, 0), 1);
            b.read(1, line_of(0, 1, 0), 2);
            (2..6).for_each(|column| b.read(column, line_of(0, 0, column), column + 1));
            b.end();
            let order: Vec<u64> = b.reads().iter().map(|&(token, _)| token).collect();
            assert_eq!(order, expected, "{scheduler}, limit {limit}");
        }
    }
}

/// Bug class: whoever keeps sending keeps others waiting, without bound.
#[test]
fn no_read_waits_for_writes_without_bound() {
    const LIMIT: Cycle = 4000;
    // What a bank is at when a read goes before all others: it fetches the rest of a media line, and programs it.
    const AT_WORK: Cycle = 20 + READ + WRITE;
    for scheduler in ["reads-first", "frfcfs", "frfcfs-wqf"] {
        for adr in ["true", "false"] {
            for buffer in ["0", "2"] {
                let waited = |limit: Cycle| {
                    let limit = limit.to_string();
                    let settings = [
                        ("controller.age_limit_ns", limit.as_str()),
                        ("controller.adr", adr),
                        ("pm.buffer_lines", buffer),
                        ("pm.buffer_spill_percent", "50"),
                    ];
                    let mut b = bench(scheduler, &settings);
                    // All to one bank: what the queue holds before the read, and forty times as much after it.
                    (0..9).for_each(|n| write(&mut b, 0, line_of(0, 3 * n, 0), n + 1));
                    b.read(1, line_of(0, 1, 0), 1000);
                    (9..400).for_each(|n| write(&mut b, 2, line_of(0, 3 * n, 0), n + 1));
                    b.end();
                    b.reads()[0].1 - 1
                };
                let bound = LIMIT + AT_WORK + 20 + READ + BURST;
                let found = waited(LIMIT);
                let what = format!("{scheduler}, adr {adr}, buffer {buffer}");
                assert!(found <= bound, "{what}: {found} cycles");
                // The limit is what bounds it, or the scheduler alone lets it go earlier.
                assert!(found <= waited(0), "{what}");
            }
        }
    }
}

#[test]
fn nobody_waits_for_ever_for_a_write_to_be_durable() {
    const LIMIT: Cycle = 2000;
    for scheduler in ["reads-first", "frfcfs", "frfcfs-wqf"] {
        let durable = |limit: Cycle| {
            let limit = limit.to_string();
            let settings = [
                ("controller.age_limit_ns", limit.as_str()),
                ("controller.adr", "false"),
                ("controller.read_queue_entries", "64"),
                ("controller.write_queue_entries", "64"),
            ];
            let mut b = bench(scheduler, &settings);
            write(&mut b, 0, line_of(0, 1, 0), 1);
            // A read of the bank is always there.
            (0..400).for_each(|n| b.read(n * READ, line_of(0, 2 + n % 2, 0), 2 + n));
            b.end();
            b.on_durable()[0].1
        };
        let found = durable(LIMIT);
        assert!(found <= LIMIT + 2 * (20 + READ) + WRITE, "{scheduler}: {found} cycles");
        assert!(scheduler == "frfcfs" || durable(0) > 10 * LIMIT, "{scheduler}");
    }
}

/// Bug class: the same of reads that find their row open, in PM and in DRAM.
#[test]
fn an_open_row_is_not_hit_without_end() {
    let trace = |bank: u64| {
        let other = format!("0x{:x} READ 1\n", bank);
        let hits = (0..2000).map(|n| format!("0x{:x} READ {}\n", n % 32 * 64, 2 + n));
        format!("0x0 READ 0\n{other}{}", hits.collect::<String>())
    };
    // The same bank, another row: eight banks of pages, and sixteen.
    for (of_dram, other) in [(false, 8 * 4096 * 2), (true, 16 * 4096 * 2)] {
        let longest = |limit: &str| {
            let config =
                quiet(&[("controller.row_hit_limit", limit), ("controller.age_limit_ns", "0")]);
            let replay = if of_dram { Replay::of_dram(&config) } else { Replay::new(&config) };
            let record = replay.run(&mut Reader::new(trace(other).as_bytes()));
            record.unwrap_or_else(|e| panic!("{e}")).stats.read_latency.quantile(0.9999)
        };
        assert!(longest("4") < longest("0"), "DRAM: {of_dram}: {} {}", longest("4"), longest("0"));
    }
}

#[test]
fn lines_do_not_move_at_the_same_time_where_the_bus_is_held_at_the_transfer() {
    for (held, expected) in [("at-issue", 139 + 10 + BURST), ("at-transfer", 144 + 10 + BURST)] {
        let mut b = bench("reads-first", &[("controller.data_bus", held)]);
        b.read(0, line_of(0, 0, 0), 1);
        // Its row is open at 140, and its line moves until 144.
        b.read(100, line_of(1, 0, 0), 2);
        b.read(139, line_of(0, 0, 1), 3);
        b.end();
        let done = |token| b.reads().iter().find(|&&(t, _)| t == token).map(|&(_, at)| at);
        assert_eq!((done(2), done(3)), (Some(154), Some(expected)), "{held}");
    }
}

#[test]
fn rows_are_opened_while_other_lines_move_where_the_bus_is_held_at_the_transfer() {
    // Four hits keep the bus busy for 16 cycles; the read of another bank is issued after them, or in the second cycle.
    for (held, issued) in [("at-issue", 1016), ("at-transfer", 1001)] {
        let settings = [("controller.data_bus", held), ("pm.column_ns", "4")];
        let mut b = bench("reads-first", &settings);
        b.read(0, line_of(0, 0, 9), 9);
        (0..4).for_each(|column| b.read(1000, line_of(0, 0, column), column));
        b.read(1000, line_of(1, 0, 0), 5);
        b.end();
        let last = b.reads().iter().find(|&&(token, _)| token == 5).copied();
        assert_eq!(last, Some((5, issued + READ + BURST)), "{held}");
    }
}

#[test]
fn requests_that_waited_for_a_place_share_the_bus_with_all_others() {
    for scheduler in ["reads-first", "frfcfs", "frfcfs-wqf"] {
        // All reads take as long, so that they end as far apart as they were issued. Twelve times as many as the queue
        // holds; none waits long for its bank.
        let mut b = bench(scheduler, &[("pm.row_hit_ns", "50")]);
        (0..120).for_each(|i| b.read(0, line_of(i % 8, 0, i / 8), i + 1));
        b.end();
        let done: Vec<Cycle> = b.reads().iter().map(|&(_, at)| at).collect();
        let apart = done.windows(2).map(|pair| pair[1] - pair[0]).min();
        assert!(apart >= Some(BURST), "{scheduler}: {apart:?} cycles apart");
    }
}
