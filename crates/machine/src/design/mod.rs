//! The interface of persistence designs.
//!
//! A design is the only part of Graven that sees all levels of the machine. The machine calls it at
//! the hardware's own points of action ([`Design`]), and it acts through the [`Machine`] it is handed:
//! writes of given bytes, reads, write-backs, timers, stalls, statistics. All timing goes through the
//! machine; a design never invents a latency that is not a parameter.
//!
//! Recovery stands apart: a function of the surviving bytes and the design's non-volatile registers,
//! and of nothing else ([`DesignInfo::recover`]).

mod code;

use graven_base::config::{Config, ConfigError, Section, Size};
use graven_base::cost::{Costs, NOTHING};
pub use graven_base::ids::{ThreadId, Tx};
use graven_base::memory::{Addr, LineAddr, LineData, MEDIA_LINE_BYTES};
use graven_base::surviving::SurvivingImage;
use graven_base::time::Cycle;

use crate::config::ControllerConfig;
use crate::machine::Machine;
use crate::program::Op;
use crate::request::Token;

pub use code::Code;
pub(crate) use code::Instruction;

/// A transactional store to PM, about to be performed in the L1.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    /// The transaction.
    pub tx: Tx,
    /// The core whose L1 performs it.
    pub core: u32,
    /// Which word.
    pub addr: Addr,
    /// What the word holds.
    pub old: u64,
    /// What it will hold.
    pub new: u64,
}

/// What the thread does after a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// It goes on at once.
    None,
    /// It goes on after so many cycles.
    For(Cycle),
    /// The operation took effect; the thread waits for [`Machine::release`].
    UntilReleased,
    /// The operation did not take effect; it is tried again after [`Machine::release`].
    Retry,
}

/// What becomes of a dirty line that leaves the LLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WritebackAction {
    /// It is written to its home address; it may become durable only after the ordered writes up to
    /// this one (0: at any time).
    Send {
        /// See [`crate::machine::Write::after`].
        after: u64,
        /// Reported to [`Design::on_durable`] when the line is durable; 0: not reported.
        token: Token,
    },
    /// Nothing is sent: the design has taken the bytes. It sends them itself, or returns them when the
    /// line is read ([`Design::llc_fill`]).
    Absorb,
}

/// Where a line that missed in all caches comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// Its home address.
    Home,
    /// A buffer of the design's in the controller, which delivers it after so many cycles.
    Buffer(LineData, Cycle),
    /// The design reads it, from wherever its newest words are, and hands it over ([`Machine::deliver`]).
    Design,
}

/// What becomes of an operation of the program when the design's code for it has been executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpAction {
    /// It is executed.
    Execute,
    /// The code has taken the place of a load, and found this value.
    Return(u64),
    /// The code has taken the place of a transactional store to PM, and will perform it, or a later one to the word,
    /// at the transaction's end ([`Code::end`]).
    Defer,
}

/// A persistence design. Every hook has a default that does nothing.
pub trait Design {
    /// Called once, when the machine is ready and populated.
    fn start(&mut self, _m: &mut Machine) {}

    /// A transaction begins.
    fn tx_begin(&mut self, _m: &mut Machine, _tx: Tx) -> Stall {
        Stall::None
    }

    /// A transactional store reaches the L1. Architectural memory changes right after this returns
    /// (unless it returns [`Stall::Retry`]).
    fn store(&mut self, _m: &mut Machine, _store: &Store) -> Stall {
        Stall::None
    }

    /// Whether a non-temporal store of a transaction to a line may bypass the caches now. If not, it goes
    /// through them like any other.
    fn accepts_non_temporal(&mut self, _m: &mut Machine, _tx: Tx, _line: LineAddr) -> bool {
        false
    }

    /// It does: no cache has its line. Architectural memory changes right after this returns (unless it
    /// returns [`Stall::Retry`]), and the design answers for what is read of the line.
    fn store_non_temporal(&mut self, _m: &mut Machine, _store: &Store) -> Stall {
        unreachable!("only a design that takes them gets them")
    }

    /// A transaction ends; all its stores have been performed. The commit is acknowledged when this
    /// lets the thread go on. ([`Stall::Retry`] is allowed, too.)
    fn tx_end(&mut self, _m: &mut Machine, _tx: Tx) -> Stall {
        Stall::None
    }

    /// Whether [`Design::l1_evict`] is to be called.
    fn wants_l1_evictions(&self) -> bool {
        false
    }

    /// A line has left a core's L1 (evicted or invalidated). Its content is the architectural one.
    fn l1_evict(&mut self, _m: &mut Machine, _core: u32, _line: LineAddr, _dirty: bool) {}

    /// A dirty PM line has left the LLC, with this content; or stays, clean, as a clwb instruction writes it back
    /// (then it cannot be kept from memory).
    fn llc_evict(
        &mut self,
        _m: &mut Machine,
        _line: LineAddr,
        _content: &LineData,
    ) -> WritebackAction {
        WritebackAction::Send { after: 0, token: 0 }
    }

