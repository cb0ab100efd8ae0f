//! Litmus programs for persistency models: can this image be what recovery finds?
//!
//! A program has a few threads of processor instructions, and names images that a model allows or forbids. Its text
//! has the form of litmus programs for designs ([`crate::litmus`]), with instructions in place of transactions.
//!
//! ```text
//! graven litmus 1
//! title "a write-back without a fence orders nothing"
//! model x86-adr x86-adr-amd x86-eadr
//! source "Px86 (Raad et al., POPL 2020)"
//! status read
//!
//! x = 0
//! y = 0               # in a line of its own
//!
//! thread
//!   x = 1
//!   clwb x
//!   y = 1
//!
//! allows x86-adr x86-adr-amd: y = 1, x = 0
//! forbids x86-eadr: y = 1, x = 0
//! ```
//!
//! # The format
//!
//! | statement | meaning |
//! |---|---|
//! | `title "TEXT"` | must be there |
//! | `model NAME …` | must be there: the models that the program is for, of one processor architecture |
//! | `source "TEXT"` | the publication, or the rule from which the outcomes follow |
//! | `status STATUS` | `read` in a public source, `computed` from published rules, `reasoned` from a rule, `open` where sources differ or say nothing |
//! | `note "TEXT"` | differences of vendors or papers |
//! | `x = VALUE [with y]` | a word, before the first thread; in a line of its own, or the next of `y`'s line, or of a new one when that is full |
//! | `W[COUNT] = VALUE [with y]` | consecutive words |
//! | `thread` | begins a thread: its steps follow |
//! | `allows [MODEL …]: IMAGE` | some execution leaves the image, under these models, or all of the program |
//! | `forbids [MODEL …]: IMAGE` | no execution does |
//!
//! An `IMAGE` is a list of `WORD = VALUE` with commas between them; other words may hold anything. With `REGISTER = VALUE` it is
//! asked whether the image may be left by an execution whose loads gave that, with `done` whether it may be left after all
//! instructions have been executed.
//!
//! | step | instruction |
//! |---|---|
//! | `x = VALUE`, `x = REGISTER` | a store |
//! | `W = VALUE` of an array | one instruction that stores to all its words: a vector, a `rep` store, or one over the edge of two words |
//! | `movnt x = VALUE` | a non-temporal store |
//! | `xchg x = VALUE` | a locked instruction |
//! | `load x [as REGISTER]` | a load |
//! | `await x = VALUE` | a load that is repeated until it gives the value |
//! | `clwb x`, `clflushopt x`, `clflush x` | flushes of the line of `x` |
//! | `sfence`, `mfence` | fences of x86 |
//! | `stlr x = VALUE`, `ldar x [as REGISTER]` | a store-release, a load-acquire |
//! | `dc-cvac x`, `dc-cvap x`, `dc-cvadp x` | cleans of the line of `x` |
//! | `dmb`, `dmb-st`, `dmb-ld`, `dsb` | barriers of Arm |
//! | `lock NAME`, `unlock NAME` | a lock whose word is not persistent |
//! | `told` | a system call that sends something out |
//! | `if REGISTER = VALUE: STEP` | the step is done if an earlier load gave the value |
//!
//! Values are numbers up to 254.
//!
//! | file | content |
//! |---|---|
//! | `mod` | a program as data |
//! | `parse` | from text |
//! | `steps` | instructions from text |
//! | `run` | a program under its models |

mod parse;
mod run;
mod steps;
#[cfg(test)]
mod tests;

use graven_persistency::model::Model;
use graven_persistency::program::Program;

pub use crate::litmus::tokens::ParseError;
pub use parse::{is_for_models, parse};
pub use run::{Answer, answers};

/// A litmus program for persistency models.
#[derive(Clone, Debug)]
pub struct ModelLitmus {
    /// The subject.
    pub title: String,
    /// The models, at least one, of one architecture.
    pub models: Vec<&'static Model>,
    /// The publication, or the rule from which the outcomes follow.
    pub source: Option<String>,
    /// The status of the outcomes.
    pub status: Option<Status>,
    /// Differences of vendors or papers.
    pub note: Option<String>,
    /// The threads.
    pub program: Program,
    /// The steps of each thread, as the text has them.
    pub steps: Vec<Vec<String>>,
    /// The words by number, as the text names them.
    pub words: Vec<String>,
    /// The outcomes, in order.
    pub claims: Vec<Claim>,
}

/// The status of a program's outcomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Read in a public source.
    Read,
    /// Computed from published rules.
    Computed,
    /// Reasoned from a rule.
    Reasoned,
    /// Sources differ, or say nothing.
    Open,
}

impl Status {
    /// All, with their names.
    pub const ALL: [(&str, Status); 4] = [
        ("read", Status::Read),
        ("computed", Status::Computed),
        ("reasoned", Status::Reasoned),
        ("open", Status::Open),
    ];
}

/// An image that a program says some models allow, or forbid.
#[derive(Clone, Debug)]
pub struct Claim {
    /// True if some execution leaves it.
    pub is_allowed: bool,
    /// The models, at least one.
    pub models: Vec<&'static Model>,
    /// The image.
    pub image: Asked,
}

/// An image that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The image as the program has it, with one space where it has several.
    pub text: String,
    /// Words, by number, and their values.
    pub words: Vec<(u8, u8)>,
    /// Registers, by number, and their values.
    pub registers: Vec<(u8, u8)>,
    /// True if all instructions have been executed.
    pub is_done: bool,
}
