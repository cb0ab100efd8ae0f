//! What an instruction of x86-64 is, as far as that matters: whether it stores past the caches or atomically, whether it is one of
//! those that make stores durable, or waits for other threads, and whether it is a marker.

use crate::markers;

/// What matters of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It stores with the hint that the line will not be used again soon.
    NonTemporal,
    /// It writes a line back: clwb, clflushopt, clflush.
    Flush,
    /// It orders stores: sfence, mfence.
    Fence,
    /// It is the marker of this number.
    Marker(u8),
    /// It loads and stores atomically: with the prefix lock, or xchg.
    Atomic,
    /// It does nothing, in a loop that waits for others: pause.
    Pause,
    /// Nothing of this.
    Other,
}

/// Looks at its bytes.
pub fn kind(bytes: &[u8]) -> Kind {
    if let Some(number) = markers::number(bytes) {
        return Kind::Marker(number);
    }
    if bytes == [0xf3, 0x90] {
        return Kind::Pause;
    }
    let mut rest = bytes;
    loop {
        match rest {
            // Prefixes, the last of them REX.
            [
                0x66 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f,
                behind @ ..,
            ] => {
                rest = behind;
            }
            [0xf0, ..] => return Kind::Atomic,
            [0x86 | 0x87, operand, ..] if operand >> 6 != 3 => return Kind::Atomic,
            // VEX of two and of three bytes, with the opcodes of 0F.
            [0xc5, _, opcode, ..] => return of_vector(*opcode),
            [0xc4, map, _, opcode, ..] if map & 0x1f == 1 => return of_vector(*opcode),
            [0x0f, 0xc3 | 0xe7 | 0x2b | 0xf7, ..] => return Kind::NonTemporal,
            [0x0f, 0xae, operand, ..] => return of_group(*operand, bytes.first() == Some(&0x66)),
            _ => return Kind::Other,
        }
    }
}

/// vmovntdq, vmovntps, vmovntpd, vmaskmovdqu.
fn of_vector(opcode: u8) -> Kind {
    if matches!(opcode, 0xe7 | 0x2b | 0xf7) { Kind::NonTemporal } else { Kind::Other }
}

/// The group of 0F AE, by its operand, and whether 66 is before it.
fn of_group(operand: u8, has_prefix: bool) -> Kind {
    let is_memory = operand >> 6 != 3;
    match (is_memory, operand >> 3 & 7) {
        // Without the prefix, 6 is xsaveopt.
        (true, 6) if has_prefix => Kind::Flush,
        (true, 7) => Kind::Flush,
        (false, 6 | 7) => Kind::Fence,
        _ => Kind::Other,
    }
}
