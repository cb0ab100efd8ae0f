//! The check of a database in any image: every row and index, then the consistency conditions.
//!
//! Columns that no transaction changes must hold what the database was populated with, and columns that a transaction
//! derives from others what it derived. Each row is reached by every index that leads to it, once, and each block and node is accounted
//! for. Then the twelve conditions of clause 3.3.2 ([`conditions`]), and what they leave open: counts of
//! payments and deliveries, stock, and payments written down in `C_DATA`. Every walk is bounded by the census, or by
//! a cardinality.

mod conditions;
mod customers;
mod orders;
mod rows;

pub(super) use conditions::{CONDITIONS, derived};

use super::database::Database;
use super::schema::{district::*, warehouse::*};
use crate::structures::Census;
use graven_base::memory::{Addr, Image, WORD_BYTES};
use graven_machine::workload::{BrokenInvariant, Checked};

/// An order as the tables have it.
#[derive(Clone, Debug)]
pub(super) struct OrderFacts {
    at: Addr,
    customer: u64,
    pub(super) carrier: u64,
    all_local: bool,
    pub(super) ol_cnt: u64,
    /// Order-lines, those of them that are delivered, and what all cost.
    pub(super) lines: u64,
    pub(super) delivered: u64,
    pub(super) amount: u64,
    remote: u64,
    delivery: u64,
}

/// A district, with its orders by number from 1 on.
#[derive(Clone, Debug)]
pub(super) struct DistrictFacts {
    pub(super) place: (u64, u64),
    pub(super) ytd: u64,
    pub(super) next: u64,
    pub(super) history: u64,
    pub(super) orders: Vec<OrderFacts>,
    pub(super) new_orders: Vec<u64>,
    pub(super) customers: Vec<CustomerFacts>,
}

/// A customer: columns, and what they must agree with.
#[derive(Clone, Debug, Default)]
pub(super) struct CustomerFacts {
    pub(super) balance: u64,
    pub(super) ytd_payment: u64,
    pub(super) payment_cnt: u64,
    pub(super) delivery_cnt: u64,
    pub(super) history: u64,
    pub(super) payments: u64,
    /// Amount of the delivered orders, and the number of those delivered in the run.
    pub(super) delivered: u64,
    pub(super) deliveries: u64,
}

/// A stock row likewise.
#[derive(Clone, Debug, Default)]
pub(super) struct StockFacts {
    pub(super) quantity: u64,
    pub(super) first_quantity: u64,
    pub(super) counts: [u64; 3],
    /// Quantity, order-lines and remote order-lines of the run.
    pub(super) ordered: [u64; 3],
}

/// Sums of the rows.
pub(super) struct Facts {
    /// Orders of a district that were delivered in the beginning.
    pub(super) delivered: u64,
    /// `W_YTD` and the sum of the payments, by warehouse.
    pub(super) warehouses: Vec<(u64, u64)>,
    pub(super) districts: Vec<DistrictFacts>,
    pub(super) stock: Vec<StockFacts>,
}

/// Check under way.
struct Audit<'a> {
    db: &'a Database,
    image: &'a Image,
    last_date: u64,
}

fn column(image: &Image, row: Addr, column: super::schema::Column) -> u64 {
    image.load(row.plus(column.at * WORD_BYTES))
}

/// Checks a database whose dates are no later than `last_date`.
///
/// # Errors
/// The first violation.
pub(super) fn check(db: &Database, image: &Image, last_date: u64) -> Checked {
    let facts = facts(db, image, last_date)?;
    let broken = |what| BrokenInvariant { structure: "tpcc".into(), what };
    for (number, condition) in (1..).zip(CONDITIONS) {
        condition(&facts)
            .map_err(|what| broken(format!("consistency condition {number}: {what}")))?;
    }
    derived(&facts).map_err(broken)
}

/// Checks all rows and indexes, and adds up what the conditions are about.
///
/// # Errors
/// The first violation.
pub(super) fn facts(db: &Database, image: &Image, last_date: u64) -> Checked<Facts> {
    let mut census = Census::begin("tpcc".into(), image, &db.arenas)?;
    let audit = Audit { db, image, last_date };
    let mut facts = Facts {
        delivered: db.content.delivered(),
        warehouses: Vec::new(),
        districts: Vec::new(),
        stock: vec![StockFacts::default(); (db.scale.warehouses * db.scale.items) as usize],
    };
    audit.items(&mut census)?;
    for w in 1..=db.scale.warehouses.into() {
        let at = db.warehouse(w).addr;
        audit
            .same(at, &db.content.warehouse(w), &[W_YTD])
            .map_err(|what| census.broken(format!("warehouse {w}: {what}")))?;
        facts.warehouses.push((column(image, at, W_YTD), 0));
        audit.stock(&mut census, w, &mut facts)?;
    }
    for place in db.places() {
        let at = db.district(place).addr;
        audit
            .same(at, &db.content.district(place), &[D_YTD, D_NEXT_O_ID])
            .map_err(|what| census.broken(format!("district {place:?}: {what}")))?;
        let mut district = DistrictFacts {
            place,
            ytd: column(image, at, D_YTD),
            next: column(image, at, D_NEXT_O_ID),
            history: 0,
            orders: Vec::new(),
            new_orders: Vec::new(),
            customers: audit.customers(&mut census, place)?,
        };
        audit.orders(&mut census, &mut district)?;
        audit.lines(&mut census, &mut district, &mut facts.stock)?;
        audit.new_orders(&mut census, &mut district)?;
        facts.districts.push(district);
    }
    audit.history(&census, &mut facts)?;
    for district in &mut facts.districts {
        audit.deliveries(&census, district)?;
    }
    census.finish()?;
    Ok(facts)
}
