//! Instructions from text.

use std::collections::BTreeMap;

use graven_persistency::happening::{Fence, Point};
use graven_persistency::model::Model;
use graven_persistency::program::{How, LOCKS_MAX, Op, REGISTERS_MAX, Value};

use super::parse::{Variables, value};
use crate::litmus::tokens::{Kind, Line, ParseError, Token};

/// The beginnings of steps, but for stores.
pub(super) const STEPS: [&str; 22] = [
    "movnt",
    "xchg",
    "load",
    "await",
    "clwb",
    "clflushopt",
    "clflush",
    "sfence",
    "mfence",
    "stlr",
    "ldar",
    "dc-cvac",
    "dc-cvap",
    "dc-cvadp",
    "dmb",
    "dmb-st",
    "dmb-ld",
    "dsb",
    "lock",
    "unlock",
    "told",
    "if",
];

const X86: [&str; 7] = ["movnt", "xchg", "clwb", "clflushopt", "clflush", "sfence", "mfence"];

const ARM: [&str; 9] =
    ["stlr", "ldar", "dc-cvac", "dc-cvap", "dc-cvadp", "dmb", "dmb-st", "dmb-ld", "dsb"];

/// The threads so far.
#[derive(Default)]
pub(super) struct Steps {
    pub threads: Vec<Vec<Op>>,
    /// The steps of each thread, as the text has them.
    pub texts: Vec<Vec<String>>,
    /// Registers with their threads, by name.
    registers: BTreeMap<String, (u8, usize)>,
    /// Registers of loads that name none.
    unnamed: u8,
    locks: BTreeMap<String, u8>,
}

impl Steps {
    /// The number of a register that some load sets.
    pub fn register(&self, name: &str) -> Option<u8> {
        self.registers.get(name).map(|&(register, _)| register)
    }

    /// A thread begins.
    pub fn begin(&mut self) {
        self.threads.push(Vec::new());
        self.texts.push(Vec::new());
    }

    /// A step of the last thread.
    pub fn step(
        &mut self,
        line: &mut Line<'_>,
        variables: &Variables,
        model: Option<&Model>,
    ) -> Result<(), ParseError> {
        let mut ahead = *line;
        let op = self.op(line, variables, model)?;
        self.threads.last_mut().expect("a thread has begun").push(op);
        let text = ahead.raw("a step")?.to_owned();
        self.texts.last_mut().expect("a thread has begun").push(text);
        Ok(())
    }

