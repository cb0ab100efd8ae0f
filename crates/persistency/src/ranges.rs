//! Rules of durability: which versions a line may hold after a power failure at this instant.
//!
//! A line has version 0 at first, and one more with each store that becomes visible. Since a line's stores become durable in the
//! order in which they became visible, a power failure leaves of each line one version from `at_least` to `at_most`.
//! `at_most` is the newest visible version. Flushes and fences raise `at_least`:
//!
//! | rule | event | effect | source |
//! |---|---|---|---|
//! | write-backs wait for a fence | `clwb`, `clflushopt` | remembers the line's version for its thread | Px86; SDM 2, CLWB |
//! | fences drain write-backs | `sfence`, `mfence`, a locked instruction | makes durable what its own thread has remembered | Px86; SDM 2, SFENCE |
//! | clflush waits | `clflush` | makes the line's version durable | Px86; Khyzha, Lahav (synchronous flushes give the same images) |
//! | non-temporal stores are durable | a store from a write-combining buffer | makes the line's version durable | Intel: the controller's queue is within the domain |
//! | caches survive | any store, under eADR | makes the line's version durable | Intel's guidance on eADR |
//! | cleans wait for DSB | `DC CVAP`, `DC CVADP` | remembers the line's version for its thread | PArmv8 |
//! | DSB completes cleans | `DSB` | makes durable what its own thread has remembered | PArmv8 |
//! | told | a system call that sends something out | as `mfence` or `DSB`, if the model says so | declared by the model |
//!
//! At one instant lines are independent: every combination of their versions may be left. Order across lines comes from instants:
//! where `x` must be durable before `y` is visible, no instant has `y` in its range and an older `x`.

use graven_base::ids::ThreadId;

use crate::happening::{Fence, Path, Point};
use crate::model::{Clflush, Domain, Model};

/// The meaning of the order in which events are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Given {
    /// Events are given when they act: stores when they become visible, fences when they are passed.
    Acting,
    /// Events of a thread are given in program order, as a trace has them; those of several threads in an order that is one of
    /// visibility. A step that may act after a later step of its thread counts when something acts that is ordered after it;
    /// that it may act before an earlier one is left out.
    Program,
}

/// The versions of a line that a power failure may leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Range {
    /// The oldest version.
    pub at_least: u32,
    /// The newest version: the visible one.
    pub at_most: u32,
}

impl Range {
    /// Tells if several versions are possible.
    pub fn is_open(self) -> bool {
        self.at_least < self.at_most
    }
}

/// The line's version that becomes durable when something is drained.
type Remembered = Vec<(u32, u32)>;

/// A step that may not have acted yet, and the line's version that is durable when it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Late {
    step: Step,
    line: u32,
    version: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// A store through the caches, where these survive.
    Store,
    NonTemporal,
    /// A non-temporal store with a later store of its thread to its line: it acts before that, and so before all after that.
    Followed,
    Flush,
}

/// The events of a thread that do not count yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Waiting {
    /// Write-backs and cleans, drained by a fence.
    flushed: Remembered,
    /// Steps before which later ones may act.
    late: Vec<Late>,
}

/// An event that others of its thread are ordered before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ordered {
    /// A store through the caches, or `clflush`.
    Store,
    /// `sfence`, a locked instruction.
    Fence,
    /// `mfence`.
    FullFence,
}

/// The versions of all lines, numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Ranges {
    domain: Domain,
    clflush: Clflush,
    told_drains: bool,
    given: Given,
    lines: Vec<Range>,
    threads: Vec<Waiting>,
}

impl Ranges {
    /// No store yet.
    pub fn new(model: &Model, given: Given) -> Ranges {
        let Model { domain, clflush, told_drains, .. } = *model;
        Ranges { domain, clflush, told_drains, given, lines: Vec::new(), threads: Vec::new() }
    }

    /// The versions of a line.
    pub fn line(&self, line: u32) -> Range {
        self.lines.get(line as usize).copied().unwrap_or_default()
    }

    /// Tells if `clflush` counts from the last `mfence` before it to the next.
    pub fn clflush_needs_full_fences(&self) -> bool {
        self.given == Given::Program && self.clflush == Clflush::ByFullFence
    }

    /// Tells if a system call that sends something out drains what came before it.
    pub fn told_drains(&self) -> bool {
        self.told_drains
    }

    /// A store.
    pub fn store(&mut self, thread: ThreadId, line: u32, path: Path) {
        let range = self.line_mut(line);
        range.at_most += 1;
        let version = range.at_most;
        let acts = self.given == Given::Acting;
        let survives = self.domain == Domain::Caches;
        match path {
            Path::NonTemporal if acts => self.raise(line, version),
            Path::NonTemporal => self.late(thread, Step::NonTemporal, line, version),
            _ if survives && acts => self.raise(line, version),
            _ if survives => self.late(thread, Step::Store, line, version),
            _ => {
                let late = self.waiting(thread).late.iter_mut();
                let followed = late.filter(|l| l.line == line && l.step == Step::NonTemporal);
                followed.for_each(|late| late.step = Step::Followed);
            }
        }
    }

    /// A store through the caches, or `clflush`, begins: the thread's earlier ones have acted. Calls `raised` with each line.
    pub fn before_store(&mut self, thread: ThreadId, raised: &mut impl FnMut(u32)) {
        self.act(thread, Ordered::Store, raised);
    }

