//! The durability checker: it knows the program's stores and acknowledgements, and nothing of designs.
//!
//! Trusted base: keep it small. It follows every store. At a power failure it demands of
//! the recovered bytes that they are those of architectural memory, save for the transactions that were
//! not acknowledged, and for words that were stored to outside transactions:
//!
//! - one whose end had not been reached has left no trace: each word it stored holds what it held before;
//! - one that was ending is atomic (stores that its software performs only when it may be there,
//!   see [`DurabilityChecker::defer`], included);
//! - every acknowledged one survives, unless the design guarantees commit order only
//!   ([`Guarantee::Prefix`]): then the surviving transactions form a prefix of the order
//!   in which they reached their ends, and no more acknowledged ones are missing than it allows.
//!
//! Nothing else may have changed. Since threads hand words to each other under locks that they hold to the
//! end, dependent transactions respect commit order under either guarantee: the later one begins when
//! the earlier has been acknowledged.
//!
//! # Stores outside transactions
//!
//! A store outside transactions promises nothing, and takes away nothing but this: until a transaction stores to its word, the
//! word may hold what was promised for it, or any value that was stored to it since, outside transactions ([`Outside`]). It is
//! not promised that it holds the newest of them, nor that they become durable in order: caches write lines when they like, and
//! what restores a line may bring an older one of them back. But nothing from before the last promise may come back, and no
//! other value. What is promised for a word is
//!
//! - what it held at first, which in a later life is what recovery has left there;
//! - from the acknowledgement of a transaction that stored to it: the transaction's value.
//!
//! A transaction that stores to such a word finds it with all that it may hold:
//!
//! - not ending, it has left no trace if the word holds any of that;
//! - ending, its value is allowed, too. That it is there is shown by words that hold its value and could not have held that
//!   before it; that it is not, by words that do not hold its value. Both must not be shown;
//! - where commit order is all that is guaranteed and it is lost, the word may hold what it could before it, or what was stored
//!   to it after it, outside transactions.
//!
//! A store outside transactions to a word that another thread's open transaction has stored to is a [`Race`] like any other.
//!
//! # How it is done
//!
//! The comparison is exact, and costs what was written since the failure: [`Domain`] keeps the number of
//! words in which durable bytes and architectural memory differ (of words that were stored to outside transactions: those that
//! hold nothing that they may), recovery's writes change that number, unacknowledged transactions account for some of it, and
//! what is left must be zero.
//!
//! [`Domain`]: graven_machine::controller::domain::Domain

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::FxHashSet;
use thiserror::Error;

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, Image};
use graven_base::surviving::{SurvivingImage, Written};
use graven_machine::controller::domain::recount;
use graven_machine::controller::outside::{Outside, OutsideWords};
use graven_machine::design::Guarantee;
use graven_machine::sim::{Crash, Simulation, TransactionObserver};
use graven_persistency::promise::Broken;

mod order;

pub use order::OrderChecker;

/// A transaction and what it stored.
#[derive(Clone, Debug, Hash)]
struct Stored {
    tx: Tx,
    /// The old value of each word, by address.
    before: Vec<(Addr, u64)>,
    /// The other possible values of those that had been stored to outside transactions.
    outside: BTreeMap<Addr, Outside>,
    /// The values that it will have stored to words that it has not stored to yet, by address.
    deferred: Vec<(Addr, u64)>,
    ending: bool,
    /// Under [`Guarantee::Prefix`], of those that have ended.
    acknowledged: bool,
}

/// Follows transactions and checks recovered bytes.
#[derive(Clone, Debug)]
pub struct DurabilityChecker {
    guarantee: Guarantee,
    open: Vec<Option<Stored>>,
    /// Under [`Guarantee::Prefix`], transactions that have reached their ends, in that order.
    ended: Vec<Stored>,
    /// By thread, the words to which its open transaction has stored as far as the program knows, while the design's code
    /// puts the stores off. They have no part in any verdict, only in that of the program.
    put_off: Vec<BTreeSet<Addr>>,
    /// Words that were stored to outside transactions, at any time.
    ever_outside: FxHashSet<Addr>,
    start: Addr,
    end: Addr,
    /// The first store by which the program has broken its part of the contract.
    race: Option<Race>,
}

/// A store to a word that another thread's transaction has stored, which is not acknowledged: no design can keep such
/// transactions apart, and none is held to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the program is not isolated: {by} stores to {addr}, which transaction {} of thread {} has stored to and not ended; words of several threads are stored to under a lock that is held until the commit",
    of.number, of.thread
)]
pub struct Race {
    /// The word.
    pub addr: Addr,
    /// Whose it is.
    pub of: Tx,
    /// Who stores to it.
    pub by: Storer,
}

