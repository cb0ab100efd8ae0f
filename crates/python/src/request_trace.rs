//! The requests of a run, written to a file in NVMain's format while it runs. The thread is always 0:
//! below the caches nobody knows it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex};

use graven::controller::Recorder;
use graven::trace::requests::Writer;

use crate::seam::Failure;

/// A trace being written. The first error stops it, and is reported by [`RequestTrace::finish`].
pub struct RequestTrace {
    path: String,
    state: Arc<Mutex<State>>,
}

struct State {
    /// Gone once the trace is finished.
    writer: Option<Writer<BufWriter<File>>>,
    outcome: io::Result<()>,
}

impl RequestTrace {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn create(path: String) -> Result<RequestTrace, Failure> {
        let file = File::create(&path).map_err(|error| failure(&path, &error))?;
        let writer = Writer::new(BufWriter::with_capacity(1 << 20, file))
            .map_err(|error| failure(&path, &error))?;
        let state = State { writer: Some(writer), outcome: Ok(()) };
        Ok(RequestTrace { path, state: Arc::new(Mutex::new(state)) })
    }

    /// Takes the requests of a simulation.
    pub fn recorder(&self) -> Recorder {
        let state = Arc::clone(&self.state);
        Box::new(move |record| {
            let state = &mut *state.lock().expect("nothing panics while holding this lock");
            if let (Ok(()), Some(writer)) = (&state.outcome, &mut state.writer) {
                state.outcome = writer.write(record);
            }
        })
    }

    /// Puts everything on disk.
    ///
    /// # Errors
    /// The file could not be written, now or earlier.
    pub fn finish(self) -> Result<(), Failure> {
        let state = &mut *self.state.lock().expect("nothing panics while holding this lock");
        let writer = state.writer.take().expect("a trace is finished once");
        std::mem::replace(&mut state.outcome, Ok(()))
            .and_then(|()| writer.finish())
            .and_then(|mut file| file.flush().and_then(|()| file.get_ref().sync_all()))
            .map_err(|error| failure(&self.path, &error))
    }
}

fn failure(path: &str, error: &io::Error) -> Failure {
    Failure::Simulation(format!("cannot write {path}: {error}"))
}
