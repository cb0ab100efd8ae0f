//! The memory that becomes persistent, moves, and ceases to be persistent, as the program maps and unmaps.

use std::fs;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use graven_capture::{Event, place, position};

use crate::anonymous::page_from;
use crate::functions::Part;
use crate::guest::{Readable, host_address, read_word, readable};
use crate::kernel_writes::found;
use crate::thread::Thread;
use crate::tracer::tracer;

/// A file or anonymous memory was mapped.
pub fn mapped(
    thread: &mut Thread,
    start: u64,
    bytes: u64,
    protection: u64,
    flags: u64,
    (fd, offset): (RawFd, u64),
) {
    let (tracer, bytes) = (tracer(), page_from(bytes));
    let flags = flags as i32;
    let is_shared = matches!(flags & libc::MAP_TYPE, libc::MAP_SHARED | libc::MAP_SHARED_VALIDATE);
    let was_owned = !tracer.anonymous.owned.within(start, start + bytes).is_empty();
    unmapped(thread, start, bytes);
    if flags & libc::MAP_ANONYMOUS != 0 {
        let is_stack = flags & (libc::MAP_STACK | libc::MAP_GROWSDOWN) != 0;
        // A loader puts variables that begin as zero to a fixed place; an allocator, what it has reserved.
        let is_heap = !is_shared && !is_stack && (flags & libc::MAP_FIXED == 0 || was_owned);
        if tracer.setup.heap && is_heap {
            tracer.anonymous.owned.add(start, start + bytes);
            protected(thread, start, bytes, protection);
        }
    } else if let Some(path) = path_of(fd) {
        file_mapped(thread, &path, (start, bytes), protection, is_shared.then_some(fd), offset);
    }
    for (from, to) in tracer.anonymous.named.within(start, start + bytes) {
        persists(thread, from, to);
    }
}

fn path_of(fd: RawFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{fd}")).ok()
}

fn file_mapped(
    thread: &mut Thread,
    path: &Path,
    (start, bytes): (u64, u64),
    protection: u64,
    shared: Option<RawFd>,
    offset: u64,
) {
    let tracer = tracer();
    if protection & libc::PROT_EXEC as u64 != 0 {
        tracer.sites.module(path, start, start + bytes, offset);
        look_into(thread, path, start, offset, Part::Code);
    }
    // Of a file that has lost its name, the name is what it was.
    let name = path.as_os_str().as_bytes();
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(name));
    let Some(fd) = shared.filter(|_| tracer.setup.is_persistent(&path)) else { return };
    match tracer.regions.of_file(fd, &path, &tracer.setup.folder) {
        Ok(region) => {
            let at = position(region, offset);
            thread.event(&Event::Mapped { position: at, bytes, address: start });
            tracer.regions.map(start, bytes, at);
            tracer.memory_changed();
        }
        Err(error) => eprintln!("graven: {} is not traced: {error}", path.display()),
    }
}

/// Finds functions and variables of a file that is mapped.
pub fn look_into(thread: &mut Thread, path: &Path, start: u64, offset: u64, part: Part) {
    let tracer = tracer();
    let folder = &tracer.setup.folder;
    for (at, bytes) in tracer.functions.look_into(path, start, offset, part, folder) {
        range(thread, at, bytes);
    }
}

/// A range is persistent from now on, and whenever something is mapped there.
pub fn range(thread: &mut Thread, start: u64, bytes: u64) {
    let end = start.saturating_add(bytes);
    tracer().anonymous.named.add(start, end);
    if is_readable(start, bytes) {
        persists(thread, start, end);
    }
}

/// Tells whether the program can read `bytes` from an address on.
fn is_readable(start: u64, bytes: u64) -> bool {
    let (mut at, end) = (host_address(start), host_address(start + bytes));
    for Readable { addresses, .. } in readable() {
        if addresses.contains(&at) {
            at = addresses.end;
        }
    }
    at >= end
}

