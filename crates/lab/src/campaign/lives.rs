//! The lives of a workload: after a recovery it begins again on the structures that recovery has left, each of its programs on another
//! thread than before. It draws what it drew before, since its content comes from its seed, too; but it meets what it has left.

use std::cell::RefCell;
use std::iter;
use std::sync::Arc;

use crate::explorer::{CrashRun, NextLife, Outcome, Thoroughness};
use crate::recording::{Log, Recording};
use graven_base::config::ConfigError;
use graven_base::control::Control;
use graven_base::memory::Image;
use graven_machine::design::DesignContext;
use graven_machine::program::{Op, Program};
use graven_machine::sim::{Recovered, SimError, Spec};
use graven_machine::workload::{BrokenInvariant, Extent, Workload};

/// A later life has this many times fewer transactions than the first, and at least one for each thread.
const FEWER_TIMES: u64 = 8;

/// The run of each life, `later` of them after the first; of the first alone, if its workload cannot begin again.
///
/// # Errors
/// Parameters that the workload cannot work with.
pub(super) fn specs_of(first: &Spec, later: u32) -> Result<Vec<Spec>, ConfigError> {
    let later = if first.build_workload()?.begins_again() { later } else { 0 };
    let transactions = (first.transactions / FEWER_TIMES).max(first.threads.into());
    let later = (0..later).map(|_| Spec { transactions, ..first.clone() });
    Ok(iter::once(first.clone()).chain(later).collect())
}

/// The lives of a run, from one of them on.
pub(super) struct Lives<'a> {
    /// The run of each life.
    pub specs: &'a [Spec],
    /// The thoroughness of each life.
    pub how: &'a dyn Fn(usize) -> Thoroughness,
    /// The whole computation.
    pub control: &'a Arc<Control>,
    /// The actions of the threads of each life, if they are recorded.
    pub logs: Option<&'a RefCell<Vec<Log>>>,
    /// The number of the next life.
    pub next: usize,
}

impl Lives<'_> {
    /// The next life's workload, laid out with room for what the transactions of all lives may insert. Where it is not the
    /// first one, its structures are in PM already.
    fn workload(&self) -> Result<Box<dyn Workload>, ConfigError> {
        let spec = &self.specs[self.next];
        let transactions = self.specs.iter().map(|spec| spec.transactions).sum();
        let whole = Spec { transactions, ..spec.clone() };
        let mut workload = whole.build_workload()?;
        if self.specs.len() > 1 {
            workload = Box::new(OneLife { workload, spec: spec.clone(), life: self.next as u32 });
        }
        if let Some(logs) = self.logs {
            let recording = Recording::of(workload, spec.threads);
            logs.borrow_mut().push(recording.log());
            workload = Box::new(recording);
        }
        Ok(workload)
    }

    /// The run of the first life.
    ///
    /// # Errors
    /// Parameters that design or workload cannot work with.
    pub(super) fn first(&self) -> Result<CrashRun, ConfigError> {
        CrashRun::new(&self.specs[0], Some(self.workload()?), (self.how)(0))
    }

    /// Runs the next life, and those that follow it.
    ///
    /// # Errors
    /// [`SimError::Cancelled`].
    pub(super) fn run(&self, run: CrashRun) -> Result<Outcome, SimError> {
        let mut later = Lives { next: self.next + 1, ..*self };
        let is_last = later.next == self.specs.len();
        let next: Option<&mut dyn NextLife> = if is_last { None } else { Some(&mut later) };
        run.run_on(None, next)
    }
}

impl NextLife for Lives<'_> {
    fn context(&self) -> DesignContext {
        self.specs[self.next].context()
    }

    fn begin(&mut self, recovered: Recovered, seed: u64) -> Result<Outcome, SimError> {
        let (spec, how) = (&self.specs[self.next], (self.how)(self.next));
        let run = self.workload().and_then(|w| CrashRun::again(spec, w, recovered, how));
        let run = run.expect("it was checked before");
        self.run(run.drawing(seed).under(self.control))
    }
}

/// A workload of which a life is a part.
struct OneLife {
    workload: Box<dyn Workload>,
    spec: Spec,
    /// From 0.
    life: u32,
}

impl Workload for OneLife {
    fn populate(&self, image: &mut Image) {
        self.workload.populate(image);
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let program = self.workload.program((thread + self.life) % self.spec.threads);
        if self.life == 0 && self.spec.programs.is_some() {
            // What was recorded has an end of its own.
            return program;
        }
        Box::new(Shortened { program, left: self.spec.transactions_of(thread), held: 0 })
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        self.workload.check(image)
    }

    fn begins_again(&self) -> bool {
        self.workload.begins_again()
    }

    fn extent(&self) -> Option<Extent> {
        self.workload.extent()
    }
}

/// A program that ends earlier.
struct Shortened {
    program: Box<dyn Program>,
    /// Transactions that are left to it.
    left: u64,
    /// Locks that it holds.
    held: u64,
}

impl Program for Shortened {
    fn next(&mut self, value: u64) -> Op {
        if self.left == 0 && self.held == 0 {
            return Op::Done;
        }
        let op = self.program.next(value);
        match op {
            Op::TxEnd => self.left -= 1,
            Op::Lock { .. } => self.held += 1,
            Op::Unlock { .. } => self.held -= 1,
            _ => {}
        }
        op
    }
}
