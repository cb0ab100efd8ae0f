//! What the kernel writes for a system call: into persistent memory, or into a file that is.

use std::os::fd::RawFd;

use graven_capture::{Event, PIECE_BYTES_MAX, position};

use crate::architecture::of_guest;
use crate::calls::Call;
use crate::guest::{bytes_at, read_word};
use crate::thread::Thread;
use crate::tracer::tracer;

/// Most bytes that are looked at behind an argument of a call of which it is not known what it writes.
const UNKNOWN_BYTES: u64 = 512;

/// How many bytes.
#[derive(Clone, Copy, Debug)]
enum Bytes {
    /// As many.
    Are(u64),
    /// What the call returns, times this.
    Returned(u64),
    /// What an argument says, times this.
    Given(usize, u64),
    /// No more than what the number at an argument says, which the call may have lowered.
    At(usize),
    /// What the kernel says of a file.
    Stat,
    /// As many events as the call returns.
    Polled,
}

use Bytes::{Are, At, Given, Polled, Returned, Stat};

/// What a call writes: the argument that points there, and how many bytes. None: that is not known.
fn written(call: Call) -> Option<&'static [(usize, Bytes)]> {
    Some(match call {
        Call::Read | Call::Pread64 => &[(1, Returned(1))],
        Call::Recvfrom => &[(1, Returned(1)), (4, At(5)), (5, Are(4))],
        Call::Stat | Call::Fstat | Call::Lstat => &[(1, Stat)],
        Call::Newfstatat => &[(2, Stat)],
        Call::Statx => &[(4, Are(256))],
        Call::Statfs | Call::Fstatfs => &[(1, Are(120))],
        Call::Poll | Call::Ppoll => &[(0, Given(1, 8))],
        Call::EpollWait | Call::EpollPwait => &[(1, Polled)],
        Call::RtSigaction => &[(2, Are(32))],
        Call::RtSigprocmask => &[(2, Given(3, 1))],
        Call::Sigaltstack => &[(1, Are(24))],
        Call::Pipe | Call::Pipe2 => &[(0, Are(8))],
        Call::Socketpair => &[(3, Are(8))],
        Call::Accept | Call::Accept4 | Call::Getsockname | Call::Getpeername => {
            &[(1, At(2)), (2, Are(4))]
        }
        Call::Getsockopt => &[(3, At(4)), (4, Are(4))],
        Call::Wait4 => &[(1, Are(4)), (3, Are(144))],
        Call::Uname => &[(0, Are(390))],
        Call::Getcwd => &[(0, Returned(1))],
        Call::Readlink => &[(1, Returned(1))],
        Call::Readlinkat => &[(2, Returned(1))],
        Call::Getdents | Call::Getdents64 => &[(1, Returned(1))],
        Call::Gettimeofday => &[(0, Are(16)), (1, Are(8))],
        Call::ClockGettime | Call::ClockGetres => &[(1, Are(16))],
        Call::Time => &[(0, Are(8))],
        Call::Times => &[(0, Are(32))],
        Call::Getrlimit => &[(1, Are(16))],
        Call::Prlimit64 => &[(3, Are(16))],
        Call::Getrusage => &[(1, Are(144))],
        Call::Sysinfo => &[(0, Are(112))],
        Call::SchedGetaffinity => &[(2, Returned(1))],
        Call::Getrandom => &[(0, Returned(1))],
        Call::Getgroups => &[(1, Returned(4))],
        Call::Getresuid | Call::Getresgid => &[(0, Are(4)), (1, Are(4)), (2, Are(4))],
        Call::TimerfdSettime => &[(3, Are(32))],
        Call::Getitimer => &[(1, Are(32))],
        // Vectors, and what is written to files, are told apart below.
        Call::Readv | Call::Preadv | Call::Recvmsg | Call::Write
        | Call::Pwrite64 | Call::Writev | Call::Pwritev | Call::Sendfile
        | Call::CopyFileRange | Call::Ftruncate | Call::Fallocate
        // Nothing.
        | Call::Mmap | Call::Munmap | Call::Mremap | Call::Brk
        | Call::Mprotect | Call::Madvise | Call::Msync | Call::ArchPrctl
        | Call::Open | Call::Openat | Call::Close | Call::Lseek
        | Call::Access | Call::Faccessat | Call::Unlink | Call::Unlinkat
        | Call::Mkdir | Call::Mkdirat | Call::Rename | Call::Renameat | Call::Renameat2
        | Call::Fsync | Call::Fdatasync | Call::Sendto | Call::Sendmsg
        | Call::Connect | Call::Bind | Call::Listen | Call::Setsockopt
        | Call::EpollCtl | Call::Futex | Call::SetRobustList
        | Call::SetTidAddress | Call::Clone | Call::Exit | Call::ExitGroup
        | Call::Nanosleep | Call::ClockNanosleep | Call::SchedYield
        | Call::RtSigreturn | Call::Kill | Call::Tgkill => &[],
        _ => return None,
    })
}

