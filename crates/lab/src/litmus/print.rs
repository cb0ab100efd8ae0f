//! To text, one way for each program.
//!
//! [`super::parse`] reads the text of a program that it has read, or could have, as an equal one. A program
//! made otherwise must keep the rules itself: a title or a setting is one line, names are names.

use std::fmt::{self, Display, Formatter};

use super::{
    Choices, CrashAt, Expectation, Failure, FailureMode, Level, Litmus, Persist, Placement, Step,
    VERSION, Variable, When, Word,
};

/// Steps that come at least so often in a row are written once, with how often.
const REPEATED_FROM: usize = 8;

/// Most steps that are looked for in a row.
const REPEATED_STEPS_MAX: usize = 8;

/// From here on numbers are written in hexadecimal.
const HEX_FROM: u64 = 65536;

impl Display for Litmus {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "graven litmus {VERSION}")?;
        self.write_head(f)?;
        for (number, life) in self.lives.iter().enumerate() {
            if number > 0 {
                writeln!(f, "\nlife")?;
            }
            self.write_life_head(f, number)?;
            if number == 0 {
                write_block(f, &self.variables)?;
            }
            write_threads(f, &life.threads)?;
        }
        write_block(f, &self.expectations)
    }
}

impl Litmus {
    /// The statements before the variables; defaults are left out.
    fn write_head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "title \"{}\"", self.title.replace('\\', "\\\\").replace('"', "\\\""))?;
        for (word, names) in [("design", &self.designs), ("violates", &self.violates)] {
            if !names.is_empty() {
                writeln!(f, "{word} {}", names.join(" "))?;
            }
        }
        if let Some(machine) = &self.machine {
            writeln!(f, "machine {machine}")?;
        }
        for (key, value) in &self.settings {
            writeln!(f, "set {key} = {value}")?;
        }
        if let Some(mutant) = &self.mutant {
            writeln!(f, "mutant {mutant}")?;
        }
        Ok(())
    }

    /// Writes the statements of a life before its threads. The seed of the log region's bytes stands among those of the first.
    fn write_life_head(&self, f: &mut Formatter<'_>, number: usize) -> fmt::Result {
        let life = &self.lives[number];
        match &life.adversary {
            None => {}
            Some(Choices::Drawn(seed)) => writeln!(f, "adversary {}", Number(*seed))?,
            Some(Choices::Listed(departures)) => {
                f.write_str("adversary departs")?;
                departures.iter().try_for_each(|d| write!(f, " {}={}", d.choice, d.option))?;
                writeln!(f)?;
            }
        }
        if let (0, Some(seed)) = (number, self.garbage) {
            writeln!(f, "garbage {}", Number(seed))?;
        }
        if life.first_transaction != 0 {
            writeln!(f, "first-transaction {}", Number(life.first_transaction))?;
        }
        match &life.crash {
            CrashAt::Everywhere => Ok(()),
            crash => writeln!(f, "{crash}"),
        }
    }
}

fn write_threads(f: &mut Formatter<'_>, threads: &[Vec<Step>]) -> fmt::Result {
    for steps in threads {
        writeln!(f, "\nthread")?;
        let mut at = 0;
        while at < steps.len() {
            let (length, times) = repeated(&steps[at..]);
            let line: Vec<String> = steps[at..at + length].iter().map(Step::to_string).collect();
            match times {
                1 => writeln!(f, "  {}", line[0])?,
                _ => writeln!(f, "  repeat {times}: {}", line.join(", "))?,
            }
            at += length * times;
        }
    }
    Ok(())
}

/// The steps that are first: how many of them come again in a row, and how often they come. Of several lengths, the
/// one that takes the most steps; a single step if none comes often enough.
fn repeated(steps: &[Step]) -> (usize, usize) {
    // What is repeated begins with no end of what is before it.
    if let Some(Step::Commit | Step::Unlock(_)) = steps.first() {
        return (1, 1);
    }
    let times = |length: usize| {
        let first = &steps[..length];
        steps.chunks_exact(length).take_while(|again| *again == first).count()
    };
    let lengths = 1..=REPEATED_STEPS_MAX.min(steps.len());
    let often = lengths.map(|length| (length, times(length))).filter(|(_, n)| *n >= REPEATED_FROM);
    // Of equal ones the shortest.
    often.rev().max_by_key(|(length, times)| length * times).unwrap_or((1, 1))
}

/// Lines apart from what is before them.
fn write_block(f: &mut Formatter<'_>, lines: &[impl Display]) -> fmt::Result {
    if !lines.is_empty() {
        writeln!(f)?;
    }
    lines.iter().try_for_each(|line| writeln!(f, "{line}"))
}

