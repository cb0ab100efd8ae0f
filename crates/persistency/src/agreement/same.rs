//! Programs for which another stands: it leaves the same.
//!
//! - **An idle step.** The program without it leaves the same with the same registers, done or not: the step can be taken as soon as
//!   it is reached, and nothing waits for it that does not wait as long for others. Idle are
//!   - a fence with nothing to order since another that orders as much, or since the beginning. Loads of x86 need no fence: each is
//!     answered before all later steps;
//!   - a flush right after the same flush: what the earlier of the two makes durable, the later one does;
//!   - a flush of a line that no thread stores to: the line holds no store that could become durable, and what the flush may order
//!     are loads of one word, which are in order;
//!   - a flush or fence at the end of a thread, but for `mfence` and `DSB`: no step waits for it, nor does the program's end. Later
//!     loads of x86 wait neither for flushes nor for `sfence`;
//!   - `DMB ST` with no store after it.
//!
//!   A load is never idle: its register tells how far its thread has come.
//! - **Two steps in the other order**, one right after the other, that may act in any order and do not touch one word. What one may
//!   do before the other it may do after it, and every other step waits for each of the two as before. Of programs that differ in
//!   such orders alone the one with the smallest steps is compared: the smallest, with threads and lines swapped, too, has none of
//!   these pairs in the order of larger and smaller, so that one of them is always compared.

use super::super::happening::Fence;
use super::super::program::{How, Op};

/// Facts about a thread's steps, whatever the other thread does.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// No program is compared in which a thread begins with these steps.
    pub is_never_needed: bool,
    /// No program is compared in which a thread has these steps.
    pub is_not_needed: bool,
    /// Lines that are stored to, as a set.
    pub stored: u8,
    /// Lines that are flushed, as a set.
    pub flushed: u8,
}

impl Thread {
    /// A thread with some steps of an alphabet, given by their places.
    pub fn new(places: &[u8], alphabet: &[Op], lines: &[u8], is_arm: bool) -> Thread {
        let ops: Vec<&Op> = places.iter().map(|&place| &alphabet[usize::from(place)]).collect();
        let (mut stored, mut flushed) = (0, 0);
        for op in &ops {
            match op {
                Op::Store { words, .. } => stored |= 1 << lines[usize::from(words[0])],
                Op::WriteBack(line) | Op::Flush(line) | Op::Clean(line, _) => flushed |= 1 << line,
                _ => {}
            }
        }
        let is_exchanged = |at: usize| {
            let is_descending = at > 0 && places[at - 1] > places[at];
            is_descending && may_be_exchanged(ops[at - 1], ops[at], lines, is_arm)
        };
        let mut steps = 0..ops.len();
        let is_never_needed =
            steps.clone().any(|at| is_idle_after(&ops[..at], ops[at]) || is_exchanged(at));
        let is_not_needed =
            is_never_needed || steps.any(|at| is_idle_before(ops[at], &ops[at + 1..]));
        Thread { is_never_needed, is_not_needed, stored, flushed }
    }
}

/// Tells if a step is idle after others, whatever follows.
fn is_idle_after(before: &[&Op], op: &Op) -> bool {
    match op {
        Op::WriteBack(_) | Op::Flush(_) | Op::Clean(..) => before.last() == Some(&op),
        Op::Fence(fence) => {
            for earlier in before.iter().rev() {
                if fence_of(earlier).is_some_and(|earlier| covers(earlier, *fence)) {
                    return true;
                }
                if waits_for(*fence, earlier) {
                    return false;
                }
            }
            true
        }
        _ => false,
    }
}

/// Tells if a step is idle before others, whatever goes before.
fn is_idle_before(op: &Op, after: &[&Op]) -> bool {
    match op {
        Op::WriteBack(_) | Op::Flush(_) | Op::Fence(Fence::Store) => {
            after.iter().all(|op| matches!(op, Op::Load { .. }))
        }
        Op::Fence(Fence::DmbStore) => !after.iter().any(|op| matches!(op, Op::Store { .. })),
        Op::Clean(..) | Op::Fence(Fence::Dmb | Fence::DmbLoad) => after.is_empty(),
        _ => false,
    }
}

/// The order that a step gives, as a fence.
fn fence_of(op: &Op) -> Option<Fence> {
    match op {
        Op::Fence(fence) => Some(*fence),
        Op::Store { how: How::Locked, .. } => Some(Fence::Locked),
        _ => None,
    }
}

/// Tells if a fence orders all that another does.
fn covers(fence: Fence, other: Fence) -> bool {
    match fence {
        Fence::Full | Fence::Dsb => true,
        Fence::Dmb => matches!(other, Fence::Dmb | Fence::DmbStore | Fence::DmbLoad),
        Fence::Locked => matches!(other, Fence::Locked | Fence::Store),
        _ => fence == other,
    }
}

/// Tells if a fence may have to wait for an earlier step that is no fence.
fn waits_for(fence: Fence, op: &Op) -> bool {
    let is_load = matches!(op, Op::Load { .. });
    match fence {
        _ if matches!(op, Op::Fence(_)) => false,
        Fence::Store | Fence::Full | Fence::Locked => !is_load,
        Fence::Dmb | Fence::Dsb => true,
        Fence::DmbStore => matches!(op, Op::Store { .. }),
        Fence::DmbLoad => is_load,
    }
}

/// Tells if two steps, one right after the other, may act in any order and do not touch one word.
pub fn may_be_exchanged(a: &Op, b: &Op, lines: &[u8], is_arm: bool) -> bool {
    let word = |op: &Op| match op {
        Op::Store { words, .. } => Some(words[0]),
        Op::Load { word, .. } => Some(*word),
        _ => None,
    };
    let line = |op: &Op| match op {
        Op::WriteBack(line) | Op::Flush(line) | Op::Clean(line, _) => Some(*line),
        op => word(op).map(|word| lines[usize::from(word)]),
    };
    let lines_differ = line(a).is_some() && line(b).is_some() && line(a) != line(b);
    let is_plain = |op: &Op| {
        matches!(op, Op::Store { how: How::Cached, .. } | Op::Load { acquire: false, .. })
    };
    let of_one = |op: &Op, other: &Op| match op {
        Op::WriteBack(_) if matches!(other, Op::WriteBack(_)) => true,
        Op::WriteBack(_) | Op::Store { how: How::NonTemporal, .. } => {
            let is_buffered = match other {
                Op::Store { how, .. } => matches!(how, How::Cached | How::NonTemporal),
                other => matches!(other, Op::WriteBack(_) | Op::Flush(_)),
            };
            lines_differ && is_buffered
        }
        Op::Clean(..) => {
            lines_differ || matches!(other, Op::Clean(..) | Op::Fence(Fence::DmbStore))
        }
        Op::Load { acquire: false, .. } => *other == Op::Fence(Fence::DmbStore),
        _ => false,
    };
    let are_apart = is_arm && is_plain(a) && is_plain(b) && word(a) != word(b);
    are_apart || of_one(a, b) || of_one(b, a)
}
