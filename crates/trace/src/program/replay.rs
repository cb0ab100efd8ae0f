//! A trace as a workload: its programs are the recorded operations.
//!
//! On the design and the machine that it was recorded with, a replay is the recorded run: every statistic, and the
//! bytes in PM at its end. Elsewhere each thread does what it did, with the values that it stored; how the threads
//! interleave is up to the machine, and locks are taken as it comes. What several threads share may then hold what no run
//! of the program would have left, so its structures are not looked at; whether the design kept its guarantee is.

use std::cell::RefCell;
use std::io::{Read, Seek};
use std::rc::Rc;
use std::sync::Arc;

use super::error::TraceError;
use super::reader::{Reader, Stream};
use super::verify::Room;
use super::volatile::on_machine;
use graven_base::config::{Config, ConfigError};
use graven_base::control::Control;
use graven_base::memory::{Addr, Image, LINE_BYTES};
use graven_machine::config::{DramConfig, PmConfig};
use graven_machine::program::{Op, Program};
use graven_machine::recovery;
use graven_machine::registry::Registry;
use graven_machine::sim::{SimError, Simulation, Spec};
use graven_machine::workload::{BrokenInvariant, Extent, Workload, WorkloadInfo};

/// Most locks that a trace may have: the host keeps each.
const LOCKS_MAX: u64 = 1 << 22;

/// The name and properties of the workload of a trace whose workload is none that is registered.
pub static UNREGISTERED: WorkloadInfo = WorkloadInfo {
    name: "trace",
    group: "trace",
    summary: "the operations of a program trace",
    sections: &[],
    settings: &[],
    build: |_| {
        Err(ConfigError::Value {
            origin: "argument".into(),
            key: "workload".into(),
            value: "trace".into(),
            allowed: "a registered workload; traces are replayed".into(),
        })
    },
};

/// A trace that is about to run.
pub struct Replay<R> {
    reader: Reader<R>,
    spec: Spec,
    fault: Fault,
}

/// The fault that stopped programs while they were read; they cannot say it themselves.
type Fault = Rc<RefCell<Option<TraceError>>>;

impl<R: Read + Seek + 'static> Replay<R> {
    /// A replay under a design: the recorded one if none is named, on a machine: the recorded one if none is given.
    /// `set`: keys and values on top.
    ///
    /// # Errors
    /// Unknown names; values that do not fit; a machine without room for the threads or the addresses; keys of the
    /// workload, which has done what it has done.
    pub fn new(
        registry: &Registry,
        reader: Reader<R>,
        design: Option<&str>,
        machine: Option<Config>,
        set: &[(String, String)],
    ) -> Result<Self, TraceError> {
        let spec = specification(registry, &reader, design, machine, set)?;
        Ok(Replay { reader, spec, fault: Fault::default() })
    }

    /// The simulation.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Tells whether design and machine are those of the recording.
    pub fn is_faithful(&self) -> bool {
        let header = &self.reader.contents().header;
        header.design.as_deref() == Some(self.spec.design.name)
            && header.config.as_ref() == Some(&self.spec.config.to_json())
    }

    /// Looks through all of the trace, so that nothing can go wrong with it while it runs. Returns whether it stores
    /// outside transactions, which not every design takes.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn verify(&self, control: &Control) -> Result<bool, TraceError> {
        self.reader.verify(room(&self.spec), control)
    }

    /// The workload, for the crash laboratory: where the recorded workload's check of its structures applies, it is
    /// made, too.
    ///
    /// # Errors
    /// The recorded workload cannot be built.
    pub fn workload(&self) -> Result<Box<dyn Workload>, TraceError> {
        let checks = self.is_faithful() && self.spec.workload.name != UNREGISTERED.name;
        let original = if checks { Some(self.spec.build_workload()?) } else { None };
        Ok(self.traced(original))
    }

    fn traced(&self, original: Option<Box<dyn Workload>>) -> Box<dyn Workload> {
        let (reader, fault) = (self.reader.clone(), Rc::clone(&self.fault));
        let volatile_start = self.spec.volatile_region().0;
        Box::new(Traced { reader, fault, original, volatile_start })
    }

    /// The simulation, ready to run.
    ///
    /// # Errors
    /// Parameters that the design cannot work with; a trace that breaks while it is read.
    pub fn simulation(&self) -> Result<Simulation, TraceError> {
        let simulation = Simulation::with_workload(&self.spec, self.traced(None))?;
        self.fault()?;
        Ok(simulation)
    }

    /// The fault of the trace since it was looked through, if there is one: then the run means nothing.
    ///
    /// # Errors
    /// That.
    pub fn fault(&self) -> Result<(), TraceError> {
        self.fault.borrow().clone().map_or(Ok(()), Err)
    }

    /// Looks through the trace, runs it, and makes the record; watched and cancelled by `control`.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn run(self, control: &Arc<Control>) -> Result<serde_json::Value, TraceError> {
        let stores_outside = self.verify(control)?;
        let mut simulation = self.simulation()?;
        simulation.set_control(Arc::clone(control));
        let outcome = simulation.run();
        self.fault()?;
        match outcome {
            Err(SimError::Cancelled) => Err(TraceError::Cancelled),
            Err(error @ SimError::ProgramDeadlock(_)) => Err(error.into()),
            Err(error) if stores_outside => Err(TraceError::OutsideTransactions { error }),
            outcome => {
                let mut record = simulation.record(outcome?);
                let again = || self.simulation();
                recovery::add_to_record(&mut record, &simulation, again, control)?;
                self.fault()?;
                Ok(record)
            }
        }
    }
}

