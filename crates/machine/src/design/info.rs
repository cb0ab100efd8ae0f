//! A design as users name it, what it is built for, and what it guarantees.

use graven_base::config::{Config, ConfigError, Section, Size};
use graven_base::cost::{Costs, UNDECLARED};
use graven_base::ids::ThreadId;
use graven_base::memory::{Addr, Field, MEDIA_LINE_BYTES, WORD_BYTES};
use graven_base::stats::{Declaration, Derived};
use graven_base::surviving::SurvivingImage;
use graven_persistency::cut::Order;

use super::operators::{self, Operator};
use super::{Acknowledgement, Capacity, MutantSet, Mutants, PluggedDesign};
use crate::config::{ControllerConfig, LogAreas, PmConfig};
use crate::controller::settled::Settlement;
use crate::request::Mapping;

/// Context of a design and of its recovery: configuration, no state.
#[derive(Clone, Debug)]
pub struct DesignContext {
    /// The whole configuration.
    pub config: Config,
    /// Program threads.
    pub threads: u32,
    /// First byte of the log region.
    pub log_start: Addr,
    /// One past its last byte.
    pub log_end: Addr,
    /// Number of each thread's first transaction.
    pub first_transaction: u64,
    /// Mutants in force.
    pub mutants: MutantSet,
}

impl DesignContext {
    /// A context without anything that the laboratory adds.
    pub fn new(config: Config, threads: u32, log_start: Addr, log_end: Addr) -> DesignContext {
        let mutants = MutantSet::NONE;
        DesignContext { config, threads, log_start, log_end, first_transaction: 0, mutants }
    }

    /// Those of a design's own mutants that are in force.
    pub fn mutants<M: Into<usize>>(&self) -> Mutants<M> {
        Mutants::of(self.mutants)
    }

    /// With which number a counter begins that does not come round, and that is kept in a field: as many are behind it as
    /// transactions are behind the first one, but no more than half of what the field can count.
    pub fn first_number(&self, field: Field) -> u64 {
        self.first_transaction & (field.max() >> 1)
    }

    /// Bytes of the log region.
    pub fn log_bytes(&self) -> u64 {
        self.log_end.0 - self.log_start.0
    }

    /// Start of the log area of a thread. Areas lie one after the other; `pm.log_areas` decides
    /// whether they begin in different banks, with a page between them, or all in one.
    pub fn thread_area(&self, thread: ThreadId, bytes: u64) -> Addr {
        self.log_start.plus(u64::from(thread) * self.thread_area_stride(bytes))
    }

    fn thread_area_stride(&self, bytes: u64) -> u64 {
        let area = bytes.next_multiple_of(MEDIA_LINE_BYTES);
        match self.config.get::<PmConfig>().log_areas {
            LogAreas::Staggered => area + self.config.get::<ControllerConfig>().page_bytes.0,
            LogAreas::OneBank => {
                let Mapping { unit_bytes, channels, banks, .. } = Mapping::of(&self.config);
                // Addresses so far apart lie in the same bank; areas begin with a media line, too.
                let round = unit_bytes * channels * banks;
                let aligned = round.is_multiple_of(MEDIA_LINE_BYTES);
                let round = if aligned { round } else { round * MEDIA_LINE_BYTES };
                (area + MEDIA_LINE_BYTES).next_multiple_of(round)
            }
        }
    }

    /// Checks that the log areas of all threads, of the size that parameter `key` gives, fit the log
    /// region.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] with what would be needed.
    pub fn check_thread_areas(&self, key: &str, bytes: u64) -> Result<(), ConfigError> {
        let needed = u64::from(self.threads) * self.thread_area_stride(bytes);
        if needed <= self.log_bytes() {
            return Ok(());
        }
        let why = format!(
            "{} threads need {} of pm.log_region_bytes = {}",
            self.threads,
            Size(needed),
            Size(self.log_bytes())
        );
        Err(self.config.inconsistent(&[key, "pm.log_region_bytes"], why))
    }
}

