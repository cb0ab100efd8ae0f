//! A user's command that judges files: run by the shell, for a limited time, with so much of what it says as a report has room for.

use std::io::{self, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Most bytes that are kept of what it says; the rest is read and counted.
pub const KEPT_BYTES: usize = 1 << 20;

/// Longest wait for a pipe when the command has ended. A process that the command has left may keep it open, and is killed then.
const PIPE_WAIT: Duration = Duration::from_millis(500);

/// Shortest and longest pause between two looks at whether it has ended.
const PAUSE_MIN: Duration = Duration::from_micros(20);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Exit codes of a shell that cannot execute its command, or does not find it.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Number that a shell adds to a signal that has ended its command.
const SHELL_SIGNALS: i32 = 128;

/// End of a command, and its output.
pub struct Ended {
    /// Exit status; none: the command had not ended within the limit, and was killed.
    status: Option<ExitStatus>,
    limit: Duration,
    /// Beginning of its output, on standard output and standard error in the order in which it came.
    pub said: Vec<u8>,
    /// Bytes after that.
    more: u64,
}

impl Ended {
    /// The end of a command, with the beginning of its output and the number of bytes behind that; no status: it took longer than
    /// the limit.
    pub fn new(status: Option<ExitStatus>, limit: Duration, said: Vec<u8>, more: u64) -> Ended {
        Ended { status, limit, said, more }
    }

    /// Returns true if the command finds no fault.
    pub fn passed(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// Returns true if the shell could not run the command.
    pub fn is_missing(&self) -> bool {
        let code = self.status.and_then(|status| status.code());
        matches!(code, Some(NOT_EXECUTABLE | NOT_FOUND))
    }

    /// Returns the kind of end, in words that follow the command.
    pub fn how(&self) -> String {
        let Some(status) = self.status else {
            return format!("had not ended after {} s and was killed", self.limit.as_secs_f64());
        };
        if let Some(signal) = status.signal() {
            return format!("was ended by {}", signal_name(signal));
        }
        let code = status.code().unwrap_or_default();
        let why = match code {
            NOT_EXECUTABLE => " (it cannot be executed)".into(),
            NOT_FOUND => " (it is not found)".into(),
            SHELL_SIGNALS..=192 => {
                format!(" (a program of it was ended by {})", signal_name(code - SHELL_SIGNALS))
            }
            _ => String::new(),
        };
        format!("ended with exit code {code}{why}")
    }

    /// Beginning of its output, at most `characters` long.
    pub fn beginning(&self, characters: usize) -> String {
        let said = String::from_utf8_lossy(&self.said);
        let said = said.trim();
        let first: String = said.chars().take(characters).collect();
        let left_out = (said.len() - first.len()) as u64 + self.more;
        match (first.is_empty(), left_out) {
            (true, _) => "it said nothing".into(),
            (false, 0) => first,
            (false, left_out) => format!("{first} … ({left_out} more bytes)"),
        }
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return format!("signal {signal}"),
    };
    name.into()
}

/// Runs a command, with nothing to read, and kills it, with whatever it has begun, after so long or when it is to stop.
///
/// # Errors
/// There is no shell, or no pipe.
pub fn run(command: &str, limit: Duration, stops: &dyn Fn() -> bool) -> io::Result<Ended> {
    let (reader, writer) = io::pipe()?;
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null());
    shell.stdout(writer.try_clone()?).stderr(writer);
    // A group of its own, so that all of it can be killed.
    let mut child = shell.process_group(0).spawn()?;
    // The writing ends that are this process's go, so that the pipe ends with the command.
    drop(shell);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(read(reader)));
    let status = wait(&mut child, limit, stops)?;
    let all = receiver.recv_timeout(PIPE_WAIT).or_else(|_| {
        kill_group(child.id());
        receiver.recv_timeout(PIPE_WAIT)
    });
    let (said, more) = all.unwrap_or_default();
    Ok(Ended { status, limit, said, more })
}

/// Waits for its end; none: it was too long in coming.
fn wait(
    child: &mut Child,
    limit: Duration,
    stops: &dyn Fn() -> bool,
) -> io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let elapsed = began.elapsed();
        if elapsed >= limit || stops() {
            kill_group(child.id());
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        // Little of its time is lost.
        thread::sleep((elapsed / 16).clamp(PAUSE_MIN, PAUSE_MAX));
    }
}

/// Kills all processes of a group, if there are some.
#[expect(unsafe_code, reason = "the standard library kills no groups")]
pub fn kill_group(leader: u32) {
    let Ok(leader) = i32::try_from(leader) else { return };
    // SAFETY: it takes numbers. A group whose processes have all ended has none to kill.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
}

/// Reads all, and keeps the beginning.
fn read(mut from: PipeReader) -> (Vec<u8>, u64) {
    let (mut kept, mut more, mut piece) = (Vec::new(), 0, vec![0; 1 << 16]);
    loop {
        match from.read(&mut piece) {
            Ok(0) => return (kept, more),
            Ok(n) => {
                let room = n.min(KEPT_BYTES - kept.len());
                kept.extend(&piece[..room]);
                more += (n - room) as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return (kept, more),
        }
    }
}
