//! The codings of a line's eight words, in ten bytes.

use super::slde::{self, Coding};
use crate::memory::{WORDS_PER_LINE, WordMask};

/// Codings of the words of a line; by default all by FPC.
///
/// This is what the encoding type flags and dirty flags of the log entries in a line say, kept beside the
/// line, so that no codec needs to know where the entries have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Codings {
    /// Dirty flags of the words that are coded by DLDC; 0 elsewhere.
    dirty: [u8; WORDS_PER_LINE],
    /// Words that are coded by DLDC.
    dldc: WordMask,
    /// Words of these that have no pattern.
    raw: WordMask,
}

impl Codings {
    /// All words by FPC.
    pub const FPC: Codings = Codings { dirty: [0; 8], dldc: 0, raw: 0 };

    /// Coding of word `index` (0..8).
    #[inline]
    pub const fn get(&self, index: usize) -> Coding {
        let dirty = self.dirty[index];
        match (self.dldc >> index & 1, self.raw >> index & 1) {
            (0, _) => Coding::Fpc,
            (_, 0) => Coding::Dldc { dirty },
            _ => Coding::DldcRaw { dirty },
        }
    }

    /// Says how word `index` (0..8) is coded.
    #[inline]
    pub const fn set(&mut self, index: usize, coding: Coding) {
        let flag = slde::redo_flag(coding);
        let (dldc, raw) = ((flag != 0) as u8, (flag == 2) as u8);
        self.dirty[index] = match coding {
            Coding::Fpc => 0,
            Coding::Dldc { dirty } | Coding::DldcRaw { dirty } => dirty,
        };
        self.dldc = self.dldc & !(1 << index) | dldc << index;
        self.raw = self.raw & !(1 << index) | raw << index;
    }

    /// Takes over the words of the mask from a newer write to the line.
    #[inline]
    pub fn overlay(&mut self, newer: &Codings, mask: WordMask) {
        for index in 0..WORDS_PER_LINE {
            if mask >> index & 1 == 1 {
                self.dirty[index] = newer.dirty[index];
            }
        }
        self.dldc = self.dldc & !mask | newer.dldc & mask;
        self.raw = self.raw & !mask | newer.raw & mask;
    }

    /// Dirty flag of a word that is coded by DLDC.
    #[inline]
    pub(super) const fn dirty(&self, index: usize) -> u8 {
        self.dirty[index]
    }

    /// Returns true if a word is coded by DLDC without a pattern.
    #[inline]
    pub(super) const fn is_raw(&self, index: usize) -> bool {
        self.raw >> index & 1 == 1
    }

    /// Words that are coded by DLDC.
    #[inline]
    pub const fn dldc(&self) -> WordMask {
        self.dldc
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::any_coded_line;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ten_bytes() {
        assert_eq!(size_of::<Codings>(), 10);
        assert!((0..8).all(|i| Codings::default().get(i) == Coding::Fpc));
    }

    proptest! {
        #[test]
        fn what_is_set_is_got(
            (_, mut codings) in any_coded_line(), index in 0usize..8, dirty: u8, way in 0..3,
        ) {
            let before = codings;
            let coding = [Coding::Fpc, Coding::Dldc { dirty }, Coding::DldcRaw { dirty }][way as usize];
            codings.set(index, coding);
            for i in 0..8 {
                prop_assert_eq!(codings.get(i), if i == index { coding } else { before.get(i) });
            }
            codings.set(index, before.get(index));
            prop_assert_eq!(codings, before);
        }

        #[test]
        fn an_overlay_takes_the_masked_words(
            (_, old) in any_coded_line(), (_, new) in any_coded_line(), mask: u8,
        ) {
            let mut both = old;
            both.overlay(&new, mask);
            for i in 0..8 {
                let expected = if mask >> i & 1 == 1 { new } else { old };
                prop_assert_eq!(both.get(i), expected.get(i));
            }
            prop_assert_eq!(both.dldc(), old.dldc() & !mask | new.dldc() & mask);
        }
    }
}
