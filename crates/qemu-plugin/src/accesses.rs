//! Loads and stores, as QEMU calls for each of them.

use std::ffi::{c_uint, c_void};

use graven_capture::{ACCESS_BYTES_MAX, Accessed, Event, shared_place};

use crate::guest::bytes_at;
use crate::instruction::Kind;
use crate::qemu;
use crate::repeated::Place;
use crate::thread::{Thread, thread};
use crate::tracer::tracer;

/// The bits of the datum of an access's hook that are the instruction's number in its block, from 1 on.
const NUMBER_BITS: u32 = 16;

/// The bit that says that it is non-temporal.
const NON_TEMPORAL: u64 = 1 << NUMBER_BITS;

/// The bit that says that it is an atomic instruction's.
const ATOMIC: u64 = 2 << NUMBER_BITS;

/// The bit that says that threads synchronise by it.
const ORDERED: u64 = 4 << NUMBER_BITS;

/// The bits below those of the instruction's site.
const SITE_BITS: u32 = 32;

/// The datum of a repeated instruction's hook. Lives as long as the process, like the code that QEMU makes of it.
struct Repeated {
    /// The instruction's number in its block.
    number: u64,
    address: u64,
    site: u32,
}

/// The hook, and its datum, for each access of an instruction, the one of this number in its block, at this address and with this
/// site. `is_before_flush`: a flush follows in its block, whose address may come from what it loads.
pub fn hook(
    kind: Kind,
    number: u64,
    (address, site): (u64, u32),
    is_before_flush: bool,
) -> (qemu::AccessHook, u64) {
    let data = datum(number, site);
    let ordinary = if is_before_flush { accesses_before_flush } else { accesses };
    match kind {
        Kind::Repeated => {
            let data = Box::leak(Box::new(Repeated { number, address, site }));
            (repeats, std::ptr::from_mut(data) as u64)
        }
        Kind::NonTemporal => (ordinary, data | NON_TEMPORAL),
        Kind::Atomic => (ordinary, data | ATOMIC),
        Kind::Ordered => (ordinary, data | ORDERED),
        Kind::LoadsExclusively => (loads_exclusively, data | ORDERED),
        Kind::StoresExclusively => (stores_exclusively, data | ORDERED),
        _ => (ordinary, data),
    }
}

/// The datum of an ordinary access.
fn datum(number: u64, site: u32) -> u64 {
    number | u64::from(site) << SITE_BITS
}

extern "C" fn accesses(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    // Places of atomic instructions are known from the start.
    if data as u64 & (ATOMIC | ORDERED) == 0 && tracer().records_nothing_yet() {
        // SAFETY: `info` is QEMU's own, of this access.
        let is_store = unsafe { qemu::qemu_plugin_mem_is_store(info) };
        count(thread(vcpu), is_store);
        return;
    }
    let (size, is_store) = size_and_direction(info);
    let is_both = qemu::is_load_and_store(info);
    accessed::<false>(thread(vcpu), (address, size), is_store, is_both, data as u64);
}

extern "C" fn accesses_before_flush(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    accesses(vcpu, info, address, data);
    let (size, is_store) = size_and_direction(info);
    let number = data as u64 & (NON_TEMPORAL - 1);
    thread(vcpu).before_flush(number, (address, size), is_store);
}

extern "C" fn repeats(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    // SAFETY: it was leaked when the instruction was translated.
    let repeated = unsafe { &*data.cast::<Repeated>() };
    let (size, is_store) = size_and_direction(info);
    let thread = thread(vcpu);
    thread.repeats(repeated.address);
    let data = datum(repeated.number, repeated.site);
    accessed::<true>(thread, (address, size), is_store, false, data);
}

#[inline(always)]
fn count(thread: &mut Thread, is_store: bool) {
    *(if is_store { &mut thread.counts.stores } else { &mut thread.counts.loads }) += 1;
}

/// The number of bytes of an access, and whether the access stores.
#[inline(always)]
fn size_and_direction(info: u32) -> (usize, bool) {
    // SAFETY: `info` is QEMU's own, of this access.
    unsafe { (1 << qemu::qemu_plugin_mem_size_shift(info), qemu::qemu_plugin_mem_is_store(info)) }
}

extern "C" fn loads_exclusively(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    // SAFETY: as before.
    let size = 1 << unsafe { qemu::qemu_plugin_mem_size_shift(info) };
    // SAFETY: the program has just loaded these bytes.
    thread(vcpu).exclusive.loads(address, unsafe { bytes_at(address, size) });
    accesses(vcpu, info, address, data);
}

/// An exclusive store that does not store may have an access nevertheless.
extern "C" fn stores_exclusively(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    if thread(vcpu).exclusive.is_stored {
        accesses(vcpu, info, address, data);
    }
}

/// The hook that QEMU calls before an instruction of this kind, so that its accesses are understood.
pub fn hook_before(kind: Kind) -> Option<qemu::ExecutionHook> {
    match kind {
        Kind::LoadsExclusively => Some(will_load_exclusively),
        Kind::StoresExclusively => Some(will_store_exclusively),
        _ => None,
    }
}

