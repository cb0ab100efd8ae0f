//! The effects of system calls on mappings and persistent memory. The program's descriptors and addresses are the host's.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use graven_capture::Event;

use crate::architecture::of_guest;
use crate::calls::Call;
use crate::guest::path_at;
use crate::thread::{CHILD, Child, IS_UNTRACED, Thread};
use crate::tracer::tracer;
use crate::{kernel_writes, mappings, persistence};

/// The flag of a process that shares memory with the thread that has made it.
const CLONE_VM: u64 = libc::CLONE_VM as u64;
/// The flag of a process that ends, or becomes another program, before its parent continues. QEMU shares no memory with it.
const CLONE_VFORK: u64 = libc::CLONE_VFORK as u64;

/// `arch_prctl`: the address of the thread's own variables.
const ARCH_SET_FS: u64 = 0x1002;

/// A call is about to be made.
pub fn begins(thread: &mut Thread, call: Option<Call>, arguments: [u64; 6]) {
    (thread.is_calling, thread.call, thread.arguments) = (true, call, arguments);
    thread.exclusive.clear();
    let [a, b, ..] = arguments;
    if !IS_UNTRACED.load(Ordering::Relaxed) {
        persistence::begins(thread, call, arguments);
    }
    match call {
        // SAFETY: if the path is none, the kernel would refuse it, too.
        Some(Call::execve) if unsafe { path_at(arguments[0]) }.is_some_and(is_executable) => {
            thread.event(&Event::Replaced);
        }
        // What a thread has done comes before what those do that it begins, or that have waited for its end.
        Some(Call::clone) => clones(thread, arguments),
        Some(Call::exit) => thread.tells_its_end(),
        // Afterwards another thread may have got the same addresses.
        Some(Call::munmap) if !IS_UNTRACED.load(Ordering::Relaxed) => {
            mappings::unmapped(thread, a, b)
        }
        Some(Call::mremap) if !IS_UNTRACED.load(Ordering::Relaxed) => mappings::moves(thread, a, b),
        _ => {}
    }
    thread.gives_turn();
}

/// A thread is about to be made, or a process.
fn clones(thread: &mut Thread, arguments: [u64; 6]) {
    let flags = arguments[0];
    thread.event(&Event::Ordered);
    if is_fork(Some(Call::clone), flags) {
        return;
    }
    tracer().turns.begin();
    tracer().regions.look_at_all();
    // Who waits for its end loads what the kernel stores there then.
    let end =
        (flags & libc::CLONE_CHILD_CLEARTID as u64 != 0).then(|| arguments[of_guest().clone_end]);
    if let Some(place) = end {
        tracer().synchronised.add(place, 4);
    }
    CHILD.set(Some(Child { by: thread.number, end }));
}

/// Tells whether this process is a new one, made by the call.
pub fn is_new_process(thread: &Thread, call: Option<Call>, result: i64) -> bool {
    result == 0 && is_fork(call, thread.arguments[0])
}

/// The call has returned.
pub fn ends(thread: &mut Thread, call: Option<Call>, result: i64) {
    thread.is_calling = false;
    let [a, b, c, d, e, f] = thread.arguments;
    if is_fork(call, a) {
        forked(thread, result);
        return;
    }
    if IS_UNTRACED.load(Ordering::Relaxed) {
        return;
    }
    if call == Some(Call::mremap) {
        mappings::moved(thread, [a, b, c], u64::try_from(result).ok());
    }
    let returned = result;
    let Ok(result) = u64::try_from(result) else {
        persistence::ends(thread, call, returned);
        return;
    };
    match call {
        Some(Call::mmap) => mappings::mapped(thread, result, b, c, d, (e as RawFd, f)),
        Some(Call::brk) => mappings::break_moved(thread, result),
        Some(Call::mprotect) => mappings::protected(thread, a, b, c),
        Some(Call::madvise) => mappings::advised(thread, a, b, c),
        Some(Call::arch_prctl) if a == ARCH_SET_FS => mappings::thread_pointer(thread, b),
        Some(Call::sigaltstack) => mappings::signal_stack(thread, a),
        Some(Call::msync) => thread.counts.syncs += 1,
        _ => {}
    }
    kernel_writes::of_call(thread, call, result);
    persistence::ends(thread, call, returned);
}

fn is_executable(path: &CStr) -> bool {
    // SAFETY: it is a text.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Tells whether a call makes a process.
fn is_fork(call: Option<Call>, flags: u64) -> bool {
    match call {
        Some(Call::fork | Call::vfork) => true,
        Some(Call::clone) => flags & CLONE_VM == 0 || flags & CLONE_VFORK != 0,
        _ => false,
    }
}

/// The child is left to itself; all that is shared with it is the parent's.
fn forked(thread: &mut Thread, result: i64) {
    if result > 0 {
        thread.event(&Event::Forked);
    }
}
