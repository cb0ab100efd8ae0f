//! Situations that chance seldom brings about: numbers and logs that come round, structures that are filled exactly, a
//! transaction that is held open, two passes of the design's own work.
//!
//! Each is put into some programs after all else of them was drawn, from numbers of its own, so that the rest of a seed's
//! schedule is what it would be without it. A variation of a program may put one into it, too.

use std::ops::{Range, RangeInclusive};

use rand::seq::{IndexedMutRandom, IndexedRandom, SliceRandom};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::generator::{Generator, LARGE_LOG_REGION, LOG_REGION, Owned, Owner, is_stressed};
use super::subject::Subject;
use super::transactions::transactions;
use crate::litmus::{Level, Litmus, Placement, Step, Variable, Word};
use graven_base::memory::{WORD_BYTES, spread};
use graven_machine::design::{DesignInfo, Room, TakenBy};

/// The numbers of transactions without stores in a row: the transaction behind them has the id of the one before them, in
/// ids of 2, 4, 8 and 16 bits.
const EMPTY_TRANSACTIONS: [u64; 4] = [3, 15, 255, 65_535];

/// The numbers of transactions of one store in a row: counters of log records pass 8 and 9 bits, and logs come round.
const SMALL_TRANSACTIONS: [u64; 3] = [14, 254, 520];

/// Half of these numbers are up to this less than a power of two less one, so that what comes round with powers of two
/// does so in what follows.
const SHORT_OF_POWER_MAX: u64 = 4;

/// Bits of these powers of two. The larger ones are drawn seldom.
const POWER_BITS: Range<u32> = 2..10;
const LARGE_POWER_BITS: Range<u32> = 10..12;
const LARGE_POWER_ONE_IN: u32 = 12;

/// Words of an array that is filled exactly, at most.
const FILLED_WORDS_MAX: u64 = 32_768;

/// Transactions that a fill adds to a thread, at most, but for those that each take a place.
const FILL_TRANSACTIONS_MAX: u64 = 3;

/// Threads beside one whose transaction is held open.
const CROWD: RangeInclusive<u64> = 5..=8;

/// Threads that hold transactions open, at most.
const HOLDERS_MAX: u32 = 4;

/// Instructions for which a transaction is held open, or between two passes: as long as others take for whole programs.
const HELD_INSTRUCTIONS: Range<u32> = 2_000..60_000;

/// Evictions between and after two passes, at most.
const EVICTED_MAX: usize = 8;

/// A situation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Situation {
    /// Many transactions without stores in a row, between two others of a thread.
    EmptyTransactions,
    /// Many transactions of one store in a row, between two others or behind the largest.
    SmallTransactions,
    /// All parameters of the design under stress at once.
    AllStress,
    /// A structure of the design is filled exactly, to one less, or by one more.
    ExactFill,
    /// Transactions are held open while many other threads run, and their lines are evicted and loaded again.
    HeldOpen,
    /// Two passes of the design's periodic work, with a wait between them, and evictions line by line.
    TwoPasses,
}

impl Situation {
    /// Every situation. One program in the second number has it, drawn by the stream of random numbers with the third.
    pub const ALL: [(Situation, u32, u64); 6] = [
        (Situation::EmptyTransactions, 8, 0x656d),
        (Situation::SmallTransactions, 12, 0x736d),
        (Situation::AllStress, 8, 0x7374),
        (Situation::ExactFill, 4, 0x6578),
        (Situation::HeldOpen, 8, 0x686f),
        (Situation::TwoPasses, 8, 0x7477),
    ];
}

impl Generator {
    /// Puts some of the situations into the program of a seed.
    pub fn add_situations(
        &mut self,
        litmus: &mut Litmus,
        variables: &mut Vec<Owned>,
        subject: &Subject<'_>,
        seed: u64,
    ) {
        for (situation, one_in, stream) in Situation::ALL {
            self.random = Pcg64::seed_from_u64(spread(seed, stream));
            if self.one_in(one_in) {
                self.add(situation, litmus, variables, subject);
            }
        }
    }

    /// Puts any situation into a program.
    pub fn add_any_situation(
        &mut self,
        litmus: &mut Litmus,
        variables: &mut Vec<Owned>,
        subject: &Subject<'_>,
    ) {
        let (situation, _, _) = Situation::ALL.choose(&mut self.random).expect("not empty");
        self.add(*situation, litmus, variables, subject);
    }

    fn add(
        &mut self,
        situation: Situation,
        litmus: &mut Litmus,
        variables: &mut Vec<Owned>,
        subject: &Subject<'_>,
    ) {
        match situation {
            Situation::EmptyTransactions => self.insert_empty_transactions(litmus),
            Situation::SmallTransactions => self.insert_small_transactions(litmus, variables),
            Situation::AllStress => self.stress_everything(litmus, subject.design),
            Situation::ExactFill => {
                let rooms = subject.rooms(litmus);
                if let Some(room) = rooms.choose(&mut self.random) {
                    self.fill(litmus, variables, *room);
                }
            }
            Situation::HeldOpen => self.hold_open(litmus, variables, subject.design),
            Situation::TwoPasses => self.insert_passes(litmus, variables),
        }
    }

