//! What system calls do to mappings and to persistent memory. The program's descriptors and addresses are the host's.

use std::fs;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use graven_capture::{Event, PIECE_BYTES_MAX};

use crate::guest::{bytes_at, read_word};
use crate::regions::Regions;
use crate::thread::{IS_CHILD, Thread};
use crate::tracer::tracer;

/// Of a thread that shares memory with the one that has made it.
const CLONE_VM: u64 = 0x100;

/// A call is about to be made.
pub fn begins(thread: &mut Thread, number: i64, arguments: [u64; 6]) {
    thread.test_registers([arguments[0], arguments[1], arguments[2]]);
    thread.arguments = arguments;
    if number == libc::SYS_execve {
        thread.event(&Event::Replaced);
    }
}

/// It has returned.
pub fn ends(thread: &mut Thread, number: i64, result: i64) {
    let [a, b, c, d, e, _] = thread.arguments;
    if number == libc::SYS_fork || number == libc::SYS_vfork || is_fork(number, a) {
        forked(thread, result);
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
        libc::SYS_msync => thread.counts.syncs += 1,
        _ => {}
    }
}

fn is_fork(number: i64, flags: u64) -> bool {
    number == libc::SYS_clone && flags & CLONE_VM == 0
}

/// The child is left to itself; all that is shared with it is the parent's.
fn forked(thread: &mut Thread, result: i64) {
    match result {
        0 => IS_CHILD.store(true, Ordering::Relaxed),
        1.. => thread.event(&Event::Forked),
        _ => {}
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
        tracer.functions.look_into(&path, start, offset, &tracer.setup.folder);
    }
    let is_shared = flags & (libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE) as u64 != 0;
    // Of a file that has lost its name, the name is what it was.
    let name = path.as_os_str().as_bytes();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(name));
    if !is_shared || !tracer.setup.is_persistent(&path) {
        return;
    }
    match tracer.regions.of_file(fd, &path, &tracer.setup.folder) {
        Ok(region) => {
            let position = Regions::position(region, offset);
            thread.event(&Event::Mapped { position, bytes, address: start });
            tracer.regions.map(start, bytes, position);
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
        pieces(thread, Regions::position(region, at), unsafe { bytes_at(address, bytes as usize) });
        at += bytes;
    }
}

fn pieces(thread: &mut Thread, position: u64, bytes: &[u8]) {
    for (piece, before) in bytes.chunks(PIECE_BYTES_MAX).zip((0..).step_by(PIECE_BYTES_MAX)) {
        thread.event(&Event::KernelWrote { position: position + before, bytes: piece.to_vec() });
    }
}
