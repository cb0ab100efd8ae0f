//! Programs for designs that promise an order: what programs of transactions become without transactions.
//!
//! The beginnings of transactions are left out, their stores are stores outside transactions, and in place of a commit stands an
//! operation of the order, or none. So all that programs of transactions are drawn for (shared lines, evictions,
//! full buffers, hand-overs, later lives) is drawn for these designs, too.

use graven_machine::design::{Guarantee, Operation, Order};
use graven_persistency::cut::{Wholes, Within};

use crate::litmus::{Litmus, Persist, Step};

/// The order that programs are to be for, if they are not to have transactions.
pub fn order_without_transactions(guarantee: Guarantee) -> Option<&'static Order> {
    guarantee.order().filter(|order| order.wholes != Wholes::Transactions)
}

/// Something that has to be chosen: a number.
pub trait Choose {
    /// A number below `count`.
    fn one_of(&mut self, count: u32) -> u32;
}

/// Takes the transactions out of a program. `keeps_locks`: whether threads keep apart from each other.
pub fn without_transactions(
    litmus: &mut Litmus,
    order: &Order,
    keeps_locks: bool,
    choose: &mut impl Choose,
) {
    for steps in litmus.lives.iter_mut().flat_map(|life| &mut life.threads) {
        let old = std::mem::take(steps);
        for step in old {
            match step {
                Step::Begin => {}
                Step::Commit => steps.extend(in_place_of_commit(order, choose)),
                Step::Lock(_) | Step::Unlock(_) if !keeps_locks => {}
                step => {
                    let is_store = step.is_transactional_store();
                    steps.push(outside(step));
                    if is_store && choose.one_of(8) == 7 {
                        steps.push(ordered(Operation::OrderingFence));
                    }
                }
            }
        }
    }
}

fn ordered(operation: Operation) -> Step {
    Step::Persist(Persist::Order(operation))
}

fn in_place_of_commit(order: &Order, choose: &mut impl Choose) -> Option<Step> {
    let operation = match (order.within, choose.one_of(6)) {
        (Within::Strands, 4) => Operation::NewStrand,
        (Within::Strands, 5) => Operation::JoinStrands,
        (_, 1 | 3) => Operation::DurabilityFence,
        (_, 5) => return None,
        _ => Operation::OrderingFence,
    };
    Some(ordered(operation))
}

/// A store of a transaction as one outside.
fn outside(step: Step) -> Step {
    match step {
        Step::Store(..) | Step::StoreNonTemporal(..) => Step::Outside(Box::new(step)),
        Step::If(word, value, then) => Step::If(word, value, Box::new(outside(*then))),
        step => step,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::litmus::parse;

    struct Counted(u32);

    impl Choose for Counted {
        fn one_of(&mut self, count: u32) -> u32 {
            self.0 += 1;
            self.0 % count
        }
    }

    #[test]
    fn transactions_become_epochs() {
        let order = graven_persistency::cut::named("epoch").expect("it is there");
        let text = "graven litmus 1\ntitle \"t\"\nA = 0\nthread\n  lock m\n  begin\n  A = 1\n  if A = 1: A = 2\n  commit\n  \
            unlock m\n  outside A = 3\n";
        let mut litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
        without_transactions(&mut litmus, order, false, &mut Counted(0));
        let steps: Vec<String> = litmus.lives[0].threads[0].iter().map(Step::to_string).collect();
        assert_eq!(steps, ["outside A = 1", "if A = 1: outside A = 2", "dfence", "outside A = 3"]);
        assert_eq!(parse(&litmus.to_string()).unwrap_or_else(|e| panic!("{e}")), litmus);
    }
}
