//! Code of a design that threads execute between the operations of their programs.
//!
//! A program numbers its loads, so that an out-of-order core knows which accesses wait for which; with the
//! design's loads among them the core's numbers are others, and are translated here.
//!
//! Code may defer a transactional store and answer loads of its word. What a program has stored and does not find is
//! a broken guarantee like a line that is read wrong, so the deferred stores are followed here, and answers checked.

use super::run::Simulation;
use crate::cores::pipeline::REMEMBERED_LOADS;
use crate::design::Instruction;
use crate::design::{Code, OpAction};
use crate::program::{Op, Ptr};
use graven_base::memory::Addr;

/// Code of the design that a thread executes.
#[derive(Debug)]
pub struct Software {
    /// Code before the program's operation.
    code: Code,
    /// The program's operation, if it is executed after the code.
    op: Option<Op>,
    /// The core's number of the load that the operation's pointer came from.
    of_program: u32,
    /// The same of the load that the next dependent one waits for.
    origin: u32,
    /// The core's number of its newest load, once what was handed out is issued.
    last_load: u32,
    /// The same before the code.
    before: u32,
    /// The program's operation is a load, which has no number yet.
    unnumbered: bool,
    /// Loads of the program so far.
    loads: u32,
    /// The core's numbers of the program's recent loads, by the program's own.
    numbers: Box<[u32; REMEMBERED_LOADS]>,
    /// The program's last operation was a load, whose value it is to be handed.
    loaded: bool,
    /// Value that the code has found in its place.
    found: Option<u64>,
    /// Words whose stores are deferred, by address, and their newest values.
    deferred: Vec<(Addr, u64)>,
}

impl Default for Software {
    fn default() -> Self {
        Software {
            code: Code::default(),
            op: None,
            of_program: 0,
            origin: 0,
            last_load: 0,
            before: 0,
            unnumbered: false,
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

    /// A load of the program has been executed without time: nothing waits for it.
    pub(super) fn load_without_time(&mut self) {
        self.loads += 1;
        self.numbers[self.loads as usize % REMEMBERED_LOADS] = 0;
    }

    /// The program's operation that comes after the code.
    pub(super) fn pending(&self) -> Option<Op> {
        self.op
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

    /// The code is to be executed, and the program's operation after it if `action` says so. `last_load`: the core's number of
    /// its newest load.
    fn begin(&mut self, op: Op, action: OpAction, last_load: u32) {
        self.of_program = match op {
            Op::Load { at } | Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } => {
                self.translated(at.origin)
            }
            _ => 0,
        };
        self.origin = self.of_program;
        (self.last_load, self.before) = (last_load, last_load);
        self.unnumbered = matches!(op, Op::Load { .. });
        let is_executed = action == OpAction::Execute;
        self.loaded = self.unnumbered && is_executed;
        self.op = is_executed.then_some(op);
    }

    /// Takes the next operation of the code and the program.
    #[inline]
    fn take_next(&mut self) -> Option<Op> {
        match self.code.take_next() {
            Some(instruction) => Some(self.operation(instruction)),
            None => self.after_code(),
        }
    }

    /// An instruction of the code, as the core executes it.
    #[inline]
    fn operation(&mut self, instruction: Instruction) -> Op {
        let (addr, origin) = match instruction {
            Instruction::Compute(instructions) => return Op::Compute { instructions },
            Instruction::Store(addr, value) => return Op::Store { at: Ptr::known(addr), value },
            Instruction::Persist(what) => return Op::Persist(what),
            Instruction::End => return Op::Ending,
            Instruction::LoadIndependent(addr) => (addr, self.of_program),
            Instruction::Load(addr) => (addr, 0),
            Instruction::LoadDependent(addr) => {
                (addr, std::mem::replace(&mut self.origin, self.last_load + 1))
            }
        };
        self.last_load += 1;
        Op::Load { at: Ptr { addr, origin } }
    }

    /// The program's operation, if it is executed. If it is a load it gets its number.
    fn after_code(&mut self) -> Option<Op> {
        if std::mem::take(&mut self.unnumbered) {
            // What the code has found came from its last load.
            let found = if self.last_load > self.before { self.last_load } else { 0 };
            self.loads += 1;
            let number = if self.loaded { self.last_load + 1 } else { found };
            self.numbers[self.loads as usize % REMEMBERED_LOADS] = number;
        }
        let after = |at: Ptr| Ptr { addr: at.addr, origin: self.origin };
        Some(match self.op.take()? {
            Op::Load { at } => Op::Load { at: after(at) },
            Op::Store { at, value } => Op::Store { at: after(at), value },
            Op::StoreNonTemporal { at, value } => Op::StoreNonTemporal { at: after(at), value },
            other => other,
        })
    }
}

impl Simulation {
    /// The next operation of a thread whose program the design puts code into.
    pub(super) fn next_with_software(&mut self, thread: usize) -> Op {
        loop {
            let t = &mut self.threads[thread];
            let software = t.software.as_mut().expect("the caller asked");
            if let Some(op) = software.take_next() {
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
            software.begin(op, action, t.pipeline.last_load());
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
