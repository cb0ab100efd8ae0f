//! Random numbers: the non-uniform draws of the terminals (clause 2.1.6), last names (clause 4.3.2.3), and the draws that
//! the rows of the initial database are made of.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::TpccConfig;
use crate::costs;
use crate::structures::keys::generator;
use graven_base::memory::spread;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// Last names that there are.
pub(super) const NAMES: u64 = 1000;

/// The last name of a number below [`NAMES`], and its length.
pub(super) fn last_name(number: u64) -> ([u8; 16], usize) {
    let (mut name, mut length) = ([0; 16], 0);
    for digit in [number / 100, number / 10 % 10, number % 10] {
        let syllable = SYLLABLES[digit as usize].as_bytes();
        name[length..length + syllable.len()].copy_from_slice(syllable);
        length += syllable.len();
    }
    (name, length)
}

/// The constants C of the non-uniform draws, which follow from the seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    /// Constant for last names when the database is populated.
    pub(super) load: u64,
    /// Constant for last names in the run. The two differ by 65 to 119, but not by 96 or 112
    /// (clause 2.1.6.1).
    pub(super) run: u64,
    customer: u64,
    item: u64,
}

impl Constants {
    pub(super) fn new(seed: u64) -> Self {
        let load = spread(seed, 1) % 256;
        let allowed = (65..=119).filter(|delta| ![96, 112].contains(delta));
        let delta = allowed.clone().nth((spread(seed, 2) % allowed.count() as u64) as usize);
        let delta = delta.expect("one of so many");
        let run = if load + delta < 256 { load + delta } else { load - delta };
        Constants { load, run, customer: spread(seed, 3) % 1024, item: spread(seed, 4) % 8192 }
    }
}

/// `NURand(A, first, last)` (clause 2.1.6) of two uniform draws, from 0 to `A` and from `first` to `last`.
pub(super) fn non_uniform(a: u64, b: u64, c: u64, (first, last): (u64, u64)) -> u64 {
    ((a | b) + c) % (last - first + 1) + first
}

/// Numbers that follow from a seed and the key of a row.
pub(super) struct Draws(u64);

impl Draws {
    pub(super) fn new(seed: u64, table: u64, key: u64) -> Self {
        Draws(spread(spread(seed, table), key))
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        spread(0, self.0)
    }

    pub(super) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + ((u128::from(self.bits()) * u128::from(last - first + 1)) >> 64) as u64
    }

    pub(super) fn percent(&mut self, share: u64) -> bool {
        self.between(1, 100) <= share
    }

    /// A text of random letters and digits, of `least` to `most` characters.
    pub(super) fn letters<'a>(&mut self, buffer: &'a mut [u8], least: u64, most: u64) -> &'a [u8] {
        const LETTERS: &[u8; 62] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
        self.characters(buffer, (least, most), LETTERS)
    }

    /// Draws a text of random digits.
    pub(super) fn digits<'a>(&mut self, buffer: &'a mut [u8], length: u64) -> &'a [u8] {
        self.characters(buffer, (length, length), b"0123456789")
    }

    fn characters<'a>(
        &mut self,
        buffer: &'a mut [u8],
        (least, most): (u64, u64),
        from: &[u8],
    ) -> &'a [u8] {
        let text = &mut buffer[..self.between(least, most) as usize];
        for eight in text.chunks_mut(8) {
            let bits = self.bits().to_le_bytes();
            for (character, byte) in eight.iter_mut().zip(bits) {
                *character = from[(usize::from(byte) * from.len()) >> 8];
            }
        }
        text
    }
}

/// The draws of a terminal, and the instructions that they take.
pub(super) struct Random {
    generator: Pcg64,
    constants: Constants,
    scale: TpccConfig,
    instructions: u32,
}

impl Random {
    pub(super) fn new(scale: &TpccConfig, seed: u64, thread: u32) -> Self {
        let constants = Constants::new(seed);
        let generator = generator(seed, thread);
        Random { generator, constants, scale: scale.clone(), instructions: 0 }
    }

    pub(super) fn scale(&self) -> &TpccConfig {
        &self.scale
    }

    /// Instructions of the draws since this was asked last.
    pub(super) fn take_instructions(&mut self) -> u32 {
        std::mem::take(&mut self.instructions)
    }

    pub(super) fn between(&mut self, first: u64, last: u64) -> u64 {
        self.instructions += costs::DRAW;
        self.generator.random_range(first..=last)
    }

    pub(super) fn percent(&mut self, share: u64) -> bool {
        self.between(1, 100) <= share
    }

    fn non_uniform(&mut self, a_max: u64, c: u64, range: (u64, u64)) -> u64 {
        let (a, b) = (self.between(0, a_max), self.between(range.0, range.1));
        non_uniform(a, b, c, range)
    }

    pub(super) fn item(&mut self) -> u64 {
        self.non_uniform(8191, self.constants.item, (1, self.scale.items.into()))
    }

    pub(super) fn customer(&mut self) -> u64 {
        let customers = self.scale.customers_per_district.into();
        self.non_uniform(1023, self.constants.customer, (1, customers))
    }

    /// The number of a last name that some customer of each district has.
    pub(super) fn last_name(&mut self) -> u64 {
        let names = NAMES.min(self.scale.customers_per_district.into());
        self.non_uniform(255, self.constants.run, (0, names - 1))
    }

    /// Another warehouse than `home`, if there is one.
    pub(super) fn remote(&mut self, home: u64) -> u64 {
        let warehouses = u64::from(self.scale.warehouses);
        if warehouses == 1 {
            return home;
        }
        let other = self.between(1, warehouses - 1);
        other + u64::from(other >= home)
    }

    pub(super) fn district(&mut self) -> u64 {
        let districts = self.scale.districts.into();
        self.between(1, districts)
    }

    /// Puts things in random order.
    pub(super) fn shuffle<T>(&mut self, things: &mut [T]) {
        for i in (1..things.len()).rev() {
            let other = self.between(0, i as u64) as usize;
            things.swap(i, other);
        }
    }
}
