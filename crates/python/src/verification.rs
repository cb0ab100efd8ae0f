//! Recovered files of a captured program, held against a checker of the user's own.

use std::fs;
use std::io;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use std::vec;

use graven::control::Control;
use graven::memory::{Addr, Image, LINE_BYTES};
use graven::program::{Op, Program, Ptr};
use graven::sim::Programs;
use graven::trace::program::LengthChange;
use graven::workload::{BrokenInvariant, Extent, Workload};
use serde_json::Value;

use crate::checker_command::{self, Ended};
use crate::image_files::{self, Folder, ImageFile};

/// Most characters of what a checker says that a violation shows.
const SHOWN_CHARACTERS: usize = 2000;

/// Lengths begin at a multiple of this behind all files.
const LENGTHS_ALIGNMENT: u64 = 4096;

/// Name of the file with what the checker has said, beside kept images.
const SAID: &str = "checker.txt";

/// Call of a checker.
pub struct Asked {
    /// The command: `{image}` is the first file, `{folder}` where all are.
    pub command: String,
    /// Limit of its time.
    pub limit: Duration,
    /// The folder where the files of the first violation are kept.
    pub keep: Option<PathBuf>,
}

/// A command that checks files, and which bytes they have.
pub struct Verification {
    asked: Asked,
    files: Vec<ImageFile>,
    lengths: Lengths,
    /// Cancelled with the campaign.
    control: OnceLock<Arc<Control>>,
    /// Why nothing that it says counts, if that is so.
    fault: Mutex<Option<String>>,
    is_kept: AtomicBool,
}

/// Verdict of a checker on files.
pub enum Verdict {
    /// The checker finds no fault.
    Passed,
    /// The checker finds a fault.
    Failed(Ended),
    /// The checker was not run, and why.
    Impossible(String),
}

impl Verification {
    /// Prepares the check of a captured program's files; none if the trace has no such files. `end`: one past the last byte that
    /// it accesses.
    pub fn of(
        asked: Asked,
        capture: &Value,
        changes: Vec<LengthChange>,
        threads: u32,
        end: u64,
    ) -> Option<Verification> {
        let files = image_files::of(capture)?;
        let behind = files.iter().map(|file| file.start + file.bytes).max().unwrap_or(0);
        let start = behind.max(end).next_multiple_of(LENGTHS_ALIGNMENT);
        let lengths = Lengths { start, files: files.len() as u64, threads, changes };
        Some(Verification {
            asked,
            files,
            lengths,
            control: OnceLock::new(),
            fault: Mutex::default(),
            is_kept: AtomicBool::new(false),
        })
    }

    /// One past the last byte of PM that lengths take; 0 if there are none.
    pub fn end(&self) -> u64 {
        self.lengths.end()
    }

    /// Stops with a campaign.
    pub fn follow(&self, control: Arc<Control>) {
        // Whoever is first is the campaign.
        let _ = self.control.set(control);
    }

    /// Why what the checker has said does not count, if that is so.
    pub fn fault(&self) -> Option<String> {
        self.fault.lock().expect("nobody panics with it").clone()
    }

    /// Programs whose structures are what the command says.
    pub fn of_programs(self: &Arc<Self>, programs: Programs) -> Programs {
        let verification = Arc::clone(self);
        Programs::new(move || {
            let (inner, verification) = (programs.build()?, Arc::clone(&verification));
            Ok(Box::new(Verified { inner, verification }))
        })
    }

    fn is_cancelled(&self) -> bool {
        self.control.get().is_some_and(|control| control.is_cancelled())
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        if let Some(fault) = self.fault() {
            return broken(fault);
        }
        let failed = match self.judge(image) {
            Verdict::Passed => return Ok(()),
            Verdict::Impossible(why) => return self.is_at_fault(why),
            Verdict::Failed(ended) => ended,
        };
        if self.is_cancelled() {
            // It was killed, and has found nothing.
            return Ok(());
        }
        // A violation is believed if the checker says the same once more.
        match self.judge(image) {
            Verdict::Failed(_) => {}
            _ if self.is_cancelled() => return Ok(()),
            Verdict::Impossible(why) => return self.is_at_fault(why),
            Verdict::Passed => {
                return self.is_at_fault(format!(
                    "{}, and passed when it was run once more on the same files: what it says of others means nothing",
                    self.told(&failed)
                ));
            }
        }
        if let Err(error) = self.keep(image, &failed) {
            return self.is_at_fault(format!("the recovered files cannot be kept: {error}"));
        }
        broken(self.told(&failed))
    }

    fn is_at_fault(&self, why: String) -> Result<(), BrokenInvariant> {
        let mut fault = self.fault.lock().expect("nobody panics with it");
        broken(fault.get_or_insert(why).clone())
    }

    /// Tells the end of the command, and its output.
    pub fn told(&self, ended: &Ended) -> String {
        let said = ended.beginning(SHOWN_CHARACTERS);
        format!("`{}` {}: {said}", self.asked.command, ended.how())
    }

