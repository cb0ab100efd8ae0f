//! Campaigns of the adversary on real designs, on several host threads.
//!
//! Bug class: what a campaign gives depends on threads, on their pace, or on where it was interrupted.

use std::thread;
use std::time::{Duration, Instant};

use graven::lab::campaign::{AdversaryCampaign, AdversaryReport, AdversaryRequest, Found};
use graven::lab::minimise::{End, RUNS};

use crate::common::registry;

fn request(designs: &[&str], seeds: u64) -> AdversaryRequest {
    AdversaryRequest {
        designs: designs.iter().map(|&name| name.into()).collect(),
        seeds,
        first_seed: 1,
        mutant: None,
        settings: Vec::new(),
        draws: Vec::new(),
        violations_max: 1,
        minimise: None,
    }
}

fn prepared(request: &AdversaryRequest, state: Option<&str>) -> AdversaryCampaign<'static> {
    AdversaryCampaign::new(registry(), request.clone(), state).unwrap_or_else(|e| panic!("{e}"))
}

fn no_clock() -> Duration {
    Duration::ZERO
}

fn reports(request: &AdversaryRequest, workers: usize) -> Vec<AdversaryReport> {
    let campaign = prepared(request, None);
    campaign.run(workers, &no_clock);
    campaign.reports()
}

#[test]
fn reports_are_the_same_on_any_number_of_workers() {
    let request = request(&["undo-clwb", "silo-literal"], 300);
    let alone = reports(&request, 1);
    let [sound, literal] = &alone[..] else { panic!("two designs: {alone:?}") };
    assert_eq!((sound.next_seed, sound.violations.len()), (301, 0));
    assert!(sound.sound && sound.recoveries > 300 && sound.covered["steal"] > 0);
    assert_eq!(literal.violations.len(), 1);
    assert_eq!(literal.violations[0].seed, Some(literal.next_seed - 1));
    assert_eq!(reports(&request, 3), alone);
}

/// A chunk whose violation is being minimised is interrupted: its program would depend on the time.
#[test]
fn an_interrupted_campaign_goes_on_to_the_same_end_also_from_a_minimisation() {
    let request = request(&["silo-literal", "osp-literal"], 300);
    let whole = reports(&request, 2);
    let mut interrupted = 0;
    for delay_us in (0..10).map(|n| 1000 * n) {
        let campaign = prepared(&request, None);
        let state = thread::scope(|scope| {
            scope.spawn(|| campaign.run(2, &no_clock));
            let started = Instant::now();
            loop {
                let events = campaign.wait(Duration::from_micros(100));
                if events.ended || events.progress.minimising > 0 {
                    break;
                }
                assert!(started.elapsed() < Duration::from_secs(60), "nothing is minimised");
            }
            thread::sleep(Duration::from_micros(delay_us));
            campaign.cancel();
            while !campaign.wait(Duration::from_secs(1)).ended {}
            campaign.state()
        });
        for report in campaign.reports() {
            assert!(whole.contains(&report), "after {delay_us} us: {report:?}");
        }
        interrupted += usize::from(campaign.reports().len() < whole.len());
        let again = prepared(&request, Some(&state));
        again.run(2, &no_clock);
        assert_eq!(again.reports(), whole, "interrupted after {delay_us} us");
    }
    assert!(interrupted > 0, "never interrupted in time");
}

/// A campaign on one worker, with all that is found in the order in which it is told.
fn told(request: &AdversaryRequest) -> (Vec<Found>, Vec<AdversaryReport>) {
    let campaign = prepared(request, None);
    let mut found = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| campaign.run(1, &no_clock));
        loop {
            let events = campaign.wait(Duration::from_micros(100));
            // What a chunk minimises was told before, or is told now.
            assert!(
                events.progress.minimising == 0 || !(found.is_empty() && events.found.is_empty())
            );
            found.extend(events.found);
            if events.ended {
                break;
            }
        }
    });
    (found, campaign.reports())
}

