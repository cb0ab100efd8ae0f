//! A program from its lines.

use std::collections::BTreeMap;

pub use super::tokens::ParseError;

use super::check::{self, COMMIT_FIRST, Held, Names, Thread, Variables};
use super::isolation::{EarlySignal, early_signal};
use super::standstill::{Circle, Places};
use super::steps::{self, STEPS};
use super::tokens::{Kind, Line, Place, Token};
use super::{
    Choices, CrashAt, Departure, Expectation, Failure, FailureMode, Life, Litmus, Placement, Step,
    VERSION, Variable, When, Word, sequence,
};

/// Most threads of a program.
const MAX_THREADS: usize = 64;

/// Most words of an array.
const MAX_WORDS: u64 = 65536;

/// The beginnings of statements, but for definitions of variables.
const STATEMENTS: [&str; 15] = [
    "title",
    "design",
    "violates",
    "machine",
    "set",
    "mutant",
    "adversary",
    "garbage",
    "first-transaction",
    "crash",
    "life",
    "thread",
    "sequence",
    "expect",
    "survives",
];

/// Reads a litmus program.
///
/// # Errors
/// The first thing that is wrong: where it is, what it is, and what is allowed.
pub fn parse(text: &str) -> Result<Litmus, ParseError> {
    parse_placed(text).map(|(litmus, _)| litmus)
}

/// The same, and where its steps stand.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse_placed(text: &str) -> Result<(Litmus, Places), ParseError> {
    let lines = (1..).zip(text.lines()).map(|(number, text)| Line::new(number, text));
    let mut lines = lines.filter(|line| !line.is_blank());
    let end = Place::end_of(text);
    version(lines.next(), end)?;
    let mut parser = Parser {
        litmus: Litmus { lives: vec![Life::default()], ..Litmus::default() },
        places: Places(vec![Vec::new()]),
        ..Parser::default()
    };
    for line in lines {
        parser.line(line)?;
    }
    parser.end(end)
}

/// `graven litmus 1`.
fn version(line: Option<Line<'_>>, end: Place) -> Result<(), ParseError> {
    let expected = format!("`graven litmus {VERSION}`");
    let mut line =
        line.ok_or_else(|| end.error(format!("expected {expected}, found the end of the text")))?;
    for word in ["graven", "litmus"] {
        let token = line.next();
        if token.text != word {
            return Err(token.instead_of(&expected));
        }
    }
    let place = line.peek().place;
    let version = line.number("the version", 0..=u64::MAX)?;
    if version != u64::from(VERSION) {
        return Err(place.error(format!(
            "this file is of version {version}; this program reads version {VERSION}"
        )));
    }
    line.end()
}

/// Tells whether a word has a meaning at the beginning of a line.
fn is_keyword(word: &str) -> bool {
    word == "graven" || STATEMENTS.contains(&word) || STEPS.contains(&word)
}

/// The meaning of lines that are no statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Block {
    /// Before the first step: definitions of variables.
    #[default]
    Definitions,
    /// Steps of the last thread.
    Thread,
    /// Steps with the number of their thread.
    Sequence,
    /// Between threads or after them: nothing.
    Closed,
}

/// The program so far.
#[derive(Default)]
struct Parser<'a> {
    litmus: Litmus,
    block: Block,
    /// The places of statements that are made once, and of the first `thread`.
    said: BTreeMap<&'a str, Place>,
    variables: Variables,
    names: Names,
    /// The state of each thread, of a sequence's too.
    threads: Vec<Thread>,
    sequence: Vec<(usize, Step, Place)>,
    /// The locks that are held at this place of a sequence, by whom, and since where.
    held: Held,
    /// The places of the steps of each life's threads.
    places: Places,
}

