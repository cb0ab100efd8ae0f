//! The load from which an address comes: how values go through the registers of a block of x86-64 code.
//!
//! A block is read once, when QEMU translates it: of each access, whether its address comes from a load within the block or from
//! what registers hold when the block begins; of each register that the block changes, the same of what it holds behind it. So
//! executing a block costs as much as it changes registers, and an access as much as its address has registers.
//!
//! General and vector registers are followed, each as a whole: a part that is written adds to what the rest comes from. The stack
//! pointer and flags carry nothing: pushes, and instructions that were jumped to, wait for no load. What a system call leaves in
//! registers comes from no load. Memory carries nothing either: a value that was stored and is loaded again comes from the load
//! that follows the store.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

/// Registers that are followed: 16 general ones, and 16 for vectors.
pub const REGISTERS: usize = 32;

/// Bits of an address.
const BITS: u32 = 64;

/// The origin of a value: the newest of some loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The number of the block's instruction that has loaded it, from 1; 0: none has.
    pub load: u16,
    /// If none has: a bit for each register whose value at the block's beginning it comes from.
    pub registers: u32,
}

impl Source {
    /// The source of the register of this number when the block begins.
    fn at_begin(register: usize) -> Source {
        Source { load: 0, registers: 1 << register }
    }

    /// The source of a value that is made of both: a load of the block is newer than any before it.
    fn and(self, other: Source) -> Source {
        match self.load.max(other.load) {
            0 => Source { load: 0, registers: self.registers | other.registers },
            load => Source { load, registers: 0 },
        }
    }
}

/// The sources of the addresses of an instruction's accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    pub loads: Source,
    pub stores: Source,
}

/// A block, as far as addresses go.
#[derive(Debug, Default)]
pub struct Flow {
    /// One for each instruction.
    addresses: Box<[Addresses]>,
    /// Registers that hold something else behind it, by their numbers.
    changes: Box<[(u8, Source)]>,
}

impl Flow {
    /// The source of the address of an access of the instruction of this number.
    #[inline]
    pub fn address(&self, instruction: usize, is_store: bool) -> Source {
        let Some(of) = instruction.checked_sub(1).and_then(|at| self.addresses.get(at)) else {
            return Source::default();
        };
        if is_store { of.stores } else { of.loads }
    }

    /// Registers that hold something else behind the block, by their numbers.
    #[inline]
    pub fn changes(&self) -> &[(u8, Source)] {
        &self.changes
    }
}

/// Reads the instructions of a block, one after the other.
pub struct Reading {
    infos: InstructionInfoFactory,
    /// The sources of the registers so far.
    registers: [Source; REGISTERS],
    addresses: Vec<Addresses>,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            infos: InstructionInfoFactory::new(),
            registers: std::array::from_fn(Source::at_begin),
            addresses: Vec::new(),
        }
    }
}

impl Reading {
    /// The next instruction. One that is not known changes nothing.
    pub fn instruction(&mut self, bytes: &[u8]) {
        let instruction = Decoder::new(BITS, bytes, DecoderOptions::NONE).decode();
        let number = self.addresses.len() as u16 + 1;
        let mut addresses = Addresses::default();
        let info = self.infos.info(&instruction);
        let of = |registers: &mut dyn Iterator<Item = Register>| {
            let sources = registers.filter_map(number_of).map(|at| self.registers[at]);
            sources.fold(Source::default(), Source::and)
        };
        let mut loads_something = false;
        for memory in info.used_memory() {
            let source = of(&mut [memory.base(), memory.index()].into_iter());
            if loads(memory.access()) {
                loads_something = true;
                addresses.loads = addresses.loads.and(source);
            }
            if stores(memory.access()) {
                addresses.stores = addresses.stores.and(source);
            }
        }
        let result = if loads_something {
            Source { load: number, registers: 0 }
        } else if makes_zero(&instruction) {
            Source::default()
        } else {
            let read = info.used_registers().iter().filter(|used| loads(used.access()));
            of(&mut read.map(|used| used.register()))
        };
        for used in info.used_registers().iter().filter(|used| stores(used.access())) {
            let Some(at) = number_of(used.register()) else { continue };
            if is_stepped(&instruction, used.register()) {
                continue;
            }
            let rest = if leaves_some(used.register(), used.access()) {
                self.registers[at]
            } else {
                Source::default()
            };
            self.registers[at] = result.and(rest);
        }
        self.addresses.push(addresses);
    }

