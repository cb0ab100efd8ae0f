//! Names this build: a digest of everything that a simulation's result depends on, so that stored results are found
//! again by the engine that made them and by no other.
//!
//! In a checkout and in the source distribution of the Python package these are the sources of the engine's crates, and
//! give the same digest. A published crate has no others beside it: it stands for them with its version, which its
//! dependencies have, too.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Folders of the crates that the engine is made of.
const CRATES: [&str; 9] =
    ["base", "capture", "designs", "graven", "lab", "machine", "python", "trace", "workloads"];

/// Machines that ship with the simulator, and versions of its dependencies.
const OTHERS: [&str; 3] = ["../graven/papers", "../graven/machines", "../../Cargo.lock"];

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
    let sources: Vec<PathBuf> = if Path::new("../graven/Cargo.toml").is_file() {
        let crates = CRATES.iter().map(|name| Path::new("..").join(name).join("src"));
        crates.chain(OTHERS.iter().map(PathBuf::from)).collect()
    } else {
        vec![PathBuf::from("src")]
    };
    let mut all = Vec::new();
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
        files(source, &mut all)?;
    }
    all.sort();
    let mut digest = DefaultHasher::new();
    env::var("CARGO_PKG_VERSION").expect("cargo sets it").hash(&mut digest);
    for file in &all {
        file.hash(&mut digest);
        fs::read(file)?.hash(&mut digest);
    }
    println!("cargo::rustc-env=GRAVEN_BUILD={:016x}", digest.finish());
    Ok(())
}
