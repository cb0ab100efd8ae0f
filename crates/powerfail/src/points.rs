//! Crash points: the instants at which the set of possible images changes.
//!
//! A store only adds images: whatever might have been left before it may still be left. So the points are the instants *before* a
//! store becomes durable, the last instant, and, where acknowledged operations must survive, the end of each operation.

use std::sync::Arc;

use graven_base::control::Control;

use crate::frontier::{Frontier, Rules, Unit};
use crate::story::{EventId, Story, What};

/// Most units that the points of a story list, each counted at each point where it has changed.
const UNITS_MAX: usize = 8 << 20;

/// A crash point.
#[derive(Clone, Debug)]
pub struct Point {
    /// The event before which power fails.
    pub at: EventId,
    /// Stores from this event on are new: no earlier point has them.
    pub since: EventId,
    /// The units with stores that may be missing.
    pub units: Vec<Arc<Unit>>,
    /// Operations that were over.
    pub ended: u32,
    /// Operations that had begun.
    pub begun: u32,
}

/// The crash points of a story, and whether these are all.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// The points, in order.
    pub all: Vec<Point>,
    /// Points that were left out, since there are too many units.
    pub left_out: u64,
}

/// A frontier at the beginning of a story.
fn begin(story: &Story, rules: Rules) -> Frontier {
    let mut frontier = rules.begin();
    if let Frontier::Pages(pages) = &mut frontier {
        for (number, file) in (0..).zip(&story.files) {
            pages.file(number, file.start);
        }
    }
    frontier
}

/// The events that make a store, or a length, durable.
fn settling(story: &Story, rules: Rules) -> Vec<bool> {
    let mut frontier = begin(story, rules);
    let mut settled = 0;
    let each = story.events.iter().zip(0..).map(|(event, id)| {
        frontier.saw(id, event);
        // Where there is no page cache, a length is durable at once.
        let is_length = matches!(event.what, What::Length { .. });
        let is_at_once = is_length && matches!(rules, Rules::Processor(_));
        is_at_once || std::mem::replace(&mut settled, frontier.settled()) != settled
    });
    each.collect()
}

impl Points {
    /// Finds the points of a story. `operations`: also the ends of operations.
    pub fn of(story: &Story, rules: Rules, operations: bool, control: &Control) -> Points {
        let settles = settling(story, rules);
        let mut frontier = begin(story, rules);
        let mut points = Points::default();
        let (mut since, mut has_stored, mut after_end) = (0, false, false);
        let (mut ended, mut begun, mut units) = (0, 0, 0);
        for id in 0..=story.events.len() as EventId {
            let event = story.events.get(id as usize);
            let is_point = match event {
                Some(_) => (has_stored && settles[id as usize]) || after_end,
                None => true,
            };
            if is_point && !control.is_cancelled() {
                let before: &[Arc<Unit>] = points.all.last().map_or(&[], |point| &point.units);
                let at = frontier.units(before);
                if units + at.len() > UNITS_MAX {
                    points.left_out += 1;
                } else {
                    units += at.len();
                    points.all.push(Point { at: id, since, units: at, ended, begun });
                    (since, has_stored) = (id, false);
                }
                after_end = false;
            }
            let Some(event) = event else { break };
            match event.what {
                What::Store { .. } | What::Length { .. } => has_stored = true,
                What::Begins => begun += 1,
                What::Ends => {
                    ended += 1;
                    after_end = operations;
                }
                _ => {}
            }
            frontier.saw(id, event);
        }
        points
    }
}
