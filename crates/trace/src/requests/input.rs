//! Bytes of a trace, read in large blocks and looked at where they lie.

use std::io::{self, Read};

use super::error::{Place, TraceError};

/// Bytes that are asked for at once: enough to make calls of the operating system rare, few enough for the host's caches.
const BLOCK_BYTES: usize = 256 << 10;

/// The rest of a trace.
pub struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    /// The part of the buffer that has been read from the source and not been taken.
    start: usize,
    end: usize,
    /// Bytes taken.
    offset: u64,
    /// No more comes from the source.
    ended: bool,
    /// Why, if that is an error.
    error: Option<io::Error>,
}

impl<R: Read> Input<R> {
    /// All that comes from a source.
    pub fn new(source: R) -> Self {
        let buffer = vec![0; BLOCK_BYTES];
        Self { source, buffer, start: 0, end: 0, offset: 0, ended: false, error: None }
    }

    /// The number of bytes that were taken.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes: at least `bytes` of them, all that are left if there are fewer.
    #[inline]
    pub fn peek(&mut self, bytes: usize) -> &[u8] {
        if self.end - self.start < bytes && !self.ended {
            self.read(bytes);
        }
        &self.buffer[self.start..self.end]
    }

    /// Bytes that were looked at, taken.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    pub fn take(&mut self, bytes: usize) -> &[u8] {
        let taken = &self.buffer[self.start..self.end][..bytes];
        self.start += bytes;
        self.offset += bytes as u64;
        taken
    }

    /// Call it where bytes are missing: whether that is since they could not be read.
    ///
    /// # Errors
    /// The source's, which is at `place`.
    pub fn check(&mut self, place: Place) -> Result<(), TraceError> {
        let error = self.error.take();
        error.map_or(Ok(()), |error| Err(TraceError::Io { place, message: error.to_string() }))
    }

    #[cold]
    fn read(&mut self, bytes: usize) {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.buffer.len() < bytes {
            self.buffer.resize(bytes.next_multiple_of(BLOCK_BYTES), 0);
        }
        while self.end < bytes && !self.ended {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => (self.ended, self.error) = (true, Some(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives `piece` bytes at a time, and then an error.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(io::Error::other("the cable is out"));
            }
            let bytes = self.1.min(self.0.len()).min(out.len());
            let (now, later) = self.0.split_at(bytes);
            out[..bytes].copy_from_slice(now);
            self.0 = later;
            Ok(bytes)
        }
    }

    #[test]
    fn bytes_come_whole_from_any_pieces_and_an_error_after_all_of_them() {
        let all: Vec<u8> = (0..3 * BLOCK_BYTES / 2).map(|i| (i * 7 / 5) as u8).collect();
        for piece in [1000, BLOCK_BYTES, usize::MAX] {
            let mut input = Input::new(Pieces(&all, piece));
            let mut back: Vec<u8> = Vec::new();
            for wanted in [1, 4096, BLOCK_BYTES + 1, 17, BLOCK_BYTES].iter().cycle() {
                let there = input.peek(*wanted).len();
                assert!(there >= *wanted || back.len() + there == all.len());
                if there == 0 {
                    break;
                }
                back.extend(input.take(there.min(*wanted)));
                assert_eq!(input.offset(), back.len() as u64);
            }
            assert_eq!(back, all);
            let error = input.check(Place::Line(3)).unwrap_err().to_string();
            assert_eq!(error, "line 3: the cable is out");
        }
    }
}
