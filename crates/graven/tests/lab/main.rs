//! The crash laboratory itself, every design in it, and the litmus programs that ship.

#[path = "../common/mod.rs"]
mod common;

mod campaigns;
mod deadlocks;
mod enumeration;
mod laboratory;
mod litmus;
mod outside;
