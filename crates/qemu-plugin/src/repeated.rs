//! Accesses of a repeated string instruction (`rep movsb`, `rep stosb` and their kind), word by word.
//!
//! QEMU executes such an instruction element by element, and tells of each element. What a processor does is told here: elements
//! of one execution that lie side by side in a word of 8 B are one access of the word, to which a *run* of bytes is loaded or
//! stored. A run is over when an element continues it in the next word, above or below. (Which of the two is not known of the first
//! element: if that lies in two words, and the instruction goes downwards, it is told by itself.)
//!
//! Of the two accesses of a repetition, each has a run of its own: what is loaded and what is stored begin at different places
//! of words. The runs are written in an order that leaves memory as the elements did: a run of loads before the stores over what
//! it has loaded, and behind those of which it has loaded something.

/// Bytes of a word.
const WORD: u64 = 8;

/// The place of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A position in persistent memory.
    Persistent(u64),
    /// An address of other memory, whose bytes are not recorded.
    Volatile(u64),
}

impl Place {
    /// The place `bytes` further.
    fn plus(self, bytes: u64) -> Place {
        match self {
            Place::Persistent(at) => Place::Persistent(at + bytes),
            Place::Volatile(at) => Place::Volatile(at + bytes),
        }
    }

    fn number(self) -> u64 {
        match self {
            Place::Persistent(at) | Place::Volatile(at) => at,
        }
    }

    fn is_beside(self, other: Place) -> bool {
        matches!(
            (self, other),
            (Place::Persistent(_), Place::Persistent(_)) | (Place::Volatile(_), Place::Volatile(_))
        )
    }
}

/// Bytes of one word that are loaded or stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The place of the first access.
    pub place: Place,
    content: [u8; WORD as usize],
    length: u8,
    /// True if the accesses store.
    pub is_store: bool,
    /// The number of the load that its address comes from; 0: none.
    pub load: u64,
    /// Instructions before it that are no run's.
    pub since: u64,
}

impl Run {
    /// A run of bytes of one word.
    pub fn new(place: Place, bytes: &[u8], is_store: bool, load: u64) -> Run {
        let mut content = [0; WORD as usize];
        content[..bytes.len()].copy_from_slice(bytes);
        Run { place, content, length: bytes.len() as u8, is_store, load, since: 0 }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.content[..self.length.into()]
    }

    fn end(&self) -> Place {
        self.place.plus(self.length.into())
    }

    fn word(&self) -> u64 {
        self.place.number() / WORD
    }

    /// Tells whether another begins where this one ends, or ends where this one begins.
    fn is_next_to(&self, other: &Run) -> bool {
        self.is_store == other.is_store && (self.end() == other.place || other.end() == self.place)
    }

    fn overlaps(&self, other: &Run) -> bool {
        self.place.is_beside(other.place)
            && self.place.number() < other.end().number()
            && other.place.number() < self.end().number()
    }

    /// Takes one that is next to it, in the same word.
    fn extend(&mut self, other: &Run) {
        let (mine, theirs) = (usize::from(self.length), usize::from(other.length));
        if other.end() == self.place {
            self.content.copy_within(..mine, theirs);
            self.content[..theirs].copy_from_slice(other.bytes());
            self.place = other.place;
        } else {
            self.content[mine..mine + theirs].copy_from_slice(other.bytes());
        }
        self.length += other.length;
    }
}

/// Runs that are over, in the order in which they are written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Over {
    runs: [Option<Run>; 2],
}

impl Over {
    fn push(&mut self, run: Run) {
        let free = self.runs.iter().position(Option::is_none).expect("there are two runs");
        self.runs[free] = Some(run);
    }

    /// They, in this order.
    pub fn iter(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().flatten()
    }
}

/// The runs of a repeated instruction that may continue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    runs: [Option<Run>; 2],
    /// The one that the last element was for.
    newest: usize,
    /// The one that began first.
    oldest: usize,
}

