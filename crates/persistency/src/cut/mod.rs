//! Promises of order: a power failure leaves a cut of what a program stored.
//!
//! Much hardware makes no store durable when it is performed, and promises an order instead: what is durable of the stores is
//! closed under it. An [`Order`] has such a promise as data: what puts the accesses of a thread in order, what those of several
//! threads, what survives as a whole, and from when on it must. [`Cuts`] is its judge: it is told of [`Event`]s in the order
//! in which stores become visible, and decides at any instant whether an image may be what a power failure leaves.
//!
//! | order | what survives |
//! |---|---|
//! | `strict` | every store that was visible |
//! | `buffered-strict` | the first stores in the order in which they were visible, with conflicts between threads |
//! | `epoch` | a cut of epochs: an ordering fence divides a thread, conflicting accesses order threads |
//! | `epoch-dependence` | the same, where reading or overwriting another thread's store orders, and overwriting what was read does not |
//! | `strand` | the same within strands, which a thread begins and joins |
//! | `transactions` | whole transactions, each with those whose words it read or overwrote; acknowledged ones survive |
//! | `transactions-buffered` | the same, and acknowledged ones may be missing |
//! | `snapshots` | all that was stored before a snapshot, and nothing else |
//!
//! Stores to one word are always in order, and the atomic unit is the aligned word of 8 bytes.
//!
//! # How an image is judged
//!
//! Every word is in one of its versions. From the oldest that has the value found, the judge raises words as the order demands: a
//! store that is there brings those before it. All demands are of the form "if this word has at least that version, then that word
//! has at least this one", so that the lowest versions which meet them are found by raising alone, and no image is refused that has
//! a cut. This takes time linear in the stores that need not be durable yet. `tests` compares it with the definition: all sets
//! of stores that are closed under the transitive closure of the order.

mod judge;
mod order;
#[cfg(test)]
mod tests;

pub use judge::Cuts;
pub use order::{
    Across, Durable, EPOCH, EPOCH_DEPENDENCE, Event, ORDERS, Operation, Order, STRICT,
    TRANSACTIONS_BUFFERED, Wholes, Within, named,
};
