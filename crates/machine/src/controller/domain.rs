//! The persistence domain, followed byte by byte: what is durable at this instant, wherever it lies.
//!
//! The controllers announce each write when it crosses the boundary that the configuration names
//! (write queue, on-PM buffer, cells). Laid over each other in that order, these writes are what a
//! power failure leaves, before the design's batteries add theirs. The number of words in which
//! that differs from architectural memory is kept up to date, so that images need not be compared
//! to know it. A word that is stored to outside transactions differs if it holds none of the values
//! that it may hold ([`super::outside`]). Where caches survive, stores are laid over that ([`super::cached`]).

use graven_base::memory::{Addr, Image, LineAddr, LineData, WORDS_PER_LINE, WordMask, words_in};
use graven_base::surviving::{SurvivingImage, Written};

use super::cached::CachedWords;
use super::outside::{Outside, OutsideWords};
use super::settled::{Settled, Settlement};

/// One write that became durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The line.
    pub line: LineAddr,
    /// Words that were written.
    pub mask: WordMask,
    /// Former content.
    pub old: LineData,
    /// New content.
    pub new: LineData,
}

/// The durable bytes of the moment, and the changes since they were last looked at.
#[derive(Default)]
pub struct Domain {
    image: Image,
    changes: Vec<Change>,
    /// The region in which differences are counted.
    start: Addr,
    end: Addr,
    different: u64,
    outside: OutsideWords,
    /// Words that cover some of the bytes: the image holds these, and they are counted as if they were durable.
    settled: Settled,
    /// Words that caches keep, if they survive.
    cached: Option<CachedWords>,
    /// Changes of the digests of the durable bytes and of architectural memory, if they are
    /// followed.
    digests: Option<(u64, u64)>,
    /// True while a crash under way has the bytes.
    taken: bool,
    /// Journal of the writes after a power failure, empty; it is kept from one failure to the next.
    journal: Vec<Written>,
}

impl Domain {
    /// A domain that holds these bytes, as architectural memory does in `[start, end)`.
    pub fn new(image: Image, start: Addr, end: Addr) -> Domain {
        Domain { image, start, end, ..Domain::default() }
    }

    /// Has what programs store survive in the caches from now on.
    pub fn keep_caches(&mut self) {
        self.cached = Some(CachedWords::default());
    }

    /// Words that caches keep, if they survive.
    pub fn cached(&self) -> Option<&CachedWords> {
        self.cached.as_ref()
    }

    /// Returns true if a cache keeps a word, so that what is written to memory does not change what survives.
    pub fn is_cached(&self, addr: Addr) -> bool {
        self.cached.as_ref().is_some_and(|cached| cached.keeps(addr))
    }

    /// A store that architectural memory has is performed in a cache that survives; returns whether that changes what survives. It is
    /// none of [`Domain::changes`]: who sees the store sees it durable.
    pub fn keep(&mut self, addr: Addr, value: u64, arch: &Image) -> bool {
        let held = self.image.load(addr);
        let cached = self.cached.as_mut().expect("the caches survive");
        cached.store(addr, held);
        if held == value {
            return false;
        }
        let line = addr.line();
        let (word, mut new) = (addr.word_in_line(), self.image.load_line(line));
        new[word] = value;
        self.lay_over(line, 1 << word, &new, arch);
        for change in self.changes.iter_mut().filter(|change| change.line == line) {
            change.mask &= !(1 << word);
        }
        self.changes.retain(|change| change.mask != 0);
        true
    }

    /// The durable bytes.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Takes the durable bytes out, to crash them; [`Domain::put_back`] must follow.
    pub fn take_image(&mut self) -> SurvivingImage {
        assert!(!self.taken, "there is one power failure at a time");
        self.taken = true;
        let journal = std::mem::take(&mut self.journal);
        SurvivingImage::reusing(journal, std::mem::take(&mut self.image))
    }

    /// Gives the same bytes back: all that was written to them is taken back.
    pub fn put_back(&mut self, mut surviving: SurvivingImage) {
        assert!(self.taken, "what was not taken cannot be put back");
        self.taken = false;
        surviving.rewind(0);
        (self.image, self.journal) = surviving.into_parts();
    }

