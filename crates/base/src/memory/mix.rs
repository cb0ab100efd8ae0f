//! Numbers made of numbers that look alike: for digests, seeds, hashes and content.

/// Mixes the bits of a number (the finalizer of SplitMix64).
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Spreads a seed and a number over all numbers.
#[inline]
pub fn spread(seed: u64, number: u64) -> u64 {
    mix(seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
