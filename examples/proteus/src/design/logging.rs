//! Log-load and log-flush, at the core: from the log register through the log queue to the acknowledgement.

use graven::design::Code;
use graven::ids::ThreadId;
use graven::memory::{Addr, WORD_BYTES};

use super::Mutant;
use super::event::Event;
use super::log_area::{Entry, Number, WHOLE_BLOCK, block_of};
use super::protocol::{Port, Proteus, Timer};

/// The log-load and log-flush of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// What is stored to.
    pub(super) addr: Addr,
    /// The log-load has read its block, or had nothing to do.
    pub(super) executed: bool,
}

/// A log-flush.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flush {
    /// Where to: a slot of the thread's log area, numbered over all passes.
    pub(super) slot: u64,
    /// What.
    pub(super) entry: Entry,
}

impl Proteus {
    /// A store, its log-load and its log-flush are issued.
    pub(super) fn issue(&mut self, port: &mut Port<'_>, t: ThreadId, addr: Addr, code: &mut Code) {
        self.threads[t as usize].lines.insert(addr.line());
        let is_logged = self.is_logged(t, addr);
        let executed = is_logged || self.has_line(port, t, addr) && self.execute(port, t, addr);
        if is_logged {
            port.emit(Event::Filtered);
            code.compute(self.config.instructions_per_store);
        } else {
            code.load_independent(block_of(addr).0);
            code.compute(self.config.instructions_per_store - 1);
        }
        if !executed {
            port.emit(Event::LoadWaits);
        }
        self.threads[t as usize].pairs.push_back(Pair { addr, executed });
    }

    /// Log-loads that had to wait are executed if their lines have come, as long as there are log registers.
    pub(super) fn catch_up(&mut self, port: &mut Port<'_>, t: ThreadId) {
        for at in 0..self.threads[t as usize].pairs.len() {
            let pair = self.threads[t as usize].pairs[at];
            if pair.executed || !self.has_line(port, t, pair.addr) {
                continue;
            }
            if !self.execute(port, t, pair.addr) {
                return;
            }
            self.threads[t as usize].pairs[at].executed = true;
        }
    }

    /// Whether the log lookup table has the word of a store.
    fn is_logged(&mut self, t: ThreadId, addr: Addr) -> bool {
        let (block, word) = block_of(addr);
        let words = self.threads[t as usize].filter.look_up(block);
        words & word != 0 || words != 0 && self.mutants.has(Mutant::WordsOfFilterIgnored)
    }

    fn has_line(&self, port: &Port<'_>, t: ThreadId, addr: Addr) -> bool {
        let levels = (port.cache_count() - 1) / self.cores as usize;
        let l1 = self.threads[t as usize].core as usize * levels;
        port.cache(l1).find(addr.line()).is_some()
    }

    /// A log-load reads its block, and its log-flush enters the log queue, or waits for it in the log register. Returns
    /// whether there was a log register.
    pub(super) fn execute(&mut self, port: &mut Port<'_>, t: ThreadId, addr: Addr) -> bool {
        if self.is_logged(t, addr) {
            port.emit(Event::Filtered);
            return true;
        }
        let thread = &self.threads[t as usize];
        if thread.registers.len() == self.config.log_registers as usize {
            port.emit(Event::RegistersFull);
            return false;
        }
        let transaction = thread.transaction.expect("log-loads belong to a transaction");
        if thread.entries + 1 == thread.area.slots {
            let entries = thread.entries;
            port.fail(format!(
                "transaction {transaction} of thread {t} has more log entries than \
                 proteus.log_bytes_per_thread holds beside the end of the one before ({entries})"
            ));
            return true;
        }
        let (block, word) = block_of(addr);
        let whole = self.mutants.has(Mutant::BlocksLoggedWhole);
        let words = if whole { WHOLE_BLOCK } else { word };
        let entry = Entry {
            number: Number { transaction, end: false },
            index: thread.entries,
            from: block,
            words,
            old: std::array::from_fn(|i| port.cached_word(block.plus(i as u64 * WORD_BYTES))),
        };
        let shared = self.is_open_elsewhere(t, block);
        let thread = &mut self.threads[t as usize];
        let slot = thread.next_slot;
        let wraps = slot >= thread.area.slots;
        thread.next_slot += 1;
        thread.entries += 1;
        thread.registers.push_back(Flush { slot, entry });
        let again = thread.filter.has(block);
        let replaces = thread.filter.insert(block, words);
        port.emit(Event::Logged { thread: t, entry, wraps, again, replaces, shared });
        self.fill_queue(port, t);
        true
    }

    /// Whether another open transaction has logged words of a block.
    fn is_open_elsewhere(&self, t: ThreadId, block: Addr) -> bool {
        let mut others = self.threads.iter().zip(0..).filter(|&(_, other)| other != t);
        others.any(|(other, _)| other.entries > 0 && other.filter.has(block))
    }

    /// Log-flushes enter the log queue as long as it has places; their messages leave.
    fn fill_queue(&mut self, port: &mut Port<'_>, t: ThreadId) {
        let thread = &mut self.threads[t as usize];
        while thread.queue.len() < self.config.logq_entries as usize {
            let Some(flush) = thread.registers.pop_front() else { return };
            thread.queue.push(flush);
            port.send_to_controller(self.load_cycles, Timer::Flush { thread: t, slot: flush.slot });
            port.emit(Event::Flushes { queued: thread.queue.len() });
        }
        if !thread.registers.is_empty() {
            port.emit(Event::LogQueueFull);
        }
    }

    /// Whether a log-flush that a store must not overtake is on its way.
    pub(super) fn must_wait(&self, t: ThreadId, addr: Addr) -> bool {
        if self.mutants.has(Mutant::StoreOvertakesFlush) {
            return false;
        }
        let (block, word) = block_of(addr);
        let holds = |flush: &Flush| flush.entry.from == block && flush.entry.words & word != 0;
        let thread = &self.threads[t as usize];
        let queued = thread.queue.iter().any(holds);
        thread.registers.iter().any(holds)
            || queued && !self.mutants.has(Mutant::RegistersSearchedOnly)
    }

    /// A log-flush is durable: the controller answers.
    pub(super) fn acknowledge(&mut self, port: &mut Port<'_>, t: ThreadId, slot: u64) {
        port.send_to_core(0, Timer::Acknowledgement { thread: t, slot });
    }

    /// The core knows that a log-flush is durable.
    pub(super) fn acknowledged(&mut self, port: &mut Port<'_>, t: ThreadId, slot: u64) {
        self.threads[t as usize].queue.retain(|flush| flush.slot != slot);
        self.fill_queue(port, t);
        self.catch_up(port, t);
        if std::mem::take(&mut self.threads[t as usize].waits) {
            port.release_here(t);
        }
    }
}