/// Who stores to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Storer {
    /// A transaction.
    #[error("in transaction {} thread {}", .0.number, .0.thread)]
    Transaction(Tx),
    /// A thread, outside transactions.
    #[error("outside transactions thread {0}")]
    Outside(ThreadId),
}

impl Storer {
    fn thread(self) -> ThreadId {
        match self {
            Storer::Transaction(tx) => tx.thread,
            Storer::Outside(thread) => thread,
        }
    }
}

/// A guarantee that was broken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Verdict {
    /// A word that no unacknowledged transaction stored differs from the committed state.
    #[error(
        "word {addr} holds {found:#x}, committed is {committed:#x}, and no open transaction wrote it"
    )]
    Lost {
        /// The address.
        addr: Addr,
        /// The value after recovery.
        found: u64,
        /// The required value.
        committed: u64,
    },
    /// A word that was stored to outside transactions holds what it may not.
    #[error(
        "word {addr} holds {found:#x}, which is neither the {promised:#x} that was promised nor one of the {stored} values stored to it since, outside transactions"
    )]
    NeverStored {
        /// The address.
        addr: Addr,
        /// The value after recovery.
        found: u64,
        /// The promised value.
        promised: u64,
        /// Different values that were stored to it since.
        stored: usize,
    },
    /// An unfinished transaction left a trace.
    #[error(
        "transaction {number} of thread {thread} was not ending, yet word {addr} holds {found:#x} instead of {before:#x}"
    )]
    NotUndone {
        /// The thread.
        thread: u32,
        /// The number.
        number: u64,
        /// The address.
        addr: Addr,
        /// The value after recovery.
        found: u64,
        /// The value before the transaction.
        before: u64,
    },
    /// A word of a transaction that was ending holds neither its old nor its new value.
    #[error(
        "transaction {number} of thread {thread} was ending; word {addr} holds {found:#x}, which is neither the {before:#x} from before it nor the {after:#x} from after it"
    )]
    Neither {
        /// The thread.
        thread: u32,
        /// The number.
        number: u64,
        /// The address.
        addr: Addr,
        /// The value after recovery.
        found: u64,
        /// The value before the transaction.
        before: u64,
        /// The value after the transaction.
        after: u64,
    },
    /// A transaction that was ending is there in part.
    #[error(
        "transaction {number} of thread {thread} was ending and is there in part: word {there} has its new value, word {missing} does not (it holds {found:#x})"
    )]
    Partial {
        /// The thread.
        thread: u32,
        /// The number.
        number: u64,
        /// A word that has the new value.
        there: Addr,
        /// One that has not.
        missing: Addr,
        /// The present value.
        found: u64,
    },
    /// Under commit order: the surviving transactions form no prefix of it.
    #[error(
        "no beginning of the {ended} ended transactions leaves what PM holds; after all of them word {addr} would hold {expected:#x}, and it holds {found:#x}"
    )]
    NoPrefix {
        /// The number of ended transactions.
        ended: usize,
        /// A word that differs if all survive.
        addr: Addr,
        /// The value that is expected then.
        expected: u64,
        /// The value after recovery.
        found: u64,
    },
    /// Under an order of stores: they form no cut of it.
    #[error("{0}")]
    NoCut(Broken),
    /// Under commit order: the surviving transactions form a prefix of it that is too short.
    #[error(
        "{lost} acknowledged transactions are lost, the oldest of them transaction {number} of thread {thread}; the design promises to lose {lost_max} at most"
    )]
    TooManyLost {
        /// Acknowledged transactions that are missing.
        lost: u64,
        /// The number that may be lost.
        lost_max: u64,
        /// Thread of the oldest of them.
        thread: u32,
        /// The number.
        number: u64,
    },
}

impl Verdict {
    /// A word that shows it, if one does.
    pub fn addr(&self) -> Option<Addr> {
        Some(match *self {
            Verdict::NoCut(Broken { addr, .. }) => return addr,
            Verdict::Lost { addr, .. }
            | Verdict::NeverStored { addr, .. }
            | Verdict::Neither { addr, .. }
            | Verdict::NotUndone { addr, .. }
            | Verdict::NoPrefix { addr, .. } => addr,
            Verdict::Partial { missing, .. } => missing,
            Verdict::TooManyLost { .. } => return None,
        })
    }
}

