//! A program for persistency models from its lines.

use std::collections::BTreeMap;

use graven_base::memory::WORDS_PER_LINE;
use graven_persistency::model::{MODELS, Model};
use graven_persistency::program::{LINES_MAX, Program, THREADS_MAX, UNSET, WORDS_MAX};

use super::steps::{STEPS, Steps};
use super::{Asked, Claim, ModelLitmus, Status};
use crate::litmus::VERSION;
use crate::litmus::tokens::{Kind, Line, ParseError, Place, Token};

/// The beginnings of statements, but for definitions of words.
const STATEMENTS: [&str; 8] =
    ["title", "model", "source", "status", "note", "thread", "allows", "forbids"];

/// Tells if a text is a program for persistency models, right or wrong: it has the statement `model`.
pub fn is_for_models(text: &str) -> bool {
    (1..).zip(text.lines()).any(|(number, text)| {
        let mut line = Line::new(number, text);
        !line.is_assignment() && line.next().text == "model"
    })
}

/// Reads a program for persistency models.
///
/// # Errors
/// The first thing that is wrong: where it is, what it is, and what is allowed.
pub fn parse(text: &str) -> Result<ModelLitmus, ParseError> {
    let lines = (1..).zip(text.lines()).map(|(number, text)| Line::new(number, text));
    let mut lines = lines.filter(|line| !line.is_blank());
    let end = Place::end_of(text);
    version(lines.next(), end)?;
    let mut parser = Parser::default();
    for line in lines {
        parser.line(line)?;
    }
    parser.end(end)
}

fn version(line: Option<Line<'_>>, end: Place) -> Result<(), ParseError> {
    let expected = format!("`graven litmus {VERSION}`");
    let Some(mut line) = line else {
        return Err(end.error(format!("expected {expected}, found the end of the text")));
    };
    for word in ["graven", "litmus"] {
        let token = line.next();
        if token.text != word {
            return Err(token.instead_of(&expected));
        }
    }
    line.number("the version", VERSION.into()..=VERSION.into())?;
    line.end()
}

/// A variable: its first word, and the number of words if it is an array.
#[derive(Clone, Copy)]
pub(super) struct Variable {
    pub first: u8,
    pub words: Option<u8>,
}

/// The words and their lines.
#[derive(Default)]
pub(super) struct Variables {
    named: BTreeMap<String, Variable>,
    /// The line of each word.
    pub lines: Vec<u8>,
    /// The name of each word.
    names: Vec<String>,
    initial: Vec<u8>,
}

impl Variables {
    pub fn has(&self, name: &str) -> bool {
        self.named.contains_key(name)
    }

    /// A variable that must be next.
    pub fn variable(&self, line: &mut Line<'_>) -> Result<Variable, ParseError> {
        let name = line.name("a variable")?;
        self.named.get(name.text).copied().ok_or_else(|| {
            let known: Vec<&str> = self.named.keys().map(String::as_str).collect();
            name.refused_as("a variable", &known.join(", "))
        })
    }

    /// The words of a variable that must be next: one, or all of an array without an index.
    pub fn words(&self, line: &mut Line<'_>) -> Result<Vec<u8>, ParseError> {
        let Variable { first, words } = self.variable(line)?;
        let bracket = line.peek();
        match (words, line.take("[")) {
            (None, false) => Ok(vec![first]),
            (None, true) => {
                Err(bracket.place.error("this variable is no array; allowed is its name alone"))
            }
            (Some(count), false) => Ok((first..first + count).collect()),
            (Some(count), true) => {
                let index = line.number("the index of a word", 0..=u64::from(count) - 1)?;
                line.sign("]")?;
                Ok(vec![first + index as u8])
            }
        }
    }

    /// A word that must be next.
    pub fn word(&self, line: &mut Line<'_>) -> Result<u8, ParseError> {
        let place = line.peek().place;
        let words = self.words(line)?;
        match words[..] {
            [word] => Ok(word),
            _ => Err(place.error(format!(
                "an array has several words; one of them is named with its index, from 0 to {}",
                words.len() - 1
            ))),
        }
    }
}