/// Work of a recovery, from which its time can be derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Log entries and records examined.
    pub records_scanned: u64,
    /// Words written to their homes because their transactions had committed.
    pub words_redone: u64,
    /// Words written to their homes because their transactions had not.
    pub words_undone: u64,
}

/// Guarantee of a design: for acknowledged transactions, where all guarantee that no other leaves a trace; or an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Nothing: an unsafe reference. It is checked as if it guaranteed durability.
    None,
    /// The surviving transactions form a prefix of the order in which transactions reached their ends.
    Prefix {
        /// Acknowledged transactions that may be missing from it, at most: the delay of durability is bounded.
        lost_max: u64,
    },
    /// Every one survives.
    Durable,
    /// Stores survive in an order: of programs that say by themselves what must be durable when, in transactions or without.
    Order(&'static Order),
}

impl Guarantee {
    /// Returns true if acknowledged transactions may be lost, from the newest on.
    pub fn is_of_order(self) -> bool {
        matches!(self, Guarantee::Prefix { .. })
    }

    /// The order in which stores survive, if that is what it is.
    pub fn order(self) -> Option<&'static Order> {
        match self {
            Guarantee::Order(order) => Some(order),
            _ => None,
        }
    }
}

/// State in which a design leaves the lines in the caches that transactions have stored to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// They are dirty, and only the caches hold what they hold, until they are evicted.
    Dirty,
    /// They are dirty, and PM has what they hold.
    AtHome,
    /// They are clean: the design has them written back.
    Clean,
}

/// Work that a design does from time to time. A region of a run is in steady state only if it has come round.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// The counter of the design's that counts it.
    pub counter: &'static str,
    /// Times that it must have come before the region.
    pub before: u64,
    /// And how often within.
    pub within: u64,
}

/// Treatment of a design's log region and non-volatile registers between the end of a recovery and
/// the next use.
#[derive(Clone, Copy, Debug)]
pub enum Reopening {
    /// The system prepares the region as it does before the first use ([`DesignInfo::format`]), and the registers are as they
    /// are in a new machine. In the first page of PM, which is the system's own, a word says that it is at it: if power
    /// fails before it has ended, it begins again, and there is nothing to recover.
    Formatted,
    /// The registers are as they are in a new machine. The region is as recovery has left it.
    RegistersReset,
    /// None: the design continues with the state that recovery has left, registers included
    /// ([`super::Design::resume`]).
    AsRecovered,
}

/// Content that the hardware of a design keeps when power fails, beside memory's. The machine holds
/// the design to it: any more is a broken guarantee, whatever recovery makes of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Battery {
    /// Bytes that are written to PM by energy that is stored for it ([`super::Design::on_power_failure`]), each word counted
    /// as often as it is written.
    pub bytes: u64,
    /// Non-volatile registers ([`super::Design::registers`]).
    pub registers: usize,
    /// Bits of each of them.
    pub register_bits: u32,
}

impl Battery {
    /// Nothing is kept.
    pub const NONE: Battery = Battery { bytes: 0, registers: 0, register_bits: 0 };

    /// Describes the excess over it, if any: `words` words were written, and `registers` are the
    /// registers.
    pub fn exceeded_by(&self, words: usize, registers: &[u64]) -> Option<String> {
        let bytes = words as u64 * WORD_BYTES;
        if bytes > self.bytes {
            let allowed = self.bytes;
            return Some(format!(
                "batteries write {bytes} B when power fails; the design declares {allowed} B"
            ));
        }
        if registers.len() > self.registers {
            let (found, allowed) = (registers.len(), self.registers);
            return Some(format!(
                "{found} non-volatile registers are kept; the design declares {allowed}"
            ));
        }
        let bits = self.register_bits;
        let fits = |&register: &u64| bits >= 64 || register >> bits == 0;
        let at = registers.iter().position(|register| !fits(register))?;
        Some(format!(
            "register {at} holds {:#x}; the design declares registers of {bits} bits",
            registers[at]
        ))
    }
}