/// Has a checker follow a simulation's transactions. Call it before running.
pub fn attach(simulation: &mut Simulation) {
    let (spec, (start, end)) = (simulation.spec(), simulation.data_region());
    let guarantee = spec.design.guarantee_in(&spec.config);
    let checker: Box<dyn TransactionObserver> = match guarantee.order() {
        Some(order) => Box::new(OrderChecker::new(order, start, end)),
        None => Box::new(DurabilityChecker::new(guarantee, spec.threads, start, end)),
    };
    simulation.follow_transactions(checker);
}

/// The checker of a simulation.
enum Attached<'a> {
    Durability(&'a DurabilityChecker),
    Order(&'a OrderChecker),
}

fn attached(simulation: &Simulation) -> Attached<'_> {
    let order = simulation.transaction_observer().map(Attached::Order);
    order
        .or_else(|| simulation.transaction_observer().map(Attached::Durability))
        .expect("a checker is attached")
}

/// By which store the program has broken its part of the contract, if it has.
///
/// # Panics
/// If no checker was attached to the simulation.
pub fn race(simulation: &Simulation) -> Option<Race> {
    match attached(simulation) {
        Attached::Durability(checker) => checker.race,
        // Stores of several threads to a word are in an order, too.
        Attached::Order(_) => None,
    }
}

/// Checks the image that a power failure left, as it is now.
///
/// # Errors
/// The first guarantee found broken.
///
/// # Panics
/// If no checker was attached to the simulation.
pub fn check(crash: &Crash<'_>) -> Result<(), Verdict> {
    let machine = crash.simulation().machine();
    let outside = machine.outside().expect("what is durable is followed");
    let (now, different) = (machine.architectural(), crash.different_words());
    match attached(crash.simulation()) {
        Attached::Durability(checker) => checker.check(&crash.image, different, now, outside),
        Attached::Order(checker) => checker.check(&crash.image, different, now),
    }
}

/// The same of an image that kept all guarantees after its first `judged` writes: nothing is compared if no word of the
/// programs' data has changed since.
///
/// # Errors
/// The first guarantee found broken.
///
/// # Panics
/// If no checker was attached to the simulation.
pub fn check_again(crash: &Crash<'_>, judged: usize) -> Result<(), Verdict> {
    let (start, end) = crash.simulation().data_region();
    let mut since = crash.image.written()[judged..].iter();
    if since.any(|w| w.old != w.new && (start..end).contains(&w.addr)) {
        return check(crash);
    }
    Ok(())
}

/// Words that the program has stored to outside transactions so far: they were not held to anything until a transaction
/// stored to them.
///
/// # Panics
/// If no checker was attached to the simulation.
pub fn words_stored_outside(simulation: &Simulation) -> u64 {
    match attached(simulation) {
        Attached::Durability(checker) => checker.ever_outside.len() as u64,
        Attached::Order(_) => 0,
    }
}

/// Digest of all but the bytes of PM on which recovery and the verdict depend: the registers, and what the program has
/// stored and may rely on. Of two failures of runs that began alike, with equal bytes and equal digests, recovery does the
/// same and the verdict is the same.
///
/// # Panics
/// If no checker was attached to the simulation.
pub fn digest(crash: &Crash<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let machine = crash.simulation().machine();
    let (_, architectural) = machine.digests();
    match attached(crash.simulation()) {
        Attached::Durability(checker) => (&checker.open, &checker.ended).hash(&mut hasher),
        Attached::Order(checker) => checker.hash(&mut hasher),
    }
    (&crash.registers, architectural).hash(&mut hasher);
    machine.outside().map(OutsideWords::digest).hash(&mut hasher);
    hasher.finish()
}

/// The number of words of a region in which an image differs from the demanded one, which was `different` before anything was
/// written to the image. `differs_at`: for a word, whether content of it differs.
fn recounted<F: Fn(u64) -> bool>(
    different: u64,
    recovered: &SurvivingImage,
    (start, end): (Addr, Addr),
    differs_at: impl Fn(Addr) -> F,
) -> u64 {
    let changes = |w: &&Written| w.old != w.new && (start..end).contains(&w.addr);
    recovered.written().iter().filter(changes).fold(different, |different, w| {
        let differs = differs_at(w.addr);
        recount(different, differs(w.old), differs(w.new))
    })
}

