//! The loads of the trace that belong to a thread's recorded loads.

use graven_capture::ORIGIN_MAX;

/// Loads that are remembered: what is further back was loaded long ago.
const REMEMBERED: u64 = (ORIGIN_MAX as u64 + 1).next_power_of_two();

/// For a thread. Loads of the trace have numbers, from 1, which wrap; 0 is none.
#[derive(Debug)]
pub(super) struct Origins {
    /// Loads that were recorded.
    recorded: u64,
    /// Loads in the trace.
    traced: u32,
    /// By the numbers of recorded loads: the newest load in the trace that stands for each.
    numbers: Box<[u32]>,
}

impl Default for Origins {
    fn default() -> Origins {
        let numbers = vec![0; REMEMBERED as usize].into();
        Origins { recorded: 0, traced: 0, numbers }
    }
}

impl Origins {
    /// The load of the trace with an address that was loaded `ago` recorded loads ago.
    pub fn of(&self, ago: u16) -> u32 {
        match self.recorded.checked_sub(u64::from(ago)) {
            Some(before) if ago > 0 => self.numbers[((before + 1) % REMEMBERED) as usize],
            _ => 0,
        }
    }

    /// The trace has one more load.
    pub fn traced(&mut self) {
        self.traced = self.traced.wrapping_add(1);
    }

    /// A recorded load is done, for which the trace has `loads`, the last ones: none if it is not in the trace.
    pub fn recorded(&mut self, loads: u32) {
        self.recorded += 1;
        let number = if loads == 0 { 0 } else { self.traced };
        self.numbers[(self.recorded % REMEMBERED) as usize] = number;
    }

    /// Loads in the trace so far.
    pub fn count(&self) -> u32 {
        self.traced
    }
}
