//! The crash laboratory itself, and every design in it.
//!
//! Bug class: a design breaks its guarantee at some crash point that nobody happened to look at; or the
//! laboratory is blind: to a crash point, to a mutant, to a violation that its own replay shows.

use crate::common::registry;
use crate::{find, outcome_of, read, sound};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use crate::common::{CELLS, Part, simulation, tiny_config, with_each};
use graven::design::{
    Battery, Design, DesignContext, DesignInfo, Guarantee, NoEvent, RecoveryReport, Unused, plug,
};

use graven::lab::campaign::{Report, RunCampaign, Schedules};
use graven::lab::explorer::{CrashRun, NextLife, Outcome, Tally, Thoroughness};
use graven::lab::litmus::{CrashAt, Litmus, Step, parse};
use graven::lab::minimise::{End, RUNS, minimise};
use graven::memory::{Addr, Field, Image, words_in};
use graven::program::Program;
use graven::sim::{Observer, Programs, Recovered, SimError, Simulation, Spec};
use graven::surviving::SurvivingImage;
use graven::time::NEVER;
use graven::workload::{BrokenInvariant, Workload};

fn campaign(design: &'static DesignInfo, mutant: Option<&str>, seeds: u64) -> Schedules<'static> {
    campaign_from(design, mutant, (1, seeds))
}

/// Runs a campaign of a number of seeds, from a first one on.
fn campaign_from(
    design: &'static DesignInfo,
    mutant: Option<&str>,
    seeds: (u64, u64),
) -> Schedules<'static> {
    let mutant = mutant.map(str::to_owned);
    Schedules::new(registry(), design, mutant, Vec::new(), seeds, 1)
        .unwrap_or_else(|e| panic!("{}: {e}", design.name))
}

/// Schedules within which a design that is not sound must be violated.
const SCHEDULES: u64 = 600;

/// Schedules of each sound design; `make campaigns` has thousands.
const SCHEDULES_ALL: u64 = 160;

/// How many of them every edit runs.
const SCHEDULES_EDIT: u64 = 40;

#[test]
fn sound_designs_keep_their_guarantee_in_some_schedules_of_the_adversary() {
    keep_under_the_adversary(Part::Edit);
}

#[test]
#[ignore = "long: minutes of schedules"]
fn sound_designs_keep_their_guarantee_in_more_schedules_of_the_adversary() {
    keep_under_the_adversary(Part::Long);
}

fn keep_under_the_adversary(part: Part) {
    let (first, schedules) = part.seeds(SCHEDULES_EDIT, SCHEDULES_ALL);
    with_each(&sound(), |&design| {
        let campaign = campaign_from(design, None, (first, schedules));
        let report = campaign.run().unwrap_or_else(|e| panic!("{e}"));
        if let Some(finding) = report.findings.first() {
            let replay = finding.replay.as_ref().expect("schedules are programs");
            panic!("{}:\n{replay}\n{}", design.name, finding.timeline);
        }
        let refused = report.refused as f64 / schedules as f64;
        assert!(refused < 0.2, "{}: {refused}: {:?}", design.name, report.refusal);
        let not: Vec<&str> = report.coverage.iter().filter(|s| s.2 == 0).map(|s| s.0).collect();
        println!("{}: {:?}, not reached: {not:?}", design.name, report.tally);
    });
}

/// Schedules within which each mutant must be killed, if no program of the library is for it.
const SCHEDULES_FOR_MUTANT: u64 = 2000;

/// A program of the library that is for a mutant of a design.
fn program_for(design: &DesignInfo, mutant: &str) -> Option<Litmus> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus").join(design.name);
    let files = std::fs::read_dir(folder).ok()?.map(|f| f.expect("readable").path());
    let texts = files.map(|file| std::fs::read_to_string(file).expect("readable"));
    let programs = texts.map(|text| read(&text));
    programs.into_iter().find(|p| p.mutant.as_deref() == Some(mutant))
}

/// Every edit tries one of a design's mutants in this number.
const MUTANTS_ONE_IN: usize = 9;

#[test]
fn some_mutants_are_killed() {
    kill_mutants(Part::Edit);
}

#[test]
#[ignore = "long: minutes of schedules"]
fn all_other_mutants_are_killed() {
    kill_mutants(Part::Long);
}