impl DurabilityChecker {
    /// A checker for `threads`, and for words in `[start, end)`.
    pub fn new(guarantee: Guarantee, threads: u32, start: Addr, end: Addr) -> Self {
        let open = (0..threads).map(|_| None).collect();
        let put_off = vec![BTreeSet::new(); threads as usize];
        Self {
            guarantee,
            open,
            ended: Vec::new(),
            put_off,
            ever_outside: FxHashSet::default(),
            start,
            end,
            race: None,
        }
    }

    /// Checks the image that recovery left. `now`: architectural memory at the failure. `outside`: the words that were stored
    /// to outside transactions, and not by one since. `different`: the words in which the durable bytes differed from what
    /// these two allow, before anything was written to the surviving.
    ///
    /// # Errors
    /// The first guarantee found broken.
    pub fn check(
        &self,
        recovered: &SurvivingImage,
        different: u64,
        now: &Image,
        outside: &OutsideWords,
    ) -> Result<(), Verdict> {
        let region = (self.start, self.end);
        let mut different = recounted(different, recovered, region, |addr| {
            let committed = now.load(addr);
            move |held| outside.differs(addr, held, committed)
        });
        if let Guarantee::Prefix { lost_max } = self.guarantee {
            return self.find_prefix(recovered, different, (now, outside), lost_max);
        }
        for open in self.open.iter().flatten() {
            let (mut is_undone, mut of_open) = (true, 0);
            for words in open.before.chunk_by(|(a, _), (b, _)| a.line() == b.line()) {
                let line = words[0].0.line();
                let (found, now) = (recovered.image().load_line(line), now.load_line(line));
                for &(addr, before) in words {
                    let word = addr.word_in_line();
                    is_undone = is_undone && open.is_old(addr, before, found[word]);
                    of_open += u64::from(outside.differs(addr, found[word], now[word]));
                }
            }
            if !is_undone {
                open.check(recovered, now)?;
            }
            different = different.checked_sub(of_open).expect("words of open transactions count");
        }
        match different {
            0 => Ok(()),
            _ => {
                let lost = self.first_lost(recovered, now, outside);
                Err(lost.expect("the count says that some word differs"))
            }
        }
    }

    /// Takes transactions back, first the open ones, then the ended ones from the newest on, until what is
    /// expected is what recovery has left.
    fn find_prefix(
        &self,
        recovered: &SurvivingImage,
        mut different: u64,
        (now, outside): (&Image, &OutsideWords),
        lost_max: u64,
    ) -> Result<(), Verdict> {
        let mut expected: BTreeMap<Addr, Outside> = BTreeMap::new();
        let committed = |addr: Addr| {
            outside.get(addr).cloned().unwrap_or_else(|| Outside::promising(now.load(addr)))
        };
        let mut lost = 0;
        let mut open_left = self.open.iter().flatten().count();
        if open_left == 0 && different == 0 {
            return Ok(());
        }
        for transaction in self.open.iter().flatten().chain(self.ended.iter().rev()) {
            for &(addr, before) in &transaction.before {
                let found = recovered.peek(addr);
                let state = expected.entry(addr).or_insert_with(|| committed(addr));
                let differed = !state.allows(found);
                // What was stored after it, outside transactions, may be there without it.
                match transaction.outside.get(&addr) {
                    None => state.promised = before,
                    Some(earlier) => {
                        state.promised = earlier.promised;
                        state.stored.extend(&earlier.stored);
                    }
                }
                different = recount(different, differed, !state.allows(found));
            }
            open_left = open_left.saturating_sub(1);
            lost += u64::from(transaction.acknowledged && !transaction.before.is_empty());
            if open_left == 0 && different == 0 {
                let Tx { thread, number } = transaction.tx;
                let is_bounded = lost <= lost_max;
                let verdict = Verdict::TooManyLost { lost, lost_max, thread, number };
                return if is_bounded { Ok(()) } else { Err(verdict) };
            }
        }
        // Something is wrong whichever prefix is taken; show it for the longest.
        match self.first_lost(recovered, now, outside) {
            Some(
                Verdict::Lost { addr, found, committed: expected }
                | Verdict::NeverStored { addr, found, promised: expected, .. },
            ) => Err(Verdict::NoPrefix { ended: self.ended.len(), addr, expected, found }),
            _ => self.open.iter().flatten().try_for_each(|open| open.check(recovered, now)),
        }
    }

