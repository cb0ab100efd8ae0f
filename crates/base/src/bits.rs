//! Sets of small numbers as the bits of a word.

/// The members of a set, in order: the places of its bits that are one.
#[inline]
pub fn ones(mut set: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let one = (set != 0).then(|| set.trailing_zeros())?;
        set &= set - 1;
        Some(one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn members_are_the_bits_that_are_one(set in prop_oneof![any::<u64>(), Just(0), Just(u64::MAX)]) {
            prop_assert!(ones(set).eq((0..u64::BITS).filter(|bit| set >> bit & 1 == 1)));
        }
    }
}
