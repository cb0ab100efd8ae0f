//! QEMU's side: `qemu-plugin.h`, version 1 (QEMU 4.2 to 8.x). The functions are those of the program that loads the plugin.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The part of QEMU's information for a plugin that is used.
#[repr(C)]
pub struct Info {
    /// For which architecture its programs are.
    pub target_name: *const c_char,
}

/// A block that is being translated.
#[repr(C)]
pub struct Block {
    _private: [u8; 0],
}

/// An instruction of it.
#[repr(C)]
pub struct Instruction {
    _private: [u8; 0],
}

/// `qemu_plugin_mem_rw`: both. (In 7.2 the filter is off by one.)
pub const READS_AND_WRITES: c_int = 3;
/// `qemu_plugin_cb_flags`: the callback leaves registers alone.
pub const NO_REGISTERS: c_int = 0;

pub type VcpuHook = extern "C" fn(id: u64, vcpu: c_uint);
pub type EndHook = extern "C" fn(id: u64, data: *mut c_void);
pub type TranslationHook = extern "C" fn(id: u64, block: *mut Block);
pub type ExecutionHook = unsafe extern "C" fn(vcpu: c_uint, data: *mut c_void);
pub type AccessHook = extern "C" fn(vcpu: c_uint, info: u32, address: u64, data: *mut c_void);
pub type CallHook = extern "C" fn(
    id: u64,
    vcpu: c_uint,
    number: i64,
    a1: u64,
    a2: u64,
    a3: u64,
    a4: u64,
    a5: u64,
    a6: u64,
    a7: u64,
    a8: u64,
);
pub type ReturnHook = extern "C" fn(id: u64, vcpu: c_uint, number: i64, result: i64);

/// Tells whether an access is a load and a store at the same time, as that of an atomic instruction is where several threads may
/// execute: bits 16 and 17 of what QEMU hands over are its `qemu_plugin_mem_rw`.
#[inline]
pub fn is_load_and_store(info: u32) -> bool {
    info >> 16 & 3 == READS_AND_WRITES as u32
}

unsafe extern "C" {
    pub fn qemu_plugin_register_vcpu_init_cb(id: u64, hook: VcpuHook);
    pub fn qemu_plugin_register_vcpu_exit_cb(id: u64, hook: VcpuHook);
    pub fn qemu_plugin_register_atexit_cb(id: u64, hook: EndHook, data: *mut c_void);
    pub fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, hook: TranslationHook);
    pub fn qemu_plugin_register_vcpu_syscall_cb(id: u64, hook: CallHook);
    pub fn qemu_plugin_register_vcpu_syscall_ret_cb(id: u64, hook: ReturnHook);
    pub fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        hook: ExecutionHook,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        hook: ExecutionHook,
        flags: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        hook: AccessHook,
        flags: c_int,
        kinds: c_int,
        data: *mut c_void,
    );
    pub fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub fn qemu_plugin_tb_vaddr(block: *const Block) -> u64;
    pub fn qemu_plugin_tb_get_insn(block: *const Block, index: usize) -> *mut Instruction;
    pub fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub fn qemu_plugin_insn_data(instruction: *const Instruction) -> *const u8;
    pub fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
    pub fn qemu_plugin_mem_is_store(info: u32) -> bool;
}
