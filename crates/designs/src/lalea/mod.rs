//! Load-aware log entry allocation (LALEA §III-A): a mechanism that designs with a log compose with.
//!
//! "LALEA allocates an incoming log write operation a free block in the log region whose bank has the smallest number
//! of pending requests." The log region of each bank is divided into one of log entries (64 B blocks) and one of
//! headers (128 B blocks: two lines that are adjacent in their bank). The *bank information table* has for each
//! bank a counter of pending operations and two FIFOs of free blocks; among the banks with a free block, that
//! with the smallest counter provides it. Ties go round the banks, which the paper leaves open.
//!
//! The table is volatile: "they can be rebuilt during the crash recovery process". Here recovery leaves nothing in
//! the log, so all blocks are free again. Where blocks lie is a function of the configuration ([`Regions`]), which
//! recovery may know. What is in them, and when they are free again, is the host's.
//!
//! | file | what |
//! |---|---|
//! | `regions` | which lines of the log region are entries, and which are headers |
//! | `bank_table` | free blocks, pending operations, allocation |
//! | `capacities` | how many blocks there are |
//! | `links` | the second line of a header: addresses of entries, `next_ptr` |
//! | `lr` | the register by which recovery finds a thread's transactions |
//! | `cost` | what the table and the registers cost |
//!
//! Left open by the paper and decided here: a header is allocated where it can be accessed as one block of a row, on
//! a boundary of 128 B in its bank; the counter counts all operations ("pending memory operations"), reads too;
//! blocks are appended to their FIFO in the order in which they are released; where the log region of a bank is
//! smaller than both FIFOs, they have fewer blocks, in the same proportion.

mod bank_table;
mod capacities;
mod cost;
mod links;
mod lr;
mod regions;

pub use bank_table::BankTable;
pub use capacities::{ENTRIES_FULL, HEADERS_FULL};
pub use cost::items as cost_items;
pub use links::{ENTRIES, Links, line_at, word_of};
pub use lr::Lr;
pub use regions::{Regions, second_line};

use graven_base::section;

section! {
    /// Load-aware allocation of log blocks.
    pub struct LaleaConfig("lalea") {
        /// Free log entries that a bank's FIFO holds, of 64 B; fewer where the log region is too small.
        fle_entries: u32 = 1024, 1..=65_536, "blocks";
        /// Free headers that a bank's FIFO holds, of 128 B; fewer where the log region is too small.
        fh_entries: u32 = 256, 1..=65_536, "blocks";
        /// Committed transactions of a thread that its LR register reaches while they are not at home; with 1, the next commit waits until the last one is at home.
        chained_transactions: u32 = 65_535, 1..=65_535, "transactions";
    }
}
