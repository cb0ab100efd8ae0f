//! Instruction timing of one hardware thread.
//!
//! Both kinds of core issue up to `issue_width` instructions per cycle, shared by the threads of a
//! core. An in-order core waits for each load. An out-of-order core dispatches past loads until its
//! reorder buffer or load queue is full, retires in order, and starts a load when the load that
//! produced its address has its data; dispatch itself waits only if that time is not known yet (the
//! older load is still in memory). Branches and functional units are not modelled.

use std::collections::VecDeque;

use crate::config::{CoreConfig, CoreModel};
use graven_base::time::{Cycle, NEVER};

/// Loads whose completion is remembered for those that depend on them.
pub const REMEMBERED_LOADS: usize = 256;

/// A thread must wait for a load whose data has no known time yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unknown;

#[derive(Clone, Copy, Debug)]
struct InFlight {
    instruction: u64,
    load: u32,
    ready: Cycle,
}

#[derive(Clone, Debug)]
struct Window {
    rob: u64,
    loads: usize,
    in_flight: VecDeque<InFlight>,
    /// Completion of recent loads, by sequence number.
    ready: Box<[Cycle; REMEMBERED_LOADS]>,
}

/// When a thread's next instruction can issue.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The next issue cycle.
    pub time: Cycle,
    /// Instructions issued.
    pub instructions: u64,
    slots: u64,
    slots_per_instruction: u64,
    width: u64,
    /// Number of the newest load; after 2^32 loads numbers begin anew.
    load_sequence: u32,
    /// Instructions of the next call of [`Self::issue`] that have been issued already.
    issued_early: u64,
    window: Option<Window>,
}

impl Pipeline {
    /// A thread's pipeline at cycle 0. `sharing`: threads that run on its core.
    pub fn new(config: &CoreConfig, sharing: u32) -> Self {
        let share = |entries: u32| (entries / sharing).max(1);
        let window = (config.model == CoreModel::OutOfOrder).then(|| Window {
            rob: share(config.rob_entries).into(),
            loads: share(config.load_queue_entries) as usize,
            in_flight: VecDeque::new(),
            ready: Box::new([0; REMEMBERED_LOADS]),
        });
        Self {
            time: 0,
            instructions: 0,
            slots: 0,
            slots_per_instruction: sharing.into(),
            width: config.issue_width.into(),
            load_sequence: 0,
            issued_early: 0,
            window,
        }
    }

    /// A load of the program has been executed without time: it has a number, as all have.
    pub fn load_without_time(&mut self) {
        self.load_sequence = self.load_sequence.wrapping_add(1);
    }

    /// Returns true if loads overlap.
    pub fn is_out_of_order(&self) -> bool {
        self.window.is_some()
    }

    /// Issues instructions that touch no memory.
    ///
    /// # Errors
    /// [`Unknown`] if the reorder buffer is full behind a load that memory has not answered. What found
    /// a place has been issued then, and the call must be repeated for the rest, with the same number.
    #[inline]
    pub fn issue(&mut self, instructions: u64) -> Result<(), Unknown> {
        let Some(window) = &self.window else {
            self.issue_now(instructions);
            return Ok(());
        };
        // The oldest load is not farther back than the reorder buffer reaches: none needs to retire.
        let end = self.instructions + instructions;
        let has_place = |oldest: &InFlight| end < oldest.instruction + window.rob;
        if self.issued_early == 0 && window.in_flight.front().is_none_or(has_place) {
            self.issue_now(instructions);
            return Ok(());
        }
        self.issue_past_loads(instructions)
    }

    /// The same where loads are in flight.
    fn issue_past_loads(&mut self, instructions: u64) -> Result<(), Unknown> {
        let rest = instructions - self.issued_early;
        let without_place = self.behind_open_loads(rest);
        self.issue_in_order(rest - without_place);
        if without_place > 0 {
            self.issued_early = instructions - without_place;
            return Err(Unknown);
        }
        self.issued_early = 0;
        Ok(())
    }

    /// Number of the next instructions that find no place until a load retires that has no known
    /// time.
    #[inline]
    fn behind_open_loads(&self, instructions: u64) -> u64 {
        let Some(window) = &self.window else { return 0 };
        let end = self.instructions + instructions;
        let beyond = |l: &InFlight| (end + 1).saturating_sub(l.instruction + window.rob);
        let full = window.in_flight.iter().take_while(|l| beyond(l) > 0);
        full.filter(|l| l.ready == NEVER).map(beyond).next().unwrap_or(0)
    }

