//! The frame of threads whose transactions are operations: all of them are drawn, then their locks are taken
//! ([`locking`]), and then they are performed.

use super::{costs, locking};
use graven_machine::program::{Load, LockId, Program, Thread, spawn};
use graven_machine::workload::{Request, Sharing};

/// A thread that draws and performs operations.
pub(super) trait Operations: 'static {
    /// An operation with its parameters.
    type Operation: Copy + 'static;

    /// Draws the next operation, and counts the instructions of it.
    fn draw(&mut self, thread: &mut Thread<'_>) -> Self::Operation;

    /// Adds the locks that an operation on a shared structure needs.
    fn lock(&self, thread: &mut Thread<'_>, of: Self::Operation, locks: &mut Vec<LockId>);

    /// Performs an operation, under its locks.
    fn perform(&self, thread: &mut Thread<'_>, operation: Self::Operation);
}

/// The program of `thread`: its share of the requested transactions.
pub(super) fn program(
    mut run: impl Operations,
    request: &Request,
    thread: u32,
) -> Box<dyn Program> {
    let transactions = request.transactions_of(thread);
    let each = request.config.operations_per_transaction;
    let is_shared = request.config.sharing == Sharing::Shared;
    let (mut operations, mut locks) = (Vec::with_capacity(each as usize), Vec::new());
    spawn(move |thread| {
        for _ in 0..transactions {
            operations.clear();
            locks.clear();
            for _ in 0..each {
                let operation = run.draw(thread);
                operations.push(operation);
                if is_shared {
                    run.lock(thread, operation, &mut locks);
                }
            }
            locking::transaction(thread, &mut locks, |thread| {
                for &operation in &operations {
                    thread.compute(costs::OPERATION);
                    run.perform(thread, operation);
                }
            });
        }
    })
}
