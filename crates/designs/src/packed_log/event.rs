//! Events of coding records, and their counters.

use graven_base::codecs::dldc;
use graven_base::counters;
use graven_machine::design::{DesignEvent, Observation};

counters! {
    /// Counters of the words of a packed log.
    pub struct Counters {
        /// Words of undo and redo data logged under SLDE.
        log_words: Count, "words";
        /// Entries of which one word was coded by DLDC, so that only its dirty bytes were logged.
        log_entries_differential: Count, "entries";
        /// Log words whose dirty bytes have DLDC pattern 000 (all zero; MorLog Table II).
        dldc_pattern_000: Count, "words";
        /// Log words whose dirty bytes have DLDC pattern 001 (a 2-bit number, sign-extended, in each byte; MorLog Table II).
        dldc_pattern_001: Count, "words";
        /// Log words whose dirty bytes have DLDC pattern 010 (a 4-bit number, sign-extended, in each byte; MorLog Table II).
        dldc_pattern_010: Count, "words";
        /// Log words whose dirty bytes have DLDC pattern 011 (one byte, sign-extended; MorLog Table II).
        dldc_pattern_011: Count, "words";
        /// Log words whose dirty bytes have DLDC pattern 100 (two bytes, sign-extended; MorLog Table II).
        dldc_pattern_100: Count, "words";
        /// Log words whose dirty bytes have DLDC pattern 101 (four bytes, sign-extended; MorLog Table II).
        dldc_pattern_101: Count, "words";
        /// Log words whose dirty bytes have DLDC pattern 110 (the high half of each byte; MorLog Table II).
        dldc_pattern_110: Count, "words";
        /// Log words whose dirty bytes have DLDC pattern 111 (all but the lowest byte, which is zero; MorLog Table II).
        dldc_pattern_111: Count, "words";
        /// Log words whose dirty bytes have no pattern.
        dldc_pattern_none: Count, "words";
    }
}

/// Events of coding. A design's own event has them as a part, and forwards them to
/// [`Event::observe`].
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// The words of an entry were coded, where memory modules know DLDC; a redo entry has no undo word.
    Coded {
        undo: Option<u64>,
        redo: u64,
        dirty: u8,
        /// One of them went without its clean bytes.
        is_differential: bool,
    },
}

impl Event {
    /// Counts it: which pattern the dirty bytes of each word have (MorLog Table II, last column).
    pub fn observe<E>(self, to: &mut Observation<'_, E>)
    where
        E: DesignEvent,
        E::Counters: AsMut<Counters>,
    {
        let Event::Coded { undo, redo, dirty, is_differential } = self;
        let counters = to.count().as_mut();
        counters.log_entries_differential += u64::from(is_differential);
        for word in undo.into_iter().chain([redo]) {
            count_pattern(counters, word, dirty);
        }
    }
}

/// Counts which pattern the dirty bytes of a word have.
fn count_pattern(c: &mut Counters, word: u64, dirty: u8) {
    c.log_words += 1;
    let pattern = dldc::measure(word, dirty).0;
    *match pattern {
        Some(dldc::Pattern::Zero) => &mut c.dldc_pattern_000,
        Some(dldc::Pattern::TwoBitsEach) => &mut c.dldc_pattern_001,
        Some(dldc::Pattern::FourBitsEach) => &mut c.dldc_pattern_010,
        Some(dldc::Pattern::OneByte) => &mut c.dldc_pattern_011,
        Some(dldc::Pattern::TwoBytes) => &mut c.dldc_pattern_100,
        Some(dldc::Pattern::FourBytes) => &mut c.dldc_pattern_101,
        Some(dldc::Pattern::UpperHalves) => &mut c.dldc_pattern_110,
        Some(dldc::Pattern::LowByteZero) => &mut c.dldc_pattern_111,
        None => &mut c.dldc_pattern_none,
    } += 1;
}
