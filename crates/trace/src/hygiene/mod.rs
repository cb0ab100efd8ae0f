//! Hygiene: every line of a captured program that is careless about persistence, without any crash.
//!
//! The history of a trace ([`crate::program::Happening`]) is followed once, store by store. Of each word of persistent memory is known
//! whether its last store is durable, and how far it is from that; of each thread, what its next fence completes. What is left at the
//! end, and what a flush, fence or call had nothing to do for, are findings: one for each class and source line, with counts.
//!
//! | file | what |
//! |---|---|
//! | `classes` | classes of findings: names, severity, and what mends each |
//! | `memory` | words of persistent memory: stored, written back, durable |
//! | `places` | source lines that are blamed, and the calls that led there |
//! | `judge` | the history, followed |
//! | `findings` | findings by class and line |
//!
//! *Rules.* A store becomes durable by a flush of its line and a fence of the flushing thread behind it (x86-64: sfence, mfence, a
//! locked instruction; AArch64: DSB of loads and stores, or of stores), by clflush alone, or by a call that synchronises its page
//! and succeeds; a non-temporal store by a fence of its thread. A word whose value is what was durable before lacks nothing. The
//! trace gives one interleaving: what other ones would leave is for an explorer of crashes, not for hygiene.
//!
//! *What is not judged.* Words that only the C library stores to (its allocator's, its buffers); words that an atomic instruction
//! accesses and no flush ever covers, which are locks and counters; memory as the trace begins, which counts as durable.

mod classes;
mod findings;
mod judge;
mod memory;
mod places;

pub use classes::{Class, Severity};
pub use findings::{Caller, Finding, Partner};
pub use judge::{Hygiene, Totals, judge};
pub use places::{Blamed, Deed, Frame, Places};
