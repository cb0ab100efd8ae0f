//! Histories of captured programs: the seam's side of `graven trace info`, `graven trace print` and `graven hygiene`.

use std::collections::BTreeMap;

use graven::control::Control;
use graven::program::Op;
use graven::trace::hygiene::judge;
use graven::trace::program::{Call, Happened, Happening, How, Place, Stack, TraceError};
use serde_json::{Map, Value, json};

use crate::program_trace::{failure, open};
use crate::seam::Failure;

/// The name of what an entry is.
fn name(what: &Happened) -> &'static str {
    match what {
        Happened::Store { how: How::Plain, .. } => "store",
        Happened::Store { how: How::NonTemporal, .. } => "non-temporal store",
        Happened::Store { how: How::Repeated, .. } => "string store",
        Happened::Store { how: How::Kernel, .. } => "kernel store",
        Happened::Load { .. } => "load",
        Happened::Flush(flush, _) => flush.name(),
        Happened::Fence(fence) => fence.name(),
        Happened::Call(call) => call.asked.name(),
    }
}

/// Returns how often each kind of entry is in a trace's history, as JSON; nothing of a trace without one.
///
/// # Errors
/// The trace cannot be read, or is broken.
pub fn counts(path: &str) -> Result<String, Failure> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    let reader = open(path)?;
    reader
        .history(|happening| *counts.entry(name(&happening.what)).or_default() += 1)
        .map_err(|e| failure(path, e))?;
    Ok(json!(counts).to_string())
}

/// Returns entries of a trace's history, as JSON: `sites`, and `entries` from the one of number `first` on, `most` at most. Stores
/// and loads are left out unless `with_accesses`.
///
/// # Errors
/// The trace cannot be read, or is broken.
pub fn entries(path: &str, first: u64, most: u64, with_accesses: bool) -> Result<String, Failure> {
    let reader = open(path)?;
    let read = || -> Result<Value, TraceError> {
        let stacks = reader.stacks()?;
        let (mut entries, mut seen) = (Vec::new(), 0u64);
        reader.walk(|happening, op| {
            let is_access =
                matches!(happening.what, Happened::Store { .. } | Happened::Load { .. });
            if is_access && !with_accesses {
                return Ok(());
            }
            if seen >= first && (entries.len() as u64) < most {
                entries.push(described(&happening, op, &stacks));
            }
            seen += 1;
            Ok(())
        })?;
        Ok(json!({ "sites": reader.sites()?, "entries": entries, "all": seen }))
    };
    read().map(|found| found.to_string()).map_err(|e| failure(path, e))
}

/// Returns the findings of hygiene in a trace's history, and its counts, as JSON.
///
/// # Errors
/// The trace cannot be read, is broken, or has no history.
pub fn hygiene(path: &str) -> Result<String, Failure> {
    let found = judge(&open(path)?, &Control::default()).map_err(|e| failure(path, e))?;
    Ok(json!(found).to_string())
}

fn described(happening: &Happening, op: Option<Op>, stacks: &[Stack]) -> Value {
    let &Happening { thread, operation, site, stack, ref what } = happening;
    let mut found = Map::new();
    let mut put = |key: &str, value: Value| found.insert(key.into(), value);
    put("thread", thread.into());
    put("operation", operation.into());
    put("what", name(what).into());
    match op {
        Some(Op::Store { at, value } | Op::StoreNonTemporal { at, value }) => {
            put("address", at.addr.0.into());
            put("value", value.into());
        }
        Some(Op::Load { at }) => {
            put("address", at.addr.0.into());
        }
        _ => {}
    }
    match what {
        Happened::Store { is_joined, .. } => {
            put("is_joined", (*is_joined).into());
        }
        Happened::Flush(_, place) => put_place(*place, &mut put),
        Happened::Call(call) => {
            let Call { is_over, place, bytes, flags, result, path, .. } = call;
            put_place(*place, &mut put);
            put("is_over", (*is_over).into());
            put("bytes", (*bytes).into());
            put("flags", (*flags).into());
            put("result", (*result).into());
            put("path", path.as_str().into());
        }
        Happened::Load { .. } | Happened::Fence(_) => {}
    }
    put("site", site.into());
    put("calls", calls(stack, stacks).into());
    Value::Object(found)
}

fn put_place(place: Place, put: &mut impl FnMut(&str, Value) -> Option<Value>) {
    match place {
        Place::Persistent(at) => put("address", at.into()),
        Place::Volatile(at) => put("volatile_address", at.into()),
        Place::Unknown => None,
    };
}

/// The sites of the calls of a stack, the innermost first.
pub fn calls(stack: u32, stacks: &[Stack]) -> Vec<u32> {
    let next = |&stack: &u32| Some(stacks.get((stack as usize).checked_sub(1)?)?.caller);
    let all = std::iter::successors(Some(stack), next);
    all.filter_map(|stack| Some(stacks.get((stack as usize).checked_sub(1)?)?.site)).collect()
}
