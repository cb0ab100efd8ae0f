//! The differences between programs of one architecture and of another: instructions, registers, how functions are called,
//! numbers of system calls, and sizes of what the kernel writes. All else of this plugin is the same for each.
//!
//! QEMU says for which it was built when it loads the plugin, and runs programs of no other.

mod aarch64;
mod x86_64;

use std::sync::OnceLock;

use crate::calls::Call;
use crate::flow::Reading;
use crate::instruction::{Ending, Kind};

pub use aarch64::AARCH64;
pub use x86_64::X86_64;

/// One that programs may be for.
pub struct Architecture {
    /// The name by which QEMU knows it.
    name: &'static str,
    /// The name by which executables know it.
    pub machine: object::Architecture,
    /// Looks at the bytes of an instruction.
    pub kind: fn(&[u8]) -> Kind,
    /// Looks at the bytes of a block's last instruction: how the block ends.
    pub ending: fn(&[u8]) -> Ending,
    /// Atomic instructions order stores and flushes, as a fence does.
    pub atomics_fence: bool,
    /// Reads the bytes of a block's next instruction for which load an address comes from, as far as that is followed.
    pub follow: fn(&mut Reading, &[u8]),
    /// The places of registers in the processor's state.
    pub registers: Layout,
    /// The system call of a number.
    call: fn(usize) -> Option<Call>,
    /// The argument of `clone` that says where the kernel tells a thread's end.
    pub clone_end: usize,
    /// Bytes of what the kernel writes for `stat`.
    pub stat_bytes: u64,
    /// Bytes of what it writes for an event of `epoll_wait`.
    pub epoll_bytes: u64,
    /// Bytes that one instruction makes zero ([`Kind::Zeroes`]); none has such.
    pub zeroed_bytes: u64,
}

/// The places of registers in the state of a processor. A register is known by its number in instructions.
pub struct Layout {
    /// Words of the state before register 0.
    pub first: usize,
    /// Those of a function's first two arguments.
    pub arguments: [usize; 2],
    /// The one with a function's result.
    pub result: usize,
    /// The stack pointer.
    pub stack: usize,
    /// The one with the address to which a function returns; without, its call has pushed that.
    pub link: Option<usize>,
    /// Those of a system call's arguments, from the first on, by which it is tested that this is all so.
    pub call_arguments: &'static [usize],
    /// The one with its number, if it is looked at.
    pub call_number: Option<usize>,
    /// One that is always zero.
    pub zero: Option<usize>,
}

impl Layout {
    /// The word of the state that the stack pointer is.
    pub const fn stack_at(&self) -> usize {
        self.first + self.stack
    }
}

static OF_GUEST: OnceLock<&Architecture> = OnceLock::new();

/// Programs are for this one, by QEMU's name of it; returns whether it is known.
pub fn begin(name: &str) -> bool {
    let known = [&X86_64, &AARCH64].into_iter().find(|known| known.name == name);
    known.is_some_and(|known| OF_GUEST.set(known).is_ok())
}

/// That of the program.
pub fn of_guest() -> &'static Architecture {
    OF_GUEST.get().expect("QEMU calls a plugin after it was installed")
}

impl Architecture {
    /// Returns the system call of a number, if it is known.
    pub fn call(&self, number: i64) -> Option<Call> {
        (self.call)(usize::try_from(number).ok()?)
    }
}
