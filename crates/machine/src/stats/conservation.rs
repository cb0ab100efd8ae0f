//! Laws of conservation: what statistics must agree with each other in, whatever was simulated.
//!
//! They are checked at the end of every run and of every region in steady state, in every build, and a run that breaks one ends with an error that names the law and
//! both numbers. A law is about *changes* between two instants, with what was under way at each ([`Books`]); the change of a whole
//! run is that from nothing. Most hold for any two instants. Some hold from the beginning of a run alone, and are checked by
//! [`Laws::check_run`] in addition.
//!
//! | law | says | whole runs only |
//! |---|---|---|
//! | `loads` | A load that no queued store answers is an access to the L1: hit, miss, or join. (Stores and locks are others.) | |
//! | `l1-misses` | Each goes to the L2, or where there is none to the LLC, once. | |
//! | `l2-misses` | Each goes to the LLC, once. | |
//! | `llc-misses` | Each has a line fetched, from PM or DRAM, and nothing else has. | |
//! | `fills` | Each PM line that is fetched comes and is compared with the program's stores, unless it is still under way. | |
//! | `reads-out` | Each PM read is served, unless it is queued or under way. | |
//! | `reads-by-place` | Each is answered by a write queue, the on-PM buffer, or a bank, unless it is queued. | |
//! | `writes-out` | Each accepted PM write has merged with another or left its queue, unless it is queued. | |
//! | `write-classes` | Each has one class. | |
//! | `log-bytes` | Log bytes are those of the classes log and metadata. | |
//! | `media-classes` | Each write of the media has one class. | |
//! | `media-bits` | A write programs no more bits than it has, where cells hold one each and nothing is coded. | |
//! | `media-bytes` | A word reaches the media once at most for each time that it was accepted. | yes: queues and buffers have words of before |
//! | `read-energy` | Energy of reads is that of opened rows, of lines and of fetched media lines. | |
//! | `write-energy` | Energy of writes is that of programmed bits, and of words that reach a row or the on-PM buffer: of no fewer bits, and no more words, than were counted. Cells of one bit. | the upper bound, as `media-bytes` |
//! | `read-latency` | Reads together take no less than the device's latencies of where they were answered. | |
//! | `latencies` | The distributions have the samples that the counters have. | |
//! | `commit-latency` | A commit is part of what follows the last issue, which is part of the transaction. | |
//! | `cycles` | A core issues no more instructions than fit into its cycles. | yes: instructions and cycles are summed at the end |

use std::fmt;

use thiserror::Error;

use graven_base::config::Config;
use graven_base::memory::{LINE_BYTES, MEDIA_LINE_BYTES};
use graven_base::stats::{Distribution, Energy};
use graven_base::time::cycles;

use super::{Counters, Stats};
use crate::config::{CellKind, CoreConfig, L2Config, PmConfig};

/// A law is broken: the statistics cannot all be right.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "law of conservation `{law}` is broken: {left} is {left_value}, and {relation} {right}, which is {right_value}"
)]
pub struct Broken {
    /// The law's name.
    pub law: &'static str,
    /// One side.
    pub left: &'static str,
    /// Value of the left side.
    pub left_value: u128,
    /// Relation of the left side to the right one.
    pub relation: Relation,
    /// The other side.
    pub right: &'static str,
    /// Value of the right side.
    pub right_value: u128,
}

/// Relations of the sides of a law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// They are the same.
    Equal,
    /// The left one is as large, or larger.
    AtLeast,
}

impl fmt::Display for Relation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Relation::Equal => "should be",
            Relation::AtLeast => "should be no less than",
        })
    }
}

/// Requests and lines that have begun and not ended at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnderWay {
    /// PM lines that are fetched and have not been compared.
    pub fills: u64,
    /// PM reads in read queues, and outside full ones.
    pub reads_queued: u64,
    /// PM reads that have been answered, and whose data are not there yet.
    pub reads_in_service: u64,
    /// PM writes in write queues.
    pub writes_queued: u64,
}

/// Number and sum of samples.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: u64,
    sum: u64,
}

impl Samples {
    fn of(distribution: &Distribution) -> Samples {
        Samples { count: distribution.count(), sum: distribution.sum() }
    }

