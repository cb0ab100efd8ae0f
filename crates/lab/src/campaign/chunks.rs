//! A design's chunks: which is to run next, and the sum of the first ones.
//!
//! Chunks end in any order and are added up in theirs; those that have ended early wait. The chunk with which there are
//! violations enough is the last that is needed, and a chunk that failed and those after it are not added: that is the
//! limit, and it only ever sinks. So what is known in the end depends on the request alone.

use std::collections::BTreeMap;

use super::request::AdversaryRequest;
use super::totals::{AdversaryReport, ChunkReport};

/// Chunks that may have begun beyond those that are added up: a bound of what waits.
const AHEAD_MAX: u64 = 256;

/// The totals of a design.
pub(super) struct ChunkAccumulator {
    /// Chunks that were asked for.
    chunks: u64,
    violations_max: usize,
    /// The sum of the chunks before `next`.
    report: AdversaryReport,
    next: u64,
    /// The first chunk that has not begun.
    begun: u64,
    /// No chunk from this one on is needed.
    limit: u64,
    /// Chunks that have ended before an earlier one has.
    waiting: BTreeMap<u64, ChunkReport>,
    /// Why the chunk at the limit failed.
    failure: Option<String>,
    /// The report has grown since it was last asked for.
    has_grown: bool,
}

impl ChunkAccumulator {
    /// Continues from a report, of no schedules at first.
    pub fn new(request: &AdversaryRequest, report: AdversaryReport) -> ChunkAccumulator {
        assert_eq!((report.first_seed, report.seeds), (request.first_seed, request.seeds));
        let next = request.chunks_in(report.schedules());
        let is_enough = report.violations.len() >= request.violations_max;
        let limit = if is_enough { next } else { request.chunks() };
        let chunks = ChunkAccumulator {
            chunks: request.chunks(),
            violations_max: request.violations_max,
            has_grown: report.schedules() > 0,
            report,
            next,
            begun: next,
            limit,
            waiting: BTreeMap::new(),
            failure: None,
        };
        chunks.check();
        chunks
    }

    /// Checks the invariants.
    fn check(&self) {
        assert!(self.next <= self.limit, "chunk {} above {}", self.next, self.limit);
        assert!(self.limit <= self.chunks, "limit {} of {}", self.limit, self.chunks);
        assert!(self.next <= self.begun, "a chunk is added before it has begun");
        assert!(self.begun <= self.next + AHEAD_MAX, "chunk {} is too far ahead", self.begun);
        if let (Some(first), Some(last)) =
            (self.waiting.first_key_value(), self.waiting.last_key_value())
        {
            assert!(*first.0 > self.next, "chunk {} waits for nothing", first.0);
            assert!(*last.0 < self.limit.min(self.begun), "chunk {} is not needed", last.0);
        }
        assert!(self.report.violations.len() <= self.violations_max);
        assert!(self.failure.is_none() || self.limit < self.chunks, "a failure is a limit");
    }

    /// The chunk that is to begin next, if any may begin now.
    pub fn startable(&self) -> Option<u64> {
        let may = self.begun < self.limit && self.begun < self.next + AHEAD_MAX;
        may.then_some(self.begun)
    }

    /// Begins it.
    pub fn begin(&mut self, index: u64) {
        assert_eq!(self.startable(), Some(index), "chunks begin in order");
        self.begun += 1;
        self.check();
    }

    /// Tells whether more can begin only once an earlier one has ended.
    pub fn is_held_up(&self) -> bool {
        self.begun < self.limit && self.startable().is_none()
    }

    /// Tells whether no chunk is needed any more.
    pub fn is_done(&self) -> bool {
        self.next == self.limit
    }

    /// Chunks that have not begun and are needed, as far as is known.
    pub fn left(&self) -> u64 {
        self.limit.saturating_sub(self.begun)
    }

    /// Tells whether a chunk is still needed.
    pub fn needs(&self, index: u64) -> bool {
        index < self.limit
    }

    /// Schedules that need no more work.
    pub fn schedules(&self) -> u64 {
        if self.is_done() {
            return self.report.seeds;
        }
        let waiting = self.waiting.values().map(ChunkReport::schedules);
        self.report.schedules() + waiting.sum::<u64>()
    }

    /// The report so far.
    pub fn report(&self) -> &AdversaryReport {
        &self.report
    }

    /// Why it ended before its end, if an invariant was broken.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// The report, if it has grown since the last time.
    pub fn take_grown(&mut self) -> Option<&AdversaryReport> {
        std::mem::take(&mut self.has_grown).then_some(&self.report)
    }

    /// Takes in a chunk that has ended.
    pub fn add(&mut self, index: u64, chunk: ChunkReport) {
        assert!((self.next..self.begun).contains(&index), "chunk {index} does not run");
        if !self.needs(index) {
            return;
        }
        let twice = self.waiting.insert(index, chunk);
        assert!(twice.is_none(), "chunk {index} has ended twice");
        self.bound();
        while let Some(chunk) = self.waiting.remove(&self.next) {
            self.report.add(chunk, self.violations_max);
            self.next += 1;
            self.has_grown = true;
        }
        self.check();
    }