/// The word that says that the system is preparing the log region.
const PREPARING: Addr = Addr(8);

/// A name with one line about it.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// Name for users.
    pub name: &'static str,
    /// Description in a line.
    pub summary: &'static str,
}

/// A design that users can name.
pub struct DesignInfo {
    /// Name for users.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Paper that it is from.
    pub paper: &'static str,
    /// Guarantee in a configuration that has its parameter set ([`DesignInfo::guarantee_in`]).
    /// Unsafe references are marked wherever they are printed.
    pub guarantee: fn(&Config) -> Guarantee,
    /// True if comparisons include it by default.
    pub default: bool,
    /// Parameters, if it has any.
    pub section: Option<fn() -> Box<dyn Section>>,
    /// The parameter set that its name stands for, beside those of its section's defaults: what it takes to be
    /// this one of several designs that share a mechanism. A user's own setting goes before.
    pub settings: &'static [(&'static str, &'static str)],
    /// Lines of the on-PM buffer that the design brings along in a configuration, where a paper counts one among its
    /// design's mechanisms (Silo §VI-A); the device has as many, or the machine's own if those are more. 0: none.
    pub pm_buffer_lines: fn(&Config) -> u32,
    /// Makes one, or refuses a configuration that it cannot work in.
    pub build: fn(&DesignContext) -> Result<PluggedDesign, ConfigError>,
    /// Content that the system writes to a log region of unknown content before it is put to use.
    pub format: fn(&DesignContext, &mut SurvivingImage),
    /// Steps between the end of a transaction and its acknowledgement. A contract test holds the
    /// design to it.
    pub acknowledgement: Acknowledgement,
    /// Brings the surviving bytes into a committed state, using the registers and nothing else.
    pub recover: fn(&DesignContext, &[u64], &mut SurvivingImage) -> RecoveryReport,
    /// Replays the oldest records ahead of power failures, if the recoveries after all of the next ones replay them: writes their
    /// words home and removes the records from the log. A recovery from these bytes leaves the same, byte for byte, as one from the
    /// bytes before. A crash campaign calls it with the durable bytes, without mutants, and keeps what it writes until a word
    /// changes on which that depends. The campaign recovers some power failures both ways and compares.
    pub settle: fn(&DesignContext, &mut SurvivingImage) -> Option<Settlement>,
    /// Content that its hardware keeps when power fails.
    pub battery: fn(&DesignContext) -> Battery,
    /// Treatment of the log region by the system between the end of a recovery and the next use of
    /// the design. Power may fail in it, too: then recovery begins again.
    pub reopening: Reopening,
    /// Single-point changes for the worse, by which the laboratory is tested.
    pub mutants: &'static [Named],
    /// Those that are always in force: the design as published, where that loses data.
    pub inherent: MutantSet,
    /// Declarations of its events' counters
    /// ([`DesignEvent::Counters`](super::DesignEvent::Counters)). A name that several designs
    /// declare means one kind of number in one unit.
    pub counters: fn() -> Vec<&'static Declaration>,
    /// Statistics that are derived from these.
    pub derived: &'static [Derived],
    /// States worth reaching in a campaign; [`super::Observation::cover`] counts them.
    pub cover_points: &'static [Named],
    /// Structures of its hardware that have places for a limited number of entries ([`super::Design::places_taken`]).
    pub capacities: &'static [Capacity],
    /// Parameters under stress: values from which an adversary draws. Where some do not go with each other,
    /// keys that are joined by `+` get values that are.
    pub stress: &'static [(&'static str, &'static [&'static str])],
    /// Parameters scaled down for programs of a few stores: structures, logs and fields in which two threads of two stores each
    /// just find room, so that within three transactions they fill, overflow and come round.
    pub scaled_down: &'static [(&'static str, &'static str)],
    /// State, in a configuration, of lines that transactions have stored to in the caches of a
    /// system that runs for long.
    pub leaves: fn(&Config) -> Leaves,
    /// Work that it does from time to time in a configuration.
    pub rounds: fn(&Config) -> &'static [Rounds],
    /// Hardware cost.
    pub cost: Costs,
    /// Host memory that the simulated design takes for its own tables, at most, in bytes, where that is much. `lines`: lines
    /// that the programs store to, at most.
    pub host_bytes: fn(&DesignContext, u64) -> u64,
}

