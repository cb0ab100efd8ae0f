//! Caches.
//!
//! | file | what |
//! |---|---|
//! | `tags` | tag arrays |
//! | `hierarchy` | levels, inclusion, MESI directory |

pub mod hierarchy;
pub mod tags;