    /// A thread has seen the newest version of a line: the other threads' stores to it have acted. Calls `raised` with the line.
    pub fn seen(&mut self, thread: ThreadId, line: u32, raised: &mut impl FnMut(u32)) {
        let mut version = 0;
        for (other, waiting) in self.threads.iter_mut().enumerate() {
            if other != thread as usize {
                waiting.late.retain(|late| {
                    let is_seen = late.line == line && late.step != Step::Flush;
                    version = if is_seen { version.max(late.version) } else { version };
                    !is_seen
                });
            }
        }
        if version > 0 {
            self.raise(line, version);
            raised(line);
        }
    }

    /// `clwb` or `clflushopt`.
    pub fn write_back(&mut self, thread: ThreadId, line: u32) {
        let version = self.line(line).at_most;
        remember(&mut self.waiting(thread).flushed, line, version);
    }

    /// `clflush` of a line up to a version.
    pub fn flush(&mut self, thread: ThreadId, line: u32, version: u32) {
        match self.given {
            Given::Acting => self.raise(line, version),
            Given::Program => self.late(thread, Step::Flush, line, version),
        }
    }

    /// A clean of Arm, which counts if it reaches what survives.
    pub fn clean(&mut self, thread: ThreadId, line: u32, point: Point) {
        if matches!(self.domain, Domain::Reached(least) if point >= least) {
            self.write_back(thread, line);
        }
    }

    /// A fence. Calls `raised` with each line that it may have made durable.
    pub fn fence(&mut self, thread: ThreadId, fence: Fence, raised: &mut impl FnMut(u32)) {
        if matches!(fence, Fence::Store | Fence::Full | Fence::Locked | Fence::Dsb) {
            let mut flushed = std::mem::take(&mut self.waiting(thread).flushed);
            for (line, version) in flushed.drain(..) {
                self.raise(line, version);
                raised(line);
            }
            // Its memory is used again.
            self.waiting(thread).flushed = flushed;
        }
        match fence {
            Fence::Store | Fence::Locked => self.act(thread, Ordered::Fence, raised),
            Fence::Full => self.act(thread, Ordered::FullFence, raised),
            // Arm has no such steps.
            _ => {}
        }
    }

    /// A system call has made a line durable up to a version.
    pub fn synced(&mut self, line: u32, version: u32) {
        self.raise(line, version);
    }

    /// A system call that sends something out.
    pub fn told(&mut self, thread: ThreadId, raised: &mut impl FnMut(u32)) {
        if self.told_drains {
            self.fence(thread, Fence::Full, raised);
        }
    }

    /// Versions that are remembered for fences, of all threads.
    #[cfg(test)]
    pub fn remembered(&self) -> usize {
        self.threads.iter().map(|thread| thread.flushed.len()).sum()
    }

    fn late(&mut self, thread: ThreadId, step: Step, line: u32, version: u32) {
        let late = &mut self.waiting(thread).late;
        // Of a line's steps of one kind the last says all: versions become durable in order.
        if let Some(last) = late.last_mut().filter(|last| last.step == step && last.line == line) {
            last.version = version;
        } else {
            late.push(Late { step, line, version });
        }
    }

    /// Something acts that late steps of its thread are ordered before.
    fn act(&mut self, thread: ThreadId, ordered: Ordered, raised: &mut impl FnMut(u32)) {
        let clflush = self.clflush;
        let has_acted = |late: &Late| match late.step {
            Step::Store | Step::Followed => true,
            Step::NonTemporal => ordered != Ordered::Store,
            Step::Flush => clflush == Clflush::OrdersStores || ordered == Ordered::FullFence,
        };
        let mut late = std::mem::take(&mut self.waiting(thread).late);
        late.retain(|late| {
            let acts = has_acted(late);
            if acts {
                self.raise(late.line, late.version);
                raised(late.line);
            }
            !acts
        });
        self.waiting(thread).late = late;
    }

    fn raise(&mut self, line: u32, version: u32) {
        let range = self.line_mut(line);
        range.at_least = range.at_least.max(version);
        assert!(range.at_least <= range.at_most, "a version is durable that is not visible");
    }

    fn line_mut(&mut self, line: u32) -> &mut Range {
        let needed = line as usize + 1;
        if self.lines.len() < needed {
            self.lines.resize(needed, Range::default());
        }
        &mut self.lines[line as usize]
    }

    fn waiting(&mut self, thread: ThreadId) -> &mut Waiting {
        let needed = thread as usize + 1;
        if self.threads.len() < needed {
            self.threads.resize(needed, Waiting::default());
        }
        &mut self.threads[thread as usize]
    }
}

/// Remembers a line's version. A program may flush one line for ever and never fence: before the list grows, versions of the same
/// line are made one.
fn remember(list: &mut Remembered, line: u32, version: u32) {
    if list.last().is_some_and(|last| last.0 == line) {
        list.pop();
    }
    if list.len() == list.capacity() && list.len() >= 64 {
        list.sort_unstable_by_key(|&(line, version)| (line, std::cmp::Reverse(version)));
        list.dedup_by_key(|entry| entry.0);
    }
    list.push((line, version));
}
