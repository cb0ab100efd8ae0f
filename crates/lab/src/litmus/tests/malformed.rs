//! What is refused, and what is said then.

use super::*;

#[test]
fn messages_say_where_and_what() {
    let error = parse(&thread("begin\n  evcit A")).expect_err("no step");
    let allowed = "begin, commit, movnt, outside, load, compute, lock, unlock, signal, await, evict, writeback, maintenance, settle, crash, if, repeat and stores as in A = 5";
    assert_eq!(
        error.to_string(),
        format!("line 7, column 3: `evcit` is not a step; allowed are {allowed}")
    );
    let error = parse(&program("machin silo")).expect_err("no statement");
    let allowed = "title, design, violates, machine, set, mutant, adversary, garbage, first-transaction, crash, life, thread, sequence, expect, survives and, before the first thread, variables as in A = 5";
    assert_eq!(
        error.to_string(),
        format!("line 3, column 1: `machin` is not a statement; allowed are {allowed}")
    );
}

#[test]
fn it_refuses_what_is_malformed() {
    let many_threads = program(&"thread\n".repeat(65));
    let many_words: String = (10..24).map(|n| format!("V{n} = 0\n")).collect();
    let table: Vec<(String, u32, u32, &str)> = vec![
        // The first line and what must be there.
        ("".into(), 1, 1, "expected `graven litmus 1`, found the end of the text"),
        ("# graven\n  \n".into(), 2, 3, "expected `graven litmus 1`, found the end of the text"),
        ("title \"t\"".into(), 1, 1, "expected `graven litmus 1`, found `title`"),
        ("graven".into(), 1, 7, "expected `graven litmus 1`, found the end of the line"),
        (
            "graven litmus 2".into(),
            1,
            15,
            "this file is of version 2; this program reads version 1",
        ),
        ("graven litmus one".into(), 1, 15, "expected the version, a number, found `one`"),
        ("graven litmus 1 2".into(), 1, 17, "expected the end of the line, found `2`"),
        (
            "graven litmus 1\nthread".into(),
            2,
            7,
            "there is no title; a program has one, as in title \"…\"",
        ),
        (
            program("A = 1"),
            3,
            6,
            "there is no thread; a program has at least one, and so has each life",
        ),
        (
            program("sequence # of none"),
            3,
            19,
            "there is no thread; a program has at least one, and so has each life",
        ),
        (program("graven litmus 1"), 3, 1, "`graven litmus 1` is the first line, and no other"),
        // Statements.
        (program("  title \"u\""), 3, 3, "`title` is in line 2 already; it is allowed once"),
        (
            program("crash marked\ncrash point 1"),
            4,
            1,
            "`crash` is in line 3 already; it is allowed once",
        ),
        ("graven litmus 1\ntitle t".into(), 2, 7, "expected a title in quotes, found `t`"),
        (
            "graven litmus 1\ntitle \"t # u".into(),
            2,
            7,
            "the text that begins here is not closed; a `\"` must end it in this line",
        ),
        (
            "graven litmus 1\ntitle \"ä\\\\\\n\"".into(),
            2,
            11,
            "`\\n` is not an escape; allowed are `\\\"` and `\\\\`",
        ),
        (program("design"), 3, 7, "expected the name of a design, found the end of the line"),
        (program("violates a 7"), 3, 12, "expected the name of a design, found `7`"),
        (program("machine silo silo"), 3, 14, "expected the end of the line, found `silo`"),
        (program("set banks = 4"), 3, 11, "expected `.`, found `=`"),
        (program("set pm.banks 4"), 3, 14, "expected `=`, found `4`"),
        (program("set pm.banks =   # 4"), 3, 15, "expected a value, found the end of the line"),
        (
            program("set pm.note = 1 \"a"),
            3,
            17,
            "the text that begins here is not closed; a `\"` must end it in this line",
        ),
        (program("adversary soon"), 3, 11, "expected departs, or the seed, a number, found `soon`"),
        (program("adversary departs 3 1"), 3, 21, "expected `=`, found `1`"),
        (
            program("adversary departs 3=0"),
            3,
            21,
            "`0` is out of range; the number of its option is a number from 1 to 255",
        ),
        (
            program("adversary departs 3=1 3=1"),
            3,
            23,
            "`3` is out of range; the number of a choice is a number from 4 to 4294967295",
        ),
        (
            program("garbage 0xg"),
            3,
            9,
            "`0xg` is not a number; allowed are decimal digits, hexadecimal ones after 0x and binary ones after 0b, with _ between them",
        ),
        (
            program("first-transaction 18446744073709551616"),
            3,
            19,
            "`18446744073709551616` is out of range; the number of a transaction is a number from 0 to 18446744073709551615",
        ),
        (
            program("crash here"),
            3,
            7,
            "expected everywhere, marked or point (a crash step belongs in a thread), found `here`",
        ),
        (
            program("crash point 1 torn 0x100"),
            3,
            20,
            "`0x100` is out of range; the mask of words is a number from 0 to 255",
        ),
        (
            program("crash point 1 thorn 1"),
            3,
            15,
            "expected torn, in-flight, landed, recovery or the end of the line, found `thorn`",
        ),
        (
            thread("begin\n  if A = 1: commit"),
            7,
            13,
            "expected a store, load, movnt, outside, compute, evict, writeback or maintenance, which alone may depend on a word, found `commit`",
        ),
        (
            thread("if A = 1: A = 2"),
            6,
            1,
            "a store outside a transaction; designs protect stores of transactions only, so `begin` comes first, or `outside` before the word",
        ),
        (
            thread("repeat 0: load A"),
            6,
            8,
            "`0` is out of range; the count of repetitions is a number from 1 to 1048576",
        ),
        (thread("repeat 2 load A"), 6, 10, "expected `:`, found `load`"),
        (
            thread("repeat 2: load A load A"),
            6,
            18,
            "expected `,` or the end of the line, found `load`",
        ),
        (
            thread("repeat 2: repeat 2: load A"),
            6,
            11,
            "`repeat` begins a line, and has steps that are none themselves",
        ),
        (
            thread("repeat 2: lock m, load A"),
            6,
            11,
            "the thread has held `m` since line 6; `unlock m` comes first",
        ),
        (
            thread("repeat 2: crash c"),
            6,
            11,
            "there is a `crash c` in line 6 already; each crash step has a name of its own",
        ),
        (thread("if A 1: A = 2"), 6, 6, "expected `=`, found `1`"),
        (many_threads, 67, 1, "one thread too many; a program has at most 64"),
        (
            program(&format!("machine \"{}\"", "ä".repeat(50))),
            3,
            9,
            "expected the name of a machine, found `\"äääääääääääääääääääääääääääääääääääääää…`",
        ),
        // Variables.
        (program("load = 5"), 3, 1, "`load` is a word of this format and cannot name a variable"),
        (
            program("first-transaction[3] = 5"),
            3,
            1,
            "`first-transaction` is a word of this format and cannot name a variable",
        ),
        (
            program("A = 1\nB = 1\nA[2] = 0"),
            5,
            1,
            "`A` is defined in line 3 already; each variable has a name of its own",
        ),
        (program("A ="), 3, 4, "expected the value, a number, found the end of the line"),
        (program("A = -5"), 3, 5, "expected the value, a number, found `-`"),
        (
            program("A[0] = 1"),
            3,
            3,
            "`0` is out of range; the count of words is a number from 1 to 65536",
        ),
        (program("A[2 = 1"), 3, 5, "expected `]`, found `=`"),
        (program("A = 5 with B"), 3, 12, "`B` is not a variable; none is defined"),
        (program("B = 1\nA = 5 with A"), 4, 12, "`A` is not a variable; defined are B"),
        (
            program("A = 5 at 0x2004"),
            3,
            10,
            "`0x2004` is not a multiple of 8, as an offset must be",
        ),
        (program("A = 5 at 8 with A"), 3, 12, "one of `with` and `at` is allowed, once"),
        (
            program("A = 5 near B"),
            3,
            7,
            "expected `with`, `at` or the end of the line, found `near`",
        ),
        (
            program("thread\nmachine x\nA = 5"),
            5,
            1,
            "neither a store, which belongs in a thread, nor a variable, which is defined before the first thread",
        ),
        // Steps.
        (program("begin"), 3, 1, "`begin` is a step; steps follow `thread` or `sequence`"),
        (thread("begin\nD = 1"), 7, 1, "`D` is not a variable; defined are A, C"),
        (
            program(&format!("{many_words}thread\nload D")),
            18,
            6,
            "`D` is not a variable; defined are V10, V11, V12, V13, V14, V15, V16, V17, V18, V19, V20, V21 and 2 more",
        ),
        (thread("begin\nA 1"), 7, 3, "expected `=`, found `1`"),
        (thread("begin\nA[0] = 1"), 7, 2, "`A` is not an array; its only word has no index"),
        (thread("load C"), 6, 6, "`C` is an array; its words are C[0] to C[3]"),
        (thread("load C[4]"), 6, 8, "`4` is out of range; the index of C is a number from 0 to 3"),
        (
            thread("compute 0x1_0000_0000"),
            6,
            9,
            "`0x1_0000_0000` is out of range; the count of instructions is a number from 0 to 4294967295",
        ),
        (thread("evict A from l3"), 6, 14, "expected l1, l2 or llc, found `l3`"),
        (thread("evict A l1"), 6, 9, "expected `from` or the end of the line, found `l1`"),
        (thread("lock"), 6, 5, "expected the name of a lock, found the end of the line"),
        (thread("settle 5"), 6, 8, "expected the end of the line, found `5`"),
        (
            thread("crash end"),
            6,
            7,
            "`end` cannot name a crash step; any name but everywhere, marked, point, end is allowed",
        ),
        (thread("crash point x"), 6, 13, "expected the crash point, a number, found `x`"),
        (
            thread("crash a\ncrash b\ncrash a"),
            8,
            1,
            "there is a `crash a` in line 6 already; each crash step has a name of its own",
        ),
        // Transactions, locks and signals.
        (
            thread("begin\n begin"),
            7,
            2,
            "`begin` inside the transaction that began in line 6; `commit` comes first",
        ),
        (
            thread("begin\noutside A = 2\ncommit"),
            7,
            1,
            "`outside` inside the transaction that began in line 6; `commit` comes first",
        ),
        (
            thread("begin\nif A = 1: outside A = 2\ncommit"),
            7,
            1,
            "`outside` inside the transaction that began in line 6; `commit` comes first",
        ),
        (thread("outside load A"), 6, 9, "expected a store, as in A = 5, or movnt, found `load`"),
        (
            thread("outside outside A = 2"),
            6,
            9,
            "expected a store, as in A = 5, or movnt, found `outside`",
        ),
        (thread("commit"), 6, 1, "`commit` outside a transaction; `begin` comes first"),
        (
            thread("A = 2"),
            6,
            1,
            "a store outside a transaction; designs protect stores of transactions only, so `begin` comes first, or `outside` before the word",
        ),
        (
            thread("  begin\nthread\nbegin\ncommit"),
            6,
            3,
            "the thread ends inside this transaction; `commit` must follow",
        ),
        (
            thread("lock m\nlock n\nunlock n"),
            6,
            1,
            "the thread ends and holds this lock; `unlock m` must follow",
        ),
        (
            thread("lock m\nlock m"),
            7,
            1,
            "the thread has held `m` since line 6; `unlock m` comes first",
        ),
        (
            thread("lock m\nbegin\nunlock m\ncommit"),
            8,
            1,
            "`unlock m` inside the transaction that began in line 7; others must not see what may yet be undone, so `commit` comes first",
        ),
        (
            thread("begin\nA = 1\nsignal x\ncommit\nthread\nawait x\nload A"),
            8,
            1,
            "`signal x` inside a transaction that has stored to `A`, to which thread 1 comes then; others must not see what may yet be undone, so `commit` comes first",
        ),
        (thread("lock m\nthread\nunlock m"), 8, 1, "the thread does not hold `m`; none is held"),
        (thread("await x\nsignal y\nsignal z"), 6, 1, "nobody signals `x`; signalled are y, z"),
        // Threads that wait for each other, whatever else happens.
        (
            thread("begin\nawait x\ncommit\nsignal x"),
            7,
            1,
            "thread 0 waits for itself for ever, under any design: thread 0 awaits `x` in line 7, and it comes to `signal x` in line 9 only after that",
        ),
        (
            thread("lock m\nawait y\nunlock m\nsignal x\nthread\nawait x\nsignal y"),
            7,
            1,
            "threads wait for each other for ever, under any design: thread 0 awaits `y` in line 7, and thread 1 comes to `signal y` in line 12 only after that; \
             thread 1 awaits `x` in line 11, and thread 0 comes to `signal x` in line 9 only after that",
        ),
        (
            thread(
                "await a\nthread\nawait b\nsignal a\nthread\nawait c\nsignal b\nthread\nawait b\nsignal c",
            ),
            11,
            1,
            "threads wait for each other for ever, under any design: thread 2 awaits `c` in line 11, and thread 3 comes to `signal c` in line 15 only after that; \
             thread 3 awaits `b` in line 14, and thread 2 comes to `signal b` in line 12 only after that",
        ),
        (
            thread("signal x\nlife\nthread\nawait x\nsignal x"),
            9,
            1,
            "in life 2, thread 0 waits for itself for ever, under any design: thread 0 awaits `x` in line 9, and it comes to `signal x` in line 10 only after that",
        ),
        (
            in_order("0: lock m\n1: begin\n1: lock m\n0: unlock m\n1: commit\n1: unlock m"),
            7,
            4,
            "thread 1 would wait for `m` for ever, under any design: thread 0 has held it since line 5, and its `unlock m` comes only after this step",
        ),
        (
            in_order("0: await x\n1: signal x"),
            5,
            4,
            "nobody signals `x` before this step of the sequence, so its thread would wait for ever, under any design",
        ),
        // Sequences.
        (
            in_order("begin"),
            5,
            1,
            "expected a step with the number of its thread, as in 0: begin, or a statement, found `begin`",
        ),
        (in_order("0 begin"), 5, 3, "expected `:`, found `begin`"),
        (in_order("0: # begin"), 5, 3, "expected a step, found the end of the line"),
        (in_order("64: begin"), 5, 1, "`64` is out of range; the thread is a number from 0 to 63"),
        (
            in_order("0: settle\n3: settle\n2: settle"),
            7,
            4,
            "thread 2 has steps and thread 1 has none; threads are numbered from 0 without gaps",
        ),
        (
            in_order("0: begin\n1: A = 2\n0: commit"),
            6,
            4,
            "a store outside a transaction; designs protect stores of transactions only, so `begin` comes first, or `outside` before the word",
        ),
        (
            in_order("0: crash marked"),
            5,
            10,
            "`marked` cannot name a crash step; any name but everywhere, marked, point, end is allowed",
        ),
        (
            in_order("thread"),
            5,
            1,
            "there is a `sequence` in line 4 already; a program has threads or one sequence",
        ),
        (
            thread("sequence"),
            6,
            1,
            "there is a `thread` in line 5 already; a program has threads or one sequence",
        ),
        (in_order("sequence"), 5, 1, "`sequence` is in line 4 already; it is allowed once"),
        // Lives.
        (
            program("life"),
            3,
            1,
            "there is no thread before this `life`; each life has at least one",
        ),
        (
            thread("life"),
            6,
            5,
            "there is no thread; a program has at least one, and so has each life",
        ),
        (
            thread("begin\nlife"),
            6,
            1,
            "the thread ends inside this transaction; `commit` must follow",
        ),
        (thread("signal x\nlife\nthread\nawait x"), 9, 1, "nobody signals `x`; none is signalled"),
        (
            thread("crash y\nlife\nthread\ncrash y"),
            9,
            1,
            "there is a `crash y` in line 6 already; each crash step has a name of its own",
        ),
        // Expectations.
        (thread("expect x: A = 1"), 6, 8, "no crash step is named `x`; none is named"),
        (
            thread("crash y\ncrash z\nsurvives end: A = 1"),
            8,
            10,
            "no crash step is named `end`; named are y, z",
        ),
        (thread("expect end A = 1"), 6, 12, "expected `:`, found `A`"),
        (
            thread("expect end: A = 1; A = 2"),
            6,
            18,
            "expected `,`, `|` or the end of the line, found `;`",
        ),
        (thread("expect end: A = 1 |"), 6, 20, "expected a variable, found the end of the line"),
        (thread("expect end: A = 1, C = 2"), 6, 20, "`C` is an array; its words are C[0] to C[3]"),
    ];
    let wrong: Vec<String> = table
        .into_iter()
        .filter_map(|(text, line, column, message)| {
            let expected = Err(ParseError { line, column, message: message.into() });
            let found = parse(&text);
            (found != expected)
                .then(|| format!("{text}\nexpected {expected:?}\nfound    {found:?}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
