//! Threads that can never go on: whose fault that is.
//!
//! Bug class: a program whose own threads wait for each other convicts the design under which it runs, or a design that holds
//! a thread for ever is excused by those who wait for that thread.

use crate::common::forgetful::FORGETFUL;
use crate::common::script::{compute, script, store};
use crate::common::{registry, tiny_config};
use crate::{case_of, find, outcome_of, read};
use graven::design::{Design, DesignInfo, Guarantee, NoEvent, Unused, plug};
use graven::lab::campaign::RunCampaign;
use graven::lab::explorer::{Outcome, Thoroughness};
use graven::lab::litmus::{Circle, parse_placed};
use graven::memory::{Addr, Image};
use graven::program::{Load as _, Memory as _, Op, Program, Ptr, spawn};
use graven::sim::{Awaited, Programs, SimError};
use graven::workload::{BrokenInvariant, Workload};

/// Two threads take two locks in opposite orders, and each has one before it asks for the other.
const OPPOSITE: &str = "
    thread
      lock m
      compute 5000
      lock n
      begin
      A = 6
      commit
      unlock n
      unlock m
    thread
      lock n
      compute 5000
      lock m
      begin
      A = 7
      commit
      unlock m
      unlock n";

/// A program with one variable; the first of the lines is line 4.
fn program(lines: &str) -> String {
    format!("graven litmus 1\ntitle \"t\"\nA = 5{lines}\n")
}

fn outcome_on(text: &str, design: &'static DesignInfo) -> Outcome {
    outcome_of(&read(text), design)
}

/// Why a program is refused under a design, by its lines.
fn refusal(text: &str, design: &str) -> String {
    let outcome = outcome_on(text, find(design));
    assert!(outcome.violations.is_empty(), "{design}: {}", outcome.violations[0].what);
    let deadlock = outcome.deadlock.unwrap_or_else(|| panic!("{design}: {:?}", outcome.refused));
    let (litmus, places) = parse_placed(text).unwrap_or_else(|e| panic!("{e}"));
    let circle = Circle::of_run(&litmus, deadlock.lives_later, &deadlock.threads);
    let refusal = circle.expect("it has a circle").refusal(&places);
    let case = case_of(&litmus, find(design));
    assert_eq!(case.rehearse(), Ok(Some(deadlock)), "it is known without power failures");
    refusal.to_string()
}

#[test]
fn locks_in_opposite_orders_are_the_programs_fault_under_every_design() {
    let expected = "line 7, column 7: threads wait for each other for ever, under any design: \
        thread 0 waits for `n` in line 7, and thread 1 has held it since line 14; \
        thread 1 waits for `m` in line 16, and thread 0 has held it since line 5";
    for design in ["base", "silo", "fwb", "undo-clwb"] {
        assert_eq!(refusal(&program(OPPOSITE), design), expected, "{design}");
    }
    let refused = outcome_on(&program(OPPOSITE), find("silo")).refused.expect("it is refused");
    assert!(refused.contains("thread 0 waits for `n` in step 3 of thread 0"), "{refused}");
}

#[test]
fn a_circle_may_go_through_locks_signals_transactions_and_lives() {
    let within = "
        thread
          lock m
          begin
          A = 6
          commit
          await go
          unlock m
        thread
          compute 5000
          lock m
          unlock m
          signal go";
    let expected = "line 9, column 11: threads wait for each other for ever, under any design: \
        thread 0 awaits `go` in line 9, and thread 1 comes to `signal go` in line 15 only after that; \
        thread 1 waits for `m` in line 13, and thread 0 has held it since line 5";
    assert_eq!(refusal(&program(within), "silo"), expected);
    let of_three = "
        thread
          compute 9000
          lock a
          unlock a
        thread
          lock a
          compute 5000
          lock b
          unlock b
          unlock a
        thread
          lock b
          compute 5000
          begin
          A = 6
          lock a
          commit
          unlock a
          unlock b";
    let expected = "line 11, column 11: threads wait for each other for ever, under any design: \
        thread 1 waits for `b` in line 11, and thread 2 has held it since line 15; \
        thread 2 waits for `a` in line 19, and thread 1 has held it since line 9";
    assert_eq!(refusal(&program(of_three), "base"), expected);
    let later = format!("\n    thread\n      begin\n      A = 6\n      commit\n    life{OPPOSITE}");
    let expected = "line 12, column 7: in life 2, threads wait for each other";
    let refusal = refusal(&program(&later), "silo");
    assert!(refusal.starts_with(expected), "{refusal}");
}

