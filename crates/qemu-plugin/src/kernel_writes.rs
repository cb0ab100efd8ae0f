//! The bytes that the kernel writes for a system call: into persistent memory, or into a file of it.

use std::os::fd::RawFd;

use graven_capture::{Event, PIECE_BYTES_MAX, position};

use crate::architecture::of_guest;
use crate::calls::Call;
use crate::guest::{bytes_at, read_word};
use crate::thread::Thread;
use crate::tracer::tracer;

/// Most bytes that are looked at behind an argument of a call of which it is not known what it writes.
const UNKNOWN_BYTES: u64 = 512;

/// A number of bytes.
#[derive(Clone, Copy, Debug)]
enum Bytes {
    /// As many.
    Are(u64),
    /// The result of the call, times this.
    Returned(u64),
    /// The argument of the first number, times the second.
    Given(usize, u64),
    /// No more than what the number at an argument says, which the call may have lowered.
    At(usize),
    /// The size of a file's status.
    Stat,
    /// As many events as the call returns.
    Polled,
}

use Bytes::{Are, At, Given, Polled, Returned, Stat};

/// The memory that a call writes: the argument that points there, and the number of bytes. None: unknown.
fn written(call: Call) -> Option<&'static [(usize, Bytes)]> {
    Some(match call {
        Call::read | Call::pread64 => &[(1, Returned(1))],
        Call::recvfrom => &[(1, Returned(1)), (4, At(5)), (5, Are(4))],
        Call::stat | Call::fstat | Call::lstat => &[(1, Stat)],
        Call::newfstatat => &[(2, Stat)],
        Call::statx => &[(4, Are(256))],
        Call::statfs | Call::fstatfs => &[(1, Are(120))],
        Call::poll | Call::ppoll => &[(0, Given(1, 8))],
        Call::epoll_wait | Call::epoll_pwait => &[(1, Polled)],
        Call::rt_sigaction => &[(2, Are(32))],
        Call::rt_sigprocmask => &[(2, Given(3, 1))],
        Call::sigaltstack => &[(1, Are(24))],
        Call::pipe | Call::pipe2 => &[(0, Are(8))],
        Call::socketpair => &[(3, Are(8))],
        Call::accept | Call::accept4 | Call::getsockname | Call::getpeername => {
            &[(1, At(2)), (2, Are(4))]
        }
        Call::getsockopt => &[(3, At(4)), (4, Are(4))],
        Call::wait4 => &[(1, Are(4)), (3, Are(144))],
        Call::uname => &[(0, Are(390))],
        Call::getcwd => &[(0, Returned(1))],
        Call::readlink => &[(1, Returned(1))],
        Call::readlinkat => &[(2, Returned(1))],
        Call::getdents | Call::getdents64 => &[(1, Returned(1))],
        Call::gettimeofday => &[(0, Are(16)), (1, Are(8))],
        Call::clock_gettime | Call::clock_getres => &[(1, Are(16))],
        Call::time => &[(0, Are(8))],
        Call::times => &[(0, Are(32))],
        Call::getrlimit => &[(1, Are(16))],
        Call::prlimit64 => &[(3, Are(16))],
        Call::getrusage => &[(1, Are(144))],
        Call::sysinfo => &[(0, Are(112))],
        Call::sched_getaffinity => &[(2, Returned(1))],
        Call::getrandom => &[(0, Returned(1))],
        Call::getgroups => &[(1, Returned(4))],
        Call::getresuid | Call::getresgid => &[(0, Are(4)), (1, Are(4)), (2, Are(4))],
        Call::timerfd_settime => &[(3, Are(32))],
        Call::getitimer => &[(1, Are(32))],
        // Vectors, and what is written to files, are told apart below.
        Call::readv | Call::preadv | Call::recvmsg | Call::write
        | Call::pwrite64 | Call::writev | Call::pwritev | Call::sendfile
        | Call::copy_file_range | Call::ftruncate | Call::fallocate
        // Nothing.
        | Call::mmap | Call::munmap | Call::mremap | Call::brk
        | Call::mprotect | Call::madvise | Call::msync | Call::arch_prctl
        | Call::open | Call::openat | Call::close | Call::lseek
        | Call::access | Call::faccessat | Call::unlink | Call::unlinkat
        | Call::mkdir | Call::mkdirat | Call::rename | Call::renameat | Call::renameat2
        | Call::fsync | Call::fdatasync | Call::sendto | Call::sendmsg
        | Call::connect | Call::bind | Call::listen | Call::setsockopt
        | Call::epoll_ctl | Call::futex | Call::set_robust_list
        | Call::set_tid_address | Call::clone | Call::exit | Call::exit_group
        | Call::nanosleep | Call::clock_nanosleep | Call::sched_yield
        | Call::rt_sigreturn | Call::kill | Call::tgkill => &[],
        _ => return None,
    })
}

