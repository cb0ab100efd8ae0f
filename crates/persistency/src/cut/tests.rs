//! The judge against the definition: on all small histories, for all images.

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::Addr;

use super::Cuts;
use super::order::{Across, Durable, Event, ORDERS, Operation, Order, Wholes, Within, named};
use crate::promise::Words;

const WORDS: usize = 2;

/// Words of an image.
struct Found([u64; WORDS]);

impl Words for Found {
    fn word(&self, addr: Addr) -> u64 {
        self.0[addr.0 as usize / 8]
    }
}

/// A step of a small history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Store(usize),
    Load(usize),
    Do(Operation),
    Begin,
    Ending,
    Acknowledged,
    Snapshot,
}

use Operation::{DurabilityFence, JoinStrands, NewStrand, OrderingFence};

type History = Vec<(ThreadId, Step)>;

/// The value of a store: few, so that an image may be explained in several ways.
fn value(at: usize) -> u64 {
    1 + at as u64 % 2
}

fn judged(order: &'static Order, history: &History) -> Cuts {
    let mut cuts = Cuts::new(order);
    let mut memory = [0; WORDS];
    let mut numbers = [0; 2];
    for (at, &(thread, step)) in history.iter().enumerate() {
        let tx = Tx { thread, number: numbers[thread as usize] };
        cuts.saw(&match step {
            Step::Store(word) => {
                let old = std::mem::replace(&mut memory[word], value(at));
                Event::Store { thread, addr: Addr(word as u64 * 8), old, new: value(at) }
            }
            Step::Load(word) => {
                Event::Load { thread, addr: Addr(word as u64 * 8), value: memory[word] }
            }
            Step::Do(operation) => Event::Executed { thread, operation },
            Step::Begin => Event::Begin(tx),
            Step::Ending => Event::Ending(tx),
            Step::Acknowledged => {
                numbers[thread as usize] += 1;
                Event::Acknowledged(tx)
            }
            Step::Snapshot => Event::Snapshot,
        });
    }
    cuts
}

/// Makes a relation transitive.
fn close(before: &mut [Vec<bool>]) {
    for middle in 0..before.len() {
        let of_middle = before[middle].clone();
        for row in before.iter_mut().filter(|row| row[middle]) {
            row.iter_mut().zip(&of_middle).for_each(|(one, other)| *one |= other);
        }
    }
}

/// The definition.
struct Defined<'a> {
    order: &'static Order,
    history: &'a History,
}

