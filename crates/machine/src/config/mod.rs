//! The machine's parameters: cores, caches, controller, PM device, DRAM.

mod sections;
mod validate;

use graven_base::config::Section;

pub use sections::{
    CellKind, ControllerConfig, CoreConfig, CoreModel, DataBusHeld, DomainConfig, DramConfig,
    DurableCaches, FlushOrder, Interleave, L1Config, L2Config, LlcConfig, LogAreas, LogPacking,
    PmConfig, RowWrites, SchedulerKind, TlcConfig, traversal_cycles,
};
pub use validate::validate;

/// The machine's sections with their defaults.
pub fn sections() -> Vec<Box<dyn Section>> {
    vec![
        Box::new(CoreConfig::default()),
        Box::new(L1Config::default()),
        Box::new(L2Config::default()),
        Box::new(LlcConfig::default()),
        Box::new(DomainConfig::default()),
        Box::new(ControllerConfig::default()),
        Box::new(PmConfig::default()),
        Box::new(TlcConfig::default()),
        Box::new(DramConfig::default()),
    ]
}
