//! The scheduler, on chunks that are arithmetic.
//!
//! Bug class: what a campaign gives depends on the number of threads, on their pace, or on where it was interrupted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::super::chunks::testing::{chunk_report, nothing, request};
use super::*;

/// The events of some chunks.
#[derive(Clone, Default)]
struct Arithmetic {
    /// Seeds that are violated, of all designs.
    violated: Vec<u64>,
    violations_max: usize,
    /// Chunks that panic, by design and number.
    panics: Vec<(usize, u64)>,
    /// Chunks that take until they are cancelled.
    stuck: Vec<(usize, u64)>,
    /// Chunks that take a while, so that later ones end before them.
    slow: Vec<(usize, u64)>,
    /// Chunks that have begun, in order.
    begun: Arc<Mutex<Vec<(usize, u64)>>>,
    ended: Arc<AtomicU64>,
}

/// Longest that a chunk waits for others.
const PATIENCE: Duration = Duration::from_secs(60);

impl RunChunk for Arithmetic {
    fn run(
        &self,
        design: usize,
        chunk: Chunk,
        control: &Arc<Control>,
    ) -> Result<ChunkReport, SimError> {
        let place = (design, chunk.index);
        self.begun.lock().expect("no test panics with it").push(place);
        assert!(!self.panics.contains(&place), "chunk {place:?} is odd");
        let started = Instant::now();
        if self.slow.contains(&place) {
            thread::sleep(Duration::from_millis(20));
        }
        while self.stuck.contains(&place) {
            if control.is_cancelled() {
                return Err(SimError::Cancelled);
            }
            assert!(started.elapsed() < PATIENCE, "nobody cancels chunk {place:?}");
            control.report(7);
            thread::sleep(Duration::from_millis(1));
        }
        self.ended.fetch_add(1, Relaxed);
        Ok(chunk_report(chunk, &self.violated, self.violations_max))
    }
}

fn campaign(
    designs: &[&str],
    seeds: u64,
    arithmetic: &Arithmetic,
    state: Option<&str>,
) -> AdversaryCampaign<'static> {
    let request = request(designs, seeds, arithmetic.violations_max);
    let nothing = designs.iter().map(|name| nothing(name, &request)).collect();
    let campaign =
        AdversaryCampaign::prepared(request, nothing, state, Box::new(arithmetic.clone()));
    campaign.unwrap_or_else(|e| panic!("{e}"))
}

fn no_clock() -> Duration {
    Duration::ZERO
}

/// Two designs, 2,500 schedules each, on some workers, to the end.
fn run(arithmetic: &Arithmetic, workers: usize) -> (Vec<AdversaryReport>, Vec<Failure>) {
    let campaign = campaign(&["a", "b"], 2500, arithmetic, None);
    campaign.run(workers, &no_clock);
    let events = campaign.wait(Duration::ZERO);
    assert!(events.ended && events.progress.running.is_empty());
    assert_eq!(events.progress.schedules_done, events.progress.schedules);
    (campaign.reports(), events.failures)
}

#[test]
fn reports_are_the_same_on_any_number_of_workers() {
    for (violated, violations_max) in
        [(vec![], 1), (vec![260, 300, 990], 1), (vec![260, 300, 740, 1990, 1991], 3)]
    {
        let arithmetic = Arithmetic { violated, violations_max, ..Arithmetic::default() };
        let (alone, failures) = run(&arithmetic, 1);
        assert_eq!((alone.len(), failures), (2, Vec::new()));
        let kept: Vec<u64> = alone[0].violations.iter().filter_map(|v| v.seed).collect();
        assert_eq!(kept, arithmetic.violated[..kept.len()], "those of the lowest seeds");
        assert_eq!(kept.len(), violations_max.min(arithmetic.violated.len()));
        for workers in [2, 3, 16] {
            let slow = vec![(0, 0), (1, 1)];
            let arithmetic = Arithmetic { slow, ..arithmetic.clone() };
            assert_eq!(run(&arithmetic, workers).0, alone, "{workers} workers");
        }
    }
}

