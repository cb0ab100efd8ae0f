//! The columns of TATP's tables, as words of rows, and what the population draws for them.
//!
//! | row | word | columns |
//! |---|---|---|
//! | Subscriber, of key s_id | 2, 3 | sub_nbr: 15 digits, the number s_id |
//! | | 4 | bit_1 to bit_10 in bits 0 to 9; hex_1 to hex_10, four bits each, from bit 16 on |
//! | | 5, 6 | byte2_1 to byte2_10, a byte each |
//! | | 7 | msc_location (low half), vlr_location (high half): 1 to 2^32 - 1 |
//! | Access_Info, of key s_id, ai_type | 2 | data1, data2: a byte each; data3: 3 letters |
//! | | 3 | data4: 5 letters |
//! | Special_Facility, of key s_id, sf_type | 2 | is_active, error_cntrl, data_a: a byte each |
//! | | 3 | data_b: 5 letters |
//! | Call_Forwarding, of key s_id, sf_type, start_time | 2 | end_time: 1 to 24 |
//! | | 3, 4 | numberx: 15 digits |
//!
//! A key is s_id · 4 + type - 1; that of Call_Forwarding four times this, and start_time / 8. All values
//! are drawn uniformly, but is_active, which is 1 for 85 %: for a subscriber 1 to 4 rows of Access_Info
//! and of Special_Facility of different types, for a facility 0 to 3 rows of Call_Forwarding of different
//! start times (0, 8, 16), which end 1 to 8 hours after they start. They depend on nothing but seed and
//! subscriber, so that a check can draw them again.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::DIGITS;
use crate::structures::keys::generator;
use crate::structures::table::COLUMNS;
use crate::structures::text_index::{digits_word, number_of};

/// Types of access infos, and of special facilities.
pub(super) const TYPES: u64 = 4;

/// Start times of a call forwarding: every eighth hour.
pub(super) const START_TIMES: u64 = 3;

/// Hours from one start time to the next.
pub(super) const HOURS: u64 = 8;

/// Hours of a day: the last end time.
pub(super) const DAY: u64 = 24;

/// Percentage of the facilities that are active.
const ACTIVE_PERCENT: u32 = 85;

pub(super) const SUBSCRIBER_COLUMNS: u64 = 6;
pub(super) const FACILITY_COLUMNS: usize = 2;

/// Words of a subscriber's row that transactions update.
pub(super) const BITS: u64 = COLUMNS + 2;
pub(super) const LOCATIONS: u64 = COLUMNS + 5;

/// Words of a facility's row.
pub(super) const FACILITY: u64 = COLUMNS;

/// Words of a call forwarding's row.
pub(super) const END_TIME: u64 = COLUMNS;
pub(super) const NUMBERX: u64 = COLUMNS + 1;

/// The key of an access info or special facility; `kind` is its type less one.
pub(super) fn key_of_facility(s_id: u64, kind: u64) -> u64 {
    s_id * TYPES + kind
}

/// The key of a call forwarding that starts at the hour 8 · `start`.
pub(super) fn key_of_forwarding(s_id: u64, kind: u64, start: u64) -> u64 {
    key_of_facility(s_id, kind) * (START_TIMES + 1) + start
}

/// The columns of a call forwarding.
pub(super) fn forwarding(end_time: u64, numberx: u64) -> [u64; 3] {
    [end_time, digits_word(numberx, DIGITS, 0), digits_word(numberx, DIGITS, 1)]
}

/// Checks what any call forwarding must hold, or names the column.
pub(super) fn check_forwarding(columns: &[u64; 3]) -> Result<(), &'static str> {
    if !(1..=DAY).contains(&columns[0]) {
        return Err("end_time");
    }
    let spelt = number_of(|index| columns[1 + index as usize], DIGITS);
    spelt.map(|_| ()).ok_or("numberx")
}

/// Returns true if the facility with this first word is active.
pub(super) fn is_active(word: u64) -> bool {
    word & 0xff == 1
}

/// The first word of a facility with another data_a.
pub(super) fn with_data_a(word: u64, data_a: u64) -> u64 {
    word & !0xff_0000 | data_a << 16
}

/// A word with another bit_1.
pub(super) fn with_bit_1(word: u64, bit: u64) -> u64 {
    word & !1 | bit
}

