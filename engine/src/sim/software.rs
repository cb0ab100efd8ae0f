//! Code of a design that threads execute between the operations of their programs.
//!
//! A program numbers its loads, so that an out-of-order core knows which accesses wait for which; with the
//! design's loads among them the core's numbers are others, and are translated here.

use std::collections::VecDeque;

use super::run::Simulation;
use crate::designs::Code;
use crate::designs::code::Instruction;
use crate::machine::core::REMEMBERED_LOADS;
use crate::program::{Op, Ptr};

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
}

impl Default for Software {
    fn default() -> Self {
        Software {
            queue: VecDeque::new(),
            code: Code::default(),
            loads: 0,
            numbers: Box::new([0; REMEMBERED_LOADS]),
            loaded: false,
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

    /// Queues the code and the program's operation after it. `last_load`: the core's number of its newest load.
    fn queue(&mut self, op: Op, mut last_load: u32) {
        let mut origin = match op {
            Op::Load { at } | Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } => {
                self.translated(at.origin)
            }
            _ => 0,
        };
        for instruction in self.code.drain() {
            let op = match instruction {
                Instruction::Compute(instructions) => Op::Compute { instructions },
                Instruction::Store(addr, value) => Op::Store { at: Ptr::known(addr), value },
                Instruction::Persist(what) => Op::Persist(what),
                Instruction::Load(addr) => {
                    last_load += 1;
                    Op::Load { at: Ptr::known(addr) }
                }
                Instruction::Chase(addr) => {
                    let at = Ptr { addr, origin };
                    last_load += 1;
                    origin = last_load;
                    Op::Load { at }
                }
            };
            self.queue.push_back(op);
        }
        let after = |at: Ptr| Ptr { addr: at.addr, origin };
        self.queue.push_back(match op {
            Op::Load { at } => Op::Load { at: after(at) },
            Op::Store { at, value } => Op::Store { at: after(at), value },
            Op::StoreNonTemporal { at, value } => Op::StoreNonTemporal { at: after(at), value },
            other => other,
        });
        self.loaded = matches!(op, Op::Load { .. });
        if self.loaded {
            self.loads += 1;
            self.numbers[self.loads as usize % REMEMBERED_LOADS] = last_load + 1;
        }
    }
}

impl Simulation {
    /// The next operation of a thread whose program the design puts code into.
    pub(super) fn next_with_software(&mut self, thread: usize) -> Op {
        let t = &mut self.threads[thread];
        let software = t.software.as_mut().expect("the caller asked");
        if let Some(op) = software.queue.pop_front() {
            return op;
        }
        let value = std::mem::take(&mut t.value);
        let op = t.program.next(if software.loaded { value } else { 0 });
        self.design.software(&mut self.machine, t.id, &op, &mut software.code);
        software.queue(op, t.pipeline.last_load());
        software.queue.pop_front().expect("the program's operation is there at least")
    }
}
