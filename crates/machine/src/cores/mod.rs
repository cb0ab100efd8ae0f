//! Processor cores.
//!
//! | file | what |
//! |---|---|
//! | `pipeline` | instruction timing of in-order and out-of-order cores |
//! | `write_combining` | the buffer of a core for uncacheable stores |

pub mod pipeline;
pub mod write_combining;
