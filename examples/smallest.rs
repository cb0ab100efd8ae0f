//! The smallest whole design: an undo log in non-volatile registers.
//!
//! The first store to a word keeps its old value in registers that outlive power. At its end a
//! transaction's lines are written back; when all are durable, its registers are free again.
//! Recovery puts back what the registers still hold. `cargo run --release --example smallest`
//! lets power fail everywhere; docs/guides/designs.md has designs with logs in PM.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use graven::design::{Acknowledgement, NoEvent, Port, Unused, plug};
use graven::design::{Battery, Design, DesignInfo, Guarantee, RecoveryReport, Stall, Step, Store};
use graven::ids::{ThreadId, Tx};
use graven::lab::explorer::{CrashRun, Thoroughness};
use graven::memory::Addr;
use graven::request::{Write, WriteClass, WriteOrder};

/// The design's entry in the registry.
pub static INFO: DesignInfo = DesignInfo {
    name: "smallest",
    summary: "old words in registers; lines are written back at the end of a transaction",
    guarantee: |_| Guarantee::Durable,
    build: |context| {
        Ok(plug(Smallest((0..context.threads).map(|_| Open::default()).collect())).into())
    },
    recover: |_, registers, image| {
        registers.chunks_exact(2).for_each(|pair| image.store(Addr(pair[0]), pair[1]));
        RecoveryReport { words_undone: registers.len() as u64 / 2, ..RecoveryReport::default() }
    },
    battery: |context| Battery {
        bytes: 0,
        registers: 4096 * context.threads as usize,
        register_bits: 64,
    },
    acknowledgement: Acknowledgement {
        source: "the lines fall to the controller, are written, and the last write is answered",
        steps: |_| vec![Step::Fall, Step::Write, Step::Message],
    },
    ..DesignInfo::DEFAULT
};

/// The open transaction of each thread.
struct Smallest(Vec<Open>);

#[derive(Default)]
struct Open {
    old: BTreeMap<Addr, u64>,
    under_way: usize,
}

impl Design for Smallest {
    type Write = ThreadId;
    type Read = Unused;
    type Timer = Unused;
    type Event = NoEvent;

    fn on_store(&mut self, _port: &mut Port<'_, Self>, store: &Store) -> Stall {
        self.0[store.tx.thread as usize].old.entry(store.addr).or_insert(store.old);
        Stall::None
    }

    fn on_tx_end(&mut self, port: &mut Port<'_, Self>, tx: Tx) -> Stall {
        let open = &mut self.0[tx.thread as usize];
        let lines: BTreeSet<_> = open.old.keys().map(|word| word.line()).collect();
        open.under_way = lines.len();
        for &line in &lines {
            if !port.write_back(line, WriteOrder::NONE, Some(tx.thread)) {
                // It was evicted and may still be on its way: this write of it comes after that one.
                let write = Write::line(WriteClass::Data, line, port.cached_line(line));
                port.write_reported(write, tx.thread, port.bypass_cycles());
            }
        }
        if lines.is_empty() { Stall::None } else { Stall::UntilReleased }
    }

    fn on_durable(&mut self, port: &mut Port<'_, Self>, thread: ThreadId) {
        let open = &mut self.0[thread as usize];
        open.under_way -= 1;
        if open.under_way == 0 {
            open.old.clear();
            port.release(thread);
        }
    }

    fn registers(&self) -> Vec<u64> {
        self.0.iter().flat_map(|open| &open.old).flat_map(|(word, &old)| [word.0, old]).collect()
    }
}

/// Lets power fail at every crash point of a run.
#[allow(dead_code, reason = "tests include this file for the design")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = graven::standard();
    registry.design(&INFO);
    let spec =
        registry.spec(registry.machine("cramped")?, INFO.name, "btree", None, Some(500), 1)?;
    let outcome = CrashRun::new(&spec, None, Thoroughness::LONG)?.run(None)?;
    println!(
        "{} power failures, {} violations",
        outcome.tally.recoveries(),
        outcome.violations.len()
    );
    Ok(())
}
