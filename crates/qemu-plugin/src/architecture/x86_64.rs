//! Programs for x86-64.
//!
//! A marker is `nopl 0x677276NN(%rax,%rax)`, NN its number.

use graven_capture::{Fence, Flush};

use super::{Architecture, Layout};
use crate::calls::Call;
use crate::flow::Reading;
use crate::instruction::{Ending, Kind};

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
    ending,
    atomics_fence: true,
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

/// Tells how a block ends, by the bytes of its last instruction.
fn ending(bytes: &[u8]) -> Ending {
    let is_prefix = |byte: &&u8| matches!(byte, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x3e | 0x40..=0x4f);
    let prefixes = bytes.iter().take_while(is_prefix).count();
    match &bytes[prefixes..] {
        [0xe8, ..] => Ending::Call,
        [0xff, operand, ..] if operand >> 3 & 7 == 2 => Ending::Call,
        [0xc2 | 0xc3, ..] => Ending::Return,
        _ => Ending::Other,
    }
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
        (true, 6) if has_prefix => Kind::Flush(Flush::Clwb, None),
        (true, 7) if has_prefix => Kind::Flush(Flush::Clflushopt, None),
        (true, 7) => Kind::Flush(Flush::Clflush, None),
        (false, 6) => Kind::Fence(Fence::Mfence),
        (false, 7) => Kind::Fence(Fence::Sfence),
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persistence_is_told_apart() {
        let known: [(&[u8], Kind); 5] = [
            (b"\x66\x0f\xae\x30", Kind::Flush(Flush::Clwb, None)),
            (b"\x66\x0f\xae\x38", Kind::Flush(Flush::Clflushopt, None)),
            (b"\x41\x0f\xae\x38", Kind::Flush(Flush::Clflush, None)),
            (b"\x0f\xae\xf0", Kind::Fence(Fence::Mfence)),
            (b"\x0f\xae\xf8", Kind::Fence(Fence::Sfence)),
        ];
        for (bytes, expected) in known {
            assert_eq!(kind(bytes), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn blocks_end_with_calls_and_returns() {
        // call +0; call rax; call r12; call [rip+0]; bnd call +0
        let calls: [&[u8]; 5] = [
            b"\xe8\0\0\0\0",
            b"\xff\xd0",
            b"\x41\xff\xd4",
            b"\xff\x15\0\0\0\0",
            b"\xf2\xe8\0\0\0\0",
        ];
        assert!(calls.iter().all(|bytes| ending(bytes) == Ending::Call));
        // ret; bnd ret; ret 8; repz ret
        let returns: [&[u8]; 4] = [b"\xc3", b"\xf2\xc3", b"\xc2\x08\0", b"\xf3\xc3"];
        assert!(returns.iter().all(|bytes| ending(bytes) == Ending::Return));
        // jmp rax; inc eax; syscall
        let others: [&[u8]; 3] = [b"\xff\xe0", b"\xff\xc0", b"\x0f\x05"];
        assert!(others.iter().all(|bytes| ending(bytes) == Ending::Other));
    }

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
