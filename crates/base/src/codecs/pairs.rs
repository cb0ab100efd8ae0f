//! Symbols in two cells: the expansion levels of three and six states, by table.

use super::bits::Bits;
use super::expansion::{CHEAPEST_FIRST, DATA_CELLS, Level};
use super::planes::Planes;

/// Two symbols at a time: their bits to the states of their four cells, three nibbles of bit planes.
type Pairs<const N: usize> = [u16; N];

pub(super) static THREE: Pairs<64> = pairs::<64>(Level::Three);
pub(super) static SIX: Pairs<1024> = pairs::<1024>(Level::Six);

/// Back: the states of a symbol's two cells, two bits of each plane, to its value; 0 for states not in use.
pub(super) static THREE_INVERSE: [u8; 64] = inverse(Level::Three);
pub(super) static SIX_INVERSE: [u8; 64] = inverse(Level::Six);

/// The states of the two cells of a symbol.
const fn symbol(level: Level, value: usize) -> [u8; 2] {
    let states = level.states() as usize;
    [CHEAPEST_FIRST[value / states], CHEAPEST_FIRST[value % states]]
}

const fn pairs<const N: usize>(level: Level) -> Pairs<N> {
    let one = 1 << level.symbol_bits();
    let mut table = [0; N];
    let mut value = 0;
    while value < N {
        let (first, second) = (symbol(level, value % one), symbol(level, value / one));
        let states = [first[0], first[1], second[0], second[1]];
        let mut cell = 0;
        while cell < 4 {
            let state = states[cell] as u16;
            table[value] |= (state & 1 | (state & 2) << 3 | (state & 4) << 6) << cell;
            cell += 1;
        }
        value += 1;
    }
    table
}

const fn inverse(level: Level) -> [u8; 64] {
    let mut table = [0; 64];
    let mut value = 0;
    while value < 1 << level.symbol_bits() {
        let [first, second] = symbol(level, value);
        let mut states = 0;
        let mut bit = 0;
        while bit < 3 {
            states |= (first >> bit & 1 | (second >> bit & 1) << 1) << (2 * bit);
            bit += 1;
        }
        table[states as usize] = value as u8;
        value += 1;
    }
    table
}

/// Sixteen cells at a time, in three lanes of 16 bits.
#[inline]
pub(super) fn expand<const BITS: u32>(table: &[u16], bits: &Bits) -> Planes {
    // Moves the nibbles of an entry 12 bits apart, to the lowest place of their lanes.
    const SPREAD: u64 = 0x0100_1001;
    let mut planes = [[0; 3]; 3];
    for group in 0..DATA_CELLS.div_ceil(16) {
        let window = bits.window(8 * BITS * group);
        let mut lanes = 0;
        for quad in 0..4 {
            let value = window >> (2 * BITS * quad) & ((1 << (2 * BITS)) - 1);
            let states = (u64::from(table[value as usize]) * SPREAD) & 0x000f_000f_000f;
            lanes |= states << (4 * quad);
        }
        let (word, shift) = (group as usize / 4, 16 * (group % 4));
        for (bit, plane) in planes.iter_mut().enumerate() {
            plane[word] |= (lanes >> (16 * bit) & 0xffff) << shift;
        }
    }
    planes
}

/// The inverse of [`expand`].
#[inline]
pub(super) fn contract<const BITS: u32>(inverse: &[u8; 64], cells: &Planes) -> [u64; 9] {
    let mut bits = Bits::new();
    for group in 0..DATA_CELLS.div_ceil(16) {
        let (word, shift) = (group as usize / 4, 16 * (group % 4));
        let [low, middle, high] = [0, 1, 2].map(|bit| cells[bit][word] >> shift);
        let mut values = 0;
        for pair in 0..8 {
            let of = |plane: u64| plane >> (2 * pair) & 3;
            let states = of(low) | of(middle) << 2 | of(high) << 4;
            values |= u64::from(inverse[states as usize]) << (BITS * pair);
        }
        bits.push(values, 8 * BITS);
    }
    let mut words = [0; 9];
    words.copy_from_slice(&bits.words()[..9]);
    words
}
