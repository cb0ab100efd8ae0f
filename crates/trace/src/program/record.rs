//! A workload that is recorded while it runs: a tap between each core and its program.
//!
//! The tap is a [`Workload`] around another; what is not recorded runs without it. The first error stops the
//! recording, not the run, and is reported by [`Recorder::finish`].

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use super::error::TraceError;
use super::header::Header;
use super::volatile::in_trace;
use super::writer::Writer;
use graven_base::memory::{Addr, Image};
use graven_machine::program::{Op, Program};
use graven_machine::sim::Spec;
use graven_machine::workload::{BrokenInvariant, Extent, Workload};

/// A recording.
pub struct Recorder<W> {
    tape: Rc<RefCell<Tape<W>>>,
    /// The beginning of volatile memory on the machine.
    volatile_start: Addr,
}

struct Tape<W> {
    /// Gone once the recording has ended, well or not.
    writer: Option<Writer<W>>,
    outcome: Result<(), TraceError>,
}

impl<W: Write> Tape<W> {
    #[inline]
    fn write(&mut self, what: impl FnOnce(&mut Writer<W>) -> Result<(), TraceError>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = what(writer)
        {
            self.writer = None;
            self.outcome = Err(error);
        }
    }
}

impl<W: Write + 'static> Recorder<W> {
    /// Begins a trace of a simulation.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(spec: &Spec, out: W) -> Result<Self, TraceError> {
        let writer = Some(Writer::new(out, &Header::of(spec))?);
        let tape = Rc::new(RefCell::new(Tape { writer, outcome: Ok(()) }));
        Ok(Recorder { tape, volatile_start: spec.volatile_region().0 })
    }

    /// The workload, to be run as [`graven_machine::sim::Simulation::with_workload`] does: everything that its programs do is recorded.
    pub fn workload(&self, inner: Box<dyn Workload>) -> Box<dyn Workload> {
        let Recorder { tape, volatile_start } = self;
        Box::new(Recorded { inner, tape: Rc::clone(tape), volatile_start: *volatile_start })
    }

    /// Ends the trace, when all threads have ended.
    ///
    /// # Errors
    /// What went wrong first; a thread that has not ended.
    pub fn finish(self) -> Result<W, TraceError> {
        let tape = &mut *self.tape.borrow_mut();
        std::mem::replace(&mut tape.outcome, Ok(()))?;
        tape.writer.take().expect("a recording is finished once").finish()
    }
}

struct Recorded<W> {
    inner: Box<dyn Workload>,
    tape: Rc<RefCell<Tape<W>>>,
    volatile_start: Addr,
}

impl<W: Write + 'static> Workload for Recorded<W> {
    fn populate(&self, image: &mut Image) {
        self.inner.populate(image);
        self.tape.borrow_mut().write(|writer| writer.picture(image));
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        let (inner, tape) = (self.inner.program(thread), Rc::clone(&self.tape));
        Box::new(Tapped { inner, tape, thread, volatile_start: self.volatile_start })
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        self.inner.check(image)
    }

    fn begins_again(&self) -> bool {
        self.inner.begins_again()
    }

    fn extent(&self) -> Option<Extent> {
        self.inner.extent()
    }
}

struct Tapped<W> {
    inner: Box<dyn Program>,
    tape: Rc<RefCell<Tape<W>>>,
    thread: u32,
    volatile_start: Addr,
}

impl<W: Write> Program for Tapped<W> {
    fn next(&mut self, value: u64) -> Op {
        let op = self.inner.next(value);
        let traced = in_trace(op, self.volatile_start);
        self.tape.borrow_mut().write(|writer| writer.push(self.thread, traced));
        op
    }
}
