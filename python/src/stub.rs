//! TEMPORARY stand-in for the parts of `graven_engine` that are still being written. `facade.rs`
//! names everything through its `engine` module; when the engine has these parts, that module
//! re-exports them and this file goes.

/// Stand-in for `graven_engine::designs`.
pub mod designs {
    use graven_engine::config::Section;

    pub struct Entry {
        pub name: &'static str,
        pub summary: &'static str,
        pub paper: &'static str,
        pub safe: bool,
        pub section: Option<fn() -> Box<dyn Section>>,
    }

    pub const REGISTRY: &[&Entry] = &[];
}

/// Stand-in for `graven_engine::stats`.
pub mod stats {
    #[derive(Clone, Copy)]
    #[allow(dead_code)]
    pub enum Kind {
        Count,
        Gauge,
        Ratio,
        Digest,
    }

    pub struct Declaration {
        pub name: &'static str,
        pub unit: &'static str,
        pub kind: Kind,
        pub description: &'static str,
    }

    pub fn declarations() -> impl Iterator<Item = &'static Declaration> {
        [].iter()
    }

    #[allow(dead_code)]
    pub enum Value {
        Count(u64),
        Number(f64),
        Digest(u64),
    }
}

/// Stand-in for `graven_engine::sim`.
pub mod sim {
    use std::io::{BufRead, Write};

    use graven_engine::config::{Config, ConfigError};

    use super::stats::Value;

    #[allow(dead_code)]
    pub struct Spec {
        pub design: String,
        pub workload: String,
        pub config: Config,
        pub threads: Option<u32>,
        pub transactions: Option<u64>,
        pub seed: u64,
    }

    #[allow(dead_code)]
    #[derive(Debug)]
    pub enum SimError {
        Cancelled,
        Trace(String),
        Failed(String),
    }

    impl std::fmt::Display for SimError {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{self:?}")
        }
    }

    /// Reports progress; returns whether to go on.
    pub type Observe<'a> = &'a mut dyn FnMut(u64) -> bool;

    pub struct Simulation {
        spec: Spec,
    }

    impl Simulation {
        pub fn new(spec: Spec) -> Result<Self, ConfigError> {
            Ok(Self { spec })
        }
        pub fn threads(&self) -> u32 {
            self.spec.threads.unwrap_or(1)
        }
        pub fn transactions(&self) -> u64 {
            self.spec.transactions.unwrap_or(1)
        }
        pub fn config(&self) -> &Config {
            &self.spec.config
        }
        pub fn run(
            self,
            observe: Observe<'_>,
            _requests: Option<&mut dyn Write>,
        ) -> Result<Vec<(String, Value)>, SimError> {
            observe(0);
            Err(SimError::Failed("the engine cannot simulate yet".into()))
        }
    }

    pub struct MemoryReplay;

    impl MemoryReplay {
        pub fn new(_config: &Config) -> Result<Self, ConfigError> {
            Ok(MemoryReplay)
        }
        pub fn run(
            self,
            _trace: &mut dyn BufRead,
            observe: Observe<'_>,
        ) -> Result<Vec<(String, Value)>, SimError> {
            observe(0);
            Err(SimError::Failed("the engine cannot replay yet".into()))
        }
    }
}
