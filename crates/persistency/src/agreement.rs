//! All small programs, judged by the models and by the enumerator.
//!
//! The programs have two threads of up to `steps` steps each, on two lines, with one word each under x86 and two in the first line
//! under Arm, where the order of stores within a line matters. Every store has a value of its own, so that an image says which
//! version of each line is left. Of programs that are the same with threads or lines swapped one is compared.
//!
//! There are two ways. [`Programs::compare`] takes programs one by one. [`Programs::compare_family`] takes those whose first thread
//! begins alike at once, with the same rules on both sides but shared beginnings ([`crate::prefixes`]), and leaves out programs with an
//! idle step. It is for programs of four steps, of which there are 400 million.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::enumerator::{arm, enumerate, x86};
use crate::happening::{Fence, Point};
use crate::model::Model;
use crate::orders::{self, explore};
use crate::prefixes::{Cells, Machine, STEPS};
use crate::program::{How, Op, Outcome, Program, Value};

/// A program on which model and enumerator differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The program.
    pub program: Program,
    /// Outcomes that the model alone has.
    pub model_only: Vec<Outcome>,
    /// Outcomes that the enumerator alone has.
    pub enumerator_only: Vec<Outcome>,
}

/// Compares model and enumerator on a program.
pub fn compare(model: &Model, program: &Program) -> Option<Difference> {
    let predicted = explore(model, program).expect("small programs are small enough");
    let executed = enumerate(model, program).expect("small programs are small enough");
    if predicted == executed {
        return None;
    }
    let only = |these: &FxHashSet<Outcome>, those: &FxHashSet<Outcome>| {
        let mut only: Vec<_> = these.difference(those).copied().collect();
        only.sort_unstable();
        only
    };
    Some(Difference {
        program: program.clone(),
        model_only: only(&predicted, &executed),
        enumerator_only: only(&executed, &predicted),
    })
}

/// Programs that were compared at once, or one by one.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Programs on which model and enumerator ran.
    pub compared: u64,
    /// These, and those that leave the same as a shorter program: they have an idle step.
    pub covered: u64,
    /// The first difference.
    pub difference: Option<Difference>,
}

/// A thread's steps, as far as idle steps depend on them.
#[derive(Clone, Copy, Debug)]
struct Thread {
    /// A step is idle whatever follows it.
    is_idle_for_ever: bool,
    /// A step is idle whatever the other thread does.
    is_idle: bool,
    /// Lines that are stored to, and lines that are flushed, as sets.
    stored: u8,
    flushed: u8,
}

/// All programs of two threads of up to some steps each.
#[derive(Debug)]
pub struct Programs {
    steps: usize,
    alphabet: Vec<Op>,
    lines: Vec<u8>,
    /// The steps of a thread, as places in the alphabet: all sequences. Those that begin with a sequence and have one step more have
    /// the numbers from [`Programs::longer`].
    sequences: Vec<Vec<u8>>,
    /// What is known of each sequence.
    threads: Vec<Thread>,
    /// The number of each sequence with the lines swapped, if that is a symmetry.
    swapped: Option<Vec<usize>>,
}

impl Programs {
    /// All programs of up to `steps` steps in each thread, of the instructions of a model's platform.
    pub fn new(model: &Model, steps: usize) -> Programs {
        let alphabet = alphabet(model);
        let mut sequences: Vec<Vec<u8>> = vec![vec![]];
        let mut longest = 0..1;
        for _ in 0..steps {
            let begin = sequences.len();
            for sequence in longest {
                for op in 0..alphabet.len() as u8 {
                    let longer = sequences[sequence].iter().copied().chain([op]).collect();
                    sequences.push(longer);
                }
            }
            longest = begin..sequences.len();
        }
        let lines = if model.is_arm() { vec![0, 0, 1] } else { vec![0, 1] };
        let swapped = (!model.is_arm()).then(|| {
            let numbers: BTreeMap<&[u8], usize> = sequences
                .iter()
                .enumerate()
                .map(|(number, ops)| (ops.as_slice(), number))
                .collect();
            let other = |&op: &u8| place_with_lines_swapped(&alphabet, op);
            let swapped = sequences.iter().map(|ops| ops.iter().map(other).collect::<Vec<u8>>());
            swapped.map(|ops| numbers[ops.as_slice()]).collect()
        });
        let threads = sequences.iter().map(|places| {
            let ops: Vec<&Op> = places.iter().map(|&place| &alphabet[usize::from(place)]).collect();
            thread(&ops, &lines)
        });
        let threads = threads.collect();
        Programs { steps, alphabet, lines, sequences, threads, swapped }
    }

