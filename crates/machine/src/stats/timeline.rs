//! Timeline of some transactions, for a picture of what waits for what: the transactions and what
//! their threads waited for, the writes until they were durable, the work of the PM's banks, and
//! the notes of the design.
//!
//! Kept only on request. It is written as trace events of Chrome, which Perfetto shows; each has
//! the cycles in its arguments.

use std::io;
use std::ops::Range;

use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::LineAddr;
use graven_base::time::Cycle;
use serde_json::{Value, json};

use crate::request::{Write, WriteClass};

/// The groups of tracks, in their order.
const THREADS: u32 = 1;
const WRITES: u32 = 2;
const BANKS: u32 = 3;
const DESIGN: u32 = 4;

/// Timeline of certain transactions.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// Their numbers in the order in which the transactions of all threads begin.
    wanted: Range<u64>,
    begun: u64,
    /// Running transactions of all threads.
    running: Vec<Running>,
    /// From the begin of the first to the last acknowledgement.
    is_open: bool,
    began: Cycle,
    ended: Cycle,
    transactions: Vec<Transaction>,
    waits: Vec<Wait>,
    writes: Vec<Durable>,
    work: Vec<Work>,
    notes: Vec<(Cycle, String)>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    tx: Tx,
    number: u64,
    began: Cycle,
}

#[derive(Clone, Copy, Debug)]
struct Transaction {
    of: Running,
    /// When its end was reached, and when it was acknowledged, if that was while something was kept.
    ended: Option<(Cycle, Cycle)>,
}

#[derive(Clone, Copy, Debug)]
struct Wait {
    thread: ThreadId,
    cause: &'static str,
    since: Cycle,
    until: Cycle,
}

#[derive(Clone, Copy, Debug)]
struct Durable {
    class: WriteClass,
    line: LineAddr,
    arrived: Cycle,
    durable: Cycle,
}

/// Work of a bank of the PM, or of its on-PM buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Number of the bank, in a timeline over all channels; none: an on-PM buffer.
    pub bank: Option<u32>,
    /// Kind of work.
    pub kind: WorkKind,
    /// For which line.
    pub line: LineAddr,
    /// When the request arrived at the controller.
    pub arrived: Cycle,
    /// When it was issued.
    pub from: Cycle,
    /// When it is done.
    pub until: Cycle,
}

impl Work {
    /// Makes the work of a write, from one cycle to another.
    pub fn of_write(write: &Write, bank: Option<u32>, span: Range<Cycle>) -> Work {
        let kind = WorkKind::Write(write.class);
        let (from, until) = (span.start, span.end);
        Work { bank, kind, line: write.line, arrived: write.arrived, from, until }
    }
}

/// Kinds of work of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkKind {
    /// A read.
    Read,
    /// A write, into the cells or the on-PM buffer.
    Write(WriteClass),
    /// A line of the on-PM buffer goes into the cells.
    Spill,
}

impl WriteClass {
    /// Name in timelines.
    const fn name(self) -> &'static str {
        match self {
            WriteClass::Data => "data",
            WriteClass::Log => "log",
            WriteClass::Metadata => "metadata",
            WriteClass::Gc => "gc",
        }
    }
}

impl WorkKind {
    const fn name(self) -> &'static str {
        match self {
            WorkKind::Read => "read",
            WorkKind::Write(class) => class.name(),
            WorkKind::Spill => "spill",
        }
    }
}

