//! The regions of persistent memory: where they lie in the trace, and what they hold.

use std::io::{self, Read};

use graven_base::memory::{Addr, Image, WORD_BYTES};
use graven_capture::place;

/// Regions begin at multiples of this.
const ALIGNMENT: u64 = 2 << 20;

/// The place and length of each region in the trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// First byte and length.
    regions: Vec<(u64, u64)>,
}

impl Layout {
    /// The layout of regions of these lengths, one behind the other.
    pub fn of(lengths: &[u64]) -> Layout {
        let mut next = ALIGNMENT;
        let place = |&length: &u64| {
            let start = next;
            next += length.max(1).next_multiple_of(ALIGNMENT);
            (start, length)
        };
        Layout { regions: lengths.iter().map(place).collect() }
    }

    /// The address of a position, if a region has `bytes` from it on.
    pub fn address(&self, position: u64, bytes: u64) -> Option<u64> {
        let (region, offset) = place(position);
        let &(start, length) = self.regions.get(usize::from(region))?;
        (offset + bytes <= length).then_some(start + offset)
    }

    /// The first byte of `bytes` from a position on that the region has, and the one behind the last, if it has some.
    pub fn clipped(&self, position: u64, bytes: u64) -> Option<(u64, u64)> {
        let (region, offset) = place(position);
        let &(start, length) = self.regions.get(usize::from(region))?;
        let end = offset.saturating_add(bytes).min(length);
        (offset < end).then_some((start + offset, start + end))
    }

    /// Region and offset of an address.
    pub fn place(&self, address: u64) -> (usize, u64) {
        let region = self.regions.partition_point(|&(start, _)| start <= address).saturating_sub(1);
        (region, address.saturating_sub(self.regions[region].0))
    }

    /// First byte and length of each.
    pub fn regions(&self) -> &[(u64, u64)] {
        &self.regions
    }
}

/// The words of `bytes` from an address on.
pub(super) fn words(address: u64, bytes: u64) -> impl Iterator<Item = Addr> {
    let first = address / WORD_BYTES;
    let last = (address + bytes - 1) / WORD_BYTES;
    (first..=last).map(|word| Addr(word * WORD_BYTES))
}

/// Stores bytes.
pub(super) fn store(image: &mut Image, address: u64, bytes: &[u8]) {
    for word in words(address, bytes.len() as u64) {
        let mut content = image.load(word).to_le_bytes();
        for (at, byte) in content.iter_mut().enumerate() {
            let of = (word.0 + at as u64).checked_sub(address).map(|of| of as usize);
            if let Some(&new) = of.and_then(|of| bytes.get(of)) {
                *byte = new;
            }
        }
        image.store(word, u64::from_le_bytes(content));
    }
}

/// Bytes that are read of a file at a time.
const PIECE: usize = 1 << 16;

/// Each word of a file that is not zero, with its offset; returns the file's length.
pub(super) fn each_word(mut file: impl Read, mut take: impl FnMut(u64, u64)) -> io::Result<u64> {
    let (mut piece, mut at) = (vec![0; PIECE], 0);
    loop {
        let mut filled = 0;
        while filled < PIECE {
            match file.read(&mut piece[filled..])? {
                0 => break,
                n => filled += n,
            }
        }
        piece[filled..].fill(0);
        for (word, bytes) in piece.as_chunks::<8>().0.iter().enumerate() {
            let value = u64::from_le_bytes(*bytes);
            if value != 0 {
                take(at + word as u64 * WORD_BYTES, value);
            }
        }
        at += filled as u64;
        if filled < PIECE {
            return Ok(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_are_stored_at_any_alignment(
            stores in prop::collection::vec((0u64..100, prop::collection::vec(any::<u8>(), 1..40)), 0..20),
        ) {
            let (mut image, mut bytes) = (Image::new(), vec![0u8; 200]);
            for (at, stored) in &stores {
                store(&mut image, 4096 + at, stored);
                bytes[*at as usize..][..stored.len()].copy_from_slice(stored);
            }
            let mut found = vec![0; 200];
            image.read_bytes(Addr(4096), &mut found);
            prop_assert_eq!(found, bytes);
        }

        #[test]
        fn words_of_a_file_are_its_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let mut image = Image::new();
            let length = each_word(&*bytes, |at, value| { image.store(Addr(at), value); });
            prop_assert_eq!(length.expect("no error"), bytes.len() as u64);
            let mut found = vec![0; bytes.len()];
            image.read_bytes(Addr(0), &mut found);
            prop_assert_eq!(found, bytes);
        }
    }

    #[test]
    fn regions_lie_one_behind_the_other() {
        let layout = Layout::of(&[4096, ALIGNMENT + 1, 0]);
        let position = |region, offset| graven_capture::position(region, offset);
        assert_eq!(layout.address(position(0, 4088), 8), Some(ALIGNMENT + 4088));
        assert_eq!(layout.address(position(0, 4089), 8), None);
        assert_eq!(layout.address(position(1, 0), 1), Some(2 * ALIGNMENT));
        assert_eq!(layout.address(position(3, 0), 1), None);
        assert_eq!(
            layout.clipped(position(0, 4000), u64::MAX),
            Some((ALIGNMENT + 4000, ALIGNMENT + 4096))
        );
        assert_eq!(layout.clipped(position(0, 4096), 1), None);
        assert_eq!(layout.place(2 * ALIGNMENT + 5), (1, 5));
        assert_eq!(layout.place(ALIGNMENT), (0, 0));
    }
}
