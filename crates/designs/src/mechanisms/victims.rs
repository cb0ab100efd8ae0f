//! A victim cache: lines that left the LLC before their transactions were retired. WrAP and ReDU have one.
//!
//! A line does not record who stored to it. So it is parked for every transaction that might have: those that are
//! open with stores, and those that have committed and are not at home yet. When all of them are retired,
//! every word of the line is at home, and it is dropped.

use std::collections::{BTreeMap, VecDeque};

use graven_base::counters;
use graven_base::ids::ThreadId;
use graven_base::memory::{LineAddr, LineData};
use graven_base::thread_set::ThreadSet;
use graven_machine::design::{Design, DesignEvent, Fill, Observation, Port};

/// A parked line.
#[derive(Clone, Copy, Debug)]
pub struct Victim {
    /// Content of the line.
    pub data: LineData,
    /// Threads whose transactions it waits for that were open when it came and are still.
    pub open: ThreadSet,
    /// The newest committed transaction that it waits for.
    pub newest: u64,
}

impl Victim {
    /// The last transaction that it waits for; while one is open, one that never comes.
    fn waits_for(&self) -> u64 {
        if self.open == 0 { self.newest } else { u64::MAX }
    }
}

/// Places of a parked line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parked {
    /// The line has an entry of its own.
    Here,
    /// The line took the entry of its older content.
    Replaced,
    /// There was none: it waits outside.
    Waits,
}

/// The rules of a design that are about its victim cache.
#[derive(Clone, Copy, Debug)]
pub struct VictimRules {
    /// A line that something waits for is kept until that is over.
    pub lines_are_kept: bool,
    /// Newer content of a line replaces its older one.
    pub newer_replaces: bool,
    /// A line that finds no entry waits for one.
    pub overflow_waits: bool,
}

counters! {
    /// Counters of a victim cache.
    pub struct Counters {
        /// Dirty lines that left the LLC and were parked in a victim cache.
        victim_cache_lines: Count, "lines";
        /// Largest number of lines in a victim cache.
        victim_cache_max: Gauge, "lines";
        /// Lines that found a victim cache full.
        victim_cache_full: Count, "lines";
    }
}

/// Events of lines outside the caches.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A line is to be parked for a transaction that is open.
    Uncommitted,
    /// A line was parked; `occupied` lines have entries now.
    Parked {
        /// The line.
        line: LineAddr,
        /// Place of the line.
        parked: Parked,
        /// Lines that have entries.
        occupied: usize,
    },
    /// A miss was served from here.
    Served,
}

/// Name of a design's victim cache, and the cover points that it has for it.
#[derive(Clone, Copy, Debug)]
pub struct Described<C> {
    /// Name of the victim cache.
    pub name: &'static str,
    /// See [`Event::Uncommitted`].
    pub uncommitted: C,
    /// See [`Parked::Replaced`].
    pub replaced: C,
    /// See [`Parked::Waits`].
    pub waits: C,
    /// See [`Event::Served`].
    pub served: C,
}

impl Event {
    /// Counts it, says which cover points of a design it reaches, and explains it.
    pub fn observe<E>(self, to: &mut Observation<'_, E>, described: Described<E::Cover>)
    where
        E: DesignEvent,
        E::Counters: AsMut<Counters>,
    {
        match self {
            Event::Uncommitted => to.cover(described.uncommitted),
            Event::Parked { line, parked, occupied } => {
                let counters = to.count().as_mut();
                counters.victim_cache_lines += 1;
                counters.victim_cache_max = counters.victim_cache_max.max(occupied as u64);
                counters.victim_cache_full += u64::from(parked == Parked::Waits);
                to.cover_if(parked == Parked::Replaced, described.replaced);
                if parked == Parked::Waits {
                    to.cover(described.waits);
                    to.explain(|| format!("{line} finds the {} full", described.name));
                }
            }
            Event::Served => to.cover(described.served),
        }
    }
}

/// The victim cache, and lines that wait for a place in it.
#[derive(Debug)]
pub struct Victims {
    lines: BTreeMap<LineAddr, Victim>,
    waiting: VecDeque<(LineAddr, Victim)>,
    /// Those of both that wait for a transaction that is open.
    open: Vec<LineAddr>,
    capacity: usize,
    /// Until a transaction from this one on is at home, no line can be dropped.
    first: u64,
}

impl Victims {
    /// An empty one of `capacity` entries.
    pub fn new(capacity: u32) -> Victims {
        let capacity = capacity as usize;
        let (lines, waiting) = (BTreeMap::new(), VecDeque::new());
        Victims { lines, waiting, open: Vec::new(), capacity, first: u64::MAX }
    }

