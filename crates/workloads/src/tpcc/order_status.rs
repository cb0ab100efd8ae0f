//! Order-Status (clause 2.6): a customer asks for his last order. Nothing is stored.

use std::ops::ControlFlow;

use super::customers::{Namesakes, Who};
use super::database::{Database, lines_of, orders_of};
use super::random::Random;
use super::schema::{customer::*, get, order::*, order_line::*, show};
use graven_machine::program::{LockId, Memory};

/// Input of the terminal.
#[derive(Clone, Debug)]
pub(super) struct Input {
    place: (u64, u64),
    who: Who,
}

impl Input {
    pub(super) fn draw(random: &mut Random, home: u64) -> Self {
        Input { place: (home, random.district()), who: Who::draw(random) }
    }

    pub(super) fn locks(&self, db: &Database, locks: &mut Vec<LockId>) {
        locks.push(db.district_lock(self.place));
    }

    /// Returns the order, if the customer ever ordered.
    pub(super) fn run<M: Memory>(
        &self,
        db: &Database,
        m: &mut M,
        namesakes: &mut Namesakes,
    ) -> Option<u64> {
        let indexes = db.indexes(self.place);
        let customer = self.who.find(db, m, self.place, namesakes);
        let c = get(m, customer, C_ID);
        show(m, customer, &[C_FIRST, C_MIDDLE, C_LAST, C_BALANCE]);
        let (_, order) = indexes.customer_order.first(m, orders_of(c))?;
        let o = get(m, order, O_ID);
        show(m, order, &[O_ENTRY_D, O_CARRIER_ID]);
        indexes.line.scan(m, lines_of(o..=o), |m, _, line| {
            show(m, line, &[OL_I_ID, OL_SUPPLY_W_ID, OL_QUANTITY, OL_AMOUNT, OL_DELIVERY_D]);
            ControlFlow::Continue(())
        });
        Some(o)
    }
}
