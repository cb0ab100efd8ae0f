//! What MorLog (ISCA'20) prints that can be checked without a comparison of designs and is not in `morlog.rs`: what
//! recovery makes of its first example, and what it runs.
//!
//! Bug class: a worked example ends in another state, or the paper's runs cannot be asked for.
//!
//! Elsewhere: the machine in its preset; states, records, commits and truncation in `morlog.rs`; the layout of
//! records in `designs/packed_log/tests.rs`; DLDC and SLDE in `codecs`; cells in `media/tlc.rs`.

use crate::common::preset;
use crate::common::registry;
use crate::common::script::{compute, evict, script_on, settle, store};
use graven::catalogue;
use graven::comparison::MachineFile;
use graven::memory::Addr;
use graven::program::Op;
use graven::trace_event::TraceEvent;
use graven::workload::{Request, WorkloadConfig};
use serde_json::json;

const A: u64 = 4096;
const B: u64 = A + 64;

/// `morlog-fig2-recovery-example` (§II-B, Fig. 2): a transaction stores A1, A2 and B1 over A0 and B0. A power failure before its
/// end leaves A0 and B0, one after its commit A2 and B1, and one between them either, and never A1, whether A leaves
/// the caches meanwhile or not.
#[test]
fn figure_2_recovers_one_side_or_the_other() {
    let [a0, a1, a2, b0, b1] = [0xa0, 0xa1, 0xa2, 0xb0, 0xb1];
    let small = [("pm.capacity_bytes", "64 MB"), ("pm.log_region_bytes", "4 MB")];
    let config = preset("morlog", &[&small[..], &[("dram.capacity_bytes", "1 MB")]].concat());
    let before = [Op::TxBegin, store(A, a0), store(B, b0), Op::TxEnd, evict(A), evict(B), settle()];
    for design in ["fwb", "morlog-crade", "morlog-slde"] {
        for stolen in [false, true] {
            let leaves = if stolen { evict(A) } else { compute(1) };
            let begin = [Op::TxBegin, store(A, a1), compute(200), leaves];
            let end = [store(A, a2), store(B, b1), compute(100), Op::TxEnd, compute(2000)];
            let program = [&before[..], &begin, &end].concat();
            let mut run = script_on(&config, design, &[&program]);
            graven::lab::checker::attach(&mut run);
            run.keep_trace();
            let (mut begun, mut ended, mut committed) = (0, 0, 0);
            let (mut undone, mut redone, mut cycle) = (0, 0, 0);
            while !run.advance(cycle).unwrap_or_else(|e| panic!("{e}")) {
                cycle += 1;
                for (_, event) in run.take_trace() {
                    match event {
                        TraceEvent::Begin { .. } => begun += 1,
                        TraceEvent::Ending(_) => ended += 1,
                        TraceEvent::Acknowledged(_) => committed += 1,
                        _ => {}
                    }
                }
                if begun < 2 {
                    continue;
                }
                let mut crash = run.crash();
                crash.recover();
                let found = [A, B].map(|addr| crash.image.peek(Addr(addr)));
                let what = format!("{design}, cycle {cycle}, stolen {stolen}: {found:x?}");
                assert!(found == [a0, b0] || found == [a2, b1], "{what}");
                assert!(ended == 2 || found == [a0, b0], "{what}: before the end");
                assert!(committed < 2 || found == [a2, b1], "{what}: after the commit");
                undone += u32::from(found == [a0, b0]);
                redone += u32::from(found == [a2, b1]);
            }
            assert!(undone > 300 && redone > 500, "{design}: {undone} and {redone} power failures");
        }
    }
}

/// `morlog-cfg-benchmarks` (Table IV), `morlog-cfg-dataset-sizes` (§VI-A): the micro-benchmarks, with elements of 64 B and of 4 KB.
#[test]
fn the_micro_benchmarks_are_those_of_table_iv() {
    let _config = registry().machine("morlog").expect("the preset loads");
    let compared = MachineFile::named(registry(), "morlog")
        .unwrap()
        .comparison
        .workloads
        .expect("it says which");
    assert_eq!(compared, ["btree", "hash", "queue", "rbtree", "sdg", "sps"]);
    let said = catalogue::comparison(&MachineFile::named(registry(), "morlog").unwrap().comparison);
    let [sizes] = said["vary"].as_array().expect("a list").as_slice() else { panic!("{said}") };
    assert_eq!(sizes["key"], "workload.element_bytes");
    assert_eq!(sizes["values"], json!(["64 B", "4 KB"]));
}

/// `morlog-cfg-transactions`, `morlog-cfg-macro-threads` (§VI-A): 100,000 transactions over 8 or 4 threads.
#[test]
fn runs_can_be_as_long_as_the_papers() {
    let config = registry().machine("morlog").expect("the preset loads");
    for threads in [8, 4] {
        let new =
            registry().spec(config.clone(), "morlog-slde", "hash", Some(threads), Some(100_000), 1);
        let spec = new.unwrap_or_else(|e| panic!("{e}"));
        spec.check().unwrap_or_else(|e| panic!("{e}"));
        let (start, end) = spec.data_region();
        let request = Request {
            config: config.get::<WorkloadConfig>().clone(),
            whole: config.clone(),
            threads: spec.threads,
            transactions: spec.transactions,
            seed: 1,
            start,
            end,
        };
        let all: u64 = (0..spec.threads).map(|thread| request.transactions_of(thread)).sum();
        assert_eq!((u64::from(spec.threads), all), (threads, 100_000));
        assert_eq!(request.transactions_of(0), 100_000 / threads, "over all threads");
    }
}
