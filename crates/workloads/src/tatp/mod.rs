//! `tatp`: the Telecommunication Application Transaction Processing benchmark.
//!
//! Models TATP of Silo (Fig. 4) and LALEA (§IV-A), whose papers give no more than the name, by the
//! benchmark's description (version 1.0, IBM 2009): the home location register of a mobile phone network.
//! Seven transactions in the standard mix (see [`transactions`]) on four tables:
//!
//! | table | rows per subscriber | key | found by |
//! |---|---|---|---|
//! | Subscriber | 1 | s_id | s_id, and sub_nbr by an index |
//! | Access_Info | 1 to 4 | s_id, ai_type | both |
//! | Special_Facility | 1 to 4 | s_id, sf_type | both, or s_id |
//! | Call_Forwarding | 0 to 3 per facility | s_id, sf_type, start_time | all, or s_id and sf_type |
//!
//! Columns are in [`columns`]. Every row is one line, in a hash table
//! ([`table`](super::structures::table)), as in-memory engines have it; the telephone number sub_nbr
//! leads to a subscriber by an index of 15 digits ([`text_index`](super::structures::text_index)). A
//! subscriber's lock covers all its rows. `tatp.subscribers` gives the size of the database, of 764 B per subscriber
//! on average; the parameters of the section `workload` have no effect but `sharing`.
//!
//! [`check`](super::Workload::check) holds each row to the population that the seed gives: what no transaction updates
//! is exactly as it was, rows are neither lost nor there without their subscriber or facility, numbers
//! lead to the rows of their subscribers. A lost update of one column in place (a location, a bit)
//! leaves a state in which the transaction did not happen; only who knows the transactions sees that.
//!
//! Left out: SQL, clients that wait or retry, and the log of results that the benchmark's driver keeps.

mod columns;
mod transactions;

#[cfg(test)]
mod tests;

use rand_pcg::Pcg64;

use super::database::{Client, Database, DatabaseWorkload, OWNERS_MAX, Share};
use super::layout::Layout;
use super::structures::table::{COLUMNS, Schema};
use super::structures::{Arena, Census, Table, TextIndex, ensure};
use columns::{FACILITY_COLUMNS, Profile, START_TIMES, TYPES, key_of_facility, key_of_forwarding};
use graven_base::config::ConfigError;
use graven_base::memory::{Addr, Image, LINE_BYTES};
use graven_base::section;
use graven_machine::program::{Memory, Ptr};
use graven_machine::workload::{Checked, Request, Workload};
use transactions::{Nurand, Transaction};

section! {
    /// The database of TATP.
    pub struct TatpConfig("tatp") {
        /// Subscribers, over all threads: the population that TATP begins with.
        subscribers: u32 = 100_000, 1..=100_000_000, "subscribers";
    }
}

/// Rows of a subscriber at most, and the node of its number.
const ROWS_MAX: u64 = 2 + TYPES + TYPES + TYPES * START_TIMES;

/// Digits of a telephone number.
const DIGITS: u64 = 15;

/// All blocks are one line.
const ROW_BYTES: u64 = LINE_BYTES;

const _: () = assert!(Table::row_bytes(columns::SUBSCRIBER_COLUMNS) == ROW_BYTES);
const _: () = assert!(TextIndex::node_bytes(DIGITS) == ROW_BYTES);

/// All tables of one database.
#[derive(Clone, Copy, Debug)]
struct Tatp {
    root: Addr,
    subscribers: u64,
    seed: u64,
    draws: Nurand,
    subscriber: Table,
    numbers: TextIndex,
    access_info: Table,
    special_facility: Table,
    call_forwarding: Table,
}

pub(super) fn build(request: &Request) -> Result<Box<dyn Workload>, ConfigError> {
    Ok(Box::new(assemble(request)?))
}

fn assemble(request: &Request) -> Result<DatabaseWorkload<Tatp>, ConfigError> {
    let subscribers = u64::from(request.whole.get::<TatpConfig>().subscribers);
    let owners = ("tatp.subscribers", subscribers, 1);
    DatabaseWorkload::new("tatp", request, owners, Tatp::place, |own, inserts| {
        let blocks = own.saturating_mul(ROWS_MAX).saturating_add(inserts);
        [(ROW_BYTES, blocks), (0, 0), (0, 0)]
    })
}