/// Parameter sets of another design share its mutants, which are killed there.
fn kill_mutants(part: Part) {
    let blind = Mutex::new(Vec::new());
    let not = |what: String| blind.lock().expect("no test panics with it").push(what);
    let designs = Vec::from_iter(sound().into_iter().filter(|design| design.settings.is_empty()));
    with_each(&designs, |&design| {
        if design.mutants.len() < 6 {
            not(format!("{} has too few mutants", design.name));
        }
        let numbered = design.mutants.iter().enumerate();
        for (_, mutant) in numbered.filter(|&(number, _)| part.has(number, MUTANTS_ONE_IN)) {
            let (points, by) = match program_for(design, mutant.name) {
                Some(program) => {
                    let outcome = outcome_of(&program, design);
                    let violated = !outcome.violations.is_empty();
                    (violated.then_some(outcome.tally.crash_points), program.title)
                }
                None => {
                    let campaign = campaign(design, Some(mutant.name), SCHEDULES_FOR_MUTANT);
                    let report = campaign.as_drawn().run().unwrap_or_else(|e| panic!("{e}"));
                    let violated = !report.findings.is_empty();
                    let by = format!("{} schedules", report.runs);
                    (violated.then_some(report.tally.crash_points), by)
                }
            };
            match points {
                Some(n) => println!("{} {}: {n} crash points, {by}", design.name, mutant.name),
                None => not(format!("{} {}", design.name, mutant.name)),
            }
        }
    });
    let blind = blind.into_inner().expect("all have ended");
    assert!(blind.is_empty(), "survived: {blind:?}");
}

#[test]
fn designs_that_are_not_sound_violate() {
    for design in registry().designs().iter().filter(|d| !d.is_sound(&registry().defaults())) {
        let campaign = campaign(design, None, SCHEDULES).as_drawn();
        let report = campaign.run().unwrap_or_else(|e| panic!("{e}"));
        assert!(!report.findings.is_empty(), "{} was never violated", design.name);
    }
}