/// A call has returned, and not failed.
pub fn of_call(thread: &mut Thread, call: Option<Call>, result: u64) {
    if tracer().regions.is_empty() {
        return;
    }
    thread.may_write_for_call();
    writes(thread, call, result);
    if may_resize(call) {
        for position in tracer().regions.resized() {
            thread.event(&Event::Resized { position });
        }
    }
}

/// Tells whether a call may change the length of a file: one that writes to it, opens it, or is unknown.
fn may_resize(call: Option<Call>) -> bool {
    call.and_then(written).is_none()
        || matches!(
            call,
            Some(
                Call::copy_file_range
                    | Call::fallocate
                    | Call::ftruncate
                    | Call::open
                    | Call::openat
                    | Call::pwrite64
                    | Call::pwritev
                    | Call::sendfile
                    | Call::write
                    | Call::writev
            )
        )
}

/// Tells what a call has written.
fn writes(thread: &mut Thread, call: Option<Call>, result: u64) {
    let arguments = thread.arguments;
    let Some(parts) = call.and_then(written) else {
        for argument in arguments {
            found(thread, argument, UNKNOWN_BYTES);
        }
        return;
    };
    for &(to, bytes) in parts {
        let to = arguments[to];
        match bytes {
            Are(bytes) => wrote(thread, to, bytes),
            Returned(each) => wrote(thread, to, result.saturating_mul(each)),
            Given(argument, each) => wrote(thread, to, arguments[argument].saturating_mul(each)),
            At(argument) if to != 0 && arguments[argument] != 0 => {
                // SAFETY: the call has just written there.
                let most = unsafe { read_word(arguments[argument]) } & 0xffff_ffff;
                found(thread, to, most.min(UNKNOWN_BYTES));
            }
            At(_) => {}
            Stat => wrote(thread, to, of_guest().stat_bytes),
            Polled => wrote(thread, to, result.saturating_mul(of_guest().epoll_bytes)),
        }
    }
    let [a, b, c, d, ..] = arguments;
    let Some(call) = call else { return };
    match call {
        Call::readv | Call::preadv => wrote_vector(thread, b, c, result),
        Call::recvmsg => received(thread, b, result),
        Call::write => wrote_file(thread, a as RawFd, &[(b, result)], None),
        Call::pwrite64 => wrote_file(thread, a as RawFd, &[(b, result)], Some(d)),
        Call::writev => wrote_file(thread, a as RawFd, &vector(b, c, result), None),
        Call::pwritev => wrote_file(thread, a as RawFd, &vector(b, c, result), Some(d)),
        Call::sendfile => {
            wrote(thread, c, 8);
            copied(thread, a as RawFd, 0, result);
        }
        Call::copy_file_range => {
            wrote(thread, b, 8);
            wrote(thread, d, 8);
            copied(thread, c as RawFd, d, result);
        }
        Call::ftruncate => zeroed(thread, a as RawFd, b, u64::MAX),
        Call::fallocate if b & !(libc::FALLOC_FL_KEEP_SIZE as u64) != 0 => {
            zeroed(thread, a as RawFd, c, d);
        }
        _ => {}
    }
}

