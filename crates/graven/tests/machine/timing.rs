//! Closed-form timing: what a request costs, worked out by hand, to the cycle.
//!
//! Bug class: a change of scheduler, queue or device shifts every result by a few percent and nobody
//! notices. All clocks run at 1 GHz here, so that a nanosecond is a cycle; the timings are round and
//! different from each other, so that a wrong one shows.

use crate::common::memory::{Bench, ROUND, line_of, quiet};
use graven::config::Config;
use graven::memory::{Addr, LineAddr};
use graven::request::{Write, WriteClass};
use graven::time::Cycle;

/// Reading from an open row.
const HIT: Cycle = 10;
/// Reading with the row closed.
const READ: Cycle = 50;
/// Closing another row first.
const PRECHARGE: Cycle = 20;
/// Programming the cells.
const WRITE: Cycle = 200;
/// One line on the data bus; requests are issued so far apart.
const BURST: Cycle = 4;
/// An access to the on-PM buffer.
const BUFFER: Cycle = 5;

/// One channel with 8 banks, ADR, no on-PM buffer.
fn config(settings: &[(&str, &str)]) -> Config {
    let own = [("pm.column_ns", "10"), ("pm.buffer_ns", "5")];
    let settings: Vec<_> = ROUND.iter().chain(&own).chain(settings).copied().collect();
    quiet(&settings)
}

fn bench(settings: &[(&str, &str)]) -> Bench {
    Bench::new(&config(settings))
}

fn full(line: LineAddr, word: u64) -> Write {
    Write::line(WriteClass::Data, line, [word; 8])
}

// ---- reads ------------------------------------------------------------------------------------

#[test]
fn an_unloaded_read_takes_the_closed_row_and_the_bus() {
    let mut b = bench(&[]);
    b.read(100, line_of(3, 7, 5), 1);
    b.run();
    assert_eq!(b.reads(), [(1, 100 + READ + BURST)]);
    assert_eq!((b.counters().row_closed, b.counters().media_reads), (1, 1));
    assert_eq!(b.counters().read_latency_cycles_sum, READ + BURST);
}

#[test]
fn an_open_row_is_read_faster_and_another_row_slower() {
    let mut b = bench(&[]);
    b.read(0, line_of(0, 0, 0), 1);
    b.read(100, line_of(0, 0, 31), 2);
    b.read(200, line_of(0, 1, 0), 3);
    b.run();
    let expected = [(1, READ + BURST), (2, 100 + HIT + BURST), (3, 200 + PRECHARGE + READ + BURST)];
    assert_eq!(b.reads(), expected);
    let c = b.counters();
    assert_eq!((c.row_closed, c.row_hits, c.row_conflicts), (1, 1, 1));
}

#[test]
fn two_reads_of_one_bank_follow_each_other_and_of_two_banks_share_only_the_bus() {
    let mut one = bench(&[]);
    one.read(0, line_of(0, 0, 0), 1);
    one.read(0, line_of(0, 1, 0), 2);
    one.run();
    assert_eq!(one.reads(), [(1, READ + BURST), (2, READ + PRECHARGE + READ + BURST)]);

    let mut two = bench(&[]);
    two.read(0, line_of(0, 0, 0), 1);
    two.read(0, line_of(1, 1, 0), 2);
    two.run();
    assert_eq!(two.reads(), [(1, READ + BURST), (2, BURST + READ + BURST)]);
}

#[test]
fn the_bus_issues_one_request_per_burst() {
    let mut b = bench(&[]);
    for bank in 0..8 {
        b.read(0, line_of(bank, 0, 0), bank);
    }
    b.run();
    let expected: Vec<_> = (0..8).map(|n| (n, n * BURST + READ + BURST)).collect();
    assert_eq!(b.reads(), expected);
}

#[test]
fn two_channels_do_not_share_a_bus() {
    let mut b = bench(&[("controller.channels", "2")]);
    b.read(0, Addr(0).line(), 1);
    b.read(0, Addr(4096).line(), 2);
    b.run();
    assert_eq!(b.reads(), [(1, READ + BURST), (2, READ + BURST)]);
}