    /// The number of step sequences of a thread: a program is a pair of them.
    pub fn sequences(&self) -> usize {
        self.sequences.len()
    }

    /// Tells if a pair of sequences comes first among those that are the same program with threads or lines swapped.
    pub fn is_first(&self, first: usize, second: usize) -> bool {
        let pair = (first, second);
        let lines = self.swapped.as_ref().is_none_or(|swapped| {
            let (a, b) = (swapped[first], swapped[second]);
            pair <= (a, b) && pair <= (b, a)
        });
        pair <= (second, first) && lines
    }

    /// Tells if no step of a program is idle. A program with an idle step leaves what the program without it leaves, with the same
    /// registers, done or not: the step can always be taken at once, and nothing waits for it that does not wait for others as long.
    ///
    /// - A fence that has nothing to order since another that orders as much, or since the beginning. Loads of x86 need no fence:
    ///   each is answered before all later steps.
    /// - A flush right after the same flush: the later of the two makes durable what the other does.
    /// - A flush of a line that no thread stores to: there is nothing to make durable, and accesses of a line that it orders are
    ///   loads of one word, which are in order.
    /// - A flush or a fence at the end of a thread, which nothing waits for, but for `mfence` and `DSB`, since a program is done
    ///   after these alone. Later loads of x86 wait neither for flushes nor for `sfence`.
    /// - `DMB ST` with no store after it.
    ///
    /// A load is never idle: its register tells how far its thread has come.
    pub fn has_no_idle_step(&self, first: usize, second: usize) -> bool {
        let (a, b) = (&self.threads[first], &self.threads[second]);
        let stored = a.stored | b.stored;
        !a.is_idle && !b.is_idle && (a.flushed | b.flushed) & !stored == 0
    }

    /// The number of the first sequence that has one step more than this one and begins with it.
    fn longer(&self, sequence: usize) -> usize {
        // One step more gives as many sequences as there are steps, in the order of the shorter ones.
        1 + sequence * self.alphabet.len()
    }

    /// The number of families of programs: their first threads are a sequence and one step more.
    pub fn families(&self) -> usize {
        // As many as there are sequences that can be longer.
        (self.sequences.len() - 1) / self.alphabet.len()
    }

    /// The number of programs, each counted once with those that are the same with threads or lines swapped.
    pub fn count(&self) -> u64 {
        // Burnside's lemma: the mean number of pairs that a symmetry leaves as they are.
        let all = self.sequences.len() as u64;
        let Some(swapped) = &self.swapped else { return (all * all + all) / 2 };
        let same = (0..).zip(swapped).filter(|&(number, &other)| number == other).count() as u64;
        (all * all + all + same * same + all) / 4
    }

    /// The program of a pair of sequences.
    pub fn program(&self, first: usize, second: usize) -> Program {
        let ops = |(thread, number): (usize, usize)| {
            let places = self.sequences[number].iter().enumerate();
            places.map(|(at, &place)| self.step(thread, at, place)).collect()
        };
        Program {
            lines: self.lines.clone(),
            initial: vec![0; self.lines.len()],
            threads: [first, second].into_iter().enumerate().map(ops).collect(),
        }
    }

    /// A step of a thread, with a value or a register of its own.
    fn step(&self, thread: usize, at: usize, place: u8) -> Op {
        let number = (thread * self.steps + at) as u8;
        let mut op = self.alphabet[usize::from(place)].clone();
        match &mut op {
            Op::Store { value, .. } => *value = Value::Constant(1 + number),
            Op::Load { into, .. } => *into = number,
            _ => {}
        }
        op
    }

