//! Programs that ship with Graven, and programs that are refused.

use std::path::{Path, PathBuf};

use graven_persistency::enumerator::enumerate;
use graven_persistency::orders::explore;
use graven_persistency::program::Op;

use super::*;

fn library() -> Vec<(PathBuf, ModelLitmus)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/persistency");
    let files = std::fs::read_dir(folder).expect("the checkout is complete");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("readable").path()).collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).expect("readable");
        assert!(is_for_models(&text), "{}", file.display());
        let litmus = parse(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        (file, litmus)
    };
    files.into_iter().map(read).collect()
}

/// Bug class: a model allows what a published test forbids, or never reaches what it allows.
#[test]
fn every_program_has_the_outcomes_that_it_says() {
    let library = library();
    assert!(library.len() > 60, "only {} programs", library.len());
    for (file, litmus) in library {
        assert!(litmus.source.is_some() && litmus.status.is_some(), "{}", file.display());
        for answer in answers(&litmus, &[]).expect("it is small") {
            assert!(answer.expected.is_some(), "{}: {answer:?}", file.display());
            assert!(answer.is_as_expected(), "{}: {answer:?}", file.display());
        }
    }
}

/// Bug class: model and enumerator differ on a program with more threads, words or kinds of steps than small programs have.
#[test]
fn the_enumerator_agrees_on_every_program() {
    for (file, litmus) in library() {
        for model in &litmus.models {
            let outcomes = explore(model, &litmus.program).expect("it is small");
            let executed = enumerate(model, &litmus.program).expect("it is small");
            assert!(outcomes == executed, "{} under {}", file.display(), model.name);
        }
    }
}

fn program(model: &str, body: &str) -> String {
    format!("graven litmus 1\ntitle \"t\"\nmodel {model}\nx = 0\nw[3] = 7 with x\ny = 0\n{body}\n")
}

fn refused(text: &str) -> String {
    parse(text).expect_err("it is refused").to_string()
}

#[test]
fn every_step_is_read() {
    let steps = "thread\nx = 1\nw = 2\nw[1] = 3\nmovnt x = 4\nxchg x = 5\nload x as r\nload y\ny = r\nawait x = 1\nclwb w\n\
                 clflushopt y\nclflush x\nsfence\nmfence\nlock m\nunlock m\ntold\nif r = 1: y = 6\nallows: done, r = 1, y = 0x10";
    let litmus = parse(&program("x86-adr", steps)).expect("it is right");
    assert_eq!(litmus.program.lines, [0, 0, 0, 0, 1]);
    assert_eq!(litmus.program.initial, [0, 7, 7, 7, 0]);
    assert_eq!(litmus.program.threads[0].len(), 18);
    assert_eq!(litmus.program.threads[0][9], Op::WriteBack(0));
    let image = &litmus.claims[0].image;
    assert_eq!(
        (image.is_done, &image.registers[..], &image.words[..]),
        (true, &[(0, 1)][..], &[(4, 16)][..])
    );
    let steps = "thread\nstlr x = 1\nldar x as r\ndc-cvac x\ndc-cvap x\ndc-cvadp y\ndmb\ndmb-st\ndmb-ld\ndsb\nforbids: x = 1";
    assert_eq!(
        parse(&program("arm-pop arm-podp", steps)).expect("it is right").program.threads[0].len(),
        9
    );
}