#[test]
fn a_row_hit_goes_before_older_conflicts_then_the_oldest_goes_first() {
    let mut b = bench(&[]);
    b.read(0, line_of(0, 0, 0), 1);
    b.read(10, line_of(0, 1, 0), 2);
    b.read(11, line_of(0, 2, 0), 3);
    b.read(12, line_of(0, 0, 1), 4);
    b.run();
    let conflict = PRECHARGE + READ;
    let expected = [
        (1, READ + BURST),
        (4, READ + HIT + BURST),
        (2, READ + HIT + conflict + BURST),
        (3, READ + HIT + 2 * conflict + BURST),
    ];
    assert_eq!(b.reads(), expected);
}

#[test]
fn a_read_outside_the_full_queue_is_not_seen_by_the_scheduler() {
    let conflict = PRECHARGE + READ;
    let order = |entries: &str| {
        let mut b = bench(&[("controller.read_queue_entries", entries)]);
        b.read(0, line_of(0, 0, 0), 1);
        b.read(10, line_of(0, 1, 0), 2);
        b.read(10, line_of(0, 2, 0), 3);
        b.read(10, line_of(0, 0, 1), 4);
        b.run();
        (b.reads(), b.counters().read_queue_max)
    };
    let (seen, max) = order("3");
    assert_eq!(seen[1], (4, READ + HIT + BURST));
    assert_eq!(max, 3);
    // With two places the row hit is still outside at cycle 50, and its row is closed when it enters.
    let (unseen, max) = order("2");
    let expected = [
        (1, READ + BURST),
        (2, READ + conflict + BURST),
        (3, READ + 2 * conflict + BURST),
        (4, READ + 3 * conflict + BURST),
    ];
    assert_eq!(unseen, expected);
    assert_eq!(max, 2);
}

// ---- acceptance of writes, and durability ------------------------------------------------------

#[test]
fn under_adr_a_write_is_durable_when_it_is_accepted() {
    let mut b = bench(&[]);
    b.write(100, full(line_of(0, 0, 0), 1), 1);
    b.run();
    assert_eq!(b.on_durable(), [(1, 100)]);
    assert_eq!(b.programmed(), [100 + WRITE]);
}

#[test]
fn without_adr_a_write_is_durable_in_the_cells_or_in_the_buffer_on_the_device() {
    let mut cells = bench(&[("controller.adr", "false")]);
    cells.write(100, full(line_of(0, 0, 0), 1), 1);
    cells.run();
    assert_eq!(cells.on_durable(), [(1, 100 + WRITE)]);

    let mut buffered = bench(&[("controller.adr", "false"), ("pm.buffer_lines", "4")]);
    buffered.write(100, full(line_of(0, 0, 0), 1), 1);
    buffered.write(100, full(line_of(1, 0, 0), 1), 2);
    buffered.run();
    assert_eq!(buffered.on_durable(), [(1, 100), (2, 100 + BURST)]);
    assert!(buffered.programmed().is_empty(), "below the watermark nothing is spilled");
}

#[test]
fn a_write_to_a_full_queue_waits_exactly_until_a_place_is_free() {
    let mut b = bench(&[("controller.write_queue_entries", "4")]);
    for n in 0..4 {
        b.write(0, full(line_of(0, n, 0), 1), 1 + n);
    }
    b.write(1, full(line_of(1, 0, 0), 1), 5);
    b.write(2, full(line_of(1, 1, 0), 1), 6);
    b.run();
    // One bank has all four: the first leaves the queue after one write time, the next after two.
    let expected = [(1, 0), (2, 0), (3, 0), (4, 0), (5, WRITE), (6, 2 * WRITE)];
    assert_eq!(b.on_durable(), expected);
    let c = b.counters();
    assert_eq!(c.write_queue_full, 2);
    assert_eq!(c.write_queue_full_cycles, (WRITE - 1) + (2 * WRITE - 2));
    assert_eq!((c.write_order_held, c.write_order_held_cycles), (0, 0));
    assert_eq!(c.write_queue_max, 4);
}

