//! Judges of what a power failure leaves of a program's files: the user's commands, run on files of their own.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use graven::control::Control;
use graven::powerfail::judge::{Fault, Judge, Left, Verdict};

use crate::checker_command::kill_group;
use crate::image_files::{Folder, ImageFile};
use crate::runner::{Runner, Streams, Watching};
use crate::served::{self, PROTOCOLS, Server};

/// Most characters of what a command says that a violation shows.
const SHOWN_CHARACTERS: usize = 2000;
/// Most characters of a fault's kind.
const KIND_CHARACTERS: usize = 200;
/// The beginning of the names of folders with images.
const PREFIX: &str = "graven-left-";
/// A folder in the host's memory, on hosts that have it.
const MEMORY_FOLDER: &str = "/dev/shm";

/// The commands that judge.
pub struct Commands {
    /// Run in turn on the same files: each must end with exit code 0.
    pub verify: Vec<String>,
    /// Kept running: answers a line for each path that it reads.
    pub kept: Option<String>,
    /// A server on the files, which must accept connections.
    pub serve: Option<String>,
    /// Run while the server runs: must end with exit code 0; or the name of a protocol by which the server must answer.
    pub ask: Option<String>,
    /// Prints the state, which must be that before or after the operation under way.
    pub dump: Option<String>,
    /// The limit of each one's time.
    pub limit: Duration,
}

/// A judge that runs commands on files.
pub struct FilesJudge {
    commands: Commands,
    files: Vec<ImageFile>,
    control: Arc<OnceLock<Arc<Control>>>,
    folder: Folder,
    watching: Watching,
    /// For each worker: what runs its commands.
    runners: Vec<Mutex<Option<Runner>>>,
    /// For each worker: the command that is kept running.
    kept: Vec<Mutex<Option<Kept>>>,
    /// The states after each number of operations.
    states: Mutex<Vec<Vec<u8>>>,
}

/// A command that is kept running.
struct Kept {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    errors: File,
}

impl Kept {
    /// Waits for output, and tells whether there is some; its end counts.
    fn waits(&self, limit: Duration) -> bool {
        if !self.from.buffer().is_empty() {
            return true;
        }
        let milliseconds = i32::try_from(limit.as_millis()).unwrap_or(i32::MAX);
        let mut out =
            libc::pollfd { fd: self.from.get_ref().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        #[expect(unsafe_code, reason = "the standard library waits for no pipe for a limited time")]
        // SAFETY: there is one descriptor, which is open as long as the process is kept.
        let ready = unsafe { libc::poll(&raw mut out, 1, milliseconds) };
        ready > 0
    }

    /// Tells whether there is output that no image has asked for.
    fn has_said_more(&mut self) -> bool {
        // At its end there is nothing to read.
        self.waits(Duration::ZERO) && self.from.fill_buf().is_ok_and(|said| !said.is_empty())
    }

    /// Reads a line; in words why not.
    fn answer(&mut self, limit: Duration) -> Result<String, String> {
        let deadline = Instant::now() + limit;
        let mut line = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if !self.waits(left) {
                return Err(format!("did not answer within {} s", limit.as_secs_f64()));
            }
            let said = self.from.fill_buf().unwrap_or_default();
            if said.is_empty() {
                return Err("ended".into());
            }
            let end = said.iter().position(|&byte| byte == b'\n');
            let count = end.map_or(said.len(), |end| end + 1);
            line.extend(&said[..count]);
            self.from.consume(count);
            if end.is_some() {
                return Ok(String::from_utf8_lossy(&line).into_owned());
            }
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        kill_group(self.child.id());
        // It may have ended by itself.
        let _ = self.child.wait();
    }
}

impl FilesJudge {
    /// A judge of files, for a number of workers side by side.
    pub fn new(commands: Commands, files: Vec<ImageFile>, workers: usize) -> FilesJudge {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let in_memory = Path::new(MEMORY_FOLDER);
        let parent = if in_memory.is_dir() { in_memory.into() } else { std::env::temp_dir() };
        remove_stale(&parent);
        let number = NUMBER.fetch_add(1, Relaxed);
        let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
        let workers = workers.max(1);
        let kept = (0..workers).map(|_| Mutex::new(None)).collect();
        let runners = (0..workers).map(|_| Mutex::new(None)).collect();
        let control: Arc<OnceLock<Arc<Control>>> = Arc::default();
        let watched = Arc::clone(&control);
        let stops = move || watched.get().is_some_and(|control| control.is_cancelled());
        FilesJudge {
            commands,
            files,
            control,
            folder: Folder(folder),
            watching: Watching::begin(workers, stops),
            runners,
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
            self.empty(folder)?;
            let all = self.files.iter().zip(left.lengths);
            all.into_iter().try_for_each(|(file, &length)| file.write(folder, left.image, length))
        };
        write().map_err(|error: std::io::Error| {
            format!("the files cannot be written to {}: {error}", folder.display())
        })
    }