    /// Takes in a chunk that has failed.
    pub fn fail(&mut self, index: u64, why: String) {
        assert!((self.next..self.begun).contains(&index), "chunk {index} does not run");
        if self.needs(index) {
            self.lower(index);
            self.failure = Some(why);
        }
        self.check();
    }

    /// Nothing runs any more: what waits for a chunk that was cancelled counts as not done, either.
    pub fn settle(&mut self) {
        self.waiting.clear();
        self.check();
    }

    /// Finds the chunk with which there are violations enough.
    fn bound(&mut self) {
        let mut found = self.report.violations.len();
        assert!(found < self.violations_max, "a chunk was run that is not needed");
        let last = self.waiting.iter().find_map(|(index, chunk)| {
            found += chunk.violations.len();
            (found >= self.violations_max).then_some(*index)
        });
        if let Some(last) = last {
            self.lower(last + 1);
        }
    }

    /// Lowers the limit; a failure from there on is of a chunk that is not needed.
    fn lower(&mut self, limit: u64) {
        if limit <= self.limit {
            self.limit = limit;
            self.failure = None;
            drop(self.waiting.split_off(&limit));
        }
        assert!(self.next <= self.limit);
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::campaign::ViolationRecord;
    use crate::campaign::request::Chunk;
    use graven_machine::design::{DesignInfo, Named};
    use graven_machine::registry::Registry;

    /// A design that is never built.
    const DESIGN: DesignInfo = DesignInfo {
        cover_points: &[Named { name: "odd-seed", summary: "a schedule's seed was odd" }],
        ..DesignInfo::DEFAULT
    };

    /// A request of designs that are known by name only.
    pub fn request(designs: &[&str], seeds: u64, violations_max: usize) -> AdversaryRequest {
        AdversaryRequest {
            designs: designs.iter().map(|&name| name.into()).collect(),
            seeds,
            first_seed: 8,
            mutant: None,
            settings: vec![("pm.banks".into(), "2".into())],
            draws: Vec::new(),
            violations_max,
            minimise: None,
        }
    }

    /// A report of no schedules.
    pub fn nothing(design: &str, request: &AdversaryRequest) -> AdversaryReport {
        let config = Registry::new().defaults();
        AdversaryReport { design: design.into(), ..AdversaryReport::new(&DESIGN, &config, request) }
    }

    /// The report of a chunk by arithmetic: each schedule has as many crash points as its seed has ones, and is
    /// violated if it is among `violated`.
    pub fn chunk_report(chunk: Chunk, violated: &[u64], violations_max: usize) -> ChunkReport {
        let mut report = ChunkReport { first_seed: chunk.first_seed, ..ChunkReport::default() };
        report.covered = vec![("odd-seed", 0)];
        for seed in chunk.first_seed..chunk.end_seed() {
            let points = u64::from(seed.count_ones());
            report.next_seed = seed + 1;
            report.crash_points += points;
            report.recoveries += points;
            report.failure_modes.plain += points;
            report.runs += 1;
            report.covered[0].1 += seed % 2;
            if violated.contains(&seed) {
                report.violations.push(violation(seed));
            }
            if report.violations.len() == violations_max {
                break;
            }
        }
        report
    }

    fn violation(seed: u64) -> ViolationRecord {
        ViolationRecord {
            what: format!("word {seed:#x} is lost"),
            point: seed,
            failure_mode: "plain".into(),
            cycle: 10 * seed,
            seed: Some(seed),
            timeline: Vec::new(),
            left_out: 0,
            replay: Some(format!("graven litmus 1\ntitle \"{seed}\"\n")),
            minimised: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{chunk_report, nothing, request};
    use super::*;

    /// An accumulator of 2,000 schedules: 8 chunks.
    fn accumulator(violations_max: usize) -> (AdversaryRequest, ChunkAccumulator) {
        let request = request(&["a"], 2000, violations_max);
        let chunks = ChunkAccumulator::new(&request, nothing("a", &request));
        (request, chunks)
    }

    fn begin(chunks: &mut ChunkAccumulator, count: u64) {
        for _ in 0..count {
            let index = chunks.startable().expect("one may begin");
            chunks.begin(index);
        }
    }

    /// Adds chunks in an order, each once.
    fn add(
        chunks: &mut ChunkAccumulator,
        request: &AdversaryRequest,
        order: &[u64],
        violated: &[u64],
    ) {
        for &index in order {
            let max = request.violations_max;
            chunks.add(index, chunk_report(request.chunk(index), violated, max));
        }
    }

    #[test]
    fn the_sum_is_the_same_in_any_order() {
        let sum = |order: &[u64], violated: &[u64]| {
            let (request, mut chunks) = accumulator(3);
            begin(&mut chunks, 8);
            add(&mut chunks, &request, order, violated);
            assert!(chunks.is_done() && chunks.waiting.is_empty());
            assert_eq!(chunks.schedules(), 2000);
            chunks.report
        };
        for violated in [&[][..], &[300], &[300, 301, 1900], &[300, 900, 1200, 1201, 1300, 1900]] {
            let in_order = sum(&[0, 1, 2, 3, 4, 5, 6, 7], violated);
            assert_eq!(sum(&[7, 6, 5, 4, 3, 2, 1, 0], violated), in_order);
            assert_eq!(sum(&[3, 0, 7, 1, 5, 4, 2, 6], violated), in_order);
            let seeds: Vec<u64> = in_order.violations.iter().filter_map(|v| v.seed).collect();
            assert_eq!(seeds, violated[..violated.len().min(3)]);
        }
    }

    #[test]
    fn a_chunk_waits_for_those_before_it() {
        let (request, mut chunks) = accumulator(1);
        begin(&mut chunks, 3);
        add(&mut chunks, &request, &[2], &[]);
        assert_eq!((chunks.report.schedules(), chunks.schedules()), (0, 250));
        assert!(chunks.take_grown().is_none());
        add(&mut chunks, &request, &[0], &[]);
        assert_eq!((chunks.report.schedules(), chunks.schedules()), (250, 500));
        assert_eq!(chunks.take_grown().map(AdversaryReport::schedules), Some(250));
        assert!(chunks.take_grown().is_none());
        add(&mut chunks, &request, &[1], &[]);
        assert_eq!(chunks.take_grown().map(AdversaryReport::schedules), Some(750));
    }

    #[test]
    fn after_violations_enough_no_chunk_is_needed() {
        let (request, mut chunks) = accumulator(1);
        begin(&mut chunks, 6);
        // 8 is the first seed: 800 is in chunk 3, 1,100 in chunk 4.
        add(&mut chunks, &request, &[4], &[800, 1100]);
        assert!(chunks.needs(4) && !chunks.needs(5) && chunks.startable().is_none());
        add(&mut chunks, &request, &[5, 3], &[800, 1100]);
        assert!(chunks.needs(3) && !chunks.needs(4) && chunks.waiting.len() == 1);
        add(&mut chunks, &request, &[0, 1, 2], &[]);
        assert!(chunks.is_done());
        assert_eq!(chunks.report.next_seed, 801);
    }

    #[test]
    fn a_failure_counts_unless_its_chunk_is_not_needed() {
        let (request, mut chunks) = accumulator(1);
        begin(&mut chunks, 4);
        chunks.fail(3, "third".into());
        chunks.fail(2, "second".into());
        chunks.fail(3, "again".into());
        assert_eq!((chunks.failure(), chunks.limit), (Some("second"), 2));
        add(&mut chunks, &request, &[1], &[300]);
        assert_eq!((chunks.failure(), chunks.limit), (None, 2));
        add(&mut chunks, &request, &[0], &[]);
        assert!(chunks.is_done() && chunks.report.next_seed == 301);
    }

    #[test]
    fn no_more_than_so_many_wait() {
        let request = request(&["a"], 1 << 30, 1);
        let mut chunks = ChunkAccumulator::new(&request, nothing("a", &request));
        begin(&mut chunks, AHEAD_MAX);
        assert!(chunks.startable().is_none() && chunks.is_held_up());
        let order: Vec<u64> = (1..AHEAD_MAX).rev().collect();
        add(&mut chunks, &request, &order, &[]);
        assert_eq!(chunks.waiting.len() as u64, AHEAD_MAX - 1);
        assert!(chunks.is_held_up());
        add(&mut chunks, &request, &[0], &[]);
        assert_eq!((chunks.waiting.len(), chunks.startable()), (0, Some(AHEAD_MAX)));
    }

    #[test]
    fn a_sum_goes_on_where_it_was() {
        let (request, mut chunks) = accumulator(2);
        begin(&mut chunks, 8);
        add(&mut chunks, &request, &[0, 1, 2], &[300]);
        let mut again = ChunkAccumulator::new(&request, chunks.report.clone());
        assert_eq!((again.startable(), again.schedules()), (Some(3), 750));
        begin(&mut again, 5);
        for chunks in [&mut chunks, &mut again] {
            add(chunks, &request, &[3, 4], &[800, 1100]);
            assert!(chunks.is_done());
        }
        assert_eq!(again.report, chunks.report);
        let done = ChunkAccumulator::new(&request, again.report);
        assert!(done.is_done() && done.startable().is_none() && done.schedules() == 2000);
    }

    #[test]
    #[should_panic(expected = "chunk 1 does not run")]
    fn a_chunk_that_has_not_begun_cannot_end() {
        let (request, mut chunks) = accumulator(1);
        begin(&mut chunks, 1);
        add(&mut chunks, &request, &[1], &[]);
    }

    #[test]
    #[should_panic(expected = "chunk 2 has ended twice")]
    fn a_chunk_cannot_end_twice() {
        let (request, mut chunks) = accumulator(1);
        begin(&mut chunks, 3);
        add(&mut chunks, &request, &[2, 2], &[]);
    }
}