/// It promises what it does nothing for.
struct Idle;

impl Design for Idle {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;
}

static IDLE: DesignInfo = DesignInfo {
    name: "idle",
    summary: "promises that commits are durable, and does nothing for it",
    guarantee: |_| Guarantee::Durable,
    build: |_| Ok(plug(Idle).into()),
    ..DesignInfo::DEFAULT
};

/// The verdict on a program is the same under every design, and so is its refusal.
#[test]
fn a_program_that_stops_is_refused_also_if_the_design_has_violated_its_guarantee_before() {
    let commits = "lock m\n      begin\n      A = 1\n      commit";
    let before = OPPOSITE.replacen("lock m", commits, 1);
    let outcome = outcome_on(&program(&before), &IDLE);
    assert!(outcome.violations.is_empty() && outcome.deadlock.is_some());
    assert!(outcome.refused.is_some_and(|why| why.contains("wait for each other")));
    let ends = "\n    thread\n      lock m\n      begin\n      A = 1\n      commit\n      unlock m";
    let outcome = outcome_on(&program(ends), &IDLE);
    assert_eq!(
        (outcome.refused, outcome.violations.len()),
        (None, 1),
        "without it, it is convicted"
    );
}

/// Whether life 2 stops depends on what recovery leaves. It does not on a new machine, and what it broke before was put down to
/// the design.
#[test]
fn a_later_life_that_stops_is_refused_also_if_the_design_has_violated_its_guarantee_before() {
    let lives = |more: &str| {
        program(&format!(
            "\nB = 0
    thread
      outside A = 6
      evict A
      settle
    life
    thread
      lock m
      begin
      B = 1
      commit
      if A = 6: compute {more}
      lock n
      unlock n
      unlock m
    thread
      compute 30000
      lock n
      compute 9000
      lock m
      unlock m
      unlock n"
        ))
    };
    let outcome = outcome_on(&lives("90000"), &IDLE);
    assert!(outcome.violations.is_empty(), "{}", outcome.violations[0].what);
    let deadlock = outcome.deadlock.expect("the program stops");
    assert_eq!(deadlock.lives_later, 1);
    assert!(outcome.refused.is_some_and(|why| why.starts_with("in life 2, threads wait for")));
    let outcome = outcome_on(&lives("1"), &IDLE);
    assert_eq!((outcome.refused, outcome.violations.len()), (None, 1), "it does not stop");
    let case = case_of(&read(&lives("90000")), &IDLE);
    assert_eq!(case.rehearse(), Ok(None), "it does not stop on a new machine");
}

/// Locks in opposite orders are no fault of a run in which one thread is through before the other begins.
#[test]
fn a_circle_that_does_not_close_is_none() {
    let apart =
        OPPOSITE.replacen("thread\n      lock n", "thread\n      compute 90000\n      lock n", 1);
    for design in ["base", "silo"] {
        let outcome = outcome_on(&program(&apart), find(design));
        assert_eq!((outcome.refused, outcome.violations.len()), (None, 0), "{design}");
        assert!(outcome.tally.crash_points > 0);
    }
}

