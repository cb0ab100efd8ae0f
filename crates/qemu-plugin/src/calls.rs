//! System calls, whatever their numbers: each architecture has its own.

use syscalls::aarch64;
/// A system call, by the name that it has on x86-64.
pub use syscalls::x86_64::Sysno as Call;

/// Returns the call of a number on AArch64.
pub fn of_aarch64(number: usize) -> Option<Call> {
    match aarch64::Sysno::new(number)? {
        aarch64::Sysno::fstatat => Some(Call::newfstatat),
        call => call.name().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names that libraries of both architectures have differ in few places.
    #[test]
    fn calls_of_aarch64_have_the_names_of_x86_64() {
        let known =
            [(56, Call::openat), (63, Call::read), (79, Call::newfstatat), (222, Call::mmap)];
        for (number, call) in known {
            assert_eq!(of_aarch64(number), Some(call));
        }
        let missing = (0..260).filter(|&number| {
            aarch64::Sysno::new(number).is_some() && of_aarch64(number).is_none()
        });
        assert_eq!(missing.count(), 0);
        assert_eq!(of_aarch64(10_000), None);
    }
}
