//! Mechanisms that designs have in common, for designs of other crates, too.
//!
//! | module | content |
//! |---|---|
//! | `torn` | torn bits, by which recovery recognises a record that was written in part |
//! | `stored_lines` | the lines that an open transaction has stored to, with a design's state of each |
//! | `victims` | a victim cache for lines that leave the LLC before their transactions are retired |
//! | `word_filter` | a filter that says which words may be among many |

pub mod stored_lines;
pub mod torn;
pub mod victims;
pub mod word_filter;
