//! The memory that a thread has loaded exclusively, and whether an exclusive store that follows stores.
//!
//! QEMU makes such a store an exchange, if the memory is what was loaded, and shows it to plugins whether it was or not. So
//! that is looked at here just before.

/// Most bytes that are loaded so: a pair of words.
const BYTES_MAX: usize = 16;

/// The memory that a thread has loaded exclusively.
#[derive(Debug, Default)]
pub struct Exclusive {
    address: u64,
    loaded: [u8; BYTES_MAX],
    length: usize,
    /// The store that is being executed does store.
    pub is_stored: bool,
}

impl Exclusive {
    /// Nothing yet, or no longer.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// These bytes, the second of a pair behind the first.
    pub fn loads(&mut self, address: u64, bytes: &[u8]) {
        if self.length == 0 {
            self.address = address;
        }
        if let Some(to) = self.loaded.get_mut(self.length..self.length + bytes.len()) {
            to.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }

    /// The address, and the bytes that were loaded.
    pub fn loaded(&self) -> (u64, &[u8]) {
        (self.address, &self.loaded[..self.length])
    }
}
