//! Programs that share their first steps, explored together.
//!
//! A machine's states are kept in cells: the cell of M and N has the states in which the last step that is taken of the first thread
//! is its Mth, and of the second its Nth. A state is in one cell; a step that is further on leads to a later cell, everything else
//! stays in the cell. Since no machine looks ahead, a cell depends on the first M and N steps alone, and programs that begin alike
//! share it: of a program whose beginnings are known the last cell alone is new.
//!
//! This is a way to go through programs. What a step does, the two machines that are compared each say for themselves.

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

use crate::program::{Op, Outcome};

/// The most steps of a thread.
pub const STEPS: usize = 4;

/// A machine of two threads whose steps can be replaced.
pub trait Machine {
    /// The machine in between steps.
    type State: Copy + Eq + Hash;

    /// True if a thread takes a step right after the one before it, so that no step is left out for later.
    const IN_ORDER: bool;

    /// Replaces a step of a thread. Steps after it do not count until they are replaced, too.
    fn replace(&mut self, thread: usize, at: usize, op: &Op);

    /// The state before all steps.
    fn start(&self) -> Self::State;

    /// The state after a step of a thread, if it can be taken now.
    fn step(&self, state: &Self::State, thread: usize, at: usize) -> Option<Self::State>;

    /// Finds states after what is no step of a thread.
    fn drift(&self, state: &Self::State, found: &mut impl FnMut(Self::State));

    /// Finds what a power failure may leave, without telling if the program is done.
    fn outcomes(&self, state: &Self::State, found: &mut impl FnMut(Outcome));

    /// Tells if the program of a number of first steps of each thread is done.
    fn is_done(&self, state: &Self::State, lengths: [usize; 2]) -> bool;

    /// Tells if a program with this step is not done before it is taken.
    fn is_awaited(&self, thread: usize, at: usize) -> bool;
}

