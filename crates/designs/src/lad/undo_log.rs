//! The undo log, whichever way it is organized.

use std::fmt::Debug;

use super::LadConfig;
use super::chained_record;
use super::circular_log::{self, CircularLog};
use super::load_aware_log::LoadAwareLog;
use super::protocol::{Lad, Port};
use graven_base::config::ConfigError;
use graven_base::memory::{LineAddr, LineData, WordMask};
use graven_base::surviving::SurvivingImage;
use graven_machine::design::{DesignContext, PluggedDesign, RecoveryReport, plug};

/// Former content of a transaction's words of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    pub(super) thread: usize,
    pub(super) tx: u64,
    pub(super) home: LineAddr,
    pub(super) words: WordMask,
    pub(super) old: LineData,
}

/// An organization of the log.
pub(super) trait UndoLog: Sized + 'static {
    /// Writes of the log.
    type Write: Copy + Debug + 'static;

    /// The log of a context, empty.
    fn new(context: &DesignContext) -> Result<Self, ConfigError>;

    /// Takes it in. [`UndoLog::on_durable`] reports when its line may go home.
    fn append(&mut self, port: &mut Port<'_, Self>, undo: &Undo);

    /// No more is about to come from a thread.
    fn close(&mut self, _port: &mut Port<'_, Self>, _thread: usize) {}

    /// This write of the log is durable. Lines that may go home from now on, as far as this thread
    /// of them is concerned, join `logged`.
    fn on_durable(
        &mut self,
        port: &mut Port<'_, Self>,
        write: Self::Write,
        logged: &mut Vec<LineAddr>,
    );

    /// A thread's transaction commits: what is in the log of it is void.
    fn commit(&mut self, port: &mut Port<'_, Self>, thread: usize);

    /// Returns true if records wait for room, and no transaction that could leave any can commit.
    /// `waits_for` tells of a thread and a line whether the thread's commit waits for the line.
    fn is_stuck(&self, _waits_for: impl Fn(usize, LineAddr) -> bool) -> bool {
        false
    }

    /// Non-volatile registers.
    fn registers(&self) -> Vec<u64>;

    /// Places taken: 0, of slots in the fullest circular area; 1 and 2, of LALEA's log entries and headers.
    fn places_taken(&self, structure: usize) -> u64;
}

fn is_load_aware(context: &DesignContext) -> bool {
    context.config.get::<LadConfig>().load_aware_log
}

/// The design with the log of its context.
pub(super) fn build(context: &DesignContext) -> Result<PluggedDesign, ConfigError> {
    fn with<L: UndoLog>(context: &DesignContext) -> Result<PluggedDesign, ConfigError> {
        Ok(plug(Lad::<L>::new(context)?).absorbing().into())
    }
    if is_load_aware(context) {
        with::<LoadAwareLog>(context)
    } else {
        with::<CircularLog>(context)
    }
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
