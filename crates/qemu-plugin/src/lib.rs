//! A plugin of QEMU's user mode: it writes down what an unmodified program does with its persistent memory.
//!
//! QEMU calls it for each translated block, for each access to memory, and around each system call. It knows which files
//! that the program maps are persistent memory, and which functions are to be followed; it writes one stream of records for
//! each thread ([`graven_capture`]), and copies of the files as they were when they were first mapped and as they are at the
//! end. Everything else is done afterwards, by who reads the streams.
//!
//! | module | what |
//! |---|---|
//! | `qemu` | the functions of QEMU that are called, and the types in their signatures (`qemu-plugin.h`, version 1) |
//! | `setup` | what is to be traced: a file that the caller has written |
//! | `architecture` | what is different between programs for x86-64 and for AArch64 |
//! | `hooks` | what QEMU calls: blocks, instructions, system calls, threads |
//! | `accesses` | loads and stores |
//! | `repeated` | accesses of repeated string instructions, word by word |
//! | `exclusive` | what a thread has loaded exclusively |
//! | `afterwards` | instructions of which something is known only when they are done |
//! | `instruction` | what an instruction is, as far as that matters here |
//! | `calls` | system calls, and their numbers |
//! | `markers` | what a program says by instructions that do nothing |
//! | `persistence` | flushes, fences, and system calls that make something durable or tell of it |
//! | `operands` | the addresses of flushes |
//! | `sites` | numbers of instructions, and where each is |
//! | `stack` | the calls that a thread is in |
//! | `registers` | the guest's registers, which QEMU 7.2 shows to no plugin |
//! | `functions` | where the functions lie that are followed |
//! | `regions` | which addresses are persistent memory now |
//! | `anonymous`, `ranges` | that of it which is no file's: the heap, and ranges that were named |
//! | `system_calls` | what the program asks of the kernel |
//! | `mappings` | what becomes persistent memory, moves, and is it no more |
//! | `kernel_writes` | what the kernel writes there |
//! | `stream` | a thread's records, in a file that is mapped where it grows |
//! | `turns` | which of the program's threads executes |
//! | `synchronised` | places by which threads synchronise |
//! | `thread` | what is known of a thread of the program |
//! | `flow` | which load an address comes from: how values go through the registers of a block |
//! | `origins` | which loads a thread's registers hold something of |
//! | `tracer` | what all threads share |
//! | `guest` | the program's memory |
//!
//! *Unsafe code.* QEMU's calls hand over pointers that are valid during the call. The program's memory is read where the
//! program has just read or written it, on the same thread. What a thread of the program knows is touched by this thread alone.

mod accesses;
mod afterwards;
mod anonymous;
mod architecture;
mod calls;
mod exclusive;
mod flow;
mod functions;
mod guest;
mod hooks;
mod instruction;
mod kernel_writes;
mod mappings;
mod markers;
mod operands;
mod origins;
mod persistence;
mod qemu;
mod ranges;
mod regions;
mod registers;
mod repeated;
mod setup;
mod sites;
mod stack;
mod stream;
mod synchronised;
mod system_calls;
mod thread;
mod tracer;
mod turns;

use std::ffi::{CStr, c_char, c_int};

use setup::Setup;

/// The version of QEMU's interface for plugins that this one is written for.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// Called by QEMU when it has loaded the plugin; `dir=FOLDER` is the only argument.
///
/// # Safety
/// The arguments are as `qemu-plugin.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    info: *const qemu::Info,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let arguments: Vec<&str> = (0..count as usize)
        // SAFETY: there are so many, each a text.
        .filter_map(|at| unsafe { CStr::from_ptr(*arguments.add(at)) }.to_str().ok())
        .collect();
    let folder = arguments.iter().find_map(|argument| argument.strip_prefix("dir="));
    let Some(folder) = folder else {
        eprintln!("graven: the plugin wants dir=FOLDER");
        return 1;
    };
    // SAFETY: QEMU's own, with a text in it.
    let name = unsafe { CStr::from_ptr((*info).target_name) }.to_string_lossy();
    if !architecture::begin(&name) {
        eprintln!("graven: the plugin knows no programs for {name}");
        return 1;
    }
    let setup = match Setup::read(folder.into()) {
        Ok(setup) => setup,
        Err(error) => {
            eprintln!("graven: the plugin cannot begin: {error}");
            return 1;
        }
    };
    if !tracer::begin(setup) {
        return 1;
    }
    hooks::register(id);
    0
}
