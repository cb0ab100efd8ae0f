//! What a design's hardware costs: storage, comparators, registers, batteries and reported logic, derived from the
//! configured parameters, each with its formula, beside what the design's paper prints.
//!
//! | file | what |
//! |---|---|
//! | `mod` | items |
//! | `formula` | expressions that are text and value at once |
//! | `printed` | papers' figures, and verdicts about them |
//! | `battery` | energy, volume and area of what keeps something through a power failure (Silo §VI-E, Table IV) |
//!
//! A design says what it costs in its own folder (`designs/*/cost.rs`) and names it in its entry. Widths
//! and sizes come from the code that lays records out, parameters from the configuration. What a paper states and no
//! formula gives (gates, encoder energy) is *reported*. Left out: wires, control logic, and the area of SRAM, for which
//! no paper prints a model.

mod battery;
mod formula;
mod printed;

use crate::config::Config;
pub use battery::{Source, Supply};
pub use formula::{Formula, Function, number_text, whole};
pub use printed::{FWB, HOOP, LALEA, MORLOG, Paper, Printed, SILO, Verdict};

/// Where something sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In each core.
    Core,
    /// In the L1 data caches, or at their controllers.
    L1,
    /// In the caches of all levels.
    Caches,
    /// In the memory controller.
    Controller,
    /// Beside what it keeps alive.
    Battery,
    /// In the memory modules.
    Module,
    /// In DRAM.
    Dram,
    /// In persistent memory.
    Pm,
}

impl Place {
    /// All of them, from the core outwards.
    pub const ALL: [Place; 8] = [
        Place::Core,
        Place::L1,
        Place::Caches,
        Place::Controller,
        Place::Battery,
        Place::Module,
        Place::Dram,
        Place::Pm,
    ];

    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Place::Core => "core",
            Place::L1 => "L1",
            Place::Caches => "caches",
            Place::Controller => "controller",
            Place::Battery => "battery",
            Place::Module => "memory module",
            Place::Dram => "DRAM",
            Place::Pm => "PM",
        }
    }
}

/// What a value counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits of storage.
    Bits,
    /// Bytes of storage.
    Bytes,
    /// 1,024 B.
    Kilobytes,
    /// 1,048,576 B.
    Megabytes,
    /// Anything else, by name; it is not storage.
    Of(&'static str),
}

impl Unit {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Bits => "bit",
            Unit::Bytes => "B",
            Unit::Kilobytes => "KB",
            Unit::Megabytes => "MB",
            Unit::Of(name) => name,
        }
    }

    /// Bits of one, if it is storage.
    fn bits(self) -> Option<f64> {
        match self {
            Unit::Bits => Some(1.0),
            Unit::Bytes => Some(8.0),
            Unit::Kilobytes => Some(8.0 * 1024.0),
            Unit::Megabytes => Some(8.0 * 1024.0 * 1024.0),
            Unit::Of(_) => None,
        }
    }
}

/// What an item is to its design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The design as configured has it; storage is counted in totals.
    Built,
    /// It has it in another configuration.
    Optional,
    /// A part of another item, or what follows from it.
    Derived,
    /// Another system's, to compare with.
    Reference,
}

impl Role {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Role::Built => "built",
            Role::Optional => "optional",
            Role::Derived => "derived",
            Role::Reference => "reference",
        }
    }
}

/// One line of a sheet.
#[derive(Clone, Debug)]
pub struct Item {
    /// What it is known by, within its sheet.
    pub name: &'static str,
    /// What it is, and what of.
    pub what: &'static str,
    /// Where it sits.
    pub place: Place,
    /// What it is to its design.
    pub role: Role,
    /// How much one is.
    pub formula: Formula,
    /// Of what.
    pub unit: Unit,
    /// One for each of these, and how many there are; a machine has one otherwise.
    pub per: Option<(&'static str, Formula)>,
    /// The formula is a number that its paper reports.
    pub reported: bool,
    /// What a paper prints.
    pub printed: Option<Printed>,
    /// The claim that this answers; empty: none.
    pub claim: &'static str,
    /// Why the two differ, or what else is to be known.
    pub note: &'static str,
}

impl Item {
    /// Something that the design has.
    pub fn new(
        name: &'static str,
        what: &'static str,
        place: Place,
        formula: Formula,
        unit: Unit,
    ) -> Item {
        Item {
            name,
            what,
            place,
            role: Role::Built,
            formula,
            unit,
            per: None,
            reported: false,
            printed: None,
            claim: "",
            note: "",
        }
    }

