//! Memory of the host that is not to be had.
//!
//! Rust's collections end the process when the host refuses them memory. What takes much of it, the images above all, asks so
//! that it can be refused, and then ends the computation, not the process: it unwinds with [`OutOfMemory`] to whoever began
//! the computation ([`crate::control::ended_text`]). All else asks an allocator that has a reserve, if the program has one: that gives what is
//! asked for out of its reserve, and says so ([`note_shortage`]); the computation ends as if it was cancelled, the next time it
//! looks ([`crate::control::Control`]).

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, Scope, ScopedJoinHandle};

use memmap2::MmapMut;
use thiserror::Error;

/// The host has refused memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "out of memory: the host refused {:.1} MB more; a smaller workload.footprint_bytes, fewer simulations at a time or a higher \
     limit of memory would do",
    *bytes as f64 / (1u64 << 20) as f64
)]
pub struct OutOfMemory {
    /// How much was asked for.
    pub bytes: u64,
}

/// What computations leave to others that end.
const LEFT_BYTES: u64 = 8 << 20;

/// Of a thread's stack.
const THREAD_BYTES: u64 = 2 << 20;

static RESERVE_IS_OUT: AtomicBool = AtomicBool::new(false);

static REFILL: OnceLock<fn() -> Result<(), OutOfMemory>> = OnceLock::new();

thread_local! {
    /// An allocator had to use its reserve for this thread, and the computation has not ended since.
    static SHORTAGE: Cell<Option<OutOfMemory>> = const { Cell::new(None) };
}

/// Ends the computation of this thread: so much was asked for and refused.
///
/// # Panics
/// Always, with an [`OutOfMemory`]; nothing is printed.
#[cold]
pub fn out_of_memory(bytes: u64) -> ! {
    resume_unwind(Box::new(OutOfMemory { bytes }))
}

/// Makes sure that so much can be had at this moment, before something takes it that cannot be refused it.
///
/// # Panics
/// It cannot, with an [`OutOfMemory`].
pub fn require(bytes: u64) {
    // A map, because an allocator would use its reserve for it.
    let wanted = usize::try_from(bytes.max(1)).ok();
    if wanted.is_none_or(|wanted| MmapMut::map_anon(wanted).is_err()) {
        out_of_memory(bytes);
    }
}

/// Makes sure, as long as the reserve of the allocator is not in place, that something is left for small things when so much
/// has been taken; a computation that is short already ends here.
///
/// # Panics
/// Nothing would be left, with an [`OutOfMemory`].
#[inline]
pub fn leave_some(bytes: u64) {
    if RESERVE_IS_OUT.load(Relaxed) {
        end_if_short();
        require(bytes + LEFT_BYTES);
    }
}

/// Has part of a computation done on a thread of its own, within a scope. What it takes that cannot be had ends the whole, when
/// the part is [`joined`].
///
/// # Panics
/// The host has no memory for the thread, with an [`OutOfMemory`].
pub fn spawn_part<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    part: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let part = move || {
        let done = part();
        end_if_short();
        done
    };
    let thread = thread::Builder::new().spawn_scoped(scope, part);
    thread.unwrap_or_else(|_| out_of_memory(THREAD_BYTES))
}

/// What a part of a computation has come to.
///
/// # Panics
/// It has panicked, with the same.
pub fn joined<T>(part: ScopedJoinHandle<'_, T>) -> T {
    part.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// The program's allocator has a reserve, which this puts in place unless it is there.
pub fn set_refill(refill: fn() -> Result<(), OutOfMemory>) {
    let _ = REFILL.set(refill);
}

/// A computation is about to begin on this thread: whatever was short before is no concern of its, and the reserve is put in
/// place, if the program's allocator has one.
///
/// # Errors
/// The reserve cannot be had: what begins could not be ended if it was refused memory.
pub fn begin() -> Result<(), OutOfMemory> {
    take_shortage();
    REFILL.get().map_or(Ok(()), |refill| refill())
}

/// The allocator's reserve is in use, or in place again.
pub fn note_reserve(is_out: bool) {
    RESERVE_IS_OUT.store(is_out, Relaxed);
}

/// An allocator has used its reserve for this thread. It allocates nothing.
pub fn note_shortage(bytes: u64) {
    let first = SHORTAGE.get().unwrap_or(OutOfMemory { bytes });
    SHORTAGE.set(Some(first));
}

/// Whether an allocator has, and the computation of this thread has to end.
#[inline]
pub fn is_short() -> bool {
    SHORTAGE.get().is_some()
}

/// Ends the computation of this thread if an allocator has used its reserve for it.
///
/// # Panics
/// It has, with an [`OutOfMemory`].
pub fn end_if_short() {
    if let Some(OutOfMemory { bytes }) = SHORTAGE.get() {
        out_of_memory(bytes);
    }
}

/// The computation of this thread has ended; what it was short of, if it was.
pub fn take_shortage() -> Option<OutOfMemory> {
    SHORTAGE.take()
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
        require(1 << 20);
        let text = ended(|| require(1 << 62));
        assert!(
            text.starts_with("out of memory: the host refused 4398046511104.0 MB more"),
            "{text}"
        );
        assert_eq!(ended(|| panic!("other")), "internal error of the engine: other");
    }

    #[test]
    fn a_shortage_is_of_one_thread_and_over_when_it_was_taken() {
        assert!(!is_short());
        note_shortage(3);
        note_shortage(5);
        assert!(is_short() && std::thread::scope(|s| !s.spawn(is_short).join().expect("it ends")));
        assert!(ended(end_if_short).starts_with("out of memory"));
        assert_eq!(take_shortage(), Some(OutOfMemory { bytes: 3 }));
        assert_eq!((is_short(), take_shortage()), (false, None));
        end_if_short();
    }
}
