//! What system calls do to mappings and to persistent memory. The program's descriptors and addresses are the host's.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use graven_capture::Event;

use crate::guest::path_at;
use crate::thread::{CHILD, Child, IS_UNTRACED, Thread};
use crate::tracer::tracer;
use crate::{kernel_writes, mappings};

/// Of what shares memory with the thread that has made it.
const CLONE_VM: u64 = libc::CLONE_VM as u64;
/// Of a process that ends, or becomes another program, before its parent goes on. QEMU shares no memory with it.
const CLONE_VFORK: u64 = libc::CLONE_VFORK as u64;

/// A call is about to be made.
pub fn begins(thread: &mut Thread, number: i64, arguments: [u64; 6]) {
    thread.test_registers([arguments[0], arguments[1], arguments[2]]);
    (thread.call, thread.arguments) = (Some(number), arguments);
    let [a, b, ..] = arguments;
    match number {
        // SAFETY: if the path is none, the kernel would refuse it, too.
        libc::SYS_execve if unsafe { path_at(arguments[0]) }.is_some_and(is_executable) => {
            thread.event(&Event::Replaced);
        }
        // What a thread has done comes before what those do that it begins, or that have waited for its end.
        libc::SYS_clone => clones(thread, arguments),
        libc::SYS_exit => thread.tells_its_end(),
        // Afterwards another thread may have got the same addresses.
        libc::SYS_munmap if !IS_UNTRACED.load(Ordering::Relaxed) => {
            mappings::unmapped(thread, a, b)
        }
        libc::SYS_mremap if !IS_UNTRACED.load(Ordering::Relaxed) => mappings::moves(thread, a, b),
        _ => {}
    }
    thread.gives_turn();
}

/// A thread is about to be made, or a process.
fn clones(thread: &mut Thread, [flags, _, _, child, ..]: [u64; 6]) {
    thread.event(&Event::Ordered);
    if is_fork(libc::SYS_clone, flags) {
        return;
    }
    tracer().turns.begin();
    tracer().regions.look_at_all();
    // Who waits for its end loads what the kernel stores there then.
    let end = (flags & libc::CLONE_CHILD_CLEARTID as u64 != 0).then_some(child);
    if let Some(place) = end {
        tracer().synchronised.add(place, 4);
    }
    CHILD.set(Some(Child { by: thread.number, end }));
}

/// Whether a process was made, which this one is.
pub fn is_new_process(thread: &Thread, number: i64, result: i64) -> bool {
    result == 0 && is_fork(number, thread.arguments[0])
}

/// It has returned.
pub fn ends(thread: &mut Thread, number: i64, result: i64) {
    thread.call = None;
    let [a, b, c, d, e, f] = thread.arguments;
    if is_fork(number, a) {
        forked(thread, result);
        return;
    }
    if IS_UNTRACED.load(Ordering::Relaxed) {
        return;
    }
    if number == libc::SYS_mremap {
        mappings::moved(thread, [a, b, c], u64::try_from(result).ok());
    }
    let Ok(result) = u64::try_from(result) else { return };
    match number {
        libc::SYS_mmap => mappings::mapped(thread, result, b, c, d, (e as RawFd, f)),
        libc::SYS_brk => mappings::break_moved(thread, result),
        libc::SYS_mprotect => mappings::protected(thread, a, b, c),
        libc::SYS_madvise => mappings::advised(thread, a, b, c),
        libc::SYS_arch_prctl => mappings::thread_pointer(thread, a, b),
        libc::SYS_sigaltstack => mappings::signal_stack(thread, a),
        libc::SYS_msync => thread.counts.syncs += 1,
        _ => {}
    }
    kernel_writes::of_call(thread, number, result);
}

fn is_executable(path: &CStr) -> bool {
    // SAFETY: it is a text.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Whether a call makes a process.
fn is_fork(number: i64, flags: u64) -> bool {
    match number {
        libc::SYS_fork | libc::SYS_vfork => true,
        libc::SYS_clone => flags & CLONE_VM == 0 || flags & CLONE_VFORK != 0,
        _ => false,
    }
}

/// The child is left to itself; all that is shared with it is the parent's.
fn forked(thread: &mut Thread, result: i64) {
    if result > 0 {
        thread.event(&Event::Forked);
    }
}
