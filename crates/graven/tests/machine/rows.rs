//! Row buffers: what an access costs by what it finds open, under each rule of what a write does to its row; and that no
//! rule changes what is read, or what survives.
//!
//! Bug class: a write that is cheap because its row is open, and is nowhere when the row closes; a row that is charged for
//! twice, or never. All clocks run at 1 GHz, so that a nanosecond is a cycle.

use proptest::prelude::*;

use crate::common::memory::{Bench, ROUND, line_of, quiet};
use graven::memory::{Image, LineAddr};
use graven::request::{Write, WriteClass};
use graven::time::Cycle;

const HIT: Cycle = 10;
const COLUMN: Cycle = 3;
const READ: Cycle = 50;
const ACTIVATION: Cycle = READ - HIT;
const PRECHARGE: Cycle = 20;
const WRITE: Cycle = 200;
const BURST: Cycle = 4;

const RULES: [&str; 4] = ["program", "activate", "hit-or-conflict", "write-back"];

/// One channel with 8 banks, without ADR, so that a write is durable when its bank has it.
fn bench(rule: &str, settings: &[(&str, &str)]) -> Bench {
    let own = [("pm.column_ns", "3"), ("controller.adr", "false"), ("pm.row_writes", rule)];
    let settings: Vec<_> = ROUND.iter().chain(&own).chain(settings).copied().collect();
    Bench::new(&quiet(&settings))
}

fn full(line: LineAddr, word: u64) -> Write {
    Write::line(WriteClass::Data, line, [word; 8])
}

/// How long a write takes that finds no row open, its row, and another row.
fn durations(rule: &str) -> [Cycle; 3] {
    let mut b = bench(rule, &[]);
    b.write(0, full(line_of(0, 0, 0), 1), 1);
    b.write(1000, full(line_of(0, 0, 1), 2), 2);
    b.write(2000, full(line_of(0, 1, 0), 3), 3);
    b.run();
    let done: Vec<Cycle> = b.on_durable().iter().map(|&(_, at)| at).collect();
    [done[0], done[1] - 1000, done[2] - 2000]
}

#[test]
fn a_write_costs_what_its_rule_says_of_the_row_that_it_finds() {
    assert_eq!(durations("program"), [WRITE; 3]);
    let opened = ACTIVATION + WRITE;
    assert_eq!(durations("activate"), [opened, WRITE, PRECHARGE + opened]);
    // FWB Table II: "36ns row-buffer hit, 100/300ns read/write row-buffer conflict".
    assert_eq!(durations("hit-or-conflict"), [WRITE, HIT, WRITE]);
    let opened = ACTIVATION + COLUMN;
    assert_eq!(durations("write-back"), [opened, COLUMN, WRITE + PRECHARGE + opened]);
}

#[test]
fn a_read_waits_for_the_row_that_is_written_back_where_that_takes_time() {
    for (rule, closing) in RULES.into_iter().zip([0, 0, 0, WRITE]) {
        let mut b = bench(rule, &[]);
        b.write(0, full(line_of(0, 0, 0), 1), 1);
        b.read(1000, line_of(0, 1, 0), 2);
        b.read(2000, line_of(0, 0, 0), 3);
        b.run();
        let conflict = PRECHARGE + READ + BURST;
        assert_eq!(b.reads(), [(2, 1000 + closing + conflict), (3, 2000 + conflict)], "{rule}");
    }
}

#[test]
fn reads_of_an_open_row_overlap() {
    let mut b = bench("program", &[]);
    (0..4).for_each(|column| b.read(0, line_of(0, 0, column), column));
    b.run();
    // The bus is slower than the columns: a request is issued every burst.
    let first = ACTIVATION + COLUMN;
    let expected = [READ, first + HIT, first + BURST + HIT, first + 2 * BURST + HIT];
    let done: Vec<Cycle> = b.reads().iter().map(|&(_, at)| at).collect();
    assert_eq!(done, expected.map(|at| at + BURST));
}

#[test]
fn a_row_that_stays_in_its_buffer_is_programmed_once_when_it_closes() {
    for rule in ["hit-or-conflict", "write-back"] {
        let mut b = bench(rule, &[]);
        for (at, word) in [(0, 1), (1000, 2), (2000, 3)] {
            b.write(at, full(line_of(0, 0, 0), word), word);
        }
        b.write(3000, full(line_of(0, 0, 1), 1), 4);
        b.run();
        assert_eq!((b.counters().media_write_requests, b.counters().write_row_hits), (0, 3));
        let line = line_of(0, 0, 0);
        assert_eq!(b.system.shared.media.load_line(line), [0; 8], "{rule}: not in the cells");
        assert_eq!(b.system.content(line), [3; 8], "{rule}: but in the row buffer");
        assert_eq!(b.system.surviving().len(), 2, "{rule}: from where the device saves it");
        b.read(5000, line_of(0, 1, 0), 5);
        b.run();
        let c = b.counters();
        assert_eq!((c.rows_written_back, c.row_activations, c.media_write_requests), (1, 2, 2));
        // Eight words from 0 to 3 and from 0 to 1.
        assert_eq!((c.media_bits_programmed, b.peak_wear()), (8 * 2 + 8, 2), "{rule}");
        assert_eq!(b.system.shared.media.load_line(line), [3; 8], "{rule}");
        assert!(b.system.surviving().is_empty(), "{rule}");
        let row_buffer = 4.0 * 512.0 * 1.02;
        let cells = 24.0 * 16.82;
        assert!((b.stats().write_energy.pj() - row_buffer - cells).abs() < 1e-6, "{rule}");
    }
}