impl Defined<'_> {
    fn word(&self, at: usize) -> Option<usize> {
        match self.history[at].1 {
            Step::Store(word) | Step::Load(word) => Some(word),
            _ => None,
        }
    }

    fn is_store(&self, at: usize) -> bool {
        matches!(self.history[at].1, Step::Store(_))
    }

    /// Returns true if a thread executes one of these between two of its accesses.
    fn between(&self, first: usize, second: usize, is_it: impl Fn(Step) -> bool) -> bool {
        let thread = self.history[first].0;
        self.history[first..second].iter().any(|&(of, step)| of == thread && is_it(step))
    }

    /// The number of a thread's strand to which an access belongs, and of the joins before it.
    fn strand(&self, at: usize) -> (usize, usize) {
        let thread = self.history[at].0;
        let before = self.history[..at].iter().filter(|&&(of, _)| of == thread);
        before.fold((0, 0), |(strand, joins), &(_, step)| match step {
            Step::Do(NewStrand) => (strand + 1, joins),
            Step::Do(JoinStrands) => (strand + 1, joins + 1),
            _ => (strand, joins),
        })
    }

    /// Returns true if the order says by itself that one access comes before a later one.
    fn is_before(&self, first: usize, second: usize) -> bool {
        let (same_thread, same_word) = (
            self.history[first].0 == self.history[second].0,
            self.word(first) == self.word(second),
        );
        let (stores, then) = (self.is_store(first), self.is_store(second));
        let conflict = same_word
            && match (stores, then) {
                (true, true) => true,
                (true, false) => self.order.across >= Across::Reads,
                (false, true) => self.order.across >= Across::Conflicts,
                (false, false) => false,
            };
        let fences = |step| matches!(step, Step::Do(OrderingFence | DurabilityFence));
        let in_thread = same_thread
            && match self.order.within {
                Within::Nothing => false,
                Within::Program => !stores || then,
                Within::Epochs => self.between(first, second, fences),
                Within::Strands => {
                    let (earlier, later) = (self.strand(first), self.strand(second));
                    earlier.1 < later.1 || earlier == later && self.between(first, second, fences)
                }
            };
        conflict || in_thread
    }

    /// By store, the stores without which it cannot be there.
    fn closure(&self) -> Vec<Vec<bool>> {
        let n = self.history.len();
        let is_access = |at: usize| self.word(at).is_some();
        let mut before = vec![vec![false; n]; n];
        for second in (0..n).filter(|&at| is_access(at)) {
            for first in (0..second).filter(|&at| is_access(at)) {
                before[second][first] = self.is_before(first, second);
            }
        }
        close(&mut before);
        before
    }

    fn must_be_there(&self, store: usize) -> bool {
        match self.order.durable {
            Durable::WhenVisible => true,
            _ => self.between(store, self.history.len(), |step| step == Step::Do(DurabilityFence)),
        }
    }

    /// All images that may be left.
    fn images(&self) -> Vec<[u64; WORDS]> {
        let before = self.closure();
        let stores: Vec<usize> = (0..self.history.len()).filter(|&at| self.is_store(at)).collect();
        let mut images = Vec::new();
        for set in 0_u32..1 << stores.len() {
            let has = |store: usize| {
                stores.iter().position(|&s| s == store).is_some_and(|bit| set >> bit & 1 == 1)
            };
            let is_closed = stores.iter().all(|&store| {
                let with_all = stores.iter().all(|&first| !before[store][first] || has(first));
                if has(store) { with_all } else { !self.must_be_there(store) }
            });
            if is_closed {
                let mut image = [0; WORDS];
                for &store in stores.iter().filter(|&&store| has(store)) {
                    image[self.word(store).expect("a store has one")] = value(store);
                }
                images.push(image);
            }
        }
        images
    }
}

/// All histories of `length` steps of two threads; the first is by thread 0, since threads have no names.
fn histories(steps: &[Step], length: usize, then: &mut dyn FnMut(&History)) {
    fn extend(
        history: &mut History,
        steps: &[Step],
        length: usize,
        then: &mut dyn FnMut(&History),
    ) {
        if history.len() == length {
            return then(history);
        }
        for thread in 0..if history.is_empty() { 1 } else { 2 } {
            for &step in steps {
                history.push((thread, step));
                extend(history, steps, length, then);
                history.pop();
            }
        }
    }
    extend(&mut History::new(), steps, length, then);
}

/// Images in which words without an access are as they were: others are not looked at.
fn images_for(cuts: &Cuts) -> impl Iterator<Item = [u64; WORDS]> {
    let touched: Vec<bool> =
        (0..WORDS as u64).map(|word| cuts.words().any(|addr| addr == Addr(word * 8))).collect();
    let all = (0..9).map(|number| [number / 3, number % 3]);
    all.filter(move |image| (0..WORDS).all(|word| touched[word] || image[word] == 0))
}

fn compare(order: &'static Order, steps: &[Step], length: usize) -> (u64, u64) {
    let (mut allowed, mut refused) = (0, 0);
    histories(steps, length, &mut |history| {
        let cuts = judged(order, history);
        let images = Defined { order, history }.images();
        for image in images_for(&cuts) {
            let is_one = images.contains(&image);
            let verdict = cuts.judge(&Found(image));
            assert_eq!(
                verdict.is_ok(),
                is_one,
                "{} {history:?} {image:?}: {verdict:?}",
                order.name
            );
            allowed += u64::from(is_one);
            refused += u64::from(!is_one);
        }
    });
    (allowed, refused)
}

const ACCESSES: [Step; 4] = [Step::Store(0), Step::Store(1), Step::Load(0), Step::Load(1)];

