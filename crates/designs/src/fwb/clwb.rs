//! Written lines forced home by instructions (§VI: `hwl`; Fig. 1(c)), and what truncates the log then.
//!
//! Software executes a `clwb` for each line that a transaction has written, between its last store and its end. They
//! retire through the store queue, behind the stores, so the end finds them performed: whatever the transaction has
//! written is home, or on its way there. The end itself does not wait for it ("clwb // can be delayed"), only for its
//! records.
//!
//! The truncation waits. It is not left to a fence of the thread's own: the log is one for all threads, and a thread
//! that executes no further transaction would hold it up for ever. The controller, through which all data writes
//! pass, tells when records are not needed any more. When so much of the log is in use (`truncation_percent`), or
//! somebody waits for room, it closes the present epoch of data writes
//! ([`crate::force_write_back::DataWrites`]): transactions that have ended have written their lines back in
//! it or before. When these writes are durable, the head moves past their records, as after a scan.

use super::scan::Truncation;
use super::{Cover, Fwb, Mutant, WriteBack};
use crate::stored_lines::{Stored, StoredLines};
use graven_base::ids::ThreadId;
use graven_base::memory::LineAddr;
use graven_machine::design::Code;
use graven_machine::machine::Machine;
use graven_machine::program::Op;

/// A line that an open transaction has written.
#[derive(Clone, Debug)]
struct Written(LineAddr);

impl Stored for Written {
    fn line(&self) -> LineAddr {
        self.0
    }
}

/// What the program of a thread knows: it runs ahead of its stores.
#[derive(Clone, Debug, Default)]
pub struct OpenTransaction {
    is_open: bool,
    written: StoredLines<Written>,
}

impl Fwb {
    /// The code before an operation: `clwb` instructions before the end of a transaction.
    pub(super) fn clwbs_before(
        &mut self,
        m: &Machine,
        thread: ThreadId,
        before: &Op,
        code: &mut Code,
    ) {
        let has = |mutant| self.mutants.has(mutant);
        let open = &mut self.open[thread as usize];
        match before {
            Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } => {
                if !open.is_open || !m.memory.is_pm(at.addr) {
                    return;
                }
                let line = at.addr.line();
                let (_, is_first) = open.written.of_store(line, || Written(line));
                if is_first && has(Mutant::ClwbBeforeStore) {
                    code.clwb(line);
                }
                return;
            }
            Op::TxBegin => open.is_open = true,
            Op::TxEnd => open.is_open = false,
            _ => {}
        }
        let is_time = match before {
            Op::TxEnd => !has(Mutant::ClwbAfterEnd),
            Op::TxBegin => has(Mutant::ClwbAfterEnd),
            _ => has(Mutant::ClwbAfterEnd) && !open.is_open,
        };
        if !is_time {
            return;
        }
        if has(Mutant::LineWithoutClwb) {
            open.written.lines.pop();
        }
        if !has(Mutant::ClwbBeforeStore) {
            open.written.lines.iter().for_each(|written| code.clwb(written.0));
        }
        open.written.clear();
    }

    /// Lets the head follow the transactions that have ended durably, if it is worth while.
    pub(super) fn truncate_behind_clwbs(&mut self, m: &mut Machine) {
        if self.write_back != WriteBack::Clwb || self.truncation.is_some() {
            return;
        }
        let waits = !self.waiting_for_space.is_empty();
        let head = self.end.next().min(self.oldest_unfinished().unwrap_or(u64::MAX));
        if head <= self.end.head() {
            if waits {
                self.give_up_if_stuck(m);
            }
            return;
        }
        let in_use = self.end.log().places() - self.free_places();
        if !waits && in_use * 100 < self.truncation_percent * self.end.log().places() {
            return;
        }
        m.cover(Cover::HeadBehindClwbs as usize);
        m.note(|| format!("behind clwbs, the head may move to place {head}"));
        let after_epoch = self.data_writes.close();
        self.truncation = Some(Truncation { head, after_epoch, sent: false });
        self.try_to_truncate(m);
    }
}