fn spec(design: &DesignInfo, workload: &str, transactions: u64, settings: &[(&str, &str)]) -> Spec {
    let mut config = registry().machine("cramped").expect("the preset loads");
    for (key, value) in settings {
        config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
    }
    registry()
        .spec(config, design.name, workload, Some(4), Some(transactions), 7)
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn ideal_violates_within_a_hundred_crash_points_of_any_workload() {
    for workload in registry().programs() {
        let settings = [("workload.footprint_bytes", "256 KB")];
        let spec = spec(find("ideal"), workload.name, 400, &settings);
        let run = CrashRun::new(&spec, None, Thoroughness::LONG).unwrap_or_else(|e| panic!("{e}"));
        let outcome = run.run(None).unwrap_or_else(|e| panic!("{e}"));
        assert!(!outcome.violations.is_empty(), "{}", workload.name);
        assert!(outcome.tally.crash_points <= 100, "{}: {:?}", workload.name, outcome.tally);
    }
}

/// Every edit crashes one workload in this number with each design, another one with the next design, so that all crash.
const WORKLOADS_ONE_IN: usize = 10;

#[test]
fn sound_designs_keep_their_guarantee_at_every_crash_point_of_some_workloads() {
    crash_workloads(Part::Edit);
}

#[test]
#[ignore = "long: minutes of crash points"]
fn sound_designs_keep_their_guarantee_at_every_crash_point_of_all_other_workloads() {
    crash_workloads(Part::Long);
}

/// Two sizes: one in which threads keep to themselves, and a larger one, of strings, that they share
/// under locks. Two workloads besides with integers, of which a line holds several.
/// Of `silo` that is strict durability (`silo-strict-durability`, §III-D).
fn crash_workloads(part: Part) {
    let sizes = [
        ("64 KB", "64", "record", "private"),
        ("512 KB", "256", "string", "shared"),
        ("64 KB", "8", "record", "private"),
    ];
    let how = Thoroughness { recovery_every: 64, structures_every: 128, ..Thoroughness::LONG };
    let sum = Mutex::new(Tally::default());
    let designs: Vec<_> = sound().into_iter().enumerate().collect();
    with_each(&designs, |&(number, design)| {
        let all = registry().programs().enumerate();
        for (_, workload) in all.filter(|(place, _)| part.has(place + number, WORKLOADS_ONE_IN)) {
            // Transactions of TPC-C are long, and of one size; those of Echo and the tries store more than others'.
            let (transactions, sizes_of) = match workload.name {
                "tpcc" => (16, 1),
                "ctree" | "echo" | "radix-tree" => (20, 2),
                "hash" | "ssca2" => (60, 3),
                _ => (60, 2),
            };
            for (footprint, element, kind, sharing) in sizes.into_iter().take(sizes_of) {
                let settings = [
                    ("workload.footprint_bytes", footprint),
                    ("workload.element_bytes", element),
                    ("workload.element_kind", kind),
                    ("workload.sharing", sharing),
                    ("workload.insert_percent", "50"),
                    ("workload.remove_percent", "30"),
                    ("echo.batch_puts", "2"),
                    // A New-Order has up to 460 records.
                    ("base.log_bytes_per_thread", if transactions < 60 { "16 KB" } else { "8 KB" }),
                    ("opt-redo.log_bytes_per_thread", "64 KB"),
                ];
                let mut spec = spec(design, workload.name, transactions, &settings);
                spec.crash_options.garbage = Some(3);
                let what = format!("{} on {} {sharing}", design.name, workload.name);
                let run = RunCampaign::new(registry(), spec, how.clone())
                    .and_then(|run| run.going_on(2))
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                let report = run.run().unwrap_or_else(|e| panic!("{e}"));
                if let Some(finding) = report.findings.first() {
                    let replay = finding.replay.as_ref().map(ToString::to_string);
                    let (said, replay) = (&finding.violation.what, replay.unwrap_or_default());
                    panic!("{what}: {said}\n{replay}\n{}", finding.timeline);
                }
                assert_eq!(report.refusal, None, "{what}");
                assert!(report.tally.crash_points > 60, "{what}: {:?}", report.tally);
                if !matches!(workload.name, "chain-queue" | "ssca2") {
                    assert!(report.tally.lives > 1, "{what}: {:?}", report.tally);
                }
                sum.lock().expect("no test panics with it").add(&report.tally);
            }
        }
    });
    let sum = sum.into_inner().expect("all have ended");
    assert!(sum.structures > 40 && sum.recovery > 400 && sum.in_flight > 400, "{sum:?}");
}

#[test]
fn a_violation_is_replayed_exactly_by_its_program() {
    let literal = find("silo-literal");
    let campaign = Schedules::new(registry(), literal, None, Vec::new(), (1, 400), 5);
    let campaign = campaign.unwrap_or_else(|e| panic!("{e}"));
    let report = campaign.run().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(report.findings.len(), 5, "{:?}", report.tally);
    for finding in &report.findings {
        let replay = finding.replay.as_ref().expect("schedules are programs");
        let violation = &finding.violation;
        let last = &replay.lives[violation.before.len()].crash;
        let CrashAt::Point { number, failure } = last else { panic!("{replay}") };
        assert_eq!((*number, Some(failure)), (violation.point, violation.failure.as_ref()));
        assert_eq!(replay.lives.len(), violation.before.len() + 1);
        let steps = replay.steps().count();
        assert!(steps <= 60, "{steps} steps are not minimised:\n{replay}");
        let again = outcome_of(replay, literal);
        assert_eq!(again.violations.len(), 1, "{replay}");
        assert_eq!(again.violations[0].cycle, finding.violation.cycle, "{replay}");
        assert!(finding.timeline.rows.iter().any(|r| r.who == "verdict"), "{}", finding.timeline);
    }
}

#[test]
fn a_violation_of_a_workload_becomes_a_program() {
    let spec = spec(find("ideal"), "btree", 100, &[("workload.footprint_bytes", "64 KB")]);
    let run =
        RunCampaign::new(registry(), spec, Thoroughness::LONG).unwrap_or_else(|e| panic!("{e}"));
    let report = run.run().unwrap_or_else(|e| panic!("{e}"));
    let replay = report.findings[0].replay.as_ref().expect("a program that replays it");
    assert!(replay.steps().count() <= 6, "{replay}");
    assert_eq!(outcome_of(replay, find("ideal")).violations.len(), 1, "{replay}");
}

/// Bug class: what a run has found is told when its program is minimised, minutes later; or minimising has no limit.
#[test]
fn a_violation_of_a_run_is_told_before_it_is_minimised_which_has_a_limit() {
    let run = |minimising_runs: u32, disregarded: bool| {
        let config = registry().machine("cramped").expect("it exists");
        let workload = registry().find_workload("btree").expect("registered");
        let spec = Spec::new(config, find("silo-literal"), workload, Some(2), Some(30), 1);
        let spec = spec.unwrap_or_else(|e| panic!("{e}"));
        let run = RunCampaign::new(registry(), spec, Thoroughness::LONG);
        let run = run.unwrap_or_else(|e| panic!("{e}")).minimising(minimising_runs);
        let run = run.disregarding(move || disregarded);
        let (control, over) = (run.control(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let told = scope.spawn(|| {
                while !control.is_minimising() && !over.load(Relaxed) {
                    std::thread::yield_now();
                }
                (control.is_minimising(), control.take_found())
            });
            let report = run.run().unwrap_or_else(|e| panic!("{e}"));
            over.store(true, Relaxed);
            (told.join().expect("it ends"), report)
        })
    };
    let ((is_minimising, told), report) = run(RUNS, false);
    let [line] = &told[..] else { panic!("{told:?}") };
    assert!(is_minimising && line.contains("(crash point "), "{line}");
    let effort = report.findings[0].minimised.expect("it is minimised");
    assert!(effort.ended == End::Least && effort.runs < RUNS, "{effort:?}");
    let steps = |report: &Report| report.findings[0].replay.as_ref().map(|r| r.steps().count());
    let (_, limited) = run(10, false);
    let effort = limited.findings[0].minimised.expect("it is minimised");
    assert_eq!((effort.ended, effort.runs), (End::Limit, 10));
    let ((is_minimising, told), found) = run(0, false);
    assert_eq!((is_minimising, told), (false, vec![line.clone()]));
    assert_eq!(found.findings[0].minimised, None);
    assert!(steps(&report) < steps(&limited) && steps(&limited) < steps(&found));
    let ((_, told), _) = run(1, true);
    assert_eq!(told, Vec::<String>::new());
}

/// A workload whose check lets nothing change below an address, where all data are: its structures are wrong while bytes are
/// right.
struct Strict(Box<dyn Workload>, Addr);

impl Workload for Strict {
    fn populate(&self, image: &mut Image) {
        self.0.populate(image);
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        self.0.program(thread)
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        let mut before = Image::new();
        self.0.populate(&mut before);
        let data = image.nonzero_words().filter(|&(addr, _)| addr < self.1);
        if data.eq(before.nonzero_words()) {
            return Ok(());
        }
        Err(BrokenInvariant { structure: "all".into(), what: "it has changed".into() })
    }
}

#[test]
fn a_violation_that_no_program_shows_is_told_by_the_run() {
    let base = find("base");
    let settings = [("workload.footprint_bytes", "64 KB"), ("base.log_bytes_per_thread", "4 KB")];
    let plain = spec(base, "queue", 100, &settings);
    let inner = plain.clone();
    let programs =
        Programs::new(move || Ok(Box::new(Strict(inner.build_workload()?, inner.data_region().1))));
    let spec = Spec { programs: Some(programs), ..plain };
    let how = Thoroughness { structures_every: 1, ..Thoroughness::LONG };
    let run = RunCampaign::new(registry(), spec, how).unwrap_or_else(|e| panic!("{e}"));
    let report = run.run().unwrap_or_else(|e| panic!("{e}"));
    let finding = report.findings.first().expect("structures are wrong at some crash point");
    assert!(finding.violation.is_structural && finding.replay.is_none());
    let told: Vec<&str> = finding.timeline.rows.iter().map(|row| row.who.as_str()).collect();
    assert!(told.contains(&"thread 0") && told.contains(&"PM"), "{}", finding.timeline);
    assert_eq!(told.last(), Some(&"verdict"));
    assert!(told.len() <= 260, "{}", finding.timeline);
}

/// What is there from before counts only if somebody writes behind it: in the second life of a machine.
#[test]
fn a_violation_in_a_later_life_of_a_workload_becomes_a_program_of_as_many_lives() {
    let base = find("base");
    let settings = [("workload.footprint_bytes", "64 KB"), ("base.log_bytes_per_thread", "4 KB")];
    let campaign = |mutant: Option<&str>, lives| {
        let mut spec = spec(base, "hash", 100, &settings);
        if let Some(mutant) = mutant {
            spec.crash_options.mutants = base.mutation(mutant).unwrap_or_else(|e| panic!("{e}")).0;
        }
        let run = RunCampaign::new(registry(), spec, Thoroughness::LONG);
        let run = run.and_then(|run| run.going_on(lives)).unwrap_or_else(|e| panic!("{e}"));
        run.run().unwrap_or_else(|e| panic!("{e}"))
    };
    assert!(campaign(None, 2).findings.is_empty());
    assert!(campaign(Some("log-not-cleared"), 0).findings.is_empty(), "PM is zero at first");
    let report = campaign(Some("log-not-cleared"), 2);
    let finding =
        report.findings.first().expect("records of the life before are taken for its own");
    let replay = finding.replay.as_ref().expect("a program that replays it");
    assert!(replay.lives.len() > 1 && replay.steps().count() < 60, "{replay}");
    let again = outcome_of(replay, base);
    let lives = again.violations.first().map(|violation| violation.before.len() + 1);
    assert_eq!(lives, Some(replay.lives.len()), "{replay}");
}

#[test]
fn the_same_campaign_twice_is_the_same() {
    let silo = find("silo");
    let run = || {
        let report = campaign(silo, None, 100).run().unwrap_or_else(|e| panic!("{e}"));
        report.to_json().to_string()
    };
    assert_eq!(run(), run());
}

/// A loaded word decides: the value that is there, not the one that the program says was stored.
#[test]
fn a_step_that_depends_on_a_word_is_done_if_it_holds_the_value() {
    let text = "graven litmus 1\ntitle \"if\"\n\nA = 3\nB = 0\nC = 0\n\nthread\n  begin\n  \
        if A = 3: B = 1\n  if A = 4: C = 1\n  A = 4\n  if A = 4: C = 2\n  if B = 0: evict B\n  commit\n\n\
        expect end: A = 4, B = 1, C = 2\n";
    let litmus = read(text);
    assert_eq!(litmus.to_string(), text);
    for design in ["silo", "undo-clwb", "lsm"] {
        let outcome = outcome_of(&litmus, find(design));
        assert_eq!(outcome.violations, [], "{design}");
    }
}

/// Bug class: what a cancelled computation has so far is taken for its result.
#[test]
fn schedules_that_are_cancelled_give_all_or_nothing_while_minimising_too() {
    let literal = find("silo-literal");
    let whole = campaign(literal, None, 1).run().map(|report| report.to_json());
    let whole = whole.unwrap_or_else(|e| panic!("{e}"));
    assert_ne!(whole["violations"][0], serde_json::Value::Null);
    let mut cancelled = 0;
    for delay_us in (0..20).map(|n| n * 500) {
        let schedules = campaign(literal, None, 1);
        let (control, over) = (schedules.control(), AtomicBool::new(false));
        let outcome = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !control.is_minimising() && !over.load(Relaxed) {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_micros(delay_us));
                control.cancel();
            });
            let outcome = schedules.run();
            over.store(true, Relaxed);
            outcome
        });
        match outcome {
            Ok(report) => assert_eq!(report.to_json(), whole, "cancelled after {delay_us} us"),
            Err(error) => {
                assert_eq!(error, SimError::Cancelled);
                cancelled += 1;
            }
        }
    }
    assert!(cancelled > 0, "never cancelled in time");
}

