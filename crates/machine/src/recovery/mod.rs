//! Recovery in simulated time.
//!
//! A recovery is a function of surviving bytes ([`DesignInfo::recover`](crate::design::DesignInfo::recover)). While it
//! runs, its steps are kept: what each of its threads loads, stores, fences and computes. The machine then executes these
//! steps as programs on its own cores, caches, controllers and devices, from the same surviving bytes on, with cold
//! caches, empty queues and closed rows, and without any persistence hardware at work. How long that takes is
//! the time of the recovery.
//!
//! - **Loads.** A load waits for the load that gave its address; others overlap as far as the core lets them: not at
//!   all in order, and within reorder buffer, load queue and miss registers out of order.
//! - **Stores** go through the caches, and a line is written back (clwb) when the thread stores to another one; or past the
//!   caches through the write-combining buffer, where a paper says so. A fence waits until they are durable. Each
//!   thread ends with one.
//! - **Computation** is counted in operations, with a price in instructions for each kind
//!   ([`RecoveryConfig`]). Volatile tables of recovery's own cost their instructions and
//!   hit in the L1.
//! - **Threads.** Those of the recovery run on cores of their own, as far as there are cores; others take turns there.
//!   A barrier is an atomic operation of each thread on one line, and a wait for the last.
//!
//! Executed steps check themselves: each line read from PM is compared with what was stored, and at the end PM must hold
//! what the function made of the surviving bytes.
//!
//! | file | what |
//! |---|---|
//! | `mod` | power failures of a run and their recoveries |
//! | `execution` | steps on the machine |
//! | `program` | steps as operations of a core |

mod execution;
mod program;

use std::sync::Arc;

use graven_base::control::Control;
use graven_base::time::Cycle;
use serde_json::Value;

use crate::config::CoreConfig;
use crate::sim::{SimError, Simulation, value_to_json};
use crate::stats::{RECOVERY_TRANSACTIONS, RecoveryConfig, RecoveryTime, of_recoveries};

pub use execution::{Executed, execute};

impl Simulation {
    /// Times the recovery of a power failure at this instant: recovers, and executes the recovery's
    /// steps on a cold machine. The simulation itself proceeds afterwards as if power had not
    /// failed.
    ///
    /// # Errors
    /// The execution found other bytes than the recovery ([`SimError`]), or was cancelled.
    ///
    /// # Panics
    /// If durable bytes are not followed ([`Simulation::follow_durable_bytes`]).
    pub fn time_recovery(&mut self, control: &Arc<Control>) -> Result<RecoveryTime, SimError> {
        let (spec, failed_at) = (self.spec().clone(), self.machine().now());
        let mut crash = self.crash();
        let before = crash.image.image().clone();
        crash.image.keep_steps();
        let report = crash.recover();
        let steps = crash.image.take_steps();
        let executed = execute(&spec, before, steps, crash.image.image(), control)?;
        let frequency_mhz = spec.config.get::<CoreConfig>().frequency_mhz;
        Ok(RecoveryTime {
            failed_at,
            threads: executed.threads,
            cycles: executed.cycles,
            ms: executed.cycles as f64 / (f64::from(frequency_mhz) * 1e3),
            bytes_read: executed.bytes_read,
            bytes_written: executed.bytes_written,
            instructions: executed.instructions,
            records_scanned: report.records_scanned,
            words_redone: report.words_redone,
            words_undone: report.words_undone,
        })
    }
}

/// Times recoveries after power failures of a run, at the cycles that its configuration asks for ([`RecoveryConfig`]).
/// `fresh`: a simulation that has not run; `cycles`: how long the run takes.
///
/// # Errors
/// See [`Simulation::time_recovery`]; and what ends a simulation.
pub fn time_recoveries(
    mut fresh: Simulation,
    cycles: Cycle,
    control: &Arc<Control>,
) -> Result<Vec<RecoveryTime>, SimError> {
    let failures = fresh.spec().config.get::<RecoveryConfig>().failures(cycles);
    let again = Arc::new(Control::under(control));
    fresh.set_control(Arc::clone(&again));
    fresh.follow_durable_bytes();
    let before = control.done();
    let mut times = Vec::with_capacity(failures.len());
    for at in failures {
        fresh.advance(at)?;
        times.push(fresh.time_recovery(control)?);
        control.report(before + again.done() + RECOVERY_TRANSACTIONS * times.len() as u64);
    }
    Ok(times)
}

/// Adds the statistics of recoveries to the record of a run that has finished ([`Simulation::record`]), if its
/// configuration asks for them. `fresh` makes the same simulation again.
///
/// # Errors
/// Those of `fresh`; see [`time_recoveries`].
///
/// # Panics
/// If it is no record.
pub fn add_to_record<E: From<SimError>>(
    record: &mut Value,
    finished: &Simulation,
    fresh: impl FnOnce() -> Result<Simulation, E>,
    control: &Arc<Control>,
) -> Result<(), E> {
    if !finished.spec().config.get::<RecoveryConfig>().is_wanted() {
        return Ok(());
    }
    let cycles = finished.stats().counters.cycles;
    let times = time_recoveries(fresh()?, cycles, control)?;
    let stats = record["stats"].as_object_mut().expect("a record has statistics");
    for (name, value) in of_recoveries(&times) {
        stats.insert(name.to_owned(), value_to_json(value));
    }
    Ok(())
}