impl DesignInfo {
    /// A design without any of what is optional, to fill up entries with.
    pub const DEFAULT: DesignInfo = DesignInfo {
        name: "",
        summary: "",
        paper: "",
        guarantee: |_| Guarantee::None,
        default: true,
        section: None,
        settings: &[],
        pm_buffer_lines: |_| 0,
        build: |_| panic!("an entry of a design has no `build`; it wraps the design with `plug`"),
        format: |_, _| {},
        acknowledgement: Acknowledgement::AT_ONCE,
        recover: |_, _, _| RecoveryReport { records_scanned: 0, words_redone: 0, words_undone: 0 },
        settle: |_, _| None,
        battery: |_| Battery::NONE,
        reopening: Reopening::Formatted,
        mutants: &[],
        inherent: MutantSet::NONE,
        counters: Vec::new,
        derived: &[],
        cover_points: &[],
        capacities: &[],
        stress: &[],
        scaled_down: &[],
        leaves: |_| Leaves::Dirty,
        rounds: |_| &[],
        cost: UNDECLARED,
        host_bytes: |_, _| 0,
    };

    /// The states worth reaching that a campaign counts: its cover points, then each of its structures exactly full.
    pub fn covered(&self) -> impl Iterator<Item = &Named> {
        self.cover_points.iter().chain(self.capacities.iter().map(|capacity| &capacity.full))
    }

