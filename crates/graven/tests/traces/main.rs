//! Program traces, request traces and those of other simulators.

#[path = "../common/mod.rs"]
mod common;

mod binary_requests;
mod capture;
mod champsim_trace;
mod imports;
mod program_trace;
mod request_trace;
