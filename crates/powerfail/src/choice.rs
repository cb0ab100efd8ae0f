//! The choice of images: first those with a pair of source lines that no image had, then all of a point, or drawn ones.
//!
//! A program that forgets an order between two of its lines is found by an image in which the later one's store is durable and the
//! earlier one's is not. So the images of the first pass cover pairs: *this line's store is missing, that line's is left*, each
//! pair a few times, in both orders of time, with all else durable and with all else missing. Their number depends on the
//! program's lines, not on the length of its run.

use std::collections::BTreeSet;

use graven_trace::hygiene::{Blamed, Places};
use rand::RngExt as _;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::candidate::Candidate;
use crate::frontier::{Pick, Unit};
use crate::points::Point;
use crate::story::{Event, EventId, Story, What};

/// Images for each pair of lines.
const IMAGES_OF_PAIR: u8 = 4;
/// Stores of one line that are looked at in a list of those that are left, or missing: the first and the last ones.
const STORES_OF_LINE: usize = 2;
/// Most images of a point that are all tried.
const ALL_MAX: u64 = 4096;
/// Images that are drawn of a point in each round.
const DRAWN: usize = 8;

/// A source line of the program, with the line that called its function.
pub type Key = u32;

/// The source lines of a story's events.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    numbers: FxHashMap<(u32, u32), Key>,
    of: Vec<Key>,
}

/// The lines of an instruction: that which is blamed for it, and its caller's; of the C library's own stores the instruction.
type Lines = (Option<(u32, Option<u32>)>, u32);

impl Keys {
    /// Numbers all lines of a story.
    pub fn of(story: &Story) -> Keys {
        let mut places = places(story);
        let mut lines: FxHashMap<Lines, Key> = FxHashMap::default();
        let mut numbers: FxHashMap<(u32, u32), Key> = FxHashMap::default();
        for event in &story.events {
            numbers.entry((event.site, event.stack)).or_insert_with(|| {
                let of = match places.blamed(event.site, event.stack, event.deed()) {
                    // A library has one line for all that it does.
                    (Blamed::Place(place), caller) => {
                        let is_library = places.frames[place as usize].is_library();
                        (Some((place, caller)), if is_library { event.site } else { 0 })
                    }
                    (Blamed::Runtime, _) => (None, event.site),
                };
                let next = lines.len() as Key;
                *lines.entry(of).or_insert(next)
            });
        }
        let keys = Keys { numbers, of: Vec::new() };
        keys.again(story)
    }

    /// The same lines of another story of the same program.
    pub fn again(&self, story: &Story) -> Keys {
        let key = |event: &Event| self.numbers[&(event.site, event.stack)];
        Keys { numbers: self.numbers.clone(), of: story.events.iter().map(key).collect() }
    }

    /// The line of an event.
    pub fn key(&self, event: EventId) -> Key {
        self.of[event as usize]
    }

    /// The lines of events.
    pub fn set(&self, events: &[EventId]) -> FxHashSet<Key> {
        events.iter().map(|&event| self.key(event)).collect()
    }
}

/// The source lines of a story.
pub fn places(story: &Story) -> Places {
    let is_store = |what| matches!(what, What::Store { .. });
    let stores = story.events.iter().filter(|event| is_store(event.what));
    let stores: BTreeSet<(u32, u32)> = stores.map(|event| (event.site, event.stack)).collect();
    Places::new(story.sites.clone(), story.stacks.clone(), stores)
}

/// The situation in which a pair is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Everything up to a store is left, nothing after it.
    InOrder,
    /// Stores of one unit are missing, and those of all others are left.
    OneMissing,
    /// Stores of one unit are left, and those of all others are missing.
    OnePresent,
    /// Stores of one instruction, in no order.
    Unordered,
}

/// A pair of lines: the missing store's, and that of the store that is left; whether the latter came later.
type Pair = (Kind, Key, Key, bool);

/// The chooser of a story's images.
#[derive(Debug)]
pub struct Chooser {
    keys: Keys,
    covered: FxHashMap<Pair, u8>,
    random: Pcg64Mcg,
}

