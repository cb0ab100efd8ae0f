//! Search of Payment and Order-Status for their customer: by number, or by last name (clauses
//! 2.5.2.2 and 2.6.2.2).

use std::ops::ControlFlow;

use super::database::{Database, names_of};
use super::random::{Random, last_name};
use super::schema::{customer::*, read};
use crate::costs;
use graven_machine::program::{Load, Ptr};

/// Who is meant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Who {
    /// The customer of a number.
    Number(u64),
    /// The middle one, rounded up, of those with a last name, in the order of their first names.
    Name(u64),
}

/// Customers of one last name: first name, in an order that compares as text, and row.
pub(super) type Namesakes = Vec<([u64; 2], Ptr)>;

/// Namesakes that there is room for without allocation.
pub(super) const NAMESAKES: usize = 64;

impl Who {
    /// Six in ten by last name.
    pub(super) fn draw(random: &mut Random) -> Who {
        if random.percent(60) {
            Who::Name(random.last_name())
        } else {
            Who::Number(random.customer())
        }
    }

    /// The row of the customer.
    pub(super) fn find<M: Load>(
        self,
        db: &Database,
        m: &mut M,
        place: (u64, u64),
        namesakes: &mut Namesakes,
    ) -> Ptr {
        let indexes = db.indexes(place);
        let name = match self {
            Who::Number(c) => return indexes.customer.get(m, c).expect("customers stay"),
            Who::Name(name) => name,
        };
        // From syllables to the number that the index has.
        m.compute(costs::HASH * last_name(name).1 as u32 / 4);
        namesakes.clear();
        indexes.name.scan(m, names_of(name), |m, _, row| {
            let (mut first, mut word) = ([0; 2], 0);
            read(m, row, C_FIRST, |text: u64| {
                first[word] = text.swap_bytes();
                word += 1;
            });
            namesakes.push((first, row));
            ControlFlow::Continue(())
        });
        let compared = namesakes.len() as u32 * (namesakes.len().max(1).ilog2() + 1);
        m.compute(costs::COMPARE * compared);
        namesakes.sort_unstable_by_key(|&(first, row)| (first, row.addr));
        namesakes[(namesakes.len() - 1) / 2].1
    }
}
