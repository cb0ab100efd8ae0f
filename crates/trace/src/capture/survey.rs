//! A first look at all streams: who touches persistent memory, where regions lie, and which part of the program the trace has.

use graven_capture::{Event, Record, Records, place};
use rustc_hash::FxHashMap;

use super::acts::{Act, Actor};
use super::assembly::{CaptureError, Sources, io_error, stream_error};
use super::lock_order::LockOrder;
use super::memory::Layout;
use super::merge::Order;
use super::roles::{Role, Rules};

/// The part of a program's region of interest that is traced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Transactions before the trace begins: what they store is there when it does.
    pub skip: u64,
    /// Transactions in it at most.
    pub most: Option<u64>,
}

/// The end of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Before the event of this number.
    Before(u64),
    /// Behind it.
    After(u64),
    /// With the program.
    Never,
}

/// The results of a first look at all streams.
#[derive(Debug)]
pub(super) struct Survey {
    pub order: Order,
    /// Threads that access persistent memory or have transactions, by their numbers in the trace.
    pub traced: Vec<Option<u32>>,
    pub layout: Layout,
    /// The event before which the trace begins; none: with the program.
    pub start: Option<u64>,
    pub stop: Stop,
    /// Transactions before the trace begins.
    pub skipped: u64,
    /// Events that begin transactions, ascending.
    begins: Vec<u64>,
    /// Critical sections that do not touch persistent memory.
    pub untouched: u64,
    /// Locks that are one in the trace, each with the one that stands for all.
    pub circles: FxHashMap<u64, u64>,
    /// Functions that were named, and never entered.
    pub never_entered: Vec<String>,
}

impl Survey {
    /// Tells whether the event of this number begins a transaction.
    pub fn begins_at(&self, number: u64) -> bool {
        self.begins.binary_search(&number).is_ok()
    }
}

/// Matters for where the trace begins and ends, by the numbers of events, and for its locks.
#[derive(Default)]
struct Found {
    lock_order: LockOrder,
    begins: Vec<u64>,
    untouched: u64,
    /// The end of the last transaction.
    last_end: Option<u64>,
    /// One is open at the end of its thread's stream.
    is_unfinished: bool,
    from: Option<u64>,
    untils: Vec<u64>,
    /// Some thread has not left the function with which the region ends.
    is_until_open: bool,
    /// Functions that were entered, by their numbers.
    entered: Vec<bool>,
}

/// Looks through all streams.
///
/// # Errors
/// Streams that are none; nothing in them that could be traced.
pub(super) fn survey<S: Sources>(
    sources: &S,
    rules: &Rules,
    limits: Limits,
) -> Result<Survey, CaptureError> {
    let mut lengths = vec![0u64; sources.regions()];
    for (region, length) in lengths.iter_mut().enumerate() {
        let what = || format!("region {region} as it was");
        // More than is mapped of a file may be there.
        *length = sources.before_bytes(region).map_err(|e| io_error(what(), e))?;
    }
    let entered = vec![false; rules.functions.len()];
    let (mut order, mut found) = (Order::default(), Found { entered, ..Found::default() });
    let (mut traced, mut count) = (Vec::new(), 0);
    for thread in 0..sources.threads() {
        let is_traced = of_thread(sources, thread, rules, &mut order, &mut lengths, &mut found)?;
        traced.push(is_traced.then(|| {
            count += 1;
            count - 1
        }));
    }
    if count == 0 {
        let what = "no thread of the program touched persistent memory, or began a transaction";
        return Err(CaptureError::Nothing(what.into()));
    }
    found.begins.sort_unstable();
    let (start, stop) = part(&found, rules, limits).map_err(CaptureError::Nothing)?;
    let skipped = start.map_or(0, |start| found.begins.partition_point(|&n| n < start) as u64);
    Ok(Survey {
        order,
        traced,
        layout: Layout::of(&lengths),
        start,
        stop,
        skipped,
        begins: found.begins,
        untouched: found.untouched,
        circles: found.lock_order.circles(),
        never_entered: rules.never_entered(&found.entered).map(|f| f.name.clone()).collect(),
    })
}

