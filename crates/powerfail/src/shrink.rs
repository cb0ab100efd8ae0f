//! The shortest story of a violation: as few missing stores as the judge still refuses, the earliest instant, and the stores that
//! must be left for it.

use std::sync::Arc;

use crate::candidate::Candidate;

use crate::frontier::{Pick, Unit};
use crate::judge::Fault;
use crate::panel::{Panel, Refusal};
use crate::points::Point;
use crate::story::EventId;

/// Earlier instants that are tried, at most.
const INSTANTS_MAX: usize = 64;

/// Units that are taken out one by one, at most, those with the newest stores first.
const ALONE_MAX: usize = 256;

/// A violation, as short as it was made.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// The image.
    pub candidate: Candidate,
    /// The answer of the judge to it.
    pub fault: Fault,
    /// The first missing store of each unit of which stores are missing.
    pub missing: Vec<EventId>,
    /// The last store of each unit that must be left. Empty: it is durable already.
    pub present: Vec<EventId>,
}

/// Makes a violation short.
///
/// # Errors
/// The judge cannot judge, or finds the same image good now.
pub fn shrink(
    panel: &mut Panel<'_>,
    candidate: &Candidate,
    fault: Fault,
    first_good: usize,
) -> Result<Shrunk, Refusal> {
    if panel.judge_again(candidate)?.is_none() {
        return Err(Refusal::Unsteady(format!(
            "{}; it passed when it was asked once more about the same image: what it says means nothing",
            fault.what
        )));
    }
    let mut state = State { panel, candidate: candidate.clone(), fault };
    state.fill()?;
    state.earlier(first_good)?;
    state.fill()?;
    let present = state.needed()?;
    let State { candidate, fault, panel } = state;
    let point = &panel.points.all[candidate.point];
    let units = point.units.iter().zip(&candidate.picks);
    let missing = units.filter_map(|(unit, &pick)| unit.missing(pick).next()).collect();
    Ok(Shrunk { candidate, fault, missing, present })
}

struct State<'a, 'b> {
    panel: &'a mut Panel<'b>,
    candidate: Candidate,
    fault: Fault,
}

impl State<'_, '_> {
    fn point(&self) -> &Point {
        &self.panel.points.all[self.candidate.point]
    }

    fn units(&self) -> &[Arc<Unit>] {
        &self.point().units
    }

    /// Takes a candidate if the judge refuses it for the same reason.
    fn try_this(&mut self, candidate: Candidate) -> Result<bool, Refusal> {
        let fault = self.panel.judge(&candidate)?;
        let is_same = fault.as_ref().is_some_and(|fault| fault.kind == self.fault.kind);
        if let Some(fault) = fault.filter(|_| is_same) {
            (self.candidate, self.fault) = (candidate, fault);
        }
        Ok(is_same)
    }

    /// Sets units to a pick, in groups that become smaller, as long as the judge refuses the image. Returns the units that were set.
    fn set(
        &mut self,
        mut units: Vec<usize>,
        to: impl Fn(&Unit) -> Pick,
    ) -> Result<Vec<usize>, Refusal> {
        let mut set = Vec::new();
        let mut size = units.len();
        while size > 0 {
            let mut left = Vec::new();
            for group in units.chunks(size) {
                let mut candidate = self.candidate.clone();
                for &at in group {
                    candidate.picks[at] = to(&self.units()[at]);
                }
                if self.try_this(candidate)? {
                    set.extend(group);
                } else {
                    left.extend(group);
                }
            }
            units = left;
            size = if size == 1 { 0 } else { size.div_ceil(2) };
        }
        Ok(set)
    }

