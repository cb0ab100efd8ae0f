//! What the machine demands of a design.
//!
//! Bug class: a design breaks the rules of the interface and nobody notices, so that its timing is wrong.

use crate::common::forgetful::FORGETFUL;
use crate::common::registry;
use crate::common::{CELLS, tiny_config};
use graven::design::{Design, DesignInfo, Guarantee, NoEvent, Port, Stall, Unused, plug};
use graven::ids::Tx;
use graven::sim::Simulation;

struct Hasty;

impl Design for Hasty {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;

    fn on_tx_begin(&mut self, port: &mut Port<'_, Self>, tx: Tx) -> Stall {
        port.release(tx.thread);
        Stall::None
    }
}

static HASTY: DesignInfo = DesignInfo {
    name: "hasty",
    summary: "releases threads that do not wait for it",
    guarantee: |_| Guarantee::None,
    build: |_| Ok(plug(Hasty).into()),
    ..DesignInfo::DEFAULT
};

fn run(design: &'static DesignInfo) -> Result<u64, graven::sim::SimError> {
    let config = tiny_config(&[]);
    let mut spec = registry().spec(config, "ideal", "array", Some(2), Some(4), 0).expect("it fits");
    (spec.design, spec.workload) = (design, &CELLS);
    Simulation::new(&spec).unwrap_or_else(|e| panic!("{e}")).run()
}

#[test]
#[should_panic(expected = "which does not wait for it")]
fn a_thread_that_does_not_wait_must_not_be_released() {
    drop(run(&HASTY));
}

#[test]
fn a_thread_that_is_never_released_ends_the_run_with_what_everybody_waits_for() {
    let error = run(&FORGETFUL).expect_err("it cannot end").to_string();
    assert!(error.contains("forgetful") && error.contains("has not let it commit"), "{error}");
}
