//! Schedules of the adversary on several designs, in chunks on several host threads.
//!
//! Each design's first chunk begins before any's second, so that all get on. What chunks come to is added up by
//! [`ChunkAccumulator`], so that reports are the same whatever the number of threads and however often a campaign was
//! interrupted. Chunks that turn out not to be needed are cancelled. A chunk that is cancelled counts as not done.
//!
//! A chunk that panics is a failure of its design. A panic anywhere else breaks an invariant of the campaign itself: it
//! ends, and from then on every call panics, so that no front end takes a wrong sum for a result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use thiserror::Error;

use super::chunks::ChunkAccumulator;
use super::events::{DesignProgress, Events, Failure, Found, Progress};
use super::request::{AdversaryRequest, Chunk, RequestError};
use super::schedules::Schedules;
use super::state::{self, StateError};
use super::totals::{AdversaryReport, ChunkReport};
use crate::case::LitmusError;
use crate::litmus::MACHINE;
use graven_base::config::ConfigError;
use graven_base::control::{Control, ended_text};
use graven_machine::registry::Registry;
use graven_machine::sim::SimError;

/// Most host threads of a campaign.
const WORKERS_MAX: usize = 1024;

/// Longest that [`AdversaryCampaign::wait`] waits.
const WAIT_MAX: Duration = Duration::from_secs(3600);

/// Why a campaign cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CampaignError {
    /// Numbers or names of the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The designs, settings or mutant.
    #[error(transparent)]
    Litmus(#[from] LitmusError),
    /// The state to continue from.
    #[error(transparent)]
    State(#[from] StateError),
}

impl From<ConfigError> for CampaignError {
    fn from(error: ConfigError) -> CampaignError {
        LitmusError::from(error).into()
    }
}

/// Runs a chunk of a design, known by its number in the request: the adversary, or arithmetic in tests.
trait RunChunk: Send + Sync {
    /// Runs it to its end, or gives [`SimError::Cancelled`].
    fn run(
        &self,
        design: usize,
        chunk: Chunk,
        control: &Arc<Control>,
    ) -> Result<ChunkReport, SimError>;
}

/// The adversary; of each design all schedules that were asked for.
impl RunChunk for Vec<Schedules<'_>> {
    fn run(
        &self,
        design: usize,
        chunk: Chunk,
        control: &Arc<Control>,
    ) -> Result<ChunkReport, SimError> {
        let report = self[design].over(chunk, control).run()?;
        Ok(ChunkReport::new(chunk, report))
    }
}

/// A campaign that was checked, runs, or has ended. All threads may share it.
pub struct AdversaryCampaign<'r> {
    request: AdversaryRequest,
    runner: Box<dyn RunChunk + 'r>,
    /// The control of which those of the chunks are parts.
    control: Arc<Control>,
    shared: Mutex<Shared>,
    /// A chunk has ended, or the campaign is cancelled: a worker that waits may have something to do.
    chunk_ended: Condvar,
    campaign_ended: Condvar,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Prepared,
    Running,
    Ended,
    /// A worker has panicked.
    Broken,
}

struct Shared {
    stage: Stage,
    designs: Vec<ChunkAccumulator>,
    /// In the order in which they began.
    running: Vec<Running>,
    /// Power failures of chunks that have ended.
    failures_checked: u64,
    /// Violations of chunks that have ended which no front end has been told.
    found: Vec<Found>,
}

/// A chunk that runs.
#[derive(Clone)]
struct Running {
    design: usize,
    chunk: Chunk,
    control: Arc<Control>,
}

impl Shared {
    /// Begins the campaign unless it has begun before. The stage until now, and the chunks that are left.
    fn start(&mut self) -> (Stage, u64) {
        let before = self.stage;
        if before == Stage::Prepared {
            self.stage = Stage::Running;
        }
        (before, self.designs.iter().map(ChunkAccumulator::left).sum())
    }

    /// Begins the chunk that is next: the lowest number, of the first design that has one.
    fn begin(&mut self, request: &AdversaryRequest, whole: &Arc<Control>) -> Option<Running> {
        let startable = |(design, chunks): (usize, &ChunkAccumulator)| {
            chunks.startable().map(|index| (index, design))
        };
        let (index, design) = self.designs.iter().enumerate().filter_map(startable).min()?;
        self.designs[design].begin(index);
        let control = Arc::new(Control::under(whole));
        let running = Running { design, chunk: request.chunk(index), control };
        self.running.push(running.clone());
        assert!(self.running.len() <= WORKERS_MAX, "a worker runs one chunk at a time");
        Some(running)
    }

    /// Tells whether a chunk can begin once another has ended.
    fn is_held_up(&self) -> bool {
        let mut held_up = self.designs.iter().enumerate().filter(|(_, d)| d.is_held_up());
        let Some((design, _)) = held_up.next() else { return false };
        assert!(self.running.iter().any(|r| r.design == design), "{design} waits for no chunk");
        true
    }

