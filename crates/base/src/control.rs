//! State that a long computation shares with a thread that watches it.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::host;

/// Progress, and the wish to stop.
#[derive(Debug, Default)]
pub struct Control {
    cancel: AtomicBool,
    done: AtomicU64,
    checked: AtomicU64,
    minimising: AtomicBool,
    /// Violations that no watcher has taken yet.
    found: Mutex<Vec<String>>,
    /// Control of the computation that this one is part of.
    parent: Option<Arc<Control>>,
    /// True if its progress adds to that of the whole.
    is_share: bool,
}

impl Control {
    /// Makes the control of a part of a computation: it has progress of its own, and stops when the
    /// whole does.
    pub fn under(parent: &Arc<Control>) -> Control {
        Control { parent: Some(Arc::clone(parent)), ..Control::default() }
    }

    /// Makes the control of a share of a computation: the progress of the whole is the sum of its shares'.
    pub fn share_of(whole: &Arc<Control>) -> Control {
        Control { is_share: true, ..Control::under(whole) }
    }

    /// Asks the computation to stop soon.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Units of work done so far: transactions committed by a simulation, requests offered by a replay.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// The same, by the name that a simulation's watcher knows.
    pub fn committed(&self) -> u64 {
        self.done()
    }

    /// Power failures checked so far, as reported by campaigns.
    pub fn failures_checked(&self) -> u64 {
        self.checked.load(Ordering::Relaxed)
    }

    /// Reports the number of checked power failures.
    pub fn checked(&self, failures: u64) {
        self.checked.store(failures, Ordering::Relaxed);
    }

    /// Returns true if a violation was found, and its program is being minimised. A run that is
    /// cancelled then gives the program that is reached; schedules give nothing.
    pub fn is_minimising(&self) -> bool {
        self.minimising.load(Ordering::Relaxed)
    }

    /// A program that broke a guarantee is being minimised, or that is over.
    pub fn minimising(&self, begins: bool) {
        self.minimising.store(begins, Ordering::Relaxed);
    }

    /// Reports a violation, in a line, as soon as it is found.
    pub fn found(&self, what: String) {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }

    /// Takes the violations that were reported since the last call.
    pub fn take_found(&self) -> Vec<String> {
        std::mem::take(&mut self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reports the progress; returns whether to stop.
    pub fn report(&self, done: u64) -> bool {
        let before = self.done.swap(done, Ordering::Relaxed);
        if let (true, Some(whole)) = (self.is_share, &self.parent) {
            whole.done.fetch_add(done.saturating_sub(before), Ordering::Relaxed);
        }
        self.is_cancelled()
    }

    /// Returns whether a caller has used [`Control::cancel`] on it or on the computation that it is part of.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
            || self.parent.as_ref().is_some_and(|parent| parent.is_cancelled())
    }
}

/// Message of a panic that was caught.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
}

/// Message of a panic that ended a computation: the host has refused memory, or the engine has a
/// defect.
pub fn ended_text(panic: &(dyn Any + Send)) -> String {
    match panic.downcast_ref::<host::OutOfMemory>() {
        Some(refused) => refused.to_string(),
        None => format!("internal error of the engine: {}", panic_text(panic)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_has_done_what_its_shares_have() {
        let whole = Arc::<Control>::default();
        let shares = [Control::share_of(&whole), Control::share_of(&whole)];
        assert!(!shares[0].report(3) && !shares[1].report(4) && !shares[0].report(10));
        assert_eq!((whole.done(), shares[0].done()), (14, 10));
        whole.cancel();
        assert!(shares[1].report(4));
        Control::under(&whole).report(100);
        assert_eq!(whole.done(), 14, "a part has progress of its own");
    }
}
