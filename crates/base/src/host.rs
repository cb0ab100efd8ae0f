//! The host: memory that it refuses, and its caches.
//!
//! A simulation whose estimate does not fit is refused before it starts. Images, which are most of a simulation's memory, and
//! stacks of programs end the computation with [`OutOfMemory`] where the host refuses them all the same
//! ([`crate::control::ended_text`]); a refusal of anything else ends the process, as Rust's collections have it.

use std::panic::resume_unwind;
use std::thread::ScopedJoinHandle;

use thiserror::Error;

/// The host has refused memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "out of memory: the host refused {:.1} MB more; a smaller workload.footprint_bytes, fewer simulations at a time or a higher \
     limit of memory would do",
    *bytes as f64 / (1u64 << 20) as f64
)]
pub struct OutOfMemory {
    /// Bytes that were asked for.
    pub bytes: u64,
}

/// Ends the computation of this thread, which the host refuses these bytes.
///
/// # Panics
/// Always, with an [`OutOfMemory`]; nothing is printed.
#[cold]
pub fn out_of_memory(bytes: u64) -> ! {
    resume_unwind(Box::new(OutOfMemory { bytes }))
}

/// The result of a part of a computation on a thread of its own.
///
/// # Panics
/// With the panic of the part, if it has panicked.
pub fn joined<T>(part: ScopedJoinHandle<'_, T>) -> T {
    part.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// A line of the host's caches, in bytes.
pub const LINE_BYTES: usize = 64;

/// Asks the processor to bring a place in memory near, ahead of its use, where it can be asked.
#[inline]
pub fn prefetch<T>(place: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it is the address of something that is there, and a prefetch has no architectural effect.
    #[allow(unsafe_code)]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch(std::ptr::from_ref(place).cast::<i8>(), _MM_HINT_T0);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::control::ended_text;

    fn ended<T>(run: impl FnOnce() -> T + std::panic::UnwindSafe) -> String {
        ended_text(catch_unwind(run).err().expect("it ends").as_ref())
    }

    #[test]
    fn what_cannot_be_had_ends_a_computation_and_says_how_much_it_was() {
        let text = ended(|| out_of_memory(1 << 62));
        assert!(
            text.starts_with("out of memory: the host refused 4398046511104.0 MB more"),
            "{text}"
        );
        assert_eq!(ended(|| panic!("other")), "internal error of the engine: other");
    }
}
