//! What binary traces have in common: numbers, checksums, and payloads that are compressed if that makes them smaller.

/// Reads numbers one after the other, little endian, from bytes that are there.
pub struct Numbers<'a>(pub &'a [u8]);

impl Numbers<'_> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("the caller has measured");
        self.0 = rest;
        *first
    }

    /// A number of 4 bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    /// A number of 8 bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}

/// CRC-32 (that of gzip and PNG) of parts one after the other.
pub fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.iter().for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// Bytes that were found, for a message.
pub fn shown(bytes: &[u8]) -> String {
    let text: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!("the bytes {text}")
}

/// A payload as it is stored: one LZ4 block, whose bytes are in `room`, or as it is if that is not smaller.
pub fn packed<'a>(raw: &'a [u8], room: &'a mut Vec<u8>) -> &'a [u8] {
    room.resize(lz4_flex::block::get_maximum_output_size(raw.len()), 0);
    let compressed =
        lz4_flex::block::compress_into(raw, room).expect("the output has room for the worst case");
    if compressed < raw.len() { &room[..compressed] } else { raw }
}

/// What should have been found in a payload, and what was.
#[derive(Debug, PartialEq, Eq)]
pub struct Unpackable {
    /// What should be there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// Fills `raw` with the payload that was stored.
///
/// # Errors
/// It is no LZ4 block, or not one of as many bytes.
pub fn unpack(stored: &[u8], raw: &mut [u8]) -> Result<(), Unpackable> {
    if stored.len() == raw.len() {
        raw.copy_from_slice(stored);
        return Ok(());
    }
    match lz4_flex::block::decompress_into(stored, raw) {
        Ok(bytes) if bytes == raw.len() => Ok(()),
        Ok(bytes) => {
            let expected = format!("{} bytes", raw.len());
            Err(Unpackable { expected, found: format!("{bytes}") })
        }
        Err(error) => Err(Unpackable { expected: "an LZ4 block".into(), found: error.to_string() }),
    }
}

/// Writes a number in LEB128.
#[inline]
pub fn leb128(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what [`leb128`] wrote; `None` if it does not end, or is no number of 64 bits.
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

/// A signed number as an unsigned one that is small where it is near zero.
#[inline]
pub fn zigzag(n: i64) -> u64 {
    ((n << 1) ^ (n >> 63)) as u64
}

/// The reverse of [`zigzag`].
#[inline]
pub fn unzigzag(n: u64) -> i64 {
    (n >> 1) as i64 ^ -((n & 1) as i64)
}