#[test]
fn all_designs_get_on() {
    let arithmetic = Arithmetic { violations_max: 1, ..Arithmetic::default() };
    run(&arithmetic, 1);
    let begun = arithmetic.begun.lock().expect("it has ended").clone();
    let in_turn: Vec<(usize, u64)> = (0..10).flat_map(|n| [(0, n), (1, n)]).collect();
    assert_eq!(begun, in_turn);
}

#[test]
fn chunks_that_are_not_needed_are_cancelled() {
    // Chunk 2 has the violation; those from 3 on would run forever.
    let stuck = (3..10).map(|index| (0, index)).collect();
    let arithmetic =
        Arithmetic { violated: vec![600], violations_max: 1, stuck, ..Arithmetic::default() };
    let campaign = campaign(&["a"], 2500, &arithmetic, None);
    campaign.run(8, &no_clock);
    let [report] = &campaign.reports()[..] else { panic!("one design") };
    assert_eq!((report.next_seed, report.violations.len()), (601, 1));
    assert!(campaign.wait(Duration::ZERO).ended);
}

#[test]
fn a_chunk_that_panics_is_a_failure_of_its_design() {
    for workers in [1, 4] {
        let arithmetic =
            Arithmetic { violations_max: 1, panics: vec![(0, 2), (0, 5)], ..Arithmetic::default() };
        let (reports, failures) = run(&arithmetic, workers);
        let schedules: Vec<u64> = reports.iter().map(AdversaryReport::schedules).collect();
        assert_eq!(schedules, [500, 2500], "what came before is kept");
        let message = "internal error of the engine: chunk (0, 2) is odd".to_owned();
        assert_eq!(failures, [Failure { design: "a".into(), message }]);
        // A later chunk's failure is none if the design ends before.
        let arithmetic = Arithmetic { violated: vec![300], ..arithmetic };
        let (reports, failures) = run(&arithmetic, workers);
        assert_eq!((reports[0].next_seed, failures), (301, Vec::new()));
    }
}

/// Interrupts a campaign once this number of chunks has ended; its events until then, and its state.
fn interrupted(arithmetic: &Arithmetic, workers: usize, chunks: u64) -> (Events, String) {
    let campaign = campaign(&["a", "b"], 2500, arithmetic, None);
    thread::scope(|scope| {
        scope.spawn(|| campaign.run(workers, &no_clock));
        let started = Instant::now();
        while arithmetic.ended.load(Relaxed) < chunks
            || campaign.wait(Duration::ZERO).progress.running.is_empty()
        {
            assert!(started.elapsed() < PATIENCE, "it does not get so far");
            assert!(!campaign.wait(Duration::from_millis(1)).ended);
        }
        campaign.cancel();
        let mut events = campaign.wait(PATIENCE);
        while !events.ended {
            events = campaign.wait(PATIENCE);
        }
        (events, campaign.state())
    })
}

#[test]
fn an_interrupted_campaign_goes_on_to_the_same_end() {
    let whole = Arithmetic { violated: vec![2200], violations_max: 2, ..Arithmetic::default() };
    let (reports, _) = run(&whole, 1);
    for (workers, stuck, done) in [(1, vec![(1, 3)], 7), (3, vec![(0, 3), (1, 0)], 12)] {
        let first = Arithmetic { stuck, ended: Arc::default(), ..whole.clone() };
        let (events, state) = interrupted(&first, workers, done);
        let progress = &events.progress;
        assert!(progress.schedules_done < progress.schedules, "{progress:?}");
        let again = campaign(&["a", "b"], 2500, &whole, Some(&state));
        let before = again.wait(Duration::ZERO);
        assert!(!before.ended && before.progress.schedules_done > 0);
        assert_eq!(before.progress.schedules_done, progress.schedules_done);
        assert_eq!(before.grown, again.reports(), "what it goes on from is told");
        again.run(2, &no_clock);
        assert_eq!(again.reports(), reports);
        // A finished one stays finished.
        let mut finished = campaign(&["a", "b"], 2500, &whole, Some(&again.state()));
        finished.runner = Box::new(Arithmetic { panics: vec![(0, 9), (1, 9)], ..whole.clone() });
        finished.run(2, &no_clock);
        assert_eq!(finished.state(), again.state());
    }
}

