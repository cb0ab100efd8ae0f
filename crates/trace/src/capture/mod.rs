//! Captured programs: the streams that the plugin has written while a program ran, made a program trace.
//!
//! | module | what |
//! |---|---|
//! | `roles` | what the functions that were followed are for: transactions, locks, the region of interest |
//! | `acts` | what the events of one thread mean: transactions and locks as the program has them |
//! | `survey` | a first look at all streams: who is traced, where the trace begins and ends |
//! | `lock_order` | locks that are acquired in orders that contradict each other: they are one lock in the trace |
//! | `merge` | the records of all threads in one order |
//! | `memory` | the regions of persistent memory: where they lie in the trace, what they hold, what is wrong with that |
//! | `origins` | which load of the trace a recorded load is |
//! | `assembly` | from records to operations: transactions and locks as the trace has them |
//! | `history`, `lines` | what threads do for persistence, and where in the source their instructions are |
//! | `races` | accesses of several threads that nothing orders |
//! | `clocks` | what has happened before what |
//! | `report` | what was captured, what was left out, and what the capture cannot explain |
//!
//! The order of records is exact: one thread of the program executes at a time, and an event ends its turn; events of all
//! threads are numbered, and what a thread has done before an event comes before all that others do after it. Whether the
//! program's synchronisation has brought about that order is another question, which `races` answers.
//!
//! *A capture proves itself*, twice. The stores, over the bytes that were there when each region was first mapped, must give
//! the bytes that are there at the end. That does not prove their order; so every load must have found what is there at its
//! place in the order. What does not is counted and located.

mod acts;
mod assembly;
mod clocks;
mod history;
mod imports;
mod lines;
mod lock_order;
mod memory;
mod merge;
mod origins;
mod races;
mod report;
mod roles;
mod survey;

pub use assembly::{Capture, CaptureError, Sources};
pub use lines::Module;
pub use report::{Accessor, Mismatch, Race, Region, Report};
pub use roles::{Function, Role, Rules};
pub use survey::Limits;
