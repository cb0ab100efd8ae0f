//! Traces as text, line by line.

use std::io::Read;

use super::Request;
use super::assumptions::Assumptions;
use super::dramsim3::{self, OtherWords};
use super::dramsys::{self, DramSys};
use super::error::{Place, TraceError};
use super::fields::Fields;
use super::input::Input;
use super::nvmain::{self, Version};
use super::ramulator::{self, Layout};

/// A longer line is none of ours: refused before it fills the host's memory.
const LINE_BYTES_MAX: usize = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    NvMain(Version),
    DramSim3,
    Ramulator(Layout),
    DramSys,
}

/// The lines of a text, and the format that the first of them determine.
#[derive(Debug, Default)]
pub struct Text {
    line: u64,
    format: Option<Format>,
    /// No line says which of NVMain's formats it is: the first request was left out.
    is_headless: bool,
    others: Option<OtherWords>,
    /// Numbers of the levels of addresses that are vectors.
    levels: Vec<u64>,
    /// Requests of a format without times so far.
    untimed: u64,
    dramsys: DramSys,
    /// The line of a comment, which only traces of DRAMSys may have.
    comment: Option<u64>,
}

impl Text {
    /// Reads a text under assumptions.
    pub fn assuming(assumptions: &Assumptions) -> Text {
        let dramsys = DramSys::of_times(assumptions.are_relative);
        Text { levels: assumptions.levels.clone(), dramsys, ..Text::default() }
    }

    /// Writes whose data are left out, since they are not a whole line.
    pub fn data_left_out(&self) -> u64 {
        self.dramsys.data_left_out()
    }

    /// Says that requests have no times.
    pub fn is_untimed(&self) -> bool {
        matches!(self.format, Some(Format::Ramulator(_)))
    }

    /// The line that was read last.
    pub fn place(&self) -> Place {
        Place::Line(self.line)
    }

    /// The words that were taken for reads though they say something else.
    pub fn other_words(&self) -> Option<&OtherWords> {
        self.others.as_ref()
    }

    /// Says that the first request was left out, as NVMain does where no first line says which of its formats a trace is of.
    pub fn is_headless(&self) -> bool {
        self.is_headless
    }

    /// Reads the next request; returns false at the end.
    #[inline]
    pub fn request<R: Read>(
        &mut self,
        input: &mut Input<R>,
        request: &mut Request,
    ) -> Result<bool, TraceError> {
        if let Some(Format::NvMain(version)) = self.format
            && let Some(length) = nvmain::written(input.peek(LINE_BYTES_MAX), version, request)
        {
            self.line += 1;
            input.take(length);
            return Ok(true);
        }
        let read = self.any_request(input)?;
        Ok(read.map(|read| *request = read).is_some())
    }

    /// The next request, however it is written; none at the end.
    fn any_request<R: Read>(
        &mut self,
        input: &mut Input<R>,
    ) -> Result<Option<Request>, TraceError> {
        loop {
            if self.format == Some(Format::DramSys)
                && let Some(request) = self.dramsys.waiting()
            {
                return Ok(Some(request));
            }
            self.line += 1;
            let length = self.length(input)?;
            if length == 0 {
                return Ok(None);
            }
            let text = input.take(length);
            if text.trim_ascii_start().is_empty() {
                continue;
            }
            if dramsys::is_comment(text) && matches!(self.format, None | Some(Format::DramSys)) {
                self.comment.get_or_insert(self.line);
                continue;
            }
            let format = match self.format {
                Some(format) => format,
                None => {
                    if let Some(version) = Version::of_header(text, self.line)
                        && self.comment.is_none()
                    {
                        self.format = Some(Format::NvMain(version?));
                        continue;
                    }
                    let format = *self.format.insert(detect(text, self.line)?);
                    if let Some(line) = self.comment.filter(|_| format != Format::DramSys) {
                        let expected = "a request: only traces of DRAMSys have comments";
                        return Err(TraceError::malformed(line, expected, b"#"));
                    }
                    if format == HEADLESS {
                        self.is_headless = true;
                        nvmain::parse(text, self.line, Version::V0)
                            .map_err(|e| self.explained(e))?;
                        continue;
                    }
                    format
                }
            };
            let request = match format {
                Format::NvMain(version) => nvmain::parse(text, self.line, version),
                Format::DramSim3 => dramsim3::parse(text, self.line, &mut self.others),
                Format::Ramulator(layout) => {
                    self.untimed += 1;
                    let cycle = self.untimed - 1;
                    ramulator::parse(text, self.line, layout, cycle, &self.levels)
                }
                Format::DramSys => {
                    self.dramsys.read(text, self.line)?;
                    continue;
                }
            };
            let request = request.map_err(|error| self.explained(error))?;
            return Ok(Some(request));
        }
    }

    /// An error with why the line was read as it was, if nothing in the trace says so.
    fn explained(&self, error: TraceError) -> TraceError {
        let TraceError::Malformed { place, expected, found } = error else { return error };
        let why = if self.is_headless {
            " (without `NVMV1` as its first line a trace is of version 0)"
        } else {
            ""
        };
        TraceError::Malformed { place, expected: format!("{expected}{why}").into(), found }
    }

    /// The length of the next line, its end included; 0 at the end of the text.
    fn length<R: Read>(&self, input: &mut Input<R>) -> Result<usize, TraceError> {
        let text = input.peek(LINE_BYTES_MAX);
        let text = &text[..text.len().min(LINE_BYTES_MAX)];
        if let Some(end) = text.iter().position(|&byte| byte == b'\n') {
            return Ok(end + 1);
        }
        if text.len() == LINE_BYTES_MAX {
            let expected = "a line of at most 4095 bytes";
            return Err(TraceError::malformed(self.line, expected, text));
        }
        let length = text.len();
        input.check(self.place())?;
        Ok(length)
    }
}

/// The format of a trace of NVMain without a first line that says which.
const HEADLESS: Format = Format::NvMain(Version::V0);

/// Two fields give Ramulator's formats away, the second of more NVMain's, all three DRAMsim3's.
fn detect(text: &[u8], line: u64) -> Result<Format, TraceError> {
    if let Some(layout) = Layout::of(text) {
        return Ok(Format::Ramulator(layout));
    }
    let mut fields = Fields::new(text, line);
    fields.next();
    match fields.next() {
        Some(b"R" | b"W") => Ok(HEADLESS),
        Some(b"READ" | b"WRITE") => Ok(Format::DramSim3),
        _ if dramsim3::is_request(text) => Ok(Format::DramSim3),
        _ if dramsys::is_request(text) => Ok(Format::DramSys),
        _ => Err(TraceError::malformed(
            line,
            "`NVMV1`, `CYCLE R|W ADDRESS DATA OLDDATA THREAD` (NVMain), `ADDRESS READ|WRITE CYCLE` (DRAMsim3), \
             `ADDRESS R|W`, `LD|ST ADDRESS` or `R|W VECTOR` (Ramulator), or `CYCLE: read|write ADDRESS` (DRAMSys)",
            text.trim_ascii(),
        )),
    }
}
