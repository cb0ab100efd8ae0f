//! Programs for AArch64, little-endian.
//!
//! A marker is `movn xzr, #0x67NN, lsl #48`, NN its number: register 31 is there the one that is always zero, so that nothing
//! happens, and no compiler has it.
//!
//! *Blocks that are made zero* (`DC ZVA`, with which libraries fill memory): QEMU does that by a function of its own, and calls no
//! plugin. The register that says where is right for certain only when it is done. Of the processor that `graven capture` asks
//! QEMU for (`max`), such a block has 512 bytes.
//!
//! *Exclusive stores.* QEMU has an exclusive load remember what it has found, and the store be an exchange of that, which it shows
//! to plugins whether it fails or not.

use graven_capture::{Fence, Flush};

use super::{Architecture, Layout};
use crate::calls;
use crate::instruction::{Ending, Kind};

pub const AARCH64: Architecture = Architecture {
    name: "aarch64",
    machine: object::Architecture::Aarch64,
    kind,
    ending,
    atomics_fence: false,
    follow: |_, _| {},
    registers: Layout {
        // Those of 32-bit programs are before them.
        first: 8,
        arguments: [0, 1],
        result: 0,
        stack: 31,
        link: Some(30),
        call_arguments: &[0, 1, 2, 3, 4, 5],
        call_number: Some(8),
        zero: Some(31),
    },
    call: calls::of_aarch64,
    clone_end: 4,
    stat_bytes: 128,
    epoll_bytes: 16,
    zeroed_bytes: 512,
};

/// Tells how a block ends, by the bytes of its last instruction.
fn ending(bytes: &[u8]) -> Ending {
    let Ok(word) = <[u8; 4]>::try_from(bytes).map(u32::from_le_bytes) else {
        return Ending::Other;
    };
    // BL; BLR; BLRAA and its kind, BLRAAZ and its kind.
    let is_call = is(word, 0x9400_0000, 0xfc00_0000)
        || is(word, 0xd63f_0000, 0xffff_fc1f)
        || is(word, 0xd63f_0800, 0xfeff_f800);
    // RET; RETAA, RETAB.
    let is_return = is(word, 0xd65f_0000, 0xffff_fc1f) || is(word, 0xd65f_0bff, 0xffff_fbff);
    match (is_call, is_return) {
        (true, _) => Ending::Call,
        (_, true) => Ending::Return,
        _ => Ending::Other,
    }
}

/// Looks at its bytes.
fn kind(bytes: &[u8]) -> Kind {
    let Ok(word) = <[u8; 4]>::try_from(bytes).map(u32::from_le_bytes) else { return Kind::Other };
    let bits = |low: u32, count: u32| word >> low & ((1 << count) - 1);
    // Most have none of these forms: loads, stores, and what moves immediates or says something to the system.
    match word {
        _ if is(word, 0x92ec_e01f, 0xffff_e01f) => Kind::Marker(bits(5, 8) as u8),
        // STNP, of general and of vector registers.
        _ if is(word, 0x2800_0000, 0x3bc0_0000) => Kind::NonTemporal,
        _ if is(word, 0x0800_0000, 0x3f00_0000) => exclusive_or_ordered(word),
        // LDADD and its kind, SWP, LDAPR.
        _ if is(word, 0x3820_0000, 0x3f20_0c00) => match bits(12, 4) {
            0b0000..=0b1000 => Kind::Atomic,
            0b1100 => Kind::Ordered,
            _ => Kind::Other,
        },
        // STLUR, LDAPUR.
        _ if is(word, 0x1900_0000, 0x3f20_0c00) => Kind::Ordered,
        _ if is(word, 0xd503_201f, 0xffff_f01f) => match bits(5, 7) {
            // YIELD, WFE.
            1 | 2 => Kind::Pause,
            _ => Kind::Other,
        },
        // DSB, DMB.
        _ if is(word, 0xd503_309f, 0xffff_f0ff) => Kind::Fence(match bits(8, 2) {
            0b01 => Fence::DsbLoads,
            0b10 => Fence::DsbStores,
            _ => Fence::Dsb,
        }),
        _ if is(word, 0xd503_30bf, 0xffff_f0ff) => Kind::Fence(match bits(8, 2) {
            0b01 => Fence::DmbLoads,
            0b10 => Fence::DmbStores,
            _ => Fence::Dmb,
        }),
        // DC CVAC, CVAP, CVADP, CIVAC.
        _ if word >> 5 == 0x6a8_5bd1 => Kind::Flush(Flush::Cvac, Some(bits(0, 5) as u8)),
        _ if word >> 5 == 0x6a8_5be1 => Kind::Flush(Flush::Cvap, Some(bits(0, 5) as u8)),
        _ if word >> 5 == 0x6a8_5be9 => Kind::Flush(Flush::Cvadp, Some(bits(0, 5) as u8)),
        _ if word >> 5 == 0x6a8_5bf1 => Kind::Flush(Flush::Civac, Some(bits(0, 5) as u8)),
        // DC ZVA.
        _ if word >> 5 == 0x6a8_5ba1 => Kind::Zeroes(bits(0, 5) as u8),
        // MSR TPIDR_EL0.
        _ if word >> 5 == 0x6a8_de82 => Kind::ThreadPointer(bits(0, 5) as u8),
        _ => Kind::Other,
    }
}

fn is(word: u32, pattern: u32, mask: u32) -> bool {
    word & mask == pattern
}