fn specification<R: Read + Seek>(
    registry: &Registry,
    reader: &Reader<R>,
    design: Option<&str>,
    machine: Option<Config>,
    set: &[(String, String)],
) -> Result<Spec, TraceError> {
    let contents = reader.contents();
    let header = &contents.header;
    let Some(design) = design.or(header.design.as_deref()) else {
        let what = "the trace has no design of its own, since no simulation was recorded: name one";
        return Err(TraceError::Unsupported(what.into()));
    };
    let design = registry.find_design(design)?;
    let of_workload: Vec<&str> = registry.workload_sections().iter().map(|s| s.name()).collect();
    let mut config = match (machine, &header.config) {
        (None, _) => header.config(registry, design.name)?,
        (Some(config), None) => config,
        (Some(mut config), Some(recorded)) => {
            config.overlay_json(recorded, "the trace", |section| of_workload.contains(&section))?;
            config
        }
    };
    for (key, value) in set {
        if key.split_once('.').is_some_and(|(section, _)| of_workload.contains(&section.trim())) {
            return Err(ConfigError::Value {
                origin: "--set".into(),
                key: key.clone(),
                value: value.clone(),
                allowed: "left alone: the workload did what was recorded".into(),
            }
            .into());
        }
        config.set(key, value)?;
    }
    let workload = header.workload.as_deref().and_then(|name| registry.find_workload(name).ok());
    let begun = contents.threads.iter().map(|t| t.transactions).sum();
    let spec = Spec::checked(
        design.configured(config),
        design,
        workload.unwrap_or(&UNREGISTERED),
        Some(header.threads.into()),
        header.transactions.unwrap_or(begun),
        header.seed,
    )?;
    let threads = &contents.threads;
    check_room(&spec, threads.iter().map(|t| t.end).max().unwrap_or(0))?;
    check_volatile_room(&spec, threads.iter().map(|t| t.volatile_end).max().unwrap_or(0))?;
    spec.check_design()?;
    Ok(spec)
}

/// That the machine has the addresses that are used.
fn check_room(spec: &Spec, used: u64) -> Result<(), ConfigError> {
    let pm = spec.config.get::<PmConfig>();
    let end = spec.data_region().1;
    if used <= end.0 {
        return Ok(());
    }
    Err(ConfigError::Inconsistent {
        origin: spec.config.machine.clone(),
        key: "pm.capacity_bytes".into(),
        value: format!("{} B", pm.capacity_bytes.0),
        why: format!(
            "the trace uses addresses up to {used:#x}, and data lie below {end} (pm.log_region_bytes = {} B are the \
             design's); a larger pm.capacity_bytes would do",
            pm.log_region_bytes.0
        ),
    })
}

/// That it has so much volatile memory.
fn check_volatile_room(spec: &Spec, used: u64) -> Result<(), ConfigError> {
    let (start, end) = spec.volatile_region();
    if used <= end.0 - start.0 {
        return Ok(());
    }
    Err(ConfigError::Inconsistent {
        origin: spec.config.machine.clone(),
        key: "dram.capacity_bytes".into(),
        value: format!("{} B", spec.config.get::<DramConfig>().capacity_bytes.0),
        why: format!(
            "the trace uses {used} B of volatile memory, and programs may use a quarter of DRAM; a larger \
             dram.capacity_bytes would do, or a trace of persistent memory only"
        ),
    })
}

fn room(spec: &Spec) -> Room {
    let (start, end) = spec.data_region();
    let (volatile_start, volatile_end) = spec.volatile_region();
    let dram_start = spec.config.get::<PmConfig>().capacity_bytes.0;
    // The first 4,096 B of DRAM stay unused, and each lock has a line.
    let locks = ((volatile_start.0 - dram_start).saturating_sub(4096) / LINE_BYTES).min(LOCKS_MAX);
    Room { start, end, volatile_bytes: volatile_end.0 - volatile_start.0, locks }
}

struct Traced<R> {
    reader: Reader<R>,
    fault: Fault,
    /// The recorded workload, if its check applies.
    original: Option<Box<dyn Workload>>,
    /// The beginning of volatile memory on the machine.
    volatile_start: Addr,
}

impl<R: Read + Seek + 'static> Workload for Traced<R> {
    fn populate(&self, image: &mut Image) {
        if let Err(error) = self.reader.populate(image) {
            self.fault.borrow_mut().get_or_insert(error);
        }
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let (stream, fault) = (self.reader.thread(thread), Rc::clone(&self.fault));
        Box::new(Played { stream, fault, volatile_start: self.volatile_start })
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        self.original.as_ref().map_or(Ok(()), |original| original.check(image))
    }

    /// The recorded programs store what they stored, whatever memory has.
    fn begins_again(&self) -> bool {
        self.original.is_none()
    }

    fn extent(&self) -> Option<Extent> {
        let ends = self.reader.contents().threads.iter().map(|thread| thread.end);
        Some(Extent { fixed_bytes: ends.max().unwrap_or(0), ..Extent::default() })
    }
}

struct Played<R> {
    stream: Stream<R>,
    fault: Fault,
    volatile_start: Addr,
}

impl<R: Read + Seek> Program for Played<R> {
    #[inline]
    fn next(&mut self, _value: u64) -> Op {
        match self.stream.next_operation() {
            Ok(op) => op.map_or(Op::Done, |op| on_machine(op, self.volatile_start)),
            Err(error) => {
                self.fault.borrow_mut().get_or_insert(error);
                Op::Done
            }
        }
    }
}
