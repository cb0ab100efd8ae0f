//! Strategies of the property tests.

use graven_base::codecs::{Codings, samples};
use proptest::prelude::*;

/// A line, and a coding of its words that could have been chosen.
pub fn any_coded_line() -> impl Strategy<Value = ([u64; 8], Codings)> {
    any::<[samples::Choice; 8]>().prop_map(samples::coded_line)
}
