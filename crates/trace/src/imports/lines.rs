//! Lines of a text, with their numbers.

use std::io::{self, BufRead, BufReader, Read};

use super::File;
use crate::program::TraceError;

/// A longer line is none of any format's: refused before it fills the host's memory.
const LINE_BYTES_MAX: usize = 4096;

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 1 << 18;

/// The length of an offending text in a message.
const SHOWN_CHARS: usize = 40;

/// The lines of a text.
pub struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

impl<R: Read> Lines<R> {
    /// All lines of a source.
    pub fn of(source: R) -> Lines<R> {
        let input = BufReader::with_capacity(BUFFER_BYTES, source);
        Lines { input, line: Vec::new(), number: 0 }
    }

    /// The number of the line that was read last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Reads the next line, without white space around it; none at the end.
    ///
    /// # Errors
    /// The source's; a line that is too long, or none.
    pub fn next(&mut self, file: &File) -> Result<Option<&[u8]>, TraceError> {
        self.line.clear();
        self.number += 1;
        let mut input = Read::by_ref(&mut self.input).take(LINE_BYTES_MAX as u64);
        let read = input.read_until(b'\n', &mut self.line);
        let bytes = read.map_err(|error: io::Error| file.unread(&error))?;
        if bytes == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
            let expected = "a line of at most 4095 bytes";
            return Err(file.malformed_line(self.number, expected, &self.line));
        }
        Ok((bytes > 0).then(|| self.line.trim_ascii()))
    }

    /// Says that the line that was read last has an end.
    pub fn is_ended(&self) -> bool {
        self.line.last() == Some(&b'\n')
    }
}

/// A text as a message shows it. Bytes that are no text are shown as such.
pub fn shown(found: &[u8]) -> String {
    // A character takes four bytes at most: enough is kept to see that there are too many.
    let text = String::from_utf8_lossy(&found[..found.len().min(4 * SHOWN_CHARS + 4)]);
    let mut shown: String = text.chars().take(SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// A decimal number.
pub fn decimal(text: &[u8]) -> Option<u64> {
    number(text, 10)
}

/// A hexadecimal number, without `0x`.
pub fn hexadecimal(text: &[u8]) -> Option<u64> {
    number(text, 16)
}

fn number(text: &[u8], radix: u32) -> Option<u64> {
    // Rust takes a sign.
    let text = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'))?;
    u64::from_str_radix(text, radix).ok()
}
