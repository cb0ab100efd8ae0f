//! All programs whose first threads begin alike, compared at once.

use super::{Compared, Programs, compare};
use crate::model::Model;
use crate::prefixes::{Cells, Machine};

/// All programs whose first thread is a sequence, the stem, and one step more.
pub struct Family<'a, P: Machine, E: Machine> {
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
    pub fn new(
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

    /// Compares the programs that no other stands for.
    pub fn compare(mut self) -> Compared {
        let Programs { sequences, threads, .. } = self.programs;
        let mut expected = 0;
        for &(first, _) in &self.firsts {
            for second in
                (first..sequences.len()).filter(|&second| self.programs.is_first(first, second))
            {
                self.compared.covered += 1;
                expected += u64::from(self.programs.is_needed(first, second));
            }
        }
        self.firsts.retain(|&(first, _)| !threads[first].is_not_needed);
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

    /// Checks that a program's cells have what is left of it alone.
    #[cfg(test)]
    fn check(&self, first: usize, second: usize, place: usize, lengths: [usize; 2]) {
        let program = self.programs.program(first, second);
        let predicted = crate::orders::explore(self.model, &program).expect("it is small");
        let executed = crate::enumerator::enumerate(self.model, &program).expect("it is small");
        assert!(self.predicate.leaves(place, lengths, &predicted), "the model: {program:?}");
        assert!(self.enumerator.leaves(place, lengths, &executed), "the enumerator: {program:?}");
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
        let is_wanted =
            |first: usize| programs.is_first(first, second) && programs.is_needed(first, second);
        if is_longest && !self.firsts.iter().any(|&(first, _)| is_wanted(first)) {
            return;
        }
        for first in 0..=stem.len() {
            self.fill(first, [first, length]);
        }
        for at in 0..self.firsts.len() {
            let (first, place) = self.firsts[at];
            let is_wanted = is_wanted(first);
            let lengths = [programs.sequences[first].len(), length];
            if place > stem.len() && (is_wanted || !is_longest) {
                self.replace(0, stem.len(), programs.sequences[first][stem.len()]);
                self.fill(place, lengths);
            }
            if is_wanted {
                self.compared.compared += 1;
                #[cfg(test)]
                self.check(first, second, place, lengths);
                if !self.predicate.agrees(&self.enumerator, place, lengths) {
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
            if !is_never_first && !programs.threads[longer].is_never_needed {
                self.replace(1, length, place as u8);
                self.visit(longer);
                if self.compared.difference.is_some() {
                    return;
                }
            }
        }
    }
}
