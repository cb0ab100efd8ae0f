//! A short list of line numbers that is searched at every access: the queues of the controller, the lines of the
//! on-PM buffer.

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

    /// Whether a number is there. `false` is always right, and `true` mostly.
    #[inline]
    pub fn may_have(&self, number: u64) -> bool {
        self.counters[residue(number)] != 0
    }

    /// Whether a number is there more than once, with the same reservation.
    #[inline]
    fn may_have_two(&self, number: u64) -> bool {
        self.counters[residue(number)] > 1
    }

    /// Whether any of these numbers is there, with the same reservation.
    #[inline]
    pub fn may_have_any(&self, numbers: std::ops::Range<u64>) -> bool {
        numbers.fold(0, |sum, number| sum | self.counters[residue(number)]) != 0
    }
}

/// Line numbers by place; several may be equal.
#[derive(Clone, Debug)]
pub struct LineIndex {
    numbers: Vec<u64>,
    summary: LineSummary,
}

impl LineIndex {
    /// Stands in places without a line.
    pub const EMPTY: u64 = u64::MAX;

    /// A list without places, and with room for so many.
    pub fn with_capacity(places: usize) -> LineIndex {
        LineIndex { numbers: Vec::with_capacity(places), summary: LineSummary::default() }
    }

    /// A list of so many places without lines.
    pub fn of_empty_places(places: usize) -> LineIndex {
        LineIndex { numbers: vec![Self::EMPTY; places], ..LineIndex::with_capacity(0) }
    }

    /// The numbers by place.
    #[inline]
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Adds a place at the end.
    #[inline]
    pub fn push(&mut self, number: u64) {
        self.count_in(number);
        self.numbers.push(number);
    }

    /// Takes a place out; those behind it move up.
    #[inline]
    pub fn remove(&mut self, place: usize) {
        let number = self.numbers.remove(place);
        self.count_out(number);
    }

    /// Puts a number, or [`LineIndex::EMPTY`], into a place.
    #[inline]
    pub fn set(&mut self, place: usize, number: u64) {
        let before = std::mem::replace(&mut self.numbers[place], number);
        self.count_out(before);
        self.count_in(number);
    }

    /// The first place of a number.
    #[inline]
    pub fn position(&self, number: u64) -> Option<usize> {
        if self.summary.may_have(number) { position(&self.numbers, number) } else { None }
    }

    /// The last place of a number.
    #[inline]
    pub fn last_position(&self, number: u64) -> Option<usize> {
        if !self.summary.may_have(number) {
            return None;
        }
        self.numbers.iter().rposition(|&n| n == number)
    }

    /// The first place without a line.
    pub fn empty_position(&self) -> Option<usize> {
        position(&self.numbers, Self::EMPTY)
    }

    /// Whether a place before this one has the same number.
    #[inline]
    pub fn has_before(&self, place: usize) -> bool {
        let (before, from) = self.numbers.split_at(place);
        self.summary.may_have_two(from[0]) && position(before, from[0]).is_some()
    }

    /// Whether any of these numbers is here. `false` is always right, and `true` mostly.
    #[inline]
    pub fn may_have_any(&self, numbers: std::ops::Range<u64>) -> bool {
        self.summary.may_have_any(numbers)
    }

    #[inline]
    fn count_in(&mut self, number: u64) {
        if number != Self::EMPTY {
            self.summary.add(number);
        }
    }

    #[inline]
    fn count_out(&mut self, number: u64) {
        if number != Self::EMPTY {
            self.summary.remove(number);
        }
    }
}

#[inline]
fn residue(number: u64) -> usize {
    number as usize % COUNTERS
}

/// The first place of a number, without a branch per element.
#[inline]
fn position(numbers: &[u64], wanted: u64) -> Option<usize> {
    const STEP: usize = 16;
    for (step, chunk) in numbers.chunks(STEP).enumerate() {
        if chunk.iter().fold(false, |found, &n| found | (n == wanted)) {
            let within = chunk.iter().position(|&n| n == wanted).expect("just seen");
            return Some(step * STEP + within);
        }
    }
    None
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
            steps in prop::collection::vec((0..4u8, any_number(), any::<prop::sample::Index>()), 1..80),
        ) {
            let (mut index, mut list) = (LineIndex::of_empty_places(2), vec![LineIndex::EMPTY; 2]);
            for (what, number, at) in steps {
                let at = if list.is_empty() { 0 } else { at.index(list.len()) };
                match what {
                    0 => {
                        index.push(number);
                        list.push(number);
                    }
                    1 if !list.is_empty() => {
                        index.remove(at);
                        list.remove(at);
                    }
                    2 | 3 if !list.is_empty() => {
                        let number = if what == 2 { number } else { LineIndex::EMPTY };
                        index.set(at, number);
                        list[at] = number;
                    }
                    _ => {}
                }
                prop_assert_eq!(index.numbers(), &list[..]);
                for number in (0..3).flat_map(|high| (0..6).map(move |low| low + high * COUNTERS as u64)) {
                    prop_assert_eq!(index.position(number), list.iter().position(|&n| n == number));
                    prop_assert_eq!(index.last_position(number), list.iter().rposition(|&n| n == number));
                    let has = list.iter().any(|n| (number..number + 4).contains(n));
                    prop_assert!(!has || index.may_have_any(number..number + 4));
                }
                for place in (0..list.len()).filter(|&place| list[place] != LineIndex::EMPTY) {
                    prop_assert_eq!(index.has_before(place), list[..place].contains(&list[place]));
                }
                prop_assert_eq!(index.empty_position(), list.iter().position(|&n| n == LineIndex::EMPTY));
            }
            let nothing = index.numbers().iter().all(|&n| n == LineIndex::EMPTY);
            prop_assert!(!nothing || !index.may_have_any(0..COUNTERS as u64), "counts go back to zero");
        }
    }
}
