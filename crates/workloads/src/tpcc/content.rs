//! Content of the rows of the initial database (clause 4.3.3.1): each a function of the seed and of
//! its key.
//!
//! So the check knows the content of columns that no transaction changes. Where a cardinality is not the
//! specification's, what depends on it goes along: amounts to date are the sums of the payments that there are, and the
//! last 30 % of the orders are still to be delivered.

use super::TpccConfig;
use super::random::{Constants, Draws, NAMES, last_name, non_uniform};
use super::schema::{
    Column, Row, customer::*, district::*, history::*, item::*, order::*, order_line::*, s_dist,
    stock::*, warehouse::*,
};
use super::schema::{customer, district, history, item, order, order_line, stock, warehouse};

/// When the database was populated; dates of the run follow.
pub(super) const LOAD_DATE: u64 = 1_267_401_600;

/// The first payment of every customer: 10.00.
pub(super) const FIRST_PAYMENT: u64 = 1000;

/// A customer has good credit, or bad.
pub(super) const BAD_CREDIT: &[u8] = b"BC";

/// The rows of the initial database.
#[derive(Clone, Debug)]
pub(super) struct Content {
    seed: u64,
    scale: TpccConfig,
    constants: Constants,
}

impl Content {
    pub(super) fn new(scale: &TpccConfig, seed: u64) -> Self {
        Content { seed, scale: scale.clone(), constants: Constants::new(seed) }
    }

    fn district_key(&self, (w, d): (u64, u64)) -> u64 {
        w << 8 | d
    }

    /// Orders of a district that are delivered in the beginning: seven in ten.
    pub(super) fn delivered(&self) -> u64 {
        u64::from(self.scale.orders_per_district) * 7 / 10
    }

    pub(super) fn warehouse(&self, w: u64) -> Row<{ warehouse::WORDS }> {
        let (mut row, mut draws) = (Row::new(), Draws::new(self.seed, 1, w));
        let mut text = [0; 24];
        row.set(W_ID, w).text(W_NAME, draws.letters(&mut text, 6, 10));
        address(&mut row, &mut draws, [W_STREET_1, W_STREET_2, W_CITY, W_STATE, W_ZIP]);
        let payments =
            u64::from(self.scale.districts) * u64::from(self.scale.customers_per_district);
        row.set(W_TAX, draws.between(0, 2000)).set(W_YTD, payments * FIRST_PAYMENT);
        row
    }

    pub(super) fn district(&self, (w, d): (u64, u64)) -> Row<{ district::WORDS }> {
        let mut row = Row::new();
        let mut draws = Draws::new(self.seed, 2, self.district_key((w, d)));
        let mut text = [0; 24];
        row.set(D_ID, d).set(D_W_ID, w).text(D_NAME, draws.letters(&mut text, 6, 10));
        address(&mut row, &mut draws, [D_STREET_1, D_STREET_2, D_CITY, D_STATE, D_ZIP]);
        row.set(D_TAX, draws.between(0, 2000))
            .set(D_YTD, u64::from(self.scale.customers_per_district) * FIRST_PAYMENT)
            .set(D_NEXT_O_ID, u64::from(self.scale.orders_per_district) + 1);
        row
    }

    /// The number of a customer's last name: each of the 1,000 once, then non-uniform.
    pub(super) fn name_of(&self, place: (u64, u64), c: u64) -> u64 {
        if c <= NAMES {
            return c - 1;
        }
        let mut draws = Draws::new(self.seed, 3, self.district_key(place) << 20 | c);
        let (a, b) = (draws.between(0, 255), draws.between(0, NAMES - 1));
        non_uniform(a, b, self.constants.load, (0, NAMES - 1))
    }

    pub(super) fn customer(&self, (w, d): (u64, u64), c: u64) -> Row<{ customer::WORDS }> {
        let mut row = Row::new();
        let mut draws = Draws::new(self.seed, 4, self.district_key((w, d)) << 20 | c);
        let mut text = [0; 500];
        let (name, length) = last_name(self.name_of((w, d), c));
        row.set(C_ID, c).set(C_D_ID, d).set(C_W_ID, w);
        row.text(C_FIRST, draws.letters(&mut text, 8, 16));
        row.text(C_MIDDLE, b"OE").text(C_LAST, &name[..length]);
        address(&mut row, &mut draws, [C_STREET_1, C_STREET_2, C_CITY, C_STATE, C_ZIP]);
        row.text(C_PHONE, draws.digits(&mut text, 16)).set(C_SINCE, LOAD_DATE);
        row.text(C_CREDIT, if draws.percent(10) { BAD_CREDIT } else { b"GC" });
        row.set(C_CREDIT_LIM, 5_000_000).set(C_DISCOUNT, draws.between(0, 5000));
        row.set(C_BALANCE, FIRST_PAYMENT.wrapping_neg()).set(C_YTD_PAYMENT, FIRST_PAYMENT);
        row.set(C_PAYMENT_CNT, 1).text(C_DATA, draws.letters(&mut text, 300, 500));
        row
    }

