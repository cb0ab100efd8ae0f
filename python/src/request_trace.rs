//! The requests of a run as a text file in NVMain's format: a first line `NVMV1`, then for each request
//! `CYCLE R|W 0xADDRESS DATA OLDDATA THREAD`. Data are a line of 64 B as 128 hexadecimal digits, the
//! byte at the lowest address first. The thread is always 0: below the caches nobody knows it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex};

use graven_engine::machine::{Recorder, RequestRecord};
use graven_engine::memory::LineData;

use crate::facade::Failure;

/// A trace being written. The first error stops it, and is told by [`RequestTrace::finish`].
pub struct RequestTrace {
    path: String,
    state: Arc<Mutex<State>>,
}

struct State {
    writer: BufWriter<File>,
    outcome: io::Result<()>,
}

impl RequestTrace {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: String) -> Result<RequestTrace, Failure> {
        let file = File::create(&path).map_err(|error| failure(&path, &error))?;
        let mut writer = BufWriter::with_capacity(1 << 20, file);
        let outcome = writer.write_all(b"NVMV1\n");
        Ok(RequestTrace { path, state: Arc::new(Mutex::new(State { writer, outcome })) })
    }

    /// Takes the requests of a simulation.
    pub fn recorder(&self) -> Recorder {
        let state = Arc::clone(&self.state);
        Box::new(move |record| {
            let state = &mut *state.lock().expect("nothing panics while holding this lock");
            if state.outcome.is_ok() {
                state.outcome = write(&mut state.writer, record);
            }
        })
    }

    /// Puts everything on disk.
    ///
    /// # Errors
    /// The file could not be written, now or earlier.
    pub fn finish(self) -> Result<(), Failure> {
        let state = &mut *self.state.lock().expect("nothing panics while holding this lock");
        std::mem::replace(&mut state.outcome, Ok(()))
            .and_then(|()| state.writer.flush())
            .and_then(|()| state.writer.get_ref().sync_all())
            .map_err(|error| failure(&self.path, &error))
    }
}

fn failure(path: &str, error: &io::Error) -> Failure {
    Failure::Simulation(format!("cannot write {path}: {error}"))
}

fn write(writer: &mut impl Write, record: &RequestRecord) -> io::Result<()> {
    let operation = if record.write { 'W' } else { 'R' };
    write!(writer, "{} {operation} 0x{:x} ", record.cycle, record.line.addr().0)?;
    write_line(writer, &record.data)?;
    writer.write_all(b" ")?;
    write_line(writer, &record.old)?;
    writer.write_all(b" 0\n")
}

fn write_line(writer: &mut impl Write, line: &LineData) -> io::Result<()> {
    line.iter().try_for_each(|word| write!(writer, "{:016x}", word.swap_bytes()))
}
