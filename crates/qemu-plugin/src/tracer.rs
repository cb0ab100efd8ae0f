//! All that the threads of a program share.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::anonymous::Anonymous;
use crate::functions::Functions;
use crate::regions::Regions;
use crate::setup::Setup;
use crate::sites::Sites;
use crate::synchronised::Synchronised;
use crate::turns::Turns;

/// The state of a capture.
pub struct Tracer {
    pub setup: Setup,
    /// Functions that are followed.
    pub functions: Functions,
    /// Sites of instructions.
    pub sites: Sites,
    /// Persistent memory.
    pub regions: Regions,
    /// That of it which is no file's.
    pub anonymous: Anonymous,
    /// The turns of the program's threads.
    pub turns: Turns,
    /// Places by which they synchronise.
    pub synchronised: Synchronised,
    /// Volatile memory is recorded.
    records_volatile: AtomicBool,
}

impl Tracer {
    /// Tells whether volatile memory is recorded.
    #[inline]
    pub fn records_volatile(&self) -> bool {
        self.records_volatile.load(Ordering::Relaxed)
    }

    /// The trace may begin.
    pub fn begins(&self) {
        if self.setup.volatile {
            self.records_volatile.store(true, Ordering::Relaxed);
        }
    }
}

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// Begins to trace; returns whether nothing was traced before.
pub fn begin(setup: Setup) -> bool {
    let functions = Functions::new(&setup);
    let records_volatile = setup.volatile && !setup.waits_for_beginning();
    let sites = Sites::new(&setup.folder);
    let tracer = Tracer {
        setup,
        functions,
        sites,
        regions: Regions::default(),
        anonymous: Anonymous::default(),
        turns: Turns::default(),
        synchronised: Synchronised::default(),
        records_volatile: records_volatile.into(),
    };
    TRACER.set(tracer).is_ok()
}

/// The capture that has begun.
#[inline]
pub fn tracer() -> &'static Tracer {
    TRACER.get().expect("QEMU calls a plugin after it was installed")
}