/// Registers, and words that batteries save.
type Left = (Vec<u64>, Vec<(Addr, u64)>);

/// Remembers what a power failure would have left, and complains if that changes unannounced.
#[derive(Default)]
struct Announced {
    changes: u64,
    left: Option<Left>,
    looks: u64,
    unannounced: Option<u64>,
}

impl Observer for Announced {
    fn after_action(&mut self, simulation: &mut Simulation) {
        self.looks += 1;
        let changes = simulation.machine().memory.shared.durability.changes;
        let crash = simulation.crash();
        let left = (crash.registers.clone(), crash.image.newest(0).into_iter().collect());
        drop(crash);
        if self.changes == changes && self.left.as_ref().is_some_and(|before| *before != left) {
            self.unannounced.get_or_insert(simulation.machine().now());
        }
        (self.changes, self.left) = (changes, Some(left));
    }

    fn stops(&self) -> bool {
        self.unannounced.is_some()
    }
}

/// A crash point is where something durable changes; a change that nobody announces is never crashed.
#[test]
fn designs_announce_every_change_of_their_durable_state() {
    for design in sound() {
        let config = tiny_config(&[("controller.write_queue_entries", "4")]);
        let mut simulation = simulation(&config, design.name, &CELLS, 4, 80, 1);
        graven::lab::checker::attach(&mut simulation);
        let mut watch = Announced::default();
        let ended =
            simulation.advance_observed(NEVER, &mut watch).unwrap_or_else(|e| panic!("{e}"));
        assert!(ended, "{}: unannounced at cycle {:?}", design.name, watch.unannounced);
        assert!(watch.looks > 1000, "{}", design.name);
    }
}