#[test]
fn reads_go_first_while_the_write_queue_does_not_drain() {
    let mut b = bench(&[]);
    b.write(0, full(line_of(0, 0, 0), 1), 1);
    b.read(0, line_of(1, 0, 0), 2);
    b.run();
    assert_eq!(b.reads(), [(2, READ + BURST)]);
    assert_eq!(b.programmed(), [BURST + WRITE], "the write goes one burst later");
    assert_eq!(b.counters().write_drains, 0);
}

#[test]
fn a_drain_begins_at_the_high_watermark_and_ends_at_the_low_one() {
    // 10 places: drained from 8 entries until 5 are left.
    let mut b = bench(&[("controller.write_queue_entries", "10")]);
    let conflict = PRECHARGE + READ;
    // Reads of one bank wait all the time, which holds writes back.
    for n in 0..10 {
        b.read(0, line_of(0, n, 0), n);
    }
    for bank in 1..8 {
        b.write(10, full(line_of(bank, 0, 0), 1), 0);
    }
    b.write(100, full(line_of(1, 1, 0), 1), 0);
    // The drain has ended when this comes.
    b.write(309, full(line_of(2, 1, 0), 1), 0);
    b.run();
    // The eighth write starts the drain at 100. Seven writes are issued, one per burst; the third read,
    // whose bank is free at 120, waits until the bus is, at 128.
    let third = 100 + 7 * BURST;
    let mut expected = vec![(0, READ + BURST), (1, READ + conflict + BURST)];
    expected.extend((2..10).map(|n| (n, third + (n - 1) * conflict + BURST)));
    assert_eq!(b.reads(), expected);
    // The eighth follows when its bank has finished the first. At 308 the third write is done and
    // five are left of eight, so that the ninth waits for the last read to be issued.
    let last_read_issued = third + 7 * conflict;
    let mut programmed: Vec<Cycle> = (0..7).map(|n| 100 + n * BURST + WRITE).collect();
    programmed.push(100 + 2 * WRITE);
    programmed.push(last_read_issued + BURST + WRITE);
    assert_eq!(b.programmed(), programmed);
    assert_eq!(b.counters().write_drains, 1);
}

#[test]
fn writes_of_one_line_merge_in_the_queue() {
    let mut b = bench(&[]);
    let line = line_of(0, 0, 0);
    b.write(0, Write::words(WriteClass::Log, line.word(0), &[0xff]), 1);
    b.write(0, Write::words(WriteClass::Data, line.word(1), &[0xf0, 0xf]), 2);
    b.write(0, Write::words(WriteClass::Data, line.word(0), &[0x1]), 3);
    b.run();
    assert_eq!(b.on_durable(), [(1, 0), (2, 0), (3, 0)]);
    assert_eq!(b.programmed(), [WRITE]);
    let c = b.counters();
    assert_eq!((c.controller_write_requests, c.write_queue_merges, c.write_queue_max), (3, 2, 1));
    // What merges was accepted all the same.
    assert_eq!((c.written_bytes_log, c.written_bytes_data), (8, 16 + 8));
    assert_eq!((c.media_write_requests, c.media_write_requests_data), (1, 1));
    assert_eq!((c.media_bytes_written, c.media_bits_programmed), (24, 1 + 4 + 4));
}

#[test]
fn accepted_bytes_are_counted_by_class() {
    let mut b = bench(&[]);
    let classes = [WriteClass::Data, WriteClass::Log, WriteClass::Metadata, WriteClass::Gc];
    for (n, class) in (1..).zip(classes) {
        b.write(0, Write::words(class, line_of(0, 0, n).word(0), &[1; 4][..n as usize]), n);
    }
    b.run();
    let c = b.counters();
    assert_eq!((c.written_bytes_data, c.written_bytes_log), (8, 16));
    assert_eq!((c.written_bytes_metadata, c.written_bytes_gc), (24, 32));
    assert_eq!(c.log_bytes_written, c.written_bytes_log + c.written_bytes_metadata);
}

