//! The contract that every design must keep, whatever it does inside.
//!
//! Bug class: a design loses an acknowledged transaction, leaves part of an unfinished one, or changes
//! what nobody wrote, when power fails at some unlucky cycle.

use crate::common::registry;
use std::collections::BTreeMap;

use crate::common::script::{compute, transaction};
use crate::common::{CELLS, Crashes, Part, crash_often, simulation, tiny_config, with_each};
use graven::config::Config;
use graven::design::{DesignInfo, MutantSet};

use graven::memory::Addr;
use graven::program::Op;
use graven::sim::{Observer, SimError, Simulation};
use graven::time::NEVER;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

fn variants() -> Vec<(&'static str, Config)> {
    vec![
        ("tiny caches", tiny_config(&[])),
        (
            "roomy caches",
            tiny_config(&[("l1.bytes", "32 KB"), ("l2.bytes", "64 KB"), ("llc.bytes", "1 MB")]),
        ),
        (
            "small queue",
            tiny_config(&[("controller.write_queue_entries", "4"), ("pm.buffer_lines", "2")]),
        ),
        ("no buffer", tiny_config(&[("pm.buffer_lines", "0")])),
        (
            "one queue, rows written back",
            tiny_config(&[
                ("controller.scheduler", "frfcfs"),
                ("controller.write_queue_entries", "6"),
                ("pm.row_writes", "write-back"),
                ("pm.buffer_lines", "0"),
            ]),
        ),
        (
            "no ADR, rows by their table",
            tiny_config(&[
                ("controller.adr", "false"),
                ("controller.scheduler", "frfcfs-wqf"),
                ("controller.row_hit_limit", "4"),
                ("pm.row_writes", "hit-or-conflict"),
                ("pm.buffer_lines", "0"),
            ]),
        ),
        (
            "drains alone, rows opened first",
            tiny_config(&[
                ("controller.scheduler", "frfcfs-wqf"),
                ("controller.write_queue_entries", "8"),
                ("controller.short_bursts", "true"),
                ("controller.data_bus", "at-transfer"),
                ("pm.row_writes", "activate"),
            ]),
        ),
        (
            "four channels",
            tiny_config(&[
                ("controller.channels", "4"),
                ("controller.interleave", "line"),
                ("controller.write_queue_entries", "4"),
            ]),
        ),
        ("no ADR", tiny_config(&[("controller.adr", "false"), ("pm.buffer_lines", "0")])),
        ("no ADR, buffer", tiny_config(&[("controller.adr", "false")])),
        (
            "out of order",
            tiny_config(&[
                ("core.model", "out-of-order"),
                ("core.issue_width", "4"),
                ("core.mshrs", "2"),
            ]),
        ),
        (
            "two levels, two threads per core",
            tiny_config(&[("l2.bytes", "0"), ("core.count", "2"), ("core.threads_per_core", "2")]),
        ),
        (
            "out of order, two threads per core, no ADR",
            tiny_config(&[
                ("core.model", "out-of-order"),
                ("core.issue_width", "4"),
                ("core.count", "2"),
                ("core.threads_per_core", "2"),
                ("core.store_queue_entries", "8"),
                ("controller.adr", "false"),
            ]),
        ),
    ]
}

/// Designs and machines take turns in the tests that every edit runs: a design meets one machine in this number,
/// and each meets several of the others.
const MACHINES_ONE_IN: usize = 4;

/// A design, a machine, and what the machine is called.
type Pair = (&'static DesignInfo, &'static str, Config);

/// Returns some designs, each on the machines that it meets in this part of the cases.
fn pairs(part: Part, designs: impl Iterator<Item = &'static DesignInfo>) -> Vec<Pair> {
    let variants = variants();
    let of = |(number, design): (usize, &'static DesignInfo)| {
        let numbered = variants.iter().enumerate();
        numbered
            .filter(move |&(at, _)| part.has(number + at, MACHINES_ONE_IN))
            .map(move |(_, (name, config))| (design, *name, config.clone()))
    };
    designs.enumerate().flat_map(of).collect()
}

fn all() -> impl Iterator<Item = &'static DesignInfo> {
    registry().designs().iter().copied()
}

fn sound() -> impl Iterator<Item = &'static DesignInfo> {
    all().filter(|d| d.is_sound(&registry().defaults()))
}

