//! The guest's registers.
//!
//! QEMU 7.2 shows them to no plugin. But where a translated block calls a plugin, the host's register that QEMU reserves for
//! it points to the state of the guest's processor (`TCG_AREG0`), which has the general registers at its beginning; at the start of
//! a block they are all there. That this is so is tested with the arguments of the first system call; if it is not,
//! no function is followed, and the caller is told.

use crate::architecture::{Layout, of_guest};
use crate::guest::read_word;
use crate::setup::Argument;

/// The bits of an address that a program's code is at; those above may have a signature of it.
const ADDRESS: u64 = (1 << 48) - 1;

/// The state of a guest's processor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Registers(*const u64);

impl Registers {
    /// Not known yet.
    pub const NONE: Registers = Registers(std::ptr::null());

    /// The registers of a block's processor.
    pub fn at(state: *const u64) -> Registers {
        Registers(state)
    }

    /// The one of this number in instructions.
    fn number(self, number: usize) -> u64 {
        // SAFETY: a processor's state lives as long as its thread, which asks.
        unsafe { self.0.add(layout().first + number).read_volatile() }
    }

    /// The content of a register as an instruction's operand.
    pub fn operand(self, number: u8) -> u64 {
        let number = number.into();
        if layout().zero == Some(number) { 0 } else { self.number(number) }
    }

    /// QEMU wants its thread out of translated code, and may wait for that: the word before the state is its counter of
    /// instructions, whose upper half is then set. Up to 12 bytes that align the state may lie between, which are zero.
    pub fn must_go_on(self) -> bool {
        // SAFETY: what is before the state is of the same processor.
        self != Registers::NONE
            && (1..=2).any(|before| unsafe { self.0.sub(before).read_volatile() } != 0)
    }

    /// The result of a function.
    pub fn result(self) -> u64 {
        self.number(layout().result)
    }

    /// The stack pointer.
    pub fn stack(self) -> u64 {
        self.number(layout().stack)
    }

    /// An argument of a function.
    pub fn argument(self, which: Argument) -> u64 {
        self.number(match which {
            Argument::First => layout().arguments[0],
            Argument::Second => layout().arguments[1],
        })
    }

    /// The address at which the program continues when the function returns that it has just entered.
    pub fn return_address(self) -> u64 {
        match layout().link {
            Some(link) => self.number(link) & ADDRESS,
            // SAFETY: its call has just put the address there.
            None => unsafe { read_word(self.stack()) },
        }
    }

    /// The stack pointer when a function has returned, of what it was when it was entered.
    pub fn stack_returned(self, entered: u64) -> u64 {
        if layout().link.is_some() { entered } else { entered + 8 }
    }

    /// A function has not returned as long as the stack pointer is not above this, of what it was when it was entered.
    pub fn looks_above(self, entered: u64) -> u64 {
        entered - u64::from(layout().link.is_some())
    }

    /// The address to which a function returns that has taken nothing of the stack yet, or has given all of it back; none if its
    /// call has pushed the address.
    pub fn link(self) -> Option<u64> {
        layout().link.map(|link| self.number(link) & ADDRESS)
    }

    /// Tells whether number and arguments of a system call are in their registers.
    pub fn have(self, number: i64, arguments: &[u64]) -> bool {
        let Layout { call_arguments, call_number, .. } = layout();
        self != Registers::NONE
            && call_arguments.iter().zip(arguments).all(|(&at, &is)| self.number(at) == is)
            && call_number.is_none_or(|at| self.number(at) == number as u64)
    }
}

fn layout() -> &'static Layout {
    &of_guest().registers
}
