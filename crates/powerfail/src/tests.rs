//! Explorations of small stories, with judges that are functions.

use graven_base::control::Control;
use graven_base::memory::{Addr, Image};
use graven_persistency::happening::{Fence, Path, Persist};
use graven_persistency::history::History;
use graven_persistency::model::{MODELS, Model};
use graven_persistency::promise::Judge as _;
use proptest::prelude::*;

use crate::candidate::{Candidate, Name};
use crate::choice::{Chooser, Keys};
use crate::explore::{End, Explorer, Options, Outcome};
use crate::frontier::{Cursor, Frontier, Rules};
use crate::judge::{Fault, Judge, Left, Verdict, Verdicts};
use crate::mend::{Mended, Repair, mend};
use crate::panel::Refusal;
use crate::points::Points;
use crate::story::{Event, EventId, Story, StoryFile, What};

use std::time::Duration;

/// A story, written event by event; each is a line of its own.
#[derive(Default)]
struct Written {
    story: Story,
    visible: Image,
}

impl Written {
    fn push(mut self, thread: u32, what: What) -> Written {
        let site = self.story.events.len() as u32;
        self.story.sites.resize(site as usize + 1, graven_trace::program::Site::default());
        let of = &mut self.story.sites[site as usize];
        of.address = u64::from(site);
        of.module = Some("/home/program".into());
        self.story.events.push(Event { thread, site, stack: 0, by_kernel: false, what });
        self
    }

    fn store(mut self, addr: u64, new: u64) -> Written {
        let (addr, path) = (Addr(addr), Path::Cached);
        let old = self.visible.store(addr, new);
        self.push(0, What::Store { addr, old, new, path, continues: false })
    }

    fn with(mut self, addr: u64, new: u64) -> Written {
        let (addr, path) = (Addr(addr), Path::Cached);
        let old = self.visible.store(addr, new);
        self.push(0, What::Store { addr, old, new, path, continues: true })
    }

    fn flush(self, addr: u64) -> Written {
        self.push(0, What::Persist(Persist::WriteBack(Addr(addr).line())))
    }

    fn fence(self) -> Written {
        self.push(0, What::Persist(Persist::Fence(Fence::Store)))
    }

    fn persist(self, addr: u64) -> Written {
        self.flush(addr).fence()
    }

    fn sync(self, start: u64, bytes: u64) -> Written {
        let before = self.story.events.len() as EventId;
        self.push(0, What::Synced { start, end: start + bytes, before })
    }
}

/// The question to a judge: words by their addresses, and lengths.
type Said = fn(&dyn Fn(u64) -> u64, &[u64]) -> bool;

/// A judge that is a function of words.
struct Words<F>(F);

impl<F: Fn(&dyn Fn(u64) -> u64, &[u64]) -> bool + Sync> Judge for Words<F> {
    fn judge(&self, _: usize, left: &Left<'_>) -> Verdict {
        let word = |addr: u64| left.image.load(Addr(addr));
        match (self.0)(&word, left.lengths) {
            true => Verdict::Good,
            false => Verdict::Bad(Fault { kind: "bad".into(), what: "bad".into() }),
        }
    }
}

fn model(name: &str) -> Rules {
    Rules::Processor(Model::find(name).expect("it exists"))
}

fn options(rules: Rules) -> Options {
    Options {
        rules,
        acknowledges: true,
        images: 100_000,
        time: Duration::from_secs(600),
        violations: 10,
        is_trial: false,
        seed: 1,
        workers: 2,
    }
}

fn explored(story: &Story, rules: Rules, judge: &dyn Judge) -> Result<(Outcome, Points), Refusal> {
    let control = Control::default();
    let points = Points::of(story, rules, judge.compares_states(), &control);
    let (options, verdicts) = (options(rules), Verdicts::default());
    let keys = Keys::of(story);
    let mut explorer = Explorer::new(
        (story, &points, &keys),
        &mut Image::new(),
        (judge, &verdicts),
        &options,
        &control,
    );
    Ok((explorer.run()?, points))
}

