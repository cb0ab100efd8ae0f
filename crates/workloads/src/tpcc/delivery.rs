//! Delivery (clause 2.7): the oldest order of each district that is still to be delivered, is.
//!
//! "The number of orders delivered as a group (or batch) within the same database transaction is implementation specific"
//! (clause 2.7.2). Here each order is delivered in a transaction of its own, under the lock of its district alone, so
//! that a delivery does not hold up the whole warehouse. A district without such an order is passed over: a transaction
//! that stores nothing.

use std::ops::ControlFlow;

use super::database::{Database, SMALL, lines_of};
use super::schema::{add, customer::*, get, order::*, order_line::*, set};
use crate::structures::Arena;
use graven_machine::program::Memory;

/// Delivers the oldest order of one district; returns it.
pub(super) fn run<M: Memory>(
    db: &Database,
    m: &mut M,
    arena: &Arena,
    place: (u64, u64),
    (carrier, date): (u64, u64),
) -> Option<u64> {
    let indexes = db.indexes(place);
    let (o, _) = indexes.new_order.first(m, 0..=u64::MAX)?;
    indexes.new_order.remove_with(m, arena, o, |m, row| arena.free(m, SMALL, row));
    let order = indexes.order.get(m, o).expect("orders stay");
    let c = get(m, order, O_C_ID);
    set(m, order, O_CARRIER_ID, carrier);
    let mut sum = 0;
    indexes.line.scan(m, lines_of(o..=o), |m, _, line| {
        set(m, line, OL_DELIVERY_D, date);
        sum += get(m, line, OL_AMOUNT);
        ControlFlow::Continue(())
    });
    let customer = indexes.customer.get(m, c).expect("customers stay");
    add(m, customer, C_BALANCE, sum);
    add(m, customer, C_DELIVERY_CNT, 1);
    Some(o)
}
