//! Selective log data encoding (SLDE): which compressor for which word (MorLog §IV-B, Fig. 10).
//!
//! FPC and DLDC run side by side; DLDC's output is used only for log data and only if it is smaller. The
//! undo and the redo word of one entry are never both coded by DLDC: one of them must keep its clean
//! bytes, or a word could not be reconstructed from the log. An *encoding type flag* in the entry says how
//! its words are coded.
//!
//! Decided here, where the paper is silent:
//! - The size that counts for DLDC includes the dirty flag, which has to be stored with the entry ("due to
//!   the extra dirty flags, DLDC may increase the size", §IV-B; the flag is in the entry in Fig. 11).
//! - Size decides, as §IV-B has it, and not write cost (§I).
//! - Of the two words of an entry, the one whose DLDC code makes the total smaller is coded so; if they
//!   are equal, the redo word (as in Fig. 11).
//! - The values of the flag: 0 FPC, 1 DLDC, 2 DLDC without a pattern for a redo entry; for an undo+redo
//!   entry this is the flag of the redo word, and 3 and 4 are 1 and 2 for the undo word.

use super::bytes;
use super::{dldc, fpc};
use std::hint::select_unpredictable;

/// Bits of a word's dirty flag, one for each byte (§IV-A, §VI-A).
pub const DIRTY_FLAG_BITS: u32 = 8;
/// Bits of the encoding type flag of an undo+redo entry (§IV-B).
pub const PAIR_FLAG_BITS: u32 = 3;
/// Bits of the encoding type flag of a redo entry (§IV-B).
pub const REDO_FLAG_BITS: u32 = 2;

/// Coding of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// By FPC: all of it.
    #[default]
    Fpc,
    /// By a DLDC pattern: its dirty bytes.
    Dldc {
        /// Dirty bytes.
        dirty: u8,
    },
    /// By DLDC without a pattern: its dirty bytes as they are.
    DldcRaw {
        /// Dirty bytes.
        dirty: u8,
    },
}

impl Coding {
    /// Returns true if clean bytes are dropped.
    #[inline]
    pub const fn is_dldc(self) -> bool {
        !matches!(self, Coding::Fpc)
    }

    /// Size of a word's code, without the dirty flag.
    #[inline]
    pub fn coded_bits(self, word: u64) -> u32 {
        match self {
            Coding::Fpc => fpc::coded_bits(word),
            Coding::Dldc { dirty } => dldc::measure(word, dirty).1,
            Coding::DldcRaw { dirty } => 8 * bytes::count(dirty),
        }
    }
}

/// DLDC's coding of a word, as a redo entry's flag, and its size with the dirty flag.
#[inline]
fn by_dldc(word: u64, dirty: u8) -> (u8, u32) {
    let (raw, bits) = dldc::size(word, dirty);
    (1 + u8::from(raw), bits + DIRTY_FLAG_BITS)
}

/// The coding of a redo entry's flag. Choices are made on flags, by arithmetic: a branch on what cannot be
/// predicted costs more than both ways.
#[inline]
const fn coding(flag: u8, dirty: u8) -> Coding {
    match flag {
        0 => Coding::Fpc,
        1 => Coding::Dldc { dirty },
        _ => Coding::DldcRaw { dirty },
    }
}

/// The coding of the word of a redo entry, and its size (with the dirty flag, if that is stored).
///
/// Words without dirty bytes are not logged (silent log writes, §IV-A); if one comes, it is coded by FPC.
#[inline]
pub fn choose(word: u64, dirty: u8) -> (Coding, u32) {
    let whole = fpc::coded_bits(word);
    let (flag, bits) = by_dldc(word, dirty);
    let gains = (dirty != 0) & (bits < whole);
    (coding(flag * u8::from(gains), dirty), select_unpredictable(gains, bits, whole))
}