#[test]
fn every_edit_meets_every_design_and_every_machine() {
    for designs in [all().collect::<Vec<_>>(), sound().collect()] {
        let met = pairs(Part::Edit, designs.iter().copied());
        let rest = pairs(Part::Long, designs.iter().copied());
        assert_eq!(met.len() + rest.len(), designs.len() * variants().len());
        assert!(designs.iter().all(|design| met.iter().any(|pair| pair.0.name == design.name)));
        assert!(variants().iter().all(|(name, _)| met.iter().any(|pair| pair.1 == *name)));
    }
}

#[test]
fn safe_designs_recover_to_a_committed_state_at_any_cycle_on_some_machines() {
    recover_at_any_cycle(Part::Edit);
}

#[test]
#[ignore = "long: every design on all other machines"]
fn safe_designs_recover_to_a_committed_state_at_any_cycle() {
    recover_at_any_cycle(Part::Long);
}

fn recover_at_any_cycle(part: Part) {
    with_each(&pairs(part, sound()), |(design, name, config)| {
        for seed in 0..2 {
            let mut simulation = simulation(config, design.name, &CELLS, 4, 60, seed);
            let Crashes { number: crashes, broken, .. } = crash_often(&mut simulation, seed, 1000);
            assert!(crashes > 20, "{} on {name}: only {crashes} crashes", design.name);
            assert!(
                broken.is_empty(),
                "{} on {name}, seed {seed}: {:#?}",
                design.name,
                &broken[..broken.len().min(3)]
            );
        }
    });
}

const CRASHES_PER_WORKLOAD: u32 = 200;

/// Every edit runs one workload in this number with each design, another one with the next design, so that all run.
const WORKLOADS_ONE_IN: usize = 6;

#[test]
fn safe_designs_recover_some_workloads() {
    recover_workloads(Part::Edit);
}

#[test]
#[ignore = "long: every design on all other workloads"]
fn safe_designs_recover_all_other_workloads() {
    recover_workloads(Part::Long);
}

/// Each design is crashed a few hundred times in each workload, private and shared.
fn recover_workloads(part: Part) {
    let settings = [
        ("workload.footprint_bytes", "128 KB"),
        ("workload.remove_percent", "30"),
        ("workload.insert_percent", "50"),
        ("echo.batch_puts", "2"),
    ];
    with_each(&Vec::from_iter(sound().enumerate()), |&(number, design)| {
        let all = registry().programs().enumerate();
        for (_, workload) in all.filter(|(place, _)| part.has(place + number, WORKLOADS_ONE_IN)) {
            // Transactions of TPC-C are longer, and there is but one way to run it.
            let (transactions, step_max, ways) =
                if workload.name == "tpcc" { (24, 3000, 1) } else { (120, 300, 2) };
            for sharing in ["shared", "private"].into_iter().take(ways) {
                let mut config = tiny_config(&settings);
                config.set("workload.sharing", sharing).expect("a known choice");
                let mut crashes = 0;
                for seed in 0.. {
                    let mut simulation =
                        simulation(&config, design.name, workload, 4, transactions, seed);
                    let Crashes { number, broken, .. } =
                        crash_often(&mut simulation, seed, step_max);
                    crashes += number;
                    assert!(
                        broken.is_empty(),
                        "{} on {sharing} {}, seed {seed}: {:#?}",
                        design.name,
                        workload.name,
                        &broken[..broken.len().min(3)]
                    );
                    if crashes >= CRASHES_PER_WORKLOAD {
                        break;
                    }
                }
            }
        }
    });
}

/// A transaction that finds no room waits for others, or is refused with the reason; nobody waits for ever, whatever the
/// others do: small transactions, large ones, and such as store nothing and are open while it waits.
#[test]
fn nobody_waits_for_ever_for_room() {
    let empty = [Op::TxBegin, compute(300_000), Op::TxEnd];
    let program = |thread: u64, order: u32| -> Vec<Op> {
        let lines = |first: u64, count: u64| -> Vec<(u64, u64)> {
            let start = 0x1000 + 0x10_0000 * thread;
            (first..first + count).map(|n| (start + 64 * n + 8 * (n % 8), n)).collect()
        };
        let large = transaction(&lines(0, 400));
        let small: Vec<Op> = (0..12).flat_map(|n| transaction(&lines(400 + n, 3))).collect();
        match (u64::from(order) + thread) % 4 {
            0 => [&large[..], &small, &empty].concat(),
            1 => [&empty[..], &large, &small].concat(),
            2 => [&small[..], &empty, &large].concat(),
            _ => empty.to_vec(),
        }
    };
    with_each(&Vec::from_iter(sound()), |design| {
        let (mut random, mut runs) = (Pcg64::seed_from_u64(7), 0);
        for order in 0..STRESSED {
            let (config, settings) = stressed(design, &mut random);
            for threads in 2..=3 {
                let programs: Vec<Vec<Op>> = (0..threads).map(|t| program(t, order)).collect();
                let programs: Vec<&[Op]> = programs.iter().map(Vec::as_slice).collect();
                let Ok(mut run) = graven::script::simulation(&config, design, &programs) else {
                    continue;
                };
                runs += 1;
                match run.run() {
                    Ok(_) | Err(SimError::Design { .. }) => {}
                    Err(e) => panic!("{} with {settings:?}: {e}", design.name),
                }
            }
        }
        assert!(runs > STRESSED, "{}: {runs} of {} runs", design.name, 2 * STRESSED);
    });
}

