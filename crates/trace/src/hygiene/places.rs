//! Source lines that are blamed for what an instruction does.
//!
//! The line is the innermost one of the program's own code: what a library does for its caller (`memcpy`, `pmem_persist`), and what
//! is inlined from the compiler's or the system's headers, is the caller's. A library that keeps data of its own (libpmemobj) is
//! blamed itself, by the function through which it was entered. For a flush, a fence or a system call, a function of the program's
//! that never leads to a store (`persist(address, bytes)`) is a servant, too.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::program::{Line, Site, Stack};

/// A place in the program, or in a library of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Frame {
    /// The place in the source, as far as it is known.
    #[serde(flatten)]
    pub source: Line,
    /// The executable or library; none: code that no file has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The address, as the module counts; 0 where a line says more.
    #[serde(skip_serializing_if = "is_zero")]
    pub address: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Role of the code of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Code of the program.
    Program,
    /// Code that does what its caller asks, with the caller's memory.
    Servant,
    /// Code of the C library.
    Runtime,
    /// Code of another library of the system.
    Library,
}

/// Libraries that make durable what their callers name, and nothing of their own.
const SERVANTS: [&str; 2] = ["libpmem.so", "libpmem2.so"];

/// The C library and what belongs to it.
const RUNTIME: [&str; 5] = ["libc.so", "ld-linux", "libpthread", "libstdc++.so", "libgcc_s.so"];

/// Most calls among which a line is looked for.
const BLAMED_MAX: usize = 64;

/// Names of functions of the C library that search a text, and load up to a vector behind its end, begin so.
const SEARCHES: [&str; 6] = ["str", "stp", "wcs", "memchr", "memrchr", "rawmemchr"];

/// Names of functions of the C library that store where their callers say begin so, behind underscores.
const COPIES: [&str; 18] = [
    "mem",
    "str",
    "stp",
    "wmem",
    "bcopy",
    "bzero",
    "read",
    "pread",
    "recv",
    "sprintf",
    "snprintf",
    "vsprintf",
    "vsnprintf",
    "sscanf",
    "qsort",
    "clock_gettime",
    "gettimeofday",
    "getrandom",
];

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Tells whether a source file is a header of the system, or Rust's standard library.
fn is_of_toolchain(file: &str) -> bool {
    file.starts_with("/usr/") || file.starts_with("/rustc/") || file.contains("/lib/rustlib/")
}

fn is_of_system(path: &str) -> bool {
    path.starts_with("/usr/") || path.starts_with("/lib")
}

impl Frame {
    /// Tells whether the code is a library's of the system.
    pub fn is_library(&self) -> bool {
        matches!(self.role(), Role::Library | Role::Runtime)
    }

    fn role(&self) -> Role {
        let Some(module) = &self.module else { return Role::Program };
        let module_name = name(module);
        let is = |names: &[&str]| names.iter().any(|library| module_name.starts_with(library));
        if is(&SERVANTS) {
            return Role::Servant;
        }
        if is(&RUNTIME) {
            return Role::Runtime;
        }
        if self.source.file.as_deref().is_some_and(is_of_toolchain) {
            return Role::Servant;
        }
        let is_library = is_of_system(module) && module_name.contains(".so");
        if is_library { Role::Library } else { Role::Program }
    }
}

/// Tells whether the C library, entered by a function, stores where its caller says. One without a name is a variant of those for
/// this processor: others are exported.
fn copies(entry: &Frame) -> bool {
    entry.source.function.as_deref().is_none_or(|function| begins(function, &COPIES))
}

/// Tells whether a function's name, behind underscores, begins with one of these.
fn begins(function: &str, names: &[&str]) -> bool {
    let function = function.trim_start_matches('_');
    names.iter().any(|name| function.starts_with(name))
}

/// The place that is blamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blamed {
    /// A place, by its number.
    Place(u32),
    /// Data of the C library.
    Runtime,
}

/// An instruction that is blamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// A store or a load.
    Access,
    /// A flush, a fence, or a system call.
    Order,
}

/// A function: its module and its name.
type Function = (Option<String>, Option<String>);

fn function_of(frame: &Frame) -> Function {
    (frame.module.clone(), frame.source.function.clone())
}

/// All places of a history.
pub struct Places {
    sites: Vec<Site>,
    stacks: Vec<Stack>,
    /// Functions that lead to stores.
    storing: FxHashSet<Function>,
    /// By site, stack and deed.
    blamed: FxHashMap<(u32, u32, Deed), (Blamed, Option<u32>)>,
    numbers: FxHashMap<Frame, u32>,
    /// The places, by their numbers.
    pub frames: Vec<Frame>,
}

