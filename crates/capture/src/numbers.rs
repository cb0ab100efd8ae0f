//! Numbers of any length in bytes: LEB128, and zigzag for signed ones.

/// Appends a number in LEB128, byte by byte, with `put`.
#[inline]
pub fn leb128(mut number: u64, mut put: impl FnMut(u8)) {
    while number >= 0x80 {
        put(number as u8 | 0x80);
        number >>= 7;
    }
    put(number as u8);
}

/// Reads what [`leb128`] wrote, and takes it from `bytes`; `None` if it does not end, or is no number of 64 bits.
#[inline]
pub fn read_leb128(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Returns a signed number as an unsigned one that is small where the number is near zero.
#[inline]
#[must_use]
pub fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// Returns the number of which [`zigzag`] made this one.
#[inline]
#[must_use]
pub fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}
