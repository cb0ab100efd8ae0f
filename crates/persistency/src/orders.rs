//! All visibility orders of a small program.
//!
//! Every order of steps that the model's rules of program order allow ([`crate::rules`]) is given to the rules of durability
//! ([`crate::ranges`]), step by step; at each instant every combination of the lines' versions is an outcome. States that several
//! orders share are visited once.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHashSet;

use crate::happening::{Fence, Path};
use crate::model::Model;
use crate::prefixes::{Machine, STEPS};
use crate::program::{
    How, LINES_MAX, Op, Outcome, Program, REGISTERS_MAX, STATES_MAX, STORES_MAX, THREADS_MAX,
    TooLarge, UNSET, Value, WORDS_MAX,
};
use crate::rules::{Act, Kind, ordered};
use crate::tabulated::{Event, NOTHING_YET, Table};

/// Returns everything that a power failure at any instant may leave of a program.
///
/// # Errors
/// A program that is too large.
pub fn explore(model: &Model, program: &Program) -> Result<FxHashSet<Outcome>, TooLarge> {
    program.check()?;
    let explorer = Explorer::new(model, program);
    // Smaller states are faster to compare: most of the time.
    let is_small = program.lines.iter().all(|&line| line < 2) && explorer.nodes.len() <= 8;
    if is_small {
        explorer.run(State::<2, 8>::new())
    } else {
        explorer.run(State::<LINES_MAX, STORES_MAX>::new())
    }
}

/// A step of a program, in the order in which steps act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acted {
    /// The thread.
    pub thread: usize,
    /// The number of the step in its thread.
    pub op: usize,
}

/// Returns a shortest order of steps after which a power failure may leave a wanted outcome, with that outcome. Steps that are not in
/// it have not acted yet.
///
/// # Errors
/// A program that is too large.
pub fn witness(
    model: &Model,
    program: &Program,
    is_wanted: impl Fn(&Outcome) -> bool,
) -> Result<Option<(Vec<Acted>, Outcome)>, TooLarge> {
    program.check()?;
    let explorer = Explorer::new(model, program);
    let start = State::<LINES_MAX, STORES_MAX>::new();
    let mut seen = FxHashSet::from_iter([start]);
    // States in the order in which they were found, each with the place of the one before and the step between.
    let mut states = vec![(start, 0, 0)];
    let mut next = 0;
    while next < states.len() {
        let state = states[next].0;
        let mut outcomes = FxHashSet::default();
        explorer.outcomes(&state, &mut outcomes);
        // The least one, so that the answer does not depend on the order of a set.
        if let Some(outcome) = outcomes.into_iter().filter(|outcome| is_wanted(outcome)).min() {
            let mut steps = Vec::new();
            while next != 0 {
                let (_, before, number) = states[next];
                let node = &explorer.nodes[number];
                steps.push(Acted { thread: node.thread as usize, op: node.op });
                next = before;
            }
            steps.reverse();
            return Ok(Some((steps, outcome)));
        }
        for number in 0..explorer.nodes.len() {
            if let Some(after) = explorer.after(&state, number)
                && seen.insert(after)
            {
                states.push((after, next, number));
            }
        }
        too_many(seen.len())?;
        next += 1;
    }
    Ok(None)
}

fn too_many(states: usize) -> Result<(), TooLarge> {
    if states > STATES_MAX {
        return Err(TooLarge { what: "states or more", found: states, most: STATES_MAX });
    }
    Ok(())
}

/// A step that acts at one instant: a step of the program, or one store of an instruction that makes several.
#[derive(Clone, Copy, Debug)]
struct Node {
    thread: u32,
    /// The number of its step in its thread.
    op: usize,
    action: Action,
    act: Act,
    /// Events of durability, as numbers of the table: a locked instruction is a fence and a store.
    events: [Option<usize>; 2],
    /// The register and its value without which it is skipped.
    condition: Option<(u8, u8)>,
    /// The steps that act before it, as a set.
    after: u64,
    /// True if it acts when it is executed: it does not wait in a store buffer.
    is_executed: bool,
    /// Earlier stores of its thread to the word that it loads, as a set.
    own_stores: u64,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Store { word: u8, value: Value, path: Path },
    Exchange { word: u8, value: Value },
    Load { word: u8, into: u8 },
    Await { word: u8, value: u8 },
    WriteBack(u8),
    Flush(u8),
    Clean(u8, crate::happening::Point),
    Fence(Fence),
    Lock(u8),
    Unlock(u8),
    Told,
}