    /// What its paper reports, and nothing gives.
    pub fn reported(
        name: &'static str,
        what: &'static str,
        place: Place,
        printed: Printed,
        unit: Unit,
        claim: &'static str,
    ) -> Item {
        let formula = Formula::Number(printed.value());
        let item = Item::new(name, what, place, formula, unit).role(Role::Derived).claim(claim);
        Item { reported: true, printed: Some(printed), ..item }
    }

    /// One for each of so many.
    #[must_use]
    pub fn per(self, each: &'static str, count: Formula) -> Item {
        Item { per: Some((each, count)), ..self }
    }

    /// As something else than what the design has.
    #[must_use]
    pub fn role(self, role: Role) -> Item {
        Item { role, ..self }
    }

    /// Built only if the configuration says so.
    #[must_use]
    pub fn built_if(self, is: bool) -> Item {
        self.role(if is { Role::Built } else { Role::Optional })
    }

    /// With what a paper prints.
    #[must_use]
    pub fn printed(
        self,
        paper: Paper,
        at: &'static str,
        text: &'static str,
        claim: &'static str,
    ) -> Item {
        Item { printed: Some(Printed { paper, at, text }), claim, ..self }
    }

    /// As the answer to a claim for which no number is printed.
    #[must_use]
    pub fn claim(self, claim: &'static str) -> Item {
        Item { claim, ..self }
    }

    /// With a remark.
    #[must_use]
    pub fn note(self, note: &'static str) -> Item {
        Item { note, ..self }
    }

    /// How much one is.
    pub fn value(&self) -> f64 {
        self.formula.value()
    }

    /// How many the machine has.
    pub fn count(&self) -> f64 {
        self.per.as_ref().map_or(1.0, |(_, count)| count.value())
    }

    /// How much they are together.
    pub fn total(&self) -> f64 {
        self.value() * self.count()
    }

    /// Bits of storage that the design adds by it.
    pub fn bits_built(&self) -> f64 {
        match (self.role, self.unit.bits()) {
            (Role::Built, Some(bits)) => self.total() * bits,
            _ => 0.0,
        }
    }

    /// It, as a quantity of another item's formula.
    pub fn quantity(&self) -> Formula {
        Formula::named(self.name, self.value())
    }
}

/// How a design's cost is found.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// The preset of the paper that describes it, unless another machine is asked for.
    pub machine: &'static str,
    /// Its items, for a configuration with the design's parameter set.
    pub items: fn(&Config) -> Vec<Item>,
    /// What holds for the sheet as a whole.
    pub remarks: &'static [&'static str],
}

impl Costs {
    /// Of a design that is described on one machine, and in need of no remarks.
    pub const fn on(machine: &'static str, items: fn(&Config) -> Vec<Item>) -> Costs {
        Costs { machine, items, remarks: &[] }
    }

    /// With remarks.
    #[must_use]
    pub const fn remarks(self, remarks: &'static [&'static str]) -> Costs {
        Costs { remarks, ..self }
    }
}

/// A design that is a program, or nothing at all.
pub const NOTHING: Costs = Costs {
    machine: "silo",
    items: |_| Vec::new(),
    remarks: &["Nothing beside the machine: no hardware is added."],
};

/// A design that says nothing of its hardware.
pub const UNDECLARED: Costs = Costs {
    machine: "silo",
    items: |_| Vec::new(),
    remarks: &["The design declares no cost: what hardware it adds is not known."],
};
