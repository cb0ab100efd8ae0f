//! The steps of a recovery on a cold machine.

use std::cell::RefCell;
use std::sync::Arc;

use graven_base::control::Control;
use graven_base::memory::{Addr, Image, LINE_BYTES};
use graven_base::recovery_steps::ThreadSteps;
use graven_base::time::Cycle;

use super::program::{RecoveryProgram, dealt};
use crate::config::CoreConfig;
use crate::design::{Design, DesignInfo, NoEvent, Unused, plug};
use crate::program::Program;
use crate::sim::{CrashOptions, SimError, Simulation, Spec};
use crate::workload::{BrokenInvariant, Workload, WorkloadInfo};

/// No persistence hardware is at work: dirty lines go home when they leave the caches.
struct NoDesign;

impl Design for NoDesign {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;
}

static NO_DESIGN: DesignInfo =
    DesignInfo { name: "recovery", build: |_| Ok(plug(NoDesign).into()), ..DesignInfo::DEFAULT };

static WORKLOAD: WorkloadInfo = WorkloadInfo {
    name: "recovery",
    group: "",
    summary: "",
    sections: &[],
    settings: &[],
    build: |_| unreachable!("a recovery is built from its steps"),
};

/// The threads of a recovery, and the bytes that survived.
struct Recovery {
    survived: RefCell<Image>,
    programs: RefCell<Vec<Option<RecoveryProgram>>>,
}

impl Workload for Recovery {
    fn populate(&self, image: &mut Image) {
        *image = self.survived.take();
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let program = self.programs.borrow_mut()[thread as usize].take();
        Box::new(program.expect("each thread has a program, and asks for it once"))
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// Result of the execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Executed {
    /// Threads of the recovery.
    pub threads: u64,
    /// Cycles until the last thread has ended and everything is durable.
    pub cycles: Cycle,
    /// 64 B for each read of PM that reached a controller.
    pub bytes_read: u64,
    /// Bytes of the words of accepted writes to PM.
    pub bytes_written: u64,
    /// Instructions of all threads.
    pub instructions: u64,
}

/// Executes the steps of a recovery's threads on the machine of a specification, from the bytes that survived on, and
/// compares what they leave with `recovered`.
///
/// # Errors
/// A word differs; or what ends a simulation.
///
/// # Panics
/// If the specification's machine cannot be built: it has run before.
pub fn execute(
    spec: &Spec,
    survived: Image,
    steps: Vec<ThreadSteps>,
    recovered: &Image,
    control: &Arc<Control>,
) -> Result<Executed, SimError> {
    let core = spec.config.get::<CoreConfig>();
    let threads = steps.len() as u64;
    let programs = dealt(steps, (core.count * core.threads_per_core) as usize, &spec.config);
    let spec = Spec {
        design: &NO_DESIGN,
        workload: &WORKLOAD,
        threads: programs.len() as u32,
        transactions: 0,
        crash_options: CrashOptions::default(),
        ..spec.clone()
    };
    let programs = RefCell::new(programs.into_iter().map(Some).collect());
    let workload = Box::new(Recovery { survived: RefCell::new(survived), programs });
    let mut simulation =
        Simulation::with_workload(&spec, workload).expect("a machine without a design fits");
    simulation.set_control(Arc::new(Control::under(control)));
    simulation.run()?;
    let end = spec.context().log_end;
    let executed = simulation.machine().architectural();
    if let Some((addr, found, expected)) = executed.first_difference(recovered, Addr(0), end) {
        return Err(SimError::Recovery { addr, found, expected });
    }
    let c = &simulation.stats().counters;
    Ok(Executed {
        threads,
        cycles: c.cycles,
        bytes_read: c.controller_read_requests * LINE_BYTES,
        bytes_written: c.written_bytes(),
        instructions: c.instructions,
    })
}
