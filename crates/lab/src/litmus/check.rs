//! Conditions of a program: names that exist, transactions and locks that end.

use std::collections::BTreeMap;

use super::tokens::{ParseError, Place, Token};
use super::{Step, Variable};

/// Why nothing is handed over in the midst of a transaction.
pub const COMMIT_FIRST: &str =
    "others must not see what may yet be undone, so `commit` comes first";

/// The number of names a message lists.
const LISTED: usize = 12;

/// The variables that are defined so far.
#[derive(Debug, Default)]
pub struct Variables {
    /// The number of words each has if it is an array, and the line that defines it.
    known: BTreeMap<String, (Option<u32>, u32)>,
}

impl Variables {
    /// One more.
    pub fn define(&mut self, variable: &Variable, place: Place) -> Result<(), ParseError> {
        let name = &variable.name;
        match self.known.insert(name.clone(), (variable.words, place.line)) {
            None => Ok(()),
            Some((_, line)) => Err(place.error(format!(
                "`{name}` is defined in line {line} already; each variable has a name of its own"
            ))),
        }
    }

    /// Tells whether there is one of this name.
    pub fn has(&self, name: &str) -> bool {
        self.known.contains_key(name)
    }

    /// The number of words the variable of a name has if it is an array.
    pub fn words(&self, name: Token<'_>) -> Result<Option<u32>, ParseError> {
        match self.known.get(name.text) {
            Some(&(words, _)) => Ok(words),
            None => Err(name.place.error(format!(
                "{} is not a variable; {}",
                name.shown(),
                listed("defined", self.known.keys())
            ))),
        }
    }
}

/// The open transaction and the locks of a thread.
#[derive(Debug, Default)]
pub struct Thread {
    /// The place at which its transaction began.
    transaction: Option<Place>,
    /// The locks that it holds, and where it took them.
    locks: Vec<(String, Place)>,
    /// The place of its first use.
    first: Option<Place>,
}

