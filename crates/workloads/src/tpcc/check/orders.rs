//! Orders, order-lines and new-orders of a district.

use super::super::content::LOAD_DATE;
use super::super::database::{LINE, LINES_MAX, SMALL, customer_order_key, line_of_key};
use super::super::schema::{Column, item::*, order::*, order_line::*, s_dist};
use super::{Audit, DistrictFacts, OrderFacts, StockFacts, column};
use crate::structures::{Census, Index};
use graven_base::memory::{Addr, WORD_BYTES};
use graven_machine::workload::BrokenInvariant;

impl Audit<'_> {
    fn initial_orders(&self) -> u64 {
        self.db.scale.orders_per_district.into()
    }

    fn is_date_of_run(&self, date: u64) -> bool {
        (LOAD_DATE + 1..=self.last_date).contains(&date)
    }

    /// Each row, by its number, and each by its customer.
    pub(super) fn orders(
        &self,
        census: &mut Census,
        district: &mut DistrictFacts,
    ) -> Result<(), BrokenInvariant> {
        let (place, indexes) = (district.place, self.db.indexes(district.place));
        let customers = self.db.content.customers_in_order(place);
        let orders = &mut district.orders;
        let all = 1..Index::KEY_LIMIT;
        indexes.order.walk(self.image, census, all, &mut |census, o, at| {
            census.claim(at, SMALL, "order")?;
            let broken = |what| census.broken(format!("order {o} of {place:?}: {what}"));
            if o != orders.len() as u64 + 1 {
                return Err(broken(format!("it comes after {}", orders.len())));
            }
            orders.push(self.order(place, o, at, &customers).map_err(broken)?);
            Ok(())
        })?;

        let mut expected: Vec<(u64, Addr)> = (1..)
            .zip(orders.iter())
            .map(|(o, order)| (customer_order_key(order.customer, o), order.at))
            .collect();
        expected.sort_unstable();
        let mut rest = expected.iter();
        let all = 0..Index::KEY_LIMIT;
        indexes.customer_order.walk(self.image, census, all, &mut |census, key, at| {
            if rest.next() == Some(&(key, at)) {
                return Ok(());
            }
            let what = format!("the orders by customer of {place:?} lead from {key:#x} to {at}");
            Err(census.broken(what))
        })?;
        if rest.next().is_some() {
            return Err(census.broken(format!("orders of {place:?} have no customer")));
        }
        Ok(())
    }

    fn order(
        &self,
        place: (u64, u64),
        o: u64,
        at: Addr,
        customers: &[u64],
    ) -> Result<OrderFacts, String> {
        let get = |of| column(self.image, at, of);
        let (customer, carrier, ol_cnt) = (get(O_C_ID), get(O_CARRIER_ID), get(O_OL_CNT));
        if o <= self.initial_orders() {
            let first = customers[((o - 1) % customers.len() as u64) as usize];
            let was_delivered = o <= self.db.content.delivered();
            let but = if was_delivered { &[][..] } else { &[O_CARRIER_ID] };
            self.same(at, &self.db.content.order(place, o, first), but)?;
        } else {
            let key = (get(O_W_ID), get(O_D_ID), get(O_ID));
            if key != (place.0, place.1, o) {
                return Err(format!("the row at {at} is that of {key:?}"));
            }
            if !(1..=customers.len() as u64).contains(&customer) {
                return Err(format!("it is of customer {customer}"));
            }
            if !self.is_date_of_run(get(O_ENTRY_D)) {
                return Err(format!("it is of {}", get(O_ENTRY_D)));
            }
        }
        if carrier > 10 || !(5..=LINES_MAX).contains(&ol_cnt) || get(O_ALL_LOCAL) > 1 {
            return Err(format!("it has carrier {carrier}, and {ol_cnt} lines"));
        }
        Ok(OrderFacts {
            at,
            customer,
            carrier,
            all_local: get(O_ALL_LOCAL) == 1,
            ol_cnt,
            lines: 0,
            delivered: 0,
            amount: 0,
            remote: 0,
            delivery: 0,
        })
    }

    pub(super) fn lines(
        &self,
        census: &mut Census,
        district: &mut DistrictFacts,
        stock: &mut [StockFacts],
    ) -> Result<(), BrokenInvariant> {
        let place = district.place;
        let index = self.db.indexes(place).line;
        let all = 0..Index::KEY_LIMIT;
        index.walk(self.image, census, all, &mut |census, key, at| {
            census.claim(at, LINE, "order-line")?;
            let (o, number) = line_of_key(key);
            let broken =
                |what| census.broken(format!("line {number} of order {o} of {place:?}: {what}"));
            let order = district.orders.get_mut(o.wrapping_sub(1) as usize);
            let order = order.ok_or_else(|| broken("there is no such order".into()))?;
            order.lines += 1;
            if number != order.lines {
                return Err(broken(format!("it is the order's line {}", order.lines)));
            }
            let line = self.line(place, (o, number), at, stock).map_err(broken)?;
            let (delivery, amount, is_remote) = line;
            if order.lines > 1 && order.delivery != delivery {
                return Err(broken(format!(
                    "it is delivered on {delivery}, not {}",
                    order.delivery
                )));
            }
            order.delivery = delivery;
            order.delivered += u64::from(delivery != 0);
            order.amount = order.amount.wrapping_add(amount);
            order.remote += u64::from(is_remote);
            Ok(())
        })
    }

    /// Date of delivery, amount, and whether the supply is remote.
    fn line(
        &self,
        place: (u64, u64),
        (o, number): (u64, u64),
        at: Addr,
        stock: &mut [StockFacts],
    ) -> Result<(u64, u64, bool), String> {
        let get = |of| column(self.image, at, of);
        let (delivery, amount) = (get(OL_DELIVERY_D), get(OL_AMOUNT));
        let was_delivered = o <= self.db.content.delivered();
        if delivery != 0 && !was_delivered && !self.is_date_of_run(delivery) {
            return Err(format!("it is delivered on {delivery}"));
        }
        if o <= self.initial_orders() {
            let but = if was_delivered { &[][..] } else { &[OL_DELIVERY_D] };
            self.same(at, &self.db.content.order_line(place, (o, number)), but)?;
            return Ok((delivery, amount, false));
        }
        let key = [OL_W_ID, OL_D_ID, OL_O_ID, OL_NUMBER].map(get);
        if key != [place.0, place.1, o, number] {
            return Err(format!("the row at {at} is that of {key:?}"));
        }
        let [i, supply, quantity] = [OL_I_ID, OL_SUPPLY_W_ID, OL_QUANTITY].map(get);
        let scale = &self.db.scale;
        let is_item = (1..=scale.items.into()).contains(&i);
        let is_supply = (1..=scale.warehouses.into()).contains(&supply);
        if !is_item || !is_supply || !(1..=10).contains(&quantity) {
            return Err(format!("it is of {quantity} of item {i} from warehouse {supply}"));
        }
        let price = column(self.image, self.db.item_row(i), I_PRICE);
        if amount != quantity * price {
            return Err(format!("{quantity} of {price} do not cost {amount}"));
        }
        let text = |row: Addr, of: Column| {
            [0, 1, 2].map(|word| self.image.load(row.plus((of.at + word) * WORD_BYTES)))
        };
        let info = text(self.db.stock_row(supply, i), s_dist(place.1));
        if text(at, OL_DIST_INFO) != info {
            return Err("its information is not that of the stock".into());
        }
        let stock = &mut stock[self.db.stock_number(supply, i) as usize];
        let is_remote = supply != place.0;
        let more = [quantity, 1, u64::from(is_remote)];
        stock.ordered.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        Ok((delivery, amount, is_remote))
    }

    pub(super) fn new_orders(
        &self,
        census: &mut Census,
        district: &mut DistrictFacts,
    ) -> Result<(), BrokenInvariant> {
        let place = district.place;
        let index = self.db.indexes(place).new_order;
        let all = 1..Index::KEY_LIMIT;
        index.walk(self.image, census, all, &mut |census, o, at| {
            census.claim(at, SMALL, "new-order")?;
            let sound = self.same(at, &self.db.new_order_row(place, o), &[]);
            sound.map_err(|what| census.broken(format!("new-order {o} of {place:?}: {what}")))?;
            district.new_orders.push(o);
            Ok(())
        })
    }

    /// What was delivered, by customer; and whether all lines of an order are as local as it says.
    pub(super) fn deliveries(
        &self,
        census: &Census,
        district: &mut DistrictFacts,
    ) -> Result<(), BrokenInvariant> {
        let place = district.place;
        for (o, order) in (1..).zip(&district.orders) {
            if order.all_local != (order.remote == 0) {
                let what = format!("order {o} of {place:?} has {} remote lines", order.remote);
                return Err(census.broken(what));
            }
            let customer = &mut district.customers[order.customer as usize - 1];
            if order.delivered > 0 {
                customer.delivered = customer.delivered.wrapping_add(order.amount);
            }
            let in_run = o > self.db.content.delivered() && order.carrier != 0;
            customer.deliveries += u64::from(in_run);
        }
        Ok(())
    }
}
