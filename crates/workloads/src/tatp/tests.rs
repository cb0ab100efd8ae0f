//! TATP as a workload: sound at every commit, in the mix and with the successes of its description.

use std::collections::BTreeMap;

use super::columns::{
    BITS, END_TIME, FACILITY, LOCATIONS, with_bit_1, with_data_a, with_vlr_location,
};
use super::transactions::{Kind, MIX};
use super::*;
use crate::database::testing::{next, one, with};
use crate::structures::keys::generator;
use crate::testing;
use crate::testing::{corrupt_each_word, origins, populated, run};
use graven_machine::program::{Direct, Load};

fn sized(request: &Request, subscribers: u32) -> Request {
    with(request, &[("tatp.subscribers", &subscribers.to_string())])
}

fn small(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    build(&sized(request, 24))
}

testing::contract!(small;
    one_thread_leaves_sound_states
    private_threads_leave_sound_states
    sharing_threads_are_isolated
    the_seed_decides
    extremes_run
);

/// A populated database for one thread.
fn database(subscribers: u32) -> (Tatp, Arena, Image) {
    let request = sized(&testing::request(testing::small(), 1, 100_000), subscribers);
    one(assemble(&request).expect("it fits"))
}

/// Expected content of the tables.
struct Model {
    profiles: Vec<Profile>,
    /// By s_id: words of the subscriber's row that are updated.
    bits: Vec<u64>,
    locations: Vec<u64>,
    /// By key: the first word of each facility, the columns of each call forwarding.
    facilities: BTreeMap<u64, u64>,
    forwardings: BTreeMap<u64, [u64; 3]>,
}

impl Model {
    fn of(tatp: &Tatp) -> Self {
        let profiles: Vec<Profile> = (1..=tatp.subscribers).map(|s| tatp.profile(s)).collect();
        let (mut facilities, mut forwardings) = (BTreeMap::new(), BTreeMap::new());
        for (s_id, profile) in (1..).zip(&profiles) {
            for (kind, facility) in profile.facilities() {
                facilities.insert(s_id * 4 + kind, facility.columns[0]);
                let starts = facility.forwardings();
                forwardings.extend(starts.map(|(start, &c)| ((s_id * 4 + kind) * 4 + start, c)));
            }
        }
        let bits = profiles.iter().map(|p| p.subscriber[2]).collect();
        let locations = profiles.iter().map(|p| p.subscriber[5]).collect();
        Self { profiles, bits, locations, facilities, forwardings }
    }

    /// Performs a transaction, and says whether it succeeds.
    fn perform(&mut self, t: &Transaction) -> bool {
        let (index, key) = (t.subscriber() as usize - 1, t.subscriber() * 4 + t.facility);
        let forwarding = key * 4 + t.start;
        match t.kind {
            Kind::GetSubscriberData => true,
            Kind::GetNewDestination => {
                let active = self.facilities.get(&key).is_some_and(|word| word & 1 == 1);
                let mut rows = self.forwardings.range(key * 4..=forwarding);
                active && rows.any(|(_, columns)| t.end_time < columns[0])
            }
            Kind::GetAccessData => {
                self.profiles[index].access_info().any(|(kind, _)| kind == t.facility)
            }
            Kind::UpdateSubscriberData => {
                let Some(word) = self.facilities.get_mut(&key) else { return false };
                *word = with_data_a(*word, t.data_a);
                self.bits[index] = with_bit_1(self.bits[index], t.bit);
                true
            }
            Kind::UpdateLocation => {
                self.locations[index] = with_vlr_location(self.locations[index], t.vlr_location);
                true
            }
            Kind::InsertCallForwarding => {
                let is_new = self.facilities.contains_key(&key)
                    && !self.forwardings.contains_key(&forwarding);
                if is_new {
                    let columns = columns::forwarding(t.end_time, t.numberx);
                    self.forwardings.insert(forwarding, columns);
                }
                is_new
            }
            Kind::DeleteCallForwarding => self.forwardings.remove(&forwarding).is_some(),
        }
    }

    fn expect(&self, tatp: &Tatp, image: &mut Image) {
        let m = &mut Direct::new(image);
        for s_id in 1..=tatp.subscribers {
            let (row, index) = (tatp.subscriber.find(m, s_id), s_id as usize - 1);
            assert_eq!(m.load(row.word(BITS)), self.bits[index]);
            assert_eq!(m.load(row.word(LOCATIONS)), self.locations[index]);
            for key in s_id * 4..s_id * 4 + 4 {
                let row = tatp.special_facility.find(m, key);
                let word = (!row.is_null()).then(|| m.load(row.word(FACILITY)));
                assert_eq!(word, self.facilities.get(&key).copied());
            }
            for key in s_id * 16..s_id * 16 + 16 {
                let row = tatp.call_forwarding.find(m, key);
                let columns =
                    (!row.is_null()).then(|| [0, 1, 2].map(|i| m.load(row.word(END_TIME + i))));
                assert_eq!(columns, self.forwardings.get(&key).copied());
            }
        }
    }
}

