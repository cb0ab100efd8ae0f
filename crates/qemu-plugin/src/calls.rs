//! System calls, whatever their numbers: each architecture has its own.

macro_rules! calls {
    ($($call:ident $x86_64:literal $aarch64:literal,)*) => {
        /// Those of which something is known.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Call {
            /// Nothing is known of it.
            Other,
            $(#[allow(missing_docs, reason = "the kernel's name says it")] $call,)*
        }

        /// Each, and its number on x86-64 and on AArch64.
        const CALLS: &[(Call, [i16; 2])] = &[$((Call::$call, [$x86_64, $aarch64]),)*];
    };
}

// -1: there is none.
calls! {
    Read 0 63,
    Pread64 17 67,
    Readv 19 65,
    Preadv 295 69,
    Write 1 64,
    Pwrite64 18 68,
    Writev 20 66,
    Pwritev 296 70,
    Sendfile 40 71,
    CopyFileRange 326 285,
    Ftruncate 77 46,
    Fallocate 285 47,
    Open 2 -1,
    Openat 257 56,
    Close 3 57,
    Lseek 8 62,
    Access 21 -1,
    Faccessat 269 48,
    Unlink 87 -1,
    Unlinkat 263 35,
    Mkdir 83 -1,
    Mkdirat 258 34,
    Rename 82 -1,
    Renameat 264 38,
    Renameat2 316 276,
    Fsync 74 82,
    Fdatasync 75 83,
    Stat 4 -1,
    Fstat 5 80,
    Lstat 6 -1,
    Newfstatat 262 79,
    Statx 332 291,
    Statfs 137 43,
    Fstatfs 138 44,
    Getcwd 79 17,
    Readlink 89 -1,
    Readlinkat 267 78,
    Getdents 78 -1,
    Getdents64 217 61,
    Pipe 22 -1,
    Pipe2 293 59,
    Poll 7 -1,
    Ppoll 271 73,
    EpollWait 232 -1,
    EpollPwait 281 22,
    EpollCtl 233 21,
    Socketpair 53 199,
    Connect 42 203,
    Bind 49 200,
    Listen 50 201,
    Accept 43 202,
    Accept4 288 242,
    Getsockname 51 204,
    Getpeername 52 205,
    Setsockopt 54 208,
    Getsockopt 55 209,
    Sendto 44 206,
    Sendmsg 46 211,
    Recvfrom 45 207,
    Recvmsg 47 212,
    Mmap 9 222,
    Munmap 11 215,
    Mremap 25 216,
    Brk 12 214,
    Mprotect 10 226,
    Madvise 28 233,
    Msync 26 227,
    ArchPrctl 158 -1,
    Clone 56 220,
    Fork 57 -1,
    Vfork 58 -1,
    Execve 59 221,
    Exit 60 93,
    ExitGroup 231 94,
    Wait4 61 260,
    Kill 62 129,
    Tgkill 234 131,
    Futex 202 98,
    SetRobustList 273 99,
    SetTidAddress 218 96,
    SchedYield 24 124,
    SchedGetaffinity 204 123,
    RtSigaction 13 134,
    RtSigprocmask 14 135,
    RtSigreturn 15 139,
    Sigaltstack 131 132,
    Nanosleep 35 101,
    ClockNanosleep 230 115,
    ClockGettime 228 113,
    ClockGetres 229 114,
    Gettimeofday 96 169,
    Time 201 -1,
    Times 100 153,
    TimerfdSettime 286 86,
    Getitimer 36 102,
    Uname 63 160,
    Sysinfo 99 179,
    Getrlimit 97 163,
    Prlimit64 302 261,
    Getrusage 98 165,
    Getgroups 115 158,
    Getresuid 118 148,
    Getresgid 120 150,
    Getrandom 318 278,
}

/// Numbers are below this.
const NUMBERS: usize = 512;

/// System calls by their numbers.
pub type Numbers = [Call; NUMBERS];

/// On x86-64.
pub static X86_64: Numbers = by_number(0);

/// On AArch64, and whatever else has the kernel's generic table.
pub static AARCH64: Numbers = by_number(1);

const fn by_number(column: usize) -> Numbers {
    let mut calls = [Call::Other; NUMBERS];
    let mut at = 0;
    while at < CALLS.len() {
        let (call, numbers) = CALLS[at];
        if numbers[column] >= 0 {
            calls[numbers[column] as usize] = call;
        }
        at += 1;
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_calls_have_the_same_number() {
        for (column, numbers) in [&X86_64, &AARCH64].into_iter().enumerate() {
            for &(call, of) in CALLS {
                if let Ok(number) = usize::try_from(of[column]) {
                    assert_eq!(numbers[number], call);
                }
            }
        }
    }
}