    /// The first payment of a customer.
    pub(super) fn history(&self, (w, d): (u64, u64), c: u64) -> Row<{ history::WORDS }> {
        let mut row = Row::new();
        let mut draws = Draws::new(self.seed, 5, self.district_key((w, d)) << 20 | c);
        row.set(H_C_ID, c).set(H_C_D_ID, d).set(H_C_W_ID, w).set(H_D_ID, d).set(H_W_ID, w);
        row.set(H_DATE, LOAD_DATE).set(H_AMOUNT, FIRST_PAYMENT);
        row.text(H_DATA, draws.letters(&mut [0; 24], 12, 24));
        row
    }

    pub(super) fn item(&self, i: u64) -> Row<{ item::WORDS }> {
        let (mut row, mut draws) = (Row::new(), Draws::new(self.seed, 6, i));
        row.set(I_ID, i).set(I_IM_ID, draws.between(1, 10_000));
        row.text(I_NAME, draws.letters(&mut [0; 24], 14, 24));
        row.set(I_PRICE, draws.between(100, 10_000));
        original(&mut row, &mut draws, I_DATA);
        row
    }

    pub(super) fn stock(&self, w: u64, i: u64) -> Row<{ stock::WORDS }> {
        let (mut row, mut draws) = (Row::new(), Draws::new(self.seed, 7, w << 32 | i));
        row.set(S_I_ID, i).set(S_W_ID, w).set(S_QUANTITY, draws.between(10, 100));
        for d in 1..=10 {
            row.text(s_dist(d), draws.letters(&mut [0; 24], 24, 24));
        }
        original(&mut row, &mut draws, S_DATA);
        row
    }

    /// The customers of a district's orders: all of them in random order, and again.
    pub(super) fn customers_in_order(&self, place: (u64, u64)) -> Vec<u64> {
        let mut draws = Draws::new(self.seed, 8, self.district_key(place));
        let mut customers: Vec<u64> = (1..=self.scale.customers_per_district.into()).collect();
        for i in (1..customers.len()).rev() {
            customers.swap(i, draws.between(0, i as u64) as usize);
        }
        customers
    }

    /// Order `o` of customer `c`.
    pub(super) fn order(&self, (w, d): (u64, u64), o: u64, c: u64) -> Row<{ order::WORDS }> {
        let mut row = Row::new();
        let mut draws = Draws::new(self.seed, 9, self.district_key((w, d)) << 32 | o);
        row.set(O_ID, o).set(O_D_ID, d).set(O_W_ID, w).set(O_C_ID, c).set(O_ENTRY_D, LOAD_DATE);
        let carrier = draws.between(1, 10);
        row.set(O_CARRIER_ID, if o <= self.delivered() { carrier } else { 0 });
        row.set(O_OL_CNT, draws.between(5, 15)).set(O_ALL_LOCAL, 1);
        row
    }

    pub(super) fn order_line(
        &self,
        (w, d): (u64, u64),
        (o, number): (u64, u64),
    ) -> Row<{ order_line::WORDS }> {
        let mut row = Row::new();
        let key = (self.district_key((w, d)) << 32 | o) << 4 | number;
        let mut draws = Draws::new(self.seed, 10, key);
        row.set(OL_O_ID, o).set(OL_D_ID, d).set(OL_W_ID, w).set(OL_NUMBER, number);
        row.set(OL_I_ID, draws.between(1, self.scale.items.into())).set(OL_SUPPLY_W_ID, w);
        row.set(OL_QUANTITY, 5).text(OL_DIST_INFO, draws.letters(&mut [0; 24], 24, 24));
        if o <= self.delivered() {
            row.set(OL_DELIVERY_D, LOAD_DATE);
        } else {
            row.set(OL_AMOUNT, draws.between(1, 999_999));
        }
        row
    }
}

/// Street, street, city, state and zip code (clause 4.3.2.7).
fn address<const N: usize>(row: &mut Row<N>, draws: &mut Draws, columns: [Column; 5]) {
    let mut text = [0; 20];
    let [street_1, street_2, city, state, zip] = columns;
    for column in [street_1, street_2, city] {
        row.text(column, draws.letters(&mut text, 10, 20));
    }
    row.text(state, draws.letters(&mut text, 2, 2));
    let mut code = *b"000011111";
    draws.digits(&mut code[..4], 4);
    row.text(zip, &code);
}

/// 26 to 50 characters; in one row of ten, `ORIGINAL` somewhere among them.
fn original<const N: usize>(row: &mut Row<N>, draws: &mut Draws, column: Column) {
    let mut text = [0; 50];
    let length = draws.letters(&mut text, 26, 50).len();
    if draws.percent(10) {
        let at = draws.between(0, length as u64 - 8) as usize;
        text[at..at + 8].copy_from_slice(b"ORIGINAL");
    }
    row.text(column, &text[..length]);
}
