//! The log record register of a thread: where recovery finds its committed transactions (LALEA §III-A).
//!
//! "A CPU core has an 8B LR register that points to the header of the first log record whose transaction's log
//! records have been persisted to PM." It is non-volatile and written as a whole.
//!
//! | bits | content |
//! |---|---|
//! | 0-47 | address of the first header of the newest committed transaction |
//! | 48-63 | committed transactions that are not at home: how many to follow, newest first |

use crate::fields::ADDR_BITS;
use graven_base::memory::{Addr, Field, LineAddr};

const NEWEST: Field = Field::new("newest", ADDR_BITS, 0);
const COUNT: Field = NEWEST.then("committed transactions", 16);

/// Content of the register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lr {
    /// First line of the first header of the newest committed transaction.
    pub newest: LineAddr,
    /// Committed transactions that are not at home.
    pub count: u64,
}

impl Lr {
    /// The register's bits.
    pub fn bits(self) -> u64 {
        NEWEST.put(self.newest.addr().0) | COUNT.put(self.count)
    }

    /// Decodes the bits.
    pub fn parse(bits: u64) -> Lr {
        Lr { newest: Addr(NEWEST.get(bits)).line(), count: COUNT.get(bits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Claim `lalea-cfg-lr-register`: 8 B per core.
    #[test]
    fn the_register_has_eight_bytes() {
        let lr = Lr { newest: LineAddr(0x123_4567_89ab), count: 0xfffe };
        assert_eq!(lr.bits(), 0xfffe_48d1_59e2_6ac0);
        assert_eq!(size_of_val(&lr.bits()), 8);
        assert_eq!(Lr::parse(lr.bits()), lr);
        assert_eq!(Lr::default().bits(), 0, "nothing is committed");
    }
}