impl<'a> Parser<'a> {
    fn line(&mut self, mut line: Line<'a>) -> Result<(), ParseError> {
        let first = line.peek();
        if is_keyword(first.text) && line.is_assignment() {
            let message =
                format!("`{}` is a word of this format and cannot name a variable", first.text);
            return Err(first.place.error(message));
        }
        if self.is_statement(&line) {
            self.statement(&mut line)?;
            return line.end();
        }
        match self.block {
            Block::Definitions if line.is_assignment() => self.variable(&mut line)?,
            Block::Definitions | Block::Closed => return Err(stray(&line)),
            Block::Thread => self.step(self.threads.len() - 1, &mut line)?,
            Block::Sequence => {
                let thread = thread_number(&mut line)?;
                self.threads.resize_with(self.threads.len().max(thread + 1), Thread::default);
                self.step(thread, &mut line)?;
            }
        }
        line.end()
    }

    /// Tells whether a line is one in this block: `crash` is a step, too.
    fn is_statement(&self, line: &Line<'a>) -> bool {
        let mut ahead = *line;
        let first = ahead.next().text;
        let in_block = matches!(self.block, Block::Thread | Block::Sequence);
        if first == "crash" && in_block {
            return matches!(ahead.next().text, "everywhere" | "marked" | "point");
        }
        STATEMENTS.contains(&first)
    }

    fn statement(&mut self, line: &mut Line<'a>) -> Result<(), ParseError> {
        let first = line.next();
        if self.block != Block::Definitions {
            self.block = Block::Closed;
        }
        match first.text {
            "thread" => return self.thread(first),
            "life" => return self.next_life(first),
            "expect" | "survives" => return self.expectation(first, line),
            "design" => return names(line, "the name of a design", &mut self.litmus.designs),
            "violates" => return names(line, "the name of a design", &mut self.litmus.violates),
            "set" => return self.setting(line),
            _ => self.once(first)?,
        }
        let litmus = &mut self.litmus;
        let life = litmus.lives.last_mut().expect("a program has a life");
        match first.text {
            "crash" => life.crash = crash_at(line)?,
            "title" => litmus.title = line.quoted("a title in quotes")?,
            "machine" => litmus.machine = Some(line.name("the name of a machine")?.text.into()),
            "mutant" => litmus.mutant = Some(line.raw("the name of a mutant")?.into()),
            "adversary" => life.adversary = Some(choices(line)?),
            "garbage" => litmus.garbage = Some(line.number("the seed", 0..=u64::MAX)?),
            "first-transaction" => {
                life.first_transaction =
                    line.number("the number of a transaction", 0..=u64::MAX)?;
            }
            "sequence" => return self.begin_sequence(first),
            other => unreachable!("`{other}` is in STATEMENTS"),
        }
        Ok(())
    }

    /// A statement that is made once.
    fn once(&mut self, word: Token<'a>) -> Result<(), ParseError> {
        match self.said.insert(word.text, word.place) {
            None => Ok(()),
            Some(before) => Err(word.place.error(format!(
                "`{}` is in line {} already; it is allowed once",
                word.text, before.line
            ))),
        }
    }

    fn thread(&mut self, word: Token<'a>) -> Result<(), ParseError> {
        self.said.entry(word.text).or_insert(word.place);
        self.excludes(word, "sequence")?;
        if self.threads.len() == MAX_THREADS {
            return Err(word
                .place
                .error(format!("one thread too many; a program has at most {MAX_THREADS}")));
        }
        self.threads.push(Thread::default());
        let (life, places) = self.life();
        life.threads.push(Vec::new());
        places.push(Vec::new());
        self.block = Block::Thread;
        Ok(())
    }

    /// Begins a use of the machine after a recovery.
    fn next_life(&mut self, word: Token<'a>) -> Result<(), ParseError> {
        self.end_life(
            word.place,
            "there is no thread before this `life`; each life has at least one",
        )?;
        for again in ["thread", "sequence", "adversary", "first-transaction", "crash"] {
            self.said.remove(again);
        }
        self.litmus.lives.push(Life::default());
        self.places.0.push(Vec::new());
        Ok(())
    }

    /// Returns the present life, and where the steps of its threads stand.
    fn life(&mut self) -> (&mut Life, &mut Vec<Vec<Place>>) {
        let life = self.litmus.lives.last_mut().expect("a program has a life");
        (life, self.places.0.last_mut().expect("each life has its places"))
    }