/// The missing and present stores of the violations, by their events.
fn violations(story: &Story, rules: Rules, judge: &dyn Judge) -> Vec<(Vec<u32>, Vec<u32>)> {
    let (outcome, _) = explored(story, rules, judge).expect("the judge judges");
    let of = outcome.found.into_iter();
    of.map(|found| (found.shrunk.missing, found.shrunk.present)).collect()
}

/// A value in one line, and a flag for it in another.
fn flagged(persists_value: bool) -> Story {
    let begun = Written::default().store(0, 7);
    let middle = if persists_value { begun.persist(0) } else { begun };
    middle.store(64, 1).persist(64).story
}

/// With the flag the value must be left.
fn says_so() -> Words<Said> {
    Words(|word, _| word(64) == 0 || word(0) == 7)
}

/// Bug class: an order that a program forgets is not found, or one that it keeps is blamed.
#[test]
fn a_forgotten_order_is_the_shortest_story() {
    for name in ["x86-adr", "x86-adr-amd"] {
        assert_eq!(
            violations(&flagged(false), model(name), &says_so()),
            [(vec![0], vec![1])],
            "{name}"
        );
        assert_eq!(violations(&flagged(true), model(name), &says_so()), [], "{name}");
    }
    // Caches that survive keep the order of stores.
    assert_eq!(violations(&flagged(false), model("x86-eadr"), &says_so()), []);
}

fn mended(story: &Story, rules: Rules, judge: &dyn Judge) -> Mended {
    let (outcome, points) = explored(story, rules, judge).expect("the judge judges");
    let found = &outcome.found;
    let shrunk = &found[found.len() - 1].shrunk;
    let (options, control) = (options(rules), Control::default());
    let keys = Keys::of(story);
    let judge = (judge, &Verdicts::default());
    let story = (story, &points, &keys);
    mend(story, &mut Image::new(), (shrunk, found), judge, &options, &control)
        .expect("the judge judges")
}

/// Bug class: a repair is told that was not tried, or that does not help.
#[test]
fn repairs_are_tried() {
    let rules = model("x86-adr");
    let found = mended(&flagged(false), rules, &says_so());
    assert_eq!((found.repair, found.helps), (Repair::FlushAndFence, true));
    let unfenced = Written::default().store(0, 7).flush(0).store(64, 1).persist(64).story;
    let found = mended(&unfenced, rules, &says_so());
    assert_eq!((found.repair, found.helps), (Repair::Fence, true));
    // The flag is stored first.
    let early = Written::default().store(64, 1).store(0, 7).persist(0).persist(64).story;
    let found = mended(&early, rules, &says_so());
    assert_eq!((found.repair, found.helps), (Repair::LaterStore, true));
    // Two lines that must change together.
    let both = Written::default().store(0, 1).store(64, 1).persist(0).persist(64).story;
    let together = Words(|word: &dyn Fn(u64) -> u64, _: &[u64]| word(0) == word(64));
    let found = mended(&both, rules, &together);
    assert_eq!((found.repair, found.helps), (Repair::Together, false));
    let page = Written::default().store(0, 7).store(4096, 1).sync(4096, 4096).story;
    let says = Words(|word: &dyn Fn(u64) -> u64, _: &[u64]| word(4096) == 0 || word(0) == 7);
    let found = mended(&page, Rules::PageCache { sector: 4096 }, &says);
    assert_eq!((found.repair, found.helps), (Repair::Sync, true));
}

