//! Cost of a design's hardware: storage, comparators, registers, batteries and reported logic, derived from the
//! configured parameters, each with its formula, beside the figures that the design's paper prints.
//!
//! | file | what |
//! |---|---|
//! | `mod` | items, and designs' declarations of their cost |
//! | `sheet` | cost sheets, as TOML |
//! | `formula` | expressions that are text and value at once |
//! | `printed` | papers' figures, and verdicts about them |
//!
//! A design has its sheet in its own folder (`designs/*/cost.toml`), with widths and sizes from the code that lays records
//! out, and names it in its entry. Figures that a paper states and no formula gives (gates, encoder energy) are *reported*.
//! Left out: wires, control logic, and the area of SRAM, for which no paper prints a model.

mod formula;
mod printed;
mod sheet;

use crate::config::Config;
pub use formula::{Formula, Function, Operator, number_text, whole};
pub use printed::{Printed, Verdict};
use serde::{Deserialize, Serialize};
pub use sheet::{Quantities, parameter, read};

/// The place of an item in the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In each core.
    Core,
    /// In the L1 data caches, or at their controllers.
    #[serde(rename = "L1")]
    L1,
    /// In the caches of all levels.
    Caches,
    /// In the memory controller.
    Controller,
    /// Beside the component that it keeps alive.
    Battery,
    /// In the memory modules.
    #[serde(rename = "memory module")]
    Module,
    /// In DRAM.
    #[serde(rename = "DRAM")]
    Dram,
    /// In persistent memory.
    #[serde(rename = "PM")]
    Pm,
}

impl Place {
    /// All places, from the core outwards.
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
}

/// Relation of an item to its design.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The design as configured has it; storage is counted in totals.
    #[default]
    Built,
    /// The design has it in another configuration.
    Optional,
    /// A part of another item, or a consequence of it.
    Derived,
    /// Another system's, to compare with.
    Reference,
}

/// One line of a sheet.
#[derive(Clone, Debug)]
pub struct Item {
    /// Name, unique within its sheet.
    pub name: String,
    /// Description for people.
    pub what: String,
    /// Place in the machine.
    pub place: Place,
    /// Relation to the design.
    pub role: Role,
    /// Size or amount of one.
    pub formula: Formula,
    /// Unit of the formula's value; `bit`, `B`, `KB` (1,024 B) and `MB` are storage, other units are not.
    pub unit: String,
    /// Component that has one each, and the number of such components; a machine has one otherwise.
    pub per: Option<(String, Formula)>,
    /// True if the formula is a number that the paper reports.
    pub reported: bool,
    /// Figure that a paper prints.
    pub printed: Option<Printed>,
    /// Id of the claim that this answers.
    pub claim: Option<String>,
    /// Remark, such as why derived and printed figure differ.
    pub note: Option<String>,
}

impl Item {
    /// Returns the size or amount of one.
    pub fn value(&self) -> f64 {
        self.formula.value()
    }

    /// Returns the number of such items in the machine.
    pub fn count(&self) -> f64 {
        self.per.as_ref().map_or(1.0, |(_, count)| count.value())
    }

    /// Returns the size or amount of all together.
    pub fn total(&self) -> f64 {
        self.value() * self.count()
    }

    /// Returns the bits of storage that the design adds by this item.
    pub fn bits_built(&self) -> f64 {
        let bits_of_unit = match self.unit.as_str() {
            "bit" => 1.0,
            "B" => 8.0,
            "KB" => 8.0 * 1024.0,
            "MB" => 8.0 * 1024.0 * 1024.0,
            _ => 0.0,
        };
        if self.role == Role::Built { self.total() * bits_of_unit } else { 0.0 }
    }
}

/// A design's declaration of its cost.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// The preset of the paper that describes the design, used unless another machine is asked for.
    pub machine: &'static str,
    /// Returns the items for a configuration with the design's parameter set.
    pub items: fn(&Config) -> Vec<Item>,
    /// Remarks about the sheet as a whole.
    pub remarks: &'static [&'static str],
}

impl Costs {
    /// Declares the items of a design that is described on `machine`.
    pub const fn on(machine: &'static str, items: fn(&Config) -> Vec<Item>) -> Costs {
        Costs { machine, items, remarks: &[] }
    }

    /// Adds remarks.
    #[must_use]
    pub const fn remarks(self, remarks: &'static [&'static str]) -> Costs {
        Costs { remarks, ..self }
    }
}

/// Declaration of a design that is a program, or nothing at all.
pub const NOTHING: Costs = Costs::on("silo", |_| Vec::new())
    .remarks(&["Nothing beside the machine: no hardware is added."]);

/// Declaration of a design that says nothing of its hardware.
pub const UNDECLARED: Costs = Costs::on("silo", |_| Vec::new())
    .remarks(&["The design declares no cost: what hardware it adds is not known."]);