    /// No thread of the present life follows.
    fn end_life(&mut self, place: Place, without_threads: &str) -> Result<(), ParseError> {
        let is_sequence = self.said.contains_key("sequence");
        if is_sequence {
            check::no_gaps(&self.threads)?;
        }
        check::ends(&self.threads)?;
        self.names.end_life()?;
        if self.threads.is_empty() {
            return Err(place.error(without_threads));
        }
        if is_sequence {
            self.end_sequence();
        }
        let number = self.litmus.lives.len() - 1;
        if let Some(circle) = Circle::of_signals(&self.litmus.lives[number].threads, number) {
            return Err(circle.refusal(&self.places));
        }
        self.check_signals()?;
        self.held = Held::default();
        self.threads.clear();
        self.names.forget_signals();
        Ok(())
    }

    /// The steps of the present life's sequence become those of threads.
    fn end_sequence(&mut self) {
        let steps = std::mem::take(&mut self.sequence);
        let threads = sequence::threads(steps, self.names.signals());
        let threads = threads.into_iter().map(|thread| thread.into_iter().unzip());
        let (life, places) = self.life();
        (life.threads, *places) = threads.unzip();
    }

    /// No thread of the present life comes to a word after a signal of a transaction that has stored to it and not committed.
    fn check_signals(&self) -> Result<(), ParseError> {
        let early = self.litmus.lives.last().and_then(|life| early_signal(&life.threads));
        let Some(EarlySignal { name, word, thread }) = early else { return Ok(()) };
        match (self.names.signals().get(&name), self.said.get("sequence")) {
            (None, Some(sequence)) => Err(sequence.error(format!(
                "thread {thread} comes to `{word}`, which the transaction of another thread has stored to and not ended; {COMMIT_FIRST}"
            ))),
            (place, _) => Err(place.expect("a signal is of a sequence, or has its place").error(format!(
                "`signal {name}` inside a transaction that has stored to `{word}`, to which thread {thread} comes then; {COMMIT_FIRST}"
            ))),
        }
    }

    fn begin_sequence(&mut self, word: Token<'a>) -> Result<(), ParseError> {
        self.excludes(word, "thread")?;
        self.block = Block::Sequence;
        Ok(())
    }

    fn excludes(&self, word: Token<'a>, other: &str) -> Result<(), ParseError> {
        match self.said.get(other) {
            None => Ok(()),
            Some(place) => Err(word.place.error(format!(
                "there is a `{other}` in line {} already; a program has threads or one sequence",
                place.line
            ))),
        }
    }

    /// `set section.key = value`.
    fn setting(&mut self, line: &mut Line<'a>) -> Result<(), ParseError> {
        let section = line.name("a key as in silo.log_buffer_entries")?.text;
        line.sign(".")?;
        let key = line.name("the name of a value")?.text;
        line.sign("=")?;
        let value = line.raw("a value")?;
        self.litmus.settings.push((format!("{section}.{key}"), value.into()));
        Ok(())
    }

    /// `A = 5 with B` or `C[40] = 7 at 0x2000`.
    fn variable(&mut self, line: &mut Line<'a>) -> Result<(), ParseError> {
        let name = line.name("the name of a variable")?;
        let words = if line.take("[") {
            let words = line.number("the count of words", 1..=MAX_WORDS)?;
            line.sign("]")?;
            Some(words as u32)
        } else {
            None
        };
        line.sign("=")?;
        let initial = steps::value(line)?;
        let place = self.placement(line)?;
        let variable = Variable { name: name.text.into(), words, initial, place };
        self.variables.define(&variable, name.place)?;
        self.litmus.variables.push(variable);
        Ok(())
    }

