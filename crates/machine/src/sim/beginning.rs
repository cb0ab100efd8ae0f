//! What simulations that begin alike have in common: PM as their workload has populated it.
//!
//! A comparison runs the same workload under many designs. Whoever is going to run such simulations takes a
//! [`Beginning`] for each of them first ([`Beginning::of`]), and hands it over when the simulation is built
//! ([`Simulation::begun`](super::Simulation::begun)). The first one populates, and those that follow have its image, of
//! which host memory is copied where they write ([`Image::share`]). An image is kept only while somebody holds a
//! beginning that still needs it, and no more than [`KEPT_BYTES_MAX`] of them in a process; what is not kept is populated
//! again, with the same bytes.
//!
//! Simulations begin alike if everything is the same that a workload is built from: its name, the parameters that it may
//! look at ([`crate::workload::WorkloadInfo::sections`]), threads, transactions, seed, and the part of PM that it may use.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::Spec;
use crate::config::PmConfig;
use crate::workload::WorkloadConfig;
use graven_base::config::Section;
use graven_base::memory::{Image, LINE_BYTES};

/// Host memory of all images that are kept, at most.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// Of all images that are kept.
static KEPT_BYTES: AtomicU64 = AtomicU64::new(0);

/// All beginnings that somebody holds, by what they follow from.
static HELD: Mutex<Vec<(Key, Weak<Beginning>)>> = Mutex::new(Vec::new());

/// PM as a workload has populated it.
#[derive(Clone)]
pub(super) struct Populated {
    pub(super) image: Image,
    /// Bytes of the lines that are not zero.
    pub(super) footprint_bytes: u64,
}

impl Populated {
    /// What was populated.
    pub(super) fn of(image: Image) -> Populated {
        let footprint_bytes = image.nonzero_lines() * LINE_BYTES;
        Populated { image, footprint_bytes }
    }
}

/// What a populated image follows from.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    /// The function that builds the workload: names are those of a registry, and there may be several.
    build: usize,
    /// All else, as text.
    parameters: String,
}

impl Key {
    fn of(spec: &Spec) -> Key {
        let own: Vec<&str> = spec.workload.sections.iter().map(|make| make().name()).collect();
        let sections = spec.config.sections().filter(|section| own.contains(&section.name()));
        let sections: Vec<&dyn Section> = sections.collect();
        let parameters = format!(
            "{:?}",
            (
                (spec.workload.name, spec.config.get::<WorkloadConfig>(), sections),
                (spec.threads, spec.transactions, spec.seed, spec.data_region()),
                spec.config.get::<PmConfig>().capacity_bytes,
            )
        );
        Key { build: spec.workload.build as usize, parameters }
    }
}

/// How simulations begin that begin alike.
pub struct Beginning {
    kept: Mutex<Option<Populated>>,
}

impl Beginning {
    /// How the simulation of a specification begins: the same for all that begin alike and have one now. None if what its threads
    /// do was recorded.
    pub fn of(spec: &Spec) -> Option<Arc<Beginning>> {
        if spec.programs.is_some() {
            return None;
        }
        let key = Key::of(spec);
        let mut held = locked(&HELD);
        held.retain(|(_, beginning)| beginning.strong_count() > 0);
        let alike = held.iter().filter(|(other, _)| *other == key);
        if let Some(beginning) = alike.filter_map(|(_, beginning)| beginning.upgrade()).next() {
            return Some(beginning);
        }
        let beginning = Arc::new(Beginning { kept: Mutex::new(None) });
        held.push((key, Arc::downgrade(&beginning)));
        Some(beginning)
    }

    /// Whether others than the one that asks begin alike.
    pub fn is_shared(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    /// The populated image, for one simulation; `populate` is called if there is none. Simulations that begin alike at the same
    /// time wait for the first.
    pub(super) fn populated(self: Arc<Self>, populate: impl FnOnce() -> Populated) -> Populated {
        let mut kept = locked(&self.kept);
        // This one is among those that hold it.
        let others = self.is_shared();
        if !others && let Some(populated) = kept.take() {
            release(&populated);
            return populated;
        }
        if let Some(populated) = &*kept {
            return populated.clone();
        }
        let mut populated = populate();
        if others && reserve(&populated) {
            let image = populated.image.share();
            *kept = Some(Populated { image, ..populated });
        }
        populated
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        locked(&self.kept).take().iter().for_each(release);
    }
}

/// Whether an image may be kept; if so, it is counted.
fn reserve(populated: &Populated) -> bool {
    let bytes = populated.image.host_bytes();
    let within = |kept: u64| Some(kept + bytes).filter(|&sum| sum <= KEPT_BYTES_MAX);
    KEPT_BYTES.fetch_update(Relaxed, Relaxed, within).is_ok()
}

fn release(populated: &Populated) {
    KEPT_BYTES.fetch_sub(populated.image.host_bytes(), Relaxed);
}

/// What a lock guards, whether or not somebody panicked with it: an image is put there when it is whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
