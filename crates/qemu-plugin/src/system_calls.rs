//! What system calls do to mappings and to persistent memory. The program's descriptors and addresses are the host's.

use std::ffi::CStr;
use std::fs;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use graven_capture::{Event, PIECE_BYTES_MAX, position};

use crate::functions::Part;
use crate::guest::{bytes_at, path_at, read_word};
use crate::thread::{CHILD, Child, IS_CHILD, Thread};
use crate::tracer::tracer;

/// Of what shares memory with the thread that has made it.
const CLONE_VM: u64 = libc::CLONE_VM as u64;
/// Of a process that ends, or becomes another program, before its parent goes on. QEMU shares no memory with it.
const CLONE_VFORK: u64 = libc::CLONE_VFORK as u64;

/// A call is about to be made.
pub fn begins(thread: &mut Thread, number: i64, arguments: [u64; 6]) {
    thread.test_registers([arguments[0], arguments[1], arguments[2]]);
    thread.arguments = arguments;
    match number {
        // SAFETY: if the path is none, the kernel would refuse it, too.
        libc::SYS_execve if unsafe { path_at(arguments[0]) }.is_some_and(is_executable) => {
            thread.event(&Event::Replaced);
        }
        // What a thread has done comes before what those do that it begins, or that have waited for its end.
        libc::SYS_clone => clones(thread, arguments),
        libc::SYS_exit => thread.tells_its_end(),
        // Nothing else is done any more.
        libc::SYS_exit_group => return,
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
    result == 0
        && (matches!(number, libc::SYS_fork | libc::SYS_vfork)
            || is_fork(number, thread.arguments[0]))
}

/// It has returned.
pub fn ends(thread: &mut Thread, number: i64, result: i64) {
    let [a, b, c, d, e, _] = thread.arguments;
    if number == libc::SYS_fork || number == libc::SYS_vfork || is_fork(number, a) {
        forked(thread, result);
        return;
    }
    if IS_CHILD.load(Ordering::Relaxed) {
        return;
    }
    let Ok(result) = u64::try_from(result) else { return };
    match number {
        libc::SYS_mmap => mapped(thread, result, b, c, d, e as RawFd),
        libc::SYS_munmap => unmapped(thread, a, pages(b)),
        libc::SYS_mremap => moved(thread, a, pages(b), result, pages(c)),
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom => wrote(thread, b, result),
        libc::SYS_readv | libc::SYS_preadv => wrote_vector(thread, b, c, result),
        libc::SYS_write => wrote_file(thread, a as RawFd, &[(b, result)], None),
        libc::SYS_pwrite64 => wrote_file(thread, a as RawFd, &[(b, result)], Some(d)),
        libc::SYS_writev => wrote_file(thread, a as RawFd, &vector(b, c, result), None),
        libc::SYS_pwritev => wrote_file(thread, a as RawFd, &vector(b, c, result), Some(d)),
        libc::SYS_getrandom => wrote(thread, a, result),
        libc::SYS_clock_gettime => wrote(thread, b, size_of::<libc::timespec>() as u64),
        libc::SYS_gettimeofday => wrote(thread, a, size_of::<libc::timeval>() as u64),
        libc::SYS_msync => thread.counts.syncs += 1,
        _ => {}
    }
}

fn is_executable(path: &CStr) -> bool {
    // SAFETY: it is a text.
    unsafe { libc::access(path.as_ptr(), libc::X_OK) == 0 }
}

fn is_fork(number: i64, flags: u64) -> bool {
    number == libc::SYS_clone && (flags & CLONE_VM == 0 || flags & CLONE_VFORK != 0)
}

/// The child is left to itself; all that is shared with it is the parent's.
fn forked(thread: &mut Thread, result: i64) {
    if result > 0 {
        thread.event(&Event::Forked);
    }
}

fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(4096)
}

fn path_of(fd: RawFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{fd}")).ok()
}

