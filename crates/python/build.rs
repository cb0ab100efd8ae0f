//! Names this build: a digest of everything that a simulation's result depends on, so that stored results are found
//! again by the engine that made them and by no other.
//!
//! In a checkout and in the source distribution of the Python package these are the sources of the engine's crates, and
//! give the same digest. A published crate has no others beside it: it stands for them with its version, which its
//! dependencies have, too.

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Folders of the crates that the engine is made of.
const CRATES: [&str; 11] = [
    "base",
    "capture",
    "designs",
    "graven",
    "lab",
    "machine",
    "persistency",
    "powerfail",
    "python",
    "trace",
    "workloads",
];

/// Machines that ship with the simulator.
const MACHINES: [&str; 2] = ["../graven/papers", "../graven/machines"];

/// Versions of all packages of the workspace.
const LOCK: &str = "../../Cargo.lock";

/// Files below a folder that the engine is built from.
fn files(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            files(&entry?.path(), found)?;
        }
    } else if path.extension().is_some_and(|e| e == "rs")
        || path.file_name().is_some_and(|name| name == "machine.toml")
    {
        found.push(path.to_owned());
    }
    Ok(())
}

/// Names and versions of the packages that this crate is built from; a lock file has those of benchmarks and tools, too,
/// unless it is that of a source distribution.
fn locked(text: &str) -> BTreeSet<String> {
    let packages: Vec<(&str, &str, Vec<&str>)> =
        text.split("[[package]]").skip(1).map(package).collect();
    let (mut found, mut open) = (BTreeSet::new(), vec![env!("CARGO_PKG_NAME")]);
    while let Some(wanted) = open.pop() {
        for (name, version, dependencies) in &packages {
            let full = format!("{name} {version}");
            // A dependency has a version where there are several.
            if (wanted == *name || wanted == full) && found.insert(full) {
                open.extend(dependencies);
            }
        }
    }
    found
}

/// Name, version and dependencies of a package in a lock file.
fn package(text: &str) -> (&str, &str, Vec<&str>) {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.map_or("", |value| value.trim_matches('"'))
    };
    let dependencies = text.lines().filter(|line| line.starts_with(' '));
    let names = dependencies.map(|line| line.trim().trim_matches(['"', ',']));
    (value("name = "), value("version = "), names.collect())
}

fn main() -> io::Result<()> {
    let is_alone = !Path::new("../graven/Cargo.toml").is_file();
    let sources: Vec<PathBuf> = if is_alone {
        vec![PathBuf::from("src")]
    } else {
        let crates = CRATES.iter().map(|name| Path::new("..").join(name).join("src"));
        crates.chain(MACHINES.iter().map(PathBuf::from)).collect()
    };
    let mut all = Vec::new();
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
        files(source, &mut all)?;
    }
    all.sort();
    let mut digest = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut digest);
    if !is_alone {
        println!("cargo::rerun-if-changed={LOCK}");
        locked(&fs::read_to_string(LOCK)?).hash(&mut digest);
    }
    for file in &all {
        file.hash(&mut digest);
        fs::read(file)?.hash(&mut digest);
    }
    println!("cargo::rustc-env=GRAVEN_BUILD={:016x}", digest.finish());
    Ok(())
}
