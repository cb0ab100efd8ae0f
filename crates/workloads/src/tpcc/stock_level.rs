//! Stock-Level (clause 2.8): of how many items of a district's last twenty orders is little left?
//!
//! Its isolation is that of committed reads (clauses 2.8.2 and 3.4.1), and so it is two transactions: the items are
//! read under the lock of the district, then what is left of them, under the locks of their stock rows, which the first
//! has found. Nothing is stored.

use std::ops::ControlFlow;

use super::database::{Database, lines_of};
use super::schema::{district::*, get, order_line::*, stock::*};
use crate::costs;
use graven_machine::program::{LockId, Memory};

/// Orders that are looked at.
const ORDERS: u64 = 20;

/// Finds the items of the last orders, each once.
pub(super) fn find_items<M: Memory>(
    db: &Database,
    m: &mut M,
    place: (u64, u64),
    items: &mut Vec<u64>,
) {
    let next = get(m, db.district(place), D_NEXT_O_ID);
    let first = next.saturating_sub(ORDERS);
    items.clear();
    db.indexes(place).line.scan(m, lines_of(first..=next - 1), |m, _, line| {
        items.push(get(m, line, OL_I_ID));
        ControlFlow::Continue(())
    });
    m.compute(costs::COMPARE * items.len() as u32 * (items.len().max(1).ilog2() + 1));
    items.sort_unstable();
    items.dedup();
}

/// The locks of these items' stock.
pub(super) fn locks(db: &Database, w: u64, items: &[u64], locks: &mut Vec<LockId>) {
    locks.extend(items.iter().map(|&i| db.stock_lock(w, i)));
}

/// Counts those of which less than `threshold` is left.
pub(super) fn count<M: Memory>(
    db: &Database,
    m: &mut M,
    w: u64,
    items: &[u64],
    threshold: u64,
) -> usize {
    let is_low = |&&i: &&u64| {
        m.compute(costs::COMPARE);
        let stock = db.stock_index(w).get(m, i).expect("stock stays");
        get(m, stock, S_QUANTITY) < threshold
    };
    items.iter().filter(is_low).count()
}
