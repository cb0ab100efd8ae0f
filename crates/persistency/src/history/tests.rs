//! A history against the enumerator, and rules that small programs do not reach.

use std::collections::BTreeSet;

use graven_base::memory::{Image, LINE_BYTES};
use proptest::prelude::*;

use super::*;
use crate::agreement::Programs;
use crate::enumerator::enumerate;
use crate::happening::Point;
use crate::model::MODELS;
use crate::program::{How, Op, Program, UNSET, Value};

/// The address of a word of a program: the words of a line follow one another.
fn addr(program: &Program, word: u8) -> Addr {
    let line = program.lines[usize::from(word)];
    let before = program.lines[..usize::from(word)].iter().filter(|&&other| other == line).count();
    Addr(u64::from(line) * LINE_BYTES + before as u64 * 8)
}

/// The words of a program, as recovery finds them.
struct Few<'a>(&'a Program, &'a [u8]);

impl Words for Few<'_> {
    fn word(&self, at: Addr) -> u64 {
        let found = (0..self.1.len()).find(|&word| addr(self.0, word as u8) == at);
        found.map_or(0, |word| u64::from(self.1[word]))
    }
}

/// A judge and the visible words of a program without loads.
struct Run<'a> {
    program: &'a Program,
    history: History,
    visible: Vec<u8>,
    at: Seq,
}