    /// Between two transactions of a thread come many without stores, so that ids come round while what bears the same
    /// ones is still there.
    fn insert_empty_transactions(&mut self, litmus: &mut Litmus) {
        let most = self.draws.empty_transactions;
        let counts: Vec<u64> = EMPTY_TRANSACTIONS.into_iter().filter(|&n| n <= most).collect();
        let Some(&count) = counts.choose(&mut self.random) else { return };
        let life = self.random.random_range(0..litmus.lives.len());
        let threads = &mut litmus.lives[life].threads;
        let steps = threads.choose_mut(&mut self.random).expect("a life has threads");
        let Some(at) = self.between_transactions(steps) else { return };
        let empty = [Step::Begin, Step::Commit].into_iter().cycle().take(2 * count as usize);
        steps.splice(at..at, empty);
    }

    /// The beginning of a transaction of a thread that is not its first.
    fn between_transactions(&mut self, steps: &[Step]) -> Option<usize> {
        let starts = transactions(steps).into_iter().skip(1).map(|one| one.start);
        starts.collect::<Vec<_>>().choose(&mut self.random).copied()
    }

    /// Many transactions of a thread in a row store to one word of the thread's. Not in later lives, which begin after many
    /// power failures each.
    fn insert_small_transactions(&mut self, litmus: &mut Litmus, variables: &[Owned]) {
        let Some(count) = self.small_transactions() else { return };
        let thread = self.random.random_range(0..litmus.lives[0].threads.len());
        let own: Vec<&Owned> =
            variables.iter().filter(|v| v.owner == Owner::Thread(thread)).collect();
        let Some(own) = own.choose(&mut self.random) else { return };
        let word = self.word(&own.variable);
        let values = [self.value(&word), self.value(&word)];
        let steps = &mut litmus.lives[0].threads[thread];
        let at = if self.one_in(2) {
            self.between_transactions(steps)
        } else {
            let stores = |of: &Range<usize>| {
                steps[of.clone()].iter().filter(|s| s.is_transactional_store()).count()
            };
            let all = transactions(steps);
            let is_one_of_several = all.len() > 1;
            let largest = all.into_iter().max_by_key(stores).filter(|_| is_one_of_several);
            largest.map(|largest| largest.end)
        };
        let Some(at) = at else { return };
        let small = (0..count as usize).flat_map(|nth| {
            [Step::Begin, Step::Store(word.clone(), values[nth % 2]), Step::Commit]
        });
        steps.splice(at..at, small);
    }

    /// A number of small transactions, if any is allowed.
    fn small_transactions(&mut self) -> Option<u64> {
        let most = self.draws.small_transactions;
        if self.one_in(2) {
            let counts: Vec<u64> = SMALL_TRANSACTIONS.into_iter().filter(|&n| n <= most).collect();
            return counts.choose(&mut self.random).copied();
        }
        let bits = if self.one_in(LARGE_POWER_ONE_IN) { LARGE_POWER_BITS } else { POWER_BITS };
        let power = 1_u64 << self.random.random_range(bits);
        let count = power.saturating_sub(1 + self.random.random_range(0..SHORT_OF_POWER_MAX));
        (1..=most).contains(&count).then_some(count)
    }

    /// Every parameter of the design that is under stress has one of its values.
    fn stress_everything(&mut self, litmus: &mut Litmus, design: &DesignInfo) {
        for (keys, values) in design.stress {
            let is_set = |key: &str| litmus.settings.iter().any(|(set, _)| set == key);
            if !keys.split('+').any(is_set) {
                let drawn = self.setting(keys, values);
                litmus.settings.extend(drawn);
            }
        }
    }

