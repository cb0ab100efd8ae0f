//! Requests on their way from the thread that reads them to that which replays them, in columns.
//!
//! A request with its content takes three lines of the host's caches, and each has to go from one core to another. Content
//! of reads is not used, and former content is mostly zero where nothing was written before: neither is part of a batch.

use super::{Content, Request};
use graven_base::memory::{LineAddr, LineData, WORDS_PER_LINE};
use graven_base::time::Cycle;

/// Requests without what a replay does not need.
#[derive(Debug, Default)]
pub struct Batch {
    heads: Vec<Head>,
    /// Content of the writes, in their order: the former one first, if both are here.
    lines: Vec<LineData>,
}

/// A request without its content.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    pub cycle: Cycle,
    pub line: LineAddr,
    kind: Kind,
}

impl Head {
    /// Returns true if it is a write.
    #[inline]
    pub fn is_write(&self) -> bool {
        self.kind != Kind::Read
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    /// A write without content.
    Write,
    /// A write with its content.
    New,
    /// A write with its content, over zeros.
    NewOverZero,
    /// A write with former content and its own.
    OldAndNew,
}

/// The content of a write that a trace knows: a [`Content`] that lies elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// None.
    Unknown,
    /// After the write.
    New(&'a LineData),
    /// Before and after it.
    OldAndNew { old: &'a LineData, new: &'a LineData },
}

impl<'a> Written<'a> {
    /// That of a request.
    #[inline]
    pub fn of(content: &'a Content) -> Written<'a> {
        match content {
            Content::Unknown => Written::Unknown,
            Content::New(new) => Written::New(new),
            Content::OldAndNew { old, new } => Written::OldAndNew { old, new },
        }
    }
}

const ZERO: LineData = [0; WORDS_PER_LINE];

impl Batch {
    /// Number of requests.
    #[inline]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Forgets all, and keeps the memory.
    pub fn clear(&mut self) {
        self.heads.clear();
        self.lines.clear();
    }

    /// Adds a request behind the others.
    #[inline]
    pub fn push(&mut self, request: &Request) {
        let kind = match &request.content {
            _ if !request.write => Kind::Read,
            Content::Unknown => Kind::Write,
            Content::New(new) => {
                self.lines.push(*new);
                Kind::New
            }
            Content::OldAndNew { old, new } if *old == ZERO => {
                self.lines.push(*new);
                Kind::NewOverZero
            }
            Content::OldAndNew { old, new } => {
                self.lines.extend([*old, *new]);
                Kind::OldAndNew
            }
        };
        self.heads.push(Head { cycle: request.cycle, line: request.line, kind });
    }

    /// The requests without their content.
    #[inline]
    pub fn heads(&self) -> &[Head] {
        &self.heads
    }

    /// The requests: their cycles, their lines, and what those that write do.
    pub fn iter(&self) -> impl Iterator<Item = (Cycle, LineAddr, Option<Written<'_>>)> {
        let mut lines = self.lines.iter();
        let mut next = move || lines.next().expect("the content of a write came with it");
        self.heads.iter().map(move |head| {
            let written = match head.kind {
                Kind::Read => None,
                Kind::Write => Some(Written::Unknown),
                Kind::New => Some(Written::New(next())),
                Kind::NewOverZero => Some(Written::OldAndNew { old: &ZERO, new: next() }),
                Kind::OldAndNew => Some(Written::OldAndNew { old: next(), new: next() }),
            };
            (head.cycle, head.line, written)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_request() -> impl Strategy<Value = Request> {
        let line = || prop_oneof![Just(ZERO), any::<LineData>()];
        let content = prop_oneof![
            Just(Content::Unknown),
            line().prop_map(Content::New),
            (line(), line()).prop_map(|(old, new)| Content::OldAndNew { old, new }),
        ];
        (any::<Cycle>(), any::<u64>(), any::<bool>(), content).prop_map(
            |(cycle, line, write, content)| {
                let line = LineAddr(line);
                Request { cycle, line, write, content, thread: 0 }
            },
        )
    }

    proptest! {
        #[test]
        fn writes_come_out_with_what_they_went_in_with(
            requests in prop::collection::vec(any_request(), 0..30),
        ) {
            let mut batch = Batch::default();
            for _ in 0..2 {
                batch.clear();
                requests.iter().for_each(|request| batch.push(request));
                prop_assert_eq!(batch.len(), requests.len());
                let writes = batch.heads().iter().map(Head::is_write);
                prop_assert!(writes.eq(requests.iter().map(|request| request.write)));
                let expected = requests.iter().map(|request| {
                    let written = request.write.then(|| Written::of(&request.content));
                    (request.cycle, request.line, written)
                });
                prop_assert!(batch.iter().eq(expected));
            }
        }
    }
}
