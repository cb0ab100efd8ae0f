//! Profile of a design at the boundary, and the operators that it gives.

use std::collections::{BTreeMap, BTreeSet};

use super::{Hook, Instructions, Operator, Region, Site, Which};

/// Facts about the writes of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Writes {
    /// Some wait for others.
    pub wait: bool,
    /// Some wait behind gates.
    pub gate: bool,
    /// Some have a place in the order of writes.
    pub ordered: bool,
    /// The most words of one.
    pub words: u8,
    /// By place of a word, the most bits that it needed.
    pub bits: [u8; 8],
}

/// Record of a design's actions at the boundary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    pub(crate) writes: BTreeMap<Site, Writes>,
    pub(crate) waits: BTreeSet<Hook>,
    pub(crate) stores: bool,
    /// Some of them are transactions'.
    pub(crate) transactions: bool,
    /// The most bits that a tag of a line needed.
    pub(crate) tag_bits: u8,
    pub(crate) instructions: BTreeSet<Instructions>,
    /// The most writes that batteries made.
    pub(crate) saved: usize,
    /// By register, the most bits that it needed.
    pub(crate) registers: Vec<u8>,
    /// The most words that a recovery wrote, by region.
    pub(crate) recovered: [usize; 2],
    /// By place in a line of the log region, the most bits that a word needed when a recovery began.
    pub(crate) log_bits: [u8; 8],
}

/// Widths to which a value of `bits` bits is cut: two bytes, and one bit less than it has.
fn widths(bits: u8) -> impl Iterator<Item = u8> {
    let cuts = BTreeSet::from([16, bits.saturating_sub(1)]);
    cuts.into_iter().filter(move |&cut| cut > 0 && cut < bits)
}

impl Profile {
    /// Adds what another run has shown.
    pub fn add(&mut self, other: &Profile) {
        for (site, seen) in &other.writes {
            let known = self.writes.entry(site.clone()).or_default();
            known.wait |= seen.wait;
            known.gate |= seen.gate;
            known.ordered |= seen.ordered;
            known.words = known.words.max(seen.words);
            known.bits.iter_mut().zip(seen.bits).for_each(|(most, bits)| *most = bits.max(*most));
        }
        self.waits.extend(&other.waits);
        self.instructions.extend(&other.instructions);
        self.stores |= other.stores;
        self.transactions |= other.transactions;
        self.tag_bits = self.tag_bits.max(other.tag_bits);
        self.saved = self.saved.max(other.saved);
        if self.registers.len() < other.registers.len() {
            self.registers.resize(other.registers.len(), 0);
        }
        let pairs = self.registers.iter_mut().zip(&other.registers);
        pairs.for_each(|(most, &bits)| *most = bits.max(*most));
        let pairs = self.recovered.iter_mut().zip(other.recovered);
        pairs.for_each(|(most, words)| *most = words.max(*most));
        let pairs = self.log_bits.iter_mut().zip(other.log_bits);
        pairs.for_each(|(most, bits)| *most = bits.max(*most));
    }

    /// The operators that there is a place for, in a fixed order.
    pub fn operators(&self) -> Vec<Operator> {
        let mut all = Vec::new();
        for (site, seen) in &self.writes {
            self.of_writes(site, seen, &mut all);
        }
        all.extend(self.waits.iter().map(|&hook| Operator::NoWait(hook)));
        if self.stores {
            all.extend([0, 3, 7].map(Operator::StaleByte));
        }
        if self.transactions {
            all.extend([8, 16].map(Operator::NumberBits));
        }
        all.extend(widths(self.tag_bits).map(Operator::TagBits));
        for &what in &self.instructions {
            let which = [Which::First, Which::Last, Which::All];
            all.extend(which.map(|which| Operator::WithoutInstruction(what, which)));
        }
        if self.saved > 0 {
            all.extend([Which::First, Which::Last, Which::Second].map(Operator::NotSaved));
        }
        for (register, &bits) in (0..).zip(self.registers.iter().take(4)) {
            all.extend(widths(bits).map(|kept| Operator::RegisterBits(register, kept)));
        }
        self.of_recovery(&mut all);
        all
    }

    fn of_writes(&self, site: &Site, seen: &Writes, all: &mut Vec<Operator>) {
        if seen.wait {
            all.extend([Operator::Unordered(site.clone()), Operator::OneTooEarly(site.clone())]);
        }
        if seen.gate {
            all.push(Operator::Ungated(site.clone()));
        }
        if seen.ordered {
            all.push(Operator::Exchanged(site.clone()));
        }
        if let Site::Reported(name) = site {
            all.push(Operator::ReportedEarly(name.clone()));
        }
        // What leaves the caches is the program's data, not the design's.
        if *site == Site::Eviction {
            return;
        }
        if seen.words > 1 {
            let which = [Which::First, Which::Last];
            all.extend(which.map(|which| Operator::WithoutWord(site.clone(), which)));
        }
        for (word, bits) in (0..).zip(seen.bits) {
            all.extend(widths(bits).map(|kept| Operator::Truncated(site.clone(), word, kept)));
        }
    }

    fn of_recovery(&self, all: &mut Vec<Operator>) {
        for (region, words) in [Region::Home, Region::Log].into_iter().zip(self.recovered) {
            if words > 0 {
                let which = [Which::First, Which::Last, Which::Second, Which::All];
                all.extend(which.map(|which| Operator::RecoverySkips(region, which)));
            }
        }
        if self.recovered[0] > 1 {
            all.push(Operator::RecoveryReversed);
        }
        if self.recovered.iter().all(|&words| words > 0) {
            all.push(Operator::RecoveryLogFirst);
        }
        for (word, bits) in (0..).zip(self.log_bits) {
            all.extend(widths(bits).map(|kept| Operator::RecoveryReads(word, kept)));
        }
        if self.log_bits != [0; 8] {
            all.push(Operator::RecoveryReadsHalf);
        }
    }
}