impl Tatp {
    fn place(layout: &mut Layout, share: &Share) -> Self {
        let root = layout.take(0);
        let one_each = share.buckets(share.owners);
        // Access_Info and Special_Facility have 2.5 rows per subscriber on average.
        let many_each = share.buckets((share.owners * 5).div_ceil(2));
        let mut table = |buckets, row_bits, shared_bits| {
            let at = layout.take(Table::root_bytes(share.stripes, buckets));
            Table::new(at, share.stripes, buckets, Schema { class: 0, row_bits, shared_bits })
        };
        Self {
            root,
            subscribers: share.owners,
            seed: share.seed,
            draws: Nurand::new(share.owners),
            subscriber: table(one_each, 0, 0),
            access_info: table(many_each, 2, 0),
            special_facility: table(one_each, 2, 2),
            call_forwarding: table(many_each, 4, 2),
            numbers: {
                let at = layout.take(Table::root_bytes(share.stripes, one_each));
                TextIndex::new(at, share.stripes, one_each, 0, DIGITS)
            },
        }
    }

    fn profile(&self, s_id: u64) -> Profile {
        Profile::drawn(self.seed, s_id)
    }
}

/// Stores all columns of a row.
fn fill<M: Memory>(m: &mut M, row: Ptr, columns: &[u64]) {
    for (word, &value) in (COLUMNS..).zip(columns) {
        m.store(row.word(word), value);
    }
}

impl Database for Tatp {
    type Transaction = Transaction;

    fn root(&self) -> Addr {
        self.root
    }

    fn owners(&self) -> u64 {
        self.subscribers
    }

    fn format<M: Memory>(&self, m: &mut M) {
        self.numbers.format(m);
        let tables =
            [self.subscriber, self.access_info, self.special_facility, self.call_forwarding];
        tables.iter().for_each(|table| table.format(m));
    }

    fn insert_owner<M: Memory>(&self, m: &mut M, arena: &Arena, owner: u64) {
        let profile = self.profile(owner);
        self.subscriber.insert(m, arena, owner, |m, row| fill(m, row, &profile.subscriber));
        let row = self.subscriber.find(m, owner);
        self.numbers.insert(m, arena, owner, Ptr::known(row.addr));
        for (ai_type, columns) in profile.access_info() {
            let key = key_of_facility(owner, ai_type);
            self.access_info.insert(m, arena, key, |m, row| fill(m, row, columns));
        }
        for (sf_type, facility) in profile.facilities() {
            let key = key_of_facility(owner, sf_type);
            self.special_facility.insert(m, arena, key, |m, row| fill(m, row, &facility.columns));
            for (start, columns) in facility.forwardings() {
                let key = key_of_forwarding(owner, sf_type, start);
                self.call_forwarding.insert(m, arena, key, |m, row| fill(m, row, columns));
            }
        }
    }

    fn draw(&self, random: &mut Pcg64) -> Transaction {
        Transaction::drawn(&self.draws, random)
    }

    fn parameters(transaction: &Transaction) -> u32 {
        transaction.parameters()
    }

    fn owners_of(transaction: &Transaction) -> [Option<u64>; OWNERS_MAX] {
        [Some(transaction.subscriber()), None]
    }

    fn perform<M: Memory>(
        &self,
        m: &mut M,
        client: &Client<'_>,
        transaction: &Transaction,
    ) -> bool {
        self.run(m, client.arena, transaction)
    }

    fn check(&self, census: &mut Census<'_>) -> Checked {
        let profiles: Vec<Profile> =
            (1..=self.subscribers).map(|s_id| self.profile(s_id)).collect();
        let rows = self.check_subscribers(census, &profiles)?;
        self.check_numbers(census, &rows)?;
        self.check_access_info(census, &profiles)?;
        let facilities = self.check_facilities(census, &profiles)?;
        self.check_forwardings(census, &facilities)
    }
}

/// The columns of the row at `row`.
fn columns<const N: usize>(image: &Image, row: Addr) -> [u64; N] {
    std::array::from_fn(|i| image.load(row.plus((COLUMNS + i as u64) * 8)))
}

