//! All channels of the DRAM: each line belongs to one.

use graven_base::config::Config;
use graven_base::memory::{Addr, LineAddr};
use graven_base::time::Cycle;

use super::channel::{DramChannel, DramSpec};
use super::timing::DramTiming;
use crate::config::{ControllerConfig, CoreConfig, DramConfig, PmConfig};
use crate::controller::memory_system::watermark;
use crate::controller::shared::Shared;
use crate::request::{Mapping, Read, Write};

/// The DRAM.
pub struct Dram {
    channels: Vec<DramChannel>,
    mapping: Mapping,
    /// First line.
    start: LineAddr,
    bytes: u64,
}

impl Dram {
    /// The idle DRAM of a configuration. Its channels have the numbers from `first` on.
    pub fn new(config: &Config, first: u32, age_limit: Cycle) -> Dram {
        let (controller, dram) = (config.get::<ControllerConfig>(), config.get::<DramConfig>());
        let timing = DramTiming::new(dram, config.get::<CoreConfig>());
        let start = Addr(config.get::<PmConfig>().capacity_bytes.0).line();
        let mapping = Mapping {
            unit_bytes: Mapping::unit(controller, false),
            channels: dram.channels.into(),
            banks: u64::from(dram.ranks) * u64::from(dram.banks),
            row_bytes: dram.row_bytes.0,
        };
        let spec = |number| DramSpec {
            number: first + number,
            timing,
            ranks: dram.ranks,
            bank_groups: dram.bank_groups,
            banks: dram.banks,
            mapping,
            start,
            read_queue: dram.read_queue_entries as usize,
            write_queue: dram.write_queue_entries as usize,
            row_hit_limit: controller.row_hit_limit,
            age_limit,
            drain_high: watermark(dram.write_queue_entries, controller.drain_high_percent),
            drain_low: watermark(dram.write_queue_entries, controller.drain_low_percent),
        };
        let channels = (0..dram.channels).map(|number| DramChannel::new(spec(number))).collect();
        Dram { channels, mapping, start, bytes: dram.capacity_bytes.0 }
    }

    /// First address.
    pub fn start(&self) -> Addr {
        self.start.addr()
    }

    /// Capacity in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    fn number(&self, line: LineAddr) -> usize {
        self.mapping.channel(LineAddr(line.0 - self.start.0))
    }

    /// The channel of a line.
    pub fn channel(&self, line: LineAddr) -> &DramChannel {
        &self.channels[self.number(line)]
    }

    /// The channel of a number, counted from the first one's.
    pub fn channel_mut(&mut self, number: usize) -> &mut DramChannel {
        &mut self.channels[number]
    }

    /// A read arrives.
    pub fn read(&mut self, read: Read, shared: &mut Shared) {
        let number = self.number(read.line);
        self.channels[number].read(read, shared);
    }

    /// A write arrives.
    pub fn write(&mut self, write: &Write, shared: &mut Shared) {
        let number = self.number(write.line);
        self.channels[number].write(write, shared);
    }

    /// Returns true if any write waits outside a queue.
    pub fn has_writes_waiting(&self) -> bool {
        self.channels.iter().any(DramChannel::has_writes_waiting)
    }

    /// Returns true if nothing is queued and no data are on their way to a reader.
    pub fn is_idle(&self) -> bool {
        self.channels.iter().all(DramChannel::is_idle)
    }

    /// When the last data so far have moved.
    pub fn idle_at(&self) -> Cycle {
        self.channels.iter().map(DramChannel::idle_at).max().unwrap_or(0)
    }
}
