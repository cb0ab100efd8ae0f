//! Programs that are generated.

use proptest::prelude::*;

use super::*;

/// A name that is no word of the format.
fn name() -> impl Strategy<Value = String> {
    "[A-Za-z_][A-Za-z0-9_-]{0,5}-[a-z]"
}

/// Numbers around the place where the spelling changes, and all others.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..10u64, 65530..65540u64, any::<u64>()]
}

fn setting() -> impl Strategy<Value = (String, String)> {
    let value = prop_oneof!["[0-9a-z_.+-]{1,8}", "\"([a-z #]|\\\\\"){0,8}\"", "\\[1, 2\\]"];
    ("[a-z]{1,4}\\.[a-z_]{1,6}", value)
}

/// Variables with names `NAME-0`, `NAME-1`, …
fn variables() -> impl Strategy<Value = Vec<Variable>> {
    let parts = (name(), prop::option::of(1..=65536u32), number(), 0..3, any::<u32>());
    prop::collection::vec(parts, 1..6).prop_map(|parts| {
        let mut all: Vec<Variable> = Vec::new();
        for (at, (name, words, initial, kind, pick)) in parts.into_iter().enumerate() {
            let place = match kind {
                1 if at > 0 => Placement::With(all[pick as usize % at].name.clone()),
                2 => Placement::At(u64::from(pick) * 8),
                _ => Placement::OwnLine,
            };
            all.push(Variable { name: format!("{name}-{at}"), words, initial, place });
        }
        all
    })
}

/// A number that chooses a kind of step, a name or word for it and a value.
type Draw = (u8, u32, u64);

/// The parts of which the steps of a program are made.
struct Maker<'a> {
    variables: &'a [Variable],
    crashes: Vec<String>,
}

impl Maker<'_> {
    fn word(&self, pick: u32) -> Word {
        let variable = &self.variables[pick as usize % self.variables.len()];
        Word { name: variable.name.clone(), index: variable.words.map(|words| pick % words) }
    }

    /// Steps of a thread that is complete.
    fn thread(&mut self, draws: Vec<Draw>) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut in_transaction = false;
        let mut held: Vec<String> = Vec::new();
        let first = draws.first().copied();
        for draw in draws {
            self.step(draw, &mut in_transaction, &mut held, &mut steps);
        }
        steps.extend(in_transaction.then_some(Step::Commit));
        if let Some((_, pick, value)) = first.filter(|(kind, ..)| kind % 4 == 0) {
            let (some, all) =
                (self.word(pick), [Step::Begin, Step::Load(self.word(pick)), Step::Commit]);
            for _ in 0..value % 24 {
                steps.extend_from_slice(&all[..if value % 2 == 0 { 3 } else { 0 }]);
                steps.push(Step::Load(some.clone()));
            }
        }
        steps.extend(held.into_iter().map(Step::Unlock));
        steps
    }

    fn step(
        &mut self,
        (kind, pick, value): Draw,
        in_transaction: &mut bool,
        held: &mut Vec<String>,
        steps: &mut Vec<Step>,
    ) {
        let word = self.word(pick);
        let level = [Level::L1, Level::L2, Level::Llc][pick as usize % 3];
        let name = format!("n{}", pick % 3);
        let step = match kind % 16 {
            0..3 if *in_transaction => Step::Store(word, value),
            3 if *in_transaction => Step::StoreNonTemporal(word, value),
            0..6 => {
                *in_transaction = !*in_transaction;
                if *in_transaction { Step::Begin } else { Step::Commit }
            }
            6 => Step::Load(word),
            7 => Step::Compute(pick),
            8 => match held.iter().position(|lock| *lock == name) {
                Some(_) if *in_transaction => Step::Load(word),
                Some(at) => Step::Unlock(held.remove(at)),
                None => {
                    held.push(name.clone());
                    Step::Lock(name)
                }
            },
            9 => Step::Signal(name),
            10 => {
                steps.push(Step::Signal(name.clone()));
                Step::Await(name)
            }
            11 => Step::Evict(word, level),
            12 if pick % 4 == 0 && !*in_transaction => {
                Step::Outside(Box::new(Step::StoreNonTemporal(word, value)))
            }
            12 if pick % 2 == 0 && !*in_transaction => {
                Step::Outside(Box::new(Step::Store(word, value)))
            }
            12 if pick % 3 == 0 => Step::WriteBack(word),
            12 => Step::Persist(match pick % 6 {
                0 | 1 => Persist::WriteBack(word),
                2 => Persist::Fence,
                3 => Persist::Order(Operation::OrderingFence),
                4 => Persist::Order(Operation::DurabilityFence),
                5 if *in_transaction => Persist::Order(Operation::NewStrand),
                _ => Persist::Order(Operation::JoinStrands),
            }),
            13 => Step::Maintenance,
            14 if pick % 2 == 0 => {
                let then = if *in_transaction {
                    Step::Store(word.clone(), value)
                } else if pick % 4 == 0 {
                    Step::Outside(Box::new(Step::Store(word.clone(), value)))
                } else {
                    Step::Evict(word.clone(), level)
                };
                Step::If(self.word(pick / 2), value, Box::new(then))
            }
            14 => Step::Settle,
            _ => {
                self.crashes.push(format!("c{}", self.crashes.len()));
                Step::Crash(self.crashes[self.crashes.len() - 1].clone())
            }
        };
        steps.push(step);
    }

    fn expectation(&self, kind: u8, alternatives: Vec<Vec<(u32, u64)>>) -> Expectation {
        let crash = self.crashes.get(usize::from(kind) / 4).cloned();
        let when = match (kind % 4, crash) {
            (0, Some(crash)) => When::Recovered(crash),
            (1, Some(crash)) => When::Survives(crash),
            (0 | 2, _) => When::Everywhere,
            _ => When::End,
        };
        let condition = |(pick, value)| (self.word(pick), value);
        let conditions = |all: Vec<_>| all.into_iter().map(condition).collect();
        Expectation { when, alternatives: alternatives.into_iter().map(conditions).collect() }
    }
}

