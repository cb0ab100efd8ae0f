//! Parts that every other part of the seam needs: the registry, failures, tasks that are observed, machines and
//! specifications as JSON.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use graven::Registry;
use graven::comparison::MachineFile;
use graven::config::{Config, ConfigError};
use graven::control::Control;
use graven::sim::SimError;
use serde::Deserialize;
use serde_json::Value;

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Sets the registry, once for a process.
pub fn set_registry(make: impl FnOnce() -> Registry) {
    REGISTRY.get_or_init(make);
}

/// Returns the registry: all that can be simulated.
///
/// # Panics
/// Before it is set: by the module, before any of its functions can be called.
pub fn registry() -> &'static Registry {
    REGISTRY.get().expect("a module sets what there is to simulate when it is made")
}

/// Why a call failed; each becomes one Python exception.
#[derive(Debug)]
pub enum Failure {
    /// The specification was refused.
    Config(String),
    /// A trace cannot be read.
    Trace(String),
    /// The simulation failed.
    Simulation(String),
    /// The call was cancelled.
    Cancelled,
}

impl Failure {
    /// A refusal of the specification, for this reason.
    pub fn config(why: impl Display) -> Failure {
        Failure::Config(why.to_string())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        Failure::config(error)
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Failure {
        match error {
            SimError::Cancelled => Failure::Cancelled,
            // No design can run it: what was given is wrong.
            refused @ SimError::ProgramDeadlock(_) => Failure::config(refused),
            failed => Failure::Simulation(failed.to_string()),
        }
    }
}

/// State that a task shares with the threads that watch it.
#[derive(Debug, Default)]
pub struct TaskControl {
    cancelled: AtomicBool,
    control: OnceLock<Arc<Control>>,
    total: AtomicU64,
    /// Threads of the host that it may use besides its own.
    others: AtomicUsize,
}

impl TaskControl {
    /// Lets the task use `threads` threads of the host at a time, its own among them.
    pub fn lend(&self, threads: usize) {
        self.others.store(threads.saturating_sub(1), SeqCst);
    }

    /// Threads of the host that the task may use at a time; 1 if none was lent.
    pub fn threads(&self) -> usize {
        self.others.load(SeqCst) + 1
    }

    /// Asks the task to stop, whether it runs already or not.
    pub fn cancel(&self) {
        self.cancelled.store(true, SeqCst);
        if let Some(control) = self.control.get() {
            control.cancel();
        }
    }

    /// Done, and in all (0 while that is not known).
    pub fn progress(&self) -> (u64, u64) {
        let done = self.control.get().map_or(0, |control| control.committed());
        (done, self.total.load(SeqCst))
    }

    /// Power failures checked so far, by campaigns.
    pub fn checked(&self) -> u64 {
        self.control.get().map_or(0, |control| control.failures_checked())
    }

    /// Takes the violations that a campaign has found since the last call.
    pub fn found(&self) -> Vec<String> {
        self.control.get().map_or_else(Vec::new, |control| control.take_found())
    }

    /// Returns true while a campaign minimises the program of a violation.
    pub fn minimising(&self) -> bool {
        self.control.get().is_some_and(|control| control.is_minimising())
    }

    /// Follows a simulation that is about to run, unless it has been cancelled before.
    pub fn follow(&self, control: Arc<Control>, total: u64) -> Result<(), Failure> {
        self.total.store(total, SeqCst);
        self.control.set(control).expect("a task runs once");
        if self.cancelled.load(SeqCst) { Err(Failure::Cancelled) } else { Ok(()) }
    }

    /// Makes the control to which a computation reports that is about to begin.
    pub fn begin(&self, total: u64) -> Result<Arc<Control>, Failure> {
        let control = Arc::<Control>::default();
        self.follow(Arc::clone(&control), total)?;
        Ok(control)
    }
}

/// Function that runs a task: it takes the state that the task shares with the threads that watch it, and returns the result.
type Run = Box<dyn FnOnce(&TaskControl) -> Result<Value, Failure> + Send>;

/// Something that was checked, runs once, and gives a result as JSON.
pub struct Task {
    run: Run,
    memory_bytes: Box<dyn Fn(usize) -> u64 + Send>,
}

impl Task {
    /// A task of which no need of memory is known.
    pub fn new(run: impl FnOnce(&TaskControl) -> Result<Value, Failure> + Send + 'static) -> Task {
        Task { run: Box::new(run), memory_bytes: Box::new(|_| 0) }
    }

    /// The same task, whose need of the host's memory, in bytes at most, is what `memory_bytes` returns when it is asked, for
    /// the threads of the host that the task may use.
    pub fn needing(self, memory_bytes: impl Fn(usize) -> u64 + Send + 'static) -> Task {
        Task { memory_bytes: Box::new(memory_bytes), ..self }
    }

    /// Runs to the end, or until the task is cancelled.
    ///
    /// # Errors
    /// The simulation failed or was cancelled.
    pub fn run(self, watch: &TaskControl) -> Result<Value, Failure> {
        (self.run)(watch)
    }

    /// Memory of the host that the task needs on `threads` threads, at most, in bytes; 0 if nothing is known, or it needs
    /// little.
    pub fn memory_bytes(&self, threads: usize) -> u64 {
        (self.memory_bytes)(threads)
    }
}

/// A machine as a specification names it.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum MachineSpec {
    /// One that ships with Graven.
    Preset {
        /// Name of the preset.
        preset: String,
    },
    /// A user's file.
    File {
        /// Name of the file.
        file: String,
        /// Text of the file.
        text: String,
    },
}

impl MachineSpec {
    /// Returns the machine's configuration, with values set on top.
    ///
    /// # Errors
    /// Names what was refused and what is allowed.
    pub fn config(&self, set: &[(String, String)]) -> Result<Config, Failure> {
        // All of a file is checked, whatever it is used for.
        let mut config = self.read()?.config;
        for (key, value) in set {
            config.set(key, value)?;
        }
        Ok(config)
    }

    /// Reads the machine's parameters, and the comparison that its file asks for.
    ///
    /// # Errors
    /// Names what was refused and what is allowed.
    pub fn read(&self) -> Result<MachineFile, Failure> {
        Ok(match self {
            MachineSpec::Preset { preset } => MachineFile::named(registry(), preset)?,
            MachineSpec::File { file, text } => MachineFile::read(registry(), text, file)?,
        })
    }
}

/// A specification.
///
/// # Errors
/// It is not as agreed.
pub fn parse<'a, T: Deserialize<'a>>(spec_json: &'a str) -> Result<T, Failure> {
    serde_json::from_str(spec_json)
        .map_err(|error| Failure::Config(format!("the specification is not as agreed: {error}")))
}
