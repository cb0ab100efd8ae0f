//! The addresses that flushes of x86-64 name.
//!
//! QEMU makes nothing of a flush, so that it tells no plugin its address, and its registers are in the processor's state only where
//! a block begins and where an access to memory is about to happen. In a block with a flush, the registers are copied there, and the
//! instructions from there to the flush are done here: moves, address arithmetic, additions and the like. A register that some
//! other instruction has changed is not known; a flush by it has no address.
//!
//! Blocks without a flush cost nothing.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use crate::guest::bytes_at;
use crate::registers::Registers;

/// General registers.
const REGISTERS: usize = 16;

/// The number of the stack pointer.
const RSP: usize = 4;

/// An instruction, and the general registers that it changes, a bit for each.
struct Step {
    instruction: Instruction,
    changes: u32,
}

/// The instructions of a block that has a flush.
pub struct Steps(Box<[Step]>);

impl Steps {
    /// Those of a block: each by its address and its bytes.
    pub fn new<'a>(block: impl Iterator<Item = (u64, &'a [u8])>) -> Steps {
        let mut infos = InstructionInfoFactory::new();
        let step = |(address, bytes): (u64, &[u8])| {
            let instruction = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE).decode();
            let used = infos.info(&instruction).used_registers();
            let changed = used.iter().filter(|used| {
                !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::None)
            });
            let bits = changed.filter_map(|used| number_of(used.register())).map(|n| 1 << n);
            Step { instruction, changes: bits.fold(0, |all, bit: u32| all | bit) }
        };
        Steps(block.map(step).collect())
    }
}

/// The registers of a block with a flush, as far as they are known.
#[derive(Default)]
pub struct Operands {
    steps: Option<&'static Steps>,
    registers: [u64; REGISTERS],
    /// The instruction before which they were so.
    at: usize,
    /// The value that this instruction has loaded.
    loaded: Option<u64>,
}

impl Operands {
    /// A block begins that has a flush.
    pub fn begin(&mut self, steps: &'static Steps, registers: Registers) {
        self.steps = Some(steps);
        self.copy(registers, 0);
    }

    fn copy(&mut self, registers: Registers, at: usize) {
        self.registers = std::array::from_fn(|number| registers.operand(number as u8));
        (self.at, self.loaded) = (at, None);
    }

    /// The instruction of this number, from 1 on, has accessed memory; before it, the registers were as they are in the state.
    pub fn accessed(
        &mut self,
        registers: Registers,
        number: u64,
        (address, size): (u64, usize),
        is_store: bool,
    ) {
        let at = (number as usize).saturating_sub(1);
        if at != self.at || self.loaded.is_none() {
            self.copy(registers, at);
        }
        if !is_store && size <= 8 {
            let mut word = [0; 8];
            // SAFETY: the program has just loaded these bytes.
            word[..size].copy_from_slice(unsafe { bytes_at(address, size) });
            self.loaded = Some(u64::from_le_bytes(word));
        }
    }

    /// Returns the address that the flush of this number names, from 1 on.
    pub fn address(&self, number: u64) -> Option<u64> {
        let steps = &self.steps?.0;
        let flush = (number as usize).checked_sub(1)?;
        let mut known = Known { registers: self.registers.map(Some) };
        for at in self.at..flush {
            let step = steps.get(at)?;
            known.execute(step, if at == self.at { self.loaded } else { None });
        }
        known.place(&steps.get(flush)?.instruction, 0)
    }
}

/// Registers whose values are known.
struct Known {
    registers: [Option<u64>; REGISTERS],
}

impl Known {
    /// An instruction is executed; `loaded` is what it has loaded, if that is known.
    fn execute(&mut self, step: &Step, loaded: Option<u64>) {
        let Step { instruction, changes } = step;
        let result = self.result(instruction, loaded);
        let stack = self.registers[RSP];
        for number in (0..REGISTERS).filter(|number| changes >> number & 1 != 0) {
            self.registers[number] = None;
        }
        if changes >> RSP & 1 != 0 && instruction.stack_pointer_increment() != 0 {
            let increment = i64::from(instruction.stack_pointer_increment());
            self.registers[RSP] = stack.map(|stack| stack.wrapping_add_signed(increment));
        }
        if let Some((register, value)) = result {
            self.registers[register] = Some(value);
        }
    }

