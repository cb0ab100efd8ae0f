//! The steps of a recovery's thread as operations of a core.

use std::collections::VecDeque;
use std::sync::Arc;

use graven_base::config::Config;
use graven_base::memory::{LINE_BYTES, LineAddr, WORD_BYTES};
use graven_base::recovery_steps::{Step, ThreadSteps};
use rustc_hash::FxHashSet;

use crate::program::{Disturbance, LockId, Op, Persist, Program, Ptr};
use crate::request::WriteClass;
use crate::stats::RecoveryConfig;

/// The line that threads count themselves in when they come to a barrier.
const BARRIER: LockId = 0;

/// A hardware thread with the steps that it executes.
pub(super) struct RecoveryProgram {
    steps: Vec<Step>,
    /// The current step, and how much of it is done.
    at: usize,
    words: u32,
    /// Operations to be handed out before anything else.
    next: VecDeque<Op>,
    prices: RecoveryConfig,
    /// Lines that caches hold at some time: stores to them never go past the caches.
    cached: Arc<FxHashSet<LineAddr>>,
    /// Loads so far.
    loads: u32,
    /// The line that was stored to last and is not written back yet.
    dirty: Option<LineAddr>,
    /// True if something may not be durable.
    undurable: bool,
    /// Number of the thread, the number of threads, and the barriers that it has come to.
    thread: u32,
    threads: u32,
    barriers: u32,
    done: bool,
}

/// Deals the threads of a recovery to hardware threads, `most` at most. Where one has several, it executes them one after
/// the other, between any two barriers.
pub(super) fn dealt(steps: Vec<ThreadSteps>, most: usize, config: &Config) -> Vec<RecoveryProgram> {
    let threads = steps.len().min(most);
    let cached = Arc::new(cached_lines(&steps));
    let program = |(thread, steps): (usize, Vec<Step>)| RecoveryProgram {
        steps,
        at: 0,
        words: 0,
        next: VecDeque::new(),
        prices: config.get::<RecoveryConfig>().clone(),
        cached: Arc::clone(&cached),
        loads: 0,
        dirty: None,
        undurable: false,
        thread: thread as u32,
        threads: threads as u32,
        barriers: 0,
        done: false,
    };
    let of_thread = |thread: usize| {
        let mine: Vec<&[Step]> =
            steps.iter().skip(thread).step_by(threads).map(ThreadSteps::steps).collect();
        if let [only] = mine[..] { only.to_vec() } else { one_after_the_other(&mine) }
    };
    (0..threads).map(|thread| program((thread, of_thread(thread)))).collect()
}

/// Steps of several threads between two barriers, one thread after the other.
fn one_after_the_other(threads: &[&[Step]]) -> Vec<Step> {
    let split =
        |steps: &&[Step]| steps.split(|step| *step == Step::Barrier).map(<[_]>::to_vec).collect();
    let parts: Vec<Vec<Vec<Step>>> = threads.iter().map(split).collect();
    let phases = parts.iter().map(Vec::len).max().unwrap_or(0);
    let mut steps = Vec::new();
    for phase in 0..phases {
        if phase > 0 {
            steps.push(Step::Barrier);
        }
        parts.iter().filter_map(|parts| parts.get(phase)).for_each(|part| steps.extend(part));
    }
    steps
}

/// Lines that are loaded, or stored to through the caches. They are not needed without stores past
/// the caches.
fn cached_lines(threads: &[ThreadSteps]) -> FxHashSet<LineAddr> {
    let mut lines = FxHashSet::default();
    let bypasses = |step: &Step| matches!(step, Step::Store { bypassing: true, .. });
    let all = || threads.iter().flat_map(|thread| thread.steps());
    if !all().any(bypasses) {
        return lines;
    }
    for step in all() {
        match *step {
            Step::Loads { start, words, .. } => {
                let end = start.plus(u64::from(words) * WORD_BYTES - 1);
                lines.extend((start.0 / LINE_BYTES..=end.0 / LINE_BYTES).map(LineAddr));
            }
            Step::Store { addr, bypassing: false, .. } => _ = lines.insert(addr.line()),
            _ => {}
        }
    }
    lines
}

impl RecoveryProgram {
    /// Begins the next step; operations go to `next`, save for those of loads.
    fn begin(&mut self, step: Step) {
        match step {
            Step::Loads { .. } => {}
            Step::Store { addr, value, bypassing } => {
                self.undurable = true;
                let line = addr.line();
                if bypassing && !self.cached.contains(&line) {
                    let class = WriteClass::Data;
                    let store = Persist::StoreUncached { addr, value, class };
                    return self.next.push_back(Op::Persist(store));
                }
                if self.dirty != Some(line) {
                    self.write_back();
                }
                self.dirty = Some(line);
                self.next.push_back(Op::Store { at: Ptr::known(addr), value });
            }
            Step::Work { kind, count } => {
                let mut left = self.prices.instructions(kind, count);
                while left > 0 {
                    let instructions = left.min(u32::MAX.into()) as u32;
                    self.next.push_back(Op::Compute { instructions });
                    left -= u64::from(instructions);
                }
            }
            Step::Fence => self.fence(),
            Step::Barrier => self.barrier(),
        }
    }

    fn write_back(&mut self) {
        let line = self.dirty.take();
        self.next.extend(line.map(|line| Op::Persist(Persist::WriteBack(line))));
    }

