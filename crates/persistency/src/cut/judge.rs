//! The judge of a promise of order.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::Addr;
use rustc_hash::FxHashMap;

use super::order::{Across, Durable, Event, Operation, Order, Wholes, Within};
use crate::happening::Seq;
use crate::promise::{Broken, Words};

/// A place in the list of [`Node`]s.
type Place = u32;

/// A store, or a point that comes after several things.
#[derive(Clone, Debug, Hash)]
struct Node {
    what: What,
    /// Nodes that come before it and are not durable.
    before: Vec<Place>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    /// A version of a word.
    Version { word: u32, number: u32 },
    /// A fence, a join, a transaction, a snapshot.
    Point,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Present in no image.
    Forbidden,
    /// Present or missing.
    Allowed,
    /// Present in every image.
    Durable,
}

/// A version of a word.
#[derive(Clone, Copy, Debug, Hash)]
struct Version {
    value: u64,
    thread: ThreadId,
    at: Seq,
    node: Place,
}

/// A word that was stored to.
#[derive(Clone, Debug, Hash)]
struct Word {
    addr: Addr,
    /// The value of the oldest version that may be left, and its number: stores to the word before it, and its own.
    oldest: u64,
    oldest_number: u32,
    /// The store that made it so, and the event since which it must be there.
    settled: Option<(Seq, Seq)>,
    later: VecDeque<Version>,
    /// Nodes before the loads of its newest version.
    read_after: Vec<Place>,
}

impl Word {
    fn version(&self, number: u32) -> Option<&Version> {
        self.later.get((number.checked_sub(self.oldest_number + 1)?) as usize)
    }

    fn newest(&self) -> u32 {
        self.oldest_number + self.later.len() as u32
    }

    /// The number of the first version from this on that has a value.
    fn first_with(&self, value: u64, from: u32) -> Option<u32> {
        if from <= self.oldest_number && self.oldest == value {
            return Some(self.oldest_number);
        }
        let first = from.max(self.oldest_number + 1);
        (first..=self.newest()).find(|&n| self.version(n).is_some_and(|v| v.value == value))
    }
}

/// The place of a thread in its order.
#[derive(Clone, Debug, Default, Hash)]
struct Thread {
    /// The point before all that follows.
    fence: Option<Place>,
    /// Versions stored or read since.
    since: Vec<Place>,
    /// The point after all its loads, where the program orders them.
    read: Option<Place>,
    /// Stores, or transactions, that no durability fence has followed.
    not_durable: Vec<Place>,
    /// The point of the last join of strands.
    joined: Option<Place>,
    /// Ends of strands since.
    strands: Vec<Place>,
    /// The open transaction, and the one before.
    open: Option<Place>,
    last: Option<Place>,
}

/// The judge of a run under a promise of order. It keeps some 60 bytes per store and fence for as long as it lives.
#[derive(Clone, Debug)]
pub struct Cuts {
    order: &'static Order,
    at: Seq,
    nodes: Vec<Node>,
    threads: Vec<Thread>,
    words: Vec<Word>,
    numbers: FxHashMap<Addr, u32>,
    /// Stores after the last snapshot, and the snapshots before that need not be durable.
    current: Option<Place>,
    snapshots: VecDeque<Place>,
}

impl Hash for Cuts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.nodes, &self.threads, &self.words, &self.current).hash(state);
    }
}

impl Cuts {
    /// The judge of a run of which nothing has happened yet.
    pub fn new(order: &'static Order) -> Cuts {
        let mut cuts = Cuts {
            order,
            at: 0,
            nodes: Vec::new(),
            threads: Vec::new(),
            words: Vec::new(),
            numbers: FxHashMap::default(),
            current: None,
            snapshots: VecDeque::new(),
        };
        if order.wholes == Wholes::Snapshots {
            cuts.current = Some(cuts.point(Vec::new(), State::Forbidden));
        }
        cuts
    }

