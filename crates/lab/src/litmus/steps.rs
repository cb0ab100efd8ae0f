//! Words and steps from text.

use super::check::Variables;
use super::tokens::{Kind, Line, ParseError, Token};
use super::{Level, Persist, Step, Word};
use graven_machine::design::Operation;

/// The beginnings of steps, but for stores.
pub const STEPS: [&str; 23] = [
    "begin",
    "commit",
    "movnt",
    "outside",
    "load",
    "compute",
    "lock",
    "unlock",
    "signal",
    "await",
    "evict",
    "writeback",
    "clwb",
    "sfence",
    "ofence",
    "dfence",
    "strand",
    "join",
    "maintenance",
    "settle",
    "crash",
    "if",
    "repeat",
];

/// The highest number of times that a `repeat` may do its steps.
const REPEATS_MAX: u64 = 1 << 20;

/// The words that mean something else after `crash` and `expect`.
const NO_CRASH_NAMES: [&str; 4] = ["everywhere", "marked", "point", "end"];

/// The count of a `repeat`, if the line begins with one; steps follow, with commas between them.
pub fn repeats(line: &mut Line<'_>) -> Result<Option<u64>, ParseError> {
    if line.is_assignment() || !line.take("repeat") {
        return Ok(None);
    }
    let count = line.number("the count of repetitions", 1..=REPEATS_MAX)?;
    line.sign(":")?;
    Ok(Some(count))
}

/// A step, but for the end of the line.
pub fn step(line: &mut Line<'_>, variables: &Variables) -> Result<Step, ParseError> {
    let first = line.peek();
    if line.is_assignment() || variables.has(first.text) {
        return store(line, variables);
    }
    line.next();
    match first.text {
        "begin" => Ok(Step::Begin),
        "commit" => Ok(Step::Commit),
        "movnt" => {
            let word = word(line, variables)?;
            line.sign("=")?;
            Ok(Step::StoreNonTemporal(word, value(line)?))
        }
        "outside" => outside(line, variables),
        "load" => Ok(Step::Load(word(line, variables)?)),
        "compute" => compute(line),
        "lock" => Ok(Step::Lock(name(line, "the name of a lock")?)),
        "unlock" => Ok(Step::Unlock(name(line, "the name of a lock")?)),
        "signal" => Ok(Step::Signal(name(line, "the name of a signal")?)),
        "await" => Ok(Step::Await(name(line, "the name of a signal")?)),
        "evict" => evict(line, variables),
        "writeback" => Ok(Step::WriteBack(word(line, variables)?)),
        "clwb" => Ok(Step::Persist(Persist::WriteBack(word(line, variables)?))),
        "sfence" => Ok(Step::Persist(Persist::Fence)),
        "ofence" => Ok(ordering(Operation::OrderingFence)),
        "dfence" => Ok(ordering(Operation::DurabilityFence)),
        "strand" => Ok(ordering(Operation::NewStrand)),
        "join" => Ok(ordering(Operation::JoinStrands)),
        "maintenance" => Ok(Step::Maintenance),
        "settle" => Ok(Step::Settle),
        "crash" => crash(line),
        "if" => conditional(line, variables),
        "repeat" => {
            Err(first.place.error("`repeat` begins a line, and has steps that are none themselves"))
        }
        _ => {
            let allowed = format!("{} and stores as in A = 5", STEPS.join(", "));
            Err(first.refused_as("a step", &allowed))
        }
    }
}

fn ordering(operation: Operation) -> Step {
    Step::Persist(Persist::Order(operation))
}

/// A store outside transactions.
fn outside(line: &mut Line<'_>, variables: &Variables) -> Result<Step, ParseError> {
    let first = line.peek();
    let is_store = first.text == "movnt" || line.is_assignment() || variables.has(first.text);
    if !is_store {
        return Err(first.instead_of("a store, as in A = 5, or movnt"));
    }
    Ok(Step::Outside(Box::new(step(line, variables)?)))
}

/// A step that is done if a word holds a value: one that no other step depends on.
fn conditional(line: &mut Line<'_>, variables: &Variables) -> Result<Step, ParseError> {
    let tested = word(line, variables)?;
    line.sign("=")?;
    let value = value(line)?;
    line.sign(":")?;
    let first = line.peek();
    let then = step(line, variables)?;
    match then {
        Step::Store(..)
        | Step::StoreNonTemporal(..)
        | Step::Outside(_)
        | Step::Load(_)
        | Step::Compute(_)
        | Step::Evict(..)
        | Step::WriteBack(_)
        | Step::Persist(_)
        | Step::Maintenance => Ok(Step::If(tested, value, Box::new(then))),
        _ => Err(first.instead_of(
            "a store, load, movnt, outside, compute, evict, writeback, clwb, fence or maintenance, which alone may depend on a word",
        )),
    }
}

/// A word of a variable.
pub fn word(line: &mut Line<'_>, variables: &Variables) -> Result<Word, ParseError> {
    let name = line.name("a variable")?;
    let words = variables.words(name)?;
    let bracket = line.peek();
    let index = match (words, line.take("[")) {
        (None, false) => None,
        (Some(words), true) => Some(index(line, name, words)?),
        (None, true) => {
            let message = format!("`{}` is not an array; its only word has no index", name.text);
            return Err(bracket.place.error(message));
        }
        (Some(words), false) => {
            let (array, last) = (name.text, words - 1);
            let message =
                format!("`{array}` is an array; its words are {array}[0] to {array}[{last}]");
            return Err(name.place.error(message));
        }
    };
    Ok(Word { name: name.text.into(), index })
}

fn index(line: &mut Line<'_>, name: Token<'_>, words: u32) -> Result<u32, ParseError> {
    let what = format!("the index of {}", name.text);
    let index = line.number(&what, 0..=u64::from(words) - 1)?;
    line.sign("]")?;
    Ok(index as u32)
}

fn store(line: &mut Line<'_>, variables: &Variables) -> Result<Step, ParseError> {
    let word = word(line, variables)?;
    line.sign("=")?;
    Ok(Step::Store(word, value(line)?))
}

/// The value of a word.
pub fn value(line: &mut Line<'_>) -> Result<u64, ParseError> {
    line.number("the value", 0..=u64::MAX)
}

fn compute(line: &mut Line<'_>) -> Result<Step, ParseError> {
    let instructions = line.number("the count of instructions", 0..=u32::MAX.into())?;
    Ok(Step::Compute(instructions as u32))
}

fn evict(line: &mut Line<'_>, variables: &Variables) -> Result<Step, ParseError> {
    let word = word(line, variables)?;
    let next = line.peek();
    if next.kind == Kind::End {
        return Ok(Step::Evict(word, Level::default()));
    }
    if !line.take("from") {
        return Err(next.instead_of("`from` or the end of the line"));
    }
    let level = line.next();
    let level = match level.text {
        "l1" => Level::L1,
        "l2" => Level::L2,
        "llc" => Level::Llc,
        _ => return Err(level.instead_of("l1, l2 or llc")),
    };
    Ok(Step::Evict(word, level))
}

fn crash(line: &mut Line<'_>) -> Result<Step, ParseError> {
    let name = line.name("the name of a crash step")?;
    if NO_CRASH_NAMES.contains(&name.text) {
        return Err(name.place.error(format!(
            "`{}` cannot name a crash step; any name but {} is allowed",
            name.text,
            NO_CRASH_NAMES.join(", ")
        )));
    }
    Ok(Step::Crash(name.text.into()))
}

fn name(line: &mut Line<'_>, what: &str) -> Result<String, ParseError> {
    Ok(line.name(what)?.text.into())
}
