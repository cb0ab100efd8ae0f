//! Instructions of which something is known only when they are done: QEMU calls a plugin before one is executed, and within a
//! block its operands are then not certainly where registers are. Behind those that are told here they are: QEMU does these by
//! functions of its own, for which it puts registers into the processor's state, or ends a block with them.
//!
//! So QEMU calls a hook at what follows: the next instruction of the block, or the next block, if the program continues there.

use std::ffi::{c_uint, c_void};

use graven_capture::ACCESS_BYTES_MAX;

use crate::architecture::of_guest;
use crate::instruction::Kind;
use crate::qemu::ExecutionHook;
use crate::thread::{Thread, some_has_registers, thread};
use crate::{accesses, mappings};

/// The bits of a hook's datum that are the register; above them is the instruction's number, or the address behind it.
const REGISTER_BITS: u32 = 8;

/// Bits of an address; above them a program may have a tag.
const ADDRESS_BITS: u32 = 56;

/// A hook of an instruction, and its datum.
pub struct Afterwards {
    hook: ExecutionHook,
    hook_of_last: ExecutionHook,
    register: u8,
    number: u64,
}

impl Afterwards {
    /// For the one of this number in its block, if it is of such a kind.
    pub fn of(kind: Kind, number: u64) -> Option<Afterwards> {
        let (hook, hook_of_last, register): (ExecutionHook, ExecutionHook, u8) = match kind {
            Kind::Zeroes(register) => (has_zeroed, zeroes_last, register),
            Kind::ThreadPointer(register) => (has_pointed, points_last, register),
            _ => return None,
        };
        Some(Afterwards { hook, hook_of_last, register, number })
    }

    /// For the next instruction of the block.
    pub fn with_next(self) -> (ExecutionHook, u64) {
        (self.hook, self.number << REGISTER_BITS | u64::from(self.register))
    }

    /// For the instruction itself, which is the last one of its block; behind it is this address.
    pub fn with_last(self, behind: u64) -> (ExecutionHook, u64) {
        (self.hook_of_last, behind << REGISTER_BITS | u64::from(self.register))
    }
}

/// The content of a register, if the places of registers are known.
fn operand(thread: &Thread, data: u64) -> Option<u64> {
    some_has_registers().then(|| thread.registers.operand(data as u8))
}

unsafe extern "C" fn has_zeroed(vcpu: c_uint, data: *mut c_void) {
    zeroed(thread(vcpu), data as u64);
}

unsafe extern "C" fn zeroes_last(vcpu: c_uint, data: *mut c_void) {
    // The number 0 is of what ends a block.
    let register = data as u64 & ((1 << REGISTER_BITS) - 1);
    thread(vcpu).finishes_at(data as u64 >> REGISTER_BITS, zeroed, register);
}

/// A block was made zero.
fn zeroed(thread: &mut Thread, data: u64) {
    let Some(address) = operand(thread, data) else { return };
    let (number, bytes) = (data >> REGISTER_BITS, of_guest().zeroed_bytes);
    let start = address & ((1 << ADDRESS_BITS) - 1) & !(bytes - 1);
    for piece in (start..start + bytes).step_by(ACCESS_BYTES_MAX) {
        accesses::stored(thread, piece, ACCESS_BYTES_MAX, number);
    }
}

unsafe extern "C" fn has_pointed(vcpu: c_uint, data: *mut c_void) {
    points(thread(vcpu), data as u64);
}

unsafe extern "C" fn points_last(vcpu: c_uint, data: *mut c_void) {
    thread(vcpu).finishes_at(data as u64 >> REGISTER_BITS, points, data as u64);
}

/// The thread's own variables are somewhere else.
fn points(thread: &mut Thread, data: u64) {
    if let Some(address) = operand(thread, data) {
        mappings::thread_pointer(thread, address);
    }
}