/// A word with another vlr_location.
pub(super) fn with_vlr_location(word: u64, location: u64) -> u64 {
    word & u64::from(u32::MAX) | location << 32
}

/// A random location.
pub(super) fn location(random: &mut Pcg64) -> u64 {
    random.random_range(1..1 << 32)
}

/// A random number of 15 digits.
pub(super) fn numberx(random: &mut Pcg64) -> u64 {
    random.random_range(0..10u64.pow(DIGITS as u32))
}

fn letters(random: &mut Pcg64, count: u32) -> u64 {
    (0..count)
        .fold(0, |word, i| word | (u64::from(b'A') + random.random_range(0..26u64)) << (8 * i))
}

/// Draws `count` of the numbers below `N`, as flags of places that hold something.
fn some_of<const N: usize>(random: &mut Pcg64, count: usize) -> [bool; N] {
    let mut chosen: [bool; N] = std::array::from_fn(|i| i < count);
    chosen.shuffle(random);
    chosen
}

/// A special facility and its call forwardings as they are populated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facility {
    pub(super) columns: [u64; FACILITY_COLUMNS],
    forwardings: [Option<[u64; 3]>; START_TIMES as usize],
}

impl Facility {
    fn drawn(random: &mut Pcg64) -> Self {
        let active = u64::from(random.random_range(0..100) < ACTIVE_PERCENT);
        let (error_cntrl, data_a) = (random.random_range(0..256u64), random.random_range(0..256));
        let word = with_data_a(active | error_cntrl << 8, data_a);
        let columns = [word, letters(random, 5)];
        let count = random.random_range(0..=START_TIMES as usize);
        let chosen: [bool; START_TIMES as usize] = some_of(random, count);
        let mut start = 0;
        let forwardings = chosen.map(|is_there| {
            let (end, number) = (start + random.random_range(1..=HOURS), numberx(random));
            start += HOURS;
            is_there.then(|| forwarding(end, number))
        });
        Self { columns, forwardings }
    }

    /// Call forwardings of the facility: number of the start time, and columns.
    pub(super) fn forwardings(&self) -> impl Iterator<Item = (u64, &[u64; 3])> {
        there(&self.forwardings)
    }

    /// Returns true if it may have these columns: data_a is updated.
    pub(super) fn may_hold(&self, columns: &[u64; FACILITY_COLUMNS]) -> bool {
        with_data_a(columns[0], 0) == with_data_a(self.columns[0], 0)
            && columns[1] == self.columns[1]
    }
}

/// Present items, with their places.
fn there<T>(places: &[Option<T>]) -> impl Iterator<Item = (u64, &T)> {
    (0..).zip(places).filter_map(|(place, one)| Some((place, one.as_ref()?)))
}

/// Everything of one subscriber as it is populated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Profile {
    pub(super) subscriber: [u64; SUBSCRIBER_COLUMNS as usize],
    access_info: [Option<[u64; 2]>; TYPES as usize],
    facilities: [Option<Facility>; TYPES as usize],
}

impl Profile {
    /// Draws the profile that `seed` gives to a subscriber.
    pub(super) fn drawn(seed: u64, s_id: u64) -> Self {
        let stream = u32::try_from(s_id).expect("the section bounds the subscribers");
        // Threads draw from streams of the seed itself.
        let random = &mut generator(!seed, stream);
        let bits = random.random_range(0..1u64 << 10);
        let hexes = random.random_range(0..1u64 << 40);
        let bytes = [random.random_range(0..=u64::MAX), random.random_range(0..1 << 16)];
        let locations = with_vlr_location(location(random), location(random));
        let number = [0, 1].map(|index| digits_word(s_id, DIGITS, index));
        let count = random.random_range(1..=TYPES as usize);
        let chosen: [bool; TYPES as usize] = some_of(random, count);
        let access_info = chosen.map(|is_there| {
            let data = random.random_range(0..1 << 16) | letters(random, 3) << 16;
            let columns = [data, letters(random, 5)];
            is_there.then_some(columns)
        });
        let count = random.random_range(1..=TYPES as usize);
        let chosen: [bool; TYPES as usize] = some_of(random, count);
        let facilities = chosen.map(|is_there| is_there.then(|| Facility::drawn(random)));
        let subscriber = [number[0], number[1], bits | hexes << 16, bytes[0], bytes[1], locations];
        Self { subscriber, access_info, facilities }
    }

