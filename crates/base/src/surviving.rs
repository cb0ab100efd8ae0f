//! Content that a power failure leaves, and what is written to it afterwards.

use std::collections::BTreeMap;

use crate::memory::{
    Addr, Image, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WORDS_PER_LINE, WordMask, word_digest,
    words_in,
};
use crate::recovery_steps::{RecoverySteps, ThreadSteps};

pub use crate::recovery_steps::Work;

/// One word that was written: what it held before and holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Address of the word.
    pub addr: Addr,
    /// Former content.
    pub old: u64,
    /// New content.
    pub new: u64,
}

impl Written {
    /// The digest of an image ([`Image::digest`]) after this was written to it.
    #[inline]
    pub fn redigested(&self, digest: u64) -> u64 {
        let Written { addr, old, new } = *self;
        if old == new {
            return digest;
        }
        digest.wrapping_sub(word_digest(addr, old)).wrapping_add(word_digest(addr, new))
    }
}

/// Bytes of the words that are looked through together.
const PAGE_BYTES: u64 = 4096;

/// Work of a [`Reader`].
#[derive(Clone, Debug, Default)]
pub struct Used {
    words_read: u64,
    out_of_bounds: Option<Addr>,
    met_poison: bool,
    steps: Option<ThreadSteps>,
}

/// The bytes that survived, for one of several threads that read them.
#[derive(Clone)]
pub struct Reader<'a> {
    image: &'a Image,
    end: Addr,
    poison: Option<Addr>,
    used: Used,
}

impl Reader<'_> {
    /// The word at an aligned address.
    #[inline]
    pub fn load(&mut self, addr: Addr) -> u64 {
        self.used.words_read += 1;
        if is_word(addr, self.end) {
            if let Some(steps) = &mut self.used.steps {
                steps.load(addr);
            }
            self.used.met_poison |= self.poison == Some(addr);
            return self.image.load(addr);
        }
        self.used.out_of_bounds.get_or_insert(addr);
        0
    }

    /// Loads `N` words from an aligned address on, none of them behind the line, as if one by one.
    #[inline]
    pub fn load_words<const N: usize>(&mut self, addr: Addr) -> [u64; N] {
        let is_watched = self.used.steps.is_some() || self.poison.is_some();
        if is_watched || !is_word(last_of::<N>(addr), self.end) {
            return self.load_one_by_one(addr);
        }
        self.used.words_read += N as u64;
        self.image.load_words(addr)
    }

    #[cold]
    fn load_one_by_one<const N: usize>(&mut self, addr: Addr) -> [u64; N] {
        std::array::from_fn(|word| self.load(word_from(addr, word)))
    }

    /// The eight words of a line.
    #[inline]
    pub fn load_line(&mut self, line: LineAddr) -> LineData {
        self.load_words(line.addr())
    }

    /// Loads `words` words from an aligned address on; returns those that are not zero. Returns `None`, and loads nothing, if
    /// that would not be the same as one by one: loads are followed, or not all are words of PM.
    pub fn unwatched_nonzero(&mut self, addr: Addr, words: usize) -> Option<Vec<(Addr, u64)>> {
        let last = word_from(addr, words.checked_sub(1)?);
        if self.used.steps.is_some() || self.poison.is_some() || !is_word(last, self.end) {
            return None;
        }
        self.used.words_read += words as u64;
        Some(self.image.nonzero_words_in(addr, word_from(addr, words)).collect())
    }

    /// Addresses come from the newest load from now on ([`SurvivingImage::follow`]).
    #[inline]
    pub fn follow(&mut self) {
        if let Some(steps) = &mut self.used.steps {
            steps.follow();
        }
    }

    /// Addresses are known from now on ([`SurvivingImage::addresses_known`]).
    #[inline]
    pub fn addresses_known(&mut self) {
        if let Some(steps) = &mut self.used.steps {
            steps.addresses_known();
        }
    }

    /// The thread computes ([`SurvivingImage::work`]).
    #[inline]
    pub fn work(&mut self, kind: Work, count: u64) {
        if let Some(steps) = &mut self.used.steps {
            steps.work(kind, count);
        }
    }

    /// Returns true if steps are kept.
    pub fn keeps_steps(&self) -> bool {
        self.used.steps.is_some()
    }

    /// Returns the work done.
    pub fn used(self) -> Used {
        self.used
    }
}

/// Place at which a thread begins with its batch: each of `threads` at another share of it, with a
/// line, so that threads do not go through the banks in step.
fn begin(batch: &[(Addr, u64)], thread: usize, threads: usize) -> usize {
    let at = batch.len() * thread / threads;
    let before = at.checked_sub(1).map(|before| batch[before].0.line());
    let same_line = batch[at..].iter().take_while(|(addr, _)| Some(addr.line()) == before);
    at + same_line.count()
}

/// Address of the word that has `before` words before it from an address on.
#[inline]
fn word_from(addr: Addr, before: usize) -> Addr {
    addr.plus(before as u64 * WORD_BYTES)
}

/// Splits `held` into blocks of `STRIDE` words and calls `each` with the index of every block in
/// whose first `WORDS` words any of `bits` is set. A shorter last block is always passed.
fn places_with<const STRIDE: usize, const WORDS: usize>(
    held: &[u64],
    bits: u64,
    mut each: impl FnMut(usize),
) {
    let (places, rest) = held.as_chunks::<STRIDE>();
    for (number, place) in places.iter().enumerate() {
        if place[..WORDS].iter().fold(0, |any, word| any | word) & bits != 0 {
            each(number);
        }
    }
    if !rest.is_empty() {
        each(places.len());
    }
}

/// Address of the last of `N` words from an address on.
#[inline]
fn last_of<const N: usize>(addr: Addr) -> Addr {
    word_from(addr, N - 1)
}

/// Returns true if an address is that of a word of a PM that ends at `end` (0: of no PM).
#[inline]
fn is_word(addr: Addr, end: Addr) -> bool {
    addr.is_word_aligned() && (end.0 == 0 || addr < end)
}

