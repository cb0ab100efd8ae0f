//! Gates: what a design opens, and writes wait behind.
//!
//! The machine's one order of writes lets a write wait for a prefix of all ordered writes. A gate is for the rest: its design opens it
//! when it sees fit, mostly when it is told that some of its writes are durable, and so builds any partial order. A write may wait behind
//! several gates; those are joined to one that opens with the last of them.

use rustc_hash::FxHashMap;

/// Numbers of gates, in the order in which they were made; 0: none.
pub type GateNumber = u64;

/// A gate that is closed.
#[derive(Clone, Debug, Default)]
struct Closed {
    /// Closed gates that this one joins; 0: the design opens it.
    joins: usize,
    /// Gates that join this one.
    joined_by: Vec<GateNumber>,
}

/// All gates of a machine.
#[derive(Clone, Debug, Default)]
pub struct Gates {
    last: GateNumber,
    closed: FxHashMap<GateNumber, Closed>,
    /// Gates that have been opened.
    openings: u64,
}

impl Gates {
    /// A gate that is closed until it is opened.
    pub fn make(&mut self) -> GateNumber {
        self.last += 1;
        self.closed.insert(self.last, Closed::default());
        self.last
    }

    /// A gate that is open when all of these are; none if they are open now.
    pub fn join(&mut self, gates: impl IntoIterator<Item = GateNumber>) -> GateNumber {
        let mut closed: Vec<GateNumber> =
            gates.into_iter().filter(|&gate| !self.is_open(gate)).collect();
        closed.sort_unstable();
        closed.dedup();
        if closed.len() < 2 {
            return closed.pop().unwrap_or(0);
        }
        let joins = closed.len();
        self.last += 1;
        for gate in closed {
            let joined_by = &mut self.closed.get_mut(&gate).expect("it is closed").joined_by;
            joined_by.push(self.last);
        }
        self.closed.insert(self.last, Closed { joins, joined_by: Vec::new() });
        self.last
    }

    /// Opens a gate, and those that it was the last for.
    ///
    /// # Panics
    /// The gate is open, or opens with others.
    pub fn open(&mut self, gate: GateNumber) {
        let closed = self.closed.remove(&gate);
        let closed =
            closed.unwrap_or_else(|| panic!("gate {gate} is to be opened, and is not closed"));
        assert!(closed.joins == 0, "gate {gate} joins others, and opens with them");
        let mut opened = vec![closed];
        while let Some(Closed { joined_by, .. }) = opened.pop() {
            self.openings += 1;
            for other in joined_by {
                let joint = self.closed.get_mut(&other).expect("it waits for this one");
                joint.joins -= 1;
                if joint.joins == 0 {
                    opened.extend(self.closed.remove(&other));
                }
            }
        }
    }

    /// Returns true if a gate is open, or there is none.
    #[inline]
    pub fn is_open(&self, gate: GateNumber) -> bool {
        gate == 0 || !self.closed.contains_key(&gate)
    }

    /// Gates that have been opened so far.
    #[inline]
    pub fn openings(&self) -> u64 {
        self.openings
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_joint_gate_opens_with_the_last_of_those_that_it_joins() {
        let mut gates = Gates::default();
        let [a, b, c] = [gates.make(), gates.make(), gates.make()];
        let two = gates.join([a, b, a]);
        let all = gates.join([two, c]);
        assert_eq!(gates.join([a]), a, "one gate needs no other");
        gates.open(a);
        assert_eq!([a, b, two, all].map(|gate| gates.is_open(gate)), [true, false, false, false]);
        gates.open(c);
        assert!(!gates.is_open(all));
        gates.open(b);
        assert!(gates.is_open(two) && gates.is_open(all));
        assert_eq!(gates.join([a, b, c, two, all]), 0, "nothing is left to wait for");
        assert_eq!(gates.openings(), 5);
        assert!(gates.closed.is_empty());
    }

    #[test]
    #[should_panic(expected = "is not closed")]
    fn a_gate_is_opened_once() {
        let mut gates = Gates::default();
        let gate = gates.make();
        gates.open(gate);
        gates.open(gate);
    }

    proptest! {
        /// Joints are open when all simple gates that they come down to are.
        #[test]
        fn joints_are_what_sets_of_gates_are(
            steps in prop::collection::vec((0..3u8, any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..60),
        ) {
            let mut gates = Gates::default();
            let mut simple: Vec<GateNumber> = Vec::new();
            let mut opened = BTreeSet::new();
            // Each gate, and the simple ones that it waits for.
            let mut known: Vec<(GateNumber, BTreeSet<GateNumber>)> = Vec::new();
            for (what, first, second) in steps {
                let closed: Vec<_> =
                    simple.iter().copied().filter(|gate| !opened.contains(gate)).collect();
                match what {
                    1 if !known.is_empty() => {
                        let (a, b) = (first.get(&known).clone(), second.get(&known).clone());
                        let joint = gates.join([a.0, b.0]);
                        known.push((joint, a.1.union(&b.1).copied().collect()));
                    }
                    2 if !closed.is_empty() => {
                        let gate = *first.get(&closed);
                        gates.open(gate);
                        opened.insert(gate);
                    }
                    _ => {
                        let gate = gates.make();
                        simple.push(gate);
                        known.push((gate, BTreeSet::from([gate])));
                    }
                }
                for (gate, of) in &known {
                    prop_assert_eq!(gates.is_open(*gate), of.is_subset(&opened));
                }
            }
        }
    }
}
