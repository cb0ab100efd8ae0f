//! New-Order (clause 2.4): a customer orders 5 to 15 items.
//!
//! One in a hundred has an item that there is not, and must be rolled back. Hardware that makes transactions atomic
//! offers no way to abort one; so all items are looked up before the first store, and a transaction that finds one
//! missing ends without having stored.

use super::database::{Database, LINES_MAX};
use super::random::Random;
use super::schema::{
    Row, add, customer::*, district::*, get, item::*, order::*, order_line::*, read, s_dist, set,
    show, stock::*, warehouse::*,
};
use crate::costs;
use crate::structures::Arena;
use graven_base::memory::WORD_BYTES;
use graven_machine::program::{LockId, Memory, Ptr};

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    item: u64,
    supply: u64,
    quantity: u64,
}

/// Input of the terminal.
#[derive(Clone, Debug)]
pub(super) struct Input {
    place: (u64, u64),
    customer: u64,
    lines: [Line; LINES_MAX as usize],
    count: usize,
}

impl Input {
    pub(super) fn draw(random: &mut Random, home: u64) -> Self {
        let place = (home, random.district());
        let customer = random.customer();
        let count = random.between(5, LINES_MAX) as usize;
        let rolls_back = random.between(1, 100) == 1;
        let mut lines = [Line::default(); LINES_MAX as usize];
        for line in &mut lines[..count] {
            let item = random.item();
            let supply = if random.percent(1) { random.remote(home) } else { home };
            *line = Line { item, supply, quantity: random.between(1, 10) };
        }
        if rolls_back {
            lines[count - 1].item = u64::from(random.scale().items) + 1;
        }
        Input { place, customer, lines, count }
    }

    fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }

    pub(super) fn locks(&self, db: &Database, locks: &mut Vec<LockId>) {
        locks.push(db.district_lock(self.place));
        locks.extend(self.lines().iter().map(|line| db.stock_lock(line.supply, line.item)));
    }

    pub(super) fn run<M: Memory>(&self, db: &Database, m: &mut M, arena: &Arena, date: u64) {
        let (w, d) = self.place;
        let indexes = db.indexes(self.place);
        show(m, db.warehouse(w), &[W_TAX]);
        let district = db.district(self.place);
        show(m, district, &[D_TAX]);
        let o = get(m, district, D_NEXT_O_ID);
        let customer = indexes.customer.get(m, self.customer).expect("customers stay");
        show(m, customer, &[C_DISCOUNT, C_LAST, C_CREDIT]);
        let mut items = [Ptr::NULL; LINES_MAX as usize];
        for (item, line) in items.iter_mut().zip(self.lines()) {
            match db.item_index().get(m, line.item) {
                Some(row) => *item = row,
                None => return,
            }
        }

        set(m, district, D_NEXT_O_ID, o + 1);
        let is_local = self.lines().iter().all(|line| line.supply == w);
        let mut row = Row::new();
        row.set(O_ID, o).set(O_D_ID, d).set(O_W_ID, w).set(O_C_ID, self.customer);
        row.set(O_ENTRY_D, date).set(O_OL_CNT, self.count as u64);
        row.set(O_ALL_LOCAL, u64::from(is_local));
        db.insert_order(m, arena, self.place, (o, self.customer), &row);
        db.insert_new_order(m, arena, self.place, o);
        for (number, (line, &item)) in (1..).zip(self.lines().iter().zip(&items)) {
            let amount = line.quantity * get(m, item, I_PRICE);
            show(m, item, &[I_NAME]);
            let mut row = Row::new();
            row.set(OL_O_ID, o).set(OL_D_ID, d).set(OL_W_ID, w).set(OL_NUMBER, number);
            row.set(OL_I_ID, line.item).set(OL_SUPPLY_W_ID, line.supply);
            row.set(OL_QUANTITY, line.quantity).set(OL_AMOUNT, amount);
            let stock = db.stock_index(line.supply).get(m, line.item).expect("stock stays");
            let mut word = OL_DIST_INFO.at as usize;
            read(m, stock, s_dist(d), |text| {
                row.0[word] = text;
                word += 1;
            });
            take(m, stock, line.quantity, line.supply != w);
            // Brand or generic: both texts are searched for one of eight characters.
            show(m, item, &[I_DATA]);
            show(m, stock, &[S_DATA]);
            m.compute(costs::COMPARE * ((I_DATA.bytes + S_DATA.bytes) / WORD_BYTES) as u32);
            db.insert_line(m, arena, self.place, (o, number), &row);
        }
        // The sum of all amounts, after discount and taxes, is shown.
        m.compute(costs::OPERATION);
    }
}

/// Takes a quantity out of stock.
fn take<M: Memory>(m: &mut M, stock: Ptr, quantity: u64, is_remote: bool) {
    m.compute(costs::COMPARE);
    let left = get(m, stock, S_QUANTITY);
    let left = if left >= quantity + 10 { left - quantity } else { left + 91 - quantity };
    set(m, stock, S_QUANTITY, left);
    add(m, stock, S_YTD, quantity);
    add(m, stock, S_ORDER_CNT, 1);
    if is_remote {
        add(m, stock, S_REMOTE_CNT, 1);
    }
}
