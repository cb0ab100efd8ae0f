//! The possible values of words that are stored to outside transactions: each rule with the values that it accepts and convicts.

use super::*;

const A: Addr = Addr(0);
const B: Addr = Addr(8);
const C: Addr = Addr(16);
const END: Addr = Addr(4096);

/// The first transaction of a thread.
const fn first(thread: u32) -> Tx {
    Tx { thread, number: 0 }
}

/// A checker, and what a simulation keeps for it. The words A, B and C hold 1, 2 and 3 at first, and are durable.
struct Bench {
    checker: DurabilityChecker,
    now: Image,
    outside: OutsideWords,
}

impl Bench {
    fn new(guarantee: Guarantee) -> Bench {
        let checker = DurabilityChecker::new(guarantee, 2, Addr(0), END);
        let mut now = Image::new();
        for (addr, value) in [(A, 1), (B, 2), (C, 3)] {
            now.store(addr, value);
        }
        Bench { checker, now, outside: OutsideWords::default() }
    }

    fn durable() -> Bench {
        Bench::new(Guarantee::Durable)
    }

    fn begin(mut self, tx: Tx) -> Bench {
        self.checker.begin(tx);
        self
    }

    fn store(mut self, tx: Tx, addr: Addr, value: u64) -> Bench {
        self.checker.store(tx, addr, self.now.load(addr), 0, self.outside.remove(addr));
        self.now.store(addr, value);
        self
    }

    fn ending(mut self, tx: Tx) -> Bench {
        self.checker.ending(tx);
        self
    }

    fn acknowledged(mut self, tx: Tx) -> Bench {
        self.checker.acknowledged(tx);
        self
    }

    fn commit(self, tx: Tx) -> Bench {
        self.ending(tx).acknowledged(tx)
    }

    /// Thread 0 stores outside transactions.
    fn outside(self, addr: Addr, value: u64) -> Bench {
        self.outside_by(0, addr, value)
    }

    fn outside_by(mut self, thread: u32, addr: Addr, value: u64) -> Bench {
        self.checker.store_outside(thread, addr, 0, 0);
        self.outside.store(addr, self.now.load(addr), value);
        self.now.store(addr, value);
        self
    }

    /// The verdict if recovery leaves these words.
    fn verdict(&self, words: [u64; 3]) -> Result<(), Verdict> {
        let mut recovered = SurvivingImage::default();
        let differs =
            |&(addr, found, now): &(Addr, u64, u64)| self.outside.differs(addr, found, now);
        let different = Image::new().differences(&self.now, Addr(0), END).filter(differs).count();
        for (addr, word) in [A, B, C].into_iter().zip(words) {
            recovered.store(addr, word);
        }
        self.checker.check(&recovered, different as u64, &self.now, &self.outside)
    }

    #[track_caller]
    fn accepts(&self, all: &[[u64; 3]]) {
        for &words in all {
            assert_eq!(self.verdict(words), Ok(()), "{words:?}");
        }
    }

    #[track_caller]
    fn convicts(&self, all: &[[u64; 3]]) {
        for &words in all {
            assert!(self.verdict(words).is_err(), "{words:?} is accepted");
        }
    }
}

#[test]
fn a_word_holds_what_was_promised_or_any_later_value() {
    let bench = Bench::durable().outside(A, 10).outside(A, 11).outside(A, 12);
    bench.accepts(&[[1, 2, 3], [10, 2, 3], [11, 2, 3], [12, 2, 3]]);
    assert_eq!(
        bench.verdict([13, 2, 3]),
        Err(Verdict::NeverStored { addr: A, found: 13, promised: 1, stored: 3 })
    );
    // Others are held to what was promised.
    let lost = Verdict::Lost { addr: B, found: 10, committed: 2 };
    assert_eq!(bench.verdict([12, 10, 3]), Err(lost));
    assert_eq!(bench.checker.ever_outside.len(), 1);
}

#[test]
fn from_the_acknowledgement_on_a_word_holds_the_transaction_s_value() {
    let stored = Bench::durable().outside(A, 10).begin(first(0)).store(first(0), A, 20);
    let bench = stored.commit(first(0));
    bench.accepts(&[[20, 2, 3]]);
    bench.convicts(&[[1, 2, 3], [10, 2, 3]]);
    // What was stored before the promise does not come back, whatever is stored after it.
    let bench = bench.outside(A, 30).outside(A, 31);
    bench.accepts(&[[20, 2, 3], [30, 2, 3], [31, 2, 3]]);
    bench.convicts(&[[1, 2, 3], [10, 2, 3], [32, 2, 3]]);
}