#[test]
fn a_design_that_holds_the_thread_with_the_lock_is_convicted() {
    let locked = "
        thread
          lock m
          begin
          A = 6
          commit
          unlock m
        thread
          compute 5000
          lock m
          await go
          unlock m
        thread
          lock n
          compute 5000
          lock m
          unlock m
          unlock n
          signal go";
    let outcome = outcome_on(&program(locked), &FORGETFUL);
    assert_eq!((outcome.refused, outcome.deadlock), (None, None));
    let what = &outcome.violations.first().expect("it is convicted").what;
    let expected =
        "under design forgetful: thread 0 waits for the design, which has not let it commit";
    assert!(what.contains(expected) && what.contains("thread 1 waits for lock 0"), "{what}");
}

/// A circle that is there whatever the design does with a third thread is the program's.
#[test]
fn a_circle_is_the_programs_fault_beside_a_thread_that_the_design_holds() {
    let text = program(&format!("{OPPOSITE}\n    thread\n      begin\n      commit"));
    let text = text.replacen("A = 6\n", "load A\n", 1);
    let outcome = outcome_on(&text, &FORGETFUL);
    assert!(outcome.deadlock.is_some_and(|deadlock| deadlock.threads.waits.len() == 2));
}

fn lock(lock: u32) -> Op {
    Op::Lock { lock }
}

fn unlock(lock: u32) -> Op {
    Op::Unlock { lock }
}

struct Opposite;

impl Workload for Opposite {
    fn populate(&self, _image: &mut Image) {}

    fn program(&self, thread: u32) -> Box<dyn Program> {
        spawn(move |memory| {
            memory.lock(thread);
            memory.compute(5000);
            memory.lock(1 - thread);
            memory.tx_begin();
            memory.store(Ptr::known(Addr(4096)), 1);
            memory.tx_end();
            memory.unlock(1 - thread);
            memory.unlock(thread);
        })
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// A run that is crashed is refused, and no program is made of it.
#[test]
fn a_workload_that_stops_is_refused_and_convicts_no_design() {
    for (design, lives) in [("silo", 0), ("base", 2), ("fwb", 0)] {
        let spec = registry().spec(tiny_config(&[]), design, "array", Some(2), Some(2), 0);
        let mut spec = spec.unwrap_or_else(|e| panic!("{e}"));
        spec.programs = Some(Programs::new(|| Ok(Box::new(Opposite))));
        let campaign = RunCampaign::new(registry(), spec, Thoroughness::LONG)
            .and_then(|campaign| campaign.going_on(lives))
            .unwrap_or_else(|e| panic!("{e}"));
        let report = campaign.run().unwrap_or_else(|e| panic!("{e}"));
        assert!(report.findings.is_empty(), "{design}: {}", report.findings[0].violation.what);
        let why = report.refusal.expect("it is refused");
        assert!(why.contains("for ever, under any design: thread 0"), "{design}: {why}");
    }
}

/// A trace or a workload stops as a litmus program does.
#[test]
fn a_simulation_ends_with_the_circle() {
    let config = tiny_config(&[]);
    let [one, other] = [[0, 1], [1, 0]].map(|[first, second]| {
        let ops = [lock(first), compute(5000), lock(second), Op::TxBegin, store(4096, 1)];
        [&ops[..], &[Op::TxEnd, unlock(second), unlock(first)]].concat()
    });
    let error = script(&config, &[&one, &other]).run().expect_err("it cannot end");
    let SimError::ProgramDeadlock(deadlock) = &error else { panic!("{error}") };
    assert_eq!(deadlock.waits.len(), 2);
    let text = error.to_string();
    assert!(
        text.starts_with("the program's threads wait for each other for ever, whatever"),
        "{text}"
    );
    assert!(text.contains(
        "for lock 1, which thread 1 holds; thread 1 (0 transactions begun) has waited since cycle 5"
    ));
    let error = script(&config, &[&[lock(3)], &[compute(5000), lock(3)]]).run();
    let Err(SimError::ProgramDeadlock(deadlock)) = error else { panic!("{error:?}") };
    let kept = Awaited::Lock { lock: 3, holder: 0, has_ended: true };
    assert_eq!(deadlock.waits[0].awaited, kept, "the thread that has it has ended");
}