    /// Number of lines that have entries.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns true if no line has an entry.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns true if lines wait for an entry.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The newest content of a line, if it is here.
    fn find(&self, line: LineAddr) -> Option<&Victim> {
        let waiting = || self.waiting.iter().find(|(l, _)| *l == line).map(|(_, v)| v);
        self.lines.get(&line).or_else(waiting)
    }

    /// Takes in a line that has left the LLC, if it waits: for open transactions, or for one with a number above `retired`.
    /// Returns where it was put; `None`: it goes home, because it waits for nothing or against the rules.
    pub fn take_in<D: Design>(
        &mut self,
        port: &mut Port<'_, D>,
        line: LineAddr,
        victim: Victim,
        retired: u64,
        rules: VictimRules,
    ) -> Option<Parked>
    where
        D::Event: From<Event>,
    {
        let waits = victim.open != 0 || victim.newest > retired;
        if !waits || !rules.lines_are_kept {
            return None;
        }
        if victim.open != 0 {
            port.emit(Event::Uncommitted.into());
        }
        if !rules.newer_replaces
            && self.replace(line, |older| Victim { data: older.data, ..victim })
        {
            return Some(Parked::Replaced);
        }
        let parked = self.park(line, victim);
        if parked == Parked::Waits && !rules.overflow_waits {
            self.give_up_newest();
            return None;
        }
        port.emit(Event::Parked { line, parked, occupied: self.lines.len() }.into());
        Some(parked)
    }

    /// Serves a miss, if the line is here; reading it takes `cycles`.
    pub fn fill<D: Design>(&self, port: &mut Port<'_, D>, line: LineAddr, cycles: u32) -> Fill
    where
        D::Event: From<Event>,
    {
        let Some(victim) = self.find(line) else { return Fill::Home };
        port.emit(Event::Served.into());
        Fill::Buffer(victim.data, cycles.into())
    }

    /// Puts the newest content of a line into an entry.
    fn park(&mut self, line: LineAddr, victim: Victim) -> Parked {
        if self.replace(line, |_| victim) {
            return Parked::Replaced;
        }
        self.first = self.first.min(victim.waits_for());
        if victim.open != 0 {
            self.open.push(line);
        }
        if self.lines.len() < self.capacity {
            self.lines.insert(line, victim);
            return Parked::Here;
        }
        self.waiting.push_back((line, victim));
        Parked::Waits
    }

    /// Puts something else in place of what is here of a line. Returns whether there is something.
    fn replace(&mut self, line: LineAddr, by: impl FnOnce(&Victim) -> Victim) -> bool {
        let Some(older) = find_mut(&mut self.lines, &mut self.waiting, line) else { return false };
        let newer = by(older);
        let before = std::mem::replace(older, newer);
        self.first = self.first.min(newer.waits_for());
        match (before.open, newer.open) {
            (0, 1..) => self.open.push(line),
            (1.., 0) => self.open.retain(|&open| open != line),
            _ => {}
        }
        true
    }

    /// The line that came last waits no longer: it goes elsewhere.
    fn give_up_newest(&mut self) {
        if let Some((line, _)) = self.waiting.pop_back() {
            self.open.retain(|&open| open != line);
        }
    }

    /// The open transaction of a thread has committed.
    pub fn committed(&mut self, thread: ThreadId, sequence: u64) {
        let bit = 1 << thread;
        let Victims { lines, waiting, open, first, .. } = self;
        open.retain(|&line| {
            let victim = find_mut(lines, waiting, line).expect("open lines are here");
            if victim.open & bit != 0 {
                victim.open &= !bit;
                victim.newest = victim.newest.max(sequence);
                *first = (*first).min(victim.waits_for());
            }
            victim.open != 0
        });
    }

    /// Every transaction up to this one is at home: lines that waited for no other are dropped, and others
    /// take their places.
    pub fn retired(&mut self, sequence: u64) {
        if sequence < self.first {
            return;
        }
        self.lines.retain(|_, v| v.waits_for() > sequence);
        self.waiting.retain(|(_, v)| v.waits_for() > sequence);
        let all = self.lines.values().chain(self.waiting.iter().map(|(_, v)| v));
        self.first = all.map(Victim::waits_for).min().unwrap_or(u64::MAX);
        while self.lines.len() < self.capacity {
            let Some((line, victim)) = self.waiting.pop_front() else { return };
            self.lines.insert(line, victim);
        }
    }
}

fn find_mut<'a>(
    lines: &'a mut BTreeMap<LineAddr, Victim>,
    waiting: &'a mut VecDeque<(LineAddr, Victim)>,
    line: LineAddr,
) -> Option<&'a mut Victim> {
    lines.get_mut(&line).or_else(|| waiting.iter_mut().find(|(l, _)| *l == line).map(|(_, v)| v))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn victim(open: ThreadSet, newest: u64) -> Victim {
        Victim { data: [newest; 8], open, newest }
    }

