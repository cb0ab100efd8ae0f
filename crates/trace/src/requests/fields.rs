//! The fields of one line of text.

use super::error::TraceError;

/// The rest of a line, and its number.
pub struct Fields<'a> {
    rest: &'a [u8],
    line: u64,
}

impl<'a> Fields<'a> {
    /// The fields of line number `line`.
    pub fn new(text: &'a [u8], line: u64) -> Self {
        Self { rest: text, line }
    }

    /// The next field, if there is one.
    #[inline]
    pub fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.rest.trim_ascii_start();
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let (field, rest) = text.split_at(end);
        self.rest = rest;
        (!field.is_empty()).then_some(field)
    }

    /// A field that must be there and mean something.
    #[inline]
    pub fn expect<T>(
        &mut self,
        expected: &'static str,
        parse: impl FnOnce(&'a [u8]) -> Option<T>,
    ) -> Result<T, TraceError> {
        let field = self.next().unwrap_or_default();
        parse(field).ok_or_else(|| self.malformed(expected, field))
    }

    /// Nothing may follow.
    #[inline]
    pub fn end(self) -> Result<(), TraceError> {
        let rest = self.rest.trim_ascii();
        if rest.is_empty() {
            return Ok(());
        }
        Err(TraceError::malformed(self.line, "the end of the line", rest))
    }

    /// A field of this line as an error.
    pub fn malformed(&self, expected: &'static str, field: &[u8]) -> TraceError {
        TraceError::malformed(self.line, expected, field)
    }
}

/// A cycle of a trace: late enough for any, early enough that none overflows on the way.
#[inline]
pub fn cycle(text: &[u8]) -> Option<u64> {
    decimal(text).filter(|&cycle| cycle < 1 << 62)
}

/// A decimal number.
#[inline]
pub fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |value, &byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(digit.into())
    })
}
