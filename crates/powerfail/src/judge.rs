//! Judges: they say whether a program copes with an image.

use std::collections::BTreeMap;
use std::sync::Mutex;

use graven_base::memory::Image;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// The files that a power failure leaves.
#[derive(Clone, Copy)]
pub struct Left<'a> {
    /// The memory.
    pub image: &'a Image,
    /// Lengths of the files, in bytes.
    pub lengths: &'a [u64],
    /// Operations that were acknowledged: their effects must be there.
    pub acknowledged: u32,
    /// Operations that had begun: no others can have effects.
    pub begun: u32,
}

/// A fault of what was left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// The kind, which faults that look alike share: how a command ended.
    pub kind: String,
    /// All that is known, in words.
    pub what: String,
}

/// The answer of a judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The program copes.
    Good,
    /// The program does not cope.
    Bad(Fault),
    /// The judge cannot judge, and why.
    Impossible(String),
}

impl Verdict {
    /// The fault, if there is one.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Verdict::Bad(fault) => Some(fault),
            _ => None,
        }
    }
}

/// Verdicts by the identities of images, so that no image is judged twice.
#[derive(Debug, Default)]
pub struct Verdicts(Mutex<FxHashMap<u64, Option<Fault>>>);

impl Verdicts {
    /// Verdicts of an earlier exploration.
    pub fn new(known: impl IntoIterator<Item = (u64, Option<Fault>)>) -> Verdicts {
        Verdicts(Mutex::new(known.into_iter().collect()))
    }

    /// The verdict on an image, if it was judged.
    pub fn get(&self, identity: u64) -> Option<Option<Fault>> {
        self.0.lock().expect("no thread panics with it").get(&identity).cloned()
    }

    /// Remembers a verdict.
    pub fn put(&self, identity: u64, fault: Option<Fault>) {
        self.0.lock().expect("no thread panics with it").insert(identity, fault);
    }

    /// All verdicts, by their identities.
    pub fn all(&self) -> BTreeMap<u64, Option<Fault>> {
        let known = self.0.lock().expect("no thread panics with it");
        known.iter().map(|(&identity, fault)| (identity, fault.clone())).collect()
    }
}

/// A judge.
pub trait Judge: Sync {
    /// Judges what is left. Workers, numbered from 0, judge side by side.
    fn judge(&self, worker: usize, left: &Left<'_>) -> Verdict;

    /// Tells whether the judge compares states of operations.
    fn compares_states(&self) -> bool {
        false
    }

    /// Learns the state after a number of operations of an undisturbed run.
    ///
    /// # Errors
    /// The state cannot be had, and why.
    fn learn(&self, operations: u32, left: &Left<'_>) -> Result<(), String> {
        let _ = (operations, left);
        Ok(())
    }
}
