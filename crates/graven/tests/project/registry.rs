//! What a registry refuses: names that would mean two things.

use graven::counters;
use graven::design::DesignInfo;
use graven::stats::{CounterSet, Counts, Derived, derived};

counters! {
    /// As every design counts them.
    pub struct Entries {
        /// Log entries created.
        log_entries: Count, "entries";
    }
}

counters! {
    /// The same name in another unit.
    pub struct Bytes {
        /// Bytes of log entries.
        log_entries: Count, "B";
    }
}

counters! {
    /// A name of the machine's.
    pub struct Cycles {
        /// Cycles.
        cycles: Gauge, "cycles";
    }
}

fn registered(new: &'static DesignInfo) -> Vec<&'static str> {
    let mut registry = graven::standard();
    registry.design(new);
    registry.design_statistics().iter().map(|d| d.name).collect()
}

#[test]
fn a_design_adds_its_statistics_and_shares_names_with_others() {
    const TWICE: Derived =
        Derived { declaration: derived("twice", "", "Twice as many."), of: |c| c.ratio("a", "b") };
    static NEW: DesignInfo = DesignInfo {
        name: "new",
        counters: Entries::declarations,
        derived: &[TWICE],
        ..DesignInfo::DEFAULT
    };
    let statistics = registered(&NEW);
    assert_eq!(statistics.iter().filter(|&&name| name == "log_entries").count(), 1);
    assert_eq!(statistics.last(), Some(&"twice"));
}

#[test]
#[should_panic(expected = "new declares the statistic log_entries as Count in \"B\"")]
fn a_statistic_has_one_unit() {
    static NEW: DesignInfo =
        DesignInfo { name: "new", counters: Bytes::declarations, ..DesignInfo::DEFAULT };
    registered(&NEW);
}

#[test]
#[should_panic(expected = "new declares the statistic cycles, which is the machine's")]
fn a_statistic_of_the_machine_is_the_machines() {
    static NEW: DesignInfo =
        DesignInfo { name: "new", counters: Cycles::declarations, ..DesignInfo::DEFAULT };
    registered(&NEW);
}

#[test]
#[should_panic(expected = "no counter is called log_entires")]
fn a_counter_that_is_not_declared_cannot_be_read() {
    let counts: Counts = Entries { log_entries: 3 }.counts();
    assert_eq!((counts["log_entries"], counts.get("log_entires")), (3, None));
    let _ = counts["log_entires"];
}
