//! Software atomicity over hardware that orders stores: two designs in one machine, declared with [`layered!`](crate::layered).
//!
//! The software puts code into threads, its fences and the stores to its log among it. The hardware executes the fences, and sees each
//! store of the program and of the log as a store outside transactions. Each has a half of the log region, the software the
//! lower one, and cover points and structures of its own. The mutants are the software's: those of the hardware are judged by what it
//! promises itself. After a power failure the hardware recovers first, then the software from what the hardware has left.

use std::any::TypeId;

use graven_base::config::ConfigError;
use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LINE_BYTES, LineAddr, LineData};
use graven_base::stats::Counts;
use graven_base::surviving::SurvivingImage;

use super::operators::Interference;
use super::plug::{Plug, RawAction};
use super::{
    Code, Departure, Design, DesignContext, DesignInfo, Fill, Guarantee, Miss, MutantSet, OpAction,
    PlainStore, PluggedDesign, RecoveryReport, Stall, Store, Unused,
};
use crate::machine::Machine;
use crate::program::{Op, Persist};
use crate::request::Token;

/// Two designs.
#[derive(Clone, Copy)]
pub struct Layers {
    /// The software.
    pub software: &'static DesignInfo,
    /// The hardware below.
    pub hardware: &'static DesignInfo,
}

impl Layers {
    /// The context of each: its half of the log region; the mutants are the software's.
    fn contexts(self, of: &DesignContext) -> (DesignContext, DesignContext) {
        let half = of.log_bytes() / 2 / LINE_BYTES * LINE_BYTES;
        let middle = of.log_start.plus(half);
        let part = |start: Addr, end: Addr, mutants: MutantSet| DesignContext {
            log_start: start,
            log_end: end,
            mutants,
            ..of.clone()
        };
        (part(of.log_start, middle, of.mutants), part(middle, of.log_end, MutantSet::NONE))
    }

    /// Makes both, or refuses a configuration that one of them cannot work in.
    ///
    /// # Errors
    /// A parameter that one of them cannot work with.
    ///
    /// # Panics
    /// The software asks the machine for more than code in threads, or the hardware promises no order of stores: a mistake in the
    /// declaration.
    pub fn build(self, context: &DesignContext) -> Result<PluggedDesign, ConfigError> {
        let Layers { software, hardware } = self;
        let promise = (hardware.guarantee)(&context.config);
        assert!(
            matches!(promise, Guarantee::Order(_)),
            "{} promises no order of stores that {} could rely on",
            hardware.name,
            software.name
        );
        let (of_software, of_hardware) = self.contexts(context);
        let layered = Layered {
            software: (software.build)(&of_software)?.into_inner(),
            hardware: (hardware.build)(&of_hardware)?.into_inner(),
            first_software_cover: hardware.cover_points.len(),
            first_software_structure: hardware.capacities.len(),
        };
        let takes = layered.hardware.takes_plain_stores();
        assert!(takes, "{} is not told of stores outside transactions", hardware.name);
        assert!(
            layered.software.is_software_alone(),
            "{} is more than code in threads",
            software.name
        );
        Ok(PluggedDesign::of(Box::new(layered)))
    }

    /// Writes what the system writes to the log region before it is put to use.
    pub fn format(self, context: &DesignContext, image: &mut SurvivingImage) {
        let (software, hardware) = self.contexts(context);
        (self.software.format)(&software, image);
        (self.hardware.format)(&hardware, image);
    }

    /// Recovers both, the hardware first.
    pub fn recover(
        self,
        context: &DesignContext,
        registers: &[u64],
        image: &mut SurvivingImage,
    ) -> RecoveryReport {
        let (software, hardware) = self.contexts(context);
        let below = (self.hardware.recover)(&hardware, registers, image);
        let above = (self.software.recover)(&software, &[], image);
        RecoveryReport {
            records_scanned: below.records_scanned + above.records_scanned,
            words_redone: below.words_redone + above.words_redone,
            words_undone: below.words_undone + above.words_undone,
        }
    }

    /// Returns what the hardware keeps when power fails.
    pub fn battery(self, context: &DesignContext) -> super::Battery {
        (self.hardware.battery)(&self.contexts(context).1)
    }
}

/// One list after another.
///
/// # Panics
/// The length is not that of both; so does the compiler, where it is a constant.
pub const fn joined<T: Copy, const N: usize>(first: &[T], second: &[T], filler: T) -> [T; N] {
    assert!(N == first.len() + second.len(), "as many as both have");
    let mut all = [filler; N];
    let mut i = 0;
    while i < N {
        all[i] = if i < first.len() { first[i] } else { second[i - first.len()] };
        i += 1;
    }
    all
}

