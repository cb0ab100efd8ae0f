//! SmallBank as a workload: money is neither made nor lost, in the mixes of its sources.

use std::collections::BTreeMap;

use super::transactions::{Kind, MIX};
use super::*;
use crate::database::testing::{next, one, with};
use crate::structures::keys::generator;
use crate::testing;
use crate::testing::{corrupt_each_word, origins, populated, run};
use graven_base::memory::Image;
use graven_machine::program::{Direct, Load};

const SMALL: [(&str, &str); 2] =
    [("smallbank.customers", "40"), ("smallbank.hotspot_customers", "10")];

fn small(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    build(&with(request, &SMALL))
}

testing::contract!(small;
    one_thread_leaves_sound_states
    private_threads_leave_sound_states
    sharing_threads_are_isolated
    the_seed_decides
    extremes_run
);

/// A populated bank for one thread.
fn bank(settings: &[(&str, &str)]) -> (Bank, Arena, Image) {
    let request = with(&testing::request(testing::small(), 1, 1000), settings);
    one(assemble(&request).expect("it fits"))
}

/// Savings and checking by customer, and the ledger.
struct Model {
    balances: Vec<[i64; 2]>,
    ledger: i64,
}

impl Model {
    fn of(bank: &Bank) -> Self {
        let balances = (1..=bank.customers.all).map(|c| bank.initial(c).map(|cents| cents as i64));
        Self { balances: balances.collect(), ledger: 0 }
    }

    fn perform(&mut self, t: &Transaction) -> bool {
        let [first, second] = t.names.map(|name| name as usize - 1);
        let [savings, checking] = self.balances[first];
        match t.kind {
            Kind::Balance => {}
            Kind::DepositChecking => {
                self.balances[first][1] += 130;
                self.ledger += 130;
            }
            Kind::TransactSavings => {
                assert_eq!(t.cents.abs(), 2_020);
                if savings + t.cents < 0 {
                    return false;
                }
                self.balances[first][0] += t.cents;
                self.ledger += t.cents;
            }
            Kind::Amalgamate => {
                self.balances[first] = [0, 0];
                self.balances[second][1] += savings + checking;
            }
            Kind::WriteCheck => {
                let taken = if savings + checking < 500 { 600 } else { 500 };
                self.balances[first][1] -= taken;
                self.ledger -= taken;
            }
            Kind::SendPayment => {
                if checking < 500 {
                    return false;
                }
                self.balances[first][1] -= 500;
                self.balances[second][1] += 500;
            }
        }
        true
    }

    fn expect(&self, bank: &Bank, image: &mut Image) {
        let m = &mut Direct::new(image);
        for (customer, expected) in (1..).zip(&self.balances) {
            let rows = [bank.savings, bank.checking].map(|table| table.find(m, customer));
            assert_eq!(rows.map(|row| m.load(row.word(BALANCE)) as i64), *expected);
        }
        assert_eq!(m.load(bank.ledger_of(0)) as i64, self.ledger);
    }
}

#[test]
fn transactions_do_what_their_sources_say() {
    for mix in ["standard", "original"] {
        let (bank, arena, mut image) = bank(&[SMALL[0], SMALL[1], ("smallbank.mix", mix)]);
        let mut model = Model::of(&bank);
        let mut random = generator(5, 0);
        let mut failures = BTreeMap::new();
        for number in 0..20_000 {
            let (t, succeeded) = next((&bank, &arena), &mut image, &mut random);
            assert_eq!(succeeded, model.perform(&t), "{t:?}");
            *failures.entry(t.kind).or_insert(0) += u32::from(!succeeded);
            if number % 500 == 0 {
                model.expect(&bank, &mut image);
            }
        }
        // Amalgamations leave some customers with nothing.
        let failed: Vec<Kind> = failures.into_iter().filter(|f| f.1 > 0).map(|f| f.0).collect();
        let both = [Kind::TransactSavings, Kind::SendPayment];
        assert_eq!(failed, if mix == "standard" { &both[..] } else { &both[..1] });
    }
}

