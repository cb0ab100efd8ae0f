//! Threads as a set of bits: as many as the machine can have (64 cores of two).

/// A set of threads; bit `i` is thread `i`.
pub type ThreadSet = u128;

/// Members of a set, in order.
pub fn threads_in(mut set: ThreadSet) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let thread = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(thread)
    })
}
