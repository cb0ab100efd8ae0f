//! A thread's records, in a file that is mapped where it grows: what is written is kept whatever becomes of the process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;

use graven_capture::{
    ACCESS_BYTES_MAX, Accessed, Encoder, Event, Persistence, RECORD_BYTES_MAX, Volatile,
};

use crate::origins::distance;
use crate::regions::high;
use crate::repeated::{Place, Run, Runs};
use crate::stack::Calls;

/// Bytes by which the mapping moves on.
const WINDOW_BYTES: usize = 4 << 20;

/// A record may reach beyond the window.
const MAPPED_BYTES: usize = WINDOW_BYTES + 4096;

const _: () = assert!(RECORD_BYTES_MAX + 4 * (ACCESS_BYTES_MAX + 32) <= 4096);

/// A stream that grows.
pub struct Stream {
    file: File,
    window: *mut u8,
    /// Bytes of the file before the window.
    before: u64,
    /// The number of bytes of the window that are written.
    at: usize,
    encoder: Encoder,
    /// The accesses of a repeated instruction, if it may continue.
    tail: Option<Tail>,
}

/// Runs of a repeated instruction that may grow: they are written, and written again when they have grown, so that they are there
/// whatever becomes of the process.
struct Tail {
    /// The beginning of the accesses in the window.
    at: usize,
    /// The encoder before them.
    encoder: Encoder,
    /// Recorded loads before them.
    loads: u64,
    /// The instruction's site.
    site: u32,
    /// Instructions that are executed, those included that are part of the runs.
    reached: u64,
    runs: Runs,
}

// SAFETY: it is used by one thread at a time.
unsafe impl Send for Stream {}

impl Stream {
    /// Creates its file.
    pub fn create(path: &Path) -> io::Result<Stream> {
        let file =
            OpenOptions::new().read(true).write(true).create_new(true).open(path).map(high)?;
        let window = map(&file, 0)?;
        Ok(Stream { file, window, before: 0, at: 0, encoder: Encoder::default(), tail: None })
    }

