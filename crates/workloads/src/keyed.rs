//! The workload that all keyed structures share: random insertions, updates and removals.
//!
//! Which keys: see [`keys`](super::structures::keys). FWB's "insert if absent, remove if found"
//! (Table III) on a half-filled key space is 50 % insertions and 50 % removals here.
//!
//! Each transaction draws its operations and performs them all, in a shared structure under the
//! locks they need ([`operations`]).

use std::ops::Range;

use super::costs;
use super::layout::{Layout, Placed, Plan, Share};
use super::operations::{self, Operations};
use super::structures::keys::{Action, Numbering};
use super::structures::{Arena, Census, Keyed, Keys};
use graven_base::config::ConfigError;
use graven_base::memory::Image;
use graven_machine::program::{Direct, Load, LockId, Program, Thread};
use graven_machine::workload::{Checked, Extent, Workload};

/// One structure and the arenas that its blocks come from: one for all threads, or one for each.
#[derive(Clone, Debug)]
pub(super) struct Part<S> {
    pub(super) structure: S,
    pub(super) arenas: Vec<Arena>,
    /// The threads that work on it.
    pub(super) threads: Range<u32>,
}

impl<S> Part<S> {
    pub(super) fn arena_of(&self, thread: u32) -> &Arena {
        &self.arenas[thread as usize % self.arenas.len()]
    }
}

/// A workload over a keyed structure.
pub(super) struct KeyedWorkload<S> {
    plan: Plan,
    parts: Vec<Part<S>>,
    extent: Extent,
}

impl<S: Keyed> KeyedWorkload<S> {
    /// The workload of `plan`, whose partitions `place` lays out.
    ///
    /// # Errors
    /// If they do not fit.
    pub(super) fn build(
        plan: Plan,
        place: impl FnMut(&mut Layout, &Share) -> Part<S>,
    ) -> Result<Box<dyn Workload>, ConfigError> {
        let Placed { parts, extent } = plan.lay_out(place)?;
        let extent = Extent { updated_bytes: plan.updated_bytes(), ..extent };
        Ok(Box::new(Self { plan, parts, extent }))
    }
}

/// Builds the parts of `plan` and inserts the population.
pub(super) fn populate<S: Keyed>(plan: &Plan, parts: &[Part<S>], image: &mut Image) {
    let mut m = Direct::new(image);
    let threads = plan.request.threads;
    for part in parts {
        let (first, others) = part.arenas.split_first().expect("a part has an arena");
        part.structure.format(&mut m, first);
        others.iter().for_each(|arena| arena.format(&mut m));
    }
    let numbering = Numbering::new(plan.request.seed);
    // Numbers in ascending order are keys in random order.
    for part in parts {
        for number in 0..plan.population {
            for owner in part.threads.clone() {
                let key = numbering.key(number * u64::from(threads) + u64::from(owner));
                part.structure.insert(&mut m, part.arena_of(owner), key);
            }
        }
    }
}

/// Walks all parts.
///
/// # Errors
/// The first violation found.
pub(super) fn check<S: Keyed>(plan: &Plan, parts: &[Part<S>], image: &Image) -> Checked {
    for part in parts {
        let name = format!("{} at {}", plan.workload, part.structure.root());
        Census::audit(name, image, &part.arenas, |census| {
            part.structure.walk(census, &mut |_| {})
        })?;
    }
    Ok(())
}

impl<S: Keyed> Workload for KeyedWorkload<S> {
    fn populate(&self, image: &mut Image) {
        populate(&self.plan, &self.parts, image);
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let request = &self.plan.request;
        let part = &self.parts[self.plan.part_of(thread)];
        let (threads, shared) = ((thread, request.threads), self.plan.is_shared());
        let population = self.plan.population;
        let keys = Keys::new(&request.config, request.seed, threads, population, shared);
        let run = Run { structure: part.structure, arena: *part.arena_of(thread), keys };
        operations::program(run, request, thread)
    }

    fn check(&self, image: &Image) -> Checked {
        check(&self.plan, &self.parts, image)
    }

    fn extent(&self) -> Option<Extent> {
        Some(self.extent)
    }
}

/// State of a thread.
struct Run<S> {
    structure: S,
    arena: Arena,
    keys: Keys,
}

impl<S: Keyed> Operations for Run<S> {
    type Operation = Action;

    fn draw(&mut self, thread: &mut Thread<'_>) -> Action {
        thread.compute(self.keys.instructions());
        self.keys.draw()
    }

    fn lock(&self, thread: &mut Thread<'_>, action: Action, locks: &mut Vec<LockId>) {
        thread.compute(costs::HASH);
        locks.push(self.structure.lock_of(action.key()));
    }

    #[inline(always)]
    fn perform(&self, thread: &mut Thread<'_>, action: Action) {
        match action {
            Action::Insert(key) => self.structure.insert(thread, &self.arena, key),
            Action::Update(key) => self.structure.update(thread, key),
            Action::Remove(key) => self.structure.remove(thread, &self.arena, key),
        };
    }
}
