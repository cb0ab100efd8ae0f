//! The consistency conditions (clause 3.3.2), in the words of the specification's columns, and what they leave open.
//!
//! Condition 11 says that a district has 2,100 orders more than new-orders. It holds of the initial database alone: each
//! delivery takes a new-order away. Here the deliveries of the run (`C_DELIVERY_CNT`) are added to the 2,100.

use super::{CustomerFacts, DistrictFacts, Facts, OrderFacts};

type Condition = fn(&Facts) -> Result<(), String>;

/// The conditions, from 1 to 12.
pub(in super::super) const CONDITIONS: [Condition; 12] = [
    |facts| {
        for (w, &(ytd, _)) in (1..).zip(&facts.warehouses) {
            let districts = facts.districts.iter().filter(|district| district.place.0 == w);
            agree(ytd, sum(districts.map(|d| d.ytd)), || {
                format!("W_YTD of {w} and the sum of D_YTD")
            })?;
        }
        Ok(())
    },
    |facts| {
        districts(facts, |d| {
            agree(d.next.wrapping_sub(1), d.orders.len() as u64, || {
                "D_NEXT_O_ID - 1 and O_ID".into()
            })?;
            match d.new_orders.last() {
                Some(&last) => agree(d.next - 1, last, || "D_NEXT_O_ID - 1 and NO_O_ID".into()),
                None => Ok(()),
            }
        })
    },
    |facts| {
        districts(facts, |d| {
            let (Some(first), Some(last)) = (d.new_orders.first(), d.new_orders.last()) else {
                return Ok(());
            };
            agree(last - first + 1, d.new_orders.len() as u64, || {
                "new-orders and their number".into()
            })
        })
    },
    |facts| {
        districts(facts, |d| {
            let lines = d.orders.iter().map(|o| o.lines);
            agree(sum(d.orders.iter().map(|o| o.ol_cnt)), sum(lines), || {
                "the sum of O_OL_CNT and the order-lines".into()
            })
        })
    },
    |facts| {
        orders(facts, |d, number, order| {
            let is_new = d.new_orders.binary_search(&number).is_ok();
            agree((order.carrier == 0).into(), is_new.into(), || {
                "O_CARRIER_ID being null and a new-order being there".into()
            })
        })
    },
    |facts| {
        orders(facts, |_, _, order| {
            agree(order.ol_cnt, order.lines, || "O_OL_CNT and the order-lines".into())
        })
    },
    |facts| {
        orders(facts, |_, _, order| {
            let expected = if order.carrier == 0 { 0 } else { order.lines };
            agree(order.delivered, expected, || "OL_DELIVERY_D and O_CARRIER_ID being set".into())
        })
    },
    |facts| {
        (1..).zip(&facts.warehouses).try_for_each(|(w, &(ytd, history))| {
            agree(ytd, history, || format!("W_YTD of {w} and the sum of H_AMOUNT"))
        })
    },
    |facts| {
        districts(facts, |d| agree(d.ytd, d.history, || "D_YTD and the sum of H_AMOUNT".into()))
    },
    |facts| {
        customers(facts, |c| {
            agree(c.balance, c.delivered.wrapping_sub(c.history), || {
                "C_BALANCE and the sums of OL_AMOUNT - H_AMOUNT".into()
            })
        })
    },
    |facts| {
        districts(facts, |d| {
            let delivered = sum(d.customers.iter().map(|c| c.delivery_cnt));
            let difference = (d.orders.len() as u64).wrapping_sub(d.new_orders.len() as u64);
            agree(difference, facts.delivered.wrapping_add(delivered), || {
                "orders - new-orders and the deliveries".into()
            })
        })
    },
    |facts| {
        customers(facts, |c| {
            agree(c.balance.wrapping_add(c.ytd_payment), c.delivered, || {
                "C_BALANCE + C_YTD_PAYMENT and the sum of OL_AMOUNT".into()
            })
        })
    },
];

/// Checks the other columns that are derived from other rows.
pub(in super::super) fn derived(facts: &Facts) -> Result<(), String> {
    customers(facts, |c| {
        agree(c.ytd_payment, c.history, || "C_YTD_PAYMENT and the sum of H_AMOUNT".into())?;
        agree(c.payment_cnt, c.payments, || "C_PAYMENT_CNT and the history".into())?;
        agree(c.delivery_cnt, c.deliveries, || "C_DELIVERY_CNT and the orders".into())
    })?;
    for (number, stock) in facts.stock.iter().enumerate() {
        let names = ["S_YTD", "S_ORDER_CNT", "S_REMOTE_CNT"];
        for ((count, ordered), name) in stock.counts.into_iter().zip(stock.ordered).zip(names) {
            agree(count, ordered, || format!("{name} of stock row {number} and the order-lines"))?;
        }
        // Stock is filled up by 91 whenever less than 10 would be left.
        let expected = stock.first_quantity as i128 - i128::from(stock.ordered[0]);
        let difference = i128::from(stock.quantity) - expected;
        if !(10..=100).contains(&stock.quantity) || difference % 91 != 0 {
            let ordered = stock.ordered[0];
            return Err(format!(
                "S_QUANTITY of stock row {number} is {}, from {} after {ordered} were ordered",
                stock.quantity, stock.first_quantity
            ));
        }
    }
    Ok(())
}

fn agree(one: u64, other: u64, what: impl Fn() -> String) -> Result<(), String> {
    if one == other { Ok(()) } else { Err(format!("{} do not agree: {one}, {other}", what())) }
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::wrapping_add)
}

fn districts(
    facts: &Facts,
    holds: impl Fn(&DistrictFacts) -> Result<(), String>,
) -> Result<(), String> {
    facts.districts.iter().try_for_each(|district| {
        holds(district).map_err(|what| format!("{what}, in district {:?}", district.place))
    })
}

fn orders(
    facts: &Facts,
    holds: impl Fn(&DistrictFacts, u64, &OrderFacts) -> Result<(), String>,
) -> Result<(), String> {
    districts(facts, |d| {
        (1..).zip(&d.orders).try_for_each(|(number, order)| {
            holds(d, number, order).map_err(|what| format!("{what}, order {number}"))
        })
    })
}

fn customers(
    facts: &Facts,
    holds: impl Fn(&CustomerFacts) -> Result<(), String>,
) -> Result<(), String> {
    districts(facts, |d| {
        (1..).zip(&d.customers).try_for_each(|(number, customer)| {
            holds(customer).map_err(|what| format!("{what}, customer {number}"))
        })
    })
}
