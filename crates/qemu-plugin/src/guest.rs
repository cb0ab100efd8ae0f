//! The program's memory, which is part of QEMU's.

use std::ffi::CStr;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

/// The place of the program's address 0 in QEMU's memory.
fn guest_base() -> u64 {
    static BASE: OnceLock<u64> = OnceLock::new();
    *BASE.get_or_init(|| {
        // SAFETY: a variable of QEMU's, if it has one of that name.
        unsafe {
            let base = libc::dlsym(libc::RTLD_DEFAULT, c"guest_base".as_ptr()).cast::<u64>();
            if base.is_null() { 0 } else { *base }
        }
    })
}

/// The place of one of the program's addresses in QEMU's memory.
pub fn host_address(address: u64) -> u64 {
    guest_base() + address
}

/// Something that is mapped and may be read.
pub struct Readable {
    /// Addresses in QEMU's memory.
    pub addresses: Range<u64>,
    /// The offset of the first address in the file, if there is one.
    pub offset: u64,
    /// The file; none: it is no file's.
    pub path: Option<PathBuf>,
}

/// All that is mapped and may be read, from the lowest address on.
pub fn readable() -> Vec<Readable> {
    let text = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mapping = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let access = words.next()?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (addresses, offset) = (number(start)?..number(end)?, number(words.next()?)?);
        let path = words.nth(2).filter(|path| path.starts_with('/')).map(PathBuf::from);
        access.starts_with('r').then_some(Readable { addresses, offset, path })
    };
    text.lines().filter_map(mapping).collect()
}

/// Bytes of the program's memory.
///
/// # Safety
/// The program can read them.
pub unsafe fn bytes_at<'a>(address: u64, length: usize) -> &'a [u8] {
    // SAFETY: the caller's.
    unsafe { std::slice::from_raw_parts(host_address(address) as *const u8, length) }
}

/// A word of the program's memory.
///
/// # Safety
/// The program can read it.
pub unsafe fn read_word(address: u64) -> u64 {
    // SAFETY: the caller's.
    unsafe { (host_address(address) as *const u64).read_unaligned() }
}

/// A text of the program's memory; none if there is no address.
///
/// # Safety
/// The program can read it.
pub unsafe fn path_at<'a>(address: u64) -> Option<&'a CStr> {
    // SAFETY: the caller's.
    (address != 0).then(|| unsafe { CStr::from_ptr(host_address(address) as *const _) })
}
