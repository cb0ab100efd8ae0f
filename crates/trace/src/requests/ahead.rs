//! Requests read ahead of their use, on a thread of their own.
//!
//! They come in batches and in their order, and an error comes after all requests before it: nothing depends on which
//! thread is faster.

use std::io::Read;
use std::sync::mpsc::{channel, sync_channel};
use std::thread;

use super::batch::Batch;
use super::{Place, Reader, Request, TraceError};

/// Requests of a batch: some 150 KB, of which the host's caches hold several, and few wakes of a thread that waits.
const BATCH_REQUESTS: usize = 2048;

/// Batches that wait at most.
const BATCHES: usize = 4;

/// True if a trace continues behind a batch; the error if that is why it does not.
type Outcome = Result<bool, TraceError>;

/// Gives all requests of a trace to `use_batch`, as `prepare` has left them, which is told where each is.
///
/// # Errors
/// The trace's, or the first of either function's.
pub fn read<R: Read + Send>(
    reader: &mut Reader<R>,
    prepare: impl Fn(&mut Request, Place) -> Result<(), TraceError> + Send,
    mut use_batch: impl FnMut(&Batch) -> Result<(), TraceError>,
) -> Result<(), TraceError> {
    let mut request = Request::NONE;
    let mut fill = move |batch: &mut Batch| -> Outcome {
        batch.clear();
        while batch.len() < BATCH_REQUESTS {
            if !reader.read(&mut request)? {
                return Ok(false);
            }
            prepare(&mut request, reader.place())?;
            batch.push(&request);
        }
        Ok(true)
    };
    // A short trace is not worth a thread, and one core has no other to read on.
    let mut batch = Batch::default();
    loop {
        let outcome = fill(&mut batch);
        use_batch(&batch)?;
        if !outcome? {
            return Ok(());
        }
        if thread::available_parallelism().map_or(1, usize::from) > 1 {
            break;
        }
    }
    thread::scope(|scope| {
        let (full, filled) = sync_channel::<(Batch, Outcome)>(BATCHES);
        let (done, emptied) = channel::<Batch>();
        let reading = thread::Builder::new().name("reading ahead".into());
        let reading = reading.spawn_scoped(scope, move || {
            loop {
                let mut batch = emptied.try_recv().unwrap_or_default();
                let outcome = fill(&mut batch);
                let is_last = !matches!(outcome, Ok(true));
                // Nobody takes it after an error of those who use it.
                if full.send((batch, outcome)).is_err() || is_last {
                    return;
                }
            }
        });
        reading.expect("the host has a thread to spare");
        for (batch, outcome) in filled {
            use_batch(&batch)?;
            outcome?;
            let _ = done.send(batch);
        }
        Ok(())
    })
}