    fn placement(&self, line: &mut Line<'a>) -> Result<Placement, ParseError> {
        let word = line.next();
        let placement = match word.text {
            "with" => {
                let other = line.name("a variable")?;
                self.variables.words(other)?;
                Placement::With(other.text.into())
            }
            "at" => Placement::At(offset(line)?),
            _ if word.kind == Kind::End => Placement::OwnLine,
            _ => return Err(word.instead_of("`with`, `at` or the end of the line")),
        };
        let next = line.peek();
        if matches!(next.text, "with" | "at") {
            return Err(next.place.error("one of `with` and `at` is allowed, once"));
        }
        Ok(placement)
    }

    /// A step of thread number `thread`, or several again and again.
    fn step(&mut self, thread: usize, line: &mut Line<'a>) -> Result<(), ParseError> {
        let Some(count) = steps::repeats(line)? else {
            let place = line.peek().place;
            let step = steps::step(line, &self.variables)?;
            return self.add_step(thread, step, place);
        };
        let mut steps = Vec::new();
        loop {
            let place = line.peek().place;
            steps.push((steps::step(line, &self.variables)?, place));
            if !line.take(",") {
                break;
            }
        }
        let next = line.peek();
        if next.kind != Kind::End {
            return Err(next.instead_of("`,` or the end of the line"));
        }
        (0..count)
            .flat_map(|_| steps.iter().cloned())
            .try_for_each(|(step, place)| self.add_step(thread, step, place))
    }

    fn add_step(&mut self, thread: usize, step: Step, place: Place) -> Result<(), ParseError> {
        self.threads[thread].step(&step, place)?;
        if self.block == Block::Sequence {
            self.names.await_in_sequence(&step, place)?;
            self.held.step(thread, &step, place)?;
        }
        self.names.step(&step, place)?;
        if self.block == Block::Sequence {
            self.sequence.push((thread, step, place));
            return Ok(());
        }
        let (life, places) = self.life();
        life.threads[thread].push(step);
        places[thread].push(place);
        Ok(())
    }

    /// `expect NAME: A = 3, B = 0 | A = 1`.
    fn expectation(&mut self, word: Token<'a>, line: &mut Line<'a>) -> Result<(), ParseError> {
        let name = line.name("the name of a crash step")?;
        let when = match (word.text, name.text) {
            ("expect", "everywhere") => When::Everywhere,
            ("expect", "end") => When::End,
            ("expect", step) => When::Recovered(step.into()),
            (_, step) => When::Survives(step.into()),
        };
        if matches!(when, When::Recovered(_) | When::Survives(_)) {
            self.names.expect(name);
        }
        line.sign(":")?;
        let mut alternatives = vec![self.conditions(line)?];
        while line.take("|") {
            alternatives.push(self.conditions(line)?);
        }
        let next = line.peek();
        if next.kind != Kind::End {
            return Err(next.instead_of("`,`, `|` or the end of the line"));
        }
        self.litmus.expectations.push(Expectation { when, alternatives });
        Ok(())
    }

    /// `A = 3, B = 0`.
    fn conditions(&self, line: &mut Line<'a>) -> Result<Vec<(Word, u64)>, ParseError> {
        let mut conditions = Vec::new();
        loop {
            let word = steps::word(line, &self.variables)?;
            line.sign("=")?;
            conditions.push((word, steps::value(line)?));
            if !line.take(",") {
                return Ok(conditions);
            }
        }
    }

    /// No line follows; `end` is where the text ends.
    fn end(mut self, end: Place) -> Result<(Litmus, Places), ParseError> {
        self.end_life(end, "there is no thread; a program has at least one, and so has each life")?;
        self.names.end()?;
        if !self.said.contains_key("title") {
            return Err(end.error("there is no title; a program has one, as in title \"…\""));
        }
        Ok((self.litmus, self.places))
    }
}

/// A line that does not belong where it is.
fn stray(line: &Line<'_>) -> ParseError {
    let first = line.peek();
    if first.text == "graven" {
        return first
            .place
            .error(format!("`graven litmus {VERSION}` is the first line, and no other"));
    }
    if STEPS.contains(&first.text) {
        let message = format!("`{}` is a step; steps follow `thread` or `sequence`", first.text);
        return first.place.error(message);
    }
    if line.is_assignment() {
        return first.place.error(
            "neither a store, which belongs in a thread, nor a variable, which is defined before the first thread",
        );
    }
    let allowed =
        format!("{} and, before the first thread, variables as in A = 5", STATEMENTS.join(", "));
    first.refused_as("a statement", &allowed)
}

