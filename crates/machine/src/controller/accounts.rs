//! Counters of the requests of a channel of PM.

use graven_base::time::Cycle;

use crate::request::{Read, Write, WriteClass};
use crate::stats::{Stats, Work};

/// The books of one channel.
#[derive(Clone, Copy, Debug)]
pub struct Accounts {
    /// Number of the channel's first bank among those of all PM channels.
    first_bank: usize,
}

impl Accounts {
    /// Makes the accounts of a channel with this first bank.
    pub fn new(first_bank: usize) -> Accounts {
        Accounts { first_bank }
    }

    /// A read has arrived.
    pub fn read_arrives(self, stats: &mut Stats) {
        stats.counters.controller_read_requests += 1;
    }

    /// A read is answered from the queues.
    pub fn read_forwarded(self, stats: &mut Stats) {
        stats.counters.controller_reads_forwarded += 1;
    }

    /// Counts `queued` queued reads.
    pub fn reads_queued(self, queued: usize, stats: &mut Stats) {
        let max = &mut stats.counters.read_queue_max;
        *max = (*max).max(queued as u64);
    }

    /// A read has its data.
    pub fn read_served(self, read: &Read, now: Cycle, stats: &mut Stats) {
        let latency = now - read.arrived;
        stats.counters.reads_served += 1;
        stats.counters.read_latency_cycles_sum += latency;
        stats.read_latency.record(latency);
    }

    /// A write waits outside the queue: held back for other writes, or for a place.
    pub fn write_waits(self, held: bool, stats: &mut Stats) {
        let c = &mut stats.counters;
        *(if held { &mut c.write_order_held } else { &mut c.write_queue_full }) += 1;
    }

    /// A write has waited outside the queue, and is accepted.
    pub fn write_has_waited(self, held: bool, cycles: Cycle, stats: &mut Stats) {
        let c = &mut stats.counters;
        *(if held { &mut c.write_order_held_cycles } else { &mut c.write_queue_full_cycles }) +=
            cycles;
    }

    /// A write is accepted.
    pub fn write_accepted(self, write: &Write, stats: &mut Stats) {
        let c = &mut stats.counters;
        c.controller_write_requests += 1;
        let bytes = u64::from(write.mask.count_ones()) * 8;
        match write.class {
            WriteClass::Data => {
                c.controller_write_requests_data += 1;
                c.written_bytes_data += bytes;
            }
            WriteClass::Log => {
                c.controller_write_requests_log += 1;
                c.written_bytes_log += bytes;
                c.log_bytes_written += bytes;
            }
            WriteClass::Metadata => {
                c.controller_write_requests_metadata += 1;
                c.written_bytes_metadata += bytes;
                c.log_bytes_written += bytes;
            }
            WriteClass::Gc => {
                c.controller_write_requests_gc += 1;
                c.written_bytes_gc += bytes;
            }
        }
    }

    /// An accepted write was laid over one that is queued.
    pub fn write_merged(self, stats: &mut Stats) {
        stats.counters.write_queue_merges += 1;
    }

    /// A write has left the queue.
    pub fn write_served(self, stats: &mut Stats) {
        stats.counters.writes_served += 1;
    }

    /// Counts `queued` queued writes.
    pub fn writes_queued(self, queued: usize, stats: &mut Stats) {
        let max = &mut stats.counters.write_queue_max;
        *max = (*max).max(queued as u64);
    }

    /// Counts `times` begins of draining of the write queue.
    pub fn drains(self, times: u64, stats: &mut Stats) {
        stats.counters.write_drains += times;
    }

    /// The device works; its bank is one of the channel's.
    #[inline]
    pub fn works(self, stats: &mut Stats, work: impl FnOnce() -> Work) {
        if stats.timeline.is_some() {
            self.works_now(stats, work());
        }
    }

    /// Notes the work for the timeline, if one is kept: seldom, so that none of this code lies
    /// where requests are issued.
    #[cold]
    #[inline(never)]
    fn works_now(self, stats: &mut Stats, work: Work) {
        let bank = work.bank.map(|bank| self.first_bank as u32 + bank);
        if let Some(timeline) = &mut stats.timeline {
            timeline.works(Work { bank, ..work });
        }
    }

    /// Sets the number of requests of a bank, queued or being worked on.
    pub fn bank_load(self, bank: u32, load: u32, now: Cycle, stats: &mut Stats) {
        stats.bank_loads.set(self.first_bank + bank as usize, load, now);
    }
}