    #[test]
    fn a_line_stays_until_all_that_might_have_stored_to_it_are_retired() {
        let mut victims = Victims::new(2);
        assert_eq!(victims.park(LineAddr(1), victim(0b11, 4)), Parked::Here);
        victims.committed(0, 6);
        victims.retired(6);
        assert!(victims.find(LineAddr(1)).is_some(), "thread 1 is open");
        victims.committed(1, 7);
        victims.retired(6);
        assert!(victims.find(LineAddr(1)).is_some(), "its transaction is not at home");
        victims.retired(7);
        assert!(victims.find(LineAddr(1)).is_none());
    }

    #[test]
    fn lines_wait_for_places_and_newer_content_replaces_older() {
        let mut victims = Victims::new(1);
        assert_eq!(victims.park(LineAddr(1), victim(0, 1)), Parked::Here);
        assert_eq!(victims.park(LineAddr(2), victim(0, 2)), Parked::Waits);
        assert_eq!(victims.park(LineAddr(2), victim(0, 3)), Parked::Replaced);
        assert_eq!(victims.find(LineAddr(2)).map(|v| v.data[0]), Some(3));
        assert!(victims.has_waiting());
        victims.retired(1);
        assert!(!victims.has_waiting() && victims.lines.len() == 1);
        assert!(victims.find(LineAddr(2)).is_some());
    }

    proptest! {
        #[test]
        fn looking_only_when_a_line_may_go_drops_what_looking_always_drops(
            steps in prop::collection::vec((0..5_u64, 0..4_u64, 0..8_u16), 1..60),
        ) {
            let (mut seldom, mut always) = (Victims::new(2), Victims::new(2));
            let mut sequence = 0;
            for (line, kind, number) in steps {
                for victims in [&mut seldom, &mut always] {
                    match kind {
                        0 | 1 => {
                            let newest = sequence + u64::from(number / 4);
                            victims.park(LineAddr(line), victim(ThreadSet::from(number % 4), newest));
                        }
                        2 => victims.committed(ThreadId::from(number % 2), sequence + 1),
                        3 if number == 7 => victims.give_up_newest(),
                        _ => victims.retired(sequence),
                    }
                }
                always.first = 0;
                sequence += u64::from(kind == 2);
                for line in 0..5 {
                    let find = |victims: &Victims| {
                        victims.find(LineAddr(line)).map(|v| (v.data, v.open, v.newest))
                    };
                    prop_assert_eq!(find(&seldom), find(&always));
                }
                prop_assert_eq!(seldom.lines.len(), always.lines.len());
                prop_assert_eq!(seldom.waiting.len(), always.waiting.len());
                let all = seldom.lines.iter().chain(seldom.waiting.iter().map(|(l, v)| (l, v)));
                let mut open: Vec<_> = all.filter(|(_, v)| v.open != 0).map(|(l, _)| *l).collect();
                seldom.open.sort_unstable();
                open.sort_unstable();
                prop_assert_eq!(&seldom.open, &open);
            }
        }
    }
}
