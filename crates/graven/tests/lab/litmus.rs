//! The litmus programs that ship with Graven, on the designs that they are for.
//!
//! Bug class: a design does not behave as its paper's worked examples say, or the laboratory does not see
//! what a program of five steps shows.

use crate::common::registry;
use crate::{find, outcome_of, read};
use std::path::{Path, PathBuf};

use graven::lab::campaign::replayed_timeline;
use graven::lab::case::{Case, designs_of};
use graven::lab::litmus::{Litmus, parse};

fn library() -> Vec<(PathBuf, Litmus)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus");
    let folders = std::fs::read_dir(&root).expect("the repository has a folder litmus");
    // Programs for persistency models are no programs for designs.
    let folders = folders.map(|folder| folder.expect("readable").path());
    let mut files: Vec<PathBuf> = folders
        .filter(|folder| !folder.ends_with("persistency"))
        .flat_map(|folder| std::fs::read_dir(folder).expect("a folder"))
        .map(|file| file.expect("readable").path())
        .collect();
    files.sort();
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).expect("readable");
        let litmus = parse(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        (file, litmus)
    };
    files.into_iter().map(read).collect()
}

#[test]
fn every_program_does_what_it_says_on_every_design() {
    let library = library();
    assert!(library.len() >= 15, "only {} programs", library.len());
    for (file, litmus) in library {
        let designs =
            designs_of(registry(), &litmus).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        assert!(!designs.is_empty(), "{}: no design", file.display());
        for (design, must_violate) in designs {
            let what = format!("{} on {}", file.display(), design.name);
            let case =
                Case::new(registry(), &litmus, design).unwrap_or_else(|e| panic!("{what}: {e}"));
            let outcome = case.run().unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(outcome.refused, None, "{what}");
            assert!(outcome.tally.crash_points > 0, "{what}: power never fails");
            if outcome.violations.is_empty() == must_violate {
                let timeline = replayed_timeline(registry(), &litmus, design)
                    .unwrap_or_else(|e| panic!("{what}: {e}"));
                let timeline =
                    timeline.map(|(_, timeline)| timeline.to_string()).unwrap_or_default();
                panic!("{what}: violated should be {must_violate}\n{timeline}");
            }
        }
    }
}

#[test]
fn expectations_are_held_against_what_is_there() {
    let program = |line: &str| {
        let text = format!(
            "graven litmus 1\ntitle \"x\"\ndesign silo\nA = 1\nthread\nbegin\nA = 2\ncommit\ncrash c\nsettle\n{line}\n"
        );
        read(&text)
    };
    let silo = find("silo");
    let verdict =
        |line: &str| outcome_of(&program(line), silo).violations.into_iter().next().map(|c| c.what);
    assert_eq!(verdict("expect c: A = 2"), None);
    assert_eq!(verdict("expect everywhere: A = 1 | A = 2"), None);
    assert_eq!(verdict("expect end: A = 2"), None);
    let broken = |line| verdict(line).unwrap_or_else(|| panic!("{line} was not held against it"));
    assert_eq!(broken("expect c: A = 1"), "`expect c: A = 1` does not hold: A = 0x2");
    assert_eq!(
        broken("expect everywhere: A = 2"),
        "`expect everywhere: A = 2` does not hold: A = 0x1"
    );
    assert_eq!(broken("survives c: A = 9"), "`survives c: A = 9` does not hold: A = 0x2");
    assert_eq!(broken("expect end: A = 1"), "`expect end: A = 1` does not hold: A = 0x2");
}

/// Bug class: a refusal of what a program sets names the command line, which has set nothing.
#[test]
fn a_setting_of_a_program_is_refused_as_one_of_its_statements() {
    let refusal = |setting: &str| {
        let litmus = read(&format!("graven litmus 1\ntitle \"x\"\nset {setting}\nthread\n"));
        let error = Case::new(registry(), &litmus, find("silo")).err().expect("refused");
        (error.is_misfit(), error.to_string())
    };
    let (is_misfit, why) = refusal("pm.log_region_bytes = 4 KB");
    assert!(is_misfit && why.starts_with("statement `set`: `pm.log_region_bytes` = "), "{why}");
    let (is_misfit, why) = refusal("pm.nope = 4");
    assert!(!is_misfit && why.starts_with("statement `set`: unknown key `pm.nope`"), "{why}");
}

#[test]
fn variables_that_do_not_fit_are_refused_by_name() {
    let silo = find("silo");
    let refusal = |variables: &str| {
        let text = format!("graven litmus 1\ntitle \"x\"\n{variables}\nthread\n");
        let litmus = read(&text);
        match Case::new(registry(), &litmus, silo) {
            Ok(_) => panic!("accepted: {variables}"),
            Err(error) => error.to_string(),
        }
    };
    assert_eq!(
        refusal("A[8] = 0\nB = 1 with A"),
        "variable B: the line of A is full; a line has 8 words"
    );
    assert_eq!(
        refusal("A[4] = 0 at 0x40\nB = 1 at 0x58"),
        "variable B lies where A[3] does, at offset 0x58"
    );
    let far = refusal("A = 0 at 0x80000000");
    assert!(
        far.starts_with("variable A ends at offset 0x80000008, beyond the data region"),
        "{far}"
    );
    assert!(refusal("set silo.no = 3").contains("silo.no"));
    assert!(refusal("mutant nothing").contains("mutant `nothing`"));
}