    /// Removes what commands have made beside the files.
    fn empty(&self, folder: &Path) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let is_ours = self.files.iter().any(|file| entry.file_name() == file.name.as_str());
            match (entry.file_type()?.is_dir(), is_ours) {
                (true, _) => fs::remove_dir_all(entry.path())?,
                (false, false) => fs::remove_file(entry.path())?,
                (false, true) => {}
            }
        }
        Ok(())
    }

    fn place(&self, worker: usize) -> PathBuf {
        self.folder.0.join(worker.to_string())
    }

    /// The first file in a folder.
    fn image(&self, folder: &Path) -> PathBuf {
        folder.join(self.files.first().map_or("", |file| &file.name))
    }

    fn command(&self, command: &str, folder: &Path) -> String {
        command
            .replace("{image}", &self.image(folder).to_string_lossy())
            .replace("{folder}", &folder.to_string_lossy())
    }

    /// Runs a command; its output, or why it is no good.
    fn run(&self, command: &str, worker: usize, streams: Streams) -> Result<Vec<u8>, Verdict> {
        let full = self.command(command, &self.place(worker));
        let mut runner = self.runners[worker].lock().expect("no worker panics with it");
        let output = self.folder.0.join(format!("{worker}.said"));
        let run = || {
            if runner.is_none() {
                *runner = Some(Runner::new(&self.watching, worker, &output)?);
            }
            let runner = runner.as_mut().expect("it was just made");
            runner.run(&full, self.commands.limit, streams)
        };
        let ended = { run }().map_err(|error| cannot_run(command, &error))?;
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

    fn verify(&self, worker: usize) -> Result<(), Verdict> {
        let each = |command: &String| self.run(command, worker, Streams::Both).map(drop);
        self.commands.verify.iter().try_for_each(each)
    }

    /// Asks the command that is kept running.
    fn ask(&self, worker: usize) -> Result<(), Verdict> {
        let Some(command) = &self.commands.kept else { return Ok(()) };
        let mut kept = self.kept[worker].lock().expect("no worker panics with it");
        let impossible = |error| cannot_run(command, &error);
        if kept.is_none() {
            let errors = self.folder.0.join(format!("{worker}.errors"));
            *kept = Some(begin(command, &errors).map_err(impossible)?);
        }
        let process = kept.as_mut().expect("it was just begun");
        let twice = format!("`{command}` has answered an image with more than one line");
        if process.has_said_more() {
            return Err(Verdict::Impossible(twice));
        }
        // In one piece: the command is woken once.
        let line = format!("{}\n", self.image(&self.place(worker)).display());
        let answer = process
            .to
            .write_all(line.as_bytes())
            .map_err(|_| "ended".to_owned())
            .and_then(|()| process.answer(self.commands.limit));
        let (how, said) = match answer {
            Ok(answer) if answer.trim() == "ok" => return Ok(()),
            Ok(answer) => ("says".to_owned(), answer.trim().to_owned()),
            Err(how) => {
                // The next image has a new one.
                let errors = kept.take().and_then(|mut kept| {
                    kept.errors.seek(SeekFrom::Start(0)).ok()?;
                    let mut said = String::new();
                    (&kept.errors).take(SHOWN_CHARACTERS as u64).read_to_string(&mut said).ok()?;
                    Some(said.trim().to_owned())
                });
                (how, errors.filter(|said| !said.is_empty()).unwrap_or("it said nothing".into()))
            }
        };
        if self.is_cancelled() {
            return Err(Verdict::Impossible("cancelled".into()));
        }
        let what = format!("`{command}` {how}: {said}");
        Err(Verdict::Bad(Fault { kind: format!("{command} {how} {}", plain(&said)), what }))
    }

    /// Starts the server, asks it, and stops it.
    fn serve(&self, worker: usize) -> Result<(), Verdict> {
        let Some(command) = &self.commands.serve else { return Ok(()) };
        let impossible = |error| cannot_run(command, &error);
        let port = served::free_port().map_err(impossible)?;
        let with_port = |text: &str| text.replace("{port}", &port.to_string());
        let full = self.command(&with_port(command), &self.place(worker));
        let said = self.folder.0.join(format!("{worker}.server"));
        let mut server = Server::start(&full, port, &said).map_err(impossible)?;
        let limit = self.commands.limit;
        let bad = |how: String| {
            let kind = format!("{command} {}", plain(&how));
            Verdict::Bad(Fault { kind, what: format!("`{command}` {how}") })
        };
        let stream = server.accepts(limit, &|| self.is_cancelled());
        if self.is_cancelled() {
            return Err(Verdict::Impossible("cancelled".into()));
        }
        let stream = stream.map_err(bad)?;
        let Some(ask) = &self.commands.ask else { return Ok(()) };
        match PROTOCOLS.iter().find(|protocol| protocol.name == ask) {
            Some(protocol) => server.answers(stream, protocol, limit).map_err(bad)?,
            None => {
                drop(stream);
                self.run(&with_port(ask), worker, Streams::Both)?;
            }
        }
        match server.runs() {
            true => Ok(()),
            false => Err(bad(format!("has ended while it was asked: {}", server.told()))),
        }
    }

    /// Compares the state with those between which the program was.
    fn compare(&self, worker: usize, left: &Left<'_>) -> Result<(), Verdict> {
        let Some(command) = &self.commands.dump else { return Ok(()) };
        let found = self.run(command, worker, Streams::Output)?;
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

fn cannot_run(command: &str, error: &std::io::Error) -> Verdict {
    Verdict::Impossible(format!("`{command}` cannot be run: {error}"))
}

/// The first line of an answer, without numbers: faults that differ in these look alike.
fn plain(said: &str) -> String {
    let line = said.lines().next().unwrap_or_default();
    line.chars().filter(|c| !c.is_ascii_hexdigit()).take(KIND_CHARACTERS).collect()
}

/// Removes folders of processes that were killed before they could.
fn remove_stale(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let Some((process, _)) = process.and_then(|rest| rest.split_once('-')) else { continue };
        if process.parse::<u32>().is_ok() && !Path::new("/proc").join(process).exists() {
            // Another process may remove it, too.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Begins a command that is kept running.
fn begin(command: &str, errors: &Path) -> std::io::Result<Kept> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    let errors =
        OpenOptions::new().read(true).write(true).create(true).truncate(true).open(errors)?;
    shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors.try_clone()?);
    let mut child = shell.process_group(0).spawn()?;
    let to = child.stdin.take().expect("it is piped");
    let from = BufReader::new(child.stdout.take().expect("it is piped"));
    Ok(Kept { child, to, from, errors })
}

impl Judge for FilesJudge {
    fn judge(&self, worker: usize, left: &Left<'_>) -> Verdict {
        let folder = self.place(worker);
        if let Err(why) = self.write(&folder, left) {
            return Verdict::Impossible(why);
        }
        let all = self
            .verify(worker)
            .and_then(|()| self.serve(worker))
            .and_then(|()| self.ask(worker))
            .and_then(|()| self.compare(worker, left));
        all.err().unwrap_or(Verdict::Good)
    }

    fn compares_states(&self) -> bool {
        self.commands.dump.is_some()
    }

    fn learn(&self, operations: u32, left: &Left<'_>) -> Result<(), String> {
        let Some(command) = &self.commands.dump else { return Ok(()) };
        let folder = self.place(0);
        self.write(&folder, left)?;
        match self.run(command, 0, Streams::Output) {
            Ok(state) => {
                let mut states = self.states.lock().expect("no worker panics with it");
                states.resize(operations as usize, Vec::new());
                states.push(state);
                Ok(())
            }
            Err(Verdict::Bad(fault)) => Err(format!(
                "{} (of the files between operations {operations} and {}, which a kill would leave)",
                fault.what,
                operations + 1
            )),
            Err(Verdict::Impossible(why)) => Err(why),
            Err(Verdict::Good) => Ok(()),
        }
    }
}
