//! DRAMSys' trace formats `.stl` and `.rstl` (2107966): `CYCLE: [(BYTES)] read|write ADDRESS [DATA]`.
//!
//! Cycles are decimal, with or without the colon: in `.stl` from the beginning, in `.rstl` from the request before, which the
//! content does not tell. The address is hexadecimal, with or without `0x`. A request of more bytes than a line has left is
//! one to each line; without a number of bytes it is to one line. Data are hexadecimal behind `0x`, the byte at the highest
//! address first; those that are not a whole line are left out, and counted. Lines that begin with `#` are comments.

use std::io;

use super::error::TraceError;
use super::fields::{Fields, cycle, decimal};
use super::{Content, Request, hex};
use graven_base::memory::{Addr, LINE_BYTES, LineData};

/// The most bytes of a request.
const REQUEST_BYTES_MAX: u64 = 1 << 16;

/// A trace as far as it has been read.
#[derive(Clone, Debug, Default)]
pub struct DramSys {
    /// Cycles count from the request before.
    is_relative: bool,
    now: u64,
    /// The next request to a line of those that were read, and the last such line.
    waiting: Option<(Request, u64)>,
    /// Writes whose data were left out.
    data_left_out: u64,
}

impl DramSys {
    /// Begins a trace whose cycles count from the request before, or from the beginning.
    pub fn of_times(is_relative: bool) -> DramSys {
        DramSys { is_relative, ..DramSys::default() }
    }

    /// Writes whose data were left out so far.
    pub fn data_left_out(&self) -> u64 {
        self.data_left_out
    }

    /// The next request of a line that was read before, if it has more.
    #[inline]
    pub fn waiting(&mut self) -> Option<Request> {
        let (request, last) = self.waiting?;
        let mut next = request;
        next.line.0 += 1;
        self.waiting = (request.line.0 < last).then_some((next, last));
        Some(request)
    }

    /// Reads a line, whose requests then wait.
    pub fn read(&mut self, text: &[u8], line: u64) -> Result<(), TraceError> {
        let Parsed { mut request, last, has_partial_data } = parse(text, line)?;
        if self.is_relative {
            let sum = self.now.checked_add(request.cycle).filter(|&sum| sum < 1 << 62);
            request.cycle = sum.ok_or_else(|| {
                let expected = "a cycle that makes less than 2^62 with all before";
                TraceError::malformed(line, expected, text.trim_ascii())
            })?;
            self.now = request.cycle;
        }
        self.data_left_out += u64::from(has_partial_data);
        self.waiting = Some((request, last));
        Ok(())
    }
}

/// Writes one request of a line, with cycles from the beginning.
pub fn write(out: &mut impl io::Write, request: &Request) -> io::Result<()> {
    let word = if request.write { "write" } else { "read" };
    write!(out, "{}: ({LINE_BYTES}) {word} {:#x}", request.cycle, request.line.addr().0)?;
    if let (true, Content::New(new) | Content::OldAndNew { new, .. }) =
        (request.write, request.content)
    {
        write!(out, " 0x")?;
        out.write_all(&turned(hex::digits(&new)))?;
    }
    writeln!(out)
}

/// Recognises a comment.
pub fn is_comment(text: &[u8]) -> bool {
    text.starts_with(b"#")
}

/// Recognises a request of this format.
pub fn is_request(text: &[u8]) -> bool {
    parse(text, 0).is_ok()
}

struct Parsed {
    /// To the first of its lines.
    request: Request,
    /// The last of its lines.
    last: u64,
    has_partial_data: bool,
}

fn parse(text: &[u8], line: u64) -> Result<Parsed, TraceError> {
    let mut fields = Fields::new(text, line);
    let at = fields.expect("a cycle, a decimal number below 2^62, and a colon", |field| {
        cycle(field.strip_suffix(b":").unwrap_or(field))
    })?;
    let mut word = fields.next().unwrap_or_default();
    let mut bytes = 1;
    if word.starts_with(b"(") {
        let length = |word: &[u8]| decimal(word.strip_prefix(b"(")?.strip_suffix(b")")?);
        let given = length(word).filter(|given| (1..=REQUEST_BYTES_MAX).contains(given));
        bytes = given.ok_or_else(|| fields.malformed("(BYTES), 1 to 65536", word))?;
        word = fields.next().unwrap_or_default();
    }
    let write = match word {
        b"read" => false,
        b"write" => true,
        _ => return Err(fields.malformed("`read` or `write`", word)),
    };
    let addr = fields.expect("an address of up to 16 hexadecimal digits", hex::number)?;
    let last = addr.checked_add(bytes - 1).ok_or_else(|| {
        let shown = format!("{bytes} bytes from {addr:#x} on");
        fields.malformed("bytes below address 2^64", shown.as_bytes())
    })?;
    let digits = match fields.next() {
        None => None,
        Some(field) => Some(digits(field).ok_or_else(|| {
            fields.malformed("0x and an even number of hexadecimal digits", field)
        })?),
    };
    fields.end()?;
    let data = digits.filter(|_| write && addr % LINE_BYTES == 0).and_then(whole_line);
    let content = data.map_or(Content::Unknown, Content::New);
    let has_partial_data = write && digits.is_some() && data.is_none();
    let request = Request { cycle: at, line: Addr(addr).line(), write, content, thread: 0 };
    Ok(Parsed { request, last: Addr(last).line().0, has_partial_data })
}

/// The digits of data.
fn digits(field: &[u8]) -> Option<&[u8]> {
    let digits = field.strip_prefix(b"0x")?;
    let is_data = digits.len() % 2 == 0 && digits.iter().all(u8::is_ascii_hexdigit);
    (is_data && !digits.is_empty()).then_some(digits)
}

/// Data of a whole line, whose digits begin with the byte at the highest address.
fn whole_line(digits: &[u8]) -> Option<LineData> {
    hex::line(&turned(digits.try_into().ok()?))
}

/// The digits of a line in the other order of bytes.
fn turned(mut digits: [u8; hex::LINE_DIGITS]) -> [u8; hex::LINE_DIGITS] {
    digits.reverse();
    digits.as_chunks_mut::<2>().0.iter_mut().for_each(|pair| pair.reverse());
    digits
}
