//! Power failures of a running simulation.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::run::Simulation;
use super::spec::DATA_START;
use crate::config::DomainConfig;
use crate::controller::domain::Change;
use crate::controller::settled::Settled;
use crate::design::{DesignContext, MutantSet, RecoveryReport};
use crate::machine::Machine;
use crate::trace_event::TraceEvent;
use crate::workload::BrokenInvariant;
use graven_base::memory::{
    Addr, Image, LINE_BYTES, LineAddr, LineData, WORD_BYTES, WORDS_PER_LINE, WordMask, spread,
    words_in,
};
use graven_base::recovery_steps::{Step, ThreadSteps};
use graven_base::surviving::{SurvivingImage, Written};
use graven_base::time::Cycle;

impl Simulation {
    /// Follows what is durable from now on, so that power can fail, without anybody who follows transactions. Call it
    /// before running.
    pub fn follow_durable_bytes(&mut self) {
        let (start, end) = self.data_region();
        self.machine.follow_domain(start, end);
    }

    /// Follows digests of bytes from now on ([`Crash::digest`]). Call it before running.
    ///
    /// # Panics
    /// If neither transactions nor durable bytes are followed.
    pub fn follow_digests(&mut self) {
        self.machine.follow_digests();
    }

    /// Crashes the machine at this instant. The simulation itself proceeds afterwards as if power
    /// had not failed.
    ///
    /// # Panics
    /// If neither transactions ([`Simulation::follow_transactions`]) nor durable bytes
    /// ([`Simulation::follow_durable_bytes`]) are followed.
    pub fn crash(&mut self) -> Crash<'_> {
        let mut crash = self.lose_power();
        crash.save();
        crash
    }

    /// Crashes the machine likewise, but some of what was sent and not accepted has landed, in part
    /// or whole, as the order of writes allows. Returns `None` if nothing was on its way.
    ///
    /// # Panics
    /// If transactions are not followed ([`Simulation::follow_transactions`]).
    pub fn crash_in_flight(&mut self, seed: u64) -> Option<Crash<'_>> {
        let mut random = Pcg64::seed_from_u64(seed);
        let landed = self.machine.memory.land_some(&mut random);
        if landed.is_empty() { None } else { Some(self.lose_power_with(landed)) }
    }

    /// The same with exactly these of the writes that were sent and not accepted, by their places in the order of their
    /// arrival. Returns nothing if the order of writes does not allow it.
    ///
    /// # Panics
    /// If transactions are not followed ([`Simulation::follow_transactions`]).
    pub fn crash_landed(&mut self, set: u64) -> Option<Crash<'_>> {
        let landed = self.machine.memory.land(set)?;
        Some(self.lose_power_with(landed))
    }

    /// The same, and something does not work as it should. Returns nothing if that changes nothing that survives.
    ///
    /// # Panics
    /// If transactions are not followed ([`Simulation::follow_transactions`]).
    pub fn crash_with(&mut self, fault: Fault) -> Option<Crash<'_>> {
        let memory = &self.machine.memory;
        let lines = match fault {
            Fault::LostDrain(count) => memory.without_newest(count),
            Fault::StuckBank(bank) => memory.without_bank(bank),
            Fault::Poison(addr, noise) => {
                let mut crash = self.crash();
                crash.image.poison(addr, noise);
                crash.saved = crash.image.written().len();
                return Some(crash);
            }
        };
        let mut crash = self.lose_power();
        for (line, content) in lines {
            crash.land(line, &content);
        }
        if crash.image.written().is_empty() {
            return None;
        }
        crash.save();
        Some(crash)
    }

    fn lose_power_with(&mut self, landed: Vec<(LineAddr, WordMask, LineData)>) -> Crash<'_> {
        let mut crash = self.lose_power();
        for (line, mask, data) in landed {
            let cached = crash.cached_words(line);
            if mask & !cached != 0 {
                crash.image.store_line(line, mask & !cached, &data);
            }
        }
        crash.save();
        crash
    }

    /// Keeps what happens, for [`Simulation::take_trace`].
    pub fn keep_trace(&mut self) {
        self.machine.keep_trace();
    }

    /// Keeps what the design has to say about it, too.
    pub fn keep_notes(&mut self) {
        self.machine.keep_notes();
    }

    /// Events since the last call.
    pub fn take_trace(&mut self) -> Vec<(Cycle, TraceEvent)> {
        self.machine.domain();
        self.machine.take_trace()
    }

    /// Returns true if any transaction has reached its end and is not acknowledged.
    pub fn is_any_ending(&self) -> bool {
        self.threads.iter().any(|t| t.running.is_some_and(|r| r.ending.is_some()))
    }

    /// Region of the programs' data.
    pub fn data_region(&self) -> (Addr, Addr) {
        (DATA_START, self.context.log_start)
    }

    /// The writes that became durable since the last call, oldest first.
    pub fn durable_changes(&mut self) -> Vec<Change> {
        let Some((domain, _)) = self.machine.domain() else { return Vec::new() };
        let changes = domain.changes().to_vec();
        domain.forget_changes();
        changes
    }

    /// Words of the programs' data in which durable bytes and architectural memory differ.
    ///
    /// # Panics
    /// If transactions are not followed ([`Simulation::follow_transactions`]).
    pub fn different_words(&mut self) -> u64 {
        self.machine.domain().expect("transactions are followed").0.different_words()
    }

    /// Takes durable writes back, newest first.
    pub fn lay_back(&mut self, changes: &[Change]) {
        for change in changes.iter().rev() {
            self.lay(change, change.mask, &change.old);
        }
    }

    /// Makes a write durable that was taken back, or some of its words.
    pub fn lay_words(&mut self, change: &Change, words: WordMask) {
        self.lay(change, change.mask & words, &change.new);
    }

    fn lay(&mut self, change: &Change, words: WordMask, data: &LineData) {
        let (domain, arch) = self.machine.domain().expect("transactions are followed");
        domain.lay(change.line, words, data, arch);
    }

    /// Does ahead what recoveries after the next power failures have in common, if the design says what that is
    /// ([`DesignInfo::settle`]); returns whether it does. Power failures find it done, until something becomes durable that
    /// changes it.
    ///
    /// [`DesignInfo::settle`]: crate::design::DesignInfo::settle
    pub fn settle_ahead(&mut self) -> bool {
        if !self.may_settle() {
            return false;
        }
        let (domain, arch) = self.machine.domain().expect("transactions are followed");
        let mut image = domain.take_image();
        image.set_end(self.context.log_end);
        let settlement = (self.spec.design.settle)(&self.context, &mut image);
        let is_settled = settlement.is_some();
        match settlement {
            Some(settlement) => domain.settle(image, settlement, arch),
            None => domain.put_back(image),
        }
        is_settled
    }

    /// Returns true if what survives lies in memory alone, and power failure and recovery are the design's own and no mutation's, and no notes of them are kept.
    fn may_settle(&mut self) -> bool {
        let is_mutated = self.context.mutants != MutantSet::NONE;
        let is_own = !is_mutated && self.design.interference().is_none();
        is_own && !self.machine.keeps_notes() && !self.machine.keeps_caches()
    }

    /// Returns true if power failures find something done ahead ([`Simulation::settle_ahead`]).
    pub fn is_settled(&self) -> bool {
        self.machine.settled().is_some()
    }

    /// Has power failures find the durable bytes alone, or again what was done ahead.
    pub fn turn_settled(&mut self) {
        let (domain, arch) = self.machine.domain().expect("transactions are followed");
        domain.turn_settled(arch);
    }

    fn lose_power(&mut self) -> Crash<'_> {
        let lost = self.lost_cached_words();
        let (domain, _) = self.machine.domain().expect("transactions are followed");
        let (mut image, different) = (domain.take_image(), domain.different_words());
        image.set_end(self.context.log_end);
        if self.machine.keeps_notes() {
            image.keep_notes();
        }
        for &(addr, below) in &lost {
            image.note(|| format!("{addr} is lost: the energy for caches has ended"));
            image.store(addr, below);
        }
        Crash {
            simulation: self,
            registers: Vec::new(),
            keeps_registers: false,
            image,
            different,
            saved: 0,
            exceeded: None,
            unsettles: false,
        }
    }

    /// Words that survive without the caches only, because the energy for the caches does not suffice for their lines.
    fn lost_cached_words(&mut self) -> Vec<(Addr, u64)> {
        if !self.machine.keeps_caches() {
            return Vec::new();
        }
        let of = self.spec.config.get::<DomainConfig>();
        if of.energy_uj == 0.0 {
            return Vec::new();
        }
        let lines = self.machine.caches.dirty_in_flush_order(of.flush_order);
        let mut left_nj = of.energy_uj * 1000.0;
        let has_energy = |&(_, is_in_l1): &(LineAddr, bool)| {
            let each = if is_in_l1 { of.l1_nj_per_byte } else { of.outer_nj_per_byte };
            left_nj -= each * LINE_BYTES as f64;
            left_nj >= 0.0
        };
        let lost: Vec<LineAddr> =
            lines.into_iter().skip_while(has_energy).map(|(l, _)| l).collect();
        let (domain, _) = self.machine.domain().expect("transactions are followed");
        let cached = domain.cached().expect("the caches survive");
        lost.into_iter().flat_map(|line| cached.without(line)).collect()
    }

    /// After an orderly shutdown: recovers the cells in place.
    pub(super) fn recover_cells(&mut self) {
        let media = &mut self.machine.memory.shared.media;
        let mut image = SurvivingImage::new(std::mem::take(media));
        image.set_end(self.context.log_end);
        self.design.power_failure(&mut image);
        (self.spec.design.recover)(&self.context, &self.design.registers(), &mut image);
        self.machine.memory.shared.media = image.into_image();
    }
}

