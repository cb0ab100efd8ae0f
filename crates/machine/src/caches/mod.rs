//! Caches.
//!
//! | file | what |
//! |---|---|
//! | `tags` | tag arrays |
//! | `hierarchy` | levels, inclusion, MESI directory |
//! | `arrivals` | lines on their way to an L1 |

mod arrivals;
pub mod hierarchy;
pub mod tags;