#[test]
fn a_value_that_came_back_is_one_of_those_after_the_promise() {
    let bench = Bench::durable().outside(A, 10).begin(first(0)).store(first(0), A, 20);
    let bench = bench.commit(first(0)).outside(A, 10);
    bench.accepts(&[[20, 2, 3], [10, 2, 3]]);
    bench.convicts(&[[1, 2, 3]]);
}

#[test]
fn an_open_transaction_leaves_what_the_word_might_hold_before_it() {
    let bench = Bench::durable().outside(A, 10).outside(A, 11);
    let bench = bench.begin(first(0)).store(first(0), A, 20).store(first(0), A, 21);
    bench.accepts(&[[1, 2, 3], [10, 2, 3], [11, 2, 3]]);
    let found = |found| Verdict::NotUndone { thread: 0, number: 0, addr: A, found, before: 11 };
    for word in [20, 21, 9] {
        assert_eq!(bench.verdict([word, 2, 3]), Err(found(word)));
    }
}

#[test]
fn an_ending_transaction_is_atomic_in_the_words_that_tell() {
    // A might hold 1, 10 or 11, B only 2.
    let bench = Bench::durable().outside(A, 10).outside(A, 11).begin(first(0));
    let bench = bench.store(first(0), A, 20).store(first(0), B, 22).ending(first(0));
    bench.accepts(&[[1, 2, 3], [10, 2, 3], [11, 2, 3], [20, 22, 3]]);
    for word in [1, 10, 11] {
        let partial = bench.verdict([word, 22, 3]);
        assert!(
            matches!(partial, Err(Verdict::Partial { there: B, missing: A, .. })),
            "{partial:?}"
        );
    }
    assert!(matches!(bench.verdict([20, 2, 3]), Err(Verdict::Partial { there: A, .. })));
    assert!(matches!(bench.verdict([12, 22, 3]), Err(Verdict::Neither { addr: A, .. })));
}

#[test]
fn a_word_that_might_have_held_the_new_value_before_tells_nothing() {
    let bench = Bench::durable().outside(A, 20).outside(A, 11).begin(first(0));
    let bench = bench.store(first(0), A, 20).store(first(0), B, 22).ending(first(0));
    bench.accepts(&[[20, 2, 3], [20, 22, 3], [1, 2, 3], [11, 2, 3]]);
    bench.convicts(&[[1, 22, 3], [11, 22, 3]]);
    let bench = bench.acknowledged(first(0));
    bench.accepts(&[[20, 22, 3]]);
    bench.convicts(&[[20, 2, 3], [11, 22, 3], [1, 2, 3]]);
}

/// A transaction that stores what the word holds already promises it from then on.
#[test]
fn a_silent_store_of_a_transaction_promises_what_was_stored_outside() {
    let bench = Bench::durable().outside(A, 10).begin(first(0)).store(first(0), A, 10);
    bench.accepts(&[[1, 2, 3], [10, 2, 3]]);
    let bench = bench.commit(first(0));
    bench.accepts(&[[10, 2, 3]]);
    bench.convicts(&[[1, 2, 3]]);
}

#[test]
fn stores_that_are_deferred_find_what_the_word_might_hold() {
    let bench = Bench::durable().outside(A, 10).begin(first(0)).store(first(0), B, 22);
    let mut bench = bench;
    bench.checker.store(first(0), A, 10, 0, bench.outside.remove(A));
    bench.checker.defer(first(0), &[(A, 20), (B, 22)]);
    let bench = bench.ending(first(0));
    bench.accepts(&[[1, 2, 3], [10, 2, 3], [20, 22, 3]]);
    bench.convicts(&[[1, 22, 3], [10, 22, 3], [20, 2, 3], [11, 22, 3]]);
}