    /// Compares model and enumerator on all programs whose first thread has one of these sequences. Returns the number of programs,
    /// and the first difference.
    pub fn compare(
        &self,
        model: &Model,
        first: std::ops::Range<usize>,
    ) -> (u64, Option<Difference>) {
        let mut count = 0;
        for a in first {
            for b in (a..self.sequences.len()).filter(|&b| self.is_first(a, b)) {
                count += 1;
                if let Some(difference) = compare(model, &self.program(a, b)) {
                    return (count, Some(difference));
                }
            }
        }
        (count, None)
    }

    /// Compares model and enumerator on all programs of a family, the shortest first thread among those of the first.
    ///
    /// # Panics
    /// Programs of more than four steps.
    pub fn compare_family(&self, model: &Model, family: usize) -> Compared {
        assert!(self.steps <= STEPS, "a program is too long to be grown");
        let predicate = orders::Growing::new(model, &self.lines);
        if model.is_arm() {
            Family::new(self, model, family, predicate, arm::Growing::new(model, &self.lines))
                .compare()
        } else {
            Family::new(self, model, family, predicate, x86::Growing::new(model, &self.lines))
                .compare()
        }
    }

    /// Compares model and enumerator on `count` programs that a seed draws from all. Returns the first difference.
    pub fn compare_drawn(&self, model: &Model, seed: u64, count: u64) -> Option<Difference> {
        let mut state = seed;
        let mut draw = || {
            // SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): any 64 bits may be its state.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = state;
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ (mixed >> 31)) % self.sequences.len() as u64) as usize
        };
        (0..count).find_map(|_| compare(model, &self.program(draw(), draw())))
    }
}

/// All programs whose first thread is a sequence, the stem, and one step more.
struct Family<'a, P: Machine, E: Machine> {
    programs: &'a Programs,
    model: &'a Model,
    stem: usize,
    /// The first threads, each with the place of its cells.
    firsts: Vec<(usize, usize)>,
    predicate: Cells<P>,
    enumerator: Cells<E>,
    compared: Compared,
}

impl<'a, P: Machine, E: Machine> Family<'a, P, E> {
    fn new(
        programs: &'a Programs,
        model: &'a Model,
        stem: usize,
        predicate: P,
        enumerator: E,
    ) -> Self {
        let length = programs.sequences[stem].len();
        let ends =
            (0..programs.alphabet.len()).map(|end| (programs.longer(stem) + end, length + 1 + end));
        // The empty sequence is no longer than any, and belongs to the first family.
        let empty = (stem == 0).then_some((0, 0));
        let width = length + 1 + programs.alphabet.len();
        Family {
            programs,
            model,
            stem,
            firsts: empty.into_iter().chain(ends).collect(),
            predicate: Cells::new(predicate, width),
            enumerator: Cells::new(enumerator, width),
            compared: Compared::default(),
        }
    }

    fn compare(mut self) -> Compared {
        let Programs { sequences, threads, .. } = self.programs;
        let mut expected = 0;
        for &(first, _) in &self.firsts {
            for second in
                (first..sequences.len()).filter(|&second| self.programs.is_first(first, second))
            {
                self.compared.covered += 1;
                expected += u64::from(self.programs.has_no_idle_step(first, second));
            }
        }
        self.firsts.retain(|&(first, _)| !threads[first].is_idle);
        if !self.firsts.is_empty() {
            for (at, place) in sequences[self.stem].iter().enumerate() {
                self.replace(0, at, *place);
            }
            self.visit(0);
        }
        let Compared { compared, difference, .. } = &self.compared;
        assert!(difference.is_some() || *compared == expected, "a program was left out");
        self.compared
    }

    fn replace(&mut self, thread: usize, at: usize, place: u8) {
        let op = self.programs.step(thread, at, place);
        self.predicate.replace(thread, at, &op);
        self.enumerator.replace(thread, at, &op);
    }

    fn fill(&mut self, place: usize, lengths: [usize; 2]) {
        self.predicate.fill(place, lengths);
        self.enumerator.fill(place, lengths);
    }

