//! Which addresses are persistent memory now.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

/// Descriptors of one's own begin here, so that the program's are what they would be without.
const DESCRIPTORS_FROM: RawFd = 900;

/// Persistent memory that is mapped.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    /// Of its first byte.
    position: u64,
}

/// A file that is persistent memory, which lives as long as the process.
struct Region {
    number: u16,
    file: File,
}

/// Regions, and where they are mapped.
#[derive(Default)]
pub struct Regions {
    /// All mappings, in a list that is never changed, but replaced; those that were replaced stay.
    mappings: AtomicPtr<Vec<Mapping>>,
    /// From the lowest address to the highest.
    low: AtomicU64,
    high: AtomicU64,
    /// The same, or all addresses, if all accesses are looked at, of whatever memory.
    look_low: AtomicU64,
    look_high: AtomicU64,
    are_all: AtomicBool,
    /// By device and inode.
    known: Mutex<HashMap<(u64, u64), Region>>,
}

impl Regions {
    /// From now on any memory may be looked at: the program has threads, which synchronise by it.
    pub fn look_at_all(&self) {
        self.are_all.store(true, Ordering::Relaxed);
        self.look_low.store(0, Ordering::Relaxed);
        self.look_high.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether some of so many bytes from an address on are to be looked at.
    #[inline]
    pub fn are_looked_at(&self, address: u64, bytes: u64) -> bool {
        address < self.look_high.load(Ordering::Relaxed)
            && address.wrapping_add(bytes) > self.look_low.load(Ordering::Relaxed)
    }

    /// Whether some of so many bytes from an address on could be persistent memory.
    #[inline]
    pub fn may_have(&self, address: u64, bytes: u64) -> bool {
        address < self.high.load(Ordering::Relaxed)
            && address.wrapping_add(bytes) > self.low.load(Ordering::Relaxed)
    }

    /// The position of an address, if so many bytes from it on are persistent memory of one mapping.
    pub fn find(&self, address: u64, bytes: u64) -> Option<u64> {
        let fits = |m: &&Mapping| m.start <= address && address + bytes <= m.end;
        self.list().iter().find(fits).map(|m| m.position + (address - m.start))
    }

    /// Every part of these addresses that is persistent memory: its address, position and length.
    pub fn parts(&self, start: u64, bytes: u64) -> Vec<(u64, u64, u64)> {
        let end = start.saturating_add(bytes);
        let part = |m: &Mapping| {
            let (from, to) = (m.start.max(start), m.end.min(end));
            (from < to).then(|| (from, m.position + (from - m.start), to - from))
        };
        self.list().iter().filter_map(part).collect()
    }

    fn list(&self) -> &'static [Mapping] {
        let list = self.mappings.load(Ordering::Acquire);
        // SAFETY: a list that was published stays.
        if list.is_null() { &[] } else { unsafe { &*list } }
    }

    /// Persistent memory is mapped.
    pub fn map(&self, start: u64, bytes: u64, position: u64) {
        let mapping = Mapping { start, end: start + bytes, position };
        let left = self.without(start, bytes);
        self.publish(left.into_iter().chain([mapping]).collect());
    }

    /// Something else is there from now on, or nothing.
    pub fn unmap(&self, start: u64, bytes: u64) {
        self.publish(self.without(start, bytes));
    }

    /// Whether some persistent memory is mapped there.
    pub fn overlaps(&self, start: u64, bytes: u64) -> bool {
        self.list().iter().any(|m| m.start < start.saturating_add(bytes) && start < m.end)
    }

    fn without(&self, start: u64, bytes: u64) -> Vec<Mapping> {
        let end = start.saturating_add(bytes);
        let parts = self.list().iter().flat_map(|&m| {
            let before = Mapping { end: m.end.min(start), ..m };
            let from = m.start.max(end);
            let position = m.position + (from - m.start);
            [before, Mapping { start: from, end: m.end, position }]
        });
        parts.filter(|m| m.start < m.end).collect()
    }