    /// Forgets a chunk that has ended, and adds up what it came to.
    fn end(&mut self, ended: &Running, outcome: Result<ChunkReport, Ended>) {
        let Running { design, chunk, .. } = *ended;
        let at = self.running.iter().position(|r| r.design == design && r.chunk == chunk);
        self.running.remove(at.expect("what ends has begun, and ends once"));
        let found = self.found_by(ended);
        self.found.extend(found);
        match outcome {
            Ok(report) => {
                self.failures_checked += report.recoveries;
                self.designs[design].add(chunk.index, report);
            }
            Err(Ended::Cancelled) => {
                assert!(ended.control.is_cancelled(), "a chunk stops only when it is asked to");
            }
            Err(Ended::Failed(why)) => self.designs[design].fail(chunk.index, why),
        }
        for surplus in &self.running {
            if !self.designs[surplus.design].needs(surplus.chunk.index) {
                surplus.control.cancel();
            }
        }
    }

    /// The violations that a chunk has found and that were not taken yet.
    fn found_by(&self, running: &Running) -> Vec<Found> {
        let design = &self.designs[running.design].report().design;
        let found = running.control.take_found().into_iter();
        found.map(|what| Found { design: design.clone(), what }).collect()
    }

    /// The violations that were found since the last call.
    fn take_found(&mut self) -> Vec<Found> {
        let mut found = std::mem::take(&mut self.found);
        found.extend(self.running.iter().flat_map(|running| self.found_by(running)));
        found
    }

    fn progress(&self) -> Progress {
        let needed = |r: &&Running| self.designs[r.design].needs(r.chunk.index);
        let mut running: Vec<DesignProgress> = Vec::new();
        for r in &self.running {
            let chunks = &self.designs[r.design];
            let (design, schedules) = (chunks.report().design.clone(), chunks.report().seeds);
            let partial = if chunks.needs(r.chunk.index) { r.control.done() } else { 0 };
            match running.iter_mut().find(|of| of.design == design) {
                Some(of) => of.schedules_done += partial,
                None => running.push(DesignProgress {
                    design,
                    schedules_done: chunks.schedules() + partial,
                    schedules,
                }),
            }
        }
        let checked = self.running.iter().map(|r| r.control.failures_checked());
        Progress {
            schedules_done: self.designs.iter().map(ChunkAccumulator::schedules).sum(),
            schedules_partial: self.running.iter().filter(needed).map(|r| r.control.done()).sum(),
            schedules: self.designs.iter().map(|d| d.report().seeds).sum(),
            failures_checked: self.failures_checked + checked.sum::<u64>(),
            minimising: self.running.iter().filter(|r| r.control.is_minimising()).count(),
            running,
        }
    }

    fn failures(&self) -> Vec<Failure> {
        let failed = self.designs.iter().filter_map(|chunks| {
            let (design, message) = (chunks.report().design.clone(), chunks.failure()?.into());
            Some(Failure { design, message })
        });
        failed.collect()
    }
}

/// Why a chunk gave no report.
enum Ended {
    Cancelled,
    Failed(String),
}