/// The stores to a line, in the order in which they became visible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Order<const STORES: usize> {
    nodes: [u8; STORES],
    count: u8,
}

/// Steps that have acted, and the versions and registers that they left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct State<const LINES: usize, const STORES: usize> {
    acted: u64,
    registers: [u8; REGISTERS_MAX],
    locks: u8,
    orders: [Order<STORES>; LINES],
    /// The number of what is durable.
    ranges: u32,
}

impl<const LINES: usize, const STORES: usize> Hash for State<LINES, STORES> {
    /// Locks are left out: they hardly differ alone.
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        hasher.write_u64(self.acted ^ u64::from(self.ranges) << 32);
        hasher.write_u64(u64::from_le_bytes(self.registers));
        for order in &self.orders {
            let nodes = order.nodes.iter().fold(0, |all, &node| all << 6 ^ u64::from(node));
            hasher.write_u64(nodes ^ u64::from(order.count) << 56);
        }
    }
}

impl<const LINES: usize, const STORES: usize> State<LINES, STORES> {
    fn new() -> Self {
        State {
            acted: 0,
            registers: [UNSET; REGISTERS_MAX],
            locks: 0,
            orders: [Order { nodes: [0; STORES], count: 0 }; LINES],
            ranges: NOTHING_YET,
        }
    }

    fn value(&self, value: Value) -> u8 {
        match value {
            Value::Constant(value) => value,
            Value::Register(register) => self.registers[usize::from(register)],
        }
    }
}

#[derive(Debug)]
struct Explorer {
    model: Model,
    /// The line of each word, and its value at first.
    lines: Vec<u8>,
    initial: Vec<u8>,
    nodes: Vec<Node>,
    table: RefCell<Table>,
}

impl Explorer {
    fn new(model: &Model, program: &Program) -> Explorer {
        let mut explorer = Explorer {
            model: model.clone(),
            lines: program.lines.clone(),
            initial: program.initial.clone(),
            nodes: Vec::new(),
            table: RefCell::new(Table::new(model)),
        };
        for (thread, ops) in program.threads.iter().enumerate() {
            debug_assert!(thread < THREADS_MAX);
            let first = explorer.nodes.len();
            for (at, op) in ops.iter().enumerate() {
                let end = explorer.nodes.len();
                let nodes = explorer.nodes_of(thread as u32, at, op, first..end);
                explorer.nodes.extend(nodes);
            }
        }
        explorer
    }

    /// The steps at one instant of the operation that follows those of its thread that the range has.
    fn nodes_of(
        &self,
        thread: u32,
        op_number: usize,
        op: &Op,
        earlier: std::ops::Range<usize>,
    ) -> Vec<Node> {
        let (condition, op) = match op {
            Op::If { register, value, then } => (Some((*register, *value)), &**then),
            op => (None, op),
        };
        let decided = condition.map_or(0, |(register, _)| self.loads(earlier.clone(), register));
        // Steps after which an Arm thread's stores act, since they decided if the stores are done.
        let mut controls = decided;
        for number in earlier.clone() {
            let node = &self.nodes[number];
            if matches!(node.action, Action::Await { .. } | Action::Lock(_)) {
                controls |= 1 << number;
            }
            if let Some((register, _)) = node.condition {
                controls |= self.loads(earlier.start..number, register);
            }
        }
        let node = |(action, kind)| {
            let act = self.act(action, kind);
            let mut after = decided | self.sources(earlier.clone(), action);
            for number in earlier.clone() {
                if ordered(self.model.order, &self.nodes[number].act, &act) {
                    after |= 1 << number;
                }
            }
            if matches!(kind, Kind::Store(_) | Kind::Exchange) {
                after |= controls;
            }
            let is_executed = matches!(
                kind,
                Kind::Load
                    | Kind::LoadAcquire
                    | Kind::Exchange
                    | Kind::Fence(Fence::Full | Fence::Locked | Fence::Dsb)
            ) || kind == Kind::Told && self.model.told_drains;
            Node {
                thread,
                op: op_number,
                action,
                act,
                events: self.events(thread, action),
                condition,
                after,
                is_executed,
                own_stores: self.own_stores(earlier.clone(), action),
            }
        };
        actions(&self.model, op).into_iter().map(node).collect()
    }

