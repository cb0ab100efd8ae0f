//! Scripts: a workload that is a list of operations for each thread, for tests of what a design does with each of them.
//!
//! ```
//! use graven::script;
//!
//! let registry = graven::standard();
//! let config = registry.machine("silo")?;
//! let design = registry.find_design("silo")?;
//! let program = script::transaction(&[(64, 7)]);
//! let mut simulation = script::simulation(&config, design, &[&program])?;
//! simulation.run().expect("nothing is wrong with it");
//! assert_eq!(simulation.counts()["log_entries"], 1);
//! # Ok::<(), graven::config::ConfigError>(())
//! ```

pub use graven_machine::script::*;