    /// Compares the programs whose second thread is a sequence, and those in which it is longer.
    fn visit(&mut self, second: usize) {
        let programs = self.programs;
        let length = programs.sequences[second].len();
        let stem = &programs.sequences[self.stem];
        let is_longest = length == programs.steps;
        let is_wanted = |first: usize| {
            programs.is_first(first, second) && programs.has_no_idle_step(first, second)
        };
        if is_longest && !self.firsts.iter().any(|&(first, _)| is_wanted(first)) {
            return;
        }
        for first in 0..=stem.len() {
            self.fill(first, [first, length]);
        }
        for at in 0..self.firsts.len() {
            let (first, place) = self.firsts[at];
            let is_wanted = is_wanted(first);
            if place > stem.len() && (is_wanted || !is_longest) {
                self.replace(0, stem.len(), programs.sequences[first][stem.len()]);
                self.fill(place, [stem.len() + 1, length]);
            }
            if is_wanted {
                self.compared.compared += 1;
                if !self.predicate.agrees(&self.enumerator, place, length) {
                    let found = compare(self.model, &programs.program(first, second));
                    self.compared.difference = Some(found.expect("one by one they differ, too"));
                    return;
                }
            }
        }
        if is_longest {
            return;
        }
        for place in 0..programs.alphabet.len() {
            let longer = programs.longer(second) + place;
            let beginning = &programs.sequences[longer];
            // Of two sequences as long the first thread has the one with the smaller number.
            let is_never_first = stem.len() + 1 == programs.steps
                && beginning.as_slice() < &stem[..stem.len().min(beginning.len())];
            if !is_never_first && !programs.threads[longer].is_idle_for_ever {
                self.replace(1, length, place as u8);
                self.visit(longer);
                if self.compared.difference.is_some() {
                    return;
                }
            }
        }
    }
}

/// What is known of a thread's steps.
fn thread(ops: &[&Op], lines: &[u8]) -> Thread {
    let (mut stored, mut flushed) = (0, 0);
    for op in ops {
        match op {
            Op::Store { words, .. } => stored |= 1 << lines[usize::from(words[0])],
            Op::WriteBack(line) | Op::Flush(line) | Op::Clean(line, _) => flushed |= 1 << line,
            _ => {}
        }
    }
    let is_idle_for_ever = (0..ops.len()).any(|at| is_idle_after(&ops[..at], ops[at]));
    let is_idle_before = |at: usize| is_idle_before(ops[at], &ops[at + 1..]);
    let is_idle = is_idle_for_ever || (0..ops.len()).any(is_idle_before);
    Thread { is_idle_for_ever, is_idle, stored, flushed }
}

/// Tells if a step is idle whatever follows.
fn is_idle_after(before: &[&Op], op: &Op) -> bool {
    match op {
        Op::WriteBack(_) | Op::Flush(_) | Op::Clean(..) => before.last() == Some(&op),
        Op::Fence(fence) => {
            for earlier in before.iter().rev() {
                if fence_of(earlier).is_some_and(|earlier| covers(earlier, *fence)) {
                    return true;
                }
                if waits_for(*fence, earlier) {
                    return false;
                }
            }
            true
        }
        _ => false,
    }
}

/// Tells if a step is idle whatever the other thread does, since nothing that follows it waits for it.
fn is_idle_before(op: &Op, after: &[&Op]) -> bool {
    let is_load = |op: &&Op| matches!(op, Op::Load { .. });
    let is_store = |op: &&Op| matches!(op, Op::Store { .. });
    match op {
        Op::WriteBack(_) | Op::Flush(_) | Op::Fence(Fence::Store) => after.iter().all(is_load),
        Op::Fence(Fence::DmbStore) => !after.iter().any(is_store),
        Op::Clean(..) | Op::Fence(Fence::Dmb | Fence::DmbLoad) => after.is_empty(),
        _ => false,
    }
}