/// Machines under stress per design.
const STRESSED: u32 = 24;

/// A machine on which a design has little room: some of the values that it declares for that.
fn stressed(
    design: &DesignInfo,
    random: &mut Pcg64,
) -> (Config, Vec<(&'static str, &'static str)>) {
    let mut settings = Vec::new();
    for (keys, values) in design.stress {
        if random.random_ratio(2, 3) {
            let value = values[random.random_range(0..values.len())];
            settings.extend(keys.split('+').zip(value.split('+')));
        }
    }
    (tiny_config(&settings), settings)
}

/// What batteries would save, and the registers.
type Left = (BTreeMap<Addr, u64>, Vec<u64>);

fn left(simulation: &mut Simulation) -> Left {
    let crash = simulation.crash();
    (crash.image.newest(0), crash.registers.clone())
}

/// Looks for changes of it that are not announced.
struct Announced {
    announced: u64,
    left: Left,
    looks: u64,
    unannounced: u64,
}

impl Observer for Announced {
    fn after_action(&mut self, simulation: &mut Simulation) {
        let announced = simulation.machine().memory.shared.durability.changes;
        let left = left(simulation);
        self.unannounced += u64::from(announced == self.announced && left != self.left);
        (self.announced, self.left) = (announced, left);
        self.looks += 1;
    }
}

/// Crash points are where the durable state changes; a design must say when its own does.
#[test]
fn what_a_power_failure_leaves_changes_at_crash_points_only_on_some_machines() {
    announce_changes(Part::Edit);
}

#[test]
#[ignore = "long: every design on all other machines"]
fn what_a_power_failure_leaves_changes_at_crash_points_only() {
    announce_changes(Part::Long);
}

fn announce_changes(part: Part) {
    with_each(&pairs(part, all()), |(design, name, config)| {
        let mut simulation = simulation(config, design.name, &CELLS, 4, 24, 1);
        graven::lab::checker::attach(&mut simulation);
        let left = left(&mut simulation);
        let mut watch = Announced { announced: 0, left, looks: 0, unannounced: 0 };
        simulation.advance_observed(NEVER, &mut watch).unwrap_or_else(|e| panic!("{e}"));
        simulation.finish_observed(&mut watch).unwrap_or_else(|e| panic!("{e}"));
        assert!(watch.looks > 1000, "{} on {name}: {} looks", design.name, watch.looks);
        assert_eq!(watch.unannounced, 0, "{} on {name}", design.name);
    });
}

#[test]
fn unsafe_designs_violate() {
    for design in registry().designs().iter().filter(|d| !d.is_safe(&registry().defaults())) {
        // On some machine: a line that overtakes its record does so for a few cycles only.
        let is_caught = |(_, config): (&str, Config)| {
            let mut simulation = simulation(&config, design.name, &CELLS, 4, 60, 1);
            !crash_often(&mut simulation, 1, 500).broken.is_empty()
        };
        assert!(variants().into_iter().any(is_caught), "{} was never caught", design.name);
    }
}

const TRANSACTIONS: u64 = 40;

#[test]
fn designs_leave_the_same_data_and_the_same_run_twice_is_the_same_on_some_machines() {
    leave_the_same(Part::Edit);
}

#[test]
#[ignore = "long: every design on all other machines"]
fn every_design_leaves_the_same_data_and_the_same_run_twice_is_the_same() {
    leave_the_same(Part::Long);
}

