//! Litmus programs: directed tests of a few words and steps, as text.
//!
//! A litmus program says what the memory holds, what each thread does, where power fails and what may be
//! there after recovery. It is what a person writes to ask one question of a design, and what the
//! adversary's findings are minimised to: a file that replays them exactly.
//!
//! ```text
//! graven litmus 1
//! title "a merge after the line has left (Silo §III-D)"
//! design silo
//! violates silo-literal
//! set silo.log_buffer_entries = 2
//!
//! A = 1               # a word in a line of its own, and what it holds at first
//! B = 0 with A        # the next word of A's line
//! C[40] = 7           # forty words one after the other, each 7: C[0] … C[39]
//!
//! thread
//!   begin
//!   A = 2
//!   evict A
//!   A = 3
//!   commit
//!   crash after-commit
//!
//! expect after-commit: A = 3, B = 0
//! ```
//!
//! # The format
//!
//! One statement or step per line; blank lines and indentation mean nothing, and a comment goes from a `#`
//! outside quotes to the end of its line. The first line is `graven litmus 1`. A name is a letter or `_`, then letters,
//! digits, `_` and `-`. A number is decimal, hexadecimal after `0x` or binary after `0b`, with `_` between
//! digits at will, and fits 64 bits. `WORD` is `A`, or `C[3]` of an array. `[ ]` is what may be left out.
//!
//! | statement | meaning |
//! |---|---|
//! | `title "TEXT"` | must be there; in it `\"` is a quote and `\\` a backslash |
//! | `design NAME …` | designs that must keep their guarantee; may be repeated |
//! | `violates NAME …` | designs that must violate their guarantee; may be repeated |
//! | `machine NAME` | a preset |
//! | `set SECTION.KEY = VALUE` | a configuration value, as written up to the end of the line; may be repeated |
//! | `mutant NAME` | a mutant of the design, or a mutation operator, as written up to the end of the line |
//! | `adversary SEED` | delays and orders in memory are drawn |
//! | `adversary departs [CHOICE=OPTION …]` | they are as without an adversary, but for these choices, which are numbered from 0; others are threads that wait and lines that are evicted |
//! | `garbage SEED` | what the log region holds at first is drawn |
//! | `first-transaction NUMBER` | number of each thread's first transaction |
//! | `crash everywhere` | power fails at every change of the durable state; the default |
//! | `crash marked` | at crash steps only |
//! | `crash point NUMBER [torn MASK \| in-flight SEED \| landed SET] [recovery COUNT …]` | at one point only; recovery is cut off after `COUNT` writes, once for each, and starts again |
//! | `A = VALUE [with B \| at OFFSET]` | a variable, before the first thread; `B` is defined above |
//! | `C[COUNT] = VALUE [with B \| at OFFSET]` | an array of up to 65536 words |
//! | `life` | power is back, and recovery has ended: what follows is what the machine is used for then |
//! | `thread` | begins a thread, up to 64: its steps follow, up to the next statement |
//! | `sequence` | instead of threads, once: steps in one order for all, as below |
//! | `expect NAME: WORD = VALUE, … \| …` | after recovery from crash step `NAME` one of the alternatives holds |
//! | `survives NAME: …` | PM holds it at that crash step, before recovery |
//! | `expect everywhere: …` | after recovery from any power failure |
//! | `expect end: …` | when all threads are done |
//!
//! | step | meaning |
//! |---|---|
//! | `begin`, `commit` | a transaction begins; it ends, and the thread waits for the acknowledgement |
//! | `WORD = VALUE` | a store, in a transaction |
//! | `outside WORD = VALUE`, `outside movnt WORD = VALUE` | a store outside transactions, of which nothing is promised |
//! | `load WORD` | a load |
//! | `compute COUNT` | so many instructions that touch no memory |
//! | `lock NAME`, `unlock NAME` | a lock is taken and released |
//! | `signal NAME`, `await NAME` | what comes after the one waits for what came before the other; not to hand over what a transaction has stored before it has ended |
//! | `evict WORD [from l1 \| l2 \| llc]` | its line leaves this cache and those before it; `llc` if not said |
//! | `writeback WORD` | its line is written back and stays |
//! | `clwb WORD`, `sfence` | x86's instructions: the line is written back; what follows waits until lines written back are durable |
//! | `ofence`, `dfence` | stores before it are durable before those after it; what follows waits until stores before it are durable: for designs that have them |
//! | `strand`, `join` | what follows is in no order with what was before, up to the last join; what follows comes after all strands |
//! | `maintenance` | the design's periodic work begins |
//! | `settle` | waits until memory and the design's work for finished transactions are idle |
//! | `crash NAME` | power fails here, and then the run continues as if it had not |
//! | `if WORD = VALUE: STEP` | the word is loaded; the step, which is one of those that touch a line, an instruction for persistence or order, or `compute` or `maintenance`, is done if it holds the value |
//! | `repeat COUNT: STEP, STEP` | the steps so often, one after the other; read, and printed from eight times on, as if they were all there |
//!
//! Words that begin a statement or a step name no variable. `everywhere`, `marked`, `point` and `end` name
//! no crash step: `crash marked` among the steps of a thread is the statement, and ends the thread. The title
//! and statements up to `crash` may stand anywhere, the latter once if it is not said that they may be
//! repeated.
//!
//! A `life` has threads or a sequence of its own, of as many threads as it likes, and may have its own `first-transaction`,
//! `adversary` and `crash`. It begins after each power failure of the life before it that is examined, on the bytes and
//! registers that recovery left; power fails in it as it does in the first. Variables hold what they held.
//!
//! Threads that wait for each other for ever are refused: here if signals alone make the circle, and otherwise when a run
//! closes it.
//!
//! A sequence is the order in which the steps of all threads happen, each with the number of its thread:
//!
//! ```text
//! sequence
//!   0: begin
//!   1: begin
//!   0: A = 2
//! ```
//!
//! A lock is given up, and a signal given, before another thread takes or awaits it in that order.
//!
//! It is read as threads, numbered from 0 without gaps, that hand over to each other by signals of names
//! that the program does not use, `step-1`, `step-2`, …, and printed as such.
//!
//! | file | what |
//! |---|---|
//! | `mod` | a program as data |
//! | `parse` | from text: statements and blocks; errors carry line and column |
//! | `tokens` | the tokens of a line, and their places |
//! | `steps` | steps and words of variables |
//! | `check` | names exist, transactions and locks end |
//! | `isolation` | threads are apart by locks and signals |
//! | `sequence` | one order of all steps as threads |
//! | `standstill` | threads that wait for each other for ever |
//! | `print` | to text |
//! | `program` | variables laid out, steps as operations: a workload |
//! | `run` | a program on a design, with power failing |

