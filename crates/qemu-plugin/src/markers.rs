//! Markers: instructions that do nothing, by which a program says something to the one who traces it (`graven.h`, in the Python
//! package).
//!
//! A marker has a number; its operands, if it has some, are in the registers of a function's first two arguments. The program
//! jumps to it, so that a block begins there, and registers are known.

use graven_capture::{Event, Mark};

use crate::mappings;
use crate::setup::Argument;
use crate::thread::Thread;
use crate::tracer::tracer;

/// Numbers behind those of [`Mark`]: this range of addresses is persistent memory, and is so no longer.
const PERSISTENT: u8 = 5;
const VOLATILE: u8 = 6;

/// A thread executes the marker of this number, with which its block begins.
pub fn executed(thread: &mut Thread, number: u8) {
    if let Some(mark) = Mark::find(number.into()) {
        if matches!(mark, Mark::Begin | Mark::From) {
            tracer().begins();
        }
        thread.event(&Event::Marked(mark));
        return;
    }
    if !thread.has_registers() {
        return;
    }
    let [address, bytes] =
        [Argument::First, Argument::Second].map(|which| thread.registers.argument(which));
    match number {
        PERSISTENT => mappings::range(thread, address, bytes),
        VOLATILE => mappings::no_range(thread, address, bytes),
        _ => {}
    }
}
