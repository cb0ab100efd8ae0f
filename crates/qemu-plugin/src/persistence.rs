//! Persistence: the flushes, fences and system calls of the program.
//!
//! Nothing is recorded before some memory is persistent.

use std::fs;
use std::os::fd::RawFd;

use graven_capture::{
    Asked, Call as Said, Fence, Flush, PIECE_BYTES_MAX, Persistence, Place, position,
};

use crate::anonymous::page_from;
use crate::calls::Call;
use crate::guest::{path_at, read_word};
use crate::thread::Thread;
use crate::tracer::tracer;

/// A line is written back, by the instruction of this site; none: its address is not known.
pub fn flushes(thread: &mut Thread, site: u32, flush: Flush, address: Option<u64>) {
    thread.counts.flushes += 1;
    let regions = &tracer().regions;
    if regions.are_none() {
        return;
    }
    let place = match address {
        None => Place::Unknown,
        Some(address) => {
            regions.find(address, 1).map_or(Place::Volatile(address), Place::Persistent)
        }
    };
    thread.persists(site, &Persistence::Flush(flush, place));
}

/// A fence is executed, by the instruction of this site.
pub fn fences(thread: &mut Thread, site: u32, fence: Fence) {
    thread.counts.fences += u64::from(fence != Fence::Locked);
    // A locked instruction that has nothing to order orders nothing that is recorded.
    if !tracer().regions.are_none() && (fence != Fence::Locked || thread.is_unfenced()) {
        thread.persists(site, &Persistence::Fence(fence));
    }
}

/// A system call is about to be made.
pub fn begins(thread: &mut Thread, call: Option<Call>, arguments: [u64; 6]) {
    let Some(call) = call.filter(|_| !tracer().regions.are_none()) else { return };
    let [a, b, c, ..] = arguments;
    match call {
        Call::write | Call::pwrite64 if sends(a) => says(thread, send(c)),
        Call::writev | Call::pwritev if sends(a) => {
            let length = |at| {
                // SAFETY: the kernel is about to read there; without an address it would refuse.
                if b == 0 { 0 } else { unsafe { read_word(b + 16 * at + 8) } }
            };
            says(thread, send((0..c.min(1024)).map(length).sum()));
        }
        Call::sendto => says(thread, send(c)),
        Call::sendmsg | Call::sendmmsg => says(thread, send(0)),
        Call::sendfile if sends(a) => says(thread, send(0)),
        Call::munmap => {
            for part in parts(a, b) {
                says(thread, Said { is_over: true, ..of(Asked::Unmap, part) });
            }
        }
        // Others go on meanwhile: what they store from here on, the call need not have seen.
        _ if tracer().turns.are_needed() => {
            for said in synchronises(call, arguments) {
                says(thread, said);
            }
        }
        _ => {}
    }
}

/// A system call has returned.
pub fn ends(thread: &mut Thread, call: Option<Call>, result: i64) {
    let Some(call) = call.filter(|_| !tracer().regions.are_none()) else { return };
    let arguments = thread.arguments;
    let [a, b, c, d, ..] = arguments;
    let mut all = synchronises(call, arguments);
    let written = u64::try_from(result).unwrap_or(0);
    all.extend(match call {
        Call::write | Call::writev => wrote(a, None, written),
        Call::pwrite64 | Call::pwritev => wrote(a, Some(d), written),
        Call::ftruncate => file(a).map(|at| of(Asked::Truncate, (at, b))),
        Call::fallocate => {
            let flagged = |at| Said { flags: b, ..of(Asked::Allocate, (at + c, d)) };
            file(a).map(flagged)
        }
        Call::rename => Some(named(Asked::Rename, b)),
        Call::renameat | Call::renameat2 => Some(named(Asked::Rename, d)),
        Call::unlink => Some(named(Asked::Unlink, a)),
        Call::unlinkat => Some(named(Asked::Unlink, b)),
        Call::open => creates(a, b),
        Call::openat => creates(b, c),
        Call::creat => creates(a, libc::O_CREAT as u64),
        _ => None,
    });
    for said in all {
        says(thread, Said { is_over: true, result, ..said });
    }
}

fn says(thread: &mut Thread, said: Said) {
    let site = thread.call_site();
    thread.persists(site, &Persistence::Call(said));
}