    /// The block that they are.
    pub fn end(self) -> Flow {
        let changed = (0..REGISTERS).filter(|&at| self.registers[at] != Source::at_begin(at));
        Flow {
            changes: changed.map(|at| (at as u8, self.registers[at])).collect(),
            addresses: self.addresses.into(),
        }
    }
}

/// The number of the register that one is a part of, if it is followed.
fn number_of(register: Register) -> Option<usize> {
    let whole = register.full_register();
    if whole == Register::RSP {
        return None;
    }
    if whole.is_gpr() {
        return Some(whole.number());
    }
    (whole.is_vector_register() && whole.number() < 16).then(|| 16 + whole.number())
}

fn loads(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

fn stores(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// Tells whether a write of it may leave the register, or a part of it, as it was.
fn leaves_some(register: Register, access: OpAccess) -> bool {
    let is_conditional = matches!(access, OpAccess::CondWrite | OpAccess::ReadCondWrite);
    is_conditional || register.is_gpr8() || register.is_gpr16()
}

/// Tells whether an instruction on a string only counts in the register: by where it reads and writes, or how often it has to. The
/// register comes from is then what it came from before, and none of what the instruction loads.
fn is_stepped(instruction: &Instruction, register: Register) -> bool {
    let steps = matches!(register.full_register(), Register::RSI | Register::RDI | Register::RCX);
    steps && instruction.is_string_instruction()
}

/// Tells whether an instruction makes a register zero, although its operands have other sources.
fn makes_zero(instruction: &Instruction) -> bool {
    let sources = match instruction.mnemonic() {
        Mnemonic::Xor | Mnemonic::Sub | Mnemonic::Pxor | Mnemonic::Xorps | Mnemonic::Xorpd => {
            (0, 1)
        }
        Mnemonic::Vpxor | Mnemonic::Vxorps | Mnemonic::Vxorpd => (1, 2),
        _ => return false,
    };
    let register = |operand| {
        (instruction.op_kind(operand) == OpKind::Register).then(|| instruction.op_register(operand))
    };
    register(sources.0).is_some() && register(sources.0) == register(sources.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAX: u32 = 1;
    const RCX: u32 = 1 << 1;
    const RDX: u32 = 1 << 2;
    const RBX: u32 = 1 << 3;
    const RSI: u32 = 1 << 6;
    const RDI: u32 = 1 << 7;

    fn flow(instructions: &[&[u8]]) -> Flow {
        let mut reading = Reading::default();
        instructions.iter().for_each(|bytes| reading.instruction(bytes));
        reading.end()
    }

    fn from(registers: u32) -> Source {
        Source { load: 0, registers }
    }

    fn by(load: u16) -> Source {
        Source { load, registers: 0 }
    }

    #[test]
    fn a_chase_waits_for_the_load_before() {
        // mov rax,[rbx]; mov rax,[rax+8]; mov [rax+rcx*8],rdx
        let flow = flow(&[b"\x48\x8b\x03", b"\x48\x8b\x40\x08", b"\x48\x89\x14\xc8"]);
        assert_eq!(flow.address(1, false), from(RBX));
        assert_eq!(flow.address(2, false), by(1));
        assert_eq!(flow.address(3, true), by(2));
        assert_eq!(flow.address(3, false), Source::default());
        assert_eq!(flow.changes(), [(0, by(2))]);
    }

    #[test]
    fn arithmetic_hands_on_what_it_is_made_of() {
        // mov rax,[rbx]; lea rdx,[rax+rcx*4+7]; add rcx,rdx; mov rsi,rdi; mov eax,5
        let flow = flow(&[
            b"\x48\x8b\x03",
            b"\x48\x8d\x54\x88\x07",
            b"\x48\x01\xd1",
            b"\x48\x89\xfe",
            b"\xb8\x05\x00\x00\x00",
        ]);
        let changes = [(0, Source::default()), (1, by(1)), (2, by(1)), (6, from(RDI))];
        assert_eq!(flow.changes(), changes);
        assert_eq!(flow.address(2, false), Source::default());
    }

    #[test]
    fn what_is_made_zero_comes_from_nowhere() {
        // xor eax,eax; sub rcx,rcx; xor edx,ebx; pxor xmm1,xmm1
        let flow = flow(&[b"\x31\xc0", b"\x48\x29\xc9", b"\x31\xda", b"\x66\x0f\xef\xc9"]);
        let none = Source::default();
        assert_eq!(flow.changes(), [(0, none), (1, none), (2, from(RDX | RBX)), (17, none)]);
    }

    #[test]
    fn parts_and_conditional_writes_leave_some() {
        // mov al,[rbx]; cmove rcx,rdx; setz dl
        let flow = flow(&[b"\x8a\x03", b"\x48\x0f\x44\xca", b"\x0f\x94\xc2"]);
        // Of an old value and a load of the block, the load is the newer one.
        assert_eq!(flow.changes(), [(0, by(1)), (1, from(RCX | RDX))]);
        // mov ecx,edx is all of rcx.
        assert_eq!(self::flow(&[b"\x89\xd1"]).changes(), [(1, from(RDX))]);
    }

    #[test]
    fn the_stack_pointer_carries_nothing() {
        // push rax; pop rcx; mov rdx,[rsp+8]; call +0
        let flow = flow(&[b"\x50", b"\x59", b"\x48\x8b\x54\x24\x08", b"\xe8\x00\x00\x00\x00"]);
        for at in 1..=4 {
            let addresses = (flow.address(at, false), flow.address(at, true));
            assert_eq!(addresses, (Source::default(), Source::default()));
        }
        assert_eq!(flow.changes(), [(1, by(2)), (2, by(3))]);
    }

    #[test]
    fn strings_load_here_and_store_there() {
        // rep movsb; an atomic add: lock xadd [rsi],rax
        let flow = flow(&[b"\xf3\xa4", b"\xf0\x48\x0f\xc1\x06"]);
        assert_eq!(flow.address(1, false), from(RSI));
        assert_eq!(flow.address(1, true), from(RDI));
        assert_eq!(flow.address(2, true), flow.address(2, false));
        assert_eq!(flow.changes(), [(0, by(2))]);
    }

    #[test]
    fn strings_are_walked_without_waiting_for_what_is_read() {
        // Each alone, repeated and not: movsq, lodsq, cmpsb, scasb, stosb. Of lods, rax is what was read.
        let read_to_rax = [(0, by(1))];
        for (bytes, changes) in [
            (&b"\x48\xa5"[..], &[][..]),
            (b"\xf3\x48\xa5", &[]),
            (b"\x48\xad", &read_to_rax),
            (b"\xa6", &[]),
            (b"\xf3\xa6", &[]),
            (b"\xae", &[]),
            (b"\xf2\xae", &[]),
            (b"\xf3\xaa", &[]),
        ] {
            assert_eq!(flow(&[bytes]).changes(), changes, "{bytes:x?}");
        }
        // Where a string begins may have been read: mov rsi,[rbx]; movsq; movsq
        let flow = flow(&[b"\x48\x8b\x33", b"\x48\xa5", b"\x48\xa5"]);
        assert_eq!(flow.address(2, false), by(1));
        assert_eq!(flow.address(3, false), by(1));
        assert_eq!(flow.address(3, true), from(RDI));
    }

    #[test]
    fn vectors_carry_addresses_too() {
        // movdqu xmm3,[rax]; movq rcx,xmm3; mov rdx,[rcx]
        let flow = flow(&[b"\xf3\x0f\x6f\x18", b"\x66\x48\x0f\x7e\xd9", b"\x48\x8b\x11"]);
        assert_eq!(flow.address(3, false), by(1));
        assert_eq!(flow.address(1, false), from(RAX));
    }

    #[test]
    fn nonsense_changes_nothing() {
        let flow = flow(&[b"\x06", b"", b"\x48\x8b\x03"]);
        assert_eq!(flow.address(3, false), from(RBX));
        assert_eq!(flow.changes(), [(0, by(3))]);
        assert_eq!(flow.address(4, false), Source::default());
        assert_eq!(flow.address(0, true), Source::default());
    }
}