#[test]
fn transactions_do_what_the_description_says() {
    let (tatp, arena, mut image) = database(30);
    let mut model = Model::of(&tatp);
    let mut random = generator(5, 0);
    for number in 0..20_000 {
        let (t, succeeded) = next((&tatp, &arena), &mut image, &mut random);
        assert_eq!(succeeded, model.perform(&t), "{t:?}");
        if number % 500 == 0 {
            model.expect(&tatp, &mut image);
        }
    }
}

/// Share of the Get_New_Destination that find a call forwarding of an active facility: it is the latest that has
/// started which ends last, and does so after (8 s + 3.5) / 24 of all end times on average.
fn new_destinations() -> f64 {
    let mut share = 0.0;
    for there in 0..8u32 {
        let weight = [1.0, 3.0, 3.0, 1.0].map(|ways| 0.25 / ways)[there.count_ones() as usize];
        for start in 0..3 {
            let latest = (0..=start).rev().find(|s| there >> s & 1 == 1);
            let ends = latest.map_or(0.0, |s| (8.0 * f64::from(s) + 3.5) / 24.0);
            share += weight * ends / 3.0;
        }
    }
    share * 0.625 * 0.85
}

/// The description's mix, and the successes that follow from its population, on a database of which little
/// changes: to four standard deviations.
#[test]
fn the_mix_and_the_successes_are_as_described() {
    let (tatp, arena, mut image) = database(20_000);
    let mut random = generator(5, 0);
    let mut counts: BTreeMap<Kind, (u32, u32)> = BTreeMap::new();
    const TRANSACTIONS: u32 = 60_000;
    for _ in 0..TRANSACTIONS {
        let (t, succeeded) = next((&tatp, &arena), &mut image, &mut random);
        let (performed, successes) = counts.entry(t.kind).or_default();
        (*performed, *successes) = (*performed + 1, *successes + u32::from(succeeded));
    }
    let successes = [1.0, new_destinations(), 0.625, 0.625, 1.0, 0.3125, 0.3125];
    assert_eq!(format!("{:.3}", new_destinations()), "0.148", "as documented");
    assert_eq!(MIX.iter().map(|(_, percent)| percent).sum::<u32>(), 100);
    for ((kind, percent), success) in MIX.into_iter().zip(successes) {
        let (performed, succeeded) = counts[&kind];
        let share = f64::from(percent) / 100.0;
        testing::is_near(performed, TRANSACTIONS, share, &format!("{kind:?} drawn"));
        testing::is_near(succeeded, performed, success, &format!("{kind:?} that succeed"));
    }
}

/// A word of an insertion or a deletion that a failure lost. What it leaves elsewhere is for the durability checker:
/// the transaction that updates a location has one word.
#[test]
fn lost_words_of_rows_are_seen() {
    let request = sized(&testing::request(testing::small(), 1, 1000), 24);
    let (workload, image) = populated(build, &request);
    let of_rows = |writes: &[_]| writes.len() > 2;
    let (lost, unseen) = testing::losses(workload.as_ref(), &request, image, of_rows);
    assert!(lost > 50, "{lost} words were lost");
    assert!(unseen.len() * 10 < lost * 2, "{} of {lost} losses were not seen", unseen.len());
}

/// Besides blocks, their addresses are determined by bucket and by telephone number: an s_id is a small one.
#[test]
fn pointers_remember_their_loads() {
    let (known, chased) =
        origins(small, |word, at| (word..word + 256).contains(&at.0) || word <= 24);
    assert!(known > 100 && chased > known, "{chased} accesses through pointers, {known} others");
}

#[test]
fn the_check_ends_on_any_word() {
    let request = sized(&testing::request(testing::small(), 1, 300), 10);
    let (workload, image) = populated(build, &request);
    let (mut image, _) = run(workload.as_ref(), &request, image, |_, _, _| {});
    let arena = assemble(&request).expect("it fits").parts[0].arenas[0];
    let end = request.start.0.max(1) + (64 << 10);
    assert!(arena.used(&image) > 0, "blocks were handed out");
    let (seen, tried) = corrupt_each_word(workload.as_ref(), &mut image, (request.start.0..end, 1));
    // What may be updated may hold nearly anything, and so may a freed block.
    assert!(tried > 1000 && seen > tried * 9 / 10, "{seen} of {tried}");
}

#[test]
fn populations_that_do_not_fit_are_refused() {
    let refused = |request: &Request| testing::refusal(build, request);
    let few = sized(&testing::request(testing::small(), 8, 100), 7);
    let (key, value, why) = refused(&few);
    assert_eq!((key.as_str(), value.as_str()), ("tatp.subscribers", "7"));
    assert!(why.contains("at least 8 would do"), "{why}");
    assert!(build(&sized(&few, 8)).is_ok());
    let mut tight = sized(&testing::request(testing::small(), 1, 100), 1000);
    tight.end = tight.start.plus(64 << 10);
    let (key, value, why) = refused(&tight);
    assert_eq!((key.as_str(), value.as_str()), ("tatp.subscribers", "1000"));
    assert!(why.contains("pm.capacity_bytes"), "{why}");
    tight.end = tight.start;
    tight.transactions = u64::MAX;
    refused(&sized(&tight, 100_000_000));
}