/// The PM after a power failure. Every write is remembered and can be taken back, so that one image
/// serves any number of failures, at a cost proportional to what is written. Reads and writes are counted.
#[derive(Default)]
pub struct SurvivingImage {
    image: Image,
    journal: Vec<Written>,
    /// Writes are not remembered.
    forgets: bool,
    /// Words that may still be written; what comes after is lost.
    power: Option<u64>,
    words_read: u64,
    words_written: u64,
    /// One past the last byte of PM; 0: there is no end.
    end: Addr,
    /// The first address used that is no word of PM.
    out_of_bounds: Option<Addr>,
    /// A word with an uncorrectable error.
    poison: Option<Addr>,
    /// True if it was read: the machine has reported the error.
    met_poison: bool,
    /// Notes on the writes, each before the write of this number; none if they are not wanted.
    notes: Option<Vec<(usize, String)>>,
    /// Steps of the recovery, if they are wanted.
    steps: Option<Box<RecoverySteps>>,
    /// True if reads and writes are followed: a word has an error, or steps are kept.
    is_watched: bool,
    /// Stores go past the caches.
    bypassing: bool,
    /// Words to which recovery writes nothing ([`SurvivingImage::leave`]).
    left: Vec<Addr>,
}

/// A walk over all slots of a log area, which passes over those that begin with zero.
#[derive(Debug)]
pub struct Slots {
    first: Addr,
    bytes: u64,
    count: u64,
    next: u64,
}

impl Slots {
    /// Describes `count` slots of `bytes` bytes each, from `first` on.
    pub fn new(first: Addr, bytes: u64, count: u64) -> Slots {
        Slots { first, bytes, count, next: 0 }
    }

    /// The next slot that may hold a record; the first words of those before it count as loaded.
    #[inline]
    pub fn next_used(&mut self, image: &mut SurvivingImage) -> Option<u64> {
        let first = self.first.plus(self.next * self.bytes);
        let slot = self.next + image.pass_zeros(first, self.bytes, self.count - self.next);
        self.next = self.count.min(slot + 1);
        (slot < self.count).then_some(slot)
    }

    /// Visits the first `N` words of each slot whose first word is that of a record. Of the others, which count as looked at, too,
    /// only the first word is loaded. Where that is the same as loads one by one, the slots are looked through in place.
    pub fn visit_used<const N: usize>(
        self,
        image: &mut SurvivingImage,
        is_used: impl Fn(u64) -> bool,
        mut visit: impl FnMut(&[u64; N]),
    ) {
        let Some(last) = self.count.checked_sub(1) else { return };
        let stride = (self.bytes / WORD_BYTES) as usize;
        let Some(held) = image.unwatched_words(self.first, last as usize * stride + N) else {
            return self.visit_one_by_one(image, is_used, visit);
        };
        let mut used = 0;
        let mut look = |words: &[u64; N]| {
            if is_used(words[0]) {
                used += 1;
                visit(words);
            }
        };
        if stride == N {
            held.as_chunks().0.iter().for_each(look);
        } else {
            let slots = held.chunks(stride);
            slots.for_each(|slot| look(slot.first_chunk().expect("a slot has these words")));
        }
        image.count_loads(self.count + used * (N as u64 - 1));
    }

    fn visit_one_by_one<const N: usize>(
        mut self,
        image: &mut SurvivingImage,
        is_used: impl Fn(u64) -> bool,
        mut visit: impl FnMut(&[u64; N]),
    ) {
        while let Some(slot) = self.next_used(image) {
            let first = self.first.plus(slot * self.bytes);
            let head = image.load(first);
            image.work(Work::Record, 1);
            if !is_used(head) {
                continue;
            }
            if let Some(&words) = image.unwatched::<N>(first) {
                image.count_loads(N as u64 - 1);
                visit(&words);
                continue;
            }
            let load = |word| if word == 0 { head } else { image.load(word_from(first, word)) };
            visit(&std::array::from_fn(load));
        }
    }
}

impl SurvivingImage {
    /// The bytes that survived.
    pub fn new(image: Image) -> Self {
        Self { image, ..Self::default() }
    }

    /// The bytes that survived, with writes remembered in what an earlier view has given back
    /// ([`SurvivingImage::into_parts`]), so that it need not grow again.
    pub fn reusing(journal: Vec<Written>, image: Image) -> Self {
        assert!(journal.is_empty(), "no write has been remembered");
        Self { image, journal, ..Self::default() }
    }

    /// Remembers no writes from now on; none can be taken back. For those who measure recovery.
    pub fn forget_writes(&mut self) {
        self.forgets = true;
    }

    /// The PM ends here: what is used beyond is noted ([`SurvivingImage::out_of_bounds`]) and has no effect.
    pub fn set_end(&mut self, end: Addr) {
        self.end = end;
    }

    /// The first address used that is no word of PM, if any: recovery has taken noise for a record.
    pub fn out_of_bounds(&self) -> Option<Addr> {
        self.out_of_bounds
    }

    #[inline]
    fn is_word(&mut self, addr: Addr) -> bool {
        let is_word = is_word(addr, self.end);
        if !is_word {
            self.out_of_bounds.get_or_insert(addr);
        }
        is_word
    }

    /// The word at an aligned address.
    #[inline]
    pub fn load(&mut self, addr: Addr) -> u64 {
        self.words_read += 1;
        if !self.is_word(addr) {
            return 0;
        }
        if self.is_watched {
            self.watch_load(addr);
        }
        self.image.load(addr)
    }

    /// Passes over words that are zero, `stride` bytes apart from an aligned address on, `most` at
    /// most, as if each was loaded. Returns their number; 0 where loads are followed.
    #[inline]
    pub fn pass_zeros(&mut self, first: Addr, stride: u64, most: u64) -> u64 {
        if self.is_watched || most == 0 || !is_word(first.plus((most - 1) * stride), self.end) {
            return 0;
        }
        let zeros = self.image.zeros(first, stride, most);
        self.words_read += zeros;
        zeros
    }

    #[cold]
    fn watch_load(&mut self, addr: Addr) {
        if let Some(steps) = &mut self.steps {
            steps.main().load(addr);
        }
        self.met_poison |= self.poison == Some(addr);
    }

    /// Returns true if power lasts for a write, and tells those who watch of it then.
    #[cold]
    fn may_store(&mut self, addr: Addr, new: u64) -> bool {
        if let Some(left) = &mut self.power {
            if *left == 0 {
                return false;
            }
            *left -= 1;
        }
        if let Some(steps) = &mut self.steps {
            steps.main().store(addr, new, self.bypassing);
        }
        if self.poison == Some(addr) {
            self.poison = None;
            self.is_watched = self.steps.is_some();
        }
        true
    }