fn expect_rows(census: &Census<'_>, table: &str, found: u64, expected: u64) -> Checked {
    census.ensure(found == expected, || format!("{table} has {found} rows, not {expected}"))
}

/// The profile of a subscriber, if there is such a one.
fn of(profiles: &[Profile], s_id: u64) -> Result<&Profile, String> {
    let index = usize::try_from(s_id.wrapping_sub(1)).unwrap_or(usize::MAX);
    profiles.get(index).ok_or_else(|| format!("there is no subscriber {s_id}"))
}

impl Tatp {
    /// Returns the rows, by number.
    fn check_subscribers(
        &self,
        census: &mut Census<'_>,
        profiles: &[Profile],
    ) -> Checked<Vec<Addr>> {
        let image = census.image();
        let (mut rows, mut found) = (vec![Addr(0); profiles.len()], 0);
        self.subscriber.walk(census, &mut |s_id, row| {
            let profile = of(profiles, s_id)?;
            rows[s_id as usize - 1] = row;
            found += 1;
            profile.check_subscriber(&columns(image, row)).map_err(|column| {
                format!("{column} of subscriber {s_id}, in row {row}, is not what it was or may be")
            })
        })?;
        expect_rows(census, "Subscriber", found, self.subscribers)?;
        Ok(rows)
    }

    fn check_numbers(&self, census: &mut Census<'_>, rows: &[Addr]) -> Checked {
        let mut found = 0;
        self.numbers.walk(census, &mut |number, value| {
            found += 1;
            let (row, value) = (rows.get(number.wrapping_sub(1) as usize), Addr(value));
            ensure(row == Some(&value), || {
                format!("sub_nbr {number} leads to {value}, but its row is {row:?}")
            })
        })?;
        expect_rows(census, "the index of sub_nbr", found, self.subscribers)
    }

    fn check_access_info(&self, census: &mut Census<'_>, profiles: &[Profile]) -> Checked {
        let image = census.image();
        let mut found = 0;
        self.access_info.walk(census, &mut |key, row| {
            let (s_id, ai_type) = (key / TYPES, key % TYPES);
            found += 1;
            match of(profiles, s_id)?.access_info().find(|&(t, _)| t == ai_type) {
                Some((_, expected)) if *expected == columns(image, row) => Ok(()),
                expected => Err(format!(
                    "access info {} of subscriber {s_id}, row {row}, should be {expected:?}",
                    ai_type + 1
                )),
            }
        })?;
        let expected = profiles.iter().map(|p| p.access_info().count() as u64).sum();
        expect_rows(census, "Access_Info", found, expected)
    }

    /// Returns the keys of the facilities, in order.
    fn check_facilities(&self, census: &mut Census<'_>, profiles: &[Profile]) -> Checked<Vec<u64>> {
        let image = census.image();
        let mut keys = Vec::new();
        self.special_facility.walk(census, &mut |key, row| {
            let (s_id, sf_type) = (key / TYPES, key % TYPES);
            keys.push(key);
            let found: [u64; FACILITY_COLUMNS] = columns(image, row);
            match of(profiles, s_id)?.facilities().find(|&(t, _)| t == sf_type) {
                Some((_, facility)) if facility.may_hold(&found) => Ok(()),
                facility => Err(format!(
                    "facility {} of subscriber {s_id}, row {row}, is {found:x?}, but was {facility:?}",
                    sf_type + 1
                )),
            }
        })?;
        let expected = profiles.iter().map(|p| p.facilities().count() as u64).sum();
        expect_rows(census, "Special_Facility", keys.len() as u64, expected)?;
        keys.sort_unstable();
        Ok(keys)
    }

    fn check_forwardings(&self, census: &mut Census<'_>, facilities: &[u64]) -> Checked {
        let image = census.image();
        self.call_forwarding.walk(census, &mut |key, row| {
            let (facility, start) = (key / (START_TIMES + 1), key % (START_TIMES + 1));
            let is_there = start < START_TIMES && facilities.binary_search(&facility).is_ok();
            ensure(is_there, || {
                format!("call forwarding {row} at start {start} is for facility {facility}, which is not there")
            })?;
            columns::check_forwarding(&columns(image, row))
                .map_err(|column| format!("{column} of call forwarding {row} is none"))
        })
    }
}