    /// A PM line is about to be read into the caches; the request reaches the controller after `delay`.
    fn llc_fill(&mut self, _m: &mut Machine, _line: LineAddr, _delay: Cycle) -> Fill {
        Fill::Home
    }

    /// Whether [`Design::software`] is to be called.
    fn has_software(&self) -> bool {
        false
    }

    /// What the design has its thread execute before an operation of the program, if part of the design is
    /// software: lookups, appends, updates of an index in DRAM ([`crate::machine::MemorySystem::dram_heap`]).
    /// The code may take the operation's place.
    fn software(
        &mut self,
        _m: &mut Machine,
        _thread: ThreadId,
        _op: &Op,
        _code: &mut Code,
    ) -> OpAction {
        OpAction::Execute
    }

    /// A whole line of data, evicted or written back, has been accepted by a write queue.
    fn line_written_back(&mut self, _m: &mut Machine, _line: LineAddr) {}

    /// A write that carried this token is durable.
    fn on_durable(&mut self, _m: &mut Machine, _token: Token) {}

    /// A read that the design issued has delivered a line.
    fn read_done(&mut self, _m: &mut Machine, _token: Token, _line: LineAddr, _content: &LineData) {
    }

    /// The design's periodic work (a scan, a collection), if it has any, is to begin now, as if its time
    /// had come.
    fn start_maintenance(&mut self, _m: &mut Machine) {}

    /// A timer of the design fires.
    fn timer(&mut self, _m: &mut Machine, _token: u64) {}

    /// Whether the design has whatever dirty lines hold, so that they are dropped when they leave the caches.
    fn has_dirty_words(&self) -> bool {
        false
    }

    /// Whether background work of finished transactions is still to be done.
    fn is_idle(&self) -> bool {
        true
    }

    /// The system shuts down in order: what committed transactions still owe the log goes there now.
    fn shut_down(&mut self, _m: &mut Machine) {}

    /// Power fails. What batteries or ADR save beyond the machine's own domain is written to the
    /// image here, bounded by the capacity that the design claims; the rest is lost.
    fn power_failure(&self, _medium: &mut SurvivingImage) {}

    /// The design's non-volatile registers, as power leaves them.
    fn registers(&self) -> Vec<u64> {
        Vec::new()
    }
}

/// What a design is built for, and what its recovery may know: configuration, no state.
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
    /// What has been made worse.
    pub mutants: Mutants,
}

impl DesignContext {
    /// A context without anything that the laboratory adds.
    pub fn new(config: Config, threads: u32, log_start: Addr, log_end: Addr) -> DesignContext {
        let mutants = Mutants::NONE;
        DesignContext { config, threads, log_start, log_end, first_transaction: 0, mutants }
    }

    /// Bytes of the log region.
    pub fn log_bytes(&self) -> u64 {
        self.log_end.0 - self.log_start.0
    }

    /// Where the log area of a thread begins. Areas lie one after the other with a page between them, so
    /// that the areas of threads that log in step begin in different banks.
    pub fn thread_area(&self, thread: ThreadId, bytes: u64) -> Addr {
        self.log_start.plus(u64::from(thread) * self.thread_area_stride(bytes))
    }

    fn thread_area_stride(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(MEDIA_LINE_BYTES)
            + self.config.get::<ControllerConfig>().page_bytes.0
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

/// What a recovery did, from which its time can be derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Log entries and records examined.
    pub records_scanned: u64,
    /// Words written to their homes because their transactions had committed.
    pub words_redone: u64,
    /// Words written to their homes because their transactions had not.
    pub words_undone: u64,
}

/// What a design guarantees of acknowledged transactions. All guarantee that no other leaves a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// Nothing: an unsafe reference. It is judged as if it guaranteed durability.
    None,
    /// The survivors are the first so-many in the order in which transactions reached their ends.
    Prefix,
    /// Every one survives.
    Durable,
}

/// A name with one line about it.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    /// What users call it.
    pub name: &'static str,
    /// What it is.
    pub summary: &'static str,
}

/// Which of a design's mutants are in force; a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mutants(u64);

impl Mutants {
    /// None.
    pub const NONE: Mutants = Mutants(0);

    /// The one at this place of [`DesignInfo::mutants`].
    pub const fn only(index: usize) -> Mutants {
        Mutants(1 << index)
    }

    /// Both sets.
    pub const fn and(self, other: Mutants) -> Mutants {
        Mutants(self.0 | other.0)
    }

    /// Whether one is in force.
    #[inline]
    pub fn has(self, mutant: impl Into<usize>) -> bool {
        self.0 >> mutant.into() & 1 != 0
    }
}

