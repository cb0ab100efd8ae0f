//! The models as data.
//!
//! | model | platform |
//! |---|---|
//! | `x86-adr` | Px86: Intel's x86; the memory controller's queues survive, caches and buffers of cores do not |
//! | `x86-adr-amd` | the same, with `clflush` as AMD orders it |
//! | `x86-eadr` | x86 whose caches survive; store buffers and write-combining buffers do not |
//! | `arm-pop` | Armv8 whose point of persistence survives |
//! | `arm-podp` | Armv8 of which only the point of deep persistence survives |

use crate::happening::Point;
use crate::rules::{AMD, ARM, INTEL, Rule};

/// A persistency model.
#[derive(Clone, Debug)]
pub struct Model {
    /// The name on command lines and in files.
    pub name: &'static str,
    /// The platform in a sentence.
    pub summary: &'static str,
    /// Publications and manuals.
    pub source: &'static str,
    /// The order in which a thread's steps act.
    pub order: &'static [Rule],
    /// The boundary that survives a power failure.
    pub domain: Domain,
    /// The instructions that order `clflush`.
    pub clflush: Clflush,
    /// True if a system call that sends something out waits until everything before it in its thread is visible, and its flushes
    /// are complete. The kernel's own locked instructions and barriers do that; no manual promises it.
    pub told_drains: bool,
}

/// The boundary that survives a power failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// The memory controller: stores must be flushed, and flushes drained by a fence.
    Controller,
    /// The caches: visible stores are durable.
    Caches,
    /// A point to which Arm's cleans reach, if they name it or one further out.
    Reached(Point),
}

/// The instructions that order `clflush`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clflush {
    /// Intel's order: the flushed line is durable before later stores are visible.
    OrdersStores,
    /// Nothing but `mfence` before it and after it.
    ByFullFence,
}

/// All models, in the order in which they are listed.
pub static MODELS: [Model; 5] = [
    Model {
        name: "x86-adr",
        summary: "x86 as Intel has it; queues of memory controllers survive, caches do not",
        source: "Px86: Raad, Wickerson, Neiger, Vafeiadis, POPL 2020; Khyzha, Lahav, POPL 2021; non-temporal stores: Raad, Maranget, Vafeiadis, POPL 2022",
        order: INTEL,
        domain: Domain::Controller,
        clflush: Clflush::OrdersStores,
        told_drains: true,
    },
    Model {
        name: "x86-adr-amd",
        summary: "x86-adr with clflush as AMD has it, ordered by mfence alone",
        source: "AMD64 Architecture Programmer's Manual, volume 3 (24594), CLFLUSH",
        order: AMD,
        domain: Domain::Controller,
        clflush: Clflush::ByFullFence,
        told_drains: true,
    },
    Model {
        name: "x86-eadr",
        summary: "x86 whose caches survive; store buffers and write-combining buffers do not",
        source: "x86-TSO, with durability at visibility; Intel's guidance on eADR",
        order: INTEL,
        domain: Domain::Caches,
        clflush: Clflush::OrdersStores,
        told_drains: true,
    },
    Model {
        name: "arm-pop",
        summary: "Armv8 whose point of persistence survives: DC CVAP and DC CVADP, completed by DSB",
        source: "PArmv8: Cho, Lee, Raad, Kang, PLDI 2021; Raad, Wickerson, Vafeiadis, OOPSLA 2019; Arm ARM DDI 0487",
        order: ARM,
        domain: Domain::Reached(Point::Persistence),
        clflush: Clflush::OrdersStores,
        told_drains: true,
    },
    Model {
        name: "arm-podp",
        summary: "Armv8 of which only the point of deep persistence survives: DC CVADP, completed by DSB",
        source: "Arm ARM DDI 0487 (FEAT_DPB2); the rest as arm-pop",
        order: ARM,
        domain: Domain::Reached(Point::DeepPersistence),
        clflush: Clflush::OrdersStores,
        told_drains: true,
    },
];

/// A name that no model has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no persistency model {0:?}; allowed: {names}", names = names())]
pub struct UnknownModel(pub String);

fn names() -> String {
    MODELS.iter().map(|model| model.name).collect::<Vec<_>>().join(", ")
}

impl Model {
    /// Finds a model by its name.
    ///
    /// # Errors
    /// The names that exist.
    pub fn find(name: &str) -> Result<&'static Model, UnknownModel> {
        MODELS.iter().find(|model| model.name == name).ok_or_else(|| UnknownModel(name.into()))
    }

    /// Tells if the instructions are those of Arm.
    pub fn is_arm(&self) -> bool {
        matches!(self.domain, Domain::Reached(_))
    }
}