/// Looks through a thread's stream; returns whether it is traced.
fn of_thread<S: Sources>(
    sources: &S,
    thread: usize,
    rules: &Rules,
    order: &mut Order,
    lengths: &mut [u64],
    found: &mut Found,
) -> Result<bool, CaptureError> {
    let mut reach = |position: u64, bytes: u64| {
        let (region, offset) = place(position);
        if let Some(length) = lengths.get_mut(usize::from(region)) {
            *length = (*length).max(offset + bytes);
        }
    };
    let what = || format!("the stream of thread {thread}");
    let file = sources.stream(thread).map_err(|e| io_error(what(), e))?;
    let mut records = Records::new(file);
    let (mut actor, mut acts) = (Actor::default(), Vec::new());
    let mut open = Open { thread, ..Open::default() };
    let mut is_traced = false;
    while let Some((_, record)) =
        records.next_record().map_err(|broken| stream_error(thread, &broken))?
    {
        let (number, event) = match record {
            Record::Event(number, event) => (number, event),
            Record::Volatile(_)
            | Record::Persistence(..)
            | Record::Stack { .. }
            | Record::At(_) => continue,
            Record::Access(_) => {
                open.is_touched = true;
                is_traced = true;
                continue;
            }
        };
        order
            .add(number, thread)
            .map_err(|broken| CaptureError::Stream { thread, broken: broken.into() })?;
        match &event {
            Event::Mapped { position, bytes, .. } => reach(*position, *bytes),
            Event::KernelWrote { position, bytes } => {
                open.is_touched = true;
                is_traced = true;
                reach(*position, bytes.len() as u64);
            }
            Event::Found { .. } | Event::Zeroed { .. } => is_traced = true,
            Event::Entered { function, .. } => {
                let entered = found.entered.get_mut(*function as usize);
                entered.into_iter().for_each(|entered| *entered = true);
            }
            _ => {}
        }
        actor.take(rules, &event, &mut acts);
        for act in acts.drain(..) {
            match act {
                // A critical section of other memory is no transaction.
                Act::Begin => {
                    is_traced |= !rules.critical_sections;
                    open.begin = Some(number);
                    open.is_touched = !rules.critical_sections;
                }
                Act::End if open.close(found) => {
                    found.last_end = found.last_end.max(Some(number));
                }
                Act::Lock(lock) => open.lock(lock, found),
                Act::Unlock(lock) => open.unlock(lock),
                Act::From => found.from = Some(found.from.map_or(number, |from| from.min(number))),
                Act::Until => found.untils.push(number),
                _ => {}
            }
        }
    }
    found.is_unfinished |= open.close(found);
    found.is_until_open |= actor.is_inside(rules, Role::Until);
    Ok(is_traced)
}

/// A thread's transaction.
#[derive(Default)]
struct Open {
    begin: Option<u64>,
    /// The transaction counts, since it has touched persistent memory, or does so without.
    is_touched: bool,
    thread: usize,
    /// Locks that the thread holds, in the order in which it has acquired them, and whether it has released them: a transaction
    /// that counts holds them to its end.
    held: Vec<(u64, bool)>,
    /// The locks that were acquired behind released ones.
    behind_released: Vec<(u64, u64)>,
}

impl Open {
    /// A lock is acquired. That it is behind the last one is enough: that one is behind those before it.
    fn lock(&mut self, lock: u64, found: &mut Found) {
        self.held.retain(|&(held, _)| held != lock);
        if let Some(&(last, true)) = self.held.last() {
            self.behind_released.push((last, lock));
        }
        if let Some(&(held, _)) = self.held.iter().rfind(|(_, is_released)| !is_released) {
            found.lock_order.add(held, lock, self.thread);
        }
        self.held.push((lock, false));
    }