#[test]
fn the_mixes_and_the_hotspot_are_as_asked_for() {
    const TRANSACTIONS: u32 = 60_000;
    let near = |count, share, what: &str| testing::is_near(count, TRANSACTIONS, share, what);
    for (mix, hot) in [("standard", 90), ("original", 90), ("standard", 0), ("standard", 100)] {
        let percent = hot.to_string();
        let settings = [("smallbank.mix", mix), ("smallbank.hotspot_percent", percent.as_str())];
        let (bank, ..) = bank(&settings);
        assert_eq!((bank.customers.all, bank.customers.hot), (18_000, 1_000));
        let mut random = generator(5, 0);
        let (mut kinds, mut in_hotspot) = (BTreeMap::new(), 0);
        for _ in 0..TRANSACTIONS {
            let t = bank.draw(&mut random);
            *kinds.entry(t.kind).or_insert(0) += 1;
            let [first, second] = t.names.map(|name| {
                assert!((1..=18_000).contains(&name), "{t:?}");
                name <= 1_000
            });
            assert!(first == second && t.names[0] != t.names[1], "{t:?}");
            in_hotspot += u32::from(first);
        }
        near(in_hotspot, f64::from(hot) / 100.0, "in the hotspot");
        for (kind, standard, original) in MIX {
            let percent = if mix == "standard" { standard } else { original };
            let count = kinds.get(&kind).copied().unwrap_or(0);
            near(count, f64::from(percent) / 100.0, &format!("{kind:?}"));
        }
    }
}

/// A word that a transaction changed and a failure lost changes the sum, whichever it is.
#[test]
fn every_lost_word_is_seen() {
    let request = with(&testing::request(testing::small(), 1, 500), &SMALL);
    let (workload, image) = populated(build, &request);
    let (lost, unseen) = testing::losses(workload.as_ref(), &request, image, |_| true);
    assert!(lost > 500 && unseen.is_empty(), "of {lost} words that were lost: {unseen:?}");
}

#[test]
fn the_check_ends_on_any_word() {
    let request = with(&testing::request(testing::small(), 2, 100), &SMALL);
    let (workload, image) = populated(build, &request);
    let (mut image, _) = run(workload.as_ref(), &request, image, |_, _, _| {});
    let end = request.start.0 + (64 << 10);
    let (seen, tried) = corrupt_each_word(workload.as_ref(), &mut image, (request.start.0..end, 1));
    assert!(tried > 1000 && seen == tried, "{seen} of {tried}");
}

/// A customer's number determines the buckets of savings and checking; it is a small one.
#[test]
fn pointers_remember_their_loads() {
    let (known, chased) =
        origins(small, |word, at| (word..word + 256).contains(&at.0) || word <= 40);
    assert!(known > 100 && chased > known, "{chased} accesses through pointers, {known} others");
}

#[test]
fn banks_that_cannot_be_are_refused() {
    let refused = |threads, settings: &[(&str, &str)]| {
        let request = with(&testing::request(testing::small(), threads, 100), settings);
        testing::refusal(build, &request)
    };
    let hotspot = |n| [("smallbank.customers", "100"), ("smallbank.hotspot_customers", n)];
    for (threads, settings, bounds) in [
        (1, hotspot("99"), "2 to 98 would do"),
        (1, hotspot("1"), "2 to 98 would do"),
        (8, hotspot("15"), "16 to 84 would do"),
    ] {
        let (key, _, why) = refused(threads, &settings);
        assert_eq!(key, "smallbank.hotspot_customers");
        assert!(why.ends_with(bounds), "{why}");
    }
    for (percent, hot) in [("100", "100"), ("0", "0"), ("90", "2"), ("90", "98")] {
        let settings = [hotspot(hot)[0], hotspot(hot)[1], ("smallbank.hotspot_percent", percent)];
        let request = with(&testing::request(testing::small(), 1, 100), &settings);
        assert!(build(&request).is_ok(), "{settings:?}");
    }
    let few = [
        ("smallbank.customers", "15"),
        ("smallbank.hotspot_customers", "0"),
        ("smallbank.hotspot_percent", "0"),
    ];
    let (key, _, why) = refused(8, &few);
    assert_eq!(key, "smallbank.customers");
    assert!(why.contains("at least 16 would do"), "{why}");
    let mut tight = testing::request(testing::small(), 1, 100);
    tight.end = tight.start.plus(64 << 10);
    let (key, _, why) = testing::refusal(build, &tight);
    assert_eq!(key, "smallbank.customers");
    assert!(why.contains("pm.capacity_bytes"), "{why}");
}
