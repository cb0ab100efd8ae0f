//! Common parts of database benchmarks: a population of owners, clients that draw transactions, and
//! locks by owner.
//!
//! An *owner* is the subject of a transaction: a subscriber, a customer, numbered from 1. Each row
//! has an owner. Threads are clients that issue one transaction after the other. If they share,
//! they have one database, whose rows are under [`STRIPES`] exclusive locks, by the owner's number;
//! a transaction takes those of all its owners before it begins, and keeps them until it has
//! committed ([`locking`](super::locking)). If not, each thread has a database of its own with its
//! share of the owners, and takes no locks.
//!
//! The order in which owners come into the tables is random, so that neighbours by number are not
//! neighbours in memory. Rows that a transaction inserts come from the thread's own arena, and what
//! it deletes goes there. A transaction that fails by its benchmark's rules has stored nothing: it
//! looks at all that it needs first, which leaves what a rollback would.

use std::ops::Range;

use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

use super::costs;
use super::keyed::Part;
use super::layout::{Layout, Placed, place_parts, refusal, threads_of_parts};
use super::locking::{self, STRIPES};
use super::structures::allocator::CLASSES;
use super::structures::keys::{POPULATION, generator};
use super::structures::{Arena, Census};
use graven_base::config::ConfigError;
use graven_base::memory::{Addr, Image};
use graven_machine::program::{Direct, Load, LockId, Memory, Program, spawn};
use graven_machine::workload::{Checked, Extent, Request, Sharing, Workload};

/// The owners of one transaction at most.
pub(super) const OWNERS_MAX: usize = 2;

/// A database of one benchmark, in PM. The handle holds addresses and sizes only.
pub(super) trait Database: Copy + 'static {
    /// A transaction with its parameters.
    type Transaction: Copy;

    /// Address, for messages.
    fn root(&self) -> Addr;

    /// Number of owners.
    fn owners(&self) -> u64;

    /// Makes all tables empty.
    fn format<M: Memory>(&self, m: &mut M);

    /// Inserts all rows of `owner`.
    fn insert_owner<M: Memory>(&self, m: &mut M, arena: &Arena, owner: u64);

    /// Draws the next transaction of a client.
    fn draw(&self, random: &mut Pcg64) -> Self::Transaction;

    /// Number of parameters that the client draws for a transaction.
    fn parameters(transaction: &Self::Transaction) -> u32;

    /// Those whose rows it reads or writes: the first one, and another if there is one.
    fn owners_of(transaction: &Self::Transaction) -> [Option<u64>; OWNERS_MAX];

    /// Performs a transaction for the client that is number `client` in this database. Returns
    /// whether it succeeded; if not, it has stored nothing.
    fn perform<M: Memory>(
        &self,
        m: &mut M,
        client: &Client<'_>,
        transaction: &Self::Transaction,
    ) -> bool;

    /// Walks all tables and checks rows and references, and accounts for each block with the census.
    ///
    /// # Errors
    /// The first violation. Ends on any image.
    fn check(&self, census: &mut Census<'_>) -> Checked;
}

/// Who performs a transaction.
pub(super) struct Client<'a> {
    /// Arena that new rows come from, and old ones go to.
    pub(super) arena: &'a Arena,
    /// Number among the threads of its database.
    pub(super) number: u64,
}

/// Share of one database.
pub(super) struct Share {
    pub(super) threads: Range<u32>,
    /// Number of owners.
    pub(super) owners: u64,
    /// Locks, and stripes of the tables.
    pub(super) stripes: u32,
    /// By thread: bytes and number of the blocks of its arena.
    arenas: Vec<[(u64, u64); CLASSES]>,
    /// Different for each database.
    pub(super) seed: u64,
}

impl Share {
    /// Buckets per stripe of a table of `rows` rows.
    pub(super) fn buckets(&self, rows: u64) -> u64 {
        rows.div_ceil(self.stripes.into()).max(1)
    }
}

/// `whole` dealt out to `parts`, the first taking the rest.
pub(super) fn dealt(whole: u64, (part, parts): (u32, u32)) -> u64 {
    whole / u64::from(parts) + u64::from(u64::from(part) < whole % u64::from(parts))
}

/// A workload of clients of databases.
pub(super) struct DatabaseWorkload<D> {
    name: &'static str,
    request: Request,
    pub(super) parts: Vec<Part<D>>,
    extent: Extent,
}