    /// Issues instructions that find a place when loads of known times have retired.
    fn issue_in_order(&mut self, instructions: u64) {
        let end = self.instructions + instructions;
        // In issue slots since cycle 0, as the cycle alone would give away what was issued in it.
        let mut not_before = 0;
        if let Some(window) = &mut self.window {
            while let Some(oldest) = window.in_flight.front() {
                // How many of these instructions find no place until the load retires.
                let beyond = (end + 1).saturating_sub(oldest.instruction + window.rob);
                if beyond == 0 {
                    break;
                }
                assert!(oldest.ready != NEVER, "these find a place before such a load");
                let issued = beyond * self.slots_per_instruction;
                not_before = not_before.max(oldest.ready * self.width + issued);
                window.in_flight.pop_front();
            }
        }
        self.issue_now(instructions);
        if not_before > self.time * self.width + self.slots {
            (self.time, self.slots) = (not_before / self.width, not_before % self.width);
        }
    }

    /// Issues instructions of an in-order core, which wait for nothing.
    #[inline]
    pub fn issue_at_once(&mut self, instructions: u64) {
        debug_assert!(self.window.is_none(), "an out-of-order core may have no place for them");
        self.issue_now(instructions);
    }

    /// Issues instructions that wait for nothing.
    #[inline]
    fn issue_now(&mut self, instructions: u64) {
        self.instructions += instructions;
        self.slots += instructions * self.slots_per_instruction;
        // Mostly they fit into the cycle: a division costs the host more than the rest.
        if self.slots >= self.width {
            self.time += self.slots / self.width;
            self.slots %= self.width;
        }
    }

    /// When all that was issued has been: at the end of the last cycle in which something was.
    pub fn finished_at(&self) -> Cycle {
        self.time + Cycle::from(self.slots > 0)
    }

    /// When a load whose address came from load `origin` can start, if it can be issued now.
    ///
    /// # Errors
    /// [`Unknown`] if the load queue is full, or the origin's data has no known time yet.
    #[inline]
    pub fn load_start(&mut self, origin: u32) -> Result<Cycle, Unknown> {
        if self.window.is_none() { Ok(self.time) } else { self.load_start_in_window(origin) }
    }

    /// The same of an out-of-order core.
    fn load_start_in_window(&mut self, origin: u32) -> Result<Cycle, Unknown> {
        let Some(window) = &mut self.window else { return Ok(self.time) };
        while window.in_flight.front().is_some_and(|l| l.ready <= self.time) {
            window.in_flight.pop_front();
        }
        if window.in_flight.len() >= window.loads {
            let oldest = window.in_flight.front().expect("a full queue has a front");
            if oldest.ready == NEVER {
                return Err(Unknown);
            }
            self.time = self.time.max(oldest.ready);
            window.in_flight.pop_front();
        }
        if origin == 0 || self.load_sequence.wrapping_sub(origin) >= REMEMBERED_LOADS as u32 {
            return Ok(self.time);
        }
        match window.ready[origin as usize % REMEMBERED_LOADS] {
            NEVER => Err(Unknown),
            ready => Ok(self.time.max(ready)),
        }
    }

    /// Counts a load as issued, with its data at `ready` ([`NEVER`]: not known yet). Returns its number.
    #[inline]
    pub fn load_issued(&mut self, ready: Cycle) -> u32 {
        self.load_sequence = self.load_sequence.wrapping_add(1);
        let load = self.load_sequence;
        match &mut self.window {
            None => self.wait_until(ready),
            Some(window) => {
                window.ready[load as usize % REMEMBERED_LOADS] = ready;
                if ready > self.time {
                    let instruction = self.instructions;
                    window.in_flight.push_back(InFlight { instruction, load, ready });
                }
            }
        }
        load
    }

    /// Memory has answered a load.
    pub fn load_ready(&mut self, load: u32, ready: Cycle) {
        let window = self.window.as_mut().expect("only an out-of-order core leaves loads open");
        if self.load_sequence.wrapping_sub(load) < REMEMBERED_LOADS as u32 {
            window.ready[load as usize % REMEMBERED_LOADS] = ready;
        }
        if let Some(entry) = window.in_flight.iter_mut().find(|l| l.load == load) {
            entry.ready = ready;
        }
    }

    /// The newest load issued.
    pub fn last_load(&self) -> u32 {
        self.load_sequence
    }