/// Declares a design of two layers: software that puts ordering fences into threads, over hardware that executes them. The fields that
/// follow are those of [`DesignInfo`](crate::design::DesignInfo) that are the pair's own: its name, what it is, and the path of an
/// acknowledgement at least.
#[macro_export]
macro_rules! layered {
    (
        $(#[doc = $doc:literal])*
        $visibility:vis const $name:ident = $software:path, over $hardware:path {
            $($field:ident: $value:expr,)*
        }
    ) => {
        $(#[doc = $doc])*
        $visibility const $name: $crate::design::DesignInfo = {
            use $crate::design::{Capacity, DesignInfo, Layers, Named, joined};

            const SOFTWARE: &DesignInfo = &$software;
            const HARDWARE: &DesignInfo = &$hardware;
            const LAYERS: Layers = Layers { software: SOFTWARE, hardware: HARDWARE };
            const NOTHING: Named = Named { name: "", summary: "" };
            const COVER: [Named; SOFTWARE.cover_points.len() + HARDWARE.cover_points.len()] =
                joined(HARDWARE.cover_points, SOFTWARE.cover_points, NOTHING);
            const CAPACITIES: [Capacity; SOFTWARE.capacities.len() + HARDWARE.capacities.len()] =
                joined(HARDWARE.capacities, SOFTWARE.capacities, Capacity::NONE);
            const STRESS: [(&str, &[&str]); SOFTWARE.stress.len() + HARDWARE.stress.len()] =
                joined(SOFTWARE.stress, HARDWARE.stress, ("", &[]));
            const SETTINGS: [(&str, &str); SOFTWARE.settings.len() + HARDWARE.settings.len()] =
                joined(SOFTWARE.settings, HARDWARE.settings, ("", ""));
            const SMALL: [(&str, &str); SOFTWARE.scaled_down.len() + HARDWARE.scaled_down.len()] =
                joined(SOFTWARE.scaled_down, HARDWARE.scaled_down, ("", ""));
            const BOTH: DesignInfo = DesignInfo {
                guarantee: SOFTWARE.guarantee,
                build: |context| LAYERS.build(context),
                format: |context, image| LAYERS.format(context, image),
                recover: |context, registers, image| LAYERS.recover(context, registers, image),
                battery: |context| LAYERS.battery(context),
                reopening: HARDWARE.reopening,
                pm_buffer_lines: HARDWARE.pm_buffer_lines,
                mutants: SOFTWARE.mutants,
                counters: || [(SOFTWARE.counters)(), (HARDWARE.counters)()].concat(),
                derived: HARDWARE.derived,
                cover_points: &COVER,
                capacities: &CAPACITIES,
                stress: &STRESS,
                settings: &SETTINGS,
                scaled_down: &SMALL,
                leaves: HARDWARE.leaves,
                rounds: HARDWARE.rounds,
                cost: HARDWARE.cost,
                host_bytes: HARDWARE.host_bytes,
                ..DesignInfo::DEFAULT
            };
            DesignInfo { $($field: $value,)* ..BOTH }
        };
    };
}

/// Both, as the simulation sees them.
struct Layered {
    software: Box<dyn Plug>,
    hardware: Box<dyn Plug>,
    /// Cover points of the hardware, which come first.
    first_software_cover: usize,
    /// Structures of the hardware, which come first, too.
    first_software_structure: usize,
}

impl Layered {
    /// Asks the software, whose cover points come after the hardware's.
    fn above<T>(
        &mut self,
        m: &mut Machine,
        ask: impl FnOnce(&mut dyn Plug, &mut Machine) -> T,
    ) -> T {
        m.cover_from(self.first_software_cover);
        let answer = ask(self.software.as_mut(), m);
        m.cover_from(0);
        answer
    }
}

/// Returns true if a design has no requests, and no timers.
pub(super) fn asks_for_nothing<D: Design>() -> bool {
    let unused = TypeId::of::<Unused>();
    [TypeId::of::<D::Write>(), TypeId::of::<D::Read>(), TypeId::of::<D::Timer>()] == [unused; 3]
}

impl Plug for Layered {
    fn interfere(&mut self, interference: Interference) {
        self.hardware.interfere(interference);
    }

    fn interference(&mut self) -> Option<&mut Interference> {
        self.hardware.interference()
    }

    fn counts(&self) -> Counts {
        let mut counts = self.software.counts();
        counts.extend(self.hardware.counts());
        counts
    }

    fn resume(&mut self, registers: &[u64]) {
        self.hardware.resume(registers);
    }

    fn start(&mut self, m: &mut Machine) {
        self.hardware.start(m);
        self.above(m, |software, m| software.start(m));
    }

    fn tx_begin(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        self.above(m, |software, m| software.tx_begin(m, tx))
    }

    fn store(&mut self, m: &mut Machine, store: &Store) -> Stall {
        let Store { tx, core, addr, old, new } = *store;
        self.hardware.store_plain(m, &PlainStore { thread: tx.thread, core, addr, old, new })
    }

    fn tx_end(&mut self, m: &mut Machine, tx: Tx) -> Stall {
        self.above(m, |software, m| software.tx_end(m, tx))
    }

    fn llc_evict(
        &mut self,
        m: &mut Machine,
        line: LineAddr,
        content: &LineData,
        tag: u8,
    ) -> RawAction {
        self.hardware.llc_evict(m, line, content, tag)
    }

    fn llc_fill(&mut self, m: &mut Machine, miss: &Miss) -> Fill {
        self.hardware.llc_fill(m, miss)
    }

    fn on_durable(&mut self, m: &mut Machine, token: Token) {
        self.hardware.on_durable(m, token);
    }

    fn read_done(&mut self, m: &mut Machine, token: Token, line: LineAddr, content: &LineData) {
        self.hardware.read_done(m, token, line, content);
    }

    fn start_maintenance(&mut self, m: &mut Machine) {
        self.hardware.start_maintenance(m);
    }

    fn timer(&mut self, m: &mut Machine, token: u64) {
        self.hardware.timer(m, token);
    }

    fn is_idle(&self) -> bool {
        self.hardware.is_idle()
    }

    fn shut_down(&mut self, m: &mut Machine) {
        self.hardware.shut_down(m);
    }

    fn power_failure(&self, medium: &mut SurvivingImage) {
        self.hardware.power_failure(medium);
    }

    fn registers(&self) -> Vec<u64> {
        self.hardware.registers()
    }

    fn places_taken(&self, structure: usize) -> u64 {
        match structure.checked_sub(self.first_software_structure) {
            None => self.hardware.places_taken(structure),
            Some(structure) => self.software.places_taken(structure),
        }
    }

    fn accepts_non_temporal(&mut self, _m: &mut Machine, _tx: Tx, _line: LineAddr) -> bool {
        false
    }

    fn store_non_temporal(&mut self, _m: &mut Machine, _store: &Store) -> Stall {
        unreachable!("none is accepted")
    }

    fn takes_plain_stores(&self) -> bool {
        true
    }

    fn store_plain(&mut self, m: &mut Machine, store: &PlainStore) -> Stall {
        self.hardware.store_plain(m, store)
    }

    fn takes_persists(&self) -> bool {
        self.hardware.takes_persists()
    }

    fn persist(
        &mut self,
        m: &mut Machine,
        thread: ThreadId,
        core: u32,
        what: Persist,
    ) -> Option<Stall> {
        self.hardware.persist(m, thread, core, what)
    }

    fn wants_loads(&self) -> bool {
        self.hardware.wants_loads()
    }

    fn load(&mut self, m: &mut Machine, thread: ThreadId, core: u32, addr: Addr) {
        self.hardware.load(m, thread, core, addr);
    }

    fn wants_departures(&self) -> bool {
        self.hardware.wants_departures()
    }

    fn departs(&mut self, m: &mut Machine, departure: &Departure) {
        self.hardware.departs(m, departure);
    }

    fn has_software(&self) -> bool {
        true
    }

    fn is_software_alone(&self) -> bool {
        false
    }

    fn software(
        &mut self,
        m: &mut Machine,
        thread: ThreadId,
        op: &Op,
        code: &mut Code,
    ) -> OpAction {
        let action = self.above(m, |software, m| software.software(m, thread, op, code));
        if let Some(interference) = self.hardware.interference() {
            interference.change_code(code);
        }
        action
    }

    fn absorbs(&self) -> bool {
        self.hardware.absorbs()
    }

    fn has_dirty_words(&self) -> bool {
        self.hardware.has_dirty_words()
    }

    fn drops_lines(&self) -> bool {
        self.hardware.drops_lines()
    }
}
