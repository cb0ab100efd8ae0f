//! An independent machine that executes small programs in every way: the check of the models.
//!
//! Nothing here uses the rules of the models ([`crate::rules`], [`crate::ranges`]); it is written from the publications as a
//! machine, where those are predicates. It shares the program, the outcome, the name of the platform, and the way through many
//! programs (`prefixes`), which knows no rule.
//!
//! | module | content |
//! |---|---|
//! | `memory` | the coherent caches, a persist queue for each line, the medium |
//! | `x86` | threads with store buffers that entries leave with the published reorderings |
//! | `arm` | threads whose instructions are executed out of order |
//!
//! Flushes are asynchronous here, as in Px86: a write-back puts a marker into its line's queue and a fence waits until the queues
//! have no marker of its thread. Models have synchronous flushes, which give the same images (Khyzha and Lahav, POPL 2021).

pub(crate) mod arm;
mod memory;
pub(crate) mod x86;

use std::hash::Hash;

use rustc_hash::FxHashSet;

use self::memory::Long;
use crate::model::Model;
use crate::prefixes::STEPS;
use crate::program::{
    LINES_MAX, Op, Outcome, Program, STORES_MAX, THREADS_MAX, TooLarge, Value, WORDS_MAX,
};

/// Returns everything that a power failure at any instant may leave of a program.
///
/// # Errors
/// A program that is too large.
pub fn enumerate(model: &Model, program: &Program) -> Result<FxHashSet<Outcome>, TooLarge> {
    program.check()?;
    let is_small = program.lines.len() <= 4
        && program.lines.iter().all(|&line| line < 2)
        && program.threads.len() <= 2
        && program.threads.iter().all(|ops| ops.len() <= 4)
        && program.threads.iter().flatten().all(is_small_step)
        && program.initial.iter().all(|&value| value < 32);
    // Smaller states are faster to compare: most of a campaign's time.
    Ok(match (model.is_arm(), is_small) {
        (false, true) => x86::enumerate::<u64, u64, 4, 2, 2>(model, program),
        (true, true) => arm::enumerate::<u64, 4, 2, 2>(model, program),
        (false, false) => {
            x86::enumerate::<Long<40>, x86::Long<STORES_MAX>, WORDS_MAX, LINES_MAX, THREADS_MAX>(
                model, program,
            )
        }
        (true, false) => {
            arm::enumerate::<Long<40>, WORDS_MAX, LINES_MAX, THREADS_MAX>(model, program)
        }
    })
}

/// Tells if an instruction stores to one word at most, and no large value.
fn is_small_step(op: &Op) -> bool {
    !matches!(op.action(), Op::Store { words, value, .. }
        if words.len() > 1 || matches!(value, Value::Constant(32..)))
}

/// A program of two threads on these lines whose steps are still to be replaced.
fn nothing_yet(lines: &[u8]) -> Program {
    Program {
        lines: lines.to_vec(),
        initial: vec![0; lines.len()],
        threads: vec![vec![Op::Told; STEPS]; 2],
    }
}

/// Visits all states that steps reach, each once.
fn reach<S: Copy + Eq + Hash>(start: S, mut visit: impl FnMut(&S, &mut Vec<S>)) {
    let mut seen = FxHashSet::default();
    let mut open = vec![start];
    let mut next = Vec::new();
    seen.insert(start);
    while let Some(state) = open.pop() {
        visit(&state, &mut next);
        for state in next.drain(..) {
            if seen.insert(state) {
                open.push(state);
            }
        }
    }
}
