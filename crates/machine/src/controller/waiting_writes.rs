//! The writes that wait outside a write queue, for a place in it or for ordered writes.
//!
//! There may be any number of them: what a design sends in order, faster than the cells take it, waits here. So nothing
//! looks through all of them. A write may enter when all older ones of its line have and the ordered writes that it waits
//! for are durable; those that may are kept apart from those that may not.
//!
//! | what | how |
//! |---|---|
//! | writes of a line | linked, oldest first; a table has each line's ends, and the newest content |
//! | the oldest of each line, if it may enter | `ready`, by arrival |
//! | the oldest of each line, if it may not yet | `held`, by the ordered write that it waits for; when that is durable, `gated`, by the gate |
//! | any other | in its line alone |
//!
//! Most come and go in order: lists whose ends are near have them, and no tree.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use rustc_hash::FxHashMap;

use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE, WordMask, words_in};

use crate::gates::{GateNumber, Gates};
use crate::media::overlay;
use crate::request::{Order, OrderSeq, Place, Write};

/// Numbers of writes, in the order of their arrival.
pub type Arrival = u64;

/// A write that has found no place yet.
#[derive(Clone, Copy, Debug)]
pub struct WaitingWrite {
    /// The request.
    pub write: Write,
    /// Place of its line.
    pub place: Place,
    /// Place among all requests that reached the channel.
    pub number: u64,
    /// There was a place, but ordered writes, or an older write of the line that waits for them, had to
    /// go first.
    pub held: bool,
}

#[derive(Debug)]
struct Waiting {
    write: WaitingWrite,
    /// The next of its line.
    next: Option<Arrival>,
}

/// The writes of a line.
#[derive(Clone, Debug)]
struct Line {
    oldest: Arrival,
    newest: Arrival,
    /// Number of waiting writes to each word.
    writes: [u32; WORDS_PER_LINE],
    /// The newest content of those words.
    content: LineData,
}

impl Line {
    /// The words that are written.
    fn mask(&self) -> WordMask {
        (0..WORDS_PER_LINE)
            .fold(0, |mask, word| mask | WordMask::from(self.writes[word] > 0) << word)
    }

    fn push(&mut self, arrival: Arrival, write: &Write) {
        self.newest = arrival;
        words_in(write.mask).for_each(|word| self.writes[word] += 1);
        overlay(&mut self.content, &write.data, write.mask);
    }
}

/// The writes outside a queue.
#[derive(Debug)]
pub struct WaitingWrites {
    /// Writes in the order of their arrival; those that have left before older ones have left a
    /// gap. The first is never a gap.
    writes: VecDeque<Option<Waiting>>,
    /// The arrival of the first; of the next to come, if there is none.
    first: Arrival,
    len: usize,
    lines: FxHashMap<LineAddr, Line>,
    /// In order.
    ready: VecDeque<Arrival>,
    held: BinaryHeap<Reverse<(OrderSeq, Arrival)>>,
    /// Writes whose gates are closed and that wait for nothing else.
    gated: BTreeMap<GateNumber, Vec<Arrival>>,
    /// Gates that had been opened at the last look.
    openings: u64,
    /// Per bank, how many wait.
    of_bank: Vec<u32>,
    /// Writes that were looked at to find those that may enter.
    #[cfg(test)]
    looks: u64,
}

impl WaitingWrites {
    /// Makes an empty list, before `banks` banks.
    pub fn new(banks: usize) -> WaitingWrites {
        WaitingWrites {
            writes: VecDeque::new(),
            first: 0,
            len: 0,
            lines: FxHashMap::default(),
            ready: VecDeque::new(),
            held: BinaryHeap::new(),
            gated: BTreeMap::new(),
            openings: 0,
            of_bank: vec![0; banks],
            #[cfg(test)]
            looks: 0,
        }
    }

    /// Number of waiting writes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Per bank, how many there are.
    pub fn of_bank(&self) -> &[u32] {
        &self.of_bank
    }

