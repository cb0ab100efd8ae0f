//! Reads a trace in whichever format it is.

use std::io::Read;

use super::assumptions::{Assumptions, Clock};
use super::binary::{Binary, MAGIC};
use super::error::{Place, TraceError};
use super::input::Input;
use super::text::Text;
use super::{OtherWords, Request};

/// The requests of a trace, in order. Empty lines are passed over. After an error it ends.
pub struct Reader<R> {
    input: Input<R>,
    format: Option<Format>,
    assumptions: Assumptions,
    failed: bool,
}

enum Format {
    Text(Text),
    Binary(Binary),
}

impl<R: Read> Reader<R> {
    /// Reads from `source`, whose beginning determines the format. It is read in large blocks.
    pub fn new(source: R) -> Self {
        Self::assuming(source, Assumptions::default())
    }

    /// The same under assumptions about what the trace does not say.
    pub fn assuming(source: R, assumptions: Assumptions) -> Self {
        Self { input: Input::new(source), format: None, assumptions, failed: false }
    }

    /// The place of the request that was read last.
    pub fn place(&self) -> Place {
        match &self.format {
            None => Place::Line(0),
            Some(Format::Text(text)) => text.place(),
            Some(Format::Binary(binary)) => binary.place(),
        }
    }

    /// The words of DRAMsim3's format that were taken for reads so far though they say something else.
    pub fn other_words(&self) -> Option<&OtherWords> {
        match &self.format {
            Some(Format::Text(text)) => text.other_words(),
            _ => None,
        }
    }

    /// Says that the trace has no times: one request was offered in each cycle.
    pub fn is_untimed(&self) -> bool {
        matches!(&self.format, Some(Format::Text(text)) if text.is_untimed())
    }

    /// Says that the first request was left out, as NVMain does where no first line says which of its formats a trace is of.
    pub fn left_out_first(&self) -> bool {
        matches!(&self.format, Some(Format::Text(text)) if text.is_headless())
    }

    #[cold]
    fn too_late(&self, clock: Clock, cycle: u64) -> TraceError {
        let expected =
            format!("a cycle of {} Hz that is below 2^62 at {} Hz", clock.trace_hz, clock.core_hz);
        let found = cycle.to_string();
        TraceError::Malformed { place: self.place(), expected: expected.into(), found }
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Request, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let levels = &self.assumptions.levels;
        let format = self.format.get_or_insert_with(|| {
            // No text begins with this byte.
            if self.input.peek(1).first() == Some(&MAGIC[0]) {
                Format::Binary(Binary::default())
            } else {
                Format::Text(Text::of_levels(levels.clone()))
            }
        });
        let mut request = match format {
            Format::Text(text) => text.request(&mut self.input),
            Format::Binary(binary) => binary.request(&mut self.input),
        };
        if let (Some(clock), Ok(Some(request))) = (self.assumptions.clock, &mut request) {
            match clock.core_cycle(request.cycle) {
                Some(cycle) => request.cycle = cycle,
                None => {
                    let error = self.too_late(clock, request.cycle);
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        self.failed = !matches!(request, Ok(Some(_)));
        request.transpose()
    }
}