/// The codings of the undo and redo words of one entry.
#[inline]
pub fn choose_pair(undo: u64, redo: u64, dirty: u8) -> (Coding, Coding) {
    let (undo_whole, redo_whole) = (fpc::coded_bits(undo), fpc::coded_bits(redo));
    let (undo_flag, undo_bits) = by_dldc(undo, dirty);
    let (redo_flag, redo_bits) = by_dldc(redo, dirty);
    let (with_undo, with_redo) = (undo_bits + redo_whole, undo_whole + redo_bits);
    let gains = (dirty != 0) & (with_undo.min(with_redo) < undo_whole + redo_whole);
    let by_redo = with_redo <= with_undo;
    (
        coding(undo_flag * u8::from(gains & !by_redo), dirty),
        coding(redo_flag * u8::from(gains & by_redo), dirty),
    )
}

/// Returns a word as it is read back: all of it, or its dirty bytes with zeros in the clean ones.
#[inline]
pub const fn kept(word: u64, coding: Coding) -> u64 {
    match coding {
        Coding::Fpc => word,
        Coding::Dldc { dirty } | Coding::DldcRaw { dirty } => word & bytes::mask(dirty),
    }
}

/// The encoding type flag of a redo entry.
#[inline]
pub const fn redo_flag(redo: Coding) -> u8 {
    match redo {
        Coding::Fpc => 0,
        Coding::Dldc { .. } => 1,
        Coding::DldcRaw { .. } => 2,
    }
}

/// The coding given by a redo entry's flag and dirty flag; `None` if there is no such flag.
#[inline]
pub const fn redo_of_flag(flag: u8, dirty: u8) -> Option<Coding> {
    if flag <= 2 { Some(coding(flag, dirty)) } else { None }
}

/// The encoding type flag of an undo+redo entry.
///
/// # Panics
/// If both words are coded by DLDC.
#[inline]
pub const fn pair_flag(undo: Coding, redo: Coding) -> u8 {
    match (redo_flag(undo), redo_flag(redo)) {
        (0, redo) => redo,
        (undo, 0) => undo + 2,
        _ => panic!("undo and redo of one entry are never both coded by DLDC"),
    }
}

