//! One transaction on a machine at rest: what its commit waits for, beside what its design declares.
//!
//! One thread stores one word of a line that its L1 has, and nothing else uses the machine. Whatever the commit takes then is
//! the way of its acknowledgement ([`graven_machine::design::Step`]): messages and writes at the machine's prices, and what the
//! design adds.

use std::collections::BTreeMap;

use graven_base::config::{Config, ConfigError};
use graven_base::stats::Counts;
use graven_base::time::Cycle;
use graven_machine::design::{DesignInfo, MutantSet, Prices, Step};
use graven_machine::program::Op;
use graven_machine::registry::Registry;
use graven_machine::script::{self, compute, settle, store};

/// The machine of the transaction.
const MACHINE: &str = "silo";
/// Address of the word that it stores to.
const WORD: u64 = 0x1_0000;
/// Instructions between its store and its end: whatever the store brings about in the background is over then.
const PAUSE: u32 = 100_000;

/// A setting of the machine.
type Setting<'a> = (&'a str, &'a str);

/// One transaction.
#[derive(Clone, Debug)]
pub struct Acknowledged {
    /// The declared steps.
    pub steps: Vec<Step>,
    /// Cycles that the declared steps take on the machine.
    pub declared: Cycle,
    /// Cycles from its end to its acknowledgement.
    pub commit: Cycle,
    /// Cycles from its begin to its acknowledgement.
    pub transaction: Cycle,
    /// Energy of the PM's reads, background work that follows included, in pJ.
    pub read_pj: f64,
    /// The same of its writes.
    pub write_pj: f64,
    /// Counters of the machine and the design that it has changed, background work that follows it included, and by how much.
    pub counts: BTreeMap<&'static str, u64>,
}

