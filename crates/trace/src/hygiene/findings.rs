//! Findings, by class and source line.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::classes::{Class, Severity};
use super::memory::Doer;
use super::places::{Blamed, Deed, Frame, Places};

/// Most callers that a finding names.
const CALLERS_MAX: usize = 5;

/// Another instruction that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Partner {
    /// The relation: `store`, `flush`, `call`, `effect`, `told`.
    pub is: &'static str,
    /// The place.
    pub place: Frame,
    /// The calls that led there, the innermost first.
    pub calls: Vec<Frame>,
}

/// A line from which the function of a finding was called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Caller {
    /// The call.
    pub place: Frame,
    /// Number of occurrences.
    pub count: u64,
}

/// A line of the program that is careless in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The class.
    pub class: Class,
    /// The weight.
    pub severity: Severity,
    /// The line.
    pub place: Frame,
    /// The line is a library's of the system, not the program's.
    pub is_library: bool,
    /// Number of occurrences.
    pub count: u64,
    /// The problem in one sentence.
    pub problem: &'static str,
    /// Particulars of the first occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The change that mends it.
    pub repair: &'static str,
    /// Thread of the first occurrence.
    pub thread: u32,
    /// Address of persistent memory of the first occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// The calls that led to it, the innermost first.
    pub calls: Vec<Frame>,
    /// Other instructions of the first occurrence.
    pub partners: Vec<Partner>,
    /// The most frequent calls of the function.
    pub callers: Vec<Caller>,
}

/// An occurrence.
pub(super) struct Occurrence<'a> {
    pub class: Class,
    pub by: Doer,
    pub address: Option<u64>,
    pub partners: &'a [(&'static str, Doer)],
    pub detail: Option<String>,
}

/// Occurrences of one class at one place.
struct Found {
    count: u64,
    first: Doer,
    address: Option<u64>,
    partners: Vec<(&'static str, Doer)>,
    detail: Option<String>,
    callers: BTreeMap<u32, u64>,
}

/// Findings that are collected.
pub(super) struct Findings {
    pub places: Places,
    found: FxHashMap<(Class, u32), Found>,
    /// Occurrences that are the C library's.
    pub of_runtime: u64,
}

impl Findings {
    pub fn new(places: Places) -> Findings {
        Findings { places, found: FxHashMap::default(), of_runtime: 0 }
    }

    pub fn add(&mut self, occurrence: Occurrence<'_>) {
        let Occurrence { class, by, address, partners, detail } = occurrence;
        let deed = class.deed();
        let (place, caller) = match self.places.blamed(by.site, by.stack, deed) {
            (Blamed::Place(place), caller) => (place, caller),
            (Blamed::Runtime, _) => {
                self.of_runtime += 1;
                return;
            }
        };
        let found = self.found.entry((class, place)).or_insert_with(|| Found {
            count: 0,
            first: by,
            address,
            partners: partners.to_vec(),
            detail,
            callers: BTreeMap::new(),
        });
        found.count += 1;
        if let Some(caller) = caller {
            *found.callers.entry(caller).or_default() += 1;
        }
    }

    /// All findings: bugs first, by class, the most frequent first.
    pub fn all(mut self) -> Vec<Finding> {
        let found = std::mem::take(&mut self.found);
        let mut all: Vec<Finding> =
            found.into_iter().map(|((class, place), of)| self.finding(class, place, of)).collect();
        all.sort_by(|a, b| {
            let key = |f: &Finding| (f.severity, f.class, std::cmp::Reverse(f.count));
            key(a).cmp(&key(b)).then_with(|| a.place.cmp(&b.place))
        });
        all
    }

    fn finding(&mut self, class: Class, place: u32, of: Found) -> Finding {
        let place = self.places.frames[place as usize].clone();
        let partner = |(is, doer): &(&'static str, Doer), places: &mut Places| {
            let calls = places.calls(doer.site, doer.stack);
            let deed = if *is == "store" { Deed::Access } else { Deed::Order };
            let place = match places.blamed(doer.site, doer.stack, deed).0 {
                Blamed::Place(at) => places.frames[at as usize].clone(),
                Blamed::Runtime => calls.first().cloned().unwrap_or_default(),
            };
            Partner { is, place, calls }
        };
        let partners = of.partners.iter().map(|p| partner(p, &mut self.places)).collect();
        let mut callers: Vec<_> = of.callers.into_iter().collect();
        callers.sort_by_key(|&(place, count)| (std::cmp::Reverse(count), place));
        let caller = |(place, count): (u32, u64)| Caller {
            place: self.places.frames[place as usize].clone(),
            count,
        };
        let callers = callers.into_iter().take(CALLERS_MAX).map(caller).collect();
        Finding {
            class,
            severity: class.severity(),
            is_library: place.is_library(),
            place,
            count: of.count,
            problem: class.problem(),
            detail: of.detail,
            repair: class.repair(),
            thread: of.first.thread,
            address: of.address,
            calls: self.places.calls(of.first.site, of.first.stack),
            partners,
            callers,
        }
    }
}
