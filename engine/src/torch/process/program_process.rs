//! A process that runs one TorchScript program.

use std::collections::HashMap;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::protocol::{self, Reply, Request, Start, Started};
use crate::sync::lock;
use crate::torch::error::TorchError;
use crate::torch::interface;
use crate::torch::library::Library;
use crate::torch::library_paths;

/// Time in which a process that closed its socket must have ended; after that it is killed.
const ENDING: Duration = Duration::from_secs(1);

/// Longest part of a program's name that is used, in characters.
const MAX_NAME: usize = 80;

/// A running process; killed when dropped.
pub struct ProgramProcess {
    /// Name of the program, for errors.
    name: String,
    child: Mutex<Child>,
    control: Mutex<UnixStream>,
    missing_protection: Vec<String>,
    /// Set once the process is lost: the reason.
    lost: OnceLock<String>,
}

impl ProgramProcess {
    /// Returns the process of a program by the hash of its bytes; starts one if there is none or it
    /// is lost.
    ///
    /// # Errors
    /// Returns [`TorchError`] if the process cannot be started.
    pub fn shared(
        library: &Library,
        hash: &str,
        name: &str,
        program: &[u8],
        uses_gpu: bool,
    ) -> Result<Arc<Self>, TorchError> {
        type Key = (String, bool);
        static SHARED: Mutex<Option<HashMap<Key, Weak<ProgramProcess>>>> = Mutex::new(None);
        let mut shared = lock(&SHARED);
        let processes = shared.get_or_insert_default();
        processes.retain(|_, process| process.strong_count() > 0);
        let key = (hash.to_owned(), uses_gpu);
        let running = processes
            .get(&key)
            .and_then(Weak::upgrade)
            .filter(|process| process.lost.get().is_none());
        if let Some(process) = running {
            return Ok(process);
        }
        let process = Arc::new(Self::start(library, name, program, uses_gpu)?);
        processes.insert(key, Arc::downgrade(&process));
        Ok(process)
    }

    /// Starts a process and passes the program to it.
    fn start(
        library: &Library,
        name: &str,
        program: &[u8],
        uses_gpu: bool,
    ) -> Result<Self, TorchError> {
        let looked = library_paths::program_hosts(library.path());
        let Some(host) = looked.iter().find(|path| path.is_file()) else {
            return Err(TorchError::NoProgramHost { looked });
        };
        let failed = |error: io::Error| TorchError::Program(format!("{}: {error}", host.display()));
        let (control, theirs) = UnixStream::pair().map_err(failed)?;
        // A program states its own name.
        let name: String = name
            .chars()
            .filter(|letter| !letter.is_control())
            .take(MAX_NAME)
            .collect();
        let mut command = Command::new(host);
        // Not needed there, but shown in lists of processes.
        command.arg(&name);
        // What it prints would end up in the output of this program. A process group of its own:
        // what a terminal sends to this program, such as Ctrl-C, is answered here.
        command
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        if !uses_gpu {
            command.env("CUDA_VISIBLE_DEVICES", "");
        }
        let child = command.spawn().map_err(failed)?;
        // Closes this process's copy of the other socket: if the host ends, its end is seen.
        drop(command);
        let mut process = Self {
            name,
            child: Mutex::new(child),
            control: Mutex::new(control),
            missing_protection: Vec::new(),
            lost: OnceLock::new(),
        };
        let begun = process.begin(library, program, uses_gpu);
        let Started { missing_protection } = match begun {
            Ok(started) => started.map_err(TorchError::Program)?,
            Err(error) => return Err(process.lose(&error, protocol::STARTING)),
        };
        missing_protection
            .iter()
            .for_each(|line| tracing::warn!("{}: {line}", process.name));
        process.missing_protection = missing_protection;
        Ok(process)
    }