/// Bug class: a violation that a kill leaves hides others, or makes their repairs useless.
#[test]
fn what_a_kill_leaves_is_apart() {
    // Word 128 is wrong for an instant; the order of 0 and 64 is forgotten.
    let begun = Written::default().store(128, 1).persist(128).store(128, 0).persist(128);
    let story = begun.store(0, 7).store(64, 1).persist(64).story;
    let judge: Words<Said> = Words(|word, _| word(128) == 0 && (word(64) == 0 || word(0) == 7));
    let rules = model("x86-adr");
    let found = violations(&story, rules, &judge);
    assert_eq!(found, [(vec![], vec![0]), (vec![6], vec![7])]);
    let mended = mended(&story, rules, &judge);
    assert_eq!((mended.repair, mended.helps), (Repair::FlushAndFence, true));
}

/// Bug class: the trial of a repair changes what the judge knows of the program.
#[test]
fn a_trial_teaches_the_judge_nothing() {
    let story = Written::default().push(0, What::Begins).store(0, 1).push(0, What::Ends).story;
    let judge = States(std::sync::Mutex::default());
    let found = mended(&story, model("x86-adr"), &judge);
    assert_eq!((found.repair, found.helps, found.before_end), (Repair::FlushAndFence, true, true));
    assert_eq!(*judge.0.lock().expect("no thread panics"), [0, 1]);
}

/// Bug class: parts of one instruction are left in order only.
#[test]
fn parts_of_an_instruction_are_left_in_any_order() {
    let story = Written::default().store(0, 1).with(8, 1).persist(0).story;
    let whole = Words(|word: &dyn Fn(u64) -> u64, _: &[u64]| word(8) == 0 || word(0) == 1);
    assert_eq!(violations(&story, model("x86-adr"), &whole).len(), 1);
    let apart = Written::default().store(0, 1).store(8, 1).persist(0).story;
    assert_eq!(violations(&apart, model("x86-adr"), &whole), []);
}

/// Bug class: an atomic instruction of Arm counts as one of x86, which drains flushes.
#[test]
fn atomic_instructions_drain_on_x86_alone() {
    use graven_persistency::happening::Point as Depth;
    let locked = What::Persist(Persist::Fence(Fence::Locked));
    let clean = What::Persist(Persist::Clean(Addr(0).line(), Depth::Persistence));
    let arm = Written::default().store(0, 7).push(0, clean).push(0, locked).store(64, 1).story;
    assert_eq!(violations(&arm, model("arm-pop"), &says_so()).len(), 1);
    let x86 = Written::default().store(0, 7).flush(0).push(0, locked).store(64, 1).story;
    assert_eq!(violations(&x86, model("x86-adr"), &says_so()), []);
}

/// Bug class: a page that was synchronised may be lost, or one that was not may not.
#[test]
fn pages_are_written_when_they_are_synchronised_or_at_any_time() {
    let says = || Words(|word: &dyn Fn(u64) -> u64, _: &[u64]| word(4096) == 0 || word(0) == 7);
    let rules = Rules::PageCache { sector: 4096 };
    let synced = Written::default().store(0, 7).sync(0, 4096).store(4096, 1).sync(4096, 8).story;
    assert_eq!(violations(&synced, rules, &says()), []);
    let other = Written::default().store(0, 7).sync(8192, 8).store(4096, 1).story;
    assert_eq!(violations(&other, rules, &says()).len(), 1);
    // In one page stores keep their order; in two sectors they do not.
    let near = Words(|word: &dyn Fn(u64) -> u64, _: &[u64]| word(512) == 0 || word(0) == 7);
    let story = Written::default().store(0, 7).store(512, 1).story;
    assert_eq!(violations(&story, rules, &near), []);
    assert_eq!(violations(&story, Rules::PageCache { sector: 512 }, &near).len(), 1);
}

