//! What the machine demands of a design.
//!
//! Bug class: a design breaks the rules of the interface and nobody notices, so that its timing is wrong.

use crate::common::forgetful::FORGETFUL;
use crate::common::registry;
use crate::common::{CELLS, tiny_config};
use graven::design::{Design, DesignInfo, Guarantee, NoEvent, Port, Stall, Unused, plug};
use graven::ids::Tx;
use graven::memory::Addr;
use graven::request::{Write, WriteClass};
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

/// Asks for a place in the order of writes and has writes wait for it that it gives to none.
struct Forgotten;

impl Design for Forgotten {
    type Write = ();
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;

    fn on_tx_end(&mut self, port: &mut Port<'_, Self>, _tx: Tx) -> Stall {
        let place = port.order();
        let write = Write::words(WriteClass::Log, LOG, &[1]).after(place);
        port.write_reported(write, (), 0);
        Stall::UntilReleased
    }
}

const LOG: Addr = Addr(64);

static FORGOTTEN: DesignInfo = DesignInfo {
    name: "forgotten",
    summary: "leaves a place in the order of writes without a write",
    build: |_| Ok(plug(Forgotten).into()),
    ..DesignInfo::DEFAULT
};

#[test]
fn a_place_in_the_order_that_no_write_has_is_named() {
    let error = run(&FORGOTTEN).expect_err("it cannot end").to_string();
    assert!(error.contains("writes wait for place 1 in the order of writes"), "{error}");
}

#[test]
#[should_panic(
    expected = "a write of 1 words at 0x3: words have addresses that are multiples of 8"
)]
fn a_write_at_no_words_address_is_refused() {
    let _ = Write::words(WriteClass::Log, Addr(3), &[1]);
}

#[test]
#[should_panic(expected = "a write of 2 words at 0x38")]
fn a_write_over_the_end_of_its_line_is_refused() {
    let _ = Write::words(WriteClass::Log, Addr(56), &[1, 2]);
}

static UNBUILT: DesignInfo = DesignInfo { name: "unbuilt", ..DesignInfo::DEFAULT };

#[test]
#[should_panic(expected = "has no `build`")]
fn an_entry_without_a_design_is_told() {
    drop(run(&UNBUILT));
}

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