    fn begin(
        &self,
        library: &Library,
        program: &[u8],
        uses_gpu: bool,
    ) -> io::Result<Reply<Started>> {
        let file = protocol::memory_file("ondes-program", program.len() as u64)?;
        file.write_all_at(program, 0)?;
        let control = lock(&self.control);
        let start = Start {
            version: interface::VERSION,
            library: library.path().into(),
            uses_gpu,
        };
        protocol::send(&control, &start)?;
        protocol::send_file(&control, &file)?;
        drop(file);
        protocol::receive(&control, Some(protocol::STARTING))
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// Returns [`TorchError::Lost`] if the process is gone.
    pub fn connect(self: &Arc<Self>) -> Result<Connection, TorchError> {
        let connected = UnixStream::pair().and_then(|(here, there)| {
            protocol::send_file(&lock(&self.control), &there)?;
            Ok(here)
        });
        match connected {
            Ok(socket) => Ok(Connection {
                process: self.clone(),
                socket,
            }),
            Err(error) => Err(self.lose(&error, Duration::ZERO)),
        }
    }

    /// Returns what this system lacks to protect the user from the program, one line each.
    pub fn missing_protection(&self) -> &[String] {
        &self.missing_protection
    }

    /// Returns the error of a process that cannot be reached, or has not answered within `limit`,
    /// and ends it.
    fn lose(&self, error: &io::Error, limit: Duration) -> TorchError {
        let reason = self.lost.get_or_init(|| {
            let mut child = lock(&self.child);
            match error.kind() {
                ErrorKind::TimedOut => {
                    // Fails if it has just ended, which is what is wanted.
                    let _ = child.kill().and_then(|()| child.wait());
                    format!(
                        "the program did not answer within {} s and was stopped",
                        limit.as_secs_f32()
                    )
                }
                ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => {
                    end_reason(ending(&mut child))
                }
                _ => {
                    let _ = child.kill().and_then(|()| child.wait());
                    format!("the program's process failed ({error})")
                }
            }
        });
        TorchError::Lost {
            name: self.name.clone(),
            reason: reason.clone(),
        }
    }
}

impl Drop for ProgramProcess {
    fn drop(&mut self) {
        let mut child = lock(&self.child);
        // Fails if it has ended.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// Waits for a process to end; kills it if it does not. `None` if somebody else has asked for its
/// status.
fn ending(child: &mut Child) -> Option<ExitStatus> {
    let begun = Instant::now();
    while begun.elapsed() < ENDING {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => return None,
        }
    }
    child.kill().and_then(|()| child.wait()).ok()
}

fn end_reason(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "the program's process ended".into();
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let meaning = match signal {
                4 => "invalid instruction",
                6 => "aborted",
                7 => "memory that is not there",
                8 => "invalid arithmetic",
                9 => "killed, perhaps for lack of memory",
                11 => "invalid memory access",
                31 => "forbidden system call",
                _ => "ended from outside",
            };
            format!("the program crashed (signal {signal}, {meaning})")
        }
        (None, code) => format!(
            "the program ended its process (exit code {})",
            code.unwrap_or_default()
        ),
    }
}

/// A connection to a process, for one method.
pub struct Connection {
    process: Arc<ProgramProcess>,
    socket: UnixStream,
}

impl Connection {
    /// Sends a request and returns the reply, which must come within `limit`.
    ///
    /// # Errors
    /// Returns [`TorchError::Lost`] if the process is gone or too slow, [`TorchError::Program`] if
    /// the program fails.
    pub fn ask<T: DeserializeOwned>(
        &self,
        request: &Request,
        limit: Duration,
    ) -> Result<T, TorchError> {
        self.ask_with(request, None, limit)
    }

    /// Sends a request and a file, as [`Self::ask`] does.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn ask_with<T: DeserializeOwned>(
        &self,
        request: &Request,
        file: Option<&std::fs::File>,
        limit: Duration,
    ) -> Result<T, TorchError> {
        let socket = &self.socket;
        let reply = protocol::send(socket, request)
            .and_then(|()| file.map_or(Ok(()), |file| protocol::send_file(socket, file)))
            .and_then(|()| protocol::receive::<Reply<T>>(socket, Some(limit)));
        match reply {
            Ok(reply) => reply.map_err(TorchError::Program),
            Err(error) => Err(self.lose(&error, limit)),
        }
    }

    /// Ends the process for an error of communication and returns the error of the step.
    pub fn lose(&self, error: &io::Error, limit: Duration) -> TorchError {
        self.process.lose(error, limit)
    }
}
