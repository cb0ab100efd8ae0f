//! Places of instructions: the file of the program or of a library, and function, source file and line where symbols and DWARF say
//! so. Only the instructions that a history names are looked up, once.

use std::borrow::Cow;

use addr2line::Context;
use gimli::{EndianSlice, RunTimeEndian, SectionId};
use graven_capture::{SITE_ATOMIC, SITE_REPEATED};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use rustc_hash::FxHashMap;

use super::imports::Imports;
use crate::program::{Line, Site};

/// Code that is mapped from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Number of the sites before it was mapped.
    pub first_site: u64,
    /// First address.
    pub start: u64,
    /// The address behind its last.
    pub end: u64,
    /// Offset of the first address in the file.
    pub offset: u64,
    /// Path of the file.
    pub path: String,
}

/// The instructions of a program, by their sites.
#[derive(Debug, Default)]
pub(super) struct Instructions {
    /// The address of each.
    pub addresses: Vec<u64>,
    pub modules: Vec<Module>,
}

impl Instructions {
    /// The address of a site.
    pub fn address(&self, site: u32) -> u64 {
        self.addresses
            .get(site as usize)
            .map_or(0, |address| address & !(SITE_REPEATED | SITE_ATOMIC))
    }

    /// Tells whether a site's instruction is a repeated string instruction.
    pub fn is_repeated(&self, site: u32) -> bool {
        self.addresses.get(site as usize).is_some_and(|address| address & SITE_REPEATED != 0)
    }

    /// Tells whether a site's instruction is an atomic one.
    pub fn is_atomic(&self, site: u32) -> bool {
        self.addresses.get(site as usize).is_some_and(|address| address & SITE_ATOMIC != 0)
    }

    /// The module of a site, by its number.
    pub fn module(&self, site: u32) -> Option<usize> {
        let address = self.address(site);
        let has = |module: &Module| {
            module.first_site <= u64::from(site) && (module.start..module.end).contains(&address)
        };
        self.modules.iter().rposition(has)
    }
}

/// Offset in the file, for an address of a module.
fn file_offset(module: &Module, address: u64) -> u64 {
    address - module.start + module.offset
}

