//! Strategies of the property tests.

use super::{Codings, samples};
use proptest::prelude::*;

/// Words, most of them close to a pattern.
pub fn any_word() -> impl Strategy<Value = u64> {
    any::<(u64, u64, u8)>().prop_map(|(seed, shapes, shape)| samples::word(seed, shapes, shape))
}

/// A line, and a coding of its words that could have been chosen.
pub fn any_coded_line() -> impl Strategy<Value = ([u64; 8], Codings)> {
    any::<[samples::Choice; 8]>().prop_map(samples::coded_line)
}