#[test]
fn a_write_under_way_takes_no_more_words() {
    let mut b = bench(&[]);
    let line = line_of(0, 0, 0);
    b.write(0, Write::words(WriteClass::Data, line.word(0), &[1]), 1);
    b.write(50, Write::words(WriteClass::Data, line.word(1), &[1]), 2);
    b.run();
    assert_eq!(b.on_durable(), [(1, 0), (2, 50)]);
    assert_eq!(b.programmed(), [WRITE, 2 * WRITE]);
    assert_eq!(b.counters().write_queue_merges, 0);
}

#[test]
fn a_queued_line_is_read_from_the_queue() {
    let mut b = bench(&[]);
    b.write(0, full(line_of(0, 0, 0), 1), 0);
    b.write(0, Write::words(WriteClass::Data, line_of(1, 0, 0).word(3), &[1]), 0);
    b.read(10, line_of(0, 0, 0), 1);
    b.read(10, line_of(1, 0, 0), 2);
    b.run();
    // A part of a line does not serve a read: that one waits for the bank, whose row the write opened.
    assert_eq!(b.reads(), [(1, 11), (2, BURST + WRITE + HIT + BURST)]);
    assert_eq!(b.counters().controller_reads_forwarded, 1);
}

#[test]
fn an_ordered_write_waits_across_channels_under_adr() {
    let mut b = bench(&[("controller.channels", "2"), ("controller.write_queue_entries", "4")]);
    let first = |n: u64| Addr(n * 8 * 2 * 4096).line();
    let second = |n: u64| Addr((n * 8 * 2 + 1) * 4096).line();
    for n in 0..4 {
        b.write(0, full(first(n), 1), 1 + n);
    }
    let order = b.system.order();
    b.write(10, full(first(4), 1).ordered(order), 5);
    b.write(20, full(second(0), 1).after(order), 6);
    b.write(30, full(second(1), 1), 7);
    b.run();
    // Place 5 is free when the first channel has finished a write; 6 may follow at that very cycle.
    let expected = [(1, 0), (2, 0), (3, 0), (4, 0), (7, 30), (5, WRITE), (6, WRITE)];
    assert_eq!(b.on_durable(), expected);
    // 5 waited for a place; 6 had one, and waited for 5.
    let c = b.counters();
    assert_eq!((c.write_queue_full, c.write_queue_full_cycles), (1, WRITE - 10));
    assert_eq!((c.write_order_held, c.write_order_held_cycles), (1, WRITE - 20));
}

#[test]
fn an_ordered_write_waits_for_the_cells_without_adr() {
    let mut b = bench(&[("controller.channels", "2"), ("controller.adr", "false")]);
    let order = b.system.order();
    b.write(10, full(Addr(0).line(), 1).ordered(order), 1);
    b.write(20, full(Addr(4096).line(), 1).after(order), 2);
    b.write(30, full(Addr(3 * 4096).line(), 1), 3);
    b.run();
    assert_eq!(b.on_durable(), [(1, 10 + WRITE), (3, 30 + WRITE), (2, 10 + 2 * WRITE)]);
}

// ---- the on-PM buffer --------------------------------------------------------------------------

/// Four lines, of which three may stay dirty.
const BUFFERED: &[(&str, &str)] = &[("pm.buffer_lines", "4"), ("pm.buffer_spill_percent", "75")];

#[test]
fn a_buffered_line_is_read_from_the_buffer() {
    let mut b = bench(BUFFERED);
    b.write(0, full(line_of(0, 0, 0), 1), 0);
    b.write(10, Write::words(WriteClass::Data, line_of(0, 0, 1).word(0), &[1]), 0);
    b.read(100, line_of(0, 0, 0), 1);
    b.read(200, line_of(0, 0, 1), 2);
    b.run();
    // The second line is there in part only, and its bank must be asked.
    assert_eq!(b.reads(), [(1, 100 + BUFFER + BURST), (2, 200 + READ + BURST)]);
    let c = b.counters();
    assert_eq!((c.pm_buffer_read_hits, c.pm_buffer_write_hits, c.media_reads), (1, 1, 1));
    assert_eq!(c.media_write_requests, 0);
}

