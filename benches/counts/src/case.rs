//! Benchmarks, and the part of each that is counted.

use std::hint::black_box;

/// A benchmark: it prepares something, and has a part of what it does counted.
pub struct Case {
    /// Name, in parts with slashes between them.
    pub name: String,
    /// Unit of the counted part, in the singular: `transaction`, `request`, `byte`.
    pub unit: &'static str,
    /// Prepares, executes the counted part once, and returns its number of units.
    pub run: Box<dyn Fn() -> u64>,
}

impl Case {
    /// A benchmark; `run` calls [`counted`] once, and returns how many units that was.
    pub fn new(
        name: impl Into<String>,
        unit: &'static str,
        run: impl Fn() -> u64 + 'static,
    ) -> Case {
        Case { name: name.into(), unit, run: Box::new(run) }
    }
}

/// Executes the part of a benchmark that is counted.
pub fn counted<T>(part: impl FnOnce() -> T) -> T {
    let (mut part, mut result) = (Some(part), None);
    the_counted_part(&mut || result = part.take().map(|part| part()));
    result.expect("it was executed")
}

/// Callgrind counts while this function is executed, and knows it by its name (`tests/counts/callgrind.py`). It is no closure
/// and not generic, so that no other name has this one in it.
#[inline(never)]
fn the_counted_part(part: &mut dyn FnMut()) {
    part();
    // The call is not the function's last instruction, so that it is a call and not a jump.
    black_box(1);
}
