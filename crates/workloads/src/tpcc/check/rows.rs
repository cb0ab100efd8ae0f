//! Rows that are there from the beginning, and the history.

use super::super::payment::history_data;
use super::super::schema::{Column, Row, district::*, history::*, stock::*, warehouse::*};
use super::{Audit, Facts, column};
use crate::structures::{Census, Index, ensure};
use graven_base::memory::{Addr, Image, WORD_BYTES};
use graven_machine::workload::Checked;

/// A name of a warehouse or district.
fn name(image: &Image, row: Addr, of: Column) -> [u8; 16] {
    let mut name = [0; 16];
    image.read_bytes(row.plus(of.at * WORD_BYTES), &mut name);
    name
}

impl Audit<'_> {
    /// Every word of the row at `at` is as expected, but for some columns.
    pub(super) fn same<const N: usize>(
        &self,
        at: Addr,
        expected: &Row<N>,
        but: &[Column],
    ) -> Result<(), String> {
        for (i, &expected) in (0..).zip(&expected.0) {
            let found = self.image.load(at.plus(i * WORD_BYTES));
            let may_differ = || but.iter().any(|column| (column.at..column.end()).contains(&i));
            ensure(found == expected || may_differ(), || {
                format!("word {i} at {at} is {found:#x}, not {expected:#x}")
            })?;
        }
        Ok(())
    }

    /// The index leads from each number from 1 to `rows` to its row.
    pub(super) fn numbered(
        &self,
        census: &mut Census<'_>,
        index: Index,
        rows: u64,
        row: impl Fn(u64) -> Addr,
    ) -> Checked {
        let mut next = 1;
        index.walk(census, 1..rows + 1, &mut |census, number, at| {
            census.ensure(number == next && at == row(number), || {
                format!("the index at {} leads from {number} to {at}", index.root())
            })?;
            next += 1;
            Ok(())
        })?;
        let found = next - 1;
        census.ensure(found == rows, || {
            format!("the index at {} has {found} keys, not {rows}", index.root())
        })
    }

    pub(super) fn items(&self, census: &mut Census<'_>) -> Checked {
        let (db, items) = (self.db, u64::from(self.db.scale.items));
        for i in 1..=items {
            let sound = self.same(db.item_row(i), &db.content.item(i), &[]);
            sound.map_err(|what| census.broken(format!("item {i}: {what}")))?;
        }
        self.numbered(census, db.item_index(), items, |i| db.item_row(i))
    }

    pub(super) fn stock(&self, census: &mut Census<'_>, w: u64, facts: &mut Facts) -> Checked {
        let (db, items) = (self.db, u64::from(self.db.scale.items));
        let counts = [S_YTD, S_ORDER_CNT, S_REMOTE_CNT];
        let [ytd, orders, remote] = counts;
        for i in 1..=items {
            let (at, content) = (db.stock_row(w, i), db.content.stock(w, i));
            let sound = self.same(at, &content, &[S_QUANTITY, ytd, orders, remote]);
            sound.map_err(|what| census.broken(format!("stock {i} of warehouse {w}: {what}")))?;
            let stock = &mut facts.stock[db.stock_number(w, i) as usize];
            stock.quantity = column(self.image, at, S_QUANTITY);
            stock.first_quantity = content.0[S_QUANTITY.at as usize];
            stock.counts = counts.map(|count| column(self.image, at, count));
        }
        self.numbered(census, db.stock_index(w), items, |i| db.stock_row(w, i))
    }

    /// Each row is the first payment of a customer, or one of the run.
    pub(super) fn history(&self, census: &Census<'_>, facts: &mut Facts) -> Checked {
        let broken = |what: String| census.broken(what);
        let (last, threads) = self.db.histories.split_last().expect("one more than threads");
        let each = u64::from(self.db.scale.customers_per_district);
        for (number, row) in (0..).zip(last.rows(self.image).map_err(broken)?) {
            let place = facts.districts[(number / each) as usize].place;
            let expected = self.db.content.history(place, number % each + 1);
            let sound = self.same(row, &expected, &[]);
            sound.map_err(|what| broken(format!("history row {number}: {what}")))?;
            self.pays(row, facts).map_err(broken)?;
        }
        for history in threads {
            for row in history.rows(self.image).map_err(broken)? {
                self.payment(row).map_err(broken)?;
                self.pays(row, facts).map_err(broken)?;
            }
        }
        Ok(())
    }

    /// The row of a payment in the run.
    fn payment(&self, row: Addr) -> Result<(), String> {
        let get = |of| column(self.image, row, of);
        let (date, amount) = (get(H_DATE), get(H_AMOUNT));
        let is_payment = self.is_date_of_run(date) && (100..=500_000).contains(&amount);
        ensure(is_payment, || format!("the payment at {row} is of {amount}, on {date}"))?;
        let place = self.place(row, H_W_ID, H_D_ID)?;
        let warehouse = name(self.image, self.db.warehouse(place.0).addr, W_NAME);
        let district = name(self.image, self.db.district(place).addr, D_NAME);
        let mut data = [0; 24];
        self.image.read_bytes(row.plus(H_DATA.at * WORD_BYTES), &mut data);
        ensure(data == history_data([warehouse, district]), || {
            format!("the payment at {row} names another warehouse or district")
        })
    }

    /// The warehouse and district of a row, if there are such.
    fn place(&self, row: Addr, w: Column, d: Column) -> Result<(u64, u64), String> {
        let (w, d) = (column(self.image, row, w), column(self.image, row, d));
        let scale = &self.db.scale;
        let is_warehouse = (1..=scale.warehouses.into()).contains(&w);
        ensure(is_warehouse && (1..=scale.districts.into()).contains(&d), || {
            format!("the row at {row} is of district {d} of warehouse {w}")
        })?;
        Ok((w, d))
    }

    /// Adds a payment up.
    fn pays(&self, row: Addr, facts: &mut Facts) -> Result<(), String> {
        let amount = column(self.image, row, H_AMOUNT);
        let add = |sum: &mut u64| *sum = sum.wrapping_add(amount);
        let districts = u64::from(self.db.scale.districts);
        let number = |(w, d): (u64, u64)| ((w - 1) * districts + d - 1) as usize;
        let place = self.place(row, H_W_ID, H_D_ID)?;
        add(&mut facts.warehouses[place.0 as usize - 1].1);
        add(&mut facts.districts[number(place)].history);
        let place = self.place(row, H_C_W_ID, H_C_D_ID)?;
        let c = column(self.image, row, H_C_ID);
        let customers = &mut facts.districts[number(place)].customers;
        let customer = customers.get_mut(c.wrapping_sub(1) as usize);
        let customer = customer.ok_or_else(|| format!("the row at {row} is of customer {c}"))?;
        add(&mut customer.history);
        customer.payments += 1;
        Ok(())
    }
}
