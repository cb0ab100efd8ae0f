//! All visibility orders of a small program.
//!
//! Every order of steps that the model's rules of program order allow ([`crate::rules`]) is given to the rules of durability
//! ([`crate::ranges`]), step by step; at each instant every combination of the lines' versions is an outcome. States that several
//! orders share are visited once.

use rustc_hash::FxHashSet;

use crate::happening::{Fence, Path};
use crate::model::Model;
use crate::program::{
    How, LINES_MAX, LOCKS_MAX, Op, Outcome, Program, REGISTERS_MAX, STATES_MAX, STORES_MAX,
    THREADS_MAX, TooLarge, UNSET, Value, WORDS_MAX,
};
use crate::ranges::{Given, Ranges};
use crate::rules::{Act, Kind, ordered};

/// Returns everything that a power failure at any instant may leave of a program.
///
/// # Errors
/// A program that is too large.
pub fn explore(model: &Model, program: &Program) -> Result<FxHashSet<Outcome>, TooLarge> {
    program.check()?;
    let explorer = Explorer::new(model, program);
    explorer.run(State::new(model))
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
    let start = State::new(model);
    let mut seen = FxHashSet::from_iter([start.clone()]);
    // States in the order in which they were found, each with the place of the one before and the step between.
    let mut states = vec![(start, 0, 0)];
    let mut next = 0;
    while next < states.len() {
        let state = states[next].0.clone();
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
                && !seen.contains(&after)
            {
                seen.insert(after.clone());
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
#[derive(Debug)]
struct Node {
    thread: u32,
    /// The number of its step in its thread.
    op: usize,
    action: Action,
    /// The register and its value without which it is skipped.
    condition: Option<(u8, u8)>,
    /// The steps that act before it, as a set.
    after: u64,
    /// Earlier stores of its thread to the word that it loads, oldest first.
    own_stores: Vec<usize>,
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Order {
    nodes: [u8; STORES_MAX],
    count: u8,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    acted: u64,
    registers: [u8; REGISTERS_MAX],
    locks: [bool; LOCKS_MAX],
    orders: [Order; LINES_MAX],
    ranges: Ranges,
}

impl State {
    fn new(model: &Model) -> State {
        State {
            acted: 0,
            registers: [UNSET; REGISTERS_MAX],
            locks: [false; LOCKS_MAX],
            orders: [Order::default(); LINES_MAX],
            ranges: Ranges::new(model, Given::Acting),
        }
    }

    fn value(&self, value: Value) -> u8 {
        match value {
            Value::Constant(value) => value,
            Value::Register(register) => self.registers[usize::from(register)],
        }
    }
}

struct Explorer<'a> {
    program: &'a Program,
    nodes: Vec<Node>,
    /// Steps that have acted when all instructions have been executed; others may wait in store buffers.
    executed: u64,
}

impl<'a> Explorer<'a> {
    fn new(model: &Model, program: &'a Program) -> Explorer<'a> {
        let mut explorer = Explorer { program, nodes: Vec::new(), executed: 0 };
        for (thread, ops) in program.threads.iter().enumerate() {
            debug_assert!(thread < THREADS_MAX);
            explorer.add_thread(model, thread as u32, ops);
        }
        explorer
    }

    fn add_thread(&mut self, model: &Model, thread: u32, ops: &[Op]) {
        let first = self.nodes.len();
        let mut acts: Vec<Act> = Vec::new();
        // Steps after which an Arm thread's stores act, since they decided if the stores are done.
        let mut controls = 0;
        for (at, op) in ops.iter().enumerate() {
            let begin = self.nodes.len();
            let (condition, op) = match op {
                Op::If { register, value, then } => (Some((*register, *value)), &**then),
                op => (None, op),
            };
            for (action, kind) in actions(model, op) {
                let act = self.act(action, kind);
                let mut after = 0;
                for (earlier, earlier_act) in acts.iter().enumerate().take(begin - first) {
                    if ordered(model.order, earlier_act, &act) {
                        after |= 1 << (first + earlier);
                    }
                }
                let decided = condition.map_or(0, |(register, _)| self.loads(first, register));
                controls |= decided;
                after |= decided | self.sources(first, action);
                if matches!(kind, Kind::Store(_) | Kind::Exchange) {
                    after |= controls;
                }
                if matches!(action, Action::Await { .. } | Action::Lock(_)) {
                    controls |= 1 << self.nodes.len();
                }
                let number = self.nodes.len();
                if matches!(
                    kind,
                    Kind::Load
                        | Kind::LoadAcquire
                        | Kind::Exchange
                        | Kind::Fence(Fence::Full | Fence::Locked | Fence::Dsb)
                ) || kind == Kind::Told && model.told_drains
                {
                    self.executed |= 1 << number;
                }
                let own_stores = self.own_stores(first, action);
                self.nodes.push(Node { thread, op: at, action, condition, after, own_stores });
                acts.push(act);
            }
        }
    }

    fn act(&self, action: Action, kind: Kind) -> Act {
        let line_of = |word: u8| Some(self.program.lines[usize::from(word)]);
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

    /// The last load of the thread, whose nodes begin at `first`, to a register.
    fn loads(&self, first: usize, register: u8) -> u64 {
        let sets =
            |node: &Node| matches!(node.action, Action::Load { into, .. } if into == register);
        self.nodes[first..].iter().rposition(sets).map_or(0, |at| 1 << (first + at))
    }

    /// The loads that give what it stores.
    fn sources(&self, first: usize, action: Action) -> u64 {
        match action {
            Action::Store { value: Value::Register(register), .. }
            | Action::Exchange { value: Value::Register(register), .. } => {
                self.loads(first, register)
            }
            _ => 0,
        }
    }

    fn own_stores(&self, first: usize, action: Action) -> Vec<usize> {
        let (Action::Load { word: loaded, .. } | Action::Await { word: loaded, .. }) = action
        else {
            return Vec::new();
        };
        let stores =
            |node: &Node| matches!(node.action, Action::Store { word, .. } if word == loaded);
        (first..self.nodes.len()).filter(|&at| stores(&self.nodes[at])).collect()
    }

    fn run(&self, start: State) -> Result<FxHashSet<Outcome>, TooLarge> {
        let mut outcomes = FxHashSet::default();
        let mut seen = FxHashSet::default();
        let mut open = vec![start.clone()];
        seen.insert(start);
        while let Some(state) = open.pop() {
            self.outcomes(&state, &mut outcomes);
            for node in 0..self.nodes.len() {
                if let Some(next) = self.after(&state, node)
                    && !seen.contains(&next)
                {
                    seen.insert(next.clone());
                    open.push(next);
                }
            }
            too_many(seen.len())?;
        }
        Ok(outcomes)
    }

    /// The state after a step, if it may act now.
    fn after(&self, state: &State, number: usize) -> Option<State> {
        let node = &self.nodes[number];
        let is_free = state.acted >> number & 1 == 0 && node.after & !state.acted == 0;
        if !is_free {
            return None;
        }
        if self.is_skipped(state, node) {
            return Some(State { acted: state.acted | 1 << number, ..state.clone() });
        }
        let loaded = match node.action {
            Action::Load { word, .. } => Some(self.load(state, node, word)?),
            Action::Await { word, value } => {
                Some(self.load(state, node, word).filter(|&loaded| loaded == value)?)
            }
            Action::Lock(lock) if state.locks[usize::from(lock)] => return None,
            _ => None,
        };
        let mut next = state.clone();
        next.acted |= 1 << number;
        self.act_on(&mut next, number, loaded);
        Some(next)
    }

    fn act_on(&self, state: &mut State, number: usize, loaded: Option<u8>) {
        let Node { thread, action, .. } = self.nodes[number];
        match action {
            Action::Store { word, path, .. } => self.store(state, number, word, path),
            Action::Exchange { word, .. } => {
                state.ranges.fence(thread, Fence::Locked, &mut |_| ());
                self.store(state, number, word, Path::Cached);
            }
            Action::Load { into, .. } => {
                state.registers[usize::from(into)] = loaded.expect("a load has a value");
            }
            Action::Await { .. } => {}
            Action::WriteBack(line) => state.ranges.write_back(thread, u32::from(line)),
            Action::Flush(line) => {
                let version = state.ranges.line(u32::from(line)).at_most;
                state.ranges.flush(thread, u32::from(line), version);
            }
            Action::Clean(line, point) => state.ranges.clean(thread, u32::from(line), point),
            Action::Fence(fence) => state.ranges.fence(thread, fence, &mut |_| ()),
            Action::Lock(lock) => {
                state.locks[usize::from(lock)] = true;
                state.ranges.fence(thread, Fence::Locked, &mut |_| ());
            }
            Action::Unlock(lock) => state.locks[usize::from(lock)] = false,
            Action::Told => state.ranges.told(thread, &mut |_| ()),
        }
    }

    fn store(&self, state: &mut State, number: usize, word: u8, path: Path) {
        let line = self.program.lines[usize::from(word)];
        let order = &mut state.orders[usize::from(line)];
        order.nodes[usize::from(order.count)] = number as u8;
        order.count += 1;
        state.ranges.store(self.nodes[number].thread, u32::from(line), path);
    }

    /// Tells if a condition is known to be false.
    fn is_skipped(&self, state: &State, node: &Node) -> bool {
        node.condition
            .is_some_and(|(register, value)| state.registers[usize::from(register)] != value)
    }

    /// The value of a load: of the thread's newest store that is not visible yet, or what is visible. None if it is not known yet.
    fn load(&self, state: &State, node: &Node, word: u8) -> Option<u8> {
        for &store in node.own_stores.iter().rev() {
            let own = &self.nodes[store];
            let Action::Store { value, .. } = own.action else { unreachable!("a list of stores") };
            if state.acted >> store & 1 != 0 {
                break;
            }
            let is_decided = own
                .condition
                .is_none_or(|(register, _)| state.registers[usize::from(register)] != UNSET);
            if !is_decided {
                return None;
            }
            if self.is_skipped(state, own) {
                continue;
            }
            return Some(state.value(value)).filter(|&value| value != UNSET);
        }
        let line = usize::from(self.program.lines[usize::from(word)]);
        let order = &state.orders[line];
        Some(self.content(state, word, &order.nodes[..usize::from(order.count)]))
    }

    /// The word after some stores to its line.
    fn content(&self, state: &State, word: u8, stores: &[u8]) -> u8 {
        let stored =
            stores.iter().rev().find_map(|&number| match self.nodes[usize::from(number)].action {
                Action::Store { word: to, value, .. } | Action::Exchange { word: to, value }
                    if to == word =>
                {
                    Some(state.value(value))
                }
                _ => None,
            });
        stored.unwrap_or(self.program.initial[usize::from(word)])
    }

    /// Adds every combination of the lines' versions.
    fn outcomes(&self, state: &State, outcomes: &mut FxHashSet<Outcome>) {
        let done = state.acted & self.executed == self.executed;
        let mut outcome =
            Outcome { image: [0; WORDS_MAX], registers: state.registers, done: false };
        let line_count = self.program.lines.iter().map(|&line| line + 1).max().unwrap_or(0);
        self.combine(state, 0, line_count, &mut outcome, outcomes);
        if done {
            outcome.done = true;
            self.combine(state, 0, line_count, &mut outcome, outcomes);
        }
    }

    fn combine(
        &self,
        state: &State,
        line: u8,
        line_count: u8,
        outcome: &mut Outcome,
        outcomes: &mut FxHashSet<Outcome>,
    ) {
        if line == line_count {
            outcomes.insert(*outcome);
            return;
        }
        let range = state.ranges.line(u32::from(line));
        for version in range.at_least..=range.at_most {
            let stores = &state.orders[usize::from(line)].nodes[..version as usize];
            for (word, _) in self.program.lines.iter().enumerate().filter(|(_, of)| **of == line) {
                outcome.image[word] = self.content(state, word as u8, stores);
            }
            self.combine(state, line + 1, line_count, outcome, outcomes);
        }
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
