//! The populated words of PM, in blocks.
//!
//! | bytes of the payload | what |
//! |---|---|
//! | 4 | length of the runs |
//! | … | for each run of words that follow each other: how many words it begins behind the end of the one before (behind address 0 in the first), and how many it has; both in LEB128 |
//! | 8 each | the words |

use super::layout::BLOCK_WORDS;
use graven_base::memory::{Addr, WORD_BYTES};
use graven_capture::numbers::{leb128, read_leb128};

/// Most bytes of a block: each word a run of its own.
pub(super) const RAW_BYTES_MAX: u32 = 4 + BLOCK_WORDS as u32 * (10 + 1 + 8);

/// Collects populated words, in the order of their addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    runs: Vec<u8>,
    values: Vec<u8>,
    count: usize,
    /// The run that grows: words before it, its words.
    gap: u64,
    length: u64,
    /// The word behind it.
    next: u64,
}

impl Words {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn push(&mut self, addr: Addr, value: u64) {
        let word = addr.0 / WORD_BYTES;
        if word != self.next || self.length == 0 {
            self.close();
            self.gap = word - self.next;
            self.next = word;
        }
        self.length += 1;
        self.next += 1;
        self.count += 1;
        self.values.extend(value.to_le_bytes());
    }

    fn close(&mut self) {
        if self.length > 0 {
            leb128(self.gap, |byte| self.runs.push(byte));
            leb128(self.length, |byte| self.runs.push(byte));
            self.length = 0;
        }
    }

    /// The payload, after what `out` holds; then begins anew.
    pub fn write(&mut self, out: &mut Vec<u8>) {
        self.close();
        out.extend((self.runs.len() as u32).to_le_bytes());
        out.extend(&self.runs);
        out.extend(&self.values);
        *self = Words::default();
    }
}

/// Hands out the words of a payload; what is wrong with it, if anything.
pub(super) fn read(
    payload: &[u8],
    count: u32,
    mut word_at: impl FnMut(Addr, u64),
) -> Result<(), &'static str> {
    let (length, rest) = payload.split_first_chunk().ok_or("the length of the runs")?;
    let length = u32::from_le_bytes(*length) as usize;
    let (mut runs, values) = rest.split_at_checked(length).ok_or("runs inside the block")?;
    let (values, []) = values.as_chunks::<8>() else { return Err("words of 8 bytes") };
    if values.len() != count as usize {
        return Err("as many words as the head says");
    }
    let mut values = values.iter();
    let mut word = 0u64;
    while !runs.is_empty() {
        let gap = read_leb128(&mut runs).ok_or("a distance in LEB128")?;
        let length = read_leb128(&mut runs).ok_or("a length in LEB128")?;
        word = word.checked_add(gap).ok_or("an address of 64 bits")?;
        for _ in 0..length {
            let value = values.next().ok_or("as many words as the runs say")?;
            let addr = word.checked_mul(WORD_BYTES).ok_or("an address of 64 bits")?;
            word_at(Addr(addr), u64::from_le_bytes(*value));
            word += 1;
        }
    }
    if values.next().is_some() { Err("as many words as the runs say") } else { Ok(()) }
}