    /// Access infos of the subscriber: type less one, and columns.
    pub(super) fn access_info(&self) -> impl Iterator<Item = (u64, &[u64; 2])> {
        there(&self.access_info)
    }

    /// Special facilities of the subscriber: type less one, and the facility.
    pub(super) fn facilities(&self) -> impl Iterator<Item = (u64, &Facility)> {
        there(&self.facilities)
    }

    /// Checks the columns of the subscriber's row: all but bit_1 and vlr_location are as they were. Names
    /// the ones that are not.
    pub(super) fn check_subscriber(
        &self,
        found: &[u64; SUBSCRIBER_COLUMNS as usize],
    ) -> Result<(), &'static str> {
        let [number_0, number_1, bits, bytes_0, bytes_1, locations] = self.subscriber;
        let is = |a: [u64; 2], b: [u64; 2], name| if a == b { Ok(()) } else { Err(name) };
        is([found[0], found[1]], [number_0, number_1], "sub_nbr")?;
        is([with_bit_1(found[2], 0), 0], [with_bit_1(bits, 0), 0], "bit_2 to hex_10")?;
        is([found[3], found[4]], [bytes_0, bytes_1], "byte2_1 to byte2_10")?;
        let msc = |word| [with_vlr_location(word, 0), 0];
        is(msc(found[5]), msc(locations), "msc_location")?;
        if found[5] >> 32 == 0 { Err("vlr_location") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The description's shares, over 20,000 subscribers: to four standard deviations.
    #[test]
    fn the_population_is_as_described() {
        let profiles: Vec<Profile> = (1..=20_000).map(|s_id| Profile::drawn(3, s_id)).collect();
        let near = |count: usize, of: usize, share, what: &str| {
            crate::testing::is_near(count as u32, of as u32, share, what);
        };
        let count = |rows: fn(&Profile) -> usize, number| {
            profiles.iter().filter(|p| rows(p) == number).count()
        };
        for rows in 1..=4 {
            near(count(|p| p.access_info().count(), rows), 20_000, 0.25, "Access_Info");
            near(count(|p| p.facilities().count(), rows), 20_000, 0.25, "Special_Facility");
        }
        let facilities: Vec<(u64, &Facility)> =
            profiles.iter().flat_map(Profile::facilities).collect();
        let of = facilities.len();
        for number in 0..=3 {
            let found = facilities.iter().filter(|f| f.1.forwardings().count() == number).count();
            near(found, of, 0.25, "Call_Forwarding");
        }
        for kind in 0..4 {
            near(facilities.iter().filter(|f| f.0 == kind).count(), of, 0.25, "sf_type");
        }
        near(facilities.iter().filter(|f| is_active(f.1.columns[0])).count(), of, 0.85, "active");
        for (start, columns) in facilities.iter().flat_map(|f| f.1.forwardings()) {
            assert!((1..=8).contains(&(columns[0] - start * 8)), "{columns:?}");
            assert_eq!(check_forwarding(columns), Ok(()));
        }
        for bit in 0..10 {
            near(
                profiles.iter().filter(|p| p.subscriber[2] >> bit & 1 == 1).count(),
                20_000,
                0.5,
                "bit",
            );
        }
    }

    #[test]
    fn columns_are_where_the_table_says() {
        let profile = Profile::drawn(1, 123);
        let number: Vec<u8> =
            profile.subscriber[..2].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert_eq!(number, b"000000000000123\0");
        let (_, access) = profile.access_info().next().expect("there is one");
        let data = [access[0] >> 16, access[1]].map(u64::to_le_bytes);
        assert!(data[0][..3].iter().chain(&data[1][..5]).all(u8::is_ascii_uppercase));
        assert_eq!((data[0][3..].iter().max(), data[1][5..].iter().max()), (Some(&0), Some(&0)));
        assert_eq!(with_data_a(0x00cc_1201, 0x34), 0x0034_1201);
        assert_eq!(with_vlr_location(0x1111_2222_3333_4444, 0x5555_6666), 0x5555_6666_3333_4444);
        assert_eq!(with_bit_1(0b111, 0), 0b110);
    }
}
