//! Triple-level cells and codecs in the memory modules, through the whole memory system: every latency and
//! energy in closed form.
//!
//! Bug class: a write takes a latency or an energy that no programmed cell has; cells that do not change are
//! programmed; a codec is used on what it must not touch, or what it stores cannot be read.

use crate::common::memory::{Bench, line_of, quiet};
use graven::codecs::{Coding, Codings, kept};
use graven::config::Config;
use graven::memory::{LineAddr, LineData};
use graven::request::{Write, WriteClass};
use graven::time::Cycle;
use proptest::prelude::*;

/// One bank's line on a device of triple-level cells at 1 GHz (a cycle is a nanosecond), no on-PM buffer.
fn config(settings: &[(&str, &str)]) -> Config {
    let cells = [
        ("core.frequency_mhz", "1000"),
        ("pm.buffer_lines", "0"),
        ("pm.cells", "tlc-rram"),
        ("pm.read_ns", "25.0"),
        ("pm.row_write_pj_per_bit", "0.0"),
        ("pm.burst_ns", "1.0"),
    ];
    let settings: Vec<_> = cells.iter().chain(settings).copied().collect();
    quiet(&settings)
}

const LINE: fn() -> LineAddr = || line_of(0, 0, 0);

/// Writes lines one after another, with the bank idle in between; returns how long each took, and the bench.
fn write_all(settings: &[(&str, &str)], writes: &[Write]) -> (Vec<Cycle>, Bench) {
    let mut bench = Bench::new(&config(settings));
    let mut took = Vec::new();
    for write in writes {
        let now = bench.system.shared.now + 10_000;
        let before = bench.programmed().len();
        bench.write(now, *write, 1);
        bench.run();
        took.push(bench.programmed().get(before).map_or(0, |end| end - now));
    }
    (took, bench)
}

fn data(content: LineData) -> Write {
    Write::line(WriteClass::Data, LINE(), content)
}

/// A line whose first cell is in a state, the others in 000. (Raw, a cell holds three bits, the lowest first.)
fn first_cell(state: u64) -> Write {
    data([state, 0, 0, 0, 0, 0, 0, 0])
}

/// Claims morlog-cfg-tlc-*: Table III, state by state.
#[test]
fn a_write_takes_as_long_as_its_slowest_programmed_cell() {
    let table = [
        (1, 47, 6.7),
        (2, 99, 19.3),
        (3, 143, 35.1),
        (4, 150, 35.6),
        (5, 101, 19.6),
        (6, 53, 8.5),
        (7, 13, 1.5),
    ];
    for (state, cycles, pj) in table {
        let (took, bench) = write_all(&[], &[first_cell(state)]);
        assert_eq!(took, [cycles], "state {state:03b}: its latency, rounded up to cycles");
        assert_eq!(bench.stats().write_energy.pj(), pj, "state {state:03b}");
        assert_eq!(bench.counters().media_cells_programmed, 1);
    }
    let (took, bench) = write_all(&[], &[data([0b111_100, 0, 0, 0, 0, 0, 0, 0])]);
    assert_eq!((took, bench.counters().media_cells_programmed), (vec![150], 2));
    assert_eq!(bench.stats().write_energy.pj(), 35.6 + 1.5);
}

#[test]
fn only_cells_that_change_are_programmed() {
    let again =
        [first_cell(4), data([0b111_100, 0, 0, 0, 0, 0, 0, 0]), first_cell(4), first_cell(4)];
    let (took, bench) = write_all(&[], &again);
    assert_eq!(took, [150, 13, 16, 0], "the slow cell stays; the second goes to 111, back to 000");
    let c = bench.counters();
    assert_eq!((c.media_cells_programmed, c.media_writes_suppressed), (3, 1));
    assert_eq!(c.media_bits_programmed, 1 + 3 + 3);
}

/// Claim `morlog-sens-nvm-latency` varies it from 1 to 32.
#[test]
fn latencies_scale() {
    let (took, _) = write_all(&[("pm.write_scale", "32")], &[first_cell(7)]);
    assert_eq!(took, [388], "32 times 12.1 ns, rounded up");
}