/// Declares a design's mutants: single-point changes for the worse, each of which the laboratory must
/// violate. The enum's order is that of `NAMED`, for [`DesignInfo::mutants`].
#[macro_export]
macro_rules! mutants {
    ($($(#[doc = $doc:literal])+ $variant:ident = $name:literal;)+) => {
        /// Single-point changes for the worse.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Mutant {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Mutant {
            const NAMED: &'static [$crate::design::Named] = &[$($crate::design::Named {
                name: $name,
                summary: concat!($($doc),+),
            },)+];
        }

        impl Mutant {
            /// Several, as a set.
            #[allow(dead_code, reason = "only a literal variant has several at once")]
            const fn all(of: &[Mutant]) -> $crate::design::Mutants {
                let (mut set, mut i) = ($crate::design::Mutants::NONE, 0);
                while i < of.len() {
                    set = set.and($crate::design::Mutants::only(of[i] as usize));
                    i += 1;
                }
                set
            }
        }

        impl From<Mutant> for usize {
            fn from(mutant: Mutant) -> usize {
                mutant as usize
            }
        }
    };
}

/// Declares the states of a design that are worth reaching, in the order of `COVER_POINTS`, for [`DesignInfo::cover_points`].
#[macro_export]
macro_rules! cover_points {
    ($($variant:ident = $name:literal, $summary:literal;)+) => {
        /// A state worth reaching.
        #[derive(Clone, Copy, Debug)]
        pub enum Cover {
            $(#[doc = $summary] $variant,)+
        }

        /// All of them.
        pub const COVER_POINTS: &[$crate::design::Named] =
            &[$($crate::design::Named { name: $name, summary: $summary },)+];
    };
}

/// A design that users can name.
pub struct DesignInfo {
    /// What users call it.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Where it is from.
    pub paper: &'static str,
    /// What it guarantees in a configuration that has its parameter set ([`DesignInfo::guarantee_in`]). Unsafe
    /// references are marked wherever they are printed.
    pub guarantee: fn(&Config) -> Guarantee,
    /// Whether comparisons include it unless told otherwise.
    pub default: bool,
    /// Its parameters, if it has any.
    pub section: Option<fn() -> Box<dyn Section>>,
    /// The parameter set that its name stands for, beside those of its section's defaults: what it takes to be
    /// this one of several designs that share a mechanism. A user's own setting goes before.
    pub settings: &'static [(&'static str, &'static str)],
    /// Makes one, or refuses a configuration that it cannot work in.
    pub build: fn(&DesignContext) -> Result<Box<dyn Design>, ConfigError>,
    /// What the system writes to a log region of unknown content before it is put to use.
    pub format: fn(&DesignContext, &mut SurvivingImage),
    /// Brings the surviving bytes into a committed state, using the registers and nothing else.
    pub recover: fn(&DesignContext, &[u64], &mut SurvivingImage) -> RecoveryReport,
    /// Single-point changes for the worse, by which the laboratory is tested.
    pub mutants: &'static [Named],
    /// Those that are always in force: the design as published, where that loses data.
    pub inherent: Mutants,
    /// States worth reaching in a campaign; [`Machine::cover point`] counts them.
    pub cover_points: &'static [Named],
    /// Parameters under stress: values from which an adversary draws. Where some do not go with each other,
    /// keys that are joined by `+` get values that are.
    pub stress: &'static [(&'static str, &'static [&'static str])],
    /// What its hardware costs.
    pub cost: Costs,
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
        build: |_| unreachable!("an entry names how its design is built"),
        format: |_, _| {},
        recover: |_, _, _| RecoveryReport { records_scanned: 0, words_redone: 0, words_undone: 0 },
        mutants: &[],
        inherent: Mutants::NONE,
        cover_points: &[],
        stress: &[],
        cost: NOTHING,
    };

    /// The mutant of a name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownName`] with those that exist.
    pub fn mutant(&self, name: &str) -> Result<Mutants, ConfigError> {
        let found = self.mutants.iter().position(|s| s.name == name);
        found.map(Mutants::only).ok_or_else(|| {
            let known: Vec<&str> = self.mutants.iter().map(|s| s.name).collect();
            ConfigError::unknown_name("mutant", name, &known)
        })
    }

    /// A configuration with the parameter set that the design's name stands for.
    pub fn configured(&self, mut config: Config) -> Config {
        config.adopt(self.name, self.settings);
        config
    }

    /// What it guarantees in a configuration.
    pub fn guarantee_in(&self, config: &Config) -> Guarantee {
        (self.guarantee)(&self.configured(config.clone()))
    }

    /// Whether it guarantees something in a configuration and is not known to break it.
    pub fn is_sound(&self, config: &Config) -> bool {
        self.is_safe(config) && self.inherent == Mutants::NONE
    }

    /// Whether it guarantees anything in a configuration.
    pub fn is_safe(&self, config: &Config) -> bool {
        self.guarantee_in(config) != Guarantee::None
    }
}
