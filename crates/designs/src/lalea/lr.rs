//! The log record register of a thread: where recovery finds its committed transactions (LALEA §III-A).
//!
//! "A CPU core has an 8B LR register that points to the header of the first log record whose transaction's log
//! records have been persisted to PM." It is non-volatile and written as a whole.
//!
//! | bits | content |
//! |---|---|
//! | 0-47 | address of the first header of the newest committed transaction |
//! | 48-63 | committed transactions that are not at home: how many to follow, newest first |

use graven_base::memory::{Addr, LineAddr};

const ADDR_MASK: u64 = (1 << COUNT_SHIFT) - 1;
const COUNT_SHIFT: u32 = 48;

/// What the register says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lr {
    /// First line of the first header of the newest committed transaction.
    pub newest: LineAddr,
    /// Committed transactions that are not at home.
    pub count: u16,
}

impl Lr {
    /// The register's bits.
    pub fn bits(self) -> u64 {
        assert!(self.newest.addr().0 <= ADDR_MASK, "addresses have 48 bits");
        self.newest.addr().0 | u64::from(self.count) << COUNT_SHIFT
    }

    /// What the bits say.
    pub fn parse(bits: u64) -> Lr {
        Lr { newest: Addr(bits & ADDR_MASK).line(), count: (bits >> COUNT_SHIFT) as u16 }
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
