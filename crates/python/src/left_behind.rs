//! Judges of what a power failure leaves of a program's files: the user's commands, run on files of their own.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use graven::control::Control;
use graven::powerfail::judge::{Fault, Judge, Left, Verdict};

use crate::checker_command::{self, Streams};
use crate::image_files::{Folder, ImageFile};

/// Most characters of what a command says that a violation shows.
const SHOWN_CHARACTERS: usize = 2000;
/// Most characters of a fault's kind.
const KIND_CHARACTERS: usize = 200;
/// A folder in the host's memory, on hosts that have it.
const MEMORY_FOLDER: &str = "/dev/shm";

/// The commands that judge.
pub struct Commands {
    /// Run in turn on the same files: each must end with exit code 0.
    pub verify: Vec<String>,
    /// Kept running: answers a line for each path that it reads.
    pub kept: Option<String>,
    /// Prints the state, which must be that before or after the operation under way.
    pub dump: Option<String>,
    /// The limit of each one's time.
    pub limit: Duration,
}

/// A judge that runs commands on files.
pub struct FilesJudge {
    commands: Commands,
    files: Vec<ImageFile>,
    control: OnceLock<Arc<Control>>,
    folder: Folder,
    /// For each worker: the command that is kept running.
    kept: Vec<Mutex<Option<Kept>>>,
    /// The states after each number of operations.
    states: Mutex<Vec<Vec<u8>>>,
}

/// A command that is kept running.
struct Kept {
    child: Child,
    to: ChildStdin,
    lines: mpsc::Receiver<String>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl FilesJudge {
    /// A judge of files, for a number of workers side by side.
    pub fn new(commands: Commands, files: Vec<ImageFile>, workers: usize) -> FilesJudge {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let in_memory = Path::new(MEMORY_FOLDER);
        let parent = if in_memory.is_dir() { in_memory.into() } else { std::env::temp_dir() };
        let number = NUMBER.fetch_add(1, Relaxed);
        let folder = parent.join(format!("graven-left-{}-{number}", std::process::id()));
        let kept = (0..workers.max(1)).map(|_| Mutex::new(None)).collect();
        FilesJudge {
            commands,
            files,
            control: OnceLock::new(),
            folder: Folder(folder),
            kept,
            states: Mutex::default(),
        }
    }

    /// Stops with an exploration.
    pub fn follow(&self, control: Arc<Control>) {
        // Whoever is first is the exploration.
        let _ = self.control.set(control);
    }

    fn is_cancelled(&self) -> bool {
        self.control.get().is_some_and(|control| control.is_cancelled())
    }

    /// Writes the files to a folder.
    pub fn write(&self, folder: &Path, left: &Left<'_>) -> Result<(), String> {
        let write = || {
            fs::create_dir_all(folder)?;
            let all = self.files.iter().zip(left.lengths);
            all.into_iter().try_for_each(|(file, &length)| file.write(folder, left.image, length))
        };
        write().map_err(|error: std::io::Error| {
            format!("the files cannot be written to {}: {error}", folder.display())
        })
    }

    fn place(&self, worker: usize) -> PathBuf {
        self.folder.0.join(worker.to_string())
    }

    fn command(&self, command: &str, folder: &Path) -> String {
        let first = self.files.first().map_or("", |file| &file.name);
        command
            .replace("{image}", &folder.join(first).to_string_lossy())
            .replace("{folder}", &folder.to_string_lossy())
    }

    /// Runs a command; its output, or why it is no good.
    fn run(&self, command: &str, folder: &Path, streams: Streams) -> Result<Vec<u8>, Verdict> {
        let stops = || self.is_cancelled();
        let full = self.command(command, folder);
        let ended = checker_command::run_plainly(&full, self.commands.limit, streams, &stops)
            .map_err(|error| Verdict::Impossible(format!("`{command}` cannot be run: {error}")))?;
        if self.is_cancelled() {
            return Err(Verdict::Impossible("cancelled".into()));
        }
        let said = ended.beginning(SHOWN_CHARACTERS);
        let told = format!("`{command}` {}: {said}", ended.how());
        match ended.passed() {
            true => Ok(ended.said),
            false if ended.is_missing() => Err(Verdict::Impossible(told)),
            false => {
                let kind = format!("{command} {} {}", ended.how(), plain(&said));
                Err(Verdict::Bad(Fault { kind, what: told }))
            }
        }
    }

    fn verify(&self, folder: &Path) -> Result<(), Verdict> {
        let each = |command: &String| self.run(command, folder, Streams::Both).map(drop);
        self.commands.verify.iter().try_for_each(each)
    }

    /// Asks the command that is kept running.
    fn ask(&self, worker: usize, folder: &Path) -> Result<(), Verdict> {
        let Some(command) = &self.commands.kept else { return Ok(()) };
        let mut kept = self.kept[worker].lock().expect("no worker panics with it");
        let impossible = |error: std::io::Error| {
            Verdict::Impossible(format!("`{command}` cannot be run: {error}"))
        };
        if kept.is_none() {
            *kept = Some(begin(command).map_err(impossible)?);
        }
        let process = kept.as_mut().expect("it was just begun");
        let first = self.files.first().map_or("", |file| &file.name);
        let path = folder.join(first);
        let answer = writeln!(process.to, "{}", path.display())
            .and_then(|()| process.to.flush())
            .map_err(|_| "ended".to_owned())
            .and_then(|()| {
                process.lines.recv_timeout(self.commands.limit).map_err(|error| match error {
                    mpsc::RecvTimeoutError::Timeout => {
                        format!("did not answer within {} s", self.commands.limit.as_secs_f64())
                    }
                    mpsc::RecvTimeoutError::Disconnected => "ended".into(),
                })
            });
        let (how, said) = match answer {
            Ok(answer) if answer.trim() == "ok" => return Ok(()),
            Ok(answer) => ("says".to_owned(), answer.trim().to_owned()),
            Err(how) => {
                // The next image has a new one.
                let status = kept.take().and_then(|mut kept| kept.child.try_wait().ok()).flatten();
                (how, status.map_or(String::new(), |status| status.to_string()))
            }
        };
        if self.is_cancelled() {
            return Err(Verdict::Impossible("cancelled".into()));
        }
        let what = format!("`{command}` {how}: {said}");
        Err(Verdict::Bad(Fault { kind: format!("{command} {how} {}", plain(&said)), what }))
    }

    /// Compares the state with those between which the program was.
    fn compare(&self, folder: &Path, left: &Left<'_>) -> Result<(), Verdict> {
        let Some(command) = &self.commands.dump else { return Ok(()) };
        let found = self.run(command, folder, Streams::Output)?;
        let states = self.states.lock().expect("no worker panics with it");
        let end = (left.begun as usize + 1).min(states.len());
        let begin = (left.acknowledged as usize).min(end);
        if states[begin..end].contains(&found) {
            return Ok(());
        }
        let known = states.iter().position(|state| *state == found);
        let (is, kind) = match known {
            Some(0) => ("that of the beginning".to_owned(), "an older state"),
            Some(number) => (format!("that after operation {number}"), "an older state"),
            None => ("that of no instant".to_owned(), "a state of no instant"),
        };
        let allowed = match end - begin {
            0 | 1 => format!("that after operation {begin}"),
            2 => format!("that before or after operation {}", end - 1),
            _ => format!("one of those up to operation {}", end - 1),
        };
        let shown: String =
            String::from_utf8_lossy(&found).trim().chars().take(SHOWN_CHARACTERS).collect();
        let what = format!("the state is {is}, and must be {allowed}; `{command}` says: {shown}");
        Err(Verdict::Bad(Fault { kind: kind.into(), what }))
    }
}

/// The first line of an answer, without numbers: faults that differ in these look alike.
fn plain(said: &str) -> String {
    let line = said.lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_ascii_hexdigit()).take(KIND_CHARACTERS).collect()
}