    /// All, in the order of their arrival.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &WaitingWrite> {
        self.writes.iter().flatten().map(|waiting| &waiting.write)
    }

    /// Those that arrived from one to another, which waits, both included, in the order of their arrival.
    pub fn between(&self, from: Arrival, to: Arrival) -> impl Iterator<Item = &WaitingWrite> {
        let places = self.place(from.max(self.first))..=self.place(to);
        self.writes.range(places).flatten().map(|waiting| &waiting.write)
    }

    /// Place of a write that arrived then, even if it has left.
    #[inline]
    fn place(&self, arrival: Arrival) -> usize {
        (arrival - self.first) as usize
    }

    /// One that waits.
    #[inline]
    fn waiting_mut(&mut self, arrival: Arrival) -> &mut Waiting {
        let place = self.place(arrival);
        self.writes[place].as_mut().expect("it waits")
    }

    /// Returns true if a write to a line waits.
    #[inline]
    pub fn has(&self, line: LineAddr) -> bool {
        !self.lines.is_empty() && self.lines.contains_key(&line)
    }

    /// The words of a line that they write.
    #[inline]
    pub fn mask(&self, line: LineAddr) -> WordMask {
        if self.lines.is_empty() { 0 } else { self.lines.get(&line).map_or(0, Line::mask) }
    }

    /// Lays their newest content of a line over an older one.
    #[inline]
    pub fn overlay(&self, line: LineAddr, content: &mut LineData) {
        if !self.lines.is_empty()
            && let Some(of_line) = self.lines.get(&line)
        {
            overlay(content, &of_line.content, of_line.mask());
        }
    }

    /// The newest of a line.
    pub fn newest_mut(&mut self, line: LineAddr) -> Option<&mut Write> {
        let newest = self.lines.get(&line)?.newest;
        Some(&mut self.waiting_mut(newest).write.write)
    }

    /// One more.
    pub fn push(&mut self, write: WaitingWrite) {
        let (arrival, line) = (self.first + self.writes.len() as Arrival, write.write.line);
        self.of_bank[write.place.bank as usize] += 1;
        let of_line = self.lines.entry(line).or_insert_with(|| {
            self.held.push(Reverse((write.write.after, arrival)));
            let (writes, content) = ([0; WORDS_PER_LINE], [0; WORDS_PER_LINE]);
            Line { oldest: arrival, newest: arrival, writes, content }
        });
        let before = of_line.newest;
        of_line.push(arrival, &write.write);
        if before != arrival {
            self.waiting_mut(before).next = Some(arrival);
        }
        self.len += 1;
        self.writes.push_back(Some(Waiting { write, next: None }));
    }

    /// The oldest, of those that arrived from `from` on, that may enter.
    pub fn next_ready(&mut self, from: Arrival, order: &Order) -> Option<Arrival> {
        while let Some(&Reverse((after, arrival))) = self.held.peek() {
            #[cfg(test)]
            {
                self.looks += 1;
            }
            if !order.reached(after) {
                break;
            }
            self.held.pop();
            let gate = self.waiting_mut(arrival).write.write.gate;
            if order.gates.is_open(gate) {
                self.becomes_ready(arrival);
            } else {
                self.gated.entry(gate).or_default().push(arrival);
            }
        }
        if self.openings != order.gates.openings() {
            self.openings = order.gates.openings();
            self.pass_open_gates(&order.gates);
        }
        self.ready.get(self.first_ready(from)).copied()
    }

    fn becomes_ready(&mut self, arrival: Arrival) {
        let place = self.first_ready(arrival);
        self.ready.insert(place, arrival);
    }

    /// Gates were opened: what waited behind them may enter.
    fn pass_open_gates(&mut self, gates: &Gates) {
        let opened: Vec<GateNumber> =
            self.gated.keys().copied().filter(|&gate| gates.is_open(gate)).collect();
        for gate in opened {
            for arrival in self.gated.remove(&gate).expect("it was just seen") {
                self.becomes_ready(arrival);
            }
        }
    }

    /// Finds the first of the writes that may enter and arrived then or later. That is mostly an
    /// end.
    #[inline]
    fn first_ready(&self, from: Arrival) -> usize {
        match (self.ready.front(), self.ready.back()) {
            (Some(&first), _) if first >= from => 0,
            (_, Some(&last)) if last < from => self.ready.len(),
            _ => self.ready.partition_point(|&arrival| arrival < from),
        }
    }

    /// Takes one out that may enter.
    ///
    /// # Panics
    /// It may not.
    pub fn take(&mut self, arrival: Arrival) -> WaitingWrite {
        let ready = self.first_ready(arrival);
        assert!(self.ready.get(ready) == Some(&arrival), "only what may enter does");
        self.ready.remove(ready);
        let place = self.place(arrival);
        let Waiting { write, next } = self.writes[place].take().expect("it waits");
        self.len -= 1;
        while let Some(None) = self.writes.front() {
            self.writes.pop_front();
            self.first += 1;
        }
        let line = write.write.line;
        match next {
            Some(next) => {
                let of_line = self.lines.get_mut(&line).expect("it has another");
                of_line.oldest = next;
                words_in(write.write.mask).for_each(|word| of_line.writes[word] -= 1);
                let after = self.waiting_mut(next).write.write.after;
                self.held.push(Reverse((after, next)));
            }
            None => {
                self.lines.remove(&line);
            }
        }
        self.of_bank[write.place.bank as usize] -= 1;
        write
    }
}

#[cfg(test)]
mod tests {
    //! Bug classes: a write that enters before an older one of its line or before what it waits for, or not at all; the
    //! cost of a write that grows with the number of those that wait.

    use super::*;
    use crate::request::WriteClass;
    use proptest::prelude::*;