impl<D: Database> DatabaseWorkload<D> {
    /// Makes the databases of the workload `name` on `owners` owners, a number that `key` sets, of
    /// which each database needs `fewest`; `place` lays out its tables, and `blocks` returns the
    /// number of blocks of each size that the arena of a thread needs for its share of the owners
    /// and its transactions.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] if they are too few for each thread, or too many for PM.
    pub(super) fn new(
        name: &'static str,
        request: &Request,
        (key, owners, fewest): (&str, u64, u64),
        mut place: impl FnMut(&mut Layout, &Share) -> D,
        blocks: fn(u64, u64) -> [(u64, u64); CLASSES],
    ) -> Result<Self, ConfigError> {
        let all = threads_of_parts(request);
        let parts = all.len() as u32;
        let enough = fewest * u64::from(parts);
        if owners < enough {
            let why = format!(
                "each of {parts} databases needs {fewest}; at least {enough} would do, or workload.sharing = \"shared\", or \
                 fewer threads"
            );
            return Err(refusal(name, key, owners.to_string(), why));
        }
        let stripes = if request.config.sharing == Sharing::Shared { STRIPES } else { 1 };
        let share = |(part, threads): (u32, Range<u32>)| {
            let owners = dealt(owners, (part, parts));
            let clients = threads.end - threads.start;
            let arenas = threads.clone().map(|thread| {
                let own = dealt(owners, (thread - threads.start, clients));
                blocks(own, request.transactions_of(thread))
            });
            let seed = request.seed.wrapping_add(1 + u64::from(part));
            Share { arenas: arenas.collect(), threads, owners, stripes, seed }
        };
        let shares: Vec<Share> = (0..).zip(all).map(share).collect();
        let parts = place_parts(request, &shares, |layout, share| {
            let structure = place(layout, share);
            let arenas = share.arenas.iter().map(|&blocks| layout.arena(blocks)).collect();
            Part { structure, arenas, threads: share.threads.clone() }
        });
        let Placed { parts, extent } = parts.map_err(|end| {
            let why = format!(
                "with room for what {} transactions may insert, the tables end at {end}, but PM for programs at {}; \
                 lower it, or the number of transactions, or raise pm.capacity_bytes",
                request.transactions, request.end
            );
            refusal(name, key, owners.to_string(), why)
        })?;
        Ok(Self { name, request: request.clone(), parts, extent })
    }

    fn part_of(&self, thread: u32) -> &Part<D> {
        let part = self.parts.iter().find(|part| part.threads.contains(&thread));
        part.expect("each thread has a database")
    }
}

impl<D: Database> Workload for DatabaseWorkload<D> {
    fn populate(&self, image: &mut Image) {
        let mut m = Direct::new(image);
        let mut random = generator(self.request.seed, POPULATION);
        for part in &self.parts {
            part.structure.format(&mut m);
            part.arenas.iter().for_each(|arena| arena.format(&mut m));
            let mut owners: Vec<u64> = (1..=part.structure.owners()).collect();
            owners.shuffle(&mut random);
            for (owner, arena) in owners.into_iter().zip(part.arenas.iter().cycle()) {
                part.structure.insert_owner(&mut m, arena, owner);
            }
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let part = self.part_of(thread);
        let (database, arena) = (part.structure, *part.arena_of(thread - part.threads.start));
        let number = u64::from(thread - part.threads.start);
        let shared = self.request.config.sharing == Sharing::Shared;
        let mut random = generator(self.request.seed, thread);
        let mut locks: Vec<LockId> = Vec::with_capacity(OWNERS_MAX);
        let transactions = self.request.transactions_of(thread);
        spawn(move |thread| {
            let client = Client { arena: &arena, number };
            for _ in 0..transactions {
                let transaction = database.draw(&mut random);
                thread.compute(costs::DRAW * D::parameters(&transaction));
                locks.clear();
                if shared {
                    let owners = D::owners_of(&transaction).into_iter().flatten();
                    locks.extend(owners.map(|owner| (owner % u64::from(STRIPES)) as LockId));
                    thread.compute(costs::COMPARE * locks.len() as u32);
                }
                locking::transaction(thread, &mut locks, |thread| {
                    thread.compute(costs::OPERATION);
                    database.perform(thread, &client, &transaction);
                });
            }
        })
    }

    fn check(&self, image: &Image) -> Checked {
        for part in &self.parts {
            let name = format!("{} at {}", self.name, part.structure.root());
            Census::audit(name, image, &part.arenas, |census| part.structure.check(census))?;
        }
        Ok(())
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

#[cfg(test)]
pub(super) mod testing {
    //! Helpers of the tests of all databases.

    use super::*;

    /// The request with settings of the workload's own.
    pub fn with(request: &Request, settings: &[(&str, &str)]) -> Request {
        let mut request = request.clone();
        for (key, value) in settings {
            request.whole.set(key, value).expect("the section allows it");
        }
        request
    }

    /// The only database of a workload, populated.
    pub fn one<D: Database>(workload: DatabaseWorkload<D>) -> (D, Arena, Image) {
        let mut image = Image::new();
        workload.populate(&mut image);
        assert_eq!(workload.parts.len(), 1, "there is one database");
        (workload.parts[0].structure, workload.parts[0].arenas[0], image)
    }

    /// Draws and performs the next transaction of the only client, and returns it and whether it succeeded.
    pub fn next<D: Database>(
        (database, arena): (&D, &Arena),
        image: &mut Image,
        random: &mut Pcg64,
    ) -> (D::Transaction, bool) {
        let transaction = database.draw(random);
        let client = Client { arena, number: 0 };
        let succeeded = database.perform(&mut Direct::new(image), &client, &transaction);
        (transaction, succeeded)
    }
}