/// Bug class: a file is as long as the program made it, though nothing made that durable.
#[test]
fn lengths_are_written_with_their_file() {
    let file = StoryFile { start: 0, bytes: 8192, length: Some(4096) };
    let length = What::Length { file: 0, old: 4096, new: 8192 };
    let begun = || {
        let mut written = Written::default();
        written.story.files = vec![file.clone()];
        written.push(0, length)
    };
    let says = || Words(|word: &dyn Fn(u64) -> u64, of: &[u64]| word(0) == 0 || of[0] == 8192);
    let rules = Rules::PageCache { sector: 4096 };
    let lost = begun().store(0, 1).story;
    assert_eq!(violations(&lost, rules, &says()).len(), 1);
    let other = begun().sync(8192, 8).store(0, 1).story;
    assert_eq!(violations(&other, rules, &says()).len(), 1, "a sync of another file");
    for start in [0, 4096] {
        let kept = begun().sync(start, 8).store(0, 1).story;
        assert_eq!(violations(&kept, rules, &says()), [], "a sync of any part");
    }
    // Processors' models have no page cache: a length is durable at once.
    assert_eq!(violations(&lost, model("x86-adr"), &says()), []);
}

/// A judge of operations that stored their number.
struct States(std::sync::Mutex<Vec<u64>>);

impl Judge for States {
    fn judge(&self, _: usize, left: &Left<'_>) -> Verdict {
        let states = self.0.lock().expect("nobody panics");
        let found = left.image.load(Addr(0));
        let allowed = &states[left.acknowledged as usize..=left.begun as usize];
        match allowed.contains(&found) {
            true => Verdict::Good,
            false => Verdict::Bad(Fault { kind: "state".into(), what: found.to_string() }),
        }
    }

    fn compares_states(&self) -> bool {
        true
    }

    fn learn(&self, _: u32, left: &Left<'_>) -> Result<(), String> {
        self.0.lock().expect("nobody panics").push(left.image.load(Addr(0)));
        Ok(())
    }
}

/// A judge that refuses an image the first few times, and never again.
struct Moody(std::sync::atomic::AtomicU32, u32);

impl Judge for Moody {
    fn judge(&self, _: usize, left: &Left<'_>) -> Verdict {
        let is_odd = left.image.load(Addr(64)) == 1 && left.image.load(Addr(0)) == 0;
        let refuses = is_odd && self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < self.1;
        let fault = || Fault { kind: "moody".into(), what: "moody".into() };
        if refuses { Verdict::Bad(fault()) } else { Verdict::Good }
    }
}

/// Bug class: a judge that contradicts itself is believed, or loses what was found.
#[test]
fn a_judge_that_contradicts_itself_once_is_told_of() {
    let judge = Moody(0.into(), 1);
    let (outcome, _) =
        explored(&flagged(false), model("x86-adr"), &judge).expect("once is forgiven");
    assert_eq!((outcome.found.len(), outcome.unsteady), (0, 1));
}

/// Bug class: what was acknowledged may be lost, unseen.
#[test]
fn operations_that_are_over_survive() {
    let story = |persists: bool| {
        let mut written = Written::default();
        for number in 1..4 {
            written = written.push(0, What::Begins).store(0, number);
            if persists {
                written = written.persist(0);
            }
            written = written.push(0, What::Ends);
        }
        written.story
    };
    let judge = || States(std::sync::Mutex::default());
    assert_eq!(violations(&story(true), model("x86-adr"), &judge()), []);
    let lost = [1, 4, 7].map(|store| (vec![store], vec![]));
    assert_eq!(violations(&story(false), model("x86-adr"), &judge()), lost);
}

/// Bug class: a judge that refuses what is good is believed.
#[test]
fn a_judge_is_tried_first() {
    let refuses = Words(|_: &dyn Fn(u64) -> u64, _: &[u64]| false);
    let refused = explored(&flagged(true), model("x86-adr"), &refuses).map(|_| ());
    assert!(matches!(refused, Err(Refusal::After(_))), "{refused:?}");
    // Files that are being made are judged when that is over.
    let made = Words(|word: &dyn Fn(u64) -> u64, _: &[u64]| word(64) == 1);
    let (outcome, points) =
        explored(&flagged(true), model("x86-adr"), &made).expect("the last files are good");
    assert_eq!((outcome.found.len(), points.all[outcome.first_good].at), (0, 6));
    let more = Written { story: flagged(true), ..Written::default() }.store(0, 8).persist(0).story;
    let (outcome, points) = explored(&more, model("x86-adr"), &made).expect("the last are good");
    assert_eq!((outcome.found.len(), points.all[outcome.first_good].at), (0, 8));
}

