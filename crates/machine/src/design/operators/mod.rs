//! Mutation operators: changes for the worse that are made at the boundary between a design and the
//! machine, without the design's help. So the laboratory can be measured on any design, also one
//! from outside, and by mutants that were not written with the laboratory in mind.
//!
//! An operator is data with a text form, `NAME` or `NAME(ARGUMENT, …)`, which campaigns and litmus programs take where
//! they take the name of a mutant. Which operators a design has a place for is seen in its runs ([`Profile`]).
//!
//! | file | what |
//! |---|---|
//! | `mod` | the operators, and their text form |
//! | `profile` | what a design does at the boundary, and which operators that gives |
//! | `runtime` | an operator in force, or a profile being taken: what happens to writes, waits and stores |
//! | `recovery` | what happens to batteries, registers and recovery |

mod profile;
mod recovery;
mod runtime;

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::request::WriteClass;

pub use profile::Profile;
pub(crate) use runtime::{Interference, variant};

/// Kinds of a design's writes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// Those that are reported as this variant of the design's type of writes.
    Reported(String),
    /// Those that are not reported, of a class.
    Unreported(WriteClass),
    /// Dirty lines that leave the caches, reported or not.
    Eviction,
}

/// Hooks in which a thread may be made to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// At the beginning of a transaction.
    Begin,
    /// At a store.
    Store,
    /// At the end of a transaction.
    End,
    /// At an instruction for persistence or order.
    Persist,
}

/// Choice among several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Which {
    /// The first.
    First,
    /// The last.
    Last,
    /// Every second, beginning with the second.
    Second,
    /// All.
    All,
}

/// A part of PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Region {
    /// The region of the programs' data.
    Home,
    /// The log region.
    Log,
}

/// A persistence instruction of a design's software.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Instructions {
    /// Write-backs of lines (clwb).
    Flush,
    /// Fences.
    Fence,
}

/// A change for the worse.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// The writes wait for no others.
    Unordered(Site),
    /// They wait for one ordered write less than they should.
    OneTooEarly(Site),
    /// They wait behind no gate.
    Ungated(Site),
    /// A write of these changes places, in the order of writes, with the one that is sent after it at the same time.
    Exchanged(Site),
    /// They are reported as durable when they are sent.
    ReportedEarly(String),
    /// They lack a word, if they have several.
    WithoutWord(Site, Which),
    /// Keeps only the given number of low bits of the word at this place (from 0, among those
    /// written).
    Truncated(Site, u8, u8),
    /// Threads are not made to wait until they are released.
    NoWait(Hook),
    /// The design sees in this byte of a store what was there before.
    StaleByte(u8),
    /// Shows the design this number of low bits of the numbers of transactions.
    NumberBits(u8),
    /// Lines keep this number of low bits of their tags.
    TagBits(u8),
    /// Removes instructions from each piece of the design's code.
    WithoutInstruction(Instructions, Which),
    /// Batteries save less: these writes are lost.
    NotSaved(Which),
    /// Keeps only the given number of low bits of a non-volatile register.
    RegisterBits(u8, u8),
    /// Recovery does not write these words of a region.
    RecoverySkips(Region, Which),
    /// Recovery writes homes in the opposite order.
    RecoveryReversed,
    /// Recovery writes the log region before homes.
    RecoveryLogFirst,
    /// Shows recovery only the given number of low bits of the word at this place of each line of
    /// the log region.
    RecoveryReads(u8, u8),
    /// Recovery sees zeroes in the last half of what the log region holds.
    RecoveryReadsHalf,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Site::Reported(name) => f.write_str(name),
            Site::Unreported(class) => f.write_str(class_name(*class)),
            Site::Eviction => f.write_str("eviction"),
        }
    }
}

const CLASSES: [WriteClass; 4] =
    [WriteClass::Data, WriteClass::Log, WriteClass::Metadata, WriteClass::Gc];

const fn class_name(class: WriteClass) -> &'static str {
    match class {
        WriteClass::Data => "unreported-data",
        WriteClass::Log => "unreported-log",
        WriteClass::Metadata => "unreported-metadata",
        WriteClass::Gc => "unreported-gc",
    }
}

impl Site {
    fn parse(text: &str) -> Site {
        let class = CLASSES.into_iter().find(|&class| class_name(class) == text);
        match (text, class) {
            ("eviction", _) => Site::Eviction,
            (_, Some(class)) => Site::Unreported(class),
            _ => Site::Reported(text.to_owned()),
        }
    }
}

