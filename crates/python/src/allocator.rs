//! The allocator of native modules: the system's, with a reserve.
//!
//! An allocator may not unwind, and collections end the process when it gives them nothing. So when the system refuses, a
//! reserve is given back to it, what was asked for is asked for again, and the computation of this thread is told
//! ([`graven::host`]): it ends soon, as if it was cancelled, and gives back all that it has. If the reserve is gone, another
//! computation is about to end, and this one waits for what that gives back. The reserve are addresses that nothing is ever
//! written to: it counts where address space is limited (`ulimit -v`) or memory is promised strictly, which is where the
//! system refuses at all, and takes no memory anywhere.
//!
//! What remains: something larger than the reserve that cannot be refused (a table that doubles its size, say) still ends the
//! process when it is refused; images, which are most of a simulation's memory, never do.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::Duration;

use graven::host::{OutOfMemory, note_reserve, note_shortage};
use memmap2::MmapMut;

/// Bytes of the reserve.
const RESERVE_BYTES: usize = 32 << 20;

/// Of which there must be so much for anything to begin.
const LEAST_BYTES: usize = 4 << 20;

/// How often one waits for memory of another computation, and how long each time.
const PATIENCE: (u32, Duration) = (200, Duration::from_millis(20));

static RESERVE: Mutex<Option<MmapMut>> = Mutex::new(None);

/// Puts the reserve in place, unless it is there: all of it, or as much as there is. Whoever cannot have a little of it, even
/// if it waits for what others give back, must not begin.
///
/// # Errors
/// So much of it cannot be had.
pub fn set_reserve() -> Result<(), OutOfMemory> {
    let (times, pause) = PATIENCE;
    for _ in 0..times {
        if fill_reserve() {
            return Ok(());
        }
        sleep(pause);
    }
    Err(OutOfMemory { bytes: LEAST_BYTES as u64 })
}

fn has_reserve() -> bool {
    RESERVE.lock().is_ok_and(|reserve| reserve.is_some())
}

/// Puts the reserve in place, unless it is there, without waiting; whether some of it could be had.
pub fn fill_reserve() -> bool {
    if has_reserve() {
        return true;
    }
    let sizes = std::iter::successors(Some(RESERVE_BYTES), |bytes| Some(bytes / 2));
    // Not under the lock, which an allocation may want.
    let new =
        sizes.take_while(|&bytes| bytes >= LEAST_BYTES).find_map(|n| MmapMut::map_anon(n).ok());
    let surplus = match RESERVE.lock() {
        Ok(mut reserve) if reserve.is_none() => std::mem::replace(&mut *reserve, new),
        _ => new,
    };
    drop(surplus);
    let is_there = has_reserve();
    note_reserve(!is_there);
    is_there
}

/// Gives the reserve back to the system; whether it was there.
fn give_back() -> bool {
    note_reserve(true);
    RESERVE.lock().is_ok_and(|mut reserve| reserve.take().is_some())
}

#[global_allocator]
static ALLOCATOR: WithReserve = WithReserve;

struct WithReserve;

/// Asks again for what the system has refused.
#[cold]
#[inline(never)]
fn again(bytes: usize, ask: &dyn Fn() -> *mut u8) -> *mut u8 {
    note_shortage(bytes as u64);
    if give_back() {
        let found = ask();
        if !found.is_null() {
            return found;
        }
    }
    let (times, pause) = PATIENCE;
    for _ in 0..times {
        sleep(pause);
        let found = ask();
        if !found.is_null() {
            return found;
        }
    }
    std::ptr::null_mut()
}

// SAFETY: each method does what the system's does with the same arguments, or that again; nothing here unwinds or allocates.
#[allow(unsafe_code)]
unsafe impl GlobalAlloc for WithReserve {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system's asks for.
        let found = unsafe { System.alloc(layout) };
        if found.is_null() {
            // SAFETY: as above.
            return again(layout.size(), &|| unsafe { System.alloc(layout) });
        }
        found
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        let found = unsafe { System.alloc_zeroed(layout) };
        if found.is_null() {
            // SAFETY: as above.
            return again(layout.size(), &|| unsafe { System.alloc_zeroed(layout) });
        }
        found
    }

    #[inline]
    unsafe fn realloc(&self, old: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as above.
        let found = unsafe { System.realloc(old, layout, bytes) };
        if found.is_null() {
            // SAFETY: as above; what was refused has left the old block as it was.
            return again(bytes, &|| unsafe { System.realloc(old, layout, bytes) });
        }
        found
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}
