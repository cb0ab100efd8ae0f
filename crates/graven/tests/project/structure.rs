//! The rules of structure: which crate may depend on which, and that no two folders import each other.
//!
//! Bug class: an import that points up, or a circle of files that can only be understood together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each crate and those that it may depend on.
const LAYERS: [(&str, &[&str]); 12] = [
    ("base", &[]),
    ("persistency", &["base"]),
    ("machine", &["base", "persistency"]),
    ("designs", &["base", "persistency", "machine"]),
    ("workloads", &["base", "machine"]),
    ("lab", &["base", "machine", "persistency"]),
    ("capture", &[]),
    ("qemu-plugin", &["capture"]),
    ("trace", &["base", "machine", "capture"]),
    ("powerfail", &["base", "machine", "persistency", "trace"]),
    (
        "graven",
        &["base", "machine", "designs", "workloads", "lab", "persistency", "trace", "powerfail"],
    ),
    // It depends on `graven` alone.
    ("python", &[]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the checkout is complete") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file: no comments, no strings, no unit tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let uncommented = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    uncommented.collect::<Vec<_>>().join("\n")
}

/// The crates of this workspace that a manifest names under `[dependencies]`.
fn dependencies(name: &str) -> BTreeSet<String> {
    let manifest = crates().join(name).join("Cargo.toml");
    let text = fs::read_to_string(manifest).expect("each crate has a manifest");
    let table: graven::config::toml::Table = text.parse().expect("cargo reads it");
    let named = table["dependencies"].as_table().expect("a table").keys();
    named.filter_map(|key| key.strip_prefix("graven-").map(str::to_owned)).collect()
}

#[test]
fn crates_depend_downwards_only() {
    for (name, allowed) in LAYERS {
        let found = dependencies(name);
        let allowed: BTreeSet<String> = allowed.iter().map(|&n| n.to_owned()).collect();
        assert!(found.is_subset(&allowed), "{name} depends on {found:?}, allowed are {allowed:?}");
    }
    let folders = fs::read_dir(crates()).expect("it is a folder").count();
    assert_eq!(folders, LAYERS.len(), "a new crate has a place among the layers");
}

#[test]
fn the_digest_of_a_build_covers_the_engine() {
    let text =
        fs::read_to_string(crates().join("python/build.rs")).expect("the checkout is complete");
    let missing = LAYERS.iter().filter(|(name, _)| !text.contains(&format!("\"{name}\"")));
    let missing: Vec<_> = missing.map(|(name, _)| *name).collect();
    assert_eq!(missing, ["qemu-plugin"], "of these a simulation's result does not depend");
}

/// A file's module path.
fn module(source: &Path, file: &Path) -> Vec<String> {
    let relative = file.strip_prefix(source).expect("it is below").with_extension("");
    let parts = relative.components().map(|c| c.as_os_str().to_string_lossy().into_owned());
    let mut path: Vec<String> = parts.collect();
    if path.last().is_some_and(|last| last == "mod" || last == "lib") {
        path.pop();
    }
    path
}

/// The paths of a text that begin with `crate::` or `super::`, made absolute.
fn imports(text: &str, here: &[String]) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for statement in text.split(';') {
        let Some(at) = statement.rfind("use ") else {
            found.extend(inline(statement));
            continue;
        };
        found.extend(inline(&statement[..at]));
        let tree: String = statement[at + 4..].split_whitespace().collect();
        flatten(&[], &tree, &mut |path| {
            let supers = path.iter().take_while(|part| *part == "super").count();
            match path.first().map(String::as_str) {
                Some("crate") => found.insert(path[1..].to_vec()),
                Some("super") if supers <= here.len() => {
                    let up = &here[..here.len() - supers];
                    found.insert([up, &path[supers..]].concat())
                }
                _ => false,
            };
        });
    }
    found
}

/// Paths in the middle of code.
fn inline(text: &str) -> Vec<Vec<String>> {
    let starts = text.match_indices("crate::").filter(|(at, _)| !text[..*at].ends_with('$'));
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
    let paths = starts.map(|(at, found)| {
        let rest = &text[at + found.len()..];
        let end = rest.find(|c| !word(c)).unwrap_or(rest.len());
        rest[..end].split("::").map(str::to_owned).collect()
    });
    paths.collect()
}