/// Names of the values of a plain enum.
macro_rules! named {
    ($type:ty, $($variant:ident = $name:literal),+ $(,)?) => {
        impl $type {
            const ALL: &'static [($type, &'static str)] = &[$((<$type>::$variant, $name)),+];

            fn parse(text: &str) -> Option<$type> {
                Self::ALL.iter().find(|(_, name)| *name == text).map(|&(value, _)| value)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(<$type>::$variant => $name),+ })
            }
        }
    };
}

named!(Hook, Begin = "begin", Store = "store", End = "end", Persist = "persist");
named!(Which, First = "first", Last = "last", Second = "second", All = "all");
named!(Region, Home = "home", Log = "log");
named!(Instructions, Flush = "flush", Fence = "fence");

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operator::Unordered(site) => write!(f, "unordered({site})"),
            Operator::OneTooEarly(site) => write!(f, "one-too-early({site})"),
            Operator::Ungated(site) => write!(f, "ungated({site})"),
            Operator::Exchanged(site) => write!(f, "exchanged({site})"),
            Operator::ReportedEarly(name) => write!(f, "reported-early({name})"),
            Operator::WithoutWord(site, which) => write!(f, "without-word({site},{which})"),
            Operator::Truncated(site, word, bits) => write!(f, "truncated({site},{word},{bits})"),
            Operator::NoWait(hook) => write!(f, "no-wait({hook})"),
            Operator::StaleByte(byte) => write!(f, "stale-byte({byte})"),
            Operator::NumberBits(bits) => write!(f, "number-bits({bits})"),
            Operator::TagBits(bits) => write!(f, "tag-bits({bits})"),
            Operator::WithoutInstruction(what, which) => {
                write!(f, "without-instruction({what},{which})")
            }
            Operator::NotSaved(which) => write!(f, "not-saved({which})"),
            Operator::RegisterBits(register, bits) => write!(f, "register-bits({register},{bits})"),
            Operator::RecoverySkips(region, which) => {
                write!(f, "recovery-skips({region},{which})")
            }
            Operator::RecoveryReversed => f.write_str("recovery-reversed"),
            Operator::RecoveryLogFirst => f.write_str("recovery-log-first"),
            Operator::RecoveryReads(word, bits) => write!(f, "recovery-reads({word},{bits})"),
            Operator::RecoveryReadsHalf => f.write_str("recovery-reads-half"),
        }
    }
}

/// The operators as texts, for messages.
pub const ALLOWED: &str = "unordered(SITE), one-too-early(SITE), ungated(SITE), exchanged(SITE), reported-early(WRITE), without-word(SITE,WHICH), truncated(SITE,WORD,BITS), no-wait(begin|store|end|persist), stale-byte(0..7), number-bits(BITS), tag-bits(BITS), without-instruction(flush|fence,WHICH), not-saved(WHICH), register-bits(REGISTER,BITS), recovery-skips(home|log,WHICH), recovery-reversed, recovery-log-first, recovery-reads(WORD,BITS), recovery-reads-half; WHICH is first, last, second or all; WORD is 0 to 7, BITS 1 to 63";

/// A text that is no operator.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{0}` is no mutation operator; allowed are {ALLOWED}")]
pub struct UnknownOperator(String);

impl FromStr for Operator {
    type Err = UnknownOperator;

    fn from_str(text: &str) -> Result<Operator, UnknownOperator> {
        parse(text).ok_or_else(|| UnknownOperator(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Operator> {
    let (name, arguments) = match text.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')?.split(',').map(str::trim).collect()),
        None => (text, Vec::new()),
    };
    let number = |text: &str, most: u8| text.parse().ok().filter(|&n: &u8| n <= most);
    let bits = |text: &str| number(text, 63).filter(|&n| n > 0);
    Some(match (name, arguments.as_slice()) {
        ("unordered", [site]) => Operator::Unordered(Site::parse(site)),
        ("one-too-early", [site]) => Operator::OneTooEarly(Site::parse(site)),
        ("ungated", [site]) => Operator::Ungated(Site::parse(site)),
        ("exchanged", [site]) => Operator::Exchanged(Site::parse(site)),
        ("reported-early", [name]) => Operator::ReportedEarly((*name).to_owned()),
        ("without-word", [site, which]) => {
            Operator::WithoutWord(Site::parse(site), Which::parse(which)?)
        }
        ("truncated", [site, word, kept]) => {
            Operator::Truncated(Site::parse(site), number(word, 7)?, bits(kept)?)
        }
        ("no-wait", [hook]) => Operator::NoWait(Hook::parse(hook)?),
        ("stale-byte", [byte]) => Operator::StaleByte(number(byte, 7)?),
        ("number-bits", [kept]) => Operator::NumberBits(bits(kept)?),
        ("tag-bits", [kept]) => Operator::TagBits(bits(kept)?),
        ("without-instruction", [what, which]) => {
            Operator::WithoutInstruction(Instructions::parse(what)?, Which::parse(which)?)
        }
        ("not-saved", [which]) => Operator::NotSaved(Which::parse(which)?),
        ("register-bits", [register, kept]) => {
            Operator::RegisterBits(number(register, u8::MAX)?, bits(kept)?)
        }
        ("recovery-skips", [region, which]) => {
            Operator::RecoverySkips(Region::parse(region)?, Which::parse(which)?)
        }
        ("recovery-reversed", []) => Operator::RecoveryReversed,
        ("recovery-log-first", []) => Operator::RecoveryLogFirst,
        ("recovery-reads", [word, kept]) => Operator::RecoveryReads(number(word, 7)?, bits(kept)?),
        ("recovery-reads-half", []) => Operator::RecoveryReadsHalf,
        _ => return None,
    })
}

/// Subject of a mutant: the classes by which kills are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MutationClass {
    /// The order of writes.
    Order,
    /// Order between writes and other events.
    Dependency,
    /// Widths of fields, and numbers that come round.
    Width,
    /// Words and bytes that are written.
    Mask,
    /// Content that batteries save, and the work of recovery.
    Recovery,
}

impl fmt::Display for MutationClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            MutationClass::Order => "order",
            MutationClass::Dependency => "dependency",
            MutationClass::Width => "width",
            MutationClass::Mask => "mask",
            MutationClass::Recovery => "recovery",
        })
    }
}

