//! The timeline of a violation, for people: what each core did, what became durable when, what a power
//! failure left, what recovery wrote, and which guarantee was broken.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::explorer::Violation;
use crate::litmus::FailureMode;
use graven_base::ids::Tx;
use graven_base::memory::{Addr, LineAddr, WORDS_PER_LINE};
use graven_base::surviving::Written;
use graven_base::time::Cycle;
use graven_machine::trace_event::TraceEvent;

/// One row of the timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// When, in cycles; none for what belongs to the row above, or is not dated.
    pub cycle: Option<Cycle>,
    /// Who: `thread 0`, `caches`, `design`, `PM`, `power`, `saved`, `recovery`, `verdict`.
    pub who: String,
    /// The event.
    pub what: String,
}

/// A timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// The rows, oldest first.
    pub rows: Vec<Row>,
    /// Rows that were left out because they concern other words and transactions.
    pub left_out: usize,
}

/// Most rows before the power failure.
pub const ROWS_MAX: usize = 120;

/// Builds the timeline of a violation. `name`: what programs call a word.
pub fn timeline_of(
    trace: &[(Cycle, TraceEvent)],
    violation: &Violation,
    name: &dyn Fn(Addr) -> Option<String>,
) -> Timeline {
    let writer = Writer { name };
    let relevant = relevant(trace, violation);
    let mut timeline = Timeline::default();
    for (cycle, event) in trace {
        if !relevant.includes(event) {
            timeline.left_out += 1;
            continue;
        }
        let Some((who, what)) = writer.event(event) else { continue };
        timeline.rows.push(Row { cycle: Some(*cycle), who, what });
    }
    if timeline.rows.len() > ROWS_MAX {
        let more = timeline.rows.len() - ROWS_MAX;
        timeline.rows.drain(..more);
        timeline.left_out += more;
    }
    writer.ending(violation, &mut timeline);
    timeline
}

/// The part of a long timeline that matters: the violated word's line, and the transactions that stored to it.
struct Relevant {
    everything: bool,
    lines: BTreeSet<LineAddr>,
    transactions: BTreeSet<(u32, u64)>,
}

fn relevant(trace: &[(Cycle, TraceEvent)], violation: &Violation) -> Relevant {
    let everything = trace.len() <= ROWS_MAX || violation.addr.is_none();
    let lines: BTreeSet<LineAddr> = violation.addr.iter().map(|a| a.line()).collect();
    let mut transactions = BTreeSet::new();
    for (_, event) in trace {
        if let TraceEvent::Store { tx, addr, .. } = event
            && lines.contains(&addr.line())
        {
            transactions.insert((tx.thread, tx.number));
        }
    }
    Relevant { everything, lines, transactions }
}

impl Relevant {
    fn includes(&self, event: &TraceEvent) -> bool {
        let tx = |tx: &Tx| self.transactions.contains(&(tx.thread, tx.number));
        self.everything
            || match event {
                TraceEvent::Begin { tx: t, .. }
                | TraceEvent::Ending(t)
                | TraceEvent::Acknowledged(t) => tx(t),
                TraceEvent::Executed { .. } | TraceEvent::Snapshot => true,
                TraceEvent::Store { addr, .. } | TraceEvent::StoreOutside { addr, .. } => {
                    self.lines.contains(&addr.line())
                }
                TraceEvent::Evicted(line) | TraceEvent::Durable { line, .. } => {
                    self.lines.contains(line)
                }
                TraceEvent::Note(_) => false,
            }
    }
}

struct Writer<'a> {
    name: &'a dyn Fn(Addr) -> Option<String>,
}

