//! Program of a thread: one terminal of a warehouse that never thinks.
//!
//! A terminal deals from a deck of 100 cards, which it shuffles when they are dealt: 45 New-Orders, 43 Payments, and 4 of
//! each other kind. So every hundred of its requests has the least shares that clause 5.2.3 allows, exactly. A Delivery is
//! a transaction for each district, and a Stock-Level two: of 1,000 transactions of the standard mix, 321 are New-Orders.
//! The run may end within either.
//!
//! Thread t works for warehouse t modulo the number of warehouses; its Stock-Levels are about one district of it.

use super::customers::{NAMESAKES, Namesakes};
use super::database::{Database, History, LINES_MAX};
use super::random::Random;
use super::{Mix, content::LOAD_DATE, delivery, new_order, order_status, payment, stock_level};
use crate::structures::Arena;
use crate::{costs, locking};
use graven_machine::program::{Load, LockId, Thread};
use graven_machine::workload::Request;

/// The five kinds of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

/// The cards of a deck.
pub(super) const STANDARD: [(Kind, usize); 5] = [
    (Kind::NewOrder, 45),
    (Kind::Payment, 43),
    (Kind::OrderStatus, 4),
    (Kind::Delivery, 4),
    (Kind::StockLevel, 4),
];

/// A deck of cards.
pub(super) struct Deck {
    cards: Vec<Kind>,
    dealt: usize,
}

impl Deck {
    pub(super) fn new(mix: Mix) -> Self {
        let cards: Vec<Kind> = match mix {
            Mix::NewOrder => vec![Kind::NewOrder],
            Mix::Standard => {
                let cards = STANDARD.iter().map(|&(kind, n)| std::iter::repeat_n(kind, n));
                cards.flatten().collect()
            }
        };
        Deck { dealt: cards.len(), cards }
    }

    pub(super) fn deal(&mut self, random: &mut Random) -> Kind {
        if self.dealt == self.cards.len() {
            random.shuffle(&mut self.cards);
            self.dealt = 0;
        }
        self.dealt += 1;
        self.cards[self.dealt - 1]
    }
}

/// State of a thread.
pub(super) struct Terminal {
    db: Database,
    thread: u64,
    threads: u64,
    random: Random,
    deck: Deck,
    home: u64,
    district: u64,
    arena: Arena,
    history: History,
    /// Requests so far.
    requests: u64,
    /// Transactions that are left.
    left: u64,
    locks: Vec<LockId>,
    namesakes: Namesakes,
    items: Vec<u64>,
}

/// When request `number` of a thread is made: no two are made at the same time.
fn date(number: u64, thread: u64, threads: u64) -> u64 {
    LOAD_DATE + 1 + number * threads + thread
}

/// The last date of a run.
pub(super) fn last_date(request: &Request) -> u64 {
    let threads = u64::from(request.threads);
    date(request.transactions / threads + 1, threads, threads)
}

impl Terminal {
    pub(super) fn new(db: &Database, request: &Request, thread: u32) -> Self {
        let scale = &db.scale;
        let number = u64::from(thread);
        let warehouses = u64::from(scale.warehouses);
        Terminal {
            db: db.clone(),
            thread: number,
            threads: request.threads.into(),
            random: Random::new(scale, request.seed, thread),
            deck: Deck::new(scale.mix),
            home: number % warehouses + 1,
            district: number / warehouses % u64::from(scale.districts) + 1,
            arena: db.arenas[thread as usize],
            history: db.histories[thread as usize],
            requests: 0,
            left: request.transactions_of(thread),
            locks: Vec::with_capacity(20 * LINES_MAX as usize),
            namesakes: Vec::with_capacity(NAMESAKES),
            items: Vec::with_capacity(20 * LINES_MAX as usize),
        }
    }

    /// Makes requests until no transaction is left.
    pub(super) fn run(mut self, thread: &mut Thread<'_>) {
        while self.left > 0 {
            let kind = self.deck.deal(&mut self.random);
            match kind {
                Kind::NewOrder => self.new_order(thread),
                Kind::Payment => self.payment(thread),
                Kind::OrderStatus => self.order_status(thread),
                Kind::Delivery => self.delivery(thread),
                Kind::StockLevel => self.stock_level(thread),
            }
            self.requests += 1;
        }
    }

    fn date(&self) -> u64 {
        date(self.requests, self.thread, self.threads)
    }

    /// One transaction, under the locks that were collected.
    fn transaction<T>(
        &mut self,
        thread: &mut Thread<'_>,
        body: impl FnOnce(Parts<'_>, &mut Thread<'_>) -> T,
    ) {
        self.left -= 1;
        thread.compute(self.random.take_instructions());
        let Terminal { db, arena, history, locks, namesakes, items, .. } = self;
        locking::transaction(thread, locks, |m| {
            m.compute(costs::OPERATION);
            body(Parts { db, arena, history, namesakes, items }, m);
        });
        locks.clear();
    }

    fn new_order(&mut self, thread: &mut Thread<'_>) {
        let input = new_order::Input::draw(&mut self.random, self.home);
        let date = self.date();
        input.locks(&self.db, &mut self.locks);
        self.transaction(thread, |with, m| input.run(with.db, m, with.arena, date));
    }

    fn payment(&mut self, thread: &mut Thread<'_>) {
        let input = payment::Input::draw(&mut self.random, self.home);
        let date = self.date();
        input.locks(&self.db, &mut self.locks);
        self.transaction(thread, |with, m| {
            input.run(with.db, m, with.history, date, with.namesakes);
        });
    }

    fn order_status(&mut self, thread: &mut Thread<'_>) {
        let input = order_status::Input::draw(&mut self.random, self.home);
        input.locks(&self.db, &mut self.locks);
        self.transaction(thread, |with, m| input.run(with.db, m, with.namesakes));
    }

    fn delivery(&mut self, thread: &mut Thread<'_>) {
        let (carrier, date) = (self.random.between(1, 10), self.date());
        for d in 1..=u64::from(self.db.scale.districts).min(self.left) {
            let place = (self.home, d);
            self.locks.push(self.db.district_lock(place));
            self.transaction(thread, |with, m| {
                delivery::run(with.db, m, with.arena, place, (carrier, date))
            });
        }
    }

    fn stock_level(&mut self, thread: &mut Thread<'_>) {
        let (place, threshold) = ((self.home, self.district), self.random.between(10, 20));
        self.locks.push(self.db.district_lock(place));
        self.transaction(thread, |with, m| {
            stock_level::find_items(with.db, m, place, with.items);
        });
        if self.left > 0 {
            stock_level::locks(&self.db, place.0, &self.items, &mut self.locks);
            self.transaction(thread, |with, m| {
                stock_level::count(with.db, m, place.0, with.items, threshold)
            });
        }
    }
}

/// Parts that a transaction works with.
struct Parts<'a> {
    db: &'a Database,
    arena: &'a Arena,
    history: &'a History,
    namesakes: &'a mut Namesakes,
    items: &'a mut Vec<u64>,
}
