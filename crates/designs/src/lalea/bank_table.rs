//! The bank information table: per bank, an 8-bit counter of pending operations, and the free blocks.

use std::collections::VecDeque;

use super::Regions;
use graven_base::config::ConfigError;
use graven_base::memory::LineAddr;
use graven_machine::design::{Design, DesignContext, Port};

/// Bits of a counter of pending operations (§III-A).
pub(super) const COUNTER_BITS: u32 = 8;
/// Largest value of a counter.
const COUNTER_MAX: u32 = (1 << COUNTER_BITS) - 1;

/// The free blocks of a bank.
#[derive(Clone, Debug)]
struct Bank {
    /// FLE FIFO.
    entries: VecDeque<LineAddr>,
    /// FH FIFO: first lines of headers.
    headers: VecDeque<LineAddr>,
}

/// The table. It is volatile; made anew, all blocks are free.
#[derive(Clone, Debug)]
pub struct BankTable {
    regions: Regions,
    banks: Vec<Bank>,
    /// Log entries, and headers, that are not free.
    entries_taken: u64,
    headers_taken: u64,
    /// Pending operations of each bank, of the moment at which a block is asked for.
    counters: Vec<u32>,
    /// The bank after that of the block that was allocated last: the first to be asked among equals.
    next: usize,
}

impl BankTable {
    /// A context's, with all blocks free.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] if some bank has no room for an entry and a header.
    pub fn new(context: &DesignContext) -> Result<BankTable, ConfigError> {
        let regions = Regions::new(context)?;
        let bank = |bank| Bank {
            entries: regions.entries(bank).collect(),
            headers: regions.headers(bank).collect(),
        };
        let banks: Vec<Bank> = (0..regions.banks()).map(bank).collect();
        let counters = vec![0; banks.len()];
        Ok(BankTable { counters, regions, banks, entries_taken: 0, headers_taken: 0, next: 0 })
    }

    /// Regions of the blocks.
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// Free log entries in all banks.
    pub fn free_entries(&self) -> usize {
        self.banks.iter().map(|bank| bank.entries.len()).sum()
    }

    /// Free headers in all banks.
    pub fn free_headers(&self) -> usize {
        self.banks.iter().map(|bank| bank.headers.len()).sum()
    }

    /// Log entries that are not free.
    pub fn entries_taken(&self) -> u64 {
        self.entries_taken
    }

    /// Headers that are not free.
    pub fn headers_taken(&self) -> u64 {
        self.headers_taken
    }

    /// Allocates a log entry in the bank that has the fewest pending operations of those with a free one.
    pub fn entry<D: Design>(&mut self, port: &Port<'_, D>) -> Option<LineAddr> {
        self.allocate_entry(|counters| port.add_pending_requests(counters))
    }

    /// Allocates a header likewise: its first line. The second is [`Regions::second_line`] of it.
    pub fn header<D: Design>(&mut self, port: &Port<'_, D>) -> Option<LineAddr> {
        self.allocate_header(|counters| port.add_pending_requests(counters))
    }

    /// A log entry is free again.
    pub fn release_entry(&mut self, entry: LineAddr) {
        let bank = &mut self.banks[self.regions.bank_of(entry)];
        bank.entries.push_back(entry);
        self.entries_taken -= 1;
    }

    /// A header is free again.
    pub fn release_header(&mut self, first: LineAddr) {
        let bank = &mut self.banks[self.regions.bank_of(first)];
        bank.headers.push_back(first);
        self.headers_taken -= 1;
    }

    fn allocate_entry(&mut self, add_pending: impl FnOnce(&mut [u32])) -> Option<LineAddr> {
        let bank = self.least_loaded(add_pending, |bank| !bank.entries.is_empty())?;
        self.entries_taken += 1;
        self.banks[bank].entries.pop_front()
    }

    fn allocate_header(&mut self, add_pending: impl FnOnce(&mut [u32])) -> Option<LineAddr> {
        let bank = self.least_loaded(add_pending, |bank| !bank.headers.is_empty())?;
        self.headers_taken += 1;
        self.banks[bank].headers.pop_front()
    }

    /// The bank to allocate a block in; `add_pending` adds to the counters what is pending now.
    fn least_loaded(
        &mut self,
        add_pending: impl FnOnce(&mut [u32]),
        has_free: impl Fn(&Bank) -> bool,
    ) -> Option<usize> {
        self.counters.fill(0);
        add_pending(&mut self.counters);
        let counter = |bank: usize| self.counters[bank].min(COUNTER_MAX);
        let chosen =
            least(self.banks.len(), self.next, counter, |bank| has_free(&self.banks[bank]))?;
        self.next = (chosen + 1) % self.banks.len();
        Some(chosen)
    }
}

