//! Persistence designs of the literature, one folder each, against the interface of [`graven_machine::design`].
//!
//! To add a design, write one folder and one line in [`register`]; `docs/tutorials/design.md` walks through one.

pub mod base;
mod cost;
mod events;
mod fields;
mod force_write_back;
pub mod fwb;
pub mod hoop;
pub mod ideal;
pub mod lad;
pub mod lalea;
pub mod lsm;
pub mod mechanisms;
pub mod morlog;
pub mod opt_redo;
pub mod opt_undo;
pub mod osp;
mod out_of_place;
mod packed_log;
pub mod redu;
mod rules;
mod settling;
pub mod silo;
pub mod software;
#[cfg(test)]
mod testing;

use graven_machine::design::DesignInfo;
use graven_machine::registry::{Alias, Registry};

/// Registers all designs, in the order in which they are listed, and their other names.
pub fn register(registry: &mut Registry) {
    registry.section(|| Box::new(lalea::LaleaConfig::default()));
    DESIGNS.iter().for_each(|entry| registry.design(entry));
    ALIASES.iter().for_each(|alias| registry.alias(alias));
}

/// All designs, in the order in which they are listed.
const DESIGNS: &[&DesignInfo] = &[
    &ideal::INFO,
    &base::INFO,
    &fwb::INFO,
    &fwb::LITERAL,
    &fwb::CRADE,
    &fwb::UNSAFE,
    &fwb::SLDE,
    &fwb::HWL,
    &fwb::HW_RLOG,
    &fwb::HW_ULOG,
    &hoop::INFO,
    &hoop::LITERAL,
    &lad::INFO,
    &lad::LITERAL,
    &lad::LALEA,
    &lsm::INFO,
    &morlog::INFO,
    &morlog::LITERAL,
    &morlog::CRADE,
    &morlog::SLDE,
    &morlog::DP,
    &opt_redo::INFO,
    &opt_redo::LITERAL,
    &opt_undo::INFO,
    &opt_undo::LITERAL,
    &osp::INFO,
    &osp::LITERAL,
    &redu::INFO,
    &redu::LITERAL,
    &redu::LALEA,
    &redu::BLOM,
    &redu::LALEA_BLOM,
    &silo::INFO,
    &silo::LITERAL,
    &software::redo::INFO,
    &software::undo::INFO,
    &software::undo::LITERAL,
    &software::redo::UNSAFE,
    &software::undo::UNSAFE,
    &software::undo::EADR,
];

/// All of them.
const ALIASES: &[Alias] = &[
    Alias {
        name: "non-pers",
        summary: "another name for `ideal`",
        paper: "FWB §VI",
        of: &["ideal"],
    },
    Alias {
        name: "unsafe-base",
        summary: "the better of `unsafe-redo` and `unsafe-undo` (unsafe)",
        paper: "FWB §VI",
        of: &["unsafe-redo", "unsafe-undo"],
    },
];

/// The README, whose example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