    fn unlock(&mut self, lock: u64) {
        let Some(at) = self.held.iter().position(|&(held, _)| held == lock) else { return };
        if self.begin.is_some() {
            self.held[at].1 = true;
        } else {
            self.held.remove(at);
        }
    }

    /// The thread is over; returns whether it was a transaction.
    fn close(&mut self, found: &mut Found) -> bool {
        let Some(begin) = self.begin.take() else { return false };
        self.held.retain(|(_, is_released)| !is_released);
        let behind = self.behind_released.drain(..);
        if self.is_touched {
            found.begins.push(begin);
            behind.for_each(|(held, lock)| found.lock_order.add(held, lock, self.thread));
        } else {
            found.untouched += 1;
        }
        self.is_touched
    }
}

/// Why functions of such a role may never have been entered, if there are some.
fn inlined(found: &Found, rules: &Rules, is_meant: &dyn Fn(&Role) -> bool) -> String {
    let never = rules.never_entered(&found.entered).filter(|f| f.roles.iter().any(is_meant));
    let names: Vec<&str> = never.map(|function| function.name.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(
            ". Among the symbols, and never entered: {}. What the program calls nevertheless, the compiler has probably inlined \
             where it is called (__attribute__((noinline)), or -fno-inline, keeps it a function of its own)",
            names.join(", ")
        ),
    }
}

/// The event before which the trace begins, and where it ends; or why there is none.
fn part(found: &Found, rules: &Rules, limits: Limits) -> Result<(Option<u64>, Stop), String> {
    let inlined = |is_meant: &dyn Fn(&Role) -> bool| inlined(found, rules, is_meant);
    if let (Some(name), None) = (rules.name_of(Role::From), found.from) {
        let why = inlined(&|&role| role == Role::From);
        return Err(format!(
            "the program never called {name}, with which the trace was to begin{why}"
        ));
    }
    let first = found.from.unwrap_or(0);
    let until = found.untils.iter().copied().filter(|&number| number > first).min();
    if let (Some(name), None, false) = (rules.name_of(Role::Until), until, found.is_until_open) {
        let since = if found.from.is_some() { " after the trace had begun" } else { "" };
        let why = inlined(&|&role| role == Role::Until);
        return Err(format!(
            "the program never called {name}{since}, with which the trace was to end{why}"
        ));
    }
    let of_region = until.map_or(Stop::Never, Stop::After);
    if !rules.have_transactions() && found.begins.is_empty() {
        return match limits {
            Limits { skip: 0, most: None } => Ok((found.from, of_region)),
            _ => Err("the program has no transactions that could be counted: nothing says what \
                      they are"
                .into()),
        };
    }
    let is_within = |&&number: &&u64| number >= first && until.is_none_or(|until| number <= until);
    let candidates: Vec<u64> = found.begins.iter().filter(is_within).copied().collect();
    let at = |n: u64| usize::try_from(n).ok().and_then(|n| candidates.get(n)).copied();
    let Some(begin) = at(limits.skip) else {
        let part = if found.from.is_some() || until.is_some() { " in this part" } else { "" };
        return Err(match limits.skip {
            0 => {
                let why = inlined(&|role| role.begins());
                format!("the program began no transaction{part}: there is none to trace{why}")
            }
            skip => format!(
                "the program began {} transactions{part}, of which {skip} are skipped: there is none to trace",
                candidates.len(),
            ),
        });
    };
    let start = if limits.skip == 0 { found.from.unwrap_or(begin) } else { begin };
    let behind = limits.most.and_then(|most| at(limits.skip.saturating_add(most)));
    let stop = match (behind, of_region) {
        (Some(behind), _) => Stop::Before(behind),
        (None, Stop::After(_)) => of_region,
        // With the end of the last transaction, if all have one.
        _ if found.is_unfinished => Stop::Never,
        _ => found.last_end.map_or(Stop::Never, Stop::After),
    };
    Ok((Some(start), stop))
}
