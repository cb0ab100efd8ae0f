//! Index of the slots that have a line, used at every access: of the queues of the controller, and
//! of the on-PM buffer.

use graven_base::slots::{Links, List, NONE};

/// Counters of the summary: a power of two, and several times the places of most lists, so that most counters are zero.
const COUNTERS: usize = 512;

/// Counts the line numbers of each residue that are somewhere. Mostly the wanted number is not there, and a counter that is
/// zero says so without a search.
#[derive(Clone, Debug)]
pub struct LineSummary {
    counters: Box<[u32; COUNTERS]>,
}

impl Default for LineSummary {
    fn default() -> LineSummary {
        LineSummary { counters: Box::new([0; COUNTERS]) }
    }
}

impl LineSummary {
    /// A number is there once more.
    #[inline]
    pub fn add(&mut self, number: u64) {
        self.counters[residue(number)] += 1;
    }

    /// A number is there once less.
    ///
    /// # Panics
    /// It was not there.
    #[inline]
    pub fn remove(&mut self, number: u64) {
        let count = &mut self.counters[residue(number)];
        *count = count.checked_sub(1).expect("what is taken out was counted in");
    }

    /// Returns true if a number may be in the summary. `false` is always right, and `true` mostly.
    #[inline]
    pub fn may_have(&self, number: u64) -> bool {
        self.counters[residue(number)] != 0
    }
}

/// Numbers of lines, or of media lines, by slot; several may be equal. Slots whose numbers fall together are chained in the
/// order in which they got them.
#[derive(Clone, Debug)]
pub struct LineIndex {
    slots: Vec<Chained>,
    chains: Box<[List]>,
    /// Shift of a number, once it is spread: its highest bits are the number of its chain.
    shift: u32,
}

/// A slot, and its neighbours in its chain.
#[derive(Clone, Copy, Debug)]
struct Chained {
    number: u64,
    links: Links,
}

fn links(chained: &mut Chained) -> &mut Links {
    &mut chained.links
}

impl LineIndex {
    /// Makes an index of `slots` slots, which have no numbers.
    pub fn new(slots: usize) -> LineIndex {
        // Twice as many chains as slots, so that most are empty.
        let bits = (2 * slots.max(1)).next_power_of_two().trailing_zeros();
        LineIndex {
            slots: vec![Chained { number: 0, links: Links::ALONE }; slots],
            chains: vec![List::EMPTY; 1 << bits].into(),
            shift: u64::BITS - bits,
        }
    }

    /// The chain of a number.
    #[inline]
    fn chain(&self, number: u64) -> usize {
        // Multiples of any power of two are spread by 2^64 over the golden ratio.
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    /// A slot without a number gets one.
    #[inline]
    pub fn insert(&mut self, slot: u32, number: u64) {
        let chain = self.chain(number);
        self.slots[slot as usize].number = number;
        self.chains[chain].append(&mut self.slots, links, slot);
    }

    /// A slot has its number no longer.
    #[inline]
    pub fn remove(&mut self, slot: u32) {
        let chain = self.chain(self.slots[slot as usize].number);
        self.chains[chain].remove(&mut self.slots, links, slot);
    }

    /// The slots with a number, beginning with the one that got it first.
    #[inline]
    pub fn oldest_first(&self, number: u64) -> impl Iterator<Item = u32> {
        self.along(self.chains[self.chain(number)].oldest, number, |links| links.newer)
    }

    /// The slots that got the same number after this one, the first of them first.
    #[inline]
    pub fn after(&self, slot: u32) -> impl Iterator<Item = u32> {
        let Chained { number, links } = self.slots[slot as usize];
        self.along(links.newer, number, |links| links.newer)
    }

    /// The slots with a number along a chain, from one on.
    #[inline]
    fn along(
        &self,
        from: u32,
        number: u64,
        neighbour: impl Fn(&Links) -> u32,
    ) -> impl Iterator<Item = u32> {
        let mut next = from;
        std::iter::from_fn(move || {
            while next != NONE {
                let slot = next;
                let chained = &self.slots[slot as usize];
                next = neighbour(&chained.links);
                if chained.number == number {
                    return Some(slot);
                }
            }
            None
        })
    }

    /// The slots with a number, beginning with the one that got it last.
    #[inline]
    pub fn newest_first(&self, number: u64) -> impl Iterator<Item = u32> {
        self.along(self.chains[self.chain(number)].newest, number, |links| links.older)
    }

    /// The slots that got the same number before this one, the last of them first.
    #[inline]
    pub fn before(&self, slot: u32) -> impl Iterator<Item = u32> {
        let Chained { number, links } = self.slots[slot as usize];
        self.along(links.older, number, |links| links.older)
    }
}

#[inline]
fn residue(number: u64) -> usize {
    number as usize % COUNTERS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Few numbers, some of them of equal residues.
    fn any_number() -> impl Strategy<Value = u64> {
        (0..6u64, 0..3u64).prop_map(|(low, high)| low + high * COUNTERS as u64)
    }

    proptest! {
        #[test]
        fn it_answers_as_a_plain_list_does(
            steps in prop::collection::vec((any::<bool>(), any_number(), any::<prop::sample::Index>()), 1..80),
        ) {
            const SLOTS: u32 = 9;
            let (mut index, mut list) = (LineIndex::new(SLOTS as usize), Vec::<(u32, u64)>::new());
            for (is_added, number, at) in steps {
                if is_added && list.len() < SLOTS as usize {
                    let free: Vec<u32> = (0..SLOTS).filter(|s| list.iter().all(|(of, _)| of != s)).collect();
                    let slot = free[at.index(free.len())];
                    index.insert(slot, number);
                    list.push((slot, number));
                } else if !list.is_empty() {
                    let (slot, _) = list.remove(at.index(list.len()));
                    index.remove(slot);
                }
                for number in (0..3).flat_map(|high| (0..6).map(move |low| low + high * COUNTERS as u64)) {
                    let having = list.iter().filter(|&&(_, n)| n == number).map(|&(slot, _)| slot);
                    prop_assert!(index.oldest_first(number).eq(having.clone()));
                    prop_assert!(index.newest_first(number).eq(having.rev()));
                }
                for (place, &(slot, number)) in list.iter().enumerate() {
                    let before = list[..place].iter().rev().filter(|&&(_, n)| n == number);
                    prop_assert!(index.before(slot).eq(before.map(|&(slot, _)| slot)));
                    let after = list[place + 1..].iter().filter(|&&(_, n)| n == number);
                    prop_assert!(index.after(slot).eq(after.map(|&(slot, _)| slot)));
                }
            }
        }

        #[test]
        fn what_is_counted_in_may_be_there_and_what_is_counted_out_is_not(
            numbers in prop::collection::vec(any_number(), 0..20),
        ) {
            let mut summary = LineSummary::default();
            numbers.iter().for_each(|&number| summary.add(number));
            prop_assert!(numbers.iter().all(|&number| summary.may_have(number)));
            numbers.iter().for_each(|&number| summary.remove(number));
            prop_assert!(numbers.iter().all(|&number| !summary.may_have(number)));
        }
    }
}