    /// Keeps what a design has written to the bytes that were taken out. The words cover the bytes until a word changes that the
    /// settlement names.
    pub fn settle(&mut self, mut surviving: SurvivingImage, settlement: Settlement, arch: &Image) {
        assert!(!self.settled.is_aside(), "more is settled above what is");
        self.settled.add(surviving.written(), settlement, self.start..self.end);
        for &Written { addr, old, new } in surviving.written() {
            self.recount(addr, old, new, arch);
        }
        surviving.keep_written();
        self.put_back(surviving);
    }

    /// Words that cover the bytes; nothing if there are none, or they are set aside.
    pub fn settled(&self) -> Option<&Settled> {
        let covers = !self.settled.is_empty() && !self.settled.is_aside();
        covers.then_some(&self.settled)
    }

    /// Sets what covers the bytes aside, or covers them again.
    pub fn turn_settled(&mut self, arch: &Image) {
        assert!(!self.taken, "a power failure under way has the bytes");
        let mut settled = std::mem::take(&mut self.settled);
        let mut image = std::mem::take(&mut self.image);
        settled.turn(&mut image, |addr, held, holds| self.recount(addr, held, holds, arch));
        (self.settled, self.image) = (settled, image);
    }

    /// Uncovers everything.
    #[cold]
    fn unsettle(&mut self, arch: &Image) {
        self.turn_settled(arch);
        self.settled = Settled::default();
    }

    /// A word holds something else now.
    fn recount(&mut self, addr: Addr, held: u64, holds: u64, arch: &Image) {
        if (self.start..self.end).contains(&addr) {
            let arch = arch.load(addr);
            let differs = |held| self.outside.differs(addr, held, arch);
            self.different = recount(self.different, differs(held), differs(holds));
        }
    }

    /// Changes since [`Domain::forget_changes`], oldest first.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Forgets how the present state came about.
    pub fn forget_changes(&mut self) {
        self.changes.clear();
    }

    /// Words of the region in which the durable bytes differ from architectural memory, and from what stores outside
    /// transactions allow.
    pub fn different_words(&self) -> u64 {
        self.different
    }

    /// Words of the region that were stored to outside transactions.
    pub fn outside(&self) -> &OutsideWords {
        &self.outside
    }

    /// A write has become durable; returns what the line held. `is_newer_above`: a cache, or a write on its way, has the line;
    /// only asked for if caches survive.
    pub fn write(
        &mut self,
        line: LineAddr,
        mut mask: WordMask,
        data: &LineData,
        arch: &Image,
        is_newer_above: bool,
    ) -> LineData {
        assert!(mask != 0, "a write writes something");
        if let Some(cached) = &mut self.cached {
            mask = cached.write((line, mask, data), is_newer_above);
            if mask == 0 {
                return self.image.load_line(line);
            }
        }
        let old = self.lay(line, mask, data, arch);
        self.changes.push(Change { line, mask, old, new: *data });
        old
    }

    /// Lays words over the bytes without remembering it; returns what the line held.
    pub fn lay(
        &mut self,
        line: LineAddr,
        mask: WordMask,
        data: &LineData,
        arch: &Image,
    ) -> LineData {
        assert!(!self.taken, "nothing becomes durable while power is off");
        if !self.settled.is_empty() {
            return self.lay_below(line, mask, data, arch);
        }
        self.lay_over(line, mask, data, arch)
    }

    /// The same where some words are covered.
    fn lay_below(
        &mut self,
        line: LineAddr,
        mask: WordMask,
        data: &LineData,
        arch: &Image,
    ) -> LineData {
        assert!(!self.settled.is_aside(), "time does not pass while it is set aside");
        let mut old = self.image.load_line(line);
        let mut covered = 0;
        for (word, held) in old.iter_mut().enumerate() {
            if let Some(durable) = self.settled.below(line.word(word)) {
                *held = *durable;
                covered |= 1 << word;
            }
        }
        let changes = |word: usize| old[word] != data[word];
        if words_in(mask).any(|word| changes(word) && self.settled.depends_on(line.word(word))) {
            self.unsettle(arch);
            return self.lay_over(line, mask, data, arch);
        }
        for word in words_in(mask & covered) {
            if let Some(durable) = self.settled.below(line.word(word)) {
                *durable = data[word];
            }
        }
        if mask & !covered != 0 {
            self.lay_over(line, mask & !covered, data, arch);
        }
        old
    }