impl Operator {
    /// Returns the class of the operator.
    pub fn class(&self) -> MutationClass {
        match self {
            Operator::Unordered(_)
            | Operator::OneTooEarly(_)
            | Operator::Ungated(_)
            | Operator::Exchanged(_) => MutationClass::Order,
            Operator::ReportedEarly(_) | Operator::NoWait(_) | Operator::WithoutInstruction(..) => {
                MutationClass::Dependency
            }
            Operator::Truncated(..)
            | Operator::NumberBits(_)
            | Operator::TagBits(_)
            | Operator::RegisterBits(..) => MutationClass::Width,
            Operator::WithoutWord(..) | Operator::StaleByte(_) => MutationClass::Mask,
            Operator::NotSaved(_)
            | Operator::RecoverySkips(..)
            | Operator::RecoveryReversed
            | Operator::RecoveryLogFirst
            | Operator::RecoveryReads(..)
            | Operator::RecoveryReadsHalf => MutationClass::Recovery,
        }
    }
}

impl Which {
    /// Returns true if item `at` of `count` is chosen.
    pub(crate) fn is(self, at: usize, count: usize) -> bool {
        match self {
            Which::First => at == 0,
            Which::Last => at + 1 == count,
            Which::Second => at % 2 == 1,
            Which::All => true,
        }
    }
}

/// Returns `bits` low bits of a value.
pub(crate) fn low_bits(value: u64, bits: u8) -> u64 {
    value & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_are_read_as_they_are_printed() {
        let site = || Site::Reported("Record".into());
        for operator in [
            Operator::Unordered(Site::Unreported(WriteClass::Metadata)),
            Operator::OneTooEarly(Site::Eviction),
            Operator::Exchanged(site()),
            Operator::ReportedEarly("Home".into()),
            Operator::WithoutWord(site(), Which::Last),
            Operator::Truncated(site(), 7, 63),
            Operator::NoWait(Hook::End),
            Operator::StaleByte(7),
            Operator::NumberBits(16),
            Operator::Ungated(Site::Eviction),
            Operator::NoWait(Hook::Persist),
            Operator::TagBits(3),
            Operator::WithoutInstruction(Instructions::Fence, Which::Second),
            Operator::NotSaved(Which::All),
            Operator::RegisterBits(200, 8),
            Operator::RecoverySkips(Region::Log, Which::All),
            Operator::RecoveryReversed,
            Operator::RecoveryLogFirst,
            Operator::RecoveryReads(2, 8),
            Operator::RecoveryReadsHalf,
        ] {
            assert_eq!(operator.to_string().parse(), Ok(operator));
        }
    }

    #[test]
    fn what_is_no_operator_is_refused_with_what_is_allowed() {
        for text in [
            "",
            "unordered",
            "unordered(Record",
            "truncated(Record,8,8)",
            "truncated(Record,0,64)",
            "truncated(Record,0,0)",
            "no-wait(commit)",
            "recovery-skips(data,all)",
        ] {
            let error = text.parse::<Operator>().expect_err("it is none").to_string();
            assert!(error.starts_with(&format!("`{text}` is no mutation operator; allowed are")));
        }
    }
}
