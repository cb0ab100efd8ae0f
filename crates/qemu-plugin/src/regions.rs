//! The addresses that are persistent memory now.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use graven_capture::{OFFSET_BITS, place, position};

use crate::guest::host_address;

/// Descriptors of one's own begin here, so that the program's are what they would be without.
const DESCRIPTORS_FROM: RawFd = 900;

/// Bytes of memory that are copied at a time.
const PIECE_BYTES: usize = 1 << 16;

/// Persistent memory that is mapped.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    start: u64,
    end: u64,
    /// The position of its first byte.
    position: u64,
}

/// A region of persistent memory, which lives as long as the process.
struct Region {
    number: u16,
    /// None of that which is no file's.
    file: Option<File>,
    /// The file's length when it was last looked at.
    length: u64,
}

/// Stands for device and inode of memory without a file.
const NO_FILE: (u64, u64) = (0, 0);

/// No region.
const NONE: u32 = u32::MAX;

/// Regions, and where they are mapped.
pub struct Regions {
    /// All mappings by address, in a list that is never changed, but replaced; those that were replaced stay.
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
    /// Who changes the list does so alone.
    changes: Mutex<()>,
    /// The number of the region that is no file's.
    anonymous: AtomicU32,
}

impl Default for Regions {
    fn default() -> Regions {
        Regions {
            mappings: AtomicPtr::default(),
            low: AtomicU64::new(u64::MAX),
            high: AtomicU64::new(0),
            look_low: AtomicU64::new(u64::MAX),
            look_high: AtomicU64::new(0),
            are_all: AtomicBool::new(false),
            known: Mutex::default(),
            changes: Mutex::default(),
            anonymous: AtomicU32::new(NONE),
        }
    }
}

impl Regions {
    /// From now on any memory may be looked at: the program has threads, which synchronise by it.
    pub fn look_at_all(&self) {
        self.are_all.store(true, Ordering::Relaxed);
        self.look_low.store(0, Ordering::Relaxed);
        self.look_high.store(u64::MAX, Ordering::Relaxed);
    }

    /// Tells whether some of `bytes` from an address on are to be looked at.
    #[inline]
    pub fn are_looked_at(&self, address: u64, bytes: u64) -> bool {
        address < self.look_high.load(Ordering::Relaxed)
            && address.wrapping_add(bytes) > self.look_low.load(Ordering::Relaxed)
    }