/// Faults of the hardware at a power failure. No design promises anything then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The newest accepted writes, of this number, are not drained: the energy of ADR has ended.
    LostDrain(usize),
    /// The accepted writes to a bank, by its number over all channels, are not drained.
    StuckBank(usize),
    /// A word has an uncorrectable error, and holds noise.
    Poison(Addr, u64),
}

/// State that a recovery left, for a machine that is switched on again.
#[derive(Clone)]
pub struct Recovered {
    /// PM.
    pub image: Image,
    /// The design's non-volatile registers; none: as in a new machine.
    pub registers: Option<Vec<u64>>,
}

/// State that a power failure left. The simulation takes its bytes back when this is dropped.
pub struct Crash<'a> {
    simulation: &'a mut Simulation,
    /// The design's non-volatile registers.
    pub registers: Vec<u64>,
    /// The next use of the design begins with the registers as they are.
    keeps_registers: bool,
    /// The image bytes.
    pub image: SurvivingImage,
    /// Words in which durable bytes and architectural memory differed.
    different: u64,
    /// Writes of the image that came before recovery.
    saved: usize,
    /// Content that was kept beyond what the design declares.
    exceeded: Option<String>,
    /// Something that landed or was saved changes what was done ahead.
    unsettles: bool,
}

/// A recovery that was watched while it ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncut {
    /// Words that it wrote.
    pub writes: u64,
    /// Words before the first that it had read before it wrote it; all, if there is none. A recovery that is cut off within these
    /// has changed nothing that the next recovery reads before it writes it: the next one does the same, and leaves the same.
    pub idempotent: u64,
    /// True if it has read words of the programs' data that were written ahead.
    pub reads_settled: bool,
}

