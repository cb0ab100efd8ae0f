//! SmallBank's six transactions, and how often each is drawn.
//!
//! | transaction | standard | original | of | does | fails if |
//! |---|---|---|---|---|---|
//! | Balance | 15 % | 20 % | N | reads both balances | |
//! | DepositChecking | 15 % | 20 % | N, 1.30 | adds the amount to checking | |
//! | TransactSavings | 15 % | 20 % | N, ± 20.20 | adds the amount to savings | savings were negative then |
//! | Amalgamate | 15 % | 20 % | N, M | moves all of N to checking of M | |
//! | WriteCheck | 15 % | 20 % | N, 5.00 | takes the amount from checking, and 1.00 besides if N has less in both | |
//! | SendPayment | 25 % | | N, M, 5.00 | moves the amount from checking of N to that of M | N has less in checking |
//!
//! Each begins by looking up its customers' names in Account. Amounts in dollars are H-Store's, whose
//! TransactSavings always has the same sign; Alomari et al. have deposits and withdrawals, so that one or the other is drawn here,
//! as often. What fails has stored nothing.

use rand::RngExt;
use rand_pcg::Pcg64;

use super::{BALANCE, Bank, Mix};
use crate::costs;
use crate::structures::Table;
use graven_machine::program::{Memory, Ptr};

/// Amounts, in cents.
const DEPOSIT_CENTS: i64 = 130;
const TRANSACT_CENTS: i64 = 2_020;
const CHECK_CENTS: i64 = 500;
const PENALTY_CENTS: i64 = 100;
const PAYMENT_CENTS: i64 = 500;

/// Kinds of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Balance,
    DepositChecking,
    TransactSavings,
    Amalgamate,
    WriteCheck,
    SendPayment,
}

/// All kinds, with their percentages in the standard and in the original mix.
pub(super) const MIX: [(Kind, u32, u32); 6] = [
    (Kind::Balance, 15, 20),
    (Kind::DepositChecking, 15, 20),
    (Kind::TransactSavings, 15, 20),
    (Kind::Amalgamate, 15, 20),
    (Kind::WriteCheck, 15, 20),
    (Kind::SendPayment, 25, 0),
];

/// The customers of a bank: numbers 1 to `all`, the first of them hot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Customers {
    pub(super) all: u64,
    pub(super) hot: u64,
    pub(super) hot_percent: u32,
}

impl Customers {
    /// Two different customers, both hot or both not.
    fn draw_two(&self, random: &mut Pcg64) -> [u64; 2] {
        let is_hot = random.random_range(0..100) < self.hot_percent;
        let range = if is_hot { 1..=self.hot } else { self.hot + 1..=self.all };
        let first = random.random_range(range.clone());
        // One of the others, as often as any.
        let other = random.random_range(*range.start()..*range.end());
        [first, if other < first { other } else { other + 1 }]
    }
}

/// One transaction with its parameters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transaction {
    pub(super) kind: Kind,
    /// The customer, and the other one of kinds with two.
    pub(super) names: [u64; 2],
    pub(super) cents: i64,
}

impl Transaction {
    pub(super) fn drawn(mix: Mix, customers: &Customers, random: &mut Pcg64) -> Self {
        let mut percent = random.random_range(0..100);
        let chosen = MIX.iter().find(|&&(_, standard, original)| {
            let share = if mix == Mix::Standard { standard } else { original };
            let is_it = percent < share;
            percent = percent.wrapping_sub(share);
            is_it
        });
        let kind = chosen.expect("the shares add up to 100").0;
        let names = customers.draw_two(random);
        let deposits: bool = random.random_range(0..2) == 0;
        let cents = match kind {
            Kind::Balance | Kind::Amalgamate => 0,
            Kind::DepositChecking => DEPOSIT_CENTS,
            Kind::TransactSavings if deposits => TRANSACT_CENTS,
            Kind::TransactSavings => -TRANSACT_CENTS,
            Kind::WriteCheck => CHECK_CENTS,
            Kind::SendPayment => PAYMENT_CENTS,
        };
        Self { kind, names, cents }
    }

    fn has_two(&self) -> bool {
        matches!(self.kind, Kind::Amalgamate | Kind::SendPayment)
    }