    fn publish(&self, list: Vec<Mapping>) {
        let low = list.iter().map(|m| m.start).min().unwrap_or(0);
        let high = list.iter().map(|m| m.end).max().unwrap_or(0);
        let both = [(&self.low, &self.high), (&self.look_low, &self.look_high)];
        let which = if self.are_all.load(Ordering::Relaxed) { &both[..1] } else { &both[..] };
        for (of_low, _) in which {
            of_low.store(low.min(of_low.load(Ordering::Relaxed)), Ordering::Relaxed);
        }
        self.mappings.store(Box::into_raw(Box::new(list)), Ordering::Release);
        for (of_low, of_high) in which {
            of_low.store(low, Ordering::Relaxed);
            of_high.store(high, Ordering::Relaxed);
        }
    }

    /// The region of an open file, which becomes one now if it is none.
    pub fn of_file(&self, fd: RawFd, path: &Path, folder: &Path) -> io::Result<u16> {
        let file = File::open(format!("/proc/self/fd/{fd}")).map(high)?;
        let of = file.metadata()?;
        let mut known = self.known.lock().expect("nobody panics with it");
        if let Some(region) = known.get(&(of.dev(), of.ino())) {
            return Ok(region.number);
        }
        let number = known.len() as u16;
        copy(&file, &folder.join(format!("region-{number}.before")))?;
        let mut list = OpenOptions::new().create(true).append(true).open(folder.join("regions"))?;
        writeln!(list, "{number} {} {} {}", of.dev(), of.ino(), path.display())?;
        known.insert((of.dev(), of.ino()), Region { number, file });
        Ok(number)
    }

    /// The region that an open file is, if it is one.
    pub fn known(&self, fd: RawFd) -> Option<u16> {
        let known = self.known.lock().expect("nobody panics with it");
        if known.is_empty() {
            return None;
        }
        // SAFETY: the result is looked at only if the call has filled it.
        let of = unsafe {
            let mut of: libc::stat = std::mem::zeroed();
            (libc::fstat(fd, &raw mut of) == 0).then_some(of)?
        };
        known.get(&(of.st_dev, of.st_ino)).map(|region| region.number)
    }

    /// Copies all files as they are now.
    pub fn copy_all(&self, folder: &Path) -> io::Result<()> {
        let known = self.known.lock().expect("nobody panics with it");
        known
            .values()
            .try_for_each(|r| copy(&r.file, &folder.join(format!("region-{}.after", r.number))))
    }
}

/// The same file under a higher descriptor.
pub fn high(file: File) -> File {
    // SAFETY: the descriptor is open; a new one is owned by the file that is made of it.
    unsafe {
        match libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, DESCRIPTORS_FROM) {
            -1 => file,
            fd => File::from_raw_fd(fd),
        }
    }
}

/// Copies what a file holds, without its holes.
fn copy(file: &File, to: &Path) -> io::Result<()> {
    let (length, copy) = (file.metadata()?.len(), File::create(to).map(high)?);
    copy.set_len(length)?;
    let (mut buffer, mut at) = (vec![0; 1 << 20], 0);
    while at < length {
        // SAFETY: plain calls on an open file.
        let data = unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, libc::SEEK_DATA) };
        let Ok(data) = u64::try_from(data) else { break };
        // SAFETY: as before.
        let hole = unsafe { libc::lseek(file.as_raw_fd(), data as libc::off_t, libc::SEEK_HOLE) };
        at = u64::try_from(hole).unwrap_or(length);
        let mut from = data;
        while from < at {
            let most = buffer.len().min((at - from) as usize);
            match file.read_at(&mut buffer[..most], from)? {
                0 => break,
                n => copy.write_all_at(&buffer[..n], from)?,
            }
            from += most as u64;
        }
    }
    Ok(())
}