    fn write(line: u64, after: OrderSeq, mask: WordMask, value: u64) -> WaitingWrite {
        let place = Place { channel: 0, bank: (line % 2) as u32, row: 0 };
        let write = Write::line(WriteClass::Data, LineAddr(line), [value; 8]).masked(mask);
        WaitingWrite { write: Write { after, ..write }, place, number: 0, held: true }
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// A write of words of a line arrives, to wait for the ordered writes up to this number.
        Arrive(u64, OrderSeq, WordMask, u64),
        /// The next ordered write is durable.
        Durable,
        /// Opens one of five gates.
        Open(u64),
        /// Admits at most this number of writes.
        Admit(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..4u64, 0..20u64, 1..=WordMask::MAX, 0..=5u64)
                .prop_map(|(line, after, mask, gate)| Step::Arrive(line, after, mask, gate)),
            1 => Just(Step::Durable),
            1 => (1..=5u64).prop_map(Step::Open),
            1 => (0..6usize).prop_map(Step::Admit),
        ]
    }

    /// All that wait, in a list, with their numbers.
    type List = Vec<(Arrival, WaitingWrite)>;

    /// Writes that enter, found by looking through the list.
    fn admit(list: &mut List, count: usize, order: &Order) -> Vec<Arrival> {
        let (mut at, mut entered) = (0, Vec::new());
        while at < list.len() && entered.len() < count {
            let (arrival, WaitingWrite { write, .. }) = list[at];
            let is_oldest = list[..at].iter().all(|(_, older)| older.write.line != write.line);
            if order.allows(&write) && is_oldest {
                list.remove(at);
                entered.push(arrival);
            } else {
                at += 1;
            }
        }
        entered
    }

    fn compare(waiting: &mut WaitingWrites, list: &List) {
        assert_eq!(waiting.len(), list.len());
        let lines = |w: &WaitingWrite| (w.write.line, w.write.mask, w.write.data);
        assert!(waiting.iter().map(lines).eq(list.iter().map(|(_, w)| lines(w))));
        for bank in 0..2 {
            let of_bank = list.iter().filter(|(_, w)| w.place.bank == bank).count();
            assert_eq!(waiting.of_bank()[bank as usize] as usize, of_bank);
        }
        for line in (0..4).map(LineAddr) {
            let of_line: Vec<&Write> =
                list.iter().map(|(_, w)| &w.write).filter(|w| w.line == line).collect();
            let (mut content, mut expected) = ([u64::MAX; 8], [u64::MAX; 8]);
            waiting.overlay(line, &mut content);
            of_line.iter().for_each(|w| overlay(&mut expected, &w.data, w.mask));
            assert_eq!(content, expected);
            assert_eq!(waiting.mask(line), of_line.iter().fold(0, |mask, w| mask | w.mask));
            assert_eq!(waiting.has(line), !of_line.is_empty());
            let newest = waiting.newest_mut(line).map(|w| w.data);
            assert_eq!(newest, of_line.last().map(|w| w.data));
        }
    }

    proptest! {
        #[test]
        fn the_same_enter_as_of_a_list(steps in prop::collection::vec(step(), 0..120)) {
            let (mut waiting, mut list) = (WaitingWrites::new(2), List::new());
            let (mut order, mut durable, mut arrivals) = (Order::default(), 0, 0);
            (0..20).for_each(|_| _ = order.allot());
            (0..5).for_each(|_| _ = order.gates.make());
            for step in steps {
                match step {
                    Step::Arrive(line, after, mask, gate) => {
                        let mut write = write(line, after, mask, arrivals);
                        write.write.gate = gate;
                        waiting.push(write);
                        list.push((arrivals, write));
                        arrivals += 1;
                    }
                    Step::Durable if durable < 20 => {
                        durable += 1;
                        order.durable(durable);
                    }
                    Step::Open(gate) if !order.gates.is_open(gate) => order.gates.open(gate),
                    Step::Durable | Step::Open(_) => {}
                    Step::Admit(count) => {
                        let (mut from, mut entered) = (0, Vec::new());
                        while entered.len() < count
                            && let Some(next) = waiting.next_ready(from, &order)
                        {
                            waiting.take(next);
                            entered.push(next);
                            from = next + 1;
                        }
                        prop_assert_eq!(entered, admit(&mut list, count, &order));
                    }
                }
                compare(&mut waiting, &list);
            }
        }
    }

    #[test]
    fn what_a_write_costs_does_not_grow_with_the_number_of_those_that_wait() {
        const WRITES: u64 = 10_000;
        let (mut waiting, mut order) = (WaitingWrites::new(2), Order::default());
        (0..WRITES).for_each(|_| _ = order.allot());
        for n in 1..=WRITES {
            waiting.push(write(n % 100, n, WordMask::MAX, n));
        }
        for n in 1..=WRITES {
            assert_eq!(waiting.next_ready(0, &order), None, "it waits for the next ordered write");
            order.durable(n);
            let next = waiting.next_ready(0, &order).expect("it has waited for this one");
            waiting.take(next);
        }
        assert_eq!(waiting.len(), 0);
        assert!(waiting.looks <= 4 * WRITES, "{} looks", waiting.looks);
    }
}
