//! The undo log, whichever way it is organized.

use super::LadConfig;
use super::chained_record;
use super::circular_log::{self, CircularLog};
use super::load_aware_log::LoadAwareLog;
use graven_base::config::ConfigError;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::surviving::Medium;
use graven_machine::design::{RecoveryReport, Site};
use graven_machine::machine::Machine;

/// What a transaction's words of a line were before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) thread: usize,
    pub(super) tx: u64,
    pub(super) home: LineAddr,
    pub(super) words: WordMask,
    pub(super) old: LineData,
}

/// An organization of the log.
pub(super) trait UndoLog {
    /// Takes it in. [`UndoLog::persisted`] tells when its line may go home.
    fn append(&mut self, m: &mut Machine, undo: &Undo);

    /// No more is about to come from a thread.
    fn close(&mut self, _m: &mut Machine, _thread: usize) {}

    /// The log's write of this number is durable. Lines that may go home from now on, as far as this thread
    /// of them is concerned, join `logged`.
    fn persisted(&mut self, m: &mut Machine, number: u64, logged: &mut Vec<LineAddr>);

    /// A thread's transaction commits: what is in the log of it is void.
    fn commit(&mut self, m: &mut Machine, thread: usize);

    /// Whether records wait for room, and no transaction that could leave any can commit: `waits_for` says of a
    /// thread and a line whether the thread's commit waits for the line.
    fn is_stuck(&self, _waits_for: &dyn Fn(usize, LineAddr) -> bool) -> bool {
        false
    }

    /// Non-volatile registers.
    fn registers(&self) -> Vec<u64>;
}

fn is_load_aware(site: &Site) -> bool {
    site.config.get::<LadConfig>().load_aware_log
}

/// The log of a site.
pub(super) fn new(site: &Site) -> Result<Box<dyn UndoLog>, ConfigError> {
    Ok(if is_load_aware(site) {
        Box::new(LoadAwareLog::new(site)?)
    } else {
        Box::new(CircularLog::new(site)?)
    })
}

/// Puts the log to use.
pub(super) fn format(site: &Site, medium: &mut Medium) {
    if !is_load_aware(site) {
        circular_log::format(site, medium);
    }
}

/// Writes back what the transactions that have not committed have logged. No word has two records of
/// one transaction, and open transactions share no words, so the order does not matter.
pub(super) fn recover(site: &Site, registers: &[u64], medium: &mut Medium) -> RecoveryReport {
    if is_load_aware(site) {
        return chained_record::recover(site, registers, medium);
    }
    circular_log::recover(site, registers, medium)
}
