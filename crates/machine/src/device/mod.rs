//! The PM device behind one channel: banks with row buffers, and the on-PM write-combining buffer.
//!
//! Writes from the controller go into a 256 B line of the on-PM buffer (Silo §III-E) and reach the
//! media when the buffer spills it: a read-modify-write if only part of the line was written, then one
//! programming of the media line. Cells whose bits do not change are not programmed (data-comparison
//! write), and a write that changes nothing is not a media write. What is in the buffer survives a
//! power failure on the device's own energy, whatever the controller's queues do. Without a buffer each write goes to
//! the media as the 64 B line that it is. Whether a write programs the cells at once or stays in the row buffer of its
//! bank is a parameter (`pm.row_writes`).
//!
//! | file | what |
//! |---|---|
//! | `timing` | latencies and energies of the accesses |
//! | `banks` | the banks of a channel: accesses, their time and energy |
//! | `bank` | one bank |
//! | `row_content` | what a row buffer has and its cells do not |
//! | `buffer` | the on-PM buffer |
//! | `programming` | what happens when the cells have a write |
//! | `line_index` | a short list of line numbers that is searched often |
//! | `waiting_lines` | which line of the on-PM buffer is spilled next |

mod bank;
mod banks;
mod buffer;
mod line_index;
mod programming;
mod row_content;
mod timing;
mod waiting_lines;

pub use bank::{Bank, Found};
pub use banks::{BankSpec, Banks, BegunWrite};
pub use buffer::PmBuffer;
pub use line_index::{LineIndex, LineSummary};
pub use programming::{Block, Media};
pub use timing::{EnergyModel, Timing};

use graven_base::memory::{LINE_BYTES, MEDIA_LINE_BYTES};

/// Cache lines of one media line.
pub const LINES_PER_MEDIA_LINE: usize = (MEDIA_LINE_BYTES / LINE_BYTES) as usize;