    /// A word has an uncorrectable error, which is reported when it is read ([`SurvivingImage::met_poison`]), until it is
    /// written: what it holds is noise.
    pub fn poison(&mut self, addr: Addr, noise: u64) {
        self.store(addr, noise);
        (self.poison, self.met_poison, self.is_watched) = (Some(addr), false, true);
    }

    /// Returns true if an uncorrectable error was reported, because the word was read.
    pub fn met_poison(&self) -> bool {
        self.met_poison
    }

    /// The word that still has an uncorrectable error.
    pub fn poisoned(&self) -> Option<Addr> {
        self.poison
    }

    /// Loads `N` words from an aligned address on, none of them behind the line, as if one by one.
    #[inline(always)]
    pub fn load_words<const N: usize>(&mut self, addr: Addr) -> [u64; N] {
        if self.is_watched || !is_word(last_of::<N>(addr), self.end) {
            return self.load_one_by_one(addr);
        }
        self.words_read += N as u64;
        self.image.load_words(addr)
    }

    #[cold]
    fn load_one_by_one<const N: usize>(&mut self, addr: Addr) -> [u64; N] {
        std::array::from_fn(|word| self.load(word_from(addr, word)))
    }

    /// Returns `N` words from an aligned address on, wherever lines end. The caller reports to
    /// [`SurvivingImage::count_loads`] how many of them it would have loaded one by one. Returns
    /// `None` if that would not be the same: loads are followed, not all are words of PM, or they
    /// lie where nothing has been written.
    #[inline]
    pub fn unwatched<const N: usize>(&self, addr: Addr) -> Option<&[u64; N]> {
        if self.is_watched || !is_word(last_of::<N>(addr), self.end) {
            return None;
        }
        self.image.written_words(addr, N)?.first_chunk()
    }

    /// The same of a number of words that is not known beforehand.
    #[inline]
    pub fn unwatched_words(&self, addr: Addr, words: usize) -> Option<&[u64]> {
        let last = words.checked_sub(1)?;
        if self.is_watched || !is_word(word_from(addr, last), self.end) {
            return None;
        }
        self.image.written_words(addr, words)
    }

    /// Returns true if the word at an address lies in a part of PM that was never written, and loads of it are not watched: it is
    /// zero.
    #[inline]
    pub fn is_absent(&self, addr: Addr) -> bool {
        !self.is_watched && is_word(addr, self.end) && !self.image.is_present(addr)
    }

    /// Counts `words` loads of [`SurvivingImage::unwatched`] words.
    #[inline]
    pub fn count_loads(&mut self, words: u64) {
        self.words_read += words;
    }

    /// Finds the words that have any of these bits, among the first `words` of each of a number of
    /// places, which begin `stride` words one after the other and lie in lines; all of them count
    /// as loaded. Returns `None` if loads are followed, or not all are words of PM.
    ///
    /// # Panics
    /// Words of a place lie in several lines.
    pub fn find_marked(
        &mut self,
        start: Addr,
        places: u64,
        (stride, words): (usize, usize),
        bits: u64,
    ) -> Option<Vec<Addr>> {
        let bytes = stride as u64 * WORD_BYTES;
        let divides = bytes.is_multiple_of(LINE_BYTES) || LINE_BYTES.is_multiple_of(bytes);
        assert!(
            start.has_words_in_line(words) && words <= stride && divides,
            "places lie in lines"
        );
        let last = word_from(start.plus(places.checked_sub(1)? * bytes), words - 1);
        if self.is_watched || !is_word(last, self.end) {
            return None;
        }
        self.words_read += places * words as u64;
        // Room for the marks of a few records, so that a small log takes one allocation.
        let (mut marked, mut at) = (Vec::with_capacity(64), start);
        let chunks = self.image.parts(usize::MAX);
        let mut find = |place: Addr, held: &[u64]| {
            let of_place = held.iter().enumerate().filter(|(_, word)| *word & bits != 0);
            of_place.for_each(|(word, _)| marked.push(word_from(place, word)));
        };
        while at <= last {
            // Those that begin in this page, together if it has been written.
            let end = Addr(at.0 / PAGE_BYTES * PAGE_BYTES + PAGE_BYTES - 1).min(last);
            let count = ((end.0 - at.0) / bytes) as usize + 1;
            match self.image.written_words(at, (count - 1) * stride + words) {
                Some(held) => {
                    let each = |place: usize| {
                        let held = &held[place * stride..];
                        find(word_from(at, place * stride), &held[..words]);
                    };
                    match (stride, words) {
                        (16, 8) => places_with::<16, 8>(held, bits, each),
                        (8, 8) => places_with::<8, 8>(held, bits, each),
                        (8, 4) => places_with::<8, 4>(held, bits, each),
                        (4, 4) => places_with::<4, 4>(held, bits, each),
                        (4, 2) => places_with::<4, 2>(held, bits, each),
                        (2, 2) => places_with::<2, 2>(held, bits, each),
                        _ => (0..count).for_each(each),
                    }
                }
                // Part of an image that has the same host memory, and has none: all of it is zero.
                None if chunks.of(at) == chunks.of(end) => {}
                None => (0..count).map(|place| word_from(at, place * stride)).for_each(|place| {
                    let line = self.image.load_line(place.line());
                    find(place, &line[place.word_in_line()..][..words]);
                }),
            }
            at = at.plus(count as u64 * bytes);
        }
        Some(marked)
    }

    /// Loads words, `most` at most, from an aligned address on until one is refused; returns the
    /// number of those that were accepted.
    #[inline]
    pub fn load_while(
        &mut self,
        addr: Addr,
        words: usize,
        mut accepts: impl FnMut(usize, u64) -> bool,
    ) -> usize {
        if words > 0
            && !self.is_watched
            && is_word(word_from(addr, words - 1), self.end)
            && let Some(written) = self.image.written_words(addr, words)
        {
            let refused = written.iter().enumerate().position(|(i, &word)| !accepts(i, word));
            self.words_read += refused.map_or(words, |refused| refused + 1) as u64;
            return refused.unwrap_or(words);
        }
        let mut loads = (0..words).map(|i| (i, self.load(word_from(addr, i))));
        loads.position(|(i, word)| !accepts(i, word)).unwrap_or(words)
    }

