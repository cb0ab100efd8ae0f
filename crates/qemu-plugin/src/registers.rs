//! The guest's registers.
//!
//! QEMU 7.2 shows them to no plugin. But where a translated block calls a plugin, the host's register that QEMU reserves for
//! it points to the state of the guest's processor (`TCG_AREG0`), which begins with the general registers; at the start of a
//! block they are all there. That this is so is tested with the arguments of the first system call; if it is not,
//! no function is followed, and the caller is told.

use crate::setup::Argument;

/// The state of a guest's processor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Registers(*const u64);

impl Registers {
    /// Not known yet.
    pub const NONE: Registers = Registers(std::ptr::null());

    /// Where a block has found them.
    pub fn at(state: *const u64) -> Registers {
        Registers(state)
    }

    fn number(self, number: usize) -> u64 {
        // SAFETY: a processor's state lives as long as its thread, which asks.
        unsafe { self.0.add(number).read_volatile() }
    }

    /// QEMU wants its thread out of translated code, and may wait for that: the word before the state is its counter of
    /// instructions, whose upper half is then set. Up to 12 bytes that align the state may lie between, which are zero.
    pub fn must_go_on(self) -> bool {
        // SAFETY: what is before the state is of the same processor.
        self != Registers::NONE
            && (1..=2).any(|before| unsafe { self.0.sub(before).read_volatile() } != 0)
    }

    /// What a function returns.
    pub fn result(self) -> u64 {
        self.number(0)
    }

    /// The stack pointer.
    #[inline]
    pub fn stack(self) -> u64 {
        self.number(4)
    }

    /// An argument of a function.
    pub fn argument(self, which: Argument) -> u64 {
        self.number(match which {
            Argument::First => 7,
            Argument::Second => 6,
        })
    }

    /// Whether the first arguments of a system call are where they should be.
    pub fn have(self, [first, second, third]: [u64; 3]) -> bool {
        self != Registers::NONE
            && self.number(7) == first
            && self.number(6) == second
            && self.number(2) == third
    }
}
