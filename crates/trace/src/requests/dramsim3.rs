//! DRAMsim3's trace format: `0xADDRESS READ|WRITE CYCLE`, the address hexadecimal with or without `0x`,
//! the cycle decimal. It carries no data.

use super::error::TraceError;
use super::fields::{Fields, cycle};
use super::{Content, Request, hex};
use graven_base::memory::Addr;

/// Reads one request.
pub fn parse(text: &[u8], line: u64) -> Result<Request, TraceError> {
    let mut fields = Fields::new(text, line);
    let addr = fields.expect("an address of up to 16 hexadecimal digits", hex::number)?;
    let write = fields.expect("`READ` or `WRITE`", |field| match field {
        b"READ" => Some(false),
        b"WRITE" => Some(true),
        _ => None,
    })?;
    let at = fields.expect("a cycle, a decimal number below 2^62", cycle)?;
    fields.end()?;
    Ok(Request { cycle: at, line: Addr(addr).line(), write, content: Content::Unknown, thread: 0 })
}