#[test]
fn a_chunk_that_is_cancelled_counts_as_not_done() {
    let stuck = vec![(0, 2), (1, 2)];
    let arithmetic = Arithmetic { stuck, violations_max: 1, ..Arithmetic::default() };
    let (events, state) = interrupted(&arithmetic, 2, 4);
    assert_eq!(events.progress.schedules_done, 1000);
    let again = campaign(&["a", "b"], 2500, &arithmetic, Some(&state));
    assert!(again.reports().iter().all(|report| report.schedules() == 500));
    assert_eq!(events.failures, Vec::new());
}

#[test]
fn what_runs_is_told_while_it_runs() {
    let stuck = vec![(0, 2), (1, 1)];
    let arithmetic = Arithmetic { stuck, violations_max: 1, ..Arithmetic::default() };
    let campaign = campaign(&["a", "b"], 2500, &arithmetic, None);
    thread::scope(|scope| {
        scope.spawn(|| campaign.run(2, &no_clock));
        let (started, mut grown) = (Instant::now(), Vec::new());
        let progress = loop {
            let events = campaign.wait(Duration::from_millis(1));
            grown.extend(events.grown);
            let told = events.progress.schedules_done + events.progress.schedules_partial;
            if told == 764 && events.progress.running.len() == 2 {
                break events.progress;
            }
            assert!(started.elapsed() < PATIENCE && !events.ended);
        };
        campaign.cancel();
        assert_eq!((progress.schedules, progress.minimising), (5000, 0));
        // A chunk that runs counts with its schedules until now.
        assert_eq!(progress.schedules_partial, 14);
        let of = |(design, schedules_done): (&str, u64)| DesignProgress {
            design: design.into(),
            schedules_done,
            schedules: 2500,
        };
        let mut running = progress.running;
        running.sort_by(|one, other| one.design.cmp(&other.design));
        assert_eq!(running, [("a", 507), ("b", 257)].map(of));
        let schedules = |name: &str| {
            let of_it = grown.iter().filter(|report| report.design == name);
            of_it.map(AdversaryReport::schedules).max()
        };
        assert_eq!((schedules("a"), schedules("b")), (Some(500), Some(250)));
    });
}

#[test]
fn a_campaign_that_is_cancelled_before_it_runs_runs_nothing() {
    let arithmetic = Arithmetic { violations_max: 1, ..Arithmetic::default() };
    let campaign = campaign(&["a"], 2500, &arithmetic, None);
    campaign.cancel();
    campaign.run(2, &no_clock);
    assert!(campaign.reports().is_empty() && campaign.wait(Duration::ZERO).ended);
    assert!(arithmetic.begun.lock().expect("it has ended").is_empty());
    // A second run is a mistake of the caller's, and spoils nothing.
    assert!(catch_unwind(AssertUnwindSafe(|| campaign.run(2, &no_clock))).is_err());
    assert!(campaign.wait(Duration::ZERO).ended);
}

#[test]
fn host_time_is_added_up() {
    let ticks = AtomicU64::new(0);
    let clock = || Duration::from_micros(500 * ticks.fetch_add(1, Relaxed) * 3);
    let arithmetic = Arithmetic { violations_max: 1, ..Arithmetic::default() };
    let campaign = campaign(&["a"], 1000, &arithmetic, None);
    campaign.run(1, &clock);
    assert_eq!(campaign.reports()[0].host_time_ms, 4);
    let text = serde_json::to_string(&campaign.reports()[0]).expect("texts and numbers");
    assert!(text.ends_with("\"seconds\":0.004}"), "{text}");
}

/// Bug class: a broken invariant leaves a front end waiting, or is taken for a result.
#[test]
fn a_broken_invariant_is_told_to_all() {
    let arithmetic = Arithmetic { violations_max: 1, ..Arithmetic::default() };
    let campaign = campaign(&["a", "b"], 2500, &arithmetic, None);
    let broken = || panic!("a clock that does not go");
    assert!(catch_unwind(AssertUnwindSafe(|| campaign.run(3, &broken))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| campaign.wait(PATIENCE))).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| campaign.state())).is_err());
}