impl Places {
    /// `stores`: sites and stacks of all stores.
    pub fn new(
        sites: Vec<Site>,
        stacks: Vec<Stack>,
        stores: impl IntoIterator<Item = (u32, u32)>,
    ) -> Places {
        let (blamed, numbers) = (FxHashMap::default(), FxHashMap::default());
        let storing = FxHashSet::default();
        let mut places = Places { sites, stacks, storing, blamed, numbers, frames: Vec::new() };
        let mut seen = FxHashSet::default();
        for (site, stack) in stores {
            places.stores(site);
            // Who calls a stack that was seen has been, too.
            let mut stack = stack;
            while seen.insert(stack)
                && let Some(&of) =
                    (stack as usize).checked_sub(1).and_then(|at| places.stacks.get(at))
            {
                places.stores(of.site);
                stack = of.caller;
            }
        }
        places
    }

    /// The functions of a site lead to stores.
    fn stores(&mut self, site: u32) {
        let mut frames = Vec::new();
        self.add(site, &mut frames);
        self.storing.extend(frames.iter().map(function_of));
    }

    /// Tells whether an instruction is the C library's.
    pub fn is_of_runtime(&self, site: u32) -> bool {
        let module = self.site(site).and_then(|site| site.module.clone());
        Frame { module, ..Frame::default() }.role() == Role::Runtime
    }

    /// Tells whether a function of one of these names has led to an instruction.
    pub fn is_within(&self, site: u32, stack: u32, names: &[&str]) -> bool {
        let is =
            |frame: &Frame| frame.source.function.as_deref().is_some_and(|f| names.contains(&f));
        self.calls(site, stack).iter().any(is)
    }

    /// Tells whether an instruction is of a function of the C library that loads more than it was asked for.
    pub fn reads_beyond(&self, site: u32, stack: u32) -> bool {
        let frames = self.innermost(site, stack, BLAMED_MAX);
        let entry = frames.iter().take_while(|frame| frame.role() == Role::Runtime).last();
        let function = entry.and_then(|entry| entry.source.function.as_deref());
        function.is_some_and(|function| begins(function, &SEARCHES))
    }

    /// An instruction, by its number.
    pub fn site(&self, site: u32) -> Option<&Site> {
        self.sites.get(site as usize)
    }

    /// The frames of an instruction and of the calls that led to it, the innermost first.
    pub fn calls(&self, site: u32, stack: u32) -> Vec<Frame> {
        self.innermost(site, stack, usize::MAX)
    }

    /// The frames of an instruction and of the innermost `calls` calls at most.
    fn innermost(&self, site: u32, stack: u32, calls: usize) -> Vec<Frame> {
        let mut all = Vec::new();
        self.add(site, &mut all);
        let mut stack = stack;
        for _ in 0..calls {
            let at = (stack as usize).checked_sub(1);
            let Some(of) = at.and_then(|at| self.stacks.get(at)) else { break };
            self.name(of.site, &mut all);
            self.add(of.site, &mut all);
            stack = of.caller;
        }
        all
    }

    /// The function of the last frame, if nothing else names it, is the one that this call names.
    fn name(&self, call: u32, all: &mut [Frame]) {
        let called = self.site(call).and_then(|site| site.calls.clone());
        if let (Some(frame), Some(called)) = (all.last_mut(), called) {
            frame.source.function.get_or_insert(called);
        }
    }

    fn add(&self, site: u32, all: &mut Vec<Frame>) {
        let Some(site) = self.sites.get(site as usize) else { return };
        let module = site.module.clone();
        if site.lines.is_empty() {
            let module = module.clone();
            all.push(Frame { module, address: site.address, ..Frame::default() });
        }
        for line in &site.lines {
            let address = if line.line.is_some() { 0 } else { site.address };
            all.push(Frame { source: line.clone(), module: module.clone(), address });
        }
    }

    /// The place that is blamed for an instruction, and the place of the call that led to its function.
    pub fn blamed(&mut self, site: u32, stack: u32, deed: Deed) -> (Blamed, Option<u32>) {
        if let Some(&known) = self.blamed.get(&(site, stack, deed)) {
            return known;
        }
        let frames = self.innermost(site, stack, BLAMED_MAX);
        let found = self.find(&frames, deed);
        self.blamed.insert((site, stack, deed), found);
        found
    }

    fn find(&mut self, frames: &[Frame], deed: Deed) -> (Blamed, Option<u32>) {
        let behind = |at: usize| {
            let is_same = |frame: &&Frame| frame.module == frames[at].module;
            at + frames[at..].iter().take_while(is_same).count()
        };
        let mut at = 0;
        while let Some(frame) = frames.get(at) {
            match frame.role() {
                Role::Servant => at += 1,
                Role::Runtime if deed == Deed::Order || copies(&frames[behind(at) - 1]) => {
                    at = behind(at);
                }
                Role::Runtime => return (Blamed::Runtime, None),
                // The function through which the library was entered.
                Role::Library => {
                    let mut entry = frames[behind(at) - 1].clone();
                    if entry.source.function.is_some() {
                        entry.address = 0;
                    }
                    let caller = frames.get(behind(at)).cloned();
                    let caller = caller.map(|caller| self.number(caller));
                    return (Blamed::Place(self.number(entry)), caller);
                }
                Role::Program if deed == Deed::Order && self.serves(&frames[at..]) => at += 1,
                Role::Program => {
                    let caller = frames.get(at + 1).filter(|f| f.role() == Role::Program);
                    let caller = caller.cloned().map(|caller| self.number(caller));
                    return (Blamed::Place(self.number(frame.clone())), caller);
                }
            }
        }
        // Before the program begins, and behind its end, the C library stores for itself.
        match frames.first() {
            Some(frame) if deed == Deed::Access && frame.role() == Role::Runtime => {
                (Blamed::Runtime, None)
            }
            first => (Blamed::Place(self.number(first.cloned().unwrap_or_default())), None),
        }
    }

