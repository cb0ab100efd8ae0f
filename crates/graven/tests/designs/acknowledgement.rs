//! A commit takes what its design declares, at the machine's prices, and what has happened at the controller is known to a
//! core one message later, under every design.
//!
//! Bug class: a design that lets a thread go on in the very cycle in which the controller has what it waits for, where others
//! pay for the way back.

use std::cell::RefCell;
use std::sync::Mutex;

use crate::common::script::{compute, script_with, settle, store};
use crate::common::{finished, registry, with_each};
use graven::acknowledgement::{Acknowledged, failures, machine, transaction};
use graven::config::Config;
use graven::design::{
    Acknowledgement, Code, Design, DesignInfo, MutantSet, NoEvent, OpAction, Port, SoftwareDesign,
    Stall, Step, Store, Unused, plug,
};
use graven::ids::{ThreadId, Tx};
use graven::memory::Addr;
use graven::program::Op;
use graven::request::{self, WriteClass};

/// Texts that lose data are not held to anything.
fn sound() -> impl Iterator<Item = &'static DesignInfo> {
    registry().designs().iter().copied().filter(|design| design.inherent == MutantSet::NONE)
}

#[test]
fn a_commit_takes_the_steps_that_its_design_declares() {
    let designs = sound().collect::<Vec<_>>();
    let found: Mutex<Vec<String>> = Mutex::default();
    with_each(&designs, |design| {
        let failures = failures(registry(), design);
        found.lock().expect("nobody panics").extend(failures);
    });
    let found = found.into_inner().expect("nobody panics");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Designs that do not wait for anything have nothing to say about it; all others have their sentence.
#[test]
fn whoever_waits_says_why() {
    let config = machine(registry(), &[]).expect("the preset loads");
    for design in registry().designs() {
        let acknowledgement = &design.acknowledgement;
        let waits = !(acknowledgement.steps)(&design.configured(config.clone())).is_empty();
        assert!(!waits || acknowledgement.source.len() > 40, "{}", design.name);
    }
}

// ---- designs that have it wrong --------------------------------------------------------------------

/// How a commit of [`Toy`] is answered when its record is durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// By a message.
    Message,
    /// It is not waited for: the core goes on when the record has arrived.
    Early,
    /// At once, as if the controller could.
    AtOnce,
    /// The same by a timer that is set there.
    ByTimer,
    /// Two messages later.
    Late,
}

thread_local! {
    static ANSWER: RefCell<Answer> = const { RefCell::new(Answer::Message) };
}

/// A design whose commit is one write, to its log region.
struct Toy {
    answer: Answer,
    log: Addr,
}

static TOY: DesignInfo = DesignInfo {
    name: "toy",
    summary: "a commit is one write",
    build: |context| {
        let answer = ANSWER.with_borrow(|answer| *answer);
        Ok(plug(Toy { answer, log: context.log_start }).into())
    },
    acknowledgement: Acknowledgement {
        source: "a record past the caches, and the answer that it is durable",
        steps: |_| vec![Step::Message, Step::Write, Step::Message],
    },
    ..DesignInfo::DEFAULT
};

impl Design for Toy {
    type Write = ThreadId;
    type Read = Unused;
    type Timer = ThreadId;
    type Event = NoEvent;

    fn on_tx_end(&mut self, port: &mut Port<'_, Self>, tx: Tx) -> Stall {
        let record = [!tx.number];
        let write = request::Write::words(WriteClass::Metadata, self.log, &record);
        if self.answer == Answer::Early {
            port.write(write, port.bypass_cycles());
            return Stall::For(port.bypass_cycles());
        }
        port.write_reported(write, tx.thread, port.bypass_cycles());
        Stall::UntilReleased
    }

    fn on_durable(&mut self, port: &mut Port<'_, Self>, thread: ThreadId) {
        match self.answer {
            Answer::Message | Answer::Early => port.release(thread),
            Answer::AtOnce => port.release_here(thread),
            Answer::ByTimer => port.set_timer(port.now(), thread),
            Answer::Late => port.send_to_core(port.bypass_cycles(), thread),
        }
    }

    fn on_timer(&mut self, port: &mut Port<'_, Self>, thread: ThreadId) {
        port.release_here(thread);
    }
}

fn failures_of(answer: Answer) -> Vec<String> {
    ANSWER.set(answer);
    failures(registry(), &TOY)
}

#[test]
fn a_design_that_does_not_wait_for_the_answer_or_waits_twice_is_found_out() {
    assert_eq!(failures_of(Answer::Message), [""; 0]);
    // Where messages cost nothing, a way more or less is none.
    let early = failures_of(Answer::Early);
    assert_eq!(early.len(), 12 - 2, "{early:#?}");
    let late = failures_of(Answer::Late);
    assert_eq!(late.len(), 12 - 4, "{late:#?}");
    assert!(
        late[0].contains("a commit takes 24 cycles, and the steps that its entry declares 16"),
        "{}",
        late[0]
    );
}

/// The machine knows where a hook runs, whatever the design says.
#[test]
fn the_controller_cannot_let_a_thread_go_on_without_a_message() {
    assert_eq!(failures_of(Answer::AtOnce), [""; 0]);
    assert_eq!(failures_of(Answer::ByTimer), [""; 0], "a timer fires where it was set");
}

// ---- stores and begins -----------------------------------------------------------------------------

/// A design that holds each store, or each begin, for one write.
struct Holds {
    begins: bool,
    log: Addr,
}