/// Bug class: what was found is told when its program is minimised, minutes later, or at the end.
#[test]
fn a_violation_is_told_with_its_seed_before_its_program_is_minimised() {
    let (found, reports) = told(&request(&["silo-literal", "osp-literal"], 300));
    let seeds = reports.iter().map(|report| (report.design.clone(), report.violations[0].seed));
    for (design, seed) in seeds {
        let of_it: Vec<&Found> = found.iter().filter(|found| found.design == design).collect();
        let [found] = of_it[..] else { panic!("{design}: {of_it:?}") };
        let seed = format!("(seed {}, crash point ", seed.expect("of a schedule"));
        assert!(found.what.contains(&seed), "{found:?}");
    }
}

/// Bug class: minimising has no limit that can be set, or gives something else than the smallest program until then.
#[test]
fn minimising_ends_at_its_limit_or_is_left_out() {
    let in_runs = |minimise: Option<u32>, workers: usize| {
        let request = AdversaryRequest { minimise, ..request(&["silo-literal"], 300) };
        let mut reports = reports(&request, workers);
        reports.swap_remove(0).violations.swap_remove(0)
    };
    let steps = |replay: &Option<String>| replay.as_ref().expect("a program").lines().count();
    let least = in_runs(None, 1);
    let effort = least.minimised.expect("it is minimised");
    assert!(effort.ended == End::Least && effort.runs < RUNS, "{effort:?}");
    assert_eq!(in_runs(Some(effort.runs + 1), 1), least);
    let limited = in_runs(Some(20), 1);
    let effort = limited.minimised.expect("it is minimised");
    assert_eq!((effort.ended, effort.runs), (End::Limit, 20));
    assert_eq!(in_runs(Some(20), 2), limited);
    let drawn = in_runs(Some(0), 1);
    assert_eq!((drawn.minimised, drawn.seed), (None, least.seed));
    let (least, limited, drawn) =
        (steps(&least.replay), steps(&limited.replay), steps(&drawn.replay));
    assert!(least < limited && limited < drawn, "{least}, {limited}, {drawn} lines");
}

/// Bug class: a refusal names a value that was drawn as one that the user has set.
#[test]
fn a_refusal_says_of_drawn_values_that_they_were_drawn() {
    let refusal = |design: &str, settings: &[(&str, &str)]| {
        let settings = settings.iter().map(|&(key, value)| (key.into(), value.into())).collect();
        let request = AdversaryRequest { settings, ..request(&[design], 250) };
        reports(&request, 2).swap_remove(0).refusal.expect("some schedules are refused")
    };
    // Region and areas are set, and large enough for one thread: that there are more was drawn.
    let one_thread = [("pm.log_region_bytes", "128 KB"), ("silo.log_bytes_per_thread", "64 KB")];
    let region = refusal("silo", &one_thread);
    assert!(region.starts_with("seed ") && region.contains(": drawn threads = "), "{region}");
    assert!(region.contains("(--set): ") && !region.contains("--set: "), "{region}");
    // A run that stops names a key. What is set is not drawn, whatever was drawn of it.
    let pages = refusal("osp", &[("osp.shadow_pages", "3")]);
    assert!(!pages.contains("drawn: osp.shadow_pages"), "{pages}");
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_runs() {
    let said = |change: &dyn Fn(&mut AdversaryRequest)| {
        let mut request = request(&["silo"], 10);
        change(&mut request);
        let campaign = AdversaryCampaign::new(registry(), request, None);
        campaign.err().expect("refused").to_string()
    };
    assert!(said(&|r| r.designs.push("nope".into())).starts_with("unknown design `nope`"));
    assert!(said(&|r| r.mutant = Some("nope".into())).starts_with("unknown mutant `nope`"));
    let set = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    assert!(said(&|r| r.settings = set("pm.nope", "1")).contains("unknown key `pm.nope`"));
    assert!(said(&|r| r.settings = set("pm.banks", "-1")).contains("`pm.banks` = "));
    assert_eq!(said(&|r| r.seeds = 0), "seeds: 0 is not allowed; at least 1");
    let another = AdversaryCampaign::new(registry(), request(&["silo"], 10), Some("{}"));
    let error = another.err().expect("no state").to_string();
    assert!(
        error.starts_with("it is not the state of a campaign (missing field `format`"),
        "{error}"
    );
}