    /// Tells whether an open transaction of another thread has stored to a word that is stored to now.
    fn look_for_race(&mut self, by: Storer, addr: Addr) {
        if self.race.is_some() {
            return;
        }
        let put_off = |o: &Stored| self.put_off[o.tx.thread as usize].contains(&addr);
        let mut others = self.open.iter().flatten().filter(|o| o.tx.thread != by.thread());
        let of = others.find(|o| o.has_stored(addr) || put_off(o)).map(|o| o.tx);
        self.race = of.map(|of| Race { addr, of, by });
    }

    /// A word that differs from the committed state, and from what was stored outside transactions, though no open
    /// transaction stored it.
    fn first_lost(
        &self,
        recovered: &SurvivingImage,
        now: &Image,
        outside: &OutsideWords,
    ) -> Option<Verdict> {
        let stored = |addr: Addr| self.open.iter().flatten().any(|o| o.has_stored(addr));
        let mut differences = recovered.image().differences(now, self.start, self.end);
        let (addr, found, committed) = differences.find(|&(addr, found, committed)| {
            !stored(addr) && outside.differs(addr, found, committed)
        })?;
        Some(match outside.get(addr) {
            None => Verdict::Lost { addr, found, committed },
            Some(Outside { promised, stored }) => {
                Verdict::NeverStored { addr, found, promised: *promised, stored: stored.len() }
            }
        })
    }
}

impl TransactionObserver for DurabilityChecker {
    /// A transaction begins.
    fn begin(&mut self, tx: Tx) {
        let slot = &mut self.open[tx.thread as usize];
        assert!(slot.is_none(), "transactions do not nest");
        self.put_off[tx.thread as usize].clear();
        *slot = Some(Stored {
            tx,
            before: Vec::new(),
            outside: BTreeMap::new(),
            deferred: Vec::new(),
            ending: false,
            acknowledged: false,
        });
    }

    /// A transaction stores a word.
    fn store(&mut self, tx: Tx, addr: Addr, old: u64, _new: u64, outside: Option<Outside>) {
        let open = self.open[tx.thread as usize].as_mut();
        let open = open.expect("a store belongs to an open transaction");
        assert!(open.tx == tx, "a thread has one open transaction");
        let was_deferred = || open.deferred.binary_search_by_key(&addr, |&(a, _)| a).is_ok();
        assert!(!open.ending || was_deferred(), "{addr} is stored to before the end, or deferred");
        if let Err(at) = open.before.binary_search_by_key(&addr, |&(a, _)| a) {
            open.before.insert(at, (addr, old));
            open.outside.extend(outside.map(|outside| (addr, outside)));
            self.look_for_race(Storer::Transaction(tx), addr);
        }
    }

    /// A thread stores a word outside transactions.
    fn store_outside(&mut self, thread: ThreadId, addr: Addr, _old: u64, _new: u64) {
        self.ever_outside.insert(addr);
        self.look_for_race(Storer::Outside(thread), addr);
    }

    /// The program of a transaction stores to a word, and the design's code puts that off.
    fn put_off_store(&mut self, tx: Tx, addr: Addr) {
        if self.put_off[tx.thread as usize].insert(addr) {
            self.look_for_race(Storer::Transaction(tx), addr);
        }
    }

    /// The thread is about to end, and stores these words, by address, only when it may be there already.
    fn defer(&mut self, tx: Tx, words: &[(Addr, u64)]) {
        assert!(!self.guarantee.is_of_order() || words.is_empty(), "not needed yet");
        let open = self.open[tx.thread as usize].as_mut();
        open.expect("it is open still").deferred = words.to_vec();
    }

    /// A transaction has reached its end: from now on it may be there.
    fn ending(&mut self, tx: Tx) {
        let slot = &mut self.open[tx.thread as usize];
        if !self.guarantee.is_of_order() {
            slot.as_mut().expect("only an open transaction ends").ending = true;
            return;
        }
        self.ended.extend(slot.take());
    }

    /// The design puts its end off: it has not taken effect, and will be reached anew.
    fn put_off(&mut self, tx: Tx) {
        let slot = &mut self.open[tx.thread as usize];
        if !self.guarantee.is_of_order() {
            slot.as_mut().expect("it is open still").ending = false;
            return;
        }
        let last = self.ended.pop();
        assert!(last.as_ref().is_some_and(|last| last.tx == tx), "it has just ended");
        *slot = last;
    }

    /// The commit of a transaction was acknowledged: from now on it must be there.
    fn acknowledged(&mut self, tx: Tx) {
        if self.guarantee.is_of_order() {
            let ended = self.ended.iter_mut().rev().find(|ended| ended.tx == tx);
            ended.expect("only an ended transaction is acknowledged").acknowledged = true;
        } else {
            let open = self.open[tx.thread as usize].take();
            let is_ending = open.is_some_and(|open| open.ending && open.tx == tx);
            assert!(is_ending, "only an ending transaction is acknowledged");
        }
    }
}

