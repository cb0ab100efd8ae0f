//! The lines of the on-PM buffer that wait to be spilled: per bank, from the least to the most recently written one.

use graven_base::bits::ones;
use graven_base::slots::{Links, List, NONE};

/// Slots of the buffer, in a list for each bank.
#[derive(Clone, Debug)]
pub struct WaitingLines {
    slots: Vec<Slot>,
    banks: Vec<List>,
    /// Banks for which lines wait, a bit for each.
    waited_for: u64,
}

/// A slot, and its neighbours in the list of its bank.
#[derive(Clone, Copy, Debug)]
struct Slot {
    bank: u32,
    links: Links,
    last_write: u64,
}

fn links(slot: &mut Slot) -> &mut Links {
    &mut slot.links
}

impl WaitingLines {
    /// Makes empty lists of `slots` slots, before `banks` banks.
    pub fn new(slots: usize, banks: usize) -> WaitingLines {
        WaitingLines {
            slots: vec![Slot { bank: 0, links: Links::ALONE, last_write: 0 }; slots],
            banks: vec![List::EMPTY; banks],
            waited_for: 0,
        }
    }

    /// The least recently written line of some banks, of which each has one; `None` if there is no bank.
    #[inline]
    pub fn oldest(&self, banks: u64) -> Option<u32> {
        let mut oldest = (u64::MAX, NONE);
        for bank in ones(banks) {
            let slot = self.banks[bank as usize].oldest;
            let last_write = self.slots[slot as usize].last_write;
            if last_write < oldest.0 {
                oldest = (last_write, slot);
            }
        }
        (oldest.1 != NONE).then_some(oldest.1)
    }

    /// Banks for which lines wait, a bit for each.
    #[inline]
    pub fn waited_for(&self) -> u64 {
        self.waited_for
    }

    /// A line waits from now on for its bank.
    pub fn add(&mut self, slot: u32, bank: u32, last_write: u64) {
        let mut older = self.banks[bank as usize].newest;
        while older != NONE && self.slots[older as usize].last_write > last_write {
            older = self.slots[older as usize].links.older;
        }
        let of_slot = &mut self.slots[slot as usize];
        (of_slot.bank, of_slot.last_write) = (bank, last_write);
        self.banks[bank as usize].insert(&mut self.slots, links, slot, older);
        self.waited_for |= 1 << bank;
    }

    /// A line waits no longer.
    pub fn remove(&mut self, slot: u32) {
        let bank = self.slots[slot as usize].bank;
        self.banks[bank as usize].remove(&mut self.slots, links, slot);
        self.waited_for &= !(u64::from(self.banks[bank as usize].oldest == NONE) << bank);
    }

    /// A line that waits has been written last of all.
    #[inline]
    pub fn written(&mut self, slot: u32, last_write: u64) {
        let of_slot = &mut self.slots[slot as usize];
        of_slot.last_write = last_write;
        let bank = of_slot.bank;
        if self.banks[bank as usize].newest != slot {
            self.remove(slot);
            self.add(slot, bank, last_write);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SLOTS: usize = 6;
    const BANKS: usize = 2;

    proptest! {
        #[test]
        fn each_bank_gives_its_least_recently_written_line(
            steps in prop::collection::vec((0..3u8, 0..SLOTS as u32, 0..BANKS as u32), 0..60),
        ) {
            let mut waiting = WaitingLines::new(SLOTS, BANKS);
            // Of each slot its bank and its last write, and whether it waits.
            let mut plain = [(0, 0, false); SLOTS];
            for (now, (what, slot, bank)) in (1..).zip(steps) {
                let (of, last_write, waits) = &mut plain[slot as usize];
                match (what, *waits) {
                    // It waits again, as it was written last, as a line does whose spill has ended.
                    (0, false) if *last_write > 0 => waiting.add(slot, *of, *last_write),
                    (_, false) => {
                        (*of, *last_write) = (bank, now);
                        waiting.add(slot, bank, now);
                    }
                    (1, true) => waiting.remove(slot),
                    (_, true) => {
                        *last_write = now;
                        waiting.written(slot, now);
                    }
                }
                *waits = !(*waits && what == 1);
                let waits = |bank: u32| plain.iter().any(|&(of, _, waits)| waits && of == bank);
                let waited_for = (0..BANKS as u32).fold(0, |set, bank| set | u64::from(waits(bank)) << bank);
                prop_assert_eq!(waiting.waited_for(), waited_for);
                for banks in (0..1 << BANKS).filter(|banks| banks & !waited_for == 0) {
                    let all = (0..).zip(plain).filter(|&(_, (of, _, waits))| waits && banks >> of & 1 == 1);
                    let oldest = all.min_by_key(|&(_, (_, last_write, _))| last_write);
                    prop_assert_eq!(waiting.oldest(banks), oldest.map(|(slot, _)| slot));
                }
            }
        }
    }
}