/// The thread of a step in a sequence.
fn thread_number(line: &mut Line<'_>) -> Result<usize, ParseError> {
    let first = line.peek();
    if first.kind != Kind::Number {
        return Err(first
            .instead_of("a step with the number of its thread, as in 0: begin, or a statement"));
    }
    let thread = line.number("the thread", 0..=MAX_THREADS as u64 - 1)?;
    line.sign(":")?;
    Ok(thread as usize)
}

/// One or more names.
fn names(line: &mut Line<'_>, what: &str, names: &mut Vec<String>) -> Result<(), ParseError> {
    names.push(line.name(what)?.text.into());
    while !line.is_blank() {
        names.push(line.name(what)?.text.into());
    }
    Ok(())
}

/// A place in the data region.
fn offset(line: &mut Line<'_>) -> Result<u64, ParseError> {
    let token = line.peek();
    let offset = line.number("the offset", 0..=u64::MAX)?;
    if !offset.is_multiple_of(8) {
        return Err(token
            .place
            .error(format!("{} is not a multiple of 8, as an offset must be", token.shown())));
    }
    Ok(offset)
}

/// `everywhere`, `marked` or `point 17 torn 0x5`.
fn crash_at(line: &mut Line<'_>) -> Result<CrashAt, ParseError> {
    let word = line.next();
    match word.text {
        "everywhere" => Ok(CrashAt::Everywhere),
        "marked" => Ok(CrashAt::Marked),
        "point" => {
            let number = line.number("the crash point", 0..=u64::MAX)?;
            Ok(CrashAt::Point { number, failure: failure(line)? })
        }
        _ => Err(word.instead_of("everywhere, marked or point (a crash step belongs in a thread)")),
    }
}

fn failure(line: &mut Line<'_>) -> Result<Failure, ParseError> {
    let mut failure = Failure::default();
    if line.take("torn") {
        failure.mode = FailureMode::Torn(line.number("the mask of words", 0..=0xff)? as u8);
    } else if line.take("in-flight") {
        failure.mode = FailureMode::InFlight(line.number("the seed", 0..=u64::MAX)?);
    } else if line.take("landed") {
        failure.mode = FailureMode::Landed(line.number("the set of writes", 0..=u64::MAX)?);
    }
    if line.take("recovery") {
        failure.cuts.push(line.number("the count of writes", 0..=u64::MAX)?);
        while !line.is_blank() {
            failure.cuts.push(line.number("the count of writes", 0..=u64::MAX)?);
        }
    }
    let next = line.peek();
    match (next.kind, failure.mode) {
        (Kind::End, _) => Ok(failure),
        (_, FailureMode::Plain) if failure.cuts.is_empty() => {
            Err(next.instead_of("torn, in-flight, landed, recovery or the end of the line"))
        }
        _ => Err(next.instead_of("recovery or the end of the line")),
    }
}

/// The seed of an adversary, or its departures.
fn choices(line: &mut Line<'_>) -> Result<Choices, ParseError> {
    if !line.take("departs") {
        return Ok(Choices::Drawn(line.number("departs, or the seed", 0..=u64::MAX)?));
    }
    let mut departures: Vec<Departure> = Vec::new();
    while !line.is_blank() {
        // Each choice is behind the one before it.
        let least = departures.last().map_or(0, |last| u64::from(last.choice) + 1);
        let choice = line.number("the number of a choice", least..=u32::MAX.into())?;
        line.sign("=")?;
        let option = line.number("the number of its option", 1..=u8::MAX.into())?;
        departures.push(Departure { choice: choice as u32, option: option as u8 });
    }
    Ok(Choices::Listed(departures))
}