/// The bank with the smallest counter of those that may be chosen; of several, the first from `next` on.
fn least(
    banks: usize,
    next: usize,
    counter: impl Fn(usize) -> u32,
    may: impl Fn(usize) -> bool,
) -> Option<usize> {
    let round = (next..banks).chain(0..next);
    round.filter(|&bank| may(bank)).min_by_key(|&bank| counter(bank))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use graven_base::config::Config;
    use graven_base::memory::{Addr, Image, LINE_BYTES};
    use graven_machine::machine::Machine;
    use graven_machine::request::{Write, WriteClass};

    fn config(settings: &[(&str, &str)]) -> Config {
        let mut config = crate::testing::defaults();
        for (key, value) in settings {
            config.set(key, value).unwrap_or_else(|e| panic!("{e}"));
        }
        config
    }

    fn machine_and_table(settings: &[(&str, &str)]) -> (Machine, BankTable) {
        let config = config(settings);
        let machine = Machine::new(&config, Image::new());
        let context = DesignContext::new(config, 1, Addr(1 << 20), Addr((1 << 20) + (4 << 20)));
        (machine, BankTable::new(&context).expect("there is room"))
    }

    fn entry(table: &mut BankTable, m: &Machine) -> Option<LineAddr> {
        table.allocate_entry(|counters| m.memory.add_pending(counters))
    }

    fn header(table: &mut BankTable, m: &Machine) -> Option<LineAddr> {
        table.allocate_header(|counters| m.memory.add_pending(counters))
    }

    /// Sends writes to a bank of a machine that interleaves pages over its banks.
    fn load_bank(m: &mut Machine, bank: u64, writes: u64) {
        for n in 0..writes {
            let line = Addr(bank * 4096 + n * LINE_BYTES).line();
            m.write(&Write::line(WriteClass::Data, line, [n; 8]), 0);
        }
    }

    /// Claim `lalea-fig2a-example`: two banks with two and one in-place updates pending get L1, L2 and L3 so that no
    /// bank ends with more than three operations; in Bank 0 alone it would have five.
    #[test]
    fn three_log_writes_go_to_both_of_two_loaded_banks() {
        let settings = [("pm.banks", "2"), ("pm.buffer_lines", "0")];
        let (mut m, mut table) = machine_and_table(&settings);
        load_bank(&mut m, 0, 2);
        load_bank(&mut m, 1, 1);
        let mut log = || {
            let block = entry(&mut table, &m).expect("blocks are free");
            m.write(&Write::line(WriteClass::Log, block, [9; 8]), 0);
            table.regions().bank_of(block)
        };
        let banks = [log(), log(), log()];
        assert_eq!(banks[0], 1, "Bank 1 has the smaller number");
        assert_eq!(banks.iter().filter(|&&bank| bank == 0).count(), 1);
        let mut counts = vec![0; 2];
        m.memory.add_pending(&mut counts);
        assert_eq!(counts, [3, 3]);
    }

    #[test]
    fn headers_go_to_the_least_loaded_bank_too_and_ties_go_round() {
        let (mut m, mut table) = machine_and_table(&[]);
        let banks: Vec<usize> = (0..10)
            .map(|_| {
                let block = header(&mut table, &m).expect("headers are free");
                table.regions().bank_of(block)
            })
            .collect();
        assert_eq!(banks, [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        (0..8).filter(|&bank| bank != 6).for_each(|bank| load_bank(&mut m, bank, 1));
        let block = header(&mut table, &m).expect("headers are free");
        assert_eq!(table.regions().bank_of(block), 6);
    }

    #[test]
    fn writes_on_their_way_and_outside_a_full_queue_are_pending_too() {
        let (mut m, _) = machine_and_table(&[("controller.write_queue_entries", "4")]);
        load_bank(&mut m, 3, 6);
        let line = Addr(5 * 4096).line();
        m.write(&Write::line(WriteClass::Data, line, [0; 8]), 100);
        m.read(line, 1, 100);
        m.read(Addr(6 * 4096).line(), 2, 0);
        let mut counts = vec![0; 8];
        m.memory.add_pending(&mut counts);
        assert_eq!(counts, [0, 0, 0, 6, 0, 2, 1, 0]);
    }

    /// Claim `lalea-cfg-op-counter`: 8 bits, which stop at 255, so that larger numbers are indistinguishable.
    #[test]
    fn counters_saturate() {
        let (mut m, mut table) = machine_and_table(&[("pm.banks", "2")]);
        load_bank(&mut m, 0, 300);
        load_bank(&mut m, 1, 260);
        let banks = [(); 2].map(|()| {
            let block = entry(&mut table, &m).expect("blocks are free");
            table.regions().bank_of(block)
        });
        assert_eq!(banks, [0, 1], "both counters say 255");
    }

    /// Claim `lalea-cfg-fifo-depth`: 1,024 entries and 256 headers per bank. Released blocks come last.
    #[test]
    fn each_block_is_allocated_once_until_it_is_released() {
        let (m, mut table) = machine_and_table(&[]);
        let entries: Vec<LineAddr> = std::iter::from_fn(|| entry(&mut table, &m)).collect();
        let headers: Vec<LineAddr> = std::iter::from_fn(|| header(&mut table, &m)).collect();
        assert_eq!((entries.len(), headers.len()), (8 * 1024, 8 * 256));
        assert_eq!(entries.iter().collect::<BTreeSet<_>>().len(), entries.len());
        assert_eq!(headers.iter().collect::<BTreeSet<_>>().len(), headers.len());
        assert_eq!((table.free_entries(), table.free_headers()), (0, 0));
        table.release_entry(entries[9]);
        table.release_entry(entries[1]);
        table.release_header(headers[4]);
        assert_eq!(header(&mut table, &m), Some(headers[4]));
        assert_eq!(
            [entry(&mut table, &m), entry(&mut table, &m)],
            [Some(entries[9]), Some(entries[1])]
        );
        assert_eq!(entry(&mut table, &m), None);
    }

    #[test]
    fn a_bank_without_a_free_block_is_passed_over() {
        let settings = [("pm.banks", "2"), ("lalea.fle_entries", "2")];
        let (mut m, mut table) = machine_and_table(&settings);
        load_bank(&mut m, 0, 1);
        let banks = [(); 4].map(|()| {
            let block = entry(&mut table, &m).expect("four are free");
            table.regions().bank_of(block)
        });
        assert_eq!(banks, [1, 1, 0, 0]);
    }
}