    /// Lays words over the image; returns what the line held.
    fn lay_over(
        &mut self,
        line: LineAddr,
        mask: WordMask,
        data: &LineData,
        arch: &Image,
    ) -> LineData {
        let old = self.image.load_line(line);
        let mut now = old;
        crate::media::overlay(&mut now, data, mask);
        if (self.start..self.end).contains(&line.addr()) {
            let arch = arch.load_line(line);
            for word in 0..WORDS_PER_LINE {
                let differs =
                    |held: &LineData| self.outside.differs(line.word(word), held[word], arch[word]);
                self.different = recount(self.different, differs(&old), differs(&now));
            }
        }
        if let Some((durable, _)) = &mut self.digests {
            for word in (0..WORDS_PER_LINE).filter(|&word| old[word] != now[word]) {
                let written = Written { addr: line.word(word), old: old[word], new: now[word] };
                *durable = written.redigested(*durable);
            }
        }
        self.image.store_line(line, &now);
        old
    }

    /// Follows digests from now on.
    pub fn follow_digests(&mut self) {
        self.digests = Some((0, 0));
    }

    /// Digests ([`Image::digest`]) of the durable bytes and of architectural memory, less what they were when they began to
    /// be followed.
    ///
    /// # Panics
    /// They are not followed.
    pub fn digests(&self) -> (u64, u64) {
        self.digests.expect("digests are followed")
    }

    /// A store changes architectural memory.
    #[inline]
    pub fn stored(&mut self, addr: Addr, old: u64, new: u64) {
        if let Some((_, architectural)) = &mut self.digests {
            *architectural = Written { addr, old, new }.redigested(*architectural);
        }
        if (self.start..self.end).contains(&addr) {
            let durable = self.image.load(addr);
            let differs = |arch| self.outside.differs(addr, durable, arch);
            self.different = recount(self.different, differs(old), differs(new));
        }
    }

    /// A store outside transactions is about to change architectural memory.
    pub fn store_outside(&mut self, addr: Addr, old: u64, new: u64) {
        if (self.start..self.end).contains(&addr) {
            let durable = self.image.load(addr);
            let differed = self.outside.differs(addr, durable, old);
            self.outside.store(addr, old, new);
            let differs = self.outside.differs(addr, durable, old);
            self.different = recount(self.different, differed, differs);
        }
    }

    /// A transaction is about to store to a word that holds `old`: what it might hold until now, if it was stored to outside
    /// transactions. From now on it may hold what architectural memory does.
    pub fn take_outside(&mut self, addr: Addr, old: u64) -> Option<Outside> {
        let outside = self.outside.remove(addr)?;
        let durable = self.image.load(addr);
        let differed = durable != old && !outside.allows(durable);
        self.different = recount(self.different, differed, durable != old);
        Some(outside)
    }
}

/// The number of words that differ, after one of them did or did not, and now does or does not.
///
/// # Panics
/// If the word differed and was not counted.
#[inline]
pub fn recount(different: u64, differed: bool, differs: bool) -> u64 {
    let counted = different + u64::from(differs);
    counted.checked_sub(u64::from(differed)).expect("a word that differed was counted")
}

