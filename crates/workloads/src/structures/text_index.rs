//! A hash index in PM from the decimal digits of a number, as text, to a word: a pointer or an identifier.
//!
//! What databases keep for a column of text that spells a number: a telephone number, a customer's
//! name in a benchmark. Stripes, buckets and chains are those of [`chains`]. Node, one
//! block:
//!
//! | word | content |
//! |---|---|
//! | 0 | next node of the chain, or 0 |
//! | 1 | what the text leads to |
//! | 2.. or 8.. | the text, eight characters in a word, the first in its lowest byte; in the node's first line if it fits there, else from the second. After the digits: zero |
//!
//! A text's stripe is its number modulo the number of stripes, as that of the rows in a
//! [`table`](super::table) whose owner has this number.

use super::allocator::{Arena, Census, Class, block_bytes};
use super::chains::{self, Chains};
use super::element::Element;
use super::table::bucket;
use crate::costs;
use graven_base::memory::{Addr, LINE_BYTES, WORD_BYTES, spread};
use graven_machine::program::{Load, Memory, Ptr};
use graven_machine::workload::Checked;

const VALUE: u64 = chains::HEADER_WORDS;

/// Characters of a word.
const PER_WORD: u64 = WORD_BYTES;

/// Word `index` of a text of so many digits that spells `number`, with leading zeros.
pub fn digits_word(number: u64, digits: u64, index: u64) -> u64 {
    let character = |at: u64| match at < digits {
        true => u64::from(b'0') + place(number, digits - 1 - at),
        false => 0,
    };
    (0..PER_WORD).fold(0, |word, i| word | character(index * PER_WORD + i) << (8 * i))
}

/// The decimal digit of weight 10^exponent.
fn place(number: u64, exponent: u64) -> u64 {
    10u64.checked_pow(exponent as u32).map_or(0, |weight| number / weight % 10)
}

/// Number that a text of `digits` digits spells; `None` if it is not one.
pub fn number_of(mut word: impl FnMut(u64) -> u64, digits: u64) -> Option<u64> {
    let words = digits.div_ceil(PER_WORD);
    let mut number = 0u64;
    for at in 0..words * PER_WORD {
        let character = word(at / PER_WORD) >> (8 * (at % PER_WORD)) & 0xff;
        match character.checked_sub(b'0'.into()) {
            Some(digit @ 0..10) if at < digits => {
                number = number.checked_mul(10)?.checked_add(digit)?;
            }
            _ if at >= digits && character == 0 => {}
            _ => return None,
        }
    }
    Some(number)
}

/// The handle of an index.
#[derive(Clone, Copy, Debug)]
pub struct TextIndex {
    chains: Chains,
    class: Class,
    digits: u64,
}

impl TextIndex {
    /// The index of texts of `digits` digits, whose stripes and buckets begin at `root`, and whose
    /// nodes are blocks of `class`.
    pub fn new(
        root: Addr,
        stripes: u32,
        buckets_per_stripe: u64,
        class: Class,
        digits: u64,
    ) -> Self {
        assert!(digits > 0, "a text has a digit");
        let buckets = buckets_per_stripe * u64::from(stripes);
        Self { chains: Chains::new(root, stripes, buckets), class, digits }
    }

    /// Bytes of a node.
    pub const fn node_bytes(digits: u64) -> u64 {
        block_bytes(text_word(digits) + digits.div_ceil(PER_WORD))
    }

    fn words(&self) -> u64 {
        self.digits.div_ceil(PER_WORD)
    }

    fn text(&self, number: u64, index: u64) -> u64 {
        digits_word(number, self.digits, index)
    }

    fn bucket_of(&self, number: u64) -> u64 {
        let hash = (0..self.words()).fold(0, |hash, i| spread(hash, self.text(number, i)));
        bucket(&self.chains, number, hash)
    }

    /// Makes the index empty.
    pub fn format<M: Memory>(&self, m: &mut M) {
        self.chains.format(m);
    }

    /// Value of the text that spells `number`, or null. Nodes' texts are compared word by word.
    pub fn find<L: Load>(&self, m: &mut L, number: u64) -> Ptr {
        m.compute(costs::HASH * self.words() as u32);
        let (node, _) = self.chains.find(m, self.bucket_of(number), |m, node| {
            (0..self.words()).all(|i| {
                m.compute(costs::COMPARE);
                m.load(node.word(text_word(self.digits) + i)) == self.text(number, i)
            })
        });
        if node.is_null() { Ptr::NULL } else { m.load_ptr(node.word(VALUE)) }
    }

    /// Lets the text that spells `number`, which must be absent, lead to `value`.
    pub fn insert<M: Memory>(&self, m: &mut M, arena: &Arena, number: u64, value: Ptr) {
        self.chains.insert(m, (arena, self.class), self.bucket_of(number), |m, node| {
            m.store_ptr(node.word(VALUE), value);
            for i in 0..self.words() {
                m.store(node.word(text_word(self.digits) + i), self.text(number, i));
            }
        });
    }