/// A number as it is easiest to read.
struct Number(u64);

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0 < HEX_FROM { write!(f, "{}", self.0) } else { write!(f, "{:#x}", self.0) }
    }
}

impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if let Some(words) = self.words {
            write!(f, "[{words}]")?;
        }
        write!(f, " = {}", Number(self.initial))?;
        match &self.place {
            Placement::OwnLine => Ok(()),
            Placement::With(other) => write!(f, " with {other}"),
            Placement::At(offset) => write!(f, " at {}", Number(*offset)),
        }
    }
}

impl Display for Word {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.index {
            None => write!(f, "{}", self.name),
            Some(index) => write!(f, "{}[{index}]", self.name),
        }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Step::Begin => write!(f, "begin"),
            Step::Commit => write!(f, "commit"),
            Step::Store(word, value) => write!(f, "{word} = {}", Number(*value)),
            Step::StoreNonTemporal(word, value) => write!(f, "movnt {word} = {}", Number(*value)),
            Step::Outside(store) => write!(f, "outside {store}"),
            Step::Load(word) => write!(f, "load {word}"),
            Step::Compute(instructions) => write!(f, "compute {}", Number((*instructions).into())),
            Step::Lock(name) => write!(f, "lock {name}"),
            Step::Unlock(name) => write!(f, "unlock {name}"),
            Step::Signal(name) => write!(f, "signal {name}"),
            Step::Await(name) => write!(f, "await {name}"),
            Step::Evict(word, Level::Llc) => write!(f, "evict {word}"),
            Step::Evict(word, Level::L1) => write!(f, "evict {word} from l1"),
            Step::Evict(word, Level::L2) => write!(f, "evict {word} from l2"),
            Step::WriteBack(word) => write!(f, "writeback {word}"),
            Step::Persist(Persist::WriteBack(word)) => write!(f, "clwb {word}"),
            Step::Persist(Persist::Fence) => write!(f, "sfence"),
            Step::Persist(Persist::Order(operation)) => write!(f, "{operation}"),
            Step::Maintenance => write!(f, "maintenance"),
            Step::Settle => write!(f, "settle"),
            Step::Crash(name) => write!(f, "crash {name}"),
            Step::If(word, value, then) => write!(f, "if {word} = {}: {then}", Number(*value)),
        }
    }
}

impl Display for CrashAt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            CrashAt::Everywhere => write!(f, "crash everywhere"),
            CrashAt::Marked => write!(f, "crash marked"),
            CrashAt::Point { number, failure } => {
                write!(f, "crash point {}", Number(*number))?;
                match failure.mode {
                    FailureMode::Plain => {}
                    FailureMode::Torn(mask) => write!(f, " torn {mask:#x}")?,
                    FailureMode::InFlight(seed) => write!(f, " in-flight {}", Number(seed))?,
                    FailureMode::Landed(set) => write!(f, " landed {set:#x}")?,
                }
                if !failure.cuts.is_empty() {
                    f.write_str(" recovery")?;
                }
                failure.cuts.iter().try_for_each(|cut| write!(f, " {}", Number(*cut)))
            }
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let modes = match self.mode {
            FailureMode::Plain if !self.cuts.is_empty() => Vec::new(),
            FailureMode::Plain => vec!["plain".to_owned()],
            FailureMode::Torn(mask) => vec![format!("torn {mask:#x}")],
            FailureMode::InFlight(seed) => vec![format!("in-flight {seed}")],
            FailureMode::Landed(set) => vec![format!("landed {set:#x}")],
        };
        let words = (!self.cuts.is_empty()).then(|| "recovery".to_owned());
        let cuts = self.cuts.iter().map(u64::to_string);
        f.write_str(&modes.into_iter().chain(words).chain(cuts).collect::<Vec<_>>().join(" "))
    }
}

impl Display for When {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            When::Recovered(name) => write!(f, "expect {name}"),
            When::Survives(name) => write!(f, "survives {name}"),
            When::Everywhere => write!(f, "expect everywhere"),
            When::End => write!(f, "expect end"),
        }
    }
}

impl Display for Expectation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let condition = |(word, value): &(Word, u64)| format!("{word} = {}", Number(*value));
        let conditions = |all: &Vec<_>| all.iter().map(condition).collect::<Vec<_>>().join(", ");
        let alternatives: Vec<String> = self.alternatives.iter().map(conditions).collect();
        write!(f, "{}: {}", self.when, alternatives.join(" | "))
    }
}