    /// Events of a step for durability.
    fn events(&self, thread: u32, action: Action) -> [Option<usize>; 2] {
        let line_of = |word: u8| self.lines[usize::from(word)];
        let events = match action {
            Action::Store { word, path, .. } => [Some(Event::Store(line_of(word), path)), None],
            Action::Exchange { word, .. } => {
                [Some(Event::Fence(Fence::Locked)), Some(Event::Store(line_of(word), Path::Cached))]
            }
            Action::WriteBack(line) => [Some(Event::WriteBack(line)), None],
            Action::Flush(line) => [Some(Event::Flush(line)), None],
            Action::Clean(line, point) => [Some(Event::Clean(line, point)), None],
            Action::Fence(fence) => [Some(Event::Fence(fence)), None],
            Action::Lock(_) => [Some(Event::Fence(Fence::Locked)), None],
            Action::Told => [Some(Event::Told), None],
            Action::Load { .. } | Action::Await { .. } | Action::Unlock(_) => [None, None],
        };
        events.map(|event| event.map(|event| self.table.borrow_mut().event(thread, event)))
    }

    fn act(&self, action: Action, kind: Kind) -> Act {
        let line_of = |word: u8| Some(self.lines[usize::from(word)]);
        let (word, line) = match action {
            Action::Store { word, .. }
            | Action::Exchange { word, .. }
            | Action::Load { word, .. }
            | Action::Await { word, .. } => (Some(word), line_of(word)),
            Action::WriteBack(line) | Action::Flush(line) | Action::Clean(line, _) => {
                (None, Some(line))
            }
            _ => (None, None),
        };
        Act { kind, word, line }
    }

    /// The last load to a register among some steps.
    fn loads(&self, among: std::ops::Range<usize>, register: u8) -> u64 {
        let sets = |&number: &usize| matches!(self.nodes[number].action, Action::Load { into, .. } if into == register);
        among.rev().find(sets).map_or(0, |number| 1 << number)
    }

    /// The loads that give what it stores.
    fn sources(&self, earlier: std::ops::Range<usize>, action: Action) -> u64 {
        match action {
            Action::Store { value: Value::Register(register), .. }
            | Action::Exchange { value: Value::Register(register), .. } => {
                self.loads(earlier, register)
            }
            _ => 0,
        }
    }

    fn own_stores(&self, earlier: std::ops::Range<usize>, action: Action) -> u64 {
        let (Action::Load { word: loaded, .. } | Action::Await { word: loaded, .. }) = action
        else {
            return 0;
        };
        let stores = |&number: &usize| matches!(self.nodes[number].action, Action::Store { word, .. } if word == loaded);
        earlier.filter(stores).fold(0, |set, number| set | 1 << number)
    }

    fn run<const L: usize, const S: usize>(
        &self,
        start: State<L, S>,
    ) -> Result<FxHashSet<Outcome>, TooLarge> {
        let mut outcomes = FxHashSet::default();
        let mut seen = FxHashSet::default();
        let mut open = vec![start];
        seen.insert(start);
        while let Some(state) = open.pop() {
            self.outcomes(&state, &mut outcomes);
            for node in 0..self.nodes.len() {
                if let Some(next) = self.after(&state, node)
                    && seen.insert(next)
                {
                    open.push(next);
                }
            }
            too_many(seen.len())?;
        }
        Ok(outcomes)
    }