    fn op(
        &mut self,
        line: &mut Line<'_>,
        variables: &Variables,
        model: Option<&Model>,
    ) -> Result<Op, ParseError> {
        let first = line.peek();
        if variables.has(first.text) || line.is_assignment() {
            return self.store(line, variables, How::Cached);
        }
        line.next();
        let is_arm = model.is_some_and(Model::is_arm);
        let foreign = if is_arm { &X86[..] } else { &ARM[..] };
        if foreign.contains(&first.text) {
            let (of, instead) = if is_arm { ("x86", "Arm") } else { ("Arm", "x86") };
            let message = format!(
                "`{}` is an instruction of {of}, and the models of this program are of {instead}",
                first.text
            );
            return Err(first.place.error(message));
        }
        let line_of = |line: &mut Line<'_>| -> Result<u8, ParseError> {
            let words = variables.words(line)?;
            Ok(variables.lines[usize::from(words[0])])
        };
        Ok(match first.text {
            "movnt" => self.store(line, variables, How::NonTemporal)?,
            "xchg" => {
                let place = line.peek().place;
                let op = self.store(line, variables, How::Locked)?;
                if matches!(&op, Op::Store { words, .. } if words.len() > 1) {
                    return Err(place.error("a locked instruction stores to one word"));
                }
                op
            }
            "stlr" => self.store(line, variables, How::Release)?,
            "load" | "ldar" => {
                let word = variables.word(line)?;
                let into = self.target(line, variables)?;
                Op::Load { word, into, acquire: first.text == "ldar" }
            }
            "await" => {
                let word = variables.word(line)?;
                line.sign("=")?;
                Op::Await { word, value: value(line)?, acquire: false }
            }
            "clwb" | "clflushopt" => Op::WriteBack(line_of(line)?),
            "clflush" => Op::Flush(line_of(line)?),
            "dc-cvac" => Op::Clean(line_of(line)?, Point::Coherence),
            "dc-cvap" => Op::Clean(line_of(line)?, Point::Persistence),
            "dc-cvadp" => Op::Clean(line_of(line)?, Point::DeepPersistence),
            "sfence" => Op::Fence(Fence::Store),
            "mfence" => Op::Fence(Fence::Full),
            "dmb" => Op::Fence(Fence::Dmb),
            "dmb-st" => Op::Fence(Fence::DmbStore),
            "dmb-ld" => Op::Fence(Fence::DmbLoad),
            "dsb" => Op::Fence(Fence::Dsb),
            "lock" => Op::Lock(self.lock(line)?),
            "unlock" => Op::Unlock(self.lock(line)?),
            "told" => Op::Told,
            "if" => {
                let register = self.source(line)?;
                line.sign("=")?;
                let value = value(line)?;
                line.sign(":")?;
                let inner = line.peek();
                let then = Box::new(self.op(line, variables, model)?);
                if matches!(*then, Op::If { .. } | Op::Await { .. } | Op::Lock(_)) {
                    return Err(inner.instead_of("a step that never waits"));
                }
                Op::If { register, value, then }
            }
            _ => {
                let allowed = format!("{} and stores as in x = 1", STEPS.join(", "));
                return Err(first.refused_as("a step", &allowed));
            }
        })
    }

    fn store(
        &mut self,
        line: &mut Line<'_>,
        variables: &Variables,
        how: How,
    ) -> Result<Op, ParseError> {
        let words = variables.words(line)?;
        line.sign("=")?;
        let value = if line.peek().kind == Kind::Name {
            Value::Register(self.source(line)?)
        } else {
            Value::Constant(value(line)?)
        };
        Ok(Op::Store { words, value, how })
    }

    /// The register that a load sets.
    fn target(&mut self, line: &mut Line<'_>, variables: &Variables) -> Result<u8, ParseError> {
        let thread = self.threads.len() - 1;
        let place = line.peek().place;
        let number = self.registers.len() as u8 + self.unnamed;
        let too_many = usize::from(number) >= REGISTERS_MAX;
        let full = || {
            place.error(format!(
                "one load too many; a program has at most {REGISTERS_MAX} registers"
            ))
        };
        if !line.take("as") {
            if too_many {
                return Err(full());
            }
            self.unnamed += 1;
            return Ok(number);
        }
        let name = line.name("the name of a register")?;
        if variables.has(name.text) {
            return Err(name.place.error(format!("`{}` names a variable", name.text)));
        }
        if name.text == "done" {
            return Err(name
                .place
                .error("`done` is a word of this format and cannot name a register"));
        }
        match self.registers.get(name.text) {
            Some(&(register, of)) if of == thread => Ok(register),
            Some(_) => {
                Err(name.place.error(format!("`{}` is a register of another thread", name.text)))
            }
            None if too_many => Err(full()),
            None => {
                self.registers.insert(name.text.into(), (number, thread));
                Ok(number)
            }
        }
    }

    /// A register of this thread that an earlier load has set.
    fn source(&self, line: &mut Line<'_>) -> Result<u8, ParseError> {
        let name = line.name("a number or a register")?;
        let thread = self.threads.len() - 1;
        let mine = self.registers.iter().filter(|(_, (_, of))| *of == thread);
        let known: Vec<&str> = mine.map(|(name, _)| name.as_str()).collect();
        match self.registers.get(name.text) {
            Some(&(register, of)) if of == thread => Ok(register),
            _ if known.is_empty() => Err(name.place.error(format!(
                "{} is no register: no load of this thread names one, as in load x as r1",
                name.shown()
            ))),
            _ => Err(refused_register(name, &known)),
        }
    }

    fn lock(&mut self, line: &mut Line<'_>) -> Result<u8, ParseError> {
        let name = line.name("the name of a lock")?;
        let next = self.locks.len();
        if !self.locks.contains_key(name.text) && next == LOCKS_MAX {
            let message = format!("one lock too many; a program has at most {LOCKS_MAX}");
            return Err(name.place.error(message));
        }
        Ok(*self.locks.entry(name.text.into()).or_insert(next as u8))
    }
}

fn refused_register(name: Token<'_>, known: &[&str]) -> ParseError {
    name.refused_as("a register that a load of this thread has set", &known.join(", "))
}