    /// Whatever need not be missing is left.
    fn fill(&mut self) -> Result<(), Refusal> {
        let is_missing = |at: &usize| self.candidate.picks[*at] != self.units()[*at].newest();
        let units = (0..self.units().len()).filter(is_missing).collect();
        self.set(units, Unit::newest)?;
        for at in 0..self.units().len() {
            let unit = Arc::clone(&self.units()[at]);
            if self.candidate.picks[at] == unit.newest() {
                continue;
            }
            // One store more at a time, as long as the judge refuses.
            while let Some(more) = one_more(&unit, self.candidate.picks[at]) {
                let mut candidate = self.candidate.clone();
                candidate.picks[at] = more;
                if !self.try_this(candidate)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// The earliest instant at which the same stores may be missing and the judge refuses it.
    fn earlier(&mut self, first_good: usize) -> Result<(), Refusal> {
        let missing = self.candidate.missing(self.point());
        let Some(&first) = missing.first() else { return self.earlier_kill(first_good) };
        let points = &self.panel.points.all;
        let begin = points.partition_point(|point| point.at <= first).max(first_good);
        let cut: Vec<(u64, EventId)> = self
            .units()
            .iter()
            .zip(&self.candidate.picks)
            .filter_map(|(unit, &pick)| Some((unit.start, unit.missing(pick).next()?)))
            .collect();
        let end = self.candidate.point.min(begin + INSTANTS_MAX);
        for number in begin..end {
            let point = &self.panel.points.all[number];
            let mut candidate = Candidate::newest(number, point);
            for &(start, event) in &cut {
                if let Ok(at) = point.units.binary_search_by_key(&start, |unit| unit.start) {
                    candidate.picks[at] = point.units[at].before(event);
                }
            }
            if candidate.missing(point).is_empty() {
                continue;
            }
            if self.try_this(candidate)? {
                break;
            }
        }
        Ok(())
    }

    /// Nothing is missing: the first instant at which the judge refuses what is visible.
    fn earlier_kill(&mut self, first_good: usize) -> Result<(), Refusal> {
        let end = self.candidate.point;
        for number in first_good.max(end.saturating_sub(INSTANTS_MAX))..end {
            let candidate = Candidate::newest(number, &self.panel.points.all[number]);
            if self.try_this(candidate)? {
                break;
            }
        }
        Ok(())
    }

    /// Finds what must be left: the last such store of each unit. The image stays as it is, since the story is about what is
    /// missing.
    fn needed(&mut self) -> Result<Vec<EventId>, Refusal> {
        let (whole, fault) = (self.candidate.clone(), self.fault.clone());
        let has_stores = |at: &usize| self.units()[*at].left(self.candidate.picks[*at]).count() > 0;
        let units: Vec<usize> = (0..self.units().len()).filter(has_stores).collect();
        let mut needed = Vec::new();
        // What has just been stored comes first.
        let mut alone = units.clone();
        alone.sort_by_key(|&at| {
            std::cmp::Reverse(self.units()[at].stores.last().map(|store| store.event))
        });
        for at in alone.into_iter().take(ALONE_MAX) {
            let mut candidate = whole.clone();
            candidate.picks[at] = Pick::First(0);
            if !self.try_this(candidate)? {
                needed.push(at);
            }
            (self.candidate, self.fault) = (whole.clone(), fault.clone());
        }
        needed.sort_unstable();
        if needed.is_empty() {
            // Any of several is enough, or it was stored long ago.
            let needless = self.set(units.clone(), |_| Pick::First(0))?;
            needed = units.into_iter().filter(|unit| !needless.contains(unit)).collect();
            (self.candidate, self.fault) = (whole.clone(), fault.clone());
        }
        let mut present = Vec::new();
        for at in needed {
            let unit = Arc::clone(&self.units()[at]);
            // The first of its stores with which the judge refuses the image.
            while let Pick::First(count) = self.candidate.picks[at]
                && count > 1
            {
                let mut candidate = self.candidate.clone();
                candidate.picks[at] = Pick::First(count - 1);
                if !self.try_this(candidate)? {
                    break;
                }
            }
            present.extend(unit.left(self.candidate.picks[at]).last());
            (self.candidate, self.fault) = (whole.clone(), fault.clone());
        }
        Ok(present)
    }
}

/// The pick with one more store: the first that is missing and may be there.
fn one_more(unit: &Unit, pick: Pick) -> Option<Pick> {
    match pick {
        Pick::First(count) => {
            ((count as usize) < unit.stores.len()).then(|| Pick::First(count + 1))
        }
        Pick::These(mask) => {
            let missing = (0..unit.stores.len()).find(|&at| mask >> at & 1 == 0)?;
            Some(Pick::These(mask | 1 << missing))
        }
    }
}
