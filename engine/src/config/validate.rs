//! Checks that span several parameters.

use super::{
    Config, ConfigError, ControllerConfig, DramConfig, L1Config, L2Config, LlcConfig, PmConfig,
    Size, Source,
};
use crate::memory::LINE_BYTES;

impl Config {
    /// Checks that the machine's values fit each other.
    ///
    /// # Errors
    /// [`ConfigError::Inconsistent`] names the key, its value and what it collides with.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let (l1, l2, llc) =
            (self.get::<L1Config>(), self.get::<L2Config>(), self.get::<LlcConfig>());
        self.check_cache("l1", l1.bytes, l1.ways)?;
        if l2.bytes.0 > 0 {
            self.check_cache("l2", l2.bytes, l2.ways)?;
            self.check_inclusion("l2", l2.bytes, "l1", l1.bytes)?;
        }
        self.check_cache("llc", llc.bytes, llc.ways)?;
        let (name, below) = if l2.bytes.0 > 0 { ("l2", l2.bytes) } else { ("l1", l1.bytes) };
        self.check_inclusion("llc", llc.bytes, name, below)?;
        self.check_controller()?;
        self.check_memory()
    }

    /// An error about a key whose value is in range but does not fit others; `why` names them.
    ///
    /// # Panics
    /// If the key is not declared.
    pub fn inconsistent(&self, key: &str, why: String) -> ConfigError {
        let origin = match self.source(key) {
            Some(Source::User(origin)) => origin.clone(),
            Some(_) => self.machine.clone(),
            None => "default".into(),
        };
        let (section, name) = key.split_once('.').expect("keys are SECTION.KEY");
        let value = self
            .sections()
            .find(|s| s.name() == section)
            .and_then(|s| s.get(name))
            .expect("validation names declared keys");
        ConfigError::Inconsistent { origin, key: key.into(), value: value.to_string(), why }
    }

    fn check_cache(&self, level: &str, bytes: Size, ways: u32) -> Result<(), ConfigError> {
        let lines = bytes.0 / LINE_BYTES;
        let sets = lines / u64::from(ways);
        if !bytes.0.is_multiple_of(LINE_BYTES * u64::from(ways)) {
            let why = format!("{level}.ways = {ways} does not divide its {lines} lines of 64 B");
            return Err(self.inconsistent(&format!("{level}.bytes"), why));
        }
        if !sets.is_power_of_two() {
            let why = format!(
                "with {level}.ways = {ways} there would be {sets} sets; the number of sets must be a power of two"
            );
            return Err(self.inconsistent(&format!("{level}.bytes"), why));
        }
        let memory =
            self.get::<PmConfig>().capacity_bytes.0 + self.get::<DramConfig>().capacity_bytes.0;
        if memory / LINE_BYTES / sets >= u64::from(u32::MAX) {
            let why = format!(
                "tags are 32 bits wide, too few for {} of memory in {sets} sets",
                Size(memory)
            );
            return Err(self.inconsistent(&format!("{level}.bytes"), why));
        }
        Ok(())
    }

    fn check_inclusion(
        &self,
        outer: &str,
        outer_bytes: Size,
        inner: &str,
        inner_bytes: Size,
    ) -> Result<(), ConfigError> {
        if outer_bytes < inner_bytes {
            let why = format!("it must include {inner}.bytes = {inner_bytes}");
            return Err(self.inconsistent(&format!("{outer}.bytes"), why));
        }
        Ok(())
    }

    fn check_controller(&self) -> Result<(), ConfigError> {
        let c = self.get::<ControllerConfig>();
        if c.drain_low_percent >= c.drain_high_percent {
            let why = format!(
                "it must lie below controller.drain_high_percent = {}",
                c.drain_high_percent
            );
            return Err(self.inconsistent("controller.drain_low_percent", why));
        }
        for (key, n) in [
            ("controller.channels", u64::from(c.channels)),
            ("controller.page_bytes", c.page_bytes.0),
        ] {
            if !n.is_power_of_two() {
                return Err(self.inconsistent(key, "it must be a power of two".into()));
            }
        }
        Ok(())
    }

    fn check_memory(&self) -> Result<(), ConfigError> {
        let (pm, dram) = (self.get::<PmConfig>(), self.get::<DramConfig>());
        for (key, n) in [
            ("pm.ranks", u64::from(pm.ranks)),
            ("pm.banks", u64::from(pm.banks)),
            ("pm.row_bytes", pm.row_bytes.0),
            ("dram.banks", u64::from(dram.banks)),
            ("dram.row_bytes", dram.row_bytes.0),
        ] {
            if !n.is_power_of_two() {
                return Err(self.inconsistent(key, "it must be a power of two".into()));
            }
        }
        for (key, n) in [
            ("pm.capacity_bytes", pm.capacity_bytes.0),
            ("pm.log_region_bytes", pm.log_region_bytes.0),
            ("dram.capacity_bytes", dram.capacity_bytes.0),
        ] {
            if !n.is_multiple_of(4096) {
                return Err(self.inconsistent(key, "it must be a multiple of 4 KB".into()));
            }
        }
        if pm.log_region_bytes >= pm.capacity_bytes {
            let why = format!(
                "the log region must be smaller than pm.capacity_bytes = {}",
                pm.capacity_bytes
            );
            return Err(self.inconsistent("pm.log_region_bytes", why));
        }
        if pm.row_hit_ns > pm.read_ns {
            let why = format!("a row hit cannot be slower than pm.read_ns = {}", pm.read_ns);
            return Err(self.inconsistent("pm.row_hit_ns", why));
        }
        Ok(())
    }
}
