//! The end of the log, at which records are appended, and how much of it may be written.
//!
//! A record in the log buffer is counted for the places that it needs. In slots it gets just these; a word's record has
//! one, so its number is known when it enters the buffer. Where lines have records, those before it in the buffer
//! may still grow, and a packed group takes up to four records that leave the buffer together: which place it is turns
//! out when they are sent. Until then there is a lower bound, at which a record begins; and each record may need a
//! group of its own.

use super::buffer::Together;
use super::event::Event;
use super::log::Log;
use super::protocol::{Port, Write};
use super::slots::Slots;
use crate::packed_log::{Packer, RECORDS_PER_GROUP, Record};
use graven_machine::request::WriteOrder;

/// The end of the log.
#[derive(Debug)]
pub struct LogEnd {
    appender: Appender,
    /// The oldest place that must be kept; durable.
    head: u64,
}

#[derive(Debug)]
enum Appender {
    /// With the number of the next record to be sent.
    Slots(Slots, u64),
    Packed(Packer),
}

/// Place and order of records that were sent together.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Place of the first.
    pub first: u64,
    /// The place behind them.
    pub next: u64,
    /// Once this place among ordered writes is reached, all of them are durable.
    pub order: WriteOrder,
}

impl LogEnd {
    /// The beginning of an empty log. `slde`: whether its words may be coded by DLDC.
    pub fn new(log: Log, slde: bool) -> LogEnd {
        let appender = match log {
            Log::Slots(slots) => Appender::Slots(slots, 0),
            Log::Packed(log) => Appender::Packed(Packer::new(log, slde)),
        };
        LogEnd { appender, head: 0 }
    }

    #[inline]
    pub fn log(&self) -> Log {
        match &self.appender {
            Appender::Slots(slots, _) => Log::Slots(*slots),
            Appender::Packed(packer) => Log::Packed(*packer.log()),
        }
    }

    /// The oldest place that must be kept; durable.
    pub fn head(&self) -> u64 {
        self.head
    }

    /// Place of the next record to be sent: records in the buffer do not lie before it.
    #[inline]
    pub fn next(&self) -> u64 {
        match &self.appender {
            Appender::Slots(_, next) => *next,
            Appender::Packed(packer) => packer.tail(),
        }
    }

    /// Place of a record that follows `buffered` others through the buffer, or a place before that.
    #[inline]
    pub fn place_behind(&self, buffered: usize) -> u64 {
        match &self.appender {
            Appender::Slots(slots, next) if !slots.layout.is_by_line() => next + buffered as u64,
            Appender::Slots(_, next) => *next,
            Appender::Packed(packer) => packer.tail(),
        }
    }

    /// Number of places from the head on: of records that were sent.
    pub fn taken(&self) -> u64 {
        self.next() - self.head
    }

    /// Number of places that may be written and that the records in the buffer, which need
    /// `buffered`, leave over.
    #[inline]
    pub fn free(&self, buffered: u64) -> u64 {
        let taken = self.taken() + buffered;
        self.log().places().saturating_sub(taken)
    }

    /// Places that may be filled together now.
    pub fn together(&self) -> Together {
        match &self.appender {
            Appender::Slots(slots, next) => Together {
                rest: slots.rest_of_line(*next),
                per_line: slots.layout.slots_per_line(),
            },
            Appender::Packed(_) => {
                let group = RECORDS_PER_GROUP as u64;
                Together { rest: group, per_line: group }
            }
        }
    }

    /// Returns true if the write queues have room for them.
    pub fn has_room(&self, port: &Port<'_>) -> bool {
        match &self.appender {
            Appender::Slots(slots, next) => port.has_room_for_write(slots.slot(*next).line()),
            Appender::Packed(packer) => packer.has_room(port),
        }
    }

    /// Sends records together: at least one, at most what [`LogEnd::together`] says.
    pub fn send(&mut self, port: &mut Port<'_>, records: &[Record]) -> Sent {
        match &mut self.appender {
            Appender::Slots(slots, next) => {
                let (first, mut order) = (*next, WriteOrder::NONE);
                *next = slots.write(first, records, |write| {
                    order = port.order();
                    let write = write.ordered(order);
                    port.write_reported(write, Write::Records(order), port.bypass_cycles());
                });
                Sent { first, next: *next, order }
            }
            Appender::Packed(packer) => {
                let sent = packer.send(port, records, WriteOrder::NONE, Write::Records);
                Sent { first: sent.group, next: packer.tail(), order: sent.order }
            }
        }
    }

    /// Places before the new head may be written again.
    pub fn free_before(&mut self, port: &mut Port<'_>, head: u64) {
        let places = head - self.head;
        self.head = head;
        port.emit(match &self.appender {
            Appender::Slots(..) => Event::SlotsFreed { slots: places },
            Appender::Packed(_) => Event::GroupsFreed { groups: places },
        });
    }
}
