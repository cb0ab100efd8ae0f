//! Power failures: what survives, recovery from it, and whether the promise held.
//!
//! The judge ([`Judge`]) knows only what the program was told. Nothing in it depends on a design.

//!
//! | file | what |
//! |---|---|
//! | `medium` | the bytes that a power failure leaves, and what is written to them |
//! | `judge` | the trusted base: were the promises kept? |
//! | `points` | every crash point of a run, in all its forms |
//! | `exhaust` | a run that is crashed at all of them |
//! | `reached` | which states worth reaching were reached |

mod exhaust;
mod judge;
mod medium;
mod points;
mod reached;

pub use exhaust::{Exhaustion, Outcome};
pub use judge::{Judge, Verdict};
pub use medium::{Medium, Written};
pub use points::{Conviction, Expect, Laboratory, Tally, Thoroughness};
pub use reached::{Reached, STATES, State};

/// Spreads a seed and a number over all seeds.
fn mix(seed: u64, number: u64) -> u64 {
    let mut x = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