impl Writer<'_> {
    fn word(&self, addr: Addr) -> String {
        (self.name)(addr).unwrap_or_else(|| addr.to_string())
    }

    /// A text with its addresses replaced by names.
    fn named(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("0x") {
            let digits = rest[at + 2..].find(|c: char| !c.is_ascii_hexdigit());
            let end = digits.map_or(rest.len(), |n| at + 2 + n);
            out.push_str(&rest[..at]);
            let number = u64::from_str_radix(&rest[at + 2..end], 16).ok().map(Addr);
            match number.and_then(|addr| (self.name)(addr)) {
                Some(name) => out.push_str(&name),
                None => out.push_str(&rest[at..end]),
            }
            rest = &rest[end..];
        }
        out + rest
    }

    fn event(&self, event: &TraceEvent) -> Option<(String, String)> {
        let thread = |tx: &Tx| format!("thread {}", tx.thread);
        Some(match event {
            TraceEvent::Begin { tx, busy } => {
                let busy = if *busy { ", while work for earlier ones is under way" } else { "" };
                (thread(tx), format!("begins transaction {}{busy}", tx.number))
            }
            TraceEvent::Store { tx, addr, old, new } => {
                (thread(tx), format!("{}: {old:#x} -> {new:#x}", self.word(*addr)))
            }
            TraceEvent::StoreOutside { thread, addr, old, new } => {
                let word = self.word(*addr);
                (format!("thread {thread}"), format!("{word}: {old:#x} -> {new:#x}, outside"))
            }
            TraceEvent::Executed { thread, operation } => {
                (format!("thread {thread}"), format!("has executed {operation}"))
            }
            TraceEvent::Snapshot => ("design".into(), "takes a snapshot".into()),
            TraceEvent::Ending(tx) => (thread(tx), format!("ends transaction {}", tx.number)),
            TraceEvent::Acknowledged(tx) => {
                (thread(tx), format!("receives the acknowledgement of transaction {}", tx.number))
            }
            TraceEvent::Evicted(line) => {
                ("caches".into(), format!("send the line of {} home", self.line(*line)))
            }
            TraceEvent::Durable { line, mask, old, new } => {
                let changed = |w: &usize| mask >> w & 1 != 0 && old[*w] != new[*w];
                let words: Vec<String> = (0..WORDS_PER_LINE)
                    .filter(changed)
                    .map(|w| format!("{} = {:#x}", self.word(line.word(w)), new[w]))
                    .collect();
                let what = match words.as_slice() {
                    [] => format!("takes the line of {}, which changes nothing", self.line(*line)),
                    words => format!("takes {}", words.join(", ")),
                };
                ("PM".into(), what)
            }
            TraceEvent::Note(text) => ("design".into(), self.named(text)),
        })
    }

    /// A line by those of its words that have names.
    fn line(&self, line: LineAddr) -> String {
        let names: Vec<String> =
            (0..WORDS_PER_LINE).filter_map(|w| (self.name)(line.word(w))).collect();
        if names.is_empty() { line.addr().to_string() } else { names.join(", ") }
    }

    fn ending(&self, violation: &Violation, timeline: &mut Timeline) {
        let mut row = |cycle, who: &str, what: String| {
            timeline.rows.push(Row { cycle, who: who.into(), what });
        };
        let Some(failure) = &violation.failure else {
            row(Some(violation.cycle), "verdict", violation.what.clone());
            return;
        };
        let mut mode = match failure.mode {
            FailureMode::Plain => String::new(),
            FailureMode::Torn(mask) => {
                format!("; of the write that is under way only words {mask:#010b} are there")
            }
            FailureMode::InFlight(_) | FailureMode::Landed(_) => {
                "; some of what was on its way has arrived".into()
            }
        };
        for cut in &failure.cuts {
            mode += &format!("; it fails again after {cut} writes of recovery");
        }
        let at = format!("fails (crash point {}){mode}", violation.point);
        row(Some(violation.cycle), "power", at);
        let post_crash = &violation.post_crash;
        let saved = post_crash.saved.len();
        let words: Vec<&Written> = post_crash.saved.iter().chain(&post_crash.recovered).collect();
        let who = |at: usize| if at < saved { "saved" } else { "recovery" };
        let mut notes = post_crash.notes.iter().peekable();
        let mut unnamed = 0;
        for (at, w) in words.iter().enumerate() {
            while let Some((_, text)) = notes.next_if(|(before, _)| *before <= at) {
                row(None, who(at), self.named(text));
            }
            match (self.name)(w.addr) {
                Some(word) => row(None, who(at), format!("{word}: {:#x} -> {:#x}", w.old, w.new)),
                None => unnamed += usize::from(w.old != w.new),
            }
            if at + 1 == saved && unnamed > 0 {
                row(None, "saved", format!("{unnamed} words that are not the program's"));
                unnamed = 0;
            }
        }
        for (_, text) in notes {
            row(None, "recovery", self.named(text));
        }
        if unnamed > 0 {
            row(None, "recovery", format!("{unnamed} words that are not the program's"));
        }
        row(None, "verdict", self.named(&violation.what));
    }
}

impl std::fmt::Display for Timeline {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:>10}  {:<10} what", "cycle", "who")?;
        if self.left_out > 0 {
            writeln!(f, "{:>10}  {} earlier or unrelated events are left out", "", self.left_out)?;
        }
        for row in &self.rows {
            let cycle = row.cycle.map(|c| c.to_string()).unwrap_or_default();
            writeln!(f, "{cycle:>10}  {:<10} {}", row.who, row.what)?;
        }
        Ok(())
    }
}
