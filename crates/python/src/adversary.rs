//! Python's handle of an adversary's campaign. The engine has the threads; Python starts it, and waits for its events
//! with a timeout, so that signals are delivered. No thread of the engine needs the interpreter's lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use graven::lab::campaign;
use pyo3::prelude::*;
use serde::Serialize;

use crate::task::{has_run, unbroken};
use crate::{ConfigError, SimulationError, laboratory};

/// Schedules of the adversary on several designs: `AdversaryCampaign(request_json, state)`, checked when it is made.
#[pyclass(frozen, module = "graven._engine")]
pub struct AdversaryCampaign {
    campaign: Arc<campaign::AdversaryCampaign<'static>>,
    has_started: AtomicBool,
}

#[pymethods]
impl AdversaryCampaign {
    #[new]
    #[pyo3(signature = (request_json, state=None))]
    fn new(request_json: &str, state: Option<&str>) -> PyResult<Self> {
        let campaign = Arc::new(laboratory::adversary_campaign(request_json, state)?);
        Ok(AdversaryCampaign { campaign, has_started: AtomicBool::new(false) })
    }

    /// Lets it run on `workers` threads of its own at a time, and returns.
    fn start(&self, workers: usize) -> PyResult<()> {
        if self.has_started.swap(true, SeqCst) {
            return Err(has_run());
        }
        let campaign = Arc::clone(&self.campaign);
        let started = Instant::now();
        let clock = move || started.elapsed();
        // A panic there is told by every later call.
        let thread = thread::Builder::new().spawn(move || campaign.run(workers, &clock));
        let without = |error| SimulationError::new_err(format!("cannot start a thread: {error}"));
        thread.map(drop).map_err(without)
    }

    /// Memory of the host that each worker needs, at most, in bytes.
    #[staticmethod]
    fn memory_bytes() -> u64 {
        campaign::HOST_BYTES
    }

    /// Waits until it has ended, but not longer than this, without holding the interpreter's lock. What has happened as
    /// JSON: `progress`, `grown` (reports that have), `failures`, `ended`.
    fn wait(&self, py: Python<'_>, seconds: f64) -> PyResult<String> {
        let longest = Duration::try_from_secs_f64(seconds)
            .map_err(|error| ConfigError::new_err(format!("{seconds} s to wait: {error}")))?;
        py.detach(|| unbroken(|| json(&self.campaign.wait(longest))))
    }

    /// Stops it soon; chunks that run count as not done. Any thread may call it.
    fn cancel(&self) {
        self.campaign.cancel();
    }

    /// Returns all that is known so far: reports as JSON, in the order of the request's designs.
    fn reports(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| unbroken(|| json(&self.campaign.reports())))
    }

    /// Returns a document from which a campaign of the same request continues.
    fn state(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| unbroken(|| self.campaign.state()))
    }
}

impl Drop for AdversaryCampaign {
    fn drop(&mut self) {
        self.campaign.cancel();
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("texts and numbers can be written")
}