    /// The register that an instruction sets, and to what; none if it sets none, or that is not known.
    fn result(&self, instruction: &Instruction, loaded: Option<u64>) -> Option<(usize, u64)> {
        if instruction.op_count() == 0 || instruction.op_kind(0) != OpKind::Register {
            return None;
        }
        let to = instruction.op_register(0);
        let operand = |number| self.operand(instruction, number, loaded);
        let both = |of: fn(u64, u64) -> u64| Some(of(operand(0)?, operand(1)?));
        let value = match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => operand(1)?,
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let shift = 64 - 8 * bytes_of(instruction, 1) as u32;
                ((operand(1)? << shift) as i64 >> shift) as u64
            }
            Mnemonic::Pop => loaded?,
            Mnemonic::Lea => self.place(instruction, 1)?,
            Mnemonic::Add => both(u64::wrapping_add)?,
            Mnemonic::Sub => both(u64::wrapping_sub)?,
            Mnemonic::And => both(|a, b| a & b)?,
            Mnemonic::Or => both(|a, b| a | b)?,
            Mnemonic::Xor => both(|a, b| a ^ b).or_else(|| {
                let is_zero =
                    instruction.op_kind(1) == OpKind::Register && instruction.op_register(1) == to;
                is_zero.then_some(0)
            })?,
            Mnemonic::Shl if to.is_gpr64() => both(|a, b| a << (b & 63))?,
            Mnemonic::Shr if to.is_gpr64() => both(|a, b| a >> (b & 63))?,
            Mnemonic::Inc => operand(0)?.wrapping_add(1),
            Mnemonic::Dec => operand(0)?.wrapping_sub(1),
            Mnemonic::Neg => operand(0)?.wrapping_neg(),
            Mnemonic::Not => !operand(0)?,
            _ => return None,
        };
        let number = number_of(to)?;
        if to.is_gpr64() {
            Some((number, value))
        } else if to.is_gpr32() {
            Some((number, value & 0xffff_ffff))
        } else {
            None
        }
    }

    /// The value of an operand, as a number of 64 bits.
    fn operand(&self, instruction: &Instruction, number: u32, loaded: Option<u64>) -> Option<u64> {
        match instruction.op_kind(number) {
            OpKind::Register => self.register(instruction.op_register(number)),
            OpKind::Memory => loaded,
            _ => instruction.try_immediate(number).ok(),
        }
    }

    fn register(&self, register: Register) -> Option<u64> {
        // The second byte of a register is in none of these.
        let is_high = matches!(register, Register::AH | Register::BH | Register::CH | Register::DH);
        let whole = self.registers[number_of(register).filter(|_| !is_high)?]?;
        Some(match register.size() {
            8 => whole,
            size => whole & ((1 << (8 * size)) - 1),
        })
    }

    /// The address of an operand in memory.
    fn place(&self, instruction: &Instruction, number: u32) -> Option<u64> {
        instruction.virtual_address(number, 0, |register, _, _| match register {
            Register::FS | Register::GS => None,
            _ if register.is_segment_register() => Some(0),
            _ => self.register(register),
        })
    }
}

/// Bytes of an operand.
fn bytes_of(instruction: &Instruction, number: u32) -> usize {
    match instruction.op_kind(number) {
        OpKind::Register => instruction.op_register(number).size(),
        _ => instruction.memory_size().size(),
    }
}

/// The number of the general register that one is a part of.
fn number_of(register: Register) -> Option<usize> {
    let whole = register.full_register();
    whole.is_gpr().then(|| whole.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address of a flush behind these instructions, whose registers begin as 1000 times their number.
    fn flushed(instructions: &[&[u8]], at: usize, loaded: Option<u64>) -> Option<u64> {
        let mut address = 0x40_0000;
        let block = instructions.iter().map(|bytes| {
            address += bytes.len() as u64;
            (address - bytes.len() as u64, *bytes)
        });
        let steps = Box::leak(Box::new(Steps::new(block)));
        let registers = std::array::from_fn(|number| 1000 * number as u64);
        let operands = Operands { steps: Some(steps), registers, at, loaded };
        operands.address(instructions.len() as u64)
    }

    const CLWB_RAX: &[u8] = b"\x66\x0f\xae\x30";

    #[test]
    fn addresses_are_those_of_the_operand() {
        assert_eq!(flushed(&[CLWB_RAX], 0, None), Some(0));
        // clflush [rbx+rcx*8+16]; clflushopt [rip+0x10], which is 8 bytes long.
        assert_eq!(flushed(&[b"\x0f\xae\x7c\xcb\x10"], 0, None), Some(3000 + 8 * 1000 + 16));
        assert_eq!(flushed(&[b"\x66\x0f\xae\x3d\x10\0\0\0"], 0, None), Some(0x40_0018));
    }

    #[test]
    fn what_lies_between_is_done() {
        // mov rax,rbx; add rax,64; and rax,-64; clwb [rax]
        let rounded = [&b"\x48\x89\xd8"[..], b"\x48\x83\xc0\x40", b"\x48\x83\xe0\xc0", CLWB_RAX];
        assert_eq!(flushed(&rounded, 0, None), Some((3000 + 64) / 64 * 64));
        // lea rax,[rdx+rsi*2+1]; mov ecx,eax; clwb [rcx]
        let moved = [&b"\x48\x8d\x44\x72\x01"[..], b"\x89\xc1", b"\x66\x0f\xae\x31"];
        assert_eq!(flushed(&moved, 0, None), Some(2000 + 2 * 6000 + 1));
    }

    #[test]
    fn what_was_loaded_is_known() {
        // mov rax,[rbp-8]; clwb [rax]
        let loads = [&b"\x48\x8b\x45\xf8"[..], CLWB_RAX];
        assert_eq!(flushed(&loads, 0, Some(0x7000)), Some(0x7000));
        assert_eq!(flushed(&loads, 0, None), None);
        // pop rax moves the stack pointer, too: pop rax; clwb [rsp]
        let pops = [&b"\x58"[..], b"\x66\x0f\xae\x34\x24"];
        assert_eq!(flushed(&pops, 0, Some(1)), Some(4008));
    }

    #[test]
    fn what_is_not_known_gives_no_address() {
        // imul rax,rbx; clwb [rax]; then by a register that it leaves alone: clwb [rcx]
        assert_eq!(flushed(&[b"\x48\x0f\xaf\xc3", CLWB_RAX], 0, None), None);
        assert_eq!(flushed(&[b"\x48\x0f\xaf\xc3", b"\x66\x0f\xae\x31"], 0, None), Some(1000));
        // mov al,1; clwb [rax]
        assert_eq!(flushed(&[b"\xb0\x01", CLWB_RAX], 0, None), None);
    }
}
