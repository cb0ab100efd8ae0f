//! Addresses, words, lines and byte images: the vocabulary that every other module speaks.
//!
//! Graven has two memories and only two (`docs/explanation/architecture.md`): *architectural* memory, what loads
//! return at this simulated instant, and the *media image*, what the PM cells hold. Both are an
//! [`Image`]. Everything in between (write queues, on-PM buffer) carries real bytes in [`LineData`].

mod address;
mod chunk;
mod field;
mod image;
mod line_store;
mod mix;
mod word_map;
mod word_set;

pub use address::{
    Addr, LINE_BYTES, LineAddr, MEDIA_LINE_BYTES, WORD_BYTES, WORDS_PER_LINE, WordMask, words_in,
};
pub use field::Field;
pub use image::{Image, word_digest};
pub use line_store::LineStore;
pub use mix::{mix, spread};
pub use word_map::WordMap;
pub use word_set::WordSet;

/// The eight words of one 64 B line, word 0 at the lowest address.
pub type LineData = [u64; WORDS_PER_LINE];