#[test]
fn orders_of_stores_are_judged_as_they_are_defined() {
    for order in ORDERS.iter().filter(|order| order.wholes == Wholes::Stores) {
        let strands = [Step::Do(NewStrand), Step::Do(JoinStrands)];
        let (fences, length): (&[Step], _) = match order.within {
            Within::Strands => (&strands, 4),
            _ => (&[], 5),
        };
        let steps = [&ACCESSES[..], &[Step::Do(OrderingFence), Step::Do(DurabilityFence)], fences];
        let (allowed, refused) = compare(order, &steps.concat(), length);
        assert!(allowed > 1000 && refused > 1000, "{}: {allowed}, {refused}", order.name);
    }
}

/// Longer histories, drawn.
#[test]
fn long_histories_are_judged_as_they_are_defined() {
    let strands = [Step::Do(NewStrand), Step::Do(JoinStrands)];
    let fences = [Step::Do(OrderingFence), Step::Do(OrderingFence), Step::Do(DurabilityFence)];
    let steps = [&ACCESSES[..2], &ACCESSES, &fences, &strands].concat();
    for order in ORDERS.iter().filter(|order| order.wholes == Wholes::Stores) {
        for seed in 0..4_000_u64 {
            let mut state = graven_base::memory::spread(seed, 0x6375);
            let mut draw = |n: usize| {
                state = graven_base::memory::spread(state, 1);
                (state >> 16) as usize % n
            };
            let mut history = History::new();
            for _ in 0..11 {
                history.push((draw(2) as ThreadId, steps[draw(steps.len())]));
            }
            let cuts = judged(order, &history);
            let images = Defined { order, history: &history }.images();
            for image in images_for(&cuts) {
                let verdict = cuts.judge(&Found(image));
                let is_one = images.contains(&image);
                assert_eq!(verdict.is_ok(), is_one, "{} {history:?} {image:?}", order.name);
            }
        }
    }
}

/// The transaction of a step: thread and number.
fn transaction(history: &History, at: usize) -> Option<(ThreadId, usize)> {
    let thread = history[at].0;
    let mine = history[..at].iter().filter(|&&(of, _)| of == thread);
    let (begun, ended) = mine.fold((0, 0), |(begun, ended), &(_, step)| match step {
        Step::Begin => (begun + 1, ended),
        Step::Acknowledged => (begun, ended + 1),
        _ => (begun, ended),
    });
    (begun > ended).then_some((thread, begun))
}

/// Images that transactions may leave, by all sets of them.
fn images_of_transactions(order: &Order, history: &History) -> Vec<[u64; WORDS]> {
    let mut all: Vec<(ThreadId, usize)> = Vec::new();
    for at in 0..history.len() {
        all.extend(transaction(history, at).filter(|tx| !all.contains(tx)));
    }
    let n = all.len();
    let of = |at: usize| transaction(history, at).and_then(|tx| all.iter().position(|&t| t == tx));
    let mut before = vec![vec![false; n]; n];
    for second in 0..history.len() {
        for first in 0..second {
            let (Some(a), Some(b)) = (of(first), of(second)) else { continue };
            let depends = match (history[first].1, history[second].1) {
                (Step::Store(x), Step::Store(y) | Step::Load(y)) => x == y,
                _ => false,
            };
            let in_thread = order.within == Within::Program && all[a].0 == all[b].0;
            before[b][a] |= a != b && (depends || in_thread);
        }
    }
    close(&mut before);
    let step_of = |tx: usize, which: Step| {
        (0..history.len()).any(|at| history[at].1 == which && of(at) == Some(tx))
    };
    let mut images = Vec::new();
    for set in 0_u32..1 << n {
        let has = |tx: usize| set >> tx & 1 == 1;
        let fenced = |tx: usize| {
            let end = (0..history.len())
                .find(|&at| history[at].1 == Step::Acknowledged && of(at) == Some(tx));
            let fence = (all[tx].0, Step::Do(DurabilityFence));
            end.is_some_and(|end| match order.durable {
                Durable::WhenAcknowledged => true,
                _ => history[end..].contains(&fence),
            })
        };
        let is_legal = (0..n).all(|tx| match has(tx) {
            true => step_of(tx, Step::Ending) && (0..n).all(|a| !before[tx][a] || has(a)),
            false => !fenced(tx),
        });
        if is_legal {
            let mut image = [0; WORDS];
            for (at, &(_, step)) in history.iter().enumerate() {
                if let Step::Store(word) = step
                    && of(at).is_some_and(has)
                {
                    image[word] = value(at);
                }
            }
            images.push(image);
        }
    }
    images
}