    /// The statistics that it adds to the machine's: its counters, then what is derived from them.
    pub fn statistics(&self) -> impl Iterator<Item = &'static Declaration> {
        (self.counters)().into_iter().chain(self.derived.iter().map(|d| &d.declaration))
    }

    /// The mutant of a name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownName`] with those that exist.
    pub fn mutant(&self, name: &str) -> Result<MutantSet, ConfigError> {
        let found = self.mutants.iter().position(|s| s.name == name);
        found.map(MutantSet::only).ok_or_else(|| {
            let known: Vec<&str> = self.mutants.iter().map(|s| s.name).collect();
            ConfigError::unknown_name("mutant", name, &known)
        })
    }

    /// Mutation in force under the name of a mutant of the design's own, or an operator as text.
    ///
    /// # Errors
    /// [`ConfigError::UnknownName`] with the mutants that exist; for what looks like an operator, those that are allowed.
    pub fn mutation(&self, name: &str) -> Result<(MutantSet, Option<Operator>), ConfigError> {
        match (self.mutant(name), name.parse::<Operator>()) {
            (Ok(mutants), _) => Ok((mutants, None)),
            (Err(_), Ok(operator)) => Ok((MutantSet::NONE, Some(operator))),
            (Err(_), Err(_)) if name.contains('(') => Err(ConfigError::Value {
                origin: "argument".into(),
                key: "mutant".into(),
                value: name.into(),
                allowed: format!(
                    "a mutant of {}, or a mutation operator: {}",
                    self.name,
                    operators::ALLOWED
                ),
            }),
            (Err(unknown), Err(_)) => Err(unknown),
        }
    }

    /// Brings surviving bytes into a committed state ([`DesignInfo::recover`]), unless power failed while the system was
    /// preparing the region for the next use: recovery had ended then.
    pub fn recover(
        &self,
        context: &DesignContext,
        registers: &[u64],
        image: &mut SurvivingImage,
    ) -> RecoveryReport {
        if image.peek(PREPARING) != 0 {
            return RecoveryReport::default();
        }
        (self.recover)(context, registers, image)
    }

    /// Has the system prepare for the next use after a recovery; returns whether the registers keep what they hold.
    pub fn reopen(&self, context: &DesignContext, image: &mut SurvivingImage) -> bool {
        match self.reopening {
            Reopening::Formatted => {
                image.store(PREPARING, 1);
                (self.format)(context, image);
                image.store(PREPARING, 0);
                false
            }
            Reopening::RegistersReset => false,
            Reopening::AsRecovered => true,
        }
    }

    /// A configuration with the parameter set that the design's name stands for.
    pub fn configured(&self, mut config: Config) -> Config {
        config.adopt(self.name, self.settings);
        config
    }

    /// Guarantee in a configuration.
    pub fn guarantee_in(&self, config: &Config) -> Guarantee {
        (self.guarantee)(&self.configured(config.clone()))
    }

    /// Returns true if it guarantees anything in a configuration and is not known to break it.
    pub fn is_sound(&self, config: &Config) -> bool {
        self.is_safe(config) && self.inherent == MutantSet::NONE
    }

    /// Returns true if it guarantees anything in a configuration.
    pub fn is_safe(&self, config: &Config) -> bool {
        self.guarantee_in(config) != Guarantee::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_battery_is_held_to_bytes_registers_and_their_widths() {
        let battery = Battery { bytes: 16, registers: 2, register_bits: 8 };
        assert_eq!(battery.exceeded_by(2, &[255, 0]), None);
        assert_eq!(Battery { register_bits: 64, ..battery }.exceeded_by(0, &[u64::MAX]), None);
        let texts = [(3, &[0][..]), (0, &[1, 2, 3]), (0, &[1, 256])]
            .map(|(words, registers)| battery.exceeded_by(words, registers).expect("too much"));
        assert_eq!(texts[0], "batteries write 24 B when power fails; the design declares 16 B");
        assert_eq!(texts[1], "3 non-volatile registers are kept; the design declares 2");
        assert_eq!(texts[2], "register 1 holds 0x100; the design declares registers of 8 bits");
        assert!(Battery::NONE.exceeded_by(1, &[]).is_some());
    }

    /// Class of bug: areas whose places do not follow the machine's interleaving.
    #[test]
    fn areas_of_threads_begin_in_different_banks_or_in_one() {
        for (interleave, channels, bytes) in [
            ("page", "1", 128 << 10),
            ("page", "4", 100_000),
            ("line", "1", 128),
            ("line", "4", 4096),
        ] {
            let banks = |areas: &str| {
                let mut config = crate::registry::Registry::new().defaults();
                for (key, value) in [
                    ("controller.interleave", interleave),
                    ("controller.channels", channels),
                    ("pm.log_areas", areas),
                ] {
                    config.set(key, value).expect("a value that is allowed");
                }
                let mapping = Mapping::of(&config);
                let context = DesignContext::new(config, 8, Addr(1 << 30), Addr(2 << 30));
                let starts: Vec<u64> = (0..8).map(|t| context.thread_area(t, bytes).0).collect();
                assert!(starts.windows(2).all(|two| two[0] + bytes <= two[1]), "none overlaps");
                assert!(starts.iter().all(|start| start.is_multiple_of(MEDIA_LINE_BYTES)));
                let place = |&start: &u64| {
                    let place = mapping.place(Addr(start).line());
                    (place.channel, place.bank)
                };
                starts.iter().map(place).collect::<BTreeSet<_>>().len()
            };
            assert_eq!(banks("one-bank"), 1, "{interleave}, {channels} channels");
            if interleave == "page" {
                assert!(banks("staggered") > 4, "{channels} channels");
            }
        }
    }

    #[test]
    fn areas_that_do_not_fit_are_refused() {
        for areas in ["staggered", "one-bank"] {
            let mut config = crate::registry::Registry::new().defaults();
            config.set("pm.log_areas", areas).expect("a value that is allowed");
            let context = DesignContext::new(config, 4, Addr(0), Addr(1 << 20));
            assert!(context.check_thread_areas("pm.capacity_bytes", 128 << 10).is_ok(), "{areas}");
            assert!(context.check_thread_areas("pm.capacity_bytes", 1 << 20).is_err(), "{areas}");
        }
    }
}
