//! Code of a design that threads execute between the operations of their programs.
//!
//! A program numbers its loads, so that an out-of-order core knows which accesses wait for which; with the
//! design's loads among them the core's numbers are others, and are translated here.
//!
//! Code may defer a transactional store and answer loads of its word. What a program has stored and does not find is
//! a broken guarantee like a line that is read wrong, so the deferred stores are followed here, and answers checked.

use std::collections::VecDeque;

use super::run::Simulation;
use crate::cores::pipeline::REMEMBERED_LOADS;
use crate::design::Instruction;
use crate::design::{Code, OpAction};
use crate::program::{Op, Ptr};
use graven_base::memory::Addr;

/// What a thread executes of the design's code.
#[derive(Debug)]
pub struct Software {
    /// What comes before the program's next operation, and that operation.
    queue: VecDeque<Op>,
    code: Code,
    /// Loads of the program so far.
    loads: u32,
    /// The core's numbers of the program's recent loads, by the program's own.
    numbers: Box<[u32; REMEMBERED_LOADS]>,
    /// The program's last operation was a load, whose value it is to be handed.
    loaded: bool,
    /// What the code has found in its place.
    found: Option<u64>,
    /// Words whose stores are deferred, by address, and their newest values.
    deferred: Vec<(Addr, u64)>,
}

impl Default for Software {
    fn default() -> Self {
        Software {
            queue: VecDeque::new(),
            code: Code::default(),
            loads: 0,
            numbers: Box::new([0; REMEMBERED_LOADS]),
            loaded: false,
            found: None,
            deferred: Vec::new(),
        }
    }
}

impl Software {
    /// The core's number of the load that a pointer of the program came from; 0 if that is long ago.
    fn translated(&self, origin: u32) -> u32 {
        if origin == 0 || self.loads - origin >= REMEMBERED_LOADS as u32 {
            return 0;
        }
        self.numbers[origin as usize % REMEMBERED_LOADS]
    }

    /// Words whose stores are deferred, by address, and their newest values.
    pub(super) fn deferred(&self) -> &[(Addr, u64)] {
        &self.deferred
    }

    /// They have been performed, and the transaction is over.
    pub(super) fn forget_deferred(&mut self) {
        self.deferred.clear();
    }

    /// The newest value of a word whose store is deferred.
    fn newest(&self, addr: Addr) -> Option<u64> {
        let at = self.deferred.binary_search_by_key(&addr, |&(addr, _)| addr).ok()?;
        Some(self.deferred[at].1)
    }

    /// A store to a word is deferred.
    fn defer(&mut self, addr: Addr, value: u64) {
        match self.deferred.binary_search_by_key(&addr, |&(addr, _)| addr) {
            Ok(at) => self.deferred[at].1 = value,
            Err(at) => self.deferred.insert(at, (addr, value)),
        }
    }

    /// Queues the code, and the program's operation after it if it is executed. `last_load`: the core's number of its
    /// newest load.
    fn queue(&mut self, op: Op, action: OpAction, mut last_load: u32) {
        let before = last_load;
        let of_program = match op {
            Op::Load { at } | Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } => {
                self.translated(at.origin)
            }
            _ => 0,
        };
        let mut origin = of_program;
        for instruction in self.code.drain() {
            let op = match instruction {
                Instruction::Compute(instructions) => Op::Compute { instructions },
                Instruction::Store(addr, value) => Op::Store { at: Ptr::known(addr), value },
                Instruction::Persist(what) => Op::Persist(what),
                Instruction::End => Op::Ending,
                Instruction::LoadIndependent(addr) => {
                    last_load += 1;
                    Op::Load { at: Ptr { addr, origin: of_program } }
                }
                Instruction::Load(addr) => {
                    last_load += 1;
                    Op::Load { at: Ptr::known(addr) }
                }
                Instruction::LoadDependent(addr) => {
                    let at = Ptr { addr, origin };
                    last_load += 1;
                    origin = last_load;
                    Op::Load { at }
                }
            };
            self.queue.push_back(op);
        }
        let is_load = matches!(op, Op::Load { .. });
        self.loaded = is_load && action == OpAction::Execute;
        if is_load {
            // What the code has found came from its last load.
            let found = if last_load > before { last_load } else { 0 };
            self.loads += 1;
            let number = if self.loaded { last_load + 1 } else { found };
            self.numbers[self.loads as usize % REMEMBERED_LOADS] = number;
        }
        if action != OpAction::Execute {
            return;
        }
        let after = |at: Ptr| Ptr { addr: at.addr, origin };
        self.queue.push_back(match op {
            Op::Load { at } => Op::Load { at: after(at) },
            Op::Store { at, value } => Op::Store { at: after(at), value },
            Op::StoreNonTemporal { at, value } => Op::StoreNonTemporal { at: after(at), value },
            other => other,
        });
    }
}

impl Simulation {
    /// The next operation of a thread whose program the design puts code into.
    pub(super) fn next_with_software(&mut self, thread: usize) -> Op {
        loop {
            let t = &mut self.threads[thread];
            let software = t.software.as_mut().expect("the caller asked");
            if let Some(op) = software.queue.pop_front() {
                return op;
            }
            let value = std::mem::take(&mut t.value);
            let value = if software.loaded { value } else { 0 };
            let op = t.program.next(software.found.take().unwrap_or(value));
            let action = self.design.software(&mut self.machine, t.id, &op, &mut software.code);
            if op == Op::TxEnd {
                let running = t.running.as_mut().expect("a transaction ends after it began");
                let now = Some(t.pipeline.time);
                running.last_issue = now;
                running.ending = now.filter(|_| software.code.ends());
            }
            software.queue(op, action, t.pipeline.last_load());
            self.apply_action(thread, op, action);
        }
    }

    /// Follows what the code does in the place of the program's operations.
    fn apply_action(&mut self, thread: usize, op: Op, action: OpAction) {
        let t = &mut self.threads[thread];
        let software = t.software.as_mut().expect("the caller has it");
        match (op, action) {
            (Op::Load { at }, _) => {
                let newest = software.newest(at.addr);
                let stored = newest.unwrap_or_else(|| self.machine.load(at.addr));
                let found = match action {
                    OpAction::Return(value) => value,
                    _ if newest.is_some() => self.machine.load(at.addr),
                    _ => return,
                };
                software.found = (action != OpAction::Execute).then_some(found);
                if found != stored {
                    self.misread(at.addr, found, stored);
                }
            }
            (Op::Store { at, value } | Op::StoreNonTemporal { at, value }, OpAction::Defer) => {
                let tx = t.running.expect("transactional stores are deferred").tx;
                let newest = software.newest(at.addr);
                software.defer(at.addr, value);
                let old = newest.unwrap_or_else(|| self.machine.load(at.addr));
                if let Some(observer) = &mut self.observer {
                    observer.put_off_store(tx, at.addr);
                }
                self.count_transactional(tx, at.addr, old, value);
            }
            (_, action) => assert_eq!(action, OpAction::Execute, "{op:?} is executed"),
        }
    }
}
