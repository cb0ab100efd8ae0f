// Appends records to a mapped file, and synchronises a page too few; with a second argument, all.
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;

unsafe extern "C" {
    fn mmap(at: *mut u8, bytes: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    fn msync(at: *mut u8, bytes: usize, flags: i32) -> i32;
}

const PAGE: usize = 4096;
const MS_SYNC: i32 = 4;

/// A page with the number of bytes, and a page with the records.
#[inline(never)]
fn append(map: *mut u8, record: &[u8], pages: usize) {
    unsafe {
        let used = map.cast::<u64>();
        let to = map.add(PAGE + *used as usize);
        std::ptr::copy_nonoverlapping(record.as_ptr(), to, record.len()); // sync-misses
        *used += record.len() as u64;
        msync(map, pages * PAGE, MS_SYNC);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    let file = file.open(&arguments[1]).expect("a file");
    file.set_len(2 * PAGE as u64).expect("room");
    let map = unsafe { mmap(std::ptr::null_mut(), 2 * PAGE, 3, 1, file.as_raw_fd(), 0) };
    let pages = if arguments.len() > 2 { 2 } else { 1 };
    append(map, b"first", pages);
    append(map, b"second", pages);
}
