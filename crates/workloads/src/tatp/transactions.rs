//! TATP's seven transactions, and how often each is drawn.
//!
//! | transaction | percent | reads | writes | succeeds, of a fresh population |
//! |---|---|---|---|---|
//! | Get_Subscriber_Data | 35 | a subscriber's row, all columns | | always |
//! | Get_New_Destination | 10 | a facility, if active its call forwardings | | 14.8 % |
//! | Get_Access_Data | 35 | an access info | | 62.5 % |
//! | Update_Subscriber_Data | 2 | | bit_1 of a subscriber, data_a of a facility | 62.5 % |
//! | Update_Location | 14 | a sub_nbr | vlr_location of its subscriber | always |
//! | Insert_Call_Forwarding | 2 | a sub_nbr, its subscriber's facilities | a call forwarding | 31.25 % |
//! | Delete_Call_Forwarding | 2 | a sub_nbr | a call forwarding | 31.25 % |
//!
//! Subscribers are drawn by the description's non-uniform distribution: ((0..=A) | (1..=P)) mod P + 1, with
//! A = 65,535 up to a population P of a million, 1,048,575 up to ten million, 2,097,151 above. All
//! other parameters are uniform. What is not there, or is there already, makes a transaction fail:
//! it then has stored nothing.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::Tatp;
use super::columns::{
    BITS, DAY, END_TIME, FACILITY, LOCATIONS, NUMBERX, START_TIMES, SUBSCRIBER_COLUMNS, TYPES,
    forwarding, is_active, key_of_facility, key_of_forwarding, location, numberx, with_bit_1,
    with_data_a, with_vlr_location,
};
use super::fill;
use crate::costs;
use crate::structures::Arena;
use crate::structures::table::COLUMNS;
use graven_machine::program::{Memory, Ptr};

/// Percent of each transaction, in the order of [`Kind`].
pub(super) const MIX: [(Kind, u32); 7] = [
    (Kind::GetSubscriberData, 35),
    (Kind::GetNewDestination, 10),
    (Kind::GetAccessData, 35),
    (Kind::UpdateSubscriberData, 2),
    (Kind::UpdateLocation, 14),
    (Kind::InsertCallForwarding, 2),
    (Kind::DeleteCallForwarding, 2),
];

/// Kinds of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    GetSubscriberData,
    GetNewDestination,
    GetAccessData,
    UpdateSubscriberData,
    UpdateLocation,
    InsertCallForwarding,
    DeleteCallForwarding,
}

/// The description's non-uniform distribution of subscribers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nurand {
    population: u64,
    a: u64,
}

impl Nurand {
    pub(super) fn new(population: u64) -> Self {
        let a = match population {
            0..=1_000_000 => 65_535,
            1_000_001..=10_000_000 => 1_048_575,
            _ => 2_097_151,
        };
        Self { population, a }
    }

    fn draw(&self, random: &mut Pcg64) -> u64 {
        let (low, any) =
            (random.random_range(0..=self.a), random.random_range(1..=self.population));
        (low | any) % self.population + 1
    }
}

/// One transaction: of its parameters, those that its kind has are used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    pub(super) kind: Kind,
    pub(super) s_id: u64,
    /// sf_type or ai_type, less one.
    pub(super) facility: u64,
    /// start_time / 8.
    pub(super) start: u64,
    pub(super) end_time: u64,
    /// bit_1.
    pub(super) bit: u64,
    pub(super) data_a: u64,
    pub(super) vlr_location: u64,
    pub(super) numberx: u64,
}

impl Transaction {
    pub(super) fn drawn(draws: &Nurand, random: &mut Pcg64) -> Self {
        let mut percent = random.random_range(0..100);
        let chosen = MIX.iter().find(|(_, share)| {
            let is_it = percent < *share;
            percent = percent.wrapping_sub(*share);
            is_it
        });
        Self {
            kind: chosen.expect("the shares add up to 100").0,
            s_id: draws.draw(random),
            facility: random.random_range(0..TYPES),
            start: random.random_range(0..START_TIMES),
            end_time: random.random_range(1..=DAY),
            bit: random.random_range(0..2),
            data_a: random.random_range(0..256),
            vlr_location: location(random),
            numberx: numberx(random),
        }
    }

    /// The subscriber that it is about.
    pub(super) fn subscriber(&self) -> u64 {
        self.s_id
    }

    /// Number of parameters of its kind.
    pub(super) fn parameters(&self) -> u32 {
        match self.kind {
            Kind::GetSubscriberData => 1,
            Kind::GetAccessData | Kind::UpdateLocation => 2,
            Kind::DeleteCallForwarding => 3,
            Kind::GetNewDestination | Kind::UpdateSubscriberData => 4,
            Kind::InsertCallForwarding => 5,
        }
    }
}

/// Reads `words` columns of a row, as a client that returns them does.
fn read<M: Memory>(m: &mut M, row: Ptr, words: std::ops::Range<u64>) {
    m.compute(costs::WORD * (words.end - words.start) as u32);
    for word in words {
        m.load(row.word(word));
    }
}

