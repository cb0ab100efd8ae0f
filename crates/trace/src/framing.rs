//! The common parts of binary traces: numbers, checksums, and payloads that are compressed if that makes them smaller.

/// Reads numbers one after the other, little endian, from bytes in memory.
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

/// Holds the checksum of a part against the one that the part says.
///
/// # Errors
/// They differ. `what` names the part, with its article.
pub fn check_sum(what: &str, said: u32, found: u32) -> Result<(), Unexpected> {
    if found == said {
        return Ok(());
    }
    let expected = format!("{what} with the checksum {said:08x}");
    Err(Unexpected { expected, found: format!("{found:08x}") })
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

/// Something else than was expected.
#[derive(Debug, PartialEq, Eq)]
pub struct Unexpected {
    /// The expected bytes.
    pub expected: String,
    /// The bytes that were found.
    pub found: String,
}

/// Fills `raw` with the payload that was stored.
///
/// # Errors
/// It is no LZ4 block, or not one of as many bytes.
pub fn unpack(stored: &[u8], raw: &mut [u8]) -> Result<(), Unexpected> {
    if stored.len() == raw.len() {
        raw.copy_from_slice(stored);
        return Ok(());
    }
    match lz4_flex::block::decompress_into(stored, raw) {
        Ok(bytes) if bytes == raw.len() => Ok(()),
        Ok(bytes) => {
            let expected = format!("{} bytes", raw.len());
            Err(Unexpected { expected, found: format!("{bytes}") })
        }
        Err(error) => Err(Unexpected { expected: "an LZ4 block".into(), found: error.to_string() }),
    }
}