    /// A thread fills the places of a structure exactly, all but one of them, or asks for one more; what it stored last or first
    /// is evicted, stored to again, or loaded right after it.
    fn fill(&mut self, litmus: &mut Litmus, variables: &mut Vec<Owned>, room: Room) {
        let places = room.places;
        let wanted = match self.random.random_range(0..6) {
            0 => places.saturating_sub(2),
            1 => places.saturating_sub(1),
            2 | 3 => places + 1,
            _ => places,
        };
        let thread = self.random.random_range(0..litmus.lives[0].threads.len());
        let transactions_before = transactions(&litmus.lives[0].threads[thread]).len() as u64;
        if transactions_before + FILL_TRANSACTIONS_MAX > self.draws.transactions {
            return;
        }
        let (stride, most) = match room.taken_by {
            TakenBy::Piece(bytes) => (bytes.div_ceil(WORD_BYTES), self.draws.stores),
            TakenBy::Transaction => {
                // Words of a line each, or of one line.
                (if self.one_in(2) { 8 } else { 1 }, self.draws.small_transactions)
            }
        };
        let words = wanted.saturating_sub(1) * stride + 1;
        if !(1..=most).contains(&wanted) || words > FILLED_WORDS_MAX {
            return;
        }
        let name = format!("F{}", variables.len());
        let of_word = |nth: u64| Word { name: name.clone(), index: Some((nth * stride) as u32) };
        let mut order: Vec<u64> = (0..wanted).collect();
        match self.random.random_range(0..3) {
            0 => order.reverse(),
            1 => order.shuffle(&mut self.random),
            _ => {}
        }
        let ends: Vec<Word> =
            [order[0], order[wanted as usize - 1]].into_iter().map(of_word).collect();
        let mut steps = vec![Step::Begin];
        // What holds no more than that need not hold one transaction that is larger.
        let is_cut = if wanted > places { !self.one_in(4) } else { self.one_in(3) };
        let cut = is_cut.then(|| self.random.random_range(0..wanted));
        for (nth, &place) in (0..).zip(&order) {
            let is_last_of_transaction = room.taken_by == TakenBy::Transaction && nth > 0;
            if is_last_of_transaction || cut == Some(nth) {
                steps.extend([Step::Commit, Step::Begin]);
            }
            let word = of_word(place);
            let value = self.value(&word);
            steps.push(Step::Store(word, value));
        }
        self.follow_up(&ends, &mut steps, true);
        steps.push(Step::Commit);
        self.follow_up(&ends, &mut steps, false);
        steps.push(Step::Begin);
        self.follow_up(&ends, &mut steps, true);
        steps.push(Step::Commit);
        let thread_steps = &mut litmus.lives[0].threads[thread];
        let starts: Vec<usize> = transactions(thread_steps)
            .iter()
            .map(|one| one.start)
            .chain([thread_steps.len()])
            .collect();
        let at = *starts.choose(&mut self.random).expect("a thread has an end");
        thread_steps.splice(at..at, steps);
        let variable =
            Variable { name, words: Some(words as u32), initial: 0, place: Placement::OwnLine };
        declare(litmus, variables, variable, thread);
    }

    /// Some actions on the words that were stored to first and last.
    fn follow_up(&mut self, ends: &[Word], steps: &mut Vec<Step>, is_in_transaction: bool) {
        for _ in 0..self.random.random_range(0..4) {
            let word = ends.choose(&mut self.random).expect("not empty").clone();
            steps.push(match self.random.random_range(0..8) {
                0..3 => Step::Evict(word, Level::Llc),
                3 => Step::Evict(word, Level::L1),
                4 => Step::Load(word),
                5 => Step::Maintenance,
                6 if is_in_transaction => {
                    let value = self.value(&word);
                    Step::Store(word, value)
                }
                6 => Step::WriteBack(word),
                _ => Step::Compute(self.random.random_range(1..3000)),
            });
        }
    }

    /// Transactions of one thread or of several stay open for long behind their stores, while many other threads run: their lines are
    /// evicted, loaded again, and stored to again.
    fn hold_open(
        &mut self,
        litmus: &mut Litmus,
        variables: &mut Vec<Owned>,
        design: &'static DesignInfo,
    ) {
        self.add_crowd(litmus, variables, design);
        let threads = litmus.lives[0].threads.len();
        let holders = if self.one_in(2) { 1 } else { self.random.random_range(2..=HOLDERS_MAX) };
        let mut order: Vec<usize> = (0..threads).collect();
        order.shuffle(&mut self.random);
        for &thread in order.iter().take(holders as usize) {
            let steps = &mut litmus.lives[0].threads[thread];
            self.hold_one_open(steps);
        }
    }

