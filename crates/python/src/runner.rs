//! Commands that are run thousands of times: little besides the command itself takes time.
//!
//! What a command says goes to a file in the host's memory, so that no thread has to read it; one thread looks after the time
//! limits of all; a command of plain words needs no shell.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::checker_command::{Ended, KEPT_BYTES, kill_group};

/// The time between two looks at whether a command takes too long.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Streams of a command whose output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// Standard output and standard error, in the order in which they come.
    Both,
    /// Standard output.
    Output,
}

/// A command that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    /// The first process, which leads a group.
    leader: u32,
    deadline: Instant,
    is_late: bool,
}

/// A thread that ends commands that take too long, or that are to stop.
pub struct Watch {
    running: Vec<Mutex<Option<Running>>>,
    is_over: AtomicBool,
}

/// The end of the thread.
pub struct Watching {
    watch: Arc<Watch>,
    thread: Option<JoinHandle<()>>,
}

impl Watching {
    /// Watches a number of workers, each of which runs one command at a time.
    pub fn begin(workers: usize, stops: impl Fn() -> bool + Send + 'static) -> Watching {
        let running = (0..workers).map(|_| Mutex::new(None)).collect();
        let watch = Arc::new(Watch { running, is_over: AtomicBool::new(false) });
        let watched = Arc::clone(&watch);
        let thread = thread::spawn(move || {
            while !watched.is_over.load(Relaxed) {
                thread::sleep(LOOK_EVERY);
                watched.look(stops());
            }
        });
        Watching { watch, thread: Some(thread) }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.watch.is_over.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

impl Watch {
    fn look(&self, stops: bool) {
        for slot in &self.running {
            let mut running = slot.lock().expect("no worker panics with it");
            if let Some(running) = running.as_mut()
                && (stops || running.deadline <= Instant::now())
            {
                running.is_late = true;
                kill_group(running.leader);
            }
        }
    }
}

/// A worker's commands.
pub struct Runner {
    watch: Arc<Watch>,
    worker: usize,
    output: File,
}

impl Runner {
    /// The runner of a worker, which puts what commands say into a file.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn new(watching: &Watching, worker: usize, output: &Path) -> io::Result<Runner> {
        let output =
            OpenOptions::new().read(true).append(true).create(true).truncate(false).open(output)?;
        Ok(Runner { watch: Arc::clone(&watching.watch), worker, output })
    }

    /// Runs a command, with nothing to read, and kills it, with whatever it has begun, after so long.
    ///
    /// # Errors
    /// There is no shell.
    pub fn run(&mut self, command: &str, limit: Duration, streams: Streams) -> io::Result<Ended> {
        let is_plain = |c: char| c.is_alphanumeric() || "._-+,@%/:= ".contains(c);
        let mut words = command.split_whitespace();
        if let Some(program) = words.next().filter(|first| first.contains('/'))
            && command.chars().all(is_plain)
        {
            let mut plain = Command::new(program);
            plain.args(words);
            // Where that is refused, a shell says what is wrong.
            if let Ok(ended) = self.run_this(plain, limit, streams) {
                return Ok(ended);
            }
        }
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command);
        self.run_this(shell, limit, streams)
    }

    fn run_this(
        &mut self,
        mut command: Command,
        limit: Duration,
        streams: Streams,
    ) -> io::Result<Ended> {
        self.output.set_len(0)?;
        let errors = match streams {
            Streams::Both => self.output.try_clone()?.into(),
            Streams::Output => Stdio::null(),
        };
        command.stdin(Stdio::null()).stdout(self.output.try_clone()?).stderr(errors);
        let mut child = command.process_group(0).spawn()?;
        let (leader, deadline) = (child.id(), Instant::now() + limit);
        let slot = &self.watch.running[self.worker];
        let running = Running { leader, deadline, is_late: false };
        *slot.lock().expect("the watch does not panic with it") = Some(running);
        let status = child.wait();
        let running = slot.lock().expect("the watch does not panic with it").take();
        // What it has left behind would pile up.
        kill_group(leader);
        let is_late = running.is_some_and(|running| running.is_late);
        let status = status?;
        let (mut said, mut more) = (Vec::new(), 0);
        if !status.success() || streams == Streams::Output {
            let length = self.output.seek(SeekFrom::End(0))?;
            self.output.seek(SeekFrom::Start(0))?;
            let most = length.min(KEPT_BYTES as u64);
            Read::by_ref(&mut self.output).take(most).read_to_end(&mut said)?;
            more = length - most;
        }
        Ok(Ended::new((!is_late).then_some(status), limit, said, more))
    }
}
