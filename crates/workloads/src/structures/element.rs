//! The content of a data element: a record whose every word follows from its key and version.
//!
//! | word i | content | changes with the version |
//! |---|---|---|
//! | 0 | stamp: version (24 bits) above key (40 bits) | yes |
//! | 1 mod 4 | an identifier: 64 mixed bits | no |
//! | 2 mod 4 | an amount: a number below 65 536 | yes |
//! | 3 mod 4 | eight lower-case letters | yes |
//! | 0 mod 4, not 0 | reserved: zero | no |
//!
//! Writing an element stores every word, as a copy from volatile memory does; an update therefore
//! stores many words that keep their value. Where `workload.update_bytes` says so, an update stores
//! the first words only, as one of a record's leading fields does; the others stay as in the first
//! version. In a 64 B element 3 of 8 words keep it, and of the
//! bytes about two thirds: MorLog (Fig. 5) counts 70.5 % clean bytes over the WHISPER programs. The
//! mix of small numbers, text, identifiers and zeros is what data compression is given to work on.
//!
//! Where `workload.element_kind` says `string`, the words after the stamp are text instead: eight
//! characters each, lower-case letters, spaces and stops about as often as in English, and all of
//! them change with the version. Bytes of a text differ from each other in a few low bits, and its
//! high bits hardly ever change. Where it says `equal`, they are the same in every element and version, as those of an
//! array that was initialized with one value. An element of 8 B is its stamp, whatever the kind: an integer.

use crate::costs;
use graven_base::memory::{Addr, Image, WORD_BYTES, WORDS_PER_LINE, mix};
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::ElementKind;

/// Bits of a key.
pub const KEY_BITS: u32 = 40;

/// One more than the largest key.
pub const KEY_LIMIT: u64 = 1 << KEY_BITS;

/// Versions that stamps distinguish.
pub const VERSIONS: u64 = 1 << (u64::BITS - KEY_BITS);

/// The shape of the elements of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element {
    /// Words of one element.
    pub words: u64,
    /// Number of words, from the first on, that an update stores (at least one).
    updated: u64,
    kind: ElementKind,
}

/// The characters of texts: each as often as English has it, to one part in 32.
const TEXT: [u8; 32] = *b"     eeeettaaooinshrrdlcumwfgpy.";

/// Word 0 of the element of `key` in `version`.
fn stamp(key: u64, version: u64) -> u64 {
    assert!(key < KEY_LIMIT, "keys have 40 bits");
    version << KEY_BITS | key
}

/// Counts the volatile side of copying `words` words, a line's worth at a time: called for each
/// `index` in turn, it says nothing but at the first word of each eight.
pub fn copy_line<M: Memory>(m: &mut M, index: u64, words: u64) {
    let line = WORDS_PER_LINE as u64;
    if index.is_multiple_of(line) {
        m.compute(costs::WORD * (words - index).min(line) as u32);
    }
}

impl Element {
    /// Elements of `bytes` bytes, rounded up to whole words.
    pub const fn of_bytes(bytes: u64) -> Self {
        let words = bytes.div_ceil(WORD_BYTES);
        Self { words, updated: words, kind: ElementKind::Record }
    }

    /// The same, of this kind.
    pub fn of_kind(self, kind: ElementKind) -> Self {
        Self { kind, ..self }
    }

    /// The same, of which an update stores the first `bytes` bytes only (not 0), rounded up to whole
    /// words; all of it if it has no more.
    pub fn updating(self, bytes: u64) -> Self {
        Self { updated: bytes.div_ceil(WORD_BYTES).min(self.words), ..self }
    }

    /// Bytes that an update stores.
    pub fn updated_bytes(&self) -> u64 {
        self.updated * WORD_BYTES
    }

    /// The word of a node at which its element begins, if the node's own fields take `header_words`
    /// words: right after them if both fit in one line, else on the second line, so that an element
    /// of one line is never spread over two.
    pub const fn word_after(&self, header_words: u64) -> u64 {
        let line = WORDS_PER_LINE as u64;
        if header_words + self.words <= line { header_words } else { line }
    }

