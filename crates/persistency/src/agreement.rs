//! All small programs, judged by the models and by the enumerator.
//!
//! The programs have two threads of up to `steps` steps each, on two lines, with one word each under x86 and two in the first line
//! under Arm, where the order of stores within a line matters. Every store has a value of its own, so that an image says which
//! version of each line is left. Of programs that are the same with threads or lines swapped one is compared.
//!
//! There are two ways. [`Programs::compare`] takes programs one by one. [`Programs::compare_family`] takes at once those whose first
//! threads begin alike: both sides explore what programs share once (`prefixes`), and programs for which others stand are left out
//! (`same`). Programs of four steps, 400 million, need the second way.

mod family;
mod same;

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use self::family::Family;
use self::same::Thread;

use crate::enumerator::{arm, enumerate, x86};
use crate::happening::{Fence, Point};
use crate::model::Model;
use crate::orders::{self, explore};
use crate::prefixes::STEPS;
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

/// Programs of a family that were compared.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// Programs on which model and enumerator ran.
    pub compared: u64,
    /// All programs of the family: these, and those for which others stand, of this family or another.
    pub covered: u64,
    /// The first difference.
    pub difference: Option<Difference>,
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
    /// Facts about each sequence.
    threads: Vec<Thread>,
    /// The number of each sequence with the lines swapped, if that is a symmetry.
    swapped: Option<Vec<usize>>,
}

impl Programs {
    /// All programs of up to `steps` steps in each thread, of the instructions of a model's platform.
    pub fn new(model: &Model, steps: usize) -> Programs {
        let is_arm = model.is_arm();
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
        let threads = sequences.iter().map(|places| Thread::new(places, &alphabet, &lines, is_arm));
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

    /// Tells if no other program stands for that of a pair of sequences, one that has fewer steps or is the same but for the order of
    /// steps without order (`same`).
    pub fn is_needed(&self, first: usize, second: usize) -> bool {
        let (a, b) = (&self.threads[first], &self.threads[second]);
        let stored = a.stored | b.stored;
        !a.is_not_needed && !b.is_not_needed && (a.flushed | b.flushed) & !stored == 0
    }

    /// The number of programs for which no other stands.
    pub fn needed(&self) -> u64 {
        let all = 0..self.sequences.len();
        let alone: Vec<usize> = all.filter(|&number| !self.threads[number].is_not_needed).collect();
        let pairs =
            alone.iter().enumerate().flat_map(|(at, &a)| alone[at..].iter().map(move |&b| (a, b)));
        pairs.filter(|&(a, b)| self.is_first(a, b) && self.is_needed(a, b)).count() as u64
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

    /// Compares model and enumerator on all programs of a family for which no others stand.
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
    swap_lines(&mut op);
    alphabet.iter().position(|other| *other == op).expect("the alphabet is symmetric") as u8
}

/// Makes a step of x86 the same step on the other line.
fn swap_lines(op: &mut Op) {
    match op {
        Op::Store { words, .. } => words[0] = 1 - words[0],
        Op::Load { word, .. } => *word = 1 - *word,
        Op::WriteBack(line) | Op::Flush(line) => *line = 1 - *line,
        _ => {}
    }
}

#[cfg(test)]
mod tests;