/// Compares the durable bytes that are followed with those that the machine would have to add up.
struct Followed(u64);

impl Observer for Followed {
    fn after_action(&mut self, simulation: &mut Simulation) {
        self.0 += 1;
        if !self.0.is_multiple_of(97) {
            return;
        }
        let memory = &simulation.machine().memory;
        let mut sum: Image = memory.shared.media.clone();
        for (line, mask, data) in memory.surviving() {
            for word in words_in(mask) {
                sum.store(line.word(word), data[word]);
            }
        }
        let cycle = simulation.machine().now();
        let (start, end) = (Addr(0), simulation.data_region().1);
        let crash = simulation.crash();
        let differs = crash.image.image().first_difference(&sum, start, end);
        assert_eq!(differs, None, "cycle {cycle}");
    }
}

#[test]
fn the_durable_bytes_that_are_followed_are_those_of_queues_buffers_and_cells() {
    let rules = ["program", "activate", "hit-or-conflict", "write-back"];
    let schedulers = ["reads-first", "frfcfs", "frfcfs-wqf"];
    let machines = [("true", "2"), ("true", "0"), ("false", "2"), ("false", "0")];
    for (i, (adr, lines)) in machines.into_iter().cycle().take(12).enumerate() {
        let settings = [
            ("controller.adr", adr),
            ("pm.buffer_lines", lines),
            ("pm.row_writes", rules[(i + i / 4) % 4]),
            ("controller.scheduler", schedulers[i / 4]),
        ];
        // Neither has batteries of its own.
        for design in ["base", "fwb"] {
            let mut simulation = simulation(&tiny_config(&settings), design, &CELLS, 4, 100, 1);
            graven::lab::checker::attach(&mut simulation);
            let mut watch = Followed(0);
            simulation.advance_observed(NEVER, &mut watch).unwrap_or_else(|e| panic!("{e}"));
            assert!(watch.0 > 1000, "{design}: {}", watch.0);
        }
    }
}