const fn holding(begins: bool) -> DesignInfo {
    DesignInfo {
        name: "holds",
        summary: "something waits for one write",
        build: match begins {
            true => |context| Ok(plug(Holds { begins: true, log: context.log_start }).into()),
            false => |context| Ok(plug(Holds { begins: false, log: context.log_start }).into()),
        },
        ..DesignInfo::DEFAULT
    }
}

static HOLDS_BEGINS: DesignInfo = holding(true);
static HOLDS_STORES: DesignInfo = holding(false);

impl Holds {
    fn write(&self, port: &mut Port<'_, Self>, thread: ThreadId) -> Stall {
        let write = request::Write::words(WriteClass::Log, self.log, &[port.now()]);
        port.write_reported(write, thread, port.bypass_cycles());
        Stall::UntilReleased
    }
}

impl Design for Holds {
    type Write = ThreadId;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;

    fn on_tx_begin(&mut self, port: &mut Port<'_, Self>, tx: Tx) -> Stall {
        if self.begins { self.write(port, tx.thread) } else { Stall::None }
    }

    fn on_store(&mut self, port: &mut Port<'_, Self>, store: &Store) -> Stall {
        if self.begins { Stall::None } else { self.write(port, store.tx.thread) }
    }

    fn on_durable(&mut self, port: &mut Port<'_, Self>, thread: ThreadId) {
        port.release(thread);
    }
}

/// The word that transactions store.
const STORED: Addr = Addr(0x1_0000);

fn with_messages_of(cycles: &str) -> Config {
    let settings = [("controller.bypass_cycles", cycles), ("controller.adr", "true")];
    machine(registry(), &settings).expect("settings that the machine takes")
}

/// Cycles of a transaction of one warm store.
fn cycles_under(design: &'static DesignInfo, config: &Config) -> u64 {
    let one = [Op::TxBegin, store(STORED.0, 7), Op::TxEnd, settle()];
    let run = |ops: &[Op]| {
        let simulation = finished(script_with(config, design, &[ops]));
        simulation.stats().transaction_latency.sum()
    };
    run(&[&one[..], &one].concat()) - run(&one)
}

#[test]
fn what_holds_a_store_or_a_begin_takes_the_way_there_and_back() {
    for design in [&HOLDS_BEGINS, &HOLDS_STORES] {
        let [short, long] =
            ["8", "37"].map(|messages| cycles_under(design, &with_messages_of(messages)));
        assert_eq!(long - short, 2 * (37 - 8));
    }
}

// ---- fences ----------------------------------------------------------------------------------------

thread_local! {
    /// The code before the end of a transaction.
    static CODE: RefCell<fn(&mut Code, Addr)> = const { RefCell::new(|_, _| ()) };
}

struct Fenced {
    log: Addr,
}

static FENCED: DesignInfo = DesignInfo {
    name: "fenced",
    summary: "code before the end",
    build: |context| Ok(plug(Fenced { log: context.log_start }).with_software().into()),
    ..DesignInfo::DEFAULT
};

impl Design for Fenced {
    type Write = Unused;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;
}

impl SoftwareDesign for Fenced {
    fn before_op(
        &mut self,
        _port: &mut Port<'_, Self>,
        _thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        if *op == Op::TxEnd {
            CODE.with_borrow(|of_end| of_end(code, self.log));
        }
        OpAction::Execute
    }
}

/// A fence waits as a design's hold does: for what it sent on its way, and for the message that it is durable.
#[test]
fn a_fence_hears_of_a_durable_write_by_a_message() {
    let uncached: fn(&mut Code, Addr) = |code, log| {
        code.store_uncached(log, 1, WriteClass::Log);
        code.fence();
    };
    let written_back: fn(&mut Code, Addr) = |code, _| {
        code.clwb(STORED.line());
        code.fence();
    };
    let clean: fn(&mut Code, Addr) = |code, _| {
        code.clwb(Addr(0x9_0000).line());
        code.fence();
    };
    let late: fn(&mut Code, Addr) = |code, _| {
        code.clwb(STORED.line());
        code.compute(10_000);
        code.fence();
    };
    // A line falls through the caches, whatever a message takes; one that is clean, or was heard of, is not waited for.
    for (code, messages) in [(uncached, 2), (written_back, 1), (clean, 0), (late, 0)] {
        CODE.set(code);
        let [short, long] =
            ["8", "37"].map(|messages| cycles_under(&FENCED, &with_messages_of(messages)));
        assert_eq!(long - short, messages * (37 - 8));
    }
}

// ---- all designs -----------------------------------------------------------------------------------

/// The rule is the machine's: with ADR, under every design, longer messages take longer by as much as they are longer, and
/// nothing else changes.
#[test]
fn commits_follow_the_machines_messages() {
    let is_message = |step: &Step| *step == Step::Message;
    // Software executes its instructions beside the messages.
    let hardware = |design: &&'static DesignInfo| !design.summary.starts_with("software");
    for design in sound().filter(hardware) {
        let of = |cycles| -> Acknowledged {
            let found = transaction(&with_messages_of(cycles), design);
            found.unwrap_or_else(|why| panic!("{}: {why}", design.name))
        };
        let [short, long] = ["8", "37"].map(of);
        let messages = short.steps.iter().filter(|step| is_message(step)).count() as u64;
        assert_eq!(long.commit - short.commit, messages * (37 - 8), "{}", design.name);
    }
}

/// What a transaction stores is not what its pause does.
#[test]
fn the_pause_before_the_end_is_not_part_of_a_commit() {
    let config = with_messages_of("8");
    let ops = [Op::TxBegin, store(STORED.0, 7), compute(1000), Op::TxEnd, settle()];
    let simulation = finished(script_with(&config, &TOY, &[&ops]));
    assert_eq!(simulation.stats().commit_latency.max(), 16);
}
