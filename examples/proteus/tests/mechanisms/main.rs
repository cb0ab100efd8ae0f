//! Each mechanism, with its parameter and its statistic, in runs that arithmetic can follow.

mod script;

use graven::program::Op;
use graven::sim::Simulation;
use graven::stats::Counts;
use script::{load, registry, script, settle, silo, store, transaction};

/// Words of 32 blocks in as many lines.
fn lines() -> impl Iterator<Item = u64> {
    (0..32).map(|line| line * 64)
}

/// A run of one thread whose lines are in its L1 when the operations begin.
fn finished(design: &str, settings: &[(&str, &str)], operations: Vec<Op>) -> Simulation {
    let warm = lines().map(load).chain([settle()]);
    let operations: Vec<Op> = warm.chain(operations).collect();
    let mut simulation = script(&silo(settings), design, &[operations]);
    simulation.run().unwrap_or_else(|e| panic!("{e}"));
    simulation
}

fn run(design: &str, settings: &[(&str, &str)], operations: Vec<Op>) -> Counts {
    finished(design, settings, operations).counts()
}

fn cycles(settings: &[(&str, &str)], operations: Vec<Op>) -> u64 {
    finished("proteus", settings, operations).stats().core_cycles[0]
}

/// A log-load takes an access to the L1, its log-flush a way to the controller, the acknowledgement a way back.
#[test]
fn a_store_waits_for_the_way_to_the_controller_and_back() {
    let of = |bypass: &str| {
        cycles(&[("controller.bypass_cycles", bypass)], transaction([0]))
            - cycles(&[("controller.bypass_cycles", bypass)], vec![Op::TxBegin, Op::TxEnd])
    };
    // Beside the two of the log-flush there are the message for which the fence waits, and two of the tx-end.
    assert_eq!(of("40") - of("8"), 5 * (40 - 8));
}

/// Log-flushes of different blocks are on their way together, as long as the log queue has places for them.
#[test]
fn the_log_queue_overlaps_log_flushes() {
    let with = |entries| {
        let settings = [
            ("proteus.logq_entries", entries),
            ("proteus.log_registers", "1"),
            ("controller.bypass_cycles", "100"),
        ];
        cycles(&settings, transaction(lines().take(8)))
    };
    let round_trip = 4 + 2 * 100;
    let (one, eight) = (with("1"), with("8"));
    assert!(one - eight >= 6 * round_trip && one - eight <= 7 * round_trip, "{one}, {eight}");
    let stats = run("proteus", &[("proteus.logq_entries", "4")], transaction(lines()));
    assert!(stats["log_buffer_max"] <= 4);
}

/// An out-of-order core issues all stores before the lines of any have come. Their log-flushes leave when the lines are
/// there, and not one after the other when each is the oldest store.
#[test]
fn log_flushes_of_lines_that_missed_overlap_too() {
    let with = |stores: usize| {
        let settings = [("core.model", "out-of-order"), ("controller.bypass_cycles", "100")];
        let words = lines().take(stores).map(|addr| (1 << 20) + addr);
        let mut simulation = script(&silo(&settings), "proteus", &[transaction(words)]);
        simulation.run().unwrap_or_else(|e| panic!("{e}"));
        simulation.stats().core_cycles[0]
    };
    let round_trip = 4 + 2 * 100;
    assert!(with(8) - with(1) < 3 * round_trip, "{} and {}", with(8), with(1));
}

/// A log register is taken until the log queue has a place, which is what everything waits for: one is enough.
#[test]
fn more_log_registers_do_not_shorten_the_wait_for_the_log_queue() {
    let with = |registers| {
        let settings = [
            ("proteus.logq_entries", "1"),
            ("proteus.log_registers", registers),
            ("controller.bypass_cycles", "100"),
        ];
        cycles(&settings, transaction(lines().take(8)))
    };
    assert_eq!(with("8"), with("1"));
}

#[test]
fn the_log_lookup_table_spares_log_flushes() {
    let stores = || [0, 64, 0, 64, 0, 64];
    let known = run("proteus", &[], transaction(stores()));
    assert_eq!((known["log_entries"], known["log_entries_merged"]), (2, 4));
    let replaced = run("proteus", &[("proteus.llt_entries", "1")], transaction(stores()));
    assert_eq!((replaced["log_entries"], replaced["log_entries_merged"]), (6, 0));
    // It is cleared at the end of a transaction.
    let twice = run("proteus", &[], [transaction([0]), transaction([0])].concat());
    assert_eq!((twice["log_entries"], twice["log_entries_merged"]), (2, 0));
}

