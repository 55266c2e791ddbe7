//! Thread that opens, watches and reopens devices.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::alsa_errors;
use super::callback_slot::StreamStats;
use super::catalogue::{self, HostKind};
use super::opened_stream::OpenedStream;
use super::status::{AudioStatus, AudioStatusCell, CallbackFactory};
use super::system;
use crate::io::AudioChoice;

/// Interval of the checks on running devices.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A device without blocks for this long is taken for lost; the longest buffers in use are shorter.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);

/// Time between attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Blocks after which the system's latency figures are reliable: its buffers are empty at first.
const SETTLING_BLOCKS: u64 = 4;

pub(super) struct Supervisor {
    pub inbox: Receiver<AudioChoice>,
    pub status_cell: Arc<AudioStatusCell>,
    pub stats: Arc<StreamStats>,
    pub factory: CallbackFactory,
}

/// Reason why there is no sound.
enum StreamFailure {
    /// Failure of the device; worth retrying.
    Device(String),
    /// Failure of the callback; retrying would not help.
    Callback(String),
}

/// Reason why watching a device ended.
enum WatchEnd {
    NewChoice(AudioChoice),
    Failed(StreamFailure),
    OwnerDropped,
}

impl Supervisor {
    pub fn run(mut self, mut choice: AudioChoice) {
        alsa_errors::silence();
        // A lost device stays reported as lost, with its reason, until it is back or another one is chosen.
        let mut lost = false;
        loop {
            let failure = match self.start(&choice) {
                Ok(mut running) => {
                    lost = false;
                    self.status_cell.set(AudioStatus::Playing(running.opened.clone()));
                    let end = self.watch(&mut running);
                    let device = running.opened.output.clone();
                    drop(running);
                    match end {
                        WatchEnd::OwnerDropped => return,
                        WatchEnd::NewChoice(other) => {
                            choice = other;
                            continue;
                        }
                        WatchEnd::Failed(StreamFailure::Device(reason)) => {
                            lost = true;
                            self.status_cell.set(AudioStatus::Lost { device, reason, since: Instant::now() });
                            None
                        }
                        WatchEnd::Failed(failure) => Some(failure),
                    }
                }
                Err(failure) => Some(failure),
            };
            let timeout = match failure {
                None => Some(RETRY_INTERVAL),
                Some(StreamFailure::Device(reason)) => {
                    if !lost {
                        self.status_cell.set(AudioStatus::Failed(reason));
                    }
                    Some(RETRY_INTERVAL)
                }
                Some(StreamFailure::Callback(reason)) => {
                    self.status_cell.set(AudioStatus::Failed(reason));
                    None
                }
            };
            match self.wait(timeout) {
                Ok(Some(other)) => {
                    choice = other;
                    lost = false;
                }
                Ok(None) => {}
                Err(OwnerDropped) => return,
            }
        }
    }

    /// Opens the chosen devices and installs a callback.
    fn start(&mut self, choice: &AudioChoice) -> Result<OpenedStream, StreamFailure> {
        let before = self.stats.blocks();
        let mut running = open(choice, &self.stats).map_err(StreamFailure::Device)?;
        // It plays silence already, which proves that it runs and shows its latency.
        let since = Instant::now();
        while self.stats.blocks() < before + SETTLING_BLOCKS && !self.stats.stopping() {
            if let Some(failure) = running.stream.failure() {
                return Err(StreamFailure::Device(failure));
            }
            if since.elapsed() > 2 * STALL_TIMEOUT {
                return Err(StreamFailure::Device(format!("{} does not play", running.opened.output)));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let (output, input) = self.stats.latencies();
        running.opened.output_latency_frames = output;
        if running.opened.inputs > 0 {
            running.opened.input_latency_frames = input + running.opened.bridge_frames;
        }
        let callback = (self.factory)(&running.opened).map_err(StreamFailure::Callback)?;
        running.owner.install(callback);
        Ok(running)
    }

    fn watch(&self, running: &mut OpenedStream) -> WatchEnd {
        let mut blocks = self.stats.blocks();
        let mut since = Instant::now();
        loop {
            match self.wait(Some(CHECK_INTERVAL)) {
                Ok(Some(choice)) => return WatchEnd::NewChoice(choice),
                Ok(None) => {}
                Err(OwnerDropped) => return WatchEnd::OwnerDropped,
            }
            if let Some(reason) = running.owner.panic() {
                let reason = format!("the audio callback failed: {}", reason.replace('\n', " "));
                return WatchEnd::Failed(StreamFailure::Callback(reason));
            }
            if let Some(reason) = running.stream.failure() {
                return WatchEnd::Failed(StreamFailure::Device(reason));
            }
            let now = self.stats.blocks();
            if now != blocks {
                (blocks, since) = (now, Instant::now());
            } else if since.elapsed() >= STALL_TIMEOUT {
                return WatchEnd::Failed(StreamFailure::Device("it has stopped playing".into()));
            }
        }
    }

    /// Returns the latest choice received before the timeout; waits indefinitely without one.
    fn wait(&self, timeout: Option<Duration>) -> Result<Option<AudioChoice>, OwnerDropped> {
        let order = match timeout {
            Some(timeout) => self.inbox.recv_timeout(timeout),
            None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match order {
            Ok(choice) => {
                let (latest, more) = self.inbox.try_iter().fold((choice, 0), |(_, more), choice| (choice, more + 1));
                self.status_cell.seen(1 + more);
                Ok(Some(latest))
            }
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(OwnerDropped),
        }
    }
}

/// The handle was dropped.
struct OwnerDropped;

fn open(choice: &AudioChoice, stats: &Arc<StreamStats>) -> Result<OpenedStream, String> {
    match catalogue::find_host(choice.host.as_deref())? {
        HostKind::System(host) => system::open(host, choice, stats),
        #[cfg(target_os = "linux")]
        HostKind::Jack => super::jack::open(choice, stats),
    }
}