fn of(asked: Asked, (place, bytes): (u64, u64)) -> Said {
    let (flags, result, path) = (0, 0, String::new());
    let place = Place::Persistent(place);
    Said { asked, is_over: false, place, bytes, flags, result, path }
}

fn send(bytes: u64) -> Said {
    Said { place: Place::Unknown, ..of(Asked::Send, (0, bytes)) }
}

/// The parts of these addresses that are persistent memory: position and bytes.
fn parts(start: u64, bytes: u64) -> Vec<(u64, u64)> {
    let parts = tracer().regions.parts(start, page_from(bytes.max(1)));
    parts.into_iter().map(|(_, position, bytes)| (position, bytes)).collect()
}

/// The position of an open file's first byte, if it is persistent memory.
fn file(fd: u64) -> Option<u64> {
    tracer().regions.known(fd as RawFd).map(|region| position(region, 0))
}

/// Calls that make something durable.
fn synchronises(call: Call, [a, b, c, d, ..]: [u64; 6]) -> Vec<Said> {
    let whole = |asked| {
        let said = match file(a) {
            Some(at) => of(asked, (at, u64::MAX)),
            None => Said { place: Place::Unknown, ..of(asked, (0, 0)) },
        };
        vec![Said { path: path_of(a), ..said }]
    };
    match call {
        Call::msync => {
            let flagged = |part| Said { flags: c, ..of(Asked::Msync, part) };
            parts(a, b).into_iter().map(flagged).collect()
        }
        Call::fsync => whole(Asked::Fsync),
        Call::fdatasync => whole(Asked::Fdatasync),
        Call::sync_file_range => {
            let ranged = |at| Said { flags: d, ..of(Asked::SyncFileRange, (at + b, c)) };
            file(a).map(ranged).into_iter().collect()
        }
        Call::sync | Call::syncfs => {
            vec![Said { place: Place::Unknown, ..of(Asked::Sync, (0, u64::MAX)) }]
        }
        _ => Vec::new(),
    }
}

/// Bytes were written to a file that is persistent memory, at this offset, or before where it stands.
fn wrote(fd: u64, offset: Option<u64>, bytes: u64) -> Option<Said> {
    let at = file(fd)?;
    // SAFETY: plain calls on an open file.
    let (stands, flags) = unsafe {
        let fd = fd as RawFd;
        (libc::lseek(fd, 0, libc::SEEK_CUR), libc::fcntl(fd, libc::F_GETFL))
    };
    let from = offset.unwrap_or_else(|| (stands as u64).saturating_sub(bytes));
    let flags = u64::from(flags & libc::O_DSYNC != 0);
    Some(Said { flags, ..of(Asked::Write, (at + from, bytes)) })
}

/// A call about the file of a path.
fn named(asked: Asked, path: u64) -> Said {
    // SAFETY: the kernel has just read it.
    let path = unsafe { path_at(path) };
    let path = path.map_or(String::new(), |path| path.to_string_lossy().into_owned());
    Said { place: Place::Unknown, path: shortened(path), ..of(asked, (0, 0)) }
}

fn creates(path: u64, flags: u64) -> Option<Said> {
    let is_creating = flags & libc::O_CREAT as u64 != 0;
    is_creating.then(|| Said { flags, ..named(Asked::Create, path) })
}

fn path_of(fd: u64) -> String {
    let path = fs::read_link(format!("/proc/self/fd/{}", fd as RawFd));
    shortened(path.map_or(String::new(), |path| path.to_string_lossy().into_owned()))
}

fn shortened(mut path: String) -> String {
    while path.len() > PIECE_BYTES_MAX {
        path.pop();
    }
    path
}

/// Tells whether others see at once what is written to an open file: a pipe, a socket, a terminal.
fn sends(fd: u64) -> bool {
    // SAFETY: the result is looked at only if the call has filled it.
    let mode = unsafe {
        let mut of: libc::stat = std::mem::zeroed();
        if libc::fstat(fd as RawFd, &raw mut of) != 0 {
            return false;
        }
        of.st_mode & libc::S_IFMT
    };
    matches!(mode, libc::S_IFIFO | libc::S_IFSOCK | libc::S_IFCHR)
}