impl Stored {
    /// Tells whether a word is one that it has stored to.
    fn has_stored(&self, addr: Addr) -> bool {
        self.before.binary_search_by_key(&addr, |&(a, _)| a).is_ok()
    }

    /// The value of a word after it.
    fn after(&self, addr: Addr, now: &Image) -> u64 {
        match self.deferred.binary_search_by_key(&addr, |&(a, _)| a) {
            Ok(at) => self.deferred[at].1,
            Err(_) => now.load(addr),
        }
    }

    /// Tells whether a word that it stored holds what it could before it.
    fn is_old(&self, addr: Addr, before: u64, found: u64) -> bool {
        found == before || self.outside.get(&addr).is_some_and(|outside| outside.allows(found))
    }

    /// Tells whether it is there as a whole, or not at all.
    fn check(&self, recovered: &SurvivingImage, now: &Image) -> Result<(), Verdict> {
        let Tx { thread, number } = self.tx;
        let found = |addr: Addr| recovered.peek(addr);
        let after = |addr: Addr| self.after(addr, now);
        let is_old = |addr: Addr, before: u64| self.is_old(addr, before, found(addr));
        let not_old = self.before.iter().find(|&&(addr, before)| !is_old(addr, before));
        let Some(&(addr, before)) = not_old else { return Ok(()) };
        if !self.ending {
            return Err(Verdict::NotUndone { thread, number, addr, found: found(addr), before });
        }
        let neither = |&&(a, before): &&(Addr, u64)| !is_old(a, before) && found(a) != after(a);
        if let Some(&(addr, before)) = self.before.iter().find(neither) {
            let (found, after) = (found(addr), after(addr));
            return Err(Verdict::Neither { thread, number, addr, found, before, after });
        }
        let Some(&(missing, _)) = self.before.iter().find(|&&(a, _)| found(a) != after(a)) else {
            return Ok(());
        };
        Err(Verdict::Partial { thread, number, there: addr, missing, found: found(missing) })
    }
}

#[cfg(test)]
mod outside_tests;

#[cfg(test)]
mod tests {
    use super::*;

    const TX: Tx = Tx { thread: 0, number: 3 };
    const END: Addr = Addr(4096);
    const PREFIX: Guarantee = Guarantee::Prefix { lost_max: 3 };

    fn checker(guarantee: Guarantee) -> DurabilityChecker {
        DurabilityChecker::new(guarantee, 2, Addr(0), END)
    }

    /// Checks an image with these first words; nothing of it was durable before.
    fn verdict(checker: &DurabilityChecker, now: &Image, recovered: &[u64]) -> Result<(), Verdict> {
        let mut surviving = SurvivingImage::default();
        let different = Image::new().differences(now, Addr(0), END).count() as u64;
        for (i, &word) in recovered.iter().enumerate() {
            surviving.store(Addr(i as u64 * 8), word);
        }
        checker.check(&surviving, different, now, &OutsideWords::default())
    }

    fn image(words: &[u64]) -> Image {
        let mut image = Image::new();
        for (i, &word) in words.iter().enumerate() {
            image.store(Addr(i as u64 * 8), word);
        }
        image
    }

    /// Two words stored by one transaction: 1 → 11 and 2 → 12; a third word holds 7.
    fn case(ending: bool, recovered: [u64; 3]) -> Result<(), Verdict> {
        let mut checker = checker(Guarantee::Durable);
        checker.begin(TX);
        checker.store(TX, Addr(8), 2, 0, None);
        checker.store(TX, Addr(0), 1, 0, None);
        checker.store(TX, Addr(8), 5, 0, None);
        if ending {
            checker.ending(TX);
        }
        verdict(&checker, &image(&[11, 12, 7]), &recovered)
    }

    #[test]
    fn all_or_nothing_and_nothing_else() {
        assert_eq!(case(false, [1, 2, 7]), Ok(()));
        assert_eq!(case(true, [1, 2, 7]), Ok(()));
        assert_eq!(case(true, [11, 12, 7]), Ok(()));
        assert!(matches!(case(false, [11, 12, 7]), Err(Verdict::NotUndone { addr: Addr(0), .. })));
        assert!(matches!(case(false, [1, 5, 7]), Err(Verdict::NotUndone { addr: Addr(8), .. })));
        assert!(matches!(
            case(true, [11, 2, 7]),
            Err(Verdict::Partial { there: Addr(0), missing: Addr(8), found: 2, .. })
        ));
        assert!(matches!(
            case(true, [11, 5, 7]),
            Err(Verdict::Neither { addr: Addr(8), before: 2, after: 12, .. })
        ));
        assert!(matches!(
            case(true, [11, 12, 8]),
            Err(Verdict::Lost { addr: Addr(16), found: 8, committed: 7 })
        ));
    }