fn any_story() -> impl Strategy<Value = Story> {
    let step = (0u64..3, 0u64..3, 0u64..4, 0u8..8);
    proptest::collection::vec(step, 1..14).prop_map(|steps| {
        let mut written = Written::default();
        for (number, (line, word, value, kind)) in steps.into_iter().enumerate() {
            let addr = line * 64 + word * 8;
            written = match kind {
                0..=2 => written.store(addr, value),
                3 if number > 0 => written.with(addr, value),
                3 => written.store(addr, value),
                4 => written.flush(addr),
                5 => written.fence(),
                6 => written.persist(addr),
                _ => written.push(0, What::Told),
            };
        }
        written.story
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Bug class: an image is judged that the model forbids.
    #[test]
    fn images_are_those_that_the_model_allows(story in any_story(), number in 0usize..5) {
        let model = &MODELS[number];
        let rules = Rules::Processor(model);
        let points = Points::of(&story, rules, true, &Control::default());
        let mut cursor = Cursor::new(&story, Image::new());
        let mut history = History::new(model);
        let mut seen = 0;
        let mut frontier = rules.begin();
        for (number, point) in points.all.iter().enumerate() {
            while seen < point.at {
                let event = &story.events[seen as usize];
                if let Some(happening) = crate::frontier::happening(event) {
                    history.saw(seen.into(), &happening);
                }
                frontier.saw(seen, event);
                seen += 1;
            }
            cursor.seek(&story, point.at);
            let mut chooser = Chooser::new(Keys::of(&story), 1);
            let mut all = chooser.guided(&story, number, point);
            all.extend(Chooser::all(&story, number, point).unwrap_or_default());
            all.extend(chooser.drawn(&story, number, point));
            for candidate in all {
                let judged = candidate.left(&story, point, &mut cursor, true, |left| {
                    history.judge(left.image)
                });
                prop_assert_eq!(judged, Ok(()), "{:?} of {:?}", candidate, story.events);
                let name: Name = candidate.name(point).to_string().parse().expect("it is a name");
                let named = name.find(&story, &points.all);
                prop_assert_eq!(named.as_ref(), Some(&candidate));
            }
        }
        if let Frontier::Lines(history, _) = frontier {
            prop_assert!(history.open().count() <= 3);
        }
    }

    /// Bug class: a point is left out at which an image is possible that no other point has.
    #[test]
    fn points_have_all_images_of_all_instants(story in any_story(), number in 0usize..5) {
        let rules = Rules::Processor(&MODELS[number]);
        let images = |points: &Points| {
            let mut all = std::collections::BTreeSet::new();
            let mut cursor = Cursor::new(&story, Image::new());
            for (number, point) in points.all.iter().enumerate() {
                cursor.seek(&story, point.at);
                for candidate in Chooser::all(&story, number, point).unwrap_or_default() {
                    let words: Vec<u64> = candidate.left(&story, point, &mut cursor, true, |left| {
                        (0..24).map(|word| left.image.load(Addr(word * 8))).collect()
                    });
                    all.insert(words);
                }
            }
            all
        };
        let chosen = Points::of(&story, rules, false, &Control::default());
        let every = every_instant(&story, rules);
        prop_assert_eq!(images(&chosen), images(&every), "{:?}", story.events);
    }

    /// Bug class: a cursor that goes back is elsewhere.
    #[test]
    fn cursors_go_back(story in any_story(), places in proptest::collection::vec(0u32..14, 1..8)) {
        let mut cursor = Cursor::new(&story, Image::new());
        for place in places {
            let place = place.min(story.events.len() as u32);
            cursor.seek(&story, place);
            let mut fresh = Cursor::new(&story, Image::new());
            fresh.seek(&story, place);
            prop_assert_eq!(cursor.digest, fresh.digest);
            for word in 0..24 {
                prop_assert_eq!(cursor.image.load(Addr(word * 8)), fresh.image.load(Addr(word * 8)));
            }
        }
    }
}

/// All instants as points.
fn every_instant(story: &Story, rules: Rules) -> Points {
    let mut frontier = rules.begin();
    let mut points = Points::default();
    for at in 0..=story.events.len() as EventId {
        let units = frontier.units(&[]);
        let (since, ended, begun) = (0, 0, 0);
        points.all.push(crate::points::Point { at, since, units, ended, begun });
        if let Some(event) = story.events.get(at as usize) {
            frontier.saw(at, event);
        }
    }
    points
}

/// Bug class: a long story has points at its beginning only.
#[test]
fn points_are_left_out_at_equal_distances() {
    let mut written = Written::default();
    for number in 1..=100 {
        written = written.store(number * 64, 1).store(0, number).persist(0);
    }
    let story = written.story;
    let rules = model("x86-adr");
    let of = |most| {
        let points = Points::with(&story, rules, false, &Control::default(), most);
        let at: Vec<u32> = points.all.iter().map(|point| point.at).collect();
        (at, points.left_out)
    };
    let (all, none) = of(usize::MAX);
    assert_eq!((all.len(), none), (101, 0));
    let (some, left_out) = of(3_000);
    assert_eq!((some.len() as u64 + left_out, some.last()), (101, all.last()));
    let distances: Vec<u32> = some.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(distances[..distances.len() - 1].iter().all(|&d| d == distances[0]), "{some:?}");
    assert!(left_out > 40, "{left_out}");
}

/// Bug class: the same seed gives another exploration.
#[test]
fn equal_seeds_explore_alike() {
    let mut written = Written::default();
    for number in 0..40u64 {
        written = written.store(number * 64, number + 1);
    }
    let story = written.persist(0).story;
    let judge =
        Words(|word: &dyn Fn(u64) -> u64, _: &[u64]| word(64 * 9) == 0 || word(64 * 3) != 0);
    let run = || {
        let rules = model("x86-adr");
        let options = Options { images: 3_000, ..options(rules) };
        let (control, verdicts) = (Control::default(), Verdicts::default());
        let points = Points::of(&story, rules, false, &control);
        let keys = Keys::of(&story);
        let mut explorer = Explorer::new(
            (&story, &points, &keys),
            &mut Image::new(),
            (&judge, &verdicts),
            &options,
            &control,
        );
        let outcome = explorer.run().expect("the judge judges");
        let found = outcome.found.iter().map(|f| (f.count, f.shrunk.missing.clone())).collect();
        (outcome.images, outcome.judged, outcome.end, found)
    };
    let once: (u64, u64, End, Vec<(u64, Vec<u32>)>) = run();
    assert_eq!(once, run());
    assert_eq!((once.0, once.2, &once.3[0].1), (3_000, End::Images, &vec![3]));
}

/// Bug class: an exploration of all images says that it was all, and was not.
#[test]
fn all_images_are_all() {
    let story = Written::default().store(0, 1).store(64, 1).store(64, 2).story;
    let good = Words(|_: &dyn Fn(u64) -> u64, _: &[u64]| true);
    let (outcome, points) = explored(&story, model("x86-adr"), &good).expect("the judge judges");
    assert_eq!((outcome.images, outcome.end, points.all.len()), (6, End::All, 1));
    let newest = Candidate::newest(0, &points.all[0]);
    assert!(newest.missing(&points.all[0]).is_empty());
}
