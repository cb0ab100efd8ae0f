//! Steps of each thread of a recovery: the program that a machine executes to find out how long the
//! recovery takes. Steps are kept only if they are asked for ([`SurvivingImage::keep_steps`]).
//!
//! [`SurvivingImage::keep_steps`]: crate::surviving::SurvivingImage::keep_steps

use crate::memory::{Addr, WORD_BYTES};

/// Computation of a recovery, which is counted in operations; the machine has a price in instructions for each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A record is taken apart, checked and decided about.
    Record,
    /// A volatile table of recovery's own is asked for an entry, or takes one.
    Table,
    /// Two keys are compared in a sort.
    Comparison,
}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Consecutive words are loaded, one after the other.
    Loads {
        /// The first.
        start: Addr,
        /// Number of words.
        words: u32,
        /// The load whose data gave the address, counted backwards from the first of these: 1 is the one right before it.
        /// 0: the address was known without a load.
        origin: u32,
    },
    /// A word is stored.
    Store {
        /// Address of the word.
        addr: Addr,
        /// New value of the word.
        value: u64,
        /// True if the store bypasses the caches.
        bypassing: bool,
    },
    /// Computation.
    Work {
        /// Kind of computation.
        kind: Work,
        /// Number of operations.
        count: u32,
    },
    /// The thread's later stores wait until its earlier ones are durable.
    Fence,
    /// Waits until all threads have come to their barrier of this number.
    Barrier,
}

/// The steps of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSteps {
    steps: Vec<Step>,
    /// Loads so far.
    loads: u32,
    /// The number, from 1, of the load from which addresses come; 0: they are known.
    origin: u32,
    /// The same of the last step, if that loads.
    last_origin: u32,
}

impl ThreadSteps {
    /// A word is loaded.
    pub fn load(&mut self, addr: Addr) {
        let number = self.loads.wrapping_add(1);
        self.loads = number;
        if let Some(Step::Loads { start, words, .. }) = self.steps.last_mut()
            && self.last_origin == self.origin
            && addr == start.plus(u64::from(*words) * WORD_BYTES)
            && *words < u32::MAX
        {
            *words += 1;
            return;
        }
        let origin = if self.origin == 0 { 0 } else { number.wrapping_sub(self.origin) };
        self.steps.push(Step::Loads { start: addr, words: 1, origin });
        self.last_origin = self.origin;
    }

    /// The addresses of what is loaded from now on come from what the newest load has read.
    pub fn follow(&mut self) {
        self.origin = self.loads;
    }

    /// They are known without a load from now on.
    pub fn addresses_known(&mut self) {
        self.origin = 0;
    }

    /// A word is stored.
    pub fn store(&mut self, addr: Addr, value: u64, bypassing: bool) {
        self.steps.push(Step::Store { addr, value, bypassing });
    }

    /// Something is computed.
    pub fn work(&mut self, kind: Work, count: u64) {
        let mut left = count;
        if let Some(Step::Work { kind: last, count }) = self.steps.last_mut()
            && *last == kind
        {
            let taken = left.min(u64::from(u32::MAX - *count));
            *count += taken as u32;
            left -= taken;
        }
        while left > 0 {
            let count = left.min(u32::MAX.into());
            self.steps.push(Step::Work { kind, count: count as u32 });
            left -= count;
        }
    }

    /// Makes earlier stores durable.
    pub fn fence(&mut self) {
        if !matches!(self.steps.last(), None | Some(Step::Fence)) {
            self.steps.push(Step::Fence);
        }
    }

    /// The words that are loaded, in their order.
    pub fn loaded(&self) -> impl Iterator<Item = Addr> {
        let loads = self.steps.iter().filter_map(|step| match *step {
            Step::Loads { start, words, .. } => Some((start, u64::from(words))),
            _ => None,
        });
        loads.flat_map(|(start, words)| (0..words).map(move |word| start.plus(word * WORD_BYTES)))
    }

    /// In the order in which they are executed.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

/// The steps of all threads of a recovery. The first thread is the one that the recovery's own code runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoverySteps {
    threads: Vec<ThreadSteps>,
    barriers: usize,
}

impl RecoverySteps {
    /// The steps of the first thread.
    #[inline]
    pub fn main(&mut self) -> &mut ThreadSteps {
        self.thread(0)
    }

    /// The steps of a thread; one that has had nothing to do has waited at all barriers so far.
    pub fn thread(&mut self, thread: usize) -> &mut ThreadSteps {
        if thread >= self.threads.len() {
            let steps = vec![Step::Barrier; self.barriers];
            self.threads.resize(thread + 1, ThreadSteps { steps, ..ThreadSteps::default() });
        }
        &mut self.threads[thread]
    }

    /// Appends other steps of a thread to those that it has.
    pub fn append(&mut self, thread: usize, more: ThreadSteps) {
        let thread = self.thread(thread);
        thread.steps.extend(more.steps);
        thread.loads = thread.loads.wrapping_add(more.loads);
        thread.addresses_known();
    }

    /// All threads wait for each other.
    pub fn barrier(&mut self) {
        self.barriers += 1;
        self.threads.iter_mut().for_each(|thread| thread.steps.push(Step::Barrier));
    }

    /// Thread by thread; at least one.
    pub fn into_threads(mut self) -> Vec<ThreadSteps> {
        self.main();
        self.threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_words_are_one_step_if_their_addresses_come_from_the_same_load() {
        let mut thread = ThreadSteps::default();
        [64, 72, 80].into_iter().for_each(|at| thread.load(Addr(at)));
        thread.follow();
        [88, 96, 8].into_iter().for_each(|at| thread.load(Addr(at)));
        thread.addresses_known();
        thread.load(Addr(16));
        let steps = [(64, 3, 0), (88, 2, 1), (8, 1, 3), (16, 1, 0)];
        let steps = steps.map(|(at, words, origin)| Step::Loads { start: Addr(at), words, origin });
        assert_eq!(thread.steps(), steps);
    }

    #[test]
    fn computation_adds_up_beyond_32_bits() {
        let mut thread = ThreadSteps::default();
        thread.work(Work::Record, 5);
        thread.work(Work::Record, u32::MAX.into());
        thread.work(Work::Table, 0);
        let of = |count| Step::Work { kind: Work::Record, count };
        assert_eq!(thread.steps(), [of(u32::MAX), of(5)]);
    }

    #[test]
    fn a_thread_that_comes_late_has_waited_at_the_barriers() {
        let mut all = RecoverySteps::default();
        all.main().fence();
        all.main().load(Addr(0));
        all.barrier();
        all.barrier();
        all.thread(2).fence();
        all.barrier();
        let threads = all.into_threads();
        let barriers = |t: &ThreadSteps| t.steps().iter().filter(|s| **s == Step::Barrier).count();
        assert_eq!(threads.iter().map(barriers).collect::<Vec<_>>(), [3, 3, 3]);
        assert_eq!(threads[2].steps()[2], Step::Fence);
        assert!(!threads[0].steps().contains(&Step::Fence), "nothing was stored before");
    }
}
