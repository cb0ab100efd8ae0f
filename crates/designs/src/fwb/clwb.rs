//! Written lines forced home by instructions (§VI: `hwl`; Fig. 1(c)), and what truncates the log then.
//!
//! Software executes a `clwb` for each line that a transaction has written, between its last store and its end. They
//! retire through the store queue, behind the stores, so the end finds them performed: whatever the transaction has
//! written is home, or on its way there. The end itself does not wait for it ("clwb // can be delayed"), only for its
//! records.
//!
//! The truncation waits. It is not left to a fence of the thread's own: the log is one for all threads, and a thread
//! that executes no further transaction would hold it up for ever. The controller, through which all data writes
//! pass, determines when records are no longer needed. When so much of the log is in use (`truncation_percent`), or
//! a thread waits for room, it closes the present epoch of data writes
//! ([`crate::force_write_back::DataWrites`]): transactions that have ended have written their lines back in
//! it or before. When these writes are durable, the head moves past their records, as after a scan.

use graven_base::ids::ThreadId;
use graven_base::memory::LineAddr;
use graven_machine::design::{Code, OpAction, SoftwareDesign};
use graven_machine::program::Op;

use super::WriteBack;
use super::event::Event;
use super::protocol::{Fwb, Port};
use crate::mechanisms::stored_lines::{Stored, StoredLines};

/// A line that an open transaction has written.
#[derive(Clone, Debug)]
struct Written(LineAddr);

impl Stored for Written {
    fn line(&self) -> LineAddr {
        self.0
    }
}

/// Knowledge of a thread's program, which runs ahead of its stores.
#[derive(Clone, Debug, Default)]
pub struct OpenTransaction {
    is_open: bool,
    written: StoredLines<Written>,
}

impl SoftwareDesign for Fwb {
    /// The code before an operation: `clwb` instructions before the end of a transaction.
    fn before_op(
        &mut self,
        port: &mut Port<'_>,
        thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        let after_end = !self.rules.clwb_precedes_end();
        let is_open = self.open[thread as usize].is_open;
        match op {
            Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } => {
                if is_open && port.is_pm(at.addr) {
                    self.before_store(thread, at.addr.line(), code);
                }
                return OpAction::Execute;
            }
            Op::TxBegin => self.open[thread as usize].is_open = true,
            Op::TxEnd => self.open[thread as usize].is_open = false,
            _ => {}
        }
        let is_time = match op {
            Op::TxEnd => !after_end,
            Op::TxBegin => after_end,
            _ => after_end && !is_open,
        };
        if is_time {
            self.write_back_lines(thread, code);
        }
        OpAction::Execute
    }
}

impl Fwb {
    /// The transaction is about to write a line.
    fn before_store(&mut self, thread: ThreadId, line: LineAddr, code: &mut Code) {
        let written = &mut self.open[thread as usize].written;
        let (_, is_first) = written.of_store(line, || Written(line));
        if is_first && !self.rules.clwb_follows_stores() {
            code.clwb(line);
        }
    }

    /// A `clwb` for each line that the transaction has written.
    fn write_back_lines(&mut self, thread: ThreadId, code: &mut Code) {
        let rules = self.rules;
        let written = &mut self.open[thread as usize].written;
        if !rules.all_lines_get_clwb() {
            written.lines.pop();
        }
        if rules.clwb_follows_stores() {
            written.lines.iter().for_each(|written| code.clwb(written.0));
        }
        written.clear();
    }

    /// Lets the head follow the transactions that have ended durably, if it is worth while.
    pub fn truncate_behind_clwbs(&mut self, port: &mut Port<'_>) {
        if self.write_back != WriteBack::Clwb || self.truncation.is_some() {
            return;
        }
        let waits = !self.waiting_for_space.is_empty();
        let head = self.end.next().min(self.oldest_unfinished().unwrap_or(u64::MAX));
        if head <= self.end.head() {
            if waits {
                self.give_up_if_stuck(port);
            }
            return;
        }
        let in_use = self.end.log().places() - self.free_places();
        if !waits && in_use * 100 < self.truncation_percent * self.end.log().places() {
            return;
        }
        port.emit(Event::HeadBehindClwbs { head });
        let after_epoch = self.data_writes.close();
        self.truncate(port, head, after_epoch);
    }
}