/// A range ceases to be persistent; other persistent memory there remains.
pub fn no_range(thread: &mut Thread, start: u64, bytes: u64) {
    let end = start.saturating_add(bytes);
    for (from, to) in tracer().anonymous.named.within(start, end) {
        tracer().anonymous.named.remove(from, to);
        is_volatile(thread, from, to);
    }
}

/// Memory becomes persistent as it is, where it is not yet.
fn persists(thread: &mut Thread, start: u64, end: u64) {
    for (from, to) in volatile_parts(start, end) {
        persistent(thread, from, to);
        found(thread, from, to - from);
    }
}

/// The parts of memory that are not persistent.
fn volatile_parts(start: u64, end: u64) -> Vec<(u64, u64)> {
    let mut parts = tracer().regions.parts(start, end - start);
    parts.push((end, 0, 0));
    let mut at = start;
    let part = |(start, _, bytes)| {
        let part = (at, start);
        at = start + bytes;
        (part.0 < part.1).then_some(part)
    };
    parts.into_iter().filter_map(part).collect()
}

/// Memory becomes persistent; as far as the trace knows, it is zero.
fn persistent(thread: &mut Thread, start: u64, end: u64) {
    let tracer = tracer();
    match tracer.regions.anonymous(&tracer.setup.folder) {
        Ok(region) => {
            let (offset, bytes) = (tracer.anonymous.place(start, end), end - start);
            let at = position(region, offset);
            thread.event(&Event::Mapped { position: at, bytes, address: start });
            tracer.regions.map(start, bytes, at);
            tracer.memory_changed();
        }
        Err(error) => eprintln!("graven: memory is not traced: {error}"),
    }
}

/// The program's right to access memory has changed: with it, what it has reserved becomes persistent.
pub fn protected(thread: &mut Thread, start: u64, bytes: u64, protection: u64) {
    let tracer = tracer();
    if protection == libc::PROT_NONE as u64 {
        return;
    }
    for (from, to) in tracer.anonymous.owned.within(start, start + page_from(bytes)) {
        for (from, to) in volatile_parts(from, to) {
            persistent(thread, from, to);
        }
    }
}

/// Memory is mapped no more.
pub fn unmapped(thread: &mut Thread, start: u64, bytes: u64) {
    let bytes = page_from(bytes);
    forget(thread, start, bytes);
    tracer().anonymous.owned.remove(start, start.saturating_add(bytes));
}

/// Memory is persistent no more.
fn forget(thread: &mut Thread, start: u64, bytes: u64) {
    let regions = &tracer().regions;
    if !regions.overlaps(start, bytes) {
        return;
    }
    thread.event(&Event::Unmapped { address: start, bytes });
    let parts = regions.parts(start, bytes);
    regions.unmap(start, bytes);
    tracer().memory_changed();
    for (_, position, bytes) in parts {
        give_back(thread, position, bytes);
    }
}

/// A part of the region that is no file's is free.
fn give_back(thread: &mut Thread, position: u64, bytes: u64) {
    if tracer().regions.is_anonymous(position) {
        thread.event(&Event::Zeroed { position, bytes });
        tracer().anonymous.give_back(place(position).1, bytes);
    }
}

/// Mappings are about to move: until then they are at no address.
pub fn moves(thread: &mut Thread, start: u64, bytes: u64) {
    let (regions, bytes) = (&tracer().regions, page_from(bytes));
    thread.moving = regions.parts(start, bytes);
    if !thread.moving.is_empty() {
        thread.event(&Event::Unmapped { address: start, bytes });
        regions.unmap(start, bytes);
    }
}

