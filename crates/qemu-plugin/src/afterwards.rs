//! Instructions of which something is known only when they are done: QEMU calls a plugin before one is executed, and within a
//! block its operands are then not certainly where registers are. Behind those that are told here they are: QEMU does these by
//! functions of its own, for which it puts registers into the processor's state, or ends a block with them.
//!
//! So QEMU calls a hook at what follows: the next instruction of the block, or the next block, if the program continues there.

use std::ffi::{c_uint, c_void};

use graven_capture::{ACCESS_BYTES_MAX, Flush};

use crate::architecture::of_guest;
use crate::instruction::Kind;
use crate::qemu::ExecutionHook;
use crate::thread::{Thread, some_has_registers, thread};
use crate::{accesses, mappings, persistence};

/// The bits of a hook's datum that are the register, of a flush also its number above the register's. Above them is the
/// instruction's number in its block, and above that its site; or the address behind the instruction.
const REGISTER_BITS: u32 = 8;

/// The bits of an instruction's number in its block.
const NUMBER_BITS: u32 = 16;

/// The bits of a register's number.
const REGISTER_ONLY_BITS: u32 = 5;

/// Bits of an address; above them a program may have a tag.
const ADDRESS_BITS: u32 = 56;

/// A hook of an instruction, and its datum.
pub struct Afterwards {
    hook: ExecutionHook,
    hook_of_last: ExecutionHook,
    register: u8,
    number: u64,
    site: u32,
}

impl Afterwards {
    /// For the one of this number in its block, and of this site, if it is of such a kind.
    pub fn of(kind: Kind, number: u64, site: u32) -> Option<Afterwards> {
        let (hook, hook_of_last, register): (ExecutionHook, ExecutionHook, u8) = match kind {
            Kind::Zeroes(register) => (has_zeroed, zeroes_last, register),
            Kind::ThreadPointer(register) => (has_pointed, points_last, register),
            Kind::Flush(flush, Some(register)) => {
                (has_flushed, flushes_last, (flush as u8) << REGISTER_ONLY_BITS | register)
            }
            _ => return None,
        };
        Some(Afterwards { hook, hook_of_last, register, number, site })
    }

    /// For the next instruction of the block.
    pub fn with_next(self) -> (ExecutionHook, u64) {
        (self.hook, of_instruction(self.site, self.number, self.register.into()))
    }

    /// For the instruction itself, which is the last one of its block; behind it is this address.
    pub fn with_last(self, behind: u64) -> (ExecutionHook, u64) {
        (self.hook_of_last, behind << REGISTER_BITS | u64::from(self.register))
    }
}

/// The datum of a hook for the next instruction.
fn of_instruction(site: u32, number: u64, register: u64) -> u64 {
    (u64::from(site) << NUMBER_BITS | number) << REGISTER_BITS | register
}

/// The number of an instruction in its block, and its site.
fn instruction_of(data: u64) -> (u64, u32) {
    let data = data >> REGISTER_BITS;
    (data & ((1 << NUMBER_BITS) - 1), (data >> NUMBER_BITS) as u32)
}

/// The content of a register, if the places of registers are known.
fn operand(thread: &Thread, data: u64) -> Option<u64> {
    some_has_registers().then(|| thread.registers.operand(data as u8))
}

unsafe extern "C" fn has_zeroed(vcpu: c_uint, data: *mut c_void) {
    zeroed(thread(vcpu), data as u64);
}

unsafe extern "C" fn zeroes_last(vcpu: c_uint, data: *mut c_void) {
    finishes(thread(vcpu), data as u64, zeroed);
}

/// Something is done behind the last instruction of the present block, which this is.
fn finishes(thread: &mut Thread, data: u64, then: fn(&mut Thread, u64)) {
    // The number 0 is of what ends a block.
    let register = data & ((1 << REGISTER_BITS) - 1);
    let datum = of_instruction(thread.call_site(), 0, register);
    thread.finishes_at(data >> REGISTER_BITS, then, datum);
}

unsafe extern "C" fn has_flushed(vcpu: c_uint, data: *mut c_void) {
    flushed(thread(vcpu), data as u64);
}

unsafe extern "C" fn flushes_last(vcpu: c_uint, data: *mut c_void) {
    finishes(thread(vcpu), data as u64, flushed);
}

/// A line was written back.
fn flushed(thread: &mut Thread, data: u64) {
    let number = data >> REGISTER_ONLY_BITS & ((1 << (REGISTER_BITS - REGISTER_ONLY_BITS)) - 1);
    let register = data & ((1 << REGISTER_ONLY_BITS) - 1);
    let address = operand(thread, register).map(|address| address & ((1 << ADDRESS_BITS) - 1));
    let (_, site) = instruction_of(data);
    persistence::flushes(thread, site, Flush::ALL[number as usize], address);
}

/// A block was made zero.
fn zeroed(thread: &mut Thread, data: u64) {
    let Some(address) = operand(thread, data) else { return };
    let ((number, site), bytes) = (instruction_of(data), of_guest().zeroed_bytes);
    let start = address & ((1 << ADDRESS_BITS) - 1) & !(bytes - 1);
    for piece in (start..start + bytes).step_by(ACCESS_BYTES_MAX) {
        accesses::stored(thread, piece, ACCESS_BYTES_MAX, number, site);
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
