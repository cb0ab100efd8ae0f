//! Checks that span several parameters of the machine.

use graven_base::config::{Config, ConfigError, Size};
use graven_base::memory::LINE_BYTES;

use super::{
    ControllerConfig, CoreConfig, CoreModel, DramConfig, L1Config, L2Config, LlcConfig, PmConfig,
};

/// Unit of the memories' sizes.
const PAGE: Size = Size::kb(4);

/// Unit of the log region, which small programs have less of than a page.
const LOG_REGION_UNIT: Size = Size::kb(1);

/// Checks that the machine's values fit each other.
///
/// # Errors
/// [`ConfigError::Inconsistent`] names the keys that collide, their values and what would do. Of
/// several keys it blames the one that was set last.
pub fn validate(config: &Config) -> Result<(), ConfigError> {
    let checks = Checks(config);
    checks.check_core()?;
    checks.check_caches()?;
    checks.check_controller()?;
    checks.check_pm()?;
    checks.check_dram()
}

struct Checks<'a>(&'a Config);

impl Checks<'_> {
    fn check_core(&self) -> Result<(), ConfigError> {
        let core = self.0.get::<CoreConfig>();
        let out_of_order = core.model == CoreModel::OutOfOrder;
        for (key, entries, used) in [
            ("core.rob_entries", core.rob_entries, out_of_order),
            ("core.load_queue_entries", core.load_queue_entries, out_of_order),
            ("core.store_queue_entries", core.store_queue_entries, true),
        ] {
            if used && !entries.is_multiple_of(core.threads_per_core) {
                let why = format!(
                    "{key} = {entries} cannot be split evenly between core.threads_per_core = {} threads",
                    core.threads_per_core
                );
                return Err(self.0.inconsistent(&[key, "core.threads_per_core"], why));
            }
        }
        Ok(())
    }

    fn check_caches(&self) -> Result<(), ConfigError> {
        let (l1, l2, llc) =
            (self.0.get::<L1Config>(), self.0.get::<L2Config>(), self.0.get::<LlcConfig>());
        let mut levels = vec![("l1", l1.bytes, l1.ways)];
        if l2.bytes.0 > 0 {
            levels.push(("l2", l2.bytes, l2.ways));
        }
        levels.push(("llc", llc.bytes, llc.ways));
        for &(level, bytes, ways) in &levels {
            self.check_cache(level, bytes, ways)?;
        }
        for pair in levels.windows(2) {
            let (inner, outer) = (pair[0], pair[1]);
            if outer.1 < inner.1 {
                let (outer_key, inner_key) =
                    (format!("{}.bytes", outer.0), format!("{}.bytes", inner.0));
                let why = format!(
                    "{outer_key} = {} must be at least {inner_key} = {}, which it includes",
                    outer.1, inner.1
                );
                return Err(self.0.inconsistent(&[&outer_key, &inner_key], why));
            }
        }
        Ok(())
    }

    fn check_cache(&self, level: &str, bytes: Size, ways: u32) -> Result<(), ConfigError> {
        let (bytes_key, ways_key) = (format!("{level}.bytes"), format!("{level}.ways"));
        let set_bytes = LINE_BYTES * u64::from(ways);
        let sets = bytes.0 / set_bytes;
        if sets == 0 || !bytes.0.is_multiple_of(set_bytes) {
            let why = format!(
                "{bytes_key} = {bytes} must be a multiple of {}, one set of {ways_key} = {ways} lines of {LINE_BYTES} B",
                Size(set_bytes)
            );
            return Err(self.0.inconsistent(&[&bytes_key, &ways_key], why));
        }
        if !sets.is_power_of_two() {
            let (below, above) = neighbours(sets);
            let why = format!(
                "{bytes_key} = {bytes} with {ways_key} = {ways} makes {sets} sets, which must be a power of two; {} or {} would do",
                Size(below * set_bytes),
                Size(above * set_bytes)
            );
            return Err(self.0.inconsistent(&[&bytes_key, &ways_key], why));
        }
        let (pm, dram) =
            (self.0.get::<PmConfig>().capacity_bytes, self.0.get::<DramConfig>().capacity_bytes);
        if (pm.0 + dram.0) / LINE_BYTES / sets >= u64::from(u32::MAX) {
            let why = format!(
                "tags of 32 bits are too few for pm.capacity_bytes = {pm} and dram.capacity_bytes = {dram}; with {ways_key} = {ways}, {bytes_key} = {bytes} is too small"
            );
            let keys = [&bytes_key, &ways_key, "pm.capacity_bytes", "dram.capacity_bytes"];
            return Err(self.0.inconsistent(&keys, why));
        }
        Ok(())
    }

    fn check_controller(&self) -> Result<(), ConfigError> {
        let c = self.0.get::<ControllerConfig>();
        let (low, high) = (c.drain_low_percent, c.drain_high_percent);
        if low >= high {
            let why = format!(
                "controller.drain_low_percent = {low} must lie below controller.drain_high_percent = {high}"
            );
            let keys = ["controller.drain_low_percent", "controller.drain_high_percent"];
            return Err(self.0.inconsistent(&keys, why));
        }
        for (key, queue) in [
            ("controller.write_queue_entries", c.write_queue_entries),
            ("dram.write_queue_entries", self.0.get::<DramConfig>().write_queue_entries),
        ] {
            let entries = |percent: u32| queue * percent / 100;
            if entries(low) >= entries(high) {
                let why = format!(
                    "writes would be drained from {} entries down to {}: {key} = {queue} is too small for controller.drain_high_percent = {high} and controller.drain_low_percent = {low}",
                    entries(high),
                    entries(low),
                );
                let keys = [key, "controller.drain_low_percent", "controller.drain_high_percent"];
                return Err(self.0.inconsistent(&keys, why));
            }
        }
        self.check_power_of_two("controller.channels", u64::from(c.channels))?;
        self.check_power_of_two("controller.page_bytes", c.page_bytes.0)
    }

    fn check_pm(&self) -> Result<(), ConfigError> {
        let pm = self.0.get::<PmConfig>();
        self.check_power_of_two("pm.ranks", u64::from(pm.ranks))?;
        self.check_power_of_two("pm.banks", u64::from(pm.banks))?;
        self.check_power_of_two("pm.row_bytes", pm.row_bytes.0)?;
        self.check_pages("pm.capacity_bytes", pm.capacity_bytes)?;
        self.check_multiple("pm.log_region_bytes", pm.log_region_bytes, LOG_REGION_UNIT)?;
        if pm.log_region_bytes >= pm.capacity_bytes {
            let why = format!(
                "pm.log_region_bytes = {} must leave room for data in pm.capacity_bytes = {}",
                pm.log_region_bytes, pm.capacity_bytes
            );
            return Err(self.0.inconsistent(&["pm.log_region_bytes", "pm.capacity_bytes"], why));
        }
        self.check_row_hit("pm", pm.row_hit_ns, pm.read_ns)
    }

    fn check_dram(&self) -> Result<(), ConfigError> {
        let dram = self.0.get::<DramConfig>();
        for (key, n) in [
            ("dram.channels", dram.channels),
            ("dram.ranks", dram.ranks),
            ("dram.bank_groups", dram.bank_groups),
            ("dram.banks", dram.banks),
        ] {
            self.check_power_of_two(key, u64::from(n))?;
        }
        self.check_power_of_two("dram.row_bytes", dram.row_bytes.0)?;
        self.check_pages("dram.capacity_bytes", dram.capacity_bytes)?;
        if dram.bank_groups > dram.banks {
            let why = format!(
                "dram.bank_groups = {} must not exceed dram.banks = {}, the banks of all groups of a rank",
                dram.bank_groups, dram.banks
            );
            return Err(self.0.inconsistent(&["dram.bank_groups", "dram.banks"], why));
        }
        // A row opens, closes and is refreshed, and time is left for requests.
        let refresh = dram.rfc_clocks + dram.ras_clocks + dram.rp_clocks;
        if dram.refi_clocks <= 2 * refresh {
            let why = format!(
                "dram.refi_clocks = {} must be more than twice dram.rfc_clocks + dram.ras_clocks + dram.rp_clocks = {refresh}, or refreshes leave no time for requests",
                dram.refi_clocks
            );
            let keys = ["dram.refi_clocks", "dram.rfc_clocks", "dram.ras_clocks", "dram.rp_clocks"];
            return Err(self.0.inconsistent(&keys, why));
        }
        Ok(())
    }

    /// Addresses are taken apart by bits, so that what they count must be a power of two.
    fn check_power_of_two(&self, key: &str, n: u64) -> Result<(), ConfigError> {
        if n.is_power_of_two() {
            return Ok(());
        }
        let (below, above) = neighbours(n);
        let why = if key.ends_with("bytes") {
            format!("it must be a power of two, such as {} or {}", Size(below), Size(above))
        } else {
            format!("it must be a power of two, such as {below} or {above}")
        };
        Err(self.0.inconsistent(&[key], why))
    }

    fn check_pages(&self, key: &str, size: Size) -> Result<(), ConfigError> {
        self.check_multiple(key, size, PAGE)
    }

    fn check_multiple(&self, key: &str, size: Size, unit: Size) -> Result<(), ConfigError> {
        if size.0.is_multiple_of(unit.0) {
            return Ok(());
        }
        Err(self.0.inconsistent(&[key], format!("it must be a multiple of {unit}")))
    }

    fn check_row_hit(&self, device: &str, hit_ns: f64, read_ns: f64) -> Result<(), ConfigError> {
        if hit_ns <= read_ns {
            return Ok(());
        }
        let (hit, read) = (format!("{device}.row_hit_ns"), format!("{device}.read_ns"));
        let why = format!(
            "{hit} = {hit_ns} must not exceed {read} = {read_ns}, a read that misses the row"
        );
        Err(self.0.inconsistent(&[&hit, &read], why))
    }
}

/// The powers of two just below and above a number that is none.
fn neighbours(n: u64) -> (u64, u64) {
    assert!(!n.is_power_of_two() && n > 1);
    let above = n.next_power_of_two();
    (above / 2, above)
}