#[derive(Default)]
struct Parser<'a> {
    title: Option<String>,
    models: Vec<&'static Model>,
    source: Option<String>,
    status: Option<Status>,
    note: Option<String>,
    variables: Variables,
    steps: Steps,
    claims: Vec<Claim>,
    /// The places of statements that are made once.
    said: BTreeMap<&'a str, Place>,
    /// The place of the first claim, after which no thread follows.
    claimed: bool,
}

impl<'a> Parser<'a> {
    fn line(&mut self, mut line: Line<'a>) -> Result<(), ParseError> {
        let first = line.peek();
        let is_keyword = STATEMENTS.contains(&first.text) || STEPS.contains(&first.text);
        if is_keyword && line.is_assignment() {
            let message =
                format!("`{}` is a word of this format and cannot name a variable", first.text);
            return Err(first.place.error(message));
        }
        let in_thread = !self.steps.threads.is_empty() && !self.claimed;
        if STATEMENTS.contains(&first.text) {
            line.next();
            self.statement(first, &mut line)?;
        } else if in_thread {
            let architecture = self.models.first().copied();
            self.steps.step(&mut line, &self.variables, architecture)?;
        } else if line.is_assignment() && !self.claimed {
            self.define(&mut line)?;
        } else {
            let allowed = format!("{} and words as in x = 0", STATEMENTS.join(", "));
            return Err(first.refused_as("a statement", &allowed));
        }
        line.end()
    }

    fn statement(&mut self, word: Token<'a>, line: &mut Line<'a>) -> Result<(), ParseError> {
        match word.text {
            "thread" => return self.thread(word),
            "allows" | "forbids" => return self.claim(word.text == "allows", line),
            _ => {}
        }
        if let Some(before) = self.said.insert(word.text, word.place) {
            let message =
                format!("`{}` is in line {} already; it is allowed once", word.text, before.line);
            return Err(word.place.error(message));
        }
        match word.text {
            "title" => self.title = Some(line.quoted("a title in quotes")?),
            "source" => self.source = Some(line.quoted("a source in quotes")?),
            "note" => self.note = Some(line.quoted("a note in quotes")?),
            "status" => {
                let name = line.next();
                let found = Status::ALL.iter().find(|(known, _)| *known == name.text);
                let known = Status::ALL.map(|(known, _)| known).join(", ");
                self.status = Some(found.ok_or_else(|| name.refused_as("a status", &known))?.1);
            }
            "model" => {
                if let Some(first) = self.steps.threads.first() {
                    let _ = first;
                    return Err(word.place.error("`model` must stand before the first thread"));
                }
                self.models = models(line)?;
                if self.models.is_empty() {
                    return Err(line.peek().instead_of("the name of a model"));
                }
                if self.models.iter().any(|model| model.is_arm() != self.models[0].is_arm()) {
                    return Err(word.place.error(
                        "models of one program are all of x86, or all of Arm: they have different instructions",
                    ));
                }
            }
            other => unreachable!("`{other}` is in STATEMENTS"),
        }
        Ok(())
    }

    fn thread(&mut self, word: Token<'a>) -> Result<(), ParseError> {
        if self.claimed {
            return Err(word.place.error("threads stand before `allows` and `forbids`"));
        }
        if self.models.is_empty() {
            return Err(word.place.error("`model` must stand before the first thread"));
        }
        if self.steps.threads.len() == THREADS_MAX {
            let message = format!("one thread too many; a program has at most {THREADS_MAX}");
            return Err(word.place.error(message));
        }
        self.steps.begin();
        Ok(())
    }