    /// An action of a transaction.
    type Act = fn(&mut DurabilityChecker, Tx);

    #[test]
    fn stores_that_are_put_off_race_with_those_of_open_transactions() {
        let other = Tx { thread: 1, number: 0 };
        let race = |first: fn(&mut DurabilityChecker, Tx),
                    second: fn(&mut DurabilityChecker, Tx)| {
            let mut checker = checker(Guarantee::Durable);
            checker.begin(TX);
            checker.begin(other);
            first(&mut checker, TX);
            second(&mut checker, other);
            checker.race
        };
        let store: Act = |checker, tx| checker.store(tx, Addr(8), 2, 0, None);
        let put_off: Act = |checker, tx| checker.put_off_store(tx, Addr(8));
        let elsewhere: Act = |checker, tx| checker.put_off_store(tx, Addr(16));
        let ended: Act = |checker, tx| {
            checker.put_off_store(tx, Addr(8));
            checker.ending(tx);
            checker.acknowledged(tx);
        };
        let found = Some(Race { addr: Addr(8), of: TX, by: Storer::Transaction(other) });
        for (first, second) in [(store, put_off), (put_off, store), (put_off, put_off)] {
            assert_eq!(race(first, second), found);
        }
        assert_eq!(race(put_off, elsewhere), None);
        assert_eq!(race(ended, put_off), None);
    }

    /// A transaction that may be durable before it has stored word 0, 1 → 11; word 1 it has stored, 2 → 12.
    fn deferred(recovered: [u64; 3]) -> Result<(), Verdict> {
        let mut checker = checker(Guarantee::Durable);
        checker.begin(TX);
        checker.store(TX, Addr(8), 2, 0, None);
        let now = image(&[1, 12, 7]);
        checker.store(TX, Addr(0), 1, 0, None);
        checker.defer(TX, &[(Addr(0), 11), (Addr(8), 12)]);
        checker.ending(TX);
        verdict(&checker, &now, &recovered)
    }

    #[test]
    fn stores_that_come_after_the_end_may_be_there_before_they_are_performed() {
        assert_eq!(deferred([1, 2, 7]), Ok(()));
        assert_eq!(deferred([11, 12, 7]), Ok(()));
        assert!(matches!(deferred([1, 12, 7]), Err(Verdict::Partial { missing: Addr(0), .. })));
        assert!(matches!(deferred([11, 2, 7]), Err(Verdict::Partial { missing: Addr(8), .. })));
        let neither = deferred([5, 12, 7]);
        assert!(matches!(neither, Err(Verdict::Neither { before: 1, after: 11, .. })));
        assert!(matches!(deferred([11, 12, 8]), Err(Verdict::Lost { addr: Addr(16), .. })));
    }

    #[test]
    fn a_store_to_a_word_of_an_open_transaction_is_a_race_of_the_program() {
        let other = Tx { thread: 1, number: 7 };
        for guarantee in [Guarantee::Durable, PREFIX] {
            let mut checker = checker(guarantee);
            checker.begin(TX);
            checker.store(TX, Addr(8), 2, 0, None);
            checker.begin(other);
            checker.store(other, Addr(0), 1, 0, None);
            assert_eq!(checker.race, None);
            checker.store(other, Addr(8), 3, 0, None);
            checker.store(TX, Addr(0), 3, 0, None);
            let first = Race { addr: Addr(8), of: TX, by: Storer::Transaction(other) };
            assert_eq!(checker.race, Some(first));
            assert!(
                first
                    .to_string()
                    .contains("thread 1 stores to 0x8, which transaction 3 of thread 0")
            );
        }
    }

    #[test]
    fn what_was_acknowledged_must_be_there() {
        let mut checker = checker(Guarantee::Durable);
        let now = image(&[9]);
        checker.begin(TX);
        checker.store(TX, Addr(0), 0, 0, None);
        checker.ending(TX);
        assert_eq!(verdict(&checker, &now, &[0]), Ok(()));
        checker.acknowledged(TX);
        assert!(matches!(verdict(&checker, &now, &[0]), Err(Verdict::Lost { .. })));
        assert_eq!(verdict(&checker, &now, &[9]), Ok(()));
    }

