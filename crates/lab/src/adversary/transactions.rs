//! The places of the transactions of a drawn thread.

use std::ops::Range;

use crate::litmus::Step;

/// The transactions of a thread, each with the locks that it is under and what follows it.
pub fn transactions(steps: &[Step]) -> Vec<Range<usize>> {
    let mut starts = Vec::new();
    let (mut held, mut is_open, mut has_begun) = (0_u32, false, true);
    for (at, step) in steps.iter().enumerate() {
        let is_head = matches!(step, Step::Lock(_) | Step::Begin);
        if is_head && held == 0 && !is_open && has_begun {
            starts.push(at);
            has_begun = false;
        }
        match step {
            Step::Lock(_) => held += 1,
            Step::Unlock(_) => held -= 1,
            Step::Begin => (is_open, has_begun) = (true, true),
            Step::Commit => is_open = false,
            _ => {}
        }
    }
    let ends = starts.iter().skip(1).copied().chain([steps.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::parse;

    /// A step between the locks and the beginning of a transaction made two of it, one of them without its locks.
    #[test]
    fn transactions_keep_their_locks() {
        let thread = "thread\n  evict A\n  lock m\n  evict A\n  lock n\n  begin\n  A = 1\n  commit\n  unlock n\n  \
            begin\n  commit\n  unlock m\n  compute 3\n  begin\n  commit\n  load A\n";
        let text = format!("graven litmus 1\ntitle \"t\"\nA = 0\n{thread}");
        let litmus = parse(&text).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(transactions(&litmus.lives[0].threads[0]), [1..12, 12..15]);
        assert_eq!(transactions(&[]), []);
    }
}
