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

    /// Tells whether no memory has been persistent so far, and none is recorded: order between threads matters to no access yet,
    /// and no register comes from a recorded load.
    #[inline]
    pub fn records_nothing_yet(&self) -> bool {
        self.regions.are_none() && !self.records_volatile()
    }

    /// The trace may begin.
    pub fn begins(&self) {
        if self.setup.volatile {
            self.records_volatile.store(true, Ordering::Relaxed);
        }
    }

    /// The persistent memory is another. Without a function that the trace waits for, volatile memory is recorded as long as
    /// some memory is persistent: there is nothing to trace before, nor afterwards.
    pub fn memory_changed(&self) {
        if self.setup.volatile && !self.setup.waits_for_beginning() {
            self.records_volatile.store(self.regions.have_some(), Ordering::Relaxed);
        }
    }
}

static TRACER: OnceLock<Tracer> = OnceLock::new();

/// Begins to trace; returns whether nothing was traced before.
pub fn begin(setup: Setup) -> bool {
    let functions = Functions::new(&setup);
    let sites = Sites::new(&setup.folder);
    let tracer = Tracer {
        setup,
        functions,
        sites,
        regions: Regions::default(),
        anonymous: Anonymous::default(),
        turns: Turns::default(),
        synchronised: Synchronised::default(),
        records_volatile: AtomicBool::new(false),
    };
    TRACER.set(tracer).is_ok()
}

/// The capture that has begun.
#[inline]
pub fn tracer() -> &'static Tracer {
    TRACER.get().expect("QEMU calls a plugin after it was installed")
}