    fn fence(&mut self) {
        self.write_back();
        if std::mem::take(&mut self.undurable) {
            self.next.push_back(Op::Persist(Persist::Fence));
        }
    }

    /// An atomic operation on the barrier's line, and a wait for all others.
    fn barrier(&mut self) {
        if self.threads == 1 {
            return;
        }
        let first = self.barriers * self.threads;
        self.barriers += 1;
        self.next.push_back(Op::Lock { lock: BARRIER });
        self.next.push_back(Op::Unlock { lock: BARRIER });
        self.next.push_back(Op::Disturb(Disturbance::Signal(first + self.thread)));
        let all = (0..self.threads).filter(|&other| other != self.thread);
        self.next.extend(all.map(|other| Op::Disturb(Disturbance::Await(first + other))));
    }
}

impl Program for RecoveryProgram {
    fn next(&mut self, _value: u64) -> Op {
        loop {
            if let Some(op) = self.next.pop_front() {
                return op;
            }
            let Some(&step) = self.steps.get(self.at) else {
                if std::mem::replace(&mut self.done, true) {
                    return Op::Done;
                }
                self.fence();
                continue;
            };
            if let Step::Loads { start, words, origin } = step
                && self.words < words
            {
                let addr = start.plus(u64::from(self.words) * WORD_BYTES);
                // All words of a step wait for the same load.
                let first = self.loads.wrapping_sub(self.words).wrapping_add(1);
                let origin = if origin == 0 { 0 } else { first.wrapping_sub(origin) };
                self.loads = self.loads.wrapping_add(1);
                self.words += 1;
                return Op::Load { at: Ptr { addr, origin } };
            }
            self.words = 0;
            self.at += 1;
            self.begin(step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::memory::Addr;
    use graven_base::recovery_steps::{RecoverySteps, Work};

    fn config() -> Config {
        Config::of(vec![Box::new(RecoveryConfig::default())])
    }

    fn operations(steps: RecoverySteps, most: usize) -> Vec<Vec<Op>> {
        let programs = dealt(steps.into_threads(), most, &config());
        let run = |mut program: RecoveryProgram| {
            let all = std::iter::from_fn(|| Some(program.next(0)));
            all.take_while(|op| *op != Op::Done).collect()
        };
        programs.into_iter().map(run).collect()
    }

    fn load(addr: u64, origin: u32) -> Op {
        Op::Load { at: Ptr { addr: Addr(addr), origin } }
    }

    #[test]
    fn words_of_a_step_wait_for_the_load_that_gave_their_address() {
        let mut steps = RecoverySteps::default();
        steps.main().load(Addr(64));
        steps.main().follow();
        steps.main().load(Addr(128));
        steps.main().load(Addr(136));
        let expected = vec![load(64, 0), load(128, 1), load(136, 1)];
        let ops = operations(steps, 1);
        assert!(matches!(ops[0][1], Op::Load { at } if at.origin == 1));
        let origins = |ops: &[Op]| -> Vec<u32> {
            ops.iter()
                .filter_map(|op| if let Op::Load { at } = op { Some(at.origin) } else { None })
                .collect()
        };
        assert_eq!(ops, std::slice::from_ref(&expected));
        assert_eq!(origins(&ops[0]), origins(&expected), "pointers compare by address alone");
    }

    #[test]
    fn a_line_is_written_back_when_another_is_stored_to_and_a_thread_ends_durable() {
        let mut steps = RecoverySteps::default();
        for at in [0, 8, 64] {
            steps.main().store(Addr(at), 1, false);
        }
        let store = |at: u64| Op::Store { at: Ptr::known(Addr(at)), value: 1 };
        let clwb = |line| Op::Persist(Persist::WriteBack(LineAddr(line)));
        let fence = Op::Persist(Persist::Fence);
        let expected = vec![store(0), store(8), clwb(0), store(64), clwb(1), fence];
        assert_eq!(operations(steps, 1), [expected]);
    }

    #[test]
    fn stores_past_the_caches_go_through_them_where_a_line_is_loaded() {
        let mut steps = RecoverySteps::default();
        steps.main().load(Addr(72));
        steps.main().store(Addr(64), 1, true);
        steps.main().store(Addr(128), 2, true);
        steps.main().work(Work::Record, 3);
        let ops = operations(steps, 1).remove(0);
        assert_eq!(ops[1], Op::Store { at: Ptr::known(Addr(64)), value: 1 });
        let uncached =
            Persist::StoreUncached { addr: Addr(128), value: 2, class: WriteClass::Data };
        assert_eq!(ops[2], Op::Persist(uncached));
        assert_eq!(ops[3], Op::Compute { instructions: 24 });
    }

    #[test]
    fn threads_without_a_core_take_turns_between_barriers() {
        let mut steps = RecoverySteps::default();
        for thread in 0..3 {
            steps.thread(thread).load(Addr(64 * thread as u64));
        }
        steps.barrier();
        steps.thread(2).load(Addr(256));
        let ops = operations(steps, 2);
        assert_eq!(ops[0][..2], [load(0, 0), load(128, 0)]);
        assert_eq!(ops[0][2], Op::Lock { lock: BARRIER });
        assert_eq!(ops[0].last(), Some(&load(256, 0)));
        assert_eq!(ops[1][0], load(64, 0));
        let signal = |number| Op::Disturb(Disturbance::Signal(number));
        let wait = |number| Op::Disturb(Disturbance::Await(number));
        assert_eq!(ops[1][3..], [signal(1), wait(0)]);
    }
}
