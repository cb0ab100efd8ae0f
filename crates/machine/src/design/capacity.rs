//! Structures that have places for a limited number of entries.
//!
//! A design declares those of its hardware ([`DesignInfo::capacities`]), and says at any time how many places are taken
//! ([`Design::places_taken`]). A crash campaign holds the design to that, as it does to the battery: hardware would have lost the entry
//! that is one too many. The adversary draws programs that fill a structure exactly, or with one entry more or less, and a structure
//! that is exactly full is a state worth reaching.
//!
//! [`DesignInfo::capacities`]: super::DesignInfo::capacities
//! [`Design::places_taken`]: super::Design::places_taken

use super::{DesignContext, Named};

/// A structure with a limited number of places.
#[derive(Clone, Copy, Debug)]
pub struct Capacity {
    /// The state in which every place of an instance is taken.
    pub full: Named,
    /// The places of an instance, and the programs that take them.
    pub room: fn(&DesignContext) -> Room,
}

impl Capacity {
    /// None: to fill a list up with.
    pub const NONE: Capacity = Capacity {
        full: Named { name: "", summary: "" },
        room: |_| Room { places: 0, taken_by: TakenBy::Transaction },
    };
}

/// The places of a structure, in a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Places of one instance.
    pub places: u64,
    /// The part of a program that takes one of them.
    pub taken_by: TakenBy,
}

/// The part of a program that takes a place of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenBy {
    /// Each piece of this many bytes that a transaction stores to: 8 for words, 64 for lines.
    Piece(u64),
    /// Each transaction that stores something.
    Transaction,
}

impl Room {
    /// Places for words that a transaction stores to.
    pub fn of_words(places: u64) -> Room {
        Room { places, taken_by: TakenBy::Piece(8) }
    }

    /// Places for lines that a transaction stores to.
    pub fn of_lines(places: u64) -> Room {
        Room { places, taken_by: TakenBy::Piece(64) }
    }

    /// Places for transactions.
    pub fn of_transactions(places: u64) -> Room {
        Room { places, taken_by: TakenBy::Transaction }
    }
}