/// The repair: another word of a block is logged again; blocks that are logged whole are logged once.
#[test]
fn words_of_a_block_are_logged_one_by_one() {
    let words = || transaction([0, 8, 16, 24, 32]);
    assert_eq!(run("proteus", &[], words())["log_entries"], 5);
    assert_eq!(run("proteus-literal", &[], words())["log_entries"], 2);
}

/// Of four entries the log pending queue drops three and writes the last; without it all are written.
#[test]
fn entries_of_an_ended_transaction_are_dropped() {
    const ENTRY: u64 = 6 * 8;
    let four = || transaction([0, 64, 128, 192]);
    let stats = run("proteus", &[], four());
    assert_eq!((stats["log_entries"], stats["log_entries_discarded"]), (4, 3));
    assert_eq!((stats["log_queue_max"], stats["log_bytes_written"]), (4, ENTRY));
    let without = run("proteus-without-lpq", &[], four());
    // The end is marked by a word of its own.
    assert_eq!(
        (without["log_entries_discarded"], without["log_bytes_written"]),
        (0, 4 * ENTRY + 8)
    );
}

/// Two places: three of five entries go to PM before the transaction ends.
#[test]
fn a_full_log_pending_queue_writes_its_oldest_entries() {
    let five = || transaction(lines().take(5));
    let stats = run("proteus", &[("proteus.lpq_entries", "2")], five());
    assert_eq!(stats["log_queue_max"], 2);
    assert!(stats["log_overflows"] >= 3, "{}", stats["log_overflows"]);
    // Half of eight places are to stay free.
    let settings = [("proteus.lpq_entries", "8"), ("proteus.lpq_spill_percent", "50")];
    assert_eq!(run("proteus", &settings, five())["log_overflows"], 2);
    assert_eq!(run("proteus", &settings[..1], five())["log_overflows"], 0);
}

/// The two readings of the last entry of a transaction.
#[test]
fn the_last_entry_is_written_or_kept() {
    let three =
        || [transaction([0]), transaction([64]), transaction([128]), vec![settle()]].concat();
    let written = run("proteus", &[], three());
    assert_eq!((written["log_bytes_written"], written["log_entries_discarded"]), (3 * 48, 0));
    let kept = run("proteus", &[("proteus.end_entry", "kept")], three());
    assert_eq!((kept["log_bytes_written"], kept["log_entries_discarded"]), (0, 2));
}

/// Two more instructions for each store, whether its log-load has something to do or not.
#[test]
fn log_instructions_are_instructions_of_the_thread() {
    let stores = || transaction([0, 0, 64]);
    let ideal = run("ideal", &[], stores())["instructions"];
    let clwb_and_fence = 2 + 1;
    assert_eq!(run("proteus", &[], stores())["instructions"] - ideal, 3 * 2 + clwb_and_fence);
    let settings = [("proteus.instructions_per_store", "5")];
    assert_eq!(run("proteus", &settings, stores())["instructions"] - ideal, 3 * 5 + clwb_and_fence);
}

/// An area of four slots has room for three entries: the fourth is the end of the transaction before.
#[test]
fn a_transaction_that_does_not_fit_its_log_area_is_refused() {
    let settings = [("proteus.log_bytes_per_thread", "256")];
    let run = |words: u64| {
        let operations = [transaction(lines().take(3)), transaction(lines().take(words as usize))];
        script(&silo(&settings), "proteus", &[operations.concat()]).run()
    };
    assert!(run(3).is_ok());
    let refusal = run(4).expect_err("it does not fit").to_string();
    assert!(refusal.contains("proteus.log_bytes_per_thread"), "{refusal}");
}

/// A transaction that stores nothing leaves nothing in the log; stores outside transactions are not logged.
#[test]
fn only_transactional_stores_are_logged() {
    let operations = vec![Op::TxBegin, load(0), Op::TxEnd, store(64, 1)];
    let stats = run("proteus", &[], operations);
    assert_eq!((stats["log_entries"], stats["log_bytes_written"]), (0, 0));
}

#[test]
fn the_cost_sheet_counts_what_the_parameters_say() {
    let mut config = registry().machine("silo").expect("it ships");
    config.set("proteus.log_registers", "3").expect("a valid number");
    let items = (graven_proteus::INFO.cost.items)(&config);
    let of = |name: &str| items.iter().find(|item| item.name == name).expect("it is there");
    assert_eq!(of("log-registers").value(), 3.0 * 64.0);
    assert_eq!(of("log-lookup-table").value(), 64.0 * (43.0 + 4.0));
    assert_eq!(of("log-queue").value(), 16.0 * (256.0 + 43.0 + 4.0 + 16.0 + 48.0));
    assert_eq!(of("log-pending-queue").value(), 256.0 * (256.0 + 43.0 + 4.0 + 16.0 + 48.0 + 71.0));
}