/// Returns true if transactions are begun and ended in turn, stores are theirs, and no word of an open one is touched by others.
fn is_isolated(history: &History) -> bool {
    let mut open = [None; 2];
    let mut owner = [None; WORDS];
    history.iter().all(|&(thread, step)| {
        let mine = &mut open[thread as usize];
        match step {
            Step::Begin => mine.replace(Step::Begin).is_none(),
            Step::Ending => mine.replace(Step::Ending) == Some(Step::Begin),
            Step::Acknowledged => {
                owner.iter_mut().filter(|of| **of == Some(thread)).for_each(|of| *of = None);
                mine.take() == Some(Step::Ending)
            }
            Step::Store(word) | Step::Load(word) => {
                let is_free = owner[word].is_none_or(|of| of == thread);
                owner[word] = Some(thread);
                *mine == Some(Step::Begin) && is_free
            }
            Step::Do(_) => mine.is_none(),
            Step::Snapshot => true,
        }
    })
}

#[test]
fn orders_of_transactions_are_judged_as_they_are_defined() {
    let steps = [
        Step::Begin,
        Step::Ending,
        Step::Acknowledged,
        Step::Store(0),
        Step::Store(1),
        Step::Load(0),
        Step::Do(DurabilityFence),
    ];
    for name in ["transactions", "transactions-buffered"] {
        let order = named(name).expect("it is there");
        let mut refused = 0;
        // Whole transactions: the steps of threads are drawn, and those that are not isolated left out.
        let mut kept = 0;
        for seed in 0..60_000_u64 {
            let mut state = graven_base::memory::spread(seed, 0x7478);
            let mut draw = |n: usize| {
                state = graven_base::memory::spread(state, 1);
                (state >> 16) as usize % n
            };
            let mut history = History::new();
            for _ in 0..60 {
                history.push((draw(2) as ThreadId, steps[draw(steps.len())]));
                if !is_isolated(&history) {
                    history.pop();
                }
                if history.len() == 12 {
                    break;
                }
            }
            kept += 1;
            let (cuts, images) = (judged(order, &history), images_of_transactions(order, &history));
            for image in images_for(&cuts) {
                let verdict = cuts.judge(&Found(image));
                let is_one = images.contains(&image);
                assert_eq!(verdict.is_ok(), is_one, "{name} {history:?} {image:?}: {verdict:?}");
                refused += u64::from(!is_one);
            }
        }
        assert!(refused > kept, "{name}: {refused} of {kept}");
    }
}

#[test]
fn snapshots_are_judged_as_they_are_defined() {
    let order = named("snapshots").expect("it is there");
    let Durable::SnapshotsLater(most) = order.durable else { panic!("{order:?}") };
    let steps = [Step::Store(0), Step::Store(1), Step::Snapshot];
    histories(&steps, 6, &mut |history| {
        let cuts = judged(order, history);
        let mut snapshots = vec![[0; WORDS]];
        let mut memory = [0; WORDS];
        for (at, &(_, step)) in history.iter().enumerate() {
            match step {
                Step::Store(word) => memory[word] = value(at),
                _ => snapshots.push(memory),
            }
        }
        let oldest = snapshots.len().saturating_sub(1 + most as usize);
        for image in images_for(&cuts) {
            let is_one = snapshots[oldest..].contains(&image);
            let verdict = cuts.judge(&Found(image));
            assert_eq!(verdict.is_ok(), is_one, "{history:?} {image:?}: {verdict:?}");
        }
    });
}

#[test]
fn a_broken_promise_names_the_two_stores() {
    let order = named("epoch").expect("it is there");
    let history = vec![(0, Step::Store(0)), (0, Step::Do(OrderingFence)), (0, Step::Store(1))];
    let broken = judged(order, &history).judge(&Found([0, 1])).expect_err("word 0 is missing");
    assert_eq!(broken.edge, Some((1, 3)));
    assert_eq!(broken.addr, Some(Addr(0)));
    assert!(broken.what.contains("`epoch` puts thread 0's store of 0x1 to word 0x0"), "{broken}");
}
