//! Persistence designs: the contract that all keep, each one's mechanisms, what papers print of them, what they cost.

#[path = "../common/mod.rs"]
mod common;

mod acknowledgement;
mod base;
mod contract;
mod cost;
mod fwb;
mod fwb_claims;
mod fwb_variants;
mod hooks;
mod hoop;
mod interface;
mod lad;
mod lalea_lad;
mod lsm;
mod morlog;
mod morlog_claims;
mod opt_redo;
mod opt_undo;
mod osp;
mod recovery_times;
mod redu;
mod silo;
mod silo_claims;
mod smallest;
mod software;
mod software_log;
mod walkthrough;