/// Class of bug: a design that gives up in the midst of a hook is held to what it would have promised.
#[test]
fn a_design_that_refuses_to_go_on_has_broken_nothing() {
    let stores: String = (0..200).map(|i| format!("A[{i}] = {}\n", i + 1)).collect();
    let text = format!(
        "graven litmus 1\ntitle \"t\"\nset lsm.segment_bytes = 1536\nset lsm.entry_words_max = 2\nA[200] = 0\nthread\nbegin\n{stores}commit\n"
    );
    let litmus = read(&text);
    let outcome = outcome_of(&litmus, find("lsm"));
    assert!(outcome.refused.is_some_and(|why| why.contains("segment")));
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
}

/// Class of bug: a design is convicted for what a program did that broke the contract.
#[test]
fn a_program_that_is_not_isolated_is_refused() {
    let head = "graven litmus 1\ntitle \"t\"\nA = 0\n";
    let ordered = "sequence\n0: begin\n1: begin\n0: A = 1\n1: A = 2\n1: commit\n0: commit\n";
    let refused = parse(&format!("{head}{ordered}")).expect_err("the order is that of a race");
    assert!(refused.to_string().contains("`commit` comes first"), "{refused}");
    // As data the same order goes by the reader.
    let thread = |value: u64| format!("thread\nbegin\nA = {value}\ncommit\n");
    let mut litmus = read(&format!("{head}{}{}", thread(1), thread(2)));
    let signal = |name: &str| Step::Signal(name.into());
    let wait = |name: &str| Step::Await(name.into());
    let threads = &mut litmus.lives[0].threads;
    threads[0].splice(2..2, [signal("third"), wait("fourth")]);
    threads[0].splice(1..1, [signal("first"), wait("second")]);
    threads[1].push(signal("fourth"));
    threads[1].splice(1..1, [signal("second"), wait("third")]);
    threads[1].insert(0, wait("first"));
    for design in sound() {
        let outcome = outcome_of(&litmus, design);
        assert!(outcome.violations.is_empty(), "{}: {:?}", design.name, outcome.violations);
        let refused = outcome.refused.unwrap_or_default();
        assert!(refused.starts_with("the program is not isolated"), "{}: {refused}", design.name);
    }
}