    /// A load or store, by what its address comes from and its site.
    #[inline]
    pub fn access(
        &mut self,
        instructions: u64,
        position: u64,
        bytes: &[u8],
        how: Accessed,
        from: (u16, u32),
    ) {
        self.write(|encoder, out| encoder.access(out, instructions, position, bytes, how, from));
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

    /// Something that the thread does for persistence.
    pub fn persistence(&mut self, instructions: u64, site: u32, what: &Persistence) {
        self.write(|encoder, out| encoder.persistence(out, instructions, site, what));
    }

    /// The stack of calls is another.
    pub fn stack(&mut self, instructions: u64, calls: &mut Calls) {
        calls.tell(|left, entered| {
            self.write(|encoder, out| encoder.stack(out, instructions, left, entered));
        });
    }

    /// The site of a system call, whose events follow.
    pub fn at(&mut self, instructions: u64, site: u32) {
        self.write(|encoder, out| encoder.at(out, instructions, site));
    }

    /// A record of as many bytes as `put` returns.
    #[inline]
    fn write(&mut self, put: impl FnOnce(&mut Encoder, &mut [u8]) -> usize) {
        if self.tail.is_some() {
            self.ends_repetition();
        }
        self.at += put(&mut self.encoder, room(self.window, self.at));
        if self.at >= WINDOW_BYTES {
            self.move_on();
        }
    }

    /// Tells whether a run begins where these bytes end: the repeated instruction goes downwards.
    pub fn goes_downwards(&self, place: Place, bytes: usize, is_store: bool) -> bool {
        let runs = self.tail.as_ref().map(|tail| &tail.runs);
        runs.is_some_and(|runs| runs.are_behind(place, bytes as u64, is_store))
    }

    /// An element of a repeated instruction, within a word. `instructions` have been executed before it, and `loads` recorded.
    /// Returns whether a load or store of the trace begins with it.
    pub fn repeated(
        &mut self,
        instructions: u64,
        (loads, site): (u64, u32),
        mut element: Run,
    ) -> bool {
        let mut tail = self.tail.take().unwrap_or_else(|| Tail {
            at: self.at,
            encoder: self.encoder,
            loads,
            site,
            reached: self.encoder.instructions(),
            runs: Runs::default(),
        });
        element.since = instructions.saturating_sub(tail.reached);
        tail.reached += element.since;
        let (over, begins) = tail.runs.take(element);
        let written = self.before + self.at as u64;
        (self.at, self.encoder) = (tail.at, tail.encoder);
        for run in over.iter() {
            tail.loads = self.run(run, (tail.loads, tail.site));
        }
        if self.at >= WINDOW_BYTES {
            self.move_on();
        }
        (tail.at, tail.encoder) = (self.at, self.encoder);
        let mut loads = tail.loads;
        for run in tail.runs.pending().iter() {
            loads = self.run(run, (loads, tail.site));
        }
        // In another order they may be shorter, and zeros end a stream.
        let stale = written.saturating_sub(self.before + self.at as u64) as usize;
        room(self.window, self.at)[..stale].fill(0);
        self.tail = Some(tail);
        begins
    }

    /// A run of the instruction of a site, behind `loads` recorded loads; returns the number of loads behind it.
    fn run(&mut self, run: &Run, (loads, site): (u64, u32)) -> u64 {
        let (instructions, origin) =
            (self.encoder.instructions() + run.since, distance(loads, run.load));
        let out = room(self.window, self.at);
        self.at += match run.place {
            Place::Persistent(position) => {
                let how = if run.is_store { Accessed::Stored } else { Accessed::Loaded };
                let from = (origin, site);
                self.encoder.access(out, instructions, position, run.bytes(), how, from)
            }
            // Of its bytes only the word matters.
            Place::Volatile(address) => {
                let access = Volatile { address, size: 1, origin, is_store: run.is_store };
                self.encoder.volatile(out, instructions, access)
            }
        };
        loads + u64::from(!run.is_store)
    }

    /// The repeated instruction has ended; repetitions that only made a run longer are no instructions.
    #[cold]
    pub fn ends_repetition(&mut self) {
        if let Some(tail) = self.tail.take() {
            self.encoder.leave_out_to(tail.reached);
            if self.at >= WINDOW_BYTES {
                self.move_on();
            }
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

#[cfg(test)]
mod tests {
    use graven_capture::{Record, Records};

    use super::*;

    /// A stream in a file of its own, and what is read of it, at any time.
    struct Written(std::path::PathBuf);

    impl Written {
        fn new(name: &str) -> (Written, Stream) {
            let name = format!("graven-stream-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_file(&path);
            let stream = Stream::create(&path).expect("a new file");
            (Written(path), stream)
        }

        fn records(&self) -> Vec<(u64, Record)> {
            let mut records = Records::new(File::open(&self.0).expect("it is there"));
            let next = || records.next_record().expect("records only");
            std::iter::from_fn(next).collect()
        }
    }

    impl Drop for Written {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Bytes and first position of a store.
    fn stored(record: &Record) -> Option<(u64, Vec<u8>)> {
        match record {
            Record::Access(a) if a.is_store => Some((a.position, a.stored().to_vec())),
            _ => None,
        }
    }

    /// The record is written at any time, as a process may be killed, and takes no more instructions than it has words.
    #[test]
    fn a_string_grows_word_by_word_and_is_there_at_any_time() {
        let (written, mut stream) = Written::new("grows");
        stream.event(3, 0, &Event::Ordered);
        for byte in 0..13u8 {
            let place = Place::Persistent(5 + u64::from(byte));
            stream.repeated(10 + u64::from(byte), (0, 7), Run::new(place, &[byte], true, 0));
            let all: Vec<u8> =
                written.records().iter().filter_map(|(_, r)| stored(r)).flat_map(|s| s.1).collect();
            assert_eq!(all, (0..=byte).collect::<Vec<u8>>());
        }
        stream.event(30, 1, &Event::Ordered);
        drop(stream);
        let records = written.records();
        let stores: Vec<_> = records.iter().filter_map(|(_, record)| stored(record)).collect();
        let expected: [(u64, Vec<u8>); 3] =
            [(5, vec![0, 1, 2]), (8, (3..11).collect()), (16, vec![11, 12])];
        assert_eq!(stores, expected);
        let since: Vec<u64> = records.iter().map(|(since, _)| *since).collect();
        assert_eq!(since, [3, 7, 1, 1, 8], "12 repetitions made no record");
    }

    /// Loads between the accesses of an instruction are counted at their places.
    #[test]
    fn origins_are_told_from_the_place_in_the_stream() {
        let (written, mut stream) = Written::new("origins");
        stream.access(1, 64, &[1; 8], Accessed::Loaded, (0, 7));
        stream.access(2, 72, &[1; 8], Accessed::Loaded, (0, 7));
        // From the first of them comes where to load, from the second where to store; 3 bytes of a word are loaded first.
        let mut loads = 2;
        for byte in 0..16 {
            let from = Run::new(Place::Persistent(1005 + byte), &[7], false, 1);
            loads += u64::from(stream.repeated(3 + byte, (loads, 7), from));
            stream.repeated(
                3 + byte,
                (loads, 7),
                Run::new(Place::Persistent(2000 + byte), &[7], true, 2),
            );
        }
        stream.access(40, 80, &[1; 8], Accessed::Stored, (3, 7));
        let accesses: Vec<_> = written
            .records()
            .into_iter()
            .filter_map(|(_, record)| match record {
                Record::Access(a) => Some((a.position, a.size, a.is_store, a.origin)),
                _ => None,
            })
            .collect();
        let expected = [
            (64, 8, false, 0),
            (72, 8, false, 0),
            (1005, 3, false, 2),
            (2000, 8, true, 2),
            (1008, 8, false, 3),
            (1016, 5, false, 4),
            (2008, 8, true, 4),
            (80, 8, true, 3),
        ];
        assert_eq!(accesses, expected);
        assert_eq!(loads, 5);
    }

    /// Whatever is in the window's last bytes when it moves on, nothing is lost.
    #[test]
    fn a_string_goes_on_where_the_window_moves() {
        let (written, mut stream) = Written::new("window");
        let bytes = [5; ACCESS_BYTES_MAX];
        let mut before = 0;
        while stream.at + 20_000 < WINDOW_BYTES {
            stream.access(0, 0, &bytes, Accessed::Stored, (0, 7));
            before += 1;
        }
        let words = 10_000;
        for byte in 0..8 * words {
            let place = Place::Persistent(4096 + byte);
            stream.repeated(byte, (0, 7), Run::new(place, &[byte as u8], true, 0));
        }
        assert!(stream.before > 0);
        drop(stream);
        let records = written.records();
        assert_eq!(records.len() as u64, before + words);
        let last = records.last().and_then(|(_, record)| stored(record)).expect("a store");
        assert_eq!(last.0, 4096 + 8 * (words - 1));
    }
}
