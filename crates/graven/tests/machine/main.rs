//! The machine: timing to the cycle, cells, cores that share lines, persistence instructions.

#[path = "../common/mod.rs"]
mod common;

mod beginning;
mod cells;
mod contention;
mod counts;
mod domain;
mod dram;
mod hits;
mod instructions;
mod pieces;
mod recovery;
mod region;
mod rows;
mod scheduling;
mod stores;
mod timing;
mod timing_cores;
mod watching;