#[test]
fn an_end_that_is_put_off_finds_the_same_again() {
    let mut bench = Bench::durable().outside(A, 10).begin(first(0)).store(first(0), A, 20);
    bench.checker.ending(first(0));
    bench.checker.put_off(first(0));
    bench.accepts(&[[1, 2, 3], [10, 2, 3]]);
    bench.convicts(&[[20, 2, 3]]);
}

/// Two transactions have ended, with stores to A outside before, between and behind them: 10, then 20 by the first, 21,
/// then 30 by the second, 31. The second has stored to B, too.
fn prefix(lost_max: u64) -> Bench {
    let [one, two] = [0, 1].map(|number| Tx { thread: 0, number });
    let bench = Bench::new(Guarantee::Prefix { lost_max }).outside(A, 10);
    let bench = bench.begin(one).store(one, A, 20).commit(one).outside(A, 21);
    let bench = bench.begin(two).store(two, A, 30).store(two, B, 32).commit(two);
    bench.outside(A, 31)
}

#[test]
fn under_commit_order_a_word_holds_what_it_might_with_the_first_transactions_alone() {
    let bench = prefix(2);
    bench.accepts(&[[30, 32, 3], [31, 32, 3]]);
    bench.accepts(&[[20, 2, 3], [21, 2, 3], [31, 2, 3]]);
    bench.accepts(&[[1, 2, 3], [10, 2, 3]]);
    bench.convicts(&[[20, 32, 3], [21, 32, 3], [10, 32, 3], [1, 32, 3], [30, 2, 3], [11, 2, 3]]);
    assert_eq!(
        bench.verdict([20, 32, 3]),
        Err(Verdict::NoPrefix { ended: 2, addr: A, expected: 30, found: 20 })
    );
}

#[test]
fn under_commit_order_no_more_is_lost_than_is_promised() {
    let bench = prefix(1);
    bench.accepts(&[[31, 32, 3], [21, 2, 3]]);
    for word in [1, 10] {
        let too_many = Verdict::TooManyLost { lost: 2, lost_max: 1, thread: 0, number: 0 };
        assert_eq!(bench.verdict([word, 2, 3]), Err(too_many));
    }
}

#[test]
fn under_commit_order_an_open_transaction_leaves_what_the_word_might_hold() {
    let one = Tx { thread: 0, number: 2 };
    let bench = prefix(1).begin(one).store(one, A, 40).store(one, C, 43);
    bench.accepts(&[[30, 32, 3], [31, 32, 3], [20, 2, 3], [21, 2, 3], [31, 2, 3]]);
    bench.convicts(&[[40, 32, 3], [31, 32, 43], [40, 32, 43], [20, 32, 3]]);
}

#[test]
fn a_store_to_a_word_of_another_thread_s_open_transaction_is_a_race() {
    let open = || Bench::durable().begin(first(0)).store(first(0), A, 20);
    let found = Race { addr: A, of: first(0), by: Storer::Outside(1) };
    let race = Some(found);
    assert_eq!(open().outside_by(1, A, 30).checker.race, race);
    assert_eq!(open().ending(first(0)).outside_by(1, A, 30).checker.race, race);
    let told = found.to_string();
    assert!(
        told.contains(
            "outside transactions thread 1 stores to 0x0, which transaction 0 of thread 0"
        ),
        "{told}"
    );
    // Another word; after the acknowledgement; before the transaction stores to it.
    assert_eq!(open().outside_by(1, B, 30).checker.race, None);
    assert_eq!(open().commit(first(0)).outside_by(1, A, 30).checker.race, None);
    let before = Bench::durable().begin(first(0)).outside_by(1, A, 30).store(first(0), A, 20);
    assert_eq!(before.checker.race, None);
    // A store that the design's code puts off counts as soon as the program knows of it.
    let mut put_off = Bench::durable().begin(first(0));
    put_off.checker.put_off_store(first(0), A);
    assert_eq!(put_off.outside_by(1, A, 30).checker.race, race);
}

#[test]
fn a_race_does_not_stop_the_checker() {
    for guarantee in [Guarantee::Durable, Guarantee::Prefix { lost_max: 1 }] {
        let bench =
            Bench::new(guarantee).begin(first(0)).store(first(0), A, 20).outside_by(1, A, 30);
        for word in [1, 20, 30, 40] {
            // What it says is nobody's matter.
            let _ = bench.verdict([word, 2, 3]);
        }
    }
}