impl Crash<'_> {
    /// The words of a line that caches keep: what is written to memory does not change them.
    fn cached_words(&self, line: LineAddr) -> WordMask {
        let keeps = |&word: &usize| self.simulation.machine.keeps_cached(line.word(word));
        let kept = (0..WORDS_PER_LINE).filter(keeps);
        kept.fold(0, |mask, word| mask | 1 << word)
    }

    /// Memory holds this content of a line.
    fn land(&mut self, line: LineAddr, data: &LineData) {
        for word in words_in(!self.cached_words(line)) {
            if self.image.peek(line.word(word)) != data[word] {
                self.image.store(line.word(word), data[word]);
            }
        }
    }

    /// Writes the content that batteries save.
    fn save(&mut self) {
        let before = self.image.written().len();
        self.simulation.design.power_failure(&mut self.image);
        self.registers = self.simulation.design.registers();
        let words = self.image.written().len() - before;
        self.exceeded = self.simulation.battery.exceeded_by(words, &self.registers);
        if let Some(interference) = self.simulation.design.interference() {
            interference.saved(&mut self.image, before);
            interference.registers(&mut self.registers);
        }
        self.keep_settled();
        self.saved = self.image.written().len();
    }

    /// Covers what has landed or was saved in words that are covered; notes if some of it changes what covers them.
    fn keep_settled(&mut self) {
        let Some(settled) = self.simulation.machine.settled() else { return };
        let written = self.image.written();
        self.unsettles = written.iter().any(|w| settled.depends_on(w.addr));
        // The first one of a word found what covers it: that is laid last.
        let covered = written.iter().rev().filter(|w| settled.covers(w.addr));
        let covered: Vec<_> = covered.map(|w| (w.addr, w.old)).collect();
        self.image.store_all(covered);
    }

    /// Returns true if what was done ahead ([`Simulation::settle_ahead`]) is not what a recovery would do, because of what has landed or
    /// was saved when power failed.
    pub fn unsettles(&self) -> bool {
        self.unsettles
    }

    /// Recovers in place, from bytes and registers alone.
    pub fn recover(&mut self) -> RecoveryReport {
        self.image.forget_left();
        let Simulation { spec, context, design, .. } = &mut *self.simulation;
        let recover = |image: &mut _| spec.design.recover(context, &self.registers, image);
        match design.interference() {
            None => recover(&mut self.image),
            Some(interference) => {
                let region = (context.log_start, context.log_end);
                interference.recover(&mut self.image, region, recover)
            }
        }
    }

    /// Recovers in place, and finds out what it makes of a cut where. With it the report.
    pub fn recover_uncut(&mut self) -> (RecoveryReport, Uncut) {
        self.image.keep_steps();
        let report = self.recover();
        let steps = self.image.take_steps();
        let own = &self.image.written()[self.saved..];
        let read = read_before_written(&steps, own);
        let writes = own.len() as u64;
        let first = own.iter().position(|w| read.binary_search(&w.addr).is_ok());
        let idempotent = first.map_or(writes, |first| first as u64);
        let mut loads = steps.iter().flat_map(ThreadSteps::loaded);
        let reads_settled = self.settled().is_some_and(|s| loads.any(|at| s.covers_data(at)));
        (report, Uncut { writes, idempotent, reads_settled })
    }

    /// Returns true if the last recovery has left words as it found them that were written ahead: it would have found others.
    pub fn has_left_settled(&self) -> bool {
        self.settled().is_some_and(|settled| self.image.left().iter().any(|&w| settled.covers(w)))
    }

    /// Returns true if recoveries that find the same do the same: nothing but the design's own code has a hand in them.
    pub fn repeats_itself(&mut self) -> bool {
        self.simulation.design.interference().is_none()
    }

    /// The part of recovery that was done ahead of this power failure; nothing, if it finds the durable bytes alone.
    pub fn settled(&self) -> Option<&Settled> {
        self.simulation.machine.settled()
    }

    /// After a recovery, has the system prepare for the next use of the design ([`DesignInfo::reopening`]), which finds
    /// itself in this context.
    ///
    /// [`DesignInfo::reopening`]: crate::design::DesignInfo::reopening
    pub fn reopen(&mut self, next: &DesignContext) {
        self.keeps_registers = self.simulation.spec.design.reopen(next, &mut self.image);
    }

    /// A copy of what a machine finds that is switched on again after this.
    pub fn recovered(&self) -> Recovered {
        let registers = self.keeps_registers.then(|| self.registers.clone());
        Recovered { image: self.image.image().clone(), registers }
    }

    /// Content that the design's hardware has kept beyond what it declares
    /// ([`DesignInfo::battery`]).
    ///
    /// [`DesignInfo::battery`]: crate::design::DesignInfo::battery
    pub fn exceeded(&self) -> Option<&str> {
        self.exceeded.as_deref()
    }

    /// Writes of the image that came before recovery: in flight, or saved by batteries.
    pub fn saved(&self) -> usize {
        self.saved
    }

    /// Digest of the bytes that power failure has left, as they are now: equal for equal ones, among failures of simulations
    /// that began alike.
    ///
    /// # Panics
    /// Digests are not followed ([`Simulation::follow_digests`]).
    pub fn digest(&self) -> u64 {
        let (domain, _) = self.simulation.machine.digests();
        self.image.written().iter().fold(domain, |digest, w| w.redigested(digest))
    }

    /// Digest of the registers with which the next use begins; 0 if it begins with those of a new machine.
    pub fn kept_registers(&self) -> u64 {
        let kept = self.registers.iter().filter(|_| self.keeps_registers);
        kept.fold(0, |sum, &register| spread(register, sum + 1))
    }

    /// Takes back what recovery, and what came after it, has done.
    pub fn unrecover(&mut self) {
        self.image.rewind(self.saved);
    }

    /// Words in which durable bytes and architectural memory differed, before anything was written to the image.
    pub fn different_words(&self) -> u64 {
        self.different
    }

    /// The simulation that lost power.
    pub fn simulation(&self) -> &Simulation {
        self.simulation
    }

    /// The workload's invariants on the image as it is now.
    ///
    /// # Errors
    /// The first violation found.
    pub fn check_structures(&self) -> Result<(), BrokenInvariant> {
        self.simulation.workload.check(self.image.image())
    }
}