    fn since(self, before: Samples) -> Samples {
        Samples { count: self.count - before.count, sum: self.sum - before.sum }
    }
}

/// The state of the statistics at an instant, as far as laws are about it. Nothing has happened in the default one.
#[derive(Clone, Debug, Default)]
pub struct Books {
    counters: Counters,
    read_energy: Energy,
    write_energy: Energy,
    commit: Samples,
    last_issue: Samples,
    transaction: Samples,
    read: Samples,
    under_way: UnderWay,
}

impl Books {
    /// Those of statistics that have just begun anew, with what is under way.
    pub fn begun(under_way: UnderWay) -> Books {
        Books { under_way, ..Books::default() }
    }

    /// The statistics now, with what is under way.
    pub fn of(stats: &Stats, under_way: UnderWay) -> Books {
        Books {
            counters: stats.counters.clone(),
            read_energy: stats.read_energy,
            write_energy: stats.write_energy,
            commit: Samples::of(&stats.commit_latency),
            last_issue: Samples::of(&stats.last_issue_latency),
            transaction: Samples::of(&stats.transaction_latency),
            read: Samples::of(&stats.read_latency),
            under_way,
        }
    }
}

/// The laws of a machine. Its latencies and energies are taken from the configuration, not from the device that they check.
#[derive(Clone, Copy, Debug)]
pub struct Laws {
    has_l2: bool,
    width: u64,
    /// Least latencies of a read by where it is answered, in cycles.
    least: LeastLatencies,
    /// Energy of a bit read from a row buffer.
    row_read: Energy,
    /// Energy of a bit written to a row buffer or the on-PM buffer.
    row_write: Energy,
    /// Energy of opening a row.
    activation: Energy,
    /// Energy of a programmed bit, where cells hold one each and are not coded.
    plain_bit: Option<Energy>,
    keeps_rows: bool,
}

#[derive(Clone, Copy, Debug)]
struct LeastLatencies {
    buffer: u128,
    row_hit: u128,
    row_closed: u128,
    row_conflict: u128,
}