/// Bug class: bad input is accepted, or told without its place and what is allowed.
#[test]
fn errors_say_where_and_what_is_allowed() {
    let of = |body: &str| refused(&program("x86-adr", body));
    for (message, expected) in [
        (refused(""), "line 1, column 1: expected `graven litmus 1`, found the end of the text"),
        (
            refused("graven litmus 1\nmodel x86"),
            "line 2, column 7: `x86` is not a persistency model; allowed are x86-adr, x86-adr-amd, x86-eadr, arm-pop, arm-podp",
        ),
        (
            refused("graven litmus 1\nmodel x86-adr arm-pop"),
            "line 2, column 1: models of one program are all of x86, or all of Arm: they have different instructions",
        ),
        (
            of("thread\ndsb"),
            "line 8, column 1: `dsb` is an instruction of Arm, and the models of this program are of x86",
        ),
        (of("thread\nz = 1"), "line 8, column 1: `z` is not a variable; allowed are w, x, y"),
        (
            of("thread\nload w"),
            "line 8, column 6: an array has several words; one of them is named with its index, from 0 to 2",
        ),
        (
            of("thread\nx = 255"),
            "line 8, column 5: `255` is out of range; a value is a number from 0 to 254",
        ),
        (
            of("thread\nx = r"),
            "line 8, column 5: `r` is no register: no load of this thread names one, as in load x as r1",
        ),
        (
            of("thread\nif r = 1: x = 1"),
            "line 8, column 4: `r` is no register: no load of this thread names one, as in load x as r1",
        ),
        (of("thread\nload x as y"), "line 8, column 11: `y` names a variable"),
        (of("thread\nxchg w = 1"), "line 8, column 6: a locked instruction stores to one word"),
        (
            of("thread\nload x as r\nthread\nload x as r"),
            "line 10, column 11: `r` is a register of another thread",
        ),
        (
            of("thread\nx = 1"),
            "line 8, column 6: there is no `allows` and no `forbids`; a program has at least one",
        ),
        (
            of("allows: x = 1"),
            "line 7, column 14: there is no `thread`; a program has at least one",
        ),
        (
            of("thread\nallows: x = 1\nthread"),
            "line 9, column 1: threads stand before `allows` and `forbids`",
        ),
        (
            of("thread\nallows x86-eadr: x = 1"),
            "line 8, column 8: the program is not for x86-eadr; its statement `model` names x86-adr",
        ),
        (
            of("thread\nallows: q = 1"),
            "line 8, column 9: `q` is not a variable; allowed are w, x, y",
        ),
        (of("model x86-adr"), "line 7, column 1: `model` is in line 3 already; it is allowed once"),
        (
            of("status sure"),
            "line 7, column 8: `sure` is not a status; allowed are read, computed, reasoned, open",
        ),
        (
            of("load = 1"),
            "line 7, column 1: `load` is a word of this format and cannot name a variable",
        ),
        (of("x = 1"), "line 7, column 1: `x` is defined already"),
        (
            of("q[7] = 0\nthread\nq = 1\nallows: x = 1"),
            "line 10, column 14: the program has 7 words in one instruction; allowed are up to 6",
        ),
    ] {
        assert_eq!(message, expected);
    }
    let thread = of("thread\nnonsense x");
    assert!(
        thread.starts_with(
            "line 8, column 1: `nonsense` is not a step; allowed are movnt, xchg, load"
        ),
        "{thread}"
    );
    let statement = of("nonsense x");
    assert!(
        statement.starts_with(
            "line 7, column 1: `nonsense` is not a statement; allowed are title, model"
        ),
        "{statement}"
    );
}

/// Bug class: an allowed image is told without an execution that leaves it, or with one that does not.
#[test]
fn an_allowed_image_comes_with_a_shortest_execution() {
    let body = "thread\nx = 1\nclwb x\nsfence\ny = 1\nload x as r\nallows: done, r = 1, x = 1, y = 0\nforbids: x = 0, y = 1";
    let answers =
        answers(&parse(&program("x86-adr", body)).expect("it is right"), &[]).expect("it is small");
    let order = [
        "thread 0: x = 1",
        "thread 0: load x as r",
        "power fails, and leaves x = 1, w[0] = 7, w[1] = 7, w[2] = 7, y = 0",
    ];
    assert_eq!(answers[0].order, order);
    assert!(answers[1].order.is_empty());
}

#[test]
fn programs_for_designs_are_told_from_programs_for_models() {
    assert!(is_for_models("graven litmus 1\n  model nonsense"));
    assert!(!is_for_models("graven litmus 1\nmodel = 1 # a variable\nthread\nbegin"));
}