/// The group of loads and stores that are exclusive, acquire or release, or compare and swap.
fn exclusive_or_ordered(word: u32) -> Kind {
    let bit = |number: u32| word >> number & 1 != 0;
    let (is_large, is_ordered, is_load, is_pair) = (bit(31), bit(23), bit(22), bit(21));
    match (is_ordered, is_pair) {
        // CAS; CASP, which has a place where pairs of bytes would have theirs.
        (true, true) => Kind::Atomic,
        (false, true) if !is_large => Kind::Atomic,
        (true, false) => Kind::Ordered,
        (false, _) if is_load => Kind::LoadsExclusively,
        (false, _) => Kind::StoresExclusively,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_with_calls_and_returns() {
        // bl .; blr x1; blraa x1, x2; blraaz x1
        for word in [0x9400_0000u32, 0xd63f_0020, 0xd73f_0822, 0xd63f_083f] {
            assert_eq!(ending(&word.to_le_bytes()), Ending::Call, "{word:#x}");
        }
        // ret; retaa; retab
        for word in [0xd65f_03c0u32, 0xd65f_0bff, 0xd65f_0fff] {
            assert_eq!(ending(&word.to_le_bytes()), Ending::Return, "{word:#x}");
        }
        // b .; br x1; svc #0
        for word in [0x1400_0000u32, 0xd61f_0020, 0xd400_0001] {
            assert_eq!(ending(&word.to_le_bytes()), Ending::Other, "{word:#x}");
        }
    }

    /// Words as GNU's assembler gives them.
    #[test]
    fn instructions_are_what_an_assembler_calls_so() {
        let known = [
            (0xa800_0822, Kind::NonTemporal),       // stnp x2, x2, [x1]
            (0xac00_0440, Kind::NonTemporal),       // stnp q0, q1, [x2]
            (0xa840_0822, Kind::Other),             // ldnp x2, x2, [x1]
            (0xa900_0822, Kind::Other),             // stp x2, x2, [x1]
            (0xc85f_7c23, Kind::LoadsExclusively),  // ldxr x3, [x1]
            (0xc804_7c22, Kind::StoresExclusively), // stxr w4, x2, [x1]
            (0x0803_fc22, Kind::StoresExclusively), // stlxrb w3, w2, [x1]
            (0xc826_1424, Kind::StoresExclusively), // stxp w6, x4, x5, [x1]
            (0x8826_1424, Kind::StoresExclusively), // stxp w6, w4, w5, [x1]
            (0xc87f_0c22, Kind::LoadsExclusively),  // ldxp x2, x3, [x1]
            (0xf8e3_0023, Kind::Atomic),            // ldaddal x3, x3, [x1]
            (0xf823_8022, Kind::Atomic),            // swp x3, x2, [x1]
            (0xc8a2_7c23, Kind::Atomic),            // cas x2, x3, [x1]
            (0x4822_7c24, Kind::Atomic),            // casp x2, x3, x4, x5, [x1]
            (0x0822_7c24, Kind::Atomic),            // casp w2, w3, w4, w5, [x1]
            (0xc8df_fc22, Kind::Ordered),           // ldar x2, [x1]
            (0xc89f_fc22, Kind::Ordered),           // stlr x2, [x1]
            (0x38bf_c022, Kind::Ordered),           // ldaprb w2, [x1]
            (0x3822_6861, Kind::Other),             // strb w1, [x3, x2]
            (0xb822_6861, Kind::Other),             // str w1, [x3, x2]
            (0x3c80_3020, Kind::Other),             // stur q0, [x1, #3]
            (0x4c00_8820, Kind::Other),             // st2 {v0.4s, v1.4s}, [x1]
            (0xd50b_7a21, Kind::Flush(Flush::Cvac, Some(1))), // dc cvac, x1
            (0xd50b_7c23, Kind::Flush(Flush::Cvap, Some(3))), // dc cvap, x3
            (0xd50b_7d21, Kind::Flush(Flush::Cvadp, Some(1))), // dc cvadp, x1
            (0xd50b_7e21, Kind::Flush(Flush::Civac, Some(1))), // dc civac, x1
            (0xd50b_7b21, Kind::Other),             // dc cvau, x1
            (0xd50b_7421, Kind::Zeroes(1)),         // dc zva, x1
            (0xd503_3bbf, Kind::Fence(Fence::Dmb)), // dmb ish
            (0xd503_3abf, Kind::Fence(Fence::DmbStores)), // dmb ishst
            (0xd503_3f9f, Kind::Fence(Fence::Dsb)), // dsb sy
            (0xd503_399f, Kind::Fence(Fence::DsbLoads)), // dsb ishld
            (0xd503_3fdf, Kind::Other),             // isb
            (0xd503_203f, Kind::Pause),             // yield
            (0xd503_201f, Kind::Other),             // nop
            (0xd51b_d045, Kind::ThreadPointer(5)),  // msr tpidr_el0, x5
            (0xd53b_d045, Kind::Other),             // mrs x5, tpidr_el0
            (0x92ec_e0df, Kind::Marker(6)),         // movn xzr, #0x6706, lsl #48
            (0x92ec_e0c0, Kind::Other),             // movn x0, #0x6706, lsl #48
        ];
        for (word, expected) in known {
            assert_eq!(kind(&u32::to_le_bytes(word)), expected, "{word:#x}");
        }
    }
}
