//! A map from words to values.

use super::{Addr, WORD_BYTES};
use crate::bits::ones;

/// Stands for a piece that is absent.
const NOWHERE: u32 = u32::MAX;

/// Numbers that are close to each other are not, multiplied by this (2^64 over the golden ratio).
const SPREADING: u64 = 0x9e37_79b9_7f4a_7c15;

/// Words of a piece.
const PIECE_WORDS: usize = u64::BITS as usize;
/// Bytes of a piece.
const PIECE_BYTES: u64 = PIECE_WORDS as u64 * WORD_BYTES;

/// Values of words, many of which lie together: what is known of a piece of memory is kept together, and neither finding the
/// piece of the word that was asked for last nor putting the words in order costs much. Addresses between those of words are
/// possible.
#[derive(Clone, Debug)]
pub struct WordMap<V> {
    pieces: Vec<Piece>,
    values: Vec<V>,
    /// Place of each piece, or [`NOWHERE`]: the first free one from that on to which its number
    /// spreads. The table has a power of two of places, at least twice as many as there are pieces.
    table: Vec<u32>,
    /// Place of the piece that was asked for last.
    newest: usize,
}

#[derive(Clone, Debug)]
struct Piece {
    number: u64,
    /// Words that have a value, as bits.
    known: u64,
    /// Place of the value, by word; arbitrary for a word without one.
    places: [u32; PIECE_WORDS],
}

/// The number of an address's piece, and its place in it. Addresses that are as far behind the last word share pieces.
#[inline]
fn locate(addr: Addr) -> (u64, usize) {
    let word = (addr.0 / WORD_BYTES) as usize % PIECE_WORDS;
    (addr.0 / PIECE_BYTES * WORD_BYTES + addr.0 % WORD_BYTES, word)
}

impl<V: Copy> WordMap<V> {
    /// Makes an empty map that has room for `words` words, in `pieces` pieces of memory.
    pub fn with_capacity(words: usize, pieces: usize) -> WordMap<V> {
        WordMap {
            pieces: Vec::with_capacity(pieces),
            values: Vec::with_capacity(words),
            table: vec![NOWHERE; 2 * pieces.next_power_of_two()],
            newest: 0,
        }
    }

    /// Finds the place of a piece.
    #[inline]
    fn find(&self, number: u64) -> Option<usize> {
        match self.pieces.get(self.newest) {
            Some(piece) if piece.number == number => Some(self.newest),
            _ => self.look_up(number).ok(),
        }
    }

    /// Finds the place of a piece, or else the place of the table where it belongs.
    #[inline]
    fn look_up(&self, number: u64) -> Result<usize, usize> {
        let mask = self.table.len() - 1;
        let mut place = (number.wrapping_mul(SPREADING) >> (u64::BITS / 2)) as usize & mask;
        loop {
            let at = self.table[place];
            if at == NOWHERE {
                return Err(place);
            }
            if self.pieces[at as usize].number == number {
                return Ok(at as usize);
            }
            place = (place + 1) & mask;
        }
    }

    /// The value of a word.
    #[inline]
    pub fn get(&self, addr: Addr) -> Option<V> {
        let (number, at) = locate(addr);
        let piece = &self.pieces[self.find(number)?];
        (piece.known >> at & 1 != 0).then(|| self.values[piece.places[at] as usize])
    }

    /// Gives a word a value, by the one that it has.
    #[inline]
    pub fn update(&mut self, addr: Addr, value: impl FnOnce(Option<V>) -> V) {
        let (number, at) = locate(addr);
        self.newest = self.find(number).unwrap_or_else(|| self.add(number));
        let piece = &mut self.pieces[self.newest];
        if piece.known >> at & 1 != 0 {
            let known = &mut self.values[piece.places[at] as usize];
            *known = value(Some(*known));
            return;
        }
        piece.known |= 1 << at;
        piece.places[at] = u32::try_from(self.values.len()).expect("words of a log are fewer");
        self.values.push(value(None));
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, number: u64) -> usize {
        let at = self.pieces.len();
        if 2 * (at + 1) > self.table.len() {
            self.table = vec![NOWHERE; 2 * self.table.len()];
            for at in 0..at {
                self.enter(at);
            }
        }
        self.pieces.push(Piece { number, known: 0, places: [0; PIECE_WORDS] });
        self.enter(at);
        at
    }