    /// The state after a step, if it may act now.
    fn after<const L: usize, const S: usize>(
        &self,
        state: &State<L, S>,
        number: usize,
    ) -> Option<State<L, S>> {
        let node = &self.nodes[number];
        let is_free = state.acted >> number & 1 == 0 && node.after & !state.acted == 0;
        if !is_free {
            return None;
        }
        let mut next = State { acted: state.acted | 1 << number, ..*state };
        if is_skipped(state, node) {
            return Some(next);
        }
        match node.action {
            Action::Load { word, into } => {
                next.registers[usize::from(into)] = self.load(state, node, word)?;
            }
            Action::Await { word, value } if self.load(state, node, word)? != value => return None,
            Action::Lock(lock) if state.locks >> lock & 1 != 0 => return None,
            Action::Lock(lock) => next.locks |= 1 << lock,
            Action::Unlock(lock) => next.locks &= !(1 << lock),
            Action::Store { word, .. } | Action::Exchange { word, .. } => {
                let order = &mut next.orders[usize::from(self.lines[usize::from(word)])];
                order.nodes[usize::from(order.count)] = number as u8;
                order.count += 1;
            }
            _ => {}
        }
        for event in node.events.into_iter().flatten() {
            next.ranges = self.table.borrow_mut().after(next.ranges, event);
        }
        Some(next)
    }

    /// The value of a load: of the thread's newest store that is not visible yet, or what is visible. None if it is not known yet.
    fn load<const L: usize, const S: usize>(
        &self,
        state: &State<L, S>,
        node: &Node,
        word: u8,
    ) -> Option<u8> {
        let mut stores = node.own_stores;
        while stores != 0 {
            let newest = stores.ilog2();
            stores &= !(1 << newest);
            let own = &self.nodes[newest as usize];
            let Action::Store { value, .. } = own.action else { unreachable!("a set of stores") };
            if state.acted >> newest & 1 != 0 {
                break;
            }
            let is_decided = own
                .condition
                .is_none_or(|(register, _)| state.registers[usize::from(register)] != UNSET);
            if !is_decided {
                return None;
            }
            if is_skipped(state, own) {
                continue;
            }
            return Some(state.value(value)).filter(|&value| value != UNSET);
        }
        let order = &state.orders[usize::from(self.lines[usize::from(word)])];
        Some(self.content(state, word, &order.nodes[..usize::from(order.count)]))
    }

    /// The word after some stores to its line.
    fn content<const L: usize, const S: usize>(
        &self,
        state: &State<L, S>,
        word: u8,
        stores: &[u8],
    ) -> u8 {
        let stored =
            stores.iter().rev().find_map(|&number| match self.nodes[usize::from(number)].action {
                Action::Store { word: to, value, .. } | Action::Exchange { word: to, value }
                    if to == word =>
                {
                    Some(state.value(value))
                }
                _ => None,
            });
        stored.unwrap_or(self.initial[usize::from(word)])
    }

    /// Adds every combination of the lines' versions.
    fn outcomes<const L: usize, const S: usize>(
        &self,
        state: &State<L, S>,
        outcomes: &mut FxHashSet<Outcome>,
    ) {
        let is_done = is_done(state, &self.nodes, 0);
        self.images(state, &mut |outcome| {
            outcomes.insert(outcome);
            if is_done {
                outcomes.insert(Outcome { done: true, ..outcome });
            }
        });
    }

    /// Finds every combination of the lines' versions.
    fn images<const L: usize, const S: usize>(
        &self,
        state: &State<L, S>,
        found: &mut impl FnMut(Outcome),
    ) {
        let mut outcome =
            Outcome { image: [0; WORDS_MAX], registers: state.registers, done: false };
        self.combine(state, 0, &mut outcome, found);
    }

    fn combine<const L: usize, const S: usize>(
        &self,
        state: &State<L, S>,
        line: u8,
        outcome: &mut Outcome,
        found: &mut impl FnMut(Outcome),
    ) {
        if usize::from(line) == L {
            found(*outcome);
            return;
        }
        let range = self.table.borrow().line(state.ranges, line);
        for version in range.at_least..=range.at_most {
            let stores = &state.orders[usize::from(line)].nodes[..version as usize];
            for (word, _) in self.lines.iter().enumerate().filter(|(_, of)| **of == line) {
                outcome.image[word] = self.content(state, word as u8, stores);
            }
            self.combine(state, line + 1, outcome, found);
        }
    }
}