impl Timeline {
    /// A timeline of the transactions with these numbers, in the order in which those of all threads begin.
    pub fn new(wanted: Range<u64>) -> Timeline {
        Timeline {
            wanted,
            begun: 0,
            running: Vec::new(),
            is_open: false,
            began: 0,
            ended: 0,
            transactions: Vec::new(),
            waits: Vec::new(),
            writes: Vec::new(),
            work: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns true if events of this instant are kept.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// A transaction begins. Returns whether it is the first of those that are wanted.
    pub fn begin(&mut self, tx: Tx, now: Cycle) -> bool {
        let number = self.begun;
        self.begun += 1;
        self.running.push(Running { tx, number, began: now });
        let opens = number == self.wanted.start;
        if opens {
            self.began = now;
            self.is_open = true;
        }
        opens
    }

    /// A transaction is acknowledged whose end was reached then. Returns whether it is the last of those that are wanted.
    pub fn acknowledge(&mut self, tx: Tx, ending: Cycle, now: Cycle) -> bool {
        let at = self.running.iter().position(|running| running.tx == tx);
        let of = self.running.swap_remove(at.expect("it has begun"));
        if !self.is_open {
            return false;
        }
        self.transactions.push(Transaction { of, ended: Some((ending, now)) });
        let is_wanted = |running: &Running| self.wanted.contains(&running.number);
        if self.begun < self.wanted.end || self.running.iter().any(is_wanted) {
            return false;
        }
        (self.ended, self.is_open) = (now, false);
        let others = self.running.iter().map(|&of| Transaction { of, ended: None });
        self.transactions.extend(others);
        true
    }

    /// A thread has waited.
    pub fn waited(&mut self, thread: ThreadId, cause: &'static str, since: Cycle, until: Cycle) {
        if self.is_open && until > since.max(self.began) {
            self.waits.push(Wait { thread, cause, since: since.max(self.began), until });
        }
    }

    /// A write has become durable that arrived at its controller then.
    pub fn durable(&mut self, class: WriteClass, line: LineAddr, arrived: Cycle, durable: Cycle) {
        if self.is_open {
            self.writes.push(Durable { class, line, arrived: arrived.max(self.began), durable });
        }
    }

    /// The device works.
    pub fn works(&mut self, work: Work) {
        if self.is_open {
            self.work.push(work);
        }
    }

    /// The design has said something.
    pub fn noted(&mut self, notes: impl IntoIterator<Item = (Cycle, String)>) {
        self.notes.extend(notes);
    }

    /// Writes it, with words about the run, which end up beside the events.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn write(
        &self,
        to: &mut impl io::Write,
        about: Value,
        frequency_mhz: u32,
        banks: &[String],
    ) -> io::Result<()> {
        let mut about = about;
        about["frequency_mhz"] = frequency_mhz.into();
        about["from_cycle"] = self.began.into();
        about["until_cycle"] = self.ended.into();
        writeln!(
            to,
            "{{\"displayTimeUnit\": \"ns\",\n\"otherData\": {about},\n\"traceEvents\": ["
        )?;
        let events = self.events(frequency_mhz, banks);
        for (at, event) in events.iter().enumerate() {
            let end = if at + 1 < events.len() { "," } else { "" };
            writeln!(to, "{event}{end}")?;
        }
        writeln!(to, "]}}")
    }

    fn events(&self, frequency_mhz: u32, banks: &[String]) -> Vec<Value> {
        let us = |cycles: Cycle| cycles as f64 / f64::from(frequency_mhz);
        let slice = |group: u32, track: u32, name: &str, category: &str, span: Range<Cycle>| {
            json!({
                "ph": "X", "pid": group, "tid": track, "name": name, "cat": category,
                "ts": us(span.start), "dur": us(span.end - span.start),
                "args": {"from": span.start, "until": span.end},
            })
        };
        let buffer = banks.len() as u32;
        let mut events = Vec::new();
        let groups = [
            (THREADS, "threads"),
            (WRITES, "writes until durable"),
            (BANKS, "PM"),
            (DESIGN, "design"),
        ];
        for (group, name) in groups {
            events.push(named("process_name", group, 0, name));
            events.push(json!({
                "ph": "M", "pid": group, "tid": 0, "name": "process_sort_index",
                "args": {"sort_index": group},
            }));
        }
        let mut threads: Vec<ThreadId> = self.waits.iter().map(|w| w.thread).collect();
        threads.extend(self.transactions.iter().map(|t| t.of.tx.thread));
        threads.sort_unstable();
        threads.dedup();
        for thread in threads {
            events.push(named("thread_name", THREADS, thread, &format!("thread {thread}")));
        }
        for (number, bank) in banks.iter().enumerate() {
            events.push(named("thread_name", BANKS, number as u32, bank));
        }
        if self.work.iter().any(|work| work.bank.is_none()) {
            events.push(named("thread_name", BANKS, buffer, "on-PM buffer"));
        }
        for Transaction { of, ended } in &self.transactions {
            let until = ended.map_or(self.ended, |(_, acknowledged)| acknowledged);
            let name = format!("transaction {}", of.number);
            let span = of.began.max(self.began)..until;
            let mut event = slice(THREADS, of.tx.thread, &name, "transaction", span);
            let of_it = [
                ("number", of.number.into()),
                ("wanted", self.wanted.contains(&of.number).into()),
                ("began", of.began.into()),
                ("ending", ended.map(|(ending, _)| ending).into()),
                ("acknowledged", ended.map(|(_, acknowledged)| acknowledged).into()),
            ];
            event["args"]
                .as_object_mut()
                .expect("it is one")
                .extend(of_it.map(|(key, value): (&str, Value)| (key.to_owned(), value)));
            events.push(event);
        }
        for wait in &self.waits {
            let span = wait.since..wait.until;
            let name = format!("waits: {}", wait.cause);
            events.push(slice(THREADS, wait.thread, &name, wait.cause, span));
        }
        // Many are under way at a time: they have no tracks, and begin and end by themselves.
        for (id, write) in self.writes.iter().enumerate() {
            let name = write.class.name();
            for (phase, at) in [("b", write.arrived), ("e", write.durable)] {
                events.push(json!({
                    "ph": phase, "pid": WRITES, "tid": 0, "id": id, "name": name, "cat": name, "ts": us(at),
                    "args": {
                        "line": write.line.addr().to_string(),
                        "from": write.arrived,
                        "until": write.durable,
                    },
                }));
            }
        }
        for work in &self.work {
            let name = work.kind.name();
            let track = work.bank.unwrap_or(buffer);
            let mut event = slice(BANKS, track, name, name, work.from..work.until);
            event["args"]["line"] = work.line.addr().to_string().into();
            event["args"]["arrived"] = work.arrived.into();
            events.push(event);
        }
        for (at, text) in &self.notes {
            events.push(json!({
                "ph": "i", "s": "p", "pid": DESIGN, "tid": 0, "name": text, "cat": "design", "ts": us(*at),
                "args": {"from": at, "until": at},
            }));
        }
        events
    }
}

fn named(what: &str, group: u32, track: u32, name: &str) -> Value {
    json!({"ph": "M", "pid": group, "tid": track, "name": what, "args": {"name": name}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tx(thread: ThreadId, number: u64) -> Tx {
        Tx { thread, number }
    }

    #[test]
    fn it_is_open_from_the_first_begin_to_the_last_acknowledgement_of_those_that_are_wanted() {
        let mut line = Timeline::new(1..3);
        assert!(!line.begin(tx(0, 0), 5));
        assert!(!line.is_open());
        assert!(line.begin(tx(1, 0), 10));
        assert!(!line.acknowledge(tx(0, 0), 11, 12), "not one that is wanted");
        assert!(!line.begin(tx(0, 1), 15), "the second of them");
        assert!(!line.acknowledge(tx(1, 0), 18, 20));
        assert!(line.is_open());
        assert!(!line.begin(tx(1, 1), 22), "not wanted any more");
        assert!(line.acknowledge(tx(0, 1), 29, 30));
        assert!(!line.is_open());
        let shown: Vec<_> =
            line.transactions.iter().map(|t| (t.of.number, t.of.began, t.ended)).collect();
        let ended = [(0, 5, Some((11, 12))), (1, 10, Some((18, 20))), (2, 15, Some((29, 30)))];
        assert_eq!(shown, [&ended[..], &[(3, 22, None)]].concat(), "those beside them, too");
    }

    #[test]
    fn what_happens_before_and_after_is_left_out_and_what_began_before_is_cut() {
        let mut line = Timeline::new(0..1);
        let work = |from, until| Work {
            bank: Some(3),
            kind: WorkKind::Write(WriteClass::Log),
            line: LineAddr(2),
            arrived: 0,
            from,
            until,
        };
        line.waited(0, "load", 0, 5);
        line.works(work(1, 2));
        line.begin(tx(0, 0), 10);
        line.waited(0, "commit", 5, 15);
        line.waited(0, "log", 5, 10);
        line.durable(WriteClass::Log, LineAddr(2), 4, 16);
        line.works(work(12, 20));
        line.acknowledge(tx(0, 0), 14, 18);
        line.waited(0, "load", 20, 25);
        line.works(work(30, 40));
        let mut text = Vec::new();
        line.write(&mut text, json!({"design": "silo"}), 2_000, &["bank 0".into()])
            .expect("memory takes everything");
        let written: Value = serde_json::from_slice(&text).expect("it is JSON");
        assert_eq!(written["otherData"]["design"], "silo");
        assert_eq!(written["otherData"]["until_cycle"], 18);
        let events = written["traceEvents"].as_array().expect("a list");
        let of = |phase: &str| -> Vec<&Value> {
            events.iter().filter(|event| event["ph"] == phase).collect()
        };
        let slices: Vec<_> =
            of("X").iter().map(|e| (&e["name"], &e["args"]["from"], &e["args"]["until"])).collect();
        let expected = [("transaction 0", 10, 18), ("waits: commit", 10, 15), ("log", 12, 20)];
        assert_eq!(
            format!("{slices:?}"),
            format!("{:?}", expected.map(|(n, f, u)| (json!(n), json!(f), json!(u))))
        );
        assert_eq!(of("X")[0]["ts"], 0.005, "microseconds at 2 GHz");
        assert_eq!((of("b").len(), of("e")[0]["args"]["until"].as_u64()), (1, Some(16)));
    }
}
