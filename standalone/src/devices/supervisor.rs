//! Thread that opens, watches and reopens devices.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::callback_slot::StreamStats;
use super::catalogue::{self, HostKind};
use super::midi_link::{JackMidi, MidiLink};
use super::opened_stream::OpenedStream;
use super::status::{AudioStatus, AudioStatusCell, CallbackFactory};
use super::system;
use crate::io::AudioChoice;
use ondes_engine::panics;

/// Interval of the checks on running devices.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A device without blocks for this long is taken for lost; the longest buffers in use are shorter.
const STALL_TIMEOUT: Duration = Duration::from_secs(1);

/// Time between attempts.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Blocks after which the system's latency figures are reliable: its buffers are empty at first.
const SETTLING_BLOCKS: u64 = 4;

/// Attempts with a callback that fails each time; the devices then stay closed until others are
/// chosen.
const MAX_CALLBACK_FAILURES: usize = 3;

/// Time after which a callback that plays counts as sound again.
const CALLBACK_PROBATION: Duration = Duration::from_secs(10);

pub(super) struct Supervisor {
    pub inbox: Receiver<AudioChoice>,
    pub status_cell: Arc<AudioStatusCell>,
    pub stats: Arc<StreamStats>,
    pub midi: Option<Arc<MidiLink>>,
    pub factory: CallbackFactory,
}

/// Reason why there is no sound.
enum StreamFailure {
    /// Failure of the device; worth retrying.
    Device(String),
    /// Failure of the callback; worth retrying a few times.
    Callback(String),
    /// The callback cannot be created, which would not change.
    Factory(String),
}

/// Reason why watching a device ended.
enum WatchEnd {
    NewChoice(AudioChoice),
    Failed(StreamFailure),
    OwnerDropped,
}

/// Next step of the supervisor.
enum Next {
    /// Open these devices.
    Open(AudioChoice),
    /// Open the same devices again, after a pause; without one once others are chosen.
    Retry(Option<Duration>),
    /// The handle was dropped.
    End,
}

/// History of the chosen devices.
#[derive(Default)]
struct History {
    /// Output device that has played.
    played: Option<String>,
    /// The device stays reported as lost, with its first reason, until it is back or another one is
    /// chosen.
    lost: bool,
    /// Failures of the callback in a row.
    callback_failures: usize,
}

impl Supervisor {
    /// Runs until the handle is dropped. After a panic the devices are opened again.
    pub fn run(mut self, mut choice: AudioChoice) {
        super::prepare_thread();
        let mut history = History::default();
        loop {
            let next =
                panics::contain(|| self.play(&choice, &mut history)).unwrap_or_else(|panic| {
                    let reason = format!("the sound system's driver failed: {panic}");
                    self.fail(StreamFailure::Callback(reason), &mut history)
                });
            let other = match next {
                Next::End => return,
                Next::Open(other) => Some(other),
                Next::Retry(timeout) => match self.wait(timeout) {
                    Ok(other) => other,
                    Err(OwnerDropped) => return,
                },
            };
            if let Some(other) = other {
                (choice, history) = (other, History::default());
            }
        }
    }

    /// Opens the chosen devices and plays until they fail or others are chosen.
    fn play(&mut self, choice: &AudioChoice, history: &mut History) -> Next {
        let mut running = match self.start(choice) {
            Ok(running) => running,
            Err(failure) => return self.fail(failure, history),
        };
        (history.played, history.lost) = (Some(running.opened.output.clone()), false);
        self.status_cell
            .set(AudioStatus::Playing(running.opened.clone()));
        let started = Instant::now();
        let end = self.watch(&mut running);
        if started.elapsed() >= CALLBACK_PROBATION {
            history.callback_failures = 0;
        }
        match end {
            WatchEnd::OwnerDropped => Next::End,
            WatchEnd::NewChoice(other) => Next::Open(other),
            // Reported before the stream is dropped, which waits for a callback that is late.
            WatchEnd::Failed(failure) => self.fail(failure, history),
        }
    }

    /// Reports a failure of the chosen devices.
    fn fail(&self, failure: StreamFailure, history: &mut History) -> Next {
        let (reason, again) = match failure {
            StreamFailure::Device(reason) => (reason, true),
            StreamFailure::Callback(reason) => {
                history.callback_failures += 1;
                (reason, history.callback_failures < MAX_CALLBACK_FAILURES)
            }
            StreamFailure::Factory(reason) => (reason, false),
        };
        match &history.played {
            Some(_) if again && history.lost => {}
            Some(device) if again => {
                history.lost = true;
                self.status_cell.set(AudioStatus::Lost {
                    device: device.clone(),
                    reason,
                    since: Instant::now(),
                });
            }
            _ => self.status_cell.set(AudioStatus::Failed(reason)),
        }
        Next::Retry(again.then_some(RETRY_INTERVAL))
    }

    /// Opens the chosen devices and installs a callback.
    fn start(&mut self, choice: &AudioChoice) -> Result<OpenedStream, StreamFailure> {
        let before = self.stats.blocks();
        let mut running = self.open(choice).map_err(StreamFailure::Device)?;
        // It plays silence already, which proves that it runs and shows its latency.
        let since = Instant::now();
        while self.stats.blocks() < before + SETTLING_BLOCKS && !self.stats.stopping() {
            if let Some(failure) = running.stream.failure() {
                return Err(StreamFailure::Device(failure));
            }
            if since.elapsed() > 2 * STALL_TIMEOUT {
                return Err(StreamFailure::Device(format!(
                    "{} does not play",
                    running.opened.output
                )));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let (output, input) = self.stats.latencies();
        running.opened.output_latency_frames = output;
        if running.opened.inputs > 0 {
            running.opened.input_latency_frames = input + running.opened.bridge_frames;
        }
        let callback = panics::contain(|| (self.factory)(&running.opened))
            .map_err(|panic| {
                StreamFailure::Callback(format!("the audio callback cannot be created: {panic}"))
            })?
            .map_err(StreamFailure::Factory)?;
        running.owner.install(callback);
        Ok(running)
    }

    /// Opens the chosen devices, and tells the MIDI inputs which client of JACK is theirs.
    fn open(&self, choice: &AudioChoice) -> Result<OpenedStream, String> {
        let set_midi = |jack: JackMidi| {
            if let Some(midi) = &self.midi {
                midi.set(jack);
            }
        };
        match catalogue::find_host(choice.host.as_deref()) {
            #[cfg(target_os = "linux")]
            Ok(HostKind::Jack) => {
                let opened = super::jack::open(choice, &self.stats, self.midi.as_ref());
                opened.inspect_err(|reason| set_midi(JackMidi::Failed(reason.clone())))
            }
            Ok(HostKind::System(host)) => {
                set_midi(JackMidi::Separate);
                system::open(host, choice, &self.stats)
            }
            Err(reason) => {
                set_midi(JackMidi::Separate);
                Err(reason)
            }
        }
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
                let reason = format!("the audio callback failed: {reason}");
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
            None => self
                .inbox
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        };
        match order {
            Ok(choice) => {
                let (latest, more) = self
                    .inbox
                    .try_iter()
                    .fold((choice, 0), |(_, more), choice| (choice, more + 1));
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
