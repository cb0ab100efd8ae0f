//! ChampSim's traces: instructions of one thread, without values.
//!
//! | bytes | bytes, CloudSuite | content |
//! |---|---|---|
//! | 0 to 7 | 0 to 7 | address of the instruction |
//! | 8, 9 | 8, 9 | whether it is a branch, whether that is taken: 0 is no, any other byte yes |
//! | 10, 11 | 10 to 13 | registers that it writes; 0 is none |
//! | 12 to 15 | 14 to 17 | registers that it reads |
//! | | 18 to 23 | nothing |
//! | 16 to 31 | 24 to 55 | addresses that it stores to, two or four; 0 is none |
//! | 32 to 63 | 56 to 87 | four addresses that it loads from |
//! | | 88 to 95 | number of the address space, and nothing |
//!
//! `export` makes them of a program trace, and says what they lack; [`crate::imports`] makes a program trace of them.

mod export;
mod layout;

pub use export::{Part, export};
pub use layout::Layout;
pub(crate) use layout::Taken;

/// Bytes of an instruction in ChampSim's own layout.
pub const INSTRUCTION_BYTES: usize = 64;

/// ChampSim's number of the stack pointer.
pub(crate) const STACK_POINTER: u8 = 6;
/// The register of the flags.
pub(crate) const FLAGS: u8 = 25;
/// The register of the instruction pointer.
pub(crate) const INSTRUCTION_POINTER: u8 = 26;

/// One instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Instruction {
    /// The address.
    pub ip: u64,
    /// The instruction is a branch.
    pub is_branch: bool,
    /// The branch is taken.
    pub branch_taken: bool,
    /// Registers that it writes; 0 is none.
    pub destination_registers: [u8; 2],
    /// Registers that it reads.
    pub source_registers: [u8; 4],
    /// Addresses that it stores to; 0 is none.
    pub destination_memory: [u64; 2],
    /// Addresses that it loads from.
    pub source_memory: [u64; 4],
}

impl Instruction {
    /// Reads one.
    pub fn parse(bytes: &[u8; INSTRUCTION_BYTES]) -> Instruction {
        let (numbers, _) = bytes.as_chunks::<8>();
        let number = |at: usize| u64::from_le_bytes(numbers[at]);
        Instruction {
            ip: number(0),
            is_branch: bytes[8] != 0,
            branch_taken: bytes[9] != 0,
            destination_registers: [bytes[10], bytes[11]],
            source_registers: [bytes[12], bytes[13], bytes[14], bytes[15]],
            destination_memory: std::array::from_fn(|i| number(2 + i)),
            source_memory: std::array::from_fn(|i| number(4 + i)),
        }
    }

    /// The bytes.
    pub fn to_bytes(self) -> [u8; INSTRUCTION_BYTES] {
        let mut bytes = [0; INSTRUCTION_BYTES];
        bytes[..8].copy_from_slice(&self.ip.to_le_bytes());
        (bytes[8], bytes[9]) = (self.is_branch.into(), self.branch_taken.into());
        bytes[10..12].copy_from_slice(&self.destination_registers);
        bytes[12..16].copy_from_slice(&self.source_registers);
        let addresses = self.destination_memory.iter().chain(&self.source_memory);
        for (place, address) in bytes[16..].chunks_exact_mut(8).zip(addresses) {
            place.copy_from_slice(&address.to_le_bytes());
        }
        bytes
    }
}