/// The codings given by an undo+redo entry's flag and dirty flag; `None` if there is no such flag.
#[inline]
pub const fn pair_of_flag(flag: u8, dirty: u8) -> Option<(Coding, Coding)> {
    let (undo, redo) = if flag > 2 { (flag - 2, 0) } else { (0, flag) };
    match (redo_of_flag(undo, dirty), redo_of_flag(redo, dirty)) {
        (Some(undo), Some(redo)) => Some((undo, redo)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::any_word;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_dirty_bytes_of_a_pointer_go_by_dldc() {
        let pointer = 0x7f3a_52c4_9e18;
        assert_eq!(choose(pointer, 0b1), (Coding::DldcRaw { dirty: 0b1 }, 8 + 8));
        // All dirty and no pattern: 64 + 8 bits are more than FPC's 67.
        assert_eq!(choose(0x1234_5678_9abc_def1, 0xff), (Coding::Fpc, 67));
        assert_eq!(choose(0x1020_3040_5060_7080, 0xff), (Coding::Dldc { dirty: 0xff }, 35 + 8));
        // FPC needs 11 bits; 3 + 8 for DLDC are not fewer.
        assert_eq!(choose(0x40, 0b10), (Coding::Fpc, 11));
        assert_eq!(choose(0x1234_5678_9abc_def0, 0), (Coding::Fpc, 67));
    }

    #[test]
    fn a_tie_between_the_words_goes_to_redo() {
        let (a, b) = (0x7f3a_52c4_9e18, 0x7f3a_52c4_9e19);
        assert_eq!(choose_pair(a, b, 1), (Coding::Fpc, Coding::DldcRaw { dirty: 1 }));
        // Fig. 11: undo data of 0 by FPC, redo data by DLDC.
        let redo = 0x0011_0022_0033_0044;
        assert_eq!(choose_pair(0, redo, 0x55), (Coding::Fpc, Coding::DldcRaw { dirty: 0x55 }));
        assert_eq!(choose_pair(redo, 0, 0x55), (Coding::DldcRaw { dirty: 0x55 }, Coding::Fpc));
    }

    fn all_codings(dirty: u8) -> [Coding; 3] {
        [Coding::Fpc, Coding::Dldc { dirty }, Coding::DldcRaw { dirty }]
    }

    /// Claim `morlog-encoding-type-flag-width`.
    #[test]
    fn encoding_type_flags_fit_and_come_back() {
        for coding in all_codings(0x5a) {
            let flag = redo_flag(coding);
            assert!(flag < 1 << REDO_FLAG_BITS);
            assert_eq!(redo_of_flag(flag, 0x5a), Some(coding));
        }
        let mut seen = 0u8;
        for (undo, redo) in
            all_codings(0x5a).into_iter().flat_map(|u| all_codings(0x5a).map(|r| (u, r)))
        {
            if undo.is_dldc() && redo.is_dldc() {
                continue;
            }
            let flag = pair_flag(undo, redo);
            assert!(flag < 1 << PAIR_FLAG_BITS);
            assert_eq!(pair_of_flag(flag, 0x5a), Some((undo, redo)));
            seen |= 1 << flag;
        }
        assert_eq!(seen, 0b11111, "every legal pair has a flag of its own");
        assert_eq!(
            (redo_of_flag(3, 1), pair_of_flag(5, 1), pair_of_flag(7, 1)),
            (None, None, None)
        );
    }

    proptest! {
        /// Claim `morlog-slde-selection-rule`.
        #[test]
        fn a_choice_is_never_larger_than_fpc(word in any_word(), dirty: u8) {
            let (coding, bits) = choose(word, dirty);
            let flag = if coding.is_dldc() { DIRTY_FLAG_BITS } else { 0 };
            prop_assert_eq!(bits, coding.coded_bits(word) + flag);
            prop_assert!(bits <= fpc::coded_bits(word));
            prop_assert_eq!(coding.is_dldc(), bits < fpc::coded_bits(word));
            prop_assert_eq!(kept(word, coding) & bytes::mask(dirty), word & bytes::mask(dirty));
        }

        /// Claims `morlog-slde-not-both-dldc`, `morlog-slde-selection-rule`.
        #[test]
        fn a_pair_is_never_both_dldc_and_never_larger(
            undo in any_word(), redo in any_word(), dirty: u8,
        ) {
            let (u, r) = choose_pair(undo, redo, dirty);
            prop_assert!(!(u.is_dldc() && r.is_dldc()));
            let total = |u: Coding, r: Coding| {
                let flag = if u.is_dldc() || r.is_dldc() { DIRTY_FLAG_BITS } else { 0 };
                u.coded_bits(undo) + r.coded_bits(redo) + flag
            };
            let chosen = total(u, r);
            prop_assert!(chosen <= total(Coding::Fpc, Coding::Fpc));
            if dirty != 0 {
                prop_assert!(chosen <= total(coding(by_dldc(undo, dirty).0, dirty), Coding::Fpc));
                prop_assert!(chosen <= total(Coding::Fpc, coding(by_dldc(redo, dirty).0, dirty)));
            }
        }

        #[test]
        fn both_words_of_an_entry_can_be_reconstructed(
            undo in any_word(), redo in any_word(), dirty: u8,
        ) {
            let patch = |whole: u64, part: u64| whole & !bytes::mask(dirty) | part & bytes::mask(dirty);
            let redo = patch(undo, redo);
            let (u, r) = choose_pair(undo, redo, dirty);
            let whole = if u.is_dldc() { kept(redo, r) } else { kept(undo, u) };
            prop_assert_eq!(patch(whole, kept(undo, u)), undo);
            prop_assert_eq!(patch(whole, kept(redo, r)), redo);
        }
    }
}
