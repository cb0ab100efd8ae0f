//! The functions that are followed, and the variables that are persistent memory: found by their names in the symbols
//! of the program and of libraries, as these are mapped.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::RwLock;

use object::elf::PF_X;
use object::{Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind};

use crate::architecture::of_guest;
use crate::setup::{Followed, Setup};

/// A part of a file that is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The one with the lowest address.
    First,
    /// One that may be executed.
    Code,
}

/// Functions that are followed.
pub struct Functions {
    numbers: HashMap<String, u32>,
    followed: Vec<Followed>,
    objects: Vec<String>,
    /// By where each begins, which it is, and its bytes.
    addresses: RwLock<HashMap<u64, (u32, u64)>>,
}

impl Functions {
    /// Those of a setup; none was found yet.
    pub fn new(setup: &Setup) -> Functions {
        let (names, followed): (Vec<_>, _) = setup.functions.iter().cloned().unzip();
        Functions {
            numbers: names.into_iter().zip(0..).collect(),
            followed,
            objects: setup.objects.clone(),
            addresses: RwLock::default(),
        }
    }

    /// The function that begins at an address.
    pub fn at(&self, address: u64) -> Option<u32> {
        if self.numbers.is_empty() {
            return None;
        }
        let addresses = self.addresses.read().expect("nobody panics with it");
        addresses.get(&address).map(|&(number, _)| number)
    }

    /// Tells whether an address is in the function that begins at another.
    pub fn has(&self, begin: u64, address: u64) -> bool {
        let addresses = self.addresses.read().expect("nobody panics with it");
        let bytes = addresses.get(&begin).map_or(0, |&(_, bytes)| bytes);
        (begin..begin.saturating_add(bytes)).contains(&address)
    }

    /// The roles of a function, as far as the plugin needs them.
    pub fn followed(&self, function: u32) -> Followed {
        self.followed[function as usize]
    }

    /// A file is mapped, from this offset on: a part that may be executed, or its first one. Returns the variables that are
    /// persistent memory: the first address of each, and its bytes.
    pub fn look_into(
        &self,
        path: &Path,
        address: u64,
        offset: u64,
        part: Part,
        folder: &Path,
    ) -> Vec<(u64, u64)> {
        let nothing = Vec::new();
        if self.numbers.is_empty() && self.objects.is_empty() {
            return nothing;
        }
        let Ok(bytes) = fs::read(path) else { return nothing };
        let Ok(file) = object::File::parse(&*bytes) else { return nothing };
        // QEMU's own libraries are mapped, too.
        if file.architecture() != of_guest().machine {
            return nothing;
        }
        let segment = file.segments().find(|segment| {
            let is_code = matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags.contains(PF_X));
            // Two segments may share a page of the file, which is mapped twice.
            if part == Part::Code && !is_code {
                return false;
            }
            let (start, length) = segment.file_range();
            start <= offset && offset < start + length.max(1) || start >> 12 == offset >> 12
        });
        let Some(segment) = segment else { return nothing };
        // Where the file's first byte would be, and what the file calls it.
        let bias = address
            .wrapping_sub(offset)
            .wrapping_sub(segment.address().wrapping_sub(segment.file_range().0));
        let (mut found, mut objects) = (Vec::new(), Vec::new());
        let mut addresses = self.addresses.write().expect("nobody panics with it");
        for symbol in file.dynamic_symbols().chain(file.symbols()) {
            if symbol.is_undefined() {
                continue;
            }
            let name = symbol.name().unwrap_or_default();
            let name = name.split_once('@').map_or(name, |(name, _)| name);
            let is_data = symbol.kind() == SymbolKind::Data;
            if is_data && let Some(number) = self.objects.iter().position(|n| n == name) {
                objects.push((number, symbol.address().wrapping_add(bias), symbol.size()));
            }
            if symbol.kind() != SymbolKind::Text {
                continue;
            }
            if let Some(&number) = self.numbers.get(name) {
                let begin = symbol.address().wrapping_add(bias);
                if addresses.insert(begin, (number, symbol.size())).is_none() {
                    found.push(number);
                }
            }
        }
        drop(addresses);
        let write = |what: &str, numbers: Vec<u64>| {
            let list = OpenOptions::new().create(true).append(true).open(folder.join(what));
            if let Ok(mut list) = list {
                for number in numbers {
                    let _ = writeln!(list, "{number} {}", path.display());
                }
            }
        };
        write("functions", found.into_iter().map(u64::from).collect());
        write("objects", objects.iter().map(|o| o.0 as u64).collect());
        objects.into_iter().map(|(_, at, bytes)| (at, bytes)).collect()
    }
}
