//! One of several threads of a program executes at a time: the one that has the turn. It gives it up before each
//! system call, and after some thousand blocks if others wait; who waits longest gets it next.
//!
//! So what the threads do is one sequence, in which loads, stores and atomic instructions are as they are recorded.
//! QEMU 7.2 shows neither the values of accesses nor when exactly they happen: without turns, a callback that reads what
//! its thread has just loaded or stored may find what another has stored since.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Blocks of a turn.
pub const BLOCKS: u64 = 2000;

/// The interval in which a waiting thread looks whether QEMU wants it to continue.
const PATIENCE: Duration = Duration::from_millis(1);

/// After how many such looks, none of which saw the turn change hands, it is not waited for any more: should a QEMU not
/// say so where this one does, the program continues nevertheless.
const LOOKS_MAX: u32 = 5000;

/// The place at which a thread waits.
#[derive(Default)]
pub struct Seat {
    has_turn: Mutex<bool>,
    called: Condvar,
}

#[derive(Default)]
struct Queue {
    is_taken: bool,
    /// The number of times that the turn was given up.
    given: u64,
    seats: VecDeque<Arc<Seat>>,
}

/// The turn, and who waits for it.
#[derive(Default)]
pub struct Turns {
    /// The program has, or had, several threads.
    are_needed: AtomicBool,
    queue: Mutex<Queue>,
    waiting: AtomicUsize,
}

impl Turns {
    /// The program is about to have several threads.
    pub fn begin(&self) {
        self.are_needed.store(true, Ordering::Relaxed);
    }

    /// Tells whether the thread has the turn, or had it.
    #[inline]
    pub fn are_needed(&self) -> bool {
        self.are_needed.load(Ordering::Relaxed)
    }

    /// Tells whether another thread waits.
    pub fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Waits for the turn; returns whether it came before `must_go_on` said that it cannot be waited for. Without
    /// `must_go_on` it always comes.
    pub fn take(&self, seat: &Arc<Seat>, must_go_on: Option<&dyn Fn() -> bool>) -> bool {
        let (mut given, mut looks) = {
            let mut queue = self.queue.lock().expect("nobody panics with it");
            if !queue.is_taken {
                queue.is_taken = true;
                return true;
            }
            queue.seats.push_back(Arc::clone(seat));
            self.waiting.store(queue.seats.len(), Ordering::Relaxed);
            (queue.given, 0)
        };
        loop {
            let has_turn = seat.has_turn.lock().expect("nobody panics with it");
            let wait = seat.called.wait_timeout_while(has_turn, PATIENCE, |has_turn| !*has_turn);
            let (mut has_turn, _) = wait.expect("nobody panics with it");
            if std::mem::take(&mut *has_turn) {
                return true;
            }
            drop(has_turn);
            let Some(must_go_on) = must_go_on else { continue };
            let given_now = self.queue.lock().expect("nobody panics with it").given;
            looks = if given_now == given { looks + 1 } else { 0 };
            given = given_now;
            if (must_go_on() || looks == LOOKS_MAX) && self.leave(seat) {
                return false;
            }
        }
    }

    /// Waits no more; returns false if the turn has just come.
    fn leave(&self, seat: &Arc<Seat>) -> bool {
        let mut queue = self.queue.lock().expect("nobody panics with it");
        let before = queue.seats.len();
        queue.seats.retain(|other| !Arc::ptr_eq(other, seat));
        self.waiting.store(queue.seats.len(), Ordering::Relaxed);
        queue.seats.len() < before
    }

    /// Gives up the turn.
    pub fn give(&self) {
        let mut queue = self.queue.lock().expect("nobody panics with it");
        queue.given += 1;
        let next = queue.seats.pop_front();
        self.waiting.store(queue.seats.len(), Ordering::Relaxed);
        queue.is_taken = next.is_some();
        if let Some(next) = next {
            *next.has_turn.lock().expect("nobody panics with it") = true;
            next.called.notify_one();
        }
    }
}