/// The words that a recovery has read before it wrote them, by address. What another thread writes between the same two barriers
/// is taken for later.
fn read_before_written(steps: &[ThreadSteps], written: &[Written]) -> Vec<Addr> {
    let mut words: Vec<Addr> = written.iter().map(|w| w.addr).collect();
    words.sort_unstable();
    words.dedup();
    // Threads take turns, one each between two barriers. Of each word, the turn in which it was stored first or, if that was no
    // earlier than the last barrier, last; 0: it is unwritten.
    let (mut is_read, mut stored_in) = (vec![false; words.len()], vec![0_u64; words.len()]);
    let (mut turn, mut at) = (0, vec![0; steps.len()]);
    while at.iter().zip(steps).any(|(&at, thread)| at < thread.steps().len()) {
        let first_turn = turn + 1;
        for (at, thread) in at.iter_mut().zip(steps) {
            turn += 1;
            let mut next = 0;
            for step in &thread.steps()[*at..] {
                *at += 1;
                match *step {
                    Step::Loads { start, words: count, .. } => {
                        let end = start.plus(u64::from(count) * WORD_BYTES);
                        let first = place_of(&words, start, next);
                        let loaded = words[first..].iter().take_while(|&&word| word < end).count();
                        for word in first..first + loaded {
                            let stored = stored_in[word];
                            is_read[word] |= stored == 0 || stored >= first_turn && stored != turn;
                        }
                    }
                    Step::Store { addr, .. } => {
                        next = place_of(&words, addr, next);
                        if words.get(next) == Some(&addr) {
                            let stored = &mut stored_in[next];
                            if *stored == 0 || *stored >= first_turn {
                                *stored = turn;
                            }
                            next += 1;
                        }
                    }
                    Step::Barrier => break,
                    Step::Work { .. } | Step::Fence => {}
                }
            }
        }
    }
    let read = words.into_iter().zip(is_read).filter(|&(_, is_read)| is_read);
    read.map(|(addr, _)| addr).collect()
}