/// Variables, threads and expectations that fit each other.
fn body() -> impl Strategy<Value = Litmus> {
    let threads = || {
        let draw = (any::<u8>(), any::<u32>(), number());
        prop::collection::vec(prop::collection::vec(draw, 0..20), 1..5)
    };
    let conditions = prop::collection::vec((any::<u32>(), number()), 1..4);
    let expectation = (any::<u8>(), prop::collection::vec(conditions, 1..4));
    let expectations = prop::collection::vec(expectation, 0..4);
    let life = (prop::option::of(choices()), number(), threads(), crash());
    let lives = prop::collection::vec(life, 1..4);
    let draws = (variables(), lives, expectations);
    draws.prop_map(|(variables, lives, expectations)| {
        let mut maker = Maker { variables: &variables, crashes: Vec::new() };
        let mut threads_of =
            |draws: Vec<Vec<_>>| draws.into_iter().map(|draws| maker.thread(draws)).collect();
        let life = |(adversary, first_transaction, threads, crash)| Life {
            adversary,
            first_transaction,
            threads: threads_of(threads),
            crash,
        };
        let lives = lives.into_iter().map(life).collect();
        let expectations =
            expectations.into_iter().map(|(kind, of)| maker.expectation(kind, of)).collect();
        Litmus { lives, expectations, variables, ..Litmus::default() }
    })
}

fn crash() -> impl Strategy<Value = CrashAt> {
    let mode = prop_oneof![
        Just(FailureMode::Plain),
        any::<u8>().prop_map(FailureMode::Torn),
        number().prop_map(FailureMode::InFlight),
        number().prop_map(FailureMode::Landed),
    ];
    let failure = (mode, prop::collection::vec(number(), 0..4));
    let failure = failure.prop_map(|(mode, cuts)| Failure { mode, cuts });
    prop_oneof![
        Just(CrashAt::Everywhere),
        Just(CrashAt::Marked),
        (number(), failure).prop_map(|(number, failure)| CrashAt::Point { number, failure }),
    ]
}

fn choices() -> impl Strategy<Value = Choices> {
    let listed = prop::collection::btree_map(any::<u32>(), 1u8.., 0..4);
    let departures = |listed: std::collections::BTreeMap<u32, u8>| {
        let all = listed.into_iter().map(|(choice, option)| Departure { choice, option });
        Choices::Listed(all.collect())
    };
    prop_oneof![number().prop_map(Choices::Drawn), listed.prop_map(departures)]
}

fn litmus() -> impl Strategy<Value = Litmus> {
    let names = || prop::collection::vec(name(), 0..3);
    let some_name = || prop::option::of(name());
    let some_number = || prop::option::of(number());
    let head = (
        prop_oneof!["\\PC{0,12}", "[a\"\\\\# \t]{0,8}"],
        (names(), names()),
        (some_name(), some_name()),
        prop::collection::vec(setting(), 0..3),
        some_number(),
    );
    (head, body()).prop_map(|((title, names, some, settings, garbage), body)| Litmus {
        title,
        designs: names.0,
        violates: names.1,
        machine: some.0,
        mutant: some.1,
        settings,
        garbage,
        ..body
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_read_as_the_same(litmus in litmus()) {
        let text = litmus.to_string();
        prop_assert_eq!(parse(&text), Ok(litmus), "{}", text);
    }

    #[test]
    fn errors_of_damaged_text_lie_in_it(
        litmus in litmus(),
        at in any::<prop::sample::Index>(),
        junk in prop::collection::vec(prop_oneof![any::<char>(), Just('\n')], 0..=3),
    ) {
        let mut chars: Vec<char> = litmus.to_string().chars().collect();
        let at = at.index(chars.len());
        chars.splice(at..at + 1, junk);
        let text: String = chars.into_iter().collect();
        if let Err(error) = parse(&text) {
            let line = text.lines().nth(error.line as usize - 1);
            let length = line.map(|line| line.chars().count());
            prop_assert!(length.is_some_and(|length| (1..=length + 1).contains(&(error.column as usize))), "{error}");
        }
    }

    #[test]
    fn a_sequence_keeps_the_steps_of_each_thread(order in prop::collection::vec(0..4usize, 0..30)) {
        // All threads from the beginning, so that there are no gaps.
        let order: Vec<usize> = (0..4).chain(order).collect();
        let lines: String = (0..).zip(&order).map(|(at, thread)| format!("{thread}: compute {at}\n")).collect();
        let litmus = read(&in_order(&lines));
        // Run so that each step is done as soon as it can be: the order is the sequence's.
        let mut threads: Vec<_> = litmus.lives[0].threads.iter().map(|steps| steps.iter().peekable()).collect();
        let (mut signalled, mut done) = (Vec::new(), Vec::new());
        while threads.iter_mut().any(|steps| steps.peek().is_some()) {
            let mut ready = Vec::new();
            for (thread, steps) in (0..).zip(&mut threads) {
                while let Some(step) = steps.next_if(|step| !matches!(step, Step::Await(name) if !signalled.contains(name))) {
                    match step {
                        Step::Signal(name) => signalled.push(name.clone()),
                        Step::Compute(at) => ready.push((*at, thread)),
                        _ => {}
                    }
                }
            }
            prop_assert!(!ready.is_empty(), "threads wait for each other");
            done.extend(ready);
        }
        prop_assert_eq!(done, (0..).zip(order).collect::<Vec<(u32, usize)>>());
    }
}