    /// Holds one transaction of a thread open: its lines are evicted, loaded and stored to again before its end.
    fn hold_one_open(&mut self, steps: &mut Vec<Step>) {
        let is_end = |&at: &usize| {
            steps[at] == Step::Commit && at > 0 && steps[at - 1].is_transactional_store()
        };
        let ends: Vec<usize> = (0..steps.len()).filter(is_end).collect();
        let Some(&end) = ends.choose(&mut self.random) else { return };
        let begin = steps[..end].iter().rposition(|step| *step == Step::Begin).unwrap_or(0);
        let mut stored: Vec<(Word, u64)> = Vec::new();
        for step in steps[begin..end].iter().rev() {
            if let Step::Store(word, value) | Step::StoreNonTemporal(word, value) = step.action()
                && !stored.iter().any(|(known, _)| known == word)
            {
                stored.push((word.clone(), *value));
            }
        }
        stored.truncate(EVICTED_MAX);
        let mut held = Vec::new();
        for round in 0..self.random.random_range(1..3) {
            for (word, _) in &stored {
                if !self.one_in(4) {
                    held.push(Step::Evict(word.clone(), Level::Llc));
                }
            }
            held.push(Step::Compute(self.random.random_range(HELD_INSTRUCTIONS)));
            if self.one_in(2) {
                held.push(Step::Maintenance);
                held.push(Step::Compute(self.random.random_range(HELD_INSTRUCTIONS)));
            }
            for (word, value) in &stored {
                match self.random.random_range(0..4) {
                    0 | 1 => held.push(Step::Load(word.clone())),
                    2 if round == 0 => {
                        let again = if self.one_in(2) { *value } else { self.value(word) };
                        held.push(Step::Store(word.clone(), again));
                    }
                    _ => {}
                }
            }
        }
        steps.splice(end..end, held);
    }

    /// Threads come to the first life until they are a crowd; each has a word of its own in a line of others.
    fn add_crowd(
        &mut self,
        litmus: &mut Litmus,
        variables: &mut Vec<Owned>,
        design: &'static DesignInfo,
    ) {
        let wanted = self.up_to(self.draws.threads, CROWD) as usize;
        let threads = litmus.lives[0].threads.len();
        if threads >= wanted {
            return;
        }
        let is_set = litmus.settings.iter().any(|(key, _)| key == LOG_REGION);
        if !is_set && !is_stressed(design, LOG_REGION) {
            litmus.settings.push((LOG_REGION.into(), LARGE_LOG_REGION.into()));
        }
        for thread in threads..wanted {
            let others: Vec<&Owned> =
                variables.iter().filter(|v| v.variable.words.is_none()).collect();
            let place = match others.choose(&mut self.random) {
                Some(other) if !self.one_in(3) => Placement::With(other.variable.name.clone()),
                _ => Placement::OwnLine,
            };
            let name = format!("T{}", variables.len());
            let variable = Variable { name, words: None, initial: 0, place };
            declare(litmus, variables, variable, thread);
        }
        for thread in threads..wanted {
            let steps = self.thread(thread, variables);
            litmus.lives[0].threads.push(steps);
        }
    }

    /// A pass of the design's periodic work, a wait, another pass, and evictions of one line after the other, in the midst of
    /// whatever a thread does.
    fn insert_passes(&mut self, litmus: &mut Litmus, variables: &[Owned]) {
        let life = self.random.random_range(0..litmus.lives.len());
        let thread = self.random.random_range(0..litmus.lives[life].threads.len());
        let mut lines: Vec<&Owned> = variables.iter().collect();
        lines.shuffle(&mut self.random);
        lines.truncate(EVICTED_MAX);
        let mut passes = vec![Step::Maintenance];
        for _ in 0..self.random.random_range(1..3) {
            if self.one_in(3) {
                self.disturb(variables, &mut passes);
            }
            let longest = if self.one_in(2) { 600 } else { HELD_INSTRUCTIONS.end };
            passes.push(Step::Compute(self.random.random_range(1..longest)));
            passes.push(Step::Maintenance);
        }
        for owned in lines {
            let word = self.word(&owned.variable);
            match self.random.random_range(0..6) {
                0..3 => passes.push(Step::Evict(word, Level::Llc)),
                3 => passes.push(Step::Evict(word, Level::L2)),
                4 => passes.push(Step::Evict(word, Level::L1)),
                _ => passes.push(Step::Load(word)),
            }
            if self.one_in(3) {
                passes.push(Step::Compute(self.random.random_range(1..2000)));
            }
        }
        let steps = &mut litmus.lives[life].threads[thread];
        let at = self.random.random_range(0..=steps.len());
        steps.splice(at..at, passes);
    }
}

/// Gives a thread another variable of its own.
fn declare(litmus: &mut Litmus, variables: &mut Vec<Owned>, variable: Variable, thread: usize) {
    litmus.variables.push(variable.clone());
    variables.push(Owned { variable, owner: Owner::Thread(thread) });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adversary::Draws;

    /// The transaction behind such a row is the one with which a counter of some bits comes round.
    #[test]
    fn rows_of_small_transactions_end_shortly_before_powers_of_two() {
        let draws = Draws::default();
        let mut generator = Generator::new(&draws, 1);
        let rows: Vec<u64> = (0..4000).filter_map(|_| generator.small_transactions()).collect();
        for power in (POWER_BITS.start..=9).map(|bits| 1_u64 << bits) {
            for short_of in 1..=SHORT_OF_POWER_MAX.min(power - 1) {
                assert!(rows.contains(&(power - short_of)), "{power} - {short_of}");
            }
        }
        assert!(rows.iter().all(|&row| row <= draws.small_transactions));
    }
}