/// The place of the first of these words, which are in order, that is not before an address. It is often the one at `guess`.
fn place_of(words: &[Addr], addr: Addr, guess: usize) -> usize {
    match words.get(guess) {
        Some(&word) if word == addr => guess,
        _ => words.partition_point(|&word| word < addr),
    }
}

impl Drop for Crash<'_> {
    fn drop(&mut self) {
        let (domain, _) = self.simulation.machine.domain().expect("transactions are followed");
        domain.put_back(std::mem::take(&mut self.image));
    }
}

/// Gives the log region unknown content, and has the system prepare it for the design.
pub(super) fn fill_with_garbage(
    machine: &mut Machine,
    context: &DesignContext,
    format: fn(&DesignContext, &mut SurvivingImage),
    seed: u64,
) {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut media = std::mem::take(&mut machine.memory.shared.media);
    // Words that look like something: small, negative, addresses of data, noise.
    let mut word = || match random.random_range(0..4) {
        0 => random.random_range(0..64),
        1 => u64::MAX - random.random_range(0..64),
        2 => random.random_range(0..context.log_start.0) / WORD_BYTES * WORD_BYTES,
        _ => random.next_u64(),
    };
    for line in context.log_start.line().0..context.log_end.line().0 {
        media.store_line(LineAddr(line), &std::array::from_fn(|_| word()));
    }
    let mut image = SurvivingImage::new(media);
    format(context, &mut image);
    machine.memory.shared.media = image.into_image();
}

#[cfg(test)]
mod tests {
    use super::*;
    use graven_base::recovery_steps::RecoverySteps;

    #[test]
    fn a_word_that_is_read_before_it_is_written_is_found_on_any_thread() {
        let written = |words: &[u64]| -> Vec<Written> {
            words.iter().map(|&addr| Written { addr: Addr(addr), old: 0, new: 1 }).collect()
        };
        // What the threads do, in this order; a barrier is everybody's.
        let read = |steps: &[(usize, char, u64)], words: &[u64]| -> Vec<u64> {
            let mut all = RecoverySteps::default();
            for &(thread, step, addr) in steps {
                match step {
                    'l' => all.thread(thread).load(Addr(addr)),
                    's' => all.thread(thread).store(Addr(addr), 1, false),
                    _ => all.barrier(),
                }
            }
            let read = read_before_written(&all.into_threads(), &written(words));
            read.into_iter().map(|addr| addr.0).collect()
        };
        let one = [(0, 'l', 8), (0, 'l', 16), (0, 's', 16), (0, 's', 24), (0, 'l', 24)];
        assert_eq!(read(&one, &[16, 24]), [16]);
        // Another thread may read before the word is written, unless there is a barrier.
        let barrier = (0, 'b', 0);
        assert_eq!(read(&[(0, 's', 8), (1, 'l', 8), barrier], &[8]), [8]);
        assert_eq!(read(&[(0, 's', 8), barrier, (1, 'l', 8), (1, 's', 16)], &[8, 16]), [0; 0]);
        assert_eq!(read(&[(1, 'l', 16), barrier, (0, 's', 16)], &[16]), [16]);
    }
}
