//! Orders, order-lines and new-orders of a district.

use super::super::content::LOAD_DATE;
use super::super::database::{LINE, LINES_MAX, SMALL, customer_order_key, line_of_key};
use super::super::schema::{Column, item::*, order::*, order_line::*, s_dist};
use super::{Audit, DistrictFacts, OrderFacts, StockFacts, column};
use crate::structures::{Census, Index, ensure};
use graven_base::memory::{Addr, WORD_BYTES};
use graven_machine::workload::Checked;

impl Audit<'_> {
    fn initial_orders(&self) -> u64 {
        self.db.scale.orders_per_district.into()
    }

    pub(super) fn is_date_of_run(&self, date: u64) -> bool {
        (LOAD_DATE + 1..=self.last_date).contains(&date)
    }

    /// Each row, by its number, and each by its customer.
    pub(super) fn orders(&self, census: &mut Census<'_>, district: &mut DistrictFacts) -> Checked {
        let (place, indexes) = (district.place, self.db.indexes(district.place));
        let customers = self.db.content.customers_in_order(place);
        let orders = &mut district.orders;
        let all = 1..Index::KEY_LIMIT;
        indexes.order.walk(census, all, &mut |census, o, at| {
            census.claim(at, SMALL, "order")?;
            let broken = |what| census.broken(format!("order {o} of {place:?}: {what}"));
            let before = orders.len();
            let in_order = ensure(o == before as u64 + 1, || format!("it comes after {before}"));
            in_order.map_err(broken)?;
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
        indexes.customer_order.walk(census, all, &mut |census, key, at| {
            census.ensure(rest.next() == Some(&(key, at)), || {
                format!("the orders by customer of {place:?} lead from {key:#x} to {at}")
            })
        })?;
        census.ensure(rest.next().is_none(), || format!("orders of {place:?} have no customer"))
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
            let is_own = key == (place.0, place.1, o);
            ensure(is_own, || format!("the row at {at} is that of {key:?}"))?;
            let is_customer = (1..=customers.len() as u64).contains(&customer);
            ensure(is_customer, || format!("it is of customer {customer}"))?;
            let date = get(O_ENTRY_D);
            ensure(self.is_date_of_run(date), || format!("it is of {date}"))?;
        }
        let is_sound = carrier <= 10 && (5..=LINES_MAX).contains(&ol_cnt) && get(O_ALL_LOCAL) <= 1;
        ensure(is_sound, || format!("it has carrier {carrier}, and {ol_cnt} lines"))?;
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
        census: &mut Census<'_>,
        district: &mut DistrictFacts,
        stock: &mut [StockFacts],
    ) -> Checked {
        let place = district.place;
        let index = self.db.indexes(place).line;
        let all = 0..Index::KEY_LIMIT;
        index.walk(census, all, &mut |census, key, at| {
            census.claim(at, LINE, "order-line")?;
            let (o, number) = line_of_key(key);
            let broken =
                |what| census.broken(format!("line {number} of order {o} of {place:?}: {what}"));
            let order = district.orders.get_mut(o.wrapping_sub(1) as usize);
            let order = order.ok_or_else(|| broken("there is no such order".into()))?;
            order.lines += 1;
            let lines = order.lines;
            ensure(number == lines, || format!("it is the order's line {lines}"))
                .map_err(broken)?;
            let line = self.line(place, (o, number), at, stock).map_err(broken)?;
            let (delivery, amount, is_remote) = line;
            let others = if lines > 1 { order.delivery } else { delivery };
            let what = || format!("it is delivered on {delivery}, not {others}");
            ensure(others == delivery, what).map_err(broken)?;
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
        let is_date = delivery == 0 || was_delivered || self.is_date_of_run(delivery);
        ensure(is_date, || format!("it is delivered on {delivery}"))?;
        if o <= self.initial_orders() {
            let but = if was_delivered { &[][..] } else { &[OL_DELIVERY_D] };
            self.same(at, &self.db.content.order_line(place, (o, number)), but)?;
            return Ok((delivery, amount, false));
        }
        let key = [OL_W_ID, OL_D_ID, OL_O_ID, OL_NUMBER].map(get);
        let is_own = key == [place.0, place.1, o, number];
        ensure(is_own, || format!("the row at {at} is that of {key:?}"))?;
        let [i, supply, quantity] = [OL_I_ID, OL_SUPPLY_W_ID, OL_QUANTITY].map(get);
        let scale = &self.db.scale;
        let is_item = (1..=scale.items.into()).contains(&i);
        let is_supply = (1..=scale.warehouses.into()).contains(&supply);
        ensure(is_item && is_supply && (1..=10).contains(&quantity), || {
            format!("it is of {quantity} of item {i} from warehouse {supply}")
        })?;
        let price = column(self.image, self.db.item_row(i), I_PRICE);
        let what = || format!("{quantity} of {price} do not cost {amount}");
        ensure(amount == quantity * price, what)?;
        let text = |row: Addr, of: Column| {
            [0, 1, 2].map(|word| self.image.load(row.plus((of.at + word) * WORD_BYTES)))
        };
        let info = text(self.db.stock_row(supply, i), s_dist(place.1));
        let what = || "its information is not that of the stock".into();
        ensure(text(at, OL_DIST_INFO) == info, what)?;
        let stock = &mut stock[self.db.stock_number(supply, i) as usize];
        let is_remote = supply != place.0;
        let more = [quantity, 1, u64::from(is_remote)];
        stock.ordered.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        Ok((delivery, amount, is_remote))
    }

    pub(super) fn new_orders(
        &self,
        census: &mut Census<'_>,
        district: &mut DistrictFacts,
    ) -> Checked {
        let place = district.place;
        let index = self.db.indexes(place).new_order;
        let all = 1..Index::KEY_LIMIT;
        index.walk(census, all, &mut |census, o, at| {
            census.claim(at, SMALL, "new-order")?;
            let sound = self.same(at, &self.db.new_order_row(place, o), &[]);
            sound.map_err(|what| census.broken(format!("new-order {o} of {place:?}: {what}")))?;
            district.new_orders.push(o);
            Ok(())
        })
    }

    /// Adds up deliveries by customer, and checks that all lines of an order are as local as it
    /// says.
    pub(super) fn deliveries(&self, census: &Census<'_>, district: &mut DistrictFacts) -> Checked {
        let place = district.place;
        for (o, order) in (1..).zip(&district.orders) {
            let remote = order.remote;
            let what = || format!("order {o} of {place:?} has {remote} remote lines");
            census.ensure(order.all_local == (remote == 0), what)?;
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