fn mapped(thread: &mut Thread, start: u64, bytes: u64, protection: u64, flags: u64, fd: RawFd) {
    let tracer = tracer();
    let bytes = pages(bytes);
    unmapped(thread, start, bytes);
    if flags & libc::MAP_ANONYMOUS as u64 != 0 {
        return;
    }
    let Some(path) = path_of(fd) else { return };
    let offset = thread.arguments[5];
    if protection & libc::PROT_EXEC as u64 != 0 {
        tracer.functions.look_into(&path, start, offset, Part::Code, &tracer.setup.folder);
    }
    let is_shared =
        matches!(flags as i32 & libc::MAP_TYPE, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE);
    // Of a file that has lost its name, the name is what it was.
    let name = path.as_os_str().as_bytes();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(name));
    if !is_shared || !tracer.setup.is_persistent(&path) {
        return;
    }
    match tracer.regions.of_file(fd, &path, &tracer.setup.folder) {
        Ok(region) => {
            let at = position(region, offset);
            thread.event(&Event::Mapped { position: at, bytes, address: start });
            tracer.regions.map(start, bytes, at);
        }
        Err(error) => eprintln!("graven: {} is not traced: {error}", path.display()),
    }
}

fn unmapped(thread: &mut Thread, start: u64, bytes: u64) {
    let regions = &tracer().regions;
    if regions.overlaps(start, bytes) {
        thread.event(&Event::Unmapped { address: start, bytes });
        regions.unmap(start, bytes);
    }
}

fn moved(thread: &mut Thread, old: u64, old_bytes: u64, new: u64, new_bytes: u64) {
    let regions = &tracer().regions;
    let Some(position) = regions.find(old, 1) else { return };
    unmapped(thread, old, old_bytes);
    unmapped(thread, new, new_bytes);
    thread.event(&Event::Mapped { position, bytes: new_bytes, address: new });
    regions.map(new, new_bytes, position);
}

/// The kernel has written so many bytes to an address.
fn wrote(thread: &mut Thread, address: u64, bytes: u64) {
    for (address, position, bytes) in tracer().regions.parts(address, bytes) {
        // SAFETY: the call has just written there.
        pieces(thread, position, unsafe { bytes_at(address, bytes as usize) });
    }
}

/// The parts of a vector that so many bytes fill.
fn vector(address: u64, count: u64, mut bytes: u64) -> Vec<(u64, u64)> {
    let mut parts = Vec::new();
    for at in 0..count.min(1024) {
        // SAFETY: the call has just used it.
        let [start, length] = [0, 8].map(|word| unsafe { read_word(address + at * 16 + word) });
        let length = length.min(bytes);
        bytes -= length;
        parts.push((start, length));
    }
    parts
}

fn wrote_vector(thread: &mut Thread, address: u64, count: u64, bytes: u64) {
    for (address, bytes) in vector(address, count, bytes) {
        wrote(thread, address, bytes);
    }
}

/// These bytes were written to a file, at this offset, or where it stood.
fn wrote_file(thread: &mut Thread, fd: RawFd, parts: &[(u64, u64)], offset: Option<u64>) {
    let Some(region) = tracer().regions.known(fd) else { return };
    let all: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    let mut at = offset.unwrap_or_else(|| {
        // SAFETY: a plain call on an open file.
        let behind = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
        (behind as u64).saturating_sub(all)
    });
    for &(address, bytes) in parts {
        // SAFETY: the call has just read there.
        pieces(thread, position(region, at), unsafe { bytes_at(address, bytes as usize) });
        at += bytes;
    }
}

fn pieces(thread: &mut Thread, position: u64, bytes: &[u8]) {
    for (piece, before) in bytes.chunks(PIECE_BYTES_MAX).zip((0..).step_by(PIECE_BYTES_MAX)) {
        thread.event(&Event::KernelWrote { position: position + before, bytes: piece.to_vec() });
    }
}
