//! The volatile DRAM: channels that are driven command by command, as DDR4 and DDR5 parts are.
//!
//! A DRAM is no PM with other numbers. Opening a row, moving a line and closing the row are commands of their own, one per
//! clock of the channel, and JEDEC's standards (JESD79-4, JESD79-5) say how far apart each two must be: in a bank, in a
//! group of banks, in a rank, on the bus. Every rank is refreshed, and does nothing else meanwhile.
//!
//! | file | what |
//! |---|---|
//! | `timing` | distances in clocks of the DRAM, and those clocks among the core's cycles |
//! | `device` | banks, groups and ranks: which command may be issued when |
//! | `queue` | requests that wait, oldest first, and how many want the row that is open in their bank |
//! | `memory` | all channels; each line belongs to one |
//! | `channel` | requests arrive, the scheduler issues commands for them, and they finish |
//!
//! **Order of commands.** In each clock one command at most is issued, the first of these that may be:
//!
//! 1. the access of a request whose row was opened for it, the oldest such request first;
//! 2. where a rank is due to be refreshed: closing its rows, then its refresh. Nothing else goes to that rank;
//! 3. an access to an open row, the oldest first;
//! 4. opening or closing a row, for the oldest request that needs it. A row is not closed while a request of the same
//!    kind wants it, or one that it was opened for.
//!
//! Reads go before writes in 3 and 4 until the write queue has reached its high watermark, or no read is left that needs
//! a command of 3 or 4; then writes go until the queue is down to its low watermark and a read waits. Turning the
//! bus round costs time, so no controller does it for a single write: Ramulator 2.1, gem5 and DRAMsim3 have this rule,
//! with small differences.
//!
//! Only times are modelled: what programs keep in DRAM is lost at a power failure, so that no recovery reads its bytes.

mod channel;
mod device;
mod memory;
mod queue;
mod timing;

pub use memory::Dram;