    /// The promise.
    pub fn order(&self) -> &'static Order {
        self.order
    }

    /// The words that were stored to.
    pub fn words(&self) -> impl Iterator<Item = Addr> {
        self.words.iter().map(|word| word.addr)
    }

    /// Takes in an event. Events come in the order in which stores become visible.
    ///
    /// # Panics
    /// A transaction ends that has not begun.
    pub fn saw(&mut self, event: &Event) {
        self.at += 1;
        match *event {
            Event::Store { thread, addr, old, new } => self.store(thread, addr, old, new),
            Event::Load { thread, addr, value } => self.load(thread, addr, value),
            Event::Executed { thread, operation } => self.executed(thread, operation),
            Event::Begin(tx) => self.begin(tx),
            Event::Ending(tx) => self.set_open(tx, State::Allowed),
            Event::PutOff(tx) => self.set_open(tx, State::Forbidden),
            Event::Acknowledged(tx) => self.acknowledged(tx),
            Event::Snapshot => self.snapshot(),
        }
    }

    fn thread(&mut self, thread: ThreadId) -> &mut Thread {
        let at = thread as usize;
        if at >= self.threads.len() {
            self.threads.resize_with(at + 1, Thread::default);
        }
        &mut self.threads[at]
    }

    fn node(&mut self, what: What, mut before: Vec<Place>, state: State) -> Place {
        before.retain(|&place| self.nodes[place as usize].state != State::Durable);
        self.nodes.push(Node { what, before, state });
        (self.nodes.len() - 1) as Place
    }

    fn point(&mut self, before: Vec<Place>, state: State) -> Place {
        self.node(What::Point, before, state)
    }

    fn word(&mut self, addr: Addr, old: u64) -> u32 {
        let next = self.words.len() as u32;
        let number = *self.numbers.entry(addr).or_insert(next);
        if number == next {
            self.words.push(Word {
                addr,
                oldest: old,
                oldest_number: 0,
                settled: None,
                later: VecDeque::new(),
                read_after: Vec::new(),
            });
        }
        number
    }

    fn store(&mut self, thread: ThreadId, addr: Addr, old: u64, new: u64) {
        let word = self.word(addr, old);
        let of_word = &mut self.words[word as usize];
        // Stores to one word are in order: it comes after the last one.
        let mut before: Vec<Place> =
            of_word.later.back().map(|last| last.node).into_iter().collect();
        before.append(&mut of_word.read_after);
        let number = of_word.newest() + 1;
        let order = self.order;
        let t = self.thread(thread);
        // What it survives with.
        let whole = match order.wholes {
            Wholes::Stores => {
                before.extend(t.fence.into_iter().chain(t.read));
                None
            }
            Wholes::Transactions => t.open,
            Wholes::Snapshots => self.current,
        };
        before.extend(whole);
        let node = self.node(What::Version { word, number }, before, State::Allowed);
        if let Some(whole) = whole {
            self.nodes[whole as usize].before.push(node);
        }
        let version = Version { value: new, thread, at: self.at, node };
        self.words[word as usize].later.push_back(version);
        if order.durable == Durable::WhenVisible {
            self.settle(node);
        } else if order.wholes == Wholes::Stores {
            let t = self.thread(thread);
            t.not_durable.push(node);
            match order.within {
                Within::Nothing => {}
                Within::Program => t.fence = Some(node),
                Within::Epochs | Within::Strands => t.since.push(node),
            }
        }
    }

    fn load(&mut self, thread: ThreadId, addr: Addr, value: u64) {
        let order = self.order;
        if !order.wants_loads() || order.durable == Durable::WhenVisible {
            return;
        }
        let word = self.word(addr, value) as usize;
        let read = self.words[word].later.back().map(|version| version.node);
        let &mut Thread { open, fence, read: read_before, .. } = self.thread(thread);
        if order.wholes == Wholes::Transactions {
            if let (Some(read), Some(open)) = (read, open) {
                self.nodes[open as usize].before.push(read);
            }
            return;
        }
        let is_in_order = order.within == Within::Program;
        if order.across == Across::Conflicts
            && let Some(before) = if is_in_order { read_before } else { fence }
        {
            let read_after = &mut self.words[word].read_after;
            if read_after.last() != Some(&before) {
                read_after.push(before);
            }
        }
        let Some(read) = read else { return };
        if is_in_order {
            let before = [read].into_iter().chain(read_before).collect();
            let point = self.point(before, State::Allowed);
            self.thread(thread).read = Some(point);
        } else if self.thread(thread).since.last() != Some(&read) {
            self.thread(thread).since.push(read);
        }
    }

    fn executed(&mut self, thread: ThreadId, operation: Operation) {
        match operation {
            Operation::OrderingFence => {
                self.divide(thread);
            }
            Operation::DurabilityFence => {
                self.divide(thread);
                let stores = std::mem::take(&mut self.thread(thread).not_durable);
                if self.order.durable == Durable::AtFences {
                    stores.into_iter().for_each(|store| self.settle(store));
                }
            }
            Operation::NewStrand if self.order.within == Within::Strands => {
                let end = self.divide(thread);
                let t = self.thread(thread);
                t.strands.extend(end);
                t.fence = t.joined;
            }
            Operation::JoinStrands if self.order.within == Within::Strands => {
                let end = self.divide(thread);
                let t = self.thread(thread);
                let before = t.strands.drain(..).chain(end).collect();
                let joined = Some(self.point(before, State::Allowed));
                let t = self.thread(thread);
                (t.joined, t.fence) = (joined, joined);
            }
            Operation::NewStrand | Operation::JoinStrands => {}
        }
    }

    /// All accesses of a thread so far come before what follows in it, or in its strand. Returns their point.
    fn divide(&mut self, thread: ThreadId) -> Option<Place> {
        if matches!(self.order.within, Within::Epochs | Within::Strands) {
            let t = self.thread(thread);
            if !t.since.is_empty() {
                let before = t.since.drain(..).chain(t.fence).collect();
                let point = self.point(before, State::Allowed);
                self.thread(thread).fence = Some(point);
            }
        }
        self.thread(thread).fence
    }

    fn begin(&mut self, tx: Tx) {
        if self.order.wholes == Wholes::Transactions {
            let within = self.order.within;
            let last = self.thread(tx.thread).last.filter(|_| within == Within::Program);
            let open = self.point(last.into_iter().collect(), State::Forbidden);
            self.thread(tx.thread).open = Some(open);
        }
    }

    fn set_open(&mut self, tx: Tx, state: State) {
        if self.order.wholes == Wholes::Transactions {
            let open = self.thread(tx.thread).open.expect("a transaction ends after it began");
            self.nodes[open as usize].state = state;
        }
    }

    fn acknowledged(&mut self, tx: Tx) {
        if self.order.wholes == Wholes::Transactions {
            let t = self.thread(tx.thread);
            t.last = t.open.take();
            let last = t.last.expect("a transaction is acknowledged after it ended");
            match self.order.durable {
                Durable::WhenAcknowledged => self.settle(last),
                _ => self.thread(tx.thread).not_durable.push(last),
            }
        }
    }

    fn snapshot(&mut self) {
        let Some(current) = self.current else { return };
        self.nodes[current as usize].state = State::Allowed;
        self.snapshots.push_back(current);
        self.current = Some(self.point(vec![current], State::Forbidden));
        if let Durable::SnapshotsLater(most) = self.order.durable
            && self.snapshots.len() as u64 > most
        {
            let oldest = self.snapshots.pop_front().expect("there is more than none");
            self.settle(oldest);
        }
    }

    /// Makes a node durable, with all that comes before it.
    fn settle(&mut self, place: Place) {
        let mut stack = vec![place];
        while let Some(place) = stack.pop() {
            let node = &mut self.nodes[place as usize];
            if node.state == State::Durable {
                continue;
            }
            node.state = State::Durable;
            stack.append(&mut node.before);
            let What::Version { word, number } = node.what else { continue };
            let word = &mut self.words[word as usize];
            while word.oldest_number < number {
                let version = word.later.pop_front().expect("versions are numbered without gaps");
                (word.oldest, word.settled) = (version.value, Some((version.at, self.at)));
                word.oldest_number += 1;
            }
        }
    }

    /// Decides if power may fail now and leave these words. Words without a store are not looked at.
    ///
    /// # Errors
    /// A word that contradicts the promise, with the two stores whose order shows it.
    pub fn judge(&self, found: &dyn Words) -> Result<(), Broken> {
        let mut versions = Vec::with_capacity(self.words.len());
        let mut stack: Vec<(Place, Option<&Version>, Addr)> = Vec::new();
        for word in &self.words {
            let value = found.word(word.addr);
            let number = word.first_with(value, word.oldest_number);
            let number = number.ok_or_else(|| self.never(word, value))?;
            versions.push(number);
            stack.extend(word.version(number).map(|version| (version.node, None, word.addr)));
        }
        let mut seen = vec![false; self.nodes.len()];
        while let Some((place, mut why, mut of)) = stack.pop() {
            let node = &self.nodes[place as usize];
            if node.state == State::Durable || std::mem::replace(&mut seen[place as usize], true) {
                continue;
            }
            if node.state == State::Forbidden {
                return Err(self.unfinished(why, of, found));
            }
            if let What::Version { word: at, number } = node.what {
                let word = &self.words[at as usize];
                if versions[at as usize] < number {
                    let value = found.word(word.addr);
                    let raised = word.first_with(value, number);
                    let Some(raised) = raised else {
                        return Err(self.out_of_order(word, number, value, why, of, found));
                    };
                    versions[at as usize] = raised;
                    stack.extend(word.version(raised).map(|v| (v.node, why, of)));
                }
                (why, of) = (word.version(number).or(why), word.addr);
            }
            stack.extend(node.before.iter().map(|&before| (before, why, of)));
        }
        Ok(())
    }

    fn never(&self, word: &Word, value: u64) -> Broken {
        let Word { addr, oldest, .. } = *word;
        let name = self.order.name;
        let what = match word.settled {
            Some((_, since)) => format!(
                "word {addr} holds {value:#x}, which is neither the {oldest:#x} that is durable since event {since} under `{name}` nor stored to it since"
            ),
            None => format!("word {addr} holds {value:#x}, which it never held"),
        };
        Broken { what, addr: Some(addr), edge: word.settled }
    }

    fn unfinished(&self, why: Option<&Version>, of: Addr, found: &dyn Words) -> Broken {
        let what = match self.order.wholes {
            Wholes::Snapshots => "which no snapshot has",
            _ => "though its transaction has not reached its end",
        };
        let (value, name) = (found.word(of), self.order.name);
        let edge = why.map(|version| (version.at, self.at));
        Broken {
            what: format!("word {of} holds {value:#x}, {what} (`{name}`)"),
            addr: Some(of),
            edge,
        }
    }

    fn out_of_order(
        &self,
        word: &Word,
        number: u32,
        value: u64,
        why: Option<&Version>,
        of: Addr,
        found: &dyn Words,
    ) -> Broken {
        let missing = word.version(number).expect("only versions that may be missing are");
        let (name, addr) = (self.order.name, word.addr);
        let Version { value: expected, thread, at, .. } = *missing;
        let there = match why {
            Some(Version { value, thread, at, .. }) => format!(
                "word {of} has thread {thread}'s store of {value:#x} (event {at}), or a later one: it holds {:#x}",
                found.word(of)
            ),
            None => format!("word {of} holds {:#x}", found.word(of)),
        };
        let what = format!(
            "{there}; `{name}` puts thread {thread}'s store of {expected:#x} to word {addr} (event {at}) before it, which is missing: the word holds {value:#x}"
        );
        Broken { what, addr: Some(addr), edge: why.map(|version| (at, version.at)) }
    }
}
