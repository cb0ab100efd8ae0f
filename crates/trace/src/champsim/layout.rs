//! The two layouts of an instruction, and how one is told from the other.

use super::INSTRUCTION_BYTES;

/// The layout of an instruction in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// ChampSim's own, 64 B.
    #[default]
    ChampSim,
    /// That of the traces of CloudSuite, which ChampSim reads with `-c`: 96 B.
    CloudSuite,
}

impl Layout {
    /// Bytes of an instruction.
    pub fn bytes(self) -> usize {
        match self {
            Layout::ChampSim => INSTRUCTION_BYTES,
            Layout::CloudSuite => 96,
        }
    }

    /// The other one.
    pub fn other(self) -> Layout {
        match self {
            Layout::ChampSim => Layout::CloudSuite,
            Layout::CloudSuite => Layout::ChampSim,
        }
    }

    /// The first of some instructions that this layout does not explain while the other explains all: a file's first bytes,
    /// which are all of it if `is_whole`. None if they may well be of this layout.
    pub fn contradicted_by(self, bytes: &[u8], is_whole: bool) -> Option<usize> {
        let odd = self.first_odd(bytes, is_whole)?;
        let other = self.other();
        (bytes.len() >= other.bytes() && other.first_odd(bytes, is_whole).is_none()).then_some(odd)
    }

    /// The number of the first instruction that is none, or is incomplete.
    fn first_odd(self, bytes: &[u8], is_whole: bool) -> Option<usize> {
        let records = bytes.chunks_exact(self.bytes());
        let (whole, rest) = (records.len(), records.remainder());
        let odd = records.into_iter().position(|record| {
            let taken = Taken::parse(record, self);
            taken.ip == 0 || !taken.is_canonical() || record[8] > 1 || record[9] > 1
        });
        odd.or((is_whole && !rest.is_empty()).then_some(whole))
    }
}

/// The fields of an instruction that an import needs; one that a layout has no room for is 0.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub ip: u64,
    pub destination_registers: [u8; 4],
    pub source_registers: [u8; 4],
    pub destination_memory: [u64; 4],
    pub source_memory: [u64; 4],
}

impl Taken {
    /// Reads one.
    ///
    /// # Panics
    /// If there are fewer bytes than an instruction has.
    pub fn parse(bytes: &[u8], layout: Layout) -> Taken {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let registers = |at: usize| std::array::from_fn(|i| bytes[at + i]);
        let memory = |at: usize| std::array::from_fn(|i| number(at + 8 * i));
        let ip = number(0);
        match layout {
            Layout::ChampSim => Taken {
                ip,
                destination_registers: [bytes[10], bytes[11], 0, 0],
                source_registers: registers(12),
                destination_memory: [number(16), number(24), 0, 0],
                source_memory: memory(32),
            },
            Layout::CloudSuite => Taken {
                ip,
                destination_registers: registers(10),
                source_registers: registers(14),
                destination_memory: memory(24),
                source_memory: memory(56),
            },
        }
    }

    /// Checks that a processor has such an address for an instruction: the bits above the lowest 57 are copies of the
    /// highest of those.
    pub fn is_canonical(&self) -> bool {
        let signed = self.ip.cast_signed();
        signed << 7 >> 7 == signed
    }
}