/// Begins a command that is kept running.
fn begin(command: &str) -> std::io::Result<Kept> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(format!("exec {command}"));
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = shell.process_group(0).spawn()?;
    let to = child.stdin.take().expect("it is piped");
    let from = BufReader::new(child.stdout.take().expect("it is piped"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in from.lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    Ok(Kept { child, to, lines })
}

impl Judge for FilesJudge {
    fn judge(&self, worker: usize, left: &Left<'_>) -> Verdict {
        let folder = self.place(worker);
        if let Err(why) = self.write(&folder, left) {
            return Verdict::Impossible(why);
        }
        let all = self
            .verify(&folder)
            .and_then(|()| self.ask(worker, &folder))
            .and_then(|()| self.compare(&folder, left));
        all.err().unwrap_or(Verdict::Good)
    }

    fn compares_states(&self) -> bool {
        self.commands.dump.is_some()
    }

    fn learn(&self, operations: u32, left: &Left<'_>) -> Result<(), String> {
        let Some(command) = &self.commands.dump else { return Ok(()) };
        let folder = self.place(0);
        self.write(&folder, left)?;
        match self.run(command, &folder, Streams::Output) {
            Ok(state) => {
                let mut states = self.states.lock().expect("no worker panics with it");
                states.resize(operations as usize, Vec::new());
                states.push(state);
                Ok(())
            }
            Err(Verdict::Bad(fault)) => Err(format!(
                "{} (of the files after {operations} operations, which are good)",
                fault.what
            )),
            Err(Verdict::Impossible(why)) => Err(why),
            Err(Verdict::Good) => Ok(()),
        }
    }
}
