//! Observers of a simulation: between any two actions, or of the stores and acknowledgements of programs.

use std::any::Any;

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::Addr;
use graven_persistency::cut::Operation;

use super::run::Simulation;
use crate::controller::outside::Outside;

/// Looks on between any two actions of a simulation.
pub trait Observer {
    /// True if it looks on; if not, operations that no other part sees need not be told one by one.
    const LOOKS_ON: bool = true;

    /// An action is over; nothing that follows from it has happened yet.
    fn after_action(&mut self, simulation: &mut Simulation);

    /// Returns true if it has seen enough: the run stops at this point.
    fn stops(&self) -> bool {
        false
    }
}

/// Observer that does not look on.
pub struct NoObserver;

impl Observer for NoObserver {
    const LOOKS_ON: bool = false;

    #[inline]
    fn after_action(&mut self, _simulation: &mut Simulation) {}
}

/// Follows the transactions of a program: its stores and acknowledgements. It sees nothing of designs.
pub trait TransactionObserver: Any {
    /// A transaction begins.
    fn begin(&mut self, tx: Tx);

    /// A transaction stores `new` to a word that held `old`. `outside`: what the word might hold in PM until
    /// now, if it was stored to outside transactions since one stored to it.
    fn store(&mut self, tx: Tx, addr: Addr, old: u64, new: u64, outside: Option<Outside>);

    /// A thread stores `new` to a word that held `old`, outside transactions.
    fn store_outside(&mut self, thread: ThreadId, addr: Addr, old: u64, new: u64);

    /// Returns true if stores outside transactions promise nothing, so that what their words may hold has to be kept.
    fn forgives_outside(&self) -> bool {
        true
    }

    /// Returns true if it is told of loads.
    fn wants_loads(&self) -> bool {
        false
    }

    /// A thread has loaded a word of PM from the caches.
    fn load(&mut self, _thread: ThreadId, _addr: Addr, _value: u64) {}

    /// A thread's instruction for order has been executed.
    fn executed(&mut self, _thread: ThreadId, _operation: Operation) {}

    /// The design has taken a snapshot of what all threads have stored so far.
    fn snapshot(&mut self) {}

    /// A transaction's program stores to a word, and the design's code puts that off: it is told of
    /// again by [`TransactionObserver::defer`].
    fn put_off_store(&mut self, tx: Tx, addr: Addr);

    /// A transaction is about to end, and stores these words, by address, only when it may be
    /// durable already. Each has been told of by [`TransactionObserver::store`].
    fn defer(&mut self, tx: Tx, words: &[(Addr, u64)]);

    /// A transaction's end was reached: from now on it may be durable.
    fn ending(&mut self, tx: Tx);

    /// The design puts its end off: it has not taken effect, and will be reached anew.
    fn put_off(&mut self, tx: Tx);

    /// A transaction's commit was acknowledged: from now on it must be durable.
    fn acknowledged(&mut self, tx: Tx);
}
