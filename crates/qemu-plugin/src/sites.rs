//! Sites: numbers of the program's instructions, and the files that tell where each is.
//!
//! Each instruction gets a number when QEMU translates it, and its address is written to the file `sites` at once: who executes an
//! instruction knows its site from the datum of its hook, and looks nothing up. An instruction that is translated again, as part of
//! another block or since QEMU's room for code was full, has another site. The file `modules` says of which file the code at an
//! address is, from which site on ([`graven_capture`]).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Mutex;

use graven_capture::{SITE_ATOMIC, SITE_REPEATED};

use crate::instruction::Kind;
use crate::regions::high;

/// Sites by which the mapped part of their file moves on.
const WINDOW_SITES: u64 = 1 << 16;

/// Bytes of a site: its address.
const SITE_BYTES: u64 = 8;

/// The sites so far.
pub struct Sites {
    folder: PathBuf,
    written: Mutex<Written>,
}

/// The file of sites, which grows.
#[derive(Default)]
struct Written {
    file: Option<File>,
    window: Option<Window>,
    count: u64,
}

/// The part of the file that is mapped.
struct Window(*mut u64);

// SAFETY: it is used under the lock of its owner.
unsafe impl Send for Window {}

impl Sites {
    /// Those of a capture whose files are in this folder; none so far.
    pub fn new(folder: &Path) -> Sites {
        Sites { folder: folder.into(), written: Mutex::default() }
    }

    /// Gives the next instruction a site, and writes its address if the process is traced.
    pub fn add(&self, address: u64, kind: Kind, is_traced: bool) -> u32 {
        let address = address
            | match kind {
                Kind::Repeated => SITE_REPEATED,
                Kind::Atomic | Kind::LoadsExclusively | Kind::StoresExclusively => SITE_ATOMIC,
                _ => 0,
            };
        let mut written = self.written.lock().expect("nobody panics with it");
        let number = written.count;
        // A process that the program has made writes nothing to its parent's file.
        if is_traced && let Err(error) = written.write(&self.folder, number, address) {
            eprintln!("graven: the sites of instructions cannot be written: {error}");
            std::process::abort();
        }
        written.count += 1;
        number as u32
    }

    /// A file is mapped as code.
    pub fn module(&self, path: &Path, start: u64, end: u64, offset: u64) {
        let first = self.written.lock().expect("nobody panics with it").count;
        let list = self.folder.join("modules");
        let list = OpenOptions::new().create(true).append(true).open(list);
        let line = format!("{first} {start} {end} {offset} {}\n", path.display());
        if let Err(error) = list.and_then(|mut list| list.write_all(line.as_bytes())) {
            eprintln!("graven: {} is code without a place: {error}", path.display());
        }
    }
}

impl Written {
    fn write(&mut self, folder: &Path, number: u64, address: u64) -> io::Result<()> {
        if number.is_multiple_of(WINDOW_SITES) || self.window.is_none() {
            self.move_to(folder, number / WINDOW_SITES * WINDOW_SITES)?;
        }
        let Some(Window(window)) = self.window else { return Ok(()) };
        // SAFETY: so many sites are mapped.
        unsafe { window.add((number % WINDOW_SITES) as usize).write(address) };
        Ok(())
    }

    /// Maps the part of the file that begins with this site.
    fn move_to(&mut self, folder: &Path, first: u64) -> io::Result<()> {
        if self.file.is_none() {
            let path = folder.join("sites");
            let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
            self.file = Some(high(file));
        }
        let file = self.file.as_ref().expect("it was just opened");
        let (offset, bytes) = (first * SITE_BYTES, WINDOW_SITES * SITE_BYTES);
        file.set_len(offset + bytes)?;
        // SAFETY: a new mapping of a file that is as long; the old one is used no more.
        unsafe {
            if let Some(Window(window)) = self.window.take() {
                libc::munmap(window.cast(), bytes as usize);
            }
            let address = libc::mmap(
                ptr::null_mut(),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset as libc::off_t,
            );
            if address == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            self.window = Some(Window(address.cast()));
        }
        Ok(())
    }
}
