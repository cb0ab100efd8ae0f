//! Servers as judges: a server is started on the files, asked, and stopped.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::checker_command::kill_group;

/// Most bytes of what a server says that are told.
const SAID_BYTES: usize = 2000;
/// The time between two attempts to connect, at first and at most.
const PAUSES: [Duration; 2] = [Duration::from_micros(200), Duration::from_millis(20)];

/// A protocol of servers: a request, and the beginning of the answer to it.
pub struct Protocol {
    /// The name on command lines.
    pub name: &'static str,
    asks: &'static [u8],
    answers: &'static [u8],
}

/// All protocols that are known.
pub const PROTOCOLS: [Protocol; 2] = [
    Protocol { name: "redis", asks: b"*1\r\n$4\r\nPING\r\n", answers: b"+PONG" },
    Protocol { name: "memcached", asks: b"version\r\n", answers: b"VERSION" },
];

/// A server that runs.
pub struct Server {
    child: Child,
    /// The port of the host on which it listens.
    pub port: u16,
    said: PathBuf,
}

impl Drop for Server {
    fn drop(&mut self) {
        kill_group(self.child.id());
        // It has ended, or was just killed.
        let _ = self.child.wait();
    }
}

/// A port that no program listens on.
///
/// # Errors
/// The host has none.
pub fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl Server {
    /// Starts a server by a shell. It says what it says to a file.
    ///
    /// # Errors
    /// There is no shell.
    pub fn start(command: &str, port: u16, said: &Path) -> io::Result<Server> {
        let to = OpenOptions::new().write(true).create(true).truncate(true).open(said)?;
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).stdin(Stdio::null());
        shell.stdout(to.try_clone()?).stderr(to);
        let child = shell.process_group(0).spawn()?;
        Ok(Server { child, port, said: said.into() })
    }

    /// Waits until it accepts connections.
    ///
    /// # Errors
    /// It has ended, or has not accepted one within the limit: in words.
    pub fn accepts(
        &mut self,
        limit: Duration,
        stops: &dyn Fn() -> bool,
    ) -> Result<TcpStream, String> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let (begun, [mut pause, most]) = (Instant::now(), PAUSES);
        loop {
            if let Ok(stream) = TcpStream::connect_timeout(&address, limit) {
                return Ok(stream);
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended before it was asked ({status}): {}", self.told()));
            }
            if begun.elapsed() >= limit || stops() {
                let seconds = limit.as_secs_f64();
                return Err(format!("accepts no connection after {seconds} s: {}", self.told()));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(most);
        }
    }

    /// Asks it by a protocol that is known.
    ///
    /// # Errors
    /// It does not answer as it should: in words.
    pub fn answers(
        &self,
        mut stream: TcpStream,
        protocol: &Protocol,
        limit: Duration,
    ) -> Result<(), String> {
        let mut answer = vec![0; protocol.answers.len()];
        let exchange = stream
            .set_read_timeout(Some(limit))
            .and_then(|()| stream.write_all(protocol.asks))
            .and_then(|()| stream.read_exact(&mut answer));
        match exchange {
            Ok(()) if answer == protocol.answers => Ok(()),
            Ok(()) => Err(format!("answers {:?}", String::from_utf8_lossy(&answer))),
            Err(error) => Err(format!("does not answer ({error}): {}", self.told())),
        }
    }

    /// The last part of its output.
    pub fn told(&self) -> String {
        let mut said = Vec::new();
        if let Ok(file) = File::open(&self.said) {
            // What can be read is told.
            let _ = file.take(1 << 20).read_to_end(&mut said);
        }
        let last = said.len().saturating_sub(SAID_BYTES);
        match String::from_utf8_lossy(&said[last..]).trim() {
            "" => "it said nothing".into(),
            said => said.into(),
        }
    }

    /// Returns true if it still runs.
    pub fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}
