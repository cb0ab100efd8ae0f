//! The second line of a header: where the log entries of a record lie, and which record is next (LALEA §III-A,
//! Fig. 2b).
//!
//! | word | bits | content |
//! |---|---|---|
//! | 0-6 | 0-47 | address of an entry's block; 0: the record has no such entry |
//! | 7 | 0-47 | `next_ptr`: first line of another header; 0: there is none |

use crate::fields::ADDR_BITS;
use graven_base::memory::{Addr, Field, LineAddr, LineData};

/// Log entries of a record.
pub const ENTRIES: usize = 7;

const LINE: Field = Field::new("address of a block", ADDR_BITS, 0);

/// Content of the line. Line 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Lines of the log entries.
    pub entries: [LineAddr; ENTRIES],
    /// `next_ptr`; where it leads is the host's.
    pub next: LineAddr,
}

impl Links {
    /// The line's words.
    pub fn line(&self) -> LineData {
        let mut words = [0; ENTRIES + 1];
        for (word, entry) in words.iter_mut().zip(&self.entries) {
            *word = word_of(*entry);
        }
        words[ENTRIES] = word_of(self.next);
        words
    }

    /// Decodes a line.
    pub fn parse(line: LineData) -> Links {
        let entries = std::array::from_fn(|i| line_at(line[i]));
        Links { entries, next: line_at(line[ENTRIES]) }
    }
}

/// The word that has a line's address in its low 48 bits.
pub fn word_of(line: LineAddr) -> u64 {
    LINE.put(line.addr().0)
}

/// The line that the low 48 bits of a word have the address of.
pub fn line_at(word: u64) -> LineAddr {
    Addr(LINE.get(word)).line()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim `lalea-lalea-header`: with a line of home addresses and `valid_cnt`, 128 B.
    #[test]
    fn every_bit_lies_where_the_table_says() {
        let entries = std::array::from_fn(|i| LineAddr(100 + i as u64));
        let links = Links { entries, next: LineAddr(7) };
        let line = links.line();
        assert_eq!((line[0], line[6], line[7]), (100 * 64, 106 * 64, 7 * 64));
        assert_eq!(Links::parse(line), links);
        assert_eq!(2 * size_of_val(&line), 128);
    }
}
