//! Recording of the history: sites and stacks of the plugin's streams, numbered anew as the trace needs them.

use graven_capture::{Persistence, Place};
use rustc_hash::FxHashMap;

use super::lines::{Instructions, Module, places};
use super::memory::Layout;
use crate::program::{Happened, Happening, History, How, Stack};

/// Most instructions between two stores of one execution of a repeated instruction: a load and a store.
const REPEATED_GAP: u64 = 2;

/// A thread, as far as its history goes.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// The number in the history.
    number: u32,
    /// The sites of the calls that it is in, the outermost first, and the number of the stack at each.
    calls: Vec<(u32, u32)>,
    /// The site of its system call.
    call: u32,
    /// The site of its last store, and the instructions since.
    last: Option<u32>,
    since: u64,
}

/// A history that is recorded.
#[derive(Debug)]
pub(super) struct Recording {
    instructions: Instructions,
    history: History,
    threads: Vec<Thread>,
    /// Numbers of the trace for sites of the plugin.
    sites: FxHashMap<u32, u32>,
    /// The same by module and address, which several sites may have, in the order of their numbers.
    addresses: FxHashMap<(Option<usize>, u64), u32>,
    in_order: Vec<(Option<usize>, u64)>,
    /// Those of them that are atomic instructions.
    atomic: Vec<u32>,
    stacks: FxHashMap<Stack, u32>,
}

impl Recording {
    /// Begins to record. `numbers`: the threads of the program, by their numbers in the trace.
    pub fn new(instructions: Instructions, numbers: &[Option<u32>]) -> Recording {
        let mut others = numbers.iter().flatten().count() as u32;
        let thread = |number: &Option<u32>| {
            let number = number.unwrap_or_else(|| {
                others += 1;
                others - 1
            });
            Thread { number, ..Thread::default() }
        };
        let threads = numbers.iter().map(thread).collect();
        Recording {
            instructions,
            history: History::default(),
            threads,
            sites: FxHashMap::default(),
            addresses: FxHashMap::default(),
            in_order: Vec::new(),
            atomic: Vec::new(),
            stacks: FxHashMap::default(),
        }
    }

    /// The thread has executed instructions.
    pub fn executed(&mut self, thread: usize, instructions: u64) {
        self.threads[thread].since += instructions;
    }

    /// The thread's stack is another.
    pub fn calls(&mut self, thread: usize, left: u64, entered: &[u32]) {
        let calls = &mut self.threads[thread].calls;
        calls.truncate(calls.len().saturating_sub(left as usize));
        calls.extend(entered.iter().map(|&site| (site, 0)));
    }

    /// The thread has made a system call at this site.
    pub fn at(&mut self, thread: usize, site: u32) {
        self.threads[thread].call = site;
    }

    /// The thread has stored a word, by the operation of this number: an instruction of this site, or the kernel.
    pub fn stores(
        &mut self,
        thread: usize,
        operation: u64,
        site: Option<u32>,
        is_non_temporal: bool,
    ) {
        let t = &mut self.threads[thread];
        let is_repeated = site.is_some_and(|site| self.instructions.is_repeated(site));
        let how = match site {
            None => How::Kernel,
            Some(_) if is_repeated => How::Repeated,
            Some(_) if is_non_temporal => How::NonTemporal,
            Some(_) => How::Plain,
        };
        let most = if is_repeated { REPEATED_GAP } else { 0 };
        let is_joined = site.is_some() && t.last == site && t.since <= most;
        (t.last, t.since) = (site, 0);
        let site = site.unwrap_or(t.call);
        self.push(thread, operation, site, Happened::Store { how, is_joined });
    }

    /// The thread has loaded these bytes of a word of persistent memory, by the operation of this number.
    pub fn loads(&mut self, thread: usize, operation: u64, site: u32, bytes: u8) {
        self.push(thread, operation, site, Happened::Load { bytes });
    }

    /// The thread does something for persistence, before the operation of this number.
    pub fn persists(
        &mut self,
        thread: usize,
        operation: u64,
        site: u32,
        what: Persistence,
        layout: &Layout,
    ) {
        let in_trace = |place: Place| match place {
            Place::Persistent(position) => {
                layout.address(position, 1).map_or(Place::Unknown, Place::Persistent)
            }
            other => other,
        };
        let what = match what {
            Persistence::Flush(flush, place) => Happened::Flush(flush, in_trace(place)),
            Persistence::Fence(fence) => Happened::Fence(fence),
            Persistence::Call(mut call) => {
                call.place = in_trace(call.place);
                Happened::Call(call)
            }
        };
        self.push(thread, operation, site, what);
    }

    fn push(&mut self, thread: usize, operation: u64, site: u32, what: Happened) {
        let (site, stack) = (self.site(site), self.stack(thread));
        let thread = self.threads[thread].number;
        self.history.push(&Happening { thread, operation, site, stack, what });
    }

    /// The number of a site in the trace.
    fn site(&mut self, site: u32) -> u32 {
        if let Some(&number) = self.sites.get(&site) {
            return number;
        }
        let at = (self.instructions.module(site), self.instructions.address(site));
        let next = self.in_order.len() as u32;
        let number = *self.addresses.entry(at).or_insert(next);
        if number == next {
            self.in_order.push(at);
            self.atomic.extend(self.instructions.is_atomic(site).then_some(number));
        }
        self.sites.insert(site, number);
        number
    }

    /// The number of the thread's stack in the trace.
    fn stack(&mut self, thread: usize) -> u32 {
        let known = self.threads[thread].calls.iter().rposition(|&(_, number)| number != 0);
        let first = known.map_or(0, |known| known + 1);
        for at in first..self.threads[thread].calls.len() {
            let caller = match at.checked_sub(1) {
                Some(below) => self.threads[thread].calls[below].1,
                None => 0,
            };
            let site = self.site(self.threads[thread].calls[at].0);
            let stack = Stack { caller, site };
            let next = self.history.stacks.len() as u32 + 1;
            let number = *self.stacks.entry(stack).or_insert(next);
            if number == next {
                self.history.stacks.push(stack);
            }
            self.threads[thread].calls[at].1 = number;
        }
        self.threads[thread].calls.last().map_or(0, |&(_, number)| number)
    }

    /// The whole history, with the places of its sites.
    pub fn end(
        mut self,
        read: impl Fn(&str) -> Option<Vec<u8>>,
        debug: impl Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> History {
        let modules: &[Module] = &self.instructions.modules;
        self.history.sites = places(modules, &self.in_order, read, debug);
        for &site in &self.atomic {
            self.history.sites[site as usize].is_atomic = true;
        }
        self.history
    }
}
