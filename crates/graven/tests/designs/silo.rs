//! Silo beyond what its paper prints.
//!
//! Bug class: numbers of records that come round while records of the same number are there.

use crate::common::{find, registry};
use graven::lab::case::Case;
use graven::lab::litmus::parse;

/// A transaction whose words are on their way home for long, `between` empty ones, and one that is open when power fails.
fn program(between: usize) -> String {
    format!(
        "graven litmus 1\n\
         title \"a transaction with the 16 bits of one whose words are on their way home\"\n\
         crash marked\n\
         set controller.adr = false\n\
         set controller.channels = 1\n\
         set controller.interleave = line\n\
         set controller.bypass_cycles = 1\n\
         set silo.log_buffer_latency_cycles = 1\n\
         set pm.buffer_lines = 0\n\
         set pm.write_ns = 100000\n\
         X = 0 at 0x10000\nA = 0 at 0x20000\nY = 0 at 0x30000\nZ = 0 at 0x40000\nB = 0 at 0x10040\n\
         thread\n  begin\n  X = 1\n  A = 1\n  Y = 1\n  Z = 1\n  commit\n\
         {}  begin\n  B = 1\n  evict B\n  compute 210000\n  crash open\n  commit\n\
         expect open: X = 1, A = 1, Y = 1, Z = 1, B = 0\n",
        "  begin\n  commit\n".repeat(between)
    )
}

#[test]
fn a_transaction_waits_for_entries_of_the_one_that_had_its_sixteen_bits() {
    for between in [65_534, 65_535, 65_536] {
        let litmus = parse(&program(between)).unwrap_or_else(|e| panic!("{e}"));
        let case = Case::new(registry(), &litmus, find("silo").expect("registered"))
            .unwrap_or_else(|e| panic!("{e}"));
        let outcome = case.run().unwrap_or_else(|e| panic!("{e}"));
        let violated = outcome.violations.first().map(|violation| &violation.what);
        assert_eq!(violated, None, "{between} transactions between");
        assert!(outcome.tally.plain > 0);
    }
}
