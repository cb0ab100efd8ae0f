//! Why a simulation ends without a result.

use thiserror::Error;

use super::deadlock::ProgramDeadlock;
use crate::stats::conservation::Broken;
use graven_base::memory::Addr;
use graven_base::time::Cycle;

/// Why a simulation ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SimError {
    /// Read check: memory returned other content for a line than the program had stored.
    #[error(
        "read check failed at cycle {cycle}: word {addr} was read as {read:#x}, but the program last stored {stored:#x} \
         (design {design}, workload {workload}): the design lost or reverted an update"
    )]
    ReadCheck {
        /// When.
        cycle: Cycle,
        /// Address of the word.
        addr: Addr,
        /// Content that memory returned.
        read: u64,
        /// Content of architectural memory.
        stored: u64,
        /// Under which design.
        design: &'static str,
        /// In which workload.
        workload: &'static str,
    },
    /// After an orderly shutdown the PM does not hold what the program stored.
    #[error(
        "shutdown check failed: after everything was written back, word {addr} of PM holds {found:#x}, but the program \
         last stored {stored:#x} (design {design}, workload {workload})"
    )]
    ShutdownCheck {
        /// Address of the word.
        addr: Addr,
        /// Content of PM.
        found: u64,
        /// Content that the program stored last.
        stored: u64,
        /// Under which design.
        design: &'static str,
        /// In which workload.
        workload: &'static str,
    },
    /// A recovery that the machine has executed left other bytes than the recovery itself.
    #[error(
        "recovery check failed: executed on the machine, recovery leaves {found:#x} in word {addr}, and {expected:#x} \
         as a function of the surviving bytes"
    )]
    Recovery {
        /// Address of the word.
        addr: Addr,
        /// Content that the execution left.
        found: u64,
        /// Content that recovery left.
        expected: u64,
    },
    /// The design cannot work as configured.
    #[error("design {design}: {why}")]
    Design {
        /// Name of the design.
        design: &'static str,
        /// Why.
        why: String,
    },
    /// Statistics contradict each other: a fault of the simulator.
    #[error(transparent)]
    Conservation(#[from] Broken),
    /// Threads of the program wait for each other for ever, under any design.
    #[error(
        "the program's threads wait for each other for ever, whatever design they run under: {0}"
    )]
    ProgramDeadlock(ProgramDeadlock),
    /// No thread can ever run again, and that is not the program's doing.
    #[error("deadlock at cycle {cycle} under design {design}: {waiting}")]
    Deadlock {
        /// When.
        cycle: Cycle,
        /// Under which design.
        design: &'static str,
        /// Waits of the threads.
        waiting: String,
    },
    /// The run was cancelled ([`Control`](graven_base::control::Control)).
    #[error("cancelled")]
    Cancelled,
}