#[test]
fn above_the_watermark_the_oldest_line_is_spilled_with_read_modify_write() {
    let mut b = bench(BUFFERED);
    for bank in 0..4 {
        b.write(100, full(line_of(bank, 0, 0), 1), 0);
    }
    b.run();
    // The fourth line arrives three bursts later and makes one too many.
    assert_eq!(b.programmed(), [100 + 3 * BURST + READ + WRITE]);
    let c = b.counters();
    assert_eq!((c.pm_buffer_spills, c.pm_buffer_read_modify_writes, c.media_reads), (1, 1, 1));
    assert_eq!((c.row_hits, c.row_closed, c.row_conflicts), (0, 0, 0));
    assert_eq!(b.stats().read_energy.pj(), 42_373.12, "2048 bits at 0.93 pJ, 16,384 at 2.47");
    assert_eq!(b.system.shared.media.load(line_of(0, 0, 0).word(0)), 1);
    assert_eq!(b.system.shared.media.load(line_of(1, 0, 0).word(0)), 0);
}

#[test]
fn a_line_written_again_is_not_the_oldest() {
    let mut b = bench(BUFFERED);
    for (at, bank) in [(0, 0), (10, 1), (20, 0), (30, 2), (40, 3)] {
        b.write(at, full(line_of(bank, 0, 0), at + 1), 0);
    }
    b.run();
    assert_eq!(b.programmed(), [40 + READ + WRITE]);
    assert_eq!(b.system.shared.media.load(line_of(1, 0, 0).word(0)), 11);
}

#[test]
fn the_rest_of_a_line_is_read_faster_from_an_open_row() {
    let mut b = bench(BUFFERED);
    b.read(0, line_of(0, 0, 16), 0);
    for bank in 0..4 {
        b.write(100, full(line_of(bank, 0, 0), 1), 0);
    }
    b.run();
    assert_eq!(b.programmed(), [100 + 3 * BURST + HIT + WRITE]);
    assert_eq!((b.counters().media_reads, b.counters().row_closed), (2, 1));
    let bits = "512 bits of a read and 2048 of a fetch, at 0.93 pJ";
    assert_eq!(b.stats().read_energy.pj(), 42_849.28, "{bits}, and the row's 16,384 at 2.47");
}

#[test]
fn the_rest_of_a_line_is_read_after_closing_another_row() {
    let mut b = bench(BUFFERED);
    b.read(0, line_of(0, 1, 0), 0);
    for bank in 0..4 {
        b.write(100, full(line_of(bank, 0, 0), 1), 0);
    }
    b.run();
    assert_eq!(b.programmed(), [100 + 3 * BURST + PRECHARGE + READ + WRITE]);
}

#[test]
fn a_full_media_line_is_spilled_without_reading() {
    let mut b = bench(BUFFERED);
    for part in 0..4 {
        b.write(0, full(line_of(0, 0, part), 1), 0);
    }
    for bank in 1..4 {
        b.write(0, full(line_of(bank, 0, 0), 1), 0);
    }
    b.run();
    assert_eq!(b.programmed(), [6 * BURST + WRITE]);
    let c = b.counters();
    assert_eq!((c.pm_buffer_spills, c.pm_buffer_read_modify_writes, c.media_reads), (1, 0, 0));
    assert_eq!((c.media_write_requests, c.media_bytes_written), (1, 256));
    assert_eq!((c.pm_buffer_write_hits, c.media_bits_programmed), (3, 32));
}

#[test]
fn a_full_buffer_holds_writes_in_the_queue_until_a_spill_ends() {
    let mut b = bench(&[
        ("pm.buffer_lines", "2"),
        ("pm.buffer_spill_percent", "100"),
        ("controller.adr", "false"),
    ]);
    for bank in 0..3 {
        b.write(0, full(line_of(bank, 0, 0), 1), 1 + bank);
    }
    b.run();
    let spilled = BURST + READ + WRITE;
    assert_eq!(b.on_durable(), [(1, 0), (2, BURST), (3, spilled)]);
    assert_eq!(b.programmed()[0], spilled);
}

