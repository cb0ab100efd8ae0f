//! Volatile memory of a traced program. Its addresses in a trace are above all of persistent memory; where it lies on a
//! machine is that machine's matter.
//!
//! No design and no check asks what volatile memory holds: a trace has its loads and stores without values.

use graven_base::memory::Addr;
use graven_machine::program::{Op, Ptr};

/// The first address of volatile memory in a trace.
pub const VOLATILE_START: Addr = Addr(1 << 60);

/// Most bytes of volatile memory that a trace may use: 16 GB.
pub const VOLATILE_BYTES_MAX: u64 = 16 << 30;

/// The address in volatile memory for an address of a trace; none: it is in persistent memory.
#[inline]
pub fn volatile_offset(addr: Addr) -> Option<u64> {
    addr.0.checked_sub(VOLATILE_START.0)
}

/// An operation of a trace, on a machine whose volatile memory begins at an address.
#[inline]
pub(super) fn on_machine(op: Op, start: Addr) -> Op {
    moved(op, |addr| volatile_offset(addr).map_or(addr, |offset| start.plus(offset)))
}

/// An operation on such a machine, in a trace.
#[inline]
pub(super) fn in_trace(op: Op, start: Addr) -> Op {
    let offset = |addr: Addr| addr.0.checked_sub(start.0);
    moved(op, |addr| offset(addr).map_or(addr, |offset| VOLATILE_START.plus(offset)))
}

/// An operation that accesses another address, if it accesses one.
#[inline]
fn moved(op: Op, place: impl FnOnce(Addr) -> Addr) -> Op {
    let move_ = |at: Ptr| Ptr { addr: place(at.addr), ..at };
    match op {
        Op::Load { at } => Op::Load { at: move_(at) },
        Op::Store { at, value } => Op::Store { at: move_(at), value },
        Op::StoreNonTemporal { at, value } => Op::StoreNonTemporal { at: move_(at), value },
        other => other,
    }
}
