//! Requests written in any of the formats, and what is lost where a format cannot say it.

use std::io::{self, Write};

use super::assumptions::Clock;
use super::binary::BinaryWriter;
use super::nvmain::{Version, Writer};
use super::{Content, Request, dramsim3, dramsys, gem5, ramulator};

/// Formats that requests are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Graven's own.
    Binary,
    /// NVMain's, of either version.
    NvMain,
    /// DRAMsim3's.
    DramSim3,
    /// Ramulator 1's of DRAM.
    Ramulator,
    /// Ramulator 2's `LoadStoreTrace`.
    Ramulator2,
    /// DRAMSys' `.stl`.
    DramSys,
    /// Packets of gem5.
    Gem5,
}

impl Format {
    /// All, with their names.
    pub const ALL: [(&str, Format); 7] = [
        ("graven", Format::Binary),
        ("nvmain", Format::NvMain),
        ("dramsim3", Format::DramSim3),
        ("ramulator", Format::Ramulator),
        ("ramulator2", Format::Ramulator2),
        ("dramsys", Format::DramSys),
        ("gem5", Format::Gem5),
    ];

    /// The format of a name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, format)| format)
    }

    /// Returns true if requests have times.
    pub fn has_times(self) -> bool {
        !matches!(self, Format::Ramulator | Format::Ramulator2)
    }

    /// Cycles in a second that the format demands, if it does.
    pub fn clock_hz(self) -> Option<u64> {
        (self == Format::Gem5).then_some(gem5::TICK_HZ)
    }

    fn has_threads(self) -> bool {
        matches!(self, Format::Binary | Format::NvMain)
    }
}

/// Things of requests that were written otherwise than they were, since the format cannot say them: numbers of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Data, after or before the request, that are left out.
    pub data: u64,
    /// Data, after or before the request, that are not known, and are written as zeros.
    pub zeros: u64,
    /// Threads other than 0.
    pub threads: u64,
}

enum Out<W: Write> {
    Binary(Box<BinaryWriter<W>>),
    NvMain(Writer<W>, Version),
    Other(W, fn(&mut W, &Request) -> io::Result<()>),
}

/// A trace that is written in one of the formats.
pub struct Exporter<W: Write> {
    format: Format,
    /// The clock that cycles are converted to, if it is another than the core's.
    clock: Option<Clock>,
    out: Out<W>,
    lost: Lost,
}

