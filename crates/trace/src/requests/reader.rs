//! Reads a trace in whichever format it is.

use std::io::Read;

use super::assumptions::{Assumptions, Clock};
use super::binary::{Binary, MAGIC};
use super::error::{Place, TraceError};
use super::gem5::{self, Gem5, LeftOut};
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
    Gem5(Gem5),
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

    /// Reads the next request over another one; returns false at the end of the trace. It is `next` for those who read many:
    /// no request is moved.
    ///
    /// # Errors
    /// See [`TraceError`]; the trace ends with it.
    #[inline]
    pub fn read(&mut self, request: &mut Request) -> Result<bool, TraceError> {
        if self.failed {
            return Ok(false);
        }
        // Until it is known to be read.
        self.failed = true;
        if self.format.is_none() {
            self.format = Some(self.detected());
        }
        let input = &mut self.input;
        let is_read = match &mut self.format {
            Some(Format::Text(text)) => text.request(input, request)?,
            Some(Format::Binary(binary)) => binary.request(input, request)?,
            Some(Format::Gem5(gem5)) => gem5.request(input, request)?,
            None => false,
        };
        if is_read && let Some(clock) = self.clock() {
            let cycle = clock.core_cycle(request.cycle);
            request.cycle = cycle.ok_or_else(|| self.too_late(clock, request.cycle))?;
        }
        self.failed = !is_read;
        Ok(is_read)
    }

    /// The format that the beginning of the source determines.
    fn detected(&mut self) -> Format {
        // No text begins with this byte, or is `gem5` and more.
        let beginning = self.input.peek(gem5::MAGIC.len());
        if beginning.first() == Some(&MAGIC[0]) {
            Format::Binary(Binary::default())
        } else if beginning.starts_with(&gem5::MAGIC) {
            Format::Gem5(Gem5::default())
        } else {
            Format::Text(Text::assuming(&self.assumptions))
        }
    }

    /// The place of the request that was read last.
    pub fn place(&self) -> Place {
        match &self.format {
            None => Place::Line(0),
            Some(Format::Text(text)) => text.place(),
            Some(Format::Binary(binary)) => binary.place(),
            Some(Format::Gem5(gem5)) => gem5.place(),
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

    /// The packets of gem5 that were left out so far, since they neither read nor write.
    pub fn left_out(&self) -> Option<LeftOut> {
        match &self.format {
            Some(Format::Gem5(gem5)) => gem5.left_out(),
            _ => None,
        }
    }

    /// Writes of DRAMSys' formats whose data were left out so far, since they are not a whole line.
    pub fn data_left_out(&self) -> u64 {
        match &self.format {
            Some(Format::Text(text)) => text.data_left_out(),
            _ => 0,
        }
    }

    /// The clocks by which cycles are converted, if they are.
    #[inline]
    fn clock(&self) -> Option<Clock> {
        let trace_hz = match &self.format {
            Some(Format::Gem5(gem5)) => gem5.tick_hz(),
            _ => self.assumptions.clock_hz,
        };
        Some(Clock { trace_hz: trace_hz?, core_hz: self.assumptions.core_hz? })
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
        let mut request = Request::NONE;
        match self.read(&mut request) {
            Ok(true) => Some(Ok(request)),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}
