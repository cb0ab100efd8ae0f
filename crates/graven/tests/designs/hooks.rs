//! Hooks that a design asks for: the machine tells it of stores outside transactions, loads, instructions for persistence and
//! order, departures from L1 caches, and misses.
//!
//! Bug class: a hook is called for something else, by another core, or not at all, and an ordering design loses a dependence.

use std::cell::RefCell;

use graven::Registry;
use graven::design::{
    Departure, DepartureDesign, Design, DesignInfo, Fill, Gate, Guarantee, LoadDesign, Miss,
    NoEvent, PersistDesign, PlainStore, PlainStoreDesign, Port, Stall, TaggedDesign, ThreadId,
    Unused, Writeback, plug,
};
use graven::lab::case::Case;
use graven::lab::litmus::parse;
use graven::memory::{Addr, LineAddr, LineData};
use graven::persistency::cut::named;
use graven::program::Persist;

thread_local! {
    static SEEN: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn saw(what: String) {
    SEEN.with_borrow_mut(|seen| seen.push(what));
}

struct Witness;

impl Design for Witness {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;

    fn on_llc_miss(&mut self, _port: &mut Port<'_, Self>, miss: &Miss) -> Fill {
        saw(format!("core {} misses, writes: {}", miss.core, miss.writes));
        Fill::Home
    }
}

impl PlainStoreDesign for Witness {
    fn on_plain_store(&mut self, port: &mut Port<'_, Self>, store: &PlainStore) -> Stall {
        let PlainStore { thread, core, addr, old, new } = *store;
        assert_eq!(port.cached_word(addr), old);
        saw(format!("thread {thread} on core {core} stores {old} -> {new}"));
        Stall::None
    }
}

impl LoadDesign for Witness {
    fn on_load(&mut self, port: &mut Port<'_, Self>, thread: ThreadId, _core: u32, addr: Addr) {
        saw(format!("thread {thread} loads {}", port.cached_word(addr)));
    }
}

impl PersistDesign for Witness {
    fn on_persist(
        &mut self,
        port: &mut Port<'_, Self>,
        thread: ThreadId,
        _core: u32,
        what: Persist,
    ) -> Option<Stall> {
        let Persist::Order(operation) = what else { return None };
        saw(format!("thread {thread} at {operation}"));
        // It has been executed when a message is there.
        port.release(thread);
        Some(Stall::UntilReleased)
    }
}

impl DepartureDesign for Witness {
    fn on_departure(&mut self, _port: &mut Port<'_, Self>, departure: &Departure) {
        let Departure { core, dirty, cause, .. } = *departure;
        saw(format!("core {core}: {cause:?}, dirty: {dirty}"));
    }
}

static WITNESS: DesignInfo = DesignInfo {
    name: "witness",
    summary: "notes what it is told",
    guarantee: |_| Guarantee::Order(named("epoch").expect("it is there")),
    build: |_| {
        let witness = plug(Witness).with_plain_stores().with_loads().with_persists();
        Ok(witness.with_departures().into())
    },
    ..DesignInfo::DEFAULT
};

/// Counts the stores to each line in its tag, and takes a snapshot at each ordering fence.
struct Tagger;

impl Design for Tagger {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;
}

impl PlainStoreDesign for Tagger {
    fn on_plain_store(&mut self, port: &mut Port<'_, Self>, store: &PlainStore) -> Stall {
        let line = store.addr.line();
        let tag = port.tag(line).expect("the line is in the L1");
        saw(format!("core {} finds tag {tag}", store.core));
        port.set_tag(store.core, line, tag + 1);
        Stall::None
    }
}

impl DepartureDesign for Tagger {
    fn on_departure(&mut self, _port: &mut Port<'_, Self>, departure: &Departure) {
        saw(format!("core {} loses tag {}", departure.core, departure.tag));
    }
}

impl TaggedDesign for Tagger {
    fn on_tagged_eviction(
        &mut self,
        _port: &mut Port<'_, Self>,
        _line: LineAddr,
        content: &LineData,
        tag: u8,
    ) -> Writeback<Unused> {
        saw(format!("{} goes home with tag {tag}", content[0]));
        Writeback::FREE
    }
}

impl PersistDesign for Tagger {
    fn on_persist(
        &mut self,
        port: &mut Port<'_, Self>,
        _thread: ThreadId,
        _core: u32,
        what: Persist,
    ) -> Option<Stall> {
        let Persist::Order(_) = what else { return None };
        port.take_snapshot();
        Some(Stall::None)
    }
}

static TAGGER: DesignInfo = DesignInfo {
    name: "tagger",
    summary: "counts stores in the tags of lines",
    guarantee: |_| Guarantee::Order(named("snapshots").expect("it is there")),
    build: |_| {
        let tagger = plug(Tagger).with_plain_stores().with_departures().with_persists();
        Ok(tagger.with_tags().into())
    },
    ..DesignInfo::DEFAULT
};

/// Holds each dirty line that leaves the caches behind two gates, which it opens after 500 and 900 cycles, or never.
struct Gatekeeper {
    opens: bool,
}

impl Design for Gatekeeper {
    type Write = LineAddr;
    type Read = Unused;
    type Timer = Gate;
    type Event = NoEvent;

    fn on_llc_eviction(
        &mut self,
        port: &mut Port<'_, Self>,
        line: LineAddr,
        content: &LineData,
    ) -> Writeback<LineAddr> {
        saw(format!("{} leaves", content[0]));
        let gates = [port.gate(), port.gate()];
        for (gate, after) in gates.into_iter().zip([500, 900]) {
            if self.opens {
                port.send_to_controller(after, gate);
            }
        }
        Writeback::FREE.behind(port.join_gates(gates)).reported(line)
    }

    fn on_timer(&mut self, port: &mut Port<'_, Self>, gate: Gate) {
        saw("a gate opens".to_owned());
        port.open(gate);
        assert!(port.is_open(gate));
    }

    fn on_llc_miss(&mut self, port: &mut Port<'_, Self>, miss: &Miss) -> Fill {
        saw(format!("memory has {}", port.memory_line(miss.line)[0]));
        Fill::Home
    }

    fn on_durable(&mut self, _port: &mut Port<'_, Self>, _line: LineAddr) {
        saw("the line is durable".to_owned());
    }
}

static GATEKEEPER: DesignInfo = DesignInfo {
    name: "gatekeeper",
    summary: "holds lines behind gates",
    guarantee: |_| Guarantee::Order(named("epoch").expect("it is there")),
    build: |_| Ok(plug(Gatekeeper { opens: true }).into()),
    ..DesignInfo::DEFAULT
};

static SLEEPER: DesignInfo = DesignInfo {
    name: "sleeper",
    build: |_| Ok(plug(Gatekeeper { opens: false }).into()),
    ..GATEKEEPER
};

fn registry() -> Registry {
    let mut registry = graven::standard();
    registry.design(&WITNESS);
    registry.design(&TAGGER);
    registry.design(&GATEKEEPER);
    registry.design(&SLEEPER);
    registry
}

/// A program's run under a design: what was seen, or why it was refused.
fn run(design: &str, threads: &str) -> Result<Vec<String>, String> {
    let registry = registry();
    let text =
        format!("graven litmus 1\ntitle \"t\"\nset core.model = in-order\nA = 0\nB = 0\n{threads}");
    let litmus = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    let design = registry.find_design(design).expect("it is registered");
    let case = Case::new(&registry, &litmus, design).unwrap_or_else(|e| panic!("{e}"));
    SEEN.take();
    case.simulation().run().map_err(|e| e.to_string())?;
    Ok(SEEN.take())
}

#[test]
fn stores_loads_and_departures_are_told_in_the_order_in_which_they_happen() {
    let seen = run(
        "witness",
        "thread\n  outside A = 1\n  signal a\n\
         thread\n  await a\n  load A\n  outside A = 2\n  evict A\n",
    );
    let expected = [
        "core 0 misses, writes: true",
        "thread 0 on core 0 stores 0 -> 1",
        "core 0: Downgraded { by: 1 }, dirty: true",
        "thread 1 loads 1",
        "core 0: Invalidated { by: 1 }, dirty: false",
        "thread 1 on core 1 stores 1 -> 2",
        "core 1: Replaced, dirty: true",
    ];
    assert_eq!(seen, Ok(expected.map(str::to_owned).to_vec()));
}

#[test]
fn an_instruction_for_order_comes_after_the_stores_before_it_and_holds_those_after_it() {
    let seen =
        run("witness", "thread\n  load B\n  outside A = 1\n  ofence\n  outside A = 2\n  dfence\n");
    let expected = [
        "core 0 misses, writes: false",
        "thread 0 loads 0",
        "core 0 misses, writes: true",
        "thread 0 on core 0 stores 0 -> 1",
        "thread 0 at ofence",
        "thread 0 on core 0 stores 1 -> 2",
        "thread 0 at dfence",
    ];
    assert_eq!(seen, Ok(expected.map(str::to_owned).to_vec()));
}

#[test]
fn a_program_with_an_operation_that_a_design_cannot_execute_is_refused() {
    let thread = |step: &str| format!("thread\n  begin\n  A = 1\n  commit\n  {step}\n");
    for (design, step) in [("base", "ofence"), ("undo-clwb", "strand"), ("lad", "dfence")] {
        let refusal = run(design, &thread(step)).expect_err("it has no way to execute that");
        let expected = format!("`{step}`, which {design} has no way to execute");
        assert!(refusal.contains(&expected), "{refusal}");
    }
    let kept = run("base", &thread("clwb A\n  sfence"));
    assert_eq!(kept, Ok(Vec::new()));
}

/// Nothing keeps B behind A under this design.
#[test]
fn a_design_that_does_not_keep_its_order_is_violated_by_two_stores() {
    let registry = registry();
    let text = "graven litmus 1\ntitle \"t\"\nA = 0\nB = 0\n\
        thread\n  outside A = 1\n  ofence\n  outside B = 1\n  evict B\n  compute 3000\n";
    let litmus = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let case = Case::new(&registry, &litmus, &WITNESS).unwrap_or_else(|e| panic!("{e}"));
    let outcome = case.run().unwrap_or_else(|e| panic!("{e}"));
    let what = &outcome.violations.first().expect("B is durable before A").what;
    assert!(
        what.contains("`epoch` puts thread 0's store of 0x1") && what.contains("missing"),
        "{what}"
    );
}

#[test]
fn tags_go_with_their_lines_from_core_to_core_and_out_of_the_caches_but_not_back_in() {
    let seen = run(
        "tagger",
        "thread\n  outside A = 1\n  outside A = 2\n  signal a\n\
         thread\n  await a\n  outside A = 3\n  clwb A\n  outside A = 4\n  evict A\n  outside A = 5\n",
    );
    let expected = [
        "core 0 finds tag 0",
        "core 0 finds tag 1",
        "core 0 loses tag 2",
        "core 1 finds tag 2",
        "3 goes home with tag 3",
        "core 1 finds tag 0",
        "core 1 loses tag 1",
        "4 goes home with tag 1",
        "core 1 finds tag 0",
        "5 goes home with tag 1",
    ];
    assert_eq!(seen, Ok(expected.map(str::to_owned).to_vec()));
}

/// First violation of a program under `tagger`, which undoes nothing.
fn violated_by_tagger(steps: &str) -> Option<String> {
    let registry = registry();
    let text = format!(
        "graven litmus 1\ntitle \"t\"\nset core.model = in-order\nA = 0\nthread\n{steps}  compute 3000\n"
    );
    let litmus = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    let case = Case::new(&registry, &litmus, &TAGGER).unwrap_or_else(|e| panic!("{e}"));
    let outcome = case.run().unwrap_or_else(|e| panic!("{e}"));
    outcome.violations.first().map(|violation| violation.what.clone())
}

#[test]
fn snapshots_of_a_design_are_those_that_it_is_judged_by() {
    assert_eq!(violated_by_tagger("  outside A = 1\n  ofence\n  evict A\n"), None);
    let early = violated_by_tagger("  outside A = 1\n  evict A\n  compute 3000\n  ofence\n");
    assert!(early.as_ref().is_some_and(|what| what.contains("no snapshot has")), "{early:?}");
    let fences = "  compute 100\n  ofence\n";
    let late = |snapshots| {
        violated_by_tagger(&format!("  outside A = 1\n{}  crash then\n", fences.repeat(snapshots)))
    };
    assert_eq!(late(2), None, "two may be lost");
    assert!(late(3).is_some(), "and no more");
}

#[test]
fn a_write_waits_for_all_of_its_gates_and_reads_and_fences_find_it_there() {
    let seen = run(
        "gatekeeper",
        "thread\n  outside A = 1\n  evict A\n  load A\n  outside A = 2\n  clwb A\n  sfence\n  outside B = 3\n",
    );
    let expected = [
        "memory has 0",
        "1 leaves",
        "memory has 1",
        "2 leaves",
        // The line of B, ahead of its store.
        "memory has 0",
        "a gate opens",
        "a gate opens",
        "a gate opens",
        "the line is durable",
        "a gate opens",
        "the line is durable",
        "3 leaves",
        "a gate opens",
        "a gate opens",
        "the line is durable",
    ];
    assert_eq!(seen, Ok(expected.map(str::to_owned).to_vec()));
}

#[test]
fn writes_behind_a_gate_that_nobody_opens_are_named_in_the_deadlock() {
    let refusal = run("sleeper", "thread\n  outside A = 1\n  clwb A\n  sfence\n");
    let refusal = refusal.expect_err("the fence waits for ever");
    assert!(
        refusal.contains("1 writes wait behind gate 3, which the design has not opened"),
        "{refusal}"
    );
}