#[cfg(test)]
mod tests {
    use super::super::settled::Stores;
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Event {
        Store { word: u64, value: u64 },
        Outside { word: u64, value: u64 },
        Durable { line: u64, mask: u8, value: u64 },
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            (0u64..64, 0u64..3).prop_map(|(word, value)| Event::Store { word, value }),
            (0u64..64, 0u64..3).prop_map(|(word, value)| Event::Outside { word, value }),
            (0u64..8, 1u8.., 0u64..3).prop_map(|(line, mask, value)| Event::Durable {
                line,
                mask,
                value
            }),
        ]
    }

    #[derive(Clone, Debug)]
    enum Ahead {
        Other(Event),
        Settle { words: Vec<(u64, u64)> },
        Turn,
    }

    fn ahead() -> impl Strategy<Value = Ahead> {
        let words = prop::collection::vec((0u64..64, 0u64..3), 1..4);
        prop_oneof![
            3 => event().prop_map(Ahead::Other),
            1 => words.prop_map(|words| Ahead::Settle { words }),
            1 => Just(Ahead::Turn),
        ]
    }

    /// Lines 1 to 6 are the region.
    const REGION: (Addr, Addr) = (Addr(64), Addr(7 * 64));

    /// Memory, and of each word all that it may hold.
    struct Model {
        arch: Image,
        domain: Domain,
        allowed: Vec<Vec<u64>>,
    }

    impl Model {
        fn new() -> Model {
            let domain = Domain::new(Image::new(), REGION.0, REGION.1);
            Model { arch: Image::new(), domain, allowed: vec![vec![0]; 64] }
        }

        fn perform(&mut self, event: &Event) {
            match *event {
                Event::Store { word, value } => {
                    let old = self.arch.load(Addr(word * 8));
                    self.domain.take_outside(Addr(word * 8), old);
                    self.arch.store(Addr(word * 8), value);
                    self.domain.stored(Addr(word * 8), old, value);
                    self.allowed[word as usize] = vec![value];
                }
                Event::Outside { word, value } => {
                    let old = self.arch.load(Addr(word * 8));
                    self.domain.store_outside(Addr(word * 8), old, value);
                    self.arch.store(Addr(word * 8), value);
                    self.domain.stored(Addr(word * 8), old, value);
                    self.allowed[word as usize].push(value);
                }
                Event::Durable { line, mask, value } => {
                    self.domain.write(LineAddr(line), mask, &[value; 8], &self.arch, false);
                }
            }
        }

        /// Words of the region whose content none of these allows.
        fn differences(&self) -> u64 {
            let held = |word: u64| self.domain.image().load(Addr(word * 8));
            let differs = |&word: &u64| !self.allowed[word as usize].contains(&held(word));
            (8..56).filter(differs).count() as u64
        }
    }

    proptest! {
        /// A settled word covers what becomes durable below it, until a word changes on which it depends: here those of line 7.
        #[test]
        fn settled_words_cover_the_durable_ones(
            events in prop::collection::vec(ahead(), 0..60),
        ) {
            let mut model = Model::new();
            let (mut durable, mut covered) = ([0; 64], std::collections::BTreeMap::new());
            for event in events {
                match event {
                    Ahead::Other(event) => {
                        model.perform(&event);
                        if let Event::Durable { line, mask, value } = event {
                            let of_line = line as usize * 8..line as usize * 8 + 8;
                            let old = model.domain.changes().last().map(|change| change.old);
                            prop_assert_eq!(&old.expect("a line")[..], &durable[of_line.clone()]);
                            for word in words_in(mask) {
                                let held = &mut durable[of_line.start + word];
                                if std::mem::replace(held, value) != value && line == 7 {
                                    covered.clear();
                                }
                            }
                        }
                    }
                    Ahead::Settle { words } => {
                        let mut image = model.domain.take_image();
                        for &(word, value) in &words {
                            image.store(Addr(word * 8), value);
                            covered.insert(word, value);
                        }
                        let settlement = Settlement {
                            depends_on: vec![Addr(7 * 64)..Addr(8 * 64)],
                            stores: Stores::OfWords,
                            hides_records: false,
                        };
                        model.domain.settle(image, settlement, &model.arch);
                        let in_data = covered.range(8..56).count() as u64;
                        let settled = model.domain.settled();
                        prop_assert_eq!(settled.map(Settled::stores), Some(in_data));
                    }
                    Ahead::Turn => {
                        model.domain.turn_settled(&model.arch);
                        prop_assert_eq!(model.domain.different_words(), model.differences());
                        let held = |word: u64| model.domain.image().load(Addr(word * 8));
                        let is_durable = (0..64).all(|word| held(word) == durable[word as usize]);
                        prop_assert!(is_durable);
                        model.domain.turn_settled(&model.arch);
                    }
                }
                let held = |word: u64| model.domain.image().load(Addr(word * 8));
                let holds =
                    |word: u64| covered.get(&word).copied().unwrap_or(durable[word as usize]);
                prop_assert!((0..64).all(|word| held(word) == holds(word)));
                prop_assert_eq!(model.domain.different_words(), model.differences());
            }
        }

        #[test]
        fn the_count_of_differences_is_that_of_a_comparison(
            events in prop::collection::vec(event(), 0..60),
        ) {
            let mut model = Model::new();
            model.domain.follow_digests();
            for event in events {
                model.perform(&event);
                let Model { arch, domain, .. } = &model;
                prop_assert_eq!(domain.different_words(), model.differences());
                let all = |image: &Image| image.digest(Addr(0), Addr(512));
                prop_assert_eq!(domain.digests(), (all(domain.image()), all(arch)));
            }
            for change in model.domain.changes().to_vec().into_iter().rev() {
                model.domain.lay(change.line, change.mask, &change.old, &model.arch);
            }
            prop_assert_eq!(model.domain.different_words(), model.differences());
            let empty = model.domain.image().first_difference(&Image::new(), Addr(0), Addr(512));
            prop_assert_eq!(empty, None);
        }
    }
}
