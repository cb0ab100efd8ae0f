//! Code that threads execute: the write set, lookups before loads, the append and the update of the index at the end.

use super::super::Lookups;
use super::super::event::Event;
use super::super::index::Plan;
use super::super::log::runs;
use super::{Lsm, Port};
use graven_base::memory::{Addr, WORD_BYTES};
use graven_machine::design::Code;
use graven_machine::program::Op;

impl Lsm {
    /// Adds the code that a thread executes before, or in addition to, an operation of its program.
    pub(super) fn execute(
        &mut self,
        port: &mut Port<'_>,
        thread: usize,
        before: &Op,
        code: &mut Code,
    ) {
        match *before {
            Op::Load { at } if port.is_pm(at.addr) => self.load_code(port, thread, at.addr, code),
            Op::Store { at, value } | Op::StoreNonTemporal { at, value } if port.is_pm(at.addr) => {
                self.store_code(port, thread, at.addr, value, code);
            }
            Op::TxBegin => {
                self.threads[thread].in_transaction = true;
                self.threads[thread].named.clear();
            }
            Op::TxEnd => {
                self.threads[thread].in_transaction = false;
                self.append_code(port, thread, code);
            }
            _ => {}
        }
    }

    /// A load looks its address up, unless the transaction has stored the word.
    fn load_code(&self, port: &mut Port<'_>, thread: usize, home: Addr, code: &mut Code) {
        if !self.is_in_write_set(thread, home, code) {
            self.look_up(port, home, code);
        }
    }

    /// A transaction looks for its own stores first. Returns whether it has one there.
    fn is_in_write_set(&self, thread: usize, home: Addr, code: &mut Code) -> bool {
        let t = &self.threads[thread];
        if !t.in_transaction || t.named.is_empty() {
            return false;
        }
        code.compute(self.config.write_set_instructions);
        code.load(self.slot(thread, home));
        t.named.binary_search(&home).is_ok()
    }

    /// A store goes to the write set.
    fn store_code(
        &mut self,
        port: &mut Port<'_>,
        thread: usize,
        home: Addr,
        value: u64,
        code: &mut Code,
    ) {
        let slot = self.slot(thread, home);
        let t = &mut self.threads[thread];
        if !t.in_transaction {
            port.fail(format!("thread {thread} stores to {home} outside a transaction"));
        }
        if let Err(at) = t.named.binary_search(&home) {
            t.named.insert(at, home);
        }
        code.compute(self.config.write_set_instructions);
        code.store(slot, home.0);
        code.store(slot.plus(WORD_BYTES), value);
        if self.config.lookups == Lookups::All {
            self.look_up(port, home, code);
        }
    }

    /// A walk through the skip list: each node's address is in the node before.
    fn look_up(&self, port: &mut Port<'_>, home: Addr, code: &mut Code) {
        let mut nodes = 0;
        code.compute(self.config.lookup_instructions);
        self.index.search(home, |node| {
            nodes += 1;
            code.load_dependent(node);
        });
        code.compute(nodes * self.config.node_instructions);
        port.emit(Event::LookedUp { nodes });
    }

    /// Takes the next sequence number, writes entries to the log, and updates the index for each of them.
    fn append_code(&mut self, port: &mut Port<'_>, thread: usize, code: &mut Code) {
        let mut split = std::mem::take(&mut self.runs);
        let named = self.threads[thread].named.iter().copied();
        runs(named, self.config.entry_words_max as usize, &mut split);
        if !split.is_empty() {
            code.load(self.sequence_counter);
            code.store(self.sequence_counter, self.next_sequence);
        }
        let mut plan = Plan::default();
        for run in &split {
            code.compute(self.config.entry_instructions + run.words as u32);
            self.look_up(port, run.home, code);
            let end = run.home.plus(run.words * WORD_BYTES);
            self.index.update(&mut plan, run.home, end, |word, value| code.store(word, value));
        }
        self.runs = split;
    }
}