mod check;
pub mod isolation;
mod parse;
mod print;
mod program;
mod sequence;
mod standstill;
mod steps;
#[cfg(test)]
mod tests;
pub(crate) mod tokens;

pub use graven_machine::controller::adversary::{Choices, Departure};
use graven_machine::design::Operation;
pub use parse::{ParseError, parse, parse_placed};
pub use program::{Layout, LayoutError, LitmusWorkload, WORKLOAD, crash_steps};
pub use standstill::{Circle, Places, waits_with_a_lock};

/// The laboratory's machine, for programs that name none.
pub const MACHINE: &str = "cramped";

/// The version of the format that is read and written.
pub const VERSION: u32 = 1;

/// A litmus program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Litmus {
    /// The subject.
    pub title: String,
    /// Designs that must keep their guarantee in it; none: every safe one.
    pub designs: Vec<String>,
    /// Designs that must violate their guarantee by it.
    pub violates: Vec<String>,
    /// A preset; none: the laboratory's cramped machine.
    pub machine: Option<String>,
    /// Configuration values, in order.
    pub settings: Vec<(String, String)>,
    /// A mutant of the design, or a mutation operator, that is in force.
    pub mutant: Option<String>,
    /// Seed of the bytes that the log region holds at first; none: zeroes.
    pub garbage: Option<u64>,
    /// Words and what they hold at first.
    pub variables: Vec<Variable>,
    /// Uses of the machine, at least one: the first, and one after each recovery from a power failure of the one before.
    pub lives: Vec<Life>,
    /// The conditions that must hold.
    pub expectations: Vec<Expectation>,
}

/// A use of the machine, from power-on to a power failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// The adversary's choices of delays and orders in memory; none: memory as it is.
    pub adversary: Option<Choices>,
    /// Number of each thread's first transaction, so that ids wrap soon.
    pub first_transaction: u64,
    /// The steps of each thread.
    pub threads: Vec<Vec<Step>>,
    /// The points at which power fails besides the program's own crash steps.
    pub crash: CrashAt,
}

/// Consecutive words with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The number of words; one that is not an array has one.
    pub words: Option<u32>,
    /// The initial value of each word.
    pub initial: u64,
    /// The place.
    pub place: Placement,
}

/// The place of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// At the beginning of a line that no other has yet.
    OwnLine,
    /// Right after the last word of this variable's line that is taken.
    With(String),
    /// At as many bytes from the start of the data region, a multiple of 8.
    At(u64),
}

/// A word of a variable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Word {
    /// The variable.
    pub name: String,
    /// The index of an array's word; none for a variable that is not an array.
    pub index: Option<u32>,
}