/// A set that keeps its memory when it is emptied, and its items in the order in which they came.
#[derive(Debug)]
struct Set<T> {
    items: Vec<T>,
    /// For each hash the place of an item, counted from 1; 0 where there is none. Less than a quarter has one.
    places: Vec<u32>,
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Set { items: Vec::new(), places: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash> Set<T> {
    fn clear(&mut self) {
        // As much as was needed the last time: memory that is near is faster.
        let needed = (4 * self.items.len() + 4).next_power_of_two();
        self.items.clear();
        self.places.clear();
        self.places.resize(needed, 0);
    }

    /// The index in `places` where an item is, or where it would be.
    fn find(&self, item: &T) -> usize {
        let mask = self.places.len() - 1;
        // The uppermost bits of the product that the hash is, which depend on all bits of the item.
        let hash = FxBuildHasher.hash_one(item).rotate_right(26);
        let mut index = (hash >> 32) as usize >> (32 - mask.count_ones());
        loop {
            match self.places[index] {
                0 => return index,
                place if self.items[place as usize - 1] == *item => return index,
                _ => index = (index + 1) & mask,
            }
        }
    }

    fn insert(&mut self, item: T) {
        if self.places.len() <= 4 * self.items.len() {
            let more = (4 * self.places.len()).max(64);
            self.places.clear();
            self.places.resize(more, 0);
            for at in 0..self.items.len() {
                let index = self.find(&self.items[at]);
                self.places[index] = at as u32 + 1;
            }
        }
        let index = self.find(&item);
        if self.places[index] == 0 {
            self.items.push(item);
            self.places[index] = self.items.len() as u32;
        }
    }

    fn extend(&mut self, other: &Set<T>) {
        other.items.iter().for_each(|item| self.insert(*item));
    }

    fn equals(&self, other: &Set<T>) -> bool {
        self.items.len() == other.items.len()
            && self.items.iter().all(|item| other.places[other.find(item)] != 0)
    }
}

/// An outcome of a program of up to four words, as a number.
type Packed = u128;

fn packed(outcome: &Outcome) -> Packed {
    let [a, b, c, d, ..] = outcome.image;
    let image = u32::from_le_bytes([a, b, c, d]);
    Packed::from(u64::from_le_bytes(outcome.registers)) << 32 | Packed::from(image)
}

/// The states of one pair of lengths, and what a power failure may leave of the program of these lengths.
#[derive(Debug)]
struct Cell<S> {
    states: Set<S>,
    all: Set<Packed>,
    done: Set<Packed>,
}

impl<S> Default for Cell<S> {
    fn default() -> Self {
        Cell { states: Set::default(), all: Set::default(), done: Set::default() }
    }
}

/// The place at which a cell is kept. No cell follows those of the longest programs, which have one place in turn: memory that was
/// used a moment ago is faster.
fn kept_at(place: usize, lengths: [usize; 2]) -> usize {
    if lengths == [STEPS; 2] { STEPS } else { place }
}

/// Cells of a machine: a row for each length of the second thread, in which the first thread has one of some beginnings.
#[derive(Debug)]
pub struct Cells<M: Machine> {
    machine: M,
    rows: Vec<Vec<Cell<M::State>>>,
}

impl<M: Machine> Cells<M> {
    /// Rows of `width` cells: of the first thread's beginnings of 0, 1, 2 steps and so on, then of its ends.
    pub fn new(machine: M, width: usize) -> Cells<M> {
        let row = |_| (0..width).map(|_| Cell::default()).collect();
        Cells { machine, rows: (0..=STEPS).map(row).collect() }
    }

    /// Replaces a step of a thread.
    pub fn replace(&mut self, thread: usize, at: usize, op: &Op) {
        self.machine.replace(thread, at, op);
    }

    /// Fills a cell whose earlier ones are filled: those of its row for shorter beginnings, and its own place in earlier rows.
    pub fn fill(&mut self, place: usize, lengths: [usize; 2]) {
        let [first, second] = lengths;
        let kept = kept_at(place, lengths);
        let mut cell = std::mem::take(&mut self.rows[second][kept]);
        let Cell { states, all, done } = &mut cell;
        states.clear();
        all.clear();
        done.clear();
        let machine = &self.machine;
        let earlier =
            |length: usize| if M::IN_ORDER { length.saturating_sub(1) } else { 0 }..length;
        if lengths == [0, 0] {
            states.insert(machine.start());
        }
        for from in earlier(first).map(|length| &self.rows[second][length]) {
            let from = from.states.items.iter();
            from.filter_map(|state| machine.step(state, 0, first - 1))
                .for_each(|s| states.insert(s));
        }
        for from in earlier(second).map(|length| &self.rows[length][place]) {
            let from = from.states.items.iter();
            from.filter_map(|state| machine.step(state, 1, second - 1))
                .for_each(|s| states.insert(s));
        }
        let mut next = 0;
        while let Some(&state) = states.items.get(next) {
            next += 1;
            if !M::IN_ORDER {
                for (thread, length) in lengths.into_iter().enumerate() {
                    for at in 0..length.saturating_sub(1) {
                        machine.step(&state, thread, at).into_iter().for_each(|s| states.insert(s));
                    }
                }
            }
            machine.drift(&state, &mut |s| states.insert(s));
            let is_done = machine.is_done(&state, lengths);
            machine.outcomes(&state, &mut |outcome| {
                if is_done { &mut *done } else { &mut *all }.insert(packed(&outcome));
            });
        }
        all.extend(done);
        // What is left of a program's beginning may be left of the program, and of a program that is done without its last step.
        let shorter = [
            (first > 0).then(|| &self.rows[second][first - 1]),
            (second > 0).then(|| &self.rows[second - 1][place]),
        ];
        for (thread, shorter) in shorter.into_iter().enumerate() {
            let Some(shorter) = shorter else { continue };
            all.extend(&shorter.all);
            if !machine.is_awaited(thread, lengths[thread] - 1) {
                done.extend(&shorter.done);
            }
        }
        self.rows[second][kept] = cell;
    }

    /// Tells if what is left of the program of a cell is this.
    #[cfg(test)]
    pub fn leaves(
        &self,
        place: usize,
        lengths: [usize; 2],
        outcomes: &rustc_hash::FxHashSet<Outcome>,
    ) -> bool {
        let cell = &self.rows[lengths[1]][kept_at(place, lengths)];
        let is_in = |outcome: &Outcome| {
            let set = if outcome.done { &cell.done } else { &cell.all };
            !set.items.is_empty() && set.places[set.find(&packed(outcome))] != 0
        };
        outcomes.len() == cell.all.items.len() + cell.done.items.len() && outcomes.iter().all(is_in)
    }

    /// Tells if two machines leave the same of the program of a cell.
    pub fn agrees<N: Machine>(&self, other: &Cells<N>, place: usize, lengths: [usize; 2]) -> bool {
        let (row, kept) = (lengths[1], kept_at(place, lengths));
        let (cell, other) = (&self.rows[row][kept], &other.rows[row][kept]);
        cell.all.equals(&other.all) && cell.done.equals(&other.done)
    }
}
