//! Whole programs: read, refused, printed and read again.

mod generated;
mod malformed;

use super::*;

/// A program around lines; the first is line 3.
fn program(lines: &str) -> String {
    format!("graven litmus 1\ntitle \"t\"\n{lines}")
}

/// A program around steps of a thread with two variables; the first is line 6.
fn thread(steps: &str) -> String {
    program(&format!("A = 1\nC[4] = 0\nthread\n{steps}"))
}

/// A program around steps of a sequence; the first is line 5.
fn in_order(steps: &str) -> String {
    program(&format!("A = 1\nsequence\n{steps}"))
}

fn read(text: &str) -> Litmus {
    parse(text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
}

fn word(name: &str, index: Option<u32>) -> Word {
    Word { name: name.into(), index }
}

/// The first example of this module's documentation.
fn example() -> String {
    let lines = include_str!("../mod.rs").lines().skip_while(|line| *line != "//! ```text").skip(1);
    let lines = lines.take_while(|line| *line != "//! ```");
    lines.map(|line| line.trim_start_matches("//!").to_owned() + "\n").collect()
}

#[test]
fn the_example_is_read_as_it_says() {
    let variable =
        |name: &str, words, initial, place| Variable { name: name.into(), words, initial, place };
    let (a, b) = (word("A", None), word("B", None));
    let expected = Litmus {
        title: "a merge after the line has left (Silo §III-D)".into(),
        designs: vec!["silo".into()],
        violates: vec!["silo-literal".into()],
        settings: vec![("silo.log_buffer_entries".into(), "2".into())],
        variables: vec![
            variable("A", None, 1, Placement::OwnLine),
            variable("B", None, 0, Placement::With("A".into())),
            variable("C", Some(40), 7, Placement::OwnLine),
        ],
        lives: vec![Life {
            threads: vec![vec![
                Step::Begin,
                Step::Store(a.clone(), 2),
                Step::Evict(a.clone(), Level::Llc),
                Step::Store(a.clone(), 3),
                Step::Commit,
                Step::Crash("after-commit".into()),
            ]],
            ..Life::default()
        }],
        expectations: vec![Expectation {
            when: When::Recovered("after-commit".into()),
            alternatives: vec![vec![(a, 3), (b, 0)]],
        }],
        ..Litmus::default()
    };
    assert_eq!(read(&example()), expected);
}

#[test]
fn statements_of_every_kind() {
    let litmus = read(
        r#"
        # before the first line

        graven litmus 0b1    # the version
        machine silo
        A = 0x10 at 0x2000
        design silo fwb
        set silo.note = "a # b" # c
        title "\"quoted\" \\ # no comment" # a comment
        B = 1_000 with A
        expect end: A = 1 | A = 2, B = 3
        C[3] = 0 with B
        design lad
        adversary 7
        thread
          crash here
          begin
        C[2] = 0xffff_ffff_ffff_ffff
          evict C[0] from l1
          evict A from l2
          commit
        crash point 17 torn 0b101
        garbage 8
        thread
        mutant early-ack
        survives here: C[1] = 5
        expect everywhere: A = 4
        first-transaction 65_535
        thread
          compute 20
          violates x y"#,
    );
    assert_eq!(litmus.title, r#""quoted" \ # no comment"#);
    assert_eq!(litmus.designs, ["silo", "fwb", "lad"]);
    assert_eq!(litmus.violates, ["x", "y"]);
    assert_eq!(litmus.machine.as_deref(), Some("silo"));
    assert_eq!(litmus.settings, [("silo.note".to_owned(), "\"a # b\"".to_owned())]);
    assert_eq!(litmus.mutant.as_deref(), Some("early-ack"));
    assert_eq!(litmus.garbage, Some(8));
    let [life] = &litmus.lives[..] else { panic!("one life: {litmus}") };
    assert_eq!(life.adversary, Some(Choices::Drawn(7)));
    assert_eq!(life.first_transaction, 65535);
    assert_eq!(
        life.crash,
        CrashAt::Point { number: 17, failure: Failure::of(FailureMode::Torn(5)) }
    );
    assert_eq!(litmus.variables[0].place, Placement::At(0x2000));
    assert_eq!(litmus.variables[2].words, Some(3));
    assert_eq!(life.threads.iter().map(Vec::len).collect::<Vec<_>>(), [6, 0, 1]);
    assert_eq!(life.threads[0][2], Step::Store(word("C", Some(2)), u64::MAX));
    assert_eq!(life.threads[0][3], Step::Evict(word("C", Some(0)), Level::L1));
    let whens: Vec<When> = litmus.expectations.iter().map(|e| e.when.clone()).collect();
    assert_eq!(whens, [When::End, When::Survives("here".into()), When::Everywhere]);
    assert_eq!(litmus.expectations[0].alternatives[1].len(), 2);
    assert_eq!(read(&litmus.to_string()), litmus);
}

#[test]
fn printed_text_is_canonical() {
    let text = "\
graven litmus 1
title \"a \\\"b\\\" \\\\\"
design silo lad
violates base
machine silo
set pm.banks = 4
mutant early-ack
adversary 65535
garbage 0x10000
first-transaction 3
crash point 17 torn 0x5

A = 1
B[4] = 0x100000 with A
C = 0 at 8192

thread
  begin
  B[3] = 2
  evict A
  evict A from l1
  commit
  crash x

thread

expect x: A = 1, C = 0 | A = 2
survives x: A = 1
expect everywhere: A = 1
expect end: B[0] = 0
";
    assert_eq!(read(text).to_string(), text);
    let least = "graven litmus 1\ntitle \"\"\n\nthread\n";
    assert_eq!(read(least).to_string(), least);
}

#[test]
fn a_sequence_becomes_threads_that_hand_over() {
    let text = in_order(
        "0: begin
         0: A = 2
         1: begin
         0: signal step-2   # a name of the program's own
         1: await step-2
         0: commit
         1: commit
         1: crash end-of-it",
    );
    let signal = |name: &str| Step::Signal(name.into());
    let await_ = |name: &str| Step::Await(name.into());
    let expected = [
        vec![
            Step::Begin,
            Step::Store(word("A", None), 2),
            signal("step-1"),
            await_("step-3"),
            signal("step-2"),
            signal("step-4"),
            await_("step-5"),
            Step::Commit,
            signal("step-6"),
        ],
        vec![
            await_("step-1"),
            Step::Begin,
            signal("step-3"),
            await_("step-4"),
            await_("step-2"),
            signal("step-5"),
            await_("step-6"),
            Step::Commit,
            Step::Crash("end-of-it".into()),
        ],
    ];
    assert_eq!(read(&text).lives[0].threads, expected);
    let settles = read(&in_order("0: settle\n0: settle"));
    assert_eq!(settles.lives[0].threads, [vec![Step::Settle; 2]]);
}

#[test]
fn repeated_steps_are_all_there_and_printed_once() {
    let repeated = read(&thread(
        "repeat 300: begin, A = 5, if A = 5: load A, commit\n  repeat 3: load A\n  repeat 9: maintenance",
    ));
    let steps = "begin\n  A = 5\n  if A = 5: load A\n  commit\n  ".repeat(300);
    let all = format!("{steps}{}{}", "load A\n  ".repeat(3), "maintenance\n  ".repeat(9));
    assert_eq!(repeated, read(&thread(&all)));
    let text = repeated.to_string();
    let lines: Vec<&str> = text.lines().rev().take(5).map(str::trim).collect();
    let expected = [
        "repeat 9: maintenance",
        "load A",
        "load A",
        "load A",
        "repeat 300: begin, A = 5, if A = 5: load A, commit",
    ];
    assert_eq!(lines, expected);
    assert_eq!(read(&text), repeated);
    // What follows the end of another transaction is aligned with its own beginning.
    let mixed = read(&thread(&format!(
        "begin\n  A = 5\n  commit\n  {}",
        "begin\n  commit\n  ".repeat(255)
    )));
    assert!(mixed.to_string().ends_with("  commit\n  repeat 255: begin, commit\n"), "{mixed}");
    let order = read(&in_order("0: repeat 2: begin, commit\n  1: load A"));
    assert_eq!(order.lives[0].threads[0].len(), 5, "and a signal");
}
