//! Linked lists of the slots of a table, by index: a slot leaves its list from anywhere, and nothing moves.

/// Stands for no slot.
pub const NONE: u32 = u32::MAX;

/// The neighbours of a slot in its list; [`NONE`] at an end.
#[derive(Clone, Copy, Debug)]
pub struct Links {
    /// The slot before it.
    pub older: u32,
    /// The slot behind it.
    pub newer: u32,
}

impl Links {
    /// Those of a slot that is in no list.
    pub const ALONE: Links = Links { older: NONE, newer: NONE };
}

/// The ends of a list; [`NONE`] if it is empty. Its slots keep [`Links`] in a table, which `links` finds in an entry.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// The first slot.
    pub oldest: u32,
    /// The last slot.
    pub newest: u32,
}

impl List {
    /// A list without slots.
    pub const EMPTY: List = List { oldest: NONE, newest: NONE };

    /// Appends a slot, which is in no list.
    #[inline(always)]
    pub fn append<S>(&mut self, table: &mut [S], links: fn(&mut S) -> &mut Links, slot: u32) {
        let older = std::mem::replace(&mut self.newest, slot);
        *links(&mut table[slot as usize]) = Links { older, newer: NONE };
        match older {
            NONE => self.oldest = slot,
            older => links(&mut table[older as usize]).newer = slot,
        }
    }

    /// Inserts a slot, which is in no list, behind `older`; first if that is [`NONE`].
    #[inline(always)]
    pub fn insert<S>(
        &mut self,
        table: &mut [S],
        links: fn(&mut S) -> &mut Links,
        slot: u32,
        older: u32,
    ) {
        let newer = match older {
            NONE => std::mem::replace(&mut self.oldest, slot),
            older => std::mem::replace(&mut links(&mut table[older as usize]).newer, slot),
        };
        match newer {
            NONE => self.newest = slot,
            newer => links(&mut table[newer as usize]).older = slot,
        }
        *links(&mut table[slot as usize]) = Links { older, newer };
    }

    /// Removes a slot of this list.
    #[inline(always)]
    pub fn remove<S>(&mut self, table: &mut [S], links: fn(&mut S) -> &mut Links, slot: u32) {
        let Links { older, newer } = *links(&mut table[slot as usize]);
        match older {
            NONE => self.oldest = newer,
            older => links(&mut table[older as usize]).newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => links(&mut table[newer as usize]).older = older,
        }
    }
}