#[test]
fn opening_a_row_costs_its_bits_and_what_follows_costs_the_buffer() {
    for rule in RULES {
        let mut b = bench(rule, &[]);
        b.write(0, full(line_of(0, 0, 0), 1), 1);
        b.read(1000, line_of(0, 0, 1), 2);
        b.read(2000, line_of(0, 0, 2), 3);
        b.run();
        let expected = 2048.0 * 8.0 * 2.47 + 2.0 * 512.0 * 0.93;
        assert!((b.stats().read_energy.pj() - expected).abs() < 1e-6, "{rule}");
        assert_eq!((b.counters().row_activations, b.counters().row_hits), (1, 2), "{rule}");
    }
}

#[test]
fn a_spill_of_the_on_pm_buffer_needs_no_fetch_where_the_row_has_the_rest() {
    let settings = [("pm.buffer_lines", "4"), ("pm.buffer_spill_percent", "75")];
    for (rule, fetches) in [("program", 1), ("write-back", 0)] {
        let mut b = bench(rule, &settings);
        for bank in 0..4 {
            b.write(100, full(line_of(bank, 0, 0), 1), bank + 1);
        }
        b.run();
        let c = b.counters();
        assert_eq!((c.pm_buffer_spills, c.media_reads), (1, fetches), "{rule}");
        assert_eq!(b.system.content(line_of(0, 0, 0)), [1; 8], "{rule}");
    }
}

#[test]
fn a_short_write_leaves_the_bus_early_where_it_may() {
    for (short, apart) in [("false", BURST), ("true", 1)] {
        let mut b = bench("program", &[("controller.short_bursts", short)]);
        for bank in 0..2 {
            let word = Write::words(WriteClass::Data, line_of(bank, 0, 0).word(0), &[7]);
            b.write(0, word, bank + 1);
        }
        b.run();
        assert_eq!(b.on_durable(), [(1, WRITE), (2, WRITE + apart)]);
    }
}

#[test]
fn traffic_energy_knows_neither_rows_nor_changed_bits() {
    for rule in RULES {
        let mut b = bench(rule, &[]);
        b.write(0, Write::words(WriteClass::Log, line_of(0, 0, 0).word(0), &[7, 7]), 1);
        b.read(1000, line_of(0, 0, 1), 2);
        b.run();
        let stats = b.stats();
        let expected = 512.0 * (2.47 + 0.93) + 128.0 * (16.82 + 1.02);
        assert!((stats.traffic.of(&stats.counters).pj() - expected).abs() < 1e-6, "{rule}");
    }
}

/// A request: a read or a write of one word of one of few lines.
fn any_request() -> impl Strategy<Value = (bool, u64, u64, u64, usize, u64)> {
    (any::<bool>(), 0..2u64, 0..3u64, 0..4u64, 0..8usize, 1..5u64)
}

proptest! {
    #[test]
    fn no_rule_changes_what_is_read_or_what_survives(
        requests in prop::collection::vec(any_request(), 1..60),
        rule in prop::sample::select(&RULES[..]),
        scheduler in prop::sample::select(&["reads-first", "frfcfs", "frfcfs-wqf"][..]),
        buffer in prop::sample::select(&["0", "2"][..]),
        adr in prop::sample::select(&["true", "false"][..]),
        limit in prop::sample::select(&["0", "1", "4"][..]),
    ) {
        let mut b = bench(rule, &[
            ("controller.scheduler", scheduler),
            ("controller.row_hit_limit", limit),
            ("controller.adr", adr),
            ("controller.write_queue_entries", "4"),
            ("pm.buffer_lines", buffer),
        ]);
        let mut stored = Image::new();
        let mut lines = Vec::new();
        for (i, &(write, bank, row, column, word, value)) in requests.iter().enumerate() {
            let line = line_of(bank, row, column);
            let at = b.system.shared.now + 7;
            if write {
                b.write(at, Write::words(WriteClass::Data, line.word(word), &[value]), i as u64 + 1);
                stored.store(line.word(word), value);
            } else {
                b.read(at, line, i as u64 + 1);
            }
            lines.push(line);
            if value == 4 {
                b.settle();
            }
        }
        b.end();
        prop_assert_eq!(b.reads().len() + b.on_durable().len(), requests.len());
        for &line in &lines {
            prop_assert_eq!(b.system.content(line), stored.load_line(line));
        }
        let mut survives = b.system.shared.media.clone();
        for (line, mask, data) in b.system.surviving() {
            for word in graven::memory::words_in(mask) {
                survives.store(line.word(word), data[word]);
            }
        }
        for &line in &lines {
            prop_assert_eq!(survives.load_line(line), stored.load_line(line));
        }
        b.system.flush_buffers();
        for line in lines {
            prop_assert_eq!(b.system.shared.media.load_line(line), stored.load_line(line));
        }
    }
}