/// They have: `to` another address, if they could.
pub fn moved(thread: &mut Thread, [start, bytes, new_bytes]: [u64; 3], to: Option<u64>) {
    let tracer = tracer();
    let (bytes, new_bytes) = (page_from(bytes), page_from(new_bytes));
    let moving = std::mem::take(&mut thread.moving);
    let owned = tracer.anonymous.owned.within(start, start + bytes);
    let (to, new_bytes) = to.map_or((start, bytes), |to| (to, new_bytes));
    if to != start {
        unmapped(thread, to, new_bytes);
    }
    let is_heap = owned == [(start, start + bytes)];
    if is_heap {
        tracer.anonymous.owned.remove(start, start + bytes);
        tracer.anonymous.owned.add(to, to + new_bytes);
    }
    for &(address, position, length) in &moving {
        let before = address - start;
        let is_last = before + length == bytes;
        let is_file = !tracer.regions.is_anonymous(position);
        // A mapping of a file that grows shows more of the file.
        let wanted = if is_last && is_file { new_bytes.max(bytes) - before } else { length };
        let kept = wanted.min(new_bytes.saturating_sub(before));
        if kept > 0 {
            let address = to + before;
            thread.event(&Event::Mapped { position, bytes: kept, address });
            tracer.regions.map(address, kept, position);
        }
        if kept < length {
            give_back(thread, position + kept, length - kept);
        }
    }
    // One that the program may not access grows when it may.
    if is_heap && new_bytes > bytes && !moving.is_empty() {
        protected(thread, to + bytes, new_bytes - bytes, libc::PROT_READ as u64);
    }
}

/// The break of the program is here now.
pub fn break_moved(thread: &mut Thread, to: u64) {
    let tracer = tracer();
    if !tracer.setup.heap {
        return;
    }
    let Some((start, from)) = tracer.anonymous.move_break(to) else { return };
    // Of the first page there may be a part that is the program's; of the last one, it has all.
    let mapped_to = if from == start { start } else { page_from(from) };
    if to < from {
        let end = page_from(to).max(start);
        unmapped(thread, end, page_from(from) - end);
        return;
    }
    if let Some(position) = tracer.regions.find(from, 1) {
        let bytes = to.min(mapped_to) - from;
        thread.event(&Event::Zeroed { position, bytes });
    }
    if to > mapped_to {
        tracer.anonymous.owned.add(mapped_to, page_from(to));
        protected(thread, mapped_to, page_from(to) - mapped_to, libc::PROT_READ as u64);
    }
    // Behind the break there may be what QEMU has kept of an earlier one; nobody looks.
    found(thread, to, page_from(to) - to);
}

/// The program has said what it needs.
pub fn advised(thread: &mut Thread, start: u64, bytes: u64, advice: u64) {
    if advice != libc::MADV_DONTNEED as u64 {
        return;
    }
    let regions = &tracer().regions;
    for (_, position, bytes) in regions.parts(start, page_from(bytes)) {
        if regions.is_anonymous(position) {
            thread.event(&Event::Zeroed { position, bytes });
        }
    }
}

/// The first thread's own variables, which a loader allocates, are volatile.
pub fn thread_pointer(thread: &mut Thread, address: u64) {
    let tracer = tracer();
    let found = tracer.anonymous.before_break(address);
    if let Some((start, end)) = found.or_else(|| tracer.regions.mapping(address)) {
        is_volatile(thread, start, end);
    }
}

/// So is a stack for signals, which the kernel writes to.
pub fn signal_stack(thread: &mut Thread, stack: u64) {
    if stack == 0 {
        return;
    }
    // SAFETY: the call has just read it.
    let [start, flags, bytes] = [0, 8, 16].map(|at| unsafe { read_word(stack + at) });
    if flags as i32 & libc::SS_DISABLE == 0 {
        is_volatile(thread, start, start.saturating_add(bytes));
    }
}

/// Memory that is no file's is not persistent after all.
fn is_volatile(thread: &mut Thread, start: u64, end: u64) {
    let tracer = tracer();
    for (address, position, bytes) in tracer.regions.parts(start, end - start) {
        if tracer.regions.is_anonymous(position) {
            forget(thread, address, bytes);
            tracer.anonymous.owned.remove(address, address + bytes);
        }
    }
}
