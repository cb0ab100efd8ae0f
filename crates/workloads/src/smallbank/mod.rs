//! `smallbank`: the SmallBank benchmark, a bank whose customers have a savings and a checking account each.
//!
//! Models the banking application of Silo (Fig. 4), which cites Alomari et al., "The Cost of
//! Serializability on Platforms That Use Snapshot Isolation" (ICDE 2008), for it; SendPayment and the
//! standard mix are those of H-Store. Transactions are in [`transactions`], tables here:
//!
//! | table | rows | row, in words | found by |
//! |---|---|---|---|
//! | Account | one per customer, two lines | 0 next, 1 customer number, 8 to 15 name: 64 digits that spell the number | name |
//! | Savings | one per customer, one line | 0 next, 1 customer number, 2 balance | customer number |
//! | Checking | the same | the same | customer number |
//! | ledger | one line per thread | 0: deposits less withdrawals of the thread's transactions | the thread knows it |
//!
//! Amounts are in cents, as numbers with a sign. The tables are hash tables
//! ([`table`](super::structures::table), [`text_index`](super::structures::text_index)); a customer's lock covers its
//! rows in all three. Balances begin at 10,000 to 50,000 dollars, drawn uniformly (H-Store).
//!
//! **The ledger is ours.** SmallBank keeps no history, so that nothing in its tables would distinguish a lost deposit from
//! one that never was. A transaction that brings money in or takes it out adds the amount to its thread's ledger, so
//! that the balances are at any time what they were in the beginning and what the ledgers say besides; transfers
//! leave the sum alone. It costs those three of six kinds one load and one store of a line of the thread's own.
//!
//! Customers: of `hotspot_percent` % of the transactions both are in the hotspot, of the others
//! both outside. Threads that do not share have their part of the customers and of the hotspot
//! each. Of the section `workload`, `sharing` alone has an effect. Left out: names that no customer
//! has, closed accounts.

mod transactions;

#[cfg(test)]
mod tests;

use rand_pcg::Pcg64;

use super::database::{Client, Database, DatabaseWorkload, OWNERS_MAX, Share, dealt};
use super::layout::{Layout, refusal, threads_of_parts};
use super::structures::table::{COLUMNS, Schema};
use super::structures::{Arena, Census, Table, TextIndex, ensure};
use graven_base::config::ConfigError;
use graven_base::memory::{Addr, LINE_BYTES, spread};
use graven_base::{choice, section};
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::{Checked, Request, Workload};
use transactions::{Customers, Transaction};

choice! {
    /// Shares of SmallBank's transactions.
    pub enum Mix {
        /// H-Store's: 15 % of each of six, but 25 % SendPayment.
        Standard = "standard",
        /// That of Alomari et al.: 20 % of each of five, without SendPayment.
        Original = "original",
    }
}

section! {
    /// The bank of SmallBank.
    pub struct SmallBankConfig("smallbank") {
        /// Customers, over all threads (Alomari et al.: 18,000).
        customers: u32 = 18_000, 2..=100_000_000, "customers";
        /// Customers of the hotspot, over all threads (Alomari et al.: 1,000).
        hotspot_customers: u32 = 1_000, 0..=100_000_000, "customers";
        /// Share of the transactions on customers of the hotspot (Alomari et al.: 90 %).
        hotspot_percent: u32 = 90, 0..=100, "%";
        /// Shares of the transactions.
        mix: Mix = Mix::Standard, (), "";
    }
}

/// Characters of a name (H-Store's schema).
const NAME: u64 = 64;

/// Bounds of the initial balances of a customer's accounts, in cents (H-Store).
const BALANCE_MIN: u64 = 1_000_000;
const BALANCE_MAX: u64 = 5_000_000;

/// Word of the balance in a row.
const BALANCE: u64 = COLUMNS;

/// Size classes.
const ROW: usize = 0;
const ACCOUNT: usize = 1;
const BLOCKS: [u64; 2] = [Table::row_bytes(1), TextIndex::node_bytes(NAME)];

/// Customers that a transaction may need.
const CUSTOMERS_MIN: u64 = 2;

/// Everything of one bank.
#[derive(Clone, Copy, Debug)]
struct Bank {
    /// Start of the ledger.
    ledger: Addr,
    threads: u64,
    seed: u64,
    customers: Customers,
    mix: Mix,
    account: TextIndex,
    savings: Table,
    checking: Table,
}

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(assemble(request)?))
}

fn assemble(request: &Request) -> Result<DatabaseWorkload<Bank>, ConfigError> {
    let config: &SmallBankConfig = request.whole.get();
    let customers = u64::from(config.customers);
    check_hotspot(config, request)?;
    let owners = ("smallbank.customers", customers, CUSTOMERS_MIN);
    let place = |layout: &mut Layout, share: &Share| Bank::place(layout, share, config, request);
    DatabaseWorkload::new("smallbank", request, owners, place, |own, _| {
        let [row, account] = BLOCKS;
        [(row, own.saturating_mul(2)), (account, own), (0, 0)]
    })
}

/// A hotspot from which transactions draw needs two customers in each bank, and so do the others.
fn check_hotspot(config: &SmallBankConfig, request: &Request) -> Result<(), ConfigError> {
    let banks = threads_of_parts(request).len() as u64;
    let (customers, hotspot) = (u64::from(config.customers), u64::from(config.hotspot_customers));
    let least = if config.hotspot_percent > 0 { CUSTOMERS_MIN * banks } else { 0 };
    let outside = if config.hotspot_percent < 100 { CUSTOMERS_MIN * banks } else { 0 };
    let most = customers.saturating_sub(outside);
    if (least..=most).contains(&hotspot) {
        return Ok(());
    }
    let why = format!(
        "of {customers} customers (smallbank.customers) of {banks} banks, with smallbank.hotspot_percent = {}, {least} to {most} \
         would do",
        config.hotspot_percent
    );
    Err(refusal("smallbank", "smallbank.hotspot_customers", hotspot.to_string(), why))
}

