//! One simulation: threads of a workload on the machine, under one design.
//!
//! The loop always takes what is earliest: an event, or the thread whose next instruction issues
//! first (ties: events first, then the lower thread). Hooks of the design are called at the instant of
//! the action; what the memory has to tell is delivered before anything else happens.

mod locks;
mod record;
mod run;
mod threads;

pub use crate::control::Control;
pub use record::value_to_json;
pub use run::{Crash, SimError, Simulation, Spec};
