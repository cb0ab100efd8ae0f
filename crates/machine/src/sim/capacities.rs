//! The places of the design's structures: whether it takes more than it declares, and when one is exactly full.

use super::run::Simulation;
use crate::design::{DesignContext, DesignInfo};

/// A structure of the design.
#[derive(Clone, Copy, Debug)]
pub(super) struct Structure {
    places: u64,
    /// All of them were taken at the last look.
    was_full: bool,
}

impl Structure {
    /// Those that a design declares.
    pub fn of(design: &DesignInfo, context: &DesignContext) -> Vec<Structure> {
        let empty = |places| Structure { places, was_full: false };
        design.capacities.iter().map(|capacity| empty((capacity.room)(context).places)).collect()
    }
}

impl Simulation {
    /// Counts the structures that have become exactly full since the last look. Describes one that holds more entries than the
    /// design declares.
    #[inline]
    pub fn look_at_capacities(&mut self) -> Option<String> {
        if self.structures.is_empty() { None } else { self.look_at_structures() }
    }

    fn look_at_structures(&mut self) -> Option<String> {
        let info = self.spec.design;
        let mut excess = None;
        for (at, structure) in self.structures.iter_mut().enumerate() {
            let (taken, places) = (self.design.places_taken(at), structure.places);
            let is_full = taken == places;
            if is_full && !structure.was_full {
                self.machine.cover(info.cover_points.len() + at);
            }
            structure.was_full = is_full;
            if taken > places {
                let name = info.capacities[at].full.name;
                excess =
                    Some(format!("{name}: {taken} places are taken; the design declares {places}"));
            }
        }
        excess
    }
}
