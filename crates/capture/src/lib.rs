//! Format of what a captured program writes down while it runs: one stream of records for each of its threads.
//!
//! The plugin that traces a program ([`Encoder`]) knows nothing of simulations, and who makes a trace of the streams
//! ([`Records`]) nothing of programs. This is all that they share.
//!
//! A stream is a file that grows and is mapped where it grows, so that a program that is killed loses nothing: behind the
//! last record there are zeros: no tag is 0. A record is a tag, what the tag asks for, and its content:
//!
//! | bits of the tag | what |
//! |---|---|
//! | 0 and 1 | 0: an access to volatile memory; 1: a load; 2: a store; 3: an event |
//! | 2 to 4 | of an access, the logarithm of its bytes, or 7: their number follows, a byte; to volatile memory, one more |
//! | 5 | of a store, whether it is non-temporal; of a load, whether it is an atomic instruction's; to volatile memory, whether it stores |
//! | 2 to 5 | of an access to volatile memory without a size: 8, a record that is no access; the next byte says its kind |
//! | 2 to 5 | of an event, which ([`Event`]) |
//! | 6 and 7 | instructions since the record before: 0 to 2; 3: their number follows |
//!
//! Numbers are in LEB128. An access continues with the distance from the position of the access before, in bytes, zigzag, and
//! with how many loads ago, recorded ones of the thread, its address was loaded ([`ORIGIN_MAX`]), and with the distance of its
//! instruction's *site* from that of the record before, zigzag; then a load with a check of what it found ([`check`]), unless the
//! instruction is atomic: QEMU shows what that leaves alone. A store continues with its bytes. An access to volatile memory has
//! the distance from the address of the one before, the load of its address, and nothing else. An event continues with its place
//! in the order of all events of all threads, and its fields. A *position* is a region of persistent memory and an offset in it
//! ([`position`]).
//!
//! *Sites* are numbers of instructions. The plugin gives each instruction one when QEMU translates it, and writes its address
//! to the file `sites`: 8 bytes for each site, in their order, with [`SITE_REPEATED`] or [`SITE_ATOMIC`] where it is such an instruction. An instruction that is translated again has another site. The file
//! `modules` has a line for each file that is mapped as code: the number of sites before it, the first address, the one behind the
//! last, the offset in the file, and its path.
//!
//! | kind | record that is no access | content |
//! |---|---|---|
//! | 0 | [`Record::Stack`] | how many calls are left, how many are entered, the distance of the site of each |
//! | 1 | a flush | distance of its site; its number in bits 0 to 3, and in bits 4 and 5 whether the place is persistent (1), volatile (2) or unknown (0); distance of the position from that of the access before, or the address |
//! | 2 | a fence | distance of its site; its number |
//! | 3 | a call | distance of its site; its number, and in bit 7 whether it is over; place (as of a flush, its kind in a byte), bytes, flags, result (zigzag), length and bytes of the path |
//! | 4 | [`Record::At`] | distance of its site |

mod event;
pub mod numbers;
mod persistence;
mod record;

pub use event::{Event, Left, Mark};
pub use persistence::{Asked, Call, Fence, Flush, Persistence, Place};
pub use record::{
    Access, Accessed, Broken, CALLS_MAX, Encoder, RECORD_BYTES_MAX, Record, Records, Volatile,
};

/// Bits of an offset in a position.
pub const OFFSET_BITS: u32 = 48;

/// Most bytes of an access.
pub const ACCESS_BYTES_MAX: usize = 64;

/// Largest distance in loads between an access and the load of its address. An address that was loaded earlier counts as not
/// loaded. 1 is the newest load, and 0 stands for none.
pub const ORIGIN_MAX: u16 = 1023;

/// Most bytes of a piece of what the kernel wrote.
pub const PIECE_BYTES_MAX: usize = 1024;

/// The bit of a site's address that says that it is a repeated string instruction's.
pub const SITE_REPEATED: u64 = 1 << 63;

/// The bit of a site's address that says that it is an atomic instruction's.
pub const SITE_ATOMIC: u64 = 1 << 62;

/// A place in a region of persistent memory.
///
/// # Panics
/// The offset has more than [`OFFSET_BITS`].
#[must_use]
pub fn position(region: u16, offset: u64) -> u64 {
    assert!(offset >> OFFSET_BITS == 0, "an offset of 48 bits");
    u64::from(region) << OFFSET_BITS | offset
}

/// Region and offset of a position.
#[must_use]
pub fn place(position: u64) -> (u16, u64) {
    ((position >> OFFSET_BITS) as u16, position & ((1 << OFFSET_BITS) - 1))
}

/// Bytes of the units by which threads synchronise ([`Event::Synchronised`]).
pub const SYNCHRONISED_BYTES: u64 = 4;

/// A position among addresses, of which none is so high.
#[must_use]
pub fn shared_place(position: u64) -> u64 {
    position | 1 << 63
}

/// The position that is so among addresses.
#[must_use]
pub fn persistent(place: u64) -> Option<u64> {
    (place >> 63 != 0).then_some(place & !(1 << 63))
}

/// Returns the units in which `bytes` bytes at a place lie.
pub fn synchronised(place: u64, bytes: u64) -> impl Iterator<Item = u64> {
    place / SYNCHRONISED_BYTES..=(place + bytes.max(1) - 1) / SYNCHRONISED_BYTES
}

/// A byte that tells most values from others: what a load found.
#[must_use]
pub fn check(bytes: &[u8]) -> u8 {
    let sum = bytes.iter().fold(0x9e37_79b9u32, |sum, &byte| {
        (sum.rotate_left(5) ^ u32::from(byte)).wrapping_mul(0x85eb_ca6b)
    });
    (sum >> 24) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_a_region_and_an_offset() {
        assert_eq!(place(position(7, 0x1234_5678_9abc)), (7, 0x1234_5678_9abc));
    }

    #[test]
    fn most_other_values_have_another_check() {
        let zero = check(&[0; 8]);
        let same = (1u64..100_000).filter(|value| check(&value.to_le_bytes()) == zero).count();
        assert!(same < 1000, "{same} of 100,000");
    }
}

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
