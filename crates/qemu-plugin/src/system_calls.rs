//! What system calls do to mappings and to persistent memory. The program's descriptors and addresses are the host's.

use std::ffi::CStr;
use std::os::fd::RawFd;
use std::sync::atomic::Ordering;

use graven_capture::Event;

use crate::architecture::of_guest;
use crate::calls::Call;
use crate::guest::path_at;
use crate::thread::{CHILD, Child, IS_UNTRACED, Thread};
use crate::tracer::tracer;
use crate::{kernel_writes, mappings};

/// Of what shares memory with the thread that has made it.
const CLONE_VM: u64 = libc::CLONE_VM as u64;
/// Of a process that ends, or becomes another program, before its parent goes on. QEMU shares no memory with it.
const CLONE_VFORK: u64 = libc::CLONE_VFORK as u64;

/// `arch_prctl`: the address of the thread's own variables.
const ARCH_SET_FS: u64 = 0x1002;

/// A call is about to be made.
pub fn begins(thread: &mut Thread, call: Call, arguments: [u64; 6]) {
    (thread.call, thread.arguments) = (Some(call), arguments);
    thread.exclusive.clear();
    let [a, b, ..] = arguments;
    match call {
        // SAFETY: if the path is none, the kernel would refuse it, too.
        Call::Execve if unsafe { path_at(arguments[0]) }.is_some_and(is_executable) => {
            thread.event(&Event::Replaced);
        }
        // What a thread has done comes before what those do that it begins, or that have waited for its end.
        Call::Clone => clones(thread, arguments),
        Call::Exit => thread.tells_its_end(),
        // Afterwards another thread may have got the same addresses.
        Call::Munmap if !IS_UNTRACED.load(Ordering::Relaxed) => mappings::unmapped(thread, a, b),
        Call::Mremap if !IS_UNTRACED.load(Ordering::Relaxed) => mappings::moves(thread, a, b),
        _ => {}
    }
    thread.gives_turn();
}

/// A thread is about to be made, or a process.
fn clones(thread: &mut Thread, arguments: [u64; 6]) {
    let flags = arguments[0];
    thread.event(&Event::Ordered);
    if is_fork(Call::Clone, flags) {
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

/// Whether a process was made, which this one is.
pub fn is_new_process(thread: &Thread, call: Call, result: i64) -> bool {
    result == 0 && is_fork(call, thread.arguments[0])
}

/// It has returned.
pub fn ends(thread: &mut Thread, call: Call, result: i64) {
    thread.call = None;
    let [a, b, c, d, e, f] = thread.arguments;
    if is_fork(call, a) {
        forked(thread, result);
        return;
    }
    if IS_UNTRACED.load(Ordering::Relaxed) {
        return;
    }
    if call == Call::Mremap {
        mappings::moved(thread, [a, b, c], u64::try_from(result).ok());
    }
    let Ok(result) = u64::try_from(result) else { return };
    match call {
        Call::Mmap => mappings::mapped(thread, result, b, c, d, (e as RawFd, f)),
        Call::Brk => mappings::break_moved(thread, result),
        Call::Mprotect => mappings::protected(thread, a, b, c),
        Call::Madvise => mappings::advised(thread, a, b, c),
        Call::ArchPrctl if a == ARCH_SET_FS => mappings::thread_pointer(thread, b),
        Call::Sigaltstack => mappings::signal_stack(thread, a),
        Call::Msync => thread.counts.syncs += 1,
        _ => {}
    }
    kernel_writes::of_call(thread, call, result);
}

fn is_executable(path: &CStr) -> bool {
    // SAFETY: it is a text.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

/// Whether a call makes a process.
fn is_fork(call: Call, flags: u64) -> bool {
    match call {
        Call::Fork | Call::Vfork => true,
        Call::Clone => flags & CLONE_VM == 0 || flags & CLONE_VFORK != 0,
        _ => false,
    }
}

/// The child is left to itself; all that is shared with it is the parent's.
fn forked(thread: &mut Thread, result: i64) {
    if result > 0 {
        thread.event(&Event::Forked);
    }
}
