//! Misses: registers, lines on their way from memory, the check of what was read, and who waits.

use super::error::SimError;
use super::run::Simulation;
use super::threads::{Cause, Fill, Head, State, Waiter};
use crate::caches::hierarchy::Access;
use crate::clock::Event;
use crate::design;
use crate::request::ReadPurpose;
use graven_base::memory::{Addr, LineAddr};
use graven_base::time::Cycle;

impl Simulation {
    /// An access that begins at a time, which is counted unless it has been: an operation that waited for its line is tried again, and
    /// counts once.
    pub(super) fn access_once(
        &mut self,
        core: u32,
        line: LineAddr,
        write: bool,
        counted: bool,
        start: Cycle,
    ) -> Access {
        let now = self.machine.now();
        let caches = &mut self.machine.caches;
        if let Some(at) = caches.arrival(core, line, now)
            && caches.contains(line)
            && !caches.in_others(core, line)
        {
            return self.join(core, line, write, counted, at.saturating_sub(start));
        }
        let counters = self.machine.memory.counters();
        let access = match counted {
            false => caches.access(core, line, write, counters),
            true => caches.access_again(core, line, write, counters),
        };
        let access = self.after_tag_ports(core, access);
        if let Access::Hit(latency) = access
            && latency > self.machine.caches.l1_latency()
        {
            self.machine.caches.expect(core, line, start + latency, now);
        }
        access
    }

    /// An access to a line that comes to the L1 after `wait` cycles at the earliest. It asks no outer level, whether or not the tags
    /// have the line still.
    fn join(
        &mut self,
        core: u32,
        line: LineAddr,
        write: bool,
        counted: bool,
        wait: Cycle,
    ) -> Access {
        let caches = &mut self.machine.caches;
        let counters = self.machine.memory.counters();
        caches.access_again(core, line, write, counters);
        if !counted {
            caches.count_join(true, counters);
        }
        let l1 = Access::Hit(self.machine.caches.l1_latency().max(wait));
        self.after_tag_ports(core, l1)
    }

    /// An access of a core to a line that is known to be in no cache, which takes so long.
    pub(super) fn miss(&mut self, core: u32) -> Cycle {
        let miss = self.machine.caches.miss();
        let (Access::Hit(latency) | Access::Miss(latency)) = self.after_tag_ports(core, miss);
        latency
    }

    /// An access, with what it waits for tag ports. Lines that it made leave are handed on.
    #[inline]
    fn after_tag_ports(&mut self, core: u32, access: Access) -> Access {
        let now = self.machine.now();
        let wait = self.machine.caches.tag_port_wait(core, access, now);
        if self.machine.caches.has_evictions() {
            self.handle_evictions();
        }
        if wait == 0 {
            return access;
        }
        self.machine.count().tag_port_waits += 1;
        self.machine.count().tag_port_wait_cycles += wait;
        match access {
            Access::Hit(latency) => Access::Hit(latency + wait),
            Access::Miss(latency) => Access::Miss(latency + wait),
        }
    }

    /// Returns true if a line is that of the miss that was the last to begin, and still on its way.
    #[inline]
    pub(super) fn is_newest_fill(&self, line: LineAddr) -> bool {
        self.fills.get(self.newest_fill).is_some_and(|fill| fill.line == line)
    }

    #[inline]
    pub(super) fn fill_of(&self, line: LineAddr) -> Option<usize> {
        if self.is_newest_fill(line) {
            return Some(self.newest_fill);
        }
        self.fills.iter().find(|(_, fill)| fill.line == line).map(|(slot, _)| slot)
    }

    /// Returns true if the access would need a miss register and none is free.
    #[inline]
    pub(super) fn must_wait_for_mshr(&self, core: u32, line: LineAddr) -> bool {
        self.mshrs_used[core as usize] >= self.mshrs_max
            && !self.machine.caches.contains(line)
            && self.fill_of(line).is_none()
    }

    /// Asks memory for a line, or joins those who wait for it already. `counted`: the access that does so has been counted, at
    /// its first try; that it has a line fetched is counted all the same, for each fetch is a miss.
    pub(super) fn start_fill(
        &mut self,
        core: u32,
        line: LineAddr,
        waiter: Waiter,
        delay: Cycle,
        counted: bool,
    ) {
        let Some(slot) = self.fill_of(line) else {
            return self.start_new_fill(core, line, Some(waiter), delay);
        };
        if !counted {
            let own = self.fills[slot].core == core;
            self.machine.caches.count_join(own, self.machine.memory.counters());
        }
        self.fills[slot].wait(waiter);
    }