/// The machine of the transaction with some settings.
///
/// # Errors
/// Settings that it does not take.
pub fn machine(registry: &Registry, settings: &[Setting<'_>]) -> Result<Config, ConfigError> {
    let mut config = registry.machine(MACHINE)?;
    settings.iter().try_for_each(|(key, value)| config.set(key, value))?;
    Ok(config)
}

/// Runs the transaction under a design. It follows one that is like it, which has warmed everything up.
///
/// # Errors
/// The design refuses the configuration or the run.
pub fn transaction(config: &Config, design: &'static DesignInfo) -> Result<Acknowledged, String> {
    measured(config, design, &[WORD], PAUSE)
}

/// Measures a transaction that stores `words`, and executes `pause` instructions before its end.
///
/// # Errors
/// The design refuses the configuration or the run.
pub fn measured(
    config: &Config,
    design: &'static DesignInfo,
    words: &[u64],
    pause: u32,
) -> Result<Acknowledged, String> {
    let one = |value: u64| {
        let stores = words.iter().map(|&word| store(word, value ^ word));
        let end = [compute(pause), Op::TxEnd, settle()];
        [Op::TxBegin].into_iter().chain(stores).chain(end).collect::<Vec<Op>>()
    };
    let run = |ops: &[Op]| -> Result<Seen, String> {
        let simulation = script::simulation(config, design, &[ops]);
        let mut simulation = simulation.map_err(|e| e.to_string())?;
        simulation.run().map_err(|e| e.to_string())?;
        let stats = simulation.stats();
        Ok(Seen {
            commit: stats.commit_latency.sum(),
            transaction: stats.transaction_latency.sum(),
            read_pj: stats.read_energy.pj(),
            write_pj: stats.write_energy.pj(),
            counts: simulation.counts(),
        })
    };
    let (first, second) = (one(!0), one(0x0123_4567_89ab_cdef));
    let (before, both) = (run(&first)?, run(&[first, second].concat())?);
    let changed = both.counts.iter().filter_map(|(declaration, value)| {
        let by = value.saturating_sub(before.counts[declaration.name]);
        (by > 0).then_some((declaration.name, by))
    });
    let configured = design.configured(config.clone());
    let steps = (design.acknowledgement.steps)(&configured);
    Ok(Acknowledged {
        declared: Prices::of(&configured).of_all(&steps),
        steps,
        commit: both.commit - before.commit,
        transaction: both.transaction - before.transaction,
        read_pj: both.read_pj - before.read_pj,
        write_pj: both.write_pj - before.write_pj,
        counts: changed.collect(),
    })
}

/// Result of a run.
struct Seen {
    commit: Cycle,
    transaction: Cycle,
    read_pj: f64,
    write_pj: f64,
    counts: Counts,
}

/// Machines on which a declaration is held to: messages, writes and the persistence domain differ.
const MESSAGES: [&str; 3] = ["0", "8", "37"];
const WRITES: [&str; 2] = ["150", "1000"];
const DOMAINS: [&str; 2] = ["true", "false"];

/// Lists the configurations in which the commit of a design takes another time than its declared steps do.
pub fn failures(registry: &Registry, design: &'static DesignInfo) -> Vec<String> {
    let mut failures = Vec::new();
    for message in MESSAGES {
        for write in WRITES {
            for adr in DOMAINS {
                let settings = [
                    ("controller.bypass_cycles", message),
                    ("pm.write_ns", write),
                    ("controller.adr", adr),
                    ("pm.buffer_lines", "0"),
                    ("pm.row_writes", "program"),
                ];
                failures.extend(failure(registry, design, &settings));
            }
        }
    }
    failures
}

fn failure(
    registry: &Registry,
    design: &'static DesignInfo,
    settings: &[Setting<'_>],
) -> Option<String> {
    let config = machine(registry, settings);
    let config = config.map_err(|e| e.to_string());
    let found = config.and_then(|config| transaction(&config, design));
    let with = settings.iter().map(|(key, value)| format!("{key}={value}"));
    let with = with.collect::<Vec<_>>().join(" ");
    match found {
        Err(why) => Some(format!("{} with {with}: {why}", design.name)),
        Ok(Acknowledged { steps, declared, commit, .. }) => (commit != declared).then(|| {
            format!(
                "{} with {with}: a commit takes {commit} cycles, and the steps that its entry declares {declared}: {steps:?}",
                design.name
            )
        }),
    }
}

/// Words of the transaction of the table: four of each of two lines.
const WORDS: [u64; 8] = [
    WORD,
    WORD + 8,
    WORD + 16,
    WORD + 24,
    WORD + 0x1040,
    WORD + 0x1048,
    WORD + 0x1050,
    WORD + 0x1058,
];

/// The steps as text.
fn as_text(steps: &[Step]) -> String {
    let text = |step: &Step| match step {
        Step::Message => "message".to_owned(),
        Step::Fall => "fall".to_owned(),
        Step::Access(cycles) => format!("access ({cycles})"),
        Step::Write => "write".to_owned(),
        Step::Instructions(count) => format!("instructions ({count})"),
        Step::Both(one, other) => format!("({} beside {})", as_text(one), as_text(other)),
    };
    steps.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Writes a Markdown table of one transaction of eight words in two lines under each registered design, action by action;
/// texts that lose data are left out. Where ADR is off, writes are in the cells before they are durable.
///
/// # Errors
/// A design refuses the machine.
pub fn table(registry: &Registry) -> Result<String, String> {
    let at_rest = [("pm.buffer_lines", "0"), ("pm.row_writes", "program")];
    let config = |adr| {
        let settings = [&at_rest[..], &[("controller.adr", adr)]].concat();
        machine(registry, &settings).map_err(|e| e.to_string())
    };
    let (domain, cells) = (config("true")?, config("false")?);
    let mut lines = vec![
        "| design | steps of a commit of one word | cycles | without ADR | transaction of 8 words | held: log, fence, commit | reads | data | log | metadata | GC | energy: reads, writes (nJ) |"
            .to_owned(),
        "|---|---|---|---|---|---|---|---|---|---|---|---|".to_owned(),
    ];
    for design in registry.designs().iter().filter(|design| design.inherent == MutantSet::NONE) {
        let [one, in_cells] = [&domain, &cells].map(|config| transaction(config, design));
        let (one, in_cells, eight) = (one?, in_cells?, measured(&domain, design, &WORDS, 1)?);
        let count = |name: &str| eight.counts.get(name).copied().unwrap_or(0);
        let written = |class: &str| {
            let requests = count(&format!("controller_write_requests_{class}"));
            match requests {
                0 => "–".to_owned(),
                _ => format!("{requests} ({} B)", count(&format!("written_bytes_{class}"))),
            }
        };
        lines.push(format!(
            "| `{}` | {} | {} | {} | {} | {}, {}, {} | {} | {} | {} | {} | {} | {:.2}, {:.2} |",
            design.name,
            if one.steps.is_empty() { "–".to_owned() } else { as_text(&one.steps) },
            one.commit,
            in_cells.commit,
            eight.transaction,
            count("stall_log_cycles"),
            count("stall_fence_cycles"),
            count("stall_commit_cycles"),
            count("controller_read_requests"),
            written("data"),
            written("log"),
            written("metadata"),
            written("gc"),
            eight.read_pj / 1000.0,
            eight.write_pj / 1000.0,
        ));
    }
    Ok(lines.join("\n") + "\n")
}
