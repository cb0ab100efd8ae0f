//! Specification of a simulation, checked before anything runs.

use crate::config::{CoreConfig, DomainConfig, DramConfig, PmConfig, validate};
use crate::controller::adversary::Choices;
use crate::design::operators::Operator;
use crate::design::{self, DesignContext, MutantSet, Plug};
use crate::stats::region::RegionConfig;
use crate::stats::{RECOVERY_TRANSACTIONS, RecoveryConfig};
use crate::workload::{self, WorkloadConfig};
use graven_base::config::{Config, ConfigError};
use graven_base::memory::Addr;

use std::sync::Arc;

/// First byte of PM that a workload may use: address 0 stays the null pointer.
pub(super) const DATA_START: Addr = Addr(4096);

/// Halvings of a program that is too long for PM or host, at most ([`Spec::new`], regions in steady state).
const HALVED_MAX: u32 = 4;

/// Bytes that a program may insert, at most, if halving it gets there.
const BLOCK_BYTES_MAX: u64 = 2 << 30;

/// Specification of a simulation.
#[derive(Clone)]
pub struct Spec {
    /// Machine, design and workload parameters.
    pub config: Config,
    /// The design.
    pub design: &'static design::DesignInfo,
    /// The workload.
    pub workload: &'static workload::WorkloadInfo,
    /// Program threads.
    pub threads: u32,
    /// Transactions over all threads.
    pub transactions: u64,
    /// Seed of everything random.
    pub seed: u64,
    /// Options of the crash laboratory.
    pub crash_options: CrashOptions,
    /// Programs of the threads, if they are not those that the workload builds.
    pub programs: Option<Programs>,
}

/// Builds what threads do: programs that were recorded.
#[derive(Clone)]
pub struct Programs(Arc<MakeWorkload>);

type MakeWorkload = dyn Fn() -> Result<Box<dyn workload::Workload>, ConfigError> + Send + Sync;

impl Programs {
    /// Built so, as often as they run.
    pub fn new(
        make: impl Fn() -> Result<Box<dyn workload::Workload>, ConfigError> + Send + Sync + 'static,
    ) -> Programs {
        Programs(Arc::new(make))
    }

    /// Builds them.
    ///
    /// # Errors
    /// What was recorded cannot be built.
    pub fn build(&self) -> Result<Box<dyn workload::Workload>, ConfigError> {
        (self.0)()
    }
}

/// Additions of the crash laboratory to a specification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrashOptions {
    /// Mutants of the design's own that are in force.
    pub mutants: MutantSet,
    /// A mutation operator that is in force.
    pub operator: Option<Operator>,
    /// Number of each thread's first transaction, so that ids wrap soon.
    pub first_transaction: u64,
    /// Seed of the bytes that the log region holds at first; none: zeroes.
    pub garbage: Option<u64>,
    /// Choices of delays and orders in memory by an adversary; `None`: no adversary.
    pub adversary: Option<Choices>,
}

impl Spec {
    /// A checked specification, with the parameter sets that the names of design and workload stand for. By default
    /// there is one thread per core and 10,000 transactions. Where a region in steady state is measured, it has as many, and the programs
    /// have more.
    ///
    /// # Errors
    /// Values that do not fit each other.
    pub fn new(
        config: Config,
        design: &'static design::DesignInfo,
        workload: &'static workload::WorkloadInfo,
        threads: Option<u64>,
        transactions: Option<u64>,
        seed: u64,
    ) -> Result<Spec, ConfigError> {
        let mut config = design.configured(config);
        config.adopt(workload.name, workload.settings);
        let given = argument("transactions", transactions, 10_000, 1..=1 << 40, String::new)?;
        if !config.get::<RegionConfig>().is_steady() {
            return Spec::checked(config, design, workload, threads, given, seed);
        }
        if transactions.is_some() {
            config.set("region.transactions", &given.to_string())?;
        }
        let mut spec = Spec::checked(config, design, workload, threads, given, seed)?;
        let region = spec.config.get::<RegionConfig>();
        spec.transactions = region.program_transactions(spec.threads);
        Ok(spec.shortened_to_fit())
    }

    /// Transactions that a run will have committed at its end, as far as is known before.
    pub fn expected_transactions(&self) -> u64 {
        let region = self.config.get::<RegionConfig>();
        if !region.is_steady() || self.programs.is_some() {
            return self.transactions;
        }
        region.expected_transactions().min(self.transactions)
    }

    /// Pieces of the region that a run measures, each to be simulated by itself ([`super::in_pieces`]); 1: there are none.
    pub fn pieces(&self) -> u32 {
        if self.programs.is_some() { 1 } else { self.config.get::<RegionConfig>().pieces }
    }

    /// The progress of a run at its end, in transactions: of a run whose recoveries are timed, it runs again for them.
    pub fn expected_work(&self) -> u64 {
        let transactions = self.expected_transactions();
        match self.config.get::<RecoveryConfig>().count() {
            0 => transactions,
            recoveries => 2 * transactions + RECOVERY_TRANSACTIONS * recoveries,
        }
    }