/// Stores of several units, few of each line.
type Listed = Vec<(Key, usize, EventId)>;

impl Chooser {
    /// A chooser of a story with these lines, which draws with a seed.
    pub fn new(keys: Keys, seed: u64) -> Chooser {
        let random = Pcg64Mcg::seed_from_u64(seed);
        Chooser { keys, covered: FxHashMap::default(), random }
    }

    /// The source lines.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Number of pairs of lines that were tried.
    pub fn pairs(&self) -> u64 {
        self.covered.len() as u64
    }

    fn wants(&self, pair: Pair) -> bool {
        self.covered.get(&pair).is_none_or(|&count| count < IMAGES_OF_PAIR)
    }

    fn cover(&mut self, pairs: &[Pair]) -> bool {
        let is_wanted = pairs.iter().any(|&pair| self.wants(pair));
        if is_wanted {
            for &pair in pairs {
                let count = self.covered.entry(pair).or_default();
                *count = count.saturating_add(1);
            }
        }
        is_wanted
    }

    /// The images of a point that cover pairs.
    pub fn guided(&mut self, story: &Story, number: usize, point: &Point) -> Vec<Candidate> {
        let mut all = vec![Candidate::newest(number, point), Candidate::oldest(number, point)];
        self.in_order(number, point, &mut all);
        self.one_apart(number, point, &mut all);
        self.unordered(story, number, point, &mut all);
        all
    }

    fn in_order(&mut self, number: usize, point: &Point, all: &mut Vec<Candidate>) {
        let stores = point.units.iter().flat_map(|unit| &unit.stores);
        let mut new: Vec<EventId> =
            stores.map(|store| store.event).filter(|&event| event >= point.since).collect();
        new.sort_unstable();
        for two in new.windows(2) {
            let [last, next] = [two[0], two[1]].map(|event| self.keys.key(event));
            if self.cover(&[(Kind::InOrder, next, last, false)]) {
                let picks = point.units.iter().map(|unit| unit.before(two[1])).collect();
                all.push(Candidate { point: number, picks });
            }
        }
    }

    /// Few stores of each line among those that the units' first or last ones are.
    fn listed(&self, stores: impl Iterator<Item = (usize, EventId)>) -> Listed {
        let mut by_key: FxHashMap<Key, Vec<(usize, EventId)>> = FxHashMap::default();
        for (unit, event) in stores {
            let of = by_key.entry(self.keys.key(event)).or_default();
            of.push((unit, event));
            of.sort_unstable_by_key(|&(_, event)| event);
            if of.len() > 2 * STORES_OF_LINE {
                of.remove(STORES_OF_LINE);
            }
        }
        let mut listed: Listed = by_key
            .into_iter()
            .flat_map(|(key, of)| of.into_iter().map(move |(unit, event)| (key, unit, event)))
            .collect();
        listed.sort_unstable_by_key(|&(_, _, event)| event);
        listed
    }

    fn one_apart(&mut self, number: usize, point: &Point, all: &mut Vec<Candidate>) {
        let units = || point.units.iter().enumerate();
        let firsts = self.listed(units().map(|(at, unit)| (at, unit.stores[0].event)));
        let lasts =
            self.listed(units().map(|(at, unit)| (at, unit.stores[unit.stores.len() - 1].event)));
        let is_new = |&&(_, _, event): &&(Key, usize, EventId)| event >= point.since;
        let new_firsts: Listed = firsts.iter().filter(is_new).copied().collect();
        let new_lasts: Listed = lasts.iter().filter(is_new).copied().collect();
        let mut pairs = Vec::new();
        for (at, unit) in units() {
            for cut in self.cuts(unit) {
                // The unit's stores from `cut` on are missing, all else is left.
                if let Some(missing) = unit.stores.get(cut).map(|store| store.event) {
                    let there = if missing >= point.since { &lasts } else { &new_lasts };
                    let key = self.keys.key(missing);
                    pairs.clear();
                    pairs.extend(
                        there.iter().filter(|&&(_, of, _)| of != at).map(|&(other, _, event)| {
                            (Kind::OneMissing, key, other, event > missing)
                        }),
                    );
                    if self.cover(&pairs) {
                        let mut candidate = Candidate::newest(number, point);
                        candidate.picks[at] = Pick::First(cut as u32);
                        all.push(candidate);
                    }
                }
                // The unit's stores before `cut` are left, all else is missing.
                let Some(last) = cut.checked_sub(1).map(|last| unit.stores[last].event) else {
                    continue;
                };
                let missing = if last >= point.since { &firsts } else { &new_firsts };
                let key = self.keys.key(last);
                pairs.clear();
                pairs.extend(
                    missing
                        .iter()
                        .filter(|&&(_, of, _)| of != at)
                        .map(|&(other, _, event)| (Kind::OnePresent, other, key, last > event)),
                );
                if self.cover(&pairs) {
                    let mut candidate = Candidate::oldest(number, point);
                    candidate.picks[at] = Pick::First(cut as u32);
                    all.push(candidate);
                }
            }
        }
    }