unsafe extern "C" fn will_load_exclusively(vcpu: c_uint, _data: *mut c_void) {
    thread(vcpu).exclusive.clear();
}

/// No other thread executes between here and the store.
unsafe extern "C" fn will_store_exclusively(vcpu: c_uint, _data: *mut c_void) {
    let exclusive = &mut thread(vcpu).exclusive;
    let (address, loaded) = exclusive.loaded();
    // SAFETY: the program has loaded these bytes, and made no system call since.
    let now = (!loaded.is_empty()).then(|| unsafe { bytes_at(address, loaded.len()) });
    exclusive.is_stored = now == Some(loaded);
}

/// An instruction, the one of this number in its block and of this site, has stored `bytes`: a power of two of them, and no more than
/// [`ACCESS_BYTES_MAX`].
pub fn stored(thread: &mut Thread, address: u64, size: usize, number: u64, site: u32) {
    accessed::<false>(thread, (address, size), true, false, datum(number, site));
}

/// An access, of a repeated instruction or of another.
#[inline(always)]
fn accessed<const IS_REPEATED: bool>(
    thread: &mut Thread,
    (address, size): (u64, usize),
    is_store: bool,
    is_both: bool,
    data: u64,
) {
    count(thread, is_store);
    let tracer = tracer();
    let (regions, instruction) = (&tracer.regions, data & (NON_TEMPORAL - 1));
    let by = (instruction, (data >> SITE_BITS) as u32);
    if size > ACCESS_BYTES_MAX {
        return;
    }
    let volatile = |thread: &mut Thread| {
        if is_both {
            volatile_memory::<IS_REPEATED>(thread, by, (address, size), false);
        }
        volatile_memory::<IS_REPEATED>(thread, by, (address, size), is_store);
    };
    if !regions.are_looked_at(address, size as u64) {
        volatile(thread);
        return;
    }
    let has_threads = tracer.turns.are_needed();
    if has_threads && !regions.may_have(address, size as u64) {
        synchronises(thread, data, is_store, address, size as u64);
        volatile(thread);
        return;
    }
    let how = match (is_store, data & NON_TEMPORAL != 0) {
        (false, _) => Accessed::Loaded,
        (true, false) => Accessed::Stored,
        (true, true) => Accessed::StoredNonTemporally,
    };
    if let Some(position) = regions.find(address, size as u64) {
        // SAFETY: the program has just accessed these bytes.
        let bytes = unsafe { bytes_at(address, size) };
        if has_threads {
            synchronises(thread, data, is_store, shared_place(position), size as u64);
        }
        if is_both {
            thread.access(by, position, bytes, Accessed::LoadedBefore);
        }
        persistent_memory::<IS_REPEATED>(thread, by, position, bytes, how);
        if has_threads {
            thread.closes_access();
        }
        return;
    }
    if !regions.overlaps(address, size as u64) {
        if has_threads {
            synchronises(thread, data, is_store, address, size as u64);
        }
        volatile(thread);
        return;
    }
    // Over the edge of a mapping, byte by byte.
    for (address, position, bytes) in regions.parts(address, size as u64) {
        for byte in 0..bytes {
            // SAFETY: as before.
            let bytes = unsafe { bytes_at(address + byte, 1) };
            persistent_memory::<IS_REPEATED>(thread, by, position + byte, bytes, how);
        }
    }
    if has_threads {
        thread.closes_access();
    }
}

/// An access to persistent memory, by the instruction of a number in its block and of a site.
#[inline(always)]
fn persistent_memory<const IS_REPEATED: bool>(
    thread: &mut Thread,
    by: (u64, u32),
    position: u64,
    bytes: &[u8],
    how: Accessed,
) {
    if IS_REPEATED {
        let place = Place::Persistent(position);
        thread.repeated(by, place, bytes, how == Accessed::Stored);
    } else {
        thread.access(by, position, bytes, how);
    }
}

/// An access to other memory.
#[inline(always)]
fn volatile_memory<const IS_REPEATED: bool>(
    thread: &mut Thread,
    (instruction, site): (u64, u32),
    (address, size): (u64, usize),
    is_store: bool,
) {
    if IS_REPEATED {
        let bytes = &[0; ACCESS_BYTES_MAX][..size];
        thread.repeated((instruction, site), Place::Volatile(address), bytes, is_store);
    } else {
        thread.volatile(instruction, address, size as u8, is_store);
    }
}

/// Threads synchronise by atomic instructions, and by ordinary ones at the same places.
#[inline]
fn synchronises(thread: &mut Thread, data: u64, is_store: bool, place: u64, bytes: u64) {
    let synchronised = &tracer().synchronised;
    let is_atomic = data & (ATOMIC | ORDERED) != 0;
    if is_atomic {
        synchronised.add(place, bytes);
    } else if !synchronised.has(place, bytes) {
        return;
    }
    let is_both = data & ATOMIC != 0;
    let (acquires, releases) = (is_both || !is_store, is_both || is_store);
    thread.synchronises(&Event::Synchronised { place, bytes, acquires, releases, is_atomic });
}