    /// When all loads up to number `load` have their data, so that a store after them may be performed.
    ///
    /// # Errors
    /// [`Unknown`] if memory has not answered one of them.
    #[inline]
    pub fn loads_done(&self, load: u32) -> Result<Cycle, Unknown> {
        let Some(window) = &self.window else { return Ok(0) };
        let mut done = 0;
        // How many loads ago, since numbers begin anew.
        let age = |load| self.load_sequence.wrapping_sub(load);
        for l in window.in_flight.iter().take_while(|l| age(l.load) >= age(load)) {
            if l.ready == NEVER {
                return Err(Unknown);
            }
            done = done.max(l.ready);
        }
        Ok(done)
    }

    /// Waits for all loads: what the end of a transaction and a lock operation need.
    ///
    /// # Errors
    /// [`Unknown`] if memory has not answered one of them.
    pub fn drain_loads(&mut self) -> Result<(), Unknown> {
        let Some(window) = &mut self.window else { return Ok(()) };
        if window.in_flight.iter().any(|l| l.ready == NEVER) {
            return Err(Unknown);
        }
        let last = window.in_flight.drain(..).map(|l| l.ready).max().unwrap_or(0);
        self.wait_until(last);
        Ok(())
    }

    /// Nothing issues before a time.
    #[inline]
    pub fn wait_until(&mut self, at: Cycle) {
        if at > self.time {
            self.time = at;
            self.slots = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pipeline(model: CoreModel, width: u32, sharing: u32) -> Pipeline {
        let config = CoreConfig {
            model,
            issue_width: width,
            rob_entries: 8,
            load_queue_entries: 4,
            ..CoreConfig::default()
        };
        Pipeline::new(&config, sharing)
    }

    #[test]
    fn width_divides_and_sharing_multiplies() {
        let mut wide = pipeline(CoreModel::OutOfOrder, 4, 1);
        wide.issue(10).expect("nothing to wait for");
        assert_eq!(wide.time, 2);
        wide.issue(2).expect("nothing to wait for");
        assert_eq!(wide.time, 3, "12 instructions at 4 per cycle");
        let mut shared = pipeline(CoreModel::InOrder, 1, 2);
        shared.issue(5).expect("in order never refuses");
        assert_eq!(shared.time, 10);
    }

    #[test]
    fn a_core_has_finished_at_the_end_of_its_last_cycle() {
        for (width, sharing, instructions, cycles) in [
            (4, 1, 0, 0),
            (4, 1, 1, 1),
            (4, 1, 3, 1),
            (4, 1, 4, 1),
            (4, 1, 5, 2),
            (4, 1, 7, 2),
            (4, 1, 8, 2),
            (3, 2, 1, 1),
            (3, 2, 2, 2),
            (3, 2, 3, 2),
        ] {
            for model in [CoreModel::InOrder, CoreModel::OutOfOrder] {
                let mut core = pipeline(model, width, sharing);
                core.issue(instructions).expect("nothing to wait for");
                assert_eq!(core.finished_at(), cycles, "{instructions} on {width}/{sharing}");
            }
        }
    }

    #[test]
    fn instructions_behind_a_full_reorder_buffer_take_their_slots() {
        let mut core = pipeline(CoreModel::OutOfOrder, 4, 1);
        core.issue(1).expect("empty");
        core.load_issued(200);
        core.issue(7 + 3).expect("known time");
        // Three find a place at 200, when the load retires; one more fits into that cycle.
        assert_eq!((core.time, core.finished_at()), (200, 201));
        core.issue(1).expect("nothing to wait for");
        assert_eq!((core.time, core.finished_at()), (201, 201));
        core.issue(1).expect("nothing to wait for");
        assert_eq!((core.time, core.finished_at()), (201, 202));
    }

    #[test]
    fn in_order_waits_for_each_load() {
        let mut core = pipeline(CoreModel::InOrder, 1, 1);
        core.issue(1).expect("in order never refuses");
        core.load_issued(core.time + 100);
        assert_eq!(core.time, 101);
    }

    #[test]
    fn out_of_order_overlaps_loads_until_the_reorder_buffer_is_full() {
        let mut core = pipeline(CoreModel::OutOfOrder, 1, 1);
        core.issue(1).expect("empty");
        core.load_issued(200);
        core.issue(1).expect("fits");
        core.load_issued(150);
        assert_eq!(core.time, 2, "neither load is waited for");
        core.issue(7).expect("known time");
        assert_eq!(core.instructions, 9);
        assert_eq!(core.time, 201, "the ninth instruction issues when the first has retired");
        core.drain_loads().expect("known times");
        assert_eq!(core.time, 201);
    }

    #[test]
    fn what_fits_into_the_reorder_buffer_issues_while_a_load_is_open() {
        let mut core = pipeline(CoreModel::OutOfOrder, 1, 1);
        core.issue(1).expect("empty");
        let load = core.load_issued(NEVER);
        assert_eq!(core.issue(9), Err(Unknown));
        assert_eq!((core.instructions, core.time), (8, 8), "seven of nine found a place");
        core.load_ready(load, 200);
        core.wait_until(200);
        core.issue(9).expect("the load is there");
        assert_eq!((core.instructions, core.time), (10, 202));
    }

    #[test]
    fn a_dependent_load_starts_when_its_address_is_there() {
        let mut core = pipeline(CoreModel::OutOfOrder, 4, 1);
        let first = core.load_issued(NEVER);
        assert_eq!(core.load_start(first), Err(Unknown));
        assert_eq!(core.load_start(0), Ok(0));
        core.load_ready(first, 300);
        assert_eq!(core.load_start(first), Ok(300));
        assert_eq!(core.time, 0);
    }

    #[test]
    fn numbers_of_loads_begin_anew_when_they_have_come_to_their_end() {
        let mut core = pipeline(CoreModel::OutOfOrder, 4, 1);
        core.load_sequence = u32::MAX - 1;
        let before = core.load_issued(NEVER);
        core.load_issued(50);
        let after = core.load_issued(60);
        assert_eq!((before, after), (u32::MAX, 1));
        assert_eq!(core.load_start(before), Err(Unknown));
        assert_eq!(core.loads_done(after), Err(Unknown), "the oldest load is open");
        core.load_ready(before, 300);
        assert_eq!(core.load_start(before), Ok(300));
        assert_eq!((core.loads_done(before), core.loads_done(after)), (Ok(300), Ok(300)));
    }

    #[test]
    fn a_full_load_queue_waits_for_the_oldest() {
        let mut core = pipeline(CoreModel::OutOfOrder, 4, 1);
        for ready in [50, 60, 70, 80] {
            core.load_issued(ready);
        }
        assert_eq!(core.load_start(0), Ok(50));
    }

    /// Steps of a test on an out-of-order core.
    #[derive(Clone, Debug)]
    enum Step {
        Issue(u64),
        /// A load whose data comes so much later, or is not known yet.
        Load(Option<Cycle>),
        /// The oldest of those gets its data.
        Answer,
        Wait(Cycle),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (1..12u64).prop_map(Step::Issue),
            prop::option::of(0..40u64).prop_map(Step::Load),
            Just(Step::Answer),
            (0..30u64).prop_map(Step::Wait),
        ]
    }

    proptest! {
        #[test]
        fn what_has_a_place_is_issued_as_if_loads_had_been_looked_at(
            width in 1..5u32, sharing in 1..3u32, steps in prop::collection::vec(step(), 0..60),
        ) {
            let mut short = pipeline(CoreModel::OutOfOrder, width, sharing);
            let mut long = short.clone();
            let mut open = VecDeque::new();
            for step in steps {
                match step {
                    Step::Issue(instructions) => {
                        while short.issue(instructions).is_err() {
                            prop_assert_eq!(long.issue_past_loads(instructions), Err(Unknown));
                            let load = open.pop_front().expect("it waits for one");
                            for core in [&mut short, &mut long] {
                                core.load_ready(load, core.time + 5);
                            }
                        }
                        prop_assert_eq!(long.issue_past_loads(instructions), Ok(()));
                    }
                    Step::Load(ready) => {
                        let ready = ready.map_or(NEVER, |after| short.time + after);
                        let load = short.load_issued(ready);
                        prop_assert_eq!(long.load_issued(ready), load);
                        if ready == NEVER {
                            open.push_back(load);
                        }
                    }
                    Step::Answer => {
                        if let Some(load) = open.pop_front() {
                            for core in [&mut short, &mut long] {
                                core.load_ready(load, core.time + 5);
                            }
                        }
                    }
                    Step::Wait(cycles) => {
                        let until = short.time + cycles;
                        for core in [&mut short, &mut long] {
                            core.wait_until(until);
                        }
                    }
                }
                prop_assert_eq!(format!("{short:?}"), format!("{long:?}"));
            }
        }
    }
}
