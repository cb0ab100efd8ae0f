//! Configuration, comparisons, workloads of the papers, and documents that say what the code says.

#[path = "../common/mod.rs"]
mod common;

mod comparison;
mod config;
mod corners;
mod docs;
mod registry;
mod structure;
mod workloads;
