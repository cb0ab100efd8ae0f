//! Every workload on FWB's machine, as its paper runs them: integers and strings, one to eight threads on
//! four cores of two threads.
//!
//! Bug class: a workload that ends on one machine, with one number of threads or one size of elements,
//! and deadlocks, loses a transaction or leaves its structures broken on another.

use crate::common::{SMALL_DATABASES, changed, machine, registry};
use graven::comparison::MachineFile;
use graven::config::Config;
use graven::memory::{Addr, Image};
use graven::sim::Simulation;
use graven::workload::{Request, WorkloadConfig};

const TRANSACTIONS: u64 = 240;

/// The final data of a run, after an orderly shutdown.
fn run(design: &str, workload: &str, threads: u32, settings: &[(&str, &str)]) -> u64 {
    let what = format!("{design} on {workload}, {threads} threads, {settings:?}");
    let config = machine("fwb", &[&SMALL_DATABASES, settings].concat());
    let spec = registry()
        .spec(config, design, workload, Some(threads.into()), Some(TRANSACTIONS), 1)
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let mut simulation = Simulation::new(&spec).unwrap_or_else(|e| panic!("{what}: {e}"));
    graven::lab::checker::attach(&mut simulation);
    let digest = simulation.run().unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(simulation.stats().counters.committed_transactions, TRANSACTIONS, "{what}");
    let sound = simulation.crash().check_structures();
    assert_eq!(sound, Ok(()), "{what}");
    digest
}

#[test]
fn every_workload_runs_on_any_number_of_threads() {
    for workload in registry().programs() {
        for threads in [1, 2, 4, 8] {
            for (element, sharing) in
                [("8 B", "private"), ("256 B", "private"), ("256 B", "shared")]
            {
                let settings = [
                    ("workload.footprint_bytes", "256 KB"),
                    ("workload.element_bytes", element),
                    ("workload.sharing", sharing),
                ];
                if workload.name == "tpcc" && sharing == "private" {
                    continue;
                }
                let [ideal, base] =
                    ["ideal", "base"].map(|d| run(d, workload.name, threads, &settings));
                // Threads that share nothing leave the same data, however long anything takes.
                let always = ["echo", "ssca2", "tpcc", "ycsb"].contains(&workload.name);
                let shares = sharing == "shared" || always;
                assert!(shares || ideal == base, "{} on {threads} threads", workload.name);
            }
        }
    }
}

/// Simulations begin alike if these parameters are the same, whatever the rest of the machine is like. A workload that looked at
/// others would not be built here.
#[test]
fn a_workload_looks_at_the_shared_parameters_and_its_own_sections_only() {
    for workload in registry().workloads() {
        let mut config = registry().machine("silo").expect("the preset loads");
        config.adopt(workload.name, workload.settings);
        let small = ("workload.footprint_bytes", "256 KB");
        let config = changed(config, &[&SMALL_DATABASES[..], &[small]].concat());
        let own: Vec<&str> = workload.sections.iter().map(|make| make().name()).collect();
        let allowed = |name: &str| name == "workload" || own.contains(&name);
        let sections = config.sections().filter(|section| allowed(section.name()));
        let request = |whole: Config| Request {
            config: config.get::<WorkloadConfig>().clone(),
            whole,
            threads: 4,
            transactions: TRANSACTIONS,
            seed: 1,
            start: Addr(4096),
            end: Addr(1 << 30),
        };
        let [all, few] =
            [config.clone(), Config::of(sections.map(|section| section.boxed_clone()).collect())]
                .map(|config| {
                    let built =
                        (workload.build)(&request(config)).unwrap_or_else(|e| panic!("{e}"));
                    let mut image = Image::new();
                    built.populate(&mut image);
                    image
                });
        let difference = all.first_difference(&few, Addr(0), Addr(1 << 30));
        assert_eq!(difference, None, "{}", workload.name);
    }
}

/// What a comparison runs on FWB's machine is what its paper's Table III lists; half of its transactions insert and half
/// remove, and its footprints can be set. Claims `fwb-wl-hash`, `fwb-wl-rbtree`, `fwb-wl-sps`, `fwb-wl-btree` and
/// `fwb-wl-ssca2`; what the programs do is asserted beside them.
#[test]
fn a_comparison_on_fwbs_machine_runs_the_workloads_of_its_paper() {
    let config = registry().machine("fwb").expect("the preset loads");
    let compared =
        MachineFile::named(registry(), "fwb").unwrap().comparison.workloads.expect("it says which");
    assert_eq!(compared, ["btree", "hash", "rbtree", "sps", "ssca2"]);
    let mix = config.get::<WorkloadConfig>();
    assert_eq!((mix.insert_percent, mix.remove_percent), (50, 50));
    for (workload, footprint) in [
        ("hash", "256 MB"),
        ("rbtree", "256 MB"),
        ("sps", "1 GB"),
        ("btree", "256 MB"),
        ("ssca2", "16 MB"),
    ] {
        let mut sized = config.clone();
        sized.set("workload.footprint_bytes", footprint).unwrap_or_else(|e| panic!("{e}"));
        let spec = registry().spec(sized, "ideal", workload, Some(8), None, 1);
        spec.and_then(|spec| spec.check()).unwrap_or_else(|e| panic!("{workload}: {e}"));
    }
}

/// Claim `lalea-cfg-workloads`, as far as there are such: TPC-C is not among them, and TATP can be asked for. The paper's remark that
/// most transactions of WHISPER have less than two writes (`lalea-cfg-whisper-two-writes`) is not about these.
#[test]
fn a_comparison_on_laleas_machine_runs_the_workloads_of_its_paper() {
    let _config = registry().machine("lalea").expect("the preset loads");
    let compared = MachineFile::named(registry(), "lalea")
        .unwrap()
        .comparison
        .workloads
        .expect("it says which");
    assert_eq!(compared, ["btree", "chain-queue", "hash", "rbtree"]);
}