impl<'a> Run<'a> {
    fn new(model: &Model, program: &'a Program) -> Run<'a> {
        Run { program, history: History::new(model), visible: program.initial.clone(), at: 0 }
    }

    fn saw(&mut self, happening: &Happening) {
        self.at += 1;
        self.history.saw(self.at, happening);
    }

    /// Gives a step to the judge; calls `each` at every instant.
    fn step(&mut self, thread: u32, op: &Op, each: &mut impl FnMut(&Run)) {
        let line = |line: u8| LineAddr(u64::from(line));
        let op = match *op {
            Op::Store { ref words, value: Value::Constant(value), how } => {
                if how == How::Locked {
                    let op = Persist::Fence(Fence::Locked);
                    self.saw(&Happening::Persist { thread, op });
                }
                let path = match how {
                    How::NonTemporal => Path::NonTemporal,
                    How::Release => Path::Release,
                    _ => Path::Cached,
                };
                for (part, &word) in words.iter().enumerate() {
                    let addr = addr(self.program, word);
                    let visible = &mut self.visible[usize::from(word)];
                    let (old, new) = (u64::from(*visible), u64::from(value));
                    *visible = value;
                    let continues = part > 0;
                    self.saw(&Happening::Store { thread, addr, old, new, path, continues });
                    each(self);
                }
                if how == How::Locked {
                    let op = Persist::Fence(Fence::Locked);
                    self.saw(&Happening::Persist { thread, op });
                }
                each(self);
                return;
            }
            Op::Load { word, .. } => {
                self.saw(&Happening::Load { thread, addr: addr(self.program, word) });
                return each(self);
            }
            Op::WriteBack(of) => Persist::WriteBack(line(of)),
            Op::Flush(of) => Persist::Flush(line(of)),
            Op::Clean(of, point) => Persist::Clean(line(of), point),
            Op::Fence(fence) => Persist::Fence(fence),
            _ => unreachable!("programs here have no such step"),
        };
        self.saw(&Happening::Persist { thread, op });
        each(self);
    }

    /// The images that the judge allows now.
    fn images(&self) -> BTreeSet<Vec<u8>> {
        let stores = self.program.threads.iter().flatten().filter_map(|op| match op {
            Op::Store { words, value: Value::Constant(value), .. } => Some((words.clone(), *value)),
            _ => None,
        });
        let mut candidates = vec![vec![]];
        for word in 0..self.program.lines.len() as u8 {
            let mut values = vec![0];
            values.extend(
                stores.clone().filter(|(to, _)| to.contains(&word)).map(|(_, value)| value),
            );
            candidates = candidates
                .iter()
                .flat_map(|begun: &Vec<u8>| {
                    values.iter().map(|&value| [&begun[..], &[value]].concat())
                })
                .collect();
        }
        let is_allowed = |image: &Vec<u8>| {
            let found = Few(self.program, image);
            // A judge says nothing of words that were not stored to.
            let is_known =
                |word: usize| self.history.oldest(addr(self.program, word as u8)).is_some();
            let is_initial = (0..image.len()).all(|word| is_known(word) || image[word] == 0);
            is_initial && self.history.judge(&found).is_ok()
        };
        candidates.into_iter().filter(is_allowed).collect()
    }
}

fn enumerated(model: &Model, program: &Program) -> BTreeSet<Vec<u8>> {
    let outcomes = enumerate(model, program).expect("it is small");
    outcomes.iter().map(|outcome| outcome.image[..program.lines.len()].to_vec()).collect()
}

/// The images of all instants of all interleavings of two threads, as they would be traced.
fn traced(model: &Model, program: &Program) -> BTreeSet<Vec<u8>> {
    let mut images = BTreeSet::new();
    let counts = [program.threads[0].len(), program.threads[1].len()];
    let total = counts[0] + counts[1];
    for choice in (0u32..1 << total).filter(|choice| choice.count_ones() as usize == counts[1]) {
        let mut run = Run::new(model, program);
        images.extend(run.images());
        let mut next = [0, 0];
        for step in 0..total {
            let thread = (choice >> step & 1) as usize;
            let op = &program.threads[thread][next[thread]];
            next[thread] += 1;
            run.step(thread as u32, op, &mut |run| images.extend(run.images()));
        }
    }
    images
}

fn has_loads(program: &Program) -> bool {
    program.threads.iter().flatten().any(|op| matches!(op, Op::Load { .. }))
}

/// Tells if a non-temporal store may act before an earlier step that makes something durable: a trace has it at its place.
fn may_act_early(program: &Program) -> bool {
    program.threads.iter().any(|ops| {
        let mut is_passed = false;
        ops.iter().any(|op| {
            match op {
                Op::Fence(_) | Op::Store { how: How::Locked, .. } => is_passed = false,
                Op::Store { how: How::NonTemporal, .. } => return is_passed,
                Op::Store { .. } | Op::Flush(_) => is_passed = true,
                _ => {}
            }
            false
        })
    })
}

/// Compares what traces say with what the enumerator says.
fn agrees(model: &Model, program: &Program) {
    let (traced, enumerated) = (traced(model, program), enumerated(model, program));
    let is_acquire = |op: &Op| matches!(op, Op::Load { acquire: true, .. });
    if program.threads.iter().flatten().any(is_acquire) {
        // A trace does not say that a load orders the stores before it and after it.
        assert!(traced.is_superset(&enumerated), "{}: {program:?}: {traced:?}", model.name);
    } else if may_act_early(program) {
        assert!(traced.is_subset(&enumerated), "{}: {program:?}: {traced:?}", model.name);
    } else {
        assert_eq!(traced, enumerated, "{}: {program:?}", model.name);
    }
}

/// Bug class: a trace of one thread is judged more strictly, or less, than its visibility orders are.
#[test]
fn a_trace_of_one_thread_says_what_the_enumerator_says() {
    for model in &MODELS {
        let programs = Programs::new(model, 3);
        for number in 0..programs.sequences() {
            let program = programs.program(number, 0);
            agrees(model, &program);
        }
    }
}

/// Bug class: a judge of traces forgets what one thread's events mean for another's.
#[test]
fn traces_of_two_threads_say_what_the_enumerator_says() {
    for model in &MODELS {
        let programs = Programs::new(model, 2);
        let count = programs.sequences();
        let pairs = (0..count).flat_map(|a| (a..count).map(move |b| (a, b)));
        for (a, b) in pairs.filter(|&(a, b)| programs.is_first(a, b)) {
            let program = programs.program(a, b);
            if has_loads(&program) {
                continue;
            }
            agrees(model, &program);
        }
    }
}

fn wide(words: &[u8], value: u8) -> Op {
    Op::Store { words: words.to_vec(), value: Value::Constant(value), how: How::Cached }
}

/// Bug class: parts of one instruction are kept in the order in which they were told.
#[test]
fn parts_of_an_instruction_have_no_order() {
    let line = vec![0, 0, 0, 1, 1];
    let programs = [
        vec![wide(&[0, 1, 2], 1)],
        vec![wide(&[0, 1, 3, 4], 1)],
        vec![wide(&[0], 1), wide(&[0, 1, 2], 2), wide(&[2], 3)],
        vec![wide(&[0, 1], 1), Op::WriteBack(0), Op::Fence(Fence::Store), wide(&[3], 2)],
        vec![wide(&[0, 1], 1), wide(&[1, 0], 2)],
    ];
    for model in MODELS.iter().filter(|model| !model.is_arm()) {
        for thread in &programs {
            let program = Program::new(line.clone(), vec![thread.clone(), vec![]]).expect("small");
            agrees(model, &program);
        }
    }
}

fn store(thread: u32, addr: u64, old: u64, new: u64) -> Happening {
    let (addr, path) = (Addr(addr), Path::Cached);
    Happening::Store { thread, addr, old, new, path, continues: false }
}

fn persist(thread: u32, op: Persist) -> Happening {
    Happening::Persist { thread, op }
}

fn history(model: &str, happenings: &[Happening]) -> History {
    let mut history = History::new(Model::find(model).expect("it exists"));
    for (at, happening) in (1..).zip(happenings) {
        history.saw(at, happening);
    }
    history
}

/// Bug class: a contradiction is told without what made the store durable.
#[test]
fn a_broken_promise_names_the_store_and_its_fence() {
    let fence = Persist::Fence(Fence::Store);
    let write_back = Persist::WriteBack(LineAddr(1));
    let history =
        history("x86-adr", &[store(0, 64, 5, 6), persist(0, write_back), persist(0, fence)]);
    let mut found = Image::new();
    found.store(Addr(64), 5);
    let broken = history.judge(&found).expect_err("it was durable");
    assert_eq!((broken.addr, broken.edge), (Some(Addr(64)), Some((1, 3))));
    assert_eq!(
        broken.what,
        "the word at 0x40 holds 0x5, which it cannot hold now; event 1 stored 0x6, durable since event 3"
    );
    found.store(Addr(64), 6);
    assert_eq!(history.judge(&found), Ok(()));
    assert_eq!(history.open().count(), 0);
}

/// Bug class: a crash explorer is not told of a line that may differ, or of one that may not.
#[test]
fn open_lines_are_those_with_several_versions() {
    let both = [
        store(0, 0, 0, 1),
        store(1, 64, 0, 2),
        store(0, 8, 0, 3),
        persist(0, Persist::WriteBack(LineAddr(0))),
    ];
    let mut history = history("x86-adr", &both);
    let open = |history: &History| -> Vec<(u64, u32, u32, usize)> {
        let of =
            |open: Open| (open.line.0, open.range.at_least, open.range.at_most, open.stores.len());
        history.open().map(of).collect()
    };
    assert_eq!(open(&history), [(0, 0, 2, 2), (1, 0, 1, 1)]);
    history.saw(5, &Happening::Told { thread: 1 });
    assert_eq!(open(&history).len(), 2, "another thread's write-back is not drained");
    history.saw(6, &Happening::Told { thread: 0 });
    assert_eq!(open(&history), [(1, 0, 1, 1)]);
    assert_eq!(
        (history.oldest(Addr(8)), history.oldest(Addr(64)), history.oldest(Addr(72))),
        (Some(3), Some(0), None)
    );
}

/// Bug class: a system call drains although the model says that it does not.
#[test]
fn acknowledgement_is_declared() {
    let model = Model { told_drains: false, ..MODELS[0].clone() };
    let mut history = History::new(&model);
    history.saw(1, &store(0, 0, 0, 1));
    history.saw(2, &persist(0, Persist::WriteBack(LineAddr(0))));
    history.saw(3, &Happening::Told { thread: 0 });
    assert!(history.range(LineAddr(0)).is_open());
}

/// Bug class: memory, or time, in proportion to flushes that no fence drains.
#[test]
fn endless_flushes_without_a_fence_are_forgotten() {
    let mut history = History::new(&MODELS[0]);
    for at in 0..1_000_000 {
        history.saw(at, &persist(0, Persist::WriteBack(LineAddr(at % 7))));
    }
    assert!(history.ranges.remembered() < 10_000);
}

/// Bug class: a clean that does not reach what survives counts.
#[test]
fn a_clean_counts_where_it_reaches_what_survives() {
    for (model, point, counts) in [
        ("arm-pop", Point::Coherence, false),
        ("arm-pop", Point::Persistence, true),
        ("arm-pop", Point::DeepPersistence, true),
        ("arm-podp", Point::Persistence, false),
        ("arm-podp", Point::DeepPersistence, true),
    ] {
        let clean = Persist::Clean(LineAddr(0), point);
        let told = [store(0, 0, 0, 1), persist(0, clean), persist(0, Persist::Fence(Fence::Dsb))];
        let is_open = history(model, &told).range(LineAddr(0)).is_open();
        assert_eq!(is_open, !counts, "{model} {point:?}");
    }
}

proptest! {
    /// Bug class: what is forgotten would still have been needed. A judge that forgets nothing is asked the same.
    #[test]
    fn visible_words_are_always_allowed(steps in proptest::collection::vec((0u32..3, 0u64..4, 0u64..8, 0u8..7), 1..60)) {
        for model in &MODELS[..3] {
            let (mut history, mut visible) = (History::new(model), Image::new());
            for (at, &(thread, line, word, kind)) in (1..).zip(&steps) {
                let addr = LineAddr(line).word(word as usize);
                let happening = match kind {
                    0..=2 => {
                        let old = visible.store(addr, at);
                        let path = if kind == 2 { Path::NonTemporal } else { Path::Cached };
                        Happening::Store { thread, addr, old, new: at, path, continues: false }
                    }
                    3 => persist(thread, Persist::WriteBack(LineAddr(line))),
                    4 => persist(thread, Persist::Flush(LineAddr(line))),
                    5 => persist(thread, Persist::Fence(Fence::Store)),
                    _ => persist(thread, Persist::Fence(Fence::Full)),
                };
                history.saw(at, &happening);
                prop_assert_eq!(history.judge(&visible), Ok(()));
                let mut oldest = Image::new();
                for line in (0..4).map(LineAddr) {
                    for word in 0..8 {
                        oldest.store(line.word(word), history.oldest(line.word(word)).unwrap_or(0));
                    }
                }
                prop_assert_eq!(history.judge(&oldest), Ok(()), "the oldest versions are one of the images");
            }
        }
    }
}

/// Unused registers stay unset, so that this value can be no constant.
#[test]
fn constants_are_no_unset_registers() {
    assert!(Program::new(vec![0], vec![vec![wide(&[0], UNSET - 1)]]).is_ok());
    assert!(Program::new(vec![0], vec![vec![wide(&[0], UNSET)]]).is_err());
}
