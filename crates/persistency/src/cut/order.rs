//! The promises as data, and the events that their judge is told of.

use std::fmt;

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::Addr;

/// A promise of order.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    /// The name in tables and messages.
    pub name: &'static str,
    /// The promise in a sentence.
    pub summary: &'static str,
    /// Publications.
    pub source: &'static str,
    /// The order of one thread's accesses.
    pub within: Within,
    /// The order of accesses of several threads.
    pub across: Across,
    /// From when on stores must be durable.
    pub durable: Durable,
    /// The unit that survives as a whole or not at all.
    pub wholes: Wholes,
}

impl Order {
    /// Returns true if loads put stores in order, so that the judge must be told of them.
    pub fn wants_loads(&self) -> bool {
        self.across != Across::Stores
    }
}

/// The order of one thread's accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// Nothing.
    Nothing,
    /// The program: a store comes after all stores and loads before it. A load comes after the loads before it only, since it
    /// may overtake stores (x86-TSO).
    Program,
    /// Ordering fences: an access comes after all accesses before the thread's last one.
    Epochs,
    /// Ordering fences, within strands.
    Strands,
}

/// The order of accesses of several threads, beside stores to one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Across {
    /// Nothing.
    Stores,
    /// A load comes after the store that it reads.
    Reads,
    /// So does a load, and a store after the loads of the word's earlier values: all conflicts.
    Conflicts,
}

/// From when on stores must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// As soon as they are visible.
    WhenVisible,
    /// When a durability fence of their thread has been executed, with all that comes before them. What the thread has only read
    /// need not be.
    AtFences,
    /// When their transaction's commit is acknowledged, with all that comes before it.
    WhenAcknowledged,
    /// When as many snapshots follow the one that has them.
    SnapshotsLater(u64),
}

/// The unit that survives as a whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wholes {
    /// Stores of a word.
    Stores,
    /// Transactions; before their ends they leave no trace. Stores outside are in the order of their word's only.
    Transactions,
    /// All that was stored between two snapshots of all threads; after the last one, nothing.
    Snapshots,
}

/// An operation by which a program orders its stores or has them durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Divides epochs (`ofence`, a persist barrier).
    OrderingFence,
    /// The thread proceeds when its stores are durable (`dfence`).
    DurabilityFence,
    /// A strand begins: what follows is not ordered after what was before, up to the last join.
    NewStrand,
    /// The strands end: what follows comes after all of them.
    JoinStrands,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::OrderingFence => "ofence",
            Operation::DurabilityFence => "dfence",
            Operation::NewStrand => "strand",
            Operation::JoinStrands => "join",
        })
    }
}

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A store is visible.
    Store {
        /// The thread.
        thread: ThreadId,
        /// The address of the word.
        addr: Addr,
        /// The word before.
        old: u64,
        /// The word afterwards.
        new: u64,
    },
    /// A load has read a word.
    Load {
        /// The thread.
        thread: ThreadId,
        /// The address of the word.
        addr: Addr,
        /// The value.
        value: u64,
    },
    /// An operation has been executed.
    Executed {
        /// The thread.
        thread: ThreadId,
        /// The operation.
        operation: Operation,
    },
    /// A transaction begins.
    Begin(Tx),
    /// A transaction has reached its end, and may be there.
    Ending(Tx),
    /// The end did not take effect, and will be reached anew.
    PutOff(Tx),
    /// The commit is acknowledged.
    Acknowledged(Tx),
    /// A snapshot: all that all threads have stored so far.
    Snapshot,
}

/// Strict persistency.
pub const STRICT: Order = Order {
    name: "strict",
    summary: "a store is durable when it is visible",
    source: "Pelley, Chen, Wenisch, ISCA 2014 (strict persistency); the caches are in the durability domain",
    within: Within::Program,
    across: Across::Conflicts,
    durable: Durable::WhenVisible,
    wholes: Wholes::Stores,
};

/// Epoch persistency, buffered.
pub const EPOCH: Order = Order {
    name: "epoch",
    summary: "ordering fences divide a thread into epochs, and conflicting accesses order threads; stores survive with all that comes before them",
    source: "Pelley, Chen, Wenisch, ISCA 2014 (epoch persistency); Condit et al., SOSP 2009 (BPFS)",
    within: Within::Epochs,
    across: Across::Conflicts,
    durable: Durable::AtFences,
    wholes: Wholes::Stores,
};

/// Epoch persistency where only reading or overwriting a store that is not durable orders threads.
pub const EPOCH_DEPENDENCE: Order = Order {
    name: "epoch-dependence",
    summary: "epoch, but overwriting what another thread has only read orders nothing",
    source: "Nalli et al., ASPLOS 2017 (HOPS): dependences on stores in another thread's persist buffer",
    across: Across::Reads,
    ..EPOCH
};

/// Transactions whose commits are ordered, and not awaited.
pub const TRANSACTIONS_BUFFERED: Order = Order {
    name: "transactions-buffered",
    summary: "whole transactions, each with those before it in its thread and those whose words it read or overwrote",
    source: "the same, where an acknowledgement promises order only, as HOPS has it with an ordering fence in place of the last durability fence",
    within: Within::Program,
    across: Across::Reads,
    durable: Durable::AtFences,
    wholes: Wholes::Transactions,
};

/// The promises of the tree.
pub static ORDERS: [Order; 8] = [
    STRICT,
    Order {
        name: "buffered-strict",
        summary: "stores are durable in the order in which they are visible, later",
        source: "Pelley, Chen, Wenisch, ISCA 2014 (strict persistency, buffered)",
        durable: Durable::AtFences,
        ..STRICT
    },
    EPOCH,
    EPOCH_DEPENDENCE,
    Order {
        name: "strand",
        summary: "ordering fences divide a strand into epochs; strands of a thread are in no order until they are joined",
        source: "Pelley, Chen, Wenisch, ISCA 2014 (strand persistency); Gogte et al., ISCA 2020 (StrandWeaver: JoinStrand)",
        within: Within::Strands,
        ..EPOCH
    },
    Order {
        name: "transactions",
        summary: "whole transactions, each with those whose words it read or overwrote; acknowledged ones survive",
        source: "isolation and durability of transactions whose commits are in no one order",
        within: Within::Nothing,
        across: Across::Reads,
        durable: Durable::WhenAcknowledged,
        wholes: Wholes::Transactions,
    },
    TRANSACTIONS_BUFFERED,
    Order {
        name: "snapshots",
        summary: "all that was stored before a snapshot, and nothing else; not more than two snapshots are lost",
        source: "Nguyen, Wentzlaff, MICRO 2018 (PiCL: epochs of the whole system, several of them under way)",
        within: Within::Nothing,
        across: Across::Stores,
        durable: Durable::SnapshotsLater(2),
        wholes: Wholes::Snapshots,
    },
];

/// The promise of a name.
pub fn named(name: &str) -> Option<&'static Order> {
    ORDERS.iter().find(|order| order.name == name)
}
