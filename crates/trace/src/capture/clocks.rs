//! The order of events: vector clocks of threads, and of the objects by which they synchronise.

use rustc_hash::FxHashMap;

/// An object by which threads synchronise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Object {
    /// A lock, released by who held it alone.
    Lock(u64),
    /// A lock, released by one of those that held it together.
    Shared(u64),
    /// A semaphore or barrier.
    Met(u64),
    /// A place of memory that atomic instructions access.
    Unit(u64),
}

/// For each thread, the time up to which its actions have happened before; 0: none of them.
#[derive(Clone, Debug, Default)]
struct Clock(Vec<u32>);

impl Clock {
    fn of(&self, thread: usize) -> u32 {
        self.0.get(thread).copied().unwrap_or(0)
    }

    fn tick(&mut self, thread: usize) {
        if self.0.len() <= thread {
            self.0.resize(thread + 1, 0);
        }
        self.0[thread] += 1;
    }

    fn join(&mut self, other: &Clock) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (mine, &theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = theirs.max(*mine);
        }
    }
}

/// The clocks of all threads. A thread's own time continues whenever it releases something.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    threads: Vec<Clock>,
    objects: FxHashMap<Object, Clock>,
}

impl Clocks {
    /// The clocks of `threads`, of which nothing has happened before anything of another.
    pub fn new(threads: usize) -> Clocks {
        let mut clocks = vec![Clock::default(); threads];
        clocks.iter_mut().enumerate().for_each(|(thread, clock)| clock.tick(thread));
        Clocks { threads: clocks, objects: FxHashMap::default() }
    }

    /// A thread's own time.
    #[inline]
    pub fn now(&self, thread: usize) -> u32 {
        self.threads[thread].of(thread)
    }

    /// Tells whether what another thread did at that time has happened before what this one does now.
    #[inline]
    pub fn has_seen(&self, thread: usize, other: usize, time: u32) -> bool {
        time <= self.threads[thread].of(other)
    }

    /// A thread begins that another has made.
    pub fn begins(&mut self, thread: usize, by: usize) {
        if by >= self.threads.len() || by == thread {
            return;
        }
        let clock = self.threads[by].clone();
        self.threads[thread].join(&clock);
        self.threads[by].tick(by);
    }

    /// The actions before the release of the object have happened before those of the thread from here on.
    pub fn acquires(&mut self, thread: usize, object: Object) {
        if let Some(clock) = self.objects.get(&object) {
            self.threads[thread].join(clock);
        }
    }

    /// The actions of the thread up to here have happened before those of threads that acquire the object.
    pub fn releases(&mut self, thread: usize, object: Object) {
        self.objects.entry(object).or_default().join(&self.threads[thread]);
        self.threads[thread].tick(thread);
    }
}