    /// Word `index` of the element with this stamp.
    pub fn content(&self, stamp: u64, index: u64) -> u64 {
        let salt = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match (self.kind, index % 4) {
            _ if index == 0 => stamp,
            (ElementKind::String, _) => {
                let drawn = mix(stamp ^ salt).to_le_bytes();
                u64::from_le_bytes(drawn.map(|byte| TEXT[usize::from(byte % 32)]))
            }
            (ElementKind::Equal, _) => salt,
            (ElementKind::Record, 1) => mix((stamp % KEY_LIMIT) ^ salt),
            (ElementKind::Record, 2) => mix(stamp ^ salt) & 0xffff,
            (ElementKind::Record, 3) => {
                (mix(stamp ^ salt) & 0x0f0f_0f0f_0f0f_0f0f) + 0x6161_6161_6161_6161
            }
            (ElementKind::Record, _) => 0,
        }
    }

    /// Word `index` of the first version of the element of `key`.
    pub fn first_content(&self, key: u64, index: u64) -> u64 {
        self.content(stamp(key, 1), index)
    }

    /// Writes the first version of the element of `key` at `at`.
    pub fn create<M: Memory>(&self, m: &mut M, at: Ptr, key: u64) {
        self.write(m, at, stamp(key, 1), self.words);
    }

    /// Writes all of the element of `key` at `at`, of `version` modulo 2^24 of which no word stays as it was in another.
    pub fn create_version<M: Memory>(&self, m: &mut M, at: Ptr, key: u64, version: u64) {
        assert_eq!(self.updated, self.words, "no word is left to the first version");
        self.write(m, at, stamp(key, version % VERSIONS), self.words);
    }

    /// Reads all words of the element at `at`, as one who copies it does.
    pub fn read<M: Memory>(&self, m: &mut M, at: Ptr) {
        for i in 0..self.words {
            copy_line(m, i, self.words);
            m.load(at.word(i));
        }
    }

    /// Writes the next version of the element at `at`: the words that an update stores.
    pub fn update<M: Memory>(&self, m: &mut M, at: Ptr) {
        let old = m.load(at);
        let next = stamp(old % KEY_LIMIT, (old >> KEY_BITS).wrapping_add(1));
        self.write(m, at, next, self.updated);
    }

    fn write<M: Memory>(&self, m: &mut M, at: Ptr, stamp: u64, words: u64) {
        for i in 0..words {
            copy_line(m, i, words);
            m.store(at.word(i), self.content(stamp, i));
        }
    }

    /// Checks that the element at `at` is whole and that of `key`.
    ///
    /// # Errors
    /// As [`Element::check`], and which key it has instead.
    pub fn check_of(&self, image: &Image, at: Addr, key: u64) -> Result<(), String> {
        match self.check(image, at)? {
            found if found == key => Ok(()),
            found => Err(format!("element at {at} holds key {found}, not {key}")),
        }
    }

    /// The version of the element at `at`, modulo 2^24.
    pub fn version(&self, image: &Image, at: Addr) -> u64 {
        image.load(at) >> KEY_BITS
    }

