//! Functions that calls name: a call of another file's function goes through a slot that the dynamic linker fills, by the
//! function's name. Where the function itself has none, as those of a C library for a certain processor, its callers name it.

use object::{
    Architecture, Object, ObjectSegment, ObjectSymbol, ObjectSymbolTable, RelocationTarget,
};
use rustc_hash::FxHashMap;

/// The imported functions of a file.
pub(super) struct Imports<'a> {
    architecture: Architecture,
    /// First address and bytes of each segment.
    segments: Vec<(u64, &'a [u8])>,
    /// Names by the addresses of their slots.
    slots: FxHashMap<u64, String>,
}

impl<'a> Imports<'a> {
    pub fn read(file: &object::File<'a>) -> Imports<'a> {
        let segments = file.segments().filter_map(|s| Some((s.address(), s.data().ok()?)));
        let mut slots = FxHashMap::default();
        let symbols = file.dynamic_symbol_table();
        for (slot, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let symbol = symbols.as_ref().and_then(|table| table.symbol_by_index(index).ok());
            if let Some(Ok(name)) = symbol.map(|symbol| symbol.name().map(str::to_string)) {
                slots.insert(slot, name);
            }
        }
        Imports { architecture: file.architecture(), segments: segments.collect(), slots }
    }

    /// The imported function that the instruction at this address calls.
    pub fn called(&self, address: u64) -> Option<&str> {
        let slot = match self.architecture {
            Architecture::X86_64 => self.slot_x86(address),
            Architecture::Aarch64 => self.slot_arm(address),
            _ => None,
        };
        self.slots.get(&slot?).map(String::as_str)
    }

    fn bytes<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.segments.iter().find_map(|(start, data)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            data.get(at..)?.first_chunk().copied()
        })
    }

    /// `call stub` or `jmp stub`, or the stub's own `jmp *slot(%rip)` in its place.
    fn slot_x86(&self, address: u64) -> Option<u64> {
        let relative = |at: u64| {
            let distance = i32::from_le_bytes(self.bytes(at)?);
            Some(at.wrapping_add(4).wrapping_add_signed(distance.into()))
        };
        match self.bytes(address)? {
            [0xe8 | 0xe9, _] => {
                let mut stub = relative(address + 1)?;
                if self.bytes(stub) == Some([0xf3, 0x0f, 0x1e, 0xfa]) {
                    stub += 4;
                }
                if self.bytes(stub) == Some([0xf2]) {
                    stub += 1;
                }
                (self.bytes(stub)? == [0xff, 0x25]).then(|| relative(stub + 2))?
            }
            [0xff, 0x15 | 0x25] => relative(address + 2),
            _ => None,
        }
    }

    /// `bl stub` or `b stub`; the stub is `adrp x16, page` and `ldr x17, [x16, offset]`.
    fn slot_arm(&self, address: u64) -> Option<u64> {
        let word = |at: u64| self.bytes(at).map(u32::from_le_bytes);
        let branch = word(address)?;
        if branch >> 26 & 0x1f != 0b0_0101 {
            return None;
        }
        let distance = i64::from((branch << 6) as i32 >> 6) * 4;
        let mut stub = address.wrapping_add_signed(distance);
        // bti c
        if word(stub) == Some(0xd503_245f) {
            stub += 4;
        }
        let (adrp, ldr) = (word(stub)?, word(stub + 4)?);
        if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
            return None;
        }
        let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
        let pages = i64::from((pages << 11) as i32 >> 11);
        let page = (stub & !0xfff).wrapping_add_signed(pages << 12);
        Some(page + 8 * u64::from(ldr >> 10 & 0xfff))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(architecture: Architecture, code: &[u8], slot: u64) -> Imports<'_> {
        let slots = [(slot, "strcmp".to_string())].into_iter().collect();
        Imports { architecture, segments: vec![(0x1000, code)], slots }
    }

    /// Bug class: a stub of another kind is not seen through, so that a nameless function stays so.
    #[test]
    fn calls_name_what_they_reach_through_slots() {
        // call +11 (to 0x1010); nops; endbr64; bnd jmp *0x3000(%rip)
        let mut code = vec![0xe8, 11, 0, 0, 0];
        code.resize(16, 0x90);
        code.extend([0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xe5, 0x1f, 0, 0]);
        assert_eq!(imports(Architecture::X86_64, &code, 0x3000).called(0x1000), Some("strcmp"));
        assert_eq!(imports(Architecture::X86_64, &code, 0x3000).called(0x1005), None);
        // jmp back to a stub without endbr64; call *(%rip)
        let code = [0xff, 0x25, 0xfa, 0x1f, 0, 0, 0xe9, 0xf5, 0xff, 0xff, 0xff];
        assert_eq!(imports(Architecture::X86_64, &code, 0x3000).called(0x1006), Some("strcmp"));
        let code = [0xff, 0x15, 0xfa, 0x1f, 0, 0];
        assert_eq!(imports(Architecture::X86_64, &code, 0x3000).called(0x1000), Some("strcmp"));
        // bl +8; nop; adrp x16, 0x11000; ldr x17, [x16, #0x18]
        let words = [0x9400_0002u32, 0xd503_201f, 0x9000_0090, 0xf940_0e11];
        let code: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        assert_eq!(imports(Architecture::Aarch64, &code, 0x11018).called(0x1000), Some("strcmp"));
        assert_eq!(imports(Architecture::Aarch64, &code, 0x11018).called(0x1004), None);
    }
}