    /// Halves a program until PM and host have room for all that its transactions may insert. A region in steady state mostly needs a
    /// part of the program, and its record says so if the program ends before the region does.
    fn shortened_to_fit(self) -> Spec {
        let halved = |by: u32| Spec { transactions: self.transactions >> by, ..self.clone() };
        let is_small = |workload: Box<dyn workload::Workload>| {
            workload.extent().is_none_or(|extent| extent.block_bytes <= BLOCK_BYTES_MAX)
        };
        let small = |spec: &Spec| spec.build_workload().is_ok_and(is_small);
        let fits = |spec: &Spec| spec.build_workload().is_ok();
        let mut all = (0..=HALVED_MAX).map(halved);
        all.clone().find(small).or_else(|| all.find(fits)).unwrap_or(self)
    }

    /// A specification of a workload that need not be registered, with a configuration that has the parameter sets
    /// that the names stand for.
    ///
    /// # Errors
    /// Values that do not fit each other.
    pub fn checked(
        mut config: Config,
        design: &'static design::DesignInfo,
        workload: &'static workload::WorkloadInfo,
        threads: Option<u64>,
        transactions: u64,
        seed: u64,
    ) -> Result<Spec, ConfigError> {
        let lines = (design.pm_buffer_lines)(&config);
        if lines > config.get::<PmConfig>().buffer_lines {
            config.set("pm.buffer_lines", &lines.to_string())?;
        }
        validate(&config)?;
        RecoveryConfig::check(&config)?;
        RegionConfig::check(&config)?;
        let core = config.get::<CoreConfig>();
        let most = core.count * core.threads_per_core;
        let threads = argument("threads", threads, core.count.into(), 1..=u64::from(most), || {
            format!(
                "core.count = {} and core.threads_per_core = {}",
                core.count, core.threads_per_core
            )
        })?;
        Ok(Spec {
            design,
            workload,
            threads: threads as u32,
            transactions,
            seed,
            config,
            crash_options: CrashOptions::default(),
            programs: None,
        })
    }

    /// Has design and workload look at their parameters, as they do again when they are built to run.
    ///
    /// # Errors
    /// Parameters that they cannot work with.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_design()?;
        if self.programs.is_none() {
            (self.workload.build)(&self.request(&self.context()))?;
        }
        Ok(())
    }

    /// Has the design look at its parameters and at the machine, as it does again when it is built to run.
    ///
    /// # Errors
    /// What it cannot work with.
    pub fn check_design(&self) -> Result<(), ConfigError> {
        self.build_design(&self.context()).map(drop)
    }

    /// Builds the design.
    ///
    /// # Errors
    /// What it cannot work with.
    pub(super) fn build_design(
        &self,
        context: &DesignContext,
    ) -> Result<Box<dyn Plug>, ConfigError> {
        let design = (self.design.build)(context)?.into_inner();
        if design.absorbs() && self.config.get::<DomainConfig>().keeps_caches() {
            let why = format!(
                "{} takes dirty lines from the caches, and may drop or move what domain.caches = all says is durable there",
                self.design.name
            );
            return Err(self.config.inconsistent(&["domain.caches"], why));
        }
        Ok(design)
    }

    /// Builds the workload.
    ///
    /// # Errors
    /// Parameters that it cannot work with.
    pub fn build_workload(&self) -> Result<Box<dyn workload::Workload>, ConfigError> {
        match &self.programs {
            Some(programs) => programs.build(),
            None => (self.workload.build)(&self.request(&self.context())),
        }
    }

    pub(super) fn request(&self, context: &DesignContext) -> workload::Request {
        workload::Request {
            config: self.config.get::<WorkloadConfig>().clone(),
            whole: self.config.clone(),
            threads: self.threads,
            transactions: self.transactions,
            seed: self.seed,
            start: DATA_START,
            end: context.log_start,
        }
    }

    /// Transactions of one thread ([`workload::Request::transactions_of`]).
    pub fn transactions_of(&self, thread: u32) -> u64 {
        self.request(&self.context()).transactions_of(thread)
    }

    /// Region of the programs' data.
    pub fn data_region(&self) -> (Addr, Addr) {
        (DATA_START, self.context().log_start)
    }

    /// Region of the programs' volatile data: the second quarter of DRAM. The first quarter has the
    /// locks, the other half the structures of designs.
    pub fn volatile_region(&self) -> (Addr, Addr) {
        let start = Addr(self.config.get::<PmConfig>().capacity_bytes.0);
        let bytes = self.config.get::<DramConfig>().capacity_bytes.0;
        (start.plus(bytes / 4), start.plus(bytes / 2))
    }

    /// Context of designs and their recovery.
    pub fn context(&self) -> DesignContext {
        let pm = self.config.get::<PmConfig>();
        DesignContext {
            config: self.config.clone(),
            threads: self.threads,
            log_start: Addr(pm.capacity_bytes.0 - pm.log_region_bytes.0),
            log_end: Addr(pm.capacity_bytes.0),
            first_transaction: self.crash_options.first_transaction,
            mutants: self.design.inherent.and(self.crash_options.mutants),
        }
    }
}

fn argument(
    name: &str,
    given: Option<u64>,
    default: u64,
    range: std::ops::RangeInclusive<u64>,
    because: impl Fn() -> String,
) -> Result<u64, ConfigError> {
    let value = given.unwrap_or(default);
    if range.contains(&value) {
        return Ok(value);
    }
    let because = because();
    let tail = if because.is_empty() { String::new() } else { format!(" ({because})") };
    Err(ConfigError::Value {
        origin: "argument".into(),
        key: name.into(),
        value: value.to_string(),
        allowed: format!("a whole number from {} to {}{tail}", range.start(), range.end()),
    })
}