/// A call is under way of which it is not known whether the kernel has written what it writes: what is there now, it has. Returns
/// positions and bytes.
pub fn under_way(thread: &mut Thread) -> Vec<(u64, Vec<u8>)> {
    let arguments = thread.arguments;
    // Of a call that reads, the third says how many bytes at most.
    let most = match thread.call {
        _ if !thread.is_calling => return Vec::new(),
        Some(Call::read | Call::pread64 | Call::recvfrom) => arguments[2],
        _ => UNKNOWN_BYTES,
    };
    arguments.into_iter().flat_map(|argument| found(thread, argument, most)).collect()
}

/// The kernel has written `bytes` to an address.
fn wrote(thread: &mut Thread, address: u64, bytes: u64) {
    for (address, position, bytes) in tracer().regions.parts(address, bytes) {
        // SAFETY: the call has just written there.
        pieces(thread, position, unsafe { bytes_at(address, bytes as usize) });
    }
}

/// The kernel may have written `bytes`: returns the positions of the persistent ones, and their content.
pub fn found(thread: &mut Thread, address: u64, bytes: u64) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    for (address, position, bytes) in tracer().regions.parts(address, bytes) {
        // SAFETY: persistent memory is mapped, and the program may read it.
        let bytes = unsafe { bytes_at(address, bytes as usize) };
        for (piece, position) in in_pieces(position, bytes) {
            let bytes = piece.to_vec();
            all.push((position, bytes.clone()));
            thread.event(&Event::Found { position, bytes });
        }
    }
    all
}

/// The parts of a vector that `bytes` fill.
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

/// A message was received: its sender's name, its vector, what comes with it, and its description.
fn received(thread: &mut Thread, message: u64, bytes: u64) {
    // SAFETY: the call has just used it.
    let word = |number: u64| unsafe { read_word(message + number * 8) };
    found(thread, word(0), word(1) & 0xffff_ffff);
    wrote_vector(thread, word(2), word(3), bytes);
    found(thread, word(4), word(5).min(UNKNOWN_BYTES));
    wrote(thread, message, 56);
}

/// These bytes were written to a file, at this offset, or where it stood.
fn wrote_file(thread: &mut Thread, fd: RawFd, parts: &[(u64, u64)], offset: Option<u64>) {
    let Some(region) = tracer().regions.known(fd) else { return };
    let all: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    let mut at = offset.unwrap_or_else(|| stood(fd).saturating_sub(all));
    for &(address, bytes) in parts {
        // SAFETY: the call has just read there.
        pieces(thread, position(region, at), unsafe { bytes_at(address, bytes as usize) });
        at += bytes;
    }
}

/// The position of an open file.
fn stood(fd: RawFd) -> u64 {
    // SAFETY: a plain call on an open file.
    let behind = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
    behind as u64
}

/// The kernel has copied `bytes` of another file to this one. Where to is at an address, and has moved on, or is the file's
/// position.
fn copied(thread: &mut Thread, fd: RawFd, offset: u64, bytes: u64) {
    let regions = &tracer().regions;
    let Some(region) = regions.known(fd) else { return };
    // SAFETY: the call has just written there.
    let behind = if offset == 0 { stood(fd) } else { unsafe { read_word(offset) } };
    let at = behind.saturating_sub(bytes);
    match regions.read_file(region, at, bytes) {
        Ok(found) => pieces(thread, position(region, at), &found),
        Err(error) => eprintln!("graven: what was copied to a file is not traced: {error}"),
    }
}

/// A part of a file is zero from now on, or is there no more.
fn zeroed(thread: &mut Thread, fd: RawFd, offset: u64, bytes: u64) {
    if let Some(region) = tracer().regions.known(fd) {
        thread.event(&Event::Zeroed { position: position(region, offset), bytes });
    }
}

/// Bytes that the kernel has written, piece by piece.
fn pieces(thread: &mut Thread, position: u64, bytes: &[u8]) {
    for (piece, position) in in_pieces(position, bytes) {
        thread.event(&Event::KernelWrote { position, bytes: piece.to_vec() });
    }
}

/// Pieces of bytes, and their positions.
fn in_pieces(position: u64, bytes: &[u8]) -> impl Iterator<Item = (&[u8], u64)> {
    bytes.chunks(PIECE_BYTES_MAX).zip((position..).step_by(PIECE_BYTES_MAX))
}
