//! Simulations that begin alike share PM as their workload has populated it, and what transactions without time have made of
//! it.
//!
//! A comparison runs the same workload under many designs. Before such simulations run, the caller
//! takes a [`Beginning`] for each of them ([`Beginning::of`]), and hands it over when the
//! simulation is built ([`Simulation::begun`](super::Simulation::begun)). The first one populates,
//! and those that follow have its image, of which host memory is copied where they write
//! ([`Image::share`]). The first one that measures a region in steady state executes the
//! transactions before it ([`super::aged`]), and those that follow have the result. Either is kept
//! only while a beginning that still needs it is held, and no more than [`KEPT_BYTES_MAX`] in a
//! process; what is not kept is done again, with the same bytes.
//!
//! Simulations begin alike if everything is the same that a workload is built from: its name, the parameters that it may
//! look at ([`crate::workload::WorkloadInfo::sections`]), threads, transactions, seed, and the part of PM that it may use. They
//! are alike after transactions without time if their caches are, and how many of these there are to be.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::aged::Aged;
use super::{SimError, Simulation, Spec};
use crate::config::{CoreConfig, DramConfig, L1Config, L2Config, LlcConfig, PmConfig};
use crate::stats::region::RegionConfig;
use crate::workload::WorkloadConfig;
use graven_base::config::Section;
use graven_base::memory::{Image, LINE_BYTES};

/// Host memory of all that is kept, at most.
const KEPT_BYTES_MAX: u64 = 1 << 30;

/// Bytes of all that is kept.
static KEPT_BYTES: AtomicU64 = AtomicU64::new(0);

/// All beginnings that are held, by what they follow from.
static HELD: Mutex<Vec<(Key, Weak<Beginning>)>> = Mutex::new(Vec::new());

/// PM as a workload has populated it.
#[derive(Clone)]
pub(super) struct Populated {
    pub(super) image: Image,
    /// Bytes of the lines that are not zero.
    pub(super) footprint_bytes: u64,
}

impl Populated {
    /// Makes the populated state of an image.
    pub(super) fn of(image: Image) -> Populated {
        let footprint_bytes = image.nonzero_lines() * LINE_BYTES;
        Populated { image, footprint_bytes }
    }
}

/// Inputs that a populated image follows from.
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

/// Common beginning of several simulations.
pub struct Beginning {
    kept: Mutex<Option<Populated>>,
    /// By what else they follow from.
    aged: Mutex<Vec<(String, Aged)>>,
}

/// Inputs that transactions without time follow from, besides the beginning.
fn ageing(spec: &Spec) -> String {
    let config = &spec.config;
    let region = config.get::<RegionConfig>();
    format!(
        "{:?}",
        (
            (config.get::<CoreConfig>(), config.get::<DramConfig>()),
            (config.get::<L1Config>(), config.get::<L2Config>(), config.get::<LlcConfig>()),
            (region.fast_forward_transactions, region.fast_forward_operations),
        )
    )
}

impl Beginning {
    /// Returns the beginning of the simulation of a specification: the same for all that begin
    /// alike and hold one now. `None` if its threads replay a recording.
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
        let beginning = Arc::new(Beginning { kept: Mutex::new(None), aged: Mutex::default() });
        held.push((key, Arc::downgrade(&beginning)));
        Some(beginning)
    }

    /// Returns true if others than the caller's simulation begin alike.
    pub fn is_shared(self: &Arc<Self>) -> bool {
        Arc::strong_count(self) > 1
    }

    /// The populated image, for one simulation, which may hold the beginning still; `populate` is called if there is none. Simulations
    /// that begin alike at the same time wait for the first.
    pub(super) fn populated(self: &Arc<Self>, populate: impl FnOnce() -> Populated) -> Populated {
        let mut kept = locked(&self.kept);
        // This one is among those that hold it.
        let others = self.is_shared();
        if !others && let Some(populated) = kept.take() {
            release(populated.image.host_bytes());
            return populated;
        }
        if let Some(populated) = &*kept {
            return populated.clone();
        }
        let mut populated = populate();
        if others && reserve(populated.image.host_bytes()) {
            let image = populated.image.share();
            *kept = Some(Populated { image, ..populated });
        }
        populated
    }

    /// Transactions without time, executed by this simulation or by one before it; returns how many they were. Simulations that
    /// begin alike at the same time wait for the first.
    ///
    /// # Errors
    /// The watcher has cancelled the run.
    pub(super) fn age(self: Arc<Self>, simulation: &mut Simulation) -> Result<u64, SimError> {
        let key = ageing(simulation.spec());
        let mut all = locked(&self.aged);
        let others = self.is_shared();
        if let Some(at) = all.iter().position(|(other, _)| *other == key) {
            let aged = if others { all[at].1.share() } else { all.swap_remove(at).1 };
            if !others {
                release(aged.host_bytes());
            }
            drop(all);
            return Ok(simulation.adopt(aged));
        }
        if !others {
            drop(all);
            return simulation.fast_forward(None);
        }
        let aged = simulation.age_for_others()?;
        let transactions = aged.transactions();
        if reserve(aged.host_bytes()) {
            all.push((key, aged));
        }
        Ok(transactions)
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        locked(&self.kept).take().iter().for_each(|kept| release(kept.image.host_bytes()));
        locked(&self.aged).drain(..).for_each(|(_, aged)| release(aged.host_bytes()));
    }
}

/// Returns true if `bytes` more may be kept, and counts them then.
fn reserve(bytes: u64) -> bool {
    let within = |kept: u64| Some(kept + bytes).filter(|&sum| sum <= KEPT_BYTES_MAX);
    KEPT_BYTES.fetch_update(Relaxed, Relaxed, within).is_ok()
}

fn release(bytes: u64) {
    KEPT_BYTES.fetch_sub(bytes, Relaxed);
}

/// Locks a mutex, even one that a panic has poisoned: its content is always whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