impl Runs {
    /// The next element, or the part of it that is in one word; returns the runs that are over, and whether it begins a new one.
    pub fn take(&mut self, element: Run) -> (Over, bool) {
        let mut over = Over::default();
        // What is loaded of a pending store was stored before.
        let is_stored = |run: &Run| run.is_store && run.overlaps(&element);
        if !element.is_store && self.runs.iter().flatten().any(is_stored) {
            self.end_all(&mut over);
        }
        let of = self.runs.iter().position(|run| run.is_some_and(|run| run.is_next_to(&element)));
        if let Some(of) = of {
            self.newest = of;
            if let Some(run) = self.runs[of].as_mut().filter(|run| run.word() == element.word()) {
                run.extend(&element);
                return (over, false);
            }
            self.end(of, &mut over);
        } else {
            let is_in_the_way = |run: &Run| run.is_store && element.is_store;
            self.newest = 1 - self.newest;
            if self.runs[self.newest].is_some() || self.runs.iter().flatten().any(is_in_the_way) {
                self.end_all(&mut over);
            }
        }
        self.begin(element);
        (over, true)
    }

    /// The runs that are pending, in the order in which they are written.
    pub fn pending(&self) -> Over {
        let mut pending = Over::default();
        Runs::end_all(&mut self.clone(), &mut pending);
        pending
    }

    /// Tells whether a run begins where these bytes end: the instruction goes downwards.
    pub fn are_behind(&self, place: Place, bytes: u64, is_store: bool) -> bool {
        let end = place.plus(bytes);
        self.runs.iter().flatten().any(|run| run.is_store == is_store && run.place == end)
    }

    fn begin(&mut self, run: Run) {
        if self.runs[1 - self.newest].is_none() {
            self.oldest = self.newest;
        }
        self.runs[self.newest] = Some(run);
    }

    /// One of them is over; and so is the other, if it is to be written first.
    fn end(&mut self, at: usize, over: &mut Over) {
        let Some(run) = self.runs[at].take() else { return };
        let is_first = |other: &mut Run| {
            let is_overwritten = run.is_store && run.overlaps(other);
            // Loads keep their order, by which they are known.
            let is_older = !run.is_store && self.oldest != at;
            !other.is_store && (is_overwritten || is_older)
        };
        if let Some(other) = self.runs[1 - at].take_if(is_first) {
            over.push(other);
        }
        self.oldest = 1 - at;
        over.push(run);
    }

    /// All are over: loads come first, and of two loads the older one.
    fn end_all(&mut self, over: &mut Over) {
        let [first, second] = [self.oldest, 1 - self.oldest].map(|at| self.runs[at].take());
        let stores_first = first.is_some_and(|run| run.is_store);
        let order = if stores_first { [second, first] } else { [first, second] };
        order.into_iter().flatten().for_each(|run| over.push(run));
    }
}

