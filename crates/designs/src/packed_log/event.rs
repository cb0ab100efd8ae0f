//! What happens when records are coded, counted.

use graven_base::codecs::dldc;
use graven_machine::design::{DesignEvent, Observation};

/// What happens. A design's own event has it as a part, and forwards it to [`Event::observe`].
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
    pub fn observe<E: DesignEvent>(self, to: &mut Observation<'_, E>) {
        let Event::Coded { undo, redo, dirty, is_differential } = self;
        to.count().log_entries_differential += u64::from(is_differential);
        for word in undo.into_iter().chain([redo]) {
            count_pattern(to, word, dirty);
        }
    }
}

/// Counts which pattern the dirty bytes of a word have.
fn count_pattern<E: DesignEvent>(to: &mut Observation<'_, E>, word: u64, dirty: u8) {
    let c = to.count();
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
