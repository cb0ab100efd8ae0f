//! Recovered files of a captured program, held against a checker of the user's own.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use graven::memory::Image;
use graven::program::Program;
use graven::sim::Programs;
use graven::workload::{BrokenInvariant, Extent, Workload};
use serde_json::Value;

/// Most characters of what a checker says.
const SAID_MAX: usize = 300;

/// A command that checks files, and which bytes they have.
pub struct Verification {
    command: String,
    /// Name, first byte in the trace, and length of each.
    files: Vec<(String, u64, u64)>,
}

impl Verification {
    /// Of a captured program, as the header of its trace says; none if that is no such trace.
    pub fn of(command: String, capture: &Value) -> Option<Verification> {
        let paths = capture["files"].as_array()?;
        let regions = capture["report"]["regions"].as_array()?;
        let file = |(path, region): (&Value, &Value)| {
            let name = Path::new(path.as_str()?).file_name()?.to_str()?.to_owned();
            Some((name, region["start"].as_u64()?, region["bytes"].as_u64()?))
        };
        let files = paths.iter().zip(regions).map(file).collect::<Option<_>>()?;
        Some(Verification { command, files })
    }

    /// Programs whose structures are what the command says.
    pub fn of_programs(self, programs: Programs) -> Programs {
        let verification = Arc::new(self);
        Programs::new(move || {
            let (inner, verification) = (programs.build()?, Arc::clone(&verification));
            Ok(Box::new(Verified { inner, verification }))
        })
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("graven-recovered-{}-{number}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        match self.run(image, &folder.0) {
            Ok(None) => Ok(()),
            Ok(Some(what)) => Err(BrokenInvariant { structure: "recovered files".into(), what }),
            Err(error) => Err(BrokenInvariant {
                structure: "recovered files".into(),
                what: format!("they cannot be verified: {error}"),
            }),
        }
    }

    /// What the command has against the files.
    fn run(&self, image: &Image, folder: &Path) -> io::Result<Option<String>> {
        fs::create_dir(folder)?;
        for (name, start, bytes) in &self.files {
            write(&folder.join(name), image, *start, *bytes)?;
        }
        let first = self.files.first().map_or(String::new(), |(name, ..)| name.clone());
        let command = self
            .command
            .replace("{image}", &folder.join(first).to_string_lossy())
            .replace("{folder}", &folder.to_string_lossy());
        let done = Command::new("sh").arg("-c").arg(&command).output()?;
        if done.status.success() {
            return Ok(None);
        }
        let said = [done.stderr, done.stdout].concat();
        let said = String::from_utf8_lossy(&said);
        let said: String = said.trim().chars().take(SAID_MAX).collect();
        Ok(Some(format!("`{}` ended with {}: {said}", self.command, done.status)))
    }
}

/// Writes a file, without what is zero in it.
fn write(path: &Path, image: &Image, start: u64, bytes: u64) -> io::Result<()> {
    let file = File::create(path)?;
    file.set_len(bytes)?;
    let (mut run, mut at) = (Vec::new(), 0);
    let words = image.nonzero_words().map(|(addr, word)| (addr.0, word));
    for (addr, word) in words.filter(|&(addr, _)| addr >= start && addr < start + bytes) {
        let offset = addr - start;
        if offset != at + run.len() as u64 {
            file.write_all_at(&run, at)?;
            run.clear();
            at = offset;
        }
        run.extend(word.to_le_bytes());
    }
    file.write_all_at(&run, at)?;
    file.set_len(bytes)
}

/// A folder that is removed with all that is in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left there harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Verified {
    inner: Box<dyn Workload>,
    verification: Arc<Verification>,
}

impl Workload for Verified {
    fn populate(&self, image: &mut Image) {
        self.inner.populate(image);
    }

    fn program(&self, thread: u32) -> Box<dyn Program> {
        self.inner.program(thread)
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        self.inner.check(image)?;
        self.verification.check(image)
    }

    fn begins_again(&self) -> bool {
        self.inner.begins_again()
    }

    fn extent(&self) -> Option<Extent> {
        self.inner.extent()
    }
}