impl<W: Write> Exporter<W> {
    /// Begins a trace. Only NVMain's format has a version. Cycles are converted by `clock`, if there is one.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(
        mut out: W,
        format: Format,
        version: Version,
        clock: Option<Clock>,
    ) -> io::Result<Self> {
        let out = match format {
            Format::Binary => Out::Binary(Box::new(BinaryWriter::new(out)?)),
            Format::NvMain => Out::NvMain(Writer::of_version(out, version)?, version),
            Format::DramSim3 => Out::Other(out, dramsim3::write),
            Format::Ramulator => Out::Other(out, ramulator::write),
            Format::Ramulator2 => Out::Other(out, ramulator::write_load_store),
            Format::DramSys => Out::Other(out, dramsys::write),
            Format::Gem5 => {
                gem5::begin(&mut out)?;
                Out::Other(out, gem5::write)
            }
        };
        Ok(Exporter { format, clock, out, lost: Lost::default() })
    }

    /// Writes one request; `false` if its cycle is too late for the format.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&mut self, mut request: Request) -> io::Result<bool> {
        if let Some(clock) = self.clock {
            let Some(cycle) = clock.trace_cycle(request.cycle) else { return Ok(false) };
            request.cycle = cycle;
        }
        self.count_lost(&request);
        match &mut self.out {
            Out::Binary(writer) => writer.write(request),
            Out::NvMain(writer, _) => writer.write(request),
            Out::Other(out, write) => write(out, &request),
        }?;
        Ok(true)
    }

    fn count_lost(&mut self, request: &Request) {
        let content = &request.content;
        let has_old = matches!(content, Content::OldAndNew { .. });
        let (loses, adds) = match &self.out {
            Out::Binary(_) => (false, false),
            Out::NvMain(_, Version::V0) => (has_old, *content == Content::Unknown),
            Out::NvMain(_, Version::V1) => (false, !has_old),
            // Data of writes only, and those after them.
            Out::Other(..) if self.format == Format::DramSys => {
                (has_old || !request.write && *content != Content::Unknown, false)
            }
            Out::Other(..) => (*content != Content::Unknown, false),
        };
        self.lost.data += u64::from(loses);
        self.lost.zeros += u64::from(adds);
        self.lost.threads += u64::from(request.thread != 0 && !self.format.has_threads());
    }

    /// Things that were lost so far.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(self) -> io::Result<W> {
        match self.out {
            Out::Binary(writer) => writer.finish(),
            Out::NvMain(writer, _) => writer.finish(),
            Out::Other(mut out, _) => out.flush().map(|()| out),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::requests::{Assumptions, Reader};
    use graven_base::memory::{LineAddr, LineData};

    const CORE_HZ: u64 = 2_000_000_000;

    fn contents() -> impl Strategy<Value = Content> {
        let data = any::<LineData>();
        prop_oneof![
            Just(Content::Unknown),
            data.prop_map(Content::New),
            (data, data).prop_map(|(old, new)| Content::OldAndNew { old, new }),
        ]
    }

    fn requests() -> impl Strategy<Value = Vec<Request>> {
        let one = (0..1000u64, 0..1u64 << 58, any::<bool>(), contents(), 0..3u32);
        prop::collection::vec(one, 1..40).prop_map(|all| {
            let mut now = 0;
            let request = |(more, line, write, content, thread)| {
                now += more;
                Request { cycle: now, line: LineAddr(line), write, content, thread }
            };
            all.into_iter().map(request).collect()
        })
    }

    fn version_of(requests: &[Request]) -> Version {
        Version::of_content(&requests[0].content).unwrap_or(Version::V0)
    }

    fn written(requests: &[Request], format: Format, clock: Option<Clock>) -> (Vec<u8>, Lost) {
        let mut out = Exporter::new(Vec::new(), format, version_of(requests), clock)
            .unwrap_or_else(|e| panic!("{e}"));
        for &request in requests {
            assert!(out.write(request).unwrap_or_else(|e| panic!("{e}")));
        }
        let lost = out.lost();
        (out.finish().unwrap_or_else(|e| panic!("{e}")), lost)
    }

    /// The request that is read back of one.
    fn expected(number: usize, request: &Request, format: Format, version: Version) -> Request {
        let Request { content, write, .. } = *request;
        let new = match content {
            Content::Unknown => None,
            Content::New(new) | Content::OldAndNew { new, .. } => Some(new),
        };
        let content = match (format, version, content) {
            (Format::Binary, ..) => content,
            (Format::NvMain, Version::V1, Content::OldAndNew { .. }) => content,
            (Format::NvMain, Version::V1, _) => {
                Content::OldAndNew { old: LineData::default(), new: new.unwrap_or_default() }
            }
            (Format::NvMain, ..) => Content::New(new.unwrap_or_default()),
            (Format::DramSys, ..) if write => new.map_or(Content::Unknown, Content::New),
            _ => Content::Unknown,
        };
        let cycle = if format.has_times() { request.cycle } else { number as u64 };
        let thread = if format.has_threads() { request.thread } else { 0 };
        Request { cycle, content, thread, ..*request }
    }

    proptest! {
        #[test]
        fn every_format_is_read_back_with_all_that_it_can_say(requests in requests()) {
            for (name, format) in Format::ALL {
                let clock = format.clock_hz().map(|trace_hz| Clock { trace_hz, core_hz: CORE_HZ });
                let (bytes, _) = written(&requests, format, clock);
                let assumed = Assumptions { core_hz: Some(CORE_HZ), ..Assumptions::default() };
                let read: Result<Vec<Request>, _> = Reader::assuming(&bytes[..], assumed).collect();
                let read = read.unwrap_or_else(|e| panic!("{name}: {e}"));
                let version = version_of(&requests);
                let same = |(number, request)| expected(number, request, format, version);
                let kept: Vec<Request> = requests.iter().enumerate().map(same).collect();
                prop_assert_eq!(read, kept, "{}", name);
            }
        }
    }

    #[test]
    fn what_a_format_cannot_say_is_counted() {
        let line = [7; 8];
        let of = |content, write, thread| Request {
            cycle: 1,
            line: LineAddr(3),
            write,
            content,
            thread,
        };
        let all = [
            of(Content::OldAndNew { old: line, new: line }, true, 0),
            of(Content::New(line), true, 1),
            of(Content::New(line), false, 0),
            of(Content::Unknown, true, 2),
        ];
        let lost = |format| {
            let Lost { data, zeros, threads } = written(&all, format, None).1;
            (data, zeros, threads)
        };
        let found = Format::ALL.map(|(_, format)| lost(format));
        let (none, others) = ((0, 0, 0), (3, 0, 2));
        assert_eq!(found, [none, (0, 3, 0), others, others, others, (2, 0, 2), others]);
        let unknown_first: Vec<Request> = all.iter().rev().copied().collect();
        let Lost { data, zeros, .. } = written(&unknown_first, Format::NvMain, None).1;
        assert_eq!((data, zeros), (1, 1), "a trace of the version without old data");
    }

    #[test]
    fn a_cycle_that_no_reader_takes_is_not_written() {
        let clock = Some(Clock { trace_hz: gem5::TICK_HZ, core_hz: CORE_HZ });
        let late = Request { cycle: 1 << 60, ..Request::NONE };
        let mut out = Exporter::new(Vec::new(), Format::Gem5, Version::V0, clock)
            .unwrap_or_else(|e| panic!("{e}"));
        assert!(out.write(Request::NONE).is_ok_and(|is_written| is_written));
        assert!(out.write(late).is_ok_and(|is_written| !is_written));
    }
}