    pub(super) fn customers(&self) -> [Option<u64>; 2] {
        [Some(self.names[0]), self.has_two().then_some(self.names[1])]
    }

    /// Number of parameters that are drawn for it.
    pub(super) fn parameters(&self) -> u32 {
        1 + u32::from(self.has_two() || self.kind == Kind::TransactSavings)
    }
}

/// A balance that has been read, and where it is.
#[derive(Clone, Copy)]
struct Account {
    at: Ptr,
    cents: i64,
}

impl Account {
    fn set<M: Memory>(&self, m: &mut M, cents: i64) {
        m.store(self.at, cents as u64);
    }

    fn add<M: Memory>(&self, m: &mut M, cents: i64) {
        self.set(m, self.cents + cents);
    }
}

/// A customer's account in one of the tables.
fn account<M: Memory>(m: &mut M, table: Table, customer: Ptr) -> Account {
    let at = table.told_by(customer).find(m, customer.addr.0).word(BALANCE);
    Account { at, cents: m.load(at) as i64 }
}

impl Bank {
    /// Performs a transaction of a thread, and returns whether it succeeded.
    pub(super) fn run<M: Memory>(&self, m: &mut M, thread: u64, t: &Transaction) -> bool {
        let customer = self.customer(m, t.names[0]);
        match t.kind {
            Kind::Balance => {
                self.savings_of(m, customer);
                self.checking_of(m, customer);
            }
            Kind::DepositChecking => {
                self.checking_of(m, customer).add(m, t.cents);
                self.enter(m, thread, t.cents);
            }
            Kind::TransactSavings => {
                let savings = self.savings_of(m, customer);
                m.compute(costs::COMPARE);
                if savings.cents + t.cents < 0 {
                    return false;
                }
                savings.add(m, t.cents);
                self.enter(m, thread, t.cents);
            }
            Kind::Amalgamate => {
                let other = self.customer(m, t.names[1]);
                self.amalgamate(m, customer, other);
            }
            Kind::WriteCheck => self.write_check(m, thread, customer, t.cents),
            Kind::SendPayment => {
                let other = self.customer(m, t.names[1]);
                return self.send_payment(m, customer, other, t.cents);
            }
        }
        true
    }

    /// The number of the customer of this name, with the load that returned it.
    fn customer<M: Memory>(&self, m: &mut M, name: u64) -> Ptr {
        self.account.find(m, name)
    }

    fn savings_of<M: Memory>(&self, m: &mut M, customer: Ptr) -> Account {
        account(m, self.savings, customer)
    }

    fn checking_of<M: Memory>(&self, m: &mut M, customer: Ptr) -> Account {
        account(m, self.checking, customer)
    }

    /// Enters money that came in, or went out, into the ledger.
    fn enter<M: Memory>(&self, m: &mut M, thread: u64, cents: i64) {
        let at = self.ledger_of(thread);
        let net = m.load(at);
        m.store(at, net.wrapping_add_signed(cents));
    }

    fn amalgamate<M: Memory>(&self, m: &mut M, from: Ptr, to: Ptr) {
        let (savings, checking) = (self.savings_of(m, from), self.checking_of(m, from));
        let other = self.checking_of(m, to);
        savings.set(m, 0);
        checking.set(m, 0);
        other.add(m, savings.cents + checking.cents);
    }

    fn write_check<M: Memory>(&self, m: &mut M, thread: u64, customer: Ptr, cents: i64) {
        let (savings, checking) = (self.savings_of(m, customer), self.checking_of(m, customer));
        m.compute(costs::COMPARE);
        let is_covered = savings.cents + checking.cents >= cents;
        let taken = cents + if is_covered { 0 } else { PENALTY_CENTS };
        checking.add(m, -taken);
        self.enter(m, thread, -taken);
    }

    fn send_payment<M: Memory>(&self, m: &mut M, from: Ptr, to: Ptr, cents: i64) -> bool {
        let checking = self.checking_of(m, from);
        m.compute(costs::COMPARE);
        if checking.cents < cents {
            return false;
        }
        let other = self.checking_of(m, to);
        checking.add(m, -cents);
        other.add(m, cents);
        true
    }
}