    /// Enters a piece into the table.
    fn enter(&mut self, at: usize) {
        let place = self.look_up(self.pieces[at].number).expect_err("a piece is entered once");
        self.table[place] = u32::try_from(at).expect("pieces of a log are fewer");
    }

    /// Gives a word a value.
    #[inline]
    pub fn insert(&mut self, addr: Addr, value: V) {
        self.update(addr, |_| value);
    }

    /// Takes the value of a word away.
    pub fn remove(&mut self, addr: Addr) {
        let (number, at) = locate(addr);
        if let Some(piece) = self.find(number) {
            self.pieces[piece].known &= !(1 << at);
        }
    }

    /// Number of words that have a value.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.known.count_ones() as usize).sum()
    }

    /// Returns true if no word has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All words that have a value, in no order that means anything.
    pub fn iter(&self) -> impl Iterator<Item = (Addr, V)> + '_ {
        self.pieces.iter().flat_map(|piece| piece.known(&self.values))
    }

    /// All words that have a value, in the order of their addresses, with what is made of their values.
    pub fn in_order<T>(&self, of: impl Fn(V) -> T) -> Vec<(Addr, T)> {
        let pieces = self.pieces.iter().enumerate();
        let mut order: Vec<(u64, usize)> = pieces.map(|(at, piece)| (piece.number, at)).collect();
        order.sort_unstable();
        let mut words = Vec::with_capacity(self.len());
        order.iter().for_each(|&(_, at)| {
            words
                .extend(self.pieces[at].known(&self.values).map(|(addr, value)| (addr, of(value))));
        });
        if order.iter().any(|&(number, _)| !number.is_multiple_of(WORD_BYTES)) {
            words.sort_unstable_by_key(|&(addr, _)| addr);
        }
        words
    }
}

impl Piece {
    /// Words that have a value, out of all values.
    fn known<'a, V: Copy>(&'a self, values: &'a [V]) -> impl Iterator<Item = (Addr, V)> + 'a {
        let start = self.number / WORD_BYTES * PIECE_BYTES + self.number % WORD_BYTES;
        ones(self.known).map(move |at| {
            (Addr(start + u64::from(at) * WORD_BYTES), values[self.places[at as usize] as usize])
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_what_a_map_of_addresses_is(
            steps in prop::collection::vec(
                (0u8..4, prop_oneof![3 => (0u64..300).prop_map(|word| word * 8), 1 => any::<u64>()], any::<u16>()),
                0..300,
            ),
        ) {
            let (mut words, mut map) = (WordMap::with_capacity(9, 2), BTreeMap::new());
            for (what, addr, value) in steps {
                let addr = Addr(addr);
                match what {
                    0 => {
                        words.remove(addr);
                        map.remove(&addr);
                    }
                    1 => {
                        let more = |old: Option<u16>| old.unwrap_or(7).wrapping_add(value);
                        words.update(addr, more);
                        map.insert(addr, more(map.get(&addr).copied()));
                    }
                    _ => {
                        words.insert(addr, value);
                        map.insert(addr, value);
                    }
                }
                prop_assert_eq!(words.get(addr), map.get(&addr).copied());
                prop_assert_eq!((words.len(), words.is_empty()), (map.len(), map.is_empty()));
            }
            let plain: Vec<(Addr, u16)> = map.into_iter().collect();
            prop_assert_eq!(&words.in_order(|value| value), &plain);
            let mut all: Vec<(Addr, u16)> = words.iter().collect();
            all.sort_unstable();
            prop_assert_eq!(all, plain);
        }
    }
}