/// A law and what it found.
struct Found {
    law: &'static str,
    left: (&'static str, u128),
    relation: Relation,
    right: (&'static str, u128),
}

fn equal(law: &'static str, left: (&'static str, u128), right: (&'static str, u128)) -> Found {
    Found { law, left, relation: Relation::Equal, right }
}

fn at_least(law: &'static str, left: (&'static str, u128), right: (&'static str, u128)) -> Found {
    Found { law, left, relation: Relation::AtLeast, right }
}

fn hold(laws: impl IntoIterator<Item = Found>) -> Result<(), Broken> {
    let broken = |f: &Found| match f.relation {
        Relation::Equal => f.left.1 != f.right.1,
        Relation::AtLeast => f.left.1 < f.right.1,
    };
    match laws.into_iter().find(broken) {
        None => Ok(()),
        Some(Found { law, left, relation, right }) => Err(Broken {
            law,
            left: left.0,
            left_value: left.1,
            relation,
            right: right.0,
            right_value: right.1,
        }),
    }
}

impl Laws {
    /// Those of a configuration.
    pub fn new(config: &Config) -> Laws {
        let (core, pm) = (config.get::<CoreConfig>(), config.get::<PmConfig>());
        let is_plain = pm.cells == CellKind::Uniform && !pm.codec.compresses();
        let t = |ns| u128::from(cycles(ns, core.frequency_mhz));
        let burst = t(pm.burst_ns).max(1);
        Laws {
            has_l2: config.get::<L2Config>().bytes.0 > 0,
            width: core.issue_width.into(),
            least: LeastLatencies {
                buffer: t(pm.buffer_ns) + burst,
                row_hit: t(pm.row_hit_ns) + burst,
                row_closed: t(pm.read_ns) + burst,
                row_conflict: t(pm.precharge_ns) + t(pm.read_ns) + burst,
            },
            row_read: Energy::per_bit(pm.row_read_pj_per_bit),
            row_write: Energy::per_bit(pm.row_write_pj_per_bit),
            activation: Energy::per_bit(pm.array_read_pj_per_bit).times(pm.row_bytes.0 * 8),
            plain_bit: is_plain.then(|| Energy::per_bit(pm.array_write_pj_per_bit)),
            keeps_rows: pm.row_writes.stay_in_row(),
        }
    }

    /// All that hold for what has happened between any two instants.
    ///
    /// # Errors
    /// The first that is broken.
    pub fn check_between(&self, before: &Books, after: &Books) -> Result<(), Broken> {
        self.check_cores(before, after)?;
        self.check_memory(before, after)
    }

    /// Those that hold for what has happened between any two instants, of caches and cores.
    ///
    /// # Errors
    /// The first that is broken.
    pub fn check_cores(&self, before: &Books, after: &Books) -> Result<(), Broken> {
        let [b, a] = [before, after].map(|books| &books.counters);
        let d = |of: fn(&Counters) -> u64| u128::from(of(a)) - u128::from(of(b));
        let of_llc = d(|c| c.llc_hits + c.llc_misses + c.llc_joins);
        let of_l2 = d(|c| c.l2_hits + c.l2_misses);
        let (next, of_next) = if self.has_l2 {
            ("accesses to the L2", of_l2)
        } else {
            ("accesses to the LLC", of_llc)
        };
        let compared = d(|c| c.reads_checked) + u128::from(after.under_way.fills);
        let fills = d(|c| c.fills) + u128::from(before.under_way.fills);
        let commit = after.commit.since(before.commit);
        let last_issue = after.last_issue.since(before.last_issue);
        let transaction = after.transaction.since(before.transaction);
        let committed = ("committed transactions", d(|c| c.committed_transactions));
        hold([
            at_least(
                "loads",
                ("accesses to the L1", d(|c| c.l1_hits + c.l1_misses + c.l1_joins)),
                ("loads that no store answered", d(|c| c.loads - c.store_forwards)),
            ),
            equal("l1-misses", ("l1_misses", d(|c| c.l1_misses)), (next, of_next)),
            equal(
                "l2-misses",
                ("l2_misses", d(|c| c.l2_misses)),
                ("accesses to the LLC", if self.has_l2 { of_llc } else { 0 }),
            ),
            equal(
                "llc-misses",
                ("llc_misses", d(|c| c.llc_misses)),
                ("fills and dram_fills", d(|c| c.fills + c.dram_fills)),
            ),
            equal("fills", ("lines compared, and under way", compared), ("fills", fills)),
            equal("latencies", ("samples of commit latency", commit.count.into()), committed),
            equal(
                "latencies",
                ("samples of transaction latency", transaction.count.into()),
                committed,
            ),
            at_least(
                "commit-latency",
                ("latency of transactions", transaction.sum.into()),
                ("that from their last issue", last_issue.sum.into()),
            ),
            at_least(
                "commit-latency",
                ("latency from the last issue", last_issue.sum.into()),
                ("that of commits", commit.sum.into()),
            ),
        ])
    }

    /// Those that hold for what has happened between any two instants, of controllers and PM.
    ///
    /// # Errors
    /// The first that is broken.
    pub fn check_memory(&self, before: &Books, after: &Books) -> Result<(), Broken> {
        let [b, a] = [before, after].map(|books| &books.counters);
        let d = |of: fn(&Counters) -> u64| u128::from(of(a)) - u128::from(of(b));
        let (was, is) = (before.under_way, after.under_way);
        let [was_in, is_in] = [was, is].map(|u| u128::from(u.reads_queued + u.reads_in_service));
        let read = after.read.since(before.read);
        let by_bank = d(|c| c.row_hits + c.row_closed + c.row_conflicts);
        let by_place = by_bank + d(|c| c.controller_reads_forwarded + c.pm_buffer_read_hits);
        let fetches = d(|c| c.media_reads).saturating_sub(by_bank);
        let accepted = d(|c| c.controller_write_requests);
        let lines = by_bank * u128::from(LINE_BYTES) + fetches * u128::from(MEDIA_LINE_BYTES);
        let read_energy =
            lines * 8 * fj(self.row_read) + d(|c| c.row_activations) * fj(self.activation);
        let (bits, written) =
            (d(|c| c.media_bits_programmed), fj_since(after, before, |b| b.write_energy));
        let LeastLatencies { buffer, row_hit, row_closed, row_conflict } = self.least;
        let least = d(|c| c.controller_reads_forwarded)
            + d(|c| c.pm_buffer_read_hits) * buffer
            + d(|c| c.row_hits) * row_hit
            + d(|c| c.row_closed) * row_closed
            + d(|c| c.row_conflicts) * row_conflict;
        // What has not been served yet may be any of these.
        let longest = [buffer, row_hit, row_closed, row_conflict].into_iter().fold(1, u128::max);
        let open = u128::from(is.reads_in_service) * longest;
        hold([
            equal(
                "reads-out",
                ("reads served, and not served yet", d(|c| c.reads_served) + is_in),
                ("reads that came", d(|c| c.controller_read_requests) + was_in),
            ),
            equal(
                "reads-by-place",
                ("reads answered, and queued", by_place + u128::from(is.reads_queued)),
                (
                    "reads that came",
                    d(|c| c.controller_read_requests) + u128::from(was.reads_queued),
                ),
            ),
            equal(
                "writes-out",
                (
                    "writes merged, served, and queued",
                    d(|c| c.write_queue_merges + c.writes_served) + u128::from(is.writes_queued),
                ),
                ("writes accepted", accepted + u128::from(was.writes_queued)),
            ),
            equal(
                "write-classes",
                (
                    "writes of all classes",
                    d(|c| {
                        c.controller_write_requests_data
                            + c.controller_write_requests_log
                            + c.controller_write_requests_metadata
                            + c.controller_write_requests_gc
                    }),
                ),
                ("controller_write_requests", accepted),
            ),
            equal(
                "log-bytes",
                ("log_bytes_written", d(|c| c.log_bytes_written)),
                (
                    "bytes of log and metadata",
                    d(|c| c.written_bytes_log + c.written_bytes_metadata),
                ),
            ),
            equal(
                "media-classes",
                (
                    "media writes of all classes",
                    d(|c| {
                        c.media_write_requests_data
                            + c.media_write_requests_log
                            + c.media_write_requests_metadata
                            + c.media_write_requests_gc
                    }),
                ),
                ("media_write_requests", d(|c| c.media_write_requests)),
            ),
            at_least(
                "media-bits",
                ("bits of media writes", d(|c| c.media_bytes_written) * 8),
                ("media_bits_programmed", if self.plain_bit.is_some() { bits } else { 0 }),
            ),
            equal(
                "read-energy",
                ("energy of reads in fJ", fj_since(after, before, |b| b.read_energy)),
                ("that of its parts", read_energy),
            ),
            at_least(
                "write-energy",
                ("energy of writes in fJ", written),
                ("that of programmed bits", bits * self.plain_bit.map_or(0, fj)),
            ),
            equal(
                "latencies",
                ("samples of read latency", read.count.into()),
                ("reads_served", d(|c| c.reads_served)),
            ),
            equal(
                "latencies",
                ("sum of read latencies", read.sum.into()),
                ("read_latency_cycles_sum", d(|c| c.read_latency_cycles_sum)),
            ),
            at_least(
                "read-latency",
                ("latency of reads", u128::from(read.sum) + open),
                ("that of where they were answered", least),
            ),
        ])
    }

    /// All that hold for controllers and PM from the beginning of a run.
    ///
    /// # Errors
    /// The first that is broken.
    pub fn check_memory_of_run(&self, end: &Books) -> Result<(), Broken> {
        self.check_memory(&Books::default(), end)?;
        let c = &end.counters;
        let (accepted, bits) = (u128::from(c.written_bytes()), u128::from(c.media_bits_programmed));
        let of_cells = bits * self.plain_bit.map_or(0, fj);
        let of_words = fj(end.write_energy).saturating_sub(of_cells);
        let is_bounded = self.plain_bit.is_some() && !self.keeps_rows;
        hold([
            at_least(
                "media-bytes",
                ("bytes of accepted writes", accepted),
                ("media_bytes_written", c.media_bytes_written.into()),
            ),
            at_least(
                "write-energy",
                ("energy of the words of accepted writes in fJ", accepted * 8 * fj(self.row_write)),
                ("energy of writes without that of cells", if is_bounded { of_words } else { 0 }),
            ),
        ])
    }

    /// All that hold from the beginning of a run. `stats` are those of its end.
    ///
    /// # Errors
    /// The first that is broken.
    pub fn check_run(&self, stats: &Stats, under_way: UnderWay) -> Result<(), Broken> {
        let end = Books::of(stats, under_way);
        self.check_cores(&Books::default(), &end)?;
        self.check_memory_of_run(&end)?;
        let cores = stats.core_cycles.iter().zip(&stats.core_instructions);
        hold(cores.map(|(&cycles, &instructions)| {
            let slots = u128::from(cycles) * u128::from(self.width);
            at_least(
                "cycles",
                ("issue slots of a core", slots),
                ("its instructions", instructions.into()),
            )
        }))
    }
}

fn fj(energy: Energy) -> u128 {
    energy.in_femtojoule().into()
}

fn fj_since(after: &Books, before: &Books, of: fn(&Books) -> Energy) -> u128 {
    fj(of(after)) - fj(of(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    fn laws() -> Laws {
        Laws::new(&Registry::new().defaults())
    }

    const UNDER_WAY: UnderWay =
        UnderWay { fills: 1, reads_queued: 1, reads_in_service: 1, writes_queued: 1 };

    /// Statistics that keep all laws: two loads and a store that miss, and what comes of them.
    fn stats() -> Stats {
        let laws = laws();
        let mut stats = Stats::default();
        let c = &mut stats.counters;
        (c.loads, c.stores, c.store_forwards) = (4, 2, 1);
        (c.l1_hits, c.l1_misses, c.l1_joins) = (1, 6, 1);
        (c.l2_hits, c.l2_misses) = (1, 5);
        (c.llc_hits, c.llc_misses, c.llc_joins) = (1, 3, 1);
        (c.fills, c.dram_fills, c.reads_checked) = (2, 1, 1);
        (c.controller_read_requests, c.reads_served) = (5, 3);
        (c.controller_reads_forwarded, c.pm_buffer_read_hits) = (1, 1);
        (c.row_hits, c.row_closed, c.row_conflicts) = (1, 1, 0);
        (c.media_reads, c.row_activations) = (3, 2);
        (c.controller_write_requests, c.write_queue_merges, c.writes_served) = (4, 1, 2);
        c.controller_write_requests_data = 1;
        c.controller_write_requests_log = 1;
        c.controller_write_requests_metadata = 1;
        c.controller_write_requests_gc = 1;
        (c.written_bytes_data, c.written_bytes_log, c.written_bytes_metadata) = (64, 8, 16);
        c.log_bytes_written = 24;
        (c.media_write_requests, c.media_write_requests_data, c.media_write_requests_log) =
            (2, 1, 1);
        (c.media_bytes_written, c.media_bits_programmed) = (72, 100);
        c.committed_transactions = 2;
        for (last_issue, transaction) in [(20, 100), (30, 200)] {
            stats.commit_latency.record(10);
            stats.last_issue_latency.record(last_issue);
            stats.transaction_latency.record(transaction);
        }
        for latency in [1, 100_000, 100_000] {
            stats.read_latency.record(latency);
            stats.counters.read_latency_cycles_sum += latency;
        }
        stats.read_energy.add_bits(laws.row_read, 2 * 512 + 2048);
        stats.read_energy = stats.read_energy.and(laws.activation.times(2));
        stats.write_energy.add_bits(laws.plain_bit.expect("one bit a cell"), 100);
        stats.write_energy.add_bits(laws.row_write, 88 * 8);
        (stats.core_cycles, stats.core_instructions) = (vec![10, 0], vec![10 * laws.width, 0]);
        stats
    }

    #[test]
    fn right_statistics_keep_all_laws() {
        assert_eq!(laws().check_run(&stats(), UNDER_WAY), Ok(()));
        assert_eq!(laws().check_run(&Stats::default(), UnderWay::default()), Ok(()));
    }

    /// Each law is broken by one number that is wrong.
    #[test]
    fn a_wrong_number_breaks_its_law() {
        type Wrong = fn(&mut Stats);
        let wrong: [(&str, Wrong); 23] = [
            ("loads", |s| s.counters.loads += 20),
            ("l1-misses", |s| s.counters.l1_misses += 1),
            ("l1-misses", |s| s.counters.l2_hits += 1),
            ("l2-misses", |s| {
                s.counters.l2_misses += 1;
                s.counters.l1_misses += 1;
            }),
            ("llc-misses", |s| {
                s.counters.llc_misses += 1;
                s.counters.llc_hits -= 1;
            }),
            ("fills", |s| s.counters.reads_checked += 1),
            ("reads-out", |s| s.counters.controller_read_requests += 1),
            ("reads-by-place", |s| s.counters.controller_reads_forwarded += 1),
            ("writes-out", |s| s.counters.write_queue_merges += 1),
            ("write-classes", |s| s.counters.controller_write_requests_gc += 1),
            ("log-bytes", |s| s.counters.log_bytes_written += 8),
            ("media-classes", |s| s.counters.media_write_requests_data += 1),
            ("media-bits", |s| s.counters.media_bits_programmed += 1000),
            ("media-bytes", |s| s.counters.media_bytes_written += 1000),
            ("read-energy", |s| s.counters.row_activations += 1),
            ("write-energy", |s| s.write_energy = Energy::femtojoule(1)),
            ("write-energy", |s| s.write_energy = s.write_energy.times(100)),
            ("read-latency", |s| {
                s.read_latency = Distribution::default();
                (0..3).for_each(|_| s.read_latency.record(1));
                s.counters.read_latency_cycles_sum = 3;
            }),
            ("latencies", |s| s.counters.committed_transactions += 1),
            ("latencies", |s| s.counters.read_latency_cycles_sum += 1),
            ("commit-latency", |s| s.last_issue_latency.record(100_000)),
            ("commit-latency", |s| {
                s.last_issue_latency = Distribution::default();
                (0..2).for_each(|_| s.last_issue_latency.record(1));
            }),
            ("cycles", |s| s.core_instructions[0] += 1),
        ];
        for (number, (law, make_wrong)) in wrong.into_iter().enumerate() {
            let mut stats = stats();
            make_wrong(&mut stats);
            let broken = laws().check_run(&stats, UNDER_WAY).expect_err(law);
            assert_eq!(broken.law, law, "{number}: {broken}");
        }
    }

    #[test]
    fn what_is_under_way_is_part_of_the_balance() {
        for wrong in [
            UnderWay { fills: 0, ..UNDER_WAY },
            UnderWay { reads_queued: 0, ..UNDER_WAY },
            UnderWay { reads_in_service: 0, ..UNDER_WAY },
            UnderWay { writes_queued: 0, ..UNDER_WAY },
        ] {
            laws().check_run(&stats(), wrong).expect_err("something is nowhere");
        }
    }

    /// A window may begin with requests under way, which end in it.
    #[test]
    fn changes_keep_the_laws_of_any_two_instants() {
        let (start, end) = (Books::of(&stats(), UNDER_WAY), {
            let mut stats = stats();
            let c = &mut stats.counters;
            (c.reads_checked, c.reads_served, c.writes_served) = (2, 5, 3);
            c.pm_buffer_read_hits = 2;
            for _ in 0..2 {
                stats.read_latency.record(50_000);
                stats.counters.read_latency_cycles_sum += 50_000;
            }
            Books::of(&stats, UnderWay::default())
        });
        assert_eq!(laws().check_cores(&start, &end), Ok(()));
        assert_eq!(laws().check_memory(&start, &end), Ok(()));
    }

    #[test]
    fn an_error_names_the_law_and_both_numbers() {
        let mut stats = stats();
        stats.counters.llc_misses += 1;
        stats.counters.llc_hits -= 1;
        let broken = laws().check_run(&stats, UNDER_WAY).expect_err("a miss too many");
        assert_eq!(
            broken.to_string(),
            "law of conservation `llc-misses` is broken: llc_misses is 4, and should be fills and dram_fills, which is 3"
        );
    }
}
