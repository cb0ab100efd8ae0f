//! All of a trace looked through, before anything runs: every block decodes, and every operation is one that a
//! program may have on the machine. What the engine takes for granted of its own programs is looked at here.

use std::io::{Read, Seek};

use rustc_hash::FxHashSet;

use super::error::TraceError;
use super::reader::{Reader, ThreadSummary};
use super::volatile::{VOLATILE_START, volatile_offset};
use graven_base::control::Control;
use graven_base::memory::Addr;
use graven_machine::program::{LockId, Op, Ptr};

/// The sizes of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// First byte of PM that programs may use.
    pub start: Addr,
    /// One past the last.
    pub end: Addr,
    /// Bytes of volatile memory.
    pub volatile_bytes: u64,
    /// Locks.
    pub locks: u64,
}

impl Room {
    fn has(&self, addr: Addr) -> bool {
        addr.is_word_aligned() && addr >= self.start && addr < self.end
    }
}

/// The state of a thread between its operations.
struct Follower {
    room: Room,
    counted: ThreadSummary,
    in_transaction: bool,
    /// The thread stores outside transactions.
    stores_outside: bool,
    held: FxHashSet<LockId>,
}

impl Follower {
    /// Looks at an operation; what is wrong with it.
    fn follow(&mut self, op: &Op) -> Result<(), String> {
        match op {
            Op::Load { at } | Op::Store { at, .. } | Op::StoreNonTemporal { at, .. } => {
                self.access(*at)?;
                let is_volatile = volatile_offset(at.addr).is_some();
                let is_load = matches!(op, Op::Load { .. });
                self.stores_outside |= !self.in_transaction && !is_load && !is_volatile;
            }
            Op::TxBegin if self.in_transaction => {
                return Err("a transaction begins inside another".into());
            }
            Op::TxEnd if !self.in_transaction => {
                return Err("a transaction ends that has not begun".into());
            }
            Op::TxBegin | Op::TxEnd => self.in_transaction = !self.in_transaction,
            Op::Lock { lock } if u64::from(*lock) >= self.room.locks => {
                return Err(format!("lock {lock}; the machine has room for {}", self.room.locks));
            }
            Op::Lock { lock } if !self.held.insert(*lock) => {
                return Err(format!("it takes lock {lock}, which it holds"));
            }
            Op::Unlock { lock } if !self.held.remove(lock) => {
                return Err(format!("it releases lock {lock}, which it does not hold"));
            }
            _ => {}
        }
        self.counted.add(op);
        Ok(())
    }

    fn access(&self, at: Ptr) -> Result<(), String> {
        let Room { start, end, volatile_bytes, .. } = self.room;
        if let Some(offset) = volatile_offset(at.addr) {
            if !at.addr.is_word_aligned() || offset >= volatile_bytes {
                let end = VOLATILE_START.plus(volatile_bytes);
                return Err(format!(
                    "no word of volatile memory is at {}: they lie from {VOLATILE_START} to {end}",
                    at.addr
                ));
            }
        } else if !self.room.has(at.addr) {
            return Err(format!(
                "no word of the data is at {}: they lie from {start} to {end}",
                at.addr
            ));
        }
        // Loads are numbered with 32 bits.
        let distance = (self.counted.loads as u32).wrapping_sub(at.origin);
        if at.origin != 0 && (u64::from(distance) >= self.counted.loads || distance >> 31 != 0) {
            return Err(format!("its address comes from load {}, which comes later", at.origin));
        }
        Ok(())
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Looks through all of the trace for a machine with such room; returns whether it stores outside transactions.
    pub(super) fn verify(&self, room: Room, control: &Control) -> Result<bool, TraceError> {
        let mut outside = None;
        self.picture(|offset, addr, _| {
            if !room.has(addr) {
                outside.get_or_insert((offset, addr));
            }
        })?;
        if let Some((offset, addr)) = outside {
            let expected = format!("populated words from {} to {}", room.start, room.end);
            return Err(TraceError::malformed(offset, expected, addr.to_string()));
        }
        self.lengths()?;
        let mut stores_outside = false;
        for thread in 0..self.contents().threads.len() as u32 {
            stores_outside |= self.verify_thread(thread, room, control)?;
        }
        Ok(stores_outside)
    }

    fn verify_thread(
        &self,
        thread: u32,
        room: Room,
        control: &Control,
    ) -> Result<bool, TraceError> {
        let mut stream = self.thread(thread);
        let held = FxHashSet::default();
        let counted = ThreadSummary::default();
        let mut follower =
            Follower { room, counted, in_transaction: false, stores_outside: false, held };
        loop {
            let batch = stream.next_batch()?;
            if batch.is_empty() {
                break;
            }
            for op in batch {
                if let Err(what) = follower.follow(op) {
                    let operation = follower.counted.operations;
                    let offset = stream.offset();
                    return Err(TraceError::Operation { offset, thread, operation, what });
                }
            }
            if control.report(0) {
                return Err(TraceError::Cancelled);
            }
        }
        let operation = follower.counted.operations;
        let refuse = |what: &str| {
            let what = what.into();
            Err(TraceError::Operation { offset: stream.offset(), thread, operation, what })
        };
        if follower.in_transaction {
            return refuse("the thread ends inside a transaction");
        }
        if follower.counted != self.contents().threads[thread as usize] {
            return refuse("the index counts otherwise than the thread does");
        }
        Ok(follower.stores_outside)
    }
}
