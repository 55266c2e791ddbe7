//! `--workers`: starts processes on this machine that train together.

use std::net::TcpListener;
use std::process::{Child, Command};
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::trainer::interrupt;

/// Interval at which processes are looked at.
const INTERVAL: Duration = Duration::from_millis(50);
/// Time in which processes end by themselves after another one has gone.
const GRACE: Duration = Duration::from_secs(20);

/// Variable of processes that [`run`] started.
const LAUNCHED: &str = "ONDES_LAUNCHED";

/// Lets a process that [`run`] started end when the launcher does, however that ends.
pub fn follow_launcher() {
    #[cfg(target_os = "linux")]
    if std::env::var_os(LAUNCHED).is_some() {
        // SAFETY: this option only sets the signal that the system sends.
        #[expect(unsafe_code)]
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        }
    }
}

/// Runs this program `workers` times with the arguments of this process, and waits for all. Each
/// gets its share of the cores.
///
/// Returns the exit code: that of the first process, or of the one that failed first.
///
/// # Errors
/// Returns an error if a process cannot be started.
pub fn run(workers: usize) -> anyhow::Result<u8> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    // The port is free now; the first process opens it again at once.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())?
        .port();
    let cores = available_parallelism().map_or(1, usize::from);
    interrupt::install()?;
    let mut processes = Processes(Vec::new());
    for rank in 0..workers {
        let mut command = Command::new(&program);
        command.args(std::env::args_os().skip(1));
        command
            .env("RANK", rank.to_string())
            .env("WORLD_SIZE", workers.to_string())
            .env("LOCAL_RANK", rank.to_string());
        command
            .env("MASTER_ADDR", "127.0.0.1")
            .env("MASTER_PORT", port.to_string());
        if std::env::var_os("OMP_NUM_THREADS").is_none() {
            command.env("OMP_NUM_THREADS", (cores / workers).max(1).to_string());
        }
        command.env(LAUNCHED, "1");
        // Ctrl-C in a terminal reaches this process only, which passes it on once.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        processes.0.push(Some(
            command
                .spawn()
                .with_context(|| format!("{}: cannot be started", program.display()))?,
        ));
    }
    processes.wait()
}

/// Started processes; dropping it ends those that still run.
struct Processes(Vec<Option<Child>>);

impl Processes {
    fn wait(&mut self) -> anyhow::Result<u8> {
        let (mut code, mut failed_at, mut forwarded) = (0, None::<Instant>, false);
        while self.0.iter().any(Option::is_some) {
            if interrupt::requested() && !forwarded {
                self.interrupt();
                forwarded = true;
            }
            for (rank, slot) in self.0.iter_mut().enumerate() {
                let Some(status) = slot.as_mut().map(Child::try_wait).transpose()?.flatten() else {
                    continue;
                };
                *slot = None;
                let ended = status.code().and_then(|code| u8::try_from(code).ok());
                if status.code().is_none() {
                    eprintln!("ondes-train: process {rank} ended by a signal ({status})");
                }
                if ended != Some(0) {
                    failed_at.get_or_insert_with(Instant::now);
                }
                if rank == 0 || code == 0 {
                    code = ended.unwrap_or(2);
                }
            }
            if failed_at.is_some_and(|failed| failed.elapsed() > GRACE) && !forwarded {
                break;
            }
            sleep(INTERVAL);
        }
        Ok(code)
    }

    /// Passes on the signal that this process got.
    fn interrupt(&self) {
        #[cfg(unix)]
        for child in self.0.iter().flatten() {
            let Ok(id) = libc::pid_t::try_from(child.id()) else {
                continue;
            };
            // The exit code of a shell is the signal's number and 128.
            let signal = libc::c_int::from(interrupt::exit_code()) - 128;
            // SAFETY: the child has not been waited for, so that the number is still its own.
            #[expect(unsafe_code)]
            unsafe {
                libc::kill(id, signal);
            }
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for mut child in self.0.iter_mut().filter_map(Option::take) {
            drop(child.kill());
            drop(child.wait());
        }
    }
}
