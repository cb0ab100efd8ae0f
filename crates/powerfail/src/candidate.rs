//! Candidates: a crash point, and what is left of each unit there.

use std::fmt::{self, Display};
use std::str::FromStr;

use graven_base::memory::{Addr, spread};

use crate::frontier::{Cursor, Pick, Unit, digest};
use crate::judge::Left;
use crate::points::Point;
use crate::story::{EventId, Story};

/// An image that a power failure may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The number of the point.
    pub point: usize,
    /// A pick for each unit of the point.
    pub picks: Vec<Pick>,
}

impl Candidate {
    /// The image that is visible at a point: nothing is missing.
    pub fn newest(number: usize, point: &Point) -> Candidate {
        Candidate { point: number, picks: point.units.iter().map(|unit| unit.newest()).collect() }
    }

    /// Nothing is left but what is durable at a point.
    pub fn oldest(number: usize, point: &Point) -> Candidate {
        Candidate { point: number, picks: vec![Pick::First(0); point.units.len()] }
    }

    fn units<'a>(&'a self, point: &'a Point) -> impl Iterator<Item = (&'a Unit, Pick)> + 'a {
        point.units.iter().map(|unit| &**unit).zip(self.picks.iter().copied())
    }

    /// The stores that are missing, in order.
    pub fn missing(&self, point: &Point) -> Vec<EventId> {
        let mut all: Vec<EventId> =
            self.units(point).flat_map(|(unit, pick)| unit.missing(pick)).collect();
        all.sort_unstable();
        all
    }

    /// A number that equal images share, if they are judged alike. The cursor is at the point.
    pub fn identity(&self, story: &Story, point: &Point, cursor: &Cursor) -> u64 {
        let mut sum = cursor.digest;
        let mut lengths: Vec<u64> = cursor.lengths.clone();
        for (unit, pick) in self.units(point) {
            match unit.file(story) {
                Some(file) => {
                    lengths[file as usize] = unit.length(story, pick).unwrap_or_default();
                }
                None => unit.differences(story, pick, |addr, left| {
                    sum = sum.wrapping_add(digest(addr, cursor.image.load(addr), left));
                }),
            }
        }
        let of_lengths = (1..)
            .zip(lengths)
            .fold(0u64, |all, (number, length)| all.wrapping_add(spread(length, number)));
        let of_operations = spread(u64::from(point.ended), u64::from(point.begun));
        sum.wrapping_add(of_lengths.rotate_left(17)).wrapping_add(of_operations.rotate_left(31))
    }

    /// Calls `judge` with the image. The cursor is at the point before and after the call.
    pub fn left<T>(
        &self,
        story: &Story,
        point: &Point,
        cursor: &mut Cursor,
        acknowledges: bool,
        judge: impl FnOnce(&Left<'_>) -> T,
    ) -> T {
        let mut changed: Vec<(Addr, u64)> = Vec::new();
        let mut lengths = cursor.lengths.clone();
        for (unit, pick) in self.units(point) {
            match unit.file(story) {
                Some(file) => {
                    lengths[file as usize] = unit.length(story, pick).unwrap_or_default();
                }
                None => unit.differences(story, pick, |addr, left| {
                    changed.push((addr, cursor.image.store(addr, left)));
                }),
            }
        }
        let result = judge(&Left {
            image: &cursor.image,
            lengths: &lengths,
            acknowledged: if acknowledges { point.ended } else { 0 },
            begun: point.begun,
        });
        for (addr, visible) in changed {
            cursor.image.store(addr, visible);
        }
        result
    }

    /// The name with which the image can be asked for again.
    pub fn name(&self, point: &Point) -> Name {
        let missing = self.units(point).filter(|&(unit, pick)| pick != unit.newest());
        Name { at: point.at, picks: missing.map(|(unit, pick)| (unit.start, pick)).collect() }
    }
}

/// The name of an image: `EVENT:UNIT=PICK,…`, of the units that are not as they are visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The event before which power fails.
    pub at: EventId,
    /// Beginnings of units, and what is left of them.
    pub picks: Vec<(u64, Pick)>,
}

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.at)?;
        for (number, (start, pick)) in self.picks.iter().enumerate() {
            let mark = if number == 0 { ':' } else { ',' };
            match pick {
                Pick::First(count) => write!(f, "{mark}{start:x}={count}")?,
                Pick::These(mask) => write!(f, "{mark}{start:x}=m{mask:x}")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Name {
    type Err = String;

    fn from_str(text: &str) -> Result<Name, String> {
        let refuse = || {
            format!(
                "{text:?} is no name of an image; allowed: EVENT, or EVENT:UNIT=PICK,… as printed"
            )
        };
        let (at, rest) = text.split_once(':').unwrap_or((text, ""));
        let at = at.parse().map_err(|_| refuse())?;
        let pick = |word: &str| {
            let (start, pick) = word.split_once('=')?;
            let start = u64::from_str_radix(start, 16).ok()?;
            let pick = match pick.strip_prefix('m') {
                Some(mask) => Pick::These(u64::from_str_radix(mask, 16).ok()?),
                None => Pick::First(pick.parse().ok()?),
            };
            Some((start, pick))
        };
        let words = rest.split(',').filter(|word| !word.is_empty());
        let picks = words.map(|word| pick(word).ok_or_else(refuse)).collect::<Result<_, _>>()?;
        Ok(Name { at, picks })
    }
}

impl Name {
    /// The image of this name; none: the story has none such.
    pub fn find(&self, story: &Story, points: &[Point]) -> Option<Candidate> {
        let number = points.binary_search_by_key(&self.at, |point| point.at).ok()?;
        let point = &points[number];
        let mut candidate = Candidate::newest(number, point);
        for &(start, pick) in &self.picks {
            let unit = point.units.binary_search_by_key(&start, |unit| unit.start).ok()?;
            let of = &point.units[unit];
            let fits = match pick {
                Pick::First(count) => count as usize <= of.stores.len(),
                Pick::These(_) => of.picks(story).0.contains(&pick),
            };
            if !fits {
                return None;
            }
            candidate.picks[unit] = pick;
        }
        Some(candidate)
    }
}