    /// The places at which a unit's stores are parted: not amid many of one line.
    fn cuts(&self, unit: &Unit) -> Vec<usize> {
        let stores = &unit.stores;
        let key = |at: usize| self.keys.key(stores[at].event);
        let is_amid = |cut: usize| {
            cut >= 2
                && cut + 1 < stores.len()
                && key(cut - 2) == key(cut + 1)
                && key(cut - 1) == key(cut)
                && key(cut) == key(cut + 1)
        };
        (0..=stores.len()).filter(|&cut| !is_amid(cut)).collect()
    }

    fn unordered(&mut self, story: &Story, number: usize, point: &Point, all: &mut Vec<Candidate>) {
        for (at, unit) in point.units.iter().enumerate() {
            let last = unit.stores[unit.stores.len() - 1].event;
            if last < point.since {
                continue;
            }
            for pick in unit.picks(story).0 {
                let Pick::These(_) = pick else { continue };
                let (missing, there) = (unit.missing(pick).next(), unit.left(pick).last());
                let (Some(missing), Some(there)) = (missing, there) else { continue };
                let [missing, there] = [missing, there].map(|event| self.keys.key(event));
                for (is_there, others) in [
                    (true, Candidate::newest(number, point)),
                    (false, Candidate::oldest(number, point)),
                ] {
                    if self.cover(&[(Kind::Unordered, missing, there, is_there)]) {
                        let mut candidate = others;
                        candidate.picks[at] = pick;
                        all.push(candidate);
                    }
                }
            }
        }
    }

    /// All images of a point; none: there are too many.
    pub fn all(story: &Story, number: usize, point: &Point) -> Option<Vec<Candidate>> {
        let mut picks = Vec::new();
        let mut count = 1u64;
        for unit in &point.units {
            let (of, is_all) = unit.picks(story);
            count = count.saturating_mul(of.len() as u64);
            if count > ALL_MAX || !is_all {
                return None;
            }
            picks.push(of);
        }
        let mut all = vec![Vec::new()];
        for of in &picks {
            all = all
                .iter()
                .flat_map(|begun: &Vec<Pick>| {
                    of.iter().map(|&pick| {
                        let mut more = begun.clone();
                        more.push(pick);
                        more
                    })
                })
                .collect();
        }
        Some(all.into_iter().map(|picks| Candidate { point: number, picks }).collect())
    }

    /// Images of a point that are drawn.
    pub fn drawn(&mut self, story: &Story, number: usize, point: &Point) -> Vec<Candidate> {
        (0..DRAWN).map(|_| self.draw(story, number, point)).collect()
    }

    /// Draws whether much or little is left, and then each unit.
    fn draw(&mut self, story: &Story, number: usize, point: &Point) -> Candidate {
        let share = [0.1, 0.5, 0.9][self.random.random_range(0..3)];
        let picks = point.units.iter().map(|unit| {
            let of = unit.picks(story).0;
            match self.random.random_bool(0.25) {
                true => of[self.random.random_range(0..of.len())],
                false if self.random.random_bool(share) => unit.newest(),
                false => Pick::First(0),
            }
        });
        Candidate { point: number, picks: picks.collect() }
    }
}
