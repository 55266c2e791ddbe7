//! JACK server of a test.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use jack::{Client, ClientOptions};

/// Environment variable with the only test that a process runs.
const ALONE: &str = "ONDES_TEST_ALONE";

/// Environment variable with the server's name, also read by JACK's library.
const SERVER: &str = "JACK_DEFAULT_SERVER";

pub const RATE: u32 = 48_000;
pub const BLOCK: usize = 256;

/// Timeout for anything that happens at all.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Runs a test's body in a process of its own, which can start its own server. `test` is the test's
/// full name.
pub fn alone(test: &str, body: impl FnOnce()) {
    alone_with(test, &[], body);
}

/// Same as [`alone`], with more environment variables.
pub fn alone_with(test: &str, variables: &[(&str, &Path)], body: impl FnOnce()) {
    if std::env::var(ALONE).is_ok_and(|name| name == test) {
        return body();
    }
    // One test at a time: clients of the same name conflict even on different servers.
    let turn = File::create(std::env::temp_dir().join("ondes-jack-tests.lock")).unwrap();
    turn.lock().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ALONE, test);
    let server = format!("ondes-test-{}", std::process::id());
    command
        .env(SERVER, &server)
        .env("JACK_NO_AUDIO_RESERVATION", "1");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    sweep(&server);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{out}{err}{}",
        output.status
    );
}

/// Removes what a killed server has left in shared memory.
fn sweep(server: &str) {
    for file in std::fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
    {
        if file.file_name().to_string_lossy().contains(server) {
            drop(std::fs::remove_file(file.path()));
        }
    }
}

/// Server of this process.
pub struct Server(Child);

impl Server {
    pub fn start() -> Self {
        Self::start_at(RATE)
    }

    pub fn start_at(rate: u32) -> Self {
        Self::start_with(rate, BLOCK)
    }

    pub fn start_with(rate: u32, block: usize) -> Self {
        // Synchronous: the server waits for late clients, so nothing is lost on a busy machine.
        Self::launch(rate, block, &["-S"])
    }

    /// Starts a server that does not wait for late clients, with blocks of 64 frames.
    pub fn start_impatient() -> Self {
        Self::launch(RATE, 64, &[])
    }

    fn launch(rate: u32, block: usize, options: &[&str]) -> Self {
        let name = std::env::var(SERVER).unwrap();
        let mut command = Command::new("jackd");
        // Without real-time priority, which test machines may refuse.
        command.args(["-n", &name, "-r"]).args(options);
        command.args([
            "-d",
            "dummy",
            "-r",
            &rate.to_string(),
            "-p",
            &block.to_string(),
        ]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = command
            .spawn()
            .expect("jackd (package jackd2; see `cargo xtask setup --tests`)");
        let mut server = Self(started);
        wait_until("the JACK server runs", || {
            assert!(server.0.try_wait().unwrap().is_none(), "jackd ended");
            Client::new("probe", ClientOptions::NO_START_SERVER).is_ok()
        });
        server
    }

    /// Sends a signal by name.
    #[allow(dead_code, reason = "it is for the tests of playing")]
    pub fn signal(&self, name: &str) {
        assert!(
            Command::new("kill")
                .args([&format!("-{name}"), &self.0.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Kills the server without notice to its clients.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        // On SIGTERM it removes its files.
        drop(Command::new("kill").arg(self.0.id().to_string()).status());
        let asked = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if asked.elapsed() > Duration::from_secs(5) {
                drop(self.0.kill());
            }
            sleep(Duration::from_millis(10));
        }
    }
}

pub fn wait_until(what: &str, mut there: impl FnMut() -> bool) {
    let since = Instant::now();
    while !there() {
        assert!(since.elapsed() < PATIENCE, "waited in vain until {what}");
        sleep(Duration::from_millis(10));
    }
}