/// The parts of some bytes at a place that lie in one word each, as places and ranges.
pub fn parts(place: Place, bytes: usize) -> impl DoubleEndedIterator<Item = (Place, usize, usize)> {
    let first = (place.number() % WORD) as usize;
    let words = (first + bytes).div_ceil(WORD as usize);
    (0..words).map(move |word| {
        let from = (word * WORD as usize).saturating_sub(first);
        let to = ((word + 1) * WORD as usize - first).min(bytes);
        (place.plus(from as u64), from, to)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 128;

    /// A copy by a repeated instruction: what it loads and what it stores, where, and how often.
    struct Copy {
        from: usize,
        to: usize,
        element: usize,
        times: usize,
        is_upwards: bool,
    }

    /// The memory after a copy, and the runs of the copy.
    fn copied(copy: &Copy, memory: &mut [u8; BYTES]) -> Vec<Run> {
        let (mut runs, mut told) = (Runs::default(), Vec::new());
        for time in 0..copy.times {
            let step = copy.element * if copy.is_upwards { time } else { copy.times - 1 - time };
            let (from, to) = (copy.from + step, copy.to + step);
            let bytes = memory[from..from + copy.element].to_vec();
            take(&mut runs, from, &bytes, false, &mut told);
            memory[to..to + copy.element].copy_from_slice(&bytes);
            take(&mut runs, to, &bytes, true, &mut told);
        }
        told.extend(runs.pending().iter());
        told
    }

    fn take(runs: &mut Runs, at: usize, bytes: &[u8], is_store: bool, told: &mut Vec<Run>) {
        let place = Place::Persistent(at as u64);
        let mut parts: Vec<_> = parts(place, bytes.len()).collect();
        if runs.are_behind(place, bytes.len() as u64, is_store) {
            parts.reverse();
        }
        for (place, from, to) in parts {
            let (over, _) = runs.take(Run::new(place, &bytes[from..to], is_store, 0));
            told.extend(over.iter());
        }
    }

    fn words_of(at: usize, bytes: usize) -> usize {
        if bytes == 0 { 0 } else { (at + bytes - 1) / 8 - at / 8 + 1 }
    }

    /// Loads and stores at every place of a word, of every size, in both directions, apart and over each other.
    fn every_copy(mut with: impl FnMut(&Copy)) {
        for (from, to) in (32..40).flat_map(|from| (8..72).map(move |to| (from, to))) {
            for (element, times) in [(1, 0), (1, 1), (1, 7), (1, 30), (2, 13), (4, 7), (8, 4)] {
                for is_upwards in [true, false] {
                    with(&Copy { from, to, element, times, is_upwards });
                }
            }
        }
    }

    #[test]
    fn each_word_is_one_load_or_store() {
        every_copy(|copy| {
            let bytes = copy.element * copy.times;
            let is_apart = copy.from.abs_diff(copy.to) >= bytes;
            let is_straddling = copy.from % copy.element > 0 || copy.to % copy.element > 0;
            if !is_apart || is_straddling && !copy.is_upwards {
                return;
            }
            let told = copied(copy, &mut std::array::from_fn(|at| at as u8));
            for (is_store, at) in [(false, copy.from), (true, copy.to)] {
                let words: Vec<u64> =
                    told.iter().filter(|r| r.is_store == is_store).map(Run::word).collect();
                let Copy { from, to, element, times, is_upwards } = copy;
                assert_eq!(words.len(), words_of(at, bytes), "{from} {to} {element} {times}");
                let is_in_order = match is_upwards {
                    true => words.is_sorted_by(|a, b| a < b),
                    false => words.is_sorted_by(|a, b| a > b),
                };
                assert!(is_in_order, "{words:?}");
            }
        });
    }

    /// Each run of loads has found what is there at its place in the order, and the stores give what is there at the end: also where
    /// an element is loaded that the instruction has stored, or stored over one that it has loaded.
    #[test]
    fn runs_leave_memory_as_elements_do() {
        every_copy(|copy| {
            let before: [u8; BYTES] = std::array::from_fn(|at| at as u8);
            let (mut after, mut replayed) = (before, before);
            for run in copied(copy, &mut after) {
                let at = run.place.number() as usize;
                let there = &mut replayed[at..at + run.bytes().len()];
                match run.is_store {
                    true => there.copy_from_slice(run.bytes()),
                    false => assert_eq!(there, run.bytes(), "{} to {}", copy.from, copy.to),
                }
            }
            assert_eq!(replayed, after, "{} to {}", copy.from, copy.to);
        });
    }

    /// Two strings that are compared are loaded word by word.
    #[test]
    fn strings_that_are_compared_have_runs_of_their_own() {
        let (mut runs, mut told) = (Runs::default(), Vec::new());
        for at in 0..24 {
            take(&mut runs, 8 + at, &[1], false, &mut told);
            take(&mut runs, 64 + at, &[1], false, &mut told);
        }
        told.extend(runs.pending().iter());
        let places: Vec<u64> = told.iter().map(|run| run.place.number()).collect();
        assert_eq!(places, [8, 64, 16, 72, 24, 80]);
        assert!(told.iter().all(|run| run.bytes().len() == 8 && !run.is_store));
    }

    #[test]
    fn volatile_and_persistent_memory_are_no_neighbours() {
        let mut runs = Runs::default();
        runs.take(Run::new(Place::Persistent(8), &[1], true, 0));
        let (over, begins) = runs.take(Run::new(Place::Volatile(9), &[2], true, 0));
        assert!(begins && over.iter().count() == 1);
    }
}