    /// Tells whether no memory was persistent so far.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.mappings.load(Ordering::Relaxed).is_null()
    }

    /// Tells whether some memory is persistent now.
    pub fn have_some(&self) -> bool {
        !self.are_none() && !self.list().is_empty()
    }

    /// Tells whether some of `bytes` from an address on could be persistent memory.
    #[inline]
    pub fn may_have(&self, address: u64, bytes: u64) -> bool {
        address < self.high.load(Ordering::Relaxed)
            && address.wrapping_add(bytes) > self.low.load(Ordering::Relaxed)
    }

    /// The position of an address, if `bytes` from it on are persistent memory of one mapping.
    pub fn find(&self, address: u64, bytes: u64) -> Option<u64> {
        let list = self.list();
        let mapping = list[..list.partition_point(|m| m.start <= address)].last()?;
        (address + bytes <= mapping.end).then(|| mapping.position + (address - mapping.start))
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
        let _alone = self.changes.lock().expect("nobody panics with it");
        let mapping = Mapping { start, end: start + bytes, position };
        let left = self.without(start, bytes);
        self.publish(left.into_iter().chain([mapping]).collect());
    }

    /// Something else is there from now on, or nothing.
    pub fn unmap(&self, start: u64, bytes: u64) {
        let _alone = self.changes.lock().expect("nobody panics with it");
        self.publish(self.without(start, bytes));
    }

    /// Tells whether some persistent memory is mapped there.
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

    fn publish(&self, mut list: Vec<Mapping>) {
        list.sort_unstable_by_key(|m| m.start);
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

    /// The first address of the mapping that an address is in, and the one behind its last.
    pub fn mapping(&self, address: u64) -> Option<(u64, u64)> {
        let mapping = self.list().iter().find(|m| (m.start..m.end).contains(&address))?;
        self.is_anonymous(mapping.position).then_some((mapping.start, mapping.end))
    }

    /// Tells whether no memory was ever persistent.
    pub fn is_empty(&self) -> bool {
        self.known.lock().expect("nobody panics with it").is_empty()
    }

    /// The region of an open file, which becomes one now if it is none.
    pub fn of_file(&self, fd: RawFd, path: &Path, folder: &Path) -> io::Result<u16> {
        let file = File::open(format!("/proc/self/fd/{fd}")).map(high)?;
        let of = file.metadata()?;
        let mut known = self.known.lock().expect("nobody panics with it");
        if let Some(region) = known.get(&(of.dev(), of.ino())) {
            return Ok(region.number);
        }
        let length = of.len();
        let copied = |before: &Path| copy(&file, before);
        let key = (of.dev(), of.ino());
        let number = begin(&known, key, &path.display().to_string(), folder, copied)?;
        known.insert(key, Region { number, file: Some(file), length });
        Ok(number)
    }

    /// The region that is no file's.
    pub fn anonymous(&self, folder: &Path) -> io::Result<u16> {
        let mut known = self.known.lock().expect("nobody panics with it");
        if let Some(region) = known.get(&NO_FILE) {
            return Ok(region.number);
        }
        let empty = |before: &Path| File::create(before).map(drop);
        let number = begin(&known, NO_FILE, "(memory)", folder, empty)?;
        known.insert(NO_FILE, Region { number, file: None, length: 0 });
        self.anonymous.store(number.into(), Ordering::Relaxed);
        Ok(number)
    }

    /// Tells whether a position is in the region without a file.
    pub fn is_anonymous(&self, position: u64) -> bool {
        u32::from(place(position).0) == self.anonymous.load(Ordering::Relaxed)
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

    /// The files whose length is another than when it was last looked at, by the positions behind their last bytes.
    pub fn resized(&self) -> Vec<u64> {
        let mut known = self.known.lock().expect("nobody panics with it");
        let mut resized = Vec::new();
        for region in known.values_mut() {
            let Some(Ok(of)) = region.file.as_ref().map(File::metadata) else { continue };
            let length = of.len().min((1 << OFFSET_BITS) - 1);
            if length != region.length {
                region.length = length;
                resized.push(position(region.number, length));
            }
        }
        resized
    }

    /// Reads `bytes` of a region's file, from an offset on.
    pub fn read_file(&self, region: u16, offset: u64, bytes: u64) -> io::Result<Vec<u8>> {
        let known = self.known.lock().expect("nobody panics with it");
        let mut found = vec![0; bytes as usize];
        let file = known.values().find(|r| r.number == region).and_then(|r| r.file.as_ref());
        file.map_or(Ok(()), |file| file.read_exact_at(&mut found, offset))?;
        Ok(found)
    }

    /// Copies all regions as they are now.
    pub fn copy_all(&self, folder: &Path) -> io::Result<()> {
        let known = self.known.lock().expect("nobody panics with it");
        known.values().try_for_each(|region| {
            let to = folder.join(format!("region-{}.after", region.number));
            match &region.file {
                Some(file) => copy(file, &to),
                None => self.copy_memory(region.number, &to),
            }
        })
    }

    /// Bytes of a region are others than when it was copied.
    pub fn correct(&self, folder: &Path, position: u64, bytes: &[u8]) {
        let (region, offset) = place(position);
        let copy =
            OpenOptions::new().write(true).open(folder.join(format!("region-{region}.after")));
        if let Err(error) = copy.and_then(|copy| copy.write_all_at(bytes, offset)) {
            eprintln!("graven: the end of the trace cannot be written: {error}");
        }
    }

    /// Copies memory that is no file's, each part to its offset.
    fn copy_memory(&self, region: u16, to: &Path) -> io::Result<()> {
        let (memory, copy) = (File::open("/proc/self/mem").map(high)?, File::create(to).map(high)?);
        let mut buffer = vec![0; PIECE_BYTES];
        let all = self.list().iter().filter(|m| place(m.position).0 == region);
        copy.set_len(
            all.clone().map(|m| place(m.position).1 + (m.end - m.start)).max().unwrap_or(0),
        )?;
        for mapping in all {
            let offset = place(mapping.position).1;
            for start in (mapping.start..mapping.end).step_by(PIECE_BYTES) {
                let piece = &mut buffer[..PIECE_BYTES.min((mapping.end - start) as usize)];
                // What cannot be read, the program could not have written.
                if memory.read_exact_at(piece, host_address(start)).is_err() {
                    piece.fill(0);
                }
                if piece.iter().any(|&byte| byte != 0) {
                    copy.write_all_at(piece, offset + (start - mapping.start))?;
                }
            }
        }
        Ok(())
    }
}

/// A region begins: `fill` writes what it holds. Returns its number.
fn begin(
    known: &HashMap<(u64, u64), Region>,
    (device, inode): (u64, u64),
    name: &str,
    folder: &Path,
    fill: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<u16> {
    let number = known.len() as u16;
    fill(&folder.join(format!("region-{number}.before")))?;
    let mut list = OpenOptions::new().create(true).append(true).open(folder.join("regions"))?;
    writeln!(list, "{number} {device} {inode} {name}")?;
    Ok(number)
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