    /// The words of a line.
    #[inline]
    pub fn load_line(&mut self, line: LineAddr) -> LineData {
        self.load_words(line.addr())
    }

    /// Recovery writes nothing to a word, since a record says that the word's value is at home. A campaign that has replayed older
    /// records of the word ahead asks for this ([`SurvivingImage::left`]).
    pub fn leave(&mut self, addr: Addr) {
        self.left.push(addr);
    }

    /// Words to which recovery writes nothing ([`SurvivingImage::leave`]).
    pub fn left(&self) -> &[Addr] {
        &self.left
    }

    /// Another recovery begins: no word has been left.
    pub fn forget_left(&mut self) {
        self.left.clear();
    }

    /// A line is about to be read: the host brings it near. An address behind the PM has no effect.
    #[inline]
    pub fn expect(&self, addr: Addr) {
        self.image.prefetch(addr.line());
    }

    /// A word, uncounted: for checkers.
    #[inline]
    pub fn peek(&self, addr: Addr) -> u64 {
        self.image.load(addr)
    }

    /// Writes the word at an aligned address: the atomic unit.
    #[inline]
    pub fn store(&mut self, addr: Addr, new: u64) {
        if !self.is_word(addr) {
            return;
        }
        if (self.is_watched || self.power.is_some()) && !self.may_store(addr, new) {
            return;
        }
        self.words_written += 1;
        let old = self.image.store(addr, new);
        if !self.forgets {
            self.journal.push(Written { addr, old, new });
        }
    }

    /// Writes words one after the other, as if each was stored.
    #[inline]
    pub fn store_all(&mut self, words: impl IntoIterator<Item = (Addr, u64)>) {
        let words = words.into_iter();
        if self.stores_one_by_one() {
            words.for_each(|(addr, new)| self.store(addr, new));
            return;
        }
        self.journal.reserve(words.size_hint().0);
        let mut words = words.peekable();
        while let Some((addr, new)) = words.next() {
            let line = addr.line();
            let follows = |next: &(Addr, u64)| next.0.line() == line;
            let is_in_pm = is_word(line.word(WORDS_PER_LINE - 1), self.end);
            let Some(second) = words.next_if(|next| is_in_pm && follows(next)) else {
                if self.is_word(addr) {
                    let old = self.image.store(addr, new);
                    self.journal.push(Written { addr, old, new });
                    self.words_written += 1;
                }
                continue;
            };
            // Several of a line are written in one step.
            let mut held = self.image.load_line(line);
            let mut next = Some((addr, new));
            let mut after = Some(second);
            while let Some((addr, new)) = next {
                if self.is_word(addr) {
                    let old = std::mem::replace(&mut held[addr.word_in_line()], new);
                    self.journal.push(Written { addr, old, new });
                    self.words_written += 1;
                }
                next = after.take().or_else(|| words.next_if(follows));
            }
            self.image.store_line(line, &held);
        }
    }

    /// Returns true if each stored word is followed, or may have to be prevented.
    #[inline]
    fn stores_one_by_one(&self) -> bool {
        self.is_watched || self.power.is_some() || self.forgets
    }

    /// Lays the words of a mask over a line.
    #[inline]
    pub fn store_line(&mut self, line: LineAddr, mask: WordMask, data: &LineData) {
        if mask.is_power_of_two() {
            let word = mask.trailing_zeros() as usize;
            self.store(line.word(word), data[word]);
            return;
        }
        self.store_all(words_in(mask).map(|i| (line.word(i), data[i])));
    }

    /// Copies the words of a mask from a line to another; returns how many.
    pub fn copy_words(&mut self, from: LineAddr, to: LineAddr, mask: WordMask) -> u64 {
        let count = mask.count_ones().into();
        if count > 1 && !self.is_watched && is_word(from.word(WORDS_PER_LINE - 1), self.end) {
            self.words_read += count;
            let data = self.image.load_line(from);
            self.store_line(to, mask, &data);
            return count;
        }
        for word in words_in(mask) {
            let value = self.load(from.word(word));
            self.store(to.word(word), value);
        }
        count
    }

    /// Zeroes everything in `[start, end)` that is not zero.
    pub fn clear(&mut self, start: Addr, end: Addr) {
        let set: Vec<Addr> =
            self.image.nonzero_words_in(start, end).map(|(addr, _)| addr).collect();
        self.store_all(set.into_iter().map(|addr| (addr, 0)));
    }

