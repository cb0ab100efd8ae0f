//! The records of all threads, in one order.

use std::io::Read;

use graven_capture::{Broken, Record, Records};

/// The thread of an event that no stream has.
const NOBODY: u16 = u16::MAX;

/// Who brought about each event, in the order of events.
#[derive(Clone, Debug, Default)]
pub(super) struct Order(Vec<u16>);

impl Order {
    /// A thread has an event of this number.
    pub fn add(&mut self, number: u64, thread: usize) -> Result<(), &'static str> {
        // Streams are written by several threads, none of which is far ahead of the events of others.
        let at = usize::try_from(number).ok().filter(|&at| at < 1 << 33);
        let at = at.ok_or("an event of a number that no capture has")?;
        if at >= self.0.len() {
            self.0.resize(at + 1, NOBODY);
        }
        self.0[at] = thread as u16;
        Ok(())
    }
}

/// Hands out every record: of each event's thread what comes before it and the event itself, and so on; then what is behind the
/// last events.
pub(super) fn each<R: Read>(
    streams: &mut [Records<R>],
    order: &Order,
    mut take: impl FnMut(usize, u64, Record),
) -> Result<(), Broken> {
    for (number, &thread) in order.0.iter().enumerate() {
        if thread == NOBODY {
            continue;
        }
        let thread = usize::from(thread);
        while let Some((since, record)) = streams[thread].next_record()? {
            let is_it = matches!(record, Record::Event(of, _) if of == number as u64);
            take(thread, since, record);
            if is_it {
                break;
            }
        }
    }
    for (thread, stream) in streams.iter_mut().enumerate() {
        while let Some((since, record)) = stream.next_record()? {
            take(thread, since, record);
        }
    }
    Ok(())
}
