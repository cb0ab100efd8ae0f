//! Programs for x86-64.
//!
//! A marker is `nopl 0x677276NN(%rax,%rax)`, NN its number.

use super::{Architecture, Layout};
use crate::calls::Call;
use crate::flow::Reading;
use crate::instruction::Kind;

/// Register numbers.
const RAX: usize = 0;
const RDX: usize = 2;
const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;

pub const X86_64: Architecture = Architecture {
    name: "x86_64",
    machine: object::Architecture::X86_64,
    kind,
    follow: Reading::instruction,
    registers: Layout {
        first: 0,
        arguments: [RDI, RSI],
        result: RAX,
        stack: RSP,
        link: None,
        call_arguments: &[RDI, RSI, RDX],
        call_number: None,
        zero: None,
    },
    call: Call::new,
    clone_end: 3,
    stat_bytes: 144,
    // It is packed.
    epoll_bytes: 12,
    zeroed_bytes: 0,
};

/// The bytes of a marker before and behind its number.
const BEFORE: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
const BEHIND: [u8; 3] = [0x76, 0x72, 0x67];

/// The number of the marker that an instruction is, if it is one.
fn marker(instruction: &[u8]) -> Option<u8> {
    let [before @ .., number, _, _, _] = instruction else { return None };
    (before == BEFORE && instruction.ends_with(&BEHIND)).then_some(*number)
}

/// Looks at its bytes.
fn kind(bytes: &[u8]) -> Kind {
    if let Some(number) = marker(bytes) {
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
                0x66 | 0x67 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x40..=0x4f,
                behind @ ..,
            ] => {
                rest = behind;
            }
            // The prefix lock; xchg.
            [0xf0, ..] => return Kind::Atomic,
            [0x86 | 0x87, operand, ..] if operand >> 6 != 3 => return Kind::Atomic,
            // VEX of two and of three bytes, with the opcodes of 0F.
            [0xc5, _, opcode, ..] => return of_vector(*opcode),
            [0xc4, map, _, opcode, ..] if map & 0x1f == 1 => return of_vector(*opcode),
            // movs, cmps, stos, lods and scas behind a prefix of repetition.
            [0xa4..=0xa7 | 0xaa..=0xaf, ..] if is_repeated(bytes) => return Kind::Repeated,
            [0x0f, 0xc3 | 0xe7 | 0x2b | 0xf7, ..] => return Kind::NonTemporal,
            [0x0f, 0xae, operand, ..] => return of_group(*operand, bytes.first() == Some(&0x66)),
            _ => return Kind::Other,
        }
    }
}

/// Tells whether one of an instruction's prefixes, which end with REX, is rep or repne.
fn is_repeated(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .take_while(|byte| {
            matches!(byte, 0x66 | 0xf2 | 0xf3 | 0x2e | 0x36 | 0x3e | 0x26 | 0x64 | 0x65 | 0x67)
        })
        .any(|byte| matches!(byte, 0xf2 | 0xf3))
}

/// vmovntdq, vmovntps, vmovntpd, vmaskmovdqu.
fn of_vector(opcode: u8) -> Kind {
    if matches!(opcode, 0xe7 | 0x2b | 0xf7) { Kind::NonTemporal } else { Kind::Other }
}

/// The group of 0F AE, by its operand, and whether 66 is before it: clwb, clflushopt, clflush, sfence, mfence.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_repeated_behind_a_prefix_that_says_so() {
        // rep movsb; rep movsq; rep stosw; rep stosb by 32-bit addresses; repe cmpsb; repne scasb.
        let repeated: [&[u8]; 6] = [
            b"\xf3\xa4",
            b"\xf3\x48\xa5",
            b"\x66\xf3\xab",
            b"\x67\xf3\xaa",
            b"\xf3\xa6",
            b"\xf2\xae",
        ];
        for bytes in repeated {
            assert_eq!(kind(bytes), Kind::Repeated, "{bytes:x?}");
        }
        // movsb; stosq; test al,0xf3; popcnt eax,ecx; movss xmm0,[rax]; repne call +0 (bnd).
        let others: [&[u8]; 6] = [
            b"\xa4",
            b"\x48\xab",
            b"\xa8\xf3",
            b"\xf3\x0f\xb8\xc1",
            b"\xf3\x0f\x10\x00",
            b"\xf2\xe8\x00\x00\x00\x00",
        ];
        for bytes in others {
            assert_eq!(kind(bytes), Kind::Other, "{bytes:x?}");
        }
        assert_eq!(kind(b"\xf3\x90"), Kind::Pause);
        assert_eq!(kind(b"\xf0\x48\x0f\xc1\x06"), Kind::Atomic);
    }
}
