//! Machines and programs for the tests of designs.

use graven_base::config::{Config, OtherTable};
use graven_base::memory::Image;
use graven_machine::design::DesignInfo;
use graven_machine::program::{Op, Program};
use graven_machine::registry::{Preset, Registry};
use graven_machine::sim::{Programs, Simulation, Spec};
use graven_machine::workload::{BrokenInvariant, Workload, WorkloadInfo};

macro_rules! machines {
    ($($name:literal)*) => {
        /// The papers' machines.
        const MACHINES: &[Preset] = &[$(Preset {
            name: $name,
            title: $name,
            file: concat!("papers/", $name, "/machine.toml"),
            text: include_str!(concat!("../../../papers/", $name, "/machine.toml")),
        },)*];
    };
}

machines! { "silo" "morlog" "fwb" "hoop" "lalea" }

/// What machines' files say of workloads and comparisons.
const OTHER_TABLES: [&str; 4] = ["comparison", "smallbank", "tatp", "tpcc"];

fn registry() -> Registry {
    let mut registry = Registry::new();
    crate::register(&mut registry);
    MACHINES.iter().for_each(|machine| registry.preset(machine));
    OTHER_TABLES.iter().for_each(|name| registry.other_table(OtherTable { name, keys: &[] }));
    registry
}

/// All defaults.
pub fn defaults() -> Config {
    registry().defaults()
}

/// A paper's machine.
pub fn machine(name: &str) -> Config {
    registry().machine(name).expect("machines that ship are valid")
}

static SCRIPT: WorkloadInfo = WorkloadInfo {
    name: "script",
    group: "test",
    sections: &[],
    settings: &[],
    summary: "given operations",
    build: |_| unreachable!("programs are given"),
};

/// The operations of each thread.
struct Script(Vec<Vec<Op>>);

struct Run(std::vec::IntoIter<Op>);

impl Program for Run {
    fn next(&mut self, _value: u64) -> Op {
        self.0.next().unwrap_or(Op::Done)
    }
}

impl Workload for Script {
    fn populate(&mut self, _image: &mut Image) {}

    fn program(&self, thread: u32) -> Box<dyn Program> {
        Box::new(Run(self.0[thread as usize].clone().into_iter()))
    }

    fn check(&self, _image: &Image) -> Result<(), BrokenInvariant> {
        Ok(())
    }
}

/// A simulation of a list of operations for each thread.
pub fn simulation(
    config: Config,
    design: &'static DesignInfo,
    threads: Vec<Vec<Op>>,
) -> Simulation {
    let config = design.configured(config);
    let count = Some(threads.len() as u64);
    let spec = Spec::checked(config, design, &SCRIPT, count, 1, 0).expect("it can be simulated");
    let programs = Programs::new(move || Ok(Box::new(Script(threads.clone()))));
    Simulation::new(&Spec { programs: Some(programs), ..spec }).expect("the design takes it")
}