fn leave_the_same(part: Part) {
    // What is left depends on what was stored, and on no machine.
    let expected = simulation(&tiny_config(&[]), "ideal", &CELLS, 4, TRANSACTIONS, 7).run();
    let expected = expected.unwrap_or_else(|e| panic!("{e}"));
    with_each(&pairs(part, all()), |(design, name, config)| {
        let run = || {
            let mut simulation = simulation(config, design.name, &CELLS, 4, TRANSACTIONS, 7);
            simulation.run().map(|digest| (digest, simulation.stats().counters.clone()))
        };
        let first = run();
        assert_eq!(first, run(), "{} on {name}: two runs differ", design.name);
        let (digest, counters) = match first {
            Ok(left) => left,
            // What is published may lose data in any run.
            Err(SimError::ReadCheck { .. }) if design.inherent != MutantSet::NONE => return,
            Err(error) => panic!("{} on {name}: {error}", design.name),
        };
        assert_eq!(counters.committed_transactions, TRANSACTIONS, "{} on {name}", design.name);
        assert!(counters.reads_checked > 0, "{} on {name}", design.name);
        assert_eq!(digest, expected, "{} on {name}: the final image differs", design.name);
    });
}

/// The statistics of stalls that have no timeline of their own: what a core does for others.
const NOT_WAITS: &str = "stall_interrupt_cycles";

#[test]
fn a_timeline_of_a_whole_run_has_what_is_counted_and_changes_nothing() {
    let transactions = 24;
    with_each(&pairs(Part::Edit, all()), |(design, name, config)| {
        let run = |is_kept: bool| {
            let mut simulation = simulation(config, design.name, &CELLS, 4, transactions, 1);
            if is_kept {
                simulation.keep_timeline(0..transactions);
            }
            let digest = simulation.run().unwrap_or_else(|e| panic!("{}: {e}", design.name));
            (simulation.record(digest), simulation)
        };
        let ((plain, _), (record, simulation)) = (run(false), run(true));
        let which = format!("{} on {name}", design.name);
        assert_eq!(record, plain, "{which}: it is looked at, not changed");

        let mut text = Vec::new();
        simulation.write_timeline(&mut text).expect("memory takes everything");
        let written: serde_json::Value = serde_json::from_slice(&text).expect("it is JSON");
        let events = written["traceEvents"].as_array().expect("a list");
        let is = |event: &serde_json::Value, phase: &str, group: u32| {
            event["ph"] == phase && event["pid"] == group
        };
        let cycles = |event: &serde_json::Value| {
            let at = |key: &str| event["args"][key].as_u64().expect("a cycle");
            at("until").checked_sub(at("from")).expect("it ends after it began")
        };
        let wanted = events.iter().filter(|e| e["args"]["wanted"] == true);
        let mut lengths: Vec<u64> = wanted.map(cycles).collect();
        assert_eq!(lengths.len() as u64, transactions, "{which}");
        lengths.sort_unstable();
        let longest = record["stats"]["transaction_latency_cycles_max"].as_u64();
        assert_eq!(lengths.last().copied(), longest, "{which}");

        let stalls =
            record["stats"].as_object().expect("statistics").iter().filter_map(|(key, value)| {
                Some((key.strip_prefix("stall_")?.strip_suffix("_cycles")?, value))
            });
        for (cause, counted) in stalls.filter(|(cause, _)| !NOT_WAITS.contains(cause)) {
            let of = |event: &&serde_json::Value| event["name"] == format!("waits: {cause}");
            let waited: u64 = events.iter().filter(of).map(cycles).sum();
            let counted = counted.as_u64().expect("a count");
            assert!(waited <= counted, "{which}: {cause}, {waited} of {counted}");
            assert!(cause != "commit" || waited == counted, "{which}: {waited} of {counted}");
        }
        let classes = [
            ("log", "controller_write_requests_log"),
            ("data", "controller_write_requests_data"),
            ("metadata", "controller_write_requests_metadata"),
            ("gc", "controller_write_requests_gc"),
        ];
        for (class, counter) in classes {
            let durable = events.iter().filter(|e| is(e, "b", 2) && e["name"] == class).count();
            let counted = record["stats"][counter].as_u64().expect("a count");
            assert!(durable as u64 <= counted, "{which}: {durable} of {counted} {class}");
        }
        let reads = events.iter().filter(|e| is(e, "X", 3) && e["name"] == "read").count();
        let counted = record["stats"]["controller_read_requests"].as_u64().expect("a count");
        assert!(reads as u64 <= counted, "{which}: {reads} of {counted} reads");
        assert!(events.iter().any(|e| is(e, "X", 3)), "{which}: the device works");
    });
}