    /// Checks that the element at `at` is whole, and returns its key.
    ///
    /// # Errors
    /// Says which word is not of the version that the stamp names, or of the first one if updates
    /// leave it alone.
    pub fn check(&self, image: &Image, at: Addr) -> Result<u64, String> {
        let named = image.load(at);
        let (key, version) = (named % KEY_LIMIT, named >> KEY_BITS);
        let first = stamp(key, 1);
        for i in 1..self.words {
            let stamp = if i < self.updated { named } else { first };
            let (found, expected) = (image.load(at.plus(i * WORD_BYTES)), self.content(stamp, i));
            if found != expected {
                return Err(format!(
                    "element at {at} is torn: word {i} of key {key}, version {version} is {found:#x}, not {expected:#x}"
                ));
            }
        }
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_machine::program::Direct;

    const AT: Ptr = Ptr::known(Addr(640));

    #[test]
    fn an_update_keeps_the_key_and_about_two_thirds_of_the_bytes() {
        let element = Element::of_bytes(64);
        let mut image = Image::new();
        element.create(&mut Direct::new(&mut image), AT, 99);
        let before = image.load_line(AT.addr.line());
        element.update(&mut Direct::new(&mut image), AT);
        let after = image.load_line(AT.addr.line());
        assert_eq!(element.check(&image, AT.addr), Ok(99));
        let kept = before.iter().zip(&after).filter(|(a, b)| a == b).count();
        assert_eq!(kept, 3);
        let bytes = |line: &[u64; 8]| line.map(u64::to_le_bytes).concat();
        let clean = bytes(&before).iter().zip(bytes(&after)).filter(|&(&a, b)| a == b).count();
        assert!((38..=48).contains(&clean), "{clean} of 64 bytes are clean");
    }

    #[test]
    fn a_string_is_text_that_changes_with_the_version() {
        let element = Element::of_bytes(256).of_kind(ElementKind::String);
        let mut image = Image::new();
        element.create(&mut Direct::new(&mut image), AT, 99);
        let text = |image: &Image| {
            let words = (1..32).map(|i| image.load(AT.word(i).addr));
            words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()
        };
        let before = text(&image);
        assert!(before.iter().all(|&c| c == b' ' || c == b'.' || c.is_ascii_lowercase()));
        let spaces = before.iter().filter(|&&c| c == b' ').count();
        assert!((20..60).contains(&spaces), "{spaces} spaces in {} characters", before.len());
        element.update(&mut Direct::new(&mut image), AT);
        assert_eq!(element.check(&image, AT.addr), Ok(99));
        let kept = before.iter().zip(text(&image)).filter(|&(&a, b)| a == b).count();
        assert!(kept < 40, "{kept} of {} characters are kept", before.len());
        a_word_of_another_version_is_seen(Element::of_bytes(100).of_kind(ElementKind::String));
        // An integer is an integer.
        let integer = Element::of_bytes(8);
        assert_eq!(
            integer.first_content(7, 0),
            integer.of_kind(ElementKind::String).first_content(7, 0)
        );
    }

    #[test]
    fn an_update_stores_no_more_than_it_should() {
        let element = Element::of_bytes(1024).updating(60);
        let mut image = Image::new();
        element.create(&mut Direct::new(&mut image), AT, 99);
        let created = image.clone();
        for version in 2..5 {
            element.update(&mut Direct::new(&mut image), AT);
            assert_eq!(element.check(&image, AT.addr), Ok(99));
            assert_eq!(image.load(AT.addr) >> KEY_BITS, version);
        }
        let (rest, end) = (AT.word(8).addr, AT.word(128).addr);
        assert_eq!(image.first_difference(&created, rest, end), None);
        assert!(image.first_difference(&created, AT.word(7).addr, rest).is_some());

        image.store(AT.word(9).addr, 1);
        let torn = element.check(&image, AT.addr).expect_err("a word that updates leave alone");
        assert!(torn.contains("word 9 of key 99"), "{torn}");
        // Of a smaller element they store all.
        assert_eq!(Element::of_bytes(24).updating(1024), Element::of_bytes(24));
    }

    #[test]
    fn any_word_of_another_version_is_seen() {
        // Of fewer than three words only the stamp changes, which is a version by itself.
        for updated in [13, 4, 3] {
            a_word_of_another_version_is_seen(Element::of_bytes(100).updating(updated * 8));
        }
    }

    fn a_word_of_another_version_is_seen(element: Element) {
        assert_eq!(element.words, 13);
        for i in 0..element.words {
            let mut image = Image::new();
            element.create(&mut Direct::new(&mut image), AT, 7);
            let old = image.load(AT.word(i).addr);
            element.update(&mut Direct::new(&mut image), AT);
            let changed = image.store(AT.word(i).addr, old) != old;
            assert_eq!(element.check(&image, AT.addr).is_err(), changed, "word {i}");
        }
    }
}