    /// Walks the index, accounts for each node with the census, and calls `visit` with each number and
    /// what it leads to. No text is there twice.
    ///
    /// # Errors
    /// The first violation, of the index or found by `visit`. Ends on any image.
    pub fn walk(
        &self,
        census: &mut Census<'_>,
        visit: &mut dyn FnMut(u64, u64) -> Result<(), String>,
    ) -> Checked {
        self.chains.walk(census, self.class, &mut |census, node, index| {
            let image = census.image();
            let word = |i| image.load(node.plus((text_word(self.digits) + i) * WORD_BYTES));
            let Some(number) = number_of(word, self.digits) else {
                let what = format!("node {node} has a text that is not {} digits", self.digits);
                return Err(census.broken(what));
            };
            let bucket = self.bucket_of(number);
            census.ensure(bucket == index, || {
                format!(
                    "node {node} of number {number} is in the chain of bucket {index}, not {bucket}"
                )
            })?;
            let value = census.load(node.plus(VALUE * WORD_BYTES));
            visit(number, value).map_err(|what| census.broken(what))?;
            Ok(number)
        })
    }
}

/// The word of a node at which its text begins.
const fn text_word(digits: u64) -> u64 {
    Element::of_bytes(digits).word_after(VALUE + 1)
}

const _: () = assert!(text_word(15) == 2 && text_word(64) * WORD_BYTES == LINE_BYTES);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::Check;
    use graven_base::memory::Image;
    use graven_machine::program::Direct;
    use proptest::prelude::*;

    const HEADER: Addr = Addr(65536);
    const START: Addr = Addr(65600);

    fn index(digits: u64, stripes: u32, each: u64) -> (TextIndex, Arena) {
        let sizes = [TextIndex::node_bytes(digits), 0];
        let arena = Arena::new(HEADER, START, Addr(1 << 22), sizes);
        (TextIndex::new(Addr(4096), stripes, each, 0, digits), arena)
    }

    fn filled(index: &TextIndex, arena: &Arena, numbers: &BTreeMap<u64, u64>) -> Image {
        let mut image = Image::new();
        let mut m = Direct::new(&mut image);
        index.format(&mut m);
        arena.format(&mut m);
        for (&number, &value) in numbers {
            index.insert(&mut m, arena, number, Ptr::known(Addr(value)));
        }
        image
    }

    fn contents(index: &TextIndex, arena: &Arena, image: &Image) -> Checked<BTreeMap<u64, u64>> {
        let mut census = Census::begin("test".into(), image, &[*arena])?;
        let mut numbers = BTreeMap::new();
        index.walk(&mut census, &mut |number, value| {
            numbers.insert(number, value);
            Ok(())
        })?;
        census.finish()?;
        Ok(numbers)
    }

    proptest! {
        #[test]
        fn digits_are_read_back(number in 0..1_000_000_000_000_000u64, digits in 15..70u64) {
            let word = |i| digits_word(number, digits, i);
            prop_assert_eq!(number_of(word, digits), Some(number));
            let text: Vec<u8> = (0..digits.div_ceil(8)).flat_map(|i| word(i).to_le_bytes()).collect();
            let (text, after) = text.split_at(digits as usize);
            let expected = format!("{number:0width$}", width = digits as usize);
            prop_assert_eq!(text, expected.as_bytes());
            prop_assert!(after.iter().all(|&byte| byte == 0));
        }

        #[test]
        fn it_behaves_as_a_map(
            numbers in prop::collection::btree_map(0..100_000u64, 1..u64::MAX, 0..100),
            digits in prop_oneof![Just(5u64), Just(15), Just(16), Just(64)],
            stripes in 1..5u32,
            each in 1..30u64,
        ) {
            let (index, arena) = index(digits, stripes, each);
            let mut image = filled(&index, &arena, &numbers);
            prop_assert_eq!(contents(&index, &arena, &image), Ok(numbers.clone()));
            let mut m = Direct::new(&mut image);
            for number in 0..300 {
                let found = index.find(&mut m, number);
                prop_assert_eq!(found.addr.0, numbers.get(&number).copied().unwrap_or(0));
            }
        }
    }

    #[test]
    fn each_broken_invariant_is_named_and_the_check_ends_on_any_word() {
        let (index, arena) = index(15, 2, 1);
        let numbers = BTreeMap::from([(2, 20), (4, 40), (5, 50)]);
        let mut image = filled(&index, &arena, &numbers);
        let first = Addr(image.load(index.chains.bucket(0).addr));
        let mut check = Check::of(&mut image, |image| contents(&index, &arena, image));
        let text = first.plus(3 * 8);
        check.finds(text, digits_word(5, 15, 1), "of number 5 is in the chain of bucket 0, not 1");
        check.finds(text, digits_word(2, 15, 1), "key 2 is twice in bucket 0");
        check.finds(first.plus(2 * 8), 0, "has a text that is not 15 digits");
        check.finds(text, digits_word(4, 16, 1), "has a text that is not 15 digits");
        check.finds(first, 0, "1 elements in stripe 0, but its count says 2");
        let words = (HEADER.0..START.0 + 3 * 64).step_by(8);
        check.ends_on_any_word(words, &[4096, START.0]);
        assert_eq!(contents(&index, &arena, &image), Ok(numbers));
    }
}