#[test]
fn what_is_written_during_a_spill_is_of_the_next_write() {
    let mut b = bench(&[("pm.buffer_lines", "1"), ("pm.buffer_spill_percent", "1")]);
    let line = line_of(0, 0, 0);
    b.write(0, Write::words(WriteClass::Data, line.word(0), &[1]), 0);
    b.write(100, Write::words(WriteClass::Log, line.word(1), &[1]), 0);
    b.run();
    assert_eq!(b.programmed(), [READ + WRITE, READ + WRITE + HIT + WRITE]);
    let c = b.counters();
    assert_eq!((c.media_write_requests_data, c.media_write_requests_log), (1, 1));
}

// ---- cells: what is programmed, what it costs --------------------------------------------------

#[test]
fn a_write_that_changes_nothing_costs_only_the_comparison() {
    let mut b = bench(&[]);
    b.write(0, full(line_of(0, 0, 0), 0), 0);
    b.read(1, line_of(0, 0, 1), 1);
    b.run();
    assert!(b.programmed().is_empty());
    assert_eq!(b.reads(), [(1, READ + HIT + BURST)], "the bank compares for a read's time");
    let c = b.counters();
    assert_eq!((c.media_writes_suppressed, c.media_write_requests), (1, 0));
    assert_eq!((c.media_bits_programmed, c.media_bytes_written, b.peak_wear()), (0, 0, 0));
    assert_eq!(b.stats().write_energy.pj(), 522.24, "512 bits at 1.02 pJ");
}

#[test]
fn a_comparison_closes_another_row_first_and_programming_does_not() {
    let mut b = bench(&[]);
    b.read(0, line_of(0, 1, 0), 0);
    b.write(100, full(line_of(0, 0, 0), 0), 0);
    b.read(101, line_of(0, 0, 1), 1);
    b.read(1000, line_of(1, 1, 0), 2);
    b.write(1100, full(line_of(1, 0, 0), 1), 0);
    b.run();
    assert_eq!(b.reads()[1], (1, 100 + PRECHARGE + READ + HIT + BURST));
    assert_eq!(b.programmed(), [1100 + WRITE]);
}

#[test]
fn only_bits_that_differ_are_programmed() {
    let mut b = bench(&[]);
    let line = line_of(0, 0, 0);
    b.write(0, Write::words(WriteClass::Data, line.word(0), &[0x0f, u64::MAX]), 0);
    b.write(1000, Write::words(WriteClass::Data, line.word(0), &[0x3c, u64::MAX - 1]), 0);
    b.run();
    // First 4 and 64 bits; then 0x0f becomes 0x3c (bits 0, 1, 4 and 5), and one bit of the other.
    let c = b.counters();
    assert_eq!(c.media_bits_programmed, 4 + 64 + 4 + 1);
    assert_eq!((c.media_write_requests, c.media_bytes_written), (2, 32));
}

#[test]
fn energy_is_bits_times_energy_per_bit() {
    let mut b = bench(&[]);
    b.read(0, line_of(0, 0, 0), 1);
    b.run();
    assert_eq!(b.stats().read_energy.pj(), 40_944.64, "512 bits at 0.93 pJ, 16,384 at 2.47");
    b.read(1000, line_of(0, 0, 1), 2);
    b.run();
    assert_eq!(b.stats().read_energy.pj(), 41_420.8, "a row hit reads no cells");
    b.write(2000, Write::words(WriteClass::Data, line_of(0, 0, 2).word(5), &[0x7]), 0);
    b.run();
    assert_eq!(b.stats().write_energy.pj(), 115.74, "64 bits at 1.02, 3 at 16.82 pJ");
}

#[test]
fn wear_counts_the_writes_of_one_media_line() {
    let mut b = bench(&[]);
    b.write(0, full(line_of(0, 0, 0), 1), 0);
    b.write(1000, full(line_of(0, 0, 3), 1), 0);
    b.write(2000, full(line_of(0, 0, 4), 1), 0);
    b.write(3000, full(line_of(0, 0, 4), 1), 0);
    b.run();
    // Lines 0 and 3 share 256 B, line 4 does not; the last write changes nothing.
    assert_eq!(b.peak_wear(), 2);
    assert_eq!(b.counters().media_write_requests, 3);
}