/// A call has returned, and not failed.
pub fn of_call(thread: &mut Thread, call: Call, result: u64) {
    if tracer().regions.is_empty() {
        return;
    }
    writes(thread, call, result);
    if may_resize(call) {
        for position in tracer().regions.resized() {
            thread.event(&Event::Resized { position });
        }
    }
}

/// Whether a call may change the length of a file: one that writes to it, opens it, or does what is not known.
fn may_resize(call: Call) -> bool {
    use Call::{
        CopyFileRange, Fallocate, Ftruncate, Open, Openat, Other, Pwrite64, Pwritev, Sendfile,
        Write, Writev,
    };
    let may = [
        CopyFileRange,
        Fallocate,
        Ftruncate,
        Open,
        Openat,
        Other,
        Pwrite64,
        Pwritev,
        Sendfile,
        Write,
        Writev,
    ];
    may.contains(&call)
}

/// Tells what a call has written.
fn writes(thread: &mut Thread, call: Call, result: u64) {
    let arguments = thread.arguments;
    let Some(parts) = written(call) else {
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
    match call {
        Call::Readv | Call::Preadv => wrote_vector(thread, b, c, result),
        Call::Recvmsg => received(thread, b, result),
        Call::Write => wrote_file(thread, a as RawFd, &[(b, result)], None),
        Call::Pwrite64 => wrote_file(thread, a as RawFd, &[(b, result)], Some(d)),
        Call::Writev => wrote_file(thread, a as RawFd, &vector(b, c, result), None),
        Call::Pwritev => wrote_file(thread, a as RawFd, &vector(b, c, result), Some(d)),
        Call::Sendfile => {
            wrote(thread, c, 8);
            copied(thread, a as RawFd, 0, result);
        }
        Call::CopyFileRange => {
            wrote(thread, b, 8);
            wrote(thread, d, 8);
            copied(thread, c as RawFd, d, result);
        }
        Call::Ftruncate => zeroed(thread, a as RawFd, b, u64::MAX),
        Call::Fallocate if b & !(libc::FALLOC_FL_KEEP_SIZE as u64) != 0 => {
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
        None => return Vec::new(),
        Some(Call::Read | Call::Pread64 | Call::Recvfrom) => arguments[2],
        Some(_) => UNKNOWN_BYTES,
    };
    arguments.into_iter().flat_map(|argument| found(thread, argument, most)).collect()
}

/// The kernel has written so many bytes to an address.
fn wrote(thread: &mut Thread, address: u64, bytes: u64) {
    for (address, position, bytes) in tracer().regions.parts(address, bytes) {
        // SAFETY: the call has just written there.
        pieces(thread, position, unsafe { bytes_at(address, bytes as usize) });
    }
}

/// It may have written so many: returns positions of what is there, and what it is.
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

/// Where an open file stands.
fn stood(fd: RawFd) -> u64 {
    // SAFETY: a plain call on an open file.
    let behind = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
    behind as u64
}

/// So many bytes of another file were written to one; where to is at an address, and has moved on, or the file stood there.
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