/// The order that a step gives, as a fence.
fn fence_of(op: &Op) -> Option<Fence> {
    match op {
        Op::Fence(fence) => Some(*fence),
        Op::Store { how: How::Locked, .. } => Some(Fence::Locked),
        _ => None,
    }
}

/// Tells if a fence orders all that another does.
fn covers(fence: Fence, other: Fence) -> bool {
    match fence {
        Fence::Full | Fence::Dsb => true,
        Fence::Dmb => matches!(other, Fence::Dmb | Fence::DmbStore | Fence::DmbLoad),
        Fence::Locked => matches!(other, Fence::Locked | Fence::Store),
        _ => fence == other,
    }
}

/// Tells if a fence may wait for an earlier step that is no fence.
fn waits_for(fence: Fence, op: &Op) -> bool {
    let is_load = matches!(op, Op::Load { .. });
    match fence {
        _ if matches!(op, Op::Fence(_)) => false,
        Fence::Store | Fence::Full | Fence::Locked => !is_load,
        Fence::Dmb | Fence::Dsb => true,
        Fence::DmbStore => matches!(op, Op::Store { .. }),
        Fence::DmbLoad => is_load,
    }
}

/// The instructions of a platform on two lines, with words and lines by number.
fn alphabet(model: &Model) -> Vec<Op> {
    let store = |word, how| Op::Store { words: vec![word], value: Value::Constant(0), how };
    let load = |word| Op::Load { word, into: 0, acquire: false };
    if model.is_arm() {
        return vec![
            store(0, How::Cached),
            store(1, How::Cached),
            store(2, How::Cached),
            store(0, How::Release),
            load(0),
            load(2),
            Op::Load { word: 2, into: 0, acquire: true },
            Op::Clean(0, Point::Persistence),
            Op::Clean(1, Point::DeepPersistence),
            Op::Fence(Fence::Dmb),
            Op::Fence(Fence::DmbStore),
            Op::Fence(Fence::DmbLoad),
            Op::Fence(Fence::Dsb),
        ];
    }
    let of_line = |line| {
        [
            store(line, How::Cached),
            store(line, How::NonTemporal),
            store(line, How::Locked),
            load(line),
            Op::WriteBack(line),
            Op::Flush(line),
        ]
    };
    let fences = [Op::Fence(Fence::Store), Op::Fence(Fence::Full)];
    of_line(0).into_iter().chain(of_line(1)).chain(fences).collect()
}