    /// Asks memory for a line that was not asked for: a miss at every level.
    pub(super) fn start_new_fill(
        &mut self,
        core: u32,
        line: LineAddr,
        waiter: Option<Waiter>,
        delay: Cycle,
    ) {
        assert!(
            self.mshrs_used[core as usize] < self.mshrs_max,
            "the caller asked for a miss register"
        );
        self.mshrs_used[core as usize] += 1;
        self.machine.caches.count_miss(self.machine.memory.counters());
        let fill = Fill { line, core, checked: false, first: waiter, others: Vec::new() };
        self.newest_fill = self.fills.insert(fill);
        let slot = self.newest_fill as u32;
        self.machine.expect_fill(core, line);
        if self.machine.memory.is_pm(line.addr()) {
            self.machine.count().fills += 1;
            let writes = matches!(waiter, None | Some(Waiter::StoreHead(_)));
            let miss = design::Miss { line, core, writes, delay };
            match self.design.llc_fill(&mut self.machine, &miss) {
                design::Fill::Buffer(content, latency) => {
                    self.machine.count().fills_from_buffer += 1;
                    let at = self.machine.now() + delay + latency;
                    return self.fill_comes(slot, &content, at);
                }
                design::Fill::Design => return,
                design::Fill::Home => self.machine.count().fill_reads += 1,
            }
        } else {
            self.machine.count().dram_fills += 1;
        }
        self.machine.memory.read(line, ReadPurpose::Fill(slot), delay);
    }

    /// The design has the content of a line that is missed; it comes out of the controller at a time.
    fn fill_comes(&mut self, slot: u32, content: &[u64; 8], at: Cycle) {
        let fill = &mut self.fills[slot as usize];
        fill.checked = true;
        let line = fill.line;
        if let Err(error) = self.check_read(line, content) {
            self.machine.fail(error.to_string());
            self.misread = Some(error);
        }
        self.machine.memory.shared.events.push(at, Event::BufferedFill(slot));
    }

    /// The design hands over a line that it has read.
    pub(super) fn delivered(&mut self, line: LineAddr, content: &[u64; 8], at: Cycle) {
        let slot = self.fill_of(line).expect("a design delivers lines that are missed");
        self.fill_comes(slot as u32, content, at);
    }

    pub(super) fn check_read(
        &mut self,
        line: LineAddr,
        content: &[u64; 8],
    ) -> Result<(), SimError> {
        self.machine.count().reads_checked += 1;
        let stored = self.machine.line(line);
        match (0..8).find(|&i| content[i] != stored[i]) {
            None => Ok(()),
            Some(i) => Err(self.read_check(line.word(i), content[i], stored[i])),
        }
    }

    fn read_check(&self, addr: Addr, read: u64, stored: u64) -> SimError {
        let (cycle, design) = (self.machine.now(), self.spec.design.name);
        SimError::ReadCheck { cycle, addr, read, stored, design, workload: self.spec.workload.name }
    }

    /// The design has handed out something else than what was stored.
    pub(super) fn misread(&mut self, addr: Addr, read: u64, stored: u64) {
        let error = self.read_check(addr, read, stored);
        self.machine.fail(error.to_string());
        self.misread.get_or_insert(error);
    }

    /// Takes in a line that has come: it is checked, goes into the caches, and the waiting threads
    /// proceed.
    pub(super) fn finish_fill(
        &mut self,
        slot: u32,
        checked: Option<[u64; 8]>,
    ) -> Result<(), SimError> {
        let fill = self.fills.remove(slot as usize);
        if checked.is_none() && self.machine.memory.is_pm(fill.line.addr()) {
            let content = self.machine.memory.content(fill.line);
            self.check_read(fill.line, &content)?;
        }
        self.mshrs_used[fill.core as usize] -= 1;
        self.machine.caches.fill(fill.core, fill.line);
        self.handle_evictions();
        let now = self.machine.now();
        for waiter in fill.first.into_iter().chain(fill.others) {
            match waiter {
                Waiter::InOrderLoad(thread, addr) => {
                    let t = &mut self.threads[thread as usize];
                    t.value = self.machine.load(addr);
                    self.tell_of_load(thread as usize, addr);
                    self.wake(thread as usize, now);
                    self.threads[thread as usize].pipeline.load_issued(now);
                }
                Waiter::WindowLoad(thread, load) => self.window_load_done(thread as usize, load),
                Waiter::StoreHead(thread) => self.schedule_store(thread as usize, now),
                Waiter::Repeat(thread) => self.wake(thread as usize, now),
            }
        }
        self.retry_for_mshr(fill.core);
        Ok(())
    }

    pub(super) fn window_load_done(&mut self, thread: usize, load: u32) {
        let now = self.machine.now();
        let t = &mut self.threads[thread];
        t.pipeline.load_ready(load, now);
        if t.head == Head::Loads {
            t.head = Head::Free;
            self.try_store(thread);
        }
        if matches!(self.threads[thread].state, State::Blocked(Cause::Load | Cause::Window, _)) {
            self.wake(thread, now);
        }
    }

    /// A miss register of a core has become free: it is for those who wait for one, or for stores that ask
    /// ahead.
    pub(super) fn retry_for_mshr(&mut self, core: u32) {
        let now = self.machine.now();
        let mut is_needed = false;
        // Thread `n` runs on core `n` modulo their number.
        let cores = self.mshrs_used.len();
        for thread in (core as usize..self.threads.len()).step_by(cores) {
            let t = &self.threads[thread];
            assert_eq!(t.core, core);
            if matches!(t.state, State::Blocked(Cause::Mshr, _)) {
                self.wake(thread, now);
                is_needed = true;
            }
            if self.threads[thread].head == Head::Mshr {
                self.schedule_store(thread, now);
                is_needed = true;
            }
        }
        if is_needed {
            return;
        }
        for thread in (core as usize..self.threads.len()).step_by(cores) {
            self.ask_ahead(thread);
        }
    }
}