impl Tatp {
    /// Performs a transaction, and returns whether it succeeded.
    pub(super) fn run<M: Memory>(&self, m: &mut M, arena: &Arena, t: &Transaction) -> bool {
        match t.kind {
            Kind::GetSubscriberData => self.get_subscriber_data(m, t),
            Kind::GetNewDestination => self.get_new_destination(m, t),
            Kind::GetAccessData => self.get_access_data(m, t),
            Kind::UpdateSubscriberData => self.update_subscriber_data(m, t),
            Kind::UpdateLocation => self.update_location(m, t),
            Kind::InsertCallForwarding => self.insert_call_forwarding(m, arena, t),
            Kind::DeleteCallForwarding => self.delete_call_forwarding(m, arena, t),
        }
    }

    fn get_subscriber_data<M: Memory>(&self, m: &mut M, t: &Transaction) -> bool {
        let row = self.subscriber.find(m, t.s_id);
        read(m, row, COLUMNS..COLUMNS + SUBSCRIBER_COLUMNS);
        true
    }

    fn get_new_destination<M: Memory>(&self, m: &mut M, t: &Transaction) -> bool {
        let facility = self.special_facility.find(m, key_of_facility(t.s_id, t.facility));
        m.compute(costs::COMPARE);
        if facility.is_null() || !is_active(m.load(facility.word(FACILITY))) {
            return false;
        }
        let mut found = false;
        let first = key_of_forwarding(t.s_id, t.facility, 0);
        self.call_forwarding.each(m, first, |m, key, row| {
            m.compute(2 * costs::COMPARE);
            if key - first <= t.start && t.end_time < m.load(row.word(END_TIME)) {
                read(m, row, NUMBERX..NUMBERX + 2);
                found = true;
            }
        });
        found
    }

    fn get_access_data<M: Memory>(&self, m: &mut M, t: &Transaction) -> bool {
        let row = self.access_info.find(m, key_of_facility(t.s_id, t.facility));
        if row.is_null() {
            return false;
        }
        read(m, row, COLUMNS..COLUMNS + 2);
        true
    }

    fn update_subscriber_data<M: Memory>(&self, m: &mut M, t: &Transaction) -> bool {
        let subscriber = self.subscriber.find(m, t.s_id);
        let facility = self.special_facility.find(m, key_of_facility(t.s_id, t.facility));
        if facility.is_null() {
            return false;
        }
        let bits = m.load(subscriber.word(BITS));
        m.store(subscriber.word(BITS), with_bit_1(bits, t.bit));
        let columns = m.load(facility.word(FACILITY));
        m.store(facility.word(FACILITY), with_data_a(columns, t.data_a));
        true
    }

    fn update_location<M: Memory>(&self, m: &mut M, t: &Transaction) -> bool {
        let row = self.numbers.find(m, t.s_id);
        let locations = m.load(row.word(LOCATIONS));
        m.store(row.word(LOCATIONS), with_vlr_location(locations, t.vlr_location));
        true
    }

    /// s_id of the subscriber of the transaction's sub_nbr, with the load that returned it.
    fn subscriber_of_number<M: Memory>(&self, m: &mut M, t: &Transaction) -> Ptr {
        let row = self.numbers.find(m, t.s_id);
        m.load_ptr(row.word(COLUMNS - 1))
    }

    fn insert_call_forwarding<M: Memory>(&self, m: &mut M, arena: &Arena, t: &Transaction) -> bool {
        let told = self.subscriber_of_number(m, t);
        let s_id = told.addr.0;
        let mut is_there = false;
        self.special_facility.told_by(told).each(m, key_of_facility(s_id, 0), |_, key, _| {
            is_there |= key == key_of_facility(s_id, t.facility);
        });
        if !is_there {
            return false;
        }
        let key = key_of_forwarding(s_id, t.facility, t.start);
        let columns = forwarding(t.end_time, t.numberx);
        self.call_forwarding.told_by(told).insert(m, arena, key, |m, row| {
            m.compute(costs::WORD * columns.len() as u32);
            fill(m, row, &columns);
        })
    }

    fn delete_call_forwarding<M: Memory>(&self, m: &mut M, arena: &Arena, t: &Transaction) -> bool {
        let told = self.subscriber_of_number(m, t);
        let key = key_of_forwarding(told.addr.0, t.facility, t.start);
        self.call_forwarding.told_by(told).remove(m, arena, key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_is_as_the_description_says() {
        let a = |population| Nurand::new(population).a;
        assert_eq!([1, 1_000_000].map(a), [65_535; 2]);
        assert_eq!([1_000_001, 10_000_000].map(a), [1_048_575; 2]);
        assert_eq!([10_000_001].map(a), [2_097_151]);
    }

    /// With as many subscribers as A + 1, each bit of a number less one is set in three of four draws.
    #[test]
    fn every_subscriber_may_be_drawn_and_some_more_often() {
        let mut random = crate::structures::keys::generator(1, 0);
        let draws = Nurand::new(100);
        let drawn: BTreeSet<u64> = (0..10_000).map(|_| draws.draw(&mut random)).collect();
        assert!(drawn.into_iter().eq(1..=100));
        let draws = Nurand::new(65_536);
        let ones: u32 = (0..100_000).map(|_| (draws.draw(&mut random) - 1).count_ones()).sum();
        assert!((1_195_000..1_205_000).contains(&ones), "{ones} of 1,600,000 bits");
    }
}
