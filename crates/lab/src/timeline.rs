//! The story of a conviction, for people: what each core did, what became durable when, what a power
//! failure left, what recovery wrote, and which promise was broken.

use std::collections::BTreeSet;

use crate::explorer::Conviction;
use crate::litmus::Form;
use graven_base::ids::Tx;
use graven_base::memory::{Addr, LineAddr, WORDS_PER_LINE};
use graven_base::surviving::Written;
use graven_base::time::Cycle;
use graven_machine::happening::Happening;

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// When, in cycles; none for what belongs to the row above, or is not dated.
    pub cycle: Option<Cycle>,
    /// Who: `thread 0`, `caches`, `design`, `PM`, `power`, `saved`, `recovery`, `verdict`.
    pub who: String,
    /// What.
    pub what: String,
}

/// A story.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Its rows, oldest first.
    pub rows: Vec<Row>,
    /// Rows that were left out because they concern other words and transactions.
    pub left_out: usize,
}

/// Most rows before the power failure.
const ROWS_MAX: usize = 120;

/// Tells the story of a conviction. `name`: what programs call a word.
pub fn tell(
    story: &[(Cycle, Happening)],
    conviction: &Conviction,
    name: &dyn Fn(Addr) -> Option<String>,
) -> Timeline {
    let teller = Teller { name };
    let relevant = relevant(story, conviction);
    let mut timeline = Timeline::default();
    for (cycle, happening) in story {
        if !relevant.includes(happening) {
            timeline.left_out += 1;
            continue;
        }
        let Some((who, what)) = teller.happening(happening) else { continue };
        timeline.rows.push(Row { cycle: Some(*cycle), who, what });
    }
    if timeline.rows.len() > ROWS_MAX {
        let more = timeline.rows.len() - ROWS_MAX;
        timeline.rows.drain(..more);
        timeline.left_out += more;
    }
    teller.ending(conviction, &mut timeline);
    timeline
}

/// Which part of a long story matters: the convicted word's line, and the transactions that stored to it.
struct Relevant {
    everything: bool,
    lines: BTreeSet<LineAddr>,
    transactions: BTreeSet<(u32, u64)>,
}

fn relevant(story: &[(Cycle, Happening)], conviction: &Conviction) -> Relevant {
    let everything = story.len() <= ROWS_MAX || conviction.addr.is_none();
    let lines: BTreeSet<LineAddr> = conviction.addr.iter().map(|a| a.line()).collect();
    let mut transactions = BTreeSet::new();
    for (_, happening) in story {
        if let Happening::Store { tx, addr, .. } = happening
            && lines.contains(&addr.line())
        {
            transactions.insert((tx.thread, tx.number));
        }
    }
    Relevant { everything, lines, transactions }
}

impl Relevant {
    fn includes(&self, happening: &Happening) -> bool {
        let tx = |tx: &Tx| self.transactions.contains(&(tx.thread, tx.number));
        self.everything
            || match happening {
                Happening::Begin { tx: t, .. }
                | Happening::Ending(t)
                | Happening::Acknowledged(t) => tx(t),
                Happening::Store { addr, .. } => self.lines.contains(&addr.line()),
                Happening::Evicted(line) | Happening::Durable { line, .. } => {
                    self.lines.contains(line)
                }
                Happening::Note(_) => false,
            }
    }
}

struct Teller<'a> {
    name: &'a dyn Fn(Addr) -> Option<String>,
}

impl Teller<'_> {
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

    fn happening(&self, happening: &Happening) -> Option<(String, String)> {
        let thread = |tx: &Tx| format!("thread {}", tx.thread);
        Some(match happening {
            Happening::Begin { tx, busy } => {
                let busy = if *busy { ", while work for earlier ones is under way" } else { "" };
                (thread(tx), format!("begins transaction {}{busy}", tx.number))
            }
            Happening::Store { tx, addr, old, new } => {
                (thread(tx), format!("{}: {old:#x} -> {new:#x}", self.word(*addr)))
            }
            Happening::Ending(tx) => (thread(tx), format!("ends transaction {}", tx.number)),
            Happening::Acknowledged(tx) => {
                (thread(tx), format!("is told that transaction {} is committed", tx.number))
            }
            Happening::Evicted(line) => {
                ("caches".into(), format!("send the line of {} home", self.line(*line)))
            }
            Happening::Durable { line, mask, old, new } => {
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
            Happening::Note(text) => ("design".into(), self.named(text)),
        })
    }

    /// A line by those of its words that have names.
    fn line(&self, line: LineAddr) -> String {
        let names: Vec<String> =
            (0..WORDS_PER_LINE).filter_map(|w| (self.name)(line.word(w))).collect();
        if names.is_empty() { line.addr().to_string() } else { names.join(", ") }
    }

    fn ending(&self, conviction: &Conviction, timeline: &mut Timeline) {
        let mut row = |cycle, who: &str, what: String| {
            timeline.rows.push(Row { cycle, who: who.into(), what });
        };
        let form = match conviction.form {
            Form::Plain => String::new(),
            Form::Torn(mask) => {
                format!("; of the write that is under way only words {mask:#010b} are there")
            }
            Form::InFlight(_) => "; some of what was on its way has arrived".into(),
            Form::Recovery(writes) => format!("; it fails again after {writes} writes of recovery"),
        };
        let at = format!("fails (crash point {}){form}", conviction.point);
        row(Some(conviction.cycle), "power", at);
        let aftermath = &conviction.aftermath;
        let saved = aftermath.saved.len();
        let words: Vec<&Written> = aftermath.saved.iter().chain(&aftermath.recovered).collect();
        let who = |at: usize| if at < saved { "saved" } else { "recovery" };
        let mut notes = aftermath.notes.iter().peekable();
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
        row(None, "verdict", self.named(&conviction.what));
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