impl Thread {
    /// Checks the thread's next step, which stands at `place`.
    pub fn step(&mut self, step: &Step, place: Place) -> Result<(), ParseError> {
        self.first.get_or_insert(place);
        match step.action() {
            Step::Begin => self.begin(place),
            Step::Commit if self.transaction.take().is_none() => {
                Err(place.error("`commit` outside a transaction; `begin` comes first"))
            }
            _ if step.is_transactional_store() && self.transaction.is_none() => Err(place.error(
                "a store outside a transaction; designs protect stores of transactions only, so `begin` comes first, or \
                 `outside` before the word",
            )),
            _ if step.is_outside() => match self.transaction {
                None => Ok(()),
                Some(begin) => Err(place.error(format!(
                    "`outside` inside the transaction that began in line {}; `commit` comes first",
                    begin.line
                ))),
            },
            Step::Lock(name) => self.lock(name, place),
            Step::Unlock(name) => self.unlock(name, place),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, place: Place) -> Result<(), ParseError> {
        match self.transaction.replace(place) {
            None => Ok(()),
            Some(first) => Err(place.error(format!(
                "`begin` inside the transaction that began in line {}; `commit` comes first",
                first.line
            ))),
        }
    }

    fn lock(&mut self, name: &str, place: Place) -> Result<(), ParseError> {
        if let Some((_, taken)) = self.locks.iter().find(|(held, _)| held == name) {
            return Err(place.error(format!(
                "the thread has held `{name}` since line {}; `unlock {name}` comes first",
                taken.line
            )));
        }
        self.locks.push((name.into(), place));
        Ok(())
    }

    fn unlock(&mut self, name: &str, place: Place) -> Result<(), ParseError> {
        if let Some(begin) = self.transaction {
            return Err(place.error(format!(
                "`unlock {name}` inside the transaction that began in line {}; {COMMIT_FIRST}",
                begin.line
            )));
        }
        let Some(at) = self.locks.iter().position(|(held, _)| held == name) else {
            let held = listed("held", self.locks.iter().map(|(held, _)| held));
            return Err(place.error(format!("the thread does not hold `{name}`; {held}")));
        };
        self.locks.remove(at);
        Ok(())
    }

    /// No step follows.
    fn end(&self) -> Result<(), ParseError> {
        if let Some(begin) = self.transaction {
            return Err(
                begin.error("the thread ends inside this transaction; `commit` must follow")
            );
        }
        match self.locks.first() {
            None => Ok(()),
            Some((name, place)) => Err(place.error(format!(
                "the thread ends and holds this lock; `unlock {name}` must follow"
            ))),
        }
    }
}

/// All threads are complete.
pub fn ends(threads: &[Thread]) -> Result<(), ParseError> {
    threads.iter().try_for_each(Thread::end)
}

/// The threads of a sequence, which are numbered there, all have steps.
pub fn no_gaps(threads: &[Thread]) -> Result<(), ParseError> {
    let Some(unused) = threads.iter().position(|t| t.first.is_none()) else { return Ok(()) };
    let mut behind = (unused..).zip(&threads[unused..]);
    match behind.find_map(|(number, thread)| Some((number, thread.first?))) {
        None => Ok(()),
        Some((number, place)) => Err(place.error(format!(
            "thread {number} has steps and thread {unused} has none; threads are numbered from 0 without gaps"
        ))),
    }
}

/// The locks that are held at a place of a sequence: by which thread, and since where.
#[derive(Debug, Default)]
pub struct Held(BTreeMap<String, (usize, Place)>);

impl Held {
    /// The next step of the sequence. Its thread can have no lock that another gives up only later in the one order.
    pub fn step(&mut self, thread: usize, step: &Step, place: Place) -> Result<(), ParseError> {
        match step {
            Step::Lock(name) => match self.0.insert(name.clone(), (thread, place)) {
                Some((holder, since)) => Err(place.error(format!(
                    "thread {thread} would wait for `{name}` for ever, under any design: thread {holder} has held it since line {}, \
                     and its `unlock {name}` comes only after this step",
                    since.line
                ))),
                None => Ok(()),
            },
            Step::Unlock(name) => {
                self.0.remove(name);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The names that threads call, wherever each is first used.
#[derive(Debug, Default)]
pub struct Names {
    crashes: BTreeMap<String, Place>,
    signals: BTreeMap<String, Place>,
    awaits: Vec<(String, Place)>,
    expected: Vec<(String, Place)>,
}

impl Names {
    /// Those of a step.
    pub fn step(&mut self, step: &Step, place: Place) -> Result<(), ParseError> {
        match step {
            Step::Signal(name) => drop(self.signals.insert(name.clone(), place)),
            Step::Await(name) => self.awaits.push((name.clone(), place)),
            Step::Crash(name) => {
                if let Some(first) = self.crashes.insert(name.clone(), place) {
                    return Err(place.error(format!(
                        "there is a `crash {name}` in line {} already; each crash step has a name of its own",
                        first.line
                    )));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A step of a sequence: what it awaits has been signalled before it in the one order.
    pub fn await_in_sequence(&self, step: &Step, place: Place) -> Result<(), ParseError> {
        match step {
            Step::Await(name) if !self.signals.contains_key(name) => Err(place.error(format!(
                "nobody signals `{name}` before this step of the sequence, so its thread would wait for ever, under any design"
            ))),
            _ => Ok(()),
        }
    }

    /// A crash step that an expectation speaks of.
    pub fn expect(&mut self, name: Token<'_>) {
        self.expected.push((name.text.into(), name.place));
    }

    /// The signals, and where they are given.
    pub fn signals(&self) -> &BTreeMap<String, Place> {
        &self.signals
    }

    /// No thread of this life follows: every signal that is awaited is given.
    pub fn end_life(&self) -> Result<(), ParseError> {
        if let Some((name, place)) =
            self.awaits.iter().find(|(name, _)| !self.signals.contains_key(name))
        {
            let signals = listed("signalled", self.signals.keys());
            return Err(place.error(format!("nobody signals `{name}`; {signals}")));
        }
        Ok(())
    }

    /// Signals are for one life.
    pub fn forget_signals(&mut self) {
        self.signals.clear();
        self.awaits.clear();
    }

    /// Every crash step that was spoken of exists.
    pub fn end(&self) -> Result<(), ParseError> {
        if let Some((name, place)) =
            self.expected.iter().find(|(name, _)| !self.crashes.contains_key(name))
        {
            let crashes = listed("named", self.crashes.keys());
            return Err(place.error(format!("no crash step is named `{name}`; {crashes}")));
        }
        Ok(())
    }
}

/// "defined are a, b, c", or that there is none.
fn listed<'a>(what: &str, names: impl IntoIterator<Item = &'a String>) -> String {
    let mut names: Vec<&str> = names.into_iter().map(String::as_str).collect();
    let all = names.len();
    names.truncate(LISTED);
    match all - names.len() {
        _ if all == 0 => format!("none is {what}"),
        0 => format!("{what} are {}", names.join(", ")),
        more => format!("{what} are {} and {more} more", names.join(", ")),
    }
}