impl Bank {
    fn place(
        layout: &mut Layout,
        share: &Share,
        config: &SmallBankConfig,
        request: &Request,
    ) -> Self {
        let threads = u64::from(share.threads.end - share.threads.start);
        let ledger = layout.take(threads * LINE_BYTES);
        let banks = threads_of_parts(request).len() as u32;
        let bank = if banks == 1 { 0 } else { share.threads.start };
        let customers = Customers {
            all: share.owners,
            hot: dealt(config.hotspot_customers.into(), (bank, banks)),
            hot_percent: config.hotspot_percent,
        };
        let buckets = share.buckets(share.owners);
        let mut root = || layout.take(Table::root_bytes(share.stripes, buckets));
        let schema = Schema { class: ROW, row_bits: 0, shared_bits: 0 };
        Self {
            ledger,
            threads,
            seed: share.seed,
            customers,
            mix: config.mix,
            account: TextIndex::new(root(), share.stripes, buckets, ACCOUNT, NAME),
            savings: Table::new(root(), share.stripes, buckets, schema),
            checking: Table::new(root(), share.stripes, buckets, schema),
        }
    }

    /// Initial balances of a customer in savings and checking.
    fn initial(&self, customer: u64) -> [u64; 2] {
        [0, 1].map(|account| {
            let drawn = spread(!self.seed, 2 * customer + account);
            BALANCE_MIN + drawn % (BALANCE_MAX - BALANCE_MIN + 1)
        })
    }

    /// The word of a thread's ledger.
    fn ledger_of(&self, thread: u64) -> Ptr {
        Ptr::known(self.ledger.plus(thread * LINE_BYTES))
    }

    /// Checks that each customer has one row, and returns the sum of the balances; `accept` says
    /// whether a balance may be.
    fn check_balances(
        &self,
        census: &mut Census<'_>,
        (name, table): (&str, &Table),
        accept: fn(i64) -> bool,
    ) -> Checked<i64> {
        let image = census.image();
        let (mut sum, mut found) = (0i64, 0);
        table.walk(census, &mut |customer, row| {
            let balance = image.load(row.plus(BALANCE * 8)) as i64;
            (sum, found) = (sum.wrapping_add(balance), found + 1);
            self.check_customer(customer)?;
            ensure(accept(balance), || format!("customer {customer} has {balance} cents in {name}"))
        })?;
        self.check_number(census, name, found)?;
        Ok(sum)
    }

    fn check_customer(&self, customer: u64) -> Result<(), String> {
        let is_there = (1..=self.customers.all).contains(&customer);
        ensure(is_there, || format!("there is no customer {customer}"))
    }

    fn check_number(&self, census: &Census<'_>, name: &str, found: u64) -> Checked {
        let all = self.customers.all;
        census.ensure(found == all, || format!("{name} has {found} rows for {all} customers"))
    }
}

impl Database for Bank {
    type Transaction = Transaction;

    fn root(&self) -> Addr {
        self.ledger
    }

    fn owners(&self) -> u64 {
        self.customers.all
    }

    fn format<M: Memory>(&self, m: &mut M) {
        self.account.format(m);
        self.savings.format(m);
        self.checking.format(m);
        (0..self.threads).for_each(|thread| m.store(self.ledger_of(thread), 0));
    }

    fn insert_owner<M: Memory>(&self, m: &mut M, arena: &Arena, owner: u64) {
        self.account.insert(m, arena, owner, Ptr::known(Addr(owner)));
        for (table, cents) in [self.savings, self.checking].iter().zip(self.initial(owner)) {
            table.insert(m, arena, owner, |m, row| m.store(row.word(BALANCE), cents));
        }
    }

    fn draw(&self, random: &mut Pcg64) -> Transaction {
        Transaction::drawn(self.mix, &self.customers, random)
    }

    fn parameters(transaction: &Transaction) -> u32 {
        transaction.parameters()
    }

    fn owners_of(transaction: &Transaction) -> [Option<u64>; OWNERS_MAX] {
        transaction.customers()
    }

    fn perform<M: Memory>(
        &self,
        m: &mut M,
        client: &Client<'_>,
        transaction: &Transaction,
    ) -> bool {
        self.run(m, client.number, transaction)
    }

    fn check(&self, census: &mut Census<'_>) -> Checked {
        let mut found = 0;
        self.account.walk(census, &mut |name, customer| {
            found += 1;
            self.check_customer(name)?;
            ensure(name == customer, || {
                format!("the account with the name of customer {name} is that of {customer}")
            })
        })?;
        self.check_number(census, "Account", found)?;
        let is_covered = |cents: i64| cents >= 0;
        let savings = self.check_balances(census, ("Savings", &self.savings), is_covered)?;
        let checking = self.check_balances(census, ("Checking", &self.checking), |_| true)?;
        let sum = savings.wrapping_add(checking);
        let initial = (1..=self.customers.all).flat_map(|customer| self.initial(customer));
        let initial: u64 = initial.sum();
        let ledgers = (0..self.threads).map(|thread| census.load(self.ledger_of(thread).addr));
        let expected = ledgers.fold(initial, u64::wrapping_add) as i64;
        census.ensure(sum == expected, || {
            format!(
                "customers have {sum} cents, but had {initial} and the ledgers add up to {expected}"
            )
        })
    }
}
