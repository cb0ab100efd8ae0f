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
    /// visibility. A step that may act later than its place, as far as its own thread decides, counts as not yet done.
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

/// The events of a thread that are not drained yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Waiting {
    /// Write-backs and cleans, drained by a fence.
    flushed: Remembered,
    /// `clflush` that `mfence` alone completes.
    by_full_fence: Remembered,
    /// Stores that may be in the store buffer, where caches survive.
    buffered: Remembered,
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

    /// A store. `is_new` is false for one more store of a version that has no order among its stores.
    pub fn store(&mut self, thread: ThreadId, line: u32, path: Path, is_new: bool) {
        let range = self.line_mut(line);
        range.at_most += u32::from(is_new);
        let version = range.at_most;
        let acts = self.given == Given::Acting;
        let survives = self.domain == Domain::Caches;
        match path {
            Path::NonTemporal if acts => self.raise(line, version),
            Path::NonTemporal => remember(&mut self.waiting(thread).flushed, line, version),
            _ if survives && acts => self.raise(line, version),
            _ if survives => remember(&mut self.waiting(thread).buffered, line, version),
            _ => {}
        }
    }

    /// The thread goes on after its last instruction: whatever that stored is in the caches. Calls `raised` with each line.
    pub fn goes_on(&mut self, thread: ThreadId, raised: &mut impl FnMut(u32)) {
        let buffered = std::mem::take(&mut self.waiting(thread).buffered);
        self.drain(buffered, raised);
    }

    /// `clwb` or `clflushopt`.
    pub fn write_back(&mut self, thread: ThreadId, line: u32) {
        let version = self.line(line).at_most;
        remember(&mut self.waiting(thread).flushed, line, version);
    }

    /// `clflush` of a line up to a version. Calls `raised` with the line if that is durable now.
    pub fn flush(
        &mut self,
        thread: ThreadId,
        line: u32,
        version: u32,
        raised: &mut impl FnMut(u32),
    ) {
        if self.clflush_needs_full_fences() {
            remember(&mut self.waiting(thread).by_full_fence, line, version);
        } else {
            self.drain(vec![(line, version)], raised);
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
            let flushed = std::mem::take(&mut self.waiting(thread).flushed);
            self.drain(flushed, raised);
        }
        if fence == Fence::Full {
            let flushed = std::mem::take(&mut self.waiting(thread).by_full_fence);
            self.drain(flushed, raised);
        }
    }

    /// A system call that sends something out.
    pub fn told(&mut self, thread: ThreadId, raised: &mut impl FnMut(u32)) {
        if self.told_drains {
            self.fence(thread, Fence::Full, raised);
        }
    }

    fn drain(&mut self, remembered: Remembered, raised: &mut impl FnMut(u32)) {
        for (line, version) in remembered {
            self.raise(line, version);
            raised(line);
        }
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