    /// Tells whether a function of the program's only orders what the one that has called it, or a caller of that, stores.
    fn serves(&self, frames: &[Frame]) -> bool {
        let stores = |frame: &Frame| self.storing.contains(&function_of(frame));
        let is_caller = |frame: &&Frame| frame.role() == Role::Program && stores(frame);
        !stores(&frames[0]) && frames.iter().find(is_caller).is_some()
    }

    fn number(&mut self, frame: Frame) -> u32 {
        let next = self.frames.len() as u32;
        let number = *self.numbers.entry(frame.clone()).or_insert(next);
        if number == next {
            self.frames.push(frame);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Line;

    fn site(module: &str, function: &str, line: Option<(&str, u32)>) -> Site {
        let line = Line {
            function: Some(function.into()),
            file: line.map(|(file, _)| file.into()),
            line: line.map(|(_, line)| line),
        };
        let module = Some(module.into());
        Site { module, address: 16, lines: vec![line], ..Site::default() }
    }

    /// The function that is blamed where the first of these calls, from the innermost on.
    fn blamed(frames: Vec<Site>) -> Option<String> {
        let stacks: Vec<Stack> = (1..frames.len() as u32)
            .rev()
            .enumerate()
            .map(|(caller, site)| Stack { caller: caller as u32, site })
            .collect();
        let stack = stacks.len() as u32;
        let mut places = Places::new(frames, stacks, []);
        match places.blamed(0, stack, Deed::Access).0 {
            Blamed::Place(at) => places.frames[at as usize].source.function.clone(),
            Blamed::Runtime => None,
        }
    }

    #[test]
    fn servants_act_for_their_callers() {
        let put = || site("/home/kv", "put", Some(("kv.c", 7)));
        let libc = |name: &str| site("/lib/x86_64-linux-gnu/libc.so.6", name, None);
        let inlined = site("/home/kv", "_mm_clwb", Some(("/usr/lib/gcc/clwbintrin.h", 41)));
        assert_eq!(blamed(vec![libc("__memcpy_avx"), put()]).as_deref(), Some("put"));
        assert_eq!(blamed(vec![inlined, put()]).as_deref(), Some("put"));
        let rust = site("/home/kv", "copy", Some(("/rustc/5980/library/core/src/ptr/mod.rs", 7)));
        assert_eq!(blamed(vec![rust, put()]).as_deref(), Some("put"));
        let persist = site("/lib/libpmem.so.1", "pmem_persist", None);
        assert_eq!(blamed(vec![persist, put()]).as_deref(), Some("put"));
        assert_eq!(blamed(vec![libc("malloc"), put()]), None);
        assert_eq!(blamed(vec![libc("memcpy"), libc("printf"), put()]), None);
        let nameless = Site { lines: Vec::new(), ..libc("") };
        assert_eq!(blamed(vec![nameless, put()]).as_deref(), Some("put"));
    }

    #[test]
    fn functions_that_never_store_order_for_their_callers() {
        let of = |name: &str, line| site("/home/kv", name, Some(("kv.c", line)));
        // put, at site 2, stores and calls persist, which calls flush.
        let sites = vec![of("flush", 3), of("persist", 5), of("put", 9), of("put", 8)];
        let stacks = vec![Stack { caller: 0, site: 2 }, Stack { caller: 1, site: 1 }];
        let mut places = Places::new(sites, stacks, [(3, 0)]);
        let mut line = |deed| match places.blamed(0, 2, deed).0 {
            Blamed::Place(at) => places.frames[at as usize].source.line,
            Blamed::Runtime => None,
        };
        assert_eq!((line(Deed::Order), line(Deed::Access)), (Some(9), Some(3)));
    }

    #[test]
    fn libraries_with_data_are_blamed_by_their_entry() {
        let of = |name: &str| site("/usr/lib/libpmemobj.so.1", name, None);
        let main = site("/home/kv", "main", Some(("kv.c", 9)));
        let libc = site("/lib/libc.so.6", "memcpy", None);
        let found = blamed(vec![libc, of("ulog_store"), of("pmemobj_tx_commit"), main]);
        assert_eq!(found.as_deref(), Some("pmemobj_tx_commit"));
    }
}
