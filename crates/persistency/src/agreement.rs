//! All small programs, judged by the models and by the enumerator.
//!
//! The programs have two threads of up to `steps` steps each, on two lines, with one word each under x86 and two in the first line
//! under Arm, where the order of stores within a line matters. Every store has a value of its own, so that an image says which
//! version of each line is left. Of programs that are the same with threads or lines swapped one is compared.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::enumerator::enumerate;
use crate::happening::{Fence, Point};
use crate::model::Model;
use crate::orders::explore;
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

/// All programs of two threads of up to some steps each.
#[derive(Debug)]
pub struct Programs {
    alphabet: Vec<Op>,
    lines: Vec<u8>,
    /// The steps of a thread, as places in the alphabet: all sequences.
    sequences: Vec<Vec<u8>>,
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
        Programs { alphabet, lines, sequences, swapped }
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

    /// The number of programs that are compared.
    pub fn count(&self) -> u64 {
        let count = self.sequences.len();
        let of = |first| (first..count).filter(move |&second| self.is_first(first, second)).count();
        (0..count).map(|first| of(first) as u64).sum()
    }

    /// The program of a pair of sequences.
    pub fn program(&self, first: usize, second: usize) -> Program {
        let mut values = 0;
        let mut registers = 0;
        let mut op = |&place: &u8| {
            let mut op = self.alphabet[usize::from(place)].clone();
            match &mut op {
                Op::Store { value, .. } => {
                    values += 1;
                    *value = Value::Constant(values);
                }
                Op::Load { into, .. } => {
                    *into = registers;
                    registers += 1;
                }
                _ => {}
            }
            op
        };
        let first = self.sequences[first].iter().map(&mut op).collect();
        let second = self.sequences[second].iter().map(&mut op).collect();
        Program {
            lines: self.lines.clone(),
            initial: vec![0; self.lines.len()],
            threads: vec![first, second],
        }
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
    use super::*;
    use crate::model::MODELS;

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
}