/// Tells if a condition is known to be false.
fn is_skipped<const L: usize, const S: usize>(state: &State<L, S>, node: &Node) -> bool {
    node.condition.is_some_and(|(register, value)| state.registers[usize::from(register)] != value)
}

/// Tells if some steps, numbered from `first`, have been executed; some of them may wait in store buffers.
fn is_done<const L: usize, const S: usize>(
    state: &State<L, S>,
    nodes: &[Node],
    first: usize,
) -> bool {
    (first..).zip(nodes).all(|(number, node)| !node.is_executed || state.acted >> number & 1 != 0)
}

/// The predicate for programs that grow: two threads of one-word instructions, on two lines.
#[derive(Debug)]
pub(crate) struct Growing(Explorer);

impl Growing {
    /// No step yet of programs on these lines, of words that hold 0.
    pub fn new(model: &Model, lines: &[u8]) -> Growing {
        let nothing = vec![Op::Fence(Fence::Full); STEPS];
        let program = Program {
            lines: lines.to_vec(),
            initial: vec![0; lines.len()],
            threads: vec![nothing.clone(), nothing],
        };
        Growing(Explorer::new(model, &program))
    }
}

impl Machine for Growing {
    type State = State<2, { 2 * STEPS }>;

    const IN_ORDER: bool = false;

    fn replace(&mut self, thread: usize, at: usize, op: &Op) {
        let first = thread * STEPS;
        let nodes = self.0.nodes_of(thread as u32, at, op, first..first + at);
        let [node] = nodes[..] else { unreachable!("an instruction of one part") };
        self.0.nodes[first + at] = node;
    }

    fn start(&self) -> Self::State {
        State::new()
    }

    fn step(&self, state: &Self::State, thread: usize, at: usize) -> Option<Self::State> {
        self.0.after(state, thread * STEPS + at)
    }

    fn drift(&self, _: &Self::State, _: &mut impl FnMut(Self::State)) {}

    fn outcomes(&self, state: &Self::State, found: &mut impl FnMut(Outcome)) {
        self.0.images(state, found);
    }

    fn is_done(&self, state: &Self::State, lengths: [usize; 2]) -> bool {
        lengths.into_iter().enumerate().all(|(thread, length)| {
            let first = thread * STEPS;
            is_done(state, &self.0.nodes[first..first + length], first)
        })
    }

    fn is_awaited(&self, thread: usize, at: usize) -> bool {
        self.0.nodes[thread * STEPS + at].is_executed
    }
}

/// The steps at one instant of an operation, and their kinds for the rules of order.
fn actions(model: &Model, op: &Op) -> Vec<(Action, Kind)> {
    let load = |acquire: bool| if acquire { Kind::LoadAcquire } else { Kind::Load };
    let one = |action, kind| vec![(action, kind)];
    match *op {
        Op::Store { ref words, value, how } => {
            let path = match how {
                How::Locked => {
                    let exchange = |&word| (Action::Exchange { word, value }, Kind::Exchange);
                    return words.iter().map(exchange).collect();
                }
                How::Cached => Path::Cached,
                How::NonTemporal => Path::NonTemporal,
                How::Release => Path::Release,
            };
            let store = |&word| (Action::Store { word, value, path }, Kind::Store(path));
            words.iter().map(store).collect()
        }
        Op::Load { word, into, acquire } => one(Action::Load { word, into }, load(acquire)),
        Op::Await { word, value, acquire } => one(Action::Await { word, value }, load(acquire)),
        Op::WriteBack(line) => one(Action::WriteBack(line), Kind::WriteBack),
        Op::Flush(line) => one(Action::Flush(line), Kind::Flush),
        Op::Clean(line, point) => one(Action::Clean(line, point), Kind::Clean),
        Op::Fence(fence) => one(Action::Fence(fence), Kind::Fence(fence)),
        Op::Lock(lock) => one(Action::Lock(lock), Kind::Exchange),
        Op::Unlock(lock) => one(Action::Unlock(lock), Kind::Store(Path::Release)),
        Op::Told if model.told_drains => one(Action::Told, Kind::Told),
        Op::Told => Vec::new(),
        Op::If { .. } => unreachable!("a condition is taken off before"),
    }
}