fn flatten(prefix: &[String], tree: &str, found: &mut impl FnMut(Vec<String>)) {
    let (mut depth, mut start) = (0, 0);
    let mut members = Vec::new();
    for (at, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                members.push(&tree[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members.push(&tree[start..]);
    for member in members.into_iter().filter(|member| !member.is_empty()) {
        let (path, inner) = match member.split_once('{') {
            Some((path, inner)) => (path, inner.strip_suffix('}')),
            None => (member, None),
        };
        let parts = path.split("::").filter(|part| !part.is_empty()).map(str::to_owned);
        let whole: Vec<String> = prefix.iter().cloned().chain(parts).collect();
        match inner {
            Some(inner) => flatten(&whole, inner, found),
            None => found(whole),
        }
    }
}

/// The folders of a crate's sources and those whose modules they import, each without its own subfolders' and parents'
/// (a folder and its parts are one thing).
fn arrows(name: &str) -> BTreeMap<String, BTreeSet<String>> {
    let source = crates().join(name).join("src");
    let mut files = Vec::new();
    sources(&source, &mut files);
    let modules: BTreeMap<Vec<String>, &Path> =
        files.iter().map(|file| (module(&source, file), file.as_path())).collect();
    // The room of a module: its first folder, or itself where it is a file at the top.
    let room = |path: &[String]| path.first().cloned().unwrap_or_default();
    let mut arrows: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (here, file) in &modules {
        let is_test = here.iter().any(|part| part == "tests" || part == "testing");
        if is_test || here.is_empty() {
            continue;
        }
        let text = code(&fs::read_to_string(file).expect("it can be read"));
        for target in imports(&text, here) {
            let known = (0..=target.len()).rev().find(|&n| modules.contains_key(&target[..n]));
            let Some(n) = known.filter(|&n| n > 0) else { continue };
            let (from, to) = (room(here), room(&target[..n]));
            if from != to {
                arrows.entry(from).or_default().insert(to);
            }
        }
    }
    arrows
}

/// A circle of rooms, if there is any.
fn circle(arrows: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    fn visit(
        at: &str,
        arrows: &BTreeMap<String, BTreeSet<String>>,
        path: &mut Vec<String>,
        done: &mut BTreeSet<String>,
    ) -> Option<Vec<String>> {
        if let Some(start) = path.iter().position(|room| room == at) {
            return Some(path[start..].to_vec());
        }
        if !done.insert(at.to_owned()) {
            return None;
        }
        path.push(at.to_owned());
        for next in arrows.get(at).into_iter().flatten() {
            if let Some(found) = visit(next, arrows, path, done) {
                return Some(found);
            }
        }
        path.pop();
        None
    }
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|room| visit(room, arrows, &mut Vec::new(), &mut done))
}

#[test]
fn no_two_folders_import_each_other() {
    for (name, _) in LAYERS {
        let arrows = arrows(name);
        let found = circle(&arrows);
        assert_eq!(found, None, "in crates/{name}/src; all imports: {arrows:#?}");
    }
}

#[test]
fn an_upward_import_is_seen() {
    let here = ["codecs".to_owned(), "fpc".to_owned()];
    let text = code(
        "use crate::{a::{self, B}, c}; // crate::d\nuse super::tables;\nlet x = crate::e::F::new();\n",
    );
    let found: Vec<String> = imports(&text, &here).iter().map(|p| p.join("::")).collect();
    assert_eq!(found, ["a::B", "a::self", "c", "codecs::tables", "e::F::new"]);
    let mut arrows = BTreeMap::from([("a".to_owned(), BTreeSet::from(["b".to_owned()]))]);
    assert_eq!(circle(&arrows), None);
    arrows.insert("b".into(), BTreeSet::from(["c".into()]));
    arrows.insert("c".into(), BTreeSet::from(["a".into()]));
    assert_eq!(circle(&arrows).map(|rooms| rooms.len()), Some(3));
}

/// The third-party crates of a lock file, with their versions.
fn locked(file: &Path) -> BTreeSet<(String, String)> {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let table: graven::config::toml::Table = text.parse().expect("cargo reads it");
    let packages = table["package"].as_array().expect("a list");
    let fetched = packages.iter().filter(|package| package.get("source").is_some());
    let field = |package: &graven::config::toml::Value, key: &str| {
        package[key].as_str().expect("a string").to_owned()
    };
    fetched.map(|package| (field(package, "name"), field(package, "version"))).collect()
}

/// Crates in `examples/` are built in one folder with those that `graven new` makes, which take the workspace's lock file:
/// with another version of one crate, whatever depends on it would be built twice.
#[test]
fn examples_depend_on_the_versions_of_the_workspace() {
    let root = crates().join("..");
    let workspace = locked(&root.join("Cargo.lock"));
    let folders = fs::read_dir(root.join("examples")).expect("the checkout is complete");
    let locks = folders.map(|entry| entry.expect("it can be read").path().join("Cargo.lock"));
    let locks: Vec<PathBuf> = locks.filter(|lock| lock.exists()).collect();
    assert!(!locks.is_empty());
    for lock in locks {
        let other: Vec<_> = locked(&lock).difference(&workspace).cloned().collect();
        assert!(other.is_empty(), "{}: {other:?}", lock.display());
    }
}
