//! Python's handle of what runs once: a simulation, a replay of a trace, a campaign on one host thread. The interpreter's
//! lock is released while it runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use graven::control::ended_text;
use pyo3::PyClass;
use pyo3::prelude::*;

use crate::SimulationError;
use crate::seam::{Task, TaskControl};

/// Common base of simulations, replays and campaigns: each runs once, on the thread that calls `run`.
#[pyclass(name = "Task", frozen, subclass, module = "graven._engine")]
pub struct TaskHandle {
    task: Mutex<Option<Task>>,
    control: TaskControl,
}

impl TaskHandle {
    /// An object of a class that is one, of a task that was checked.
    pub fn of<C>(class: C, task: Task) -> PyClassInitializer<C>
    where
        C: PyClass<BaseType = TaskHandle>,
    {
        let handle = TaskHandle { task: Mutex::new(Some(task)), control: TaskControl::default() };
        PyClassInitializer::from(handle).add_subclass(class)
    }

    /// Returns the state that the task shares with the threads that observe it.
    pub fn control(&self) -> &TaskControl {
        &self.control
    }
}

#[pymethods]
impl TaskHandle {
    /// Runs to the end without holding the interpreter's lock; the result as JSON.
    fn run(&self, py: Python<'_>) -> PyResult<String> {
        let taken = self.task.lock().expect("nothing panics while holding this lock").take();
        let Some(task) = taken else { return Err(has_run()) };
        // The task is consumed, so nothing that a panic left half done can be seen afterwards.
        let result = py.detach(|| unbroken(|| task.run(&self.control)))??;
        Ok(result.to_string())
    }

    /// Memory of the host that `run` needs, at most, in bytes; 0 if it has run, or nothing is known of it.
    fn memory_bytes(&self) -> PyResult<u64> {
        let task = self.task.lock().expect("nothing panics while holding this lock");
        let threads = self.control.threads();
        unbroken(|| task.as_ref().map_or(0, |task| task.memory_bytes(threads)))
    }

    /// Lets `run` use `threads` threads of the host at a time, its own among them: it does where a simulation has pieces. The result
    /// does not depend on it.
    fn lend(&self, threads: usize) {
        self.control.lend(threads);
    }

    /// Makes `run`, now or later, raise `Cancelled`. Any thread may call it.
    fn cancel(&self) {
        self.control.cancel();
    }

    /// Done so far, and in all.
    fn progress(&self) -> (u64, u64) {
        self.control.progress()
    }
}

/// A second run is refused.
pub fn has_run() -> PyErr {
    SimulationError::new_err("it has run already; make a new one")
}

/// Calls the engine. A panic is a broken invariant of the engine, or memory that the host has refused, and becomes an
/// exception.
///
/// # Errors
/// It has panicked.
pub fn unbroken<T>(call: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(call))
        .map_err(|panic| SimulationError::new_err(ended_text(panic.as_ref())))
}