/// One step of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// `begin`: a transaction begins.
    Begin,
    /// `commit`: it ends; the thread continues when the commit is acknowledged.
    Commit,
    /// `A = 5`: a store.
    Store(Word, u64),
    /// `movnt A = 5`: a store with the hint that it need not go through the caches.
    StoreNonTemporal(Word, u64),
    /// `outside A = 5`: one of the two, outside transactions.
    Outside(Box<Step>),
    /// `load A`.
    Load(Word),
    /// `compute 20`: instructions that touch no memory.
    Compute(u32),
    /// `lock m`.
    Lock(String),
    /// `unlock m`.
    Unlock(String),
    /// `signal x`: what was done before has been performed.
    Signal(String),
    /// `await x`: not before that was signalled.
    Await(String),
    /// `evict A from l1|l2|llc` (default llc: out of all caches): the line is evicted now.
    Evict(Word, Level),
    /// `writeback A`: the line is written back and stays (clwb).
    WriteBack(Word),
    /// An instruction for persistence or order.
    Persist(Persist),
    /// `maintenance`: the design's periodic work (a scan, a collection) begins now.
    Maintenance,
    /// `settle`: waits until memory and the design's work for finished transactions are idle.
    Settle,
    /// `crash NAME`: power fails here; then the run continues as if it had not.
    Crash(String),
    /// `if A = 5: B = 6`: A is loaded, and the step is done if it holds the value.
    If(Word, u64, Box<Step>),
}

impl Step {
    /// The action, whether or not a loaded word decides that it is done, in a transaction or outside.
    pub fn action(&self) -> &Step {
        match self {
            Step::If(_, _, then) | Step::Outside(then) => then.action(),
            step => step,
        }
    }

    /// Tells whether it is a store outside transactions.
    pub fn is_outside(&self) -> bool {
        match self {
            Step::If(_, _, then) => then.is_outside(),
            step => matches!(step, Step::Outside(_)),
        }
    }

    /// Tells whether it is a store of a transaction.
    pub fn is_transactional_store(&self) -> bool {
        !self.is_outside() && matches!(self.action(), Step::Store(..) | Step::StoreNonTemporal(..))
    }
}

/// An instruction for persistence or order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Persist {
    /// `clwb A`: the line is written back when the stores before it have been performed.
    WriteBack(Word),
    /// `sfence`: what follows waits until the lines written back are durable.
    Fence,
    /// `ofence`, `dfence`, `strand` or `join`: an operation of designs that have it.
    Order(Operation),
}

/// A level of the hierarchy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Out of the L1.
    L1,
    /// Out of L1 and L2.
    L2,
    /// Out of all caches.
    #[default]
    Llc,
}

/// The points at which power fails besides the program's own crash steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CrashAt {
    /// `crash everywhere`: at every change of the durable state.
    #[default]
    Everywhere,
    /// `crash marked`: at the program's crash steps only.
    Marked,
    /// `crash point 17 …`: at one crash point only, in one of its modes.
    Point {
        /// The number of the point, from 0.
        number: u64,
        /// The particulars of the failure.
        failure: Failure,
    },
}

/// A power failure at a crash point, and how the recovery from it fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The state that it finds.
    pub mode: FailureMode,
    /// `recovery 3 7`: recovery is cut off after as many writes, once for each, and starts again.
    pub cuts: Vec<u64>,
}

impl Failure {
    /// One whose recovery is not disturbed.
    pub const fn of(mode: FailureMode) -> Failure {
        Failure { mode, cuts: Vec::new() }
    }
}

/// The state that a power failure at a crash point finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureMode {
    /// Everything that was accepted, and nothing else.
    #[default]
    Plain,
    /// `torn 0x5`: of the last write, only these words.
    Torn(u8),
    /// `in-flight 12`: what was sent and not accepted is there in part, as this seed draws.
    InFlight(u64),
    /// `landed 0x5`: of the writes that were sent and not accepted, in the order of their arrival, these have landed, whole.
    Landed(u64),
}

/// A condition, and when it must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// When.
    pub when: When,
    /// One of these must be so.
    pub alternatives: Vec<Vec<(Word, u64)>>,
}

/// When an expectation applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// `expect NAME: …`: after recovery from a crash step.
    Recovered(String),
    /// `survives NAME: …`: what PM holds at a crash step, before recovery.
    Survives(String),
    /// `expect everywhere: …`: after recovery from any power failure.
    Everywhere,
    /// `expect end: …`: what programs see when all threads are done.
    End,
}

impl Litmus {
    /// Returns the steps of all threads of all lives.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.lives.iter().flat_map(|life| life.threads.iter().flatten())
    }
}