    fn define(&mut self, line: &mut Line<'a>) -> Result<(), ParseError> {
        let name = line.name("the name of a variable")?;
        let count = if line.take("[") {
            let count = line.number("the count of words", 1..=WORDS_MAX as u64)?;
            line.sign("]")?;
            Some(count as u8)
        } else {
            None
        };
        line.sign("=")?;
        let initial = value(line)?;
        let next = line.peek();
        let beside = if line.take("with") {
            Some(self.variables.variable(line)?)
        } else if next.kind == Kind::End {
            None
        } else {
            return Err(next.instead_of("`with` or the end of the line"));
        };
        let variables = &mut self.variables;
        if variables.has(name.text) {
            return Err(name.place.error(format!("`{}` is defined already", name.text)));
        }
        let first = variables.lines.len();
        let words = count.unwrap_or(1);
        let mut at = match beside {
            Some(other) => variables.lines[usize::from(other.first)],
            None => variables.lines.iter().map(|&line| line + 1).max().unwrap_or(0),
        };
        for index in 0..words {
            let name = name.text;
            variables.names.push(match count {
                Some(_) => format!("{name}[{index}]"),
                None => name.into(),
            });
            let taken = variables.lines.iter().filter(|&&other| other == at).count();
            if taken == WORDS_PER_LINE {
                at = variables.lines.iter().map(|&line| line + 1).max().unwrap_or(0);
            }
            variables.lines.push(at);
            variables.initial.push(initial);
        }
        if variables.lines.len() > WORDS_MAX || usize::from(at) >= LINES_MAX {
            let message = format!(
                "one word too many; a program has at most {WORDS_MAX} words in {LINES_MAX} lines"
            );
            return Err(name.place.error(message));
        }
        let variable = Variable { first: first as u8, words: count };
        variables.named.insert(name.text.into(), variable);
        Ok(())
    }

    fn claim(&mut self, is_allowed: bool, line: &mut Line<'a>) -> Result<(), ParseError> {
        self.claimed = true;
        let place = line.peek().place;
        let mut models = models(line)?;
        if let Some(other) =
            models.iter().find(|model| !self.models.iter().any(|m| m.name == model.name))
        {
            let known: Vec<&str> = self.models.iter().map(|model| model.name).collect();
            let message = format!(
                "the program is not for {}; its statement `model` names {}",
                other.name,
                known.join(", ")
            );
            return Err(place.error(message));
        }
        if models.is_empty() {
            models.clone_from(&self.models);
        }
        line.sign(":")?;
        let image = self.image(line)?;
        self.claims.push(Claim { is_allowed, models, image });
        Ok(())
    }

    fn image(&self, line: &mut Line<'a>) -> Result<Asked, ParseError> {
        let mut ahead = *line;
        let text = ahead.raw("an image, as in x = 1, y = 0")?;
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut image = Asked { text, words: Vec::new(), registers: Vec::new(), is_done: false };
        loop {
            let first = line.peek();
            if first.text == "done" {
                line.next();
                image.is_done = true;
            } else if let Some(register) = self.steps.register(first.text) {
                line.next();
                line.sign("=")?;
                image.registers.push((register, value(line)?));
            } else {
                let word = self.variables.word(line)?;
                line.sign("=")?;
                image.words.push((word, value(line)?));
            }
            if !line.take(",") {
                return Ok(image);
            }
        }
    }

    fn end(self, end: Place) -> Result<ModelLitmus, ParseError> {
        let title =
            self.title.ok_or_else(|| end.error("there is no `title`; a program has one"))?;
        if self.steps.threads.is_empty() {
            return Err(end.error("there is no `thread`; a program has at least one"));
        }
        if self.claims.is_empty() {
            return Err(
                end.error("there is no `allows` and no `forbids`; a program has at least one")
            );
        }
        let Variables { lines, names, initial, .. } = self.variables;
        let Steps { threads, texts, .. } = self.steps;
        let program = Program { lines, initial, threads };
        program.check().map_err(|error| end.error(error.to_string()))?;
        let Parser { models, source, status, note, claims, .. } = self;
        let (steps, words) = (texts, names);
        Ok(ModelLitmus { title, models, source, status, note, program, steps, words, claims })
    }
}

/// Names of models, up to something else.
fn models(line: &mut Line<'_>) -> Result<Vec<&'static Model>, ParseError> {
    let mut models = Vec::new();
    while line.peek().kind == Kind::Name {
        let name = line.next();
        let known = MODELS.iter().map(|model| model.name).collect::<Vec<_>>().join(", ");
        models.push(
            Model::find(name.text).map_err(|_| name.refused_as("a persistency model", &known))?,
        );
    }
    Ok(models)
}

/// A value that must be next.
pub(super) fn value(line: &mut Line<'_>) -> Result<u8, ParseError> {
    Ok(line.number("a value", 0..=u64::from(UNSET) - 1)? as u8)
}