    /// For a thread that reads beside others; its accesses are to be reported to [`SurvivingImage::account`].
    pub fn reader(&self) -> Reader<'_> {
        let steps = self.steps.as_ref().map(|_| ThreadSteps::default());
        let used = Used { steps, ..Used::default() };
        Reader { image: &self.image, end: self.end, poison: self.poison, used }
    }

    /// Counts what a reader did on a thread of this number; 0 is the one that recovery began on. What threads do at the
    /// same time is put between two barriers ([`SurvivingImage::barrier`]).
    pub fn account(&mut self, thread: usize, used: Used) {
        self.words_read += used.words_read;
        self.out_of_bounds = self.out_of_bounds.or(used.out_of_bounds);
        self.met_poison |= used.met_poison;
        if let (Some(steps), Some(more)) = (&mut self.steps, used.steps) {
            steps.append(thread, more);
        }
    }

    /// Keeps what recovery does from now on, step by step, for [`SurvivingImage::take_steps`]. It has no influence on
    /// what is read and written.
    pub fn keep_steps(&mut self) {
        (self.steps, self.is_watched) = (Some(Box::default()), true);
    }

    /// The steps of each thread since [`SurvivingImage::keep_steps`], which ends with this; none if it was not called.
    pub fn take_steps(&mut self) -> Vec<ThreadSteps> {
        self.is_watched = self.poison.is_some();
        self.steps.take().map(|steps| steps.into_threads()).unwrap_or_default()
    }

    /// Returns true if steps are kept.
    pub fn keeps_steps(&self) -> bool {
        self.steps.is_some()
    }

    /// The addresses of what is loaded from now on come from what the newest load has read: the machine waits for it.
    #[inline]
    pub fn follow(&mut self) {
        if let Some(steps) = &mut self.steps {
            steps.main().follow();
        }
    }

    /// Addresses are known without a load from now on, as they are at first: loads overlap as far as the core lets them.
    #[inline]
    pub fn addresses_known(&mut self) {
        if let Some(steps) = &mut self.steps {
            steps.main().addresses_known();
        }
    }

    /// Counts `count` operations of a kind that recovery computes.
    #[inline]
    pub fn work(&mut self, kind: Work, count: u64) {
        if let Some(steps) = &mut self.steps {
            steps.main().work(kind, count);
        }
    }

    /// Counts the sort of `items` items: ⌈log2 n⌉ comparisons for each.
    pub fn work_of_sort(&mut self, items: usize) {
        let items = items as u64;
        self.work(Work::Comparison, items * u64::from(items.next_power_of_two().trailing_zeros()));
    }

    /// Makes earlier stores durable before anything that is stored later (a fence).
    #[inline]
    pub fn fence(&mut self) {
        if let Some(steps) = &mut self.steps {
            steps.main().fence();
        }
    }

    /// Stores go past the caches from now on, or do so no more. Words of lines that are loaded never do.
    pub fn bypass_caches(&mut self, bypassing: bool) {
        self.bypassing = bypassing;
    }

    /// All threads of the recovery wait for each other.
    pub fn barrier(&mut self) {
        if let Some(steps) = &mut self.steps {
            steps.barrier();
        }
    }

    /// Writes words on as many threads as there are batches, each of which has its words durable at its end. Where steps are
    /// kept, each thread begins at another share of its batch. Each batch is
    /// in the order of its addresses, and batch `i` of `n` has those of part `i` ([`Image::parts`]).
    pub fn store_parallel(&mut self, batches: &[Vec<(Addr, u64)>]) {
        if let [batch] = batches {
            self.store_all(batch.iter().copied());
            return;
        }
        let mut words = batches.iter().flatten();
        let all_are_words = words.all(|&(addr, _)| self.is_word(addr));
        let is_one_by_one = self.power.is_some() || self.poison.is_some() || !all_are_words;
        if is_one_by_one {
            batches.iter().for_each(|batch| self.store_all(batch.iter().copied()));
            return;
        }
        if let Some(steps) = &mut self.steps {
            for (number, batch) in batches.iter().enumerate() {
                let thread = steps.thread(number);
                let (later, first) = batch.split_at(begin(batch, number, batches.len()));
                let words = first.iter().chain(later);
                words.for_each(|&(addr, value)| thread.store(addr, value, self.bypassing));
                thread.fence();
            }
        }
        let old = self.image.store_parallel(batches);
        for (batch, old) in batches.iter().zip(old) {
            self.words_written += batch.len() as u64;
            if !self.forgets {
                let pairs = batch.iter().zip(old);
                self.journal.extend(pairs.map(|(&(addr, new), old)| Written { addr, old, new }));
            }
        }
    }

    /// Writes bytes at any alignment; the words they touch are written whole.
    pub fn write_bytes(&mut self, addr: Addr, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        if addr.is_word_aligned() && rest.is_empty() {
            let addrs = (0..).map(|word| word_from(addr, word));
            self.store_all(addrs.zip(words).map(|(addr, &word)| (addr, u64::from_le_bytes(word))));
            return;
        }
        let (mut at, mut rest) = (addr.0, bytes);
        while !rest.is_empty() {
            let offset = (at % WORD_BYTES) as usize;
            let aligned = Addr(at - offset as u64);
            let n = rest.len().min(WORD_BYTES as usize - offset);
            let word = match rest.first_chunk() {
                Some(&whole) if offset == 0 => whole,
                _ => {
                    let mut word = self.peek(aligned).to_le_bytes();
                    word[offset..offset + n].copy_from_slice(&rest[..n]);
                    word
                }
            };
            self.store(aligned, u64::from_le_bytes(word));
            rest = &rest[n..];
            at += n as u64;
        }
    }

    /// Words read so far.
    pub fn words_read(&self) -> u64 {
        self.words_read
    }

    /// Words written so far.
    pub fn words_written(&self) -> u64 {
        self.words_written
    }

    /// The bytes as they are now.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Everything written so far, in order.
    pub fn written(&self) -> &[Written] {
        &self.journal
    }

    /// Every word written since the first `skip` writes, with its newest value.
    pub fn newest(&self, skip: usize) -> BTreeMap<Addr, u64> {
        self.journal[skip..].iter().map(|w| (w.addr, w.new)).collect()
    }

    /// Has everything written so far stay: none of it can be taken back.
    pub fn keep_written(&mut self) {
        self.journal.clear();
    }

    /// Takes back the newest writes until `keep` are left.
    pub fn rewind(&mut self, keep: usize) {
        let mut writes = self.journal[keep..].iter().rev().filter(|w| w.old != w.new).peekable();
        while let Some(w) = writes.next() {
            let line = w.addr.line();
            let Some(mut next) = writes.next_if(|next| next.addr.line() == line) else {
                self.image.store(w.addr, w.old);
                continue;
            };
            // Several of a line are taken back in one step.
            let mut words = self.image.load_line(line);
            words[w.addr.word_in_line()] = w.old;
            loop {
                words[next.addr.word_in_line()] = next.old;
                match writes.next_if(|next| next.addr.line() == line) {
                    Some(another) => next = another,
                    None => break,
                }
            }
            self.image.store_line(line, &words);
        }
        self.journal.truncate(keep);
    }

    /// Lets power last for `writes` more writes; the others are lost. `None`: for ever.
    pub fn set_power(&mut self, writes: Option<u64>) {
        self.power = writes;
    }

    /// For how many more writes power lasts; `None`: for ever.
    pub fn power(&self) -> Option<u64> {
        self.power
    }

    /// Keeps what designs have to say, for [`SurvivingImage::notes`].
    pub fn keep_notes(&mut self) {
        self.notes = Some(Vec::new());
    }

    /// Explains what is about to be read or written, for timelines.
    #[inline]
    pub fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push((self.journal.len(), text()));
        }
    }

    /// Notes of designs, each with the number of writes before it.
    pub fn notes(&self) -> &[(usize, String)] {
        self.notes.as_deref().unwrap_or_default()
    }

    /// Gives up the view and keeps what was written.
    pub fn into_image(self) -> Image {
        self.image
    }

    /// The same; what writes were remembered in is given back, too, with no write in it ([`SurvivingImage::reusing`]).
    pub fn into_parts(mut self) -> (Image, Vec<Written>) {
        self.journal.clear();
        (self.image, self.journal)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::recovery_steps::Step;

    /// Rest of the work after words were loaded together, or one by one.
    fn after_loads(
        surviving: &mut SurvivingImage,
        addr: Addr,
        together: bool,
    ) -> impl PartialEq + use<> {
        let words: [u64; 3] = match together {
            true => surviving.load_words(addr),
            false => std::array::from_fn(|word| surviving.load(word_from(addr, word))),
        };
        let steps: Vec<_> = surviving.take_steps().iter().map(|t| t.steps().to_vec()).collect();
        let (read, met) = (surviving.words_read(), surviving.met_poison());
        (words, read, met, surviving.out_of_bounds(), steps)
    }

    #[test]
    fn words_are_loaded_together_as_if_one_by_one() {
        let new = |is_poisoned: bool, keeps_steps: bool| {
            let mut surviving = SurvivingImage::default();
            surviving.set_end(Addr(64 + 32));
            (0..20).for_each(|word| surviving.store(Addr(word * 8), word + 1));
            if is_poisoned {
                surviving.poison(Addr(16), 5);
            }
            if keeps_steps {
                surviving.keep_steps();
            }
            surviving
        };
        for addr in [0, 8, 40, 64, 72, 80, 88].map(Addr) {
            for watched in [[false; 2], [true, false], [false, true], [true; 2]] {
                let [mut a, mut b] = [(); 2].map(|()| new(watched[0], watched[1]));
                assert!(after_loads(&mut a, addr, true) == after_loads(&mut b, addr, false));
                let mut reader = new(watched[0], watched[1]);
                let mut one_by_one = reader.reader();
                let mut together = one_by_one.clone();
                let words: [u64; 3] = together.load_words(addr);
                assert_eq!(words, std::array::from_fn(|w| one_by_one.load(word_from(addr, w))));
                let (a, b) = (together.used(), one_by_one.used());
                assert_eq!((a.words_read, a.out_of_bounds), (b.words_read, b.out_of_bounds));
                assert_eq!(a.met_poison, b.met_poison);
                reader.account(0, a);
            }
        }
        assert_eq!(new(false, false).load_words::<4>(Addr(32)), [5, 6, 7, 8]);
    }

    #[test]
    #[should_panic(expected = "no 3 words of a line at 0x30")]
    fn words_that_are_loaded_together_lie_in_a_line() {
        SurvivingImage::default().load_words::<3>(Addr(48));
    }

    #[test]
    fn steps_are_those_of_words_that_exist_while_power_lasts() {
        let mut surviving = SurvivingImage::default();
        surviving.set_end(Addr(64));
        surviving.store(Addr(0), 1);
        surviving.keep_steps();
        surviving.load(Addr(8));
        surviving.load(Addr(64));
        surviving.set_power(Some(1));
        surviving.bypass_caches(true);
        surviving.store(Addr(16), 5);
        surviving.store(Addr(24), 6);
        surviving.store(Addr(72), 7);
        surviving.work_of_sort(5);
        let [thread] = &surviving.take_steps()[..] else { panic!("one thread") };
        assert_eq!(
            thread.steps(),
            [
                Step::Loads { start: Addr(8), words: 1, origin: 0 },
                Step::Store { addr: Addr(16), value: 5, bypassing: true },
                Step::Work { kind: Work::Comparison, count: 15 },
            ]
        );
        assert!(!surviving.keeps_steps() && surviving.take_steps().is_empty());
    }

    #[test]
    fn bytes_at_any_alignment() {
        let mut cells = Image::new();
        cells.store(Addr(8), u64::MAX);
        let mut surviving = SurvivingImage::new(cells);
        surviving.write_bytes(Addr(13), &[1, 2, 3, 4, 5]);
        let mut back = [0; 7];
        surviving.image().read_bytes(Addr(12), &mut back);
        assert_eq!(back, [0xff, 1, 2, 3, 4, 5, 0]);
        assert_eq!(surviving.words_written(), 2);
        assert_eq!(surviving.written().len(), 2);
        surviving.write_bytes(Addr(16), &[7; 16]);
        assert_eq!([16, 24].map(|at| surviving.peek(Addr(at))), [0x0707_0707_0707_0707; 2]);
        assert_eq!(surviving.words_written(), 4);
    }

    #[test]
    fn threads_write_what_one_would() {
        let words: Vec<(Addr, u64)> = (0..4000u64).map(|n| (Addr(n * 4096), n + 1)).collect();
        let mut one = SurvivingImage::default();
        words.iter().for_each(|&(addr, value)| one.store(addr, value));
        let mut several = SurvivingImage::default();
        let mut batches = vec![Vec::new(); 3];
        let parts = several.image().parts(3);
        words.iter().for_each(|&w| batches[parts.of(w.0)].push(w));
        several.store(words[7].0, 99);
        several.store_parallel(&batches);
        assert_eq!(several.words_written(), 4001);
        let end = Addr(4000 * 4096);
        assert_eq!(one.image().first_difference(several.image(), Addr(0), end), None);
        several.rewind(1);
        assert_eq!(several.peek(words[7].0), 99);
        assert_eq!(several.image().nonzero_lines(), 1);
        several.clear(Addr(0), end);
        assert_eq!(several.image().nonzero_lines(), 0);
        let mut reader = several.reader();
        assert_eq!(reader.load_line(LineAddr(0)), [0; 8]);
        let used = reader.used();
        several.account(0, used);
        assert_eq!(several.words_read(), 8);
    }

    #[test]
    fn words_are_loaded_until_one_is_refused_as_if_one_by_one() {
        for (addr, words, first_refused) in
            [(0, 12, 5), (0, 12, 99), (40, 12, 3), (56, 4, 1), (72, 8, 99), (88, 3, 2), (8, 0, 1)]
        {
            let found = [true, false].map(|is_watched| {
                let mut surviving = SurvivingImage::default();
                surviving.set_end(Addr(64 + 32));
                (0..12).for_each(|word| surviving.store(Addr(word * 8), word + 1));
                if is_watched {
                    surviving.keep_steps();
                }
                let mut loaded = Vec::new();
                let accepted = surviving.load_while(Addr(addr), words, |i, word| {
                    loaded.push((i, word));
                    i != first_refused
                });
                assert_eq!(accepted, first_refused.min(words));
                assert_eq!(
                    surviving.unwatched::<2>(Addr(addr)).is_some(),
                    !is_watched && addr < 88
                );
                (loaded, surviving.words_read(), surviving.out_of_bounds())
            });
            let mut one_by_one = SurvivingImage::default();
            one_by_one.set_end(Addr(64 + 32));
            (0..12).for_each(|word| one_by_one.store(Addr(word * 8), word + 1));
            let until = words.min(first_refused.saturating_add(1));
            let loaded: Vec<(usize, u64)> =
                (0..until).map(|i| (i, one_by_one.load(word_from(Addr(addr), i)))).collect();
            let expected = (loaded, one_by_one.words_read(), one_by_one.out_of_bounds());
            found.iter().for_each(|found| assert_eq!(*found, expected, "{words} from {addr} on"));
        }
    }

    #[derive(Clone, Debug)]
    enum Access {
        Words(Vec<(u64, u64)>),
        Line(u64, u8, LineData),
        Copy(u64, u64, u8),
        Bytes(u64, Vec<u8>),
    }

    impl Access {
        /// Does it, as one would who has no more than loads and stores of words.
        fn word_by_word(&self, image: &mut SurvivingImage) {
            match self {
                Access::Words(words) => {
                    words.iter().for_each(|&(addr, value)| image.store(Addr(addr), value));
                }
                Access::Line(line, mask, data) => words_in(*mask)
                    .for_each(|word| image.store(LineAddr(*line).word(word), data[word])),
                Access::Copy(from, to, mask) => words_in(*mask).for_each(|word| {
                    let value = image.load(LineAddr(*from).word(word));
                    image.store(LineAddr(*to).word(word), value);
                }),
                Access::Bytes(word, bytes) => {
                    for (at, bytes) in (0..).zip(bytes.as_chunks().0) {
                        image.store(Addr((word + at) * 8), u64::from_le_bytes(*bytes));
                    }
                }
            }
        }

        fn together(&self, image: &mut SurvivingImage) {
            match self {
                Access::Words(words) => {
                    image.store_all(words.iter().map(|&(addr, value)| (Addr(addr), value)));
                }
                Access::Line(line, mask, data) => image.store_line(LineAddr(*line), *mask, data),
                Access::Copy(from, to, mask) => {
                    let copied = image.copy_words(LineAddr(*from), LineAddr(*to), *mask);
                    assert_eq!(copied, u64::from(mask.count_ones()));
                }
                Access::Bytes(word, bytes) => image.write_bytes(Addr(word * 8), bytes),
            }
        }
    }

    fn access() -> impl Strategy<Value = Access> {
        let byte = prop_oneof![9 => (0u64..70).prop_map(|word| word * 8), 1 => 0u64..560];
        let words = prop::collection::vec((byte, 0u64..3), 0..9);
        prop_oneof![
            words.prop_map(Access::Words),
            (0u64..9, any::<u8>(), any::<LineData>())
                .prop_map(|(line, mask, data)| Access::Line(line, mask, data)),
            (0u64..9, 0u64..9, any::<u8>())
                .prop_map(|(from, to, mask)| Access::Copy(from, to, mask)),
            (0u64..66, prop::collection::vec(any::<[u8; 8]>(), 0..5))
                .prop_map(|(word, bytes)| Access::Bytes(word, bytes.concat())),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_together_is_what_is_written_word_by_word(
            accesses in prop::collection::vec(access(), 0..12),
            power in prop::option::of(0u64..40),
            poisoned in prop::option::of(0u64..64),
            keeps_steps: bool,
            keep in 0usize..40,
        ) {
            let [mut together, mut one_by_one] = [(); 2].map(|()| {
                let mut image = SurvivingImage::new(Image::of_bytes(1 << 20));
                image.set_end(Addr(64 * 8 + 24));
                image.set_power(power);
                poisoned.into_iter().for_each(|word| image.poison(Addr(word * 8), 99));
                if keeps_steps {
                    image.keep_steps();
                }
                image
            });
            for access in &accesses {
                access.together(&mut together);
                access.word_by_word(&mut one_by_one);
            }
            prop_assert_eq!(together.written(), one_by_one.written());
            let seen = |image: &mut SurvivingImage| {
                let steps: Vec<Vec<Step>> =
                    image.take_steps().iter().map(|thread| thread.steps().to_vec()).collect();
                (steps, image.words_read(), image.words_written(), image.out_of_bounds(), image.power())
            };
            prop_assert_eq!(seen(&mut together), seen(&mut one_by_one));
            prop_assert_eq!(together.met_poison(), one_by_one.met_poison());
            // Taken back, all holds what it held.
            let keep = keep.min(together.written().len());
            let mut held: BTreeMap<Addr, u64> = BTreeMap::new();
            together.written()[..keep].iter().for_each(|w| _ = held.insert(w.addr, w.new));
            together.rewind(keep);
            for addr in (0..70).map(|word| Addr(word * 8)) {
                prop_assert_eq!(together.peek(addr), held.get(&addr).copied().unwrap_or(0));
            }
        }

        #[test]
        fn words_that_are_not_zero_are_those_that_would_be_found_one_by_one(
            written in prop::collection::vec((0u64..3000, 0..3u64), 0..200),
            (first, words, whole) in (0u64..1000, 1usize..2500, any::<bool>()),
        ) {
            let image = if whole { Image::of_bytes(1 << 20) } else { Image::new() };
            let mut surviving = SurvivingImage::new(image);
            surviving.set_end(Addr(3000 * 8));
            written.iter().for_each(|&(word, value)| surviving.store(Addr(word * 8), value));
            let each = (first..first + words as u64).map(|word| Addr(word * 8));
            let held = each.map(|addr| (addr, surviving.peek(addr)));
            let nonzero: Vec<_> = held.filter(|&(_, value)| value != 0).collect();
            let is_in_pm = first + words as u64 <= 3000;
            let mut reader = surviving.reader();
            let found = reader.unwatched_nonzero(Addr(first * 8), words);
            prop_assert_eq!(found, is_in_pm.then_some(nonzero));
            prop_assert_eq!(reader.used().words_read, if is_in_pm { words as u64 } else { 0 });
            surviving.keep_steps();
            prop_assert_eq!(surviving.reader().unwatched_nonzero(Addr(first * 8), words), None);
        }

        #[test]
        fn records_of_slots_are_those_that_would_be_found_one_by_one(
            written in prop::collection::vec((0u64..1200, 0..4u64), 0..300),
            (first, count) in (0u64..600, 0u64..70),
            (stride, whole) in (prop::sample::select(vec![4u64, 8, 16]), any::<bool>()),
            end in prop::sample::select(vec![1200u64, 8192]),
        ) {
            let image = if whole { Image::of_bytes(1 << 20) } else { Image::new() };
            let mut surviving = SurvivingImage::new(image);
            surviving.set_end(Addr(end * 8));
            written.iter().for_each(|&(word, value)| surviving.store(Addr(word * 8), value));
            let mut found = [false, true].map(|is_watched| {
                let before = surviving.words_read();
                if is_watched {
                    surviving.keep_steps();
                }
                let mut records = Vec::new();
                let slots = Slots::new(Addr(first * 8), stride * 8, count);
                slots.visit_used::<4>(&mut surviving, |head| head & 2 != 0, |words| {
                    records.push(*words);
                });
                surviving.take_steps();
                (records, surviving.words_read() - before)
            });
            prop_assert_eq!(&found[0], &found[1]);
            let mut expected = (Vec::new(), 0);
            for slot in 0..count {
                let at = Addr((first + slot * stride) * 8);
                let words: [u64; 4] = std::array::from_fn(|word| surviving.peek(word_from(at, word)));
                let is_used = words[0] & 2 != 0;
                expected.1 += if is_used { 4 } else { 1 };
                expected.0.extend(is_used.then_some(words));
            }
            prop_assert_eq!(std::mem::take(&mut found[0]), expected);
        }

        #[test]
        fn marked_words_are_those_that_would_be_found_one_by_one(
            written in prop::collection::vec((0u64..3000, any::<u64>()), 0..200),
            first in 0u64..1000,
            places in 0u64..500,
            shape in prop::sample::select(vec![(2, 2), (4, 4), (4, 3), (8, 4), (16, 8), (8, 8), (16, 2)]),
            bits in prop::sample::select(vec![1u64 << 63, 1, 0x30]),
        ) {
            let (stride, words) = shape;
            let mut surviving = SurvivingImage::new(Image::of_bytes(1 << 20));
            surviving.set_end(Addr(1 << 20));
            written.iter().for_each(|&(word, value)| surviving.store(Addr(word * 8), value));
            let start = Addr(first * stride as u64 * 8);
            let places_of = (0..places).map(|place| word_from(start, place as usize * stride));
            let each = places_of.flat_map(|place| (0..words).map(move |word| word_from(place, word)));
            let marked: Vec<Addr> = each.filter(|&addr| surviving.peek(addr) & bits != 0).collect();
            match surviving.find_marked(start, places, shape, bits) {
                Some(found) => prop_assert_eq!(found, marked),
                None => prop_assert_eq!(places, 0),
            }
            prop_assert_eq!(surviving.words_read(), places * words as u64);
            surviving.keep_steps();
            prop_assert_eq!(surviving.find_marked(start, places, shape, bits), None);
        }
    }

    #[test]
    fn threads_begin_at_different_shares_of_their_batches_and_at_lines() {
        // The first address of the second part.
        let parts = SurvivingImage::default().image().parts(3);
        let chunk = (0..64).map(|bits| 1 << bits).find(|&at| parts.of(Addr(at)) == 1);
        let chunk = chunk.expect("an image has parts");
        let batch = |thread: u64| (0..16).map(|w| (Addr(thread * chunk + w * 8), w)).collect();
        let mut surviving = SurvivingImage::default();
        surviving.keep_steps();
        surviving.store_parallel(&[batch(0), batch(1), batch(2)]);
        let first = |steps: &ThreadSteps| match steps.steps()[0] {
            Step::Store { addr, .. } => addr.0 % chunk,
            _ => panic!("threads store"),
        };
        let threads = surviving.take_steps();
        assert_eq!(threads.iter().map(first).collect::<Vec<_>>(), [0, 64, 0]);
        assert!(threads.iter().all(|steps| steps.steps().len() == 17));
    }

    #[test]
    fn poison_is_met_by_whoever_reads_it_until_it_is_written() {
        let mut surviving = SurvivingImage::default();
        surviving.store(Addr(8), 1);
        surviving.poison(Addr(8), 0xbad);
        surviving.load(Addr(16));
        assert!(!surviving.met_poison());
        let mut reader = surviving.reader();
        assert_eq!(reader.load(Addr(8)), 0xbad);
        let used = reader.used();
        surviving.account(0, used);
        assert!(surviving.met_poison());
        surviving.poison(Addr(16), 0xbad);
        surviving.store_parallel(&[vec![(Addr(16), 1)], vec![]]);
        assert_eq!((surviving.poisoned(), surviving.met_poison()), (None, false));
        assert_eq!(surviving.load(Addr(16)), 1);
        assert!(!surviving.met_poison());
    }

    #[test]
    fn writes_are_taken_back_newest_first_and_stop_when_power_does() {
        let mut surviving = SurvivingImage::default();
        surviving.set_end(Addr(64));
        for value in 1..=3 {
            surviving.store(Addr(8), value);
        }
        surviving.rewind(2);
        assert_eq!(surviving.peek(Addr(8)), 2);
        surviving.set_power(Some(1));
        surviving.store(Addr(16), 7);
        surviving.store(Addr(24), 7);
        assert_eq!([16, 24].map(|a| surviving.peek(Addr(a))), [7, 0]);
        assert_eq!(surviving.out_of_bounds(), None);
        surviving.store(Addr(64), 1);
        surviving.store(Addr(9), 1);
        assert_eq!((surviving.load(Addr(9)), surviving.out_of_bounds()), (0, Some(Addr(64))));
        surviving.rewind(0);
        assert_eq!([8, 16].map(|a| surviving.peek(Addr(a))), [0, 0]);
    }
}
