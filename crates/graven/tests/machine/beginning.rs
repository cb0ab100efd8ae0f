//! Simulations that begin alike: PM is populated once, and results are those of simulations that each populate it.
//!
//! Bug class: a store of one simulation that another sees; an image that is taken for another's; images that stay when
//! nobody needs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::{find, machine, registry, spec_of, test_workload};
use graven::memory::Image;
use graven::program::Program;
use graven::sim::{Beginning, Programs, Simulation, Spec};
use graven::workload::{BrokenInvariant, Workload, WorkloadInfo};

/// The hash table, and how often it was populated.
struct Counted(Box<dyn Workload>);

static POPULATED: AtomicUsize = AtomicUsize::new(0);

impl Workload for Counted {
    fn populate(&self, image: &mut Image) {
        POPULATED.fetch_add(1, SeqCst);
        self.0.populate(image);
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        self.0.program(thread)
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        self.0.check(image)
    }
}

static COUNTED: WorkloadInfo = test_workload("counted", "", |request| {
    let hash = registry().find_workload("hash")?;
    Ok(Box::new(Counted((hash.build)(request)?)))
});

fn spec(design: &str, seed: u64, settings: &[(&str, &str)]) -> Spec {
    let all = [
        ("workload.footprint_bytes", "1 MB"),
        ("workload.remove_percent", "40"),
        ("workload.insert_percent", "40"),
    ];
    let design = find(design).unwrap_or_else(|e| panic!("{e}"));
    spec_of(&machine("silo", &[&all, settings].concat()), design, &COUNTED, 4, 400, seed)
}

fn begun(spec: &Spec, beginning: Option<Arc<Beginning>>) -> Simulation {
    Simulation::begun(spec, beginning).unwrap_or_else(|e| panic!("{e}"))
}

/// Everything that a run says.
fn record(mut simulation: Simulation) -> String {
    graven::lab::checker::attach(&mut simulation);
    let digest = simulation.run().unwrap_or_else(|e| panic!("{e}"));
    let sound = simulation.crash().check_structures();
    assert_eq!(sound, Ok(()));
    simulation.record(digest).to_string()
}

/// How often something populates.
fn populated<T>(what: impl FnOnce() -> T) -> (usize, T) {
    let before = POPULATED.load(SeqCst);
    let result = what();
    (POPULATED.load(SeqCst) - before, result)
}

// One test: they count together.
#[test]
fn simulations_that_begin_alike_populate_once_and_say_what_each_alone_says() {
    let designs = ["base", "silo", "hoop", "lalea", "fwb", "ideal"];
    let specs = designs.map(|design| spec(design, 1, &[]));
    let alone = specs.each_ref().map(|spec| record(Simulation::new(spec).expect("it fits")));

    // All at once, as those of several workers, and one after another.
    let (times, simulations) = populated(|| {
        let beginnings = specs.each_ref().map(Beginning::of);
        let both = specs.iter().zip(beginnings);
        both.map(|(spec, beginning)| begun(spec, beginning)).collect::<Vec<_>>()
    });
    assert_eq!(times, 1);
    assert!(simulations.into_iter().map(record).eq(alone.clone()));
    let (times, records) = populated(|| {
        let beginnings = specs.each_ref().map(Beginning::of);
        let both = specs.iter().zip(beginnings);
        both.map(|(spec, beginning)| record(begun(spec, beginning))).collect::<Vec<_>>()
    });
    assert_eq!((times, &records[..]), (1, &alone[..]));

    // On threads.
    let (times, ()) = populated(|| {
        std::thread::scope(|scope| {
            for ((spec, beginning), alone) in specs
                .iter()
                .map(|spec| (spec, Beginning::of(spec)))
                .collect::<Vec<_>>()
                .into_iter()
                .zip(&alone)
            {
                scope.spawn(move || assert_eq!(&record(begun(spec, beginning)), alone));
            }
        });
    });
    assert_eq!(times, 1);

    // Nobody needs it any longer.
    let first = Beginning::of(&specs[0]);
    let (times, _) = populated(|| begun(&specs[0], first));
    assert_eq!(times, 1, "nothing is kept for nobody");
    let (waiting, last) = (Beginning::of(&specs[0]), Beginning::of(&specs[1]));
    let (times, _) = populated(|| begun(&specs[0], waiting));
    assert_eq!(times, 1);
    drop(last);
    let (times, _) = populated(|| begun(&specs[1], Beginning::of(&specs[1])));
    assert_eq!(times, 1, "the last that would have needed it was not built");

    // Whatever the workload may look at makes another beginning; what the machine alone looks at does not.
    let one = Beginning::of(&specs[0]).expect("nothing was recorded");
    let others = [
        spec("base", 2, &[]),
        spec("base", 1, &[("workload.footprint_bytes", "2 MB")]),
        spec("base", 1, &[("workload.element_kind", "string")]),
        spec("base", 1, &[("pm.capacity_bytes", "1 GB")]),
        Spec { threads: 3, ..spec("base", 1, &[]) },
        Spec { transactions: 401, ..spec("base", 1, &[]) },
        Spec {
            workload: registry().find_workload("hash").expect("it ships"),
            ..spec("base", 1, &[])
        },
    ];
    let held: Vec<_> = others.iter().map(|spec| Beginning::of(spec).expect("as above")).collect();
    assert!(held.iter().all(|other| !Arc::ptr_eq(other, &one)));
    let slower = spec("silo", 1, &[("l1.latency_cycles", "9"), ("silo.log_ignorance", "false")]);
    assert!(Arc::ptr_eq(&Beginning::of(&slower).expect("as above"), &one));

    // What was recorded is not compared with anything.
    let programs = Programs::new(|| unreachable!("it is not built"));
    assert!(Beginning::of(&Spec { programs: Some(programs), ..spec("base", 1, &[]) }).is_none());
}
