//! Coding of words and lines for memory cells: MorLog's selective log data encoding (SLDE, ISCA'20
//! §IV) and its parts.
//!
//! | file | what | source |
//! |---|---|---|
//! | `fpc` | frequent pattern compression of 64-bit words | CompEx, CRADE |
//! | `dldc` | differential log data compression: the dirty bytes of a word | MorLog §IV-A, Table II |
//! | `slde` | which of them for which word; encoding type flags | MorLog §IV-B |
//! | `codings` | the choices for a line | |
//! | `expansion` | coded bits to states of TLC cells, the cheap ones where there is room | CRADE, IDM |
//! | `block` | a 64 B block in cells: all of the above, and back | MorLog §IV-B, Fig. 10 |
//! | `bits`, `bytes`, `pairs`, `planes` | bit strings, tables and bit tricks | |
//!
//! Everything here is a pure function of words, lines and dirty flags. What a cell costs to program, and
//! the cells themselves, are in `graven_machine::media`; where log data lie is the designs' business.

pub mod bits;
pub mod block;
mod bytes;
mod codings;
pub mod dldc;
pub mod expansion;
pub mod fpc;
mod pairs;
mod planes;
pub mod samples;
pub mod slde;
#[cfg(test)]
mod testing;

pub use block::{BLOCK_CELLS, Block, Codec, EncodedSize, decode, encode};
pub use bytes::mask as mask_of_bytes;
pub use codings::Codings;
pub use expansion::Level;
pub use planes::Planes;
pub use slde::{Coding, choose, choose_pair, kept};