/// The place in the alphabet of the same step on the other line.
fn place_with_lines_swapped(alphabet: &[Op], place: u8) -> u8 {
    let mut op = alphabet[usize::from(place)].clone();
    match &mut op {
        Op::Store { words, .. } => words[0] = 1 - words[0],
        Op::Load { word, .. } => *word = 1 - *word,
        Op::WriteBack(line) | Op::Flush(line) => *line = 1 - *line,
        _ => {}
    }
    alphabet.iter().position(|other| *other == op).expect("the alphabet is symmetric") as u8
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::model::MODELS;
    use crate::rules::Rule;

    /// Compares programs without idle steps, all or one of `one_of`, on two host threads.
    fn agrees(model: &Model, steps: usize, one_of: usize) -> u64 {
        let programs = Programs::new(model, steps);
        let next = AtomicUsize::new(0);
        let compare_some = || {
            let mut compared = 0;
            loop {
                let first = next.fetch_add(1, Ordering::Relaxed);
                if first >= programs.sequences() {
                    return compared;
                }
                for second in first..programs.sequences() {
                    let is_left = (first + second).is_multiple_of(one_of)
                        && programs.is_first(first, second)
                        && programs.has_no_idle_step(first, second);
                    if is_left {
                        compared += 1;
                        let difference = compare(model, &programs.program(first, second));
                        assert!(difference.is_none(), "{}: {difference:#?}", model.name);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let threads = [scope.spawn(compare_some), scope.spawn(compare_some)];
            threads.into_iter().map(|thread| thread.join().expect("it agrees")).sum()
        })
    }

    /// Bug class: a rule of order or durability that the model has and the machine of buffers and queues has not, or the reverse.
    #[test]
    fn models_and_enumerator_agree_on_all_programs_of_two_steps() {
        for model in &MODELS {
            let programs = Programs::new(model, 2);
            let (count, difference) = programs.compare(model, 0..programs.sequences());
            assert!(difference.is_none(), "{}: {difference:#?}", model.name);
            assert_eq!(count, programs.count());
        }
    }

    /// The same class, where it takes three steps.
    #[test]
    fn models_and_enumerator_agree_on_a_part_of_the_programs_of_three_steps() {
        for model in &MODELS {
            assert!(agrees(model, 3, 37) > 5_000);
        }
    }

    /// A message is passed by a load of Arm that nothing but `DMB LD` orders with the next.
    fn message() -> Program {
        let store =
            |word| Op::Store { words: vec![word], value: Value::Constant(1), how: How::Cached };
        let load = |word, into| Op::Load { word, into, acquire: false };
        let sender = vec![store(0), Op::Fence(Fence::Dmb), store(2)];
        let receiver = vec![load(2, 0), Op::Fence(Fence::DmbLoad), load(0, 1)];
        Program::new(vec![0, 0, 1], vec![sender, receiver]).expect("it is small")
    }

    /// Bug class: a rule that no program can tell from its absence, so that the agreement says nothing about it.
    #[test]
    #[ignore = "long: all programs of two steps, and of one thread of four, without each rule"]
    fn every_rule_of_order_shows() {
        let mut hidden = Vec::new();
        for model in &MODELS {
            let pairs = Programs::new(model, 2);
            let alone = Programs::new(model, 4);
            for rule in model.order {
                let others = model.order.iter().filter(|other| other.name != rule.name).copied();
                let order: &[Rule] = Vec::leak(others.collect());
                let without = Model { order, ..model.clone() };
                let differs = |program: &Program| compare(&without, program).is_some();
                let shows = model.is_arm() && differs(&message())
                    || pairs.compare(&without, 0..pairs.sequences()).1.is_some()
                    || (0..alone.sequences()).any(|first| differs(&alone.program(first, 0)));
                if !shows {
                    hidden.push((model.name, rule.name));
                }
            }
        }
        // clflush makes durable what a write-back of its line before it would. AMD's rule of clflush says that there is none.
        // Where caches survive, flushes order nothing but non-temporal stores of their line.
        let expected = [
            ("x86-adr", "flushes of a line"),
            ("x86-adr-amd", "clflush"),
            ("x86-eadr", "store before write-back"),
            ("x86-eadr", "flushes of a line"),
        ];
        assert_eq!(hidden, expected);
    }

    /// Bug class: a program is left out as the same as another that it is not the same as.
    #[test]
    fn a_program_with_an_idle_step_leaves_what_the_shorter_one_leaves() {
        let images = |model: &Model, program: &Program| -> FxHashSet<Vec<u8>> {
            let outcomes = explore(model, program).expect("it is small");
            outcomes.iter().map(|outcome| outcome.image.to_vec()).collect()
        };
        for model in &MODELS {
            let programs = Programs::new(model, 2);
            let count = programs.sequences();
            for (first, second) in (0..count).flat_map(|a| (0..count).map(move |b| (a, b))) {
                if programs.has_no_idle_step(first, second) {
                    continue;
                }
                let program = programs.program(first, second);
                let all = images(model, &program);
                let shorter = (0..2).flat_map(|thread| {
                    (0..program.threads[thread].len()).map(move |at| (thread, at))
                });
                let is_same = |(thread, at): (usize, usize)| {
                    let mut shorter: Program = program.clone();
                    shorter.threads[thread].remove(at);
                    images(model, &shorter) == all
                };
                assert!(shorter.into_iter().any(is_same), "{}: {program:?}", model.name);
            }
        }
    }

    #[test]
    fn draws_repeat() {
        let programs = Programs::new(&MODELS[0], 4);
        assert!(programs.compare_drawn(&MODELS[0], 1, 100).is_none());
        assert_eq!(programs.sequences(), 1 + 14 + 14 * 14 + 14 * 14 * 14 + 14 * 14 * 14 * 14);
    }
}