/// The places of these addresses of modules, in their order. `read` gives the bytes of a file, `debug` those of its separate file of
/// debugging information, by the file's build ID.
pub(super) fn places(
    modules: &[Module],
    addresses: &[(Option<usize>, u64)],
    read: impl Fn(&str) -> Option<Vec<u8>>,
    debug: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Vec<Site> {
    let mut places: Vec<Site> = addresses
        .iter()
        .map(|&(module, address)| Site {
            module: module.map(|module| modules[module].path.clone()),
            address: module.map_or(address, |module| file_offset(&modules[module], address)),
            is_atomic: false,
            calls: None,
            lines: Vec::new(),
        })
        .collect();
    let mut by_path: FxHashMap<&str, Vec<usize>> = FxHashMap::default();
    for (at, (module, _)) in addresses.iter().enumerate() {
        if let Some(module) = module {
            by_path.entry(&modules[*module].path).or_default().push(at);
        }
    }
    for (path, of_file) in by_path {
        let Some(bytes) = read(path) else { continue };
        let Ok(file) = object::File::parse(&*bytes) else { continue };
        let separate = file.build_id().ok().flatten().and_then(&debug);
        let separate = separate.as_ref().and_then(|bytes| object::File::parse(&**bytes).ok());
        look_up(&file, separate.as_ref().unwrap_or(&file), &mut places, &of_file);
    }
    places
}

/// Looks up the places of one file, whose addresses are offsets in it until then.
fn look_up(file: &object::File<'_>, debug: &object::File<'_>, places: &mut [Site], of: &[usize]) {
    let sections = Sections::read(debug);
    let context = sections.context(debug);
    let symbols = Symbols::read(file, debug);
    let imports = Imports::read(file);
    for &at in of {
        let place = &mut places[at];
        let segment = file.segments().find(|segment| {
            let (start, length) = segment.file_range();
            (start..start + length).contains(&place.address)
        });
        let Some(segment) = segment else { continue };
        place.address = place.address - segment.file_range().0 + segment.address();
        place.calls = imports.called(place.address).map(Into::into);
        let lines = context.as_ref().map(|context| lines_of(context, place.address));
        place.lines = lines.unwrap_or_default();
        if let Some(outermost) = place.lines.last_mut() {
            outermost.function = outermost.function.take().or_else(|| symbols.find(place.address));
        } else if let Some(function) = symbols.find(place.address) {
            place.lines.push(Line { function: Some(function), ..Line::default() });
        }
    }
}

type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// The lines of an address, the innermost of inlined functions first.
fn lines_of(context: &Context<Slice<'_>>, address: u64) -> Vec<Line> {
    let mut lines = Vec::new();
    let Ok(mut frames) = context.find_frames(address).skip_all_loads() else { return lines };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref().and_then(|function| function.demangle().ok());
        let (file, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
        lines.push(Line { function: name.map(Cow::into_owned), file: file.map(Into::into), line });
    }
    lines.retain(|line| *line != Line::default());
    lines
}

/// The sections of debugging information.
struct Sections<'a>(FxHashMap<&'static str, Cow<'a, [u8]>>);

impl<'a> Sections<'a> {
    fn read(file: &object::File<'a>) -> Sections<'a> {
        let mut sections = FxHashMap::default();
        let _ = gimli::DwarfSections::load(|id: SectionId| {
            let section = file.section_by_name(id.name());
            let data = section.and_then(|section| section.uncompressed_data().ok());
            sections.insert(id.name(), data.unwrap_or_default());
            Ok::<(), ()>(())
        });
        Sections(sections)
    }

    fn context<'b>(&'b self, file: &object::File<'_>) -> Option<Context<Slice<'b>>> {
        let endian = match file.is_little_endian() {
            true => RunTimeEndian::Little,
            false => RunTimeEndian::Big,
        };
        let slice = |id: SectionId| {
            let data = self.0.get(id.name()).map_or(&[][..], |data| data);
            Ok::<_, gimli::Error>(EndianSlice::new(data, endian))
        };
        Context::from_dwarf(gimli::Dwarf::load(slice).ok()?).ok()
    }
}

/// Functions by their first addresses.
struct Symbols(Vec<(u64, u64, String)>);

impl Symbols {
    fn read(file: &object::File<'_>, debug: &object::File<'_>) -> Symbols {
        let mut all = Vec::new();
        let both = [file, debug].into_iter();
        for symbol in both.flat_map(|file| file.symbols().chain(file.dynamic_symbols())) {
            if symbol.kind() == SymbolKind::Text
                && !symbol.is_undefined()
                && let Ok(name) = symbol.name()
            {
                let name = name.split_once('@').map_or(name, |(name, _)| name);
                let name = addr2line::demangle_auto(name.into(), None).into_owned();
                all.push((symbol.address(), symbol.size(), name));
            }
        }
        all.sort();
        Symbols(all)
    }

    fn find(&self, address: u64) -> Option<String> {
        let behind = self.0.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.0[..behind].last()?;
        (address < start + (*size).max(1)).then(|| name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(first_site: u64, start: u64, path: &str) -> Module {
        Module { first_site, start, end: start + 0x1000, offset: 0x2000, path: path.into() }
    }

    #[test]
    fn a_site_is_of_what_was_mapped_when_it_was_translated() {
        let modules = vec![module(0, 0x10_0000, "first"), module(2, 0x10_0000, "second")];
        let addresses = vec![0x10_0004, 0x20_0000, 0x10_0004 | SITE_REPEATED];
        let instructions = Instructions { addresses, modules };
        let of = |site| instructions.module(site).map(|at| &*instructions.modules[at].path);
        assert_eq!([of(0), of(1), of(2), of(3)], [Some("first"), None, Some("second"), None]);
        assert_eq!((instructions.address(2), instructions.is_repeated(2)), (0x10_0004, true));
    }

    #[test]
    fn a_file_that_is_none_gives_offsets() {
        let modules = [module(0, 0x10_0000, "gone")];
        let found = places(&modules, &[(Some(0), 0x10_0004), (None, 7)], |_| None, |_| None);
        assert_eq!(found[0].module.as_deref(), Some("gone"));
        assert_eq!((found[0].address, found[1].address), (0x2004, 7));
        assert!(found[1].module.is_none() && found[0].lines.is_empty());
    }

    #[inline(never)]
    fn a_function_that_is_not_inlined() -> u64 {
        std::hint::black_box(7)
    }

    /// The test's own executable has debugging information of lines.
    #[test]
    fn lines_come_from_debugging_information() {
        let path = std::env::current_exe().expect("a test is a file");
        let bytes = std::fs::read(&path).expect("it can be read");
        let file = object::File::parse(&*bytes).expect("it is an executable");
        let name = "a_function_that_is_not_inlined";
        assert_eq!(a_function_that_is_not_inlined(), 7);
        let symbols = || file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
        let symbol = symbols().find(|symbol| symbol.name().is_ok_and(|n| n.contains(name)));
        let address = symbol.expect("the test is a function").address();
        let segment =
            file.segments().find(|s| (s.address()..s.address() + s.size()).contains(&address));
        let segment = segment.expect("functions are in a segment");
        let offset = address - segment.address() + segment.file_range().0;
        let module = Module {
            first_site: 0,
            start: 0,
            end: u64::MAX,
            offset: 0,
            path: path.display().to_string(),
        };
        let read = |path: &str| std::fs::read(path).ok();
        let found = places(&[module], &[(Some(0), offset)], read, |_| None);
        let line = found[0].lines.last().expect("there is a line");
        assert!(line.file.as_ref().is_some_and(|file| file.ends_with("lines.rs")), "{line:?}");
        assert!(line.function.as_ref().is_some_and(|f| f.contains(name)), "{line:?}");
    }
}
