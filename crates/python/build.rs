//! Names this build: a digest of everything that a simulation's result depends on, so that stored results are found
//! again by the engine that made them and by no other.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Machines that ship with the simulator, and versions of its dependencies.
const OTHERS: [&str; 3] = ["../../papers", "../../machines", "../../Cargo.lock"];

/// Files below a folder that the engine is built from.
fn files(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            files(&entry?.path(), found)?;
        }
    } else if path.extension().is_some_and(|e| e == "rs" || e == "lock")
        || path.file_name().is_some_and(|name| name == "machine.toml")
    {
        found.push(path.to_owned());
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut sources: Vec<PathBuf> = OTHERS.iter().map(PathBuf::from).collect();
    for entry in fs::read_dir("..")? {
        sources.push(entry?.path().join("src"));
    }
    let mut all = Vec::new();
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
        files(source, &mut all)?;
    }
    all.sort();
    let mut digest = DefaultHasher::new();
    for file in &all {
        file.hash(&mut digest);
        fs::read(file)?.hash(&mut digest);
    }
    println!("cargo::rustc-env=GRAVEN_BUILD={:016x}", digest.finish());
    Ok(())
}