/// Class of bug: a race is seen only where stores meet in the caches. `redo-clwb`, whose software performs a transaction's
/// stores when that ends, was blamed for this program.
#[test]
fn a_race_without_locks_and_signals_is_refused_whichever_transaction_ends_first() {
    for (first, second) in [(4000, 0), (0, 4000)] {
        let text = format!(
            "graven litmus 1\ntitle \"t\"\nA = 0\nB = 0\nthread\nbegin\nA = 1\ncompute {}\nB = 1\ncommit\nthread\ncompute 200\nbegin\nA = 2\ncompute {}\ncommit\n",
            first + 1000,
            second + 1,
        );
        let litmus = read(&text);
        for design in sound() {
            let outcome = outcome_of(&litmus, design);
            assert!(outcome.violations.is_empty(), "{}: {:?}", design.name, outcome.violations);
            let refused = outcome.refused.unwrap_or_default();
            assert!(refused.starts_with("the program is not isolated"), "{}", design.name);
        }
    }
}

/// Numbers that recoveries found in the log region, beside those that the design's context gave.
static FOUND: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());

/// Its log region holds the number of the first transaction.
static NUMBERED: DesignInfo = DesignInfo {
    name: "numbered",
    summary: "writes the number of the first transaction into the log region that it formats",
    guarantee: |_| Guarantee::None,
    build: |_| Ok(plug(DoesNothing).into()),
    format: |context, image| image.store(context.log_start, context.first_transaction),
    recover: |context, _, image| {
        let found = (image.load(context.log_start), context.first_transaction);
        FOUND.lock().expect("no recovery panics").push(found);
        RecoveryReport::default()
    },
    ..DesignInfo::DEFAULT
};

struct DoesNothing;

impl Design for DoesNothing {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;
}

/// The next life's log region was formatted as if its first transaction had the number of the life before: a design
/// that counts commits from there (that of `graven new`) was blamed for it.
#[test]
fn a_log_region_is_formatted_for_the_transactions_of_the_life_that_is_next() {
    let program = read(concat!(
        "graven litmus 1\ntitle \"two lives\"\n",
        "garbage 1\nfirst-transaction 1000\ncrash point 0\nV1 = 0\nthread\n  begin\n  V1 = 0\n  commit\n",
        "life\nfirst-transaction 70\ncrash point 0\nthread\n  begin\n  V1 = 0\n  commit\n",
    ));
    let outcome = outcome_of(&program, &NUMBERED);
    assert!(outcome.violations.is_empty(), "{:?}", outcome.violations);
    let found = FOUND.lock().expect("no recovery panics");
    assert!(found.contains(&(1000, 1000)) && found.contains(&(70, 70)), "{found:?}");
    assert!(found.iter().all(|(found, given)| found == given), "{found:?}");
}

/// What a design that saves more than it declares holds.
struct Saves(u64);

impl Design for Saves {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;

    fn on_power_failure(&self, image: &mut SurvivingImage) {
        (0..self.0).for_each(|word| image.store(Addr((1 << 20) - 8 * (word + 1)), word));
    }
}

