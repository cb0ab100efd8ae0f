//! Registry of what can be simulated: designs, workloads and machines by name, and the sections of
//! parameters that they bring.
//!
//! A registry is a value. A program makes one and registers what it has: the crate `graven` all
//! that ships, another program that and more. Nothing below it knows a design or a workload by
//! name.

use graven_base::config::toml::Table;
use graven_base::config::{Config, ConfigError, OtherTable, Section, suggestion};
use graven_base::stats::Declaration;

use crate::sim::Spec;
use crate::workload::WorkloadConfig;
use crate::{config, design, stats, workload};

/// Another name: for one design, or in comparisons for the better of several.
pub struct Alias {
    /// Name for users.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Source of the name.
    pub paper: &'static str,
    /// The designs that it stands for. Of several, a comparison shows the one with the highest throughput, workload by
    /// workload.
    pub of: &'static [&'static str],
}

/// A machine that can be named.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name for users.
    pub name: &'static str,
    /// One line about it.
    pub title: &'static str,
    /// The file in its repository.
    pub file: &'static str,
    /// Text of the file.
    pub text: &'static str,
}

/// The machine and the parts that a file extends, in this order.
#[derive(Clone, Debug, Default)]
pub struct Extended {
    /// The machine.
    pub machine: Option<&'static Preset>,
    /// Parts.
    pub parts: Vec<&'static Preset>,
}

macro_rules! parts {
    ($($name:literal, $title:literal;)*) => {
        /// Parts of DRAM: files that set some parameters of a machine, with their sources. Machines extend them.
        pub const PARTS: &[Preset] = &[$(Preset {
            name: $name,
            title: $title,
            file: concat!("crates/machine/src/config/parts/", $name, ".toml"),
            text: include_str!(concat!("config/parts/", $name, ".toml")),
        },)*];
    };
}

parts! {
    "ddr4-2400", "DDR4-2400: one channel of 64 bits, 16 banks in 4 groups, 17-17-17";
    "ddr4-3200", "DDR4-3200: one channel of 64 bits, 16 banks in 4 groups, 22-22-22";
    "ddr5-4800", "DDR5-4800: two channels of 32 bits, 32 banks in 8 groups each, 40-39-39";
}

/// Makes a section with its defaults.
pub type MakeSection = fn() -> Box<dyn Section>;

/// Designs, workloads and machines by name.
#[derive(Default)]
pub struct Registry {
    designs: Vec<&'static design::DesignInfo>,
    aliases: Vec<&'static Alias>,
    workloads: Vec<&'static workload::WorkloadInfo>,
    presets: Vec<&'static Preset>,
    /// Those that designs declare, each as the first does that has it.
    design_statistics: Vec<&'static Declaration>,
    /// Sections of workloads, then of designs.
    workload_sections: Vec<MakeSection>,
    design_sections: Vec<MakeSection>,
    other_tables: Vec<OtherTable>,
}

impl Registry {
    /// The machine's own parameters, and nothing that could be named.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// Registers a design, with its section of parameters.
    ///
    /// # Panics
    /// If there is a design of that name, or if one of its statistics has the name of another that is counted
    /// otherwise: a broken build.
    pub fn design(&mut self, entry: &'static design::DesignInfo) {
        let taken = self.design_names().any(|name| name == entry.name);
        assert!(!taken, "two designs are called {}", entry.name);
        self.add_statistics(entry);
        self.designs.push(entry);
        if let Some(make) = entry.section {
            self.section(make);
        }
    }

    /// One name of a statistic means one kind of number in one unit, whoever counts it.
    fn add_statistics(&mut self, entry: &design::DesignInfo) {
        let design = entry.name;
        let mut own: Vec<&str> = Vec::new();
        for new in entry.statistics() {
            let name = new.name;
            assert!(!own.contains(&name), "{design} declares the statistic {name} twice");
            own.push(name);
            assert!(
                stats::declarations().all(|d| d.name != name),
                "{design} declares the statistic {name}, which is the machine's"
            );
            let Some(known) = self.design_statistics.iter().find(|d| d.name == name) else {
                self.design_statistics.push(new);
                continue;
            };
            assert!(
                (known.unit, known.kind) == (new.unit, new.kind),
                "{design} declares the statistic {name} as {:?} in {:?}; another design as {:?} in {:?}",
                new.kind,
                new.unit,
                known.kind,
                known.unit
            );
        }
    }

    /// The statistics that designs declare, each as the first does that has it.
    pub fn design_statistics(&self) -> &[&'static Declaration] {
        &self.design_statistics
    }

