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
            pages.file(number, file.start..file.start + file.bytes);
        }
    }
    frontier
}

/// Events before which power may fail, and the number of units that are open then.
struct Instants {
    /// For each event, and for the end, whether it is a point.
    are_points: Vec<bool>,
    /// Units of all points together.
    units: usize,
}

/// Finds the instants before a store, or a length, becomes durable; with `operations`, also the ends of operations.
fn instants(story: &Story, rules: Rules, operations: bool) -> Instants {
    let mut frontier = begin(story, rules);
    let (mut settled, mut has_stored, mut after_end) = (0, false, false);
    let mut instants = Instants { are_points: Vec::new(), units: 0 };
    for (event, id) in story.events.iter().zip(0..) {
        let open = frontier.open();
        frontier.saw(id, event);
        // Where there is no page cache, a length is durable at once.
        let is_length = matches!(event.what, What::Length { .. });
        let is_at_once = is_length && matches!(rules, Rules::Processor(_));
        let settles = std::mem::replace(&mut settled, frontier.settled()) != settled;
        let is_point = (has_stored && (is_at_once || settles)) || after_end;
        if is_point {
            instants.units += open;
            (has_stored, after_end) = (false, false);
        }
        instants.are_points.push(is_point);
        has_stored |= matches!(event.what, What::Store { .. } | What::Length { .. });
        after_end |= operations && event.what == What::Ends;
    }
    instants.are_points.push(true);
    instants.units += frontier.open();
    instants
}

impl Points {
    /// Finds the points of a story. `operations`: also the ends of operations. Where all points have too many units, points are
    /// left out at equal distances.
    pub fn of(story: &Story, rules: Rules, operations: bool, control: &Control) -> Points {
        Points::with(story, rules, operations, control, UNITS_MAX)
    }

    /// The same with another bound of units.
    pub(crate) fn with(
        story: &Story,
        rules: Rules,
        operations: bool,
        control: &Control,
        most: usize,
    ) -> Points {
        let Instants { are_points, units } = instants(story, rules, operations);
        let (step, mut number) = (units.div_ceil(most).max(1), 0);
        let mut frontier = begin(story, rules);
        let mut points = Points::default();
        let (mut since, mut ended, mut begun) = (0, 0, 0);
        for (is_point, id) in are_points.into_iter().zip(0..) {
            let event = story.events.get(id as usize);
            if is_point && !control.is_cancelled() {
                number += 1;
                if number % step == 0 || event.is_none() {
                    let before: &[Arc<Unit>] = points.all.last().map_or(&[], |point| &point.units);
                    let units = frontier.units(before);
                    points.all.push(Point { at: id, since, units, ended, begun });
                    since = id;
                } else {
                    points.left_out += 1;
                }
            }
            let Some(event) = event else { break };
            match event.what {
                What::Begins => begun += 1,
                What::Ends => ended += 1,
                _ => {}
            }
            frontier.saw(id, event);
        }
        points
    }
}
