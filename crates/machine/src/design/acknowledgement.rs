//! Path of an acknowledgement: the steps between the end of a transaction and the instant at which
//! its thread proceeds.
//!
//! The machine prices the steps, the same for every design: a message is [`controller.bypass_cycles`], a fall through the
//! caches is the latencies of their levels, a write is what the device takes. A design declares which steps its commit has, with the
//! sentence of its paper, and adds nothing of its own but accesses to what it brings along. `graven::contract` holds each
//! design to its declaration: on a machine at rest a commit takes exactly the sum of its steps.
//!
//! [`controller.bypass_cycles`]: crate::config::ControllerConfig

use graven_base::config::Config;
use graven_base::time::{Cycle, cycles};

use crate::config::{ControllerConfig, CoreConfig, DomainConfig, PmConfig, traversal_cycles};

/// A step of a commit; none begins before the one before it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A message between a core and the controller, one way: a request, a record past the caches, an answer.
    Message,
    /// A line falls from the L1 through all levels to the controller, as it is written back.
    Fall,
    /// An access to hardware that the design adds, of this number of cycles.
    Access(Cycle),
    /// A write, from its arrival at the controller until it is durable.
    Write,
    /// Instructions that the thread executes.
    Instructions(u32),
    /// Two paths side by side; the next step begins when both have ended.
    Both(Vec<Step>, Vec<Step>),
}

/// Steps by which a commit is acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledgement {
    /// The sentence of the paper, or that it is silent, and which reading this is.
    pub source: &'static str,
    /// The steps of a transaction that has stored one word, in a configuration of an otherwise idle machine.
    pub steps: fn(&Config) -> Vec<Step>,
}

impl Acknowledgement {
    /// No commit waits for anything: that of a design that guarantees nothing, or not at once.
    pub const AT_ONCE: Acknowledgement = Acknowledgement { source: "", steps: |_| Vec::new() };
}

/// Costs of the steps on a machine at rest, in cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// A message, one way.
    pub message: Cycle,
    /// A fall through the caches.
    pub fall: Cycle,
    /// A write that changes bits, until it is durable.
    pub write: Cycle,
    /// Instructions per cycle.
    pub issue_width: u32,
}

impl Prices {
    /// Those of a configuration. A write is durable when the write queue accepts it, with ADR, or when the on-PM buffer has it;
    /// else when it is in the cells, where every write programs them (`pm.row_writes = "program"`).
    pub fn of(config: &Config) -> Prices {
        let (controller, pm) = (config.get::<ControllerConfig>(), config.get::<PmConfig>());
        let core = config.get::<CoreConfig>();
        let at_once = DomainConfig::keeps_write_queues(config) || pm.buffer_lines > 0;
        Prices {
            message: controller.bypass_cycles.into(),
            fall: traversal_cycles(config).into(),
            write: if at_once { 0 } else { cycles(pm.write_ns, core.frequency_mhz) },
            issue_width: core.issue_width,
        }
    }

    /// That of a step.
    pub fn of_step(&self, step: &Step) -> Cycle {
        match *step {
            Step::Message => self.message,
            Step::Fall => self.fall,
            Step::Access(cycles) => cycles,
            Step::Write => self.write,
            Step::Instructions(count) => u64::from(count).div_ceil(self.issue_width.into()),
            Step::Both(ref one, ref other) => self.of_all(one).max(self.of_all(other)),
        }
    }

    /// That of a whole acknowledgement.
    pub fn of_all(&self, steps: &[Step]) -> Cycle {
        steps.iter().map(|step| self.of_step(step)).sum()
    }
}