    /// All statistics, the machine's first.
    pub fn statistics(&self) -> Vec<&'static Declaration> {
        stats::declarations().chain(self.design_statistics.iter().copied()).collect()
    }

    /// Registers a section of parameters of a mechanism that several designs compose with. A section that is there
    /// already stays.
    pub fn section(&mut self, make: MakeSection) {
        add(&mut self.design_sections, make);
    }

    /// Registers another name for designs.
    ///
    /// # Panics
    /// If the name is taken: a broken build.
    pub fn alias(&mut self, alias: &'static Alias) {
        let taken = self.design_names().any(|name| name == alias.name);
        assert!(!taken, "two designs are called {}", alias.name);
        self.aliases.push(alias);
    }

    /// Registers a workload, with its sections of parameters.
    ///
    /// # Panics
    /// If there is a workload of that name: a broken build.
    pub fn workload(&mut self, entry: &'static workload::WorkloadInfo) {
        let taken = self.workloads.iter().any(|other| other.name == entry.name);
        assert!(!taken, "two workloads are called {}", entry.name);
        self.workloads.push(entry);
        entry.sections.iter().for_each(|&make| add(&mut self.workload_sections, make));
    }

    /// Registers a machine.
    ///
    /// # Panics
    /// If there is a machine of that name: a broken build.
    pub fn preset(&mut self, preset: &'static Preset) {
        let taken = self.presets.iter().any(|other| other.name == preset.name);
        assert!(!taken, "two machines are called {}", preset.name);
        self.presets.push(preset);
    }

    /// Lets machines' files have a table that holds no parameters.
    pub fn other_table(&mut self, table: OtherTable) {
        self.other_tables.push(table);
    }

    /// All designs, in the order in which they were registered.
    pub fn designs(&self) -> &[&'static design::DesignInfo] {
        &self.designs
    }

    /// All other names of designs.
    pub fn aliases(&self) -> &[&'static Alias] {
        &self.aliases
    }

    /// All workloads, in the order in which they were registered.
    pub fn workloads(&self) -> &[&'static workload::WorkloadInfo] {
        &self.workloads
    }

    /// The workloads that are programs of their own, not parameter sets of another.
    pub fn programs(&self) -> impl Iterator<Item = &'static workload::WorkloadInfo> {
        self.workloads.iter().copied().filter(|entry| entry.settings.is_empty())
    }

    /// All machines, in the order in which they were registered.
    pub fn presets(&self) -> &[&'static Preset] {
        &self.presets
    }

    /// The machine of a name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownName`] with the names that exist.
    pub fn find_preset(&self, name: &str) -> Result<&'static Preset, ConfigError> {
        self.presets.iter().copied().find(|p| p.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.presets.iter().map(|p| p.name).collect();
            ConfigError::unknown_name("machine", name, &known)
        })
    }

    /// All names of designs, aliases last.
    pub fn design_names(&self) -> impl Iterator<Item = &'static str> {
        let aliases = self.aliases.iter().map(|alias| alias.name);
        self.designs.iter().map(|entry| entry.name).chain(aliases)
    }

    /// The design of a name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownName`] with the names that exist; [`ConfigError::Ambiguous`] if it stands for several.
    pub fn find_design(&self, name: &str) -> Result<&'static design::DesignInfo, ConfigError> {
        let alias = self.aliases.iter().find(|alias| alias.name == name);
        let meant = match alias.map(|alias| alias.of) {
            None => name,
            Some([one]) => one,
            Some(several) => return Err(ConfigError::ambiguous("design", name, several)),
        };
        self.designs.iter().copied().find(|e| e.name == meant).ok_or_else(|| {
            let known: Vec<&str> = self.design_names().collect();
            ConfigError::unknown_name("design", name, &known)
        })
    }

    /// The workload of a name.
    ///
    /// # Errors
    /// [`ConfigError::UnknownName`] with the names that exist.
    pub fn find_workload(
        &self,
        name: &str,
    ) -> Result<&'static workload::WorkloadInfo, ConfigError> {
        self.workloads.iter().copied().find(|e| e.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.workloads.iter().map(|e| e.name).collect();
            ConfigError::unknown_name("workload", name, &known)
        })
    }

    /// The sections of all workloads: the shared one first.
    pub fn workload_sections(&self) -> Vec<Box<dyn Section>> {
        let shared: Box<dyn Section> = Box::new(WorkloadConfig::default());
        std::iter::once(shared).chain(self.workload_sections.iter().map(|make| make())).collect()
    }

    /// All defaults: the machine's sections, then those of workloads, designs and statistics.
    pub fn defaults(&self) -> Config {
        let mut sections = config::sections();
        sections.extend(self.workload_sections());
        sections.extend(self.design_sections.iter().map(|make| make()));
        sections.extend(stats::sections());
        Config::of(sections)
    }

    /// The configuration of a machine that can be named.
    ///
    /// # Errors
    /// If there is no such machine; the message lists those that exist.
    pub fn machine(&self, name: &str) -> Result<Config, ConfigError> {
        let preset = self.find_preset(name)?;
        let mut config = self.machine_file(preset.text, preset.file)?;
        config.machine = name.into();
        Ok(config)
    }

    /// Defaults overlaid with the text of a TOML file; `file` is its name, for messages.
    ///
    /// A top-level `extends = "NAME"` starts from that machine instead of the defaults, or adds a part ([`PARTS`]);
    /// `extends = ["NAME", …]` does so with several, a machine first.
    ///
    /// # Errors
    /// Names the file, the key, the value and what is allowed.
    pub fn machine_file(&self, text: &str, file: &str) -> Result<Config, ConfigError> {
        let table = parse_file(text, file)?;
        let extended = self.extended(&table, file)?;
        let mut config = match extended.machine {
            None => self.defaults(),
            Some(base) => self.machine(base.name)?,
        };
        for part in extended.parts {
            config.overlay(&parse_file(part.text, part.file)?, part.file, &[])?;
        }
        config.machine = file.into();
        config.overlay(&table, file, &self.other_tables)?;
        Ok(config)
    }

    /// The machine and the parts that a file says it extends.
    ///
    /// # Errors
    /// There is no machine or part of a name, or a machine that does not come first.
    pub fn extended(&self, table: &Table, file: &str) -> Result<Extended, ConfigError> {
        let mut extended = Extended::default();
        let Some(value) = table.get("extends") else { return Ok(extended) };
        let names = match value.as_array() {
            Some(names) => names.as_slice(),
            None => std::slice::from_ref(value),
        };
        for (place, each) in names.iter().enumerate() {
            let name = each.as_str().unwrap_or_default();
            if let Some(part) = PARTS.iter().find(|part| part.name == name) {
                extended.parts.push(part);
                continue;
            }
            let found = self.presets.iter().copied().find(|p| p.name == name);
            if found.is_none() {
                let all = self.presets.iter().copied().chain(PARTS);
                let known: Vec<&str> = all.map(|p| p.name).collect();
                let hint = suggestion(name, &known);
                let allowed = format!("the name of a machine or a part, or a list of them; {hint}");
                return Err(ConfigError::value(file, "extends", each, &allowed));
            }
            if place > 0 {
                let allowed = "a machine as the first name alone, parts behind it";
                return Err(ConfigError::value(file, "extends", value, allowed));
            }
            extended.machine = found;
        }
        Ok(extended)
    }

    /// Defaults overlaid with a configuration as [`Config::to_json`] writes it. `machine` is the machine's name,
    /// `origin` where the configuration is from, for messages. It counts as set by the user.
    ///
    /// # Errors
    /// Unknown sections and keys, and values that are not allowed.
    pub fn from_json(
        &self,
        json: &serde_json::Value,
        machine: &str,
        origin: &str,
    ) -> Result<Config, ConfigError> {
        let mut config = self.defaults();
        config.machine = machine.into();
        config.overlay_json(json, origin, |_| true)?;
        Ok(config)
    }

    /// A checked specification, with the parameter sets that the names of design and workload stand for. By default
    /// there is one thread per core and 10,000 transactions.
    ///
    /// # Errors
    /// Unknown names, and values that do not fit each other.
    pub fn spec(
        &self,
        config: Config,
        design: &str,
        workload: &str,
        threads: Option<u64>,
        transactions: Option<u64>,
        seed: u64,
    ) -> Result<Spec, ConfigError> {
        let design = self.find_design(design)?;
        let workload = self.find_workload(workload)?;
        Spec::new(config, design, workload, threads, transactions, seed)
    }
}

/// The tables of a machine's file.
///
/// # Errors
/// It is not TOML.
pub fn parse_file(text: &str, file: &str) -> Result<Table, ConfigError> {
    text.parse().map_err(|e: graven_base::config::toml::de::Error| ConfigError::Syntax {
        file: file.into(),
        message: e.to_string().trim_end().into(),
    })
}

/// Adds a section unless there is one of its name.
fn add(sections: &mut Vec<MakeSection>, make: MakeSection) {
    let section = make();
    if sections.iter().all(|other| other().name() != section.name()) {
        sections.push(make);
    }
}
