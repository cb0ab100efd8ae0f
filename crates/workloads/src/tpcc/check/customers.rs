//! Customers, and the payments that are written down with those whose credit is bad.

use super::super::content::{BAD_CREDIT, FIRST_PAYMENT};
use super::super::database::name_key;
use super::super::payment::{NOTE_WORDS, note_of, within_data};
use super::super::schema::{Row, customer, customer::*};
use super::{Audit, CustomerFacts, column};
use crate::structures::{Census, ensure};
use graven_base::memory::{Addr, WORD_BYTES};
use graven_machine::workload::Checked;

impl Audit<'_> {
    /// Checks the customers of a district, and both indexes.
    pub(super) fn customers(
        &self,
        census: &mut Census<'_>,
        place: (u64, u64),
    ) -> Checked<Vec<CustomerFacts>> {
        let (db, each) = (self.db, u64::from(self.db.scale.customers_per_district));
        let indexes = db.indexes(place);
        let mut customers = Vec::with_capacity(each as usize);
        for c in 1..=each {
            let at = db.customer_row(place, c);
            let facts = self.customer(place, c, at);
            customers.push(facts.map_err(|what| {
                census.broken(format!("customer {c} of district {place:?}: {what}"))
            })?);
        }
        self.numbered(census, indexes.customer, each, |c| db.customer_row(place, c))?;

        let mut expected: Vec<(u64, Addr)> = (1..=each)
            .map(|c| (name_key(db.content.name_of(place, c), c), db.customer_row(place, c)))
            .collect();
        expected.sort_unstable();
        let mut rest = expected.iter();
        let all = 0..name_key(u64::MAX >> 24, 0);
        indexes.name.walk(census, all, &mut |census, key, at| {
            census.ensure(rest.next() == Some(&(key, at)), || {
                format!("the names of {place:?} lead from {key:#x} to {at}")
            })
        })?;
        census.ensure(rest.next().is_none(), || format!("customers of {place:?} have no name"))?;
        Ok(customers)
    }

    fn customer(&self, place: (u64, u64), c: u64, at: Addr) -> Result<CustomerFacts, String> {
        let get = |of| column(self.image, at, of);
        let content = self.db.content.customer(place, c);
        let changes = [C_BALANCE, C_YTD_PAYMENT, C_PAYMENT_CNT, C_DELIVERY_CNT, C_DATA];
        self.same(at, &content, &changes)?;
        let facts = CustomerFacts {
            balance: get(C_BALANCE),
            ytd_payment: get(C_YTD_PAYMENT),
            payment_cnt: get(C_PAYMENT_CNT),
            delivery_cnt: get(C_DELIVERY_CNT),
            ..CustomerFacts::default()
        };
        self.data(place, c, at, &content, &facts)?;
        Ok(facts)
    }

    /// `C_DATA`: the latest payments, if credit is bad, and of what was there first the rest.
    fn data(
        &self,
        (w, d): (u64, u64),
        c: u64,
        at: Addr,
        content: &Row<{ customer::WORDS }>,
        facts: &CustomerFacts,
    ) -> Result<(), String> {
        let word = |i: u64| self.image.load(at.plus((C_DATA.at + i) * WORD_BYTES));
        let credit = content.0[C_CREDIT.at as usize].to_le_bytes();
        let is_bad = credit[..2] == *BAD_CREDIT;
        let written = if is_bad { facts.payment_cnt.wrapping_sub(1) } else { 0 };
        let notes = written.min(C_DATA.words() / NOTE_WORDS);
        let mut sum = FIRST_PAYMENT;
        for note in 0..notes {
            let words = [0, 1, 2, 3].map(|i| word(note * NOTE_WORDS + i));
            match note_of(words) {
                Some([customer, district, warehouse, _, _, amount])
                    if (customer, district, warehouse) == (c, d, w) =>
                {
                    sum += amount;
                }
                other => return Err(format!("payment {note} in its data reads {other:?}")),
            }
        }
        if notes < written {
            return Ok(());
        }
        let paid = facts.ytd_payment;
        ensure(sum == paid || !is_bad, || {
            format!("its data tell of {sum} paid, C_YTD_PAYMENT of {paid}")
        })?;
        for i in notes * NOTE_WORDS..C_DATA.words() {
            let first = content.0[(C_DATA.at + i - notes * NOTE_WORDS) as usize];
            let (found, expected) = (word(i), first & within_data(i));
            ensure(found == expected, || {
                format!("word {i} of its data is {found:#x}, not {expected:#x}")
            })?;
        }
        Ok(())
    }
}
