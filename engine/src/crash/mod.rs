//! Power failures: what survives, recovery from it, and whether the promise held.
//!
//! The judge ([`Oracle`]) knows only what the program was told. Nothing in it depends on a design.

mod medium;
mod oracle;

pub use medium::Medium;
pub use oracle::{Oracle, Verdict};
