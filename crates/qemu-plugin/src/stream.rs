//! A thread's records, in a file that is mapped where it grows: what is written is kept whatever becomes of the process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;

use graven_capture::{Accessed, Encoder, Event, RECORD_BYTES_MAX, Volatile};

use crate::regions::high;

/// Bytes by which the mapping moves on.
const WINDOW_BYTES: usize = 4 << 20;

/// A record may reach beyond the window.
const MAPPED_BYTES: usize = WINDOW_BYTES + 4096;

const _: () = assert!(RECORD_BYTES_MAX <= 4096);

/// A stream that grows.
pub struct Stream {
    file: File,
    window: *mut u8,
    /// Bytes of the file before the window.
    before: u64,
    /// Of the window, how many are written.
    at: usize,
    encoder: Encoder,
}

// SAFETY: it is used by one thread at a time.
unsafe impl Send for Stream {}

impl Stream {
    /// Creates its file.
    pub fn create(path: &Path) -> io::Result<Stream> {
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).open(path).map(high)?;
        let window = map(&file, 0)?;
        Ok(Stream { file, window, before: 0, at: 0, encoder: Encoder::default() })
    }

    /// A load or store.
    #[inline]
    pub fn access(
        &mut self,
        instructions: u64,
        position: u64,
        bytes: &[u8],
        how: Accessed,
        origin: u16,
    ) {
        self.write(|encoder, out| encoder.access(out, instructions, position, bytes, how, origin));
    }

    /// A load or store of volatile memory.
    #[inline]
    pub fn volatile(&mut self, instructions: u64, access: Volatile) {
        self.write(|encoder, out| encoder.volatile(out, instructions, access));
    }

    /// Something else.
    pub fn event(&mut self, instructions: u64, number: u64, event: &Event) {
        self.write(|encoder, out| encoder.event(out, instructions, number, event));
    }

    /// A record, of so many bytes as `put` returns.
    #[inline]
    fn write(&mut self, put: impl FnOnce(&mut Encoder, &mut [u8]) -> usize) {
        self.at += put(&mut self.encoder, room(self.window, self.at));
        if self.at >= WINDOW_BYTES {
            self.move_on();
        }
    }

    #[cold]
    fn move_on(&mut self) {
        self.before += WINDOW_BYTES as u64;
        self.at -= WINDOW_BYTES;
        match map(&self.file, self.before) {
            Ok(window) => {
                unmap(self.window);
                self.window = window;
            }
            Err(error) => {
                eprintln!("graven: the trace cannot grow: {error}");
                std::process::abort();
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        unmap(self.window);
        // Zeros behind the last record end it, too.
        let _ = self.file.set_len(self.before + self.at as u64 + 1);
    }
}

/// The room behind what is written.
#[inline]
fn room<'a>(window: *mut u8, at: usize) -> &'a mut [u8] {
    // SAFETY: `at` is below the window's size, and so many bytes more are mapped; nobody else writes there.
    unsafe { std::slice::from_raw_parts_mut(window.add(at), RECORD_BYTES_MAX) }
}

fn map(file: &File, offset: u64) -> io::Result<*mut u8> {
    file.set_len(offset + MAPPED_BYTES as u64)?;
    // SAFETY: a new mapping of a file that is as long.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            MAPPED_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(address.cast()) }
}

fn unmap(window: *mut u8) {
    // SAFETY: it was mapped so.
    unsafe { libc::munmap(window.cast(), MAPPED_BYTES) };
}
