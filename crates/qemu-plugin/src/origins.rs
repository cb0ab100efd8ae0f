//! The loads whose values a thread's registers contain.

use graven_capture::ORIGIN_MAX;

use crate::flow::{Flow, REGISTERS, Source};

/// Most instructions of a block.
const INSTRUCTIONS_MAX: usize = 512;

/// The last load of an instruction of the present block.
#[derive(Clone, Copy, Default)]
struct Loaded {
    /// The block in which it did, by its number in the thread.
    block: u64,
    /// The load's number.
    load: u64,
}

/// The loads of a thread. Loads that are recorded have numbers, from 1; 0 is none.
pub struct Origins {
    loads: u64,
    /// The newest load that each register holds something of, as the present block began.
    registers: [u64; REGISTERS],
    /// Blocks so far, and the present one.
    block: u64,
    flow: Option<&'static Flow>,
    /// By the numbers of its instructions.
    loaded: Box<[Loaded; INSTRUCTIONS_MAX + 1]>,
}

impl Default for Origins {
    fn default() -> Origins {
        Origins {
            loads: 0,
            registers: [0; REGISTERS],
            block: 0,
            flow: None,
            loaded: Box::new([Loaded::default(); INSTRUCTIONS_MAX + 1]),
        }
    }
}

impl Origins {
    /// A block begins; the one before has changed registers.
    #[inline]
    pub fn begin(&mut self, flow: &'static Flow) {
        // Before the first recorded load, registers come from none.
        if self.loads > 0
            && let Some(before) = self.flow
        {
            // All come from what was there before the block.
            let mut news = [0; REGISTERS];
            for (new, (_, source)) in news.iter_mut().zip(before.changes()) {
                *new = self.newest(*source);
            }
            for (new, (register, _)) in news.iter().zip(before.changes()) {
                self.registers[usize::from(*register)] = *new;
            }
        }
        self.block += 1;
        self.flow = Some(flow);
    }

    /// The distance to the load of the address of an access, 1 the newest; 0: none, or more than a record can say.
    #[inline]
    pub fn of(&self, instruction: u64, is_store: bool) -> u16 {
        distance(self.loads, self.load_of_address(instruction, is_store))
    }

    /// Loads so far that are recorded.
    pub fn loads(&self) -> u64 {
        self.loads
    }

    /// Blocks so far, the present one included.
    pub fn blocks(&self) -> u64 {
        self.block
    }

    /// An instruction has loaded more of what the newest load loads.
    pub fn loaded_more(&mut self, instruction: u64) {
        self.note(instruction, self.loads);
    }

    /// An instruction has loaded something, and that is recorded.
    #[inline]
    pub fn loaded(&mut self, instruction: u64) {
        self.loads += 1;
        self.note(instruction, self.loads);
    }

    /// The same, and it is not: what it loaded is there as soon as its address is.
    #[inline]
    pub fn loaded_unrecorded(&mut self, instruction: u64) {
        if self.loads > 0 {
            self.note(instruction, self.load_of_address(instruction, false));
        }
    }

    fn note(&mut self, instruction: u64, load: u64) {
        if let Some(place) = self.loaded.get_mut(instruction as usize) {
            *place = Loaded { block: self.block, load };
        }
    }

    /// The number of the load that the address of an access comes from; 0: none.
    #[inline]
    pub fn load_of_address(&self, instruction: u64, is_store: bool) -> u64 {
        let flow = self.flow.map(|flow| flow.address(instruction as usize, is_store));
        flow.map_or(0, |source| self.newest(source))
    }

    /// The newest load that something comes from.
    #[inline]
    fn newest(&self, source: Source) -> u64 {
        if source.load != 0 {
            // An instruction may have loaded nothing: a string of no bytes.
            let loaded = self.loaded.get(usize::from(source.load));
            return loaded.filter(|l| l.block == self.block).map_or(0, |l| l.load);
        }
        let (mut left, mut newest) = (source.registers, 0);
        while left != 0 {
            newest = newest.max(self.registers[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
        newest
    }
}

/// The distance to the load of a number, behind `loads` loads; 0: none, or more than a record can say.
#[inline]
pub fn distance(loads: u64, load: u64) -> u16 {
    let ago = (loads + 1).saturating_sub(load);
    if load == 0 || ago > ORIGIN_MAX.into() { 0 } else { ago as u16 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::Reading;

    fn block(instructions: &[&[u8]]) -> &'static Flow {
        let mut reading = Reading::default();
        instructions.iter().for_each(|bytes| reading.instruction(bytes));
        Box::leak(Box::new(reading.end()))
    }

    #[test]
    fn a_chase_over_blocks_waits_for_each_load() {
        // mov rax,[rax]; mov rcx,[rdx]
        let chase = block(&[b"\x48\x8b\x00", b"\x48\x8b\x0a"]);
        let mut origins = Origins::default();
        origins.begin(chase);
        assert_eq!(origins.of(1, false), 0);
        origins.loaded(1);
        origins.loaded(2);
        for _ in 0..3 {
            origins.begin(chase);
            // The load of rax is the one before the newest.
            assert_eq!(origins.of(1, false), 2);
            origins.loaded(1);
            assert_eq!(origins.of(2, false), 0);
            origins.loaded(2);
        }
    }

    #[test]
    fn what_is_not_recorded_hands_on_where_its_address_comes_from() {
        // mov rax,[rbx]; mov rcx,[rax]; mov rdx,[rcx]
        let flow = block(&[b"\x48\x8b\x03", b"\x48\x8b\x08", b"\x48\x8b\x11"]);
        let mut origins = Origins::default();
        origins.begin(flow);
        origins.loaded(1);
        origins.loaded_unrecorded(2);
        assert_eq!(origins.of(3, false), 1);
    }

    #[test]
    fn an_instruction_that_loaded_nothing_leaves_nothing() {
        // mov rax,[rbx]; mov rcx,[rax]
        let flow = block(&[b"\x48\x8b\x03", b"\x48\x8b\x08"]);
        let mut origins = Origins::default();
        origins.begin(flow);
        origins.loaded(1);
        assert_eq!(origins.of(2, false), 1);
        origins.begin(flow);
        assert_eq!(origins.of(2, false), 0);
    }

    #[test]
    fn what_was_loaded_long_ago_is_there() {
        // mov rax,[rbx]; mov rcx,[rdx]; mov rcx,[rax]
        let flow = block(&[b"\x48\x8b\x03", b"\x48\x8b\x0a", b"\x48\x8b\x08"]);
        let mut origins = Origins::default();
        origins.begin(flow);
        origins.loaded(1);
        for _ in 1..ORIGIN_MAX {
            origins.loaded(2);
        }
        assert_eq!(origins.of(3, false), ORIGIN_MAX);
        origins.loaded(2);
        assert_eq!(origins.of(3, false), 0);
    }

    #[test]
    fn registers_are_exchanged_at_once() {
        // mov rax,[rbx]; then xchg rax,rcx; then mov rdx,[rcx], mov rdx,[rax]
        let mut origins = Origins::default();
        origins.begin(block(&[b"\x48\x8b\x03"]));
        origins.loaded(1);
        origins.begin(block(&[b"\x48\x89\xc2", b"\x48\x89\xc8", b"\x48\x89\xd1"]));
        origins.begin(block(&[b"\x48\x8b\x11", b"\x48\x8b\x10"]));
        assert_eq!((origins.of(1, false), origins.of(2, false)), (1, 0));
    }
}