/// Claim `morlog-slde-selection-rule`: what is compressed uses the fewest states that hold it.
#[test]
fn a_compressed_line_uses_cheap_states_only() {
    let zeros = [0; 8];
    let small = [1, 2, 3, 4, 5, 6, 7, 8];
    let (took, bench) = write_all(&[("pm.codec", "crade")], &[data(small), data(zeros)]);
    assert!(took.iter().all(|&t| (1..=16).contains(&t)), "{took:?}: two states, 111 and 000");
    assert!(bench.counters().media_cells_programmed <= 2 * 172);
    let (took, _) = write_all(&[("pm.codec", "crade"), ("pm.expansion", "false")], &[data(small)]);
    assert!(took[0] > 16, "{took:?}: all states without expansion");
}

/// Log data coded by DLDC is what is read back of it: without its clean bytes.
#[test]
fn log_words_by_dldc_lose_their_clean_bytes_and_cost_less() {
    let (word, dirty) = (0x1234_5678_9abc_de01, 0b1);
    let coding = Coding::Dldc { dirty };
    let mut codings = Codings::FPC;
    (0..8).for_each(|i| codings.set(i, coding));
    let whole = Write::line(WriteClass::Log, LINE(), [word; 8]);
    let partial = Write::line(WriteClass::Log, LINE(), [kept(word, coding); 8]).coded(codings);
    let (_, by_fpc) = write_all(&[("pm.codec", "slde")], &[whole]);
    let (_, by_dldc) = write_all(&[("pm.codec", "slde")], &[partial]);
    let bits = |bench: &Bench| bench.counters().log_bits_coded;
    assert_eq!(bits(&by_fpc), 512, "eight words without a pattern are stored as they are");
    assert_eq!(bits(&by_dldc), 8 * (3 + 2), "a tag and two bits each");
    assert!(by_dldc.stats().write_energy.pj() < by_fpc.stats().write_energy.pj() / 5.0);
    assert_eq!(by_dldc.system.content(LINE()), [1; 8]);
}

/// One bit each and every change alike: what a codec changes then is how many bits change.
#[test]
fn uniform_cells_with_a_codec_take_what_every_write_takes() {
    let settings = [("pm.cells", "uniform"), ("pm.codec", "crade"), ("pm.write_ns", "150.0")];
    let (took, bench) = write_all(&settings, &[first_cell(4), first_cell(4)]);
    assert_eq!(took, [150, 0]);
    assert_eq!(
        bench.counters().media_cells_programmed > 0,
        bench.counters().media_bits_programmed > 0
    );
}

#[test]
fn wear_is_counted_by_groups_of_cells() {
    let flips = [first_cell(7), first_cell(0), first_cell(7)];
    let (_, bench) = write_all(&[], &flips);
    assert_eq!(bench.system.shared.cells.peak_wear(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever is written in whatever order, over a populated image too, is there afterwards.
    #[test]
    fn content_survives_codecs_and_partial_writes(
        initial: [u64; 8],
        writes in proptest::collection::vec((any::<[u64; 8]>(), 1u8.., any::<bool>()), 1..12),
        codec in prop_oneof![Just("none"), Just("crade"), Just("slde")],
        lines in prop_oneof![Just("0"), Just("2")],
    ) {
        let mut bench = Bench::new(&config(&[("pm.codec", codec), ("pm.buffer_lines", lines)]));
        bench.system.shared.media.store_line(LINE(), &initial);
        let mut expected = initial;
        for (content, mask, log) in writes {
            let class = if log { WriteClass::Log } else { WriteClass::Data };
            let at = bench.system.shared.now + 1;
            bench.write(at, Write::line(class, LINE(), content).masked(mask), 1);
            bench.run();
            (0..8).filter(|i| mask >> i & 1 != 0).for_each(|i| expected[i] = content[i]);
        }
        bench.system.flush_buffers();
        prop_assert_eq!(bench.system.shared.media.load_line(LINE()), expected);
    }
}
