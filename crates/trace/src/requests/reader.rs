//! Reads a trace in whichever format it is.

use std::io::{BufRead, Read};

use super::Request;
use super::dramsim3;
use super::error::TraceError;
use super::fields::Fields;
use super::nvmain::{self, Version};

/// A longer line is none of ours: refused before it fills the host's memory.
const LINE_BYTES_MAX: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    NvMain(Version),
    DramSim3,
}

/// The requests of a trace, in order. Empty lines are passed over. After an error it ends.
pub struct Reader<R> {
    input: R,
    text: Vec<u8>,
    line: u64,
    format: Option<Format>,
    failed: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads from `input`, whose first lines determine the format.
    pub fn new(input: R) -> Self {
        let text = Vec::with_capacity(LINE_BYTES_MAX as usize);
        Self { input, text, line: 0, format: None, failed: false }
    }

    /// Number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Takes the next line that is not empty; `false` at the end.
    fn advance(&mut self) -> Result<bool, TraceError> {
        loop {
            self.text.clear();
            self.line += 1;
            let mut limited = (&mut self.input).take(LINE_BYTES_MAX);
            let read = limited
                .read_until(b'\n', &mut self.text)
                .map_err(|e| TraceError::io(self.line, &e))?;
            if read == 0 {
                return Ok(false);
            }
            if read as u64 == LINE_BYTES_MAX && self.text.last() != Some(&b'\n') {
                return Err(TraceError::malformed(
                    self.line,
                    "a line of at most 4095 bytes",
                    &self.text,
                ));
            }
            if !self.text.trim_ascii_start().is_empty() {
                return Ok(true);
            }
        }
    }

    fn request(&mut self) -> Result<Option<Request>, TraceError> {
        if !self.advance()? {
            return Ok(None);
        }
        let format = match self.format {
            Some(format) => format,
            None => {
                if let Some(version) = Version::of_header(&self.text, self.line) {
                    self.format = Some(Format::NvMain(version?));
                    return self.request();
                }
                *self.format.insert(detect(&self.text, self.line)?)
            }
        };
        match format {
            Format::NvMain(version) => nvmain::parse(&self.text, self.line, version),
            Format::DramSim3 => dramsim3::parse(&self.text, self.line),
        }
        .map(Some)
    }
}

/// The second field gives a format away.
fn detect(text: &[u8], line: u64) -> Result<Format, TraceError> {
    let mut fields = Fields::new(text, line);
    fields.next();
    match fields.next() {
        Some(b"R" | b"W") => Ok(Format::NvMain(Version::of_request(text))),
        Some(b"READ" | b"WRITE") => Ok(Format::DramSim3),
        _ => Err(TraceError::malformed(
            line,
            "`NVMV1`, `CYCLE R|W ADDRESS DATA OLDDATA THREAD` (NVMain) or `ADDRESS READ|WRITE CYCLE` (DRAMsim3)",
            text.trim_ascii(),
        )),
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let request = self.request();
        self.failed = !matches!(request, Ok(Some(_)));
        request.transpose()
    }
}
