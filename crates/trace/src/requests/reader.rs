//! Reads a trace in whichever format it is.

use std::io::Read;

use super::Request;
use super::error::{Place, TraceError};
use super::input::Input;
use super::text::Text;

/// The requests of a trace, in order. Empty lines are passed over. After an error it ends.
pub struct Reader<R> {
    input: Input<R>,
    text: Text,
    failed: bool,
}

impl<R: Read> Reader<R> {
    /// Reads from `source`, whose beginning determines the format. It is read in large blocks.
    pub fn new(source: R) -> Self {
        Self { input: Input::new(source), text: Text::default(), failed: false }
    }

    /// Where the request is that was read last.
    pub fn place(&self) -> Place {
        self.text.place()
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Request, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let request = self.text.request(&mut self.input);
        self.failed = !matches!(request, Ok(Some(_)));
        request.transpose()
    }
}