    /// Runs the command on the files that an image holds. It has files of its own, which it may write to.
    pub fn judge(&self, image: &Image) -> Verdict {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("graven-recovered-{}-{number}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        let impossible = |error: &dyn std::fmt::Display| {
            Verdict::Impossible(format!("`{}` cannot be run: {error}", self.asked.command))
        };
        if let Err(error) = self.write(image, &folder.0) {
            return Verdict::Impossible(format!(
                "the recovered files cannot be written to {}: {error}",
                folder.0.display()
            ));
        }
        let first = self.files.first().map_or("", |file| &file.name);
        let command = self
            .asked
            .command
            .replace("{image}", &folder.0.join(first).to_string_lossy())
            .replace("{folder}", &folder.0.to_string_lossy());
        let stops = || self.is_cancelled();
        match checker_command::run(&command, self.asked.limit, &stops) {
            Err(error) => impossible(&error),
            Ok(ended) if ended.is_missing() => Verdict::Impossible(self.told(&ended)),
            Ok(ended) if ended.passed() => Verdict::Passed,
            Ok(ended) => Verdict::Failed(ended),
        }
    }

    /// Keeps the files of the first violation, as the checker found them.
    fn keep(&self, image: &Image, ended: &Ended) -> io::Result<()> {
        let Some(folder) = &self.asked.keep else { return Ok(()) };
        if self.is_kept.swap(true, Relaxed) {
            return Ok(());
        }
        self.write(image, folder)?;
        fs::write(folder.join(SAID), &ended.said)
    }

    fn write(&self, image: &Image, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (number, file) in self.files.iter().enumerate() {
            let length = self.lengths.of(number as u64, image).or(file.length);
            file.write(folder, image, length.unwrap_or(file.bytes))?;
        }
        Ok(())
    }
}

fn broken(what: String) -> Result<(), BrokenInvariant> {
    Err(BrokenInvariant { structure: "recovered files".into(), what })
}

/// Lengths of files. A file system keeps a file's length in PM, as it keeps its bytes: a program that is held against a checker
/// stores it where it changes it, in the transaction in which it does, and recovery finds it as it finds the bytes.
///
/// Each thread has a word of its own for each file, in a line of its own, so that no two threads store to the same one. It holds
/// the number of the thread's last change, from 1, in the order in which the captured program made them; of all threads, the
/// latest counts.
struct Lengths {
    /// Address of the first word.
    start: u64,
    files: u64,
    threads: u32,
    changes: Vec<LengthChange>,
}

impl Lengths {
    fn word(&self, thread: u32, file: u64) -> Addr {
        Addr(self.start + (u64::from(thread) * self.files + file) * LINE_BYTES)
    }

    fn end(&self) -> u64 {
        if self.changes.is_empty() { 0 } else { self.word(self.threads, 0).0 }
    }

    /// The length of a file in an image, if it has changed since the trace began.
    fn of(&self, file: u64, image: &Image) -> Option<u64> {
        if self.changes.is_empty() {
            return None;
        }
        let words = (0..self.threads).map(|thread| image.load(self.word(thread, file)));
        let latest = words.max()?.checked_sub(1)?;
        Some(self.changes.get(latest as usize)?.bytes)
    }

    /// Returns a thread's program with the stores of the lengths that it changes.
    fn of_program(&self, thread: u32, inner: Box<dyn Program>) -> Box<dyn Program> {
        let numbered = (1..).zip(&self.changes);
        let changes: Vec<(u64, Op)> = numbered
            .filter(|(_, change)| change.thread == thread)
            .map(|(value, change)| {
                let at = Ptr::known(self.word(thread, change.file.into()));
                (change.operation, Op::Store { at, value })
            })
            .collect();
        if changes.is_empty() {
            return inner;
        }
        Box::new(Resizing { inner, changes: changes.into_iter().peekable(), done: 0 })
    }
}

/// A program that also stores lengths of files.
struct Resizing {
    inner: Box<dyn Program>,
    /// Stores, each before the operation of a number.
    changes: Peekable<vec::IntoIter<(u64, Op)>>,
    /// Operations so far.
    done: u64,
}

impl Program for Resizing {
    fn next(&mut self, value: u64) -> Op {
        match self.changes.next_if(|(operation, _)| *operation == self.done) {
            Some((_, store)) => store,
            None => {
                self.done += 1;
                self.inner.next(value)
            }
        }
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
        self.verification.lengths.of_program(thread, self.inner.program(thread))
    }

    fn check(&self, image: &Image) -> Result<(), BrokenInvariant> {
        self.inner.check(image)?;
        self.verification.check(image)
    }

    fn begins_again(&self) -> bool {
        // The trace would begin again from its first transaction, on files in which that was made already.
        false
    }

    fn extent(&self) -> Option<Extent> {
        let extent = self.inner.extent()?;
        Some(Extent { fixed_bytes: extent.fixed_bytes.max(self.verification.end()), ..extent })
    }
}
