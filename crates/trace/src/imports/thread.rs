//! A thread of a program trace, made of the instructions and accesses that another tool recorded.

use std::io::Write;

use crate::frames::{Frames, PAGE_BYTES};
use crate::program::{TraceError, Writer};
use graven_base::memory::{Addr, WORD_BYTES, spread};
use graven_machine::program::{Op, Ptr};

/// Most pages of all threads: 64 GB.
const PAGES_MAX: u64 = 1 << 24;

/// One thread as it grows.
pub struct Thread<'a, W> {
    number: u32,
    writer: &'a mut Writer<W>,
    /// Pages of PM by pages of all address spaces.
    frames: &'a mut Frames,
    space: u32,
    transaction_stores: Option<u32>,
    /// Instructions without memory that are not written yet.
    instructions: u32,
    /// An instruction has begun that has not accessed memory yet.
    is_waiting: bool,
    loads: u32,
    stores: u64,
    /// Stores of the running transaction.
    in_transaction: u32,
}

impl<'a, W: Write> Thread<'a, W> {
    /// Begins thread `number`, in the address space of the same number.
    pub fn begin(
        number: u32,
        transaction_stores: Option<u32>,
        frames: &'a mut Frames,
        writer: &'a mut Writer<W>,
    ) -> Thread<'a, W> {
        Thread {
            number,
            writer,
            frames,
            space: number,
            transaction_stores,
            instructions: 0,
            is_waiting: false,
            loads: 0,
            stores: 0,
            in_transaction: 0,
        }
    }

    /// Puts the accesses that follow into another address space.
    pub fn enter(&mut self, space: u32) {
        self.space = space;
    }

    /// Loads so far, modulo 2^32: the number of the newest.
    pub fn loads(&self) -> u32 {
        self.loads
    }

    /// Begins an instruction, whose accesses follow.
    pub fn instruction(&mut self) -> Result<(), TraceError> {
        self.end_instruction()?;
        self.is_waiting = true;
        Ok(())
    }

    /// Ends an instruction: accesses that follow are of others.
    pub fn end_instruction(&mut self) -> Result<(), TraceError> {
        if std::mem::take(&mut self.is_waiting) {
            self.compute(1)?;
        }
        Ok(())
    }

    /// Adds instructions that touch no memory.
    pub fn compute(&mut self, count: u32) -> Result<(), TraceError> {
        if self.instructions.checked_add(count).is_none() {
            self.flush()?;
        }
        self.instructions += count;
        Ok(())
    }

    /// Loads the word that an address lies in, which a load has produced.
    pub fn load(&mut self, address: u64, origin: u32) -> Result<(), TraceError> {
        let at = self.access(address, origin)?;
        self.push(Op::Load { at })?;
        self.loads = self.loads.wrapping_add(1);
        Ok(())
    }

    /// Stores to the word that an address lies in, which a load has produced.
    pub fn store(&mut self, address: u64, origin: u32) -> Result<(), TraceError> {
        let at = self.access(address, origin)?;
        self.stores += 1;
        let value = spread(at.addr.0, self.stores);
        let Some(most) = self.transaction_stores else {
            return self.push(Op::Store { at, value });
        };
        if self.in_transaction == 0 {
            self.push(Op::TxBegin)?;
        }
        self.push(Op::Store { at, value })?;
        self.in_transaction += 1;
        if self.in_transaction >= most {
            self.in_transaction = 0;
            self.push(Op::TxEnd)?;
        }
        Ok(())
    }

    /// Loads all words of some bytes.
    pub fn load_all(&mut self, bytes: Bytes) -> Result<(), TraceError> {
        bytes.words().try_for_each(|word| self.load(word, 0))
    }

    /// Stores to all words of some bytes.
    pub fn store_all(&mut self, bytes: Bytes) -> Result<(), TraceError> {
        bytes.words().try_for_each(|word| self.store(word, 0))
    }

    /// Ends the thread.
    pub fn end(mut self) -> Result<(), TraceError> {
        self.end_instruction()?;
        self.flush()?;
        if self.in_transaction > 0 {
            self.push(Op::TxEnd)?;
        }
        self.push(Op::Done)
    }

    fn access(&mut self, address: u64, origin: u32) -> Result<Ptr, TraceError> {
        self.is_waiting = false;
        self.flush()?;
        let place = self.frames.place_in(self.space, address);
        if place / PAGE_BYTES > PAGES_MAX {
            let what = "the traces touch more than 64 GB of pages: take fewer instructions of each";
            return Err(TraceError::Unsupported(what.into()));
        }
        Ok(Ptr { addr: Addr(place / WORD_BYTES * WORD_BYTES), origin })
    }

    fn push(&mut self, op: Op) -> Result<(), TraceError> {
        self.writer.push(self.number, op)
    }

    /// Writes the instructions without memory that have come together.
    fn flush(&mut self) -> Result<(), TraceError> {
        match std::mem::take(&mut self.instructions) {
            0 => Ok(()),
            instructions => self.push(Op::Compute { instructions }),
        }
    }
}

/// Bytes of memory that an instruction accesses at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bytes {
    first: u64,
    last: u64,
}

impl Bytes {
    /// The `count` bytes from an address on; none if these are no bytes, or lie beyond the last address.
    pub fn at(first: u64, count: u64) -> Option<Bytes> {
        let last = first.checked_add(count.checked_sub(1)?)?;
        Some(Bytes { first, last })
    }

    /// An address in each word that has some of them.
    fn words(self) -> impl Iterator<Item = u64> {
        (self.first / WORD_BYTES..=self.last / WORD_BYTES).map(|word| word * WORD_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_lie_in_the_words_that_they_touch() {
        let words = |first, count| Bytes::at(first, count).unwrap().words().collect::<Vec<_>>();
        assert_eq!(words(8, 8), [8]);
        assert_eq!(words(15, 1), [8]);
        assert_eq!(words(15, 2), [8, 16]);
        assert_eq!(words(1, 32), [0, 8, 16, 24, 32]);
        assert_eq!(words(u64::MAX, 1), [u64::MAX - 7]);
        assert_eq!(Bytes::at(u64::MAX, 2), None);
        assert_eq!(Bytes::at(8, 0), None);
    }
}