    /// Three transactions have ended: word 0 went 0 → 1 → 2, word 1 went 0 → 5 with the second, word 2
    /// went 0 → 6 with the third; an open one has stored word 3.
    fn prefix(recovered: [u64; 4]) -> Result<(), Verdict> {
        let mut checker = checker(PREFIX);
        let stores: [&[(u64, u64)]; 3] = [&[(0, 0)], &[(0, 1), (8, 0)], &[(16, 0)]];
        for (number, words) in stores.iter().enumerate() {
            let tx = Tx { thread: 0, number: number as u64 };
            checker.begin(tx);
            words.iter().for_each(|&(addr, old)| checker.store(tx, Addr(addr), old, 0, None));
            checker.ending(tx);
            checker.acknowledged(tx);
        }
        let open = Tx { thread: 1, number: 0 };
        checker.begin(open);
        checker.store(open, Addr(24), 3, 0, None);
        verdict(&checker, &image(&[2, 5, 6, 4]), &recovered)
    }

    #[test]
    fn under_commit_order_the_survivors_are_the_first() {
        for there in [[0, 0, 0, 3], [1, 0, 0, 3], [2, 5, 0, 3], [2, 5, 6, 3]] {
            assert_eq!(prefix(there), Ok(()), "{there:?}");
        }
        for there in [[1, 5, 0, 3], [2, 0, 0, 3], [0, 0, 6, 3], [1, 0, 6, 3], [0, 5, 0, 3]] {
            assert!(matches!(prefix(there), Err(Verdict::NoPrefix { ended: 3, .. })), "{there:?}");
        }
        assert!(prefix([2, 5, 6, 4]).is_err(), "the open one left a trace");
    }

    #[test]
    fn under_commit_order_no_more_are_lost_than_the_design_promises() {
        let verdict_of = |lost_max, there: [u64; 2]| {
            let mut checker = checker(Guarantee::Prefix { lost_max });
            for number in 0..3 {
                let tx = Tx { thread: 0, number };
                checker.begin(tx);
                // The second stores nothing: whether it is lost means nothing.
                if number != 1 {
                    checker.store(tx, Addr(number * 4), 0, 0, None);
                }
                checker.ending(tx);
                checker.acknowledged(tx);
            }
            verdict(&checker, &image(&[1, 1]), &there)
        };
        assert_eq!((verdict_of(2, [0, 0]), verdict_of(1, [1, 0])), (Ok(()), Ok(())));
        for (lost_max, there, lost, number) in [(1, [0, 0], 2, 0), (0, [1, 0], 1, 2)] {
            let verdict = Verdict::TooManyLost { lost, lost_max, thread: 0, number };
            assert_eq!(verdict_of(lost_max, there), Err(verdict));
        }
    }

    #[test]
    fn an_ending_transaction_does_not_survive_without_its_forerunners() {
        let mut checker = checker(PREFIX);
        for number in 0..2 {
            let tx = Tx { thread: number, number: 0 };
            checker.begin(tx);
            checker.store(tx, Addr(u64::from(number) * 8), 0, 0, None);
            checker.ending(tx);
            if number == 0 {
                checker.acknowledged(tx);
            }
        }
        let now = image(&[1, 1]);
        for there in [[0, 0], [1, 0], [1, 1]] {
            assert_eq!(verdict(&checker, &now, &there), Ok(()), "{there:?}");
        }
        assert!(verdict(&checker, &now, &[0, 1]).is_err());
    }

    #[test]
    fn an_end_that_is_put_off_is_reached_anew() {
        let mut checker = checker(PREFIX);
        let [first, second] = [0, 1].map(|thread| Tx { thread, number: 0 });
        for tx in [first, second] {
            checker.begin(tx);
            checker.store(tx, Addr(u64::from(tx.thread) * 8), 0, 0, None);
        }
        checker.ending(first);
        checker.put_off(first);
        checker.ending(second);
        let now = image(&[1, 1]);
        assert_eq!(verdict(&checker, &now, &[0, 1]), Ok(()), "the first has not ended");
        assert!(verdict(&checker, &now, &[1, 1]).is_err(), "so it must leave no trace");
        checker.ending(first);
        assert!(verdict(&checker, &now, &[1, 0]).is_err(), "it comes second now");
        assert_eq!(verdict(&checker, &now, &[1, 1]), Ok(()));
    }
}
