//! Captured programs' side of the seam: the files that the plugin has left, made a program trace.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use graven::trace::capture::{
    Capture, CaptureError, Function, Limits, Module, Role, Rules, Sources,
};
use serde::Deserialize;
use serde_json::Value;

use crate::program_trace::{create, keep};
use crate::seam::{Failure, Task, parse};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaptureSpec {
    /// The streams of all threads.
    threads: Vec<PathBuf>,
    /// The regions: as each was, and as it is, if that is known.
    regions: Vec<(PathBuf, Option<PathBuf>)>,
    /// The addresses of all sites, and the list of mapped code, where the program has come so far.
    sites: Option<PathBuf>,
    modules: Option<PathBuf>,
    /// The functions that were followed, and what each is for.
    functions: Vec<(String, Vec<String>)>,
    critical_sections: bool,
    skip: u64,
    most: Option<u64>,
    /// Description of the program in the header.
    description: Value,
    out: String,
}

/// Files of a folder.
struct Files {
    threads: Vec<PathBuf>,
    regions: Vec<(PathBuf, Option<PathBuf>)>,
    sites: Option<PathBuf>,
    modules: Option<PathBuf>,
}

/// The folder in which systems keep debugging information that was split off executables.
const DEBUG_FOLDER: &str = "/usr/lib/debug/.build-id";

impl Sources for Files {
    type File = File;

    fn threads(&self) -> usize {
        self.threads.len()
    }

    fn regions(&self) -> usize {
        self.regions.len()
    }

    fn stream(&self, thread: usize) -> io::Result<File> {
        File::open(&self.threads[thread])
    }

    fn before(&self, region: usize) -> io::Result<File> {
        File::open(&self.regions[region].0)
    }

    fn before_bytes(&self, region: usize) -> io::Result<u64> {
        Ok(std::fs::metadata(&self.regions[region].0)?.len())
    }

    fn after(&self, region: usize) -> io::Result<Option<File>> {
        self.regions[region].1.as_ref().map(File::open).transpose()
    }

    fn sites(&self) -> io::Result<Vec<u64>> {
        let bytes = self.sites.as_ref().map(std::fs::read).transpose()?.unwrap_or_default();
        Ok(bytes.as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect())
    }

    fn modules(&self) -> io::Result<Vec<Module>> {
        let text = self.modules.as_ref().map(std::fs::read).transpose()?.unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let module = |line: &str| {
            let mut words = line.splitn(5, ' ');
            let mut number = || words.next()?.parse().ok();
            let [first_site, start, end, offset] = [number()?, number()?, number()?, number()?];
            let path = words.next()?.into();
            Some(Module { first_site, start, end, offset, path })
        };
        Ok(text.lines().filter_map(module).collect())
    }

    fn module(&self, path: &str) -> Option<Vec<u8>> {
        std::fs::read(path).ok()
    }

    fn debug(&self, build_id: &[u8]) -> Option<Vec<u8>> {
        let (first, rest) = build_id.split_first()?;
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::read(format!("{DEBUG_FOLDER}/{first:02x}/{rest}.debug")).ok()
    }
}

/// Makes a trace of the files that the plugin has left.
///
/// # Errors
/// The specification is not as agreed.
pub fn assemble(spec_json: &str) -> Result<Task, Failure> {
    let given: CaptureSpec = parse(spec_json)?;
    let role = |name: &String| {
        Role::find(name).ok_or_else(|| Failure::Config(format!("no role of functions: {name}")))
    };
    let function = |(name, roles): (String, Vec<String>)| {
        Ok(Function { name, roles: roles.iter().map(role).collect::<Result<_, Failure>>()? })
    };
    let functions = given.functions.into_iter().map(function).collect::<Result<_, Failure>>()?;
    let rules = Rules { functions, critical_sections: given.critical_sections };
    let limits = Limits { skip: given.skip, most: given.most };
    let CaptureSpec { threads, regions, sites, modules, description, out, .. } = given;
    let sources = Files { threads, regions, sites, modules };
    Ok(Task::new(move |watch| {
        let control = watch.begin(0)?;
        let capture = Capture::new(sources, rules, limits)?;
        let report = capture.report(&control)?;
        let mut file = create(&out)?;
        capture.write(&mut file, description, &report, &control)?;
        keep(&out, file)?;
        Ok(report.to_json())
    }))
}

impl From<CaptureError> for Failure {
    fn from(error: CaptureError) -> Failure {
        match error {
            CaptureError::Cancelled => Failure::Cancelled,
            other => Failure::Trace(other.to_string()),
        }
    }
}
