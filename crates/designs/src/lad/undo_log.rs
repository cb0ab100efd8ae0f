//! The undo log, whichever way it is organized.

use super::LadConfig;
use super::chained_record;
use super::circular_log::{self, CircularLog};
use super::load_aware_log::LoadAwareLog;
use graven_base::config::ConfigError;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::{DesignContext, RecoveryReport};
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
    /// Takes it in. [`UndoLog::on_durable`] tells when its line may go home.
    fn append(&mut self, m: &mut Machine, undo: &Undo);

    /// No more is about to come from a thread.
    fn close(&mut self, _m: &mut Machine, _thread: usize) {}

    /// The log's write of this number is durable. Lines that may go home from now on, as far as this thread
    /// of them is concerned, join `logged`.
    fn on_durable(&mut self, m: &mut Machine, number: u64, logged: &mut Vec<LineAddr>);

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

fn is_load_aware(context: &DesignContext) -> bool {
    context.config.get::<LadConfig>().load_aware_log
}

/// The log of a context.
pub(super) fn new(context: &DesignContext) -> Result<Box<dyn UndoLog>, ConfigError> {
    Ok(if is_load_aware(context) {
        Box::new(LoadAwareLog::new(context)?)
    } else {
        Box::new(CircularLog::new(context)?)
    })
}

/// Puts the log to use.
pub(super) fn format(context: &DesignContext, image: &mut SurvivingImage) {
    if !is_load_aware(context) {
        circular_log::format(context, image);
    }
}

/// Writes back what the transactions that have not committed have logged. No word has two records of
/// one transaction, and open transactions share no words, so the order does not matter.
pub(super) fn recover(
    context: &DesignContext,
    registers: &[u64],
    image: &mut SurvivingImage,
) -> RecoveryReport {
    if is_load_aware(context) {
        return chained_record::recover(context, registers, image);
    }
    circular_log::recover(context, registers, image)
}