/// A design that saves three words at each power failure, with this battery.
fn saving(battery: fn(&DesignContext) -> Battery) -> Option<String> {
    let info: &'static DesignInfo = Box::leak(Box::new(DesignInfo {
        name: "saves",
        summary: "saves three words when power fails",
        guarantee: |_| Guarantee::None,
        build: |_| Ok(plug(Saves(3)).into()),
        battery,
        ..DesignInfo::DEFAULT
    }));
    let program = read(concat!(
        "graven litmus 1\ntitle \"a store\"\nmachine miniature\ncrash point 0\nV1 = 0\n",
        "thread\n  begin\n  V1 = 0\n  commit\n",
    ));
    let outcome = outcome_of(&program, info);
    outcome.violations.first().map(|violation| violation.what.clone())
}

#[test]
fn what_batteries_save_beyond_what_is_declared_is_a_violation() {
    let what = saving(|_| Battery { bytes: 23, ..Battery::NONE });
    let expected = "batteries write 24 B when power fails; the design declares 23 B";
    assert_eq!(what.as_deref(), Some(expected));
    assert_eq!(saving(|_| Battery { bytes: 24, ..Battery::NONE }), None);
}

/// The least program that shows that a recovery fails an assertion.
fn overflowing(
    recover: fn(&DesignContext, &[u64], &mut SurvivingImage) -> RecoveryReport,
) -> Litmus {
    let info: &'static DesignInfo = Box::leak(Box::new(DesignInfo {
        name: "overflows",
        summary: "has a field that is too narrow",
        guarantee: |_| Guarantee::None,
        build: |_| Ok(plug(DoesNothing).into()),
        recover,
        ..DesignInfo::DEFAULT
    }));
    let program = read(concat!(
        "graven litmus 1\ntitle \"stores\"\nmachine miniature\nV1 = 0\nV2 = 0\n",
        "thread\n  begin\n  V1 = 0\n  V2 = 0\n  evict V1\n  commit\n  begin\n  V2 = 0\n  commit\n",
    ));
    let outcome = outcome_of(&program, info);
    assert!(outcome.violations[0].failure.is_some(), "it is known where power failed");
    let found = minimise(registry(), &program, info).expect("it is a violation");
    let what = &found.violation.what;
    assert!(what.contains("the field `count` of 2 bits cannot hold 0x4"), "{what}");
    assert!(what.starts_with("an assertion fails"), "{what}");
    found.litmus
}

/// A field that cannot hold its value is a violation like any other: a program replays it.
#[test]
fn an_assertion_that_fails_in_a_recovery_is_a_violation_with_a_program() {
    const COUNT: Field = Field::new("count", 2, 0);
    let always = overflowing(|_, _, image| {
        image.store(Addr(4096), COUNT.put(4));
        RecoveryReport::default()
    });
    assert!(always.steps().count() <= 3, "{always}");
}

/// Next lives. The first counts three cover points; later ones count none, as a life does that an assertion ends.
struct OnlyTheFirstTells {
    spec: Spec,
    begun: u64,
}

impl NextLife for OnlyTheFirstTells {
    fn context(&self) -> DesignContext {
        self.spec.context()
    }

    fn begin(&mut self, _: Recovered, _: u64) -> Result<Outcome, SimError> {
        self.begun += 1;
        let cover_points = if self.begun == 1 { vec![1000; 3] } else { Vec::new() };
        Ok(Outcome { cover_points, ..Outcome::default() })
    }
}

/// The counts of earlier lives stay when a life ends without counts.
#[test]
fn a_life_that_tells_of_no_cover_points_takes_none_from_those_before_it() {
    let spec = spec(find("silo"), "hash", 20, &[("workload.footprint_bytes", "256 KB")]);
    let run = || CrashRun::new(&spec, None, Thoroughness::SHORT).expect("parameters that fit");
    let alone = run().run(None).expect("nothing cancels it").cover_points;
    let mut lives = OnlyTheFirstTells { spec: spec.clone(), begun: 0 };
    let followed = run().run_on(None, Some(&mut lives)).expect("nothing cancels it").cover_points;
    assert!(lives.begun > 1, "one that tells, and others");
    let of_lives: Vec<u64> = followed.iter().zip(&alone).map(|(all, own)| all - own).collect();
    assert_eq!(of_lives[..3], [1000; 3]);
}