impl<'r> AdversaryCampaign<'r> {
    /// Checks everything; nothing runs. `state`: what [`AdversaryCampaign::state`] gave, to continue from there.
    ///
    /// # Errors
    /// Names what was refused and what is allowed, or why it cannot continue.
    pub fn new(
        registry: &'r Registry,
        request: AdversaryRequest,
        state: Option<&str>,
    ) -> Result<AdversaryCampaign<'r>, CampaignError> {
        request.check()?;
        let (mut schedules, mut nothing) = (Vec::new(), Vec::new());
        for name in &request.designs {
            let design = registry.find_design(name)?;
            let mut config = registry.machine(MACHINE)?;
            for (key, value) in &request.settings {
                config.set(key, value)?;
            }
            let (mutant, settings) = (request.mutant.clone(), request.settings.clone());
            let seeds = (request.first_seed, request.seeds);
            let max = request.violations_max;
            let all = Schedules::new(registry, design, mutant, settings, seeds, max)?;
            let all = all.within(request.draws()?);
            schedules.push(all.minimising(request.minimising_runs()));
            nothing.push(AdversaryReport::new(design, &config, &request));
        }
        Ok(Self::prepared(request, nothing, state, Box::new(schedules))?)
    }

    fn prepared(
        request: AdversaryRequest,
        nothing: Vec<AdversaryReport>,
        state: Option<&str>,
        runner: Box<dyn RunChunk + 'r>,
    ) -> Result<AdversaryCampaign<'r>, StateError> {
        let known = match state {
            Some(text) => state::read(text, &request, nothing)?,
            None => nothing,
        };
        assert_eq!(known.len(), request.designs.len());
        let designs = known.into_iter().map(|r| ChunkAccumulator::new(&request, r)).collect();
        let (stage, running) = (Stage::Prepared, Vec::new());
        let shared = Shared { stage, designs, running, failures_checked: 0, found: Vec::new() };
        Ok(AdversaryCampaign {
            request,
            runner,
            control: Arc::default(),
            shared: Mutex::new(shared),
            chunk_ended: Condvar::new(),
            campaign_ended: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        let shared = self.shared.lock().expect("an invariant of the campaign is broken");
        assert_ne!(shared.stage, Stage::Broken, "an invariant of the campaign is broken");
        shared
    }

    /// Runs what is left on this thread and others, `workers` in all, until it has ended or is cancelled. `clock`: host
    /// time since some moment, as the laboratory has no clock.
    ///
    /// # Panics
    /// It has run before, or an invariant is broken.
    pub fn run(&self, workers: usize, clock: &(dyn Fn() -> Duration + Sync)) {
        let (before, left) = self.lock().start();
        assert_eq!(before, Stage::Prepared, "a campaign runs once");
        let _end = AtEnd(|| self.ended());
        let others = workers.clamp(1, WORKERS_MAX) as u64 - 1;
        thread::scope(|scope| {
            for _ in 0..others.min(left.saturating_sub(1)) {
                // Without a thread the others do its part.
                let worker = thread::Builder::new().name("adversary".into());
                if worker.spawn_scoped(scope, || self.work(clock)).is_err() {
                    break;
                }
            }
            self.work(clock);
        });
        let shared = self.lock();
        assert!(shared.running.is_empty(), "all workers have ended");
        assert!(
            self.control.is_cancelled() || shared.designs.iter().all(ChunkAccumulator::is_done),
            "a campaign ends when all chunks are added"
        );
    }

    /// Runs chunks as long as there are any.
    fn work(&self, clock: &(dyn Fn() -> Duration + Sync)) {
        let _alarm = AtEnd(|| {
            if thread::panicking() {
                self.cancel();
            }
        });
        while let Some(running) = self.begin() {
            let started = clock();
            let outcome = self.run_chunk(&running);
            let took_ms = clock().saturating_sub(started).as_millis() as u64;
            let outcome = outcome.map(|report| ChunkReport { host_time_ms: took_ms, ..report });
            self.lock().end(&running, outcome);
            self.chunk_ended.notify_all();
        }
    }

    /// The report of a chunk, or how it ended without one.
    fn run_chunk(
        &self,
        &Running { design, chunk, ref control }: &Running,
    ) -> Result<ChunkReport, Ended> {
        // What a chunk that panics leaves half done is its own.
        let outcome = catch_unwind(AssertUnwindSafe(|| self.runner.run(design, chunk, control)));
        match outcome {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(SimError::Cancelled)) => Err(Ended::Cancelled),
            Ok(Err(error)) => Err(Ended::Failed(error.to_string())),
            Err(panic) => Err(Ended::Failed(ended_text(panic.as_ref()))),
        }
    }

    /// The next chunk for a worker, once there is one; none if there will be no more.
    fn begin(&self) -> Option<Running> {
        let mut shared = self.lock();
        while !self.control.is_cancelled() {
            let running = shared.begin(&self.request, &self.control);
            if running.is_some() || !shared.is_held_up() {
                return running;
            }
            shared = self.chunk_ended.wait(shared).expect("an invariant of the campaign is broken");
        }
        None
    }

    fn ended(&self) {
        // Poisoned or not: whoever waits is to learn of it.
        let mut shared = self.shared.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if thread::panicking() {
            shared.stage = Stage::Broken;
        } else {
            shared.designs.iter_mut().for_each(ChunkAccumulator::settle);
            shared.stage = Stage::Ended;
        }
        self.campaign_ended.notify_all();
    }

    /// Stops it soon. Chunks that run count as not done. Any thread may call it, also before it runs.
    pub fn cancel(&self) {
        // With the lock, so that no worker goes to sleep between its look and this.
        let shared = self.shared.lock();
        self.control.cancel();
        drop(shared);
        self.chunk_ended.notify_all();
    }

    /// Waits until it has ended, but not longer than this, and returns what has happened meanwhile: the reports that
    /// have grown since the last call; at first those that it continues from.
    ///
    /// # Panics
    /// An invariant is broken.
    pub fn wait(&self, longest: Duration) -> Events {
        let shared = self.lock();
        let goes_on =
            |shared: &mut Shared| matches!(shared.stage, Stage::Prepared | Stage::Running);
        let waited = self.campaign_ended.wait_timeout_while(shared, longest.min(WAIT_MAX), goes_on);
        drop(waited);
        let mut shared = self.lock();
        Events {
            progress: shared.progress(),
            found: shared.take_found(),
            grown: shared.designs.iter_mut().filter_map(|d| d.take_grown().cloned()).collect(),
            failures: shared.failures(),
            ended: shared.stage == Stage::Ended,
        }
    }

    /// The report so far, without designs that have not begun.
    ///
    /// # Panics
    /// An invariant is broken.
    pub fn reports(&self) -> Vec<AdversaryReport> {
        self.lock().designs.iter().map(ChunkAccumulator::report).filter(is_begun).cloned().collect()
    }

    /// A document from which a campaign of the same request continues.
    ///
    /// # Panics
    /// An invariant is broken.
    pub fn state(&self) -> String {
        state::write(&self.request, self.reports().iter())
    }
}

fn is_begun(report: &&AdversaryReport) -> bool {
    report.schedules() > 0
}

/// Does something at the end of a block, however it ends.
struct AtEnd<F: Fn()>(F);

impl<F: Fn()> Drop for AtEnd<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[cfg(test)]
mod tests;
