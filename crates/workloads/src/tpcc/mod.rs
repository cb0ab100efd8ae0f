//! `tpcc`: TPC-C, revision 5.11: all nine tables with all their columns, and all five transactions, in PM.
//!
//! Models TPCC of MorLog (§VI-A: New-Order), Silo (Table III: "all the five transaction types"; §VI-A: New-Order), HOOP
//! (Table III: New-Order) and LALEA. No paper says how many warehouses there are, nor how rows and indexes lie. `tpcc-new-order` is
//! the same program, all of whose requests are New-Orders.
//!
//! | file | |
//! |---|---|
//! | [`schema`] | tables and columns (clause 1.3) |
//! | [`content`] | the initial rows (clause 4.3.3) |
//! | [`random`] | non-uniform draws and last names (clauses 2.1.6 and 4.3.2) |
//! | [`database`] | where rows and indexes lie; the table of bytes; locks |
//! | [`new_order`], [`payment`], [`order_status`], [`delivery`], [`stock_level`], [`customers`] | the transactions (clauses 2.4 to 2.8) |
//! | [`terminal`] | the mix (clause 5.2.3) |
//! | [`check`] | every row and index, and the consistency conditions (clause 3.3.2) |
//!
//! **One database transaction is one failure-atomic region.** Threads are the terminals, under strict two-phase locking, with locks taken
//! before the region: none is shared, so readers exclude each other as writers do. Where a transaction finds out which rows
//! it needs, a district's lock stands for all of them. What the terminal would be shown is loaded, and goes nowhere.
//!
//! All threads share the database, whatever `sharing` says; element sizes, the footprint, the mix of operations, their number
//! per transaction and the distribution of keys have no meaning here.
//!
//! Left out: think times, keying times and response times; the rollback of New-Orders ([`new_order`]); the deferred queue
//! of Delivery and its result file.

mod check;
mod content;
mod customers;
mod database;
mod delivery;
mod new_order;
mod order_status;
mod payment;
mod random;
mod schema;
mod stock_level;
mod terminal;

use database::Database;
use terminal::Terminal;

use graven_base::config::ConfigError;
use graven_base::memory::Image;
use graven_base::{choice, section};
use graven_machine::program::{Program, spawn};
use graven_machine::workload::{Checked, Extent, Request, Workload};

choice! {
    /// Transactions that terminals request.
    pub enum Mix {
        /// All five kinds of transactions: of 100 requests 45 New-Orders, 43 Payments, and 4 of each other kind.
        Standard = "standard",
        /// New-Orders.
        NewOrder = "new-order",
    }
}

section! {
    /// TPC-C: the size of its database, and what its terminals request.
    pub struct TpccConfig("tpcc") {
        /// Warehouses; each takes about 140 MB at the specification's cardinalities.
        warehouses: u32 = 1, 1..=1000, "warehouses";
        /// Transactions that terminals request.
        mix: Mix = Mix::Standard, (), "";
        /// Items, and stock rows of each warehouse.
        items: u32 = 100_000, 1..=1_000_000, "items";
        /// Districts of each warehouse.
        districts: u32 = 10, 1..=10, "districts";
        /// Customers of each district.
        customers_per_district: u32 = 3000, 1..=100_000, "customers";
        /// Orders that each district has in the beginning; three in ten are still to be delivered.
        orders_per_district: u32 = 3000, 0..=100_000, "orders";
    }
}

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(Tpcc::new(request)?))
}

struct Tpcc {
    request: Request,
    db: Database,
    extent: Extent,
}

impl Tpcc {
    fn new(request: &Request) -> Result<Self, ConfigError> {
        let scale = request.whole.get::<TpccConfig>();
        let (db, layout) = Database::lay_out(scale, request);
        let end = layout.end();
        if end > request.end {
            let why = format!(
                "with room for what {} transactions may insert, the database ends at {end}, but PM for programs at {}; \
                 lower it, or tpcc.items, or tpcc.customers_per_district, or tpcc.orders_per_district, or the number of \
                 transactions, or raise pm.capacity_bytes",
                request.transactions, request.end
            );
            return Err(ConfigError::Inconsistent {
                origin: "workload tpcc".into(),
                key: "tpcc.warehouses".into(),
                value: scale.warehouses.to_string(),
                why,
            });
        }
        Ok(Tpcc { request: request.clone(), db, extent: layout.extent() })
    }
}

impl Workload for Tpcc {
    fn populate(&self, image: &mut Image) {
        self.db.load(image);
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let terminal = Terminal::new(&self.db, &self.request, thread);
        spawn(move |thread| terminal.run(thread))
    }

    fn check(&self, image: &Image) -> Checked {
        check::check(&self.db, image, terminal::last_date(&self.request))
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

#[cfg(test)]
mod tests;
